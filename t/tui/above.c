/* SPDX-License-Identifier: Apache-2.0 */
/* above.c: the lines above Monitor's panels: what they say of a run's state, time and
 * checkpoints, and where the numbers stand at each width. */
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

/* A run with FACTS on a screen of ROWS x COLS. */
static struct made *
run_of(const char *facts, int rows, int cols)
{
    struct made *m = made_run(cx, facts);
    made_open(m, TUI_IN_monitor, rows, cols);
    return m;
}

/* ---- the first line ---- */

/* The first line of VIEW at ROWS x COLS. */
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
               "with the facts %s and the record '%s' a run that %s is shown as %s",
               rows[i].facts, rows[i].record, rows[i].is_over ? "has ended" : "goes on",
               rows[i].want);
        made_free(&m);
    }
    struct made *m = run_of("{}", 36, 120);
    made_state(m, "paused");
    struct tui_view v = made_view(m);
    ok(tui_run_is_paused(&v), "a run that goes on may be shown as paused");
    v.is_over = true;
    ok(!tui_run_is_paused(&v), "a run that has ended is not shown as paused");
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
        {was, true, false, 185,
         "a run that has ended counts from its start to its end"},
        {was, true, true, 50,
         "a dump of an ended run counts to the record that it shows"},
        {was, false, false, 45,
         "a run that goes on counts until now, without its rests"},
        {was, false, true, 60, "a dump of a run that goes on counts its rests"},
        {"{\"started\": 1763646990, \"ended\": 1763647100, \"rested\": 15}", true,
         false, 105, "an ended run that started late counts from its first record"},
        {"{\"started\": 1763646900, \"rested\": 15}", true, false, 35,
         "an ended run without a time of its end counts to its last record"},
        {"{\"rested\": 500}", false, false, 0,
         "rests longer than the run leave no negative time"},
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
        is_near(tui_run_seconds(&v), rows[i].want, 1e-6, "the seconds of a run: %s",
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
                "the first line calls a run with the facts %s%s", rows[i][0],
                rows[i][1]))
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
        has(status(&v, 36, 200), rows[i].want,
            "the first line divides the batch among ranks and pieces");
        made_free(&m);
    }
}

/* The newest checkpoint that was saved, the batch at which it was begun, and its age.
 */
static void
test_saved(void)
{
    struct tui_saved k;
    struct made *m = run_of("{}", 36, 200);
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epoch_batches", 8});
    ok(!tui_saved(m->model, &k),
       "before the first checkpoint is saved there is none to show");
    made_batches(m, 10, 500, 8);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "begun mine", NULL, 0);
    made_batches(m, 2, 500, 8);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "begun other", NULL, 0);
    made_batches(m, 1, 500, 8);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "saved mine", NULL, 0);
    made_batches(m, 3, 500, 8);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "failed other: full", NULL, 0);
    ok(tui_saved(m->model, &k), "after a checkpoint is saved it is shown");
    is_str(k.name, "mine", "the checkpoint that is shown is the one that was saved");
    is_int(k.ba, 10, "a checkpoint is shown with the batch at which it was begun");
    is_near(k.t, BEGAN + 6.5, 1e-6, "a checkpoint has the time at which it was saved");
    m->at.t += 50;
    made_line(m, 0, ET_LOG_INFO, "x");
    struct tui_view v = made_view(m);
    v.now = m->model->t;
    has(status(&v, 36, 200), "  ckpt ep1.25 51s ago ",
        "the first line has the checkpoint's age");
    v.is_over = true;
    has(status(&v, 36, 200), "  ckpt ep1.25   ",
        "the first line has no age of a checkpoint once the run has ended");
    made_free(&m);
}

/* ---- the connection to the run ---- */

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
    has(status(&v, 36, 120), "* live",
        "a dump of a run that goes on says that it is live");
    v.is_over = true;
    has(status(&v, 36, 120), "13:56",
        "a dump of an ended run has the time of the record that it shows");
    lacks(status(&v, 36, 120), "live",
          "a dump of an ended run does not say that it is live");
    m->app->config.is_dump = false;
    m->source.link = TUI_LINK_ENDED;
    has(status(&v, 36, 120), "13:59", "a terminal shows the time at which a run ended");
    v.is_over = false;
    m->app->is_frozen = true;
    v.now = BEGAN + 999;
    has(status(&v, 36, 120), "frozen 13:56:20",
        "a frozen view shows the time at which it was frozen");
    m->app->is_frozen = false;
    m->source.link = TUI_LINK_LIVE;
    m->source.rtt_ms = 12;
    m->app->grid.cols = 179;
    lacks(status(&v, 36, 179), "rtt",
          "the round trip to a run is not shown below 180 columns");
    m->app->grid.cols = 180;
    has(status(&v, 36, 180), "* live  rtt 12ms",
        "the round trip to a run is shown from 180 columns on");
    m->source.link = TUI_LINK_LOST;
    m->source.retry = tui_now(m->app) - 5;
    has(status(&v, 36, 120), "! no link since 13:56:20, retry in 0s, R now",
        "a lost link whose retry is due says that it retries at once");
    class = *m->source.class;
    class.progress = some_are_in;
    m->source.class = &class;
    has(status(&v, 36, 120), "history [==>",
        "a history that is being loaded has a bar");
    has(status(&v, 36, 120), "]  38% of 8.0 MB",
        "the bar of a history says how much is loaded");
    is_str(tui_monitor_empty(&v, "why"), "the history is being read",
           "a panel is empty because the history is being read");
    m->app->is_frozen = true;
    has(status(&v, 36, 120), "frozen", "a frozen view has no bar of the history");
    m->app->is_frozen = false;
    m->app->config.is_dump = true;
    lacks(status(&v, 36, 120), "history", "a dump has no bar of the history");
    is_str(tui_monitor_empty(&v, "why"), "why",
           "an empty panel of a dump says its own reason");
    m->source.link = TUI_LINK_CONNECTING;
    is_str(tui_monitor_empty(&v, "why"), "nobody has answered yet",
           "a panel is empty because nobody has answered yet");
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
    has(line, " RUNNING  00:03:19  39%",
        "a small terminal shows a run's state, time and share done");
    has(line, "ETA 5m00s", "a small terminal shows the time that is left");
    lacks(line, "mild", "a small terminal shows no name of a recipe");
    lacks(line, "(", "a small terminal shows no time of the end");
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
        is_int(at(text, "loss"), rows[i].loss,
               "at %d columns the loss stands in its place", rows[i].width);
        is_int(at(text, "accuracy"), rows[i].best,
               "the best evaluation stands in its place");
        is_int(at(text, "samples/s"), rows[i].speed, "the speed stands in its place");
        is_int(at(text, "ETA"), rows[i].eta,
               "the time that is left stands in its place");
    }
    has(made_panel_text(m, hero, 1, 120, false), " 1.0000 loss/train ",
        "at 120 columns values stand before their names");
    has(made_panel_text(m, hero, 1, 120, false), "  .5000 accuracy, best (ep2.5)",
        "at 120 columns the best evaluation is shown with its epoch");
    has(made_panel_text(m, hero, 1, 80, false), " loss 1.0000 ",
        "at 80 columns values stand behind their names");
    has(made_panel_text(m, hero, 1, 80, false), " accuracy .5000 best ",
        "at 80 columns the best evaluation lacks its epoch where this has no room");
    has(made_panel_text(m, hero, 1, 120, false), "16.0 samples/s",
        "the line shows the speed that was measured");
    made_free(&m);
    m = evaluated("metrics/eval/Accuracy", 80);
    has(made_panel_text(m, hero, 1, 80, false), " accuracy .5000 best, ep2 ",
        "at 80 columns the best evaluation has its epoch where this just fits");
    m->source.link = TUI_LINK_ENDED;
    lacks(made_panel_text(m, hero, 1, 120, false), "samples/s",
          "an ended run shows no speed");
    made_free(&m);
    m = evaluated("metrics/eval/AccuracyOfTheLast", 80);
    has(made_panel_text(m, hero, 1, 120, false), " best, best (ep2)",
        "a metric with a name too long for its place is called the best");
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
