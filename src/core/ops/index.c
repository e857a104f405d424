/* SPDX-License-Identifier: Apache-2.0 */
/* index.c: elements chosen by an I32 array.
 *
 *   take    y[.., j.., ..] = x[.., index[j..], ..]: whole slices; embedding is axis 0
 *   gather  y[.., j, ..] = x[.., index[.., j, ..], ..]: element by element
 *
 * Their gradients add up what was taken more than once. An index outside the axis is
 * the kernel's to refuse or to count as nothing; no shape tells. */
#include "core/base/need.h"
#include "core/ops/ops.h"

/* ---- take ---- */

ETI_INFER(take_infer)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0], *index = &call->in[1];
    int64_t shape[2 * ET_MAX_DIMS];
    int ndim = 0;

    ET_TRY(eti_need(cx, call, 0, "operand"));
    ET_TRY(eti_need_axis(cx, call, 0, o->axis));
    ET_TRY(eti_need_dtype(cx, call, 1, "index", ET_I32));
    if (x->ndim - 1 + index->ndim > ET_MAX_DIMS)
        return ETI_FAIL(cx, call, ET_ESHAPE, "%d axes; an array has at most %d",
                        x->ndim - 1 + index->ndim, ET_MAX_DIMS);
    for (int i = 0; i < x->ndim; i++) {
        if (i != o->axis)
            shape[ndim++] = x->shape[i];
        for (int k = 0; i == o->axis && k < index->ndim; k++)
            shape[ndim++] = index->shape[k];
    }
    /* Rows taken from a batch of images stay channels-last. */
    if (index->ndim == 1)
        et_desc_like(out, x->dtype, ndim, shape, x);
    else
        et_desc_init(out, x->dtype, ndim, shape, ET_ROW_MAJOR);
    return ET_OK;
}

ETI_INFER(take_grad_infer)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *dy = &call->in[0], *index = &call->in[1];
    int64_t shape[ET_MAX_DIMS];
    int ndim = 0;

    ET_TRY(eti_need_float(cx, call, 0, "dy"));
    ET_TRY(eti_need_dtype(cx, call, 1, "index", ET_I32));
    bool fits = o->axis >= 0 && o->axis + index->ndim <= dy->ndim &&
                dy->ndim - index->ndim + 1 <= ET_MAX_DIMS && o->n >= 0;
    for (int i = 0; fits && i < index->ndim; i++)
        fits = dy->shape[o->axis + i] == index->shape[i];
    if (!fits) {
        char a[ETI_TEXT], b[ETI_TEXT];
        return ETI_FAIL(cx, call, ET_ESHAPE, "%s was not taken along axis %d by %s",
                        et_desc_text(dy, a, sizeof a), o->axis,
                        et_desc_text(index, b, sizeof b));
    }
    for (int i = 0; i < o->axis; i++)
        shape[ndim++] = dy->shape[i];
    shape[ndim++] = o->n;
    for (int i = o->axis + index->ndim; i < dy->ndim; i++)
        shape[ndim++] = dy->shape[i];
    et_desc_init(out, dy->dtype, ndim, shape, ET_ROW_MAJOR);
    return ET_OK;
}

ETI_GRADIENT(take_gradient)
{
    struct et_axis_attr attr = *(const struct et_axis_attr *)node->attr;
    attr.n = node->in[0]->desc.shape[attr.axis];
    if (want[0])
        dx[0] = ETI_APPLY_ATTR(g, take_grad, &attr, NULL, dy[0], node->in[1]);
    return et_graph_status(g);
}

/* ---- gather ---- */

/* Operand 1 indexes operand 0, which has its shape but for the axis (SAME: there
 * too). */
static et_status
check_index(struct et_ctx *cx, const struct et_call *call, bool same)
{
    const struct et_axis_attr *o = call->attr;
    int64_t shape[ET_MAX_DIMS];

    ET_TRY(eti_need(cx, call, 0, "operand"));
    ET_TRY(eti_need_axis(cx, call, 0, o->axis));
    ET_TRY(eti_need_dtype(cx, call, 1, "index", ET_I32));
    memcpy(shape, call->in[0].shape, sizeof shape);
    if (!same && call->in[1].ndim == call->in[0].ndim)
        shape[o->axis] = call->in[1].shape[o->axis];
    return eti_need_shape(cx, call, 1, "index", call->in[0].ndim, shape);
}

ETI_INFER(gather_infer)
{
    ET_TRY(check_index(cx, call, false));
    et_desc_init(out, call->in[0].dtype, call->in[1].ndim, call->in[1].shape,
                 ET_ROW_MAJOR);
    return ET_OK;
}

ETI_INFER(scatter_add_infer)
{
    const struct et_axis_attr *o = call->attr;
    int64_t shape[ET_MAX_DIMS];

    ET_TRY(eti_need_float(cx, call, 0, "source"));
    ET_TRY(check_index(cx, call, true));
    if (o->n < 0)
        return ETI_FAIL(cx, call, ET_ESHAPE, "axis %d of length %lld", o->axis,
                        (long long)o->n);
    memcpy(shape, call->in[0].shape, sizeof shape);
    shape[o->axis] = o->n;
    et_desc_init(out, call->in[0].dtype, call->in[0].ndim, shape, ET_ROW_MAJOR);
    return ET_OK;
}

ETI_GRADIENT(gather_gradient)
{
    const struct et_axis_attr *o = node->attr;
    if (want[0])
        dx[0] = et_scatter_add(g, dy[0], node->in[1], o->axis,
                               node->in[0]->desc.shape[o->axis]);
    return et_graph_status(g);
}

ETI_GRADIENT(scatter_add_gradient)
{
    const struct et_axis_attr *o = node->attr;
    if (want[0])
        dx[0] = et_gather(g, dy[0], node->in[1], o->axis);
    return et_graph_status(g);
}

/* What is taken is read, the rest of operand 0 is not. */
static int64_t
taken_bytes(const struct et_call *call)
{
    size_t all = et_desc_bytes(&call->in[0]), taken = et_desc_bytes(&call->out[0]);
    size_t index = et_desc_bytes(&call->in[1]);
    return (int64_t)(index + (taken < all ? taken : all) + taken);
}

#define INDEX_OP(op, words, backward, count, moved)                                    \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = 2,                                                                   \
        .max_in = 2,                                                                   \
        .n_out = 1,                                                                    \
        .attr_size = sizeof(struct et_axis_attr),                                      \
        .infer = op##_infer,                                                           \
        .gradient = backward,                                                          \
        .flops = count,                                                                \
        .bytes = moved,                                                                \
    };
INDEX_OP(take, "slices chosen along an axis", take_gradient, eti_flops_none,
         taken_bytes)
INDEX_OP(take_grad, "slices added to where they were taken", NULL, eti_flops_operand,
         NULL)
INDEX_OP(gather, "elements chosen along an axis", gather_gradient, eti_flops_none,
         taken_bytes)
INDEX_OP(scatter_add, "elements added to chosen places along an axis",
         scatter_add_gradient, eti_flops_operand, NULL)

struct et_tensor *
et_take(struct et_graph *g, struct et_tensor *x, struct et_tensor *index, int axis)
{
    ETI_NEED_IN(g, g);
    struct et_axis_attr attr = {.axis = x ? eti_axis(x, axis) : 0};
    return ETI_APPLY_ATTR(g, take, &attr, NULL, x, index);
}

struct et_tensor *
et_embedding(struct et_graph *g, struct et_tensor *weight, struct et_tensor *index)
{
    ETI_NEED_IN(g, g);
    if (!weight || !index)
        return ETI_MISSING(g, weight, index);
    return et_take(g, weight, index, 0);
}

struct et_tensor *
et_gather(struct et_graph *g, struct et_tensor *x, struct et_tensor *index, int axis)
{
    ETI_NEED_IN(g, g);
    struct et_axis_attr attr = {.axis = x ? eti_axis(x, axis) : 0};
    return ETI_APPLY_ATTR(g, gather, &attr, NULL, x, index);
}

struct et_tensor *
et_scatter_add(struct et_graph *g, struct et_tensor *src, struct et_tensor *index,
               int axis, int64_t n)
{
    ETI_NEED_IN(g, g);
    struct et_axis_attr attr = {.axis = src ? eti_axis(src, axis) : 0, .n = n};
    return ETI_APPLY_ATTR(g, scatter_add, &attr, NULL, src, index);
}
