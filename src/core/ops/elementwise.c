/* SPDX-License-Identifier: Apache-2.0 */
/* elementwise.c: operations on single elements. Rows of kernels/elements.def.
 *
 * Shapes broadcast by NumPy's rules: aligned at the last axis, length 1 repeats. The
 * result is dense in the axis order of its first dense operand of full shape.
 *
 * Differs: the gradient of maximum and minimum gives each of two equals a half; that of
 * clamp counts both bounds as inside; abs has slope 0 at 0. */
#include "core/base/need.h"
#include "core/ops/ops.h"

/* ---- infer ---- */

static et_status
same_dtypes(struct et_ctx *cx, const struct et_call *call, int first)
{
    for (int i = first; i < call->n_in; i++) {
        ET_TRY(eti_need(cx, call, i, "operand"));
        if (call->in[i].dtype != call->in[first].dtype)
            return ETI_FAIL(
                cx, call, ET_EDTYPE, "operands have dtypes %s and %s; cast one",
                et_dtype_name(call->in[first].dtype), et_dtype_name(call->in[i].dtype));
    }
    return ET_OK;
}

/* Any dtype, the same for all. */
ETI_INFER(infer_number)
{
    ET_TRY(same_dtypes(cx, call, 0));
    return eti_broadcast(cx, call, call->in[0].dtype, out);
}

ETI_INFER(infer_float)
{
    ET_TRY(eti_need_float(cx, call, 0, "operand"));
    return infer_number(cx, call, out, view_offset);
}

ETI_INFER(infer_compare)
{
    ET_TRY(same_dtypes(cx, call, 0));
    return eti_broadcast(cx, call, ET_U8, out);
}

ETI_INFER(infer_where)
{
    /* A number will do: a flag computed on the device joins a chain without a cast. */
    if (call->in[0].dtype != ET_U8)
        ET_TRY(eti_need_float(cx, call, 0, "condition"));
    ET_TRY(same_dtypes(cx, call, 1));
    ET_TRY(eti_need_float(cx, call, 1, "operand"));
    return eti_broadcast(cx, call, call->in[1].dtype, out);
}

ETI_INFER(infer_clamp)
{
    const struct et_scalar_attr *o = call->attr;
    if (!(o->a <= o->b))
        return ETI_FAIL(cx, call, ET_EINVAL,
                        "the lower bound %g is above the upper bound %g", o->a, o->b);
    return infer_float(cx, call, out, view_offset);
}

ETI_INFER(infer_cast)
{
    const struct et_cast_attr *o = call->attr;
    if (o->dtype <= ET_NONE || o->dtype >= ET_DTYPE_COUNT)
        return ETI_FAIL(cx, call, ET_EDTYPE, "there is no dtype %d", o->dtype);
    return eti_broadcast(cx, call, (enum et_dtype)o->dtype, out);
}

/* Runs the program on descriptions. */
ETI_INFER(infer_fused)
{
    const struct et_fused_attr *o = call->attr;
    struct et_desc reg[ET_FUSED_MAX_IN + ET_FUSED_MAX_STEPS];
    int n = call->n_in;

    if (n != o->n_in || n > ET_FUSED_MAX_IN || o->n_steps > ET_FUSED_MAX_STEPS ||
        o->n_out > ET_FUSED_MAX_OUT)
        return ETI_FAIL(cx, call, ET_EINTERNAL, "a program of %d inputs got %d",
                        o->n_in, n);
    memcpy(reg, call->in, (size_t)n * sizeof *reg);
    for (int k = 0; k < o->n_steps; k++) {
        const struct et_fused_step *s = &o->step[k];
        struct et_desc in[3];
        struct et_scalar_attr scalar = {.a = s->a, .b = s->b};
        struct et_call step = {
            .op = s->op,
            .n_in = s->n_src,
            .n_out = 1,
            .attr = &scalar,
            .attr_size = sizeof scalar,
            .in = in,
        };
        for (int i = 0; i < s->n_src; i++)
            in[i] = reg[s->src[i]];
        ET_TRY(et_op_get(s->op)->infer(cx, &step, &reg[n + k], view_offset));
    }
    for (int i = 0; i < o->n_out; i++)
        out[i] = reg[o->out[i]];
    return ET_OK;
}

/* ---- helpers of the gradients ---- */

static struct et_tensor *
scalar(struct et_graph *g, const struct et_tensor *like, double value)
{
    return et_fill(g, like->desc.dtype, 0, NULL, value);
}

static struct et_tensor *
apply_scalar(struct et_graph *g, enum et_op_id op, struct et_tensor *x, double a,
             double b)
{
    struct et_scalar_attr attr = {.a = a, .b = b};
    return et_apply(g, op, &x, 1, &attr, sizeof attr, NULL);
}

/* d where WINS, half of it where A equals B, else 0. */
static struct et_tensor *
share(struct et_graph *g, struct et_tensor *d, struct et_tensor *wins,
      struct et_tensor *a, struct et_tensor *b)
{
    struct et_tensor *half = et_mul_scalar(g, d, 0.5);
    struct et_tensor *zero = scalar(g, d, 0);
    return et_where(g, wins, d, et_where(g, et_equal(g, a, b), half, zero));
}

/* ---- one operand ---- */

#define ETK_UNARY(op, words, first, value, formula)                                    \
    ETI_GRADIENT(op##_gradient)                                                        \
    {                                                                                  \
        ETI_UNUSED struct et_tensor *x = node->in[0], *y = &node->out[0], *d = dy[0];  \
        if (want[0])                                                                   \
            dx[0] = formula;                                                           \
        return et_graph_status(g);                                                     \
    }                                                                                  \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = 1,                                                                   \
        .max_in = 1,                                                                   \
        .n_out = 1,                                                                    \
        .flags = ET_OPF_ELEMENTWISE,                                                   \
        .infer = infer_float,                                                          \
        .gradient = op##_gradient,                                                     \
    };

/* ---- one operand and a number ---- */

#define ETK_SCALAR(op, words, rule, first, value, formula)                             \
    ETI_GRADIENT(op##_gradient)                                                        \
    {                                                                                  \
        const struct et_scalar_attr *o = node->attr;                                   \
        ETI_UNUSED double a = o->a, b = o->b;                                          \
        ETI_UNUSED struct et_tensor *x = node->in[0], *d = dy[0];                      \
        if (want[0])                                                                   \
            dx[0] = formula;                                                           \
        return et_graph_status(g);                                                     \
    }                                                                                  \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = 1,                                                                   \
        .max_in = 1,                                                                   \
        .n_out = 1,                                                                    \
        .attr_size = sizeof(struct et_scalar_attr),                                    \
        .flags = ET_OPF_ELEMENTWISE,                                                   \
        .infer = rule,                                                                 \
        .gradient = op##_gradient,                                                     \
    };

/* ---- two operands ---- */

#define BINARY_OP(op, words, rule, backward)                                           \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = 2,                                                                   \
        .max_in = 2,                                                                   \
        .n_out = 1,                                                                    \
        .flags = ET_OPF_ELEMENTWISE,                                                   \
        .infer = rule,                                                                 \
        .gradient = backward,                                                          \
    };

#define ETK_BINARY(op, words, rule, first, value, da, db)                              \
    ETI_GRADIENT(op##_gradient)                                                        \
    {                                                                                  \
        ETI_UNUSED struct et_tensor *a = node->in[0], *b = node->in[1];                \
        ETI_UNUSED struct et_tensor *y = &node->out[0], *d = dy[0];                    \
        if (want[0])                                                                   \
            dx[0] = eti_sum_like(g, da, a);                                            \
        if (want[1])                                                                   \
            dx[1] = eti_sum_like(g, db, b);                                            \
        return et_graph_status(g);                                                     \
    }                                                                                  \
    BINARY_OP(op, words, rule, op##_gradient)
#define ETK_PLAIN(op, words, rule, first, value) BINARY_OP(op, words, rule, NULL)

/* ---- the table ---- */

#define ETK_TERNARY(op, first, value) /* where is below */
#include "kernels/elements.def"

/* ---- builders ---- */

#define ET_OP(name, number)
#define ET_OP_UNARY(op, number)                                                        \
    struct et_tensor *et_##op(struct et_graph *g, struct et_tensor *x)                 \
    {                                                                                  \
        return ETI_APPLY(g, op, NULL, x);                                              \
    }
#define ET_OP_BINARY(op, number)                                                       \
    struct et_tensor *et_##op(struct et_graph *g, struct et_tensor *a,                 \
                              struct et_tensor *b)                                     \
    {                                                                                  \
        return ETI_APPLY(g, op, NULL, a, b);                                           \
    }
#include "etude/ops.def"
#undef ET_OP

struct et_tensor *
et_add_scalar(struct et_graph *g, struct et_tensor *x, double a)
{
    ETI_NEED_IN(g, g);
    return apply_scalar(g, ET_OP_add_scalar, x, a, 0);
}

struct et_tensor *
et_mul_scalar(struct et_graph *g, struct et_tensor *x, double a)
{
    ETI_NEED_IN(g, g);
    return apply_scalar(g, ET_OP_mul_scalar, x, a, 0);
}

struct et_tensor *
et_pow_scalar(struct et_graph *g, struct et_tensor *x, double a)
{
    ETI_NEED_IN(g, g);
    return apply_scalar(g, ET_OP_pow_scalar, x, a, 0);
}

struct et_tensor *
et_clamp(struct et_graph *g, struct et_tensor *x, double lo, double hi)
{
    ETI_NEED_IN(g, g);
    return apply_scalar(g, ET_OP_clamp, x, lo, hi);
}

/* ---- cast, where, fused ---- */

ETI_GRADIENT(cast_gradient)
{
    enum et_dtype dtype = node->in[0]->desc.dtype;
    if (want[0] && et_dtype_is_float(dtype))
        dx[0] = et_cast(g, dy[0], dtype);
    return et_graph_status(g);
}

const struct et_op et_op_cast = {
    .name = "cast",
    .summary = "the same values in another dtype",
    .id = ET_OP_cast,
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct et_cast_attr),
    .flags = ET_OPF_ELEMENTWISE,
    .infer = infer_cast,
    .gradient = cast_gradient,
};

struct et_tensor *
et_cast(struct et_graph *g, struct et_tensor *x, enum et_dtype dtype)
{
    struct et_cast_attr attr = {.dtype = (int32_t)dtype};
    if (x && x->desc.dtype == dtype)
        return x;
    return ETI_APPLY_ATTR(g, cast, &attr, NULL, x);
}

ETI_GRADIENT(where_gradient)
{
    struct et_tensor *cond = node->in[0], *zero = scalar(g, dy[0], 0);
    if (want[1])
        dx[1] = eti_sum_like(g, et_where(g, cond, dy[0], zero), node->in[1]);
    if (want[2])
        dx[2] = eti_sum_like(g, et_where(g, cond, zero, dy[0]), node->in[2]);
    return et_graph_status(g);
}

const struct et_op et_op_where = {
    .name = "where",
    .summary = "a where the condition is not 0, else b",
    .id = ET_OP_where,
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .flags = ET_OPF_ELEMENTWISE,
    .infer = infer_where,
    .gradient = where_gradient,
};

struct et_tensor *
et_where(struct et_graph *g, struct et_tensor *cond, struct et_tensor *a,
         struct et_tensor *b)
{
    ETI_NEED_IN(g, g);
    return ETI_APPLY(g, where, NULL, cond, a, b);
}

static int64_t
fused_flops(const struct et_call *call)
{
    const struct et_fused_attr *o = call->attr;
    return call->n_out ? et_desc_count(&call->out[0]) * o->n_steps : 0;
}

const struct et_op et_op_fused = {
    .name = "fused",
    .summary = "a chain of element-wise operations in one pass",
    .id = ET_OP_fused,
    .min_in = 1,
    .max_in = ET_FUSED_MAX_IN,
    .n_out = ET_FUSED_MAX_OUT,
    .attr_size = sizeof(struct et_fused_attr),
    .flags = ET_OPF_ELEMENTWISE,
    .infer = infer_fused,
    .flops = fused_flops,
};
