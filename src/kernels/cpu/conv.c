/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: convolution and its two gradients by oneDNN.
 *
 *   y[n,k,p,q] = b[k] + sum_crs x[n,c,p*sh+r*dh-ph,q*sw+s*dw-pw] w[k,c,r,s]
 *
 * Activations stay channels-last; anything else falls off a cliff of 4x to 4000x
 * (ENGINE.md section 1). Weights are kept [K,C/g,R,S] channels-last by the engine and
 * brought into the layout oneDNN asks for inside run: 0.7 ms of a ResNet-20 step.
 * A transposed convolution is the gradient with respect to the input, plus its bias.
 * Forward, 3 x 3 filters in steps of one pixel are left to loops_winograd.c, and some
 * gradients of the weights to conv_columns.c. */
#include "kernels/cpu/onednn.h"

#include <string.h>

/* One convolution: descriptions in the layouts oneDNN is given. */
struct conv {
    struct et_desc x, w, y; /* channels-last */
    struct et_desc b;       /* dense; dtype ET_NONE: no bias */
    etk_layout w_given;     /* of w as it lies; in at, oneDNN chooses */
    struct etk_conv at;
};

/* W [K,C/g,R,S] as oneDNN has it: [g,K/g,C/g,R,S] where there are groups. */
static struct et_desc
weight_desc(const struct et_desc *w, int64_t groups)
{
    struct et_desc v = *w;
    if (groups == 1)
        return v;
    v.ndim = 5;
    v.shape[0] = groups;
    v.stride[0] = w->shape[0] / groups * w->stride[0];
    for (int i = 0; i < 4; i++) {
        v.shape[1 + i] = w->shape[i];
        v.stride[1 + i] = w->stride[i];
    }
    v.shape[1] = w->shape[0] / groups;
    return v;
}

static et_status
conv_init(const struct et_device_handle *d, struct conv *c,
          const struct et_conv2d_attr *a, const struct et_desc *x,
          const struct et_desc *w, const struct et_desc *y, char *why, size_t why_size)
{
    const struct et_desc *from[] = {x, w, y};
    struct et_desc *to[] = {&c->x, &c->w, &c->y};
    memset(c, 0, sizeof *c);
    for (int i = 0; i < 3; i++) {
        if (etk_data_type(d, from[i]->dtype) == dnnl_data_type_undef)
            return etk_refuse(why, why_size, "oneDNN does not convolve %s on CPUs",
                              et_dtype_name(from[i]->dtype));
        et_desc_init(to[i], from[i]->dtype, 4, from[i]->shape, ET_CHANNELS_LAST);
    }
    for (int i = 0; i < 2; i++) {
        int64_t reach = (w->shape[2 + i] - 1) * a->dilation[i] + 1;
        c->at.stride[i] = a->stride[i];
        c->at.dilate[i] = a->dilation[i] - 1;
        c->at.pad_l[i] = a->pad[i];
        /* What the last window needs; rows the stride leaves over make it less. */
        c->at.pad_r[i] =
            (y->shape[2 + i] - 1) * a->stride[i] + reach - x->shape[2 + i] - a->pad[i];
    }
    return ET_OK;
}

/* A program with the layouts of C, whose weights are of so many groups. */
static struct etk_program *
begin(struct et_device_handle *d, struct conv *c, int64_t groups)
{
    struct etk_program *p = etk_program_new(d);
    struct et_desc w = weight_desc(&c->w, groups);
    c->at.x = etk_program_layout(p, &c->x);
    c->at.y = etk_program_layout(p, &c->y);
    c->at.w = etk_program_layout_any(p, &w);
    c->w_given = etk_program_layout(p, &w);
    return p;
}

/* The bias is the third operand of a convolution and of a transposed one. */
static void
conv_bias(struct conv *c, const struct et_call *call)
{
    if (call->n_in < 3 || call->in[2].dtype == ET_NONE)
        return;
    et_desc_init(&c->b, call->in[2].dtype, 1, call->in[2].shape, ET_ROW_MAJOR);
}

/* The gradient of the input, or of the weights. */
static const_dnnl_primitive_desc_t
gradient_desc(struct etk_program *p, const struct conv *c, enum etk_conv_pass pass)
{
    const_dnnl_primitive_desc_t hint =
        etk_program_conv(p, ETK_CONV_FORWARD, &c->at, NULL);
    return hint ? etk_program_conv(p, pass, &c->at, hint) : NULL;
}

/* The weights, ptr[1], in the layout PD asks for. */
static int
best_weights(struct etk_program *p, const struct conv *c, const struct et_desc *w,
             const_dnnl_primitive_desc_t pd)
{
    int given = etk_program_input(p, w, &c->w, c->w_given, 1);
    return etk_program_reorder(p, given, c->w_given,
                               etk_desc_layout(pd, dnnl_query_weights_md));
}

/* The operands of conv2d_fused that follow the filters. */
enum { SCALE = 2, SHIFT, RESIDUAL };

/* A number for each channel, as images of one pixel. */
static etk_layout
channel_layout(struct etk_program *p, const struct et_desc *d)
{
    struct et_desc v;
    et_desc_init(&v, d->dtype, 4, (int64_t[]){1, d->shape[0], 1, 1}, ET_CHANNELS_LAST);
    return etk_program_layout(p, &v);
}

/* Adds what follows to C, and its operands to ARG: the numbers of operations are those
 * that onednn.c gives them: in this order, from 0 on. */
static void
follow(struct etk_program *p, struct conv *c, const struct et_call *call, bool relu,
       struct etk_arg arg[3])
{
    const struct et_desc *in = call->in;
    int n = call->n_in > RESIDUAL && in[RESIDUAL].dtype != ET_NONE ? 3 : 2;
    c->at.relu = relu;
    c->at.scale = channel_layout(p, &in[SCALE]);
    c->at.shift = channel_layout(p, &in[SHIFT]);
    c->at.residual = n == 3 ? c->at.y : NULL;
    etk_layout layout[] = {c->at.scale, c->at.shift, c->at.residual};
    for (int i = 0; i < n; i++) {
        struct et_desc dense = c->y;
        if (i < 2)
            et_desc_init(&dense, in[SCALE + i].dtype, 1, in[SCALE + i].shape,
                         ET_ROW_MAJOR);
        arg[i] = (struct etk_arg){
            DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1,
            etk_program_input(p, &in[SCALE + i], &dense, layout[i], SCALE + i)};
    }
}

/* FUSED: NULL, or what follows. */
static et_status
prepare_forward(struct et_device_handle *d, const struct et_call *call,
                const struct et_conv2d_attr *attr,
                const struct et_conv2d_fused_attr *fused, struct et_kernel **out,
                size_t *ws, char *why, size_t why_size)
{
    const struct et_desc *x = &call->in[0], *w = &call->in[1], *y = &call->out[0];
    struct etk_arg after[4] = {{0, 0}};
    et_status own = d->loops->winograd(d, call, out, ws, why, why_size);
    if (own != ET_ENOTSUP)
        return own;
    struct conv c;
    ET_TRY(conv_init(d, &c, attr, x, w, y, why, why_size));
    struct etk_program *p = begin(d, &c, attr->groups);
    if (fused) {
        follow(p, &c, call, fused->relu, after);
    } else {
        conv_bias(&c, call);
        if (c.b.dtype != ET_NONE) {
            c.at.bias = etk_program_layout(p, &c.b);
            after[0] = (struct etk_arg){
                DNNL_ARG_BIAS, etk_program_input(p, &call->in[2], &c.b, c.at.bias, 2)};
        }
    }
    const_dnnl_primitive_desc_t pd = etk_program_conv(p, ETK_CONV_FORWARD, &c.at, NULL);
    etk_program_require(p, pd);
    int my = etk_program_output(p, y, &c.y, c.at.y, call->n_in);
    struct etk_arg args[] = {
        {DNNL_ARG_SRC, etk_program_input(p, x, &c.x, c.at.x, 0)},
        {DNNL_ARG_WEIGHTS, best_weights(p, &c, w, pd)},
        {DNNL_ARG_DST, my},
        after[0],
        after[1],
        after[2],
        {0, 0},
    };
    etk_program_add(p, pd, args);
    etk_program_store(p, y, &c.y, my, call->n_in);
    return etk_program_finish(p, out, ws, why, why_size);
}

et_status
etk_prepare_conv2d(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    return prepare_forward(d, call, call->attr, NULL, out, ws, why, why_size);
}

/* In one kernel, or as the steps that it was fused of where oneDNN has none such. */
et_status
etk_prepare_conv2d_fused(struct et_device_handle *d, const struct et_call *call,
                         struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_conv2d_fused_attr *attr = call->attr;
    if (call->in[0].dtype != ET_F32)
        return etk_refuse(why, why_size, "convolutions are fused in f32 alone");
    et_status status =
        prepare_forward(d, call, &attr->conv, attr, out, ws, why, why_size);
    return status == ET_ENOTSUP
               ? etk_prepare_conv2d_split(d, call, out, ws, why, why_size)
               : status;
}

et_status
etk_prepare_conv2d_grad_input(struct et_device_handle *d, const struct et_call *call,
                              struct et_kernel **out, size_t *ws, char *why,
                              size_t why_size)
{
    const struct et_conv2d_attr *attr = call->attr;
    const struct et_desc *dy = &call->in[0], *w = &call->in[1], *dx = &call->out[0];
    struct conv c;
    ET_TRY(conv_init(d, &c, attr, dx, w, dy, why, why_size));
    conv_bias(&c, call);
    if (c.b.dtype != ET_NONE && (dx->dtype != ET_F32 || c.b.dtype != ET_F32))
        return etk_refuse(why, why_size,
                          "a transposed convolution with bias must be f32");

    struct etk_program *p = begin(d, &c, attr->groups);
    const_dnnl_primitive_desc_t pd = gradient_desc(p, &c, ETK_CONV_GRAD_INPUT);
    etk_program_require(p, pd);
    int mx = etk_program_output(p, dx, &c.x, c.at.x, call->n_in);
    struct etk_arg args[] = {
        {DNNL_ARG_DIFF_DST, etk_program_input(p, dy, &c.y, c.at.y, 0)},
        {DNNL_ARG_WEIGHTS, best_weights(p, &c, w, pd)},
        {DNNL_ARG_DIFF_SRC, mx},
        {0, 0},
    };
    etk_program_add(p, pd, args);
    if (c.b.dtype != ET_NONE) {
        int bias =
            etk_program_input(p, &call->in[2], &c.b, etk_program_layout(p, &c.b), 2);
        etk_program_bias(p, mx, bias, dx->shape[0] * dx->shape[2] * dx->shape[3],
                         dx->shape[1]);
    }
    etk_program_store(p, dx, &c.x, mx, call->n_in);
    return etk_program_finish(p, out, ws, why, why_size);
}

/* Has oneDNN only a product for each image, which reads and writes all of the gradient
 * for a few pixels? Three such filters of 512 x 512 x 3 x 3 were half of the step of a
 * ResNet-18 on images of 28. */
static bool
is_slow_by_image(const_dnnl_primitive_desc_t pd, const struct conv *c)
{
    enum { FEW_PIXELS = 64 };
    return etk_desc_is_of_products(pd) && c->w.shape[1] == c->x.shape[1] &&
           c->y.shape[2] * c->y.shape[3] <= FEW_PIXELS;
}

et_status
etk_prepare_conv2d_grad_weight(struct et_device_handle *d, const struct et_call *call,
                               struct et_kernel **out, size_t *ws, char *why,
                               size_t why_size)
{
    const struct et_desc *x = &call->in[0], *dy = &call->in[1], *dw = &call->out[0];
    et_status own = d->loops->depthwise_weights(d, call, out, ws, why, why_size);
    if (own != ET_ENOTSUP)
        return own;
    const struct et_conv2d_attr *attr = call->attr;
    struct conv c;
    ET_TRY(conv_init(d, &c, attr, x, dw, dy, why, why_size));
    if (etk_has_patches(call) && et_desc_count(dy) > 0)
        return etk_prepare_conv2d_columns(d, call, out, ws, why, why_size);

    struct etk_program *p = begin(d, &c, attr->groups);
    int mw = etk_program_output(p, dw, &c.w, c.w_given, 2);
    if (et_desc_count(dy) == 0) { /* a sum over nothing */
        etk_program_zero(p, mw, et_desc_bytes(&c.w));
        etk_program_store(p, dw, &c.w, mw, 2);
        return etk_program_finish(p, out, ws, why, why_size);
    }
    const_dnnl_primitive_desc_t pd = gradient_desc(p, &c, ETK_CONV_GRAD_WEIGHT);
    if (is_slow_by_image(pd, &c)) {
        etk_program_free(p);
        return etk_prepare_conv2d_columns(d, call, out, ws, why, why_size);
    }
    etk_program_require(p, pd);
    etk_layout best = etk_desc_layout(pd, dnnl_query_diff_weights_md);
    bool direct = pd && dnnl_memory_desc_equal(best, c.w_given);
    int made = direct ? mw : etk_program_memory(p, best, ETK_WORKSPACE);
    struct etk_arg args[] = {
        {DNNL_ARG_SRC, etk_program_input(p, x, &c.x, c.at.x, 0)},
        {DNNL_ARG_DIFF_DST, etk_program_input(p, dy, &c.y, c.at.y, 1)},
        {DNNL_ARG_DIFF_WEIGHTS, made},
        {0, 0},
    };
    etk_program_add(p, pd, args);
    if (!direct)
        etk_program_reorder_into(p, made, best, mw, c.w_given);
    etk_program_store(p, dw, &c.w, mw, 2);
    return etk_program_finish(p, out, ws, why, why_size);
}
