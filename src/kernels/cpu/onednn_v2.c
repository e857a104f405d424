/* SPDX-License-Identifier: Apache-2.0 */
/* onednn_v2.c: the calls of onednn_api.h for oneDNN 2.6 and later versions of 2. */
#include "kernels/cpu/onednn_api.h"

#include <stdlib.h>

dnnl_status_t
etk_onednn_layout_new(etk_layout *out, int ndim, const dnnl_dims_t dims,
                      dnnl_data_type_t type, const dnnl_dim_t *strides)
{
    dnnl_memory_desc_t *md = malloc(sizeof *md);
    if (!md)
        return dnnl_out_of_memory;
    dnnl_status_t status =
        strides
            ? dnnl_memory_desc_init_by_strides(md, ndim, dims, type, strides)
            : dnnl_memory_desc_init_by_tag(md, ndim, dims, type, dnnl_format_tag_any);
    if (status != dnnl_success) {
        free(md);
        return status;
    }
    *out = md;
    return dnnl_success;
}

void
etk_onednn_layout_free(etk_layout layout)
{
    free((void *)layout);
}

/* 2 has no attribute that asks for the same bits; its kernels for processors give them
 * all the same. */
dnnl_status_t
etk_onednn_attr_new(dnnl_primitive_attr_t *out)
{
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
}

dnnl_status_t
etk_onednn_append_relu(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0);
}

dnnl_status_t
etk_onednn_set_data(dnnl_memory_t m, void *data, dnnl_stream_t stream)
{
    return dnnl_memory_set_data_handle_v2(m, data, stream);
}

dnnl_status_t
etk_onednn_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                  const_dnnl_primitive_attr_t attr, etk_layout a, etk_layout b,
                  etk_layout bias, etk_layout y)
{
    dnnl_matmul_desc_t op;
    dnnl_status_t status = dnnl_matmul_desc_init(&op, a, b, bias, y);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &op, attr, engine, NULL);
}

dnnl_status_t
etk_onednn_conv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                const_dnnl_primitive_attr_t attr, enum etk_conv_pass pass,
                const struct etk_conv *c, const_dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t status;
    if (pass == ETK_CONV_FORWARD)
        status = dnnl_dilated_convolution_forward_desc_init(
            &op, dnnl_forward_training, dnnl_convolution_direct, c->x, c->w, c->bias,
            c->y, c->stride, c->dilate, c->pad_l, c->pad_r);
    else if (pass == ETK_CONV_GRAD_INPUT)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &op, dnnl_convolution_direct, c->x, c->w, c->y, c->stride, c->dilate,
            c->pad_l, c->pad_r);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &op, dnnl_convolution_direct, c->x, c->w, NULL, c->y, c->stride, c->dilate,
            c->pad_l, c->pad_r);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &op, attr, engine, hint);
}
