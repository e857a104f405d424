/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c: batch, layer and group normalisation: y = gamma (x - mean) / sqrt(var + eps)
 * + beta.
 *
 *   batch norm   x [N,C] [N,C,L] [N,C,H,W], statistics [C] over all but C  (1502.03167)
 *   layer norm   statistics over the last axes, of the shape of the others (1607.06450)
 *   group norm   x [N,C,...], statistics [N,G] over C/G channels and places
 *                (1803.08494)
 *
 * Layer norm may be of a sum, x + residual, which it gives as another result.
 *
 * Statistics and gradients of parameters are F32 (F64 for F64) whatever x is. */
#include "core/base/need.h"
#include "core/ops/ops.h"

static struct et_tensor *
operand_of(const struct et_node *node, int i)
{
    return i < node->n_in ? node->in[i] : NULL;
}

/* Copies the gradients wanted: the results GRADS belong to operands x, gamma, beta,
 * ... */
static void
hand_out(const struct et_node *node, struct et_tensor *const *grads, const bool *want,
         struct et_tensor **dx)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && want[i])
            dx[i] = grads[i];
}

/* About what the passes over x do: sums, squares, scale and shift. */
static int64_t
norm_flops(const struct et_call *call)
{
    return 8 * et_desc_count(&call->in[0]);
}

/* The dtype gradients of parameters have: that of gamma, operand I. */
static enum et_dtype
parameter_dtype(const struct et_call *call, int i)
{
    const struct et_desc *gamma = eti_operand(call, i);
    return gamma ? gamma->dtype : eti_wide(call->in[0].dtype);
}

/* ---- batch norm ---- */

static enum et_format
image_format(const struct et_desc *x)
{
    return x->ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR;
}

static et_status
need_channels(struct et_ctx *cx, const struct et_call *call, int i, const char *what)
{
    ET_TRY(eti_need_ndim(cx, call, i, what, 2, 4));
    return eti_need_float(cx, call, i, what);
}

ETI_INFER(batch_norm_infer)
{
    const struct et_desc *x = &call->in[0];
    const int64_t *c = &x->shape[1];

    ET_TRY(need_channels(cx, call, 0, "x"));
    ET_TRY(eti_may_shape(cx, call, 1, "gamma", 1, c));
    ET_TRY(eti_may_shape(cx, call, 2, "beta", 1, c));
    ET_TRY(eti_may_shape(cx, call, 3, "residual", x->ndim, x->shape));
    if (et_desc_count(x) == 0)
        return ETI_FAIL(cx, call, ET_ESHAPE, "%s", "no elements to take statistics of");
    if (et_desc_count(x) == x->shape[1])
        return ETI_FAIL(
            cx, call, ET_ESHAPE, "%s",
            "one value per channel has no variance: training needs a larger "
            "batch or image");
    et_desc_init(&out[0], x->dtype, x->ndim, x->shape, image_format(x));
    et_desc_init(&out[1], eti_wide(x->dtype), 1, c, ET_ROW_MAJOR);
    out[2] = out[1];
    return ET_OK;
}

ETI_INFER(batch_norm_grad_infer)
{
    const struct et_norm_attr *o = call->attr;
    const struct et_desc *x = &call->in[1];
    const int64_t *c = &x->shape[1];

    ET_TRY(need_channels(cx, call, 1, "x"));
    ET_TRY(eti_need_shape(cx, call, 0, "dy", x->ndim, x->shape));
    ET_TRY(eti_may_shape(cx, call, 2, "gamma", 1, c));
    ET_TRY(eti_need_shape(cx, call, 3, "mean", 1, c));
    ET_TRY(eti_need_shape(cx, call, 4, "var", 1, c));
    if (o->relu)
        ET_TRY(eti_need_shape(cx, call, 5, "y", x->ndim, x->shape));
    et_desc_init(&out[0], x->dtype, x->ndim, x->shape, image_format(x));
    et_desc_init(&out[1], parameter_dtype(call, 2), 1, c, ET_ROW_MAJOR);
    out[2] = out[1];
    out[3] = out[0];
    return ET_OK;
}

/* What x gets through the statistics: dmean / m + dvar 2 (x - mean) / m, m elements
 * each. */
static struct et_tensor *
through_statistics(struct et_graph *g, const struct et_node *node,
                   struct et_tensor *dmean, struct et_tensor *dvar,
                   struct et_tensor *dx)
{
    struct et_tensor *x = node->in[0];
    int ndim = x->desc.ndim;
    double m = (double)et_desc_count(&x->desc) / (double)x->desc.shape[1];
    enum et_dtype dtype = x->desc.dtype;

    if (dmean) {
        dmean = et_cast(g, et_mul_scalar(g, dmean, 1 / m), dtype);
        dx = et_add(g, dx, eti_channel_view(g, dmean, ndim));
    }
    if (dvar) {
        struct et_tensor *mean = et_cast(g, &node->out[1], dtype);
        struct et_tensor *centred = et_sub(g, x, eti_channel_view(g, mean, ndim));
        dvar = et_cast(g, et_mul_scalar(g, dvar, 2 / m), dtype);
        dx = et_add(g, dx, et_mul(g, centred, eti_channel_view(g, dvar, ndim)));
    }
    return dx;
}

ETI_GRADIENT(batch_norm_gradient)
{
    const struct et_norm_attr *o = node->attr;
    struct et_tensor *x = node->in[0], *y = o->relu ? &node->out[0] : NULL;
    struct et_tensor *d = dy[0], *grads[4] = {NULL};

    if (!d)
        d = et_expand(g, et_fill(g, x->desc.dtype, 0, NULL, 0), x->desc.ndim,
                      x->desc.shape);
    d = eti_standard(g, d);
    if (!d)
        return et_graph_status(g);
    ETI_APPLY_ATTR(g, batch_norm_grad, o, grads, d, x, operand_of(node, 1),
                   &node->out[1], &node->out[2], y);
    if (grads[0] && want[0])
        grads[0] = through_statistics(g, node, dy[1], dy[2], grads[0]);
    hand_out(node, grads, want, dx);
    return et_graph_status(g);
}

const struct et_op et_op_batch_norm = {
    .name = "batch_norm",
    .summary = "channels with mean 0 and variance 1 over the batch, scaled and shifted",
    .id = ET_OP_batch_norm,
    .min_in = 1,
    .max_in = 4,
    .n_out = 3,
    .attr_size = sizeof(struct et_norm_attr),
    .infer = batch_norm_infer,
    .gradient = batch_norm_gradient,
    .flops = norm_flops,
};

const struct et_op et_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .summary = "gradients of batch_norm",
    .id = ET_OP_batch_norm_grad,
    .min_in = 2,
    .max_in = 6,
    .n_out = 4,
    .attr_size = sizeof(struct et_norm_attr),
    .flags = ET_OPF_IN_PLACE,
    .infer = batch_norm_grad_infer,
    .flops = norm_flops,
};

struct et_tensor *
et_batch_norm(struct et_graph *g, struct et_tensor *x, struct et_tensor *gamma,
              struct et_tensor *beta, double eps, struct et_tensor **mean,
              struct et_tensor **var)
{
    ETI_NEED_IN(g, g);
    struct et_norm_attr attr = {.eps = eps};
    struct et_tensor *out[3] = {NULL}, *y;

    x = eti_standard(g, x);
    y = ETI_APPLY_ATTR(g, batch_norm, &attr, out, x, gamma, beta);
    if (mean)
        *mean = y ? out[1] : NULL;
    if (var)
        *var = y ? out[2] : NULL;
    return y;
}

struct et_tensor *
et_batch_norm_eval(struct et_graph *g, struct et_tensor *x, struct et_tensor *gamma,
                   struct et_tensor *beta, struct et_tensor *mean,
                   struct et_tensor *var, double eps)
{
    ETI_NEED_IN(g, g);
    if (!x || !mean || !var)
        return ETI_MISSING(g, x, mean, var);
    x = eti_autocast_wide(g, x);
    if (!x)
        return NULL;
    int ndim = x->desc.ndim;
    struct et_tensor *scale = et_rsqrt(g, et_add_scalar(g, var, eps));
    if (gamma)
        scale = et_mul(g, scale, gamma);
    struct et_tensor *shift = et_neg(g, et_mul(g, mean, scale));
    if (beta)
        shift = et_add(g, shift, beta);
    scale = eti_channel_view(g, et_cast(g, scale, x->desc.dtype), ndim);
    shift = eti_channel_view(g, et_cast(g, shift, x->desc.dtype), ndim);
    return et_add(g, et_mul(g, x, scale), shift);
}

/* ---- layer norm ---- */

/* Of no elements there are no statistics: axes FIRST and later of X are one row. */
static et_status
need_elements(struct et_ctx *cx, const struct et_call *call, const struct et_desc *x,
              int first)
{
    for (int i = first; i < x->ndim; i++)
        if (x->shape[i] == 0)
            return ETI_FAIL(cx, call, ET_ESHAPE, "axis %d has no elements", i);
    return ET_OK;
}

/* Checks X, operand I, and gamma and beta from operand FIRST on; the statistics'
 * OUT. */
static et_status
check_layer_norm(struct et_ctx *cx, const struct et_call *call, int i, int first,
                 struct et_desc *stat)
{
    const struct et_norm_attr *o = call->attr;
    const struct et_desc *x = &call->in[i];

    ET_TRY(eti_need_float(cx, call, i, "x"));
    if (o->axes < 1 || o->axes > x->ndim)
        return ETI_FAIL(cx, call, ET_EINVAL, "%d axes of an array of %d", o->axes,
                        x->ndim);
    ET_TRY(need_elements(cx, call, x, x->ndim - o->axes));
    ET_TRY(
        eti_may_shape(cx, call, first, "gamma", o->axes, x->shape + x->ndim - o->axes));
    et_desc_init(stat, eti_wide(x->dtype), x->ndim - o->axes, x->shape, ET_ROW_MAJOR);
    return ET_OK;
}

/* A residual has x's dtype; mixed precision adds bf16 and f16 to f32. */
static et_status
check_residual(struct et_ctx *cx, const struct et_call *call)
{
    const struct et_desc *x = &call->in[0], *r = eti_operand(call, 3);
    ET_TRY(eti_may_shape(cx, call, 3, "residual", x->ndim, x->shape));
    if (r && r->dtype != x->dtype && (x->dtype != ET_F32 || r->dtype == ET_F64))
        return ETI_FAIL(cx, call, ET_EDTYPE, "a residual of %s is not added to %s",
                        et_dtype_name(r->dtype), et_dtype_name(x->dtype));
    return ET_OK;
}

ETI_INFER(layer_norm_infer)
{
    const struct et_norm_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    ET_TRY(check_layer_norm(cx, call, 0, 1, &out[1]));
    ET_TRY(eti_may_shape(cx, call, 2, "beta", o->axes, x->shape + x->ndim - o->axes));
    ET_TRY(check_residual(cx, call));
    et_desc_init(&out[0], x->dtype, x->ndim, x->shape, ET_ROW_MAJOR);
    out[2] = out[1];
    out[3] = out[0];
    return ET_OK;
}

ETI_INFER(layer_norm_grad_infer)
{
    const struct et_norm_attr *o = call->attr;
    const struct et_desc *x = &call->in[1];
    struct et_desc stat;

    ET_TRY(check_layer_norm(cx, call, 1, 2, &stat));
    ET_TRY(eti_need_shape(cx, call, 0, "dy", x->ndim, x->shape));
    ET_TRY(eti_need_shape(cx, call, 3, "mean", stat.ndim, stat.shape));
    ET_TRY(eti_need_shape(cx, call, 4, "rstd", stat.ndim, stat.shape));
    ET_TRY(eti_may_shape(cx, call, 5, "dsum", x->ndim, x->shape));
    et_desc_init(&out[0], x->dtype, x->ndim, x->shape, ET_ROW_MAJOR);
    et_desc_init(&out[1], parameter_dtype(call, 2), o->axes,
                 x->shape + x->ndim - o->axes, ET_ROW_MAJOR);
    out[2] = out[1];
    out[3] = out[0];
    return ET_OK;
}

/* The sum, where there is one, stands for x: its gradient is that of both operands. */
ETI_GRADIENT(layer_norm_gradient)
{
    struct et_tensor *residual = operand_of(node, 3), *grads[4] = {NULL};
    struct et_tensor *x = residual ? &node->out[3] : node->in[0];
    if (dy[0]) {
        ETI_APPLY_ATTR(g, layer_norm_grad, (const struct et_norm_attr *)node->attr,
                       grads, dy[0], x, operand_of(node, 1), &node->out[1],
                       &node->out[2], dy[3]);
    } else {
        grads[0] = dy[3];
    }
    grads[3] = residual ? et_cast(g, grads[0], residual->desc.dtype) : NULL;
    hand_out(node, grads, want, dx);
    return et_graph_status(g);
}

struct et_tensor *
et_layer_norm(struct et_graph *g, struct et_tensor *x, struct et_tensor *gamma,
              struct et_tensor *beta, int axes, double eps)
{
    ETI_NEED_IN(g, g);
    struct et_norm_attr attr = {.eps = eps, .axes = axes};
    return ETI_APPLY_ATTR(g, layer_norm, &attr, NULL, x, gamma, beta);
}

/* ---- group norm ---- */

static et_status
check_group_norm(struct et_ctx *cx, const struct et_call *call, int i, int first,
                 struct et_desc *stat)
{
    const struct et_norm_attr *o = call->attr;
    const struct et_desc *x = &call->in[i];

    ET_TRY(eti_need_ndim(cx, call, i, "x", 2, ET_MAX_DIMS));
    ET_TRY(eti_need_float(cx, call, i, "x"));
    if (o->groups < 1 || x->shape[1] % o->groups)
        return ETI_FAIL(cx, call, ET_EINVAL,
                        "%lld channels do not split into %d groups",
                        (long long)x->shape[1], o->groups);
    ET_TRY(need_elements(cx, call, x, 1));
    ET_TRY(eti_may_shape(cx, call, first, "gamma", 1, &x->shape[1]));
    et_desc_init(stat, eti_wide(x->dtype), 2, (int64_t[]){x->shape[0], o->groups},
                 ET_ROW_MAJOR);
    return ET_OK;
}

ETI_INFER(group_norm_infer)
{
    const struct et_desc *x = &call->in[0];
    ET_TRY(check_group_norm(cx, call, 0, 1, &out[1]));
    ET_TRY(eti_may_shape(cx, call, 2, "beta", 1, &x->shape[1]));
    eti_desc_same(&out[0], x->dtype, x);
    out[2] = out[1];
    return ET_OK;
}

ETI_INFER(group_norm_grad_infer)
{
    const struct et_desc *x = &call->in[1];
    struct et_desc stat;

    ET_TRY(check_group_norm(cx, call, 1, 2, &stat));
    ET_TRY(eti_need_shape(cx, call, 0, "dy", x->ndim, x->shape));
    ET_TRY(eti_need_shape(cx, call, 3, "mean", stat.ndim, stat.shape));
    ET_TRY(eti_need_shape(cx, call, 4, "rstd", stat.ndim, stat.shape));
    eti_desc_same(&out[0], x->dtype, x);
    et_desc_init(&out[1], parameter_dtype(call, 2), 1, &x->shape[1], ET_ROW_MAJOR);
    out[2] = out[1];
    return ET_OK;
}

ETI_GRADIENT(group_norm_gradient)
{
    struct et_tensor *grads[3] = {NULL};
    ETI_APPLY_ATTR(g, group_norm_grad, (const struct et_norm_attr *)node->attr, grads,
                   dy[0], node->in[0], operand_of(node, 1), &node->out[1],
                   &node->out[2]);
    hand_out(node, grads, want, dx);
    return et_graph_status(g);
}

struct et_tensor *
et_group_norm(struct et_graph *g, struct et_tensor *x, struct et_tensor *gamma,
              struct et_tensor *beta, int groups, double eps)
{
    ETI_NEED_IN(g, g);
    struct et_norm_attr attr = {.eps = eps, .groups = groups};
    x = eti_image(g, x);
    return ETI_APPLY_ATTR(g, group_norm, &attr, NULL, x, gamma, beta);
}

/* The sum of layer norm, or of its gradient, is one more. */
static int64_t
row_norm_flops(const struct et_call *call)
{
    bool forward = call->op == ET_OP_layer_norm;
    bool grad = call->op == ET_OP_layer_norm_grad;
    bool adds = (forward && eti_operand(call, 3)) || (grad && eti_operand(call, 5));
    return norm_flops(call) + (adds ? et_desc_count(&call->in[0]) : 0);
}

#define NORM_OP(op, words, least, most, results, backward)                             \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = least,                                                               \
        .max_in = most,                                                                \
        .n_out = results,                                                              \
        .attr_size = sizeof(struct et_norm_attr),                                      \
        .infer = op##_infer,                                                           \
        .gradient = backward,                                                          \
        .flops = row_norm_flops,                                                       \
    };
NORM_OP(layer_norm, "mean 0 and variance 1 over the last axes, scaled and shifted", 1,
        4, 4, layer_norm_gradient)
NORM_OP(layer_norm_grad, "gradients of layer_norm", 2, 6, 4, NULL)
NORM_OP(group_norm, "mean 0 and variance 1 in groups of channels, scaled and shifted",
        1, 3, 3, group_norm_gradient)
NORM_OP(group_norm_grad, "gradients of group_norm", 2, 5, 3, NULL)
