/* SPDX-License-Identifier: Apache-2.0 */
/* gradient_clipping.c: bounds on the gradient before the update.
 *
 *     norm      g *= min(1, thr / (|g| + 1e-6)), |g| over all parameters
 *     value     g = clamp(g, -thr, thr)
 *     adaptive  of each filter, row, bias: g *= min(1, thr max(|w|, eps) / |g|)
 *
 * Pascanu et al. 2013, arXiv 1211.5063; Brock et al. 2021, arXiv 2102.06171 (adaptive);
 * spec/algorithms.md 2.12. Differs: weights of norm 0 get a gradient as in the paper
 * (D10); compat takes it away as Composer does. */
#include "config.h"

#include <float.h>
#include <math.h>

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"

struct gradient_clipping_options {
    int clipping_type; /* enum et_clipping */
    double clipping_threshold;
    double agc_eps;
    bool compat;
};

/* What a gradient of that sum of squares is multiplied by. */
static struct et_tensor *
norm_factor(struct et_graph *g, struct et_tensor *squares, double threshold)
{
    struct et_tensor *norm = et_add_scalar(g, et_sqrt(g, squares), 1e-6);
    struct et_tensor *factor = et_mul_scalar(g, et_reciprocal(g, norm), threshold);
    return et_clamp(g, factor, 0, 1);
}

/* L2 norms of the rows of X [K,L], as [K,1]. */
static struct et_tensor *
row_norms(struct et_graph *g, struct et_tensor *x)
{
    return et_sqrt(g, et_sum(g, et_square(g, x), 1u << 1, true));
}

/* Parameter SLOT of a flat array as units in rows: filters lie channels-last, others
 * row-major, so axis 0 is the outermost of either. */
static struct et_tensor *
units(struct et_graph *g, struct et_tensor *flat, const struct et_param_slot *slot)
{
    int64_t rows = slot->desc.ndim > 1 ? slot->desc.shape[0] : 1;
    const int64_t shape[] = {rows, slot->count / rows};
    return et_reshape(g, et_slice(g, flat, 0, slot->offset, slot->count, 1), 2, shape);
}

/* |g| = 0 gives a factor of 1, but for |w| = 0 without a floor: then 0, as specified.
 * FLT_MIN stands for the zero that would divide. */
static struct et_tensor *
clip_units(struct et_graph *g, struct et_tensor *grad, struct et_tensor *w,
           double threshold, double eps)
{
    struct et_tensor *allowed =
        et_mul_scalar(g, et_clamp(g, row_norms(g, w), eps, HUGE_VAL), threshold);
    struct et_tensor *norm = et_clamp(g, row_norms(g, grad), FLT_MIN, HUGE_VAL);
    return et_mul(g, grad, et_clamp(g, et_div(g, allowed, norm), 0, 1));
}

static struct et_tensor *
clip_adaptively(struct et_graph *g, struct et_tensor *grad,
                const struct et_param_space *space, double threshold, double eps)
{
    struct et_ctx *cx = et_graph_ctx(g);
    size_t n = (size_t)space->n;
    void *block;
    if (et_alloc(cx, n * (sizeof(struct et_tensor *) + sizeof(int64_t)), &block) !=
        ET_OK)
        return NULL;
    struct et_tensor **part = block;
    int64_t *offset = (int64_t *)(part + n);
    for (int i = 0; i < space->n; i++) {
        const struct et_param_slot *slot = &space->slot[i];
        offset[i] = slot->offset;
        if (space->has_grad[i])
            part[i] = clip_units(g, units(g, grad, slot), units(g, space->values, slot),
                                 threshold, eps);
    }
    struct et_tensor *clipped =
        et_pack(g, part, offset, space->n, space->total, ET_F32);
    et_free(cx, block);
    return clipped;
}

struct et_tensor *
et_apply_gradient_clipping(struct et_graph *g, struct et_tensor *grad,
                           const struct et_param_space *space, enum et_clipping type,
                           double threshold, double agc_eps)
{
    ETI_NEED_IN(g, g);
    switch (type) {
    case ET_CLIP_NORM:
        return et_mul(g, grad, norm_factor(g, et_sum_squares(g, grad), threshold));
    case ET_CLIP_VALUE:
        return et_clamp(g, grad, -threshold, threshold);
    case ET_CLIP_ADAPTIVE:
        return clip_adaptively(g, grad, space, threshold, agc_eps);
    }
    return NULL;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct gradient_clipping_options *o = self->options;
    (void)event;
    (void)log;
    if (!s->grad)
        return et_graph_status(s->graph);
    if (o->clipping_type == ET_CLIP_NORM) {
        et_state_scale_grad(
            s, norm_factor(s->graph, et_state_grad_squares(s), o->clipping_threshold));
        return et_graph_status(s->graph);
    }
    s->grad = et_apply_gradient_clipping(
        s->graph, s->grad, s->params, (enum et_clipping)o->clipping_type,
        o->clipping_threshold, o->compat ? 0 : o->agc_eps);
    if (!s->grad && et_graph_status(s->graph) == ET_OK)
        return ET_ENOMEM;
    return et_graph_status(s->graph);
}

static const char *const types[] = {"norm", "value", "adaptive", NULL};

static const struct et_option table[] = {
    ETI_ENUM(
        gradient_clipping_options, clipping_type, NULL, types, ET_OPT_REQUIRED,
        "what is bounded: the norm of all, each number, or each unit's norm relative "
        "to its weights"),
    ETI_ROW(FLOAT, gradient_clipping_options, clipping_threshold, NULL, 0, -1,
            ET_OPT_REQUIRED | ET_OPT_MIN_OPEN | ET_OPT_MAY_CHANGE,
            "norm, magnitude or ratio allowed", .also = "max_norm clip_value"),
    ETI_ROW(FLOAT, gradient_clipping_options, agc_eps, "1e-3", 0, -1, 0,
            "adaptive: weights count as having at least this norm"),
    ETI_BOOL(gradient_clipping_options, compat, "false",
             "adaptive as in Composer: no agc_eps, weights of norm 0 never train"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_gradient_clipping = {
    .info =
        {
            .name = "gradient_clipping",
            .class_name = "GradientClipping",
            .summary = "bound gradients by norm, by value or relative to the weights",
            .source = "Pascanu et al. 2013, arXiv 1211.5063; Brock et al. 2021, arXiv "
                      "2102.06171",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct gradient_clipping_options),
        },
    .events = ET_ON(AFTER_TRAIN_BATCH),
    .apply = apply,
};
