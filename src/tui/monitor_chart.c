/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_chart.c: the charts: which series, over which axis, how much of it. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/monitor.h"

/* ---- which ---- */

/* What each chart shows, the first of the names that the run has; "*" ends a prefix. */
static const struct {
    int chart, place;
    const char *names[4];
} defaults[] = {
    {0, 0, {"loss/train/total", "loss/train/*", "loss/*"}},
    {1, 0, {"metrics/eval/Accuracy", "metrics/eval/*", "metrics/*"}},
    {1, 1, {"metrics/train/Accuracy"}},
    {2, 0, {"lr-*"}},
    {2, 1, {"l2_norm/grad/global"}},
    {3, 0, {"throughput/samples_per_sec", "throughput/batches_per_sec"}},
    {4, 0, {"memory/peak_allocated_mem", "memory/*"}},
};

enum { EVALUATED = 1 }; /* the chart that waits for the first evaluation */

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

static bool
is_shown(const struct tui_monitor *m, const char *name)
{
    for (int i = 0; i < TUI_CHARTS; i++)
        if (strcmp(m->chart[i].name[0], name) == 0 ||
            strcmp(m->chart[i].name[1], name) == 0)
            return true;
    return false;
}

/* A chart whose own metric has no values, and will not have any soon, shows the first
 * metric that no other chart shows. */
static void
find_spare(struct tui_monitor *m, const struct etd_model *model, int i)
{
    static const char *const kinds[] = {"throughput/", "memory/", "l2_norm/",
                                        "metrics/", "loss/"};
    struct tui_chart *c = &m->chart[i];
    if (i == 0 || i == EVALUATED || c->is_chosen || (*c->name[0] && !c->is_spare))
        return;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !*c->name[0]; k++)
        for (int n = 0; n < model->n_series && !*c->name[0]; n++) {
            const struct etd_series *s = &model->series[n];
            if (strncmp(s->name, kinds[k], strlen(kinds[k])) != 0 || s->n == 0 ||
                is_shown(m, s->name))
                continue;
            snprintf(c->name[0], ET_METRIC_NAME, "%s", s->name);
            c->is_spare = true;
        }
}

int
tui_charts_shown(const struct tui_monitor *m)
{
    int n = 1;
    for (int i = 0; i < TUI_CHARTS - 1; i++)
        if (*m->chart[i].name[0] || i == EVALUATED)
            n = i + 1;
    return n;
}

const struct etd_series *
tui_loss_of(const struct etd_model *model)
{
    const struct etd_series *s = NULL;
    for (int k = 0; k < 4 && defaults[0].names[k] && !s; k++)
        s = find_like(model, defaults[0].names[k]);
    return s;
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
            if (defaults[i].place == 0)
                c->is_spare = false;
            /* Training beside evaluations; before the first it is alone. */
            snprintf(name, ET_METRIC_NAME, "%s",
                     defaults[i].place == 1 && strcmp(c->name[0], s->name) == 0
                         ? ""
                         : s->name);
            break;
        }
    }
    for (int i = 0; i < TUI_CHARTS - 1; i++)
        find_spare(m, model, i);
    if (!m->has_axis)
        m->axis = tui_axis_usual(model);
}

struct tui_chart *
tui_chart_focused(struct tui_monitor *m)
{
    int i = m->focus - TUI_M_CHART;
    return &m->chart[i >= 0 && i < TUI_CHARTS ? i : 0];
}

void
tui_chart_turn_axis(struct tui_monitor *m, const struct etd_model *model)
{
    m->has_axis = true;
    m->axis = tui_axis_next(m->axis, model);
}

/* ---- lines ---- */

static struct tui_across
across(const struct tui_view *v)
{
    return (struct tui_across){v->model, v->m->axis, v->is_over};
}

/* The colour of a chart's series I: its metric's, unless the first has it already. */
static enum tui_role
role_of(const struct tui_chart *c, int i)
{
    enum tui_role first = tui_metric_look(c->name[0]).role;
    enum tui_role own = tui_metric_look(c->name[i]).role;
    return i > 0 && own == first ? (first == TUI_S2 ? TUI_S5 : TUI_S2) : own;
}

static int
add_lines(const struct tui_view *v, const struct tui_chart *c,
          struct tui_plot_line *line)
{
    const struct tui_glyphs *g = v->app->config.glyphs;
    const struct tui_across a = across(v);
    int n = tui_rival_line(&v->m->rival, c->name[0], a.axis, v->m->smooth, g,
                           v->m->point, line);
    for (int i = TUI_CHART_SERIES - 1; i >= 0; i--) { /* the first lies on top */
        const struct etd_series *s = etd_model_series(v->model, c->name[i]);
        if (!s)
            continue;
        const struct tui_metric_look look = tui_metric_look(s->name);
        struct tui_point *points = v->m->point + (ptrdiff_t)n * ETD_BINS;
        int count = tui_series_points(&a, s, &look, points);
        double weight = tui_series_weight(s, v->m->smooth);
        double reach = look.can_burst ? tui_plot_reach(points, count, 0) : 0;
        if (weight > 0) {
            if (i == 0) { /* what two of them scatter would hide both */
                line[n++] = (struct tui_plot_line){.point = points,
                                                   .n = count,
                                                   .role = TUI_RAW,
                                                   .mark = g->raw,
                                                   .kind = TUI_PLOT_SCATTER,
                                                   .reach = reach};
                memcpy(points + ETD_BINS, points, (size_t)count * sizeof *points);
                points += ETD_BINS;
            }
            tui_plot_smooth(points, count, weight, reach);
        }
        line[n++] = (struct tui_plot_line){.point = points,
                                           .n = count,
                                           .role = role_of(c, i),
                                           .mark = g->series[i],
                                           .kind = tui_series_kind(s, weight),
                                           .dash = i,
                                           .reach = reach};
    }
    return n;
}

/* ---- drawing ---- */

/* Are both series of C one metric, of two sets: evaluation and training? */
static bool
is_one_metric(const struct tui_chart *c)
{
    const char *first = strrchr(c->name[0], '/'), *second = strrchr(c->name[1], '/');
    return first && second && strcmp(first, second) == 0 &&
           strncmp(c->name[0], "metrics/", 8) == 0 &&
           strncmp(c->name[1], "metrics/", 8) == 0;
}

/* What the second series is called beside the first: "grad_norm", or "train" of one
 * metric's. Returns BUF. */
static const char *
second_label(const struct tui_chart *c, char buf[ET_METRIC_NAME])
{
    if (!is_one_metric(c))
        return tui_metric_label(c->name[1], buf);
    const char *set = c->name[1] + 8;
    snprintf(buf, ET_METRIC_NAME, "%.*s", (int)strcspn(set, "/"), set);
    return buf;
}

/* "grad_norm 1.22", from X on, behind a sample of its line; returns where it ends. */
static int
put_second(const struct tui_view *v, const struct tui_chart *c,
           const struct tui_pane *p, int x)
{
    char label[ET_METRIC_NAME], value[TUI_NUMBER];
    const struct tui_glyphs *g = v->app->config.glyphs;
    const struct etd_series *s = etd_model_series(v->model, c->name[1]);
    const enum tui_role role = role_of(c, 1);
    if (!s)
        return x;
    second_label(c, label);
    tui_metric_value(s->name, s->last, value);
    const int sample = tui_plot_sample_columns(p->grid);
    const int room = p->w - x - sample - 2, w = tui_width(label);
    if (w > room)
        return x; /* the sample of the first tells that it is not the second */
    if (w + 1 + 6 > room)
        value[0] = '\0';
    tui_fill(p, 0, x, sample, ' ', TUI_TEXT);
    tui_plot_sample(p, 0, x, role, g->series[1], 1);
    x += sample;
    return x + 1 + tui_putf(p, 0, x, role, *value ? "%s %-6s " : "%s%s ", label, value);
}

/* What is done to the values, at the title's end: as much of it as there is room
 * for. */
static void
put_flags(const struct tui_view *v, const struct tui_chart *c, const struct tui_pane *p,
          int from, const struct tui_plot_seen *seen)
{
    char text[2][32] = {"", ""};
    const struct tui_rival *rival = &v->m->rival;
    const struct etd_series *s = etd_model_series(v->model, c->name[0]);
    if (seen->n_hidden > 0)
        snprintf(text[0], sizeof text[0], "log, %d not shown", seen->n_hidden);
    else if (c->is_log)
        snprintf(text[0], sizeof text[0], "log");
    else if (seen->wants_log)
        snprintf(text[0], sizeof text[0], "y log?");
    if (s && tui_series_is_dense(s))
        snprintf(text[1], sizeof text[1], "%s", tui_smooth_name(v->m->smooth));
    int end = p->w - 2;
    for (int i = 1; i >= 0; i--) {
        int w = tui_width(text[i]);
        if (w == 0 || end - w - 2 <= from)
            continue;
        tui_putf(p, 0, end - w - 1, TUI_DIM, " %s ", text[i]);
        end -= w + 3;
    }
    const int w = tui_width(rival->name) + tui_plot_sample_columns(p->grid);
    if (!rival->source || !etd_model_series(rival->source->model, c->name[0]) ||
        end - w - 2 <= from)
        return;
    tui_fill(p, 0, end - w - 1, w + 2, ' ', TUI_TEXT);
    tui_rival_sample(p, 0, end - w);
    tui_put_end(p, 0, end, TUI_DIM, rival->name);
}

/* Draws "loss/train 0.438" in a usual width, so that the text behind it does not
 * move. */
static void
put_title(const struct tui_view *v, const struct tui_chart *c, const struct tui_pane *p,
          bool has_focus, const struct tui_plot_seen *seen)
{
    char title[ET_METRIC_NAME + 64], label[ET_METRIC_NAME], value[TUI_NUMBER];
    const struct etd_series *s = etd_model_series(v->model, c->name[0]);
    const struct tui_metric_look look = tui_metric_look(c->name[0]);
    double last = s ? s->last * look.per / seen->per : NAN;
    bool is_factor = seen->unit[0] == 'x';
    const bool has_second = s && etd_model_series(v->model, c->name[1]);
    const int sample = has_second ? tui_plot_sample_columns(p->grid) : 0;
    if (look.of == TUI_OF_BYTES && *seen->unit) /* with the digits of tui_bytes */
        snprintf(value, sizeof value, "%.*f", last < 9.95 ? 1 : 0, last);
    else
        tui_metric_value(c->name[0], is_factor && s ? s->last : last, value);
    snprintf(title, sizeof title, "%*s%s%s%s %-6s", sample, "",
             tui_metric_label(c->name[0], label), *seen->unit ? ", " : "", seen->unit,
             value);
    tui_title(p, 0, title, has_focus);
    if (has_second)
        tui_plot_sample(p, 0, 3, role_of(c, 0), v->app->config.glyphs->series[0], 0);
    put_flags(v, c, p, put_second(v, c, p, 4 + tui_width(title)), seen);
}

/* Resumes and annotations: 'r' and 'a' on the axis. */
static int
gather_marks(const struct tui_view *v, double *at, char *sign)
{
    const struct tui_across a = across(v);
    int n = 0;
    for (int i = 0; i < v->model->n_marks && n < TUI_PLOT_MARKS; i++) {
        const struct etd_mark *k = etd_model_mark(v->model, i);
        if (k->kind == ET_RECORD_CHECKPOINT)
            continue;
        at[n] = tui_axis_place(&a, k->ba / v->model->width);
        if (isnan(at[n]))
            continue;
        sign[n++] = k->kind == ET_RECORD_RESUME ? 'r' : 'a';
    }
    return n;
}

/* Why a chart has nothing to show, and what will. */
static void
put_nothing(const struct tui_view *v, int chart, const struct tui_pane *in)
{
    char next[64], text[96];
    const char *why = v->is_over         ? "the run has no such values"
                      : v->model->ba > 0 ? "no values yet"
                                         : "the first batch is not done yet";
    if (chart == EVALUATED && !v->is_over && *tui_next_evaluation(v, next)) {
        snprintf(text, sizeof text, "first %s", next);
        why = text;
    }
    if (in->h > 1)
        tui_put(in, in->h / 2 - 1, TUI_PLOT_LABEL + 3, TUI_DIM,
                tui_monitor_empty(v, why));
}

void
tui_monitor_chart(const struct tui_view *v, int chart, const struct tui_pane *p,
                  bool has_focus)
{
    const struct tui_chart *c = &v->m->chart[chart];
    struct tui_plot_line line[TUI_PLOT_LINES];
    struct tui_plot_seen seen;
    double mark[TUI_PLOT_MARKS];
    char sign[TUI_PLOT_MARKS];
    const struct tui_across a = across(v);
    const double end = tui_axis_end(&a);
    const struct tui_metric_look look = tui_metric_look(c->name[0]);
    if (p->h < 1)
        return;
    struct tui_plot plot = {
        .from = c->from * end,
        .to = c->to * end,
        .done = tui_axis_done(&a),
        .of = look.of,
        .is_log = c->is_log,
        .from_zero = look.from_zero,
        .is_tame = strcmp(tui_run_state(v), "diverged") == 0,
        .line = line,
        .n_lines = add_lines(v, c, line),
        .mark = mark,
        .mark_sign = sign,
        .n_marks = gather_marks(v, mark, sign),
        .cursor = v->m->inspects ? v->m->cursor * end : NAN,
    };
    const struct tui_pane in = tui_pane_part(p, 1, 0, p->h - 1, p->w);
    tui_axis_name(&plot, v->m->axis);
    tui_plot_draw(&in, &plot, &seen);
    if (*c->name[0])
        put_title(v, c, p, has_focus, &seen);
    else
        tui_title(p, 0, chart == EVALUATED ? "evaluations" : "no values yet",
                  has_focus);
    if (plot.n_lines == 0)
        put_nothing(v, chart, &in);
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
    /* What is looked at keeps its place; without a cursor the newest comes to the
     * end. */
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

/* The bin of S nearest to the cursor; NULL: it has no values. */
static const struct etd_bin *
bin_at(const struct tui_view *v, const struct etd_series *s)
{
    const struct tui_across a = across(v);
    return tui_series_at(&a, s, v->m->cursor * tui_axis_end(&a));
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
                                  tui_metric_value(s->name, bin->min, a),
                                  tui_metric_value(s->name, bin->max, b));
        else if (n < size)
            n += (size_t)snprintf(buf + n, size - n, "  %s %s",
                                  tui_metric_label(s->name, label),
                                  tui_metric_value(s->name, bin->last, a));
    }
    return buf;
}
