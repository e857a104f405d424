/* SPDX-License-Identifier: Apache-2.0 */
/* runs_compare.c: runs beside each other: curves, the Pareto front, what differs. */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/loggers/progress.h"
#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/monitor.h"
#include "tui/runs.h"

enum { KEY = 34, CELL = 13, CELL_TEXT = 256 };

/* ---- curves ---- */

/* "metrics/eval/Accuracy" -> "accuracy", "samples/s": as a sentence has it. */
static const char *
metric_word(const char *metric, char buf[40])
{
    char label[ET_METRIC_NAME];
    const char *slash = strrchr(metric, '/');
    bool is_evaluated = strncmp(metric, "metrics/", 8) == 0 && slash;
    snprintf(buf, 40, "%.39s",
             is_evaluated ? slash + 1 : tui_metric_label(metric, label));
    if (!is_evaluated)
        return buf;
    for (char *c = buf; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return buf;
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The colour of the run I in all that is said of it. */
static enum tui_role
series_of(int i)
{
    return (enum tui_role)(TUI_S1 + i % TUI_SERIES);
}

/* One reach for all: a curve that broke down does not hide those that did not. FIRST is
 * sorted. */
static void
find_reach(struct tui_plot_line *line, double *first, int n)
{
    double reach = 0, in_hand = 0;
    qsort(first, (size_t)n, sizeof *first, by_size);
    for (int i = 0; i < n; i++) {
        double own = tui_plot_reach(line[i].point, line[i].n, first[(n - 1) / 2]);
        reach = fmax(reach, own);
        for (int k = 0; k < line[i].n && own == 0; k++)
            if (isfinite(line[i].point[k].last))
                in_hand = fmax(in_hand, fabs(line[i].point[k].last));
    }
    for (int i = 0; i < n && reach > 0; i++)
        line[i].reach = fmax(reach, in_hand);
}

void
runs_draw_curves(struct runs *r, const struct tui_pane *p, const json_t *const *facts,
                 int n, const char *metric)
{
    struct tui_plot_line line[TUI_R_CURVES];
    double first[TUI_R_CURVES]; /* of each its first value's size */
    char part[80], word[40];
    double end = 0;
    int lines = 0;
    for (int i = 0; i < n && i < TUI_R_CURVES; i++) {
        const struct runs_curve *c = runs_curve_of(r, facts[i], metric);
        if (c->n == 0)
            continue;
        const bool is_evaluated = strncmp(metric, "metrics/", 8) == 0;
        line[lines] = (struct tui_plot_line){
            .point = c->point,
            .n = c->n,
            .kind = is_evaluated ? TUI_PLOT_POINTS : TUI_PLOT_LAST,
            .role = series_of(i),
            .mark = p->grid->glyphs->series[i % TUI_SERIES],
            .dash = i % 4,
        };
        first[lines] = isfinite(c->point[0].last) ? fabs(c->point[0].last) : 0;
        end = fmax(end, c->point[c->n - 1].x);
        lines++;
    }
    if (lines > 0 && tui_metric_look(metric).can_burst)
        find_reach(line, first, lines);
    if (lines == 0) {
        bool goes_on = false;
        for (int i = 0; i < n; i++)
            goes_on = goes_on || eti_facts_goes_on(facts[i]);
        tui_putf(p, 0, 1, TUI_DIM, "no values of %s%s", metric, goes_on ? " yet" : "");
        return;
    }
    const struct tui_plot plot = {
        .from = 0,
        .to = end > 0 ? end : 1,
        .line = line,
        .done = NAN,
        .of = tui_metric_look(metric).of,
        .n_lines = lines,
        .x_of = TUI_OF_SECONDS,
        .x_per = 60,
        .cursor = NAN,
    };
    const bool has_legend = p->h > 4;
    const struct tui_pane chart =
        tui_pane_part(p, has_legend, 0, p->h - has_legend, p->w - 1);
    tui_plot_draw(&chart, &plot, NULL);
    for (int i = 0, x = 1; has_legend && i < n && i < TUI_R_CURVES; i++) {
        const enum tui_role role = series_of(i);
        const struct tui_glyphs *g = p->grid->glyphs;
        const int sample = tui_plot_sample_columns(p->grid);
        const bool has_curve = runs_curve_of(r, facts[i], metric)->n > 0;
        if (has_curve)
            snprintf(part, sizeof part, "%.20s", runs_fact(facts[i], "name"));
        else
            snprintf(part, sizeof part, "%.20s: no %.30s", runs_fact(facts[i], "name"),
                     metric_word(metric, word));
        if (x + tui_width(part) + sample + 2 > p->w)
            break;
        if (has_curve)
            tui_plot_sample(p, 0, x, role, g->series[i % TUI_SERIES], i % 4);
        x += sample + 2 + tui_put(p, 0, x + sample, has_curve ? role : TUI_DIM, part);
    }
}

/* ---- the Pareto front ---- */

struct frame {
    const struct tui_pane *in; /* where values lie */
    double left, right;        /* logarithms of the cost */
    double low, high;
};

static int
column_of(const struct frame *f, double cost)
{
    double part =
        f->right > f->left ? (log(cost) - f->left) / (f->right - f->left) : 0.5;
    return (int)lround(part * (f->in->w - 1));
}

static int
row_of(const struct frame *f, double value)
{
    double part = f->high > f->low ? (f->high - value) / (f->high - f->low) : 0.5;
    return (int)lround(part * (f->in->h - 1));
}

static bool
is_shown(const struct eti_comparison *k, int i)
{
    double cost = eti_comparison_cost(k, &k->run[i]);
    return isfinite(k->run[i].best) && isfinite(cost) && cost > 0;
}

/* "14m51s", "12.50 USD", "1.2 kWh" or "1.2M". */
static const char *
cost_text(const struct eti_comparison *k, double cost, char buf[TUI_NUMBER])
{
    switch (k->by) {
    case ETI_COST:
        return eti_money_text(k->price, cost, buf, TUI_NUMBER);
    case ETI_ENERGY:
        return eti_energy_text(cost, buf, TUI_NUMBER);
    case ETI_SAMPLES:
        return tui_scaled(cost, buf);
    default:
        break;
    }
    return tui_span(cost, buf);
}

/* From one of the front to the next. */
static void
put_front(const struct frame *f, const struct eti_comparison *k)
{
    for (int x = 0; x < f->in->w; x++) {
        double best = NAN;
        for (int i = 0; i < k->n; i++) {
            if (!is_shown(k, i) || !k->run[i].on_front ||
                column_of(f, eti_comparison_cost(k, &k->run[i])) > x)
                continue;
            double v = k->run[i].best;
            bool is_better = isnan(best) || (k->less ? v < best : v > best);
            best = is_better ? v : best;
        }
        if (isfinite(best))
            tui_put_ch(f->in, row_of(f, best), x, '.', TUI_RAW, 0);
    }
}

static void
put_points(const struct runs *r, const struct frame *f, const struct eti_comparison *k)
{
    for (int i = 0; i < k->n; i++) {
        if (!is_shown(k, i))
            continue;
        int x = column_of(f, eti_comparison_cost(k, &k->run[i]));
        int y = row_of(f, k->run[i].best);
        const char *name = runs_fact(k->run[i].facts, "name");
        bool front = k->run[i].on_front;
        enum tui_role role = front ? TUI_GOOD : TUI_DIM;
        tui_put_ch(f->in, y, x, front ? '#' : '+', role, TUI_BOLD);
        int w = tui_width(name), at = x + 2;
        if (at + w > f->in->w)
            at = x - 1 - w;
        if (!r->hides_names && at >= 0)
            tui_put(f->in, y, at, role, name);
    }
}

/* Why no run has a place in it. */
static const char *
why_empty(const struct eti_comparison *k)
{
    bool came = false;
    for (int i = 0; i < k->n; i++)
        came = came || isfinite(k->has_target ? k->run[i].to_target[ETI_TIME]
                                              : k->run[i].to_best[ETI_TIME]);
    if (!came)
        return k->has_target ? "no run came to the target" : "no run was evaluated";
    if (k->by == ETI_COST && !eti_comparison_has_price(k))
        return "no price is set: etude config set price.hour 2.50";
    if (k->by == ETI_CPU_TIME)
        return "no run has recorded what it used of processors";
    if (k->by == ETI_ENERGY)
        return "no run has recorded what it drew: GPUs' sensors do, and RAPL";
    return "no run was evaluated";
}

static void
draw_pareto(struct runs *r, const struct tui_pane *p)
{
    const struct eti_comparison *k = &r->comparison;
    const struct tui_pane in = tui_pane_part(p, 0, 8, p->h - 1, p->w - 9);
    struct frame f = {&in, INFINITY, -INFINITY, INFINITY, -INFINITY};
    char a[TUI_NUMBER];
    int n = 0;
    for (int i = 0; i < k->n; i++) {
        if (!is_shown(k, i))
            continue;
        double cost = eti_comparison_cost(k, &k->run[i]);
        f.left = fmin(f.left, log(cost));
        f.right = fmax(f.right, log(cost));
        f.low = fmin(f.low, k->run[i].best);
        f.high = fmax(f.high, k->run[i].best);
        n++;
    }
    if (n == 0) {
        tui_put(p, 1, 3, TUI_DIM, why_empty(k));
        return;
    }
    double margin = 0.1 * (f.high - f.low);
    if (margin <= 0) /* all are alike: a scale around that */
        margin = f.high != 0 ? 0.1 * fabs(f.high) : 1;
    f.low -= margin;
    f.high += margin;
    for (int y = 0; y < in.h; y++) {
        tui_divide(p, y, 7, 1);
        double v = f.high - (f.high - f.low) * y / (in.h > 1 ? in.h - 1 : 1);
        if (y % 2 == 0)
            tui_put_end(p, y, 7, TUI_DIM, tui_value(v, a));
    }
    tui_rule(p, p->h - 1, 7, p->w - 8);
    tui_put_ch(p, p->h - 1, 7, p->grid->glyphs->corner, TUI_RULE, 0);
    tui_put(p, p->h - 1, 10, TUI_DIM, cost_text(k, exp(f.left), a));
    tui_put_end(p, p->h - 1, p->w - 3, TUI_DIM, cost_text(k, exp(f.right), a));
    put_front(&f, k);
    put_points(r, &f, k);
}

/* ---- what differs ---- */

static const char *
value_text(const json_t *v, char *buf, size_t size)
{
    if (!v || json_is_null(v))
        snprintf(buf, size, "-");
    else if (json_is_string(v))
        et_visible(buf, size, json_string_value(v), json_string_length(v));
    else if (json_is_boolean(v))
        snprintf(buf, size, "%s", json_is_true(v) ? "true" : "false");
    else if (json_is_integer(v))
        snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else
        snprintf(buf, size, "%.6g", json_number_value(v));
    return buf;
}

/* Columns of the longest value in DIFFERENCES. */
static int
longest_value(const json_t *differences)
{
    char text[CELL_TEXT];
    const char *key;
    json_t *values, *v;
    size_t i;
    int most = 0, n;
    json_object_foreach((json_t *)differences, key, values)
    {
        json_array_foreach(values, i, v)
        {
            n = tui_width(value_text(v, text, sizeof text));
            most = n > most ? n : most;
        }
    }
    return most;
}

/* How a table of W columns is cut. */
struct cut {
    int key;      /* columns of the keys */
    int cell;     /* and of each run */
    int first, n; /* of the runs, those that have a column */
};

/* KEY columns do for the keys and CELL for a value, more where the LONGEST or the
 * WIDEST is longer and there is room. */
static struct cut
cut_table(int w, int n, int first, int longest, int widest)
{
    int room = w - n * CELL, wanted = longest + 3 > KEY ? longest + 3 : KEY;
    int key = room > wanted ? wanted : room < 20 ? 20 : room;
    int beside = (w - key) / CELL > 0 ? (w - key) / CELL : 1;
    beside = beside < n ? beside : n;
    int spare = (w - key) / beside, cell = widest + 2 > CELL ? widest + 2 : CELL;
    cell = cell < spare ? cell : spare;
    return (struct cut){key, cell > CELL ? cell : CELL,
                        first < n - beside ? first : n - beside, beside};
}

/* The one of all runs with the best value, or the least cost; -1: fewer than two have
 * any. */
static int
best_of(const struct eti_comparison *k, bool costs)
{
    int best = -1, n = 0;
    double is = NAN;
    for (int i = 0; i < k->n; i++) {
        double v = costs ? eti_comparison_cost(k, &k->run[i]) : k->run[i].best;
        if (!isfinite(v))
            continue;
        n++;
        if (best < 0 || (costs || k->less ? v < is : v > is)) {
            best = i;
            is = v;
        }
    }
    return n > 1 ? best : -1;
}

static const char *
name_cell(const struct eti_comparison *k, const void *data, int i, char buf[CELL_TEXT])
{
    (void)data;
    snprintf(buf, CELL_TEXT, "%.63s", runs_fact(k->run[i].facts, "name"));
    return buf;
}

/* Of a key that is too long the end is shown, which tells more. The cell of the run
 * BEST
 * (-1: no run) is marked as that; those that are as the first run's are dim where DIMS.
 * Names of runs wear the colours of their curves. */
static void
put_cells(const struct tui_pane *p, int y, const char *key, const struct cut *c,
          const char *(*cell)(const struct eti_comparison *k, const void *data, int i,
                              char buf[CELL_TEXT]),
          const struct eti_comparison *k, const void *data, int best, bool dims)
{
    char text[CELL_TEXT], first[CELL_TEXT], other[CELL_TEXT];
    const bool is_names = cell == name_cell;
    int most = c->key - 2, n_key = (int)strlen(key);
    if (n_key > most && most > 4)
        tui_putf(p, y, 1, TUI_TEXT, "..%s", key + n_key - most + 2);
    else
        tui_put(p, y, 1, TUI_TEXT, key);
    snprintf(first, sizeof first, "%s", cell(k, data, 0, other));
    for (int i = 0; i < c->n; i++) {
        const char *t = cell(k, data, c->first + i, text);
        bool is_same = dims && c->first + i > 0 && strcmp(t, first) == 0;
        int end = c->key + (i + 1) * c->cell;
        const int w = tui_width(t);
        const enum tui_role role = is_names               ? series_of(c->first + i)
                                   : c->first + i == best ? TUI_BEST
                                   : is_same              ? TUI_DIM
                                                          : TUI_TEXT;
        if (end <= p->w)
            tui_put_ends(p, y, end - (w < c->cell - 2 ? w : c->cell - 2), end, role, t);
    }
}

static const char *
config_cell(const struct eti_comparison *k, const void *data, int i,
            char buf[CELL_TEXT])
{
    (void)k;
    return value_text(json_array_get(data, (size_t)i), buf, CELL_TEXT);
}

static const char *
best_cell(const struct eti_comparison *k, const void *data, int i, char buf[CELL_TEXT])
{
    (void)data;
    return tui_value(k->run[i].best, buf);
}

static const char *
to_cell(const struct eti_comparison *k, const void *data, int i, char buf[CELL_TEXT])
{
    double cost = eti_comparison_cost(k, &k->run[i]);
    (void)data;
    return isfinite(cost) ? cost_text(k, cost, buf) : "-";
}

static const char *
front_cell(const struct eti_comparison *k, const void *data, int i, char buf[CELL_TEXT])
{
    (void)data;
    snprintf(buf, CELL_TEXT, "%s",
             k->run[i].on_front ? "#"
             : is_shown(k, i)   ? "+"
                                : "-");
    return buf;
}

/* The differences, then what the runs came to. */
static void
draw_table(struct runs *r, const struct tui_pane *p, const struct eti_comparison *k,
           const json_t *differences)
{
    const char *key;
    json_t *v;
    char label[ET_METRIC_NAME + 64], metric[ET_METRIC_NAME];
    int y = 2, i = 0, figures = 3, rows = p->h - 2 - figures;
    int longest = 0;
    json_object_foreach((json_t *)differences, key, v) longest =
        (int)strlen(key) > longest ? (int)strlen(key) : longest;
    const struct cut c =
        cut_table(p->w, k->n, r->first, longest, longest_value(differences));
    r->first = c.first;
    snprintf(label, sizeof label, "what differs (only rows that do)");
    if (c.n < k->n)
        snprintf(label, sizeof label, "what differs: runs %d-%d of %d, %s", c.first + 1,
                 c.first + c.n, k->n,
                 r->compares ? "left right: others" : "C shows all");
    tui_title(p, 0, label, false);
    put_cells(p, 1, "key", &c, name_cell, k, NULL, -1, false);
    tui_list_show(&r->keys, (int)json_object_size(differences), rows > 0 ? rows : 1);
    json_object_foreach((json_t *)differences, key, v)
    {
        if (i >= r->keys.top && y < 2 + rows) {
            if (i == r->keys.at && r->keys.n > rows)
                tui_select(p, y, true);
            put_cells(p, y++, key, &c, config_cell, k, v, -1, true);
        }
        i++;
    }
    if (r->keys.n == 0)
        tui_put(p, y++, 1, TUI_DIM, "nothing: the recipes are the same");
    if (!*k->metric)
        return;
    snprintf(label, sizeof label, "%s to %s", eti_figure_names[k->by],
             k->has_target ? k->target_text : "its best");
    put_cells(p, y++, label, &c, to_cell, k, NULL, best_of(k, true), false);
    snprintf(label, sizeof label, "best %s", tui_metric_label(k->metric, metric));
    put_cells(p, y++, label, &c, best_cell, k, NULL, best_of(k, false), false);
    put_cells(p, y, "Pareto front", &c, front_cell, k, NULL, -1, false);
}

void
runs_draw_differences(struct runs *r, const struct tui_pane *p)
{
    struct eti_comparison *k;
    json_t *one, *differences;
    size_t i;
    void *block;
    if (runs_n_marked(r) < 2) {
        tui_title(p, 0, "what differs", false);
        tui_put(p, 1, 2, TUI_DIM, "mark two or more runs with space");
        return;
    }
    if (et_alloc(r->app->cx, sizeof *k, &block) != ET_OK) {
        et_error_clear(r->app->cx);
        return;
    }
    k = block;
    k->cx = r->app->cx;
    json_array_foreach(r->all, i, one) if (runs_is_marked(r, one) &&
                                           k->n < ETI_COMPARED_RUNS) k->run[k->n++]
        .facts = one;
    differences = eti_comparison_differences(k);
    draw_table(r, p, k, differences);
    json_decref(differences);
    et_free(r->app->cx, k);
}

/* ---- all ---- */

enum tui_role
runs_compare_message(const struct runs *r, char *buf, size_t size)
{
    const char *unlike = eti_comparison_unlike(r->differences);
    if (unlike) {
        snprintf(buf, size, "! they were evaluated on other data: %.100s differs",
                 unlike);
        return TUI_WARN;
    }
    if (!json_object_get(r->differences, "seed")) {
        snprintf(buf, size,
                 "one seed each: small differences may be those between seeds "
                 "(3 seeds advised)");
        return TUI_TEXT;
    }
    buf[0] = '\0';
    return TUI_TEXT;
}

void
runs_draw_compare(struct runs *r, const struct tui_pane *p)
{
    const struct eti_comparison *k = &r->comparison;
    const json_t *facts[TUI_R_CURVES];
    char title[200], label[ET_METRIC_NAME];
    int chart = p->h >= 12 ? (p->h - 1) / 2 : 0, n = 0;
    int used = 1 + tui_putf(p, 0, 1, TUI_TEXT, "compare %d runs   %s%s", k->n,
                            k->has_target ? "target " : "no target",
                            k->has_target ? k->target_text : "");
    /* Curves are always drawn over the clock. */
    snprintf(title, sizeof title, "%s %s   P %s", r->shows_pareto ? "x:" : "by",
             k->by == ETI_TIME && r->shows_pareto ? "wall clock"
                                                  : eti_figure_names[k->by],
             r->shows_pareto ? "curves" : "pareto");
    tui_put_right(p, 0, used + 1, p->w - 1, TUI_TEXT, title);
    const struct tui_pane table =
        tui_pane_part(p, 1 + chart, 0, p->h - 1 - chart, p->w);
    draw_table(r, &table, k, r->differences); /* it settles which runs are shown */
    if (chart > 0) {
        const char *metric =
            *k->metric ? tui_metric_label(k->metric, label) : "nothing";
        if (r->shows_pareto)
            snprintf(title, sizeof title,
                     "%.60s vs %s (log)   # on the front   + dominated", metric,
                     eti_figure_names[k->by]);
        else
            snprintf(title, sizeof title, "%.60s", metric);
        const struct tui_pane top = tui_pane_part(p, 1, 0, chart, p->w);
        const struct tui_pane in = tui_pane_part(&top, 1, 0, chart - 1, p->w);
        tui_title(&top, 0, title, false);
        for (int i = r->first; i < k->n && n < TUI_R_CURVES; i++)
            facts[n++] = k->run[i].facts;
        if (r->shows_pareto)
            draw_pareto(r, &in);
        else
            runs_draw_curves(r, &in, facts, n, k->metric);
    }
}
