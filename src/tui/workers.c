/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c: see workers.h. */
#include "config.h"

#include "tui/workers.h"

#include <stdio.h>
#include <string.h>

#include "core/library/facts.h"
#include "core/library/index.h"
#include "tui/format.h"
#include "tui/glyphs.h"

static const double PATIENCE = 30; /* seconds */

enum { VIEWER = 1, OPERATOR };

/* ---- who there is ---- */

static void
add_row(struct workers *w, const char *name, const char *address, const char *key,
        const char *since)
{
    if (w->n == WORKERS_MOST)
        return;
    struct workers_row *r = &w->row[w->n++];
    snprintf(r->name, sizeof r->name, "%s", name);
    snprintf(r->address, sizeof r->address, "%s", address);
    snprintf(r->key, sizeof r->key, "%s", key);
    snprintf(r->since, sizeof r->since, "%s", since);
}

/* Reads workers.yaml and asks all workers again. The selection stays on the same
 * worker. */
static void
read_workers(struct workers *w)
{
    char name[64];
    struct etd_worker_list *known;
    char path[PATH_MAX + 16];
    void *block;
    snprintf(name, sizeof name, "%s", w->n > 0 ? tui_workers_selected(w)->name : "");
    (void)tui_user_stamp(w->folder, "workers.yaml", w->stamp);
    for (int i = 0; i < w->n; i++) {
        tui_job_stop(&w->row[i].job);
        memset(&w->row[i], 0, sizeof w->row[i]);
        tui_job_stop(&w->row[i].job);
    }
    w->n = 0;
    w->problem[0] = '\0';
    add_row(w, "local", "ipc", "", "");
    if (!*w->folder || et_alloc(w->app->cx, sizeof *known, &block) != ET_OK) {
        et_error_clear(w->app->cx);
        return;
    }
    known = block;
    snprintf(path, sizeof path, "%s/workers.yaml", w->folder);
    if (etd_workers_read(w->app->cx, path, known) != ET_OK) {
        snprintf(w->problem, sizeof w->problem, "%.199s",
                 et_error_get(w->app->cx)->message);
        et_error_clear(w->app->cx);
    } else {
        for (int i = 0; i < known->n; i++)
            add_row(w, known->worker[i].name, known->worker[i].address,
                    known->worker[i].key, known->worker[i].since);
        for (int i = 0; i < w->n; i++)
            if (strcmp(w->row[i].name, name) == 0)
                w->list.at = i;
    }
    et_free(w->app->cx, known);
}

/* ---- attaching ---- */

static et_status
find_local(struct tui_app *app, const char *name, struct tui_source **out)
{
    struct eti_index *index;
    json_t *facts = NULL;
    ET_TRY(eti_index_open(app->cx, NULL, &index));
    et_status status = eti_index_find(index, "runs", name, &facts);
    eti_index_close(&index);
    return status == ET_OK && facts ? tui_source_dir(app->cx, facts, out) : status;
}

et_status
tui_workers_find(struct tui_app *app, const char *text, struct tui_source **out)
{
    struct etd_target target = {0};
    bool is = false;
    *out = NULL;
    ET_TRY(etd_target_parse(app->cx, text, tui_workers_folder(app), &target, &is));
    if (is)
        return tui_source_hub(app->cx, &target, out);
    ET_TRY(find_local(app, text, out));
    return *out ? ET_OK
                : ET_FAIL(app->cx, ET_ENOENT, "no run and no worker is called '%.80s'",
                          text);
}

static void
attach(struct workers *w, const char *text)
{
    struct tui_source *source;
    if (tui_workers_find(w->app, text, &source) != ET_OK) {
        snprintf(w->fault, sizeof w->fault, "%.159s",
                 et_error_get(w->app->cx)->message);
        et_error_clear(w->app->cx);
        return;
    }
    tui_app_attach(w->app, &source);
    w->is_typing = false;
    w->fault[0] = '\0';
    tui_app_go(w->app, TUI_IN_monitor);
}

/* ---- what a worker is asked for ---- */

static void
start(struct workers *w, int doing, const char *to, const char *const *argument)
{
    w->doing = doing;
    snprintf(w->doing_to, sizeof w->doing_to, "%s", to);
    if (tui_job_start(&w->job, w->app->cx, argument, NULL, 0) != ET_OK) {
        w->doing = WORKERS_NOTHING;
        tui_say_error(w->app);
    }
}

static void
run_chosen(struct tui_app *app, void *data, int id, const char *text)
{
    struct workers *w = data;
    char target[300];
    (void)app;
    (void)text;
    snprintf(target, sizeof target, "%.64s@%.64s",
             tui_workers_text(json_array_get(w->runs, (size_t)id - 1), "name"),
             w->doing_to);
    attach(w, target);
    if (*w->fault)
        tui_say(app, TUI_BAD, "x %s", w->fault);
}

static void
offer_runs(struct workers *w)
{
    enum { MOST = 64 };
    struct tui_item item[MOST];
    json_error_t error;
    json_t *one;
    size_t i;
    int n = 0;
    json_decref(w->runs);
    w->runs = json_loadb(w->job.text, w->job.n, 0, &error);
    json_array_foreach(w->runs, i, one)
    {
        if (n == MOST)
            break;
        item[n] = (struct tui_item){.id = (int)i + 1};
        snprintf(item[n].text, sizeof item[n].text, "%.79s",
                 tui_workers_text(one, "name"));
        snprintf(item[n].note, sizeof item[n].note, "%.47s",
                 tui_workers_text(one, "state"));
        n++;
    }
    if (n == 0) {
        tui_say(w->app, TUI_TEXT, "%s has no runs", w->doing_to);
        return;
    }
    if (tui_popup_menu(&w->app->popup, w->app->cx, "its runs: type to search", item,
                       n) != ET_OK) {
        tui_say_error(w->app);
        return;
    }
    w->app->popup.filters = true;
    w->app->popup.done = run_chosen;
    w->app->popup.data = w;
}

struct workers_row *
tui_workers_selected(struct workers *w)
{
    return w->n > 0 ? &w->row[w->list.at < w->n ? w->list.at : 0] : NULL;
}

static void
key_chosen(struct tui_app *app, void *data, int id, const char *text)
{
    struct workers *w = data;
    char line[200];
    (void)text;
    snprintf(line, sizeof line, "etude worker allow '%s'%s", w->public_key,
             id == OPERATOR ? " operator" : "");
    tui_copy(app, line);
    tui_say(app, TUI_TEXT, "copied: %.120s", line);
}

/* This machine's key, for others, and the one that the selected worker is held to. */
static void
show_keys(struct workers *w)
{
    static const struct tui_item items[] = {
        {.id = VIEWER,
         .key = 'v',
         .text = "copy the command that lets it in as a viewer"},
        {.id = OPERATOR,
         .key = 'o',
         .text = "as an operator, which is as good as a login"},
    };
    struct tui_popup *p = &w->app->popup;
    const struct workers_row *r = tui_workers_selected(w);
    char fingerprint[ETD_FINGERPRINT];
    json_error_t error;
    json_t *all = json_loadb(w->job.text, w->job.n, 0, &error);
    bool good = etd_key_is(tui_workers_text(all, "public"));
    if (good)
        memcpy(w->public_key, tui_workers_text(all, "public"), sizeof w->public_key);
    json_decref(all);
    if (!good || tui_popup_menu(p, w->app->cx, "keys", items, 2) != ET_OK) {
        tui_say_error(w->app);
        return;
    }
    tui_popup_line(p, "this machine's: %s", w->public_key);
    tui_popup_line(p, "%s", etd_key_fingerprint(w->public_key, fingerprint));
    if (r && *r->key)
        tui_popup_line(p, "%s is held to %s", r->name,
                       etd_key_fingerprint(r->key, fingerprint));
    p->done = key_chosen;
    p->data = w;
}

static void
finish_test(struct workers *w)
{
    char a[TUI_NUMBER], b[TUI_NUMBER];
    json_error_t error;
    json_t *all = json_loadb(w->job.text, w->job.n, 0, &error);
    for (int i = 0; i < w->n; i++) {
        struct workers_row *r = &w->row[i];
        if (strcmp(r->name, w->doing_to) != 0 || !json_is_object(all))
            continue;
        tui_workers_take_test(r, all);
        tui_say(w->app, TUI_GOOD, "%s answers in %s, %s/s come from there", r->name,
                tui_ms(r->rtt_ms, a), tui_bytes(r->bandwidth, b));
    }
    json_decref(all);
}

/* What was asked for is there. */
static void
finish(struct workers *w)
{
    int doing = w->doing;
    w->doing = WORKERS_NOTHING;
    w->app->message[0] = '\0'; /* that it was being asked */
    if (w->job.code != 0) {
        const char *text = w->job.error;
        tui_say(w->app, TUI_BAD, "x %.220s", text);
        return;
    }
    if (doing == WORKERS_RUNS) {
        offer_runs(w);
    } else if (doing == WORKERS_KEYS) {
        show_keys(w);
    } else if (doing == WORKERS_TEST) {
        finish_test(w);
    } else {
        w->job.text[strcspn(w->job.text, "\n")] = '\0';
        tui_say(w->app, TUI_GOOD, "%.200s",
                doing == WORKERS_REMOVE ? "it is forgotten here" : w->job.text);
        read_workers(w);
    }
}

static void
open_runs(struct workers *w)
{
    const struct workers_row *r = tui_workers_selected(w);
    if (r && tui_workers_is_local(r)) {
        tui_app_go(w->app, TUI_IN_runs);
    } else if (r) {
        const char *argument[] = {"worker", "runs", r->name, "--json", NULL};
        tui_say(w->app, TUI_TEXT, "asking %s for its runs...", r->name);
        start(w, WORKERS_RUNS, r->name, argument);
    }
}

static void
test(struct workers *w)
{
    const struct workers_row *r = tui_workers_selected(w);
    if (r && r->is_alone) {
        tui_say(w->app, TUI_TEXT,
                "this machine needs no worker: there is none to test");
    } else if (r) {
        const char *argument[] = {"worker", "test", r->name, "--json", NULL};
        tui_say(w->app, TUI_TEXT, "testing %s...", r->name);
        start(w, WORKERS_TEST, r->name, argument);
    }
}

static void
found(struct tui_app *app, void *data, int id, const char *text)
{
    struct workers *w = data;
    (void)id;
    for (int i = 0; i < w->n; i++)
        if (strstr(w->row[i].name, text) || strstr(w->row[i].address, text)) {
            w->list.at = i;
            return;
        }
    tui_say(app, TUI_TEXT, "no worker here is called '%s'", text);
}

static void
added(struct tui_app *app, void *data, int id, const char *text)
{
    struct workers *w = data;
    char words[TUI_FIELD];
    const char *argument[8] = {"worker", "add"};
    int n = 2;
    (void)app;
    (void)id;
    snprintf(words, sizeof words, "%s", text);
    char *rest = words;
    for (char *word; n < 5 && (word = strtok_r(rest, " ", &rest)) != NULL;)
        argument[n++] = word;
    start(w, WORKERS_ADD, n > 2 ? argument[2] : "", argument);
}

static void
removed(struct tui_app *app, void *data, int id, const char *text)
{
    struct workers *w = data;
    const struct workers_row *r = tui_workers_selected(w);
    (void)app;
    (void)text;
    if (id != 1 || !r)
        return;
    const char *argument[] = {"worker", "remove", r->name, NULL};
    start(w, WORKERS_REMOVE, r->name, argument);
}

static void
ask_remove(struct workers *w)
{
    static const struct tui_item items[] = {
        {.id = 1, .key = 'y', .text = "forget it"},
        {.id = 2, .key = 'n', .text = "keep it"},
    };
    const struct workers_row *r = tui_workers_selected(w);
    if (!r || tui_workers_is_local(r)) {
        tui_say(w->app, TUI_TEXT, "this machine is always in the list");
        return;
    }
    if (tui_popup_menu(&w->app->popup, w->app->cx, "remove", items, 2) != ET_OK) {
        tui_say_error(w->app);
        return;
    }
    tui_popup_line(&w->app->popup, "%s, %s: its runs go on.", r->name, r->address);
    w->app->popup.done = removed;
    w->app->popup.data = w;
}

static void
change_role(struct tui_app *app)
{
    if (app->config.is_readonly) {
        tui_say(app, TUI_TEXT, "role: viewer: %s", tui_app_watches(app));
    } else if (app->is_viewer) {
        tui_say(app, TUI_TEXT, "role: operator, where the worker lets this key be one");
        tui_app_operate(app);
    } else {
        app->is_viewer = true;
        tui_say(app, TUI_TEXT, "role: viewer, runs cannot be steered from here");
    }
}

static bool
act(struct tui_app *app, void *self, enum tui_action action)
{
    static const char *const keygen[] = {"worker", "keygen", "--json", NULL};
    struct workers *w = self;
    if (tui_list_act(&w->list, action))
        return true;
    switch (action) {
    case TUI_DO_workers_open:
    case TUI_DO_everywhere_open:
        open_runs(w);
        return true;
    case TUI_DO_workers_find:
        tui_popup_prompt(&app->popup, app->cx, "find a worker", "");
        app->popup.done = found;
        app->popup.data = w;
        return true;
    case TUI_DO_workers_panel:
    case TUI_DO_workers_attach:
        if (!w->is_typing)
            tui_field_set(&w->address, "");
        w->is_typing = true;
        w->fault[0] = '\0';
        return true;
    case TUI_DO_workers_add:
        tui_popup_prompt(&app->popup, app->cx, "NAME ADDRESS [KEY]", "");
        tui_popup_line(&app->popup, "ADDRESS is ssh://HOST, or tcp://HOST:PORT, which");
        tui_popup_line(&app->popup,
                       "needs the KEY that `etude worker keygen` shows there, or");
        tui_popup_line(&app->popup, "ssh://HOST in its place, which asks for it.");
        app->popup.done = added;
        app->popup.data = w;
        return true;
    case TUI_DO_workers_keys:
        start(w, WORKERS_KEYS, "", keygen);
        return true;
    case TUI_DO_workers_test:
        test(w);
        return true;
    case TUI_DO_everywhere_retry:
        if (tui_workers_selected(w))
            tui_workers_ask(w, tui_workers_selected(w));
        return true;
    case TUI_DO_workers_role:
        change_role(app);
        return true;
    case TUI_DO_workers_remove:
        ask_remove(w);
        return true;
    default:
        return false;
    }
}

static bool
key(struct tui_app *app, void *self, int pressed)
{
    struct workers *w = self;
    (void)app;
    if (!w->is_typing)
        return false;
    if (pressed == TUI_K_ESC) {
        w->is_typing = false;
        w->fault[0] = '\0';
    } else if (pressed == TUI_K_ENTER && *w->address.text) {
        attach(w, w->address.text);
    } else if (tui_field_key(&w->address, pressed)) {
        w->fault[0] = '\0';
    }
    return true;
}

static void
mouse(struct tui_app *app, void *self, const struct tui_mouse *m)
{
    struct workers *w = self;
    if (m->what == TUI_CLICK && w->form_y > 0 && m->y >= w->form_y)
        act(app, w, TUI_DO_workers_attach);
    else if (tui_list_opens(&w->list, m, m->y - WORKERS_FIRST))
        open_runs(w);
    else
        tui_list_mouse(&w->list, m, m->y - WORKERS_FIRST);
}

/* Reads workers.yaml again where another program has changed it. Had one? */
static bool
follow_file(struct workers *w)
{
    char stamp[TUI_STAMP];
    if (strcmp(tui_user_stamp(w->folder, "workers.yaml", stamp), w->stamp) == 0)
        return false;
    read_workers(w);
    return true;
}

static bool
tick(struct tui_app *app, void *self)
{
    struct workers *w = self;
    double wait = app->config.is_dump ? PATIENCE : 0, now = tui_now(app);
    bool any = false, is_shown = app->screen[app->at]->where == TUI_IN_workers;
    /* A question is about the row that was selected when it was asked. */
    if (is_shown && !app->config.is_dump && app->popup.kind == TUI_NO_POPUP)
        any = follow_file(w);
    for (int i = 0; i < w->n; i++) {
        struct workers_row *r = &w->row[i];
        bool is_due = app->config.is_dump ? r->next == 0 : now >= r->next;
        if (is_shown && is_due && r->job.pid <= 0)
            tui_workers_ask(w, r);
    }
    for (int i = 0; i < w->n; i++)
        if (tui_job_poll(&w->row[i].job, wait)) {
            tui_workers_take(&w->row[i], tui_now(w->app));
            any = true;
        }
    if (w->doing != WORKERS_NOTHING && tui_job_poll(&w->job, wait)) {
        finish(w);
        any = true;
    }
    return any;
}

static enum tui_role
message(struct tui_app *app, void *self, char *buf, size_t size)
{
    const struct workers *w = self;
    (void)app;
    if (*w->fault) {
        snprintf(buf, size, "x %s", w->fault);
        return TUI_BAD;
    }
    snprintf(buf, size, "%s%s", *w->problem ? "! " : "", w->problem);
    return *w->problem ? TUI_WARN : TUI_TEXT;
}

/* ---- life ---- */

static et_status
open_screen(struct tui_app *app, void *self)
{
    struct workers *w = self;
    void *block;
    w->app = app;
    tui_job_stop(&w->job);
    ET_TRY(et_alloc(app->cx, WORKERS_MOST * sizeof *w->row, &block));
    w->row = block;
    for (int i = 0; i < WORKERS_MOST; i++)
        tui_job_stop(&w->row[i].job);
    read_workers(w);
    return ET_OK;
}

static void
close_screen(struct tui_app *app, void *self)
{
    struct workers *w = self;
    tui_job_stop(&w->job);
    for (int i = 0; w->row && i < WORKERS_MOST; i++)
        tui_job_stop(&w->row[i].job);
    et_free(app->cx, w->row);
    json_decref(w->runs);
}

et_status
tui_workers_setup(struct tui_app *app, const char *folder)
{
    struct workers *w = tui_app_state(app, TUI_IN_workers);
    if (!w)
        return ET_EINVAL;
    snprintf(w->folder, sizeof w->folder, "%s", folder ? folder : "");
    read_workers(w);
    return ET_OK;
}

const char *
tui_workers_folder(struct tui_app *app)
{
    const struct workers *w = tui_app_state(app, TUI_IN_workers);
    return w ? w->folder : "";
}

const struct tui_screen tui_screen_workers = {
    .where = TUI_IN_workers,
    .size = sizeof(struct workers),
    .open = open_screen,
    .close = close_screen,
    .draw = tui_workers_draw,
    .message = message,
    .key = key,
    .act = act,
    .mouse = mouse,
    .tick = tick,
};
