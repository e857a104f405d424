/* SPDX-License-Identifier: Apache-2.0 */
/* walls.c: a wall of charts without a screen around it: its runs and their lines, what
 * is selected, which part of the axis is shown, and what the mouse hits. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tui/made.h"
#include "tui/wall.h"

/* ---- a wall of several runs ---- */

/* A wall without a screen around it, of the runs of M [N]: the first is watched, the
 * others are its own. */
static struct tui_wall
open_wall(struct made *m, struct made **others, int n)
{
    struct tui_wall w = {0};
    if (tui_wall_open(&w, m->app) != ET_OK || !tui_wall_add(&w, &m->source, false))
        bail("no wall");
    for (int i = 0; i < n; i++)
        if (!tui_wall_add(&w, &others[i]->source, true))
            bail("no room for run %d", i);
    return w;
}

/* A run whose loss is LOSS, and half of that in the last of COUNT batches. */
static struct made *
make_loss(struct et_ctx *cx, const char *name, double loss, int count)
{
    char facts[160];
    snprintf(facts, sizeof facts,
             "{\"name\": \"%s\", \"state\": \"failed\", \"seed\": %d}", name, count);
    struct made *m = made_run(cx, facts);
    made_state(m, "running");
    for (int i = 0; i < count; i++) {
        m->at.t += 1;
        m->at.ba = i + 1;
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL,
                 {"loss/train/total", i + 1 < count ? loss : loss / 2});
    }
    return m;
}

static void
test_runs_of_wall(struct et_ctx *cx)
{
    struct made *m = make_loss(cx, "one", 1, 10);
    struct made *more[] = {make_loss(cx, "two", 2, 20), make_loss(cx, "three", 3, 40)};
    made_open(m, TUI_IN_monitor, 36, 120);
    struct tui_wall w = open_wall(m, more, 2);
    w.in_runs = true;
    w.runs = (struct tui_list){.n = 3, .page = 3, .at = 2};
    tui_wall_act(&w, TUI_DO_wall_pin);
    is_int(w.pinned, 2, "the selected run is pinned");
    tui_wall_act(&w, TUI_DO_wall_pin);
    is_int(w.pinned, -1, "and no more");
    tui_wall_act(&w, TUI_DO_wall_pin);
    tui_wall_act(&w, TUI_DO_wall_hide);
    ok(w.run[2].is_hidden, "it is hidden");
    is_near(tui_wall_end(&w), 20, 1e-9, "the axis ends with those that are shown");
    w.inspects = false;
    w.in_runs = false;
    tui_wall_act(&w, TUI_DO_wall_inspect);
    is_near(w.cursor, 1, 1e-9, "where the cursor begins");
    w.in_runs = true;
    tui_wall_act(&w, TUI_DO_wall_hide);
    ok(!w.run[2].is_hidden, "and shown again");
    is_near(tui_wall_end(&w), 40, 1e-9, "which the axis follows");
    w.runs.at = 1;
    tui_wall_act(&w, TUI_DO_wall_remove);
    ok(w.n_runs == 2 && w.run[1].series == 2, "one is taken out, colours stay");
    is_int(w.pinned, 1, "and the pin stays on its run");
    struct made *four = make_loss(cx, "four", 4, 5);
    tui_wall_add(&w, &four->source, true);
    is_int(w.run[2].series, 1, "one that is added has the colour that is free");
    w.runs.at = 0;
    tui_wall_act(&w, TUI_DO_wall_remove);
    is_int(w.n_runs, 3, "the run that is watched stays");
    w.runs.at = 1;
    tui_wall_act(&w, TUI_DO_wall_remove);
    is_int(w.pinned, -1, "the pin goes with its run");
    ok(w.in_runs, "with two runs the keys stay in the list");
    tui_wall_act(&w, TUI_DO_wall_remove);
    ok(w.n_runs == 1 && !w.in_runs, "with one there is no list");
    for (int i = 1; i < TUI_WALL_RUNS; i++) {
        struct made *one = make_loss(cx, "more", 1, 3);
        ok(tui_wall_add(&w, &one->source, true), "there is room for run %d", i + 1);
    }
    struct made *last = make_loss(cx, "last", 1, 3);
    ok(!tui_wall_add(&w, &last->source, true), "and for no more");
    tui_wall_close(&w);
    made_free(&m);
}

/* What the lines of a chart are, and what is said of each. */
static void
test_lines_of_wall(struct et_ctx *cx)
{
    const struct tui_wall_chart chart = {.name = {"loss/train/total"}};
    struct tui_plot_line line[TUI_WALL_LINES];
    struct made *m = make_loss(cx, "one", 1, 10);
    struct made *more[] = {make_loss(cx, "two", 2, 20), make_loss(cx, "three", 3, 40),
                           make_loss(cx, "four", 4, 30)};
    made_open(m, TUI_IN_monitor, 36, 120);
    struct tui_wall w = open_wall(m, more, 3);
    static const struct {
        int pinned, hidden, n, order[4];
    } rows[] = {
        {-1, -1, 4, {3, 2, 1, 0}},
        {2, -1, 4, {3, 1, 0, 2}},
        {3, 1, 3, {2, 0, 3}},
        {-1, 0, 3, {3, 2, 1}},
    };
    w.run[1].series = 5; /* the second has not the second colour */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w.pinned = rows[i].pinned;
        for (int k = 0; k < 4; k++)
            w.run[k].is_hidden = k == rows[i].hidden;
        is_int(tui_wall_lines(&w, &chart, line), rows[i].n,
               "a line for each run shown");
        for (int k = 0; k < rows[i].n; k++) {
            const int run = rows[i].order[k], series = run == 1 ? 5 : run;
            ok(line[k].role == (enum tui_role)(TUI_S1 + series) &&
                   line[k].dash == series % 4 &&
                   line[k].mark == tui_glyphs_ascii.series[series],
               "line %d is run %d, with its colour, mark and dash", k, run);
        }
    }
    const struct etd_series *s = tui_wall_series(&w, &chart, 2);
    is_near(tui_wall_value(&w, s, 2), 1.5, 1e-9, "the newest value of a run");
    w.inspects = true;
    w.cursor = 0.5;
    is_near(tui_wall_value(&w, s, 2), 3, 1e-9, "or that under the cursor");
    ok(isnan(tui_wall_value(&w, NULL, 2)), "or none");
    more[1]->source.link = TUI_LINK_ENDED;
    ok(tui_wall_across(&w, 2).is_over && !tui_wall_across(&w, 1).is_over,
       "a run whose line has ended is over");
    tui_wall_close(&w);
    made_free(&m);
}

static const char *
draw_wall(struct tui_wall *w, int rows, int cols)
{
    static char *text;
    struct tui_grid g;
    size_t n;
    free(text);
    FILE *f = open_memstream(&text, &n);
    if (!f || tui_grid_init(&g, w->app->cx, &tui_glyphs_ascii, rows, cols) != ET_OK)
        bail("no memory for a wall");
    const struct tui_pane all = tui_pane_of(&g);
    tui_wall_draw(w, &all);
    tui_grid_print(&g, f);
    fclose(f);
    tui_grid_release(&g);
    return text;
}

static void
test_drawn(struct et_ctx *cx)
{
    struct made *m = make_loss(cx, "one", 1, 10);
    struct made *more[] = {make_loss(cx, "two", 2, 20), make_loss(cx, "three", 3, 40)};
    made_open(m, TUI_IN_monitor, 36, 120);
    struct tui_wall w = open_wall(m, more, 2);
    const char *text = draw_wall(&w, 34, 120);
    ok(strstr(text, "loss/train .5000") != NULL, "a title has the first run's value");
    ok(strstr(text, "one") && strstr(text, "two") && strstr(text, "three") &&
           strstr(text, "1.0000") && strstr(text, "1.5000"),
       "the list each run's own");
    w.pinned = 2;
    w.runs.at = 1;
    text = draw_wall(&w, 34, 120);
    ok(strstr(text, "loss/train 1.5000") != NULL, "or the pinned run's value");
    ok(strstr(text, "after 20ba") != NULL, "of the selected run more is said");
    ok(strstr(text, "seed          ") && strstr(text, " 20") != NULL, "its seed,");
    ok(strstr(text, "running") && !strstr(text, "failed"), "its state, as it goes on");
    more[0]->source.link = TUI_LINK_ENDED;
    text = draw_wall(&w, 34, 120);
    ok(strstr(text, "failed") && !strstr(text, "running"), "or as its files say");
    snprintf(more[0]->source.problem, sizeof more[0]->source.problem, "no such host");
    text = draw_wall(&w, 34, 120);
    ok(strstr(text, "no such host") != NULL, "and what is wrong with it");
    char buf[400];
    w.inspects = true;
    w.cursor = 1;
    w.run[1].is_hidden = true;
    (void)tui_wall_message(&w, buf, sizeof buf);
    is_str(buf, "one .5000  three 1.5000",
           "the cursor's values are of runs that are shown");
    tui_wall_close(&w);
    made_free(&m);
}

/* ---- moving on a wall ---- */

static void
test_moves(struct et_ctx *cx)
{
    static const struct {
        enum tui_action action;
        bool is_full;
        int from, to;
        const char *name;
    } rows[] = {
        {TUI_DO_everywhere_down, false, 1, 4, "down goes to the next row"},
        {TUI_DO_everywhere_down, false, 8, 9, "from above the last row to the last"},
        {TUI_DO_everywhere_up, false, 4, 1, "up to the row before"},
        {TUI_DO_everywhere_up, false, 1, 1, "and not from the first"},
        {TUI_DO_everywhere_right, false, 2, 3, "right on to the next row"},
        {TUI_DO_everywhere_right, false, 9, 9, "and not from the last"},
        {TUI_DO_everywhere_left, false, 0, 0, "nor left from the first"},
        {TUI_DO_everywhere_page_down, false, 1, 7, "a page"},
        {TUI_DO_everywhere_page_down, false, 5, 9, "or to the last"},
        {TUI_DO_everywhere_page_up, false, 7, 1, "back"},
        {TUI_DO_everywhere_page_up, false, 4, 0, "or to the first"},
        {TUI_DO_everywhere_down, true, 4, 5, "one at a time where one is shown alone"},
        {TUI_DO_everywhere_up, true, 4, 3, "up, too"},
    };
    struct made *m = make_loss(cx, "one", 1, 10);
    made_open(m, TUI_IN_monitor, 36, 120);
    struct tui_wall w = open_wall(m, NULL, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w.n = 10;
        w.cols = 3;
        w.rows = 2;
        w.is_full = rows[i].is_full;
        w.at.at = rows[i].from;
        tui_wall_act(&w, rows[i].action);
        is_int(w.at.at, rows[i].to, "%s", rows[i].name);
    }
    w.is_full = false;
    w.n = 0;
    for (int i = 0; i < 12; i++)
        tui_wall_act(&w, TUI_DO_wall_more);
    is_int(w.more, 3, "three more columns are the most");
    for (int i = 0; i < 12; i++)
        tui_wall_act(&w, TUI_DO_wall_fewer);
    is_int(w.more, -2, "two fewer the least");
    for (int i = 0; i < 30; i++)
        tui_wall_act(&w, TUI_DO_wall_smoother);
    is_int(w.smooth, TUI_SMOOTH_MOST, "there is a most of smoothing");
    for (int i = 0; i < 30; i++)
        tui_wall_act(&w, TUI_DO_wall_rougher);
    is_int(w.smooth, 0, "and none");
    tui_wall_close(&w);
    made_free(&m);
}

static void
test_range(struct et_ctx *cx)
{
    struct made *m = make_loss(cx, "one", 1, 10);
    made_open(m, TUI_IN_monitor, 36, 120);
    struct tui_wall w = open_wall(m, NULL, 0);
    tui_wall_act(&w, TUI_DO_wall_zoom_in);
    ok(w.from == 0.5 && w.to == 1, "without a cursor one looks closer at the end");
    tui_wall_act(&w, TUI_DO_wall_zoom_out);
    ok(w.from == 0 && w.to == 1, "and at all again");
    tui_wall_act(&w, TUI_DO_wall_zoom_out);
    ok(w.from == 0 && w.to == 1, "which is the most");
    w.inspects = true;
    w.cursor = 0.25;
    tui_wall_act(&w, TUI_DO_wall_zoom_in);
    ok(w.from == 0.125 && w.to == 0.625, "with one at its place, which it keeps");
    tui_wall_act(&w, TUI_DO_everywhere_right);
    is_near(w.cursor, 0.255, 1e-12, "it moves by a hundredth of what is shown");
    w.cursor = 0.625;
    tui_wall_act(&w, TUI_DO_everywhere_right);
    is_near(w.from, 0.25, 1e-12, "what is shown follows it");
    is_near(w.to, 0.75, 1e-12, "to the right");
    w.cursor = 0.25;
    tui_wall_act(&w, TUI_DO_everywhere_left);
    is_near(w.from, 0.125, 1e-12, "and to the left");
    for (int i = 0; i < 200; i++)
        tui_wall_act(&w, TUI_DO_everywhere_left);
    ok(w.cursor == 0 && w.from == 0 && w.to == 0.5, "as far as the beginning");
    for (int i = 0; i < 400; i++)
        tui_wall_act(&w, TUI_DO_everywhere_right);
    ok(w.cursor == 1 && w.from == 0.5 && w.to == 1, "and as far as the end");
    tui_wall_close(&w);
    made_free(&m);
}

static void
test_pointing(struct et_ctx *cx)
{
    struct made *m = make_loss(cx, "one", 1, 10);
    struct made *more[] = {make_loss(cx, "two", 2, 20)};
    made_open(m, TUI_IN_monitor, 36, 120);
    struct tui_wall w = open_wall(m, more, 1);
    struct tui_mouse p = {.what = TUI_CLICK};
    w.n = 20;
    w.cols = 3;
    w.rows = 2;
    w.charts = (struct tui_rect){1, 30, 20, 90};
    w.list = (struct tui_rect){2, 0, 10, 30};
    w.at.at = 0;
    w.in_runs = true;
    p.y = 1 + 12;
    p.x = 30 + 35;
    tui_wall_mouse(&w, &p);
    ok(w.at.at == 4 && !w.is_full && !w.in_runs,
       "a click selects the chart in that row and column: %d", w.at.at);
    p.x = 30 + 65;
    tui_wall_mouse(&w, &p);
    ok(w.at.at == 5 && !w.is_full, "another one");
    tui_wall_mouse(&w, &p);
    ok(w.at.at == 5 && w.is_full, "one on the selected chart shows it alone");
    tui_wall_mouse(&w, &p);
    ok(!w.is_full, "and all again");
    w.at.at = 13; /* the third page */
    p.y = 1 + 2;
    p.x = 30 + 2;
    tui_wall_mouse(&w, &p);
    is_int(w.at.at, 12, "on a later page it is a chart of that page");
    p.y = 2 + 1;
    p.x = 5;
    tui_wall_mouse(&w, &p);
    ok(w.in_runs && w.runs.at == 1, "one on the list selects the run there");
    p.what = TUI_RIGHT_CLICK;
    p.y = 1 + 2;
    w.from = 0.5;
    w.to = 1;
    p.x = 30 + 30 + TUI_PLOT_LABEL + 1;
    tui_wall_mouse(&w, &p);
    ok(w.inspects && w.at.at == 13, "a right click puts the cursor into that chart");
    is_near(w.cursor, 0.5, 1e-9, "at the beginning of what is shown");
    p.x = 30 + 30 + TUI_PLOT_LABEL + 1 + (30 - TUI_PLOT_LABEL - 3);
    tui_wall_mouse(&w, &p);
    is_near(w.cursor, 1, 1e-9, "and at its end");
    tui_wall_close(&w);
    made_free(&m);
}

/* esc undoes one thing after the other. */
static void
test_esc(struct et_ctx *cx)
{
    struct made *m = make_loss(cx, "one", 1, 10);
    struct made *more[] = {make_loss(cx, "two", 2, 20)};
    made_open(m, TUI_IN_monitor, 36, 120);
    struct tui_wall w = open_wall(m, more, 1);
    w.inspects = w.is_full = w.in_runs = w.is_typing = true;
    tui_wall_key(&w, 'l');
    tui_wall_key(&w, TUI_K_ENTER);
    ok(w.sieve && !w.is_typing, "a filter holds");
    w.at.at = 1;
    tui_wall_act(&w, TUI_DO_everywhere_close);
    ok(!w.inspects && w.is_full, "first the cursor goes");
    tui_wall_act(&w, TUI_DO_everywhere_close);
    ok(!w.is_full && *w.filter.text, "then the chart that is alone");
    tui_wall_act(&w, TUI_DO_everywhere_close);
    ok(!*w.filter.text && !w.sieve && w.in_runs && w.at.at == 0, "then the filter");
    tui_wall_act(&w, TUI_DO_everywhere_close);
    ok(!w.in_runs && w.is_open, "then the list of runs");
    w.is_typing = true;
    tui_wall_key(&w, 'l');
    tui_wall_key(&w, TUI_K_ESC);
    ok(!*w.filter.text && !w.is_typing && !w.sieve,
       "esc while one types takes it away");
    tui_wall_act(&w, TUI_DO_everywhere_close);
    ok(!w.is_open, "and the wall last");
    made_free(&m);
}

int
main(void)
{
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_runs_of_wall(cx);
    test_lines_of_wall(cx);
    test_drawn(cx);
    test_moves(cx);
    test_range(cx);
    test_pointing(cx);
    test_esc(cx);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
