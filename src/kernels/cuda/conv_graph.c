/* SPDX-License-Identifier: Apache-2.0 */
/* conv_graph.c: see conv_graph.h. One node; everything is channels-last. */
#include "kernels/cuda/conv_graph.h"

struct etk_conv_pack
etk_conv_pack_of(const struct etk_conv *v)
{
    struct etk_conv_pack p;
    for (int i = 0; i < 2; i++) {
        p.taps[i] = (int)etk_ceil_div(v->taps[i], v->stride[i]);
        p.size[i] = v->y[i] + p.taps[i] - 1;
    }
    int64_t channels = (int64_t)v->stride[0] * v->stride[1] * v->c;
    p.channels = etk_ceil_div(channels, ETK_CONV_PACK) * ETK_CONV_PACK;
    return p;
}

/* The tensor of SHAPE, channels-last, in SLOT. */
static int
add_image(struct etk_dnn_graph *g, cudnnDataType_t dtype, const int64_t shape[4],
          int slot)
{
    int64_t stride[4] = {shape[1] * shape[2] * shape[3], 1, shape[1] * shape[3],
                         shape[1]};
    return etk_dnn_tensor(g, dtype, 4, shape, stride, slot);
}

void
etk_conv_graph(struct etk_dnn_graph *g, const struct etk_conv *v, bool packed,
               bool adds)
{
    static const enum etk_dnn_kind kinds[] = {[ETK_CONV_FORWARD] = ETK_DNN_CONV,
                                              [ETK_CONV_DATA] = ETK_DNN_CONV_DATA,
                                              [ETK_CONV_FILTER] = ETK_DNN_CONV_FILTER};
    int64_t x[4] = {v->n, v->c, v->x[0], v->x[1]},
            y[4] = {v->n, v->k, v->y[0], v->y[1]};
    int64_t w[4] = {v->k, v->c / v->groups, v->taps[0], v->taps[1]};
    struct etk_dnn_node step = {.beta = adds ? 1.f : 0.f};
    for (int i = 0; i < 2; i++) {
        /* The same padding on both sides: the library rounds down as we do. */
        step.pad[i] = step.post_pad[i] = packed ? 0 : v->pad[i];
        step.stride[i] = packed ? 1 : v->stride[i];
        step.dilation[i] = v->dilation[i];
    }
    if (packed) {
        struct etk_conv_pack p = etk_conv_pack_of(v);
        x[1] = w[1] = p.channels;
        for (int i = 0; i < 2; i++) {
            x[2 + i] = p.size[i];
            w[2 + i] = p.taps[i];
        }
    }
    cudnnDataType_t dtype = CUDNN_DATA_FLOAT;
    (void)etk_dnn_dtype(v->dtype, &dtype); /* one of the three that it knows */
    bool forward = v->kind == ETK_CONV_FORWARD, data = v->kind == ETK_CONV_DATA;
    int a = add_image(g, dtype, data ? y : x, 0);
    int b = add_image(g, dtype, forward || data ? w : y, 1);
    int c = add_image(g, dtype, forward ? y : data ? x : w, 2);
    etk_dnn_conv(g, kinds[v->kind], &step, a, b, c);
}
