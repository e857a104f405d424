/* SPDX-License-Identifier: Apache-2.0 */
/* crash.h: signals of the process that has the terminal: the terminal is usable after
 * any of them but SIGKILL (RELIABILITY.md, G11). */
#ifndef TUI_CRASH_H
#define TUI_CRASH_H

#include <stdbool.h>

/* Remembers how the terminal IN, OUT is, and what it needs to be as it was (terminfo is
 * set up). CRASH: folder for reports; NULL: no report is written. */
void tui_crash_begin(int in, int out, const char *crash);
/* Catches signals from here to the end: fatal ones give the terminal back, write a
 * report and end the process as they would have. */
void tui_crash_catch(void);
void tui_crash_end(void);

enum tui_caught {
    TUI_CAUGHT_RESIZE = 1,  /* WINCH */
    TUI_CAUGHT_LEAVE = 2,   /* HUP, INT, TERM */
    TUI_CAUGHT_SUSPEND = 4, /* TSTP */
};
/* Was it caught? Take: and forgets it. */
bool tui_crash_is(enum tui_caught what);
bool tui_crash_take(enum tui_caught what);
/* Readable when something was caught, until it is drained. */
int tui_crash_fd(void);
void tui_crash_drain(void);
/* Stops the process; returns when it goes on. */
void tui_crash_stop(void);

#endif
