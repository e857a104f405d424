/* SPDX-License-Identifier: Apache-2.0 */
/* format.h: numbers, times and sizes as screens show them. All return BUF. */
#ifndef TUI_FORMAT_H
#define TUI_FORMAT_H

#include <stddef.h>
#include <stdint.h>

enum { TUI_NUMBER = 32 }; /* bytes of BUF */

/* "3,825"; "-" below 0. */
const char *tui_count(int64_t n, char buf[TUI_NUMBER]);
/* ".8123", "1.1022", "17,210", "1.5e-5", "-" for NaN: six columns, seldom more. */
const char *tui_value(double v, char buf[TUI_NUMBER]);
/* Of a second: "11,804", "512", "84.2", "3.41". */
const char *tui_rate(double v, char buf[TUI_NUMBER]);
/* "7.8M", "512", "989T". */
const char *tui_scaled(double v, char buf[TUI_NUMBER]);
/* "1.2 MB", of 1,000s. */
const char *tui_bytes(double bytes, char buf[TUI_NUMBER]);
/* "12m56s", "<1s"; "-" where it is not known. */
const char *tui_duration(double seconds, char buf[TUI_NUMBER]);
/* "48ms", "9.1s", and from a minute on "12m56s": what an experiment took. */
const char *tui_span(double seconds, char buf[TUI_NUMBER]);
/* "00:06:44", "3d04:10:09". */
const char *tui_elapsed(double seconds, char buf[TUI_NUMBER]);
/* "14:03", "14:03:02", "14:03:02.561": local time of a day; DIGITS 0, 2, 5. */
const char *tui_clock(double t, int digits, char buf[TUI_NUMBER]);
/* "11-20": the local day. */
const char *tui_day(double t, char buf[TUI_NUMBER]);
/* TEXT with its numbers as tui_value writes them: "Accuracy .8123 (+.0200)" of
 * "Accuracy 0.8123 (+0.0200)". Returns BUF of SIZE bytes. */
const char *tui_without_zeros(const char *text, char *buf, size_t size);
/* "98ms", "1.21s", "0.8ms". */
const char *tui_ms(double ms, char buf[TUI_NUMBER]);

#endif
