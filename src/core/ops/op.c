/* SPDX-License-Identifier: Apache-2.0 */
/* op.c: the table of operations, and the checks their infer functions share. */
#include "core/ops/ops.h"

static const struct et_op *const ops[] = {
#define ET_OP(name, number) [number] = &et_op_##name,
#include "etude/ops.def"
#undef ET_OP
};

const struct et_op *
et_op_get(enum et_op_id id)
{
    return (unsigned)id < ET_OP_COUNT ? ops[id] : NULL;
}

const struct et_op *
et_op_find(const char *name)
{
    if (!name)
        return NULL;
    for (int i = 0; i < ET_OP_COUNT; i++)
        if (!strcmp(ops[i]->name, name))
            return ops[i];
    return NULL;
}

const struct et_desc *
eti_operand(const struct et_call *call, int i)
{
    return i < call->n_in && call->in[i].dtype != ET_NONE ? &call->in[i] : NULL;
}

et_status
eti_need(struct et_ctx *cx, const struct et_call *call, int i, const char *what)
{
    if (!eti_operand(call, i))
        return ETI_FAIL(cx, call, ET_EINVAL, "operand %d (%s) is missing", i, what);
    return ET_OK;
}

et_status
eti_need_ndim(struct et_ctx *cx, const struct et_call *call, int i, const char *what,
              int low, int high)
{
    char text[ETI_TEXT];
    ET_TRY(eti_need(cx, call, i, what));
    const struct et_desc *x = &call->in[i];
    if (x->ndim >= low && x->ndim <= high)
        return ET_OK;
    if (low == high)
        return ETI_FAIL(cx, call, ET_ESHAPE, "%s is %s; it must have %d axes", what,
                        et_desc_text(x, text, sizeof text), low);
    return ETI_FAIL(cx, call, ET_ESHAPE, "%s is %s; it must have %d to %d axes", what,
                    et_desc_text(x, text, sizeof text), low, high);
}

et_status
eti_need_dtype(struct et_ctx *cx, const struct et_call *call, int i, const char *what,
               enum et_dtype dtype)
{
    ET_TRY(eti_need(cx, call, i, what));
    if (call->in[i].dtype != dtype)
        return ETI_FAIL(cx, call, ET_EDTYPE, "%s has dtype %s; it must have %s", what,
                        et_dtype_name(call->in[i].dtype), et_dtype_name(dtype));
    return ET_OK;
}

et_status
eti_need_float(struct et_ctx *cx, const struct et_call *call, int i, const char *what)
{
    ET_TRY(eti_need(cx, call, i, what));
    if (!et_dtype_is_float(call->in[i].dtype))
        return ETI_FAIL(cx, call, ET_EDTYPE, "%s has dtype %s; it must be a float",
                        what, et_dtype_name(call->in[i].dtype));
    return ET_OK;
}

et_status
eti_need_shape(struct et_ctx *cx, const struct et_call *call, int i, const char *what,
               int ndim, const int64_t *shape)
{
    char got[ETI_TEXT], wanted[ETI_TEXT];
    struct et_desc want;

    ET_TRY(eti_need(cx, call, i, what));
    et_desc_init(&want, call->in[i].dtype, ndim, shape, ET_ROW_MAJOR);
    if (!et_desc_same_shape(&call->in[i], &want))
        return ETI_FAIL(cx, call, ET_ESHAPE, "%s is %s; it must be %s", what,
                        et_desc_text(&call->in[i], got, sizeof got),
                        et_desc_text(&want, wanted, sizeof wanted));
    return ET_OK;
}

et_status
eti_may_shape(struct et_ctx *cx, const struct et_call *call, int i, const char *what,
              int ndim, const int64_t *shape)
{
    if (!eti_operand(call, i))
        return ET_OK;
    ET_TRY(eti_need_float(cx, call, i, what));
    return eti_need_shape(cx, call, i, what, ndim, shape);
}

et_status
eti_need_axis(struct et_ctx *cx, const struct et_call *call, int i, int axis)
{
    char text[ETI_TEXT];
    if (axis < 0 || axis >= call->in[i].ndim)
        return ETI_FAIL(cx, call, ET_EINVAL, "there is no axis %d in %s", axis,
                        et_desc_text(&call->in[i], text, sizeof text));
    return ET_OK;
}

/* Joins the lengths of one operand, aligned at the last axis, into SHAPE. */
static bool
broadcast_into(const struct et_desc *x, int ndim, int64_t *shape)
{
    for (int i = 0; i < x->ndim; i++) {
        int64_t *n = &shape[ndim - x->ndim + i];
        if (*n == 1)
            *n = x->shape[i];
        else if (x->shape[i] != 1 && x->shape[i] != *n)
            return false;
    }
    return true;
}

static bool
has_shape(const struct et_desc *x, int ndim, const int64_t *shape)
{
    return x->ndim == ndim && !memcmp(x->shape, shape, (size_t)ndim * sizeof *shape);
}

et_status
eti_broadcast(struct et_ctx *cx, const struct et_call *call, enum et_dtype dtype,
              struct et_desc *out)
{
    int ndim = 0, like = -1;
    int64_t shape[ET_MAX_DIMS] = {1, 1, 1, 1, 1, 1};

    for (int i = 0; i < call->n_in; i++)
        if (call->in[i].ndim > ndim)
            ndim = call->in[i].ndim;
    for (int i = 0; i < call->n_in; i++) {
        char a[ETI_TEXT], b[ETI_TEXT];
        struct et_desc so_far;
        if (broadcast_into(&call->in[i], ndim, shape))
            continue;
        et_desc_init(&so_far, call->in[0].dtype, ndim, shape, ET_ROW_MAJOR);
        return ETI_FAIL(cx, call, ET_ESHAPE, "%s and %s do not broadcast",
                        et_desc_text(i == 1 ? &call->in[0] : &so_far, a, sizeof a),
                        et_desc_text(&call->in[i], b, sizeof b));
    }
    for (int i = call->n_in - 1; i >= 0; i--)
        if (has_shape(&call->in[i], ndim, shape) && et_desc_is_dense(&call->in[i]))
            like = i;
    if (like >= 0)
        et_desc_like(out, dtype, ndim, shape, &call->in[like]);
    else
        et_desc_init(out, dtype, ndim, shape, ET_ROW_MAJOR);
    return ET_OK;
}

void
eti_desc_same(struct et_desc *out, enum et_dtype dtype, const struct et_desc *like)
{
    et_desc_like(out, dtype, like->ndim, like->shape, like);
}

enum et_dtype
eti_wide(enum et_dtype dtype)
{
    return dtype == ET_F64 ? ET_F64 : ET_F32;
}

int
eti_axis(const struct et_tensor *x, int axis)
{
    return axis < 0 && axis >= -x->desc.ndim ? axis + x->desc.ndim : axis;
}

struct et_tensor *
eti_sum_like(struct et_graph *g, struct et_tensor *x, const struct et_tensor *like)
{
    return et_sum_to(g, x, like->desc.ndim, like->desc.shape);
}

struct et_tensor *
eti_reshape_like(struct et_graph *g, struct et_tensor *x, const struct et_tensor *like)
{
    return et_reshape(g, x, like->desc.ndim, like->desc.shape);
}

struct et_tensor *
eti_image(struct et_graph *g, struct et_tensor *x)
{
    return x && x->desc.ndim == 4 ? et_contiguous(g, x, ET_CHANNELS_LAST) : x;
}

struct et_tensor *
eti_standard(struct et_graph *g, struct et_tensor *x)
{
    if (!x)
        return NULL;
    return et_contiguous(g, x, x->desc.ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR);
}

struct et_tensor *
eti_sum_channels(struct et_graph *g, struct et_tensor *x)
{
    if (!x)
        return NULL;
    uint32_t all = (1u << x->desc.ndim) - 1;
    return et_sum(g, x, all & ~2u, false);
}

struct et_tensor *
eti_channel_view(struct et_graph *g, struct et_tensor *v, int ndim)
{
    int64_t shape[ET_MAX_DIMS] = {1, 1, 1, 1, 1, 1};
    if (!v)
        return NULL;
    shape[1] = v->desc.shape[0];
    return et_reshape(g, v, ndim, shape);
}

et_status
eti_gradient_zero(struct et_graph *g, ETI_UNUSED const struct et_node *node,
                  ETI_UNUSED struct et_tensor *const *dy, ETI_UNUSED const bool *want,
                  ETI_UNUSED struct et_tensor **dx)
{
    return et_graph_status(g);
}

int64_t
eti_flops_none(ETI_UNUSED const struct et_call *call)
{
    return 0;
}

int64_t
eti_flops_operand(const struct et_call *call)
{
    return et_desc_count(&call->in[0]);
}
