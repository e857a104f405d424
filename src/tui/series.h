/* SPDX-License-Identifier: Apache-2.0 */
/* series.h: the series of a run as lines of a chart: over which axis they go, and how
 * smooth they are. */
#ifndef TUI_SERIES_H
#define TUI_SERIES_H

#include "dist/hub/model.h"
#include "tui/metric.h"
#include "tui/plot.h"

enum tui_axis {
    TUI_BY_STEP,
    TUI_BY_EPOCH,
    TUI_BY_TIME,
    TUI_BY_SAMPLES,
    TUI_BY_TOKENS,
    TUI_AXES
};

enum { TUI_SMOOTH_USUAL = 2, TUI_SMOOTH_MOST = 4 };

/* A run, and the axis that it is drawn over. */
struct tui_across {
    const struct etd_model *model;
    enum tui_axis axis;
    bool is_over; /* it has ended, as far as anybody knows */
};

/* By epochs where MODEL counts two or more, else by steps. */
enum tui_axis tui_axis_usual(const struct etd_model *model);
/* The next one that MODEL has: a run of images has no tokens. */
enum tui_axis tui_axis_next(enum tui_axis axis, const struct etd_model *model);
/* A batch's place on the axis; times and counts are those of the bin's first record.
 * NaN: no record fell into the bin. */
double tui_axis_place(const struct tui_across *a, int64_t bin);
/* Where the axis ends: at the run's end where that is known, else at its newest. */
double tui_axis_end(const struct tui_across *a);
/* How far the run has come on the axis. */
double tui_axis_done(const struct tui_across *a);
/* What PLOT's axis counts. */
void tui_axis_name(struct tui_plot *plot, enum tui_axis axis);

/* Noisy enough to be smoothed: a value for every batch, not for every evaluation. */
bool tui_series_is_dense(const struct etd_series *s);
/* The weight of the exponential mean that S is smoothed by at SMOOTH, 0 to
 * TUI_SMOOTH_MOST; 0: it is not. */
double tui_series_weight(const struct etd_series *s, int smooth);
/* "ema .9"; "": not smoothed. */
const char *tui_smooth_name(int smooth);
/* How a line of S, smoothed by WEIGHT, is drawn. */
enum tui_plot_kind tui_series_kind(const struct etd_series *s, double weight);
/* The bins of S as points, in the units of LOOK: OUT [ETD_BINS]. Returns how many. */
int tui_series_points(const struct tui_across *a, const struct etd_series *s,
                      const struct tui_metric_look *look, struct tui_point *out);
/* The bin of S that is nearest to X of the axis; NULL: it has no values. */
const struct etd_bin *tui_series_at(const struct tui_across *a,
                                    const struct etd_series *s, double x);

#endif
