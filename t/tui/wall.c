/* SPDX-License-Identifier: Apache-2.0 */
/* The wall of charts of a run that is made up: which charts there are, which series
 * stand together, and what the keys do. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "t/tui/made.h"
#include "tui/wall.h"

/* A run with COUNT batches and a value of every sort. */
static struct made *
make_run(struct et_ctx *cx, int count)
{
    struct made *m = made_run(cx, "{\"name\": \"made\", \"state\": \"running\"}");
    made_state(m, "running");
    for (int i = 0; i < count; i++) {
        m->at.t += 1;
        m->at.ba = i + 1;
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"loss/train/total", 2.0 / (i + 1)},
                 {"metrics/train/Accuracy", 0.1 * i}, {"lr-Adam/group0", 0.1},
                 {"l2_norm/grad/global", 1}, {"l2_norm/grad/fc.weight", 1},
                 {"throughput/samples_per_sec", 100});
    }
    MADE_SAY(m, ET_RECORD_EVAL, 0, "eval", {"metrics/eval/Accuracy", 0.5},
             {"metrics/eval/CrossEntropy", 0.9}, {"metrics/other/Accuracy", 0.4});
    return m;
}

static bool
screen_has(struct made *m, const char *text)
{
    return strstr(made_screen(m), text) != NULL;
}

static const struct tui_wall *
wall_of(struct made *m)
{
    const struct tui_monitor *screen = tui_app_state(m->app, TUI_IN_monitor);
    return &screen->wall;
}

static void
test_charts(struct et_ctx *cx)
{
    static const char *const want[] = {
        "loss/train/total",       "metrics/eval/Accuracy", "metrics/eval/CrossEntropy",
        "lr-Adam/group0",         "l2_norm/grad/global",   "throughput/samples_per_sec",
        "l2_norm/grad/fc.weight",
    };
    struct made *m = make_run(cx, 4);
    made_open(m, TUI_IN_monitor, 36, 120);
    made_press(m, "p");
    const struct tui_wall *w = wall_of(m);
    is_int(w->n, 7, "a chart for each metric, whatever it was measured on");
    for (int i = 0; i < 7 && i < w->n; i++)
        is_str(w->chart[i].name[0], want[i], "in the order in which people look");
    is_str(w->chart[0].name[1], "metrics/eval/CrossEntropy",
           "the evaluation's loss stands in the chart of the training loss");
    is_str(w->chart[1].name[1], "metrics/other/Accuracy",
           "a metric of another evaluation beside the first");
    is_str(w->chart[1].name[2], "metrics/train/Accuracy",
           "and that of training behind");
    ok(screen_has(m, "7 charts"), "the first line says how many there are");
    made_press(m, "/acc");
    is_int(wall_of(m)->n, 1, "the filter holds while it is typed");
    ok(screen_has(m, "1 of 7 charts"), "which the first line says");
    made_press(m, " \"half");
    is_int(wall_of(m)->n, 1, "and goes on to while more of it is no filter yet");
    made_press(m, "<enter><esc>");
    is_int(wall_of(m)->n, 7, "esc takes it away");
    made_press(m, "/\"half");
    ok(screen_has(m, "the filter:"), "what is no filter yet says why");
    is_int(wall_of(m)->n, 7, "and hides nothing");
    made_press(m, "<esc><esc>");
    ok(!wall_of(m)->is_open, "the last esc leads back to the panels");
    made_free(&m);
}

static void
test_cursor(struct et_ctx *cx)
{
    struct made *m = make_run(cx, 4);
    made_open(m, TUI_IN_monitor, 36, 120);
    made_press(m, "pi");
    ok(screen_has(m, "after 4ba  loss/train .5000  ce .9000"),
       "i puts a cursor at the newest batch, and the message tells what is there");
    for (int i = 0; i < 50; i++)
        made_press(m, "<left>");
    ok(screen_has(m, "after 2ba  loss/train 1.0000"), "left moves it");
    ok(screen_has(m, "accuracy .5000"), "through all charts at once");
    made_press(m, "<esc>");
    ok(!wall_of(m)->inspects && wall_of(m)->is_open, "esc takes the cursor away first");
    made_press(m, "<right><enter>");
    ok(wall_of(m)->is_full && wall_of(m)->at.at == 1, "enter shows one chart alone");
    made_press(m, "+");
    ok(wall_of(m)->to - wall_of(m)->from < 0.6, "+ looks closer, in all of them");
    made_press(m, "0<esc>");
    ok(wall_of(m)->to - wall_of(m)->from == 1 && !wall_of(m)->is_full,
       "0 shows all again, and esc all charts");
    made_free(&m);
}

/* One second of a rank: STEP ms, of which it computes the rest. */
static void
say_health(struct made *m, int rank, double step)
{
    MADE_SAY(m, ET_RECORD_HEALTH, rank, NULL, {"own_ms", step - 3}, {"step_ms", step},
             {"wait_ms", 3}, {"data_ms", 1}, {"forward_ms", step / 4},
             {"backward_ms", step / 2}, {"optimizer_ms", 2}, {"hooks_ms", 0.0001},
             {"save_ms", 0});
}

static void
test_step(struct et_ctx *cx)
{
    static const char *const want[] = {"step/step_ms",
                                       "step/data_ms",
                                       "step/forward_ms",
                                       "step/backward_ms",
                                       "step/wait_ms",
                                       "step/optimizer_ms",
                                       "",
                                       ""};
    struct made *m = make_run(cx, 4);
    const int others = 7;
    for (int i = 0; i < 4; i++) {
        m->at.ba = 2 * i + 1;
        say_health(m, 1, 48);
        say_health(m, 0, 40 + 8 * i);
    }
    made_open(m, TUI_IN_monitor, 36, 120);
    made_press(m, "p/step<enter>");
    const struct tui_wall *w = wall_of(m);
    ok(w->n == 1 && w->of == others + 1, "the step's parts are one chart");
    for (int i = 0; i < TUI_WALL_SERIES; i++)
        is_str(w->chart[0].name[i], want[i],
               *want[i] ? "with a line for each" : "but for those that take no time");
    ok(screen_has(m, "step 56ms"), "the title has the time of the newest step");
    ok(screen_has(m, "forward 14ms") && screen_has(m, "backward 28ms") &&
           screen_has(m, "wait for ranks 3.0ms"),
       "and the lines below it what each part has of that");
    for (int i = 1; i < 6; i++)
        for (int k = 0; k < i; k++)
            ok(tui_wall_series_role(&w->chart[0], i) !=
                   tui_wall_series_role(&w->chart[0], k),
               "%s has another colour than %s", want[i], want[k]);
    made_press(m, "i<left>");
    for (int i = 0; i < 60; i++)
        made_press(m, "<left>");
    ok(screen_has(m, "step 48ms"), "the cursor goes through them, too");
    made_free(&m);
}

/* The chart of the step's parts takes all lines below their names, at every size. */
static void
test_parts(struct et_ctx *cx)
{
    int gaps = 0, seen = 0;
    for (int rows = 10; rows <= 40; rows += 2)
        for (int cols = 30; cols <= 150; cols += 12) {
            struct made *m = make_run(cx, 4);
            for (int i = 0; i < 4; i++) {
                m->at.ba = 2 * i + 1;
                say_health(m, 0, 40 + 8 * i);
            }
            made_open(m, TUI_IN_monitor, rows, cols);
            made_press(m, "p/step<enter><enter>");
            const char *text = made_screen(m), *last = NULL, *part;
            static const char *const parts[] = {"forward", "backward", "wait for",
                                                "optimizer"};
            for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
                for (const char *at = text; (part = strstr(at, parts[i]));
                     at = part + 1)
                    last = part > last ? part : last;
            const char *below = last ? strchr(last, '\n') : NULL;
            if (below) {
                seen++;
                gaps += strspn(below + 1, " ") == strcspn(below + 1, "\n");
            }
            made_free(&m);
        }
    ok(seen > 50, "%d screens name the parts", seen);
    is_int(gaps, 0, "and begin the chart right below");
}

static void
test_small(struct et_ctx *cx)
{
    static const int size[][2] = {{1, 1}, {2, 20}, {10, 30}, {24, 80}, {50, 200}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        struct made *m = make_run(cx, 4);
        made_open(m, TUI_IN_monitor, size[i][0], size[i][1]);
        made_press(m, "p[[]]]]]<down><PgDn>i<enter>G");
        ok(wall_of(m)->at.at < wall_of(m)->n, "a screen of %d x %d has a wall",
           size[i][1], size[i][0]);
        made_free(&m);
    }
    struct made *m = made_run(cx, "{\"name\": \"new\", \"state\": \"running\"}");
    made_state(m, "running");
    made_open(m, TUI_IN_monitor, 24, 80);
    made_press(m, "pi<left><down><enter>");
    ok(screen_has(m, "no values yet"), "a run without a value says so");
    made_free(&m);
}

/* A run whose loss is LOSS, and from batch 20 of 30 on LATE. */
static struct made *
run_of_loss(struct et_ctx *cx, double loss, double late)
{
    struct made *m = made_run(cx, "{\"name\": \"made\", \"state\": \"running\"}");
    made_state(m, "running");
    for (int i = 0; i < 30; i++) {
        m->at.t += 1;
        m->at.ba = i + 1;
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL,
                 {"loss/train/total", i < 20 ? loss : late});
    }
    made_open(m, TUI_IN_monitor, 36, 120);
    made_press(m, "p");
    return m;
}

/* Of two runs in one chart one has broken down: what is shown is what it was before,
 * and all of the other. */
static void
test_reach(struct et_ctx *cx)
{
    static const struct {
        double loss[2], late[2], want;
        const char *says;
    } rows[] = {
        {{5, 1}, {4, 1e6}, 5, "all of the run that did not break down is seen"},
        {{1, 4}, {0.5, 1e6}, 8, "and the other up to twice what it had been"},
        {{-5, 1}, {-4, 1e6}, 5, "on either side of 0"},
        {{1, 2}, {1e6, 1e7}, 4, "of two that did, both up to there"},
        {{5, 1}, {4, 2}, 0, "of two that did not, everything"},
    };
    const struct tui_wall_chart chart = {.name = {"loss/train/total"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m[2];
        struct tui_plot_line line[TUI_WALL_LINES];
        for (int k = 0; k < 2; k++)
            m[k] = run_of_loss(cx, rows[i].loss[k], rows[i].late[k]);
        struct tui_wall both = *wall_of(m[0]);
        both.run[1] = wall_of(m[1])->run[0];
        both.n_runs = 2;
        is_int(tui_wall_lines(&both, &chart, line), 2, "a line for each of two runs");
        for (int k = 0; k < 2; k++)
            is_near(line[k].reach, rows[i].want, 1e-6, "%s", rows[i].says);
        for (int k = 0; k < 2; k++)
            made_free(&m[k]);
    }
}

int
main(void)
{
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_charts(cx);
    test_cursor(cx);
    test_step(cx);
    test_parts(cx);
    test_small(cx);
    test_reach(cx);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
