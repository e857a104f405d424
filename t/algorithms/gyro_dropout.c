/* SPDX-License-Identifier: Apache-2.0 */
/* GyroDropout: spec/algorithms.md 2.13. */
#include "t/algorithms/golden.h"

#include <stdlib.h>
#include <string.h>

#include "etude/nn.h"
#include "t/train/recipe_run.h"
#include "t/unit/rig.h"

enum { ROWS = 8, WIDTH = 12, SIGMA = 6, TAU = 4, STEPS = 12 }; /* a period has 8 */

static struct et_module *
two_dropouts(struct et_ctx *cx)
{
    struct et_module *m;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, NULL, dropout, .p = .1));
    need(cx, ET_ADD(cx, m, NULL, dropout, .p = .2));
    return m;
}

static struct et_gyro_dropout *
apply(struct formula *f, struct et_module *m, double p, uint32_t seed)
{
    struct et_gyro_dropout *d;
    need(f->cx,
         et_apply_gyro_dropout(f->cx, m, f->dev, STEPS, p, SIGMA, TAU, seed, &d));
    return d;
}

/* Layer I of M at ROWS rows of ones, into OUT. */
static void
pass(struct formula *f, struct et_module *m, int i, bool training, float *out)
{
    const int64_t at[2] = {1, 40}, two = 2;
    struct et_tensor *rng;
    need(f->cx,
         et_tensor_new(f->cx, f->dev, ET_I64, 1, &two, ET_ROW_MAJOR, NULL, &rng));
    need(f->cx, et_tensor_write(f->cx, rng, at, sizeof at));
    struct et_forward forward = {.g = f->g, .training = training, .rng = rng};
    for (int k = 0; k < ROWS * WIDTH; k++)
        out[k] = 1;
    struct et_tensor *x = reals(f, out, ET_SHAPE(ROWS, WIDTH));
    evaluate(f, et_forward(&forward, m->items[i].module, x), out, ROWS * WIDTH);
    et_graph_reset(f->g);
    et_tensor_free(&x);
    et_tensor_free(&rng);
}

static bool
same_rows(const float *a, const float *b)
{
    return memcmp(a, b, WIDTH * sizeof *a) == 0;
}

/* "gyro_period iters epochs sigma tau period" by Composer. */
static void
test_period(void)
{
    char line[256];
    FILE *file = rig_golden("methods.txt");
    int cases = 0;
    while (fgets(line, sizeof line, file)) {
        long long v[5];
        if (sscanf(line, "gyro_period %lld %lld %lld %lld %lld", &v[0], &v[1], &v[2],
                   &v[3], &v[4]) != 5)
            continue;
        is_int(et_gyro_dropout_period(v[0] * v[1], v[2], v[3]), v[4],
               "%lld batches, %lld epochs, %lld masks by %lld: Composer's period", v[0],
               v[1], v[2], v[3]);
        cases++;
    }
    fclose(file);
    is_int(cases, 3, "three periods");
}

static void
test_masks(struct formula *f)
{
    static float step[2 * STEPS][ROWS * WIDTH];
    float seen[2 * STEPS * ROWS][WIDTH], other[ROWS * WIDTH];
    struct et_module *m = two_dropouts(f->cx);
    struct et_gyro_dropout *d = apply(f, m, .25, 17);
    int n = 0, groups = 0, scaled = 0, zeros = 0, stay = 0;
    is_int(et_gyro_dropout_layers(d), 2, "two layers");
    for (int i = 0; i < 2 * STEPS; i++) {
        need(f->cx, et_gyro_dropout_begin(d, i, ROWS));
        pass(f, m, 0, true, step[i]);
        for (int r = 0; r < ROWS; r++) {
            const float *row = step[i] + r * WIDTH;
            groups += same_rows(row, step[i] + r / 2 * 2 * WIDTH);
            int k = 0;
            while (k < n && !same_rows(seen[k], row))
                k++;
            if (k == n)
                memcpy(seen[n++], row, sizeof *seen);
        }
        stay += i > 0 && memcmp(step[i], step[i - 1], sizeof *step) == 0;
        for (int k = 0; k < ROWS * WIDTH; k++) {
            zeros += step[i][k] == 0;
            scaled += step[i][k] == (float)(1 / .75);
        }
    }
    is_int(groups, 2 * STEPS * ROWS, "8 samples by 4 masks: each two have one");
    ok(n > TAU && n <= SIGMA, "no more masks than the pool has: %d", n);
    is_int(stay, 2 * STEPS - 3, "24 steps by periods of 8 change masks twice");
    is_int(zeros + scaled, 2 * STEPS * ROWS * WIDTH, "elements are 0 or 1 / (1 - p)");
    pass(f, m, 1, true, other);
    ok(memcmp(other, step[2 * STEPS - 1], sizeof other) != 0,
       "another layer has a pool of its own");
    pass(f, m, 0, false, other);
    int ones = 0;
    for (int k = 0; k < ROWS * WIDTH; k++)
        ones += other[k] == 1;
    is_int(ones, ROWS * WIDTH, "an evaluation drops nothing");
    need(f->cx, et_gyro_dropout_begin(d, 3, ROWS));
    pass(f, m, 0, true, other);
    ok(memcmp(other, step[3], sizeof other) == 0, "a step has its masks again");
    et_gyro_dropout_free(&d);
    et_module_free(&m);
}

/* Each mask of the pool is drawn by itself. */
static void
test_share(struct formula *f)
{
    enum { MASKS = 400 };
    struct et_module *m = two_dropouts(f->cx);
    struct et_gyro_dropout *d;
    float out[ROWS * WIDTH];
    int zeros = 0;
    need(f->cx, et_apply_gyro_dropout(f->cx, m, f->dev, MASKS, .3, MASKS, 8, 5, &d));
    for (int i = 0; i < MASKS; i++) {
        need(f->cx, et_gyro_dropout_begin(d, 8 * i, ROWS));
        pass(f, m, 0, true, out);
        for (int k = 0; k < ROWS * WIDTH; k++)
            zeros += out[k] == 0;
    }
    /* 4800 draws of the pool: a deviation is 0.7 % of all */
    double share = (double)zeros / (MASKS * ROWS * WIDTH);
    is_near(share, .3, .03, "with p .3 this share of elements is zero");
    et_gyro_dropout_free(&d);
    et_module_free(&m);
}

/* A part of the step's batch has the masks of its rows. */
static void
test_parts(struct formula *f)
{
    float whole[ROWS * WIDTH], part[2 * WIDTH];
    struct et_module *m = two_dropouts(f->cx);
    struct et_gyro_dropout *d = apply(f, m, .5, 17);
    need(f->cx, et_gyro_dropout_begin(d, 0, ROWS));
    pass(f, m, 0, true, whole);
    for (int k = 0; k < 2 * WIDTH; k++)
        part[k] = 1;
    struct et_tensor *x = reals(f, part, ET_SHAPE(2, WIDTH));
    struct et_samples samples = {.x = x, .n = 2, .first_row = 5};
    struct et_forward forward = {.g = f->g, .training = true, .samples = &samples};
    evaluate(f, et_forward(&forward, m->items[0].module, x), part, 2 * WIDTH);
    ok(memcmp(part, whole + 5 * WIDTH, sizeof part) == 0,
       "rows 5 and 6 of a batch have their masks in a microbatch");
    et_graph_reset(f->g);
    et_tensor_free(&x);
    et_gyro_dropout_free(&d);
    et_module_free(&m);
}

/* Layer 0 of M at N rows of ones, in the batch that was begun. */
static void
pass_rows(struct formula *f, struct et_module *m, int64_t n, float *out)
{
    struct et_forward forward = {.g = f->g, .training = true};
    for (int64_t k = 0; k < n * WIDTH; k++)
        out[k] = 1;
    struct et_tensor *x = reals(f, out, ET_SHAPE(n, WIDTH));
    evaluate(f, et_forward(&forward, m->items[0].module, x), out, (int)n * WIDTH);
    et_graph_reset(f->g);
    et_tensor_free(&x);
}

/* Batches of several sizes, one after the other: each has the masks dealt out anew. */
static void
test_sizes(struct formula *f)
{
    static const int64_t sizes[] = {8, 4, 16, 8};
    static float masks[16 * WIDTH];
    struct et_module *m = two_dropouts(f->cx);
    struct et_gyro_dropout *d = apply(f, m, .5, 17);
    float first[TAU][WIDTH];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int wrong = 0;
        need(f->cx, et_gyro_dropout_begin(d, 0, sizes[i]));
        pass_rows(f, m, sizes[i], masks);
        for (int64_t r = 0; r < sizes[i]; r++) {
            int64_t which = r * TAU / sizes[i];
            const float *row = masks + r * WIDTH;
            if (i == 0 && r % 2 == 0)
                memcpy(first[which], row, sizeof *first);
            wrong += !same_rows(row, first[which]);
        }
        is_int(wrong, 0, "a batch of %d has the picks of its step", (int)sizes[i]);
    }
    et_gyro_dropout_free(&d);
    et_module_free(&m);
}

/* Between runs, and switched off, layers are what they were. */
static void
test_rest(struct formula *f)
{
    float want[ROWS * WIDTH], got[ROWS * WIDTH];
    struct et_module *m = two_dropouts(f->cx);
    pass(f, m, 1, true, want);
    struct et_gyro_dropout *d = apply(f, m, .5, 17);
    pass(f, m, 1, true, got);
    ok(memcmp(got, want, sizeof got) == 0,
       "before the first step a layer is as it was");
    need(f->cx, et_gyro_dropout_begin(d, 0, ROWS));
    pass(f, m, 1, true, got);
    ok(memcmp(got, want, sizeof got) != 0, "in a step it is not");
    et_gyro_dropout_rest(d);
    pass(f, m, 1, true, got);
    ok(memcmp(got, want, sizeof got) == 0, "at rest it is again");
    et_gyro_dropout_free(&d);
    pass(f, m, 1, true, got);
    ok(memcmp(got, want, sizeof got) == 0, "also when the masks are freed");
    et_module_free(&m);
}

static void
test_refusals(struct formula *f)
{
    struct et_gyro_dropout *d;
    struct et_module *m = two_dropouts(f->cx);
    refused(f->cx, et_apply_gyro_dropout(f->cx, m, f->dev, 10, .5, 256, 16, 0, &d),
            "a run of fewer steps than masks is refused");
    refused(f->cx, et_apply_gyro_dropout(f->cx, m, f->dev, 10, 1, 2, 1, 0, &d),
            "so is p 1");
    refused(f->cx, et_apply_gyro_dropout(f->cx, m, f->dev, 10, .5, 2, 0, 0, &d),
            "and no mask at all");
    d = apply(f, m, .5, 17);
    refused(f->cx, et_gyro_dropout_begin(d, 0, 10),
            "4 masks for 10 samples are refused");
    need(f->cx, et_gyro_dropout_begin(d, 0, 4));
    float v[16] = {0};
    struct et_tensor *x = reals(f, v, ET_SHAPE(4, 2, 2));
    struct et_forward forward = {.g = f->g, .training = true};
    et_forward(&forward, m->items[0].module, x);
    et_status status = et_graph_status(f->g);
    const char *why = take_error(f->cx);
    ok(status == ET_ESHAPE, "other than vectors are refused: %s", why);
    et_graph_reset(f->g);
    et_tensor_free(&x);
    et_gyro_dropout_free(&d);
    et_module_free(&m);
}

/* ---- a run ---- */

#define RUN(duration)                                                                  \
    "max_duration: " duration "\nseed: 17\noptimizer: {name: sgd, lr: 0.05}\n"         \
    "train_data: {name: synthetic_images, type: separable, num_samples: 16,\n"         \
    "  num_unique: 16, batch_size: 8, workers: 0, resolution: 6}\n"                    \
    "model:\n  name: layers\n  layers:\n    - flatten\n    - linear: {out: 24}\n"      \
    "    - silu\n    - dropout: {p: 0.1}\n    - linear: {out: 10}\n"                   \
    "algorithms:\n  gyro_dropout: {p: 0.5, sigma: 4, tau: 2}\n"

/* With max_duration in epochs and in batches it is the same run (D12). */
static void
test_run(struct et_ctx *cx)
{
    double loss[3][8];
    for (int i = 0; i < 3; i++) {
        struct recipe_run r;
        recipe_open(&r, cx, i == 1 ? RUN("8ba") : RUN("4ep"),
                    &(struct recipe_choice){.grad_accum = i == 2 ? 4 : 1});
        recipe_fit(&r);
        if (r.n_losses != 8)
            bail("%d batches", r.n_losses);
        memcpy(loss[i], r.loss, sizeof loss[i]);
        recipe_close(&r);
    }
    ok(memcmp(loss[0], loss[1], sizeof *loss) == 0, "8ba is the run that 4ep is");
    double worst = 0;
    for (int i = 0; i < 8; i++) {
        double off = loss[0][i] - loss[2][i];
        worst = off > worst ? off : -off > worst ? -off : worst;
    }
    ok(worst < STEPS_TOL, "in four microbatches masks and losses are the same (%.1e)",
       worst);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_period();
    test_masks(&f);
    test_share(&f);
    test_parts(&f);
    test_sizes(&f);
    test_rest(&f);
    test_refusals(&f);
    formula_close(&f);
    ok(*refusal(cx, "gyro_dropout", OPTIONS("p", "1")), "p 1 is no option");
    ok(*refusal(cx, "gyro_dropout", OPTIONS("tau", "0")), "nor is tau 0");
    test_run(cx);
    return finish(cx);
}
