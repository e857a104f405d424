/* SPDX-License-Identifier: Apache-2.0 */
/* above.c: the lines above Monitor's panels: what a run's facts and records say of its
 * state, its time and its checkpoints, and where the numbers stand at each width. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tui/made.h"
#include "tui/format.h"

static struct et_ctx *cx;
static const double BEGAN = 1763646980; /* 13:56:20, when the runs of made.h begin */

static void
has(const char *text, const char *part, const char *name)
{
    if (!ok(strstr(text, part) != NULL, "%s", name))
        diag("no '%s' in\n%s", part, text);
}

static void
lacks(const char *text, const char *part, const char *name)
{
    if (!ok(strstr(text, part) == NULL, "%s", name))
        diag("'%s' in\n%s", part, text);
}

/* A run of FACTS whose screen has ROWS x COLS. */
static struct made *
run_of(const char *facts, int rows, int cols)
{
    struct made *m = made_run(cx, facts);
    made_open(m, TUI_IN_monitor, rows, cols);
    return m;
}

/* ---- the first line ---- */

/* What VIEW's first line says at ROWS x COLS. */
static const char *
status(const struct tui_view *v, int rows, int cols)
{
    static char line[512];
    struct tui_grid g;
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f || tui_grid_init(&g, cx, &tui_glyphs_ascii, rows, cols) != ET_OK)
        bail("no memory");
    const struct tui_pane all = tui_pane_of(&g);
    tui_monitor_status(v, &all);
    tui_grid_print(&g, f);
    fclose(f);
    tui_grid_release(&g);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
    return line;
}

static void
test_state(void)
{
    static const struct {
        const char *facts, *record, *want;
        bool is_over, is_past;
    } rows[] = {
        {"{}", "", "starting", false, false},
        {"{\"state\": \"waiting\"}", "", "waiting", false, false},
        {"{\"state\": \"lost\"}", "running", "running", false, false},
        {"{\"state\": \"lost\"}", "running", "lost", true, false},
        {"{\"state\": \"lost\"}", "running", "running", true, true},
        {"{}", "running", "running", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = run_of(rows[i].facts, 36, 120);
        if (*rows[i].record)
            made_state(m, rows[i].record);
        m->app->config.is_past = rows[i].is_past;
        struct tui_view v = made_view(m);
        v.is_over = rows[i].is_over;
        is_str(tui_run_state(&v), rows[i].want,
               "of %s and the record '%s' a run that %s is %s", rows[i].facts,
               rows[i].record, rows[i].is_over ? "is over" : "goes on", rows[i].want);
        made_free(&m);
    }
    struct made *m = run_of("{}", 36, 120);
    made_state(m, "paused");
    struct tui_view v = made_view(m);
    ok(tui_run_is_paused(&v), "a run that goes on may be paused");
    v.is_over = true;
    ok(!tui_run_is_paused(&v), "one that is over is not any more");
    made_free(&m);
}

static void
test_seconds(void)
{
    static const char was[] = "{\"started\": 1763646900, \"ended\": 1763647100,"
                              " \"rested\": 15}";
    static const struct {
        const char *facts;
        bool is_over, is_dump;
        double want;
        const char *name;
    } rows[] = {
        {was, true, false, 185, "one that is over from its start to its end"},
        {was, true, true, 50, "to the record that is shown, where that is dumped"},
        {was, false, false, 45, "one that goes on until now, without its rests"},
        {was, false, true, 60, "with them in a dump"},
        {"{\"started\": 1763646990, \"ended\": 1763647100, \"rested\": 15}", true,
         false, 105, "at the latest from its first record"},
        {"{\"started\": 1763646900, \"rested\": 15}", true, false, 35,
         "without an end to its last"},
        {"{\"rested\": 500}", false, false, 0, "never less than nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = run_of(rows[i].facts, 36, 120);
        made_state(m, "running");
        m->at.t += 50;
        made_line(m, 0, ET_LOG_INFO, "x");
        struct tui_view v = made_view(m);
        v.is_over = rows[i].is_over;
        v.now = BEGAN + 60;
        m->app->config.is_dump = rows[i].is_dump;
        is_near(tui_run_seconds(&v), rows[i].want, 1e-6, "a run took time: %s",
                rows[i].name);
        made_free(&m);
    }
}

static void
test_recipe(void)
{
    static const char *const rows[][2] = {
        {"{\"recipe\": \"a.b/c.yaml\"}", " c "},
        {"{\"recipe\": \"c.d.yml\"}", " c.d "},
        {"{\"recipe\": \"c.json\"}", " c.json "},
        {"{\"recipe\": \"x/.yaml\"}", " .yaml "},
        {"{\"model\": \"mlp\", \"recipe\": \"c.yaml\"}", " c "},
        {"{\"model\": \"mlp\"}", " mlp "},
        {"{}", " run "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = run_of(rows[i][0], 36, 120);
        made_state(m, "running");
        const struct tui_view v = made_view(m);
        const char *line = status(&v, 36, 120);
        if (!ok(strncmp(line, rows[i][1], strlen(rows[i][1])) == 0,
                "a run of %s is called%s", rows[i][0], rows[i][1]))
            diag("%s", line);
        made_free(&m);
    }
}

static void
test_batch(void)
{
    static const struct {
        int ranks;
        double accum;
        const char *facts, *want;
    } rows[] = {
        {1, 1, "{}", "1 rank   batch 96 "},
        {1, 3, "{}", "1 rank   batch 96 = 32 x 1 x 3 "},
        {2, 1, "{\"seed\": 5}", "2 ranks   seed 5   batch 96 = 48 x 2 "},
        {2, 3, "{\"algorithms\": [\"ema\"]}",
         "2 ranks   batch 96 = 16 x 2 x 3   1 algorithm "},
        {4, 2, "{\"precision\": \"fp32\", \"algorithms\": [\"a\", \"b\", \"c\"]}",
         "4 ranks   fp32   batch 96 = 12 x 4 x 2   3 algorithms "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = run_of(rows[i].facts, 36, 200);
        MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batch_size", 96},
                 {"run/grad_accum", rows[i].accum});
        if (rows[i].ranks > 1)
            MADE_SAY(m, ET_RECORD_HEALTH, rows[i].ranks - 1, NULL, {"own_ms", 1});
        const struct tui_view v = made_view(m);
        has(status(&v, 36, 200), rows[i].want, "the batch is told as it is cut");
        made_free(&m);
    }
}

/* What is told of checkpoints: the newest that was saved, of the batch at which it was
 * begun, and since when it is there. */
static void
test_saved(void)
{
    struct tui_saved k;
    struct made *m = run_of("{}", 36, 200);
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epoch_batches", 8});
    ok(!tui_saved(m->model, &k), "at first nothing is saved");
    made_batches(m, 10, 500, 8);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "begun mine", NULL, 0);
    made_batches(m, 2, 500, 8);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "begun other", NULL, 0);
    made_batches(m, 1, 500, 8);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "saved mine", NULL, 0);
    made_batches(m, 3, 500, 8);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "failed other: full", NULL, 0);
    ok(tui_saved(m->model, &k), "then it is");
    is_str(k.name, "mine", "by its name");
    is_int(k.ba, 10, "with what was trained when it was begun");
    is_near(k.t, BEGAN + 6.5, 1e-6, "from when it was whole");
    m->at.t += 50;
    made_line(m, 0, ET_LOG_INFO, "x");
    struct tui_view v = made_view(m);
    v.now = m->model->t;
    has(status(&v, 36, 200), "  ckpt ep1.25 51s ago ", "which is told as its age");
    v.is_over = true;
    has(status(&v, 36, 200), "  ckpt ep1.25   ", "unless the run is over");
    made_free(&m);
}

/* ---- the way to the run ---- */

static void
some_are_in(const struct tui_source *s, int64_t *done, int64_t *all)
{
    (void)s;
    *done = 3000000;
    *all = 8000000;
}

static void
test_link(void)
{
    struct tui_source_class class;
    struct made *m = run_of("{\"ended\": 1763647170}", 36, 120);
    made_state(m, "running");
    struct tui_view v = made_view(m);
    has(status(&v, 36, 120), "* live", "a dump of a run that goes on shows it live");
    v.is_over = true;
    has(status(&v, 36, 120), "13:56",
        "of one that is over, when the record was that is shown");
    lacks(status(&v, 36, 120), "live", "and it is not live");
    m->app->config.is_dump = false;
    m->source.link = TUI_LINK_ENDED;
    has(status(&v, 36, 120), "13:59", "on a terminal, when it ended");
    v.is_over = false;
    m->app->is_frozen = true;
    v.now = BEGAN + 999;
    has(status(&v, 36, 120), "frozen 13:56:20", "a view stands where it was frozen");
    m->app->is_frozen = false;
    m->source.link = TUI_LINK_LIVE;
    m->source.rtt_ms = 12;
    m->app->grid.cols = 179;
    lacks(status(&v, 36, 179), "rtt", "how far it is has room from 180 columns on");
    m->app->grid.cols = 180;
    has(status(&v, 36, 180), "* live  rtt 12ms", "and is told there");
    m->source.link = TUI_LINK_LOST;
    m->source.retry = tui_now(m->app) - 5;
    has(status(&v, 36, 120), "! no link since 13:56:20, retry in 0s, R now",
        "a retry that is due comes at once");
    class = *m->source.class;
    class.progress = some_are_in;
    m->source.class = &class;
    has(status(&v, 36, 120), "history [==>", "a history that comes in has a bar");
    has(status(&v, 36, 120), "]  38% of 8.0 MB", "and how much of it is in");
    is_str(tui_monitor_empty(&v, "why"), "the history is being read",
           "which is why a panel is empty");
    m->app->is_frozen = true;
    has(status(&v, 36, 120), "frozen", "one that is frozen has no bar");
    m->app->is_frozen = false;
    m->app->config.is_dump = true;
    lacks(status(&v, 36, 120), "history", "nor has a dump");
    is_str(tui_monitor_empty(&v, "why"), "why", "whose panels are empty for good");
    m->source.link = TUI_LINK_CONNECTING;
    is_str(tui_monitor_empty(&v, "why"), "nobody has answered yet",
           "before anybody answers that is why");
    made_free(&m);
}

static void
test_brief(void)
{
    struct made *m = run_of("{\"recipe\": \"mild.yaml\"}", 15, 59);
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 1000});
    made_batches(m, 399, 500, 8);
    struct tui_view v = made_view(m);
    v.now = m->model->t;
    const char *line = status(&v, 15, 59);
    has(line, " RUNNING  00:03:19  39%", "a small terminal has the state and how far");
    has(line, "ETA 5m00s", "it is, and how long it will be");
    lacks(line, "mild", "but no name");
    lacks(line, "(", "and no clock");
    made_free(&m);
}

/* ---- the numbers ---- */

static void
hero(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    (void)focus;
    tui_monitor_hero(v, p);
}

/* Where WORD begins in TEXT; -1: it is not there. */
static int
at(const char *text, const char *word)
{
    const char *found = strstr(text, word);
    return found ? (int)(found - text) : -1;
}

static struct made *
evaluated(const char *metric, int64_t batches)
{
    struct et_log_entry e = {.value = .5};
    struct made *m = run_of("{}", 50, 200);
    snprintf(e.name, sizeof e.name, "%s", metric);
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 1000},
             {"run/epoch_batches", 40});
    made_batches(m, (int)batches, 500, 8);
    made_say(m, ET_RECORD_EVAL, 0, "eval", &e, 1);
    e.value = .25;
    made_batches(m, (int)(400 - batches), 500, 8);
    made_say(m, ET_RECORD_EVAL, 0, "eval", &e, 1);
    return m;
}

static void
test_hero(void)
{
    static const struct {
        int width, loss, best, speed, eta;
    } rows[] = {
        {200, 9, 47, 95, 138}, {180, 9, 47, 95, 138}, {179, 8, 30, 62, 91},
        {120, 8, 30, 62, 91},  {119, 1, 14, 46, 58},  {80, 1, 14, 46, 58},
        {79, 1, 13, 42, -1},   {60, 1, 13, 42, -1},   {59, 0, 12, -1, -1},
    };
    struct made *m = evaluated("metrics/eval/Accuracy", 100);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = made_panel_text(m, hero, 1, rows[i].width, false);
        is_int(at(text, "loss"), rows[i].loss, "at %d columns the loss has its place",
               rows[i].width);
        is_int(at(text, "accuracy"), rows[i].best, "and the best evaluation");
        is_int(at(text, "samples/s"), rows[i].speed, "and the speed");
        is_int(at(text, "ETA"), rows[i].eta, "and the end");
    }
    has(made_panel_text(m, hero, 1, 120, false), " 1.0000 loss/train ",
        "values stand before their names");
    has(made_panel_text(m, hero, 1, 120, false), "  .5000 accuracy, best (ep2.5)",
        "of evaluations it is the best, with its place");
    has(made_panel_text(m, hero, 1, 80, false), " loss 1.0000 ",
        "or behind, where there is less room");
    has(made_panel_text(m, hero, 1, 80, false), " accuracy .5000 best ",
        "and the best has no place where it has no room");
    has(made_panel_text(m, hero, 1, 120, false), "16.0 samples/s",
        "the speed is what was measured");
    made_free(&m);
    m = evaluated("metrics/eval/Accuracy", 80);
    has(made_panel_text(m, hero, 1, 80, false), " accuracy .5000 best, ep2 ",
        "a place that just fits is told");
    m->source.link = TUI_LINK_ENDED;
    lacks(made_panel_text(m, hero, 1, 120, false), "samples/s",
          "a run that is over has no speed");
    made_free(&m);
    m = evaluated("metrics/eval/AccuracyOfTheLast", 80);
    has(made_panel_text(m, hero, 1, 120, false), " best, best (ep2)",
        "a metric of a long name is called the best");
    made_free(&m);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    setenv("TZ", "UTC", 1);
    test_state();
    test_seconds();
    test_recipe();
    test_batch();
    test_saved();
    test_link();
    test_brief();
    test_hero();
    et_ctx_free(&cx);
    return done();
}
