/* monitor_control.c: what is asked of a run, and of the person who asks. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/facts.h"
#include "tui/monitor.h"

enum { CHECKPOINT = 1, PAUSE, CONTINUE, STOP, KILL, TAKE, OPERATE, RATE, ALGORITHM = 100 };
enum { SWITCHES = 16 }; /* algorithms that the menu has room for */

/* REQUEST is also the command of the command line, which has none for TAKE. */
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

static void
ask_kill(struct tui_app *app)
{
    const struct etd_model *m = app->source->model;
    int64_t saved = -1;
    for (int i = m->n_marks - 1; i >= 0 && saved < 0; i--)
        if (etd_model_mark(m, i)->kind == ET_RECORD_CHECKPOINT)
            saved = etd_model_mark(m, i)->ba;
    tui_popup_prompt(&app->popup, app->cx, "kill this run", "");
    if (saved >= 0)
        tui_popup_line(&app->popup, "%lld batches since the last checkpoint are lost.",
                       (long long)(m->ba - saved));
    else
        tui_popup_line(&app->popup,
                       "There is no checkpoint: all %lld batches are lost.",
                       (long long)m->ba);
    tui_popup_line(&app->popup, "Its name, to be sure:");
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

static void
ask_rate(struct tui_app *app)
{
    char text[32] = "", fact[ETI_FACT_TEXT];
    const json_t *config = json_object_get(app->source->facts, "config");
    const json_t *rate = json_object_get(config, "optimizer.lr");
    const char *name = eti_facts_get(app->source->facts, "name", fact);
    if (json_is_number(rate))
        snprintf(text, sizeof text, "%.6g", json_number_value(rate));
    tui_popup_prompt(&app->popup, app->cx, "the rate from the next batch on", text);
    tui_popup_line(&app->popup, "optimizer.lr; the schedule multiplies it as before.");
    tui_popup_line(&app->popup, "the same: etude set %.60s optimizer.lr VALUE",
                   name ? name : "RUN");
    app->popup.done = set_rate;
    app->popup.check = check_rate;
}

/* Has it been switched off, as far as the events tell? */
static bool
is_off(const struct etd_model *m, const char *algorithm)
{
    char text[ETD_LABEL + 16];
    snprintf(text, sizeof text, " algo %.40s o", algorithm);
    for (int i = m->n_events - 1; i >= 0; i--) {
        const struct etd_event *e = etd_model_event(m, i);
        const char *at = e->kind == ET_RECORD_COMMAND ? strstr(e->text, text) : NULL;
        if (at && !strstr(at, "-> refused"))
            return at[strlen(text)] == 'f';
    }
    return false;
}

static const char *
algorithm_of(const struct tui_app *app, int i)
{
    const json_t *names = json_object_get(app->source->facts, "algorithms");
    return json_string_value(json_array_get(names, (size_t)i));
}

static void
switch_algorithm(struct tui_app *app, int i)
{
    char line[ETD_LABEL + 32];
    const char *name = algorithm_of(app, i);
    if (!name)
        return;
    snprintf(line, sizeof line, "algo %.40s %s", name,
             is_off(app->source->model, name) ? "on" : "off");
    request(app, line);
}

/* Rows of the rate and of the run's algorithms, each with its command; how many. */
static int
add_switches(const struct tui_app *app, const char *why, struct tui_item *item)
{
    char fact[ETI_FACT_TEXT];
    const char *run = eti_facts_get(app->source->facts, "name", fact), *name;
    int n = 0;
    run = run ? run : "RUN";
    item[n] = (struct tui_item){.id = RATE, .key = 'l', .text = "set the rate..."};
    snprintf(item[n].note, sizeof item[n].note, "etude set %.20s optimizer.lr", run);
    snprintf(item[n++].why, sizeof item->why, "%s", why);
    for (int i = 0; i < SWITCHES && (name = algorithm_of(app, i)); i++) {
        const char *to = is_off(app->source->model, name) ? "on" : "off";
        item[n] = (struct tui_item){.id = ALGORITHM + i};
        snprintf(item[n].text, sizeof item[n].text, "turn %.32s %s", name, to);
        snprintf(item[n].note, sizeof item[n].note, "etude algo %.12s %.16s %s", run,
                 name, to);
        snprintf(item[n++].why, sizeof item->why, "%s", why);
    }
    return n;
}

static void
chosen(struct tui_app *app, void *data, int id, const char *text)
{
    (void)data, (void)text;
    if (!app->source)
        return;
    if (id == RATE || id >= ALGORITHM) {
        if (id == RATE)
            ask_rate(app);
        else
            switch_algorithm(app, id - ALGORITHM);
        return;
    }
    if (id == KILL)
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

void
tui_control_open(struct tui_app *app)
{
    struct tui_item item[CONTROLS + 1 + SWITCHES];
    int n = CONTROLS;
    char line[ETD_WORD + 64], fact[ETI_FACT_TEXT];
    const char *name =
        app->source ? eti_facts_get(app->source->facts, "name", fact) : NULL;
    const char *why = !app->source ? "there is no run"
                      : app->config.is_readonly
                          ? tui_app_watches(app)
                          : app->source->class->refusal(app->source);
    if (!why && app->is_viewer) {
        offer_role(app);
        return;
    }
    bool paused = app->source && strcmp(app->source->model->state, "paused") == 0;
    bool is_taken = !why && *app->source->lease && !app->source->is_holder;
    for (int i = 0; i < CONTROLS; i++) {
        item[i] = (struct tui_item){.id = controls[i].id, .key = controls[i].key};
        const char *also = controls[i].id == CONTINUE && !paused ? "it is not paused"
                           : controls[i].id == PAUSE && paused   ? "it is"
                                                                 : "";
        snprintf(item[i].text, sizeof item[i].text, "%s", controls[i].text);
        if (name && controls[i].id != TAKE)
            snprintf(item[i].note, sizeof item[i].note, "etude %s %.20s",
                     controls[i].request, name);
        snprintf(item[i].why, sizeof item[i].why, "%s",
                 why        ? "not now"
                 : is_taken ? "taken"
                            : also);
    }
    if (app->source)
        n += add_switches(app, why ? "not now" : is_taken ? "taken" : "", item + n);
    if (tui_popup_menu(&app->popup, app->cx, "control", item, n) != ET_OK) {
        tui_say_error(app);
        return;
    }
    if (why)
        tui_popup_line(&app->popup, "Nothing can be asked of it: %s.", why);
    else
        tui_popup_line(&app->popup, "%s", tui_app_holder(app, line, sizeof line));
    app->popup.done = chosen;
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
