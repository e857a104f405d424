/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_control.c: what is asked of a run, and of the person who asks. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/facts.h"
#include "etude/algorithm.h"
#include "tui/format.h"
#include "tui/monitor.h"

/* An algorithm of the run is ALGORITHM and its place among them, which stays; one that
 * can join is JOIN and its place among all. */
enum {
    CHECKPOINT = 1,
    PAUSE,
    CONTINUE,
    STOP,
    KILL,
    TAKE,
    OPERATE,
    RATE,
    ALGORITHM = 1000,
    JOIN = 1000000
};
enum { COMMAND = 160 };

/* REQUEST is also the command of the command line. */
static const struct {
    int id, key;
    const char *text, *request, *said;
} controls[] = {
    {CHECKPOINT, 'k', "checkpoint now", "checkpoint", "a checkpoint is asked for"},
    {PAUSE, 'p', "pause before the next batch (frees nothing)", "pause",
     "asked to pause"},
    {CONTINUE, 'c', "continue", "continue", "asked to continue"},
    {STOP, 's', "stop after this batch, with a checkpoint", "stop", "asked to stop"},
    {KILL, 'K', "kill (type the run's name)", "kill", "asked to end at once"},
    {TAKE, 't', "take it: for 30 s nobody else steers it", "take", "asked for"},
};
enum { CONTROLS = sizeof controls / sizeof *controls };

static void
ask(struct tui_app *app, int id)
{
    for (int i = 0; i < CONTROLS; i++) {
        if (controls[i].id != id || !app->source)
            continue;
        if (app->source->class->request(app->source, controls[i].request) == ET_OK)
            tui_say(app, TUI_TEXT, "%s; events show what becomes of it",
                    controls[i].said);
        else
            tui_say_error(app);
    }
}

/* For the boxes of a run that goes on: they go with it. */
static bool
goes_on(struct tui_app *app)
{
    if (app->source && app->source->link != TUI_LINK_ENDED)
        return true;
    tui_say(app, TUI_TEXT, "the run has ended: nothing is asked of it any more");
    return false;
}

static const char *
check_name(void *data, const char *text, char *buf)
{
    char fact[ETI_FACT_TEXT];
    const struct tui_app *app = data;
    const char *name =
        app->source ? eti_facts_get(app->source->facts, "name", fact) : NULL;
    if (name && strcmp(text, name) == 0)
        return NULL;
    snprintf(buf, 160, "type the run's name, %.60s", name ? name : "-");
    return buf;
}

static void
killed(struct tui_app *app, void *data, int id, const char *text)
{
    (void)data, (void)id, (void)text;
    ask(app, KILL);
}

/* What a kill would lose by now. */
static bool
say_lost(struct tui_app *app)
{
    struct tui_saved k;
    if (!goes_on(app))
        return false;
    const struct etd_model *m = app->source->model;
    app->popup.n_lines = 0;
    if (tui_saved(m, &k))
        tui_popup_line(&app->popup, "%lld batches since the last checkpoint are lost.",
                       (long long)(m->ba - k.ba));
    else
        tui_popup_line(&app->popup,
                       "There is no checkpoint: all %lld batches are lost.",
                       (long long)m->ba);
    tui_popup_line(&app->popup, "Its name, to be sure:");
    return true;
}

static void
ask_kill(struct tui_app *app)
{
    tui_popup_prompt(&app->popup, app->cx, "kill this run", "");
    app->popup.renew = say_lost;
    app->popup.done = killed;
    app->popup.check = check_name;
    app->popup.data = app;
}

static void
stopped(struct tui_app *app, void *data, int id, const char *text)
{
    (void)data, (void)text;
    if (id == STOP)
        ask(app, STOP);
}

/* Ends a run that could go on: it is asked once more. */
static void
ask_stop(struct tui_app *app)
{
    static const struct tui_item items[] = {
        {.id = STOP, .text = "stop it"},
        {.id = 0, .text = "let it go on"},
    };
    if (tui_popup_menu(&app->popup, app->cx, "stop this run", items, 2) != ET_OK) {
        tui_say_error(app);
        return;
    }
    tui_popup_line(&app->popup,
                   "It finishes the batch, saves and ends; it can be resumed.");
    app->popup.done = stopped;
    app->popup.renew = goes_on;
}

/* ---- options and algorithms of a run that goes on ---- */

static void
request(struct tui_app *app, const char *text)
{
    if (app->source->class->request(app->source, text) == ET_OK)
        tui_say(app, TUI_TEXT, "asked: %s; events show what becomes of it", text);
    else
        tui_say_error(app);
}

static const char *
check_rate(void *data, const char *text, char *buf)
{
    char *end;
    const double rate = strtod(text, &end);
    (void)data;
    if (end != text && !end[strspn(end, " ")] && isfinite(rate) && rate >= 0)
        return NULL;
    snprintf(buf, 160, "a number that is not below 0, such as 0.05");
    return buf;
}

static void
set_rate(struct tui_app *app, void *data, int id, const char *text)
{
    char line[TUI_FIELD + 32];
    (void)data, (void)id;
    snprintf(line, sizeof line, "set optimizer.lr %s", text);
    if (app->source)
        request(app, line);
}

/* The rate of the recipe, or what it was set to since, as far as events tell of it. */
static double
rate_of(const struct tui_app *app)
{
    static const char set[] = " set optimizer.lr ";
    const struct etd_model *m = app->source->model;
    const json_t *config = json_object_get(app->source->facts, "config");
    const json_t *rate = json_object_get(config, "optimizer.lr");
    for (int i = m->n_events - 1; i >= 0; i--) {
        const struct etd_event *e = etd_model_event(m, i);
        const char *at = e->kind == ET_RECORD_COMMAND ? strstr(e->text, set) : NULL;
        if (at && strstr(at, "-> was "))
            return strtod(at + sizeof set - 1, NULL);
    }
    return json_is_number(rate) ? json_number_value(rate) : NAN;
}

static void
ask_rate(struct tui_app *app)
{
    char text[32] = "", now[TUI_NUMBER], fact[ETI_FACT_TEXT];
    const double rate = rate_of(app);
    const struct etd_series *lr = etd_model_series_like(app->source->model, "lr-");
    const char *name = eti_facts_get(app->source->facts, "name", fact);
    if (isfinite(rate))
        snprintf(text, sizeof text, "%.6g", rate);
    tui_popup_prompt(&app->popup, app->cx, "the rate from the next batch on", text);
    tui_popup_line(&app->popup, "optimizer.lr; the schedule multiplies it as before.");
    if (lr && isfinite(lr->last))
        tui_popup_line(&app->popup, "Times the schedule it is %s now.",
                       tui_value(lr->last, now));
    tui_popup_line(&app->popup, "same as: etude set %.60s optimizer.lr=VALUE",
                   name ? name : "RUN");
    app->popup.done = set_rate;
    app->popup.renew = goes_on;
    app->popup.check = check_rate;
}

/* Is ALGORITHM off? The newer of two sources counts: the run's own report, which comes
 * every few seconds, or the event of a switch, which other events of a fast run may
 * have pushed out. */
static bool
is_off(const struct etd_model *m, const char *algorithm)
{
    char text[ETD_LABEL + 16];
    const struct etd_part *said = tui_algorithm_said(m, algorithm);
    snprintf(text, sizeof text, " algo %.40s o", algorithm);
    for (int i = m->n_events - 1; i >= 0; i--) {
        const struct etd_event *e = etd_model_event(m, i);
        const char *at = e->kind == ET_RECORD_COMMAND ? strstr(e->text, text) : NULL;
        if (at && !strstr(at, "-> refused") && (!said || e->t >= said->t))
            return at[strlen(text)] == 'f';
    }
    return said && etd_part_get(said, "off") > 0;
}

static const char *
algorithm_of(const struct tui_app *app, int i)
{
    const json_t *names = json_object_get(app->source->facts, "algorithms");
    return json_string_value(json_array_get(names, (size_t)i));
}

static int
count_algorithms(const struct tui_app *app)
{
    return (int)json_array_size(json_object_get(app->source->facts, "algorithms"));
}

static bool
has_algorithm(const struct tui_app *app, const char *name)
{
    for (int i = count_algorithms(app) - 1; i >= 0; i--) {
        const char *own = algorithm_of(app, i);
        if (own && strcmp(own, name) == 0)
            return true;
    }
    return false;
}

/* What the item ID switches; *TO is what to: "on", or "off". NULL: it is another
 * item. */
static const char *
switched_by(const struct tui_app *app, int id, const char **to)
{
    *to = "on";
    if (id >= JOIN)
        return et_algorithm_classes[id - JOIN]->info.name;
    const char *name = id >= ALGORITHM ? algorithm_of(app, id - ALGORITHM) : NULL;
    if (name && !is_off(app->source->model, name))
        *to = "off";
    return name;
}

/* "clipping_type=norm clipping_threshold=": what C cannot do without, with UNKNOWN
 * where only the user can say it; "": nothing. */
static const char *
needs(const struct et_component *c, const char *unknown, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (const struct et_option *o = c->options; o && o->name; o++)
        if (o->flags & ET_OPT_REQUIRED && used < size)
            used +=
                (size_t)snprintf(buf + used, size - used, "%s%s=%s", used ? " " : "",
                                 o->name, o->choices ? o->choices[0] : unknown);
    return buf;
}

/* The command that does what the item ID does. Returns BUF. */
static const char *
command_of(const struct tui_app *app, int id, char buf[COMMAND])
{
    char fact[ETI_FACT_TEXT], options[COMMAND / 2] = "";
    const char *to, *run = eti_facts_get(app->source->facts, "name", fact);
    const char *name = switched_by(app, id, &to);
    buf[0] = '\0';
    run = run ? run : "RUN";
    if (id >= JOIN)
        needs(&et_algorithm_classes[id - JOIN]->info, "VALUE", options, sizeof options);
    if (name)
        snprintf(buf, COMMAND, "etude algo %.40s %.40s %s%s%s", run, name, to,
                 *options ? " " : "", options);
    else if (id == RATE)
        snprintf(buf, COMMAND, "etude set %.80s optimizer.lr=VALUE", run);
    for (int i = 0; i < CONTROLS; i++)
        if (controls[i].id == id)
            snprintf(buf, COMMAND, "etude %s %.80s", controls[i].request, run);
    return buf;
}

/* ---- an algorithm that needs to be told something ---- */

static const char *
check_options(void *data, const char *text, char *buf)
{
    (void)data;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t n = strcspn(text, " "), equals = strcspn(text, "=");
        if (equals == 0 || equals + 1 >= n) {
            snprintf(buf, 160,
                     "%.*s needs a value behind its =", (int)(n < 60 ? n : 60), text);
            return buf;
        }
        text += n;
    }
    return NULL;
}

static void
join_with(struct tui_app *app, void *data, int id, const char *text)
{
    const struct et_algorithm_class *c = data;
    char line[TUI_FIELD + 80];
    (void)id;
    snprintf(line, sizeof line, "algo %.40s on %s", c->info.name, text);
    if (app->source)
        request(app, line);
}

static void
ask_options(struct tui_app *app, const struct et_algorithm_class *c)
{
    char fact[ETI_FACT_TEXT], text[COMMAND], title[sizeof app->popup.title];
    const char *name = eti_facts_get(app->source->facts, "name", fact);
    snprintf(title, sizeof title, "%.40s: what it cannot do without", c->info.name);
    tui_popup_prompt(&app->popup, app->cx, title,
                     needs(&c->info, "", text, sizeof text));
    for (const struct et_option *o = c->info.options; o && o->name; o++)
        if (o->flags & ET_OPT_REQUIRED)
            tui_popup_line(&app->popup, "%.40s: %.100s", o->name, o->help);
    tui_popup_line(&app->popup, "same as: etude algo %.40s %.40s on OPTION=VALUE...",
                   name ? name : "RUN", c->info.name);
    app->popup.done = join_with;
    app->popup.renew = goes_on;
    app->popup.check = check_options;
    app->popup.data = (void *)(uintptr_t)c;
}

static void
switch_algorithm(struct tui_app *app, int id)
{
    char line[ETD_LABEL + 32], text[COMMAND];
    const char *to, *name = switched_by(app, id, &to);
    const struct et_algorithm_class *c =
        id >= JOIN ? et_algorithm_classes[id - JOIN] : NULL;
    if (!name)
        return;
    if (c && *needs(&c->info, "", text, sizeof text)) {
        ask_options(app, c);
        return;
    }
    snprintf(line, sizeof line, "algo %.40s %s", name, to);
    request(app, line);
}

/* ---- the menu ---- */

static void
put_switch(const struct tui_app *app, int id, const char *why, struct tui_item *item)
{
    char command[COMMAND], needed[COMMAND];
    const char *to, *name = switched_by(app, id, &to);
    const struct et_algorithm_class *c = et_algorithm_find(name ? name : "");
    bool asks = id >= JOIN && *needs(&c->info, "", needed, sizeof needed);
    *item = (struct tui_item){.id = id};
    snprintf(item->text, sizeof item->text, "turn %.32s %s%s", name ? name : "-", to,
             asks ? "..." : "");
    snprintf(item->note, sizeof item->note, "%.*s", (int)sizeof item->note - 1,
             command_of(app, id, command));
    snprintf(item->why, sizeof item->why, "%s", why);
}

/* Rows of the rate, of the run's algorithms, and of those that can join; how many. */
static int
add_switches(const struct tui_app *app, const char *why, struct tui_item *item)
{
    char command[COMMAND];
    int n = 0, first;
    item[n] = (struct tui_item){.id = RATE, .key = 'l', .text = "set the rate..."};
    snprintf(item[n].note, sizeof item[n].note, "%.*s", (int)sizeof item[n].note - 1,
             command_of(app, RATE, command));
    snprintf(item[n++].why, sizeof item->why, "%s", why);
    for (int i = 0; i < count_algorithms(app); i++)
        put_switch(app, ALGORITHM + i, why, &item[n++]);
    first = n;
    item[n++] = (struct tui_item){.is_heading = true, .text = "not in the run"};
    for (int i = 0; et_algorithm_classes[i] && app->source->link != TUI_LINK_ENDED; i++)
        if (!et_algorithm_why_not_join(et_algorithm_classes[i]) &&
            !has_algorithm(app, et_algorithm_classes[i]->info.name))
            put_switch(app, JOIN + i, why, &item[n++]);
    return n == first + 1 ? first : n;
}

/* Rows of a wide menu have no room for whole commands: that of the selected one has. */
static void
show_command(struct tui_app *app, int id)
{
    char command[COMMAND];
    if (id < 0 || !app->source || app->popup.n_lines == 0)
        return;
    snprintf(app->popup.line[app->popup.n_lines - 1], sizeof *app->popup.line,
             "same as: %.140s", command_of(app, id, command));
}

static void
chosen(struct tui_app *app, void *data, int id, const char *text)
{
    (void)data, (void)text;
    if (!app->source)
        return;
    if (id >= ALGORITHM)
        switch_algorithm(app, id);
    else if (id == RATE)
        ask_rate(app);
    else if (id == KILL)
        ask_kill(app);
    else if (id == STOP)
        ask_stop(app);
    else
        ask(app, id);
}

static void
operates(struct tui_app *app, void *data, int id, const char *text)
{
    (void)data, (void)text;
    if (id != OPERATE)
        return;
    tui_app_operate(app);
    tui_control_open(app);
}

/* Control asks for the role. */
static void
offer_role(struct tui_app *app)
{
    static const struct tui_item items[] = {
        {.id = OPERATE, .key = 'o', .text = "become its operator"},
        {.id = 0, .key = 'n', .text = "go on watching"},
    };
    char line[ETD_WORD + 64];
    if (tui_popup_menu(&app->popup, app->cx, "control", items, 2) != ET_OK) {
        tui_say_error(app);
        return;
    }
    tui_popup_line(&app->popup, "You watch this run as a viewer.");
    tui_popup_line(&app->popup, "%s", tui_app_holder(app, line, sizeof line));
    app->popup.done = operates;
}

/* Room for all items of the menu; the caller frees it. NULL: no memory. */
static struct tui_item *
new_items(const struct tui_app *app)
{
    size_t n = CONTROLS + 3;
    while (et_algorithm_classes[n - CONTROLS - 3])
        n++;
    n += app->source ? (size_t)count_algorithms(app) : 0;
    return calloc(n, sizeof(struct tui_item));
}

static void
put_control(const struct tui_app *app, int i, const char *why, struct tui_item *item)
{
    char command[COMMAND];
    bool paused = app->source && strcmp(app->source->model->state, "paused") == 0;
    const char *also = controls[i].id == CONTINUE && !paused ? "it is not paused"
                       : controls[i].id == PAUSE && paused   ? "it is"
                                                             : "";
    *item = (struct tui_item){.id = controls[i].id, .key = controls[i].key};
    snprintf(item->text, sizeof item->text, "%s", controls[i].text);
    if (app->source)
        snprintf(item->note, sizeof item->note, "%.*s", (int)sizeof item->note - 1,
                 command_of(app, controls[i].id, command));
    snprintf(item->why, sizeof item->why, "%s", *why ? why : also);
}

void
tui_control_open(struct tui_app *app)
{
    char line[ETD_WORD + 64];
    const char *why = !app->source ? "there is no run"
                      : app->config.is_readonly
                          ? tui_app_watches(app)
                          : app->source->class->refusal(app->source);
    if (!why && app->is_viewer) {
        offer_role(app);
        return;
    }
    bool is_taken = !why && *app->source->lease && !app->source->is_holder;
    const char *not_now = why ? "not now" : is_taken ? "taken" : "";
    struct tui_item *item = new_items(app);
    int n = 0;
    for (int i = 0; item && i < CONTROLS; i++)
        put_control(app, i, not_now, &item[n++]);
    if (item && app->source)
        n += add_switches(app, not_now, item + n);
    et_status status =
        item ? tui_popup_menu(&app->popup, app->cx, "control", item, n)
             : ET_FAIL(app->cx, ET_ENOMEM, "out of memory: the control menu");
    free(item);
    if (status != ET_OK) {
        tui_say_error(app);
        return;
    }
    if (why)
        tui_popup_line(&app->popup, "Nothing can be asked of it: %s.", why);
    else
        tui_popup_line(&app->popup, "%s", tui_app_holder(app, line, sizeof line));
    app->popup.done = chosen;
    if (why || !app->source)
        return;
    tui_popup_line(&app->popup, " ");
    app->popup.moved = show_command;
    app->popup.renew = goes_on;
    show_command(app, controls[0].id);
}

/* ---- notes ---- */

static const char *
check_note(void *data, const char *text, char *buf)
{
    (void)data, (void)buf;
    return text[strspn(text, " ")] ? NULL : "a note has some words";
}

static void
annotated(struct tui_app *app, void *data, int id, const char *text)
{
    (void)data, (void)id;
    if (!app->source)
        return;
    if (app->source->class->annotate(app->source, text) != ET_OK)
        tui_say_error(app);
    else if (app->source->asked == 0) /* else what comes of it is said */
        tui_say(app, TUI_TEXT, "noted: %s", text);
}

void
tui_annotate_open(struct tui_app *app)
{
    if (!app->source) {
        tui_say(app, TUI_WARN, "! there is no run to annotate");
        return;
    }
    const char *why = tui_app_watches(app);
    if (!why)
        why = app->source->class->mute(app->source);
    if (why) {
        tui_say(app, TUI_WARN, "! no note can be made: %s", why);
        return;
    }
    tui_popup_prompt(&app->popup, app->cx, "a note at this batch", "");
    app->popup.done = annotated;
    app->popup.check = check_note;
}

/* ---- metrics ---- */

/* The series is known by its number: names do not move while a menu is open, but the
 * model may grow; numbers of series stay. */
static void
picked(struct tui_app *app, void *data, int id, const char *text)
{
    (void)text;
    struct tui_monitor *m = data;
    int series = id & 1, which = id >> 1;
    struct tui_chart *c = tui_chart_focused(m);
    if (!app->source)
        return;
    c->is_chosen = true;
    if (which == 0)
        c->name[series][0] = '\0';
    else if (which - 1 < app->source->model->n_series)
        snprintf(c->name[series], ET_METRIC_NAME, "%s",
                 app->source->model->series[which - 1].name);
    if (!*c->name[0]) {
        memcpy(c->name[0], c->name[1], sizeof c->name[0]);
        c->name[1][0] = '\0';
    }
}

static bool
has_word(void *data, const char *word)
{
    return strcasestr(data, word) != NULL;
}

/* A name has no keys but itself: "name:lr" would be a word. */
static const char *
no_value(void *data, const char *key)
{
    return strcmp(key, "name") == 0 ? data : NULL;
}

void
tui_metrics_open(struct tui_app *app, struct tui_monitor *m, int series)
{
    static struct tui_item item[ETD_SERIES + 1];
    int n = 0;
    const struct etd_model *model = app->source ? app->source->model : NULL;
    for (int i = 0; model && i < model->n_series; i++) {
        const char *name = model->series[i].name;
        char label[ET_METRIC_NAME];
        const struct eti_subject subject = {(void *)name, has_word, no_value};
        if (!tui_sieve_passes(&m->sieve, &subject))
            continue;
        item[n] = (struct tui_item){.id = (i + 1) << 1 | series};
        et_visible(item[n].text, sizeof item[n].text, name, strlen(name));
        snprintf(item[n].note, sizeof item[n].note, "%.40s",
                 tui_metric_label(name, label));
        if (strcmp(label, name) == 0)
            item[n].note[0] = '\0';
        n++;
    }
    item[n] = (struct tui_item){.id = series};
    snprintf(item[n++].text, sizeof item[n].text, "(none)");
    if (tui_popup_menu(&app->popup, app->cx,
                       series ? "second metric of this chart" : "metric of this chart",
                       item, n) != ET_OK) {
        tui_say_error(app);
        return;
    }
    app->popup.filters = true;
    app->popup.done = picked;
    app->popup.data = m;
}
