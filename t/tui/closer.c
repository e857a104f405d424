/* SPDX-License-Identifier: Apache-2.0 */
/* closer.c: which series Monitor's charts show, what of them, and what the ranks' lines
 * say at each width. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tui/made.h"
#include "tui/format.h"

static struct et_ctx *cx;

static struct made *
run(void)
{
    struct made *m = made_run(cx, "{\"name\": \"calm-yak\"}");
    made_open(m, TUI_IN_monitor, 40, 120);
    made_state(m, "running");
    return m;
}

/* ---- which ---- */

/* The charts' names of a run that says NAMES, separated by blanks: "a+b c -". */
static void
charts_are(const char *names, const char *want, const char *name)
{
    struct made *m = run();
    char text[512], all[1024] = "", *rest = text;
    snprintf(text, sizeof text, "%s", names);
    m->at.ba = 1;
    for (char *one; (one = strtok_r(rest, " ", &rest)) != NULL;) {
        struct et_log_entry e = {.value = 1};
        snprintf(e.name, sizeof e.name, "%s", one);
        made_say(m, ET_RECORD_BATCH, 0, NULL, &e, 1);
    }
    struct tui_view v = made_view(m);
    size_t n = 0;
    for (int i = 0; i < tui_charts_shown(v.m); i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s%s%s", i ? " " : "",
                              *v.m->chart[i].name[0] ? v.m->chart[i].name[0] : "-",
                              *v.m->chart[i].name[1] ? "+" : "", v.m->chart[i].name[1]);
    is_str(all, want, "%s", name);
    made_free(&m);
}

static void
test_charts(void)
{
    charts_are("", "- -",
               "a run that has said nothing has a chart of its loss, and one that "
               "waits for evaluations");
    charts_are(
        "loss/train/total metrics/eval/Accuracy lr-SGD/group0 l2_norm/grad/global "
        "throughput/samples_per_sec memory/peak_allocated_mem",
        "loss/train/total metrics/eval/Accuracy lr-SGD/group0+l2_norm/grad/global "
        "throughput/samples_per_sec memory/peak_allocated_mem",
        "the usual ones have their places");
    charts_are(
        "loss/train/other metrics/train/Accuracy",
        "loss/train/other metrics/train/Accuracy",
        "another loss takes its place; the metric of training is not beside itself");
    charts_are("loss/train/total metrics/train/Accuracy metrics/eval/Accuracy",
               "loss/train/total metrics/eval/Accuracy+metrics/train/Accuracy",
               "but beside that of evaluations");
    charts_are("loss/train/total throughput/device/mfu memory/current_allocated_mem "
               "l2_norm/x",
               "loss/train/total - throughput/device/mfu l2_norm/x "
               "memory/current_allocated_mem",
               "charts without their own metric show what no other shows");
}

/* ---- what of it ---- */

static struct made *
trained(void)
{
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 40},
             {"run/epoch_batches", 10});
    for (int i = 1; i <= 20; i++) {
        m->at.ba = i;
        m->at.sp = 8 * i;
        m->at.ep = i / 10;
        m->at.t += .5;
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"loss/train/total", 100 - i},
                 {"time/token", 50. * i});
    }
    return m;
}

static void
test_axes(void)
{
    static const struct {
        enum tui_axis axis;
        double cursor;
        const char *want;
    } rows[] = {
        {TUI_BY_STEP, .25, "after 10ba  13:56:25  loss/train 90.000"},
        {TUI_BY_STEP, 1, "after 20ba  13:56:30  loss/train 80.000"},
        {TUI_BY_STEP, 0, "after 1ba  13:56:20  loss/train 99.000"},
        {TUI_BY_EPOCH, .25, "after 10ba  13:56:25  loss/train 90.000"},
        {TUI_BY_TIME, .25, "after 5ba  13:56:22  loss/train 95.000"},
        {TUI_BY_SAMPLES, .25, "after 10ba  13:56:25  loss/train 90.000"},
        {TUI_BY_TOKENS, .25, "after 10ba  13:56:25  loss/train 90.000"},
        {TUI_BY_TOKENS, .3, "after 12ba  13:56:26  loss/train 88.000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        struct made *m = trained();
        struct tui_view v = made_view(m);
        v.m->axis = rows[i].axis;
        v.m->has_axis = true;
        v.m->inspects = true;
        v.m->cursor = rows[i].cursor;
        is_str(tui_chart_inspect(&v, text, sizeof text), rows[i].want,
               "axis %d: the value at %g", (int)rows[i].axis, rows[i].cursor);
        made_free(&m);
    }
    struct made *m = trained();
    struct tui_view v = made_view(m);
    static const enum tui_axis turns[] = {TUI_BY_EPOCH, TUI_BY_TIME, TUI_BY_SAMPLES,
                                          TUI_BY_TOKENS, TUI_BY_STEP};
    int failed = 0;
    for (int i = 0; i < 5; i++) {
        tui_chart_turn_axis(v.m, v.model);
        failed += v.m->axis != turns[i];
    }
    is_int(failed, 0, "x goes from axis to axis and begins again");
    made_free(&m);
}

static void
range_is(const struct tui_chart *c, double from, double to, const char *name)
{
    if (!ok(fabs(c->from - from) < 1e-9 && fabs(c->to - to) < 1e-9, "%s", name))
        diag("%g to %g, not %g to %g", c->from, c->to, from, to);
}

static void
test_zoom(void)
{
    struct made *m = trained();
    struct tui_view v = made_view(m);
    struct tui_chart *c = &v.m->chart[0];
    tui_chart_zoom(v.m, v.model, .5);
    range_is(c, .5 - .95 * .5, .5 - .95 * .5 + .5,
             "without a cursor the newest value comes near the end");
    tui_chart_move(v.m, 2);
    range_is(c, .025 + .1, .525 + .1, "arrows move by a tenth of what is shown");
    tui_chart_move(v.m, 90);
    range_is(c, .5, 1, "as far as the axis goes");
    tui_chart_move(v.m, -90);
    range_is(c, 0, .5, "at both ends");
    tui_chart_zoom(v.m, v.model, 4);
    range_is(c, 0, 1, "all of it is the most");
    v.m->inspects = true;
    v.m->cursor = .2;
    tui_chart_zoom(v.m, v.model, .5);
    range_is(c, .1, .6, "what is under the cursor keeps its place");
    tui_chart_move(v.m, 10);
    ok(fabs(v.m->cursor - .25) < 1e-9 && fabs(c->from - .1) < 1e-9,
       "arrows move the cursor by hundredths of what is shown");
    tui_chart_move(v.m, 80);
    ok(fabs(v.m->cursor - .65) < 1e-9 && c->from > .1 && c->to >= .65,
       "and what is shown with it");
    tui_chart_move(v.m, -999);
    is_near(v.m->cursor, 0, 1e-9, "to the beginning");
    tui_chart_move(v.m, 999);
    is_near(v.m->cursor, 1, 1e-9, "and to the end");
    for (int i = 0; i < 60; i++)
        tui_chart_zoom(v.m, v.model, .5);
    ok(c->to - c->from >= 1e-4 && c->to - c->from < 2.1e-4, "there is a least part");
    made_free(&m);
}

/* Values that several batches share, and a second series. */
static void
test_inspect(void)
{
    char text[240];
    struct made *m = run();
    for (int i = 1; i <= 5000; i++) {
        m->at.ba = i;
        m->at.t += 1;
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"loss/train/total", i % 2 ? 3 : 1},
                 {"throughput/samples_per_sec", 1234});
    }
    struct tui_view v = made_view(m);
    v.m->inspects = true;
    v.m->cursor = .5;
    snprintf(v.m->chart[0].name[1], ET_METRIC_NAME, "throughput/samples_per_sec");
    is_str(tui_chart_inspect(&v, text, sizeof text),
           "after 2,500ba  14:38:00  loss/train 1.0000 to 3.0000  samples/s 1,234",
           "of a bin of several batches the range is told, and the second series");
    is_near(tui_chart_time(&v), 1763646980 + 2499, 1.1, "and its time can be gone to");
    v.m->inspects = false;
    is_str(tui_chart_inspect(&v, text, sizeof text), "", "without a cursor nothing is");
    made_free(&m);
}

/* ---- ranks ---- */

static void
say_ranks(struct made *m, bool has_gpu)
{
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 3; r++) {
            MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"own_ms", r == 1 ? 130 : 100},
                     {"wait_ms", r == 1 ? 0 : 30}, {"data_ms", r == 1 ? 40 : 10},
                     {"hooks_ms", 2.25}, {"ba_per_s", 7.5}, {"cpu_util", .1 * (r + 1)},
                     {"rss_gb", 1.5 + r}, {"read_mb_s", 12.34}, {"write_mb_s", .04},
                     {"net_mb_s", 1500});
            if (r == 0)
                MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"host_cpu", .5}, {"ram_gb", 20},
                         {"ram_total_gb", 64});
            if (has_gpu)
                MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"gpu_util", .5 + .2 * r},
                         {"mem_gb", 70 - 20 * r}, {"mem_total_gb", 80},
                         {"temp_c", 61.6}, {"power_w", 350.4}, {"sm_mhz", 1980});
        }
}

static void
ranks_are(struct made *m, enum tui_rank_columns columns, int rows, int cols,
          const char *want, const char *name)
{
    struct tui_view v = made_view(m);
    v.m->columns = columns;
    char text[4096];
    size_t n = 0;
    for (const char *t = made_panel_text(m, tui_monitor_ranks, rows, cols, false); *t;
         t++)
        if (n + 1 < sizeof text && (*t != '\n' || (n > 0 && text[n - 1] != '\n')))
            text[n++] = *t; /* no empty lines */
    text[n] = '\0';
    if (!is_str(text, want, "%s", name))
        diag("\n%s", text);
}

static void
test_ranks(void)
{
    struct made *m = run();
    say_ranks(m, true);
    ranks_are(m, TUI_COLUMNS_GPU, 5, 60,
              "-- ranks ------------ util -------------------- mem --- own\n"
              " 0 [#########........] 50% [############..!  70/80G   100ms\n"
              "!1 [############.....] 70% [#########.....]  50/80G   130ms\n"
              " 2 [###############..] 90% [#####.........]  30/80G   100ms\n",
              "GPUs: use and memory");
    ranks_are(m, TUI_COLUMNS_HOST, 5, 60,
              "-- ranks ------------- cpu -------------------- ram --- own\n"
              " 0 [##...............] 10% [#.............]    1.5G   100ms\n"
              "!1 [###..............] 20% [#.............]    2.5G   130ms\n"
              " 2 [#####............] 30% [#.............]    3.5G   100ms\n",
              "processors: use and memory");
    ranks_are(m, TUI_COLUMNS_IO, 5, 60,
              "-- ranks ------------ data ----------- read --- net --- own\n"
              " 0 [#................]  8%              12M    1.5G   100ms\n"
              "!1 [#####............] 31%              12M    1.5G   130ms\n"
              " 2 [#................]  8%              12M    1.5G   100ms\n",
              "what is waited for, read and sent");
    ranks_are(m, TUI_COLUMNS_GPU, 5, 38,
              "-- ranks ------ util ---- mem --- own\n"
              " 0 [######.....] 50%   70/80G   100ms\n"
              "!1 [########...] 70%   50/80G   130ms\n"
              " 2 [##########.] 90%   30/80G   100ms\n",
              "where there is little room, one gauge");
    ranks_are(m, TUI_COLUMNS_GPU, 3, 60,
              "-- ranks ------------ util -------------------- mem --- own\n"
              " 0 [#########........] 50% [############..!  70/80G   100ms\n"
              " 2 more   own time: min 100ms  median 100ms  max 130ms\n",
              "where not all have a line, a summary");
    ranks_are(m, TUI_COLUMNS_GPU, 50, 200,
              "-- ranks     gpu util          memory GB                    temp  power "
              "   sm clk  own time    skew   state "
              "------------------------------------------------------------------------"
              "--------------------\n"
              " 0 [##########..........] 50%  [################..!  70/80   62C   350W "
              "  1980MHz   100.0ms   +0.0%   ok\n"
              "!1 [##############......] 70%  [###########.......]  50/80   62C   350W "
              "  1980MHz   130.0ms  +30.0%   slow: its dataloader\n"
              " 2 [##################..] 90%  [#######...........]  30/80   62C   350W "
              "  1980MHz   100.0ms   +0.0%   ok\n"
              " host  cpu [##########..........] 50%   ram [######............] 20/64 "
              "GB   disk read 37 MB/s   net 1.5 GB/s\n",
              "all of it, and the machine");
    ranks_are(m, TUI_COLUMNS_IO, 50, 200,
              "-- ranks     waits for data    waits for ranks              read  write "
              "  net B/s  own time    skew   state "
              "------------------------------------------------------------------------"
              "--------------------\n"
              " 0 [##..................]  8%  [####..............]    23%   12M      0 "
              "     1.5G   100.0ms   +0.0%   ok\n"
              "!1 [######..............] 31%  [..................]     0%   12M      0 "
              "     1.5G   130.0ms  +30.0%   slow: its dataloader\n"
              " 2 [##..................]  8%  [####..............]    23%   12M      0 "
              "     1.5G   100.0ms   +0.0%   ok\n"
              " host  cpu [##########..........] 50%   ram [######............] 20/64 "
              "GB   disk read 37 MB/s   net 1.5 GB/s\n",
              "what is read and written");
    made_view(m).m->columns = TUI_COLUMNS_GPU;
    static const struct {
        int cols;
        const char *want;
    } rows[] = {
        {38, " 2  dim 4  bar_low 5-8  bar 9-10  track 11-15  dim 16  warning 24-29"},
        {60, " 2  dim 4  bar_low 5-10  bar 11-13  track 14-21  dim 22  dim 28  warning "
             "29-40  "
             "track 41-42  warning 43"}};
    for (int i = 0; i < 2; i++) {
        const char *roles = strstr(
            made_panel_text(m, tui_monitor_ranks, 5, rows[i].cols, true), "\n 2  ");
        char line[128];
        snprintf(line, sizeof line, "%.*s", roles ? (int)strcspn(roles + 1, "\n") : 0,
                 roles ? roles + 1 : "");
        is_str(line, rows[i].want,
               "memory that is scarce warns by its gauge, or by its number");
    }
    made_free(&m);
    m = run();
    say_ranks(m, false);
    ranks_are(m, TUI_COLUMNS_GPU, 50, 200,
              "-- ranks     cpu               ram                          data   algo "
              "    speed  own time    skew   state "
              "------------------------------------------------------------------------"
              "--------------------\n"
              " 0 [##..................] 10%  [#.................]   1.5G  10ms  2.2ms "
              "  7.5ba/s   100.0ms   +0.0%   ok\n"
              "!1 [####................] 20%  [#.................]   2.5G  40ms  2.2ms "
              "  7.5ba/s   130.0ms  +30.0%   slow: its dataloader\n"
              " 2 [######..............] 30%  [#.................]   3.5G  10ms  2.2ms "
              "  7.5ba/s   100.0ms   +0.0%   ok\n"
              " host  cpu [##########..........] 50%   ram [######............] 20/64 "
              "GB   disk read 37 MB/s   net 1.5 GB/s\n",
              "without a GPU the processors");
    made_free(&m);
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    setenv("TZ", "UTC", 1);
    test_charts();
    test_axes();
    test_zoom();
    test_inspect();
    test_ranks();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
