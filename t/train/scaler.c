/* SPDX-License-Identifier: Apache-2.0 */
/* Loss scaling of amp_fp16: the rule, that a skipped step changes nothing, and who sees
 * which gradient. An MLP on eight images, in batches of four; device "ref", and "cpu"
 * where it is said. */
#include "core/checkpoint/archive.h"
#include "core/trainer/part.h"
#include "core/trainer/readback.h"
#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"
#include "t/train/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of this the loss's gradient is four million in each logit; f16 ends at 65504. */
#define FAR_TOO_LARGE 0x1p24
#define SMALL         16.0

static const char *const momentum[] = {"lr", "0.01", "momentum", "0.9", NULL};

struct choice {
    const char *device;
    int precision;
    double initial;
    int64_t interval, accum;
    const char *algorithm; /* and its options */
    const char *const *options;
};

static struct et_algorithm *
make_algorithm(struct et_ctx *cx, const char *name, const char *const *set)
{
    const struct et_algorithm_class *c = et_algorithm_find(name);
    struct et_algorithm *a;
    void *o;
    need(cx, et_alloc(cx, c->info.options_size + 1, &o));
    need(cx, et_options_init(cx, c->info.options, o));
    for (; set && *set; set += 2)
        need(cx, et_options_set(cx, c->info.options, o, set[0], set[1]));
    need(cx, et_algorithm_new(cx, c, o, &a));
    et_options_release(c->info.options, o);
    et_free(cx, o);
    return a;
}

static void
start(struct run *r, struct et_ctx *cx, const struct choice *c, struct et_algorithm **a)
{
    *a = c->algorithm ? make_algorithm(cx, c->algorithm, c->options) : NULL;
    const struct run_setup setup = {
        .device = c->device,
        .grad_accum = c->accum,
        .optimizer_options = momentum,
        .algorithms = a,
        .n_algorithms = *a ? 1 : 0,
        .max_duration = ET_BATCHES(100),
    };
    run_prepare(r, cx, &setup);
    r->config.precision = c->precision;
    r->config.loss_scaling.initial = c->initial;
    r->config.loss_scaling.interval = c->interval;
    r->config.nonfinite_action = ET_NONFINITE_STOP;
    r->config.nonfinite_grace = 1;
    run_start(r);
}

static void
stop(struct run *r, struct et_algorithm **a)
{
    run_close(r);
    et_algorithm_free(a);
}

static void
fit(struct run *r, int batches)
{
    need(r->cx, et_trainer_fit(r->trainer, ET_BATCHES(batches)));
}

/* Parameters and momentum. */
struct copy {
    float *v[2];
    int64_t n, updates;
};

static struct copy
take(struct run *r)
{
    const struct et_param_space *p = r->state->params;
    struct copy c = {.n = p->total, .updates = p->slot[0].updates};
    for (int i = 0; i < 2; i++) {
        size_t bytes = (size_t)p->total * sizeof(float);
        c.v[i] = malloc(bytes);
        need(r->cx, et_tensor_read(r->cx, i ? p->moment[0] : p->values, c.v[i], bytes));
    }
    return c;
}

static void
drop(struct copy *c)
{
    free(c->v[0]);
    free(c->v[1]);
}

static bool
same(const struct copy *a, const struct copy *b)
{
    size_t bytes = (size_t)a->n * sizeof(float);
    return a->updates == b->updates && memcmp(a->v[0], b->v[0], bytes) == 0 &&
           memcmp(a->v[1], b->v[1], bytes) == 0;
}

/* What a checkpoint would have at PATH; NAN: nothing. */
static double
archived(struct run *r, const char *path)
{
    struct et_archive a = {0};
    float v = NAN;
    eti_archive_begin(&a, r->cx);
    need(r->cx, eti_parts_archive(r->trainer, &a));
    need(r->cx, eti_archive_end(&a));
    for (int64_t i = 0; i < a.n; i++)
        if (strcmp(a.item[i].path, path) == 0)
            memcpy(&v, a.item[i].data, sizeof v);
    eti_archive_release(&a);
    return (double)v;
}

/* The run goes on from a scale of SCALE that CLEAN steps have stood. */
static void
load(struct run *r, float scale, float clean)
{
    struct et_archive a = {0};
    eti_archive_begin(&a, r->cx);
    need(r->cx, eti_parts_archive(r->trainer, &a));
    need(r->cx, eti_archive_end(&a));
    need(r->cx, eti_archive_sort(&a));
    memcpy(eti_archive_find(&a, "scaler/scale")->data, &scale, sizeof scale);
    memcpy(eti_archive_find(&a, "scaler/clean_steps")->data, &clean, sizeof clean);
    a.mode = ET_ARCHIVE_LOAD;
    need(r->cx, eti_parts_archive(r->trainer, &a));
    eti_archive_release(&a);
}

static double
clean_steps(struct run *r)
{
    return archived(r, "scaler/clean_steps");
}

static bool
is_scaled(struct run *r)
{
    return r->state->loss_scale != 1 || !isnan(archived(r, "scaler/scale"));
}

static void
test_skip(struct et_ctx *cx, const char *what, const struct choice *choice)
{
    struct run r;
    struct et_algorithm *a;
    start(&r, cx, choice, &a);
    struct copy before = take(&r);
    fit(&r, 1);
    struct copy after = take(&r);
    ok(same(&before, &after), "%s: a step that overflows changes no bit", what);
    ok(r.state->loss_scale == FAR_TOO_LARGE / 2, "%s: and halves the scale", what);
    is_int(r.state->timestamp.batch, 1, "%s: time goes on", what);
    is_int(et_trainer_outcome(r.trainer), ET_OUTCOME_FINISHED,
           "%s: and nothing has diverged", what);
    drop(&after);
    fit(&r, 16);
    after = take(&r);
    ok(!same(&before, &after) && after.updates > 0 && isfinite(r.state->loss_value),
       "%s: with the scale down, training begins (%g)", what, r.state->loss_scale);
    drop(&before);
    drop(&after);
    stop(&r, &a);
}

/* Each step of a run that overflows at first and grows later keeps to torch's rule. */
static void
test_rule(struct et_ctx *cx)
{
    struct run r;
    struct et_algorithm *a;
    struct et_graph_stats early, late;
    const struct choice choice = {
        .precision = ET_PRECISION_AMP_FP16, .initial = FAR_TOO_LARGE, .interval = 3};
    start(&r, cx, &choice, &a);
    double scale = FAR_TOO_LARGE, clean = 0;
    int wrong = 0, skipped = 0, grown = 0;
    for (int i = 0; i < 40; i++) {
        int64_t updates = r.state->params->slot[0].updates;
        fit(&r, 1);
        if (r.state->params->slot[0].updates == updates) {
            scale /= 2;
            clean = 0;
            skipped++;
        } else if (++clean == 3) {
            scale *= 2;
            clean = 0;
            grown++;
        }
        wrong += r.state->loss_scale != scale || clean_steps(&r) != clean;
        et_graph_get_stats(r.state->graph, i == 0 ? &early : &late);
    }
    is_int(wrong, 0, "forty steps: the scale and the count are the rule's");
    ok(skipped > 8 && grown > 3 && skipped + grown < 40,
       "%d steps were skipped, after %d the scale grew", skipped, grown);
    is_int((int64_t)late.plans_built, (int64_t)early.plans_built,
           "no change of scale makes a plan");
    stop(&r, &a);
}

static void
test_default(struct et_ctx *cx)
{
    struct run r;
    struct et_algorithm *a;
    start(&r, cx, &(struct choice){.precision = ET_PRECISION_AMP_FP16}, &a);
    double first = r.state->loss_scale;
    load(&r, SMALL, 1998);
    fit(&r, 1);
    double before = r.state->loss_scale;
    fit(&r, 1);
    ok(first == 65536 && before == SMALL && r.state->loss_scale == 2 * SMALL,
       "the scale begins at 65536 and grows after 2000 steps");
    stop(&r, &a);
    start(&r, cx, &(struct choice){.precision = ET_PRECISION_AMP_BF16}, &a);
    fit(&r, 2);
    ok(!is_scaled(&r), "bf16 needs no scaling");
    stop(&r, &a);
    run_prepare(&r, cx, &(struct run_setup){.n = 8});
    r.config.precision = ET_PRECISION_AMP_FP16;
    static const struct {
        struct et_loss_scaling rule;
        bool good;
    } rules[] = {
        {{.initial = 1}, true},    {{.initial = 0.99}, false}, {{.growth = 1}, true},
        {{.growth = 0.99}, false}, {{.backoff = 0.99}, true},  {{.backoff = 1}, false},
        {{.backoff = 1e-3}, true}, {{.backoff = -0.5}, false}, {{.interval = 1}, true},
        {{.interval = -1}, false},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct et_loss_scaling *o = &rules[i].rule;
        r.config.loss_scaling = *o;
        ok(et_trainer_new(cx, &r.config, &r.trainer) ==
               (rules[i].good ? ET_OK : ET_EINVAL),
           "from %g, times %g every %d steps, times %g (0: the default): %s",
           o->initial, o->growth, (int)o->interval, o->backoff,
           rules[i].good ? "taken" : "refused");
        et_trainer_free(&r.trainer);
        et_error_clear(cx);
    }
    r.config.loss_scaling = (struct et_loss_scaling){0};
    r.config.precision = ET_PRECISION_AMP_FP8;
    ok(et_trainer_new(cx, &r.config, &r.trainer) == ET_ENOTSUP, "so is fp8");
    et_error_clear(cx);
    r.config.precision = ET_PRECISION_FP32;
    run_start(&r);
    run_close(&r);
}

/* NaN weights make every gradient NaN, at any scale. */
static void
test_collapse(struct et_ctx *cx)
{
    struct run r;
    struct et_algorithm *a;
    const struct choice choice = {.precision = ET_PRECISION_AMP_FP16, .initial = 4};
    start(&r, cx, &choice, &a);
    struct et_param_space *p = r.state->params;
    float *nan = malloc((size_t)p->total * sizeof *nan);
    for (int64_t i = 0; i < p->total; i++)
        nan[i] = NAN;
    need(cx, et_tensor_write(cx, p->values, nan, (size_t)p->total * sizeof *nan));
    free(nan);
    fit(&r, 20);
    ok(r.state->loss_scale == 1, "the scale falls to 1 and no further");
    /* Where batches are not waited for, those that were under way by then count. */
    int64_t batches = r.state->timestamp.batch;
    ok(batches >= 3 && batches <= 3 + eti_readback_ahead(r.trainer),
       "4, 2: the scale is to blame; at 1 the run is stopped (after %d batches)",
       (int)batches);
    is_int(et_trainer_outcome(r.trainer), ET_OUTCOME_DIVERGED, "as one that diverged");
    stop(&r, &a);
}

/* A run that has diverged is not one that was only stopped. */
static void
test_stopped_collapse(struct et_ctx *cx)
{
    static volatile int interrupt;
    struct run r;
    run_prepare(&r, cx, &(struct run_setup){.n = 32});
    r.config.interrupt = &interrupt;
    r.config.nonfinite_action = ET_NONFINITE_STOP;
    run_start(&r);
    struct et_param_space *p = r.state->params;
    float *nan = malloc((size_t)p->total * sizeof *nan);
    for (int64_t i = 0; i < p->total; i++)
        nan[i] = NAN;
    need(cx, et_tensor_write(cx, p->values, nan, (size_t)p->total * sizeof *nan));
    free(nan);
    interrupt = 1;
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(6)));
    interrupt = 0;
    is_int(et_trainer_outcome(r.trainer), ET_OUTCOME_DIVERGED,
           "who interrupts a run in the batch in which it diverges does not hide that");
    ok(!r.state->interrupted, "nor is it one to go on with");
    run_close(&r);
}

/* A loss that is no number in batch SPOILT, from 0. */
static int64_t spoilt;

static struct et_tensor *
spoil_loss(void *data, struct et_state *s)
{
    struct et_tensor *loss =
        et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
    (void)data;
    return s->timestamp.batch == spoilt ? et_mul_scalar(s->graph, loss, (double)NAN)
                                        : loss;
}

/* A running mean after N batches, of 4 samples and of 2 in turn, in microbatches of
 * SIZE, twice each where SAM is. */
static void
means_after(struct et_ctx *cx, int64_t n, int64_t size, const char *sam, float mean[16])
{
    static const struct et_trainer_steps steps = {.train_loss = spoil_loss};
    static const char *const every[] = {"interval", "1", NULL};
    struct et_algorithm *a = sam ? make_algorithm(cx, sam, every) : NULL;
    struct run r;
    run_prepare(&r, cx,
                &(struct run_setup){.n = 6,
                                    .model = "resnet8",
                                    .microbatch_size = size,
                                    .algorithms = &a,
                                    .n_algorithms = a ? 1 : 0});
    r.config.steps = &steps;
    r.config.nonfinite_action = ET_NONFINITE_SKIP;
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES((double)n)));
    need(cx, et_model_get_param(r.model, "bn1.running_mean", 17, mean, 16));
    run_close(&r);
    et_algorithm_free(&a);
}

static void
test_skipped_batch(struct et_ctx *cx, int64_t n, int64_t size, const char *sam)
{
    float before[16], behind[16];
    spoilt = -1;
    means_after(cx, n, size, sam, before);
    spoilt = n;
    means_after(cx, n + 1, size, sam, behind);
    ok(memcmp(before, behind, sizeof before) == 0 && before[0] != 0,
       "microbatches of %d%s, batch %d is skipped: statistics are those before",
       (int)size, sam ? " and SAM" : "", (int)n + 1);
}

/* A batch that is skipped leaves statistics as they were just before it, whether it and
 * the one before it are one evaluation or several. */
static void
test_skipped_statistics(struct et_ctx *cx)
{
    for (int64_t size = 2; size <= 4; size *= 2)
        for (int64_t n = 1; n <= 2; n++) {
            test_skipped_batch(cx, n, size, NULL);
            test_skipped_batch(cx, n, size, "sam");
        }
}

/* Runs STEPS batches and gives the parameters. */
static struct copy
trained(struct et_ctx *cx, const struct choice *choice, int steps)
{
    struct run r;
    struct et_algorithm *a;
    start(&r, cx, choice, &a);
    fit(&r, steps);
    struct copy c = take(&r);
    stop(&r, &a);
    return c;
}

/* Of the distance that A's parameters are apart from B's, in units of B's size. */
static double
apart(const struct copy *a, const struct copy *b)
{
    double off = 0, size = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double x = (double)a->v[1][i], y = (double)b->v[1][i];
        off += (x - y) * (x - y);
        size += y * y;
    }
    return sqrt(off / size);
}

/* A hook at AFTER_TRAIN_BATCH sees true gradients: clipping elements at 0.01 does to
 * f16 at a scale of 1024 what it does to fp32. The momentum is the sum of three clipped
 * gradients; each of them went through some twenty roundings to 2^-11, the errors of
 * which add up like a random walk. */
#define F16_TOLERANCE (5 * 0x1p-11)
static void
test_clipping(struct et_ctx *cx)
{
    const char *const options[] = {"clipping_type", "value", "clipping_threshold",
                                   "0.01", NULL};
    struct choice choice = {.precision = ET_PRECISION_FP32,
                            .algorithm = "gradient_clipping",
                            .options = options};
    struct copy exact = trained(cx, &choice, 3);
    choice.precision = ET_PRECISION_AMP_FP16;
    choice.initial = 1024;
    struct copy half = trained(cx, &choice, 3);
    double d = apart(&half, &exact);
    ok(d > 0 && d < F16_TOLERANCE, "clipping sees true gradients (%.1e apart)", d);
    drop(&half);
    choice.initial = FAR_TOO_LARGE;
    half = trained(cx, &choice, 1);
    is_int(half.updates, 0, "an infinity that was clipped is an overflow all the same");
    drop(&half);
    drop(&exact);
}

/* Powers of two in and out again: the scale changes nothing that f16 can hold. */
static void
test_exact(struct et_ctx *cx)
{
    struct choice choice = {.precision = ET_PRECISION_AMP_FP16, .initial = 256};
    struct copy a = trained(cx, &choice, 6);
    choice.accum = 2;
    struct copy b = trained(cx, &choice, 6);
    double d = apart(&b, &a);
    ok(a.updates == 6 && b.updates == 6 && d < F16_TOLERANCE,
       "microbatches give the batch's gradient (%.1e apart)", d);
    drop(&b);
    choice.accum = 0;
    choice.initial = 512;
    b = trained(cx, &choice, 6);
    /* Gradients below 2^-14 lose bits at one scale that they keep at the other. */
    ok(apart(&b, &a) < 0x1p-11, "twice the scale gives the same gradients (%.1e apart)",
       apart(&b, &a));
    drop(&a);
    drop(&b);
}

static void
test_archive(struct et_ctx *cx, double initial)
{
    struct run first, second;
    struct et_algorithm *a, *b;
    struct et_archive archive = {0};
    const struct choice choice = {
        .precision = ET_PRECISION_AMP_FP16, .initial = initial, .interval = 3};
    start(&first, cx, &choice, &a);
    start(&second, cx, &choice, &b);
    fit(&first, 5);
    eti_archive_begin(&archive, cx);
    need(cx, eti_parts_archive(first.trainer, &archive));
    need(cx, eti_archive_end(&archive));
    need(cx, eti_archive_sort(&archive));
    archive.source = "test";
    archive.mode = ET_ARCHIVE_CHECK;
    need(cx, eti_parts_archive(second.trainer, &archive));
    ok(second.state->loss_scale == initial && clean_steps(&second) == 0,
       "checking a checkpoint leaves a scale of %g alone", initial);
    archive.mode = ET_ARCHIVE_LOAD;
    need(cx, eti_parts_archive(second.trainer, &archive));
    ok(second.state->loss_scale == 2 * initial && clean_steps(&second) == 2,
       "loading brings the scale and the count of clean steps");
    fit(&second, 1);
    ok(second.state->loss_scale == 4 * initial, "and the next clean step is the third");
    eti_archive_release(&archive);
    eti_archive_begin(&archive, cx);
    need(cx, eti_archive_sort(&archive));
    archive.mode = ET_ARCHIVE_LOAD;
    need(cx, eti_parts_archive(second.trainer, &archive));
    ok(second.state->loss_scale == initial && clean_steps(&second) == 0,
       "a checkpoint of another precision begins anew");
    eti_archive_release(&archive);
    stop(&first, &a);
    stop(&second, &b);
}

/* Each call of fit may bring a precision, of two batches. */
static void
test_change(struct et_ctx *cx)
{
    struct run r;
    struct et_algorithm *a;
    struct et_fit_options o = {.duration = ET_BATCHES(2)};
    start(&r, cx,
          &(struct choice){
              .precision = ET_PRECISION_FP32, .initial = SMALL, .interval = 2},
          &a);
    fit(&r, 2);
    o.precision = ET_PRECISION_AMP_FP16;
    need(cx, et_trainer_fit_with(r.trainer, &o));
    ok(r.state->precision == ET_PRECISION_AMP_FP16 && r.state->loss_scale == 2 * SMALL,
       "from fp32 to amp_fp16: the loss is scaled");
    o.precision = ET_PRECISION_AUTO;
    need(cx, et_trainer_fit_with(r.trainer, &o));
    ok(r.state->precision == ET_PRECISION_AMP_FP16 && r.state->loss_scale == 4 * SMALL,
       "without a precision all stays as it is");
    o.precision = ET_PRECISION_AMP_FP16;
    need(cx, et_trainer_fit_with(r.trainer, &o));
    ok(r.state->loss_scale == 2 * SMALL, "with the same one the scale begins anew");
    o.precision = ET_PRECISION_AMP_FP8;
    ok(et_trainer_fit_with(r.trainer, &o) == ET_ENOTSUP &&
           r.state->precision == ET_PRECISION_AMP_FP16,
       "one that no device has is refused, and changes nothing");
    et_error_clear(cx);
    o.precision = ET_PRECISION_FP32;
    need(cx, et_trainer_fit_with(r.trainer, &o));
    double single = r.state->loss_value;
    ok(!is_scaled(&r) && isfinite(single), "and back to fp32, where nothing is scaled");
    stop(&r, &a);
}

int
main(void)
{
    static const char *const devices[] = {"ref", "cpu"};
    struct et_ctx *cx = need_ctx();
    struct choice choice = {.precision = ET_PRECISION_AMP_FP16,
                            .initial = FAR_TOO_LARGE};
    for (int i = 0; i < 2; i++) {
        struct et_device *dev;
        choice.device = devices[i];
        if (et_device_open(cx, test_device(devices[i]), 0, 1, &dev) != ET_OK) {
            skip(15, et_error_get(cx)->message);
            et_error_clear(cx);
            continue;
        }
        et_device_close(&dev);
        test_skip(cx, devices[i], &choice);
        choice.accum = 2;
        test_skip(cx, "in two microbatches", &choice);
        choice.accum = 0;
        choice.algorithm = "sam";
        test_skip(cx, "with sam", &choice);
        choice.algorithm = NULL;
    }
    test_rule(cx);
    test_default(cx);
    test_collapse(cx);
    test_stopped_collapse(cx);
    test_skipped_statistics(cx);
    test_clipping(cx);
    test_exact(cx);
    test_archive(cx, SMALL);
    test_archive(cx, 1); /* which is also that of what is not scaled */
    test_change(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
