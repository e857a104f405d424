/* runs_draw.c: the screen Runs at its sizes.
 *
 *     80x24    the list; below it the run that is selected, and its curve
 *     full     the list on the left with more columns; curves of those that are marked
 *              on the right, below them in what they differ */
#include "config.h"

#include <ctype.h>
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
    FULL_LIST = 108, /* columns of the list at 200 */
    WIDE = 100,      /* from here it has more columns */
};

/* Where the columns of a row begin; the last three end there. */
enum {
    MARK = 1,
    SIGN = 4,
    NAME = 6,
    STARTED = 22,
    PROGRESS = 35,
    METRIC = 57,
    TO = 67,
    SPEED = 79,
    SEED = 81,
    METHODS = 92,
    COST = 12, /* columns that it takes, where there is a price */
};

/* The price of an hour, if one is set. */
static const struct eti_config_price *
price_of(const struct runs *r)
{
    const struct eti_config_price *price = r->app->config.price;
    return price && isfinite(price->hour) ? price : NULL;
}

/* The day that STARTED is told from: of a dump that of the newest run, so that a screen
 * is a function of the runs. */
static double
today(const struct runs *r)
{
    double t = tui_today(r->app), newest = 0;
    json_t *one;
    size_t i;
    if (!r->app->config.is_dump)
        return t;
    json_array_foreach(r->all, i, one) newest =
        fmax(newest, json_number_value(json_object_get(one, "started")));
    return newest;
}

/* ---- cells ---- */

/* 0 .. 1 of "6/16ep"; NaN where that is not known. */
static double
part_done(const char *progress)
{
    double done, of;
    char unit[8];
    return sscanf(progress, "%lf/%lf%7s", &done, &of, unit) == 3 && of > 0 ? done / of
                                                                           : NAN;
}

static void
put_progress(const struct runs *r, const struct tui_pane *p, int y, const json_t *facts,
             enum tui_role role)
{
    char text[ETI_FACT_TEXT];
    char sign = eti_run_sign(facts);
    eti_run_progress(facts, text, sizeof text);
    double done = part_done(text);
    if (sign == '+') {
        const char *slash = strchr(text, '/');
        tui_putf(p, y, PROGRESS, role, "done %8s", slash ? slash + 1 : text);
    } else if (isnan(done)) {
        tui_put(p, y, PROGRESS, role, text);
    } else {
        tui_bar(p, y, PROGRESS, 10, done, r->app->phase);
        tui_putf(p, y, PROGRESS + 11, role, "%3.0f%%", 100 * done);
    }
}

static enum tui_role
role_of(char sign)
{
    return sign == '*'   ? TUI_GOOD
           : sign == 'x' ? TUI_BAD
           : sign == 'p' ? TUI_WARN
                         : TUI_TEXT;
}

static const char *
best_text(const json_t *facts, char buf[TUI_NUMBER])
{
    const char *metric;
    const json_t *best = json_object_get(eti_run_metric(facts, &metric), "best");
    return tui_value(json_is_number(best) ? json_number_value(best) : NAN, buf);
}

/* Returns the column behind them. */
static int
put_methods(const struct tui_pane *p, int y, int x, const json_t *facts)
{
    json_t *v;
    size_t i;
    json_array_foreach(json_object_get(facts, "algorithms"), i, v)
    {
        const char *name = json_string_value(v);
        if (x + tui_width(name) >= p->w) {
            tui_put(p, y, x < p->w - 2 ? x : p->w - 2, TUI_DIM, "..");
            return p->w;
        }
        x += tui_put(p, y, x, TUI_DIM, name) + 1;
    }
    return x;
}

/* "#best #to-keep". */
static void
put_tags(const struct tui_pane *p, int y, int x, const json_t *facts)
{
    for (const char *at = runs_fact(facts, "tags"); *(at += strspn(at, " ,"));) {
        size_t n = strcspn(at, " ,");
        x += tui_putf(p, y, x, TUI_TITLE, "#%.*s", (int)n, at) + 1;
        at += n;
    }
}

static void
put_run(struct runs *r, const struct tui_pane *p, int y, const json_t *facts)
{
    char a[TUI_NUMBER], text[ETI_FACT_TEXT];
    char sign = eti_run_sign(facts);
    const char *name = runs_fact(facts, "name"), *problem = runs_fact(facts, "problem");
    double to = runs_time_to(r, facts);
    enum tui_role role = role_of(sign);
    tui_put(p, y, MARK, TUI_TEXT, runs_is_marked(r, facts) ? "[x]" : "[ ]");
    tui_put_ch(p, y, SIGN, (uint32_t)sign, role, 0);
    tui_put_n(p, y, NAME, role, 0, STARTED - NAME - 1, name, strlen(name));
    double started = json_number_value(json_object_get(facts, "started"));
    tui_put(p, y, STARTED, TUI_TEXT,
            eti_run_when(started, today(r), text, sizeof text));
    if (*problem) {
        tui_put_n(p, y, PROGRESS, TUI_BAD, 0, p->w - PROGRESS, problem,
                  strlen(problem));
        return;
    }
    put_progress(r, p, y, facts, TUI_TEXT);
    tui_put_end(p, y, METRIC, TUI_TEXT, best_text(facts, a));
    tui_put_end(p, y, TO, TUI_TEXT, tui_span(to, a));
    const json_t *speed =
        json_object_get(json_object_get(json_object_get(facts, "metrics"),
                                        "throughput/samples_per_sec"),
                        "last");
    tui_put_end(p, y, SPEED, TUI_TEXT,
                json_is_number(speed) ? tui_count(llround(json_number_value(speed)), a)
                                      : "-");
    if (p->w < WIDE)
        return;
    const char *seed = eti_facts_get(facts, "seed", text);
    tui_put_n(p, y, SEED, TUI_TEXT, 0, METHODS - SEED - 1, seed ? seed : "-",
              strlen(seed ? seed : "-"));
    int x = METHODS;
    if (price_of(r)) {
        double cost = eti_run_cost(facts, price_of(r));
        x += COST;
        tui_put_end(p, y, x - 2, TUI_TEXT,
                    isfinite(cost) ? eti_money_text(price_of(r), cost, a, sizeof a)
                                   : "-");
    }
    put_tags(p, y, put_methods(p, y, x, facts), facts);
}

/* ---- the list ---- */

/* "ACCURACY" -> "ACC": what the runs are known by. */
static const char *
metric_title(const struct runs *r, char buf[16])
{
    const char *metric = NULL;
    for (size_t i = 0; i < json_array_size(r->list) && !metric; i++)
        (void)eti_run_metric(json_array_get(r->list, i), &metric);
    const char *last = metric ? strrchr(metric, '/') + 1 : "best";
    snprintf(buf, 16, "%.8s", strcmp(last, "Accuracy") == 0 ? "ACC" : last);
    for (char *c = buf; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return buf;
}

static void
put_header(const struct runs *r, const struct tui_pane *p, int y)
{
    char metric[16], to[32];
    const char *number = *r->target ? strpbrk(r->target, "<>") : NULL;
    if (number)
        number += 1 + (number[1] == '=');
    snprintf(to, sizeof to, "TO %.9s", number ? number : "BEST");
    tui_put(p, y, MARK + 1, TUI_DIM, "S");
    tui_put(p, y, NAME, TUI_DIM, "NAME");
    tui_put(p, y, STARTED, TUI_DIM, "STARTED");
    tui_put(p, y, PROGRESS, TUI_DIM, "PROGRESS");
    tui_put_end(p, y, METRIC, TUI_DIM, metric_title(r, metric));
    tui_put_end(p, y, TO, TUI_DIM, to);
    tui_put_end(p, y, SPEED, TUI_DIM, "samples/s");
    if (p->w >= WIDE) {
        tui_put(p, y, SEED, TUI_DIM, "SEED");
        int x = METHODS + (price_of(r) ? COST : 0);
        if (price_of(r))
            tui_put_end(p, y, x - 2, TUI_DIM, "COST");
        tui_put(p, y, x, TUI_DIM, "ALGORITHMS");
    }
}

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

static void
put_rows(struct runs *r, const struct tui_pane *p)
{
    r->list_w = p->w;
    tui_list_show(&r->rows, (int)json_array_size(r->list), p->h);
    for (int i = 0; i < p->h && r->rows.top + i < r->rows.n; i++) {
        int at = r->rows.top + i;
        if (at == r->rows.at)
            tui_put_ch(p, i, 0, p->grid->glyphs->selected, TUI_FOCUS, 0);
        put_run(r, p, i, json_array_get(r->list, (size_t)at));
    }
}

static void
draw_list(struct runs *r, const struct tui_pane *p)
{
    int rows = p->h - 3;
    const struct tui_pane in = tui_pane_part(p, 2, 0, rows, p->w);
    put_header(r, p, 0);
    tui_fill(p, 1, 0, p->w, p->grid->glyphs->across, TUI_DIM);
    put_rows(r, &in);
    tui_put(p, p->h - 1, 1, TUI_DIM,
            "* running  + finished  x failed  p stopped, resumable");
    int below = r->rows.n - r->rows.top - rows;
    if (below > 0)
        tui_putf(p, p->h - 1, 58, TUI_DIM, "v %d more", below);
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
static const json_t *
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

static void
put_versus(const struct runs *r, const struct tui_pane *p, int y, const json_t *facts)
{
    const json_t *other = other_than(r, facts);
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
    put_tags(p, 1, x, facts);
    x = 1 + tui_put(p, 2, 1, TUI_DIM, "on: ");
    if (json_array_size(json_object_get(facts, "algorithms")) == 0)
        tui_put(p, 2, x, TUI_DIM, "nothing");
    (void)put_methods(p, 2, x, facts);
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
    int n = 0, h = p->h - 2, wide = FULL_LIST + (price_of(r) ? COST : 0);
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
    draw_list(r, &list);
    draw_detail(r, &detail);
    for (int y = 0; y < h; y++)
        tui_put_ch(p, 1 + y, x, p->grid->glyphs->down, TUI_DIM, 0);
    tui_title(&side, 0, metric, false);
    runs_draw_curves(r, &chart, marked, n, metric);
    runs_draw_differences(r, &below);
    tui_fill(p, p->h - 1, 0, p->w, p->grid->glyphs->across, TUI_DIM);
}

void
runs_draw(struct tui_app *app, void *self, const struct tui_pane *p)
{
    struct runs *r = self;
    enum tui_size size = tui_size_of(app->grid.rows, app->grid.cols);
    const struct tui_pane rest = tui_pane_part(p, 1, 0, p->h - 1, p->w);
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
        put_rows(r, &rest);
    } else if (size == TUI_SMALL || r->is_full) {
        draw_list(r, &rest);
    } else if (size == TUI_FULL) {
        draw_full(r, p);
    } else {
        int low =
            tui_border_place(&app->borders, p,
                             &(struct tui_border){"runs.detail", true, p->h - DETAIL, 6,
                                                  p->h - 4, 0, p->w});
        const struct tui_pane list = tui_pane_part(p, 1, 0, low - 1, p->w);
        const struct tui_pane detail = tui_pane_part(p, low, 0, p->h - low, p->w);
        draw_list(r, &list);
        draw_detail(r, &detail);
    }
}
