/* SPDX-License-Identifier: Apache-2.0 */
/* WeightStandardization: spec/algorithms.md 2.27. */
#include "t/algorithms/golden.h"

#include <math.h>
#include <string.h>

#include "etude/nn.h"

static void
test_values(struct formula *f)
{
    enum { K = 2, C = 3, N = K * C * 2 * 2 };
    float w[N], moved[N], got[N], again[N];
    struct et_tensor *x = reals(f, (float[]){1, 2, 3, 4}, ET_SHAPE(1, 4, 1, 1));
    evaluate(f, et_standardize_weight(f->g, x), got, 4);
    is_near_array(got, (float[]){-1.3416408f, -.4472136f, .4472136f, 1.3416408f}, 4,
                  F32_TOL, "1 2 3 4 become (w - 2.5) / sqrt(1.25)");
    et_graph_reset(f->g);
    et_tensor_free(&x);
    for (int i = 0; i < N; i++) {
        w[i] = (float)((i * 7) % 11) + (float)(i / (N / K));
        moved[i] = 3 * w[i] - 5;
    }
    x = reals(f, w, ET_SHAPE(K, C, 2, 2));
    struct et_tensor *y = reals(f, moved, ET_SHAPE(K, C, 2, 2));
    evaluate(f, et_standardize_weight(f->g, x), got, N);
    evaluate(f, et_standardize_weight(f->g, y), again, N);
    is_near_array(again, got, N, 1e-5, "3 W - 5 gives what W gives");
    for (int k = 0; k < K; k++) {
        double sum = 0, squares = 0;
        for (int i = k * N / K; i < (k + 1) * N / K; i++) {
            sum += (double)got[i];
            squares += (double)got[i] * (double)got[i];
        }
        ok(fabs(sum) < 1e-5 && fabs(squares * K / N - 1) < 1e-5,
           "filter %d has mean 0 and variance 1", k);
    }
    et_graph_reset(f->g);
    et_tensor_free(&x);
    et_tensor_free(&y);
}

static void
test_choice(struct et_ctx *cx)
{
    static const int want[] = {2, 1, 0, 0};
    for (int n = 0; n < 4; n++) {
        struct et_surgery surgery;
        struct et_module *m = golden_vision(cx);
        et_status status = et_apply_weight_standardization(cx, m, n, &surgery);
        is_int(replaced(cx, status, &surgery), want[n],
               "of two convolutions, the last %d left out", n);
        ok(want[n] != 1 ||
               et_module_is(et_module_find(m, "0"), &et_standardized_conv2d_class),
           "the first is taken first");
        status = et_apply_weight_standardization(cx, m, n, &surgery);
        is_int(replaced(cx, status, &surgery), 0, "a second time nothing is replaced");
        et_module_free(&m);
    }
}

/* What a convolution was given stays, filters and bias, and it is trained. */
static void
test_kept(struct et_ctx *cx)
{
    enum { C = 2, K = 3, W = C * K * 9 };
    float weight[W], bias[K], got[W];
    struct et_surgery surgery;
    struct et_module *m;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx,
         ET_ADD(cx, m, NULL, conv2d, .in_channels = C, .out_channels = K, .kernel = 3));
    for (int i = 0; i < W; i++)
        weight[i] = (float)(i * i % 13) - 6;
    for (int i = 0; i < K; i++)
        bias[i] = 10 - (float)i;
    struct et_module *conv = m->items[0].module;
    need(cx, et_param_write(cx, et_module_param(conv, 0, NULL), weight, W));
    need(cx, et_param_write(cx, et_module_param(conv, 1, NULL), bias, K));
    et_status status = et_apply_weight_standardization(cx, m, 0, &surgery);
    is_int(replaced(cx, status, &surgery), 1, "one with values is standardised");
    conv = m->items[0].module;
    need(cx, et_param_read(cx, et_module_param(conv, 0, NULL), "w", 1, got, W));
    ok(memcmp(got, weight, sizeof weight) == 0, "its filters are what they were");
    need(cx, et_param_read(cx, et_module_param(conv, 1, NULL), "b", 1, got, K));
    ok(memcmp(got, bias, sizeof bias) == 0, "and so is its bias");
    et_module_free(&m);
}

/* To other methods it is a convolution still. */
static void
test_behind(struct et_ctx *cx)
{
    struct et_surgery surgery;
    struct et_module *m = golden_vision(cx);
    et_status status = et_apply_weight_standardization(cx, m, 0, &surgery);
    is_int(replaced(cx, status, &surgery), 2, "two are standardised");
    status = et_apply_squeeze_excite(cx, m, 2, 1, &surgery);
    is_int(replaced(cx, status, &surgery), 2, "squeeze_excite knows them");
    ok(et_module_is(et_module_find(m, "0.conv"), &et_standardized_conv2d_class),
       "and keeps them");
    et_module_free(&m);
}

static void
test_golden(struct formula *f)
{
    struct et_surgery surgery;
    struct et_module *m = golden_vision(f->cx);
    et_status status = et_apply_weight_standardization(f->cx, m, 1, &surgery);
    is_int(replaced(f->cx, status, &surgery), 1, "one is standardised");
    golden_check(f, m, "weight_standardization", F32_TOL);
    et_module_free(&m);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_values(&f);
    test_choice(cx);
    test_kept(cx);
    test_behind(cx);
    test_golden(&f);
    formula_close(&f);
    ok(*refusal(cx, "weight_standardization", OPTIONS("n_last_layers_ignore", "-1")),
       "leaving out a negative number is refused");
    check_told(cx, "weight_standardization", OPTIONS("n_last_layers_ignore", "2"),
               "resnet8", "weight_standardization: 7 of 9 convolutions");
    return finish(cx);
}
