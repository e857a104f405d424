/* conv.c: convolution and its two gradients by oneDNN.
 *
 *   y[n,k,p,q] = b[k] + sum_crs x[n,c,p*sh+r*dh-ph,q*sw+s*dw-pw] w[k,c,r,s]
 *
 * Activations stay channels-last; anything else falls off a cliff of 4x to 4000x
 * (ENGINE.md section 1). Weights are kept [K,C/g,R,S] channels-last by the engine and
 * brought into the layout oneDNN asks for inside run: 0.7 ms of a ResNet-20 step.
 * A transposed convolution is the gradient with respect to the input, plus its bias. */
#include "kernels/cpu/onednn.h"

#include <string.h>

/* One convolution: descriptions in the layouts oneDNN is given. */
struct conv {
    struct et_desc x, w, y; /* channels-last */
    struct et_desc b;       /* dense; dtype ET_NONE: no bias */
    dnnl_memory_desc_t x_md, w_md, w_any, y_md, b_md;
    dnnl_dims_t stride, dilate, pad_l, pad_r;
};

static dnnl_memory_desc_t
weight_desc(const struct et_desc *w, int64_t groups, bool any)
{
    dnnl_memory_desc_t md;
    int g = groups > 1;
    dnnl_dims_t dims, strides;
    dims[0] = groups;
    strides[0] = w->shape[0] / groups * w->stride[0];
    for (int i = 0; i < 4; i++) {
        dims[g + i] = w->shape[i];
        strides[g + i] = w->stride[i];
    }
    dims[g] = w->shape[0] / groups;
    if (any)
        dnnl_memory_desc_init_by_tag(&md, 4 + g, dims, etk_data_type(w->dtype),
                                     dnnl_format_tag_any);
    else
        dnnl_memory_desc_init_by_strides(&md, 4 + g, dims, etk_data_type(w->dtype),
                                         strides);
    return md;
}

static et_status
conv_init(struct conv *c, const struct et_conv2d_attr *a, const struct et_desc *x,
          const struct et_desc *w, const struct et_desc *y, char *why, size_t why_size)
{
    const struct et_desc *from[] = {x, w, y};
    struct et_desc *to[] = {&c->x, &c->w, &c->y};
    for (int i = 0; i < 3; i++) {
        if (etk_data_type(from[i]->dtype) == dnnl_data_type_undef)
            return etk_refuse(why, why_size, "oneDNN does not convolve %s on CPUs",
                              et_dtype_name(from[i]->dtype));
        et_desc_init(to[i], from[i]->dtype, 4, from[i]->shape, ET_CHANNELS_LAST);
    }
    c->x_md = etk_memory_desc(&c->x);
    c->y_md = etk_memory_desc(&c->y);
    c->w_md = weight_desc(&c->w, a->groups, false);
    c->w_any = weight_desc(&c->w, a->groups, true);
    for (int i = 0; i < 2; i++) {
        int64_t reach = (w->shape[2 + i] - 1) * a->dilation[i] + 1;
        c->stride[i] = a->stride[i];
        c->dilate[i] = a->dilation[i] - 1;
        c->pad_l[i] = a->pad[i];
        /* What the last window needs; rows the stride leaves over make it less. */
        c->pad_r[i] =
            (y->shape[2 + i] - 1) * a->stride[i] + reach - x->shape[2 + i] - a->pad[i];
    }
    return ET_OK;
}

/* The bias is the third operand of a convolution and of a transposed one. */
static void
conv_bias(struct conv *c, const struct et_call *call)
{
    memset(&c->b, 0, sizeof c->b);
    if (call->n_in < 3 || call->in[2].dtype == ET_NONE)
        return;
    et_desc_init(&c->b, call->in[2].dtype, 1, call->in[2].shape, ET_ROW_MAJOR);
    c->b_md = etk_memory_desc(&c->b);
}

static int
bias_memory(struct etk_program *p, const struct conv *c, const struct et_call *call)
{
    return etk_program_input(p, &call->in[2], &c->b, &c->b_md, 2);
}

static dnnl_primitive_desc_t
forward_desc(struct et_device_handle *d, const struct conv *c, bool biased)
{
    dnnl_convolution_desc_t op;
    if (dnnl_dilated_convolution_forward_desc_init(
            &op, dnnl_forward_training, dnnl_convolution_direct, &c->x_md, &c->w_any,
            biased ? &c->b_md : NULL, &c->y_md, c->stride, c->dilate, c->pad_l,
            c->pad_r) != dnnl_success)
        return NULL;
    return etk_primitive_desc(d, &op, NULL);
}

/* The gradient of the input, or of the weights. */
static dnnl_primitive_desc_t
backward_desc(struct et_device_handle *d, const struct conv *c, bool weights)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t status =
        weights ? dnnl_dilated_convolution_backward_weights_desc_init(
                      &op, dnnl_convolution_direct, &c->x_md, &c->w_any, NULL, &c->y_md,
                      c->stride, c->dilate, c->pad_l, c->pad_r)
                : dnnl_dilated_convolution_backward_data_desc_init(
                      &op, dnnl_convolution_direct, &c->x_md, &c->w_any, &c->y_md,
                      c->stride, c->dilate, c->pad_l, c->pad_r);
    dnnl_primitive_desc_t hint = forward_desc(d, c, false), pd = NULL;
    if (hint && status == dnnl_success)
        pd = etk_primitive_desc(d, &op, hint);
    dnnl_primitive_desc_destroy(hint);
    return pd;
}

/* The weights, ptr[1], in the layout PD asks for. */
static int
best_weights(struct etk_program *p, const struct conv *c, const struct et_desc *w,
             const_dnnl_primitive_desc_t pd)
{
    dnnl_memory_desc_t best = etk_primitive_md(pd, dnnl_query_weights_md);
    return etk_program_reorder(p, etk_program_input(p, w, &c->w, &c->w_md, 1), &c->w_md,
                               &best);
}

et_status
etk_prepare_conv2d(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_desc *x = &call->in[0], *w = &call->in[1], *y = &call->out[0];
    struct conv c;
    ET_TRY(conv_init(&c, call->attr, x, w, y, why, why_size));
    conv_bias(&c, call);
    bool biased = c.b.dtype != ET_NONE;

    struct etk_program *p = etk_program_new(d);
    dnnl_primitive_desc_t pd = forward_desc(d, &c, biased);
    etk_program_require(p, pd);
    int my = etk_program_output(p, y, &c.y, &c.y_md, call->n_in);
    struct etk_arg args[] = {
        {DNNL_ARG_SRC, etk_program_input(p, x, &c.x, &c.x_md, 0)},
        {DNNL_ARG_WEIGHTS, best_weights(p, &c, w, pd)},
        {DNNL_ARG_DST, my},
        {biased ? DNNL_ARG_BIAS : 0, biased ? bias_memory(p, &c, call) : 0},
        {0, 0},
    };
    etk_program_add(p, pd, args);
    etk_program_store(p, y, &c.y, my, call->n_in);
    return etk_program_finish(p, out, ws, why, why_size);
}

et_status
etk_prepare_conv2d_grad_input(struct et_device_handle *d, const struct et_call *call,
                              struct et_kernel **out, size_t *ws, char *why,
                              size_t why_size)
{
    const struct et_desc *dy = &call->in[0], *w = &call->in[1], *dx = &call->out[0];
    struct conv c;
    ET_TRY(conv_init(&c, call->attr, dx, w, dy, why, why_size));
    conv_bias(&c, call);
    if (c.b.dtype != ET_NONE && (dx->dtype != ET_F32 || c.b.dtype != ET_F32))
        return etk_refuse(why, why_size,
                          "a transposed convolution with bias must be f32");

    struct etk_program *p = etk_program_new(d);
    dnnl_primitive_desc_t pd = backward_desc(d, &c, false);
    etk_program_require(p, pd);
    int mx = etk_program_output(p, dx, &c.x, &c.x_md, call->n_in);
    struct etk_arg args[] = {
        {DNNL_ARG_DIFF_DST, etk_program_input(p, dy, &c.y, &c.y_md, 0)},
        {DNNL_ARG_WEIGHTS, best_weights(p, &c, w, pd)},
        {DNNL_ARG_DIFF_SRC, mx},
        {0, 0},
    };
    etk_program_add(p, pd, args);
    if (c.b.dtype != ET_NONE)
        etk_program_bias(p, mx, bias_memory(p, &c, call),
                         dx->shape[0] * dx->shape[2] * dx->shape[3], dx->shape[1]);
    etk_program_store(p, dx, &c.x, mx, call->n_in);
    return etk_program_finish(p, out, ws, why, why_size);
}

/* Windows that touch and do not overlap: the patches of a vision transformer. */
static bool
is_patches(const struct et_conv2d_attr *a, const struct conv *c)
{
    bool patches = a->groups == 1;
    for (int i = 0; i < 2; i++)
        patches = patches && c->w.shape[2 + i] > 1 &&
                  a->stride[i] == c->w.shape[2 + i] && a->pad[i] == 0 &&
                  a->dilation[i] == 1 &&
                  c->x.shape[2 + i] == c->y.shape[2 + i] * a->stride[i];
    return patches;
}

/* oneDNN has only im2col for the weights of 16 x 16 patches. Their columns are a plain
 * transpose of x, [N,P,Q] by [R,S,C], and dw [K, R S C] = dy^T columns, one product. */
static et_status
prepare_patch_weights(struct et_device_handle *d, const struct et_call *call,
                      const struct conv *c, struct et_kernel **out, size_t *ws,
                      char *why, size_t why_size)
{
    const struct et_desc *x = &call->in[0], *w = &c->w, *y = &c->y;
    int64_t n = y->shape[0] * y->shape[2] * y->shape[3];
    int64_t m = et_desc_count(w) / w->shape[0], k = w->shape[0];
    struct et_desc columns, patches, left, right, result;
    et_desc_init(&columns, x->dtype, 6,
                 (int64_t[]){y->shape[0], y->shape[2], y->shape[3], w->shape[2],
                             w->shape[3], x->shape[1]},
                 ET_ROW_MAJOR);
    patches = columns;
    int64_t stride[] = {x->stride[0],
                        x->stride[2] * w->shape[2],
                        x->stride[3] * w->shape[3],
                        x->stride[2],
                        x->stride[3],
                        x->stride[1]};
    for (int i = 0; i < 6; i++)
        patches.stride[i] = stride[i];
    et_desc_init(&left, y->dtype, 2, (int64_t[]){k, n}, ET_ROW_MAJOR);
    left.stride[0] = 1;
    left.stride[1] = k;
    et_desc_init(&right, x->dtype, 2, (int64_t[]){n, m}, ET_ROW_MAJOR);
    et_desc_init(&result, w->dtype, 2, (int64_t[]){k, m}, ET_ROW_MAJOR);

    dnnl_memory_desc_t left_md = etk_memory_desc(&left),
                       right_md = etk_memory_desc(&right),
                       result_md = etk_memory_desc(&result);
    dnnl_matmul_desc_t op;
    dnnl_primitive_desc_t pd = NULL;
    if (dnnl_matmul_desc_init(&op, &left_md, &right_md, NULL, &result_md) ==
        dnnl_success)
        pd = etk_primitive_desc(d, &op, NULL);
    struct etk_program *p = etk_program_new(d);
    int mx = etk_program_input(p, &patches, &columns, &right_md, 0);
    int my = etk_program_input(p, &call->in[1], y, &left_md, 1);
    int mw = etk_program_output(p, &call->out[0], w, &result_md, 2);
    etk_program_add(p, pd,
                    (struct etk_arg[]){
                        {DNNL_ARG_SRC, my},
                        {DNNL_ARG_WEIGHTS, mx},
                        {DNNL_ARG_DST, mw},
                        {0, 0},
                    });
    etk_program_store(p, &call->out[0], w, mw, 2);
    return etk_program_finish(p, out, ws, why, why_size);
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
    struct conv c;
    ET_TRY(conv_init(&c, call->attr, x, dw, dy, why, why_size));
    if (is_patches(call->attr, &c) && et_desc_count(dy) > 0)
        return prepare_patch_weights(d, call, &c, out, ws, why, why_size);

    struct etk_program *p = etk_program_new(d);
    int mw = etk_program_output(p, dw, &c.w, &c.w_md, 2);
    if (et_desc_count(dy) == 0) { /* a sum over nothing */
        etk_program_zero(p, mw, et_desc_bytes(&c.w));
        etk_program_store(p, dw, &c.w, mw, 2);
        return etk_program_finish(p, out, ws, why, why_size);
    }
    dnnl_primitive_desc_t pd = backward_desc(d, &c, true);
    dnnl_memory_desc_t best = etk_primitive_md(pd, dnnl_query_diff_weights_md);
    etk_program_require(p, pd);
    bool direct = dnnl_memory_desc_equal(&best, &c.w_md);
    int made = direct ? mw : etk_program_memory(p, &best, ETK_WORKSPACE);
    struct etk_arg args[] = {
        {DNNL_ARG_SRC, etk_program_input(p, x, &c.x, &c.x_md, 0)},
        {DNNL_ARG_DIFF_DST, etk_program_input(p, dy, &c.y, &c.y_md, 1)},
        {DNNL_ARG_DIFF_WEIGHTS, made},
        {0, 0},
    };
    etk_program_add(p, pd, args);
    if (!direct)
        etk_program_reorder_into(p, made, &best, mw, &c.w_md);
    etk_program_store(p, dw, &c.w, mw, 2);
    return etk_program_finish(p, out, ws, why, why_size);
}
