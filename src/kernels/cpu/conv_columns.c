/* SPDX-License-Identifier: Apache-2.0 */
/* conv_columns.c: the gradient of a convolution's weights as one product over all
 * pixels of all images: where oneDNN has only a slower way.
 *
 *   dw [K, R S C] = dy^T [K, N P Q] columns [N P Q, R S C]
 *
 * A row of columns is what the window at a pixel sees. Rows are copied out of x by
 * strides, or, where windows reach over its edge, out of a copy of x amid zeros: the
 * frame. Convolutions of one group alone. */
#include <string.h>

#include "kernels/cpu/onednn.h"

/* Windows that touch and do not overlap: the patches of a vision transformer, for whose
 * 16 x 16 pixels oneDNN has only a product for each image. */
bool
etk_has_patches(const struct et_call *call)
{
    const struct et_conv2d_attr *a = call->attr;
    const int64_t *x = call->in[0].shape, *y = call->in[1].shape;
    const int64_t *w = call->out[0].shape;
    bool patches = a->groups == 1;
    for (int i = 0; i < 2; i++)
        patches = patches && w[2 + i] > 1 && a->stride[i] == w[2 + i] &&
                  a->pad[i] == 0 && a->dilation[i] == 1 &&
                  x[2 + i] == y[2 + i] * a->stride[i];
    return patches;
}

/* Pixels of the axis I that windows see, from the first to the last. */
static int64_t
reach(const struct et_call *call, int i)
{
    const struct et_conv2d_attr *a = call->attr;
    return (call->in[1].shape[2 + i] - 1) * a->stride[i] +
           (call->out[0].shape[2 + i] - 1) * a->dilation[i] + 1;
}

/* [N,P,Q,R,S,C] of images as X, [N,C,H,W], has them. */
static struct et_desc
windows(const struct et_call *call, const struct et_desc *x)
{
    const struct et_conv2d_attr *a = call->attr;
    const struct et_desc *y = &call->in[1], *w = &call->out[0];
    const int64_t shape[] = {y->shape[0], y->shape[2], y->shape[3],
                             w->shape[2], w->shape[3], x->shape[1]};
    const int64_t stride[] = {x->stride[0],
                              x->stride[2] * a->stride[0],
                              x->stride[3] * a->stride[1],
                              x->stride[2] * a->dilation[0],
                              x->stride[3] * a->dilation[1],
                              x->stride[1]};
    struct et_desc d;
    et_desc_init(&d, x->dtype, 6, shape, ET_ROW_MAJOR);
    memcpy(d.stride, stride, sizeof stride);
    return d;
}

/* The columns, dense as COLUMNS says and with LAYOUT. */
static int
add_columns(struct etk_program *p, const struct et_call *call,
            const struct et_desc *columns, etk_layout layout)
{
    const struct et_conv2d_attr *a = call->attr;
    const struct et_desc *x = &call->in[0];
    const int64_t height = reach(call, 0), width = reach(call, 1);
    struct et_desc frame, seen = *x, view = windows(call, x);
    if (a->pad[0] == 0 && a->pad[1] == 0 && height <= x->shape[2] &&
        width <= x->shape[3])
        return etk_program_input(p, &view, columns, layout, 0);
    et_desc_init(&frame, x->dtype, 4,
                 (int64_t[]){x->shape[0], x->shape[1], height, width},
                 ET_CHANNELS_LAST);
    for (int i = 0; i < 2; i++) { /* steps may leave the last pixels out */
        int64_t room = frame.shape[2 + i] - a->pad[i];
        if (seen.shape[2 + i] > room)
            seen.shape[2 + i] = room > 0 ? room : 0;
    }
    int framed = etk_program_frame(p, &seen, &frame, a->pad, 0);
    view = windows(call, &frame);
    return etk_program_gather(p, &view, framed, columns, layout);
}

et_status
etk_prepare_conv2d_columns(struct et_device_handle *d, const struct et_call *call,
                           struct et_kernel **out, size_t *ws, char *why,
                           size_t why_size)
{
    struct et_desc y, w, columns, left, right, result;
    et_desc_init(&y, call->in[1].dtype, 4, call->in[1].shape, ET_CHANNELS_LAST);
    et_desc_init(&w, call->out[0].dtype, 4, call->out[0].shape, ET_CHANNELS_LAST);
    int64_t n = y.shape[0] * y.shape[2] * y.shape[3];
    int64_t k = w.shape[0], m = w.shape[1] * w.shape[2] * w.shape[3];
    const struct et_desc seen = windows(call, &call->in[0]);
    et_desc_init(&columns, seen.dtype, 6, seen.shape, ET_ROW_MAJOR);
    et_desc_init(&left, y.dtype, 2, (int64_t[]){k, n}, ET_ROW_MAJOR);
    left.stride[0] = 1;
    left.stride[1] = k;
    et_desc_init(&right, columns.dtype, 2, (int64_t[]){n, m}, ET_ROW_MAJOR);
    et_desc_init(&result, w.dtype, 2, (int64_t[]){k, m}, ET_ROW_MAJOR);

    struct etk_program *p = etk_program_new(d);
    etk_layout left_layout = etk_program_layout(p, &left),
               right_layout = etk_program_layout(p, &right),
               result_layout = etk_program_layout(p, &result);
    const_dnnl_primitive_desc_t pd =
        etk_program_matmul(p, left_layout, right_layout, NULL, result_layout);
    etk_program_require(p, pd);
    int mx = add_columns(p, call, &columns, right_layout);
    int my = etk_program_input(p, &call->in[1], &y, left_layout, 1);
    int mw = etk_program_output(p, &call->out[0], &w, result_layout, 2);
    etk_program_add(p, pd,
                    (struct etk_arg[]){
                        {DNNL_ARG_SRC, my},
                        {DNNL_ARG_WEIGHTS, mx},
                        {DNNL_ARG_DST, mw},
                        {0, 0},
                    });
    etk_program_store(p, &call->out[0], &w, mw, 2);
    return etk_program_finish(p, out, ws, why, why_size);
}
