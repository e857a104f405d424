/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: pooling and resizing of images [N,C,H,W] -> [N,C,P,Q], channels-last.
 *
 *   P = (H + 2 pad - dilation (kernel - 1) - 1) / stride + 1, rounded down, or up with
 *   ceil_mode unless the last window would begin in the padding behind the image. */
#include "core/base/need.h"
#include "core/ops/ops.h"

static et_status
need_image(struct et_ctx *cx, const struct et_call *call)
{
    ET_TRY(eti_need_ndim(cx, call, 0, "operand", 4, 4));
    return eti_need_float(cx, call, 0, "operand");
}

/* Every op here keeps N and C and changes H and W. Of no pixel no image can be made. */
static et_status
image_of(struct et_ctx *cx, const struct et_call *call, const int64_t *shape,
         enum et_dtype dtype, struct et_desc *out)
{
    const struct et_desc *x = &call->in[0];
    if (x->shape[2] < 1 || x->shape[3] < 1)
        return ETI_FAIL(cx, call, ET_ESHAPE, "planes of %lldx%lld pixels",
                        (long long)x->shape[2], (long long)x->shape[3]);
    if (shape[0] != x->shape[0] || shape[1] != x->shape[1] || shape[2] < 1 ||
        shape[3] < 1)
        return ETI_FAIL(
            cx, call, ET_ESHAPE, "[%lld,%lld,%lld,%lld] from %lldx%lld planes",
            (long long)shape[0], (long long)shape[1], (long long)shape[2],
            (long long)shape[3], (long long)x->shape[0], (long long)x->shape[1]);
    et_desc_init(out, dtype, 4, shape, ET_CHANNELS_LAST);
    return ET_OK;
}

int64_t
et_pooled_size(const struct et_pool2d_attr *o, int axis, int64_t size)
{
    if (!o)
        return 0;
    const int64_t s = o->stride[axis], p = o->pad[axis];
    const int64_t reach =
        size + 2 * p - o->dilation[axis] * ((int64_t)o->kernel[axis] - 1) - 1;
    if (reach < 0)
        return 0;
    const int64_t n = (reach + (o->ceil_mode ? s - 1 : 0)) / s + 1;
    return (n - 1) * s >= size + p ? n - 1 : n;
}

/* The shape of the pooled image of X. */
static et_status
pooled_shape(struct et_ctx *cx, const struct et_call *call, const int64_t *x,
             int64_t *y)
{
    const struct et_pool2d_attr *o = call->attr;
    memcpy(y, x, 2 * sizeof *y);
    for (int i = 0; i < 2; i++) {
        int64_t k = o->kernel[i], s = o->stride[i], p = o->pad[i], d = o->dilation[i];
        if (k < 1 || s < 1 || d < 1 || p < 0 || 2 * p > k)
            return ETI_FAIL(
                cx, call, ET_EINVAL,
                "kernel %lld, stride %lld, padding %lld (at most half the kernel), "
                "dilation %lld",
                (long long)k, (long long)s, (long long)p, (long long)d);
        y[2 + i] = et_pooled_size(o, i, x[2 + i]);
        if (y[2 + i] < 1)
            return ETI_FAIL(cx, call, ET_ESHAPE,
                            "a %dx%d window is larger than the padded %lldx%lld image",
                            o->kernel[0], o->kernel[1], (long long)x[2],
                            (long long)x[3]);
    }
    return ET_OK;
}

ETI_INFER(max_pool2d_infer)
{
    int64_t y[4];
    ET_TRY(need_image(cx, call));
    ET_TRY(pooled_shape(cx, call, call->in[0].shape, y));
    ET_TRY(image_of(cx, call, y, call->in[0].dtype, &out[0]));
    return image_of(cx, call, y, ET_I32, &out[1]);
}

ETI_INFER(avg_pool2d_infer)
{
    const struct et_pool2d_attr *o = call->attr;
    int64_t y[4];
    ET_TRY(need_image(cx, call));
    ET_TRY(pooled_shape(cx, call, call->in[0].shape, y));
    if (o->dilation[0] != 1 || o->dilation[1] != 1)
        return ETI_FAIL(cx, call, ET_ENOTSUP,
                        "dilation %dx%d; averages take neighbours only", o->dilation[0],
                        o->dilation[1]);
    return image_of(cx, call, y, call->in[0].dtype, out);
}

ETI_INFER(pool_grad_infer)
{
    const struct et_pool2d_attr *o = call->attr;
    int64_t y[4];
    ET_TRY(need_image(cx, call));
    ET_TRY(pooled_shape(cx, call, o->shape, y));
    ET_TRY(eti_need_shape(cx, call, 0, "dy", 4, y));
    if (call->op == ET_OP_max_pool2d_grad) {
        ET_TRY(eti_need_dtype(cx, call, 1, "index", ET_I32));
        ET_TRY(eti_need_shape(cx, call, 1, "index", 4, y));
    }
    return image_of(cx, call, o->shape, call->in[0].dtype, out);
}

/* The attribute gives the result: adaptive pooling forward and back. */
ETI_INFER(adaptive_infer)
{
    const struct et_pool2d_attr *o = call->attr;
    ET_TRY(need_image(cx, call));
    return image_of(cx, call, o->shape, call->in[0].dtype, out);
}

static int64_t
pool_flops(const struct et_call *call)
{
    const struct et_pool2d_attr *o = call->attr;
    return et_desc_count(&call->out[0]) * o->kernel[0] * o->kernel[1];
}

/* O with SHAPE, every byte defined; 0 for the stride means the kernel, for dilation
 * 1. */
static struct et_pool2d_attr
attr_with(const struct et_pool2d_attr *o, const int64_t *shape)
{
    struct et_pool2d_attr attr;
    memset(&attr, 0, sizeof attr);
    for (int i = 0; i < 2; i++) {
        attr.kernel[i] = o->kernel[i];
        attr.stride[i] = o->stride[i] ? o->stride[i] : o->kernel[i];
        attr.pad[i] = o->pad[i];
        attr.dilation[i] = o->dilation[i] ? o->dilation[i] : 1;
    }
    attr.ceil_mode = o->ceil_mode;
    attr.count_include_pad = o->count_include_pad;
    if (shape)
        memcpy(attr.shape, shape, sizeof attr.shape);
    return attr;
}

ETI_GRADIENT(max_pool2d_gradient)
{
    struct et_pool2d_attr attr = attr_with(node->attr, node->in[0]->desc.shape);
    struct et_tensor *d = want[0] ? eti_image(g, dy[0]) : NULL;
    if (d)
        dx[0] = ETI_APPLY_ATTR(g, max_pool2d_grad, &attr, NULL, d, &node->out[1]);
    return et_graph_status(g);
}

ETI_GRADIENT(avg_pool2d_gradient)
{
    struct et_pool2d_attr attr = attr_with(node->attr, node->in[0]->desc.shape);
    struct et_tensor *d = want[0] ? eti_image(g, dy[0]) : NULL;
    if (d)
        dx[0] = ETI_APPLY_ATTR(g, avg_pool2d_grad, &attr, NULL, d);
    return et_graph_status(g);
}

ETI_GRADIENT(adaptive_avg_pool2d_gradient)
{
    struct et_pool2d_attr attr;
    struct et_tensor *d = want[0] ? eti_image(g, dy[0]) : NULL;
    memset(&attr, 0, sizeof attr);
    memcpy(attr.shape, node->in[0]->desc.shape, sizeof attr.shape);
    if (d)
        dx[0] = ETI_APPLY_ATTR(g, adaptive_avg_pool2d_grad, &attr, NULL, d);
    return et_graph_status(g);
}

#define POOL_OP(op, words, operands, results, rule, backward, count)                   \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = operands,                                                            \
        .max_in = operands,                                                            \
        .n_out = results,                                                              \
        .attr_size = sizeof(struct et_pool2d_attr),                                    \
        .infer = rule,                                                                 \
        .gradient = backward,                                                          \
        .flops = count,                                                                \
    };
POOL_OP(max_pool2d, "the largest of each window, and where it was", 1, 2,
        max_pool2d_infer, max_pool2d_gradient, pool_flops)
POOL_OP(max_pool2d_grad, "dy where the largest was", 2, 1, pool_grad_infer, NULL,
        eti_flops_operand)
POOL_OP(avg_pool2d, "the mean of each window", 1, 1, avg_pool2d_infer,
        avg_pool2d_gradient, pool_flops)
POOL_OP(avg_pool2d_grad, "dy spread over each window", 1, 1, pool_grad_infer, NULL,
        eti_flops_operand)
POOL_OP(adaptive_avg_pool2d, "means of windows that divide the image evenly", 1, 1,
        adaptive_infer, adaptive_avg_pool2d_gradient, eti_flops_operand)
POOL_OP(adaptive_avg_pool2d_grad, "dy spread over those windows", 1, 1, adaptive_infer,
        NULL, NULL)

struct et_tensor *
et_max_pool2d(struct et_graph *g, struct et_tensor *x, const struct et_pool2d_attr *o)
{
    ETI_NEED_IN(g, g, o);
    struct et_pool2d_attr attr = attr_with(o, NULL);
    x = eti_image(g, x);
    return ETI_APPLY_ATTR(g, max_pool2d, &attr, NULL, x);
}

struct et_tensor *
et_avg_pool2d(struct et_graph *g, struct et_tensor *x, const struct et_pool2d_attr *o)
{
    ETI_NEED_IN(g, g, o);
    struct et_pool2d_attr attr = attr_with(o, NULL);
    x = eti_image(g, x);
    return ETI_APPLY_ATTR(g, avg_pool2d, &attr, NULL, x);
}

struct et_tensor *
et_adaptive_avg_pool2d(struct et_graph *g, struct et_tensor *x, int64_t height,
                       int64_t width)
{
    ETI_NEED_IN(g, g);
    struct et_pool2d_attr attr;
    x = eti_image(g, x);
    if (!x)
        return ETI_MISSING(g, x);
    memset(&attr, 0, sizeof attr);
    memcpy(attr.shape, (int64_t[]){x->desc.shape[0], x->desc.shape[1], height, width},
           sizeof attr.shape);
    return ETI_APPLY_ATTR(g, adaptive_avg_pool2d, &attr, NULL, x);
}

/* ---- resize ---- */

ETI_INFER(resize2d_infer)
{
    const struct et_resize_attr *o = call->attr;
    ET_TRY(need_image(cx, call));
    if (o->mode != ET_RESIZE_NEAREST && o->mode != ET_RESIZE_BILINEAR)
        return ETI_FAIL(cx, call, ET_EINVAL, "there is no mode %d", o->mode);
    return image_of(cx, call, o->shape, call->in[0].dtype, out);
}

/* Four products and sums a pixel, of y and of dy alike. */
static int64_t
resize2d_flops(const struct et_call *call)
{
    const struct et_resize_attr *o = call->attr;
    const struct et_desc *y = call->op == ET_OP_resize2d ? &call->out[0] : &call->in[0];
    return o->mode == ET_RESIZE_BILINEAR ? 8 * et_desc_count(y) : 0;
}

ETI_GRADIENT(resize2d_gradient)
{
    struct et_resize_attr attr = *(const struct et_resize_attr *)node->attr;
    struct et_tensor *d = want[0] ? eti_image(g, dy[0]) : NULL;
    memcpy(attr.shape, node->in[0]->desc.shape, sizeof attr.shape);
    if (d)
        dx[0] = ETI_APPLY_ATTR(g, resize2d_grad, &attr, NULL, d);
    return et_graph_status(g);
}

#define RESIZE_OP(op, words, backward)                                                 \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = 1,                                                                   \
        .max_in = 1,                                                                   \
        .n_out = 1,                                                                    \
        .attr_size = sizeof(struct et_resize_attr),                                    \
        .infer = resize2d_infer,                                                       \
        .gradient = backward,                                                          \
        .flops = resize2d_flops,                                                       \
    };
RESIZE_OP(resize2d, "images of another size, nearest or bilinear", resize2d_gradient)
RESIZE_OP(resize2d_grad, "dy back at the pixels it was made of", NULL)

static struct et_tensor *
resize(struct et_graph *g, struct et_tensor *x, enum et_resize_mode mode,
       int64_t height, int64_t width, const double step[2])
{
    struct et_resize_attr attr = {.mode = (int32_t)mode, .scale = {step[0], step[1]}};
    const int64_t *n = x->desc.shape;
    memcpy(attr.shape, (int64_t[]){n[0], n[1], height, width}, sizeof attr.shape);
    return ETI_APPLY_ATTR(g, resize2d, &attr, NULL, x);
}

struct et_tensor *
et_resize2d(struct et_graph *g, struct et_tensor *x, enum et_resize_mode mode,
            int64_t height, int64_t width)
{
    ETI_NEED_IN(g, g);
    x = eti_image(g, x);
    if (!x)
        return ETI_MISSING(g, x);
    const int64_t *n = x->desc.shape;
    const double step[] = {height > 0 ? (double)n[2] / (double)height : 0,
                           width > 0 ? (double)n[3] / (double)width : 0};
    return resize(g, x, mode, height, width, step);
}

struct et_tensor *
et_resize2d_by(struct et_graph *g, struct et_tensor *x, enum et_resize_mode mode,
               int64_t height, int64_t width, double step)
{
    ETI_NEED_IN(g, g);
    if (!x)
        return ETI_MISSING(g, x);
    x = eti_image(g, x);
    return x ? resize(g, x, mode, height, width, (const double[]){step, step}) : NULL;
}
