/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c: the screen Runs: what its keys do. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/compose.h"
#include "tui/runs.h"

static const double LOOK = 2; /* seconds between two looks at the folders */

const char *
runs_fact(const json_t *facts, const char *key)
{
    const char *text = json_string_value(json_object_get(facts, key));
    return text ? text : "";
}

json_t *
runs_selected(const struct runs *r)
{
    return json_array_get(r->list, (size_t)r->rows.at);
}

bool
runs_is_marked(const struct runs *r, const json_t *facts)
{
    return json_object_get(r->marks, runs_fact(facts, "directory")) != NULL;
}

int
runs_series_of(const struct runs *r, const json_t *facts)
{
    json_t *one;
    size_t i;
    int n = 0;
    if (!runs_is_marked(r, facts))
        return -1;
    json_array_foreach(r->all, i, one)
    {
        if (strcmp(runs_fact(one, "directory"), runs_fact(facts, "directory")) == 0)
            break;
        n += runs_is_marked(r, one);
    }
    return n;
}

int
runs_n_marked(const struct runs *r)
{
    return (int)json_object_size(r->marks);
}

double
runs_time_to(const struct runs *r, const json_t *facts)
{
    const char *metric;
    if (*r->target) {
        const json_t *j = json_object_get(r->judged, runs_fact(facts, "directory"));
        const json_t *to = json_object_get(j, "to");
        return json_is_number(to) ? json_number_value(to) : NAN;
    }
    const json_t *m = eti_run_metric(facts, &metric);
    const json_t *t = json_object_get(m, "best_t");
    const json_t *started = json_object_get(facts, "started");
    return json_is_number(t) && json_is_number(started)
               ? json_number_value(t) - json_number_value(started)
               : NAN;
}

const char *
runs_metric(const struct runs *r, const json_t *facts)
{
    const char *metric = "loss/train/total";
    if (*r->shown && json_object_get(json_object_get(facts, "metrics"), r->shown))
        return r->shown;
    (void)eti_run_metric(facts, &metric);
    return metric;
}

/* ---- what keys do ---- */

/* The metrics that any of the rivals has. The caller owns it; NULL: no memory. */
static json_t *
metrics_of_all(const struct runs *r)
{
    json_t *all = json_object(), *facts;
    size_t i;
    json_array_foreach(r->rivals, i, facts)
        json_object_update_missing(all, json_object_get(facts, "metrics"));
    return all;
}

/* The one of METRICS behind NOW, round and round. */
static void
next_metric(json_t *metrics, const char *now, char out[ET_METRIC_NAME])
{
    json_t *v;
    const char *key, *first = NULL, *next = NULL;
    bool passed = false;
    json_object_foreach(metrics, key, v)
    {
        first = first ? first : key;
        if (passed && !next)
            next = key;
        passed = passed || strcmp(key, now) == 0;
    }
    char text[ET_METRIC_NAME]; /* NOW may be OUT */
    snprintf(text, sizeof text, "%s", next ? next : first ? first : "");
    snprintf(out, ET_METRIC_NAME, "%s", text);
}

static void
mark(struct runs *r)
{
    json_t *facts = runs_selected(r);
    const char *directory = runs_fact(facts, "directory");
    if (!facts)
        return;
    if (json_object_get(r->marks, directory))
        json_object_del(r->marks, directory);
    else
        json_object_set_new(r->marks, directory, json_true());
    r->rows.at += r->rows.at + 1 < r->rows.n;
}

static void
watch(struct runs *r)
{
    json_t *facts = runs_selected(r);
    struct tui_source *source;
    if (!facts)
        return;
    if (tui_source_dir(r->app->cx, json_incref(facts), &source) != ET_OK) {
        tui_say_error(r->app);
        return;
    }
    tui_app_attach(r->app, &source);
    tui_app_go(r->app, TUI_IN_monitor);
}

static void
rerun(struct runs *r)
{
    json_t *facts = runs_selected(r);
    if (!facts)
        return;
    if (tui_compose_from_run(r->app, facts) != ET_OK) {
        tui_say_error(r->app);
        return;
    }
    tui_app_go(r->app, TUI_IN_compose);
    tui_say(r->app, TUI_TEXT,
            "the recipe of %s: L launches it again, W gives it a file",
            runs_fact(facts, "name"));
}

static void
targeted(struct tui_app *app, void *data, int id, const char *text)
{
    struct runs *r = data;
    (void)id;
    snprintf(r->target, sizeof r->target, "%.95s", text);
    json_object_clear(r->judged);
    if (r->compares)
        runs_contest(r);
    else
        tui_say(app, TUI_TEXT,
                *text ? "time to %s" : "no target: time to the best value", text);
}

/* Why TEXT is no target. */
static const char *
check_target(void *data, const char *text, char *buf)
{
    struct runs *r = data;
    struct eti_comparison k = {.cx = r->app->cx, .target_text = text, .n = 1};
    const json_t *runs = r->compares ? r->rivals : r->all;
    et_status status = ET_ENOENT;
    if (!*text)
        return NULL;
    for (size_t i = 0; status == ET_ENOENT && i < json_array_size(runs); i++) {
        et_error_clear(r->app->cx);
        k.run[0].facts = json_array_get(runs, i);
        status = eti_comparison_choose(&k);
    }
    if (status == ET_OK)
        return NULL;
    snprintf(buf, 160, "%.159s", et_error_get(r->app->cx)->message);
    et_error_clear(r->app->cx);
    return buf;
}

static void
ask_target(struct runs *r)
{
    tui_popup_prompt(&r->app->popup, r->app->cx, "target, such as accuracy>=.765",
                     r->target);
    r->app->popup.check = check_target;
    r->app->popup.done = targeted;
    r->app->popup.data = r;
}

enum { BY_START, BY_NAME, BY_STATE, BY_SPEED, BY_TIME, BY_METRIC, SORTS };

/* The fact that ID sorts by. */
static const char *
sort_key(const struct runs *r, int id)
{
    static const char *const keys[] = {"", "name", "state",
                                       "throughput/samples_per_sec", "train_seconds"};
    const char *metric = "";
    if (id < BY_METRIC)
        return keys[id];
    for (size_t i = 0; i < json_array_size(r->list) && !*metric; i++)
        (void)eti_run_metric(json_array_get(r->list, i), &metric);
    return metric;
}

static void
sorted(struct tui_app *app, void *data, int id, const char *text)
{
    struct runs *r = data;
    (void)app;
    (void)text;
    snprintf(r->sort, sizeof r->sort, "%s", sort_key(r, id));
    runs_choose(r);
}

static void
ask_sort(struct runs *r)
{
    static const struct tui_item items[] = {
        {.id = BY_START, .key = 's', .text = "when it was started, the newest first"},
        {.id = BY_NAME, .key = 'n', .text = "name"},
        {.id = BY_STATE, .key = 'w', .text = "state"},
        {.id = BY_METRIC, .key = 'm', .text = "its metric, the best first"},
        {.id = BY_TIME, .key = 't', .text = "time of training"},
        {.id = BY_SPEED, .key = 'v', .text = "samples a second"},
    };
    if (tui_popup_menu(&r->app->popup, r->app->cx, "sort by", items, SORTS) != ET_OK) {
        tui_say_error(r->app);
        return;
    }
    for (int i = 0; i < SORTS; i++)
        if (strcmp(sort_key(r, items[i].id), r->sort) == 0) {
            r->app->popup.list.at = i;
            break;
        }
    r->app->popup.done = sorted;
    r->app->popup.data = r;
}

static void
metric_chosen(struct tui_app *app, void *data, int id, const char *text)
{
    struct runs *r = data;
    json_t *metrics = metrics_of_all(r), *v;
    const char *key;
    (void)app;
    (void)text;
    json_object_foreach(metrics, key, v)
    {
        if (id-- == 0)
            snprintf(r->metric, sizeof r->metric, "%s", key);
    }
    json_decref(metrics);
    r->target[0] = '\0';
    runs_contest(r);
}

static void
ask_metric(struct runs *r)
{
    enum { MOST = 64 };
    struct tui_item item[MOST];
    json_t *metrics = metrics_of_all(r), *v;
    const char *key;
    int n = 0, now = 0;
    json_object_foreach(metrics, key, v)
    {
        if (n == MOST)
            break;
        item[n] = (struct tui_item){.id = n};
        snprintf(item[n].text, sizeof item[n].text, "%.79s", key);
        now = strcmp(key, r->comparison.metric) == 0 ? n : now;
        n++;
    }
    json_decref(metrics);
    if (n == 0) {
        tui_say(r->app, TUI_WARN, "! none of these runs has recorded a metric");
        return;
    }
    if (tui_popup_menu(&r->app->popup, r->app->cx, "metric", item, n) != ET_OK) {
        tui_say_error(r->app);
        return;
    }
    r->app->popup.list.at = now;
    r->app->popup.filters = true;
    r->app->popup.done = metric_chosen;
    r->app->popup.data = r;
}

/* To the next metric. */
static void
turn_metric(struct runs *r)
{
    json_t *metrics = metrics_of_all(r);
    next_metric(metrics, r->comparison.metric, r->metric);
    json_decref(metrics);
    r->target[0] = '\0';
    runs_contest(r);
}

/* ---- keys ---- */

static bool
act_in_compare(struct runs *r, enum tui_action action)
{
    if (tui_list_act(&r->keys, action))
        return true;
    switch (action) {
    case TUI_DO_compare_back:
    case TUI_DO_everywhere_close:
        r->compares = false;
        return true;
    case TUI_DO_compare_pareto:
        r->shows_pareto = !r->shows_pareto;
        return true;
    case TUI_DO_compare_axis:
        r->comparison.by = (r->comparison.by + 1) % ETI_FIGURES;
        runs_contest(r); /* what it goes by now may not have been read */
        tui_say(r->app, TUI_TEXT, "by %s", eti_figure_names[r->comparison.by]);
        return true;
    case TUI_DO_compare_panel:
        turn_metric(r);
        return true;
    case TUI_DO_everywhere_left:
        r->first -= r->first > 0;
        return true;
    case TUI_DO_everywhere_right:
        r->first +=
            r->first + 1 < r->comparison.n; /* drawing stops at the last that fits */
        return true;
    case TUI_DO_compare_names:
        r->hides_names = !r->hides_names;
        return true;
    case TUI_DO_compare_metric:
        ask_metric(r);
        return true;
    case TUI_DO_compare_target:
        ask_target(r);
        return true;
    case TUI_DO_compare_export:
        runs_export(r);
        return true;
    default:
        return false;
    }
}

/* Is it something that is done to the run that is selected? */
static bool
needs_run(enum tui_action action)
{
    static const enum tui_action those[] = {
        TUI_DO_runs_mark,  TUI_DO_runs_open,    TUI_DO_runs_target,  TUI_DO_runs_tag,
        TUI_DO_runs_panel, TUI_DO_runs_export,  TUI_DO_runs_rerun,   TUI_DO_runs_trash,
        TUI_DO_runs_wall,  TUI_DO_runs_results, TUI_DO_runs_samples,
    };
    for (size_t i = 0; i < sizeof those / sizeof *those; i++)
        if (those[i] == action)
            return true;
    return false;
}

static bool
act(struct tui_app *app, void *self, enum tui_action action)
{
    struct runs *r = self;
    if (r->wall.is_open)
        return tui_wall_act(&r->wall, action);
    if (r->results.is_open)
        return tui_results_act(&r->results, action);
    if (r->samples.is_open)
        return tui_samples_act(&r->samples, action);
    if (r->compares)
        return act_in_compare(r, action);
    if (needs_run(action) && !runs_selected(r)) {
        tui_say(app, TUI_WARN, "! there is no run to do that to");
        return true;
    }
    if (tui_list_act(&r->rows, action))
        return true;
    switch (action) {
    case TUI_DO_runs_mark:
        mark(r);
        return true;
    case TUI_DO_runs_open:
        watch(r);
        return true;
    case TUI_DO_runs_results:
        tui_results_open(&r->results, app, runs_selected(r));
        return true;
    case TUI_DO_runs_samples:
        runs_open_samples(r);
        return true;
    case TUI_DO_runs_wall:
        runs_open_wall(r);
        return true;
    case TUI_DO_runs_filter:
        r->is_typing = true;
        return true;
    case TUI_DO_runs_compare:
    case TUI_DO_runs_pareto:
        r->shows_pareto = action == TUI_DO_runs_pareto;
        r->compares = runs_compare(r);
        return true;
    case TUI_DO_runs_target:
        ask_target(r);
        return true;
    case TUI_DO_runs_sort:
        ask_sort(r);
        return true;
    case TUI_DO_runs_tag:
        runs_tag(r);
        return true;
    case TUI_DO_runs_panel:
        next_metric(json_object_get(runs_selected(r), "metrics"),
                    runs_metric(r, runs_selected(r)), r->shown);
        return true;
    case TUI_DO_runs_rerun:
        rerun(r);
        return true;
    case TUI_DO_runs_export:
        runs_export(r);
        return true;
    case TUI_DO_runs_trash:
        runs_trash(r);
        return true;
    case TUI_DO_everywhere_full:
        r->is_full = !r->is_full;
        return true;
    case TUI_DO_runs_restore:
        runs_restore(r);
        return true;
    case TUI_DO_everywhere_retry:
        runs_begin(r, true);
        tui_say(r->app, TUI_TEXT, "all runs are being read again");
        return true;
    case TUI_DO_everywhere_close:
        tui_field_set(&r->filter, "");
        runs_choose(r);
        return true;
    default:
        return false;
    }
}

static bool
key(struct tui_app *app, void *self, int pressed)
{
    struct runs *r = self;
    (void)app;
    if (r->wall.is_open)
        return tui_wall_key(&r->wall, pressed);
    if (!r->is_typing || r->results.is_open || r->samples.is_open)
        return false;
    if (pressed == TUI_K_ESC) {
        tui_field_set(&r->filter, "");
        r->is_typing = false;
    } else if (pressed == TUI_K_ENTER) {
        r->is_typing = false;
    } else if (!tui_field_key(&r->filter, pressed)) {
        return pressed >= ' ' && pressed < TUI_K_UP; /* too wide for a cell */
    }
    runs_choose(r);
    return true;
}

static void
mouse(struct tui_app *app, void *self, const struct tui_mouse *m)
{
    struct runs *r = self;
    if (r->wall.is_open)
        tui_wall_mouse(&r->wall, m);
    if (r->wall.is_open || r->results.is_open || r->samples.is_open)
        return;
    struct tui_list *l = r->compares ? &r->keys : &r->rows;
    int first = tui_size_of(app->grid.rows, app->grid.cols) == TUI_TINY ? 1 : 3;
    int row = r->compares || m->x >= r->list_w ? -1 : m->y - first;
    if (tui_list_opens(l, m, row))
        watch(r);
    else
        tui_list_mouse(l, m, row);
}

static enum tui_where
place(struct tui_app *app, void *self)
{
    const struct runs *r = self;
    (void)app;
    return r->wall.is_open      ? TUI_IN_wall
           : r->results.is_open ? TUI_IN_results
           : r->samples.is_open ? TUI_IN_samples
           : r->compares        ? TUI_IN_compare
                                : TUI_IN_runs;
}

static const char *
hint(struct tui_app *app, void *self, enum tui_action action)
{
    const struct runs *r = self;
    (void)app;
    return r->wall.is_open      ? tui_wall_hint(&r->wall, action)
           : r->results.is_open ? tui_results_hint(&r->results, action)
           : r->samples.is_open ? tui_samples_hint(&r->samples, action)
                                : NULL;
}

static enum tui_role
message(struct tui_app *app, void *self, char *buf, size_t size)
{
    const struct runs *r = self;
    (void)app;
    if (r->wall.is_open)
        return tui_wall_message(&r->wall, buf, size);
    if (r->results.is_open)
        return tui_results_message(&r->results, buf, size);
    if (r->samples.is_open)
        return tui_samples_message(&r->samples, buf, size);
    if (r->compares)
        return runs_compare_message(r, buf, size);
    if (*r->fault) {
        snprintf(buf, size, "x the filter: %s", r->fault);
        return TUI_BAD;
    }
    if (*r->problem) {
        snprintf(buf, size, "! %s", r->problem);
        return TUI_WARN;
    }
    if (r->is_typing)
        snprintf(
            buf, size,
            "words, key:regex, key=v, key<v, has:key, !not, a | b; enter keeps it");
    else if (runs_n_marked(r) > 0)
        snprintf(buf, size, "%d marked", runs_n_marked(r));
    else if (json_array_size(r->all) > 0)
        snprintf(buf, size, "space marks runs to compare with C");
    return TUI_TEXT;
}

/* ---- time ---- */

static bool
take_answer(struct runs *r)
{
    if (!tui_job_poll(&r->job, r->app->config.is_dump ? 60 : 0))
        return false;
    if (r->job.code != 0) {
        tui_say(r->app, TUI_BAD, "x %.200s", r->job.error);
        return true;
    }
    FILE *f = *r->job_file ? fopen(r->job_file, "we") : NULL;
    bool is_lost = *r->job_file && !f;
    if (f) {
        is_lost = fwrite(r->job.text, 1, r->job.n, f) != r->job.n;
        is_lost = fclose(f) != 0 || is_lost;
    }
    if (is_lost)
        tui_say(r->app, TUI_BAD, "x cannot write %.200s", r->job_file);
    else
        tui_say(r->app, TUI_GOOD, "%s", r->job_says);
    return true;
}

static bool
tick(struct tui_app *app, void *self)
{
    struct runs *r = self;
    bool any = take_answer(r), is_shown = app->screen[app->at]->where == TUI_IN_runs;
    if (!app->config.is_dump && is_shown) {
        if (!runs_is_busy(r) && tui_now(app) >= r->read + LOOK)
            runs_begin(r, false);
        if (runs_is_busy(r))
            any = runs_go_on(r) || any;
        app->has_more = app->has_more || runs_is_busy(r);
    }
    any = (r->wall.is_open && tui_wall_tick(&r->wall)) || any;
    any = (r->results.is_open && tui_results_tick(&r->results)) || any;
    any = tui_samples_tick(&r->samples) || any;
    any = runs_spark_one(r) || any;
    return runs_judge_one(r) || any;
}

/* ---- life ---- */

static et_status
open_screen(struct tui_app *app, void *self)
{
    struct runs *r = self;
    void *block;
    r->app = app;
    tui_job_stop(&r->job);
    r->marks = json_object();
    r->judged = json_object();
    r->sparks = json_object();
    r->guests = json_array();
    r->bests = json_object();
    ET_TRY(et_alloc(app->cx, TUI_R_CACHE * sizeof *r->curve, &block));
    r->curve = block;
    r->index = app->config.index;
    r->owns_index = !r->index;
    if (r->owns_index)
        ET_TRY(eti_index_open(app->cx, NULL, &r->index));
    if (eti_index_problem(r->index))
        snprintf(r->problem, sizeof r->problem, "the list cannot be kept: %.160s",
                 eti_index_problem(r->index));
    if (app->config.is_dump)
        runs_read(r);
    else
        runs_begin(r, false); /* a screen does not wait: ticks do the rest */
    return ET_OK;
}

static void
close_screen(struct tui_app *app, void *self)
{
    struct runs *r = self;
    tui_job_stop(&r->job);
    tui_wall_close(&r->wall);
    tui_results_close(&r->results);
    tui_samples_close(&r->samples);
    if (r->owns_index)
        eti_index_close(&r->index);
    et_free(app->cx, r->curve);
    json_decref(r->all);
    json_decref(r->list);
    json_decref(r->marks);
    json_decref(r->judged);
    json_decref(r->sparks);
    json_decref(r->guests);
    json_decref(r->bests);
    json_decref(r->rivals);
    json_decref(r->differences);
}

et_status
tui_runs_setup(struct tui_app *app, const struct tui_runs_setup *setup)
{
    struct runs *r = tui_app_state(app, TUI_IN_runs);
    if (!r)
        return ET_EINVAL;
    if (runs_is_busy(r))
        runs_read(r);
    if (setup->filter)
        tui_field_set(&r->filter, setup->filter);
    if (setup->sort)
        snprintf(r->sort, sizeof r->sort, "%s", setup->sort);
    if (setup->target)
        snprintf(r->target, sizeof r->target, "%.95s", setup->target);
    for (int i = 0; i < setup->n; i++) {
        const char *directory = runs_fact(setup->compare[i], "directory");
        json_object_set_new(r->marks, directory, json_true());
        runs_welcome(r, setup->compare[i]);
    }
    runs_choose(r);
    r->comparison.by = setup->by;
    r->shows_pareto = setup->pareto;
    if (setup->n > 0)
        r->compares = runs_compare(r);
    return ET_OK;
}

const struct tui_screen tui_screen_runs = {
    .where = TUI_IN_runs,
    .size = sizeof(struct runs),
    .open = open_screen,
    .close = close_screen,
    .place = place,
    .hint = hint,
    .draw = runs_draw,
    .message = message,
    .key = key,
    .act = act,
    .mouse = mouse,
    .tick = tick,
};
