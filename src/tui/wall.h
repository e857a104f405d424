/* SPDX-License-Identifier: Apache-2.0 */
/* wall.h: charts of every metric there is, in pages that fill the screen, of one run or
 * of several on the same axes: a view of Monitor and of Runs.
 *
 * Of one run a chart has the series that belong together: a metric's of all sets that
 * it was measured on, the training loss and that of the evaluation, the parts of the
 * step. Of several runs it
 * has one line for each, the one that is pinned on top of the others. */
#ifndef TUI_WALL_H
#define TUI_WALL_H

#include "core/library/filter.h"
#include "tui/app.h"
#include "tui/rival.h"
#include "tui/series.h"

enum { TUI_WALL_RUNS = 8, TUI_WALL_SERIES = 8, TUI_WALL_LINES = 10 };

struct tui_wall_run {
    struct tui_source *source;
    bool is_owned;  /* else it is the one that is watched */
    bool is_hidden; /* its lines are */
    int series;     /* which colour and mark it has */
};

struct tui_wall_chart {
    char name[TUI_WALL_SERIES][ET_METRIC_NAME]; /* "" behind the last */
};

struct tui_wall {
    struct tui_app *app;
    bool is_open;
    struct tui_wall_run run[TUI_WALL_RUNS];
    int n_runs;
    int pinned;                    /* the run on top; -1: the first */
    const struct tui_rival *rival; /* of the one run that is watched; NULL */
    bool hides_rival;

    struct tui_wall_chart *chart; /* [n]: those that pass the filter */
    int n, of, room;              /* OF: there are */
    struct tui_list at;           /* of the charts */
    struct tui_list runs;
    bool in_runs;   /* the keys go to the list of runs */
    bool is_full;   /* the selected chart alone */
    int more;       /* columns of charts more than usual, or with - fewer */
    int cols, rows; /* of charts, as they were drawn last */

    struct tui_field filter;
    bool is_typing;
    struct eti_filter *sieve; /* the filter, read; NULL: all pass */
    char fault[160];          /* of the one that is typed; "" */

    enum tui_axis axis;
    bool has_axis; /* the user chose it */
    int smooth;
    bool is_log;
    double from, to; /* what is shown, as parts of the whole axis */
    bool inspects;
    double cursor;                /* part of the axis */
    struct tui_point *point;      /* scratch: [TUI_WALL_LINES][ETD_BINS] */
    struct tui_rect charts, list; /* where they were drawn last, for the mouse */
};

/* ---- wall.c ---- */

/* Opens W, which is zeroed or was closed, without a run. ENOMEM. */
ET_NODISCARD et_status tui_wall_open(struct tui_wall *w, struct tui_app *app);
void tui_wall_close(struct tui_wall *w);
/* Adds a run; OWNS: SOURCE is taken, also on failure. False: there is no room. */
bool tui_wall_add(struct tui_wall *w, struct tui_source *source, bool owns);
/* What a screen does while its wall is open. */
bool tui_wall_key(struct tui_wall *w, int key);
bool tui_wall_act(struct tui_wall *w, enum tui_action action);
void tui_wall_mouse(struct tui_wall *w, const struct tui_mouse *m);
bool tui_wall_tick(struct tui_wall *w);
const char *tui_wall_hint(const struct tui_wall *w, enum tui_action action);

/* ---- wall_charts.c: which charts there are, and their lines ---- */

/* Makes W->chart anew, from what the runs have and the filter lets pass. */
void tui_wall_gather(struct tui_wall *w);
/* Does W show the lines of more than one run? */
bool tui_wall_is_of_many(const struct tui_wall *w);
struct tui_across tui_wall_across(const struct tui_wall *w, int run);
/* The end of the axis of all runs that are shown. */
double tui_wall_end(const struct tui_wall *w);
/* Is C the chart of the step and its parts? */
bool tui_wall_is_step(const struct tui_wall_chart *c);
/* The series of the run that chart C shows of it among others; NULL: it has none. */
const struct etd_series *tui_wall_series(const struct tui_wall *w,
                                         const struct tui_wall_chart *c, int run);
enum tui_role tui_wall_role(const struct tui_wall *w, int run);
/* Lines of chart C in LINE [TUI_WALL_LINES]. Returns how many. */
int tui_wall_lines(const struct tui_wall *w, const struct tui_wall_chart *c,
                   struct tui_plot_line *line);
/* The value of S of that run: under the cursor, or the newest; NaN. */
double tui_wall_value(const struct tui_wall *w, const struct etd_series *s, int run);
/* The colour of series I of chart C of one run. */
enum tui_role tui_wall_series_role(const struct tui_wall_chart *c, int i);

/* ---- wall_draw.c ---- */

void tui_wall_draw(struct tui_wall *w, const struct tui_pane *p);
enum tui_role tui_wall_message(const struct tui_wall *w, char *buf, size_t size);

#endif
