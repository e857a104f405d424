/* SPDX-License-Identifier: Apache-2.0 */
/* StochasticDepth: spec/algorithms.md 2.25. */
#include "t/algorithms/golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/nn.h"
#include "t/train/recipe_run.h"
#include "t/unit/rig.h"

/* make_methods.py's bottlenecks(): with a downsample, without, with, without. */
static struct et_module *
bottlenecks(struct et_ctx *cx)
{
    struct et_module *m;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, NULL, bottleneck, .in_channels = 3, .channels = 1));
    need(cx, ET_ADD(cx, m, NULL, bottleneck, .in_channels = 4, .channels = 1));
    need(cx,
         ET_ADD(cx, m, NULL, bottleneck, .in_channels = 4, .channels = 2, .stride = 2));
    need(cx, ET_ADD(cx, m, NULL, bottleneck, .in_channels = 8, .channels = 2));
    return m;
}

static struct et_stochastic_depth *
apply(struct formula *f, struct et_module *m, enum et_stochastic_method method,
      double rate, enum et_drop_distribution distribution)
{
    struct et_stochastic_depth *d;
    need(f->cx,
         et_apply_stochastic_depth(f->cx, m, f->dev, method, rate, distribution, &d));
    return d;
}

static bool
is_closed(const struct et_module *m, int block)
{
    return ((struct et_bottleneck_module *)m->items[block].module)->gate->is_closed;
}

/* Draws until just the blocks of MASK are left out. */
static void
leave_out(struct et_ctx *cx, struct et_stochastic_depth *d, const struct et_module *m,
          unsigned mask)
{
    for (uint32_t seed = 0; seed < 10000; seed++) {
        struct et_rng rng = et_rng_at(seed, ET_RNG_USER, 0);
        unsigned drawn = 0;
        need(cx, et_stochastic_depth_draw(d, &rng));
        for (int i = 0; i < et_stochastic_depth_blocks(d); i++)
            drawn |= (unsigned)is_closed(m, i) << i;
        if (drawn == mask)
            return;
    }
    bail("no draw leaves out %x", mask);
}

static void
test_rates(void)
{
    double worst = 0;
    for (int i = 0; i < 16; i++)
        worst = fmax(worst, fabs(et_block_drop_rate(.2, ET_DROP_LINEAR, i, 16) -
                                 .0125 * (i + 1)));
    ok(worst < 1e-15, "16 blocks at .2 have the rates .0125, .025, ... .2");
    ok(et_block_drop_rate(.2, ET_DROP_UNIFORM, 3, 16) == .2, "or all of them .2");
}

static void
test_golden(struct formula *f)
{
    struct et_module *m = bottlenecks(f->cx);
    struct et_stochastic_depth *d =
        apply(f, m, ET_STOCHASTIC_BLOCK, .5, ET_DROP_UNIFORM);
    is_int(et_stochastic_depth_blocks(d), 4, "four blocks");
    leave_out(f->cx, d, m, 2 | 4);
    golden_check(f, m, "stochastic_depth", F32_TOL);
    et_stochastic_depth_free(&d);
    et_module_free(&m);
}

/* ---- passes ---- */

enum { SIDE = 4, ROWS = 6, WIDE = 4 * SIDE * SIDE };

/* Block BLOCK of M at ROWS images of CHANNELS, into OUT. */
static void
pass(struct formula *f, struct et_module *block, bool training, int64_t channels,
     const float *v, float *out, int64_t n_out)
{
    const int64_t at[2] = {(int64_t)et_rng_key(17, ET_RNG_DROPOUT), 40};
    const int64_t two = 2;
    struct et_tensor *rng;
    need(f->cx,
         et_tensor_new(f->cx, f->dev, ET_I64, 1, &two, ET_ROW_MAJOR, NULL, &rng));
    need(f->cx, et_tensor_write(f->cx, rng, at, sizeof at));
    struct et_forward forward = {.g = f->g, .training = training, .rng = rng};
    struct et_tensor *x = reals(f, v, ET_SHAPE(ROWS, channels, SIDE, SIDE));
    evaluate(f, et_forward(&forward, block, x), out, n_out);
    et_graph_reset(f->g);
    et_tensor_free(&x);
    et_tensor_free(&rng);
}

static void
bind(struct formula *f, struct et_module *m)
{
    struct et_leaves l;
    float v[1024];
    need(f->cx, et_module_leaves(f->cx, m, ET_PARAM | ET_BUFFER, &l));
    for (int i = 0; i < l.n; i++) {
        int64_t n = et_desc_count(&l.v[i].param->desc);
        rig_values((uint32_t)i, n, v);
        for (int64_t k = 0; k < n; k++)
            v[k] = l.v[i].param->kind == ET_BUFFER ? fabsf(v[k]) + .5f : v[k];
        need(f->cx, et_param_write(f->cx, l.v[i].param, v, n));
    }
    et_leaves_release(&l);
    need(f->cx, et_module_bind(f->cx, m, f->dev, ET_PARAM | ET_BUFFER, 17));
}

static struct et_module *
block_of(struct et_module *m, int i)
{
    return m->items[i].module;
}

static void
test_never_and_always(struct formula *f)
{
    float x[ROWS * WIDE], got[ROWS * WIDE], want[ROWS * WIDE];
    struct et_module *plain = bottlenecks(f->cx), *m = bottlenecks(f->cx);
    bind(f, plain);
    bind(f, m);
    rig_values(77, ROWS * WIDE, x);
    for (int method = 0; method < 2; method++) {
        struct et_stochastic_depth *d =
            apply(f, m, (enum et_stochastic_method)method, 0, ET_DROP_LINEAR);
        if (method == ET_STOCHASTIC_BLOCK)
            leave_out(f->cx, d, m, 0);
        pass(f, block_of(plain, 1), true, 4, x, want, ROWS * WIDE);
        pass(f, block_of(m, 1), true, 4, x, got, ROWS * WIDE);
        ok(memcmp(got, want, sizeof got) == 0, "%s: with rate 0 a block is as it was",
           method ? "sample" : "block");
        struct et_rng rng = et_rng_at(1, ET_RNG_USER, 0);
        et_stochastic_depth_free(&d);
        d = apply(f, m, (enum et_stochastic_method)method, 1, ET_DROP_UNIFORM);
        need(f->cx, et_stochastic_depth_draw(d, &rng));
        pass(f, block_of(m, 1), true, 4, x, got, ROWS * WIDE);
        for (int i = 0; i < ROWS * WIDE; i++)
            want[i] = method && x[i] < 0 ? 0 : x[i];
        ok(memcmp(got, want, sizeof got) == 0,
           method ? "sample: with rate 1 it is relu(x)"
                  : "block: with rate 1 it is x, also below 0");
        et_stochastic_depth_free(&d);
    }
    et_module_free(&m);
    et_module_free(&plain);
}

/* relu(F + S) and relu((1 - p) F + S) of a block without downsample: where the first is
 * positive F follows from it. */
static void
test_evaluation(struct formula *f)
{
    float x[ROWS * WIDE], whole[ROWS * WIDE], got[ROWS * WIDE], again[ROWS * WIDE];
    struct et_module *m = bottlenecks(f->cx);
    double worst = 0;
    int n = 0;
    bind(f, m);
    rig_values(78, ROWS * WIDE, x);
    pass(f, block_of(m, 1), false, 4, x, whole, ROWS * WIDE);
    struct et_stochastic_depth *d =
        apply(f, m, ET_STOCHASTIC_BLOCK, .8, ET_DROP_LINEAR); /* .4 for block 1 */
    leave_out(f->cx, d, m, 2);
    pass(f, block_of(m, 1), false, 4, x, got, ROWS * WIDE);
    for (int i = 0; i < ROWS * WIDE; i++)
        if (whole[i] > 0) {
            double want = .6 * (double)(whole[i] - x[i]) + (double)x[i];
            worst = fmax(worst, fabs(fmax(want, 0) - (double)got[i]));
            n++;
        }
    ok(n > 50 && worst < F32_TOL * 10,
       "an evaluation is relu(.6 F + S), whatever is left out (%d, %.1e)", n, worst);
    et_stochastic_depth_free(&d);
    pass(f, block_of(m, 1), false, 4, x, again, ROWS * WIDE);
    ok(memcmp(got, again, sizeof got) == 0, "also when the run is over");
    et_module_free(&m);
}

/* Each sample has its block or not; which of them follows from the sample's number. */
static void
test_samples(struct formula *f)
{
    float x[ROWS * WIDE], with[ROWS * WIDE], got[ROWS * WIDE];
    struct et_module *m = bottlenecks(f->cx);
    int kept = 0, dropped = 0;
    bind(f, m);
    rig_values(79, ROWS * WIDE, x);
    pass(f, block_of(m, 1), true, 4, x, with, ROWS * WIDE);
    struct et_stochastic_depth *d =
        apply(f, m, ET_STOCHASTIC_SAMPLE, .5, ET_DROP_UNIFORM);
    pass(f, block_of(m, 1), true, 4, x, got, ROWS * WIDE);
    for (int i = 0; i < ROWS; i++) {
        bool is_shortcut = true;
        for (int k = i * WIDE; k < (i + 1) * WIDE; k++)
            is_shortcut &= got[k] == fmaxf(x[k], 0);
        kept += memcmp(got + i * WIDE, with + i * WIDE, WIDE * sizeof *got) == 0;
        dropped += is_shortcut;
    }
    ok(kept > 0 && dropped > 0 && kept + dropped == ROWS,
       "each sample has the block or its shortcut: %d and %d", kept, dropped);
    et_stochastic_depth_free(&d);
    et_module_free(&m);
}

static void
test_share(struct formula *f)
{
    struct et_module *m = bottlenecks(f->cx);
    struct et_stochastic_depth *d =
        apply(f, m, ET_STOCHASTIC_BLOCK, .4, ET_DROP_LINEAR);
    int n[4] = {0};
    for (int64_t step = 0; step < 2000; step++) {
        struct et_rng rng = et_rng_at(3, ET_RNG_USER, (uint64_t)step);
        need(f->cx, et_stochastic_depth_draw(d, &rng));
        for (int i = 0; i < 4; i++)
            n[i] += is_closed(m, i);
    }
    /* 2000 draws: a deviation is 22 at most */
    bool right = true;
    for (int i = 0; i < 4; i++)
        right &= abs(n[i] - 200 * (i + 1)) < 90;
    ok(right, "of 2000 steps blocks miss their share: %d, %d, %d, %d", n[0], n[1], n[2],
       n[3]);
    et_stochastic_depth_free(&d);
    et_module_free(&m);
}

/* ---- a run ---- */

#define RUN(duration, optimizer)                                                       \
    "max_duration: " duration "\nseed: 17\noptimizer: " optimizer "\n"                 \
    "train_data: {name: synthetic_images, type: separable, num_samples: 16,\n"         \
    "  num_unique: 16, batch_size: 8, workers: 0, resolution: 8}\n"                    \
    "model:\n  name: layers\n  layers:\n"                                              \
    "    - bottleneck: {channels: 2}\n    - bottleneck: {channels: 2}\n"               \
    "    - bottleneck: {channels: 2}\n    - adaptive_avg_pool2d\n    - flatten\n"      \
    "    - linear: {out: 10}\n"
#define ADAM   "{name: adamw, lr: 0.01, weight_decay: 0.1}"
#define METHOD "algorithms:\n  stochastic_depth: {target_layer_name: ResNetBottleneck, "

/* The parameters and statistics of a module, as bytes, into OUT. */
static size_t
values_of(struct et_ctx *cx, struct et_module *m, unsigned kinds, float *out)
{
    struct et_leaves l;
    size_t n = 0;
    need(cx, et_module_leaves(cx, m, kinds, &l));
    for (int i = 0; i < l.n; i++) {
        size_t count = (size_t)et_desc_count(&l.v[i].param->desc);
        need(cx,
             et_tensor_read(cx, l.v[i].param->tensor, out + n, count * sizeof *out));
        n += count;
    }
    et_leaves_release(&l);
    return n;
}

static int64_t
updates_of(const struct et_state *s, const char *name)
{
    return s->params->slot[et_param_space_find(s->params, name)].updates;
}

/* Steps one by one. Block 1 (of 3) when it is left out and when it is not; its rate is
 * two thirds of .9. */
static void
test_run(struct et_ctx *cx)
{
    enum { STEPS = 24, SIZE = 2048 };
    static float before[SIZE], after[SIZE], stats[SIZE], now[SIZE];
    struct recipe_run r;
    struct et_graph_stats first, last;
    int left_out = 0, wrong = 0, moved = 0;
    recipe_open(&r, cx, RUN("24ba", ADAM) METHOD "drop_rate: 0.9}\n",
                &(struct recipe_choice){.grad_accum = 1});
    struct et_bottleneck_module *m =
        (struct et_bottleneck_module *)et_module_find(r.state->model->root, "1");
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(2)));
    et_graph_get_stats(r.state->graph, &first);
    int64_t count = updates_of(r.state, "1.conv2.weight");
    for (int i = 2; i < STEPS; i++) {
        size_t n = values_of(cx, m->conv2, ET_PARAM, before);
        size_t k = values_of(cx, m->bn3, ET_BUFFER, stats);
        need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
        values_of(cx, m->conv2, ET_PARAM, after);
        values_of(cx, m->bn3, ET_BUFFER, now);
        bool closed = m->gate->is_closed;
        bool same = memcmp(before, after, n * sizeof *before) == 0;
        bool still = memcmp(stats, now, k * sizeof *stats) == 0;
        left_out += closed;
        moved += !same && !still;
        wrong += closed ? !same || !still : same || still;
    }
    et_graph_get_stats(r.state->graph, &last);
    ok(left_out > 6 && moved > 3, "a block is left out of %d steps, and not of %d",
       left_out, moved);
    is_int(
        wrong, 0,
        "then neither parameters, for all of Adam, nor statistics move; else both do");
    is_int(updates_of(r.state, "1.conv2.weight") - count, moved,
           "its updates are those that counted");
    is_int(updates_of(r.state, "5.weight"), STEPS, "the head has all");
    is_int(updates_of(r.state, "0.downsample.0.weight"), STEPS,
           "and so has a downsample, which is used whatever is left out");
    is_int((int64_t)(last.plans_built - first.plans_built), 0, "with the same plan");
    recipe_close(&r);
}

/* Blocks that nobody asked to leave out get the same update as in a run without. */
static void
test_rate_0(struct et_ctx *cx)
{
    struct recipe_run r;
    void *params[2];
    size_t bytes;
    for (int i = 0; i < 2; i++) {
        recipe_open(&r, cx,
                    i ? RUN("6ba", ADAM) METHOD "drop_rate: 0.0}\n" : RUN("6ba", ADAM),
                    &(struct recipe_choice){.grad_accum = 1});
        recipe_fit(&r);
        params[i] = recipe_params(&r, &bytes);
        recipe_close(&r);
    }
    ok(memcmp(params[0], params[1], bytes) == 0,
       "a run with rate 0 is one without the method, bit for bit");
    free(params[0]);
    free(params[1]);
}

static double rate_of_batch[32];
static int n_batches;

static et_status
watch(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct et_bottleneck_module *m =
        (const struct et_bottleneck_module *)et_module_find(s->model->root, "2");
    (void)self, (void)event, (void)log;
    rate_of_batch[n_batches++] = m->drop_rate;
    return ET_OK;
}

/* Half of a run of 8 warms up: rates 0, 1/4, 2/4, 3/4 of .8, then all of it (D19). */
static void
test_warmup(struct et_ctx *cx)
{
    static const struct et_algorithm_class spy = {
        .info = {.name = "spy"}, .events = ET_ON(BATCH_END), .apply = watch};
    struct et_algorithm *list[2], watching = {.type = &spy, .cx = cx};
    struct recipe_run r;
    double worst = 0;
    n_batches = 0;
    recipe_prepare(&r, cx,
                   RUN("8ba", ADAM) METHOD "drop_rate: 0.8, drop_warmup: 0.5dur}\n",
                   &(struct recipe_choice){.grad_accum = 1});
    list[0] = r.parts.config.algorithms[0];
    list[1] = &watching;
    r.parts.config.algorithms = list;
    r.parts.config.n_algorithms = 2;
    recipe_start(&r);
    recipe_fit(&r);
    for (int i = 0; i < n_batches; i++)
        worst = fmax(worst, fabs(rate_of_batch[i] - .8 * fmin(i / 4., 1)));
    ok(n_batches == 8 && worst < 1e-12, "the rate warms up, and gets there");
    recipe_close(&r);
}

/* How many parameters of the branch of block B, and of its shortcut, have GATE. */
static void
count_gates(struct et_ctx *cx, struct et_module *b, const struct et_gate *gate,
            int *branch, int *shortcut)
{
    struct et_leaves l;
    *branch = *shortcut = 0;
    need(cx, et_module_leaves(cx, b, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++)
        if (l.v[i].param->gate == gate)
            ++*(strstr(l.v[i].name, "downsample") ? shortcut : branch);
    et_leaves_release(&l);
}

/* The gates are those of the method that came last, and go with it alone. */
static void
test_gates(struct formula *f)
{
    struct et_module *m = bottlenecks(f->cx);
    struct et_bottleneck_module *b = (struct et_bottleneck_module *)block_of(m, 0);
    int branch, shortcut;
    struct et_stochastic_depth *first =
        apply(f, m, ET_STOCHASTIC_BLOCK, .5, ET_DROP_UNIFORM);
    struct et_stochastic_depth *last =
        apply(f, m, ET_STOCHASTIC_BLOCK, .5, ET_DROP_UNIFORM);
    const struct et_gate *gate = b->gate;
    et_stochastic_depth_free(&first);
    count_gates(f->cx, &b->base, gate, &branch, &shortcut);
    ok(gate && b->gate == gate && branch == 9 && shortcut == 0,
       "three filters and six numbers of norms have the gate of their block (%d, %d)",
       branch, shortcut);
    et_stochastic_depth_free(&last);
    count_gates(f->cx, &b->base, NULL, &branch, &shortcut);
    ok(!b->gate && branch == 9, "and none without the method");
    first = apply(f, m, ET_STOCHASTIC_BLOCK, .5, ET_DROP_UNIFORM);
    last = apply(f, m, ET_STOCHASTIC_SAMPLE, .5, ET_DROP_UNIFORM);
    ok(!b->gate && b->drops_samples, "a block that drops samples has no gate");
    et_stochastic_depth_free(&last);
    et_stochastic_depth_free(&first);
    et_module_free(&m);
}

/* The method at rest leaves out nothing until the next batch begins; taken back it
 * never does. */
static void
test_rest(struct et_ctx *cx, const char *method)
{
    struct recipe_run r;
    struct et_log *log;
    char text[1024];
    double n = 0, rate = 0;
    int open = 0, drops = 0;
    snprintf(text, sizeof text,
             RUN("4ba", ADAM) METHOD
             "drop_rate: 1.0, drop_distribution: uniform, stochastic_method: %s}\n",
             method);
    recipe_open(&r, cx, text, &(struct recipe_choice){.grad_accum = 1});
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(2)));
    struct et_state *s = r.state;
    struct et_algorithm *a = s->algorithms[0];
    need(cx, et_log_new(cx, NULL, &log));
    need(cx, a->type->apply(a, ET_EVENT_BATCH_START, s, log));
    ok(et_log_find(log, "stochastic_depth/drop_rate", &rate) && rate == 1,
       "%s: the rate is logged", method);
    need(cx, a->type->settle(a, s));
    for (int i = 0; i < 3; i++) {
        struct et_bottleneck_module *b =
            (struct et_bottleneck_module *)block_of(s->model->root, i);
        open += b->drop_rate == 0 && !(b->gate && b->gate->is_closed);
    }
    is_int(open, 3, "%s: at rest no block is left out", method);
    need(cx, a->type->apply(a, ET_EVENT_INIT, s, log));
    ok(et_log_find(log, "stochastic_depth/num_stochastic_layers", &n) && n == 3,
       "%s: three blocks are counted", method);
    need(cx, a->type->undo(a, s));
    open = 0;
    for (int i = 0; i < 3; i++) {
        struct et_bottleneck_module *b =
            (struct et_bottleneck_module *)block_of(s->model->root, i);
        open += b->drop_rate == 0 && !b->gate;
        drops += b->drops_samples;
    }
    ok(open == 3 && drops == 0, "%s: taken back it has left nothing", method);
    et_log_free(&log);
    recipe_close(&r);
}

/* The rates of three blocks in a batch, where samples are left out. */
static void
test_sample_rates(struct et_ctx *cx, const char *distribution, const double want[3])
{
    struct recipe_run r;
    struct et_log *log;
    char text[1024];
    int right = 0;
    snprintf(text, sizeof text,
             RUN("4ba", ADAM) METHOD
             "drop_rate: 0.6, drop_distribution: %s, stochastic_method: sample}\n",
             distribution);
    recipe_open(&r, cx, text, &(struct recipe_choice){.grad_accum = 1});
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    struct et_state *s = r.state;
    struct et_algorithm *a = s->algorithms[0];
    need(cx, et_log_new(cx, NULL, &log));
    need(cx, a->type->apply(a, ET_EVENT_BATCH_START, s, log));
    for (int i = 0; i < 3; i++) {
        struct et_bottleneck_module *b =
            (struct et_bottleneck_module *)block_of(s->model->root, i);
        right += fabs(b->drop_rate - want[i]) < 1e-6;
    }
    is_int(right, 3, "samples are left out at %s rates", distribution);
    et_log_free(&log);
    recipe_close(&r);
}

static void
test_options(struct et_ctx *cx)
{
    static const char layer[] = "target_layer_name";
    ok(strstr(refusal(cx, "stochastic_depth", OPTIONS()), layer),
       "the kind of block has to be said");
    ok(*refusal(cx, "stochastic_depth", OPTIONS(layer, "BasicBlock")),
       "no other kind is known");
    ok(strstr(refusal(cx, "stochastic_depth",
                      OPTIONS(layer, "ResNetBottleneck", "stochastic_method", "sample",
                              "drop_warmup", "0.1dur")),
              "sample"),
       "samples do not warm up");
    ok(strstr(refusal(cx, "stochastic_depth",
                      OPTIONS(layer, "ResNetBottleneck", "drop_warmup", "3ba")),
              "3ba"),
       "a warm-up in batches is refused");
    ok(strstr(refusal(cx, "stochastic_depth",
                      OPTIONS(layer, "ResNetBottleneck", "drop_warmup", "0.5ep")),
              "0.5ep"),
       "so is one in epochs, however short");
    is_str(refusal(cx, "stochastic_depth",
                   OPTIONS(layer, "ResNetBottleneck", "drop_warmup", "1dur")),
           "", "the whole run may be one");
    ok(*refusal(cx, "stochastic_depth",
                OPTIONS(layer, "ResNetBottleneck", "drop_rate", "1.1")),
       "so is a rate above 1");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_rates();
    test_golden(&f);
    test_never_and_always(&f);
    test_evaluation(&f);
    test_samples(&f);
    test_share(&f);
    test_gates(&f);
    formula_close(&f);
    test_run(cx);
    test_rate_0(cx);
    test_warmup(cx);
    test_rest(cx, "block");
    test_rest(cx, "sample");
    test_sample_rates(cx, "linear", (const double[]){0.2, 0.4, 0.6});
    test_sample_rates(cx, "uniform", (const double[]){0.6, 0.6, 0.6});
    test_options(cx);
    check_told(cx, "stochastic_depth", OPTIONS("target_layer_name", "ResNetBottleneck"),
               "mlp",
               "stochastic_depth changed nothing: the model has no bottlenecks, as "
               "resnet50 has");
    return finish(cx);
}
