/* SPDX-License-Identifier: Apache-2.0 */
/* rival.h: the best earlier run of the recipe of the one that is watched: charts show
 * it as a faint line, which is what there is to beat. */
#ifndef TUI_RIVAL_H
#define TUI_RIVAL_H

#include "tui/app.h"
#include "tui/series.h"

struct tui_rival {
    struct tui_source *source; /* NULL: there is none, or it was not looked for yet */
    char name[64];
    char text[160]; /* "calm-heron, best of 3 earlier runs: accuracy .9182" */
    bool is_sought;
};
/* Forgets it: another run is watched. */
void tui_rival_forget(struct tui_rival *r);
/* Looks for the one of the run of FACTS, once, and reads its history a little at a
 * time. Is there something new to draw? */
bool tui_rival_tick(struct tui_app *app, struct tui_rival *r, const json_t *facts);
/* Its series NAME as a line of a chart over AXIS, smoothed by SMOOTH, with POINT
 * [ETD_BINS] behind it. False: it has no such values. */
bool tui_rival_line(const struct tui_rival *r, const char *name, enum tui_axis axis,
                    int smooth, const struct tui_glyphs *g, struct tui_point *point,
                    struct tui_plot_line *out);
/* How that line is told in a legend, at Y, X of P. */
void tui_rival_sample(const struct tui_pane *p, int y, int x);

#endif
