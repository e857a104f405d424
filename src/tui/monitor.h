/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h: what the files of the screen Monitor share. monitor.c has the screen, and
 * each of the others some of its panels. */
#ifndef TUI_MONITOR_H
#define TUI_MONITOR_H

#include <limits.h>

#include "dist/hub/step.h"
#include "tui/app.h"
#include "tui/format.h"
#include "tui/job.h"
#include "tui/rival.h"
#include "tui/series.h"
#include "tui/wall.h"

enum { TUI_CHARTS = 6, TUI_CHART_SERIES = 2 };

struct tui_chart {
    char name[TUI_CHART_SERIES][ET_METRIC_NAME]; /* of its series; "": no such series */
    bool is_chosen; /* by the user: what the run has no more moves it */
    bool is_spare;  /* its own metric has no values; this one is shown instead */
    bool is_log;
    /* What is shown, as parts of the whole axis: 0 to 1 is all. */
    double from, to;
};

/* A rank, as it stands among the others. */
struct tui_rank {
    int number;
    const struct etd_part *part;
    double own_ms, over; /* over: of the median; NaN: not known */
    bool is_slow;        /* it holds the others back */
    char cause[48];      /* then: why */
};

enum tui_rank_order { TUI_BY_RANK, TUI_BY_OWN, TUI_BY_UTIL, TUI_BY_MEM, TUI_ORDERS };
enum tui_rank_columns {
    TUI_COLUMNS_GPU,
    TUI_COLUMNS_HOST,
    TUI_COLUMNS_IO,
    TUI_COLUMN_SETS
};

struct tui_monitor {
    struct tui_chart chart[TUI_CHARTS];
    enum tui_axis axis;
    /* the user chose it; else it is by epochs where the run counts them */
    bool has_axis;
    int smooth;   /* place among the weights */
    int focus;    /* enum tui_monitor_part */
    bool is_full; /* the focused panel alone */
    bool inspects;
    double cursor; /* part of the axis */
    int64_t mark;  /* which mark `m` went to, from the newest; -1: to no mark yet */
    enum tui_rank_order order;
    enum tui_rank_columns columns;
    struct tui_list ranks, events;
    struct tui_sieve sieve;  /* of metrics and events */
    struct tui_point *point; /* scratch: [TUI_PLOT_LINES][ETD_BINS] */
    struct tui_rival rival;  /* the best earlier run of the recipe */
    struct tui_wall wall;    /* all charts, instead of the panels */
    /* Of the ranks, made anew for each frame. */
    struct tui_rank *rank; /* [n_ranks] in the order that is shown */
    int n_ranks, rank_room;
    double median_ms; /* of their own times; NaN */
    int slowest;      /* in RANK: the worst that is slow; -1: no rank is */
    int n_slow;
    /* Of a run that has ended: monitor_end.c. */
    json_t *ending;       /* ending.h; NULL: it has not, or nothing can be done here */
    bool hides_ending;    /* the charts are looked at */
    struct tui_list ways; /* of its ways on */
    int from;             /* which checkpoint it goes on from: 0 is the newest */
    struct tui_job again; /* the run that is started from it */
    char again_of[PATH_MAX]; /* its name, or directory */
    /* Where parts were drawn last. */
    struct tui_monitor_layout layout;
    bool drew_empty; /* there was no run */
};

/* What a panel is drawn from. */
struct tui_view {
    struct tui_app *app;
    struct tui_monitor *m;
    const struct etd_model *model;
    const json_t *facts;
    double now;   /* of the day; with a dump the run's */
    bool is_over; /* it has ended, as far as anybody knows */
};

/* ---- monitor_status.c ---- */

void tui_monitor_status(const struct tui_view *v, const struct tui_pane *p);
/* The loss, the best evaluation, the speed, and when it will be done. */
void tui_monitor_hero(const struct tui_view *v, const struct tui_pane *p);
/* The run's state: the model's, or run.json's where its processes are gone. */
const char *tui_run_state(const struct tui_view *v);
bool tui_run_is_paused(const struct tui_view *v);
/* The newest checkpoint that was saved. */
struct tui_saved {
    const char *name; /* "ep6-ba3750"; borrowed from the model */
    int64_t ba;       /* what it holds: so many batches */
    double t;         /* when it was there */
};
/* False: nothing was saved yet. */
bool tui_saved(const struct etd_model *m, struct tui_saved *out);
/* How long it has taken, or took. */
double tui_run_seconds(const struct tui_view *v);
/* "ETA 12m56s (14:16)", "~" until it has settled; "paused 2m10s"; "" where it has
 * ended. Returns BUF. */
const char *tui_eta_text(const struct tui_view *v, bool has_clock, char buf[64]);
/* "ep6.5" after BA batches of which an epoch has PER, or "750ba". Returns BUF. */
const char *tui_place_text(int64_t ba, double per, char buf[TUI_NUMBER]);

/* Why a panel has nothing to show: WHY, unless it is that the history is not in. */
const char *tui_monitor_empty(const struct tui_view *v, const char *why);

/* ---- monitor_bars.c ---- */

/* How many lines of bars there are: total, and one that epoch and evaluation share; on
 * the largest screens one for each, and where MODEL has more than one evaluator, one of
 * those that are idle. */
int tui_monitor_n_bars(const struct etd_model *model, int rows, int cols);
void tui_monitor_bars(const struct tui_view *v, const struct tui_pane *p);
/* "6.1/16ep": how far M is, of how much; *BY_BATCHES: it is told in batches. Returns
 * BUF. */
const char *tui_length_text(const struct etd_model *m, char buf[64], bool *by_batches);
/* When the next evaluation is, "at 7ep, in 11s"; "" where that cannot be told. Returns
 * BUF. */
const char *tui_next_evaluation(const struct tui_view *v, char buf[64]);
/* Metric WHICH of the evaluator LABEL (NULL: of any), the main one first: Accuracy,
 * else the first there is. NULL: it has no more. */
const struct etd_series *tui_evaluated(const struct etd_model *m, const char *label,
                                       int which);
/* The evaluator whose metric is the run's: that of the first of them all. NULL: no
 * evaluator has said anything yet. */
const char *tui_main_evaluator(const struct etd_model *m);

/* ---- monitor_chart.c ---- */

/* Which series the charts show while nobody has chosen. */
void tui_charts_default(struct tui_monitor *m, const struct etd_model *model);
/* The series of the run's loss, whatever charts show; NULL: it has none. */
const struct etd_series *tui_loss_of(const struct etd_model *model);
/* How many charts have something to show, or will have: those after them need no
 * room. */
int tui_charts_shown(const struct tui_monitor *m);
void tui_monitor_chart(const struct tui_view *v, int chart, const struct tui_pane *p,
                       bool has_focus);
/* The next axis that the run has: one of images has no tokens. */
void tui_chart_turn_axis(struct tui_monitor *m, const struct etd_model *model);
/* Zooms by FACTOR around the cursor, or the newest value. */
void tui_chart_zoom(struct tui_monitor *m, const struct etd_model *model,
                    double factor);
/* Moves what is shown, or the cursor, by STEPS. */
void tui_chart_move(struct tui_monitor *m, int steps);
/* What is under the cursor, for the message line; "" without a cursor. */
const char *tui_chart_inspect(const struct tui_view *v, char *buf, size_t size);
/* The time of the day under the cursor; NaN. */
double tui_chart_time(const struct tui_view *v);
/* The focused chart, the first where another panel has the focus. */
struct tui_chart *tui_chart_focused(struct tui_monitor *m);
/* Writes the focused chart to the run's directory; says where. */
void tui_chart_export(const struct tui_view *v);

/* ---- monitor_panels.c ---- */

void tui_monitor_numbers(const struct tui_view *v, const struct tui_pane *p,
                         bool focus);
void tui_monitor_step(const struct tui_view *v, const struct tui_pane *p, bool focus);
void tui_monitor_events(const struct tui_view *v, const struct tui_pane *p, bool focus);
/* What the run has said of its algorithm NAME; NULL: nothing yet. Borrowed. */
const struct etd_part *tui_algorithm_said(const struct etd_model *m, const char *name);
void tui_monitor_algorithms(const struct tui_view *v, const struct tui_pane *p,
                            bool focus);
/* Is it shown: by the filter, else because it is no routine that others tell of? */
bool tui_event_passes(const struct tui_monitor *m, const struct etd_event *e);
/* Samples a second: what a callback measured, else what batches took; NaN. */
double tui_samples_per_second(const struct etd_model *m);
/* Its sparkline, W columns at Y, X. */
void tui_monitor_spark(const struct tui_view *v, const struct tui_pane *p, int y, int x,
                       int w);
/* Milliseconds of a batch over the newest ones: their mean, and what 99 of 100 keep. */
void tui_batch_ms(const struct etd_model *model, double *mean, double *p99);
/* Those of a step: the sum of its parts where ranks say them, else that mean; NaN. */
double tui_step_ms(const struct etd_model *model);

/* ---- monitor_ranks.c ---- */

/* Fills m->rank, sorts it, finds who is slow. ENOMEM. */
ET_NODISCARD et_status tui_ranks_gather(const struct tui_view *v);
void tui_monitor_ranks(const struct tui_view *v, const struct tui_pane *p, bool focus);
/* Columns of the greatest rank's number. */
int tui_rank_digits(const struct etd_model *m);
void tui_monitor_map(const struct tui_view *v, const struct tui_pane *p, bool focus);
const char *tui_rank_order_name(enum tui_rank_order order);
/* The set that is shown: a run without a GPU has no columns of GPUs. */
enum tui_rank_columns tui_rank_columns_shown(const struct tui_monitor *m,
                                             const struct etd_model *model);
/* Does any rank say how its GPU is? */
bool tui_run_has_gpu(const struct etd_model *m);

/* ---- monitor_end.c ---- */

/* Is the page of a run that has ended to be seen? */
bool tui_ending_is_shown(const struct tui_view *v);
void tui_ending_draw(const struct tui_view *v, const struct tui_pane *p);
/* The hint of a key of that page, by the ways that it has: see struct tui_screen. */
const char *tui_ending_hint(const struct tui_monitor *m, enum tui_action action);
bool tui_ending_act(const struct tui_view *v, enum tui_action action);
/* Watches what was started, once it has. */
void tui_ending_poll(struct tui_app *app, struct tui_monitor *m);
/* Another run is watched. */
void tui_ending_forget(struct tui_monitor *m);

/* ---- monitor_control.c ---- */

void tui_control_open(struct tui_app *app);
void tui_annotate_open(struct tui_app *app);
void tui_metrics_open(struct tui_app *app, struct tui_monitor *m, int series);

#endif
