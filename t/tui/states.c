/* SPDX-License-Identifier: Apache-2.0 */
/* states.c: what Monitor's first line says of the run: its state and time, what it is,
 * its newest checkpoint, and the way to it. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tui/made.h"
#include "tui/format.h"

static struct et_ctx *cx;

static struct made *
run(const char *facts)
{
    struct made *m = made_run(cx, facts);
    made_open(m, TUI_IN_monitor, 50, 200);
    made_state(m, "running");
    return m;
}

/* ---- the newest checkpoint ---- */

/* The N-th mark is N batches and N seconds behind the first. */
static void
test_saved(void)
{
    static const struct {
        const char *marks[5];
        const char *name; /* NULL: none is there */
        int ba, t;
    } rows[] = {
        {{"begun ep1"}, NULL, 0, 0},
        {{"begun ep1", "failed ep1"}, NULL, 0, 0},
        {{"begun ep1", "saved ep1"}, "ep1", 1, 2},
        {{"saved ep1"}, "ep1", 1, 1},
        {{"ep1"}, "ep1", 1, 1},
        {{"begun ep1", "saved ep1", "begun ep2"}, "ep1", 1, 2},
        {{"begun ep1", "saved ep1", "begun ep2", "failed ep2"}, "ep1", 1, 2},
        {{"begun ep1", "begun ep2", "saved ep2"}, "ep2", 2, 3},
        {{"begun ep1", "begun ep2", "saved ep1"}, "ep1", 1, 3},
        {{"begun ep1", "saved ep1", "begun ep2", "saved ep2"}, "ep2", 3, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tui_saved got;
        struct made *m = run("{}");
        const double first = m->at.t;
        const int64_t ba = m->at.ba;
        for (int k = 0; k < 5 && rows[i].marks[k]; k++) {
            m->at.t = first + k + 1;
            m->at.ba = ba + k + 1;
            made_say(m, ET_RECORD_CHECKPOINT, 0, rows[i].marks[k], NULL, 0);
        }
        const bool is_there = tui_saved(m->model, &got);
        is_str(is_there ? got.name : "none", rows[i].name ? rows[i].name : "none",
               "the newest checkpoint after '%s'",
               rows[i].marks[3]   ? rows[i].marks[3]
               : rows[i].marks[2] ? rows[i].marks[2]
               : rows[i].marks[1] ? rows[i].marks[1]
                                  : rows[i].marks[0]);
        if (is_there) {
            is_int(got.ba - ba, rows[i].ba, "holds what was trained as it was begun");
            is_near(got.t - first, rows[i].t, 1e-9, "and is there since it was saved");
        }
        made_free(&m);
    }
}

static void
test_places(void)
{
    static const struct {
        int64_t ba;
        double per;
        const char *want;
    } rows[] = {{1500, 0, "1,500ba"}, {1500, 1000, "ep1.5"}, {1, 3, "ep0.33"},
                {2, 3, "ep0.67"},     {3000, 1000, "ep3"},   {0, 10, "ep0"}};
    char buf[TUI_NUMBER];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_str(tui_place_text(rows[i].ba, rows[i].per, buf), rows[i].want,
               "%d batches of %g an epoch", (int)rows[i].ba, rows[i].per);
}

/* ---- time ---- */

/* The first record is at 1000 s, the last at 1060 s; now it is 1100 s. */
static void
test_seconds(void)
{
    static const struct {
        const char *facts;
        bool is_over, is_dump;
        double seconds;
        const char *what;
    } rows[] = {
        {"{}", false, false, 100, "a run that goes on"},
        {"{}", true, false, 60, "one that broke off, to its last record"},
        {"{\"started\": 990.0, \"ended\": 1070.0}", true, false, 80, "one that ended"},
        {"{\"started\": 1010.0, \"ended\": 1070.0}", true, false, 70,
         "one whose clock was set back"},
        {"{\"started\": 990.0, \"ended\": 1070.0, \"rested\": 30.0}", true, false, 50,
         "without its rests"},
        {"{\"rested\": 30.0}", false, false, 70, "also while it goes on"},
        {"{\"started\": 990.0, \"ended\": 1070.0, \"rested\": 30.0}", true, true, 60,
         "at a time of its records"},
        {"{\"rested\": 3000.0}", false, false, 0, "and never less than none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = run(rows[i].facts);
        struct etd_model *model = m->model;
        struct tui_view v = made_view(m);
        v.is_over = rows[i].is_over;
        m->app->config.is_dump = rows[i].is_dump;
        model->from = 1000;
        model->t = 1060;
        v.now = 1100;
        is_near(tui_run_seconds(&v), rows[i].seconds, 1e-9, "%s", rows[i].what);
        made_free(&m);
    }
}

static void
test_paused(void)
{
    struct made *m = run("{}");
    char buf[64];
    made_state(m, "paused");
    struct tui_view v = made_view(m);
    m->model->state_since = 1000;
    m->model->t = 1090;
    v.now = 1100;
    v.is_over = false;
    ok(tui_run_is_paused(&v), "a run that says so is paused");
    is_str(tui_eta_text(&v, false, buf), "paused 1m40s", "since it said so");
    v.is_over = true;
    ok(!tui_run_is_paused(&v), "one that has ended is not");
    is_str(tui_eta_text(&v, false, buf), "", "and has no time left");
    made_free(&m);
}

/* ---- the line ---- */

static bool is_over;
static double ago; /* of the last record */

static void
status(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    struct tui_view w = *v;
    (void)focus;
    w.is_over = is_over;
    w.now = v->model->t + ago;
    tui_monitor_status(&w, p);
}

static void
is_line(struct made *m, const char *want, const char *name)
{
    char line[256];
    const char *text = made_panel_text(m, status, 50, 200, false);
    size_t n = 0;
    for (const char *c = text; *c && *c != '\n' && n + 1 < sizeof line; c++)
        if (*c != ' ' || (n > 0 && line[n - 1] != ' '))
            line[n++] = *c;
    while (n > 0 && line[n - 1] == ' ')
        n--;
    line[n] = '\0';
    is_str(line, want, "%s", name);
}

static void
test_line(void)
{
    struct made *m =
        run("{\"recipe\": \"recipes/net.yaml\", \"algorithms\": [\"ema\"], "
            "\"config\": {\"seed\": 17, \"precision\": \"amp_bf16\"}}");
    ago = 5;
    is_line(m, "net * RUNNING 00:00:05 1 rank bf16 seed 17 1 algorithm * live",
            "what is known of a run");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batch_size", 64},
             {"run/grad_accum", 2}, {"run/epoch_batches", 4});
    made_batches(m, 6, 1000, 64);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "saved mine-1", NULL, 0);
    made_batches(m, 2, 1000, 64);
    is_line(m,
            "net * RUNNING 00:00:13 1 rank bf16 seed 17 batch 64 = 32 x 1 x 2 ckpt "
            "ep1.5 7s ago 1 algorithm * live",
            "its batches in parts, and its checkpoint");
    is_over = true;
    is_line(m,
            "net * RUNNING after 8.0s 1 rank bf16 seed 17 batch 64 = 32 x 1 x 2 ckpt "
            "ep1.5 1 algorithm ended 13:56",
            "once it has ended");
    is_over = false;
    m->app->config.is_dump = false; /* the way to it is that of now */
    m->source.heard = tui_now(m->app);
    m->source.link = TUI_LINK_CONNECTING;
    is_line(m,
            "net * RUNNING 00:00:13 1 rank bf16 seed 17 batch 64 = 32 x 1 x 2 ckpt "
            "ep1.5 7s ago 1 algorithm connecting, 0s",
            "before anybody has answered");
    m->source.link = TUI_LINK_STALE;
    m->source.why = "asleep";
    is_line(m,
            "net * RUNNING 00:00:13 1 rank bf16 seed 17 batch 64 = 32 x 1 x 2 ckpt "
            "ep1.5 7s ago 1 algorithm stale 0s: asleep",
            "while nothing is heard");
    m->source.link = TUI_LINK_LOST;
    m->source.retry = tui_now(m->app) + 7.4;
    is_line(m,
            "net * RUNNING 00:00:13 1 rank bf16 seed 17 batch 64 = 32 x 1 x 2 ckpt "
            "ep1.5 7s ago 1 algorithm ! no link since 13:56:28, retry in 7s, R now",
            "while there is no way to it");
    m->source.link = TUI_LINK_LIVE;
    m->source.rtt_ms = 12.5;
    is_line(m,
            "net * RUNNING 00:00:13 1 rank bf16 seed 17 batch 64 = 32 x 1 x 2 ckpt "
            "ep1.5 7s ago 1 algorithm * live rtt 12ms",
            "from afar");
    m->source.rtt_ms = NAN;
    is_line(m,
            "net * RUNNING 00:00:13 1 rank bf16 seed 17 batch 64 = 32 x 1 x 2 ckpt "
            "ep1.5 7s ago 1 algorithm * live",
            "and from here");
    m->source.link = TUI_LINK_ENDED;
    is_over = true;
    json_object_set_new((json_t *)m->source.facts, "ended",
                        json_real(m->model->t + 3600));
    is_line(m,
            "net * RUNNING after 1h00m 1 rank bf16 seed 17 batch 64 = 32 x 1 x 2 ckpt "
            "ep1.5 1 algorithm ended 14:56",
            "an hour after its last record");
    is_over = false;
    m->source.is_refused = true;
    is_line(m,
            "net * RUNNING 00:00:13 1 rank bf16 seed 17 batch 64 = 32 x 1 x 2 ckpt "
            "ep1.5 7s ago 1 algorithm x refused",
            "where one is not let in");
    made_free(&m);
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    setenv("TZ", "UTC", 1);
    test_saved();
    test_places();
    test_seconds();
    test_paused();
    test_line();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
