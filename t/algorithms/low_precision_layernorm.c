/* SPDX-License-Identifier: Apache-2.0 */
/* LowPrecisionLayerNorm: spec/algorithms.md 2.17. */
#include "t/algorithms/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/nn.h"
#include "etude/recipe.h"
#include "t/unit/rig.h"

enum { ROWS = 3, D = 8, N = ROWS * D };

static struct et_module *
norms(struct et_ctx *cx, bool affine)
{
    struct et_module *m;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, "norm", layer_norm, .features = D, .no_affine = !affine));
    if (affine) {
        float v[D];
        struct et_layer_norm_module *norm =
            (struct et_layer_norm_module *)et_module_find(m, "norm");
        rig_values(0, D, v);
        need(cx, et_param_write(cx, &norm->weight, v, D));
        rig_values(1, D, v);
        need(cx, et_param_write(cx, &norm->bias, v, D));
    }
    return m;
}

static int
lower(struct et_ctx *cx, struct et_module *m)
{
    struct et_surgery surgery;
    et_status status = et_apply_low_precision_layernorm(cx, m, &surgery);
    return replaced(cx, status, &surgery);
}

static int passes, still_low; /* passes, and those that left autocast on */

/* M at numbers of a formula; in mixed precision where LOW is not ET_NONE. */
static enum et_dtype
run_norm(struct formula *f, struct et_module *m, enum et_dtype low, float *out)
{
    float v[N];
    struct et_forward forward = {.g = f->g, .training = true};
    rig_values(1000, N, v);
    struct et_tensor *x = reals(f, v, ET_SHAPE(ROWS, D));
    need(f->cx, et_module_bind(f->cx, m, f->dev, ET_PARAM, 17));
    need(f->cx, et_graph_set_low_dtype(f->g, low));
    et_autocast(f->g, true);
    struct et_tensor *y = et_forward(&forward, m, x);
    still_low += et_autocast(f->g, false);
    passes++;
    enum et_dtype dtype = y->desc.dtype;
    evaluate(f, et_cast(f->g, y, ET_F32), out, N);
    et_graph_reset(f->g);
    need(f->cx, et_graph_set_low_dtype(f->g, ET_NONE));
    et_tensor_free(&x);
    return dtype;
}

static void
test_precision(struct formula *f, bool affine)
{
    static const struct {
        enum et_dtype low;
        double tolerance; /* of the spec */
    } rows[] = {{ET_F16, 1e-2}, {ET_BF16, 3e-2}};
    float want[N], got[N];
    const char *what = affine ? "with weight and bias" : "without";
    struct et_module *m = norms(f->cx, affine), *plain = norms(f->cx, affine);
    is_int(lower(f->cx, m), 1, "the norm is replaced, %s", what);
    is_int(lower(f->cx, m), 0, "once");
    run_norm(f, plain, ET_NONE, want);
    run_norm(f, m, ET_NONE, got);
    ok(memcmp(got, want, sizeof got) == 0, "%s: in f32 the bits are the same", what);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = et_dtype_name(rows[i].low);
        ok(run_norm(f, plain, rows[i].low, got) == ET_F32, "a norm gives f32");
        ok(run_norm(f, m, rows[i].low, got) == rows[i].low, "%s: this one %s", what,
           name);
        is_near_array(got, want, N, rows[i].tolerance, "%s: near what f32 gives", what);
    }
    et_module_free(&m);
    et_module_free(&plain);
}

/* "low_precision_layernorm v v ...": Composer's in bf16. */
static void
test_golden(struct formula *f)
{
    float got[N], want[N];
    golden_numbers("low_precision_layernorm", N, want);
    struct et_module *m = norms(f->cx, true);
    lower(f->cx, m);
    run_norm(f, m, ET_BF16, got);
    /* A last place of bf16 is 2^-8. */
    is_near_array(got, want, N, 1. / 256, "in bf16 it is what Composer's gives");
    struct et_module *plain = norms(f->cx, true);
    golden_low_norm(f, m, plain, "low_precision_layernorm", ET_SHAPE(ROWS, D));
    et_module_free(&plain);
    et_module_free(&m);
}

/* ---- runs ---- */

static int warnings;

static void
count_warnings(void *data, enum et_log_level level, const char *text)
{
    (void)data, (void)level;
    warnings +=
        strstr(text, "low_precision_layernorm changed nothing: it acts in precision") !=
        NULL;
}

static void
test_events(struct et_ctx *cx)
{
    static const char *const times[] = {"init", "before_load", "after_load"};
    static const enum et_event events[] = {ET_EVENT_INIT, ET_EVENT_BEFORE_LOAD,
                                           ET_EVENT_AFTER_LOAD};
    for (int i = 0; i < 3; i++) {
        int right = 0;
        struct et_algorithm *a =
            algorithm(cx, "low_precision_layernorm", OPTIONS("apply_at", times[i]));
        for (int k = 0; k < 3; k++)
            right += a->type->match(a, events[k], NULL) == (i == k);
        is_int(right, 3, "apply_at %s means that event alone", times[i]);
        et_algorithm_free(&a);
    }
    ok(*refusal(cx, "low_precision_layernorm", OPTIONS("apply_at", "fit_start")),
       "another event is refused");
}

static void
test_fp32(struct et_ctx *cx)
{
    struct et_algorithm *a = algorithm(cx, "low_precision_layernorm", OPTIONS());
    struct run_setup setup = {.n = 8};
    et_ctx_set_log(cx, ET_LOG_WARN, count_warnings, NULL);
    struct losses plain = train(cx, setup, NULL, 0), with = train(cx, setup, &a, 1);
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    ok(difference(&plain, &with) == 0, "in fp32 a run is the run without it");
    is_int(warnings, 1, "and warns");
    et_algorithm_free(&a);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_precision(&f, true);
    test_precision(&f, false);
    test_golden(&f);
    is_int(still_low, passes, "what comes behind a norm is in low precision as before");
    formula_close(&f);
    test_events(cx);
    test_fp32(cx);
    return finish(cx);
}
