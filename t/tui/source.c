/* SPDX-License-Identifier: Apache-2.0 */
/* source.c: a run by its hub is the run by its directory; what is asked of it comes to
 * its supervisor. RELIABILITY.md section 10, R02 and R16 from the viewer's side. */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/library/facts.h"
#include "t/dist/house.h"
#include "t/tap.h"
#include "tui/app.h"

enum { PATIENCE_MS = 120000, STEP_MS = 10 };

static struct house h;

static struct tui_source *
open_hub(void)
{
    struct tui_source *s;
    struct etd_target target = {0};
    snprintf(target.address, sizeof target.address, "%s", h.socket);
    if (tui_source_hub(h.cx, &target, &s) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    return s;
}

static struct tui_source *
open_directory(void)
{
    struct tui_source *s;
    json_t *facts;
    if (eti_facts_read(h.cx, h.directory, &facts) != ET_OK ||
        tui_source_dir(h.cx, facts, &s) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    while (s->class->advance(s, 1, 0))
        continue;
    return s;
}

static bool
is_live(const struct tui_source *s)
{
    return s->link == TUI_LINK_LIVE && !s->class->waits(s);
}

static bool
is_lost(const struct tui_source *s)
{
    return s->link == TUI_LINK_LOST;
}

static bool
has_all(const struct tui_source *s)
{
    return s->model->seq == h.log.seq;
}

static bool
has_notice(const struct tui_source *s)
{
    return *s->notice != '\0';
}

static bool
wait_for(struct tui_source *s, bool (*when)(const struct tui_source *s))
{
    const struct timespec pause = {0, STEP_MS * 1000000};
    for (int i = 0; i < PATIENCE_MS / STEP_MS && !when(s); i++) {
        s->class->advance(s, 0.01, 0);
        house_supervise(&h);
        nanosleep(&pause, NULL);
    }
    return when(s);
}

static void
is_same(const struct tui_source *a, const struct tui_source *b, const char *name)
{
    unsigned char x[16], y[16];
    bool both = etd_model_digest(a->model, x) == ET_OK &&
                etd_model_digest(b->model, y) == ET_OK;
    ok(both && a->model->seq == b->model->seq && memcmp(x, y, 16) == 0, "%s", name);
}

/* The screen that APP shows of *SOURCE, which it takes. The caller frees it. */
static char *
screen_of(struct tui_source **source)
{
    char *text = NULL;
    size_t size;
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = h.cx,
        .glyphs = &tui_glyphs_ascii,
        .is_dump = true,
        .first = TUI_IN_monitor,
        .rows = 24,
        .cols = 80,
    };
    const struct tui_dump what = {0};
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    tui_app_attach(app, source);
    FILE *f = open_memstream(&text, &size);
    if (tui_dump_screen(app, &what, f) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    fclose(f);
    tui_app_free(&app);
    return text;
}

/* Is WORD on the screen that shows *SOURCE, which it borrows? */
static bool
shows(struct tui_source *source, const char *word)
{
    char *text = NULL;
    size_t size;
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = h.cx,
        .glyphs = &tui_glyphs_ascii,
        .first = TUI_IN_monitor,
        .rows = 24,
        .cols = 80,
    };
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    app->source = source;
    tui_app_draw(app);
    FILE *f = open_memstream(&text, &size);
    tui_grid_print(&app->grid, f);
    fclose(f);
    app->source = NULL;
    tui_app_free(&app);
    bool found = strstr(text, word) != NULL;
    if (!found)
        diag("\n%s", text);
    free(text);
    return found;
}

static void
test_requests(struct tui_source *hub)
{
    ok(!hub->class->refusal(hub), "its owner may ask a run for something");
    ok(hub->class->request(hub, "pause") == ET_OK && wait_for(hub, has_notice) &&
           strncmp(hub->notice, "done after batch ", 17) == 0,
       "the answer says after which batch it was done: %s", hub->notice);
    ok(h.last.ttl_ms > 10000, "which may be one that takes longer than 10 s");
    hub->notice[0] = '\0';
    ok(hub->class->request(hub, "set optimizer.lr bad") == ET_OK &&
           wait_for(hub, has_notice) && strncmp(hub->notice, "x refused: ", 11) == 0,
       "or why it was not: %s", hub->notice);
    hub->notice[0] = '\0';
    ok(hub->class->request(hub, "explode") == ET_EINVAL, "nonsense is not sent");
    et_error_clear(h.cx);
}

/* Has the line come? (Lines that were read do not come again.) */
static bool
has_word(const struct tui_source *s)
{
    static bool found;
    struct tui_log_line l;
    while (s->class->line((struct tui_source *)(uintptr_t)s, &l))
        found = found || strcmp(l.text, "a word of rank 0") == 0;
    return found;
}

/* A hub has no files to read logs from: what ranks report comes with the records. */
static void
test_words(struct tui_source *hub)
{
    const struct et_record r = {.kind = ET_RECORD_LOG,
                                .level = ET_LOG_WARN,
                                .t = 1e9,
                                .text = "a word of rank 0"};
    eti_events_write(&h.log, &r);
    eti_events_flush(&h.log);
    ok(wait_for(hub, has_word), "what a rank reports is a line of the log");
}

/* A hub that says nothing for a while still has what it was asked for. */
static void
test_stale(struct tui_source *hub)
{
    const struct timespec pause = {0, STEP_MS * 1000000};
    house_stop_clock();
    bool asked = hub->class->request(hub, "continue") == ET_OK;
    kill(h.hub, SIGSTOP);
    for (int i = 0; i < PATIENCE_MS / STEP_MS && hub->link != TUI_LINK_STALE; i++) {
        house_pass(4); /* what it had said before is heard first */
        hub->class->advance(hub, 1, 0);
        nanosleep(&pause, NULL);
    }
    ok(asked && hub->link == TUI_LINK_STALE && hub->asked == 1,
       "while a hub is silent its answer is waited for");
    kill(h.hub, SIGCONT);
    ok(wait_for(hub, has_notice) && strncmp(hub->notice, "done after batch ", 17) == 0,
       "and comes: %s", hub->notice);
    hub->notice[0] = '\0';
    house_start_clock();
}

static bool
may_ask(const struct tui_source *s)
{
    return !s->class->refusal(s);
}

/* Nor is one gone that does not answer who connects. */
static void
test_late(void)
{
    kill(h.hub, SIGSTOP);
    struct tui_source *s = open_directory();
    bool is_awaited = s->class->waits(s);
    house_stop_clock();
    for (int i = 0; i < 8; i++) { /* of each step a second counts */
        house_pass(1);
        s->class->advance(s, 1, 0);
        is_awaited = is_awaited && s->class->waits(s);
    }
    house_start_clock();
    ok(!may_ask(s) && is_awaited, "a hub that is late is waited for");
    kill(h.hub, SIGCONT);
    ok(wait_for(s, may_ask) && !s->class->waits(s), "and comes");
    tui_source_free(&s);
}

/* As the supervisor does when its state changes, or its owner with a tag. */
static void
change_fact(const char *key, const char *value)
{
    char path[512], new[520];
    snprintf(path, sizeof path, "%s/run.json", h.directory);
    snprintf(new, sizeof new, "%s.new", path);
    json_t *facts = json_load_file(path, 0, NULL);
    json_object_set_new(facts, key, json_string(value));
    if (json_dump_file(facts, new, 0) != 0 || rename(new, path) != 0)
        bail("cannot change %s", path);
    json_decref(facts);
}

static bool
is_paused(const struct tui_source *s)
{
    const char *state = json_string_value(json_object_get(s->facts, "state"));
    return state && strcmp(state, "paused") == 0;
}

/* Is TEXT on the screen of APP? */
static bool
is_shown(struct tui_app *app, const char *word)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    tui_app_draw(app);
    tui_grid_print(&app->grid, f);
    fclose(f);
    bool found = strstr(text, word) != NULL;
    free(text);
    return found;
}

/* Ticks without time: each does as little as can be done. */
static void
test_history(void)
{
    struct tui_app *app;
    json_t *facts;
    struct tui_source *s;
    struct tui_app_config config = {
        .cx = h.cx,
        .glyphs = &tui_glyphs_ascii,
        .first = TUI_IN_monitor,
        .rows = 50,
        .cols = 200,
    };
    int ticks = 0;
    house_tell(&h, 20000);
    tui_keys_default(&config.keys);
    if (eti_facts_read(h.cx, h.directory, &facts) != ET_OK ||
        tui_source_dir(h.cx, facts, &s) != ET_OK || tui_app_new(&config, &app) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    tui_app_attach(app, &s);
    ok(is_shown(app, "history [") && is_shown(app, "the history is being read"),
       "a screen without values says why it has none");
    tui_app_tick(app, 0);
    ok(app->source->model->ba == h.ba && app->source->model->seq == h.log.seq,
       "after one tick it has the newest values");
    ok(tui_source_is_loading(app->source) && is_shown(app, "% of "),
       "though most of the history is still to come, which it says");
    const struct etd_series *loss =
        etd_model_series(app->source->model, "loss/train/total");
    int few = loss->n_bins;
    for (; ticks < 50; ticks++)
        tui_app_tick(app, 0);
    ok(tui_source_is_loading(app->source) &&
           etd_model_series(app->source->model, "loss/train/total")->n_bins > few,
       "then charts get finer before all is read");
    while (tui_app_tick(app, 1) || app->source->class->advance(app->source, 1, 0))
        continue; /* (a tick leaves a little that nobody waits for) */
    ok(!tui_source_is_loading(app->source) && !is_shown(app, "history ["),
       "until it is all there");
    struct tui_source *other = open_directory();
    is_same(app->source, other, "and then it is what the log has, no more and no less");
    tui_source_free(&other);
    tui_app_free(&app);
}

static void
tell_health(void)
{
    struct et_log_entry e = {.name = "own_ms", .value = 1};
    struct et_record r = {.kind = ET_RECORD_HEALTH, .t = 1e9, .entry = &e, .n = 1};
    eti_events_write(&h.log, &r);
    eti_events_flush(&h.log);
}

static void
test_silence(void)
{
    house_stop_clock();
    struct tui_source *s = open_directory();
    house_pass(60);
    s->class->advance(s, 1, 0);
    ok(s->link == TUI_LINK_LIVE, "a run that never says how it is may be silent");
    tell_health();
    s->class->advance(s, 1, 0);
    house_pass(2);
    s->class->advance(s, 1, 0);
    ok(s->link == TUI_LINK_LIVE, "one that does may be for two seconds");
    house_pass(2);
    s->class->advance(s, 1, 0);
    ok(s->link == TUI_LINK_STALE && shows(s, "stale 4s"),
       "after four what is shown of it is stale, and says so");
    tell_health();
    s->class->advance(s, 1, 0);
    ok(s->link == TUI_LINK_LIVE && shows(s, "* live"), "until it is heard again");
    tui_source_free(&s);
    house_start_clock();
}

static bool
has_ended(const struct tui_source *s)
{
    const char *state = json_string_value(json_object_get(s->facts, "state"));
    return state && strcmp(state, "stopped") == 0 && etd_model_has_ended(s->model);
}

/* A run that has ended on a machine whose folders are not here. */
static void
test_end_afar(void)
{
    char away[600], command[300];
    struct et_record r = {.kind = ET_RECORD_RUN, .t = 1e9, .text = "stopped"};
    eti_events_write(&h.log, &r);
    eti_events_flush(&h.log);
    change_fact("state", "stopped");
    struct tui_source *hub = open_hub();
    ok(wait_for(hub, has_ended), "a run that is watched by its hub ends");
    snprintf(away, sizeof away, "%s.away", h.directory);
    if (rename(h.directory, away) != 0)
        bail("cannot move %s", h.directory);
    char *text = screen_of(&hub);
    if (rename(away, h.directory) != 0)
        bail("cannot move %s back", h.directory);
    snprintf(command, sizeof command, "etude rerun %s", h.name);
    if (!ok(strstr(text, "What next   on its machine") && strstr(text, command),
            "where its folder is not here, what can be done there is told"))
        diag("%s", text);
    free(text);
}

/* Another break, which is shorter than the one before: it is told of, and once. */
static void
test_another_gap(struct tui_source *hub)
{
    int exit = 0;
    hub->notice[0] = '\0';
    house_kill(&h);
    ok(wait_for(hub, is_lost), "a hub that dies again is lost again");
    house_tell(&h, 3);
    if (!house_start(&h, &exit))
        bail("the hub ended with %d", exit);
    hub->class->retry(hub);
    ok(wait_for(hub, has_all) && wait_for(hub, has_notice), "and comes back");
    ok(strstr(hub->notice, "gap filled: 3 ") != NULL,
       "with what was missed this time: %s", hub->notice);
    hub->notice[0] = '\0';
    house_tell(&h, 1);
    ok(wait_for(hub, has_all), "then it goes on");
    is_str(hub->notice, "", "and what was filled is not told again");
}

/* What --dump-screen takes. */
static void
test_sizes(void)
{
    static const struct {
        const char *text;
        int cols, rows; /* 0: it is no size */
        bool roles;
    } all[] = {
        {"80x24", 80, 24, false},     {"80x24+roles", 80, 24, true},
        {"1x1", 1, 1, false},         {"500x400", 500, 400, false},
        {"400x500", 400, 500, false}, {"501x24", 0, 0, false},
        {"80x501", 0, 0, false},      {"0x24", 0, 0, false},
        {"80x0", 0, 0, false},        {"80x24+role", 0, 0, false},
        {"80x24 ", 0, 0, false},      {"80", 0, 0, false},
        {"80x", 0, 0, false},         {"x24", 0, 0, false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int rows = 0, cols = 0;
        bool roles = false;
        const bool is = tui_size_read(all[i].text, &rows, &cols, &roles);
        ok(is == (all[i].cols > 0) &&
               (!is ||
                (cols == all[i].cols && rows == all[i].rows && roles == all[i].roles)),
           "'%s' is %s", all[i].text, all[i].cols > 0 ? "a size" : "none");
    }
}

int
main(void)
{
    int exit = 0;
    struct eti_seams seams = eti_system;
    seams.monotonic = house_clock;
    setenv("TZ", "UTC", 1);
    test_sizes();
    house_begin(&h);
    eti_ctx_set_seams(h.cx, &seams);
    house_tell(&h, 2000);
    struct tui_source *hub, *directory;
    if (!house_start(&h, &exit))
        bail("the hub ended with %d", exit);
    hub = open_hub();
    ok(shows(hub, "connecting"), "it says that it connects");
    ok(hub->link == TUI_LINK_CONNECTING && hub->class->refusal(hub),
       "before the hub answers nothing can be asked");
    ok(wait_for(hub, is_live), "it answers");
    directory = open_directory();
    is_same(hub, directory, "the hub's model is that of the log");
    const char *name = json_string_value(json_object_get(hub->facts, "name"));
    is_str(name ? name : "", h.name, "with the run's name");

    house_tell(&h, 100);
    ok(wait_for(hub, has_all), "what happens then is seen");
    test_words(hub);
    test_requests(hub);
    test_stale(hub);
    test_late();

    house_kill(&h);
    ok(shows(hub, "* live"), "until then it was live");
    ok(wait_for(hub, is_lost), "a hub that dies is lost contact");
    ok(shows(hub, "! no link since") && shows(hub, "samples/s"),
       "which the screen says, beside what it knows");
    ok(hub->class->request(hub, "pause") == ET_ENOTSUP,
       "and what is asked meanwhile is refused, not kept");
    et_error_clear(h.cx);
    int64_t seq = hub->model->seq;
    house_tell(&h, 50);
    ok(hub->model->seq == seq, "what was known stays");
    if (!house_start(&h, &exit))
        bail("the hub ended with %d", exit);
    hub->class->retry(hub);
    ok(wait_for(hub, has_all), "when it is back all that was missed comes");

    ok(!is_paused(hub), "(it was not paused)");
    change_fact("state", "paused");
    ok(wait_for(hub, is_paused), "what run.json says later is known");
    ok(json_is_string(json_object_get(hub->facts, "name")) &&
           json_object_size(hub->facts) > 5,
       "beside what was known");
    change_fact("state", "starting");
    while (directory->class->advance(directory, 1, 0))
        continue;
    is_same(hub, directory, "and is what the log has");
    ok(strstr(hub->notice, "gap filled: 50") != NULL, "it is said that they did: %s",
       hub->notice);
    test_another_gap(hub);
    while (directory->class->advance(directory, 1, 0))
        continue;
    char *far = screen_of(&hub), *near = screen_of(&directory);
    char *a = strchr(far, '\n'), *b = strchr(near, '\n');
    if (!ok(a && b && strcmp(a, b) == 0, "both show the same screen"))
        diag("from the hub:\n%s\nfrom the log:\n%s", far, near);
    free(far);
    free(near);
    test_history();
    test_silence();
    test_end_afar();
    house_end(&h);
    return done();
}
