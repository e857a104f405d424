/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: lines along an axis, in order and summed up. */
#include "core/base/need.h"
#include "core/ops/ops.h"

/* Operand 0 is floats and has the axis; OUT: row-major, of its shape. */
static et_status
line_infer(struct et_ctx *cx, const struct et_call *call, struct et_desc *out)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    ET_TRY(eti_need_float(cx, call, 0, "operand"));
    ET_TRY(eti_need_axis(cx, call, 0, o->axis));
    et_desc_init(out, x->dtype, x->ndim, x->shape, ET_ROW_MAJOR);
    return ET_OK;
}

/* ---- cumsum ---- */

ETI_INFER(cumsum_infer)
{
    return line_infer(cx, call, out);
}

/* Each sum that an element is in: those of the elements behind it. */
ETI_GRADIENT(cumsum_gradient)
{
    const struct et_axis_attr *o = node->attr;
    if (want[0])
        dx[0] = et_cumsum(g, dy[0], o->axis, !o->reverse);
    return et_graph_status(g);
}

const struct et_op et_op_cumsum = {
    .name = "cumsum",
    .summary = "sums along an axis up to each element",
    .id = ET_OP_cumsum,
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct et_axis_attr),
    .infer = cumsum_infer,
    .gradient = cumsum_gradient,
};

struct et_tensor *
et_cumsum(struct et_graph *g, struct et_tensor *x, int axis, bool reverse)
{
    ETI_NEED_IN(g, g);
    struct et_axis_attr attr = {.axis = x ? eti_axis(x, axis) : 0, .reverse = reverse};
    return ETI_APPLY_ATTR(g, cumsum, &attr, NULL, x);
}

/* ---- sort ---- */

ETI_INFER(sort_infer)
{
    ET_TRY(line_infer(cx, call, &out[0]));
    out[1] = out[0];
    out[1].dtype = ET_I32;
    return ET_OK;
}

ETI_GRADIENT(sort_gradient)
{
    const struct et_axis_attr *o = node->attr;
    const struct et_tensor *x = node->in[0];
    if (want[0])
        dx[0] =
            et_scatter_add(g, dy[0], &node->out[1], o->axis, x->desc.shape[o->axis]);
    return et_graph_status(g);
}

/* One FLOP for each comparison of a merge sort. */
static int64_t
sort_flops(const struct et_call *call)
{
    const struct et_axis_attr *o = call->attr;
    int64_t count = et_desc_count(&call->in[0]), flops = 0;
    for (int64_t n = 1; n < call->in[0].shape[o->axis]; n *= 2)
        flops += count;
    return flops;
}

const struct et_op et_op_sort = {
    .name = "sort",
    .summary = "an axis in order, and the places that its elements had",
    .id = ET_OP_sort,
    .min_in = 1,
    .max_in = 1,
    .n_out = 2,
    .attr_size = sizeof(struct et_axis_attr),
    .infer = sort_infer,
    .gradient = sort_gradient,
    .flops = sort_flops,
};

struct et_tensor *
et_sort(struct et_graph *g, struct et_tensor *x, int axis, bool descending,
        struct et_tensor **index)
{
    ETI_NEED_IN(g, g);
    struct et_axis_attr attr = {.axis = x ? eti_axis(x, axis) : 0,
                                .reverse = descending};
    struct et_tensor *out[2] = {NULL, NULL};
    struct et_tensor *values = ETI_APPLY_ATTR(g, sort, &attr, out, x);
    if (index)
        *index = values ? out[1] : NULL;
    return values;
}
