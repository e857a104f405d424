/* SPDX-License-Identifier: Apache-2.0 */
/* wall_draw.c: how the wall of charts is drawn: see wall.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/library/facts.h"
#include "core/library/state.h"
#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/wall.h"

enum {
    LIST = 34,       /* columns of the list of runs, where there is room for one */
    LIST_FROM = 110, /* columns of a screen that has it */
    CHART_WIDE = 38,
    CHART_HIGH = 7,
    CHART_HIGHER = 8, /* on a screen of many rows */
    MANY_ROWS = 30,
    VALUE = 7, /* columns of a value in a title */
};

static const char *
name_of(const struct tui_wall *w, int run, char buf[ETI_FACT_TEXT])
{
    const char *name = eti_facts_get(w->run[run].source->facts, "name", buf);
    return name ? name : "-";
}

/* ---- one chart ---- */

/* A value beside a title: in its own unit. */
static const char *
value_of(const struct tui_wall *w, const struct etd_series *s, int run,
         char buf[TUI_NUMBER])
{
    return tui_metric_value(s->name, tui_wall_value(w, s, run), buf);
}

/* "accuracy .9182  o train .93": what the lines of one run are. */
static void
put_title(const struct tui_wall *w, const struct tui_wall_chart *c,
          const struct tui_pane *p, bool has_focus, const char *unit)
{
    char title[ET_METRIC_NAME + 64], label[ET_METRIC_NAME], value[TUI_NUMBER];
    const struct tui_glyphs *g = w->app->config.glyphs;
    const int top = w->pinned >= 0 ? w->pinned : 0;
    const bool is_one = !tui_wall_is_of_many(w);
    const bool has_samples = is_one && *c->name[1];
    const int sample = has_samples ? tui_plot_sample_columns(p->grid) : 0;
    const struct etd_series *s =
        is_one ? etd_model_series(w->run[0].source->model, c->name[0])
               : tui_wall_series(w, c, top);
    if (tui_metric_look(c->name[0]).of == TUI_OF_BYTES)
        unit = ""; /* the value has it */
    snprintf(title, sizeof title, "%*s%s%s%s %s", sample, "",
             tui_metric_label(c->name[0], label), *unit ? ", " : "", unit,
             s ? value_of(w, s, is_one ? 0 : top, value) : "");
    tui_title(p, 0, title, has_focus);
    if (has_samples)
        tui_plot_sample(p, 0, 3, tui_wall_series_role(c, 0), g->series[0], 0);
    int x = 4 + tui_width(title);
    const bool has_others = has_samples && !tui_wall_is_step(c); /* see put_parts */
    for (int i = 1; i < TUI_WALL_SERIES && has_others && *c->name[i]; i++) {
        const struct etd_series *other =
            etd_model_series(w->run[0].source->model, c->name[i]);
        char set[ET_METRIC_NAME];
        if (!other)
            continue;
        const bool is_set = strncmp(c->name[i], "metrics/", 8) == 0;
        snprintf(set, sizeof set, "%.*s", (int)strcspn(c->name[i] + 8 * is_set, "/"),
                 c->name[i] + 8 * is_set);
        const int wide = sample + tui_width(set) + 1 + VALUE;
        if (x + wide + 1 > p->w)
            break;
        const enum tui_role role = tui_wall_series_role(c, i);
        tui_fill(p, 0, x, wide, ' ', TUI_TEXT);
        tui_plot_sample(p, 0, x, role, g->series[i], i);
        tui_putf(p, 0, x + sample, role, "%s %s", set, value_of(w, other, 0, value));
        x += wide + 1;
    }
}

/* "backward 5.2ms", with its sign, at Y, X: where there is room. Returns how many
 * columns it takes. */
static int
put_part(const struct tui_wall *w, const struct tui_wall_chart *c, int i,
         const struct tui_pane *p, int y, int x)
{
    char label[ET_METRIC_NAME], value[TUI_NUMBER];
    const struct tui_glyphs *g = w->app->config.glyphs;
    const struct etd_series *s = etd_model_series(w->run[0].source->model, c->name[i]);
    const int sample = tui_plot_sample_columns(p->grid);
    const enum tui_role role = tui_wall_series_role(c, i);
    const int wide =
        sample + tui_width(tui_metric_label(c->name[i], label)) + 1 + VALUE;
    if (x + wide <= p->w && y < p->h) {
        tui_plot_sample(p, y, x, role, g->series[i], i % 4);
        tui_putf(p, y, x + sample, role, "%s %s", label, value_of(w, s, 0, value));
    }
    return wide;
}

/* The parts of the step, below the title, in a third of P at most. Returns how many
 * lines they take. */
static int
put_parts(const struct tui_wall *w, const struct tui_wall_chart *c,
          const struct tui_pane *p)
{
    enum { LEFT = 3, GAP = 1 };
    const struct tui_pane in = tui_pane_part(p, 0, 0, 1 + p->h / 3, p->w);
    int y = 1, x = LEFT;
    for (int i = 1; i < TUI_WALL_SERIES && *c->name[i]; i++) {
        int wide = put_part(w, c, i, &in, y, x);
        if (x + wide > p->w && x > LEFT)
            wide = put_part(w, c, i, &in, ++y, x = LEFT);
        x += wide + GAP;
    }
    return *c->name[1] ? (y < in.h ? y : in.h - 1) : 0;
}

static void
draw_chart(struct tui_wall *w, int chart, const struct tui_pane *p)
{
    const struct tui_wall_chart *c = &w->chart[chart];
    struct tui_plot_line line[TUI_WALL_LINES];
    struct tui_plot_seen seen;
    const struct tui_metric_look look = tui_metric_look(c->name[0]);
    const struct tui_across first = tui_wall_across(w, 0);
    const double end = tui_wall_end(w);
    const bool is_one = !tui_wall_is_of_many(w);
    struct tui_plot plot = {
        .from = w->from * end,
        .to = w->to * end,
        .done = is_one ? tui_axis_done(&first) : NAN,
        .of = look.of,
        .is_log = w->is_log && look.of != TUI_OF_PARTS,
        .from_zero = look.from_zero,
        .is_tame = is_one && strcmp(first.model->state, "diverged") == 0,
        .line = line,
        .n_lines = tui_wall_lines(w, c, line),
        .cursor = w->inspects ? w->cursor * end : NAN,
    };
    if (p->h < 2)
        return;
    const bool is_step = tui_wall_is_step(c);
    const int top = 1 + (is_step && is_one ? put_parts(w, c, p) : 0);
    const struct tui_pane in = tui_pane_part(p, top, 0, p->h - top, p->w);
    tui_axis_name(&plot, w->axis);
    tui_plot_draw(&in, &plot, &seen);
    put_title(w, c, p, chart == w->at.at && !w->in_runs, is_step ? "" : seen.unit);
}

/* ---- all of them ---- */

/* How many columns and rows of charts stand in H x W: as many as have room, and where
 * all of them have, so that they are of a usual shape. */
static void
divide(struct tui_wall *w, int h, int wide)
{
    const int high = h >= MANY_ROWS ? CHART_HIGHER : CHART_HIGH;
    const int most = wide / CHART_WIDE > 0 ? wide / CHART_WIDE : 1;
    const int rows = h / high > 0 ? h / high : 1;
    w->cols = most + w->more;
    w->cols = w->cols > wide / 20 ? wide / 20 : w->cols;
    w->cols = w->cols < 1 ? 1 : w->cols;
    w->rows = rows + w->more;
    w->rows = w->rows > h / 4 ? h / 4 : w->rows;
    w->rows = w->rows < 1 ? 1 : w->rows;
    double least = INFINITY;
    const int cols_most = w->cols, rows_most = w->rows;
    for (int cols = 1; cols <= cols_most && w->n <= cols_most * rows_most; cols++) {
        const int n = w->n > 0 ? w->n : 1, need = (n + cols - 1) / cols;
        const double shape = (double)wide / cols / ((double)h / need) / 4;
        const double badness = fabs(log(shape)) + 0.1 * (cols * need - n);
        if (need > rows_most || badness >= least)
            continue;
        least = badness;
        w->cols = cols;
        w->rows = need;
    }
}

static void
draw_charts(struct tui_wall *w, const struct tui_pane *p)
{
    divide(w, p->h, p->w);
    const int page = w->cols * w->rows, first = w->at.at / page * page;
    if (w->n == 0) {
        tui_put(p, 1, 2, TUI_DIM,
                *w->filter.text ? "no metric passes the filter: esc takes it away"
                                : "no values yet");
        return;
    }
    if (w->is_full) {
        draw_chart(w, w->at.at, p);
        return;
    }
    for (int i = 0; i < page && first + i < w->n; i++) {
        const int row = i / w->cols, col = i % w->cols;
        const int y = p->h * row / w->rows, x = p->w * col / w->cols;
        const struct tui_pane part = tui_pane_part(
            p, y, x, p->h * (row + 1) / w->rows - y, p->w * (col + 1) / w->cols - x);
        draw_chart(w, first + i, &part);
    }
}

/* ---- what is around ---- */

static const char *const axis_names[TUI_AXES] = {"step", "epoch", "time", "samples",
                                                 "tokens"};

static void
draw_status(struct tui_wall *w, const struct tui_pane *p)
{
    char text[120], count[40];
    const int page = w->cols * w->rows, pages = page > 0 ? (w->n + page - 1) / page : 1;
    const int half = p->w / 2 - 4;
    tui_put(p, 0, 1, TUI_TITLE, "/");
    if (w->is_typing)
        tui_field_draw(&w->filter, p, 0, 3, half, *w->fault ? w->fault : NULL);
    else
        tui_put_cut(p, 0, 3, 3 + half, *w->filter.text ? TUI_TEXT : TUI_DIM,
                    *w->filter.text ? w->filter.text : "all metrics");
    snprintf(count, sizeof count, w->n < w->of ? "%d of %d charts" : "%d charts", w->n,
             w->of);
    if (!w->is_full && pages > 1)
        snprintf(text, sizeof text, "%s  page %d of %d  by %s  %s%s", count,
                 w->at.at / page + 1, pages, axis_names[w->axis],
                 tui_smooth_name(w->smooth), w->is_log ? "  log" : "");
    else
        snprintf(text, sizeof text, "%s  by %s  %s%s", count, axis_names[w->axis],
                 tui_smooth_name(w->smooth), w->is_log ? "  log" : "");
    tui_put_right(p, 0, half + 5, p->w - 1, TUI_TEXT, text);
}

/* The sign of a run's line, and whether it is pinned or hidden. */
static int
put_sign(const struct tui_wall *w, int run, const struct tui_pane *p, int y, int x)
{
    const struct tui_glyphs *g = w->app->config.glyphs;
    const struct tui_wall_run *r = &w->run[run];
    if (w->pinned == run)
        tui_put_ch(p, y, x, g->marked, TUI_MARK, 0);
    if (r->is_hidden)
        tui_put(p, y, x + 1, TUI_OFF, "-");
    else
        tui_plot_sample(p, y, x + 1, tui_wall_role(w, run), g->series[r->series],
                        r->series % 4);
    return 1 + tui_plot_sample_columns(p->grid);
}

/* One line that names the runs, where they have no list. */
static void
draw_legend(struct tui_wall *w, const struct tui_pane *p)
{
    char fact[ETI_FACT_TEXT];
    int x = 0;
    for (int i = 0; i < w->n_runs; i++) {
        const char *name = name_of(w, i, fact);
        const int wide = tui_width(name), sign = 1 + tui_plot_sample_columns(p->grid);
        if (x + sign + wide + 2 > p->w) {
            tui_put_end(p, 0, p->w, TUI_DIM, "...");
            break;
        }
        (void)put_sign(w, i, p, 0, x);
        tui_put(p, 0, x + sign, w->run[i].is_hidden ? TUI_OFF : tui_wall_role(w, i),
                name);
        if (w->in_runs && w->runs.at == i)
            tui_mark(p, 0, x + sign, wide, TUI_REVERSE);
        x += sign + wide + 1;
    }
}

/* What is known of the run that is selected. */
static void
draw_run(struct tui_wall *w, const struct tui_pane *p)
{
    static const char *const keys[] = {"recipe", "model", "optimizer.lr", "seed",
                                       "algorithms"};
    const struct tui_source *s = w->run[w->runs.at].source;
    char fact[ETI_FACT_TEXT], ba[TUI_NUMBER];
    int y = 1;
    tui_title(p, 0, name_of(w, w->runs.at, fact), false);
    /* (Of one whose processes are gone the records do not tell the end.) */
    const char *state = s->link == TUI_LINK_ENDED || !*s->model->state
                            ? eti_facts_get(s->facts, "state", fact)
                            : s->model->state;
    if (p->h > y && state)
        tui_put_state(p, y++, 2, state);
    if (p->h > y)
        tui_putf(p, y++, 2, TUI_TEXT, "after %sba%s%s", tui_count(s->model->ba, ba),
                 *s->place ? "  on " : "", s->place);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && y < p->h; i++) {
        const char *text = eti_facts_get(s->facts, keys[i], fact);
        if (!text || !*text)
            continue;
        tui_put(p, y, 2, TUI_DIM, keys[i]);
        tui_put_ends(p, y++, 16, p->w - 1, TUI_TEXT, text);
    }
    if (*s->problem && y < p->h)
        tui_put_cut(p, y, 2, p->w - 1, TUI_BAD, s->problem);
}

/* The runs, each with its value of the chart that is selected. */
static void
draw_list(struct tui_wall *w, const struct tui_pane *p)
{
    char fact[ETI_FACT_TEXT], value[TUI_NUMBER], title[ET_METRIC_NAME + 16],
        label[ET_METRIC_NAME];
    const struct tui_wall_chart *c = w->n > 0 ? &w->chart[w->at.at] : NULL;
    snprintf(title, sizeof title, "runs%s%.20s", c ? "  " : "",
             c ? tui_metric_label(c->name[0], label) : "");
    tui_title(p, 0, title, w->in_runs);
    tui_list_show(&w->runs, w->n_runs, w->n_runs);
    for (int i = 0; i < w->n_runs && i + 1 < p->h; i++) {
        const struct etd_series *s = c ? tui_wall_series(w, c, i) : NULL;
        const enum tui_role role = w->run[i].is_hidden ? TUI_OFF : TUI_TEXT;
        if (i == w->runs.at)
            tui_select(p, i + 1, w->in_runs);
        const int x = 1 + put_sign(w, i, p, i + 1, 1);
        tui_put_cut(p, i + 1, x, p->w - VALUE - 2, role, name_of(w, i, fact));
        if (s)
            tui_put_end(p, i + 1, p->w - 1, role, value_of(w, s, i, value));
    }
    const int y = w->n_runs + 2;
    if (p->h > y + 2) {
        const struct tui_pane below = tui_pane_part(p, y, 0, p->h - y, p->w);
        draw_run(w, &below);
    }
}

/* What the faint line is. */
static void
draw_rival(struct tui_wall *w, const struct tui_pane *p)
{
    const int sample = tui_plot_sample_columns(p->grid);
    tui_rival_sample(p, 0, 1);
    tui_put_cut(p, 0, 1 + sample, p->w - 1, TUI_DIM, w->rival->text);
}

void
tui_wall_draw(struct tui_wall *w, const struct tui_pane *p)
{
    const bool is_many = tui_wall_is_of_many(w);
    const bool has_list = is_many && p->w >= LIST_FROM && p->h >= 16;
    const bool has_rival =
        !is_many && w->rival && w->rival->source && !w->hides_rival && p->h >= 14;
    const int top = 1 + ((is_many && !has_list) || has_rival);
    const int left = has_list ? LIST : 0;
    tui_wall_gather(w);
    w->at.at = w->at.at < w->n ? w->at.at : w->n > 0 ? w->n - 1 : 0;
    if (!w->has_axis)
        w->axis = tui_axis_usual(w->run[0].source->model);
    const struct tui_pane charts = tui_pane_part(p, top, left, p->h - top, p->w - left);
    const struct tui_pane line = tui_pane_part(p, 1, 1, 1, p->w - 2);
    const struct tui_pane list = tui_pane_part(p, 1, 0, p->h - 1, left - 1);
    w->charts = (struct tui_rect){top, left, charts.h, charts.w};
    w->list = (struct tui_rect){2, 0, has_list ? list.h - 1 : 0, left};
    draw_charts(w, &charts);
    draw_status(w, p);
    if (has_list) {
        draw_list(w, &list);
        tui_divide(p, 1, left - 1, p->h - 1);
    } else if (is_many) {
        draw_legend(w, &line);
    } else if (has_rival) {
        draw_rival(w, &line);
    }
}

/* What stands under the cursor, of all lines of the chart that is selected. */
static void
put_values(const struct tui_wall *w, char *buf, size_t size)
{
    char label[ET_METRIC_NAME], value[TUI_NUMBER], ba[TUI_NUMBER], fact[ETI_FACT_TEXT];
    const struct tui_wall_chart *c = &w->chart[w->at.at];
    const struct tui_across a = tui_wall_across(w, 0);
    const bool is_many = tui_wall_is_of_many(w);
    size_t n = 0;
    for (int i = 0; i < (is_many ? w->n_runs : TUI_WALL_SERIES) && n < size; i++) {
        const int run = is_many ? i : 0;
        const struct etd_series *s =
            is_many       ? tui_wall_series(w, c, i)
            : *c->name[i] ? etd_model_series(w->run[0].source->model, c->name[i])
                          : NULL;
        if (!s || w->run[run].is_hidden)
            continue;
        const struct etd_bin *b =
            n == 0 ? tui_series_at(&a, s, w->cursor * tui_wall_end(w)) : NULL;
        if (b && !is_many)
            n += (size_t)snprintf(buf + n, size - n, "after %sba",
                                  tui_count(b->bin * a.model->width, ba));
        if (n < size)
            n += (size_t)snprintf(buf + n, size - n, "%s%s %s", n > 0 ? "  " : "",
                                  is_many ? name_of(w, i, fact)
                                          : tui_metric_label(s->name, label),
                                  value_of(w, s, run, value));
    }
}

enum tui_role
tui_wall_message(const struct tui_wall *w, char *buf, size_t size)
{
    buf[0] = '\0';
    if (*w->fault) {
        snprintf(buf, size, "x the filter: %s", w->fault);
        return TUI_BAD;
    }
    if (w->is_typing) {
        snprintf(buf, size, "words, a | b, !not, name:regex; enter keeps it");
        return TUI_TEXT;
    }
    if (w->inspects && w->n > 0) {
        put_values(w, buf, size);
        return TUI_FOCUS;
    }
    return TUI_TEXT;
}
