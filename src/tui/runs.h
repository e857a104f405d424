/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h: the screen Runs, and Compare and Pareto, which are views of it. */
#ifndef TUI_RUNS_H
#define TUI_RUNS_H

#include <jansson.h>
#include <limits.h>

#include "core/library/comparison.h"
#include "core/library/index.h"
#include "core/library/list.h"
#include "tui/app.h"
#include "tui/job.h"
#include "tui/plot.h"
#include "tui/results.h"
#include "tui/samples.h"
#include "tui/wall.h"

/* What a program begins the screen with; all may be left out. */
struct tui_runs_setup {
    const char *filter, *sort, *target;
    const json_t *const *compare; /* facts of runs to compare at once, N of them: those
                                     that the list does not know become its guests */
    int n;
    bool pareto;
    enum eti_figure by; /* of Compare */
};
ET_NODISCARD et_status tui_runs_setup(struct tui_app *app,
                                      const struct tui_runs_setup *setup);

enum {
    TUI_R_CURVES = 6, /* in one chart */
    TUI_R_CACHE = 16, /* that are kept: a screen has two charts at most */
    TUI_R_POINTS = 257,
    RUNS_SPARK = 10, /* values of a sparkline */
};

/* A metric of a run over its time. */
struct runs_curve {
    char directory[PATH_MAX];
    char metric[ET_METRIC_NAME];
    int64_t ba;                           /* the run's, when it was read */
    struct tui_point point[TUI_R_POINTS]; /* x in minutes */
    int n;
};

struct runs {
    struct tui_app *app;
    struct eti_index *index;
    bool owns_index;
    bool is_looking;     /* for what has changed: there is more to look at */
    bool is_partial;     /* ALL are the newest alone: there are OF */
    int64_t of, page;    /* PAGE: how many were asked for */
    int64_t read_before; /* by the index, when it began */
    json_t *all;         /* facts of all runs */
    json_t *guests;      /* of those that the index has not: of other machines */
    json_t *list;        /* of those that are shown, in order */
    json_t *marks;       /* {directory: true} */
    json_t *judged;      /* {directory: {ba, to}}: seconds to the target */
    json_t *sparks;      /* {directory: {ba, v}}: of the loss; null: not finite */
    json_t *bests; /* {recipe and metric: {n, best}}: of those that have a value */
    double read;   /* monotonic: when all were last looked at; 0: not yet */
    char problem[200];

    struct tui_list rows;
    int list_w; /* columns that they take, for the mouse */
    struct tui_field filter;
    char last_filter[TUI_FIELD];       /* the last that was right */
    char fault[160];                   /* of the filter that is typed; "" */
    bool is_typing, is_full;           /* is_full: the list alone */
    char sort[64];                     /* "" = the newest first */
    char target[96];                   /* "": no target is set */
    char from[PATH_MAX], to[PATH_MAX]; /* of the run that was thrown away last */

    bool compares, shows_pareto, hides_names;
    struct eti_comparison comparison; /* its facts are those of RIVALS */
    json_t *rivals, *differences;
    struct tui_list keys;        /* rows of the differences */
    int first;                   /* of the rivals that have a column and a curve */
    char metric[ET_METRIC_NAME]; /* of the comparison, chosen by hand; "" */
    char shown[ET_METRIC_NAME];  /* of the list's chart, likewise */

    struct tui_wall wall;       /* all charts of runs, instead of the list */
    struct tui_results results; /* of a run, likewise */
    struct tui_samples samples; /* of its data, likewise */
    struct runs_curve *curve;   /* [TUI_R_CACHE], those used last */
    int next_curve;
    struct tui_job job;
    char job_file[PATH_MAX]; /* where its answer goes; "": it writes itself */
    char job_says[160];
};

/* ---- runs.c ---- */
/* The run under the cursor, and one by its place; NULL: no run is there. Borrowed. */
json_t *runs_selected(const struct runs *r);
const char *runs_fact(const json_t *facts, const char *key);
bool runs_is_marked(const struct runs *r, const json_t *facts);
int runs_n_marked(const struct runs *r);
/* Its place among those that are marked, and so its colour; -1: it is not. */
int runs_series_of(const struct runs *r, const json_t *facts);
/* The metric of the chart beside the list. */
const char *runs_metric(const struct runs *r, const json_t *facts);
/* Seconds to the target, or to the best value; NaN: not known, or never. */
double runs_time_to(const struct runs *r, const json_t *facts);

/* ---- runs_data.c ---- */
/* Looks at the folders again, and knows all runs. */
void runs_read(struct runs *r);
/* Begins to look at them, and knows the newest; AGAIN: reads all. */
void runs_begin(struct runs *r, bool again);
/* Goes on with that. Is there something new? */
bool runs_go_on(struct runs *r);
static inline bool
runs_is_busy(const struct runs *r)
{
    return r->is_looking || r->is_partial;
}
/* Puts the run of FACTS among all, unless it is there. */
void runs_welcome(struct runs *r, const json_t *facts);
/* Filters and sorts what is known. */
void runs_choose(struct runs *r);
/* The curve of FACTS, read if need be; NULL: it has no curve. */
const struct runs_curve *runs_curve_of(struct runs *r, const json_t *facts,
                                       const char *metric);
/* Judges one run that is shown and was not judged yet. Was there one? */
bool runs_judge_one(struct runs *r);
/* Up to RUNS_SPARK values of the loss over all of the run; 0: not read yet. */
int runs_spark(const struct runs *r, const json_t *facts, double *value);
/* Reads those of one run that is shown and was not read yet. Was there one? */
bool runs_spark_one(struct runs *r);
/* Is it the best of two or more of its recipe? */
bool runs_is_best(const struct runs *r, const json_t *facts);
void runs_trash(struct runs *r);
void runs_restore(struct runs *r);
void runs_tag(struct runs *r);
void runs_export(struct runs *r);
/* Begins the comparison of the runs that are marked, or says why not. */
bool runs_compare(struct runs *r);
void runs_contest(struct runs *r);

/* ---- runs_list.c ---- */
void runs_draw_list(struct runs *r, const struct tui_pane *p);
/* The rows alone. */
void runs_draw_rows(struct runs *r, const struct tui_pane *p);
/* Return the column behind them. */
int runs_put_methods(const struct tui_pane *p, int y, int x, const json_t *facts);
/* "#best #to-keep" */
void runs_put_tags(const struct tui_pane *p, int y, int x, const json_t *facts);
/* The price of an hour; NULL: no price is set. */
const struct eti_config_price *runs_price(const struct runs *r);

/* ---- runs_wall.c ---- */
/* Shows all charts of the runs that are marked; without a mark, of the one that is
 * selected. */
void runs_open_wall(struct runs *r);
/* Shows samples of the data of the run under the cursor. */
void runs_open_samples(struct runs *r);

/* ---- runs_draw.c, runs_compare.c ---- */
void runs_draw(struct tui_app *app, void *self, const struct tui_pane *p);
void runs_draw_compare(struct runs *r, const struct tui_pane *p);
void runs_draw_curves(struct runs *r, const struct tui_pane *p,
                      const json_t *const *facts, int n, const char *metric);
void runs_draw_differences(struct runs *r, const struct tui_pane *p);
enum tui_role runs_compare_message(const struct runs *r, char *buf, size_t size);

#endif
