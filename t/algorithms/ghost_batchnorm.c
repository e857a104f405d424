/* SPDX-License-Identifier: Apache-2.0 */
/* GhostBatchNorm: spec/algorithms.md 2.11. */
#include "t/algorithms/golden.h"

#include <math.h>
#include <string.h>

#include "etude/nn.h"

/* A ghost norm of one channel without weight and bias, bound. */
static struct et_module *
ghost_norm(struct formula *f, int64_t size)
{
    struct et_module *norm, *m;
    need(f->cx, ET_NEW(f->cx, &norm, batch_norm, .num_features = 1, .eps = 1e-12,
                       .no_affine = true));
    need(f->cx, ET_NEW(f->cx, &m, ghost_batch_norm, .batchnorm = norm,
                       .ghost_batch_size = size));
    et_module_free(&norm);
    need(f->cx, et_module_bind(f->cx, m, f->dev, ET_PARAM | ET_BUFFER, 17));
    return m;
}

/* M at N samples of WIDTH numbers V, into OUT. */
static void
normalize(struct formula *f, struct et_module *m, bool training, const float *v,
          int64_t n, int64_t width, float *out)
{
    struct et_forward forward = {.g = f->g, .training = training};
    struct et_tensor *x = reals(f, v, ET_SHAPE(n, 1, width));
    evaluate(f, et_forward(&forward, m, x), out, n * width);
    et_graph_reset(f->g);
    et_tensor_free(&x);
}

static float
number(struct formula *f, struct et_module *m, const char *name)
{
    struct et_leaves l;
    float v;
    need(f->cx, et_module_leaves(f->cx, m, ET_BUFFER, &l));
    need(f->cx,
         et_tensor_read(f->cx, et_leaves_find(&l, name)->param->tensor, &v, sizeof v));
    et_leaves_release(&l);
    return v;
}

static void
test_values(struct formula *f)
{
    static const float v[] = {0, 2, 10, 14};
    float got[4], want[4];
    struct et_module *m = ghost_norm(f, 2);
    normalize(f, m, true, v, 4, 1, got);
    is_near_array(got, (float[]){-1, 1, -1, 1}, 4, F32_TOL,
                  "each half has statistics of its own");
    is_near(number(f, m, "batchnorm.running_mean"), .6475, F32_TOL,
            "running means move twice by half the momentum");
    is_near(number(f, m, "batchnorm.running_var"), 1.3975, F32_TOL,
            "so do the unbiased variances");
    normalize(f, m, false, v, 4, 1, got);
    normalize(f, ((struct et_ghost_batch_norm_module *)m)->batchnorm, false, v, 4, 1,
              want);
    ok(memcmp(got, want, sizeof got) == 0, "an evaluation is that of the batch norm");
    normalize(f, m, false, v, 1, 1, got);
    ok(got[0] == want[0], "also of fewer samples than a ghost batch has (D9)");
    et_module_free(&m);
}

/* Parts: N samples by SIZE, as the mean of each tells. */
static void
test_parts(struct formula *f)
{
    static const struct {
        int n, size, parts[5];
    } rows[] = {
        {12, 5, {4, 4, 4}},
        {7, 2, {2, 2, 2, 1}},
        {33, 32, {17, 16}},
        {100, 32, {25, 25, 25, 25}},
    };
    float v[200], got[200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_module *m = ghost_norm(f, rows[i].size);
        double worst = 0;
        int at = 0;
        for (int k = 0; k < 200; k++)
            v[k] = (float)(k * k % 37 + k);
        normalize(f, m, true, v, rows[i].n, 2, got);
        for (const int *part = rows[i].parts; *part; at += *part++) {
            double sum = 0;
            for (int k = 2 * at; k < 2 * (at + *part); k++)
                sum += (double)got[k];
            worst = fmax(worst, fabs(sum / *part));
        }
        ok(at == rows[i].n && worst < 1e-5, "%d samples by %d are %d, %d ... (%g)",
           rows[i].n, rows[i].size, rows[i].parts[0], rows[i].parts[1], worst);
        et_module_free(&m);
    }
}

static void
test_whole(struct formula *f)
{
    float v[8], got[8], want[8];
    struct et_module *m = ghost_norm(f, 8), *plain = ghost_norm(f, 3);
    for (int i = 0; i < 8; i++)
        v[i] = (float)(i * i);
    normalize(f, m, true, v, 8, 1, got);
    normalize(f, ((struct et_ghost_batch_norm_module *)plain)->batchnorm, true, v, 8, 1,
              want);
    ok(memcmp(got, want, sizeof got) == 0, "one part is the batch norm, bit for bit");
    struct et_forward forward = {.g = f->g, .training = true};
    struct et_tensor *x = reals(f, v, ET_SHAPE(7, 1));
    et_forward(&forward, m, x);
    refused(f->cx, et_graph_status(f->g), "fewer samples are refused in training");
    et_graph_reset(f->g);
    et_tensor_free(&x);
    et_module_free(&m);
    et_module_free(&plain);
}

/* Frozen statistics stay frozen within. */
static void
test_frozen(struct formula *f)
{
    static const float v[] = {0, 2, 10, 14};
    float got[4];
    struct et_module *m = ghost_norm(f, 2);
    need(f->cx, et_module_freeze_stats(f->cx, m, true));
    normalize(f, m, true, v, 4, 1, got);
    is_near_array(got, v, 4, F32_TOL, "frozen statistics are used in training too");
    ok(number(f, m, "batchnorm.running_mean") == 0, "and stay");
    et_module_free(&m);
}

static void
test_golden(struct formula *f)
{
    struct et_surgery surgery;
    struct et_module *m = golden_vision(f->cx);
    et_status status = et_apply_ghost_batchnorm(f->cx, m, 2, &surgery);
    is_int(replaced(f->cx, status, &surgery), 1, "the batch norm is replaced");
    status = et_apply_ghost_batchnorm(f->cx, m, 2, &surgery);
    is_int(replaced(f->cx, status, &surgery), 0, "once");
    golden_check(f, m, "ghost_batchnorm", F32_TOL);
    et_module_free(&m);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_values(&f);
    test_parts(&f);
    test_whole(&f);
    test_frozen(&f);
    test_golden(&f);
    formula_close(&f);
    ok(*refusal(cx, "ghost_batchnorm", OPTIONS("ghost_batch_size", "0")),
       "ghost batches of nothing are refused");
    check_told(cx, "ghost_batchnorm", OPTIONS("ghost_batch_size", "2"), "resnet8",
               "ghost_batchnorm: 9 of 9 batch norms");
    return finish(cx);
}
