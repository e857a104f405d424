/* SPDX-License-Identifier: Apache-2.0 */
/* leaf.c: nodes without operands, and the node that writes a leaf. */
#include "core/base/need.h"
#include "core/ops/ops.h"

ETI_INFER(assign_infer)
{
    ET_TRY(eti_need(cx, call, 1, "value"));
    ET_TRY(eti_need_dtype(cx, call, 1, "value", call->in[0].dtype));
    return eti_need_shape(cx, call, 1, "value", call->in[0].ndim, call->in[0].shape);
}

const struct et_op et_op_assign = {
    .name = "assign",
    .summary = "a leaf takes a value in the commit",
    .id = ET_OP_assign,
    .min_in = 2,
    .max_in = 2,
    .n_out = 0,
    .flags = ET_OPF_EFFECT,
    .infer = assign_infer,
};

ETI_INFER(constant_infer)
{
    const struct et_shape_attr *o = call->attr;
    if (o->dtype <= ET_NONE || o->dtype >= ET_DTYPE_COUNT)
        return ETI_FAIL(cx, call, ET_EDTYPE, "there is no dtype %d", o->dtype);
    if (o->ndim < 0 || o->ndim > ET_MAX_DIMS)
        return ETI_FAIL(cx, call, ET_ESHAPE, "%d axes; an array has at most %d",
                        o->ndim, ET_MAX_DIMS);
    for (int i = 0; i < o->ndim; i++)
        if (o->shape[i] < 0)
            return ETI_FAIL(cx, call, ET_ESHAPE, "axis %d has length %lld", i,
                            (long long)o->shape[i]);
    et_desc_init(out, (enum et_dtype)o->dtype, o->ndim, o->shape, ET_ROW_MAJOR);
    return ET_OK;
}

const struct et_op et_op_fill = {
    .name = "fill",
    .summary = "one number everywhere",
    .id = ET_OP_fill,
    .n_out = 1,
    .attr_size = sizeof(struct et_shape_attr),
    .infer = constant_infer,
};

const struct et_op et_op_iota = {
    .name = "iota",
    .summary = "0, 1, 2, ...",
    .id = ET_OP_iota,
    .n_out = 1,
    .attr_size = sizeof(struct et_shape_attr),
    .infer = constant_infer,
};

struct et_tensor *
et_fill(struct et_graph *g, enum et_dtype dtype, int ndim, const int64_t *shape,
        double value)
{
    ETI_NEED_IN(g, g);
    if (ndim > 0)
        ETI_NEED_IN(g, shape);
    struct et_shape_attr attr = {.dtype = (int32_t)dtype, .ndim = ndim, .value = value};
    for (int i = 0; i < ndim && i < ET_MAX_DIMS; i++)
        attr.shape[i] = shape[i];
    return et_apply(g, ET_OP_fill, NULL, 0, &attr, sizeof attr, NULL);
}

struct et_tensor *
et_iota(struct et_graph *g, enum et_dtype dtype, int64_t n)
{
    ETI_NEED_IN(g, g);
    struct et_shape_attr attr = {.dtype = (int32_t)dtype, .ndim = 1, .shape = {n}};
    return et_apply(g, ET_OP_iota, NULL, 0, &attr, sizeof attr, NULL);
}
