/* SPDX-License-Identifier: Apache-2.0 */
/* drawn.h: charts as text. */
#ifndef ETUDE_T_TUI_DRAWN_H
#define ETUDE_T_TUI_DRAWN_H

#include "tui/glyphs.h"
#include "tui/plot.h"

/* PLOT in all of a grid of ROWS x COLS; the caller frees it. */
char *drawn_text(struct et_ctx *cx, const struct tui_plot *plot, enum eti_plot glyphs,
                 int rows, int cols);
/* A test, NAME, that this is WANT. */
void drawn_is(struct et_ctx *cx, const struct tui_plot *plot, enum eti_plot glyphs,
              int rows, int cols, const char *want, const char *name);
/* The one value V at X. */
struct tui_point drawn_point(double x, double v);

#endif
