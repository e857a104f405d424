/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.c: y = e^x / sum e^x along an axis, and its logarithm. Row-major results.
 *
 *   softmax:     dx = y (dy - sum(y dy))
 *   log_softmax: dx = dy - e^y sum(dy) */
#include "core/ops/ops.h"

ETI_INFER(softmax_infer)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    ET_TRY(eti_need_float(cx, call, 0, "operand"));
    ET_TRY(eti_need_axis(cx, call, 0, o->axis));
    if (call->n_in > 1) {
        ET_TRY(eti_need_dtype(cx, call, 1, "y", x->dtype));
        ET_TRY(eti_need_shape(cx, call, 1, "y", x->ndim, x->shape));
    }
    et_desc_init(out, x->dtype, x->ndim, x->shape, ET_ROW_MAJOR);
    return ET_OK;
}

/* Largest, difference, exponential, sum, quotient. */
static int64_t
softmax_flops(const struct et_call *call)
{
    return 5 * et_desc_count(&call->in[0]);
}

#define SOFTMAX_OP(op, words, operands, backward)                                      \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = operands,                                                            \
        .max_in = operands,                                                            \
        .n_out = 1,                                                                    \
        .attr_size = sizeof(struct et_axis_attr),                                      \
        .infer = softmax_infer,                                                        \
        .gradient = backward,                                                          \
        .flops = softmax_flops,                                                        \
    };

#define SOFTMAX(op, words)                                                             \
    ETI_GRADIENT(op##_gradient)                                                        \
    {                                                                                  \
        const struct et_axis_attr *o = node->attr;                                     \
        if (want[0])                                                                   \
            dx[0] = ETI_APPLY_ATTR(g, op##_grad, o, NULL, dy[0], &node->out[0]);       \
        return et_graph_status(g);                                                     \
    }                                                                                  \
    SOFTMAX_OP(op, words, 1, op##_gradient)                                            \
    SOFTMAX_OP(op##_grad, "gradient of " #op, 2, NULL)                                 \
    struct et_tensor *et_##op(struct et_graph *g, struct et_tensor *x, int axis)       \
    {                                                                                  \
        struct et_axis_attr attr = {.axis = x ? eti_axis(x, axis) : 0};                \
        return ETI_APPLY_ATTR(g, op, &attr, NULL, x);                                  \
    }
SOFTMAX(softmax, "e^x / sum e^x along an axis")
SOFTMAX(log_softmax, "x - log sum e^x along an axis")
