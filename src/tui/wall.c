/* SPDX-License-Identifier: Apache-2.0 */
/* wall.c: what keys do on the wall of charts: see wall.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/wall.h"
#include "tui/workers.h"

static const double SLICE = 0.02; /* seconds of a tick that a run's history may take */
enum { NARROWER = -2, WIDER = 3 };

/* ---- begin and end ---- */

et_status
tui_wall_open(struct tui_wall *w, struct tui_app *app)
{
    void *block;
    *w = (struct tui_wall){
        .app = app, .pinned = -1, .smooth = TUI_SMOOTH_USUAL, .to = 1, .cursor = 1};
    ET_TRY(et_alloc(app->cx, sizeof *w->point * TUI_WALL_LINES * ETD_BINS, &block));
    w->point = block;
    w->is_open = true;
    return ET_OK;
}

static void
release_run(struct tui_wall_run *r)
{
    if (r->is_owned)
        tui_source_free(&r->source);
}

void
tui_wall_close(struct tui_wall *w)
{
    for (int i = 0; i < w->n_runs; i++)
        release_run(&w->run[i]);
    eti_filter_free(&w->sieve);
    if (w->app) {
        et_free(w->app->cx, w->point);
        et_free(w->app->cx, w->chart);
    }
    *w = (struct tui_wall){0};
}

/* The first colour that no run has. */
static int
free_series(const struct tui_wall *w)
{
    for (int k = 0; k < TUI_WALL_RUNS; k++) {
        bool is_taken = false;
        for (int i = 0; i < w->n_runs; i++)
            is_taken = is_taken || w->run[i].series == k;
        if (!is_taken)
            return k;
    }
    return 0;
}

bool
tui_wall_add(struct tui_wall *w, struct tui_source *source, bool owns)
{
    if (w->n_runs == TUI_WALL_RUNS) {
        tui_say(w->app, TUI_WARN, "! charts have room for the lines of %d runs",
                TUI_WALL_RUNS);
        if (owns)
            tui_source_free(&source);
        return false;
    }
    const struct tui_wall_run run = {
        .source = source, .is_owned = owns, .series = free_series(w)};
    w->run[w->n_runs++] = run;
    return true;
}

/* ---- runs ---- */

static void
named(struct tui_app *app, void *data, int id, const char *text)
{
    struct tui_wall *w = data;
    struct tui_source *source;
    (void)id;
    if (!*text)
        return;
    if (tui_workers_find(app, text, &source) != ET_OK)
        tui_say_error(app);
    else if (tui_wall_add(w, source, true))
        w->runs.at = w->n_runs - 1;
}

static void
ask_run(struct tui_wall *w)
{
    tui_popup_prompt(&w->app->popup, w->app->cx, "a run to add: RUN, or RUN@WORKER",
                     "");
    w->app->popup.done = named;
    w->app->popup.data = w;
}

static void
take_out(struct tui_wall *w, int i)
{
    release_run(&w->run[i]);
    memmove(&w->run[i], &w->run[i + 1], (size_t)(w->n_runs - i - 1) * sizeof *w->run);
    w->n_runs--;
    w->pinned = w->pinned == i ? -1 : w->pinned > i ? w->pinned - 1 : w->pinned;
    w->in_runs = w->in_runs && tui_wall_is_of_many(w);
}

/* Watches run I: what is drawn here of it stays. */
static void
drill_in(struct tui_wall *w, int i)
{
    struct tui_app *app = w->app;
    struct tui_source *source = w->run[i].source;
    if (!w->run[i].is_owned) {
        tui_wall_close(w); /* it is watched already */
        tui_app_go(app, TUI_IN_monitor);
        return;
    }
    if (*source->place || !json_object_get(source->facts, "directory")) {
        w->run[i].is_owned = false; /* there is one line to another machine */
        take_out(w, i);
    } else if (tui_source_dir(app->cx, json_copy(source->facts), &source) != ET_OK) {
        tui_say_error(app);
        return;
    }
    tui_app_attach(app, &source);
    tui_app_go(app, TUI_IN_monitor);
}

static bool
act_on_runs(struct tui_wall *w, enum tui_action action)
{
    const int at = w->runs.at;
    if (!w->in_runs || at >= w->n_runs)
        return false;
    if (tui_list_act(&w->runs, action))
        return true;
    switch (action) {
    case TUI_DO_wall_open:
        drill_in(w, at);
        return true;
    case TUI_DO_wall_hide:
        w->run[at].is_hidden = !w->run[at].is_hidden;
        return true;
    case TUI_DO_wall_pin:
        w->pinned = w->pinned == at ? -1 : at;
        return true;
    case TUI_DO_wall_remove:
        if (!w->run[at].is_owned)
            tui_say(w->app, TUI_WARN, "! this is the run that is watched");
        else
            take_out(w, at);
        return true;
    default:
        return false;
    }
}

/* ---- the filter ---- */

/* The filter holds as it is typed; half a word is no reason to show nothing. */
static void
sift(struct tui_wall *w)
{
    struct et_ctx *cx = w->app->cx;
    struct eti_filter *f = NULL;
    w->fault[0] = '\0';
    w->at = (struct tui_list){0};
    if (*w->filter.text && eti_filter_new(cx, w->filter.text, &f) != ET_OK) {
        snprintf(w->fault, sizeof w->fault, "%.159s", et_error_get(cx)->message);
        et_error_clear(cx);
        return;
    }
    eti_filter_free(&w->sieve);
    w->sieve = f;
}

bool
tui_wall_key(struct tui_wall *w, int key)
{
    if (!w->is_typing)
        return false;
    if (key == TUI_K_ESC) {
        tui_field_set(&w->filter, "");
        w->is_typing = false;
    } else if (key == TUI_K_ENTER) {
        w->is_typing = false;
    } else if (!tui_field_key(&w->filter, key)) {
        return key >= ' ' && key < TUI_K_UP; /* too wide for a cell */
    }
    sift(w);
    return true;
}

/* ---- charts ---- */

static void
set_range(struct tui_wall *w, double from, double width)
{
    width = fmin(1, width);
    w->from = fmin(fmax(0, from), 1 - width);
    w->to = w->from + width;
}

/* What is looked at keeps its place; without a cursor the end does. */
static void
zoom(struct tui_wall *w, double factor)
{
    const double width = (w->to - w->from) * factor;
    const double at = w->inspects ? w->cursor : w->to;
    const double part = (at - w->from) / (w->to - w->from);
    if (width >= 1e-4)
        set_range(w, at - part * width, width);
}

/* Moves the cursor by STEPS, and what is shown where it would leave that. */
static void
move_cursor(struct tui_wall *w, int steps)
{
    const double width = w->to - w->from;
    w->cursor = fmin(1, fmax(0, w->cursor + steps * width / 100));
    if (w->cursor < w->from || w->cursor > w->to)
        set_range(w, w->from + steps * width / 4, width);
}

/* To another chart: they stand in rows. */
static bool
move_selection(struct tui_wall *w, enum tui_action action)
{
    const int page = w->cols * w->rows, cols = w->is_full ? 1 : w->cols;
    int by = 0;
    switch (action) {
    case TUI_DO_everywhere_up:
        by = -cols;
        break;
    case TUI_DO_everywhere_down:
        by = cols;
        break;
    case TUI_DO_everywhere_left:
        by = -1;
        break;
    case TUI_DO_everywhere_right:
        by = 1;
        break;
    case TUI_DO_everywhere_page_up:
        by = -page;
        break;
    case TUI_DO_everywhere_page_down:
        by = page;
        break;
    default:
        w->at.n = w->n;
        return tui_list_act(&w->at, action);
    }
    const int at = w->at.at + by;
    if (at >= 0 && at < w->n)
        w->at.at = at;
    else if (by > 1)
        w->at.at = w->n > 0 ? w->n - 1 : 0;
    else if (by < -1 && (action == TUI_DO_everywhere_page_up))
        w->at.at = 0;
    return true;
}

static void
inspect(struct tui_wall *w)
{
    double done = 0;
    for (int i = 0; i < w->n_runs; i++) {
        const struct tui_across a = tui_wall_across(w, i);
        done = fmax(done, w->run[i].is_hidden ? 0 : tui_axis_done(&a));
    }
    w->inspects = !w->inspects;
    w->cursor = fmin(1, done / tui_wall_end(w));
}

static bool
act_on_charts(struct tui_wall *w, enum tui_action action)
{
    switch (action) {
    case TUI_DO_wall_open:
        w->is_full = !w->is_full && w->n > 0;
        return true;
    case TUI_DO_wall_axis:
        w->axis = tui_axis_next(w->axis, w->run[0].source->model);
        w->has_axis = true;
        return true;
    case TUI_DO_wall_log_y:
        w->is_log = !w->is_log;
        return true;
    case TUI_DO_wall_smoother:
        w->smooth += w->smooth < TUI_SMOOTH_MOST;
        return true;
    case TUI_DO_wall_rougher:
        w->smooth -= w->smooth > 0;
        return true;
    case TUI_DO_wall_zoom_in:
        zoom(w, 0.5);
        return true;
    case TUI_DO_wall_zoom_out:
        zoom(w, 2);
        return true;
    case TUI_DO_wall_zoom_fit:
        set_range(w, 0, 1);
        return true;
    case TUI_DO_wall_inspect:
        inspect(w);
        return true;
    case TUI_DO_wall_fewer:
        w->more -= w->more > NARROWER;
        return true;
    case TUI_DO_wall_more:
        w->more += w->more < WIDER;
        return true;
    default:
        return false;
    }
}

/* esc undoes one thing after the other, and leaves the wall last. */
static void
close_something(struct tui_wall *w)
{
    if (w->inspects) {
        w->inspects = false;
    } else if (w->is_full) {
        w->is_full = false;
    } else if (*w->filter.text) {
        tui_field_set(&w->filter, "");
        sift(w);
    } else if (w->in_runs) {
        w->in_runs = false;
    } else {
        tui_wall_close(w);
    }
}

bool
tui_wall_act(struct tui_wall *w, enum tui_action action)
{
    if (act_on_runs(w, action))
        return true;
    if (w->inspects &&
        (action == TUI_DO_everywhere_left || action == TUI_DO_everywhere_right)) {
        move_cursor(w, action == TUI_DO_everywhere_left ? -1 : 1);
        return true;
    }
    switch (action) {
    case TUI_DO_wall_filter:
        w->is_typing = true;
        return true;
    case TUI_DO_wall_add:
        ask_run(w);
        return true;
    case TUI_DO_wall_panel:
        w->in_runs = !w->in_runs && tui_wall_is_of_many(w);
        return true;
    case TUI_DO_wall_rival:
        w->hides_rival = !w->hides_rival;
        return true;
    case TUI_DO_wall_hide:
    case TUI_DO_wall_pin:
    case TUI_DO_wall_remove:
        tui_say(w->app, TUI_TEXT,
                tui_wall_is_of_many(w) ? "tab goes to the runs, of which one is meant"
                                       : "there is one run: a adds another");
        return true;
    case TUI_DO_wall_back:
    case TUI_DO_everywhere_close:
        close_something(w);
        return true;
    default:
        return move_selection(w, action) || act_on_charts(w, action);
    }
}

const char *
tui_wall_hint(const struct tui_wall *w, enum tui_action action)
{
    switch (action) {
    case TUI_DO_wall_panel:
        return !tui_wall_is_of_many(w) ? "" : w->in_runs ? "charts" : "runs";
    case TUI_DO_wall_hide:
    case TUI_DO_wall_pin:
    case TUI_DO_wall_remove:
        return w->in_runs ? NULL : "";
    case TUI_DO_wall_open:
        return w->in_runs ? "watch it" : w->is_full ? "all" : NULL;
    case TUI_DO_wall_rival:
        return w->rival && w->rival->source && !tui_wall_is_of_many(w) ? NULL : "";
    default:
        return NULL;
    }
}

/* ---- mouse and time ---- */

/* The chart at Y, X of the charts' part; -1: there is none. */
static int
chart_at(const struct tui_wall *w, int y, int x)
{
    if (y < 0 || x < 0 || y >= w->charts.h || x >= w->charts.w || w->cols < 1)
        return -1;
    if (w->is_full)
        return w->at.at;
    const int page = w->cols * w->rows;
    const int i = w->at.at / page * page + y * w->rows / w->charts.h * w->cols +
                  x * w->cols / w->charts.w;
    return i < w->n ? i : -1;
}

/* The cursor goes to column X of the charts' part. */
static void
point_at(struct tui_wall *w, int x)
{
    const int n = w->is_full ? 1 : w->cols;
    const int width = w->charts.w / n, in = x % width - TUI_PLOT_LABEL - 1;
    const int columns = width - TUI_PLOT_LABEL - 3;
    const double part = fmin(1, fmax(0, (double)in / (columns > 0 ? columns : 1)));
    w->inspects = true;
    w->cursor = w->from + (w->to - w->from) * part;
}

void
tui_wall_mouse(struct tui_wall *w, const struct tui_mouse *m)
{
    const int y = m->y - w->charts.y, x = m->x - w->charts.x;
    const int row = m->y - w->list.y, chart = chart_at(w, y, x);
    const bool is_list = w->list.h > 0 && m->x >= w->list.x &&
                         m->x < w->list.x + w->list.w && row >= 0 && row < w->n_runs;
    if (m->what == TUI_WHEEL_UP || m->what == TUI_WHEEL_DOWN) {
        move_selection(w, m->what == TUI_WHEEL_UP ? TUI_DO_everywhere_page_up
                                                  : TUI_DO_everywhere_page_down);
    } else if (is_list) {
        w->in_runs = true;
        w->runs.at = row;
    } else if (chart >= 0 && m->what == TUI_RIGHT_CLICK) {
        w->at.at = chart;
        point_at(w, x);
    } else if (chart >= 0) {
        w->is_full = chart == w->at.at && !w->in_runs ? !w->is_full : w->is_full;
        w->in_runs = false;
        w->at.at = chart;
    }
}

bool
tui_wall_tick(struct tui_wall *w)
{
    bool any = false;
    for (int i = 0; i < w->n_runs; i++) {
        struct tui_source *s = w->run[i].source;
        if (!w->run[i].is_owned || w->app->is_frozen)
            continue;
        if (s->class->advance(s, SLICE, 0)) {
            w->app->has_more = w->app->has_more || tui_source_is_loading(s);
            any = true;
        }
    }
    return any;
}
