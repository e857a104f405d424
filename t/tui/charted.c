/* SPDX-License-Identifier: Apache-2.0 */
/* charted.c: whole charts of Monitor (charted.txt, see whole.h): which metrics they
 * show, their titles, marks, cursor and range, of runs in which no two series are
 * alike. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"
#include "t/tui/made.h"
#include "t/tui/whole.h"

static struct et_ctx *cx;
static int which; /* of the charts is drawn */

static void
chart(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    tui_monitor_chart(v, which, p, focus);
}

static void
shows(struct made *m, int chart_number, int rows, int cols, const char *name)
{
    which = chart_number;
    fputs(made_panel_text(m, chart, rows, cols, true), whole_text());
    whole_is(name);
}

static struct made *
run(void)
{
    struct made *m = made_run(cx, "{\"name\": \"calm-heron\", \"state\": \"running\", "
                                  "\"eval_interval\": \"1ep\"}");
    made_open(m, TUI_IN_monitor, 40, 120);
    made_state(m, "running");
    return m;
}

static void
say(struct made *m, const char *name, double value)
{
    struct et_log_entry e = {.value = value};
    snprintf(e.name, sizeof e.name, "%s", name);
    m->at.ba++;
    made_say(m, ET_RECORD_BATCH, 0, NULL, &e, 1);
}

static void
end(struct made *m, const char *state)
{
    json_object_set_new(m->source.facts, "state", json_string(state));
    made_state(m, state);
}

/* 100 batches of 400: all series that the usual charts have. */
static struct made *
trained(void)
{
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 400},
             {"run/epoch_batches", 50});
    for (int i = 1; i <= 100; i++) {
        m->at.ba = i;
        m->at.sp = 8 * i;
        m->at.ep = i / 50;
        m->at.t += .5;
        const double loss = i % 9 == 4 ? 2.5 : 2. / i + .01 * (i % 5);
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"loss/train/total", loss},
                 {"lr-SGD/group0", 3e-7 * (1 + (i > 50))},
                 {"l2_norm/grad/global", 4 + i % 7},
                 {"metrics/train/Accuracy", .3 + .004 * i},
                 {"memory/peak_allocated_mem", 9.7 + .01 * i},
                 {"throughput/samples_per_sec", 12345 + 10 * i});
        if (i % 40 == 30)
            MADE_SAY(m, ET_RECORD_EVAL, 0, "eval",
                     {"metrics/eval/Accuracy", .2 + .005 * i});
        if (i == 20)
            made_say(m, ET_RECORD_RESUME, 0, "again", NULL, 0);
        if (i == 45)
            made_say(m, ET_RECORD_CHECKPOINT, 0, "saved ep1", NULL, 0);
        if (i == 60)
            made_say(m, ET_RECORD_ANNOTATION, 0, "a note", NULL, 0);
    }
    return m;
}

static void
show_usual(void)
{
    struct made *m = trained();
    struct tui_view v = made_view(m);
    shows(m, 0, 14, 80, "the loss, with raw values behind it");
    shows(m, 1, 12, 60, "one metric of two sets");
    shows(m, 2, 12, 60, "two metrics");
    shows(m, 2, 3, 35, "two metrics: just room for both");
    shows(m, 2, 3, 34, "two metrics: no room for the value of the second");
    shows(m, 2, 3, 28, "two metrics: just room for the second");
    shows(m, 2, 3, 27, "two metrics: no room for the second");
    shows(m, 3, 12, 50, "a metric that begins at zero");
    shows(m, 4, 12, 50, "a metric of bytes");
    v.m->chart[1].is_chosen = true;
    snprintf(v.m->chart[1].name[0], ET_METRIC_NAME, "metrics/eval/Accuracy");
    snprintf(v.m->chart[1].name[1], ET_METRIC_NAME, "lr-SGD/group0");
    shows(m, 1, 6, 60, "a metric and a learning rate");
    snprintf(v.m->chart[1].name[1], ET_METRIC_NAME, "metrics/train/other");
    say(m, "metrics/train/other", .125);
    shows(m, 1, 6, 60, "two metrics of two sets");
    v.m->chart[0].is_log = true;
    shows(m, 0, 14, 80, "the loss, logarithmic");
    shows(m, 0, 14, 37, "the loss, logarithmic, where there is little room");
    v.m->smooth = 0;
    v.m->chart[0].is_log = false;
    v.m->chart[0].from = .05;
    v.m->chart[0].to = .2;
    v.m->inspects = true;
    v.m->cursor = .1;
    shows(m, 0, 14, 80, "a part of the loss, rough, with a cursor");
    v.m->chart[0].from = 0;
    v.m->chart[0].to = 1;
    v.m->axis = TUI_BY_EPOCH;
    v.m->has_axis = true;
    shows(m, 0, 12, 80, "the loss over epochs, with a cursor");
    made_free(&m);
}

/* 3,000 batches are more than there are bins: a bin has several. */
static void
show_bins(void)
{
    char text[200];
    struct made *m = run();
    struct tui_view v = made_view(m);
    for (int i = 1; i <= 3000; i++) {
        m->at.ba = i;
        m->at.t += .25;
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"loss/train/total", 5 + (i % 10) / 10.});
        if (i == 1500)
            made_say(m, ET_RECORD_ANNOTATION, 0, "half", NULL, 0);
    }
    v = made_view(m);
    v.m->chart[0].is_log = true;
    v.m->inspects = true;
    v.m->cursor = .25;
    shows(m, 0, 12, 80, "many batches, logarithmic");
    FILE *f = whole_text();
    fprintf(f, "%s\n%.3f seconds behind the first\n",
            tui_chart_inspect(&v, text, sizeof text),
            tui_chart_time(&v) - v.model->from);
    whole_is("many batches: under the cursor");
    made_free(&m);
}

/* What a run of SERIES with these values, one for each of N batches, has. */
static struct made *
one_series(const char *name, int n, double (*value)(int i))
{
    struct made *m = run();
    for (int i = 1; i <= n; i++) {
        struct et_log_entry e = {.value = value(i)};
        snprintf(e.name, sizeof e.name, "%s", name);
        m->at.ba = i;
        m->at.t += 1;
        made_say(m, ET_RECORD_BATCH, 0, NULL, &e, 1);
    }
    return m;
}

static double
fall(int i)
{
    return pow(10, 4 - i / 20.);
}

static double
burst(int i)
{
    return i < 95 ? 3 - i / 50. : 3e5 * i;
}

static double
none_at_times(int i)
{
    return i % 10 ? i : 0;
}

static double
tiny(int i)
{
    return 1e-7 * (12.345 + .0001 * i);
}

static double
small(int i)
{
    return 1e-6 * (12 + i % 4);
}

static double
megabytes(int i)
{
    return .005 + .002 * (i % 2);
}

static void
show_scales(void)
{
    struct made *m = one_series("loss/train/total", 120, fall);
    shows(m, 0, 12, 80, "a loss that a logarithm would show better");
    made_free(&m);
    m = one_series("loss/train/total", 100, burst);
    shows(m, 0, 12, 60, "a loss that bursts");
    end(m, "diverged");
    shows(m, 0, 12, 60, "a loss that bursts, of a run that diverged");
    struct tui_view v = made_view(m);
    v.m->chart[0].is_log = true;
    shows(m, 0, 12, 60, "logarithmic, it has the range of its usual values");
    end(m, "stopped");
    shows(m, 0, 12, 60, "that of a run that was stopped has all of them");
    made_free(&m);
    m = one_series("loss/train/total", 35, none_at_times);
    v = made_view(m);
    v.m->chart[0].is_log = true;
    shows(m, 0, 8, 60, "values of which a logarithm hides three");
    made_free(&m);
    m = one_series("lr-x", 30, small);
    shows(m, 2, 8, 60, "values with a power of ten");
    made_free(&m);
    m = one_series("metrics/eval/tiny", 30, tiny);
    shows(m, 1, 8, 60, "values whose digits have no room beside their power");
    made_free(&m);
    m = one_series("memory/peak_allocated_mem", 10, megabytes);
    shows(m, 4, 8, 60, "a few megabytes");
    made_free(&m);
}

static void
show_nothing(void)
{
    struct made *m = run();
    shows(m, 0, 8, 60, "nothing yet");
    shows(m, 1, 8, 60, "no evaluation yet");
    m->at.ba = 3;
    MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"other", 1});
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epoch_batches", 50});
    shows(m, 0, 8, 60, "no such value yet");
    shows(m, 1, 8, 60, "the first evaluation is to come");
    shows(m, 2, 2, 60, "nothing, and no room to say so");
    made_state(m, "finished");
    m->source.link = TUI_LINK_ENDED;
    shows(m, 0, 8, 60, "no such value in a run that is over");
    shows(m, 1, 8, 60, "no evaluation in a run that is over");
    made_free(&m);
}

/* An earlier run, of which the loss alone is known. */
static void
show_rival(void)
{
    struct made *m = trained(), *earlier = one_series("loss/train/total", 200, fall);
    struct tui_view v = made_view(m);
    v.m->rival.source = &earlier->source;
    snprintf(v.m->rival.name, sizeof v.m->rival.name, "old-yak");
    shows(m, 0, 12, 80, "an earlier run beside the loss");
    shows(m, 0, 12, 34, "an earlier run whose name has no room");
    shows(m, 2, 12, 80, "an earlier run without that metric");
    v.m->rival.source = NULL;
    made_free(&m);
    made_free(&earlier);
}

/* ---- which metrics ---- */

/* The first names of the charts, "+" before a second one. */
static void
charts_are(struct made *m, const char *want, const char *name)
{
    char all[1024] = "";
    struct tui_view v = made_view(m);
    for (int i = 0; i < TUI_CHARTS - 1; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s%s%s", i ? " " : "",
                 *v.m->chart[i].name[0] ? v.m->chart[i].name[0] : "-",
                 *v.m->chart[i].name[1] ? "+" : "", v.m->chart[i].name[1]);
    is_str(all, want, "%s", name);
}

static void
test_spare(void)
{
    struct made *m = run();
    struct tui_view v = made_view(m);
    say(m, "loss/train/total", 1);
    say(m, "l2_norm/never", NAN);
    charts_are(m, "loss/train/total - - - -", "a metric without a value is no spare");
    say(m, "loss/other", 2);
    say(m, "l2_norm/x", 3);
    charts_are(m, "loss/train/total - l2_norm/x loss/other -",
               "one kind comes before another, whichever was said first");
    say(m, "lr-SGD", .1);
    charts_are(m, "loss/train/total - lr-SGD loss/other l2_norm/x",
               "a chart whose own metric comes has that, and another takes the spare");
    say(m, "memory/x", 5);
    say(m, "memory/y", 6);
    v = made_view(m);
    charts_are(m, "loss/train/total - lr-SGD loss/other memory/x",
               "what is spare gives way to what belongs there");
    v.m->chart[2].name[0][0] = '\0';
    v.m->chart[2].is_chosen = true;
    say(m, "throughput/x", 7);
    charts_are(m, "loss/train/total - - loss/other memory/x",
               "a chart that was emptied stays empty");
    tui_chart_turn_axis(v.m, v.model);
    tui_chart_turn_axis(v.m, v.model);
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epochs", 4},
             {"run/epoch_batches", 10});
    const enum tui_axis turned = v.m->axis;
    v = made_view(m);
    tui_charts_default(v.m, v.model);
    is_int(v.m->axis, turned, "an axis that was turned to stays");
    v.m->focus = TUI_M_CHART + TUI_CHARTS + 3;
    ok(tui_chart_focused(v.m) == &v.m->chart[0],
       "where no chart has the focus the first is meant");
    v.m->focus = TUI_M_CHART + 2;
    ok(tui_chart_focused(v.m) == &v.m->chart[2], "else the one that has it");
    made_free(&m);
    m = run();
    say(m, "loss/train/total", 1);
    say(m, "lr-SGD", .1);
    say(m, "l2_norm/grad/global", 3);
    charts_are(m, "loss/train/total - lr-SGD+l2_norm/grad/global - -",
               "what is the second of a chart is shown already");
    made_free(&m);
}

int
main(void)
{
    struct et_alloc_stats stats;
    setenv("TZ", "UTC", 1);
    if (et_ctx_new(&cx) != ET_OK)
        bail("no memory");
    whole_open("charted");
    show_usual();
    show_bins();
    show_scales();
    show_nothing();
    show_rival();
    whole_close();
    test_spare();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
