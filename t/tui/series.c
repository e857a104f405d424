/* SPDX-License-Identifier: Apache-2.0 */
/* series.c: the series of a run over each axis: the place of a batch, how far the run
 * is and where it ends, the values of a point, and the look of a curve. No two of the
 * run's numbers are alike. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "t/tui/made.h"
#include "tui/glyphs.h"
#include "tui/rival.h"
#include "tui/series.h"

static struct et_ctx *cx;
static struct tui_point point[ETD_BINS];

/* A run of N batches of half a second, 8 samples and 50 tokens each; where IS_KNOWN, of
 * 1000 in epochs of 160. */
static struct made *
trained(int n, bool is_known)
{
    struct made *m = made_run(cx, "{}");
    if (is_known)
        MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 1000},
                 {"run/epoch_batches", 160});
    else
        MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/other", 1});
    for (int i = 1; i <= n; i++) {
        m->at.ba = i;
        m->at.sp = 8 * i;
        m->at.ep = i / 160;
        m->at.t += .5;
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"loss/train/total", 1000 - i},
                 {"time/token", 50. * i});
    }
    return m;
}

/* One value of the series NAME, of batch BA. */
static void
value(struct made *m, const char *name, int64_t ba, double v)
{
    struct et_log_entry e = {.value = v};
    snprintf(e.name, sizeof e.name, "%s", name);
    m->at.ba = ba;
    made_say(m, ET_RECORD_BATCH, 0, NULL, &e, 1);
}

/* ---- axes ---- */

static void
test_ends(void)
{
    static const struct {
        const char *name;
        double end, done, place;
    } rows[TUI_AXES] = {
        [TUI_BY_STEP] = {"steps", 1000, 400, 80},
        [TUI_BY_EPOCH] = {"epochs", 6.25, 2.5, .5},
        [TUI_BY_TIME] = {"time", 500, 200, 40},
        [TUI_BY_SAMPLES] = {"samples", 8000, 3200, 640},
        [TUI_BY_TOKENS] = {"tokens", 50000, 20000, 4000},
    };
    struct made *m = trained(400, true);
    for (int i = 0; i < TUI_AXES; i++) {
        struct tui_across a = {m->model, (enum tui_axis)i, false};
        is_near(tui_axis_end(&a), rows[i].end, 1e-6,
                "over %s the axis ends at the run's end", rows[i].name);
        is_near(tui_axis_done(&a), rows[i].done, 1e-6,
                "the axis shows how far the run is");
        is_near(tui_axis_place(&a, 80), rows[i].place, 1e-6,
                "a batch has its place on the axis");
        a.is_over = true;
        is_near(tui_axis_end(&a), rows[i].done, 1e-6,
                "the axis of an ended run ends where the run did");
    }
    struct tui_across a = {m->model, TUI_BY_TOKENS, false};
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/tokens", 77777});
    is_near(tui_axis_end(&a), 77777, 0,
            "a run with a length in tokens ends its axis of tokens there");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/tokens", 19999});
    is_near(tui_axis_end(&a), 50000, 1e-6,
            "a run that has passed its length in tokens does not end its axis there");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/tokens", 77777});
    a.is_over = true;
    is_near(tui_axis_end(&a), 20000, 0,
            "an ended run ends its axis of tokens at the tokens it has");
    a = (struct tui_across){m->model, TUI_BY_TIME, false};
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 200000});
    is_near(tui_axis_end(&a), 200, 1e-6,
            "an axis of time does not reach to an estimate that has not settled");
    made_free(&m);
}

/* The axes of a run whose length, and whose epochs' length, are not known. */
static void
test_unknown(void)
{
    struct made *m = trained(400, false);
    struct tui_across a = {m->model, TUI_BY_EPOCH, false};
    is_near(tui_axis_end(&a), 3, 0,
            "an axis of epochs of unknown length ends with this epoch");
    is_near(tui_axis_done(&a), 3, 0,
            "a run in epochs of unknown length is at the end of this epoch");
    is_near(tui_axis_place(&a, 170), 1, 0,
            "a batch in an epoch of unknown length stands at the epoch's beginning");
    a.axis = TUI_BY_STEP;
    is_near(tui_axis_end(&a), 400, 0,
            "an axis of a run of unknown length ends at its last batch");
    made_free(&m);
    m = trained(0, false);
    for (int i = TUI_BY_SAMPLES; i <= TUI_BY_TOKENS; i++) {
        a = (struct tui_across){m->model, (enum tui_axis)i, false};
        is_near(tui_axis_end(&a), 1, 0, "an axis has a length before the first batch");
        is_near(tui_axis_done(&a), 0, 0,
                "nothing of an axis is done before the first batch");
    }
    made_free(&m);
    m = trained(3, false);
    a = (struct tui_across){m->model, TUI_BY_TOKENS, false};
    is_near(tui_axis_place(&a, 0), 0, 0,
            "a batch before the first count of tokens stands at 0 tokens");
    is_near(tui_axis_place(&a, 1), 50, 0,
            "the first counted batch stands at its tokens");
    is_near(tui_axis_place(&a, 2), 100, 0,
            "the second counted batch stands at its tokens");
    made_free(&m);
}

static void
test_wide(void)
{
    struct made *m = trained(ETD_BINS + 10, false);
    struct tui_across a = {m->model, TUI_BY_STEP, false};
    is_int(m->model->width, 2,
           "a run of more batches than bins has two batches in a bin");
    is_near(tui_axis_place(&a, 40), 80.5, 0,
            "a bin of several batches stands in their middle over steps");
    a.axis = TUI_BY_EPOCH;
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epoch_batches", 160});
    is_near(tui_axis_place(&a, 40), 80.5 / 160, 1e-9,
            "a bin of several batches stands in their middle over epochs");
    a.axis = TUI_BY_SAMPLES;
    is_near(tui_axis_place(&a, 40), 640, 0,
            "a bin of several batches stands at its first batch over samples");
    made_free(&m);
}

static void
test_names(void)
{
    static const struct {
        const char *unit;
        enum tui_quantity of;
    } rows[TUI_AXES] = {
        [TUI_BY_STEP] = {"ba", TUI_OF_COUNTS},
        [TUI_BY_EPOCH] = {"ep", TUI_OF_NUMBERS},
        [TUI_BY_TIME] = {NULL, TUI_OF_SECONDS},
        [TUI_BY_SAMPLES] = {"sp", TUI_OF_COUNTS},
        [TUI_BY_TOKENS] = {"tok", TUI_OF_COUNTS},
    };
    for (int i = 0; i < TUI_AXES; i++) {
        struct tui_plot plot = {.x_of = TUI_OF_BYTES};
        tui_axis_name(&plot, (enum tui_axis)i);
        ok(plot.x_of == rows[i].of, "axis %d has its kind of numbers", i);
        is_str(plot.unit ? plot.unit : "-", rows[i].unit ? rows[i].unit : "-",
               "the axis has its unit");
    }
    struct made *m = made_run(cx, "{}");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epochs", 2});
    is_int(tui_axis_usual(m->model), TUI_BY_STEP,
           "a run in epochs of unknown length begins with the axis of steps");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epoch_batches", 5});
    is_int(tui_axis_usual(m->model), TUI_BY_EPOCH,
           "a run of two epochs of known length begins with the axis of epochs");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epochs", 1});
    is_int(tui_axis_usual(m->model), TUI_BY_STEP,
           "a run of one epoch begins with the axis of steps");
    is_int(tui_axis_next(TUI_BY_SAMPLES, m->model), TUI_BY_STEP,
           "a run without tokens has no axis of tokens");
    made_free(&m);
}

/* ---- points ---- */

static void
test_points(void)
{
    const struct tui_metric_look look = {.per = 2};
    struct made *m = made_run(cx, "{}");
    struct tui_across a = {m->model, TUI_BY_STEP, false};
    value(m, "x/y", 4, 3);
    value(m, "x/y", 4, 7);
    value(m, "x/y", 4, 5);
    value(m, "x/y", 6, NAN);
    value(m, "x/y", 9, 11);
    const struct etd_series *s = etd_model_series(m->model, "x/y");
    is_int(tui_series_points(&a, s, &look, point), 3,
           "each bin of a series is a point");
    ok(point[0].x == 4 && point[0].min == 6 && point[0].max == 14 &&
           point[0].last == 10,
       "a point has the least, the greatest and the last of its values, in their unit");
    ok(isnan(point[1].min) && isnan(point[1].max) && isnan(point[1].last),
       "a point without a value is no number");
    ok(point[2].min == 22 && point[2].max == 22 && point[2].last == 22 &&
           !point[1].is_apart && !point[2].is_apart,
       "a series of few values has no gaps");
    const struct etd_bin *bin = tui_series_at(&a, s, 6.6);
    is_int(bin ? bin->bin : -1, 9, "the point found near a place is one with a value");
    bin = tui_series_at(&a, s, 6.4);
    is_int(bin ? bin->bin : -1, 4,
           "the point found near a place may be on either side");
    value(m, "none/y", 5, NAN);
    ok(!tui_series_at(&a, etd_model_series(m->model, "none/y"), 5),
       "a series without values has no point near a place");
    made_free(&m);
}

/* Does the series NAME of 70 batches have a gap before one that comes GAP batches
 * later? */
static bool
has_gap(const char *name, int gap)
{
    const struct tui_metric_look look = {.per = 1};
    struct made *m = made_run(cx, "{}");
    const struct tui_across a = {m->model, TUI_BY_STEP, false};
    int apart = 0, n;
    for (int i = 1; i <= 70; i++)
        value(m, name, i, i);
    value(m, name, 70 + gap, 1);
    n = tui_series_points(&a, etd_model_series(m->model, name), &look, point);
    for (int i = 0; i < n - 1; i++)
        apart += point[i].is_apart;
    if (apart > 0 || n != 71)
        bail("%d gaps before the last of %d points", apart, n);
    made_free(&m);
    return point[n - 1].is_apart;
}

static void
test_gaps(void)
{
    ok(!has_gap("loss/x", 11),
       "a curve goes on where the next value is eleven batches later");
    ok(has_gap("loss/x", 12),
       "a curve has a gap where the next value is twelve batches later");
    ok(!has_gap("lr-x", 500), "a curve of a learning rate has no gaps");
}

/* Checks the smoothing and the kind of drawing of the series NAME of N batches. */
static void
is_drawn(const char *name, int n, double weight, enum tui_plot_kind plain,
         enum tui_plot_kind smooth)
{
    struct made *m = made_run(cx, "{}");
    for (int i = 1; i <= n; i++)
        value(m, name, i, i);
    const struct etd_series *s = etd_model_series(m->model, name);
    is_near(tui_series_weight(s, 3), weight, 0,
            "%d values of %s are smoothed with weight %g", n, name, weight);
    ok(tui_series_kind(s, 0) == plain && tui_series_kind(s, .5) == smooth,
       "the curve is drawn in the way of its name and number of values");
    made_free(&m);
}

static void
test_kinds(void)
{
    is_drawn("loss/x", 64, 0, TUI_PLOT_LAST, TUI_PLOT_LAST);
    is_drawn("loss/x", 65, .97, TUI_PLOT_SPAN, TUI_PLOT_LAST);
    is_drawn("lr-SGD", 65, 0, TUI_PLOT_LAST, TUI_PLOT_LAST);
    is_drawn("memory/x", 65, 0, TUI_PLOT_LAST, TUI_PLOT_LAST);
    is_drawn("metrics/x", 64, 0, TUI_PLOT_POINTS, TUI_PLOT_POINTS);
    is_drawn("metrics/x", 65, .97, TUI_PLOT_SPAN, TUI_PLOT_LAST);
    static const struct {
        double weight;
        const char *name;
    } rows[] = {
        {0, ""}, {.6, "ema .6"}, {.9, "ema .9"}, {.97, "ema .97"}, {.99, "ema .99"}};
    struct made *m = trained(65, false);
    for (int i = 0; i <= TUI_SMOOTH_MOST; i++) {
        is_near(tui_series_weight(etd_model_series(m->model, "loss/train/total"), i),
                rows[i].weight, 0, "smoothness %d has its weight", i);
        is_str(tui_smooth_name(i), rows[i].name, "the smoothness has its name");
    }
    made_free(&m);
}

/* ---- looks ---- */

static void
test_roles(void)
{
    static const struct {
        const char *name;
        enum tui_role role;
        double per;
    } rows[] = {
        {"loss/train/total", TUI_S1, 1},
        {"loss/aux", TUI_S1, 1},
        {"metrics/train/Accuracy", TUI_S3, 1},
        {"metrics/eval/Accuracy", TUI_S3, 1},
        {"metrics/train/CrossEntropy", TUI_S1, 1},
        {"metrics/eval/CrossEntropy", TUI_S1, 1},
        {"metrics/eval/LanguageCrossEntropy", TUI_S1, 1},
        {"metrics/eval/LanguagePerplexity", TUI_S4, 1},
        {"metrics/eval/MIoU", TUI_S3, 1},
        {"lr-SGD/group0", TUI_S2, 1},
        {"l2_norm/grad/global", TUI_S4, 1},
        {"l2_norm/grad/fc", TUI_S4, 1},
        {"throughput/samples_per_sec", TUI_S6, 1},
        {"throughput/device/mfu", TUI_S6, 1},
        {"throughput/other", TUI_S6, 1},
        {"step/step_ms", TUI_S1, 1},
        {"step/forward_ms", TUI_S3, 1},
        {"step/compute_ms", TUI_S3, 1},
        {"step/backward_ms", TUI_S4, 1},
        {"step/optimizer_ms", TUI_S2, 1},
        {"step/data_ms", TUI_S6, 1},
        {"step/wait_ms", TUI_S5, 1},
        {"step/hooks_ms", TUI_S8, 1},
        {"step/other_ms", TUI_S7, 1},
        {"memory/alloc_retries", TUI_S8, 1},
        {"memory/peak_allocated_mem", TUI_S8, 1e9},
        {"memory/current_allocated_mem", TUI_S8, 1e9},
        {"memory/peak_reserved_mem", TUI_S8, 1e9},
        {"own/number", TUI_S7, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tui_metric_look look = tui_metric_look(rows[i].name);
        is_int(look.role, rows[i].role, "the curve of %s has its colour", rows[i].name);
        is_near(look.per, rows[i].per, 0, "the curve has its unit");
    }
}

static void
test_rates(void)
{
    static const struct {
        const char *name, *label;
    } rows[] = {
        {"throughput/flops_per_sec", "FLOP/s"},
        {"throughput/device/samples_per_sec", "samples/s a device"},
        {"throughput/device/tokens_per_sec", "tokens/s a device"},
        {"throughput/device/batches_per_sec", "batches/s a device"},
        {"throughput/device/flops_per_sec", "FLOP/s a device"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char label[ET_METRIC_NAME];
        const struct tui_metric_look look = tui_metric_look(rows[i].name);
        is_str(tui_metric_label(rows[i].name, label), rows[i].label, "%s has its label",
               rows[i].name);
        ok(look.role == TUI_S6 && look.from_zero,
           "the curve of a rate has its colour and begins at zero");
    }
}

/* ---- an earlier run ---- */

static void
test_rival(void)
{
    struct made *m = made_run(cx, "{}");
    struct tui_rival r = {0};
    struct tui_plot_line line;
    const struct tui_glyphs *g = &tui_glyphs_ascii;
    ok(!tui_rival_line(&r, "loss/x", TUI_BY_STEP, 2, g, point, &line),
       "without an earlier run there is no curve of it");
    r.source = &m->source;
    ok(!tui_rival_line(&r, "loss/x", TUI_BY_STEP, 2, g, point, &line),
       "an earlier run has no curve of a series that it lacks");
    for (int i = 1; i <= 99; i++) {
        value(m, "loss/x", i, i % 2 ? 1 : 3);
        value(m, "lr-x", i, 5);
    }
    value(m, "loss/x", 100, 5e6);
    ok(tui_rival_line(&r, "loss/x", TUI_BY_STEP, 2, g, point, &line),
       "an earlier run has a curve of a series that it has");
    ok(line.point == point && line.n == 100 && line.role == TUI_OFF && line.dash == 3 &&
           line.kind == TUI_PLOT_LAST && line.mark == g->series[TUI_SERIES - 2],
       "the curve of an earlier run has its own colour, dash and mark");
    ok(line.reach > 0 && line.reach < 100,
       "the curve of an earlier run reaches as high as before it diverged");
    ok(point[97].last > 1.5 && point[97].last < 2.5,
       "the curve of an earlier run is smoothed");
    is_near(point[99].last, 5e6, 0,
            "the curve of an earlier run is not smoothed where it diverges");
    ok(tui_rival_line(&r, "loss/x", TUI_BY_STEP, 0, g, point, &line) &&
           point[97].last == 3,
       "the curve of an earlier run is not smoothed at smoothness 0");
    ok(tui_rival_line(&r, "lr-x", TUI_BY_STEP, 2, g, point, &line) && line.reach == 0,
       "the curve of an earlier learning rate has no limit of height");
    made_free(&m);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_ends();
    test_unknown();
    test_wide();
    test_names();
    test_points();
    test_gaps();
    test_kinds();
    test_roles();
    test_rates();
    test_rival();
    et_ctx_free(&cx);
    return done();
}
