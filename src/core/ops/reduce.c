/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: many elements into one.
 *
 * A reduction that keeps its axes lies like its operand; else the result is row-major.
 * Differs: the gradient of amax and amin is shared equally among equals. */
#include "core/base/need.h"
#include "core/ops/ops.h"

/* ---- over the axes of a mask ---- */

ETI_INFER(axes_infer)
{
    const struct et_reduce_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    int64_t shape[ET_MAX_DIMS];
    int ndim = 0;

    ET_TRY(eti_need_float(cx, call, 0, "operand"));
    if (o->axes >> x->ndim)
        return ETI_FAIL(cx, call, ET_EINVAL, "axis mask 0x%x of an array of %d axes",
                        (unsigned)o->axes, x->ndim);
    for (int i = 0; i < x->ndim; i++)
        if (!(o->axes >> i & 1))
            shape[ndim++] = x->shape[i];
        else if (o->keepdim)
            shape[ndim++] = 1;
    if (o->keepdim)
        et_desc_like(out, x->dtype, ndim, shape, x);
    else
        et_desc_init(out, x->dtype, ndim, shape, ET_ROW_MAJOR);
    return ET_OK;
}

/* V, a value or gradient of the node, with the reduced axes back as length 1. */
static struct et_tensor *
with_axes(struct et_graph *g, const struct et_node *node, struct et_tensor *v)
{
    const struct et_reduce_attr *o = node->attr;
    const struct et_desc *x = &node->in[0]->desc;
    int64_t shape[ET_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++)
        shape[i] = o->axes >> i & 1 ? 1 : x->shape[i];
    return et_reshape(g, v, x->ndim, shape);
}

ETI_GRADIENT(sum_gradient)
{
    const struct et_desc *x = &node->in[0]->desc;
    if (want[0])
        dx[0] = et_expand(g, with_axes(g, node, dy[0]), x->ndim, x->shape);
    return et_graph_status(g);
}

ETI_GRADIENT(extreme_gradient)
{
    const struct et_reduce_attr *o = node->attr;
    struct et_tensor *x = node->in[0];
    if (!want[0])
        return ET_OK;
    struct et_tensor *winner = et_equal(g, x, with_axes(g, node, &node->out[0]));
    struct et_tensor *one = et_cast(g, winner, x->desc.dtype);
    struct et_tensor *share =
        et_div(g, with_axes(g, node, dy[0]), et_sum(g, one, o->axes, true));
    dx[0] = et_mul(g, one, share);
    return et_graph_status(g);
}

#define REDUCTION(op, words, backward)                                                 \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = 1,                                                                   \
        .max_in = 1,                                                                   \
        .n_out = 1,                                                                    \
        .attr_size = sizeof(struct et_reduce_attr),                                    \
        .infer = axes_infer,                                                           \
        .gradient = backward,                                                          \
        .flops = eti_flops_operand,                                                    \
    };                                                                                 \
    struct et_tensor *et_##op(struct et_graph *g, struct et_tensor *x, uint32_t axes,  \
                              bool keepdim)                                            \
    {                                                                                  \
        struct et_reduce_attr attr = {.axes = axes, .keepdim = keepdim};               \
        if (!x)                                                                        \
            return ETI_MISSING(g, x);                                                  \
        if (x->desc.ndim == 0)                                                         \
            return x;                                                                  \
        if (!axes)                                                                     \
            attr.axes = (1u << x->desc.ndim) - 1;                                      \
        return ETI_APPLY_ATTR(g, op, &attr, NULL, x);                                  \
    }
REDUCTION(sum, "sum over axes", sum_gradient)
REDUCTION(amax, "largest over axes", extreme_gradient)
REDUCTION(amin, "smallest over axes", extreme_gradient)

/* Elements that go into one result. */
static double
reduced_count(const struct et_tensor *x, uint32_t axes)
{
    double n = 1;
    for (int i = 0; i < x->desc.ndim; i++)
        if (!axes || axes >> i & 1)
            n *= (double)x->desc.shape[i];
    return n;
}

struct et_tensor *
et_mean(struct et_graph *g, struct et_tensor *x, uint32_t axes, bool keepdim)
{
    ETI_NEED_IN(g, g);
    if (!x)
        return ETI_MISSING(g, x);
    return et_mul_scalar(g, et_sum(g, x, axes, keepdim), 1 / reduced_count(x, axes));
}

struct et_tensor *
et_var(struct et_graph *g, struct et_tensor *x, uint32_t axes, bool keepdim,
       bool unbiased)
{
    ETI_NEED_IN(g, g);
    if (!x)
        return ETI_MISSING(g, x);
    struct et_tensor *centred = et_sub(g, x, et_mean(g, x, axes, true));
    return et_mul_scalar(g, et_sum(g, et_square(g, centred), axes, keepdim),
                         1 / (reduced_count(x, axes) - unbiased));
}

struct et_tensor *
et_sum_to(struct et_graph *g, struct et_tensor *x, int ndim, const int64_t *shape)
{
    ETI_NEED_IN(g, g);
    if (ndim > 0)
        ETI_NEED_IN(g, shape);
    uint32_t axes = 0;
    if (!x)
        return ETI_MISSING(g, x);
    int more = x->desc.ndim - ndim;
    for (int i = 0; i < x->desc.ndim; i++)
        if (i < more || (shape[i - more] == 1 && x->desc.shape[i] != 1))
            axes |= 1u << i;
    if (axes)
        x = et_sum(g, x, axes, true);
    return et_reshape(g, x, ndim, shape);
}

/* ---- of all elements ---- */

ETI_INFER(sum_squares_infer)
{
    ET_TRY(eti_need_float(cx, call, 0, "operand"));
    et_desc_init(out, eti_wide(call->in[0].dtype), 0, NULL, ET_ROW_MAJOR);
    return ET_OK;
}

ETI_GRADIENT(sum_squares_gradient)
{
    struct et_tensor *x = node->in[0];
    if (want[0])
        dx[0] = et_mul(g, x, et_cast(g, et_mul_scalar(g, dy[0], 2), x->desc.dtype));
    return et_graph_status(g);
}

static int64_t
two_per_input(const struct et_call *call)
{
    return 2 * et_desc_count(&call->in[0]);
}

const struct et_op et_op_sum_squares = {
    .name = "sum_squares",
    .summary = "sum of the squares of all elements",
    .id = ET_OP_sum_squares,
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .infer = sum_squares_infer,
    .gradient = sum_squares_gradient,
    .flops = two_per_input,
};

struct et_tensor *
et_sum_squares(struct et_graph *g, struct et_tensor *x)
{
    ETI_NEED_IN(g, g);
    return ETI_APPLY(g, sum_squares, NULL, x);
}

struct et_tensor *
et_norm2(struct et_graph *g, struct et_tensor *x)
{
    ETI_NEED_IN(g, g);
    if (!x)
        return ETI_MISSING(g, x);
    return et_sqrt(g, et_sum_squares(g, x));
}

/* ---- of stretches of rows ---- */

ETI_INFER(segment_infer)
{
    const struct et_desc *first = &call->in[1];
    ET_TRY(eti_need_float(cx, call, 0, "operand"));
    ET_TRY(eti_need_ndim(cx, call, 0, "operand", 1, ET_MAX_DIMS));
    ET_TRY(eti_need_dtype(cx, call, 1, "table", ET_I32));
    ET_TRY(eti_need_ndim(cx, call, 1, "table", 1, 1));
    if (first->shape[0] < 1)
        return ETI_FAIL(cx, call, ET_ESHAPE, "a table of %lld rows says of no stretch",
                        (long long)first->shape[0]);
    int64_t n = first->shape[0] - 1;
    et_desc_init(out, eti_wide(call->in[0].dtype), 1, &n, ET_ROW_MAJOR);
    return ET_OK;
}

const struct et_op et_op_segment_sum_squares = {
    .name = "segment_sum_squares",
    .summary = "sum of the squares of each of several stretches of rows",
    .id = ET_OP_segment_sum_squares,
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .infer = segment_infer,
    .flops = two_per_input,
};

struct et_tensor *
et_segment_sum_squares(struct et_graph *g, struct et_tensor *x, struct et_tensor *first)
{
    ETI_NEED_IN(g, g);
    return ETI_APPLY(g, segment_sum_squares, NULL, x, first);
}

/* ---- where the largest are ---- */

ETI_INFER(argmax_infer)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    int64_t shape[ET_MAX_DIMS];
    int ndim = 0;

    ET_TRY(eti_need_float(cx, call, 0, "operand"));
    ET_TRY(eti_need_axis(cx, call, 0, o->axis));
    if (x->shape[o->axis] == 0)
        return ETI_FAIL(cx, call, ET_ESHAPE, "axis %d has no elements", o->axis);
    for (int i = 0; i < x->ndim; i++)
        if (i != o->axis)
            shape[ndim++] = x->shape[i];
    et_desc_init(out, ET_I32, ndim, shape, ET_ROW_MAJOR);
    return ET_OK;
}

const struct et_op et_op_argmax = {
    .name = "argmax",
    .summary = "where the largest lies along an axis; the first of equals",
    .id = ET_OP_argmax,
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct et_axis_attr),
    .infer = argmax_infer,
    .flops = eti_flops_operand,
};

struct et_tensor *
et_argmax(struct et_graph *g, struct et_tensor *x, int axis)
{
    ETI_NEED_IN(g, g);
    struct et_axis_attr attr = {.axis = x ? eti_axis(x, axis) : 0};
    return ETI_APPLY_ATTR(g, argmax, &attr, NULL, x);
}

ETI_INFER(topk_infer)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    int64_t shape[ET_MAX_DIMS];

    ET_TRY(eti_need_float(cx, call, 0, "operand"));
    ET_TRY(eti_need_ndim(cx, call, 0, "operand", 1, ET_MAX_DIMS));
    memcpy(shape, x->shape, sizeof shape);
    if (o->n < 1 || o->n > shape[x->ndim - 1])
        return ETI_FAIL(cx, call, ET_EINVAL, "the %lld largest of %lld elements",
                        (long long)o->n, (long long)shape[x->ndim - 1]);
    shape[x->ndim - 1] = o->n;
    et_desc_init(&out[0], x->dtype, x->ndim, shape, ET_ROW_MAJOR);
    et_desc_init(&out[1], ET_I32, x->ndim, shape, ET_ROW_MAJOR);
    return ET_OK;
}

const struct et_op et_op_topk = {
    .name = "topk",
    .summary = "the largest of the last axis, descending, and their places",
    .id = ET_OP_topk,
    .min_in = 1,
    .max_in = 1,
    .n_out = 2,
    .attr_size = sizeof(struct et_axis_attr),
    .infer = topk_infer,
    .flops = eti_flops_operand,
};

struct et_tensor *
et_topk(struct et_graph *g, struct et_tensor *x, int64_t k, struct et_tensor **index)
{
    ETI_NEED_IN(g, g);
    struct et_axis_attr attr = {.n = k};
    struct et_tensor *out[2] = {NULL, NULL};
    struct et_tensor *values = ETI_APPLY_ATTR(g, topk, &attr, out, x);
    if (index)
        *index = values ? out[1] : NULL;
    return values;
}
