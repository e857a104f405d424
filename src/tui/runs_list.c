/* SPDX-License-Identifier: Apache-2.0 */
/* runs_list.c: the rows of Runs: columns that come and go with the width. */
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

enum { BEGIN = 4, AFTER = 5, LABEL = 9 }; /* AFTER a bar: columns for text */

enum column {
    C_NAME,
    C_STATE,
    C_STARTED,
    C_PROGRESS,
    C_METRIC,
    C_SPARK,
    C_TO,
    C_SPEED,
    C_SEED,
    C_COST,
    C_METHODS,
    COLUMNS
};

/* In the order in which they stand. Where there is little room those with the greatest
 * RANK go first; one is never there below LEAST columns. */
static const struct {
    const char *title;
    int width;
    bool is_number; /* stands at the end of its column */
    int rank, least;
} columns[COLUMNS] = {
    [C_NAME] = {"NAME", 15, false, 0, 0},
    [C_STATE] = {"STATE", 14, false, 1, 0},
    [C_STARTED] = {"STARTED", 11, false, 5, 0},
    [C_PROGRESS] = {"PROGRESS", 15, false, 2, 0},
    [C_METRIC] = {"BEST", 8, true, 3, 0},
    [C_SPARK] = {"LOSS", 10, false, 6, 100},
    [C_TO] = {"BEST IN", 8, true, 7, 0},
    [C_SPEED] = {"samples/s", 9, true, 4, 0},
    [C_SEED] = {"SEED", 6, true, 10, 100},
    [C_COST] = {"COST", 11, true, 8, 0},
    [C_METHODS] = {"ALGORITHMS", 9, false, 9, 100},
};

struct place {
    int x[COLUMNS], w[COLUMNS];  /* x 0: it is not there */
    char metric[ET_METRIC_NAME]; /* that all runs are known by; "": several */
};

const struct eti_config_price *
runs_price(const struct runs *r)
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

/* ---- which columns ---- */

/* The metric by which all runs of the list are known; "": they differ. */
static void
find_metric(const struct runs *r, char out[ET_METRIC_NAME])
{
    json_t *facts;
    size_t i;
    out[0] = '\0';
    json_array_foreach(r->list, i, facts)
    {
        const char *metric = NULL;
        (void)eti_run_metric(facts, &metric);
        if (metric && *out && strcmp(metric, out) != 0) {
            out[0] = '\0';
            return;
        }
        if (metric)
            snprintf(out, ET_METRIC_NAME, "%s", metric);
    }
}

static struct place
find_place(const struct runs *r, int w)
{
    struct place at = {0};
    int used = BEGIN, last = -1;
    find_metric(r, at.metric);
    for (int rank = 0; rank < COLUMNS; rank++)
        for (int i = 0; i < COLUMNS; i++) {
            if (columns[i].rank != rank || w < columns[i].least ||
                (i == C_COST && !runs_price(r)))
                continue;
            int width = columns[i].width;
            if (i == C_METRIC && !*at.metric)
                width += LABEL + 1;
            /* (A target is asked for to be seen.) */
            bool wanted = i == C_TO && *r->target;
            if (used + width > w && rank > 0 && !wanted)
                continue;
            at.w[i] = width;
            used += width + (i == C_METHODS ? 1 : 2);
        }
    if (used - 2 > w) /* a target: the bar gets shorter */
        at.w[C_PROGRESS] -= used - 2 - w < 5 ? used - 2 - w : 5;
    for (int i = 0, x = BEGIN; i < COLUMNS; i++) {
        at.x[i] = at.w[i] ? x : 0;
        x += at.w[i] ? at.w[i] + 2 : 0;
        last = at.w[i] ? i : last;
    }
    if (last >= 0 && last == C_METHODS)
        at.w[last] = w - at.x[last];
    return at;
}

/* ---- cells ---- */

/* TEXT in column C of row Y, cut to its width. */
static void
put_cell(const struct tui_pane *p, int y, const struct place *at, enum column c,
         enum tui_role role, const char *text)
{
    if (!at->x[c])
        return;
    if (columns[c].is_number && tui_width(text) <= at->w[c])
        tui_put_end(p, y, at->x[c] + at->w[c], role, text);
    else
        tui_put_cut(p, y, at->x[c], at->x[c] + at->w[c], role, text);
}

static void
put_progress(const struct runs *r, const struct tui_pane *p, int y,
             const struct place *at, const json_t *facts)
{
    char text[ETI_FACT_TEXT];
    const int x = at->x[C_PROGRESS], part = at->w[C_PROGRESS] - AFTER;
    eti_run_progress(facts, text, sizeof text);
    double done = eti_run_done(facts);
    const char *slash = strchr(text, '/'), *all = slash ? slash + 1 : text;
    if (eti_run_kind(facts) == ETI_STATE_DONE) {
        tui_bar(p, y, x - 1, part + 1, 1, tui_app_phase(r->app));
        tui_putf(p, y, x + part, TUI_TEXT, "%*s", AFTER,
                 tui_width(all) <= AFTER ? all : "100%");
    } else if (isnan(done)) {
        put_cell(p, y, at, C_PROGRESS, TUI_TEXT, text);
    } else {
        tui_bar(p, y, x - 1, part + 1, done, tui_app_phase(r->app));
        tui_putf(p, y, x + part, TUI_TEXT, "%4d%%", (int)(100 * done + 1e-9));
    }
}

/* The best value of the metric that this run is known by, and which that is where
 * others are known by another. */
static void
put_metric(const struct runs *r, const struct tui_pane *p, int y,
           const struct place *at, const json_t *facts)
{
    char number[TUI_NUMBER], label[ET_METRIC_NAME];
    const char *metric = NULL;
    const json_t *best = json_object_get(eti_run_metric(facts, &metric), "best");
    const int x = at->x[C_METRIC], end = x + columns[C_METRIC].width;
    bool is_best = runs_is_best(r, facts);
    if (!x)
        return;
    tui_put_end(
        p, y, end, is_best ? TUI_BEST : TUI_TEXT,
        tui_value(json_is_number(best) ? json_number_value(best) : NAN, number));
    if (*at->metric || !metric)
        return;
    const char *last = strrchr(metric, '/');
    snprintf(label, sizeof label, "%s", last ? last + 1 : metric);
    tui_put_n(p, y, end + 1, TUI_DIM, 0, LABEL, label, strlen(label));
}

static void
put_spark(struct runs *r, const struct tui_pane *p, int y, const struct place *at,
          const json_t *facts, int series)
{
    double value[RUNS_SPARK];
    int n = runs_spark(r, facts, value);
    if (at->x[C_SPARK])
        tui_sparkline(p, y, at->x[C_SPARK], at->w[C_SPARK], value, n,
                      series >= 0 ? (enum tui_role)(TUI_S1 + series % TUI_SERIES)
                                  : TUI_RAW);
}

int
runs_put_methods(const struct tui_pane *p, int y, int x, const json_t *facts)
{
    json_t *v;
    size_t i;
    json_array_foreach(json_object_get(facts, "algorithms"), i, v)
    {
        const char *name = json_string_value(v);
        if (x + tui_width(name) >= p->w) {
            const char *sign = p->grid->glyphs->is_ascii ? ".." : "\u2026";
            const int last = p->w - tui_width(sign);
            if (last - x >= 3) /* some of the name tells more than the sign alone */
                tui_put_cut(p, y, x, p->w, TUI_DIM, name);
            else
                tui_put(p, y, x < last ? x : last, TUI_DIM, sign);
            return p->w;
        }
        x += tui_put(p, y, x, TUI_DIM, name) + 1;
    }
    return x;
}

void
runs_put_tags(const struct tui_pane *p, int y, int x, const json_t *facts)
{
    for (const char *at = runs_fact(facts, "tags"); *(at += strspn(at, " ,"));) {
        size_t n = strcspn(at, " ,");
        x += tui_putf(p, y, x, TUI_TITLE, "#%.*s", (int)n, at) + 1;
        at += n;
    }
}

static void
put_run(struct runs *r, const struct tui_pane *p, int y, const struct place *at,
        const json_t *facts)
{
    char a[TUI_NUMBER], text[ETI_FACT_TEXT];
    enum eti_state_kind kind = eti_run_kind(facts);
    const char *name = runs_fact(facts, "name"), *problem = runs_fact(facts, "problem");
    const struct tui_glyphs *g = p->grid->glyphs;
    const double speed = eti_run_speed(facts);
    int series = runs_series_of(r, facts);
    if (series >= 0)
        tui_put_ch(p, y, 1, g->marked, TUI_MARK, 0);
    tui_put_ch(p, y, 2, tui_state_sign(g, kind), tui_state_role(kind), 0);
    put_cell(p, y, at, C_NAME, TUI_TEXT, name);
    put_cell(p, y, at, C_STATE, tui_state_role(kind), runs_fact(facts, "state"));
    double started = json_number_value(json_object_get(facts, "started"));
    put_cell(p, y, at, C_STARTED, TUI_TEXT,
             eti_run_when(started, today(r), text, sizeof text));
    if (*problem) {
        tui_put_n(p, y, at->x[C_PROGRESS], TUI_BAD, 0, p->w - at->x[C_PROGRESS],
                  problem, strlen(problem));
        return;
    }
    put_progress(r, p, y, at, facts);
    put_metric(r, p, y, at, facts);
    put_spark(r, p, y, at, facts, series);
    put_cell(p, y, at, C_TO, TUI_TEXT, tui_span(runs_time_to(r, facts), a));
    put_cell(p, y, at, C_SPEED, TUI_TEXT,
             isfinite(speed) ? tui_count(llround(speed), a) : "-");
    const char *seed = eti_facts_get(facts, "seed", text);
    put_cell(p, y, at, C_SEED, TUI_TEXT, seed ? seed : "-");
    if (at->x[C_COST]) {
        double cost = eti_run_cost(facts, runs_price(r));
        put_cell(p, y, at, C_COST, TUI_TEXT,
                 isfinite(cost) ? eti_money_text(runs_price(r), cost, a, sizeof a)
                                : "-");
    }
    if (at->x[C_METHODS])
        runs_put_tags(p, y, runs_put_methods(p, y, at->x[C_METHODS], facts), facts);
}

/* ---- the list ---- */

/* "Accuracy" -> "ACC", "Perplexity" -> "PERPLEXI". */
static const char *
metric_title(const struct place *at, char buf[16])
{
    const char *slash = strrchr(at->metric, '/');
    const char *last = slash ? slash + 1 : "best";
    snprintf(buf, 16, "%.8s", strcmp(last, "Accuracy") == 0 ? "ACC" : last);
    for (char *c = buf; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return buf;
}

static void
put_header(const struct runs *r, const struct tui_pane *p, int y,
           const struct place *at)
{
    char metric[16], to[32];
    const char *number = *r->target ? strpbrk(r->target, "<>") : NULL;
    if (number)
        number += 1 + (number[1] == '=');
    snprintf(to, sizeof to, number ? "TO %.5s" : "BEST IN", number);
    for (int i = 0; i < COLUMNS; i++) {
        const char *title = i == C_METRIC ? metric_title(at, metric)
                            : i == C_TO   ? to
                                          : columns[i].title;
        struct place one = *at;
        if (i == C_METRIC)
            one.w[i] = columns[i].width;
        put_cell(p, y, &one, (enum column)i, TUI_DIM, title);
    }
}

void
runs_draw_rows(struct runs *r, const struct tui_pane *p)
{
    const struct place at = find_place(r, p->w);
    r->list_w = p->w;
    tui_list_show(&r->rows, (int)json_array_size(r->list), p->h);
    for (int i = 0; i < p->h && r->rows.top + i < r->rows.n; i++) {
        int row = r->rows.top + i;
        if (row == r->rows.at)
            tui_select(p, i, true);
        put_run(r, p, i, &at, json_array_get(r->list, (size_t)row));
    }
}

void
runs_draw_list(struct runs *r, const struct tui_pane *p)
{
    int rows = p->h - 3;
    const struct tui_pane in = tui_pane_part(p, 2, 0, rows, p->w);
    const struct place at = find_place(r, p->w);
    put_header(r, p, 0, &at);
    tui_rule(p, 1, 0, p->w);
    runs_draw_rows(r, &in);
    int below = r->rows.n - r->rows.top - rows;
    if (below > 0)
        tui_putf(p, p->h - 1, 1, TUI_DIM, "v %d more", below);
}
