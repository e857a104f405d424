/* compose_file.c: the screen Compose and the world: files, where a recipe may begin,
 * the command line, what other processes compute of it, and launching. */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/compose/command.h"
#include "core/run/index.h"
#include "core/run/list.h"
#include "etude/run.h"
#include "tui/compose.h"
#include "tui/format.h"

/* Rest after a change before it is computed anew, and how long a dump waits. */
static const double REST = 0.4, PATIENCE = 60;

/* ---- saving ---- */

static void
saved(struct compose *c)
{
    tui_say(c->app, TUI_GOOD, "saved: %s", c->sketch->path);
    compose_refresh(c);
}

static void
refused(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)text;
    if (id == 1) {
        if (eti_sketch_save(c->sketch, *c->path ? c->path : NULL, true) == ET_OK)
            saved(c);
        else
            tui_say_error(app);
    } else if (id == 2) {
        if (tui_compose_open(app, c->sketch->path) != ET_OK)
            tui_say_error(app);
    } else {
        compose_save_as(c);
    }
}

/* Another program's text stands there: what now? */
static void
ask(struct compose *c, bool is_other)
{
    struct tui_item items[3] = {
        {.id = 1, .key = 'o', .text = "write over it"},
        {.id = 3, .key = 'W', .text = "save under another name"},
        {.id = 2, .key = 'r', .text = "read it again, and lose what is here"},
    };
    char why[160];
    snprintf(why, sizeof why, "%.150s.", et_error_get(c->sketch->cx)->message);
    et_error_clear(c->sketch->cx);
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, "save", items,
                       is_other ? 2 : 3) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    tui_popup_line(&c->app->popup, "%s", why);
    c->app->popup.done = refused;
    c->app->popup.data = c;
}

static void
save_to(struct compose *c, const char *path)
{
    et_status status = eti_sketch_save(c->sketch, path, false);
    snprintf(c->path, sizeof c->path, "%s", path ? path : "");
    if (status == ET_OK)
        saved(c);
    else if (status == ET_ECANCELED)
        ask(c, path != NULL);
    else
        tui_say_error(c->app);
}

static void
named(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)app;
    (void)id;
    if (*text)
        save_to(c, text);
}

void
compose_save_as(struct compose *c)
{
    const struct eti_sketch *s = c->sketch;
    char name[PATH_MAX];
    /* An installed recipe is not for writing: its copy is in this folder. */
    bool is_ours = s->path && access(s->path, W_OK) == 0;
    const char *base = s->path ? strrchr(s->path, '/') : NULL;
    snprintf(name, sizeof name, "%s",
             is_ours   ? s->path
             : base    ? base + 1
             : s->path ? s->path
                       : "recipe.yaml");
    tui_popup_prompt(&c->app->popup, s->cx, "save as", name);
    c->app->popup.done = named;
    c->app->popup.data = c;
}

void
compose_save(struct compose *c)
{
    if (!c->sketch->path || access(c->sketch->path, W_OK) != 0)
        compose_save_as(c);
    else if (!eti_sketch_is_changed(c->sketch))
        tui_say(c->app, TUI_TEXT, "nothing has changed since it was saved");
    else
        save_to(c, NULL);
}

static void
reload(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)text;
    if (id == 1 && tui_compose_open(app, c->sketch->path) != ET_OK)
        tui_say_error(app);
}

void
compose_reload(struct compose *c)
{
    static const struct tui_item items[] = {
        {.id = 1, .key = 'r', .text = "read the file again, and lose the changes"},
        {.id = 2, .key = 'n', .text = "stay"},
    };
    if (!c->sketch->path)
        return;
    if (!eti_sketch_is_changed(c->sketch)) {
        reload(c->app, c, 1, NULL);
        return;
    }
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, "reload", items, 2) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    c->app->popup.done = reload;
    c->app->popup.data = c;
}

/* ---- the command line ---- */

void
compose_copy(struct compose *c)
{
    struct eti_command command;
    char *text = NULL;
    et_status status = eti_command_new(c->sketch, &command);
    if (status == ET_OK)
        status = eti_command_text(&command, "train", &text);
    if (status == ET_OK)
        tui_copy(c->app, text);
    else
        tui_say_error(c->app);
    et_free(c->sketch->cx, text);
    eti_command_release(&command);
}

/* ---- where to begin ---- */

static void
begin(struct compose *c, const char *path)
{
    if (tui_compose_open(c->app, path) != ET_OK)
        tui_say_error(c->app);
}

static void
installed(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    const json_t *one = json_array_get(c->setup.installed, (size_t)id - 1);
    (void)app;
    (void)text;
    begin(c, json_string_value(json_object_get(one, "path")));
}

/* The recipe that any machine can run; where it is not installed, all that are. */
void
compose_start_first(struct compose *c)
{
    json_t *one;
    size_t i;
    json_array_foreach(c->setup.installed, i,
                       one) if (strcmp(json_string_value(json_object_get(one, "name")),
                                       "first_minute") == 0)
    {
        begin(c, json_string_value(json_object_get(one, "path")));
        tui_say(c->app, TUI_TEXT, "L launches it; all of this may be changed first");
        return;
    }
    compose_start_installed(c);
}

void
compose_start_installed(struct compose *c)
{
    enum { MOST = 64 };
    struct tui_item item[MOST];
    int n = 0;
    size_t i;
    json_t *one;
    json_array_foreach(c->setup.installed, i, one)
    {
        if (n == MOST)
            break;
        item[n] = (struct tui_item){.id = (int)i + 1};
        snprintf(item[n].text, sizeof item[n].text, "%s",
                 json_string_value(json_object_get(one, "name")));
        snprintf(item[n].note, sizeof item[n].note, "%s",
                 json_string_value(json_object_get(one, "title")));
        n++;
    }
    if (n == 0) {
        tui_say(c->app, TUI_WARN, "! no recipe is installed: b begins a blank one");
    } else if (tui_popup_menu(&c->app->popup, c->sketch->cx,
                              "installed recipes: type to search", item, n) != ET_OK) {
        tui_say_error(c->app);
    } else {
        c->app->popup.filters = true;
        c->app->popup.done = installed;
        c->app->popup.data = c;
    }
}

/* The runs that there are, the newest first; the caller owns *OUT. */
static et_status
list_runs(struct compose *c, json_t **out)
{
    struct eti_index *index;
    *out = NULL;
    et_status status = eti_index_open(c->sketch->cx, NULL, &index);
    if (status == ET_OK)
        status = eti_index_update(index, c->runs ? c->runs : "runs", false);
    if (status == ET_OK)
        status = eti_index_list(index, out);
    eti_index_close(&index);
    return status;
}

static const char *
fact(const json_t *facts, const char *key)
{
    const char *text = json_string_value(json_object_get(facts, key));
    return text ? text : "";
}

void
compose_find_alike(struct compose *c)
{
    json_t *list, *one;
    size_t i, used = 0;
    char base[128], text[ETI_FACT_TEXT];
    const char *slash = c->sketch->path ? strrchr(c->sketch->path, '/') : NULL;
    c->alike[0] = '\0';
    snprintf(base, sizeof base, "%.120s",
             slash             ? slash + 1
             : c->sketch->path ? c->sketch->path
                               : "");
    base[strcspn(base, ".")] = '\0';
    if (!*base)
        return;
    if (list_runs(c, &list) != ET_OK) {
        et_error_clear(c->sketch->cx);
        return;
    }
    json_array_foreach(list, i, one)
    {
        const char *metric;
        char number[TUI_NUMBER];
        const json_t *best = json_object_get(eti_run_metric(one, &metric), "best");
        const json_t *took = json_object_get(one, "train_seconds");
        if (strcmp(fact(one, "recipe"), base) != 0 || used + 80 > sizeof c->alike)
            continue;
        const char *lr = eti_facts_get(one, "optimizer.lr", text);
        used += (size_t)snprintf(
            c->alike + used, sizeof c->alike - used, "%s%.30s %.12s",
            used ? "      " : "", fact(one, "name"),
            json_is_number(best) ? tui_value(json_number_value(best), number)
                                 : fact(one, "state"));
        if (json_is_number(took))
            used +=
                (size_t)snprintf(c->alike + used, sizeof c->alike - used, " in %.12s",
                                 tui_duration(json_number_value(took), number));
        if (lr)
            used += (size_t)snprintf(c->alike + used, sizeof c->alike - used,
                                     " (lr %.10s)", lr);
    }
    json_decref(list);
}

et_status
tui_compose_from_run(struct tui_app *app, const json_t *facts)
{
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    struct eti_sketch *other = NULL;
    char path[PATH_MAX], name[128];
    if (!c)
        return ET_EINVAL;
    snprintf(path, sizeof path, "%.4000s/recipe.yaml", fact(facts, "directory"));
    snprintf(name, sizeof name, "recipe of %.100s", fact(facts, "name"));
    ET_TRY(eti_sketch_new(app->cx, c->setup.env, &other));
    et_status status = eti_sketch_open(other, path);
    if (status == ET_OK)
        status = eti_sketch_begin(c->sketch, other->text, other->n, name);
    eti_sketch_free(&other);
    if (status == ET_OK)
        compose_refresh(c);
    return status;
}

static void
from_run(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    json_t *list;
    (void)text;
    if (list_runs(c, &list) != ET_OK ||
        tui_compose_from_run(app, json_array_get(list, (size_t)id - 1)) != ET_OK)
        tui_say_error(app);
    json_decref(list);
}

void
compose_start_run(struct compose *c)
{
    enum { MOST = 64 };
    struct tui_item item[MOST];
    json_t *list, *one;
    size_t i;
    int n = 0;
    if (list_runs(c, &list) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    json_array_foreach(list, i, one)
    {
        if (n == MOST)
            break;
        item[n] = (struct tui_item){.id = (int)i + 1};
        snprintf(item[n].text, sizeof item[n].text, "%s", fact(one, "name"));
        snprintf(item[n].note, sizeof item[n].note, "%s %s", fact(one, "recipe"),
                 fact(one, "state"));
        n++;
    }
    json_decref(list);
    if (n == 0) {
        tui_say(c->app, TUI_WARN, "! there is no run yet: a shows installed recipes");
    } else if (tui_popup_menu(&c->app->popup, c->sketch->cx,
                              "the recipe of a run: type to search", item,
                              n) != ET_OK) {
        tui_say_error(c->app);
    } else {
        c->app->popup.filters = true;
        c->app->popup.done = from_run;
        c->app->popup.data = c;
    }
}

static void
blank(struct tui_app *app, void *data, int id, const char *text)
{
    static const char vision[] = "# Images: what is trained, on what, and how.\n"
                                 "max_duration: 2ep\n"
                                 "model:\n  name: resnet8\n"
                                 "train_data:\n  name: synthetic_images\n"
                                 "  type: separable\n  batch_size: 64\n"
                                 "eval_data:\n  name: synthetic_images\n"
                                 "  type: separable\n"
                                 "optimizer:\n  name: decoupled_sgdw\n  lr: 0.1\n"
                                 "algorithms:\n";
    static const char language[] = "# Text: what is trained, on what, and how.\n"
                                   "max_duration: 200ba\n"
                                   "model:\n  name: gpt2\n  n_layers: 2\n"
                                   "  d_model: 64\n  n_heads: 2\n  max_seq_len: 64\n"
                                   "  vocab_size: 256\n"
                                   "train_data:\n  name: bible_kjv\n  seq_len: 64\n"
                                   "  batch_size: 16\n"
                                   "eval_data:\n  name: bible_kjv\n  seq_len: 64\n"
                                   "  subset_num_batches: 10\n"
                                   "optimizer:\n  name: decoupled_adamw\n  lr: 1.0e-3\n"
                                   "algorithms:\n";
    struct compose *c = data;
    const char *what = id == 1 ? vision : language;
    (void)text;
    if (eti_sketch_begin(c->sketch, what, strlen(what), "new recipe") != ET_OK)
        tui_say_error(app);
    compose_refresh(c);
}

void
compose_start_blank(struct compose *c)
{
    static const struct tui_item items[] = {
        {.id = 1, .key = 'i', .text = "images", .note = "a small residual net"},
        {.id = 2, .key = 't', .text = "text", .note = "a small transformer"},
    };
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, "a new recipe, of", items, 2) !=
        ET_OK) {
        tui_say_error(c->app);
        return;
    }
    c->app->popup.done = blank;
    c->app->popup.data = c;
}

/* ---- what other processes compute ---- */

/* Starts "etude VERB --json ARGUMENTS" of the text as it is. */
static et_status
start(struct compose *c, struct tui_job *job, const char *verb)
{
    const char *argument[ETI_COMMAND_ARGUMENTS + 8] = {verb, "--json"};
    struct eti_command command;
    int n = 2;
    et_status status = eti_command_new(c->sketch, &command);
    if (status == ET_ENOTSUP || (status == ET_EINVAL && !c->sketch->path)) {
        et_error_clear(c->sketch->cx);
        argument[n++] = TUI_JOB_INPUT;
        status =
            tui_job_start(job, c->sketch->cx, argument, c->sketch->text, c->sketch->n);
    } else if (status == ET_OK) {
        for (int i = 0; i < command.n; i++)
            argument[n++] = command.argument[i];
        status = tui_job_start(job, c->sketch->cx, argument, NULL, 0);
    }
    eti_command_release(&command);
    return status;
}

static double
number(const json_t *all, const char *key)
{
    const json_t *v = json_object_get(all, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static void
take_estimate(struct compose *c)
{
    struct tui_compose_numbers *n = &c->numbers;
    json_error_t error;
    json_t *all = json_loadb(c->estimate.text, c->estimate.n, 0, &error);
    n->problem[0] = '\0';
    n->is_known = c->estimate.code == 0 && json_is_object(all);
    if (n->is_known) {
        n->seconds = number(all, "seconds_per_batch");
        n->peak_bytes = number(all, "peak_bytes");
        n->params = number(all, "params");
    } else {
        const char *text = c->estimate.error;
        const char *colon =
            strncmp(text, "error E", 7) == 0 ? strstr(text, ": ") : NULL;
        et_visible(n->problem, sizeof n->problem, colon ? colon + 2 : text,
                   strlen(colon ? colon + 2 : text));
    }
    json_decref(all);
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
    c->explains = true;
    if (start(c, &c->estimate, "estimate") != ET_OK) {
        snprintf(c->numbers.problem, sizeof c->numbers.problem, "%.199s",
                 et_error_get(c->sketch->cx)->message);
        et_error_clear(c->sketch->cx);
        c->numbers.is_known = false;
    }
    return true;
}

/* ---- launching ---- */

static void
attach(struct compose *c)
{
    json_t *list = NULL, *one, *found = NULL;
    size_t i;
    struct tui_source *source;
    if (list_runs(c, &list) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    json_array_foreach(list, i,
                       one) if (!found && strcmp(fact(one, "name"), c->run_name) == 0)
        found = json_incref(one);
    json_decref(list);
    if (!found) {
        tui_say(c->app, TUI_BAD, "x %s has started, but its directory was not found",
                c->run_name);
    } else if (tui_source_dir(c->sketch->cx, found, &source) != ET_OK) {
        tui_say_error(c->app);
    } else {
        tui_app_attach(c->app, &source);
        tui_app_go(c->app, TUI_IN_monitor);
    }
}

static void
launched(struct compose *c)
{
    if (c->launch.code == 0)
        attach(c);
    else
        tui_say(c->app, TUI_BAD, "x not started: %.200s",
                *c->launch.error ? c->launch.error : "etude train failed");
}

static void
start_run(struct compose *c)
{
    const char *argument[ETI_COMMAND_ARGUMENTS + 8] = {"train", "-d", "--run_name",
                                                       c->run_name};
    struct eti_command command;
    uint64_t seed = 0;
    int n = 4;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint64_t)(tui_now(c->app) * 1e6);
    et_run_name_draw(seed, c->run_name);
    et_status status = eti_command_new(c->sketch, &command);
    for (int i = 0; i < command.n && status == ET_OK; i++)
        argument[n++] = command.argument[i];
    if (status == ET_OK)
        status = tui_job_start(&c->launch, c->sketch->cx, argument, NULL, 0);
    eti_command_release(&command);
    if (status == ET_OK)
        tui_say(c->app, TUI_TEXT, "%s starts...", c->run_name);
    else
        tui_say_error(c->app);
}

static void
go(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)text;
    if (id == 2 && eti_sketch_save(c->sketch, NULL, false) != ET_OK)
        tui_say_error(app);
    else if (id == 1 || id == 2)
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
    tui_popup_line(p, "directory  %s/ and the time", c->runs ? c->runs : "runs");
    if (c->numbers.is_known && c->numbers.batches > 0)
        tui_popup_line(p, "estimate   %s or more, %s of memory",
                       tui_duration(c->numbers.seconds * (double)c->numbers.batches, a),
                       tui_bytes(c->numbers.peak_bytes, b));
    else
        tui_popup_line(p, "estimate   %s",
                       *c->numbers.problem ? c->numbers.problem : "not known yet");
    tui_popup_line(p, "recipe     %s%s", c->sketch->path,
                   eti_sketch_is_changed(c->sketch) ? ", with what is not saved" : "");
    for (int i = 0; i < c->n_warnings && i < 2; i++)
        tui_popup_line(p, "! %s", c->check[i].text);
}

void
compose_launch(struct compose *c)
{
    struct tui_item item[2] = {
        {.id = 1, .text = "start it", .note = "enter"},
        {.id = 2, .key = 's', .text = "save, then start it"},
    };
    struct eti_command command;
    const struct eti_sketch *s = c->sketch;
    if (!eti_sketch_is_valid(s)) {
        tui_say(c->app, TUI_WARN, "! it cannot be launched: %s",
                compose_is_empty(c) ? "there is no recipe yet"
                                    : "the recipe has faults");
        return;
    }
    if (!s->path) {
        compose_save_as(c);
        tui_popup_line(&c->app->popup, "It needs a file first; then L again.");
        return;
    }
    et_status status = eti_command_new(c->sketch, &command);
    eti_command_release(&command);
    if (status != ET_OK && status != ET_ENOTSUP) {
        tui_say_error(c->app);
        return;
    }
    if (status == ET_ENOTSUP)
        snprintf(item[0].why, sizeof item[0].why, "overrides cannot say what changed");
    et_error_clear(s->cx);
    bool may_save = eti_sketch_is_changed(s) && access(s->path, W_OK) == 0;
    if (tui_popup_menu(&c->app->popup, s->cx, "launch", item, may_save ? 2 : 1) !=
        ET_OK) {
        tui_say_error(c->app);
        return;
    }
    say_launch(c, &c->app->popup);
    c->app->popup.done = go;
    c->app->popup.data = c;
}

/* ---- time ---- */

bool
compose_tick(struct tui_app *app, void *self)
{
    struct compose *c = self;
    double wait = app->config.is_dump ? PATIENCE : 0;
    compose_refresh(c);
    bool any = start_jobs(c);
    if (tui_job_poll(&c->estimate, wait)) {
        take_estimate(c);
        any = true;
    }
    if (c->explains && c->estimate.pid <= 0) {
        c->explains = false;
        if (start(c, &c->explain, "explain") != ET_OK)
            et_error_clear(c->sketch->cx);
        any = true;
    }
    if (tui_job_poll(&c->explain, wait)) {
        take_curve(c);
        any = true;
    }
    if (tui_job_poll(&c->launch, wait)) {
        launched(c);
        any = true;
    }
    return any;
}
