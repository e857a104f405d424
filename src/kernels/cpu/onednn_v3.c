/* SPDX-License-Identifier: Apache-2.0 */
/* onednn_v3.c: the calls of onednn_api.h for oneDNN 3. */
#include "kernels/cpu/onednn_api.h"

#include <stdbool.h>
#include <string.h>

dnnl_status_t
etk_onednn_layout_new(etk_layout *out, int ndim, const dnnl_dims_t dims,
                      dnnl_data_type_t type, const dnnl_dim_t *strides)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_status_t status =
        strides ? dnnl_memory_desc_create_with_strides(&md, ndim, dims, type, strides)
                : dnnl_memory_desc_create_with_tag(&md, ndim, dims, type,
                                                   dnnl_format_tag_any);
    if (status == dnnl_success)
        *out = md;
    return status;
}

void
etk_onednn_layout_free(etk_layout layout)
{
    dnnl_memory_desc_destroy((dnnl_memory_desc_t)layout);
}

/* The attribute that asks for the same bits is there since 3.4. As of 3.7 no kernel for
 * processors looks at it; later ones may. */
dnnl_status_t
etk_onednn_attr_new(dnnl_primitive_attr_t *out)
{
    dnnl_status_t status = dnnl_primitive_attr_create(out);
#if DNNL_VERSION_MAJOR > 3 || DNNL_VERSION_MINOR >= 4
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_deterministic(*out, 1);
#endif
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
}

dnnl_status_t
etk_onednn_append_relu(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
}

dnnl_status_t
etk_onednn_set_data(dnnl_memory_t m, void *data, dnnl_stream_t stream)
{
    (void)stream;
    return dnnl_memory_set_data_handle(m, data);
}

dnnl_status_t
etk_onednn_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                  const_dnnl_primitive_attr_t attr, etk_layout a, etk_layout b,
                  etk_layout bias, etk_layout y)
{
    return dnnl_matmul_primitive_desc_create(out, engine, a, b, bias, y, attr);
}

static bool
is_of(const_dnnl_primitive_desc_t pd, const char *family)
{
    const char *text = "";
    (void)dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &text);
    return strncmp(text, family, strlen(family)) == 0;
}

static bool
is_f32(etk_layout layout)
{
    dnnl_data_type_t type = dnnl_data_type_undef;
    (void)dnnl_memory_desc_query(layout, dnnl_query_data_type, &type);
    return type == dnnl_f32;
}

static dnnl_status_t
grad_input(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
           const_dnnl_primitive_attr_t attr, const struct etk_conv *c,
           const_dnnl_primitive_desc_t hint)
{
    return dnnl_convolution_backward_data_primitive_desc_create(
        out, engine, dnnl_convolution_direct, c->x, c->w, c->y, c->stride, c->dilate,
        c->pad_l, c->pad_r, hint, attr);
}

/* 3 prefers kernels on small matrix products ("brg...") for the gradient of the input,
 * 2 has others ("jit..."), which 3 still has. In f32 on AVX-512 the new ones gain 4% on
 * 16 to 64 channels of 8 x 8 to 32 x 32, and lose 2 times on 6 channels, up to 2.5
 * times with a stride, and 5 times on 512 channels of 3 x 3 (3.7.2, one thread). */
static dnnl_status_t
fastest_grad_input(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                   const_dnnl_primitive_attr_t attr, const struct etk_conv *c,
                   const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t other = NULL;
    dnnl_status_t status = grad_input(out, engine, attr, c, hint);
    if (status != dnnl_success || !is_f32(c->x) || !is_of(*out, "brg") ||
        grad_input(&other, engine, attr, c, hint) != dnnl_success)
        return status;
    while (!is_of(other, "jit"))
        if (dnnl_primitive_desc_next_impl(other) != dnnl_success) {
            dnnl_primitive_desc_destroy(other);
            return dnnl_success;
        }
    dnnl_primitive_desc_destroy(*out);
    *out = other;
    return dnnl_success;
}

dnnl_status_t
etk_onednn_conv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                const_dnnl_primitive_attr_t attr, enum etk_conv_pass pass,
                const struct etk_conv *c, const_dnnl_primitive_desc_t hint)
{
    if (pass == ETK_CONV_FORWARD)
        return dnnl_convolution_forward_primitive_desc_create(
            out, engine, dnnl_forward_training, dnnl_convolution_direct, c->x, c->w,
            c->bias, c->y, c->stride, c->dilate, c->pad_l, c->pad_r, attr);
    if (pass == ETK_CONV_GRAD_INPUT)
        return fastest_grad_input(out, engine, attr, c, hint);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        out, engine, dnnl_convolution_direct, c->x, c->w, NULL, c->y, c->stride,
        c->dilate, c->pad_l, c->pad_r, hint, attr);
}
