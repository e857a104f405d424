/* SPDX-License-Identifier: Apache-2.0 */
/* compose_jobs.c: what other processes do for the screen Compose: the estimate, the
 * learning rate, and runs that are launched. */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/compose/command.h"
#include "core/library/index.h"
#include "etude/run.h"
#include "tui/compose.h"
#include "tui/format.h"
#include "tui/workers.h"

/* Seconds without a change before a new computation begins, and seconds that a dump
 * waits. */
static const double REST = 0.4, PATIENCE = 60;
static const double LOOK = 10; /* between looks for runs of the recipe */

/* ---- what other processes compute ---- */

bool
compose_is_estimated(const struct compose *c)
{
    return c->numbers.of == c->sketch->changes && c->estimate.pid <= 0;
}

/* (Another machine may have data or devices that this one lacks.) */
bool
compose_is_refused(const struct compose *c)
{
    const struct et_recipe *r = c->sketch->recipe;
    return compose_is_estimated(c) && c->numbers.is_refused && r && !r->launch.worker;
}

/* The folder in which relative paths of the text begin. Returns BUF. */
static const char *
folder_of(const struct compose *c, char *buf, size_t size)
{
    const char *place = eti_sketch_place(c->sketch);
    const char *slash = place ? strrchr(place, '/') : NULL;
    if (slash)
        snprintf(buf, size, "%.*s", slash == place ? 1 : (int)(slash - place), place);
    else
        snprintf(buf, size, ".");
    return buf;
}

/* Starts "etude WORDS... ARGUMENTS AFTER..." of the text as it is: its file with what
 * differs, or the text itself where there is no file, or overrides cannot say the
 * difference. */
static et_status
start_with(struct compose *c, struct tui_job *job, const char *const *words,
           const char *const *after)
{
    const char *argument[ETI_COMMAND_ARGUMENTS + 24] = {NULL};
    char folder[PATH_MAX];
    struct eti_command command;
    int n = 0;
    for (; words[n]; n++)
        argument[n] = words[n];
    et_status status = eti_command_new(c->sketch, &command);
    if (status == ET_ENOTSUP || (status == ET_EINVAL && !c->sketch->path)) {
        et_error_clear(c->sketch->cx);
        argument[n++] = "--recipe-folder";
        argument[n++] = folder_of(c, folder, sizeof folder);
        argument[n++] = TUI_JOB_INPUT;
        for (; *after; after++)
            argument[n++] = *after;
        status =
            tui_job_start(job, c->sketch->cx, argument, c->sketch->text, c->sketch->n);
    } else if (status == ET_OK) {
        for (int i = 0; i < command.n; i++)
            argument[n++] = command.argument[i];
        for (; *after; after++)
            argument[n++] = *after;
        status = tui_job_start(job, c->sketch->cx, argument, NULL, 0);
    }
    eti_command_release(&command);
    return status;
}

static et_status
start(struct compose *c, struct tui_job *job, const char *const *words)
{
    static const char *const none[] = {NULL};
    return start_with(c, job, words, none);
}

static et_status
start_samples(void *owner, struct tui_job *job, const char *const *words,
              const char *const *after)
{
    return start_with(owner, job, words, after);
}

void
compose_open_samples(struct compose *c)
{
    const char *place = eti_sketch_place(c->sketch);
    const char *slash = place ? strrchr(place, '/') : NULL;
    if (!eti_sketch_is_valid(c->sketch)) {
        tui_say(c->app, TUI_WARN, "! the recipe has faults: x lists them");
        return;
    }
    tui_samples_open(&c->samples, c->app,
                     slash   ? slash + 1
                     : place ? place
                             : "a recipe without a name",
                     start_samples, c);
}

static double
number(const json_t *all, const char *key)
{
    const json_t *v = json_object_get(all, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Bytes free where runs are begun, or where their folder will be. */
static double
free_bytes(const struct compose *c)
{
    struct statvfs v;
    if (statvfs(compose_folder(c), &v) != 0 && statvfs(".", &v) != 0)
        return NAN;
    return (double)v.f_frsize * (double)v.f_bavail;
}

/* What its data and its checkpoints are. */
static void
take_found(struct compose *c, const json_t *all)
{
    struct eti_found *f = &c->numbers.found;
    const struct et_recipe *recipe = eti_sketch_shown(c->sketch);
    bool weights = recipe && recipe->checkpoint.weights_only;
    const json_t *one;
    size_t i;
    *f = (struct eti_found){.free_bytes = free_bytes(c)};
    f->checkpoint_bytes = number(all, weights ? "weights_bytes" : "checkpoint_bytes");
    json_array_foreach(json_object_get(all, "data"), i, one)
    {
        if (f->n_data == ETI_FOUND_DATA)
            break;
        const json_t *tokens = json_object_get(one, "tokens");
        snprintf(f->data[f->n_data].name, sizeof f->data->name, "%s",
                 compose_fact(one, "name"));
        f->data[f->n_data].is_text = tokens != NULL;
        f->data[f->n_data].n =
            json_integer_value(tokens ? tokens : json_object_get(one, "samples"));
        f->data[f->n_data++].kinds =
            json_integer_value(json_object_get(one, tokens ? "vocab_size" : "classes"));
    }
}

/* Why the estimate failed: the sentence of the error, which is JSON as the result would
 * have been. An estimate that crashes writes no JSON: the recipe may be right then. */
static void
take_problem(struct compose *c)
{
    struct tui_compose_numbers *n = &c->numbers;
    json_error_t error;
    json_t *why = json_loads(c->estimate.error, 0, &error);
    const char *text = json_string_value(json_object_get(why, "message"));
    n->is_refused = text != NULL;
    if (!text)
        text = *c->estimate.error ? c->estimate.error : "etude estimate failed";
    et_visible(n->problem, sizeof n->problem, text, strlen(text));
    json_decref(why);
}

static void
take_estimate(struct compose *c)
{
    struct tui_compose_numbers *n = &c->numbers;
    json_error_t error;
    json_t *all = json_loadb(c->estimate.text, c->estimate.n, 0, &error);
    n->problem[0] = '\0';
    n->is_refused = false;
    n->is_known = c->estimate.code == 0 && json_is_object(all);
    if (n->is_known) {
        n->seconds = number(all, "seconds_per_batch");
        n->peak_bytes = number(all, "peak_bytes");
        n->params = number(all, "params");
        take_found(c, all);
    } else {
        take_problem(c);
    }
    json_decref(all);
    compose_list_checks(c);
}

static void
take_curve(struct compose *c)
{
    struct tui_compose_numbers *n = &c->numbers;
    json_error_t error;
    json_t *all = json_loadb(c->explain.text, c->explain.n, 0, &error), *one;
    const json_t *rate = json_object_get(all, "learning_rate");
    size_t i;
    n->n = 0;
    n->highest = 0;
    n->batches = -1;
    if (json_is_integer(json_object_get(rate, "batches")))
        n->batches = json_integer_value(json_object_get(rate, "batches"));
    json_array_foreach(json_object_get(rate, "points"), i, one)
    {
        if (n->n == TUI_C_POINTS)
            break;
        n->at[n->n] = number(one, "ba");
        n->rate[n->n] = number(one, "lr");
        n->highest = fmax(n->highest, n->rate[n->n]);
        n->n++;
    }
    json_decref(all);
}

/* The jobs of a text begin when nobody has typed for a while. */
static bool
start_jobs(struct compose *c)
{
    bool rests = c->app->config.is_dump || tui_now(c->app) >= c->asked + REST;
    if (c->numbers.of == c->sketch->changes || !eti_sketch_is_valid(c->sketch) ||
        !rests)
        return false;
    c->numbers.of = c->sketch->changes;
    tui_job_stop(&c->explain);
    tui_job_stop(&c->outline);
    c->explains = c->outlines = true;
    if (start(c, &c->estimate, (const char *[]){"estimate", "--json", NULL}) != ET_OK) {
        snprintf(c->numbers.problem, sizeof c->numbers.problem, "%.199s",
                 et_error_get(c->sketch->cx)->message);
        et_error_clear(c->sketch->cx);
        c->numbers.is_known = c->numbers.is_refused = false;
    }
    return true;
}

/* ---- launching ---- */

enum { START = 1, SAVE, SAVE_AS, THERE };

static void
attach_here(struct compose *c)
{
    json_t *found = NULL;
    struct eti_index *index;
    struct tui_source *source;
    et_status status = eti_index_open(c->sketch->cx, NULL, &index);
    if (status == ET_OK)
        status = eti_index_find(index, compose_folder(c), c->run_name, &found);
    eti_index_close(&index);
    if (status != ET_OK) {
        tui_say_error(c->app);
    } else if (!found) {
        tui_say(c->app, TUI_BAD, "x %s has started, but its directory was not found",
                c->run_name);
    } else if (tui_source_dir(c->sketch->cx, found, &source) != ET_OK) {
        tui_say_error(c->app);
    } else {
        tui_app_attach(c->app, &source);
        tui_app_go(c->app, TUI_IN_monitor);
    }
}

/* The run at the worker that started it. */
static void
attach_there(struct compose *c)
{
    struct etd_target target;
    struct tui_source *source;
    bool is_address = strstr(c->on, "://") != NULL, is;
    int n = is_address ? (int)strlen(c->on) : (int)strcspn(c->on, ":"); /* no GPUs */
    char text[ETD_ADDRESS + sizeof c->run_name + 1];
    if (is_address)
        snprintf(text, sizeof text, "%s/%s", c->on, c->run_name);
    else
        snprintf(text, sizeof text, "%s@%.*s", c->run_name, n, c->on);
    et_status status =
        etd_target_parse(c->sketch->cx, text, tui_workers_folder(c->app), &target, &is);
    if (status == ET_OK && !is) {
        tui_say(c->app, TUI_BAD, "x %s has started, but no worker is called %.*s",
                c->run_name, n, c->on);
        return;
    }
    if (status != ET_OK || tui_source_hub(c->sketch->cx, &target, &source) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    tui_app_attach(c->app, &source);
    tui_app_go(c->app, TUI_IN_monitor);
}

static void
launched(struct compose *c)
{
    if (c->launch.code == 0 && *c->on)
        attach_there(c);
    else if (c->launch.code == 0)
        attach_here(c);
    else
        tui_say(c->app, TUI_BAD, "x not started: %.200s",
                *c->launch.error ? c->launch.error : "etude train failed");
}

static void
start_run(struct compose *c)
{
    const char *const words[] = {
        "train", "-d", "--run_name", c->run_name, *c->on ? "--on" : NULL, c->on, NULL};
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint64_t)(tui_now(c->app) * 1e6);
    et_run_name_draw(seed, c->run_name);
    if (start(c, &c->launch, words) == ET_OK)
        tui_say(c->app, TUI_TEXT, "%s starts%s%s...", c->run_name, *c->on ? " at " : "",
                c->on);
    else
        tui_say_error(c->app);
}

static void
go_there(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    const struct workers *w = tui_app_state(app, TUI_IN_workers);
    (void)text;
    if (!w || id < 1 || id >= w->n)
        return;
    snprintf(c->on, sizeof c->on, "%s", w->row[id].name);
    start_run(c);
}

/* Those of Workers, this machine left out. */
static void
offer_workers(struct compose *c)
{
    struct tui_item item[WORKERS_MOST];
    const struct workers *w = tui_app_state(c->app, TUI_IN_workers);
    int n = 0;
    for (int i = 1; w && i < w->n; i++, n++) {
        item[n] = (struct tui_item){.id = i};
        snprintf(item[n].text, sizeof item[n].text, "%s", w->row[i].name);
        snprintf(item[n].note, sizeof item[n].note, "%.47s", w->row[i].address);
    }
    if (n == 0) {
        tui_say(c->app, TUI_TEXT, "no other machine is known: + in Workers adds one");
        return;
    }
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, "launch on", item, n) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    tui_popup_line(&c->app->popup, "Data and paths are those of that machine.");
    c->app->popup.done = go_there;
    c->app->popup.data = c;
}

static void
go(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    const char *worker = c->sketch->recipe->launch.worker;
    (void)text;
    snprintf(c->on, sizeof c->on, "%.*s", (int)sizeof c->on - 1, worker ? worker : "");
    if (id == SAVE_AS)
        compose_save_as(c);
    else if (id == THERE)
        offer_workers(c);
    else if (id == SAVE && eti_sketch_save(c->sketch, NULL, false) != ET_OK)
        tui_say_error(app);
    else
        start_run(c);
}

/* What is about to be started, and where. */
static void
say_launch(struct compose *c, struct tui_popup *p)
{
    const struct et_recipe *r = c->sketch->recipe;
    char a[TUI_NUMBER], b[TUI_NUMBER];
    long long ranks = r->launch.nproc == ET_INT_UNSET ? 1 : (long long)r->launch.nproc;
    tui_popup_line(p, "ranks      %lld, on %s", ranks,
                   r->launch.worker ? r->launch.worker : "this machine");
    if (!r->launch.worker)
        tui_popup_line(p, "directory  %s/ and the time", compose_folder(c));
    if (!compose_is_estimated(c) || c->explains || c->explain.pid > 0)
        tui_popup_line(p, "estimate   being made...");
    else if (c->numbers.is_known && c->numbers.batches > 0)
        tui_popup_line(p, "estimate   %s or more, %s of memory",
                       tui_duration(c->numbers.seconds * (double)c->numbers.batches, a),
                       tui_bytes(c->numbers.peak_bytes, b));
    else
        tui_popup_line(p, "estimate   %s",
                       *c->numbers.problem ? c->numbers.problem : "not known yet");
    if (c->sketch->path)
        tui_popup_line(p, "recipe     %s%s", c->sketch->path,
                       eti_sketch_is_changed(c->sketch) ? ", with what is not saved"
                                                        : "");
    else
        tui_popup_line(p, "recipe     %.100s, in no file: the run's directory keeps it",
                       c->sketch->name);
    for (int i = c->n_fatal; i < c->n_warnings && i < 2; i++) /* the estimate said it */
        tui_popup_line(p, "! %s", c->check[i].text);
}

void
compose_launch(struct compose *c)
{
    struct tui_item item[3] = {
        {.id = START, .text = "start it", .note = "enter"},
        {.id = THERE, .key = 'o', .text = "start it on another machine..."},
    };
    const struct eti_sketch *s = c->sketch;
    int n = 2;
    if (!eti_sketch_is_valid(s)) {
        tui_say(c->app, TUI_WARN, "! it cannot be launched: %s",
                compose_is_empty(c) ? "there is no recipe yet"
                                    : "the recipe has faults");
        return;
    }
    if (!s->path)
        item[n++] =
            (struct tui_item){.id = SAVE_AS, .key = 's', .text = "save it as a file"};
    else if (eti_sketch_is_changed(s) && compose_is_ours(c))
        item[n++] =
            (struct tui_item){.id = SAVE, .key = 's', .text = "save, then start it"};
    for (int i = 0; i < n && compose_is_refused(c); i++)
        if (item[i].id == START || item[i].id == SAVE)
            snprintf(item[i].why, sizeof item[i].why, "it cannot start here");
    if (tui_popup_menu(&c->app->popup, s->cx, "launch", item, n) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    say_launch(c, &c->app->popup);
    c->app->popup.done = go;
    c->app->popup.data = c;
}

/* The box of a launch says what is known by now. */
static void
renew_launch(struct compose *c)
{
    struct tui_popup *p = &c->app->popup;
    const int at = p->list.at;
    if (p->done != go)
        return;
    compose_launch(c);
    p->list.at = at;
}

/* ---- time ---- */

/* Runs of the recipe begin and end while it is open: they are looked for when the
 * screen is shown again, and now and then. Has something changed? */
static bool
look_again(struct compose *c)
{
    const bool is_shown = c->app->screen[c->app->at]->where == TUI_IN_compose;
    const bool is_back = is_shown && !c->was_shown;
    c->was_shown = is_shown;
    if (!is_shown || c->app->config.is_dump || !c->sketch->path ||
        (!is_back && tui_now(c->app) < c->looked + LOOK))
        return false;
    json_t *before = json_incref(c->runs_alike);
    compose_find_alike(c);
    compose_list_checks(c);
    const bool is_same = c->runs_alike ? json_equal(before, c->runs_alike) : !before;
    json_decref(before);
    return !is_same;
}

/* The shapes of a network that is spelled out, when the rest is known. */
static bool
poll_outline(struct compose *c, double wait)
{
    struct eti_layer_line first;
    bool begins = c->outlines && !c->explains && c->explain.pid <= 0;
    if (begins) {
        c->outlines = false;
        c->layers.of = -1;
        if (eti_layer_lines(c->sketch, &first, 1) > 0 &&
            start(c, &c->outline,
                  (const char *[]){"explain", "--model", "--json", "--verbose",
                                   NULL}) != ET_OK)
            et_error_clear(c->sketch->cx);
    }
    if (!tui_job_poll(&c->outline, wait))
        return begins;
    compose_take_outline(c);
    c->layers.of = c->numbers.of;
    return true;
}

bool
compose_tick(struct tui_app *app, void *self)
{
    struct compose *c = self;
    double wait = app->config.is_dump ? PATIENCE : 0;
    compose_refresh(c);
    bool any = start_jobs(c);
    any = look_again(c) || any;
    any = tui_samples_tick(&c->samples) || any;
    if (tui_job_poll(&c->estimate, wait)) {
        take_estimate(c);
        renew_launch(c);
        any = true;
    }
    if (c->explains && c->estimate.pid <= 0) {
        c->explains = false;
        if (start(c, &c->explain, (const char *[]){"explain", "--json", NULL}) != ET_OK)
            et_error_clear(c->sketch->cx);
        any = true;
    }
    if (tui_job_poll(&c->explain, wait)) {
        take_curve(c);
        renew_launch(c);
        any = true;
    }
    any = poll_outline(c, wait) || any;
    if (tui_job_poll(&c->launch, wait)) {
        launched(c);
        any = true;
    }
    return any;
}
