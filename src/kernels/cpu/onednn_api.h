/* SPDX-License-Identifier: Apache-2.0 */
/* onednn_api.h: the calls in which oneDNN 2 and 3 differ, in one form for both.
 *
 * oneDNN 3 has no operation descriptors, and its memory descriptors are handles; in 2
 * they are structs. onednn_v2.c or onednn_v3.c implements what is declared here, and
 * configure chooses which of the two is built. All other calls that the adapters make
 * are the same in both. Statuses are oneDNN's own. */
#ifndef ETUDE_KERNELS_CPU_ONEDNN_API_H
#define ETUDE_KERNELS_CPU_ONEDNN_API_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

/* The shape, data type and strides of an array, read-only. oneDNN's functions take it
 * as it is. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t etk_layout;
#else
typedef const dnnl_memory_desc_t *etk_layout;
#endif

/* STRIDES in elements; NULL leaves the layout for oneDNN to choose. The caller frees
 * *OUT. */
dnnl_status_t etk_onednn_layout_new(etk_layout *out, int ndim, const dnnl_dims_t dims,
                                    dnnl_data_type_t type, const dnnl_dim_t *strides);
void etk_onednn_layout_free(etk_layout layout);

/* Attributes for every primitive: the scratchpad is ours, and the same input gives the
 * same bits. The caller destroys *OUT. */
dnnl_status_t etk_onednn_attr_new(dnnl_primitive_attr_t *out);

/* y := max(0, y), as the next of the operations OPS that follow a primitive. */
dnnl_status_t etk_onednn_append_relu(dnnl_post_ops_t ops);

/* M's bytes are at DATA from now on. */
dnnl_status_t etk_onednn_set_data(dnnl_memory_t m, void *data, dnnl_stream_t stream);

/* y = A B + bias; BIAS may be NULL. The caller destroys *OUT. */
dnnl_status_t etk_onednn_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                const_dnnl_primitive_attr_t attr, etk_layout a,
                                etk_layout b, etk_layout bias, etk_layout y);

enum etk_conv_pass { ETK_CONV_FORWARD, ETK_CONV_GRAD_INPUT, ETK_CONV_GRAD_WEIGHT };

/* What the three passes of a convolution have in common: x, w and y of a gradient pass
 * are the layouts of the forward pass. */
struct etk_conv {
    etk_layout x, w, y;
    /* Of the forward pass only; NULL: none. */
    etk_layout bias;
    /* What follows it, in this order: y scale[k] + shift[k] + residual, and ReLU. Both
     * or neither of the first two. */
    etk_layout scale, shift, residual;
    bool relu;
    dnnl_dims_t stride, dilate, pad_l, pad_r;
};

/* HINT: a descriptor of the forward pass for the gradients; NULL for the forward pass.
 * The caller destroys *OUT. */
dnnl_status_t etk_onednn_conv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                              const_dnnl_primitive_attr_t attr, enum etk_conv_pass pass,
                              const struct etk_conv *c,
                              const_dnnl_primitive_desc_t hint);

#endif
