/* SPDX-License-Identifier: Apache-2.0 */
/* GradientClipping: spec/algorithms.md 2.12. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <string.h>

/* Parameters W and their gradients, clipped; OUT as the first of them lies. */
static void
clip(struct formula *f, enum et_clipping type, double threshold, double eps, int ndim,
     const int64_t *shape, const float *w, const float *grad, float *out)
{
    struct et_param_spec spec = {.name = "w"};
    struct et_param_space *space;
    et_desc_init(&spec.desc, ET_F32, ndim, shape, ET_ROW_MAJOR);
    int64_t n = et_desc_count(&spec.desc);
    need(f->cx, et_param_space_new(f->cx, f->dev, &spec, 1, &space));
    struct et_tensor *view, *leaf = reals(f, grad, ndim, shape);
    need(f->cx, et_param_space_view(f->cx, space, -1, 0, &view));
    need(f->cx, et_tensor_write(f->cx, view, w, (size_t)n * sizeof *w));
    struct et_tensor *flat = et_param_space_pack(f->g, space, &leaf);
    float all[ET_PARAM_ALIGN];
    evaluate(f, et_apply_gradient_clipping(f->g, flat, space, type, threshold, eps),
             all, ET_PARAM_ALIGN);
    memcpy(out, all, (size_t)n * sizeof *out);
    et_graph_reset(f->g);
    et_tensor_free(&view);
    et_tensor_free(&leaf);
    et_param_space_free(&space);
}

static void
test_values(struct et_ctx *cx)
{
    struct formula f;
    formula_open(&f, cx);
    float got[4];
    clip(&f, ET_CLIP_NORM, 1, 0, ET_SHAPE(2), (float[]){0, 0}, (float[]){3, 4}, got);
    is_near_array(got, (float[]){3 / 5.000001f, 4 / 5.000001f}, 2, F32_TOL,
                  "the norm comes down to the threshold");
    clip(&f, ET_CLIP_NORM, 9, 0, ET_SHAPE(2), (float[]){0, 0}, (float[]){3, 4}, got);
    ok(got[0] == 3 && got[1] == 4, "a smaller norm stays");
    clip(&f, ET_CLIP_NORM, 1e-6, 0, ET_SHAPE(2), (float[]){0, 0}, (float[]){0, 1e-6f},
         got);
    is_near(got[1], 5e-7, 1e-12, "1e-6 is added to a norm");
    clip(&f, ET_CLIP_VALUE, 2, 0, ET_SHAPE(3), (float[]){0, 0, 0}, (float[]){-3, 1, 4},
         got);
    is_near_array(got, (float[]){-2, 1, 2}, 3, 0, "values are clamped");
    clip(&f, ET_CLIP_VALUE, 2, 0, ET_SHAPE(2), (float[]){0, 0}, (float[]){NAN, 1}, got);
    ok(isnan(got[0]), "NaN is not clamped to a number");
    clip(&f, ET_CLIP_ADAPTIVE, .5, 1e-3, ET_SHAPE(2), (float[]){3, 4}, (float[]){7, 24},
         got);
    is_near_array(got, (float[]){.7f, 2.4f}, 2, F32_TOL, "a vector is one unit");
    clip(&f, ET_CLIP_ADAPTIVE, .5, 1e-3, ET_SHAPE(2, 2), (float[]){3, 4, 9, 40},
         (float[]){7, 24, 5, 12}, got);
    is_near_array(got, (float[]){.7f, 2.4f, 5, 12}, 4, F32_TOL,
                  "a matrix has a unit per row");
    static const float cases[][3] = {{0, 1, 0}, {1, 0, 0}, {0, 0, 0}};
    for (int i = 0; i < 3; i++) {
        clip(&f, ET_CLIP_ADAPTIVE, .5, 0, ET_SHAPE(1), &cases[i][0], &cases[i][1], got);
        ok(got[0] == cases[i][2], "without a floor w = %g, g = %g gives 0",
           (double)cases[i][0], (double)cases[i][1]);
    }
    clip(&f, ET_CLIP_ADAPTIVE, .5, 0, ET_SHAPE(1), (float[]){2e-6f}, (float[]){1e-5f},
         got);
    is_near(got[0], 1e-6, 1e-11, "a gradient that is small is clipped, too");
    clip(&f, ET_CLIP_ADAPTIVE, .5, 1e-3, ET_SHAPE(1), (float[]){0}, (float[]){1}, got);
    is_near(got[0], 5e-4, 1e-9, "with one a weight of zero still trains");
    formula_close(&f);
}

/* Filters lie channels-last: a unit is still one filter. */
static void
test_filters(struct et_ctx *cx)
{
    enum { K = 2, N = K * 3 * 2 };
    struct formula f;
    formula_open(&f, cx);
    struct et_param_spec spec = {.name = "w"};
    struct et_param_space *space;
    et_desc_init(&spec.desc, ET_F32, ET_SHAPE(K, 3, 2, 1), ET_CHANNELS_LAST);
    need(cx, et_param_space_new(cx, f.dev, &spec, 1, &space));
    float w[N], grad[N], got[N], all[ET_PARAM_ALIGN], want[N];
    for (int i = 0; i < N; i++) {
        w[i] = 1;
        want[i] = grad[i] = i < N / K ? 1 : 4;
        if (i >= N / K)
            want[i] = 1;
    }
    struct et_tensor *view, *leaf = reals(&f, grad, ET_SHAPE(K, 3, 2, 1));
    need(cx, et_param_space_view(cx, space, -1, 0, &view));
    need(cx, et_tensor_write(cx, view, w, sizeof w));
    struct et_tensor *flat = et_param_space_pack(f.g, space, &leaf);
    evaluate(&f, et_apply_gradient_clipping(f.g, flat, space, ET_CLIP_ADAPTIVE, 1, 0),
             all, ET_PARAM_ALIGN);
    memcpy(got, all, sizeof got);
    is_near_array(got, want, N, F32_TOL,
                  "of two filters the large gradient is clipped");
    et_tensor_free(&view);
    et_tensor_free(&leaf);
    et_graph_reset(f.g);
    et_param_space_free(&space);
    formula_close(&f);
}

static void
test_refusals(struct et_ctx *cx)
{
    const char *why =
        refusal(cx, "gradient_clipping", OPTIONS("clipping_threshold", "1"));
    ok(strstr(why, "clipping_type"), "the type must be given: %s", why);
    why = refusal(cx, "gradient_clipping", OPTIONS("clipping_type", "norm"));
    ok(strstr(why, "clipping_threshold"), "so must the threshold: %s", why);
    why = refusal(cx, "gradient_clipping",
                  OPTIONS("clipping_type", "norm", "clipping_threshold", "0"));
    ok(strstr(why, "> 0"), "which is positive: %s", why);
    why = refusal(cx, "gradient_clipping", OPTIONS("clipping_type", "l1"));
    ok(strstr(why, "adaptive"), "an unknown type is refused: %s", why);
}

int
main(void)
{
    static const char *const types[] = {"norm", "value", "adaptive"};
    struct et_ctx *cx = need_ctx();
    test_values(cx);
    test_filters(cx);
    test_refusals(cx);
    for (int i = 0; i < 3; i++)
        check_run(cx, (struct run_setup){.n = 8}, "gradient_clipping",
                  OPTIONS("clipping_type", types[i], "clipping_threshold", "0.01"));
    return finish(cx);
}
