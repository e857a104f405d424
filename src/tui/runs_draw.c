/* SPDX-License-Identifier: Apache-2.0 */
/* runs_draw.c: the screen Runs at its sizes.
 *
 *     80x24    the list; below it the run that is selected, and its curve
 *     full     the list on the left with more columns; curves of those that are marked
 *              on the right, below them in what they differ */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/loggers/progress.h"
#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/monitor.h"
#include "tui/runs.h"

enum {
    DETAIL = 9,      /* lines below the list at 80x24 */
    FULL_LIST = 120, /* columns of the list at 200 */
    COST = 13,       /* of the column that a price adds */
};

static void
draw_status(struct runs *r, const struct tui_pane *p)
{
    char text[120];
    size_t n = json_array_size(r->list);
    tui_put(p, 0, 1, TUI_TITLE, "/");
    if (r->is_typing)
        tui_field_draw(&r->filter, p, 0, 3, p->w / 2 - 4, *r->fault ? r->fault : NULL);
    else
        tui_put_n(p, 0, 3, *r->filter.text ? TUI_TEXT : TUI_DIM, 0, p->w / 2 - 4,
                  *r->filter.text ? r->filter.text : "all",
                  *r->filter.text ? r->filter.n : 3);
    snprintf(text, sizeof text, "%zu of %lld runs   %s%.30s", n, (long long)r->of,
             r->is_partial ? "still reading" : "sort: ",
             r->is_partial ? ""
             : *r->sort    ? r->sort
                           : "newest");
    size_t left = *r->filter.text && !r->is_typing ? r->filter.n : 3;
    int from = r->is_typing || (int)left > p->w / 2 - 4 ? p->w / 2 : 3 + (int)left + 1;
    tui_put_right(p, 0, from, p->w - 1, TUI_TEXT, text);
}

/* ---- one run ---- */

static void
put_fact(const struct tui_pane *p, int y, int *x, const char *label,
         const json_t *facts, const char *key)
{
    char text[ETI_FACT_TEXT];
    const char *value = eti_facts_get(facts, key, text);
    if (value)
        *x +=
            tui_putf(p, y, *x, TUI_TEXT, "%s%s%.40s", label, *label ? " " : "", value) +
            2;
}

/* The marked run that the selected one is measured by. */
static json_t *
other_than(const struct runs *r, const json_t *facts)
{
    json_t *one;
    size_t i;
    json_array_foreach(r->all, i,
                       one) if (one != facts && runs_is_marked(r, one) &&
                                strcmp(runs_fact(one, "directory"),
                                       runs_fact(facts, "directory")) != 0) return one;
    return NULL;
}

/* Were the two evaluated on other data? Says so from column X on. */
static bool
put_unlike(const struct runs *r, const struct tui_pane *p, int y, int x, json_t *facts,
           json_t *other)
{
    const struct eti_comparison k = {
        .cx = r->app->cx, .n = 2, .run = {{.facts = facts}, {.facts = other}}};
    json_t *differences = eti_comparison_differences(&k);
    const char *unlike = eti_comparison_unlike(differences);
    if (unlike) {
        char text[160];
        snprintf(text, sizeof text, "! evaluated on other data: %.100s differs",
                 unlike);
        tui_put_cut(p, y, x, p->w - 1, TUI_WARN, text);
    }
    json_decref(differences);
    return unlike != NULL;
}

static void
put_versus(const struct runs *r, const struct tui_pane *p, int y, json_t *facts)
{
    json_t *other = other_than(r, facts);
    const char *metric;
    char label[ET_METRIC_NAME];
    int x = 1;
    if (!other) {
        tui_put(p, y, x, TUI_DIM, "mark another run to measure this one by it");
        return;
    }
    double a = runs_time_to(r, facts), b = runs_time_to(r, other);
    const json_t *m = json_object_get(eti_run_metric(facts, &metric), "best");
    const json_t *n = json_object_get(eti_run_metric(other, &metric), "best");
    x += tui_putf(p, y, x, TUI_TEXT, "vs %s:", runs_fact(other, "name")) + 1;
    if (put_unlike(r, p, y, x, facts, other))
        return; /* no number of the one is worth anything beside the other's */
    if (!(a > 0 && b > 0) && !(json_is_number(m) && json_is_number(n)))
        tui_put(p, y, x, TUI_DIM, "one of the two was not evaluated");
    if (a > 0 && b > 0)
        x += tui_putf(p, y, x, a <= b ? TUI_GOOD : TUI_WARN, "%.2gx %s to %s",
                      a <= b ? b / a : a / b, a <= b ? "faster" : "slower",
                      *r->target ? "the target" : "its best") +
             2;
    if (json_is_number(m) && json_is_number(n))
        tui_putf(p, y, x, TUI_TEXT, "%+.4g %s",
                 json_number_value(m) - json_number_value(n),
                 tui_metric_label(metric, label));
}

static void
draw_detail(struct runs *r, const struct tui_pane *p)
{
    json_t *facts = runs_selected(r);
    int x = 1;
    if (!facts) {
        tui_title(p, 0, "", false);
        return;
    }
    char title[ET_METRIC_NAME + 80];
    snprintf(title, sizeof title, "%.64s   %s", runs_fact(facts, "name"),
             runs_metric(r, facts));
    tui_title(p, 0, title, false);
    put_fact(p, 1, &x, "", facts, "recipe");
    put_fact(p, 1, &x, "", facts, "state");
    put_fact(p, 1, &x, "", facts, "model");
    put_fact(p, 1, &x, "seed", facts, "seed");
    runs_put_tags(p, 1, x, facts);
    x = 1 + tui_put(p, 2, 1, TUI_DIM, "on: ");
    if (json_array_size(json_object_get(facts, "algorithms")) == 0)
        tui_put(p, 2, x, TUI_DIM, "nothing");
    (void)runs_put_methods(p, 2, x, facts);
    put_versus(r, p, 3, facts);
    const json_t *other = other_than(r, facts);
    const json_t *both[] = {facts, other};
    const struct tui_pane chart = tui_pane_part(p, 4, 0, p->h - 4, p->w);
    if (chart.h > 2)
        runs_draw_curves(r, &chart, both, other ? 2 : 1, runs_metric(r, facts));
}

/* ---- all ---- */

static void
draw_empty(struct runs *r, const struct tui_pane *p)
{
    tui_put(p, 3, 3, TUI_TEXT,
            "There is no run in ./runs, and none is known elsewhere.");
    tui_put(p, 5, 3, TUI_FOCUS, "1");
    tui_put(p, 5, 6, TUI_TEXT,
            "Compose makes a recipe and launches it; or, in a shell,");
    tui_put(p, 6, 6, TUI_TEXT, "etude train -m first_minute");
    tui_add_spot(r->app, p->y + 5, p->x + 3, 40, TUI_DO_everywhere_compose);
}

static void
draw_none(const struct tui_pane *p)
{
    tui_put(p, 4, 3, TUI_DIM, "no run passes the filter: esc takes it away");
}

static void
draw_full(struct runs *r, const struct tui_pane *p)
{
    const json_t *marked[TUI_R_CURVES];
    struct tui_borders *b = &r->app->borders;
    int n = 0, h = p->h - 2, wide = FULL_LIST + (runs_price(r) ? COST : 0);
    int x = tui_border_place(
        b, p, &(struct tui_border){"runs.side", false, wide, 60, p->w - 40, 1, h});
    int low = tui_border_place(
        b, p,
        &(struct tui_border){"runs.detail", true, 1 + h - DETAIL - 6, 6, h - 4, 0, x});
    int half =
        tui_border_place(b, p,
                         &(struct tui_border){"runs.differences", true, 2 + h / 2, 8,
                                              h - 4, x + 1, p->w - x - 1});
    int right = p->w - x - 1;
    json_t *one;
    size_t i;
    json_array_foreach(r->all, i, one) if (runs_is_marked(r, one) && n < TUI_R_CURVES)
        marked[n++] = one;
    if (n == 0 && runs_selected(r))
        marked[n++] = runs_selected(r);
    const char *metric = n > 0 ? runs_metric(r, marked[0]) : "";
    const struct tui_pane list = tui_pane_part(p, 1, 0, low - 1, x);
    const struct tui_pane detail = tui_pane_part(p, low, 0, 1 + h - low, x);
    const struct tui_pane side = tui_pane_part(p, 1, x + 1, h, right);
    const struct tui_pane chart = tui_pane_part(&side, 1, 0, half - 2, right);
    const struct tui_pane below =
        tui_pane_part(&side, half - 1, 0, 1 + h - half, right);
    runs_draw_list(r, &list);
    draw_detail(r, &detail);
    tui_divide(p, 1, x, h);
    tui_title(&side, 0, metric, false);
    runs_draw_curves(r, &chart, marked, n, metric);
    runs_draw_differences(r, &below);
    tui_rule(p, p->h - 1, 0, p->w);
}

void
runs_draw(struct tui_app *app, void *self, const struct tui_pane *p)
{
    struct runs *r = self;
    enum tui_size size = tui_size_of(app->grid.rows, app->grid.cols);
    const struct tui_pane rest = tui_pane_part(p, 1, 0, p->h - 1, p->w);
    if (r->wall.is_open) {
        tui_wall_draw(&r->wall, p);
        return;
    }
    if (r->results.is_open) {
        tui_results_draw(&r->results, p);
        return;
    }
    if (r->samples.is_open) {
        tui_samples_draw(&r->samples, p);
        return;
    }
    if (r->compares) {
        runs_draw_compare(r, p);
        return;
    }
    draw_status(r, p);
    if (json_array_size(r->all) == 0) {
        draw_empty(r, p);
    } else if (json_array_size(r->list) == 0) {
        draw_none(p);
    } else if (size == TUI_TINY) {
        runs_draw_rows(r, &rest);
    } else if (size == TUI_SMALL || r->is_full) {
        runs_draw_list(r, &rest);
    } else if (size == TUI_FULL) {
        draw_full(r, p);
    } else {
        int low =
            tui_border_place(&app->borders, p,
                             &(struct tui_border){"runs.detail", true, p->h - DETAIL, 6,
                                                  p->h - 4, 0, p->w});
        const struct tui_pane list = tui_pane_part(p, 1, 0, low - 1, p->w);
        const struct tui_pane detail = tui_pane_part(p, low, 0, p->h - low, p->w);
        runs_draw_list(r, &list);
        draw_detail(r, &detail);
    }
}
