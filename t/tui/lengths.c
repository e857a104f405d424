/* SPDX-License-Identifier: Apache-2.0 */
/* lengths.c: how far Monitor says that a run, its epoch and its evaluations are. */
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

static void
bars(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    (void)focus;
    tui_monitor_bars(v, p);
}

static void
bars_are(struct made *m, int rows, int cols, const char *want, const char *name)
{
    const char *text = made_panel_text(m, bars, rows, cols, false);
    if (!is_str(text, want, "%s", name))
        diag("\n%s", text);
}

/* ---- the length ---- */

static void
test_length(void)
{
    static const struct {
        struct et_log_entry of[2];
        const char *want;
        bool by_batches;
    } rows[] = {
        {{{"run/epochs", 4}, {"run/epoch_batches", 10}}, "2.5/4ep", false},
        {{{"run/epochs", 4}, {"run/batches", 99}}, "2.0/4ep", false},
        {{{"run/samples", 12000}}, "200/12Ksp", false},
        {{{"run/tokens", 5e6}}, "-/5.0Mtok", false},
        {{{"run/seconds", 90}}, "2.4/90s", false},
        {{{"run/batches", 12345}}, "25/12,345ba", true},
        {{{"run/other", 5}}, "25ba", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        bool by_batches;
        struct made *m = run("{}");
        made_say(m, ET_RECORD_RUN, 0, "running", rows[i].of,
                 1 + (rows[i].of[1].name[0] != '\0'));
        made_batches(m, 10, 100, 8);
        m->at.ep++;
        made_say(m, ET_RECORD_EPOCH, 0, NULL, NULL, 0);
        made_batches(m, 10, 100, 8);
        m->at.ep++;
        made_say(m, ET_RECORD_EPOCH, 0, NULL, NULL, 0);
        made_batches(m, 5, 100, 8);
        is_str(tui_length_text(m->model, text, &by_batches), rows[i].want,
               "the length of a run is told in %s", rows[i].of[0].name);
        is_int(by_batches, rows[i].by_batches, "and by batches where they are it");
        made_free(&m);
    }
}

/* ---- the bars ---- */

static struct made *
halfway(void)
{
    struct made *m = run("{\"eval_interval\": \"1ep\"}");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epochs", 4},
             {"run/epoch_batches", 10}, {"run/batches", 40});
    made_batches(m, 10, 500, 8);
    m->at.ep++;
    made_say(m, ET_RECORD_EPOCH, 0, NULL, NULL, 0);
    return m;
}

static void
test_bars(void)
{
    struct made *m = halfway();
    made_batches(m, 3, 500, 8);
    bars_are(
        m, 2, 80,
        " total [=============>                              ]  32%  1.3/4ep  13ba\n"
        " epoch [===>           ]  30%  3/10ba         eval  next at 2ep, in 3s\n",
        "where there is little room the epoch and the evaluation share a line");
    bars_are(m, 1, 40, " total [======>                 ]  32%\n",
             "where there is less there is one bar");
    bars_are(m, 3, 120,
             " total [=====================>                                           "
             "   ]  32%  1.3/4ep   13/40ba            104 sp\n"
             " epoch [===================>                                             "
             "   ]  30%  3/10ba\n"
             " eval  next at 2ep, in 3s\n",
             "where there is more each has its own");
    MADE_SAY(m, ET_RECORD_EVAL, 0, "eval", {"metrics/eval/Accuracy", .5},
             {"metrics/eval/CrossEntropy", 1.5});
    made_batches(m, 7, 500, 8);
    m->at.ep++;
    made_say(m, ET_RECORD_EPOCH, 0, NULL, NULL, 0);
    MADE_SAY(m, ET_RECORD_EVAL, 0, "eval", {"metrics/eval/Accuracy", .4},
             {"metrics/eval/CrossEntropy", 1.6});
    bars_are(m, 3, 160,
             " total [=====================================================>           "
             "                                           ]  50%  2.0/4ep   20/40ba     "
             "       160 sp\n"
             " epoch [                                                                 "
             "                                           ]   0%  0/10ba\n"
             " eval  next at 3ep, in 5s   last ep2: accuracy .4000  ce 1.6000          "
             "                                                          best accuracy "
             ".5000 at ep1.3\n",
             "an evaluation has its last result and its best");
    m->source.link = TUI_LINK_ENDED;
    bars_are(m, 2, 100,
             " total [=======================>                        ]  50%  2.0/4ep  "
             " 20/40ba            160 sp\n"
             " eval  last ep2: accuracy .4000  ce 1.6000                             "
             "best accuracy .5000 at ep1.3\n",
             "of a run that has ended its evaluations are left");
    made_free(&m);
}

static void
test_running(void)
{
    struct made *m = halfway();
    MADE_SAY(m, ET_RECORD_RUN, 0, "evaluating", {"eval/eval/batch", 3},
             {"eval/eval/batches", 12});
    bars_are(
        m, 2, 80,
        " total [==========>                                 ]  25%  1.0/4ep  10ba\n"
        " eval  [==========>                                 ]  25%  3/12ba\n",
        "an evaluation that runs has a bar of its own");
    MADE_SAY(m, ET_RECORD_EVAL, 0, "eval", {"metrics/eval/Accuracy", .5});
    MADE_SAY(m, ET_RECORD_RUN, 0, "evaluating", {"eval/verse/batch", 1});
    bars_are(m, 4, 180,
             " total [=============================>                                   "
             "                                                         ]  25%  1.0/4ep "
             "  10/40ba              80 samples\n"
             " epoch [                                                                 "
             "                                                         ]   0%  0/10ba\n"
             " eval  [====                                                             "
             "                                                         ]       1ba     "
             "                            verse\n"
             " idle  eval ep1: accuracy .5000\n",
             "of one whose length is not known the batches; the others are idle");
    made_free(&m);
}

/* When the next one is, in what unit it is asked for. */
static void
test_next(void)
{
    static const struct {
        const char *interval, *want;
    } rows[] = {
        {"1ep", "at 2ep, in 3s"},
        {"3ep", "at 3ep, in 8s"},
        {"5ba", "at 15ba, in 1s"},
        {"13ba", "at 26ba, in 6s"},
        {"100sp", ""},
        {"1dur", ""},
        {"", "at 2ep, in 3s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char facts[64], text[64];
        snprintf(facts, sizeof facts, "{\"eval_interval\": \"%s\"}", rows[i].interval);
        struct made *m = run(facts);
        MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epoch_batches", 10});
        made_batches(m, 10, 500, 8);
        m->at.ep++;
        made_say(m, ET_RECORD_EPOCH, 0, NULL, NULL, 0);
        made_batches(m, 3, 500, 8);
        struct tui_view v = made_view(m);
        is_str(tui_next_evaluation(&v, text), rows[i].want, "every %s: '%s'",
               rows[i].interval, rows[i].want);
        made_state(m, "paused");
        v = made_view(m);
        tui_next_evaluation(&v, text);
        ok(strstr(text, "in ") == NULL,
           "of a run that is paused not how long that takes");
        made_free(&m);
    }
}

/* Which metric is the run's. */
static void
test_evaluated(void)
{
    struct made *m = run("{}");
    ok(!tui_evaluated(m->model, NULL, 0) && !tui_main_evaluator(m->model),
       "a run without evaluations has none");
    MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"metrics/train/Accuracy", .9});
    MADE_SAY(m, ET_RECORD_EVAL, 0, "a", {"metrics/a/CrossEntropy", 2},
             {"metrics/a/Accuracy", .3});
    MADE_SAY(m, ET_RECORD_EVAL, 0, "ab", {"metrics/ab/CrossEntropy", 3});
    static const struct {
        const char *label;
        int which;
        const char *want;
    } rows[] = {
        {NULL, 0, "metrics/a/Accuracy"},      {NULL, 1, "metrics/a/CrossEntropy"},
        {NULL, 2, "metrics/ab/CrossEntropy"}, {NULL, 3, "none"},
        {"a", 1, "metrics/a/CrossEntropy"},   {"a", 2, "none"},
        {"ab", 0, "metrics/ab/CrossEntropy"}, {"b", 0, "none"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct etd_series *s =
            tui_evaluated(m->model, rows[i].label, rows[i].which);
        is_str(s ? s->name : "none", rows[i].want, "metric %d of %s", rows[i].which,
               rows[i].label ? rows[i].label : "all");
    }
    made_free(&m);
}

/* ---- the line above the hints ---- */

static void
says(struct made *m, const char *text, const char *name)
{
    if (!ok(strstr(made_screen(m), text) != NULL, "%s", name))
        diag("no '%s' in\n%s", text, made_screen(m));
}

static void
test_message(void)
{
    struct made *m = run("{\"name\": \"calm-yak\", \"reason\": \"out of space\"}");
    tui_app_resize(m->app, 24, 80);
    made_line(m, 0, ET_LOG_WARN, "slow storage");
    m->at.t += 59;
    made_batches(m, 1, 1, 8);
    says(m, " ! 13:56:20  slow storage", "a warning of the last minute is said");
    m->at.t += 2;
    made_batches(m, 1, 1, 8);
    ok(!strstr(made_screen(m), "! 13:56:20"), "and no longer");
    made_line(m, 0, ET_LOG_ERROR, "gone");
    says(m, " x 13:57:21  gone", "an error has another sign");
    made_say(m, ET_RECORD_RESUME, 0, "", NULL, 0);
    ok(!strstr(made_screen(m), "x 13:57:21"), "what a resume has ended is not said");
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 3; r++)
            MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"own_ms", r == 1 ? 130 : 100},
                     {"data_ms", r == 1 ? 40 : 10});
    made_batches(m, 30, 150, 8);
    says(m,
         " ! rank 1 holds every step back by 30 ms (20%): its dataloader. Enter for "
         "more",
         "who holds the others back is said first");
    made_press(m, "<enter>");
    says(m, "slow: its dataloader", "and enter says more");
    says(m, "own_ms          130.00  data_ms         40.000", "with its numbers");
    made_press(m, "<esc>");
    snprintf(m->source.problem, sizeof m->source.problem, "events.log: damaged");
    says(m, " x events.log: damaged", "a log that is damaged before all");
    m->source.problem[0] = '\0';
    made_state(m, "failed");
    says(m, " x failed: out of space", "how a run ended that did not come to its end");
    made_state(m, "stopped");
    says(m, " ! stopped: out of space", "likewise where it could go on");
    made_state(m, "finished");
    ok(!strstr(made_screen(m), "finished: "), "not where it came to its end");
    made_free(&m);
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    setenv("TZ", "UTC", 1);
    test_length();
    test_bars();
    test_running();
    test_next();
    test_evaluated();
    test_message();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
