/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: convolution of images, its gradients, and transposed convolution.
 *
 *   y[n,k,p,q] = bias[k] + sum over c,r,s of w[k,c,r,s] x[n,c,h,w]
 *   h = p stride + r dilation - pad, w likewise from q and s; x is 0 outside the image
 *   P = floor((H + 2 pad - dilation (R - 1) - 1) / stride) + 1
 *
 * A transposed convolution is the gradient of x, run forward. All 4-d arrays are
 * channels-last; builders copy an operand that is not. */
#include "core/base/need.h"
#include "core/ops/ops.h"

/* Checks the attribute and the filter against images of C channels (grouped). */
static et_status
check_filter(struct et_ctx *cx, const struct et_call *call, const int64_t *w, int64_t c)
{
    const struct et_conv2d_attr *o = call->attr;
    for (int i = 0; i < 2; i++)
        if (o->stride[i] < 1 || o->dilation[i] < 1 || o->pad[i] < 0)
            return ETI_FAIL(cx, call, ET_EINVAL, "stride %d, dilation %d, padding %d",
                            o->stride[i], o->dilation[i], o->pad[i]);
    if (o->groups < 1 || c % o->groups || w[0] % o->groups || w[1] != c / o->groups)
        return ETI_FAIL(
            cx, call, ET_ESHAPE,
            "filters of %lldx%lld channels do not fit %lld channels in %d groups",
            (long long)w[0], (long long)w[1], (long long)c, o->groups);
    return ET_OK;
}

/* The shape [N,K,P,Q] that X, of shape [N,C,H,W], gives with filters W. */
static et_status
conv_shape(struct et_ctx *cx, const struct et_call *call, const int64_t *x,
           const int64_t *w, int64_t *y)
{
    const struct et_conv2d_attr *o = call->attr;
    ET_TRY(check_filter(cx, call, w, x[1]));
    y[0] = x[0];
    y[1] = w[0];
    for (int i = 0; i < 2; i++) {
        int64_t reach = x[2 + i] + 2 * o->pad[i] - o->dilation[i] * (w[2 + i] - 1) - 1;
        if (reach < 0)
            return ETI_FAIL(
                cx, call, ET_ESHAPE,
                "%lldx%lld filters are larger than the padded %lldx%lld image",
                (long long)w[2], (long long)w[3], (long long)x[2], (long long)x[3]);
        y[2 + i] = reach / o->stride[i] + 1;
    }
    return ET_OK;
}

static et_status
need_images(struct et_ctx *cx, const struct et_call *call, const char *first,
            const char *second)
{
    ET_TRY(eti_need_ndim(cx, call, 0, first, 4, 4));
    ET_TRY(eti_need_ndim(cx, call, 1, second, 4, 4));
    ET_TRY(eti_need_float(cx, call, 0, first));
    return eti_need_dtype(cx, call, 1, second, call->in[0].dtype);
}

static et_status
may_bias(struct et_ctx *cx, const struct et_call *call, int64_t channels)
{
    if (!eti_operand(call, 2))
        return ET_OK;
    ET_TRY(eti_need_dtype(cx, call, 2, "bias", call->in[0].dtype));
    return eti_need_shape(cx, call, 2, "bias", 1, &channels);
}

ETI_INFER(conv2d_infer)
{
    const int64_t *w = call->in[1].shape;
    int64_t y[4];
    ET_TRY(need_images(cx, call, "x", "filters"));
    ET_TRY(conv_shape(cx, call, call->in[0].shape, w, y));
    ET_TRY(may_bias(cx, call, w[0]));
    et_desc_init(out, call->in[0].dtype, 4, y, ET_CHANNELS_LAST);
    return ET_OK;
}

/* y = scale[k] conv(x, w) + shift[k] + residual, or 0 where that is less and a ReLU is
 * asked for. */
ETI_INFER(conv2d_fused_infer)
{
    const int64_t *w = call->in[1].shape;
    int64_t y[4];
    ET_TRY(need_images(cx, call, "x", "filters"));
    ET_TRY(conv_shape(cx, call, call->in[0].shape, w, y));
    for (int i = 2; i < 4; i++) {
        const char *name = i == 2 ? "scale" : "shift";
        ET_TRY(eti_need_dtype(cx, call, i, name, call->in[0].dtype));
        ET_TRY(eti_need_shape(cx, call, i, name, 1, w));
    }
    if (eti_operand(call, 4)) {
        ET_TRY(eti_need_dtype(cx, call, 4, "residual", call->in[0].dtype));
        ET_TRY(eti_need_shape(cx, call, 4, "residual", 4, y));
    }
    et_desc_init(out, call->in[0].dtype, 4, y, ET_CHANNELS_LAST);
    return ET_OK;
}

ETI_INFER(conv2d_grad_input_infer)
{
    const struct et_conv2d_attr *o = call->attr;
    int64_t y[4];
    ET_TRY(need_images(cx, call, "dy", "filters"));
    for (int i = 0; i < 2; i++)
        if (o->output_pad[i] < 0 ||
            (o->output_pad[i] > 0 && o->output_pad[i] >= o->stride[i] &&
             o->output_pad[i] >= o->dilation[i]))
            return ETI_FAIL(cx, call, ET_EINVAL,
                            "output padding %d is neither below stride %d nor below "
                            "dilation %d",
                            o->output_pad[i], o->stride[i], o->dilation[i]);
    ET_TRY(conv_shape(cx, call, o->shape, call->in[1].shape, y));
    ET_TRY(eti_need_shape(cx, call, 0, "dy", 4, y));
    ET_TRY(may_bias(cx, call, o->shape[1]));
    et_desc_init(out, call->in[0].dtype, 4, o->shape, ET_CHANNELS_LAST);
    return ET_OK;
}

ETI_INFER(conv2d_grad_weight_infer)
{
    const struct et_conv2d_attr *o = call->attr;
    int64_t y[4];
    ET_TRY(need_images(cx, call, "x", "dy"));
    ET_TRY(conv_shape(cx, call, call->in[0].shape, o->shape, y));
    ET_TRY(eti_need_shape(cx, call, 1, "dy", 4, y));
    et_desc_init(out, call->in[0].dtype, 4, o->shape, ET_CHANNELS_LAST);
    return ET_OK;
}

/* Two per weight a filter has and place of y. */
static int64_t
flops_of(const struct et_desc *y, const int64_t *w)
{
    return 2 * et_desc_count(y) * w[1] * w[2] * w[3];
}

static int64_t
conv2d_flops(const struct et_call *call)
{
    return flops_of(&call->out[0], call->in[1].shape);
}

static int64_t
conv2d_grad_input_flops(const struct et_call *call)
{
    return flops_of(&call->in[0], call->in[1].shape);
}

static int64_t
conv2d_grad_weight_flops(const struct et_call *call)
{
    return flops_of(&call->in[1], ((const struct et_conv2d_attr *)call->attr)->shape);
}

/* O with SHAPE (NULL: none), every byte defined; 0 for stride, dilation, groups
 * means 1. */
static struct et_conv2d_attr
attr_with(const struct et_conv2d_attr *o, const int64_t *shape)
{
    static const struct et_conv2d_attr plain;
    struct et_conv2d_attr attr;

    memset(&attr, 0, sizeof attr);
    o = o ? o : &plain;
    for (int i = 0; i < 2; i++) {
        attr.stride[i] = o->stride[i] ? o->stride[i] : 1;
        attr.pad[i] = o->pad[i];
        attr.dilation[i] = o->dilation[i] ? o->dilation[i] : 1;
    }
    attr.groups = o->groups ? o->groups : 1;
    if (shape)
        memcpy(attr.shape, shape, sizeof attr.shape);
    return attr;
}

static struct et_tensor *
grad_input(struct et_graph *g, struct et_tensor *dy, struct et_tensor *w,
           struct et_tensor *bias, const struct et_conv2d_attr *o, const int64_t *shape)
{
    struct et_conv2d_attr attr = attr_with(o, shape);
    memcpy(attr.output_pad, o->output_pad,
           sizeof attr.output_pad); /* infer's to judge */
    dy = eti_image(g, dy);
    w = eti_image(g, w);
    if (!dy || !w)
        return NULL;
    return bias ? ETI_APPLY_ATTR(g, conv2d_grad_input, &attr, NULL, dy, w, bias)
                : ETI_APPLY_ATTR(g, conv2d_grad_input, &attr, NULL, dy, w);
}

static struct et_tensor *
grad_weight(struct et_graph *g, struct et_tensor *x, struct et_tensor *dy,
            const struct et_conv2d_attr *o, const struct et_tensor *w)
{
    struct et_conv2d_attr attr = attr_with(o, w->desc.shape);
    x = eti_image(g, x);
    dy = eti_image(g, dy);
    return x && dy ? ETI_APPLY_ATTR(g, conv2d_grad_weight, &attr, NULL, x, dy) : NULL;
}

ETI_GRADIENT(conv2d_gradient)
{
    struct et_tensor *x = node->in[0], *w = node->in[1];
    if (want[0])
        dx[0] = grad_input(g, dy[0], w, NULL, node->attr, x->desc.shape);
    if (want[1])
        dx[1] = grad_weight(g, x, dy[0], node->attr, w);
    if (node->n_in > 2 && node->in[2] && want[2])
        dx[2] = eti_sum_channels(g, dy[0]);
    return et_graph_status(g);
}

/* As a transposed convolution: x and dy have changed roles. */
ETI_GRADIENT(conv2d_grad_input_gradient)
{
    struct et_tensor *x = node->in[0], *w = node->in[1];
    if (want[0])
        dx[0] = et_conv2d(g, dy[0], w, NULL, node->attr);
    if (want[1])
        dx[1] = grad_weight(g, dy[0], x, node->attr, w);
    if (node->n_in > 2 && node->in[2] && want[2])
        dx[2] = eti_sum_channels(g, dy[0]);
    return et_graph_status(g);
}

#define CONV_OP(op, words, most, backward)                                             \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = 2,                                                                   \
        .max_in = most,                                                                \
        .n_out = 1,                                                                    \
        .attr_size = sizeof(struct et_conv2d_attr),                                    \
        .flags = ET_OPF_PRODUCT,                                                       \
        .infer = op##_infer,                                                           \
        .gradient = backward,                                                          \
        .flops = op##_flops,                                                           \
    };
CONV_OP(conv2d, "convolution of images", 3, conv2d_gradient)
CONV_OP(conv2d_grad_input, "its gradient for x; transposed convolution", 3,
        conv2d_grad_input_gradient)
CONV_OP(conv2d_grad_weight, "its gradient for the filters", 2, NULL)

/* The attributes of the convolution are the first. */
const struct et_op et_op_conv2d_fused = {
    .name = "conv2d_fused",
    .summary = "convolution of images, scaled, shifted, with a residual and ReLU",
    .id = ET_OP_conv2d_fused,
    .min_in = 4,
    .max_in = 5,
    .n_out = 1,
    .attr_size = sizeof(struct et_conv2d_fused_attr),
    .flags = ET_OPF_PRODUCT,
    .infer = conv2d_fused_infer,
    .flops = conv2d_flops,
};

struct et_tensor *
et_conv2d(struct et_graph *g, struct et_tensor *x, struct et_tensor *w,
          struct et_tensor *bias, const struct et_conv2d_attr *o)
{
    ETI_NEED_IN(g, g);
    struct et_conv2d_attr attr = attr_with(o, NULL);
    x = eti_image(g, x);
    w = eti_image(g, w);
    if (!x || !w)
        return ETI_MISSING(g, x, w);
    return bias ? ETI_APPLY_ATTR(g, conv2d, &attr, NULL, x, w, bias)
                : ETI_APPLY_ATTR(g, conv2d, &attr, NULL, x, w);
}

/* Rows asked for beyond the last window's stride are those of further windows, over
 * zeros: with them the result is the gradient of a convolution with as many windows as
 * X has rows. Dilated filters reach there, so that these are not only the bias. */
static struct et_tensor *
pad_to_stride(struct et_graph *g, struct et_tensor *x, const struct et_conv2d_attr *o)
{
    int64_t after[4] = {0};
    if (x->desc.ndim != 4 || o->stride[0] < 1 || o->stride[1] < 1)
        return x; /* infer refuses */
    for (int i = 0; i < 2; i++)
        if (o->output_pad[i] < o->dilation[i] && o->output_pad[i] > 0)
            after[2 + i] = o->output_pad[i] / o->stride[i];
    if (after[2] == 0 && after[3] == 0)
        return x;
    return et_pad(g, x, (const int64_t[4]){0}, after, 0);
}

struct et_tensor *
et_conv_transpose2d(struct et_graph *g, struct et_tensor *x, struct et_tensor *w,
                    struct et_tensor *bias, const struct et_conv2d_attr *o)
{
    ETI_NEED_IN(g, g);
    struct et_conv2d_attr attr = attr_with(o, NULL);
    int64_t shape[4] = {0};

    if (o)
        memcpy(attr.output_pad, o->output_pad, sizeof attr.output_pad);
    if (x)
        x = pad_to_stride(g, x, &attr);
    if (!x || !w)
        return ETI_MISSING(g, x, w);
    if (x->desc.ndim == 4 && w->desc.ndim == 4) { /* else infer refuses */
        shape[0] = x->desc.shape[0];
        shape[1] = w->desc.shape[1] * attr.groups;
        for (int i = 0; i < 2; i++)
            shape[2 + i] = (x->desc.shape[2 + i] - 1) * attr.stride[i] -
                           2 * attr.pad[i] +
                           attr.dilation[i] * (w->desc.shape[2 + i] - 1) + 1 +
                           attr.output_pad[i] % attr.stride[i];
    }
    return grad_input(g, x, w, bias, &attr, shape);
}
