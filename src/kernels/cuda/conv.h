/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h: launchers of convolutions that no library computes.
 *
 *   y[n,k,p,q] = bias[k] + sum_{c,r,s} w[k,c,r,s] x[n, g(k) C/G + c, p S - P + r D, ..]
 *
 * and the same sum seen from x (DATA) and from w (FILTER). All arrays of one call have
 * one dtype: f32, bf16 or f16; sums are in f32. Index 0 of pairs is the height. */
#ifndef ETUDE_KERNELS_CUDA_CONV_H
#define ETUDE_KERNELS_CUDA_CONV_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum etk_conv_kind {
    ETK_CONV_FORWARD, /* (x, w, bias?) -> y */
    ETK_CONV_DATA,    /* (y, w, bias?) -> x: the input's gradient, or transposed */
    ETK_CONV_FILTER,  /* (x, y) -> w: the weights' gradient */
};

/* One convolution; x, w and y are the arrays with these roles, whichever is
 * computed. */
struct etk_conv {
    enum etk_conv_kind kind;
    enum et_dtype dtype;
    int64_t n, c, k, x[2], y[2]; /* images; channels of x and of y; sizes */
    int taps[2], stride[2], pad[2], dilation[2], groups;
    int64_t sx[4], sw[4], sy[4]; /* strides in elements: N,C,H,W, K,C,R,S, N,K,P,Q */
    int64_t sb;                  /* of the bias */
    int sm_count;
};

/* Any strides, any addresses. BIAS may be NULL. A and B: the operands. */
cudaError_t etk_launch_conv(const struct etk_conv *, const void *a, const void *b,
                            const void *bias, void *out, cudaStream_t);

/* One filter per channel (conv_depthwise.cu): 3x3 or 5x5, no dilation, the same
 * stride of 1 or 2 both ways, everything dense and channels-last. */
bool etk_conv_is_depthwise(const struct etk_conv *);
/* FILTER: bytes of workspace; else 0. */
size_t etk_conv_depthwise_ws(const struct etk_conv *);
cudaError_t etk_launch_conv_depthwise(const struct etk_conv *, const void *a,
                                      const void *b, const void *bias, void *out,
                                      void *ws, cudaStream_t);

/* Space to depth (conv_pack.cu): S x S neighbours become channels, so that a strided
 * convolution of few channels is one with stride 1 of many. T = ceil(R / S):
 *
 *   x'[n, i, j, (a S + b) C + c] = x[n, c, S i + a - P, S j + b - P]     0 outside
 *   w'[k, u, v, (a S + b) C + c] = w[k, c, S u + a, S v + b]             0 outside
 *   y[n,k,p,q] = sum_{u,v,c'} w'[k,u,v,c'] x'[n, p + u, q + v, c']
 *
 * C' is S S C and zeros up to a multiple of 8. With S = 1 it only adds those. */
enum { ETK_CONV_PACK = 8 }; /* channels: 16 bytes of two-byte elements */
struct etk_conv_pack {
    int64_t size[2]; /* of x' */
    int taps[2];     /* of w' */
    int64_t channels;
};
struct etk_conv_pack etk_conv_pack_of(const struct etk_conv *); /* conv_graph.c */
/* OUT: x' [n, size, channels] of x, w' [k, taps, channels] of w: both 16-byte
 * aligned. */
cudaError_t etk_launch_conv_pack_x(const struct etk_conv *, const void *x, void *out,
                                   cudaStream_t);
cudaError_t etk_launch_conv_pack_w(const struct etk_conv *, const void *w, void *out,
                                   cudaStream_t);
/* Back from the gradient of w'. */
cudaError_t etk_launch_conv_unpack_w(const struct etk_conv *, const void *packed,
                                     void *w, cudaStream_t);
/* OUT, dense of ROWS by CHANNELS, gets the bias in every row. */
cudaError_t etk_launch_conv_bias(const struct etk_conv *, int64_t rows,
                                 int64_t channels, const void *bias, void *out,
                                 cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
