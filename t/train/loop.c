/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: it learns, microbatches change nothing, memory is respected, it stops. */
#include <math.h>
#include <string.h>

#include "core/base/seams.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { MAX_RECORDS = 64 };

struct tape {
    struct et_sink sink; /* first */
    int n;
    double loss[MAX_RECORDS];
    int64_t ba[MAX_RECORDS];
    int evals;
};

static void
record(struct et_sink *sink, const struct et_record *r)
{
    struct tape *t = (struct tape *)sink;
    t->evals += r->kind == ET_RECORD_EVAL;
    for (int i = 0; r->kind == ET_RECORD_BATCH && i < r->n && t->n < MAX_RECORDS; i++)
        if (strcmp(r->entry[i].name, "loss/train/total") == 0) {
            t->ba[t->n] = r->ba;
            t->loss[t->n++] = r->entry[i].value;
        }
}

static struct tape
train(struct et_ctx *cx, struct run_setup setup, const char *what)
{
    struct tape tape = {.sink = {.write = record}};
    struct run r;
    setup.sink = &tape.sink;
    run_open(&r, cx, &setup);
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_OK, "%s: fit ends well", what);
    run_close(&r);
    return tape;
}

static void
test_learning(struct et_ctx *cx)
{
    static const char *const momentum[] = {"momentum", "0.9", NULL};
    struct run_setup s = {
        .max_duration = ET_EPOCHS(20), .n = 8, .optimizer_options = momentum};
    struct tape one = train(cx, s, "one microbatch"), again = train(cx, s, "again");
    is_int(one.n, 40, "every batch leaves a record");
    is_int(one.ba[39], 40, "records count finished batches from 1");
    ok(one.loss[39] < 0.8 * one.loss[0], "the loss falls (%g to %g)", one.loss[0],
       one.loss[39]);
    bool same = true;
    for (int i = 0; i < one.n; i++)
        same &= one.loss[i] == again.loss[i];
    ok(same, "the same run twice gives the same bits");
    for (int k = 2; k <= 4; k *= 2) {
        s.grad_accum = k;
        struct tape split =
            train(cx, s, k == 2 ? "two microbatches" : "four microbatches");
        double worst = 0;
        for (int i = 0; i < one.n; i++)
            worst = fmax(worst, fabs(split.loss[i] - one.loss[i]) / one.loss[i]);
        ok(worst < 1e-5, "%d microbatches give the losses of one (worst %.1e)", k,
           worst);
    }
}

/* What batch 3 says of the time, NAN where it says nothing. */
struct times {
    struct et_sink sink; /* first */
    double epoch, batch, sample, batch_in_epoch, sample_in_epoch, token;
};

static void
note_times(struct et_sink *sink, const struct et_record *r)
{
    struct times *t = (struct times *)sink;
    const struct {
        const char *name;
        double *value;
    } names[] = {
        {"time/epoch", &t->epoch},
        {"time/batch", &t->batch},
        {"time/sample", &t->sample},
        {"time/batch_in_epoch", &t->batch_in_epoch},
        {"time/sample_in_epoch", &t->sample_in_epoch},
        {"time/token", &t->token},
    };
    for (int i = 0; r->kind == ET_RECORD_BATCH && r->ba == 3 && i < r->n; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strcmp(r->entry[i].name, names[k].name) == 0)
                *names[k].value = r->entry[i].value;
}

/* Epochs of two batches of four images. */
static void
test_times(struct et_ctx *cx)
{
    struct times t = {{.write = note_times}, NAN, NAN, NAN, NAN, NAN, NAN};
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){.max_duration = ET_EPOCHS(2), .sink = &t.sink});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    ok(t.epoch == 1 && t.batch == 3 && t.sample == 12,
       "a batch's record has what is finished: epochs, batches, samples");
    ok(t.batch_in_epoch == 1 && t.sample_in_epoch == 4, "and what of the epoch");
    ok(isnan(t.token), "images have no tokens");
}

static void
test_memory(struct et_ctx *cx)
{
    struct run r;
    struct run_setup s = {
        .n = 512, .batch_size = 512, .max_duration = ET_BATCHES(2), .auto_accum = true};
    run_open(&r, cx, &s);
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_OK,
       "without a limit a batch is one piece");
    is_int(r.state->grad_accum, 1, "grad_accum stays 1");
    struct et_device_memory peak;
    et_device_get_memory(r.dev, &peak);
    run_close(&r);

    run_open(&r, cx, &s);
    et_device_set_limit(r.dev, peak.peak_bytes - 100000);
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_OK,
       "with less memory it still trains");
    ok(r.state->grad_accum > 1, "in %d microbatches", (int)r.state->grad_accum);
    is_int(r.state->timestamp.batch, 2, "and every batch is trained");
    run_close(&r);

    s.auto_accum = false;
    run_open(&r, cx, &s);
    et_device_set_limit(r.dev, peak.peak_bytes - 100000);
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_ENOMEM,
       "a fixed grad_accum that does not fit is an error: %s",
       et_error_get(cx)->message);
    et_error_clear(cx);
    run_close(&r);
}

/* An estimate measures the device with large products: the reference takes seconds for
 * them, and most of a minute on a loaded machine. */
static const char *
fast_device(struct et_ctx *cx)
{
    struct et_device *cpu;
    const char *name = et_device_open(cx, "cpu", 0, 1, &cpu) == ET_OK ? "cpu" : "ref";
    et_error_clear(cx);
    et_device_close(&cpu);
    return name;
}

static void
test_estimate(struct et_ctx *cx)
{
    struct run r;
    struct run_setup s = {.device = fast_device(cx),
                          .n = 32,
                          .batch_size = 16,
                          .evaluate = true,
                          .optimizer = "adamw"};
    struct et_estimate e;
    s.dry = true;
    run_open(&r, cx, &s);
    ok(et_trainer_estimate(r.trainer, &e) == ET_OK, "a dry run is estimated");
    ok(e.params > 0 && e.flops_per_sample > 0, "it counts parameters and FLOPs");
    is_int(e.grad_accum, 1, "a batch of 16 is computed in one piece");
    ok((double)e.train.flops == 16 * e.flops_per_sample && e.eval.flops > 0 &&
           e.eval.flops < e.train.flops / 2,
       "an evaluation computes less than half of what a training step does");
    const size_t weights = 4 * (size_t)e.params;
    ok(e.weights_bytes >= weights && e.weights_bytes < weights + weights / 2 &&
           e.checkpoint_bytes > 3 * weights,
       "a checkpoint with two moments is at least three times as large as the weights");
    run_close(&r);
    s.dry = false;
    run_open(&r, cx, &s);
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_OK, "the run itself ends well");
    struct et_device_memory real;
    et_device_get_memory(r.dev, &real);
    run_close(&r);
    is_int((int64_t)e.peak_bytes, (int64_t)real.peak_bytes,
           "the estimated peak is the peak that the run shows");
    s.dry = true;
    s.grad_accum = 2;
    struct et_estimate two;
    run_open(&r, cx, &s);
    need(cx, et_trainer_estimate(r.trainer, &two));
    is_int(two.grad_accum, 2, "a batch may be computed in two pieces");
    ok(two.train.slab_bytes > e.train.slab_bytes / 4 &&
           two.train.slab_bytes <= e.train.slab_bytes &&
           two.train.kernels > e.train.kernels / 2,
       "of which each takes some half of the memory, and most of the kernels");
    is_int(two.eval.flops, e.eval.flops, "an evaluation is what it was");
    run_close(&r);
}

/* What is frozen is not among the parameters to train. */
static void
test_estimate_frozen(struct et_ctx *cx)
{
    struct run r;
    struct et_leaves leaves;
    struct et_estimate e;
    int64_t all = 0, free_ones = 0;
    int n;
    run_open(&r, cx,
             &(struct run_setup){.device = fast_device(cx), .n = 16, .dry = true});
    need(cx,
         et_module_freeze(cx, r.model->root,
                          &(struct et_module_range){.to = -2, .as_eval = true}, &n));
    need(cx, et_state_follow_surgery(r.state));
    need(cx, et_module_leaves(cx, r.model->root, ET_PARAM, &leaves));
    for (int i = 0; i < leaves.n; i++) {
        const int64_t count = et_desc_count(&leaves.v[i].param->desc);
        all += count;
        free_ones += leaves.v[i].param->requires_grad ? count : 0;
    }
    et_leaves_release(&leaves);
    need(cx, et_trainer_estimate(r.trainer, &e));
    ok(free_ones > 0 && free_ones < all, "all layers but the last are frozen");
    is_int(e.params, free_ones, "and an estimate counts what is left");
    run_close(&r);
}

/* A clock that stands still but while the device is measured: by the last 16 looks at
 * it, four pairs for products, then four for copies. */
enum { MEASURED = 16 };
static int n_looks, measured_from;
static double unit[2], clock_at; /* seconds that a product takes, and a copy */

static double
measuring_clock(void)
{
    static const double taken[] = {.5, 3, 1, 2}; /* the first one is the plan's */
    int i = n_looks++ - measured_from;
    if (i >= 0 && i < MEASURED && i % 2 == 1)
        clock_at += unit[i / 8] * taken[i / 2 % 4];
    return clock_at;
}

static void
test_predicted_time(struct et_ctx *cx)
{
    static const double units[][2] = {{0, 0}, {1, 1e-9}, {1e-9, 1}};
    struct eti_seams seams = eti_system;
    const char *device = fast_device(cx);
    seams.monotonic = measuring_clock;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct run r;
        struct run_setup s = {.device = device, .n = 32, .batch_size = 16, .dry = true};
        struct et_estimate e;
        run_open(&r, cx, &s);
        measured_from = i == 0 ? 1 << 30 : n_looks - MEASURED;
        n_looks = 0;
        memcpy(unit, units[i], sizeof unit);
        eti_ctx_set_seams(cx, &seams);
        et_status status = et_trainer_estimate(r.trainer, &e);
        eti_ctx_set_seams(cx, &eti_system);
        if (i == 0)
            ok(status == ET_OK, "a batch's time is predicted");
        /* 2 768^3 FLOPs, and 2^24 floats that are read and written, in one unit. */
        double compute = 16 * e.flops_per_sample * unit[0] / (2.0 * 768 * 768 * 768);
        double move = (double)e.train.moved_bytes * unit[1] / (8.0 * (1 << 24));
        if (i > 0)
            is_near(e.seconds_per_batch / fmax(compute, move), 1, 1e-9,
                    "it is what it computes or what it moves: %g s and %g s", compute,
                    move);
        run_close(&r);
    }
}

/* A trainer with such a target. */
static et_status
aim(struct et_ctx *cx, const char *target)
{
    struct run r;
    struct et_trainer *t = NULL;
    run_open(&r, cx, &(struct run_setup){.n = 8, .evaluate = true});
    const struct et_evaluator evaluator = {.label = "eval", .loader = r.eval};
    const struct et_trainer_config config = {
        .dev = r.dev,
        .model = r.model,
        .train = r.train,
        .evaluators = &evaluator,
        .n_evaluators = 1,
        .max_duration = ET_EPOCHS(1),
        .target = target,
    };
    et_status status = et_trainer_new(cx, &config, &t);
    et_trainer_free(&t);
    run_close(&r);
    return status;
}

static void
test_target(struct et_ctx *cx)
{
    is_int(aim(cx, "accuracy>=.5"), ET_OK, "a target names a metric by its last part");
    is_int(aim(cx, "metrics/eval/Accuracy>=.5"), ET_OK, "or in full");
    is_int(aim(cx, "speed>=.5"), ET_EINVAL, "one that no evaluation gives is refused");
    is_str(et_error_get(cx)->message, "target: 0 metrics are called 'speed'",
           "before the first batch");
    et_error_clear(cx);
}

static void
test_fit_again(struct et_ctx *cx)
{
    struct run r;
    struct run_setup s = {.n = 8, .evaluate = true, .target = "accuracy>=2"};
    run_open(&r, cx, &s);
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_OK, "fit to 1ep");
    is_int(r.state->timestamp.epoch, 1, "one epoch is done");
    is_int(et_trainer_outcome(r.trainer), ET_OUTCOME_TARGET_MISSED,
           "a target out of reach is missed");
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_EINVAL, "no training is left");
    et_error_clear(cx);
    ok(et_trainer_fit(r.trainer, ET_EPOCHS(1)) == ET_OK, "fit for one epoch more");
    is_int(r.state->timestamp.epoch, 2, "two epochs are done");
    ok(et_trainer_fit(r.trainer, ET_BATCHES(1)) == ET_OK, "fit for one batch more");
    is_int(r.state->timestamp.batch_in_epoch, 1, "that is the first of epoch 2");
    double accuracy;
    ok(et_state_metric(r.state, "metrics/eval/Accuracy", &accuracy) && accuracy >= 0 &&
           accuracy <= 1,
       "the evaluation's accuracy can be asked for");
    run_close(&r);
}

static void
test_warm(struct et_ctx *cx)
{
    struct run r;
    struct run_setup s = {.n = 32, .batch_size = 4, .max_duration = ET_BATCHES(2)};
    run_open(&r, cx, &s);
    ok(et_trainer_fit(r.trainer, ET_TIME_UNSET) == ET_OK, "two batches warm the plan");
    struct et_alloc_stats before, after;
    et_alloc_get_stats(cx, &before);
    ok(et_trainer_fit(r.trainer, ET_BATCHES(5)) == ET_OK, "five more batches");
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)(after.allocs - before.allocs), 0, "a warm step allocates nothing");
    run_close(&r);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_learning(cx);
    test_times(cx);
    test_memory(cx);
    test_estimate(cx);
    test_estimate_frozen(cx);
    test_predicted_time(cx);
    test_target(cx);
    test_fit_again(cx);
    test_warm(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
