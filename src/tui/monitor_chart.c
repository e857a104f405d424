/* monitor_chart.c: the charts: which series, over which axis, how much of it. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/monitor.h"

static const double weights[] = {0, 0.6, 0.9, 0.97, 0.99}; /* of smoothing */
static const char *const weight_names[] = {"", "ema .6", "ema .9", "ema .97",
                                           "ema .99"};
enum { WEIGHTS = sizeof weights / sizeof *weights };
static const char TOKENS[] = "time/token"; /* the series that counts them */
static const char *const axis_names[TUI_AXES] = {"step", "epoch", "time", "samples",
                                                 "tokens"};

/* ---- names ---- */

const char *
tui_metric_label(const char *name, char buf[ET_METRIC_NAME])
{
    static const struct {
        const char *begin, *end, *label; /* what the name begins and ends with */
    } labels[] = {
        {"loss/train/total", "", "loss/train"},
        {"metrics/train/", "/Accuracy", "accuracy (train)"},
        {"metrics/", "/Accuracy", "accuracy"},
        {"metrics/train/", "/CrossEntropy", "ce (train)"},
        {"metrics/", "/CrossEntropy", "ce"},
        {"metrics/", "/LanguageCrossEntropy", "ce"},
        {"metrics/", "/LanguagePerplexity", "ppl"},
        {"lr-", "", "lr"},
        {"l2_norm/grad/global", "", "grad_norm"},
        {"throughput/samples_per_sec", "", "samples/s"},
        {"throughput/tokens_per_sec", "", "tokens/s"},
        {"throughput/batches_per_sec", "", "batches/s"},
        {"throughput/device/mfu", "", "MFU"},
        {"memory/peak_allocated_mem", "", "memory peak GB"},
    };
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        size_t end = strlen(labels[i].end);
        if (strncmp(name, labels[i].begin, strlen(labels[i].begin)) == 0 && n >= end &&
            strcmp(name + n - end, labels[i].end) == 0) {
            snprintf(buf, ET_METRIC_NAME, "%s", labels[i].label);
            return buf;
        }
    }
    if (strncmp(name, "metrics/", 8) == 0)
        name += 8;
    snprintf(buf, ET_METRIC_NAME, "%s", name);
    return buf;
}

/* ---- which ---- */

/* What each chart shows, the first of the names that the run has; "*" ends a prefix. */
static const struct {
    int chart, place;
    const char *names[4];
} defaults[] = {
    {0, 0, {"loss/train/total", "loss/train/*", "loss/*"}},
    {1, 0, {"metrics/eval/Accuracy", "metrics/eval/*", "metrics/*"}},
    {2, 0, {"lr-*"}},
    {2, 1, {"l2_norm/grad/global"}},
    {3, 0, {"throughput/samples_per_sec", "throughput/batches_per_sec"}},
    {4, 0, {"memory/peak_allocated_mem", "memory/*"}},
};

static const struct etd_series *
find_like(const struct etd_model *m, const char *pattern)
{
    char prefix[ET_METRIC_NAME];
    size_t n = strlen(pattern);
    if (n == 0 || pattern[n - 1] != '*')
        return etd_model_series(m, pattern);
    snprintf(prefix, sizeof prefix, "%.*s", (int)n - 1, pattern);
    return etd_model_series_like(m, prefix);
}

void
tui_charts_default(struct tui_monitor *m, const struct etd_model *model)
{
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        struct tui_chart *c = &m->chart[defaults[i].chart];
        char *name = c->name[defaults[i].place];
        if (c->is_chosen)
            continue;
        for (int k = 0; k < 4 && defaults[i].names[k]; k++) {
            const struct etd_series *s = find_like(model, defaults[i].names[k]);
            if (!s)
                continue;
            snprintf(name, ET_METRIC_NAME, "%s", s->name);
            break;
        }
    }
}

struct tui_chart *
tui_chart_focused(struct tui_monitor *m)
{
    int i = m->focus - TUI_M_CHART;
    return &m->chart[i >= 0 && i < TUI_CHARTS ? i : 0];
}

/* ---- the axis ---- */

/* Tokens of all batches up to the BIN; 0 before the first that says. */
static double
tokens_at(const struct etd_model *m, int64_t bin)
{
    const struct etd_series *s = etd_model_series(m, TOKENS);
    int low = 0, high = s ? s->n_bins : 0; /* the first entry behind it */
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->bin[middle].bin <= bin)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? s->bin[low - 1].min : 0;
}

/* A batch's place on the axis; times and counts are those of the bin's first record. */
static double
place(const struct tui_view *v, int64_t bin)
{
    const struct etd_model *m = v->model;
    double ba = (double)(bin * m->width) + (double)(m->width - 1) / 2;
    double per = etd_model_length(m, "run/epoch_batches");
    const struct etd_axis *a = &m->axis[bin < ETD_BINS ? bin : ETD_BINS - 1];
    switch (v->m->axis) {
    case TUI_BY_EPOCH:
        return per > 0 ? ba / per : (double)a->ep;
    case TUI_BY_TIME:
        return isnan(a->t) ? NAN : a->t - m->from;
    case TUI_BY_SAMPLES:
        return (double)a->sp;
    case TUI_BY_TOKENS:
        return tokens_at(m, bin);
    default:
        return ba;
    }
}

/* Where the axis ends: at the run's end where that is known, else at its newest. */
static double
axis_end(const struct tui_view *v)
{
    const struct etd_model *m = v->model;
    bool settled;
    double ba = (double)m->ba, batches = etd_model_length(m, "run/batches");
    double per = etd_model_length(m, "run/epoch_batches");
    double left = etd_model_left(m, &settled);
    double all = batches > ba ? batches : ba;
    switch (v->m->axis) {
    case TUI_BY_EPOCH:
        return per > 0 ? all / per : (double)m->ep + 1;
    case TUI_BY_TIME:
        return m->t - m->from + (v->is_over || !settled ? 0 : left);
    case TUI_BY_SAMPLES:
        return ba > 0 ? (double)m->sp * all / ba : 1;
    case TUI_BY_TOKENS: {
        double length = etd_model_length(m, "run/tokens");
        double done = tokens_at(m, INT64_MAX);
        return length > done ? length : ba > 0 ? done * all / ba : 1;
    }
    default:
        return all;
    }
}

static const char *
axis_text(const struct tui_view *v, double x, char buf[TUI_NUMBER])
{
    char number[TUI_NUMBER];
    switch (v->m->axis) {
    case TUI_BY_EPOCH:
        snprintf(buf, TUI_NUMBER, "%.4gep", x);
        break;
    case TUI_BY_TIME:
        tui_duration(x, buf);
        break;
    case TUI_BY_SAMPLES:
        snprintf(buf, TUI_NUMBER, "%ssp", tui_scaled(x, number));
        break;
    case TUI_BY_TOKENS:
        snprintf(buf, TUI_NUMBER, "%stok", tui_scaled(x, number));
        break;
    default:
        snprintf(buf, TUI_NUMBER, "%.16sba", tui_count((int64_t)llround(x), number));
    }
    return buf;
}

void
tui_chart_turn_axis(struct tui_monitor *m, const struct etd_model *model)
{
    m->axis = (m->axis + 1) % TUI_AXES;
    if (m->axis == TUI_BY_TOKENS && !etd_model_series(model, TOKENS))
        m->axis = TUI_BY_STEP;
}

/* ---- points ---- */

/* The bins of S as points. Returns how many. */
static int
gather(const struct tui_view *v, const struct etd_series *s, struct tui_point *out)
{
    int n = 0;
    for (int i = 0; i < s->n_bins && n < ETD_BINS; i++) {
        const struct etd_bin *b = &s->bin[i];
        double x = place(v, b->bin);
        if (b->n == 0 || isnan(x) || (n > 0 && x < out[n - 1].x))
            continue;
        out[n++] = (struct tui_point){
            .x = x,
            .min = b->min,
            .max = b->max,
            .last = isfinite(b->last) ? b->last : b->max,
        };
    }
    return n;
}

/* Noisy enough to be smoothed: a value for every batch, not for every evaluation. */
static bool
is_dense(const struct etd_series *s)
{
    return s->n_bins > 64 && strncmp(s->name, "lr-", 3) != 0 &&
           strncmp(s->name, "memory/", 7) != 0;
}

static int
add_lines(const struct tui_view *v, const struct tui_chart *c,
          struct tui_plot_line *line)
{
    static const enum tui_role roles[] = {TUI_S1, TUI_S2};
    const struct tui_glyphs *g = v->app->config.glyphs;
    int n = 0;
    for (int i = TUI_CHART_SERIES - 1; i >= 0; i--) { /* the first lies on top */
        const struct etd_series *s = etd_model_series(v->model, c->name[i]);
        if (!s)
            continue;
        struct tui_point *points = v->m->point + (ptrdiff_t)n * ETD_BINS;
        int count = gather(v, s, points);
        double weight = is_dense(s) ? weights[v->m->smooth] : 0;
        if (weight > 0) {
            if (i == 0) { /* what two of them scatter would hide both */
                line[n++] = (struct tui_plot_line){points, count, TUI_RAW, g->raw,
                                                   TUI_PLOT_SCATTER};
                memcpy(points + ETD_BINS, points, (size_t)count * sizeof *points);
                points += ETD_BINS;
            }
            tui_plot_smooth(points, count, weight);
        }
        line[n++] = (struct tui_plot_line){points, count, roles[i], g->series[i],
                                           weight == 0 && is_dense(s) ? TUI_PLOT_SPAN
                                                                      : TUI_PLOT_LAST};
    }
    return n;
}

/* ---- drawing ---- */

static void
title_of(const struct tui_view *v, const struct tui_chart *c, int w, char *buf,
         size_t size)
{
    char label[ET_METRIC_NAME], value[TUI_NUMBER], mark[8];
    const struct tui_glyphs *g = v->app->config.glyphs;
    const struct etd_series *s = etd_model_series(v->model, c->name[0]);
    /* As wide as they mostly are, so that what is behind them keeps its place. */
    size_t n =
        (size_t)snprintf(buf, size, "%s %-6s", tui_metric_label(c->name[0], label),
                         s ? tui_value(s->last, value) : "-");
    const struct etd_series *other = etd_model_series(v->model, c->name[1]);
    if (other && n < size) {
        mark[tui_utf8(g->series[1], mark)] = '\0';
        n += (size_t)snprintf(
            buf + n, size - n, "   %s%s%s %-6s", g->plot == ETI_PLOT_ASCII ? mark : "",
            g->plot == ETI_PLOT_ASCII ? " " : "", tui_metric_label(c->name[1], label),
            tui_value(other->last, value));
    }
    bool has_raw = s && is_dense(s) && v->m->smooth > 0; /* see add_lines */
    const char *smooth =
        has_raw || (other && is_dense(other)) ? weight_names[v->m->smooth] : "";
    if (w < 60) { /* where it would be cut off, the legend says less */
        if ((int)n + 20 < w)
            n += (size_t)snprintf(buf + n, size - n, "  x:%s  %s",
                                  axis_names[v->m->axis], c->is_log ? "log" : "lin");
        if (*smooth && (int)n + 12 < w)
            snprintf(buf + n, size - n, "  %s", smooth);
    } else if (n < size)
        snprintf(buf + n, size - n, "%s%s%s%s%s",
                 has_raw   ? "   . raw  * "
                 : *smooth ? "   "
                           : "",
                 smooth, v->m->axis ? "   x:" : "",
                 v->m->axis ? axis_names[v->m->axis] : "", c->is_log ? "   log" : "");
}

/* Resumes and annotations: 'r' and 'a' on the axis. */
static int
gather_marks(const struct tui_view *v, double *at, char *sign)
{
    int n = 0;
    for (int i = 0; i < v->model->n_marks && n < TUI_PLOT_MARKS; i++) {
        const struct etd_mark *k = etd_model_mark(v->model, i);
        if (k->kind == ET_RECORD_CHECKPOINT)
            continue;
        at[n] = place(v, k->ba / v->model->width);
        if (isnan(at[n]))
            continue;
        sign[n++] = k->kind == ET_RECORD_RESUME ? 'r' : 'a';
    }
    return n;
}

void
tui_monitor_chart(const struct tui_view *v, int chart, const struct tui_pane *p,
                  bool has_focus)
{
    const struct tui_chart *c = &v->m->chart[chart];
    struct tui_plot_line line[TUI_PLOT_LINES];
    char title[2 * ET_METRIC_NAME], left[TUI_NUMBER], right[TUI_NUMBER];
    double mark[TUI_PLOT_MARKS];
    char sign[TUI_PLOT_MARKS];
    double end = axis_end(v), from = c->from * end, to = c->to * end;
    if (p->h < 1)
        return;
    if (!*c->name[0]) {
        tui_title(p, 0, chart == 0 ? "no values yet" : "o picks a metric", has_focus);
    } else {
        title_of(v, c, p->w, title, sizeof title);
        tui_title(p, 0, title, has_focus);
    }
    snprintf(left, sizeof left, "0");
    const struct tui_plot plot = {
        .from = from,
        .to = to,
        .is_log = c->is_log,
        .line = line,
        .n_lines = add_lines(v, c, line),
        .left = from > 0 ? axis_text(v, from, left) : left,
        .right = axis_text(v, to, right),
        .mark = mark,
        .mark_sign = sign,
        .n_marks = gather_marks(v, mark, sign),
        .cursor = v->m->inspects ? v->m->cursor * end : NAN,
    };
    struct tui_pane in = tui_pane_part(p, 1, 0, p->h - 1, p->w);
    tui_plot_draw(&in, &plot, NULL);
    if (plot.n_lines == 0 && in.h > 2)
        tui_put(&in, in.h / 2 - 1, TUI_PLOT_LABEL + 2, TUI_DIM,
                tui_monitor_empty(v, v->model->ba > 0
                                         ? "the run has no such values"
                                         : "the first batch is not done yet"));
}

/* ---- looking closer ---- */

static void
set_range(struct tui_chart *c, double from, double to)
{
    double width = to - from;
    if (width >= 1) {
        c->from = 0;
        c->to = 1;
        return;
    }
    c->from = from < 0 ? 0 : from > 1 - width ? 1 - width : from;
    c->to = c->from + width;
}

void
tui_chart_zoom(struct tui_monitor *m, const struct etd_model *model, double factor)
{
    struct tui_chart *c = tui_chart_focused(m);
    double done = etd_model_done(model);
    double at = m->inspects ? m->cursor : isnan(done) ? 1 : done;
    double width = (c->to - c->from) * factor;
    if (width < 1e-4)
        return;
    /* What is looked at keeps its place; without a cursor the newest comes to the end.
     */
    double part = m->inspects ? (at - c->from) / (c->to - c->from) : 0.95;
    set_range(c, at - part * width, at + (1 - part) * width);
}

void
tui_chart_move(struct tui_monitor *m, int steps)
{
    struct tui_chart *c = tui_chart_focused(m);
    double width = c->to - c->from;
    if (m->inspects) {
        m->cursor = fmin(1, fmax(0, m->cursor + steps * width / 100));
        if (m->cursor < c->from || m->cursor > c->to)
            set_range(c, c->from + steps * width / 4, c->to + steps * width / 4);
    } else {
        set_range(c, c->from + steps * width / 10, c->to + steps * width / 10);
    }
}

/* The bin of S nearest to the cursor; NULL: it has none. */
static const struct etd_bin *
bin_at(const struct tui_view *v, const struct etd_series *s)
{
    const struct etd_bin *best = NULL;
    double at = v->m->cursor * axis_end(v), least = INFINITY;
    for (int i = 0; i < s->n_bins; i++) {
        double far = fabs(place(v, s->bin[i].bin) - at);
        if (s->bin[i].n > 0 && far < least) {
            least = far;
            best = &s->bin[i];
        }
    }
    return best;
}

double
tui_chart_time(const struct tui_view *v)
{
    const struct etd_series *s =
        etd_model_series(v->model, tui_chart_focused(v->m)->name[0]);
    const struct etd_bin *b = v->m->inspects && s ? bin_at(v, s) : NULL;
    return b ? v->model->axis[b->bin].t : NAN;
}

const char *
tui_chart_inspect(const struct tui_view *v, char *buf, size_t size)
{
    const struct tui_chart *c = tui_chart_focused(v->m);
    char label[ET_METRIC_NAME], a[TUI_NUMBER], b[TUI_NUMBER], clock[TUI_NUMBER];
    size_t n = 0;
    buf[0] = '\0';
    for (int i = 0; i < TUI_CHART_SERIES && v->m->inspects; i++) {
        const struct etd_series *s = etd_model_series(v->model, c->name[i]);
        const struct etd_bin *bin = s ? bin_at(v, s) : NULL;
        if (!bin || n >= size)
            continue;
        const int64_t ba = bin->bin * v->model->width;
        if (i == 0)
            n += (size_t)snprintf(buf + n, size - n, "after %sba  %s", tui_count(ba, a),
                                  tui_clock(v->model->axis[bin->bin].t, 2, clock));
        if (n < size && bin->min < bin->max)
            n += (size_t)snprintf(buf + n, size - n, "  %s %s to %s",
                                  tui_metric_label(s->name, label),
                                  tui_value(bin->min, a), tui_value(bin->max, b));
        else if (n < size)
            n += (size_t)snprintf(buf + n, size - n, "  %s %s",
                                  tui_metric_label(s->name, label),
                                  tui_value(bin->last, a));
    }
    return buf;
}
