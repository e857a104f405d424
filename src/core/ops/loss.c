/* SPDX-License-Identifier: Apache-2.0 */
/* loss.c: cross entropy with labels or with distributions, and for independent labels.
 *
 *   index target t [N,...]:    l = -w[t] log_softmax(z)[t], 0 where t is to be ignored
 *   dense target t [N,C,...]:  l = -sum over c of w[c] t[c] log_softmax(z)[c]
 *
 * (spec/algorithms.md 1.8.) The op gives l for each position and the log of the sum of
 * exponentials; reductions are sums and quotients of such arrays. */
#include "core/base/need.h"
#include "core/ops/ops.h"

static bool
is_index(const struct et_desc *target)
{
    return !et_dtype_is_float(target->dtype);
}

/* Checks logits, operand I, and target, the next; POSITION: the loss's description. */
static et_status
check_target(struct et_ctx *cx, const struct et_call *call, int i,
             struct et_desc *position)
{
    const struct et_desc *z = &call->in[i];
    int64_t shape[ET_MAX_DIMS];

    ET_TRY(eti_need_ndim(cx, call, i, "logits", 2, ET_MAX_DIMS));
    ET_TRY(eti_need_float(cx, call, i, "logits"));
    ET_TRY(eti_need(cx, call, i + 1, "target"));
    if (z->shape[1] == 0)
        return ETI_FAIL(cx, call, ET_ESHAPE, "%s", "logits of no class");
    shape[0] = z->shape[0];
    for (int k = 2; k < z->ndim; k++)
        shape[k - 1] = z->shape[k];
    et_desc_init(position, eti_wide(z->dtype), z->ndim - 1, shape, ET_ROW_MAJOR);
    if (!is_index(&call->in[i + 1]))
        return eti_need_shape(cx, call, i + 1, "target", z->ndim, z->shape);
    ET_TRY(eti_need_dtype(cx, call, i + 1, "index target", ET_I32));
    return eti_need_shape(cx, call, i + 1, "index target", z->ndim - 1, shape);
}

ETI_INFER(cross_entropy_infer)
{
    ET_TRY(check_target(cx, call, 0, &out[0]));
    out[1] = out[0];
    return eti_may_shape(cx, call, 2, "class weight", 1, &call->in[0].shape[1]);
}

ETI_INFER(cross_entropy_grad_infer)
{
    struct et_desc position;
    const struct et_desc *z = &call->in[1];
    ET_TRY(check_target(cx, call, 1, &position));
    ET_TRY(eti_need_shape(cx, call, 0, "dloss", position.ndim, position.shape));
    ET_TRY(eti_need_shape(cx, call, 3, "lse", position.ndim, position.shape));
    ET_TRY(eti_may_shape(cx, call, 4, "class weight", 1, &z->shape[1]));
    eti_desc_same(out, z->dtype, z);
    return ET_OK;
}

static int64_t
cross_entropy_flops(const struct et_call *call)
{
    const struct et_desc *z = &call->in[call->op == ET_OP_cross_entropy ? 0 : 1];
    return 5 * et_desc_count(z);
}

/* The gradient of a dense target: -dloss w log_softmax(z). */
static struct et_tensor *
target_gradient(struct et_graph *g, const struct et_node *node, struct et_tensor *d)
{
    struct et_tensor *z = node->in[0], *weight = node->n_in > 2 ? node->in[2] : NULL;
    enum et_dtype dtype = node->in[1]->desc.dtype;
    int64_t shape[ET_MAX_DIMS];

    memcpy(shape, z->desc.shape, sizeof shape);
    shape[1] = 1;
    struct et_tensor *dt = et_cast(g, et_log_softmax(g, z, 1), dtype);
    if (weight)
        dt =
            et_mul(g, dt, eti_channel_view(g, et_cast(g, weight, dtype), z->desc.ndim));
    d = et_neg(g, et_cast(g, et_reshape(g, d, z->desc.ndim, shape), dtype));
    return et_mul(g, dt, d);
}

ETI_GRADIENT(cross_entropy_gradient)
{
    const struct et_cross_entropy_attr *o = node->attr;
    struct et_tensor *z = node->in[0], *target = node->in[1], *lse = &node->out[1];
    struct et_tensor *weight = node->n_in > 2 ? node->in[2] : NULL;

    if (want[0])
        dx[0] = weight ? ETI_APPLY_ATTR(g, cross_entropy_grad, o, NULL, dy[0], z,
                                        target, lse, weight)
                       : ETI_APPLY_ATTR(g, cross_entropy_grad, o, NULL, dy[0], z,
                                        target, lse);
    if (want[1] && !is_index(&target->desc))
        dx[1] = target_gradient(g, node, dy[0]);
    return et_graph_status(g);
}

#define LOSS_OP(op, words, least, most, results, backward, may)                        \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = least,                                                               \
        .max_in = most,                                                                \
        .n_out = results,                                                              \
        .attr_size = sizeof(struct et_cross_entropy_attr),                             \
        .infer = op##_infer,                                                           \
        .flags = may,                                                                  \
        .gradient = backward,                                                          \
        .flops = cross_entropy_flops,                                                  \
    };
LOSS_OP(cross_entropy, "cross entropy at each position; constant class weights", 2, 3,
        2, cross_entropy_gradient, 0)
LOSS_OP(cross_entropy_grad, "gradient of cross_entropy for the logits", 4, 5, 1, NULL,
        ET_OPF_STRIDED)

/* 1 where an index target counts, 0 where it is ignored. */
static struct et_tensor *
counted(struct et_graph *g, struct et_tensor *target, int64_t ignore_index,
        enum et_dtype dtype)
{
    struct et_tensor *ignored =
        et_equal(g, target, et_fill(g, ET_I32, 0, NULL, (double)ignore_index));
    return et_sub(g, et_fill(g, dtype, 0, NULL, 1), et_cast(g, ignored, dtype));
}

struct et_tensor *
eti_total_weight(struct et_graph *g, struct et_tensor *target, struct et_tensor *weight,
                 int64_t ignore_index, enum et_dtype dtype)
{
    if (!is_index(&target->desc))
        return et_cast(g, et_sum(g, target, 0, false), dtype);
    struct et_tensor *one = counted(g, target, ignore_index, dtype);
    if (weight) {
        struct et_tensor *some_class =
            et_mul(g, target, counted(g, target, ignore_index, ET_I32));
        one = et_mul(g, one, et_cast(g, et_take(g, weight, some_class, 0), dtype));
    }
    return et_sum(g, one, 0, false);
}

struct et_tensor *
et_cross_entropy(struct et_graph *g, struct et_tensor *logits, struct et_tensor *target,
                 struct et_tensor *weight, int64_t ignore_index,
                 enum et_reduction reduction)
{
    ETI_NEED_IN(g, g);
    struct et_cross_entropy_attr attr = {.ignore_index = ignore_index};
    struct et_tensor *loss;

    if (!logits || !target)
        return ETI_MISSING(g, logits, target);
    loss = weight
               ? ETI_APPLY_ATTR(g, cross_entropy, &attr, NULL, logits, target, weight)
               : ETI_APPLY_ATTR(g, cross_entropy, &attr, NULL, logits, target);
    if (!loss || reduction == ET_REDUCE_NONE)
        return loss;
    struct et_tensor *sum = et_sum(g, loss, 0, false);
    if (reduction == ET_REDUCE_SUM)
        return sum;
    return et_div(g, sum,
                  eti_total_weight(g, target, weight, ignore_index, loss->desc.dtype));
}

/* softplus(z) - z t equals -t log s - (1 - t) log(1 - s), s = sigmoid(z), and never
 * overflows, as softplus does not. */
struct et_tensor *
et_bce_with_logits(struct et_graph *g, struct et_tensor *logits,
                   struct et_tensor *target, enum et_reduction reduction)
{
    ETI_NEED_IN(g, g);
    if (!logits || !target)
        return ETI_MISSING(g, logits, target);
    struct et_tensor *loss =
        et_sub(g, et_softplus(g, logits), et_mul(g, logits, target));
    if (reduction == ET_REDUCE_NONE)
        return loss;
    return reduction == ET_REDUCE_SUM ? et_sum(g, loss, 0, false)
                                      : et_mean(g, loss, 0, false);
}

struct et_tensor *
et_one_hot(struct et_graph *g, struct et_tensor *target, int64_t classes)
{
    ETI_NEED_IN(g, g);
    int64_t shape[ET_MAX_DIMS + 1] = {0};
    if (!target)
        return ETI_MISSING(g, target);
    int ndim = target->desc.ndim + 1;
    for (int i = 0; i < ndim; i++)
        shape[i] = i == 1 ? 1 : target->desc.shape[i > 1 ? i - 1 : i];
    target = et_reshape(g, target, ndim, shape);
    struct et_tensor *label =
        target ? eti_channel_view(g, et_iota(g, target->desc.dtype, classes), ndim)
               : NULL;
    return et_cast(g, et_equal(g, target, label), ET_F32);
}
