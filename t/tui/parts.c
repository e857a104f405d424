/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c: whole panels of Monitor (parts.txt, see whole.h): its numbers, where the
 * step goes, events and algorithms, bars and first lines, of runs that have all of it,
 * and of those that have hardly any. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"
#include "t/tui/made.h"
#include "t/tui/whole.h"

static struct et_ctx *cx;

static void
shows(struct made *m, made_panel *panel, int rows, int cols, const char *name)
{
    fputs(made_panel_text(m, panel, rows, cols, true), whole_text());
    whole_is(name);
}

static void
bars(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    (void)focus;
    tui_monitor_bars(v, p);
}

static void
hero(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    (void)focus;
    tui_monitor_hero(v, p);
}

static struct made *
run(void)
{
    struct made *m = made_run(
        cx, "{\"name\": \"calm-heron\", \"state\": \"running\", \"algorithms\": "
            "[\"ema\", \"mixup\", \"cutout\"], \"eval_interval\": \"2ep\"}");
    made_open(m, TUI_IN_monitor, 40, 120);
    made_state(m, "running");
    return m;
}

static void
end(struct made *m, const char *state)
{
    json_object_set_new(m->source.facts, "state", json_string(state));
    made_state(m, state);
    m->source.link = TUI_LINK_ENDED;
}

/* Four ranks, of which number 3 is slow, and number 1 says nothing. */
static void
say_ranks(struct made *m)
{
    for (int k = 0; k < 4; k++)
        for (int r = 0; r < 4; r++)
            if (r != 1)
                MADE_SAY(m, ET_RECORD_HEALTH, r, NULL,
                         {"own_ms", r == 3 ? 160 : 80 + r}, {"data_ms", 10 + 5 * r},
                         {"wait_ms", 40 - 10 * r}, {"hooks_ms", 3}, {"rss_gb", 1.5 + r},
                         {"ram_total_gb", 16});
}

/* ---- numbers and the step ---- */

static void
show_numbers(void)
{
    struct made *m = run();
    made_batches(m, 30, 100, 16);
    made_batches(m, 3, 900, 16);
    struct tui_view v = made_view(m);
    shows(m, tui_monitor_numbers, 8, 40, "numbers: a run that says none");
    say_ranks(m);
    v.m->order = TUI_BY_OWN; /* the slow one has the first row */
    shows(m, tui_monitor_numbers, 10, 40, "numbers: of several ranks");
    shows(m, tui_monitor_step, 10, 40, "the step, beside others");
    shows(m, tui_monitor_step, 10, 80, "the step, below others");
    shows(m, tui_monitor_step, 3, 80, "the step, where not all of it has room");
    MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"throughput/device/mfu", .375});
    made_batches(m, 1, 100, 16);
    shows(m, tui_monitor_numbers, 10, 40, "numbers: without the peak of a device");
    end(m, "finished");
    shows(m, tui_monitor_numbers, 10, 40, "numbers: once it has ended");
    made_free(&m);
    m = run();
    for (int i = 0; i < 20; i++) {
        made_batches(m, 1, 50 + 10 * i, 16);
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL,
                 {"throughput/samples_per_sec", i < 14 ? 1000 : 100. * i});
    }
    shows(m, tui_monitor_numbers, 8, 40, "numbers: how the rate went lately");
    made_free(&m);
    m = run();
    for (int i = 0; i < 60; i++)
        made_batches(m, 1, i < 30 ? 100 : 50, 16);
    shows(m, tui_monitor_numbers, 8, 40, "numbers: how batches went lately");
    MADE_SAY(m, ET_RECORD_HEALTH, 0, NULL, {"own_ms", 74.8}, {"data_ms", 4.9},
             {"optimizer_ms", 10});
    shows(m, tui_monitor_step, 6, 80, "a step that its parts explain");
    made_free(&m);
    m = run();
    shows(m, tui_monitor_numbers, 8, 40, "numbers: of a run that has not begun");
    shows(m, tui_monitor_step, 6, 80, "the step of one that has not begun");
    end(m, "failed");
    shows(m, tui_monitor_step, 6, 80, "the step of one that never began");
    made_free(&m);
}

/* Batches of which few took four, five and six times as long as most. */
static void
test_step(void)
{
    double mean, p99;
    struct made *m = run();
    made_batches(m, 40, 100, 8);
    is_near(tui_step_ms(m->model), 100, 1e-6,
            "without parts a step is as long as a batch");
    made_batches(m, 1, 400, 8);
    made_batches(m, 1, 490, 8);
    made_batches(m, 1, 600, 8);
    tui_batch_ms(m->model, &mean, &p99);
    is_near(mean, (39 * 100 + 400 + 490) / 41., 1e-3,
            "what takes more than five times as long as most is no batch's time");
    is_near(p99, 490, 1e-3, "the longest of the others is the limit of 99 of 100");
    made_free(&m);
}

/* ---- events and algorithms ---- */

static void
focused_events(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    (void)focus;
    tui_monitor_events(v, p, true);
}

/* A note that is a warning: somebody was refused. */
static void
say_refused(struct made *m)
{
    m->at.level = ET_LOG_WARN;
    made_say(m, ET_RECORD_COMMAND, 0, "anna: stop -> refused", NULL, 0);
    m->at.level = ET_LOG_INFO;
    tui_list_act(&((struct tui_monitor *)tui_app_state(m->app, TUI_IN_monitor))->events,
                 TUI_DO_everywhere_first);
}

static void
show_events(void)
{
    struct made *m = run();
    struct tui_view v = made_view(m);
    shows(m, tui_monitor_events, 5, 80, "events: none yet");
    MADE_SAY(m, ET_RECORD_HEALTH, 1, NULL, {"own_ms", 80});
    for (int i = 0; i < 2; i++) {
        m->at.t += 61;
        m->at.ba += 10;
        made_state(m, "evaluating");
        MADE_SAY(m, ET_RECORD_EVAL, 0, "eval", {"metrics/eval/Accuracy", .5 + .25 * i});
        made_state(m, "checkpointing");
        made_say(m, ET_RECORD_CHECKPOINT, 0, "begun ep1", NULL, 0);
        made_say(m, ET_RECORD_CHECKPOINT, 0, i ? "failed ep1" : "saved ep1", NULL, 0);
        made_state(m, "running");
    }
    made_state(m, "paused");
    m->at.t += 1;
    m->at.ba += 7;
    made_line(m, 1, ET_LOG_WARN, "a warning of rank 1");
    made_line(m, 0, ET_LOG_ERROR, "error lost a rank");
    made_say(m, ET_RECORD_ANNOTATION, 0, "a note", NULL, 0);
    made_say(m, ET_RECORD_COMMAND, 0, "anna: set optimizer.lr .1 -> was .2", NULL, 0);
    shows(m, tui_monitor_events, 12, 80, "events: all kinds");
    shows(m, tui_monitor_events, 12, 120, "events: with their clock");
    v.m->events.at = 4;
    shows(m, focused_events, 4, 80, "events: scrolled");
    say_refused(m);
    shows(m, tui_monitor_events, 2, 80, "events: a command that was refused");
    static const struct {
        const char *filter, *name;
    } rows[] = {
        {"note", "events: a word of their text or kind"},
        {"level=warn", "events: by level"},
        {"kind=log", "events: by kind"},
        {"kind=note", "events: kinds are not called as they are shown"},
        {"rank=1", "events: by rank"},
        {"ba=20", "events: by batch"},
        {"nothing", "events: none passes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tui_sieve_set(m->app, &v.m->sieve, rows[i].filter);
        shows(m, tui_monitor_events, 8, 80, rows[i].name);
    }
    made_free(&m);
}

static void
show_algorithms(void)
{
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_ALGORITHM, 0, "ema", {"fired", 2000}, {"applied", 1500},
             {"ms", .25}, {"off", 1});
    MADE_SAY(m, ET_RECORD_ALGORITHM, 0, "cutout", {"fired", 30}, {"applied", 0});
    shows(m, tui_monitor_algorithms, 5, 80, "algorithms");
    shows(m, tui_monitor_algorithms, 4, 80, "algorithms: all just have room");
    shows(m, tui_monitor_algorithms, 3, 80, "algorithms: not all have room");
    json_object_del(m->source.facts, "algorithms");
    shows(m, tui_monitor_algorithms, 3, 80, "algorithms: none");
    made_free(&m);
}

/* ---- the map of ranks ---- */

/* Five ranks, each slower than the one before; the third says nothing at first, and
 * the first is late in the end. */
static void
show_map(void)
{
    static const double own[] = {100, 104, 112, 125, 140};
    struct made *m = run();
    struct tui_view v = made_view(m);
    for (int k = 0; k < 9; k++)
        for (int r = 0; r < 5; r++)
            if (r != 2 || k > 4)
                MADE_SAY(m, ET_RECORD_HEALTH, r, NULL,
                         {"own_ms", own[r] + (r == 0 && k > 7 ? 90 : 0)});
    shows(m, tui_monitor_map, 7, 60, "map: in the order of ranks");
    v.m->order = TUI_BY_OWN;
    shows(m, tui_monitor_map, 7, 60, "map: in the order of their times");
    shows(m, tui_monitor_map, 7, 59, "map: with the brief legend");
    shows(m, tui_monitor_map, 5, 40, "map: where not all ranks have room");
    v.m->ranks.top = 2;
    shows(m, tui_monitor_map, 5, 40, "map: scrolled");
    made_free(&m);
}

/* ---- bars and first lines ---- */

/* Two evaluators, of which one has two metrics. */
static void
show_bars(void)
{
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epochs", 4}, {"run/batches", 400},
             {"run/epoch_batches", 100});
    shows(m, bars, 4, 120, "bars: nothing is done yet");
    for (int i = 0; i < 3; i++) {
        m->at.ep = i;
        made_batches(m, i < 2 ? 100 : 30, 100, 8);
        m->at.ep = i < 2 ? i + 1 : i;
        if (i < 2) {
            MADE_SAY(m, ET_RECORD_EPOCH, 0, NULL, {"time/epoch", i});
            MADE_SAY(m, ET_RECORD_EVAL, 0, "eval",
                     {"metrics/eval/CrossEntropy", 1. - .1 * i},
                     {"metrics/eval/Accuracy", .9 - .1 * i});
            MADE_SAY(m, ET_RECORD_EVAL, 0, "hard",
                     {"metrics/hard/Accuracy", .2 + .1 * i});
        }
    }
    shows(m, bars, 4, 180, "bars: two evaluators");
    shows(m, bars, 4, 120, "bars: two evaluators, less wide");
    shows(m, bars, 2, 100, "bars: of two rows");
    shows(m, bars, 2, 60, "bars: of two rows, narrow");
    shows(m, bars, 1, 40, "bars: of one");
    shows(m, hero, 1, 180, "first line: wide");
    shows(m, hero, 1, 120, "first line: less wide");
    shows(m, hero, 1, 80, "first line: narrow");
    shows(m, hero, 1, 60, "first line: narrower");
    shows(m, hero, 1, 50, "first line: brief");
    made_state(m, "paused");
    shows(m, bars, 4, 120, "bars: while it is paused");
    end(m, "stopped");
    shows(m, bars, 4, 120, "bars: in the midst of an epoch it has ended");
    shows(m, bars, 2, 100, "bars: of two rows, it has ended");
    shows(m, hero, 1, 120, "first line: it has ended");
    made_free(&m);
}

/* Four evaluators; the second runs, of the last nothing is known. */
static void
show_evaluators(void)
{
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 1000},
             {"run/epoch_batches", 249});
    for (int i = 0; i < 97; i++)
        made_batches(m, 1, i % 10 ? 100 : 300, 8);
    m->at.ba = 996;
    MADE_SAY(m, ET_RECORD_EVAL, 0, "eval", {"metrics/eval/Accuracy", .5});
    m->at.ep = 4;
    made_say(m, ET_RECORD_EPOCH, 0, NULL, NULL, 0);
    MADE_SAY(m, ET_RECORD_RUN, 0, "evaluating", {"eval/eval/batch", 7});
    MADE_SAY(m, ET_RECORD_RUN, 0, "evaluating", {"eval/rare/batch", 1});
    MADE_SAY(m, ET_RECORD_RUN, 0, "evaluating", {"eval/late/batch", 1});
    MADE_SAY(m, ET_RECORD_EVAL, 0, "rare", {"metrics/rare/Accuracy", .25});
    MADE_SAY(m, ET_RECORD_EVAL, 0, "late", {"metrics/late/Accuracy", .75});
    MADE_SAY(m, ET_RECORD_RUN, 0, "evaluating", {"eval/hard/batch", 3},
             {"eval/hard/batches", 12});
    is_int(tui_monitor_n_bars(m->model, 50, 200), 4, "a large screen has them all");
    is_int(tui_monitor_n_bars(m->model, 40, 120), 2, "another has two bars");
    is_int(tui_monitor_n_bars(NULL, 50, 200), 3, "without a run it has three");
    is_int(tui_monitor_n_bars(NULL, 10, 40), 1, "and a tiny one has one");
    shows(m, bars, 4, 180, "evaluators: one runs");
    shows(m, bars, 4, 100, "evaluators: not all have room");
    made_state(m, "running");
    made_batches(m, 2, 100, 8);
    shows(m, bars, 4, 100, "evaluators: none runs");
    m->source.link = TUI_LINK_ENDED;
    MADE_SAY(m, ET_RECORD_RUN, 0, "evaluating", {"eval/hard/batch", 4});
    shows(m, bars, 4, 100, "evaluators: one ran when all ended");
    made_free(&m);
    m = run();
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epochs", 1},
             {"run/epoch_batches", 20});
    made_batches(m, 20, 100, 8);
    m->at.ep = 1;
    made_say(m, ET_RECORD_EPOCH, 0, NULL, NULL, 0);
    end(m, "finished");
    shows(m, bars, 3, 80, "bars: the last epoch is done");
    made_free(&m);
}

int
main(void)
{
    struct et_alloc_stats stats;
    setenv("TZ", "UTC", 1);
    if (et_ctx_new(&cx) != ET_OK)
        bail("no memory");
    whole_open("parts");
    show_numbers();
    show_events();
    show_algorithms();
    show_map();
    show_bars();
    show_evaluators();
    whole_close();
    test_step();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
