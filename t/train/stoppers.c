/* SPDX-License-Identifier: Apache-2.0 */
/* Stoppers: when they end a run, and what they compare. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/checkpoint/archive.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

/* OPTIONS: name, value, ..., NULL. NULL when they are refused. */
static struct et_callback *
make(struct et_ctx *cx, const char *name, const char *const *options)
{
    const struct et_callback_class *c = et_callback_find(name);
    struct et_callback *out;
    void *values;
    if (!c)
        bail("there is no callback %s", name);
    need(cx, et_options_new(cx, &c->info, options, &values));
    (void)!et_callback_new(cx, c, values, NULL, &out);
    et_options_free(&c->info, &values);
    return out;
}

#define MAKE(cx, name, ...) make(cx, name, (const char *const[]){__VA_ARGS__, NULL})
#define EVAL_ACCURACY       "monitor", "Accuracy", "dataloader_label", "eval"
#define TRAIN_ACCURACY      "monitor", "Accuracy", "dataloader_label", "train"

/* ---- one judgement after another ---- */

/* A state that has nothing but a metric, under that name. */
struct scene {
    struct et_state s;
    struct et_metric_value metric;
};

static void
scene_open(struct scene *sc, struct et_ctx *cx, const char *label, const char *metric)
{
    memset(sc, 0, sizeof *sc);
    snprintf(sc->metric.name, sizeof sc->metric.name, "metrics/%s/%s", label, metric);
    sc->s.cx = cx;
    sc->s.dataloader_label = label;
    sc->s.eval_metrics = &sc->metric;
    sc->s.n_eval_metrics = 1;
    need(cx, et_log_new(cx, NULL, &sc->s.log));
}

/* Does C want to end the run at EVENT, the metric being VALUE? */
static bool
stops(struct et_callback *c, enum et_event event, struct scene *sc, double value)
{
    sc->metric.value = value;
    need(sc->s.cx, c->type->run(c, event, &sc->s, sc->s.log));
    bool stop = c->stop != NULL;
    c->stop = NULL;
    return stop;
}

/* The same at the end of the next epoch's evaluation. */
static bool
next_epoch(struct et_callback *c, struct scene *sc, double value)
{
    et_timestamp_next_batch(&sc->s.timestamp, 4, 0, 1);
    et_timestamp_next_epoch(&sc->s.timestamp);
    return stops(c, ET_EVENT_EVAL_END, sc, value);
}

static void
test_patience(struct et_ctx *cx)
{
    struct scene sc;
    struct et_callback *c = MAKE(cx, "early_stopper", EVAL_ACCURACY);
    scene_open(&sc, cx, "eval", "Accuracy");
    ok(!next_epoch(c, &sc, .5) && !next_epoch(c, &sc, .5),
       "one epoch without improvement is borne");
    ok(!next_epoch(c, &sc, .6) && !next_epoch(c, &sc, .55),
       "an improvement begins the count anew");
    ok(next_epoch(c, &sc, .6), "the second epoch without one ends the run");
    et_callback_free(&c);

    c = MAKE(cx, "early_stopper", EVAL_ACCURACY, "min_delta", "0.25");
    sc.s.timestamp = (struct et_timestamp){0};
    ok(!next_epoch(c, &sc, .25) && !next_epoch(c, &sc, .5) && next_epoch(c, &sc, .5),
       "better by just min_delta is no improvement");
    et_callback_free(&c);
    c = MAKE(cx, "early_stopper", EVAL_ACCURACY, "min_delta", "0.25");
    sc.s.timestamp = (struct et_timestamp){0};
    ok(!next_epoch(c, &sc, .25) && !next_epoch(c, &sc, .375) &&
           !next_epoch(c, &sc, .75),
       "better by more than min_delta is one, small steps adding up");
    et_callback_free(&c);

    c = MAKE(cx, "early_stopper", EVAL_ACCURACY, "patience", "3");
    sc.s.timestamp = (struct et_timestamp){0};
    bool early = false;
    for (int i = 0; i < 4; i++)
        early |= next_epoch(c, &sc, .5);
    ok(!early && next_epoch(c, &sc, .5), "a patience without a unit is in epochs");
    et_callback_free(&c);

    c = MAKE(cx, "early_stopper", EVAL_ACCURACY);
    sc.s.timestamp = (struct et_timestamp){0};
    ok(!next_epoch(c, &sc, NAN) && !next_epoch(c, &sc, NAN) &&
           !next_epoch(c, &sc, .1) && !next_epoch(c, &sc, NAN) &&
           next_epoch(c, &sc, NAN),
       "any number is an improvement on NaN, and NaN on none");
    et_callback_free(&c);
    c = MAKE(cx, "early_stopper", EVAL_ACCURACY, "min_delta", "-0.25");
    sc.s.timestamp = (struct et_timestamp){0};
    ok(!next_epoch(c, &sc, .25) && !next_epoch(c, &sc, .5) && next_epoch(c, &sc, .5),
       "early_stopper ignores the sign of min_delta");
    et_callback_free(&c);
    et_log_free(&sc.s.log);
}

/* ---- early_stopping: epochs in a row, at least patience of them ---- */

/* VALUE is evaluated. */
static void
evaluates(struct et_callback *c, struct scene *sc, double value)
{
    sc->metric.value = value;
    need(sc->s.cx, c->type->evaluated(c, &sc->s, sc->s.log));
}

/* An epoch with an evaluation ends. */
static bool
epoch_stops(struct et_callback *c, struct scene *sc, double value)
{
    evaluates(c, sc, value);
    return stops(c, ET_EVENT_EPOCH_CHECKPOINT, sc, value);
}

static void
test_early_stopping(struct et_ctx *cx)
{
    struct scene sc;
    struct et_callback *c = MAKE(cx, "early_stopping", "threshold", "0.25");
    scene_open(&sc, cx, "eval", "CrossEntropy");
    ok(!epoch_stops(c, &sc, 4) && epoch_stops(c, &sc, 4),
       "a patience of 1 ends the run at the first epoch without improvement");
    et_callback_free(&c);

    c = MAKE(cx, "early_stopping", "threshold", "0.25");
    ok(!epoch_stops(c, &sc, 4) && !epoch_stops(c, &sc, 3.5) &&
           epoch_stops(c, &sc, 3.25),
       "better by just threshold is no improvement");
    et_callback_free(&c);

    c = MAKE(cx, "early_stopping", "threshold", "0.25", "patience", "2");
    ok(!epoch_stops(c, &sc, 4) && !epoch_stops(c, &sc, 3.9) &&
           !epoch_stops(c, &sc, 3.7) && !epoch_stops(c, &sc, 3.6) &&
           epoch_stops(c, &sc, 3.5),
       "small steps add up, and an improvement begins the count anew");
    et_callback_free(&c);

    c = MAKE(cx, "early_stopping", "patience", "1");
    evaluates(c, &sc, 4);
    ok(!stops(c, ET_EVENT_EPOCH_CHECKPOINT, &sc, 4) &&
           !stops(c, ET_EVENT_EPOCH_CHECKPOINT, &sc, 4),
       "an epoch without an evaluation is not judged");
    evaluates(c, &sc, 5);
    evaluates(c, &sc, 3);
    ok(!stops(c, ET_EVENT_EPOCH_CHECKPOINT, &sc, 3),
       "of several evaluations in an epoch the last counts");
    et_callback_free(&c);

    c = MAKE(cx, "early_stopping", "watch_metric", "crossentropy", "greater_is_better",
             "true");
    ok(!epoch_stops(c, &sc, 4) && !epoch_stops(c, &sc, 5) && epoch_stops(c, &sc, 3),
       "greater_is_better goes before the name");
    et_callback_free(&c);

    c = MAKE(cx, "early_stopping", "patience", "1");
    ok(!epoch_stops(c, &sc, NAN) && !epoch_stops(c, &sc, 4) && epoch_stops(c, &sc, NAN),
       "any number is an improvement on NaN, and NaN on none");
    et_callback_free(&c);

    for (int reset = 0; reset < 2; reset++) {
        c = MAKE(cx, "early_stopping", "reset_on_train", reset ? "true" : "false");
        bool first = stops(c, ET_EVENT_FIT_START, &sc, 4) || epoch_stops(c, &sc, 4) ||
                     stops(c, ET_EVENT_FIT_END, &sc, 4) ||
                     stops(c, ET_EVENT_FIT_START, &sc, 4);
        ok(!first && epoch_stops(c, &sc, 5) != reset,
           "with reset_on_train %s a further fit %s the best of the one before",
           reset ? "true" : "false", reset ? "forgets" : "knows");
        et_callback_free(&c);
    }

    c = MAKE(cx, "early_stopping", "patience", "1");
    evaluates(c, &sc, 4);
    ok(!stops(c, ET_EVENT_FIT_END, &sc, 4) && !stops(c, ET_EVENT_FIT_START, &sc, 4) &&
           !stops(c, ET_EVENT_EPOCH_CHECKPOINT, &sc, 4) && !epoch_stops(c, &sc, 4),
       "a further fit does not judge the last evaluation of the one before");
    sc.s.stop = true;
    evaluates(c, &sc, 5);
    sc.s.stop = false;
    ok(!stops(c, ET_EVENT_EPOCH_CHECKPOINT, &sc, 5),
       "an interrupted evaluation is not judged");
    et_callback_free(&c);
    et_log_free(&sc.s.log);
}

/* ---- stoppers that are saved and loaded ---- */

/* Makes a callback with the same OPTIONS from a checkpoint of FROM, and frees FROM. */
static struct et_callback *
resume(struct et_callback *from, const char *const *options)
{
    struct et_ctx *cx = from->cx;
    struct et_archive a = {0};
    eti_archive_begin(&a, cx);
    need(cx, from->type->archive(from, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    struct et_callback *c = make(cx, from->type->info.name, options);
    et_callback_free(&from);
    a.source = "test";
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, c->type->archive(c, &a));
    eti_archive_release(&a);
    return c;
}

static void
test_resumed(struct et_ctx *cx)
{
    static const char *const two[] = {EVAL_ACCURACY, "patience", "2ep", NULL};
    static const char *const three[] = {"patience", "3", NULL};
    struct scene sc;
    scene_open(&sc, cx, "eval", "Accuracy");
    struct et_callback *c = make(cx, "early_stopper", two);
    bool early = next_epoch(c, &sc, .5) || next_epoch(c, &sc, .4);
    c = resume(c, two);
    ok(!early && !next_epoch(c, &sc, .4) && next_epoch(c, &sc, .4),
       "a resumed early_stopper knows its best value and when that came");
    et_callback_free(&c);
    et_log_free(&sc.s.log);

    scene_open(&sc, cx, "eval", "CrossEntropy");
    c = make(cx, "early_stopping", three);
    early = epoch_stops(c, &sc, 4) || epoch_stops(c, &sc, 5);
    evaluates(c, &sc, 6);
    c = resume(c, three);
    ok(!early && !stops(c, ET_EVENT_EPOCH_CHECKPOINT, &sc, 0) && epoch_stops(c, &sc, 5),
       "a resumed early_stopping knows its count of epochs and the evaluation to "
       "judge");
    ok(!epoch_stops(c, &sc, 3), "a resumed early_stopping knows its best value");
    et_callback_free(&c);
    et_log_free(&sc.s.log);
}

/* Does VALUE, with THRESHOLD 1, end the run? COMP NULL: by the metric's name. */
static bool
passes(struct et_ctx *cx, const char *metric, const char *comp, double value)
{
    struct scene sc;
    struct et_callback *c =
        MAKE(cx, "threshold_stopper", "monitor", metric, "dataloader_label", "eval",
             "threshold", "1", comp ? "comp" : NULL, comp);
    scene_open(&sc, cx, "eval", metric);
    bool stop = stops(c, ET_EVENT_EVAL_END, &sc, value);
    et_callback_free(&c);
    et_log_free(&sc.s.log);
    return stop;
}

static void
test_comparison(struct et_ctx *cx)
{
    static const char *const greater[] = {"greater", "gt"}, *const less[] = {"less",
                                                                             "lt"};
    static const char *const falling[] = {"MyLoss", "TopOneError", "LanguagePerplexity",
                                          "CrossEntropy"};
    for (int i = 0; i < 2; i++) {
        ok(passes(cx, "MyLoss", greater[i], 1.5) &&
               !passes(cx, "MyLoss", greater[i], .5),
           "%s wants more, whatever the name", greater[i]);
        ok(passes(cx, "Accuracy", less[i], .5) && !passes(cx, "Accuracy", less[i], 1.5),
           "%s wants less", less[i]);
        ok(!passes(cx, "Accuracy", greater[i], 1) &&
               !passes(cx, "Accuracy", less[i], 1),
           "the threshold itself is neither");
    }
    for (size_t i = 0; i < sizeof falling / sizeof *falling; i++)
        ok(passes(cx, falling[i], NULL, .5) && !passes(cx, falling[i], NULL, 1.5),
           "%s is better when less, unless told otherwise", falling[i]);
    ok(passes(cx, "Accuracy", NULL, 1.5) && !passes(cx, "Accuracy", NULL, .5),
       "others when greater");
    ok(!passes(cx, "Accuracy", NULL, NAN), "NaN is better than no number");
}

static void
test_label(struct et_ctx *cx)
{
    struct scene sc;
    struct et_callback *c =
        MAKE(cx, "threshold_stopper", EVAL_ACCURACY, "threshold", "0");
    scene_open(&sc, cx, "other", "Accuracy");
    ok(!stops(c, ET_EVENT_EVAL_END, &sc, 1),
       "another evaluator's metric is not looked at");
    sc.s.dataloader_label = "eval";
    ok(c->type->run(c, ET_EVENT_EVAL_END, &sc.s, sc.s.log) == ET_EINVAL,
       "a metric that the evaluator does not have is an error");
    is_str(take_error(cx), "monitor: there is no metric metrics/eval/Accuracy",
           "which one");
    sc.s.stop = true;
    ok(c->type->run(c, ET_EVENT_EVAL_END, &sc.s, sc.s.log) == ET_OK,
       "but not where the evaluation was broken off");
    et_callback_free(&c);
    ok(!MAKE(cx, "threshold_stopper", EVAL_ACCURACY), "there is no default threshold");
    is_str(take_error(cx), "threshold_stopper needs a threshold", "it says so");
    ok(!MAKE(cx, "early_stopper", "monitor", "Accuracy"), "nor a default label");
    is_str(take_error(cx), "a stopper needs monitor and dataloader_label",
           "it says so");
    et_log_free(&sc.s.log);
}

/* ---- runs: 2 batches an epoch, an evaluation after each ---- */

struct notes {
    struct et_sink sink; /* first */
    int warnings;
};

static void
note(struct et_sink *sink, const struct et_record *r)
{
    ((struct notes *)sink)->warnings += r->kind == ET_RECORD_LOG &&
                                        r->level == ET_LOG_WARN &&
                                        strstr(r->text, "nothing was judged");
}

/* Does C warn at the end of a run of EPOCHS if it has seen no value? */
static bool
end_warns(struct et_callback *c, struct scene *sc, int64_t epochs, bool stopped)
{
    struct notes notes = {.sink = {.write = note}};
    sc->s.timestamp = (struct et_timestamp){.epoch = epochs};
    sc->s.stop = stopped;
    et_log_free(&sc->s.log);
    need(c->cx, et_log_new(c->cx, &notes.sink, &sc->s.log));
    need(c->cx, c->type->run(c, ET_EVENT_FIT_END, &sc->s, sc->s.log));
    sc->s.stop = false;
    return notes.warnings > 0;
}

static void
test_warnings(struct et_ctx *cx)
{
    static const char *const passed[] = {EVAL_ACCURACY, "threshold", "2", NULL};
    struct scene sc;
    struct et_callback *all[] = {
        MAKE(cx, "early_stopper", EVAL_ACCURACY),
        make(cx, "threshold_stopper", passed),
        MAKE(cx, "early_stopping", "patience", "1"),
    };
    scene_open(&sc, cx, "eval", "Accuracy");
    for (int i = 0; i < 3; i++) {
        const char *name = all[i]->type->info.name;
        ok(!end_warns(all[i], &sc, 0, false),
           "%s: a run without a whole epoch gives no warning", name);
        ok(!end_warns(all[i], &sc, 1, true),
           "a run that was stopped early gives no warning");
        ok(end_warns(all[i], &sc, 1, false),
           "a run whose stopper saw no value gives a warning");
    }
    ok(!stops(all[1], ET_EVENT_EVAL_END, &sc, 1) && !end_warns(all[1], &sc, 1, false),
       "a run whose stopper judged a value gives no warning");
    all[1] = resume(all[1], passed);
    ok(!end_warns(all[1], &sc, 1, false),
       "a run whose stopper judged a value before a resume gives no warning");
    for (int i = 0; i < 3; i++)
        et_callback_free(&all[i]);
    et_log_free(&sc.s.log);
}

/* How many batches a run of 10 epochs lasts with C, which it frees. */
static int64_t
batches(struct et_ctx *cx, struct et_callback *c, int *warnings)
{
    struct notes notes = {.sink = {.write = note}};
    struct run r;
    const struct run_setup setup = {
        .callbacks = &c,
        .n_callbacks = 1,
        .evaluate = true,
        .max_duration = ET_EPOCHS(10),
        .sink = &notes.sink,
    };
    run_open(&r, cx, &setup);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    int64_t n = r.state->timestamp.batch;
    ok(r.state->stop == (n < 20) && !r.state->stop == !r.state->stop_reason,
       "a run that is ended says why");
    run_close(&r);
    et_callback_free(&c);
    if (warnings)
        *warnings = notes.warnings;
    return n;
}

static void
test_runs(struct et_ctx *cx)
{
    int warnings;
    is_int(
        batches(cx, MAKE(cx, "early_stopper", EVAL_ACCURACY, "min_delta", "2"), NULL),
        6, "the best was epoch 1; 2 and 3 are no better: the run ends after 3");
    is_int(batches(cx,
                   MAKE(cx, "early_stopper", EVAL_ACCURACY, "min_delta", "2",
                        "patience", "3ba"),
                   NULL),
           6, "3 batches after batch 2 end at the evaluation after 6");
    is_int(batches(cx,
                   MAKE(cx, "early_stopper", TRAIN_ACCURACY, "min_delta", "2",
                        "patience", "3ba"),
                   NULL),
           5, "the training metric is judged at each batch, for a patience in batches");
    is_int(
        batches(cx, MAKE(cx, "early_stopper", TRAIN_ACCURACY, "min_delta", "2"), NULL),
        6, "and at each epoch, for one in epochs");
    is_int(batches(cx, MAKE(cx, "early_stopper", EVAL_ACCURACY, "patience", "10ep"),
                   &warnings),
           20, "with enough patience the run is as long as it should be");
    is_int(warnings, 0, "and nothing is warned about");
    is_int(batches(cx, MAKE(cx, "threshold_stopper", EVAL_ACCURACY, "threshold", "-1"),
                   NULL),
           2, "a threshold is judged after the first evaluation");
    is_int(batches(cx, MAKE(cx, "threshold_stopper", TRAIN_ACCURACY, "threshold", "-1"),
                   NULL),
           2, "for a training metric after the first epoch");
    is_int(batches(cx,
                   MAKE(cx, "threshold_stopper", TRAIN_ACCURACY, "threshold", "-1",
                        "stop_on_batch", "true"),
                   NULL),
           1, "with stop_on_batch after the first batch");
    is_int(batches(cx, MAKE(cx, "threshold_stopper", EVAL_ACCURACY, "threshold", "2"),
                   NULL),
           20, "one that is never passed ends nothing");
    is_int(batches(cx,
                   MAKE(cx, "early_stopper", "monitor", "Accuracy", "dataloader_label",
                        "evil"),
                   &warnings),
           20, "a label that no loader has ends nothing");
    is_int(warnings, 1, "but is warned about");
    is_int(batches(cx, MAKE(cx, "early_stopping", "threshold", "1e9"), NULL), 4,
           "early_stopping: the best was epoch 1, and the run ends after epoch 2");
    is_int(
        batches(cx, MAKE(cx, "early_stopping", "watch_metric", "none such"), &warnings),
        20, "a metric that no evaluation has ends nothing");
    is_int(warnings, 1, "but is warned about");
}

/* ---- limit_eval_steps: evaluations that stop early ---- */

struct evaluations {
    struct et_sink sink; /* first */
    const struct et_state *state;
    int64_t samples[16];
    int n;
};

static void
count(struct et_sink *sink, const struct et_record *r)
{
    struct evaluations *e = (struct evaluations *)sink;
    if (r->kind == ET_RECORD_EVAL && e->n < 16)
        e->samples[e->n++] = e->state->eval_timestamp.sample;
}

/* 4 batches of 4 samples an epoch, an evaluation of as many after every second; another
 * callback, called after this one, would see all of them. */
static void
test_limit(struct et_ctx *cx, const char *only, const int64_t *want)
{
    struct evaluations e = {.sink = {.write = count}};
    struct et_callback *c[] = {
        MAKE(cx, "limit_eval_steps", "num_eval_steps", "1", "limit_intermediate_only",
             only),
        MAKE(cx, "limit_eval_steps", "num_eval_steps", "9"),
    };
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = c,
                 .n_callbacks = 2,
                 .n = 16,
                 .evaluate = true,
                 .eval_interval = ET_BATCHES(2),
                 .max_duration = ET_BATCHES(7),
                 .sink = &e.sink,
             });
    e.state = r.state;
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_int(e.n, 4, "limit_intermediate_only %s: after batches 2, 4, 6 and the end",
           only);
    for (int i = 0; i < e.n; i++)
        is_int(e.samples[i], want[i], "evaluation %d is of %d samples", i + 1,
               (int)want[i]);
    need(cx, et_trainer_eval(r.trainer));
    is_int(r.state->eval_timestamp.sample, 16, "one outside of fit is whole");
    e.n = 0;
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(3)));
    is_int(e.n, 2, "a further fit evaluates after batches 8 and 10");
    is_int(e.samples[0], want[1],
           "the evaluation at the end of an epoch has its usual number of samples");
    is_int(e.samples[1], want[0],
           "the evaluation within an epoch has its limited number of samples");
    run_close(&r);
    for (int i = 0; i < 2; i++)
        et_callback_free(&c[i]);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    test_patience(cx);
    test_early_stopping(cx);
    test_resumed(cx);
    test_comparison(cx);
    test_label(cx);
    test_warnings(cx);
    test_runs(cx);
    test_limit(cx, "true", (const int64_t[]){4, 16, 4, 16});
    test_limit(cx, "false", (const int64_t[]){4, 4, 4, 4});
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
