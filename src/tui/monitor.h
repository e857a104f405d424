/* monitor.h: what the files of the screen Monitor share. monitor.c has the screen, and
 * each of the others some of its panels. */
#ifndef TUI_MONITOR_H
#define TUI_MONITOR_H

#include "tui/app.h"
#include "tui/plot.h"

enum { TUI_CHARTS = 6, TUI_CHART_SERIES = 2 };

enum tui_axis {
    TUI_BY_STEP,
    TUI_BY_EPOCH,
    TUI_BY_TIME,
    TUI_BY_SAMPLES,
    TUI_BY_TOKENS,
    TUI_AXES
};

struct tui_chart {
    char name[TUI_CHART_SERIES][ET_METRIC_NAME]; /* of its series; "": none */
    bool is_chosen; /* by the user: what the run has no more moves it */
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
    int smooth;   /* place among the weights */
    int focus;    /* enum tui_monitor_part */
    bool is_full; /* the focused panel alone */
    bool inspects;
    double cursor; /* part of the axis */
    int64_t mark;  /* which mark `m` went to, from the newest; -1: none */
    enum tui_rank_order order;
    enum tui_rank_columns columns;
    struct tui_list ranks, events;
    struct tui_sieve sieve;  /* of metrics and events */
    struct tui_point *point; /* scratch: [TUI_PLOT_LINES][ETD_BINS] */
    /* Of the ranks, made anew for each frame. */
    struct tui_rank *rank; /* [n_ranks] in the order that is shown */
    int n_ranks, rank_room;
    double median_ms; /* of their own times; NaN */
    int slowest;      /* in RANK: the worst that is slow; -1: none */
    int n_slow;
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

/* ---- monitor_bars.c ---- */

void tui_monitor_status(const struct tui_view *v, const struct tui_pane *p);
/* How many lines of bars there are: total, epoch, evaluation; and on the largest
 * screens, where MODEL has more than one evaluator, those that are idle. */
int tui_monitor_n_bars(const struct etd_model *model, int rows, int cols);
void tui_monitor_bars(const struct tui_view *v, const struct tui_pane *p);
/* Why a panel has nothing to show: WHY, unless it is that the history is not in. */
const char *tui_monitor_empty(const struct tui_view *v, const char *why);
/* The run's state: the model's, or run.json's where its processes are gone. */
const char *tui_run_state(const struct tui_view *v);

/* ---- monitor_chart.c ---- */

/* Which series the charts show while nobody has chosen. */
void tui_charts_default(struct tui_monitor *m, const struct etd_model *model);
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
/* "loss/train", "accuracy", "grad_norm": GLOSSARY.md. Returns BUF of ET_METRIC_NAME. */
const char *tui_metric_label(const char *name, char buf[ET_METRIC_NAME]);
/* Writes the focused chart to the run's directory; says where. */
void tui_chart_export(const struct tui_view *v);

/* ---- monitor_panels.c ---- */

void tui_monitor_numbers(const struct tui_view *v, const struct tui_pane *p,
                         bool focus);
void tui_monitor_step(const struct tui_view *v, const struct tui_pane *p, bool focus);
void tui_monitor_events(const struct tui_view *v, const struct tui_pane *p, bool focus);
void tui_monitor_algorithms(const struct tui_view *v, const struct tui_pane *p,
                            bool focus);
/* Is it shown: by the filter, else because it is no routine that others tell of? */
bool tui_event_passes(const struct tui_monitor *m, const struct etd_event *e);
/* Milliseconds of a batch over the newest ones: their mean, and what 99 of 100 keep. */
void tui_batch_ms(const struct etd_model *model, double *mean, double *p99);

/* ---- monitor_ranks.c ---- */

/* Fills m->rank, sorts it, finds who is slow. ENOMEM. */
ET_NODISCARD et_status tui_ranks_gather(const struct tui_view *v);
void tui_monitor_ranks(const struct tui_view *v, const struct tui_pane *p, bool focus);
void tui_monitor_map(const struct tui_view *v, const struct tui_pane *p, bool focus);
const char *tui_rank_order_name(enum tui_rank_order order);
/* The set that is shown: a run without a GPU has no columns of GPUs. */
enum tui_rank_columns tui_rank_columns_shown(const struct tui_monitor *m,
                                             const struct etd_model *model);
/* Does any rank say how its GPU is? */
bool tui_run_has_gpu(const struct etd_model *m);

/* The parts of a rank's batch time. */
struct tui_step_part {
    const char *number; /* of a rank's health */
    char letter;
    const char *brief, *name; /* beside the letter; on a line */
};
extern const struct tui_step_part tui_step_parts[]; /* ends with number NULL */
/* The median over the ranks of a part, in ms; NaN: nobody says it. */
/* A part that no record has: what own time is beside those that are measured. */
#define TUI_COMPUTE "compute_ms"
double tui_part_median(const struct etd_model *model, const char *number);

/* ---- monitor_control.c ---- */

void tui_control_open(struct tui_app *app);
void tui_annotate_open(struct tui_app *app);
void tui_metrics_open(struct tui_app *app, struct tui_monitor *m, int series);

#endif
