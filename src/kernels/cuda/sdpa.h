/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa.h: attention as plain numbers, and the launchers of its own kernels. */
#ifndef ETUDE_KERNELS_CUDA_SDPA_H
#define ETUDE_KERNELS_CUDA_SDPA_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ETK_SDPA_DEPTH = 256 }; /* most elements of a head */

/* Where run finds what; O and LSE are results of the forward pass and operands of the
 * backward one. */
enum etk_sdpa_array {
    ETK_SDPA_Q,
    ETK_SDPA_K,
    ETK_SDPA_V,
    ETK_SDPA_O,
    ETK_SDPA_DO,
    ETK_SDPA_DQ,
    ETK_SDPA_DK,
    ETK_SDPA_DV,
    ETK_SDPA_LSE,
    ETK_SDPA_BIAS,
    ETK_SDPA_ARRAYS,
    ETK_SDPA_HEADS = ETK_SDPA_LSE /* so many are [B,H,T|S,D] */
};

/* Strides in elements of an array of heads. */
struct etk_heads {
    int64_t b, h, row, step;
    bool wide; /* rows are read and written 16 bytes at a time */
};

/* q o [B,H,T,D], k v [B,H,S,D], bias [B,H,T,S] by strides that may be 0, lse [B,H,T].
 * T, S and D fit an int; 0 < S, 0 < D <= ETK_SDPA_DEPTH. */
struct etk_sdpa {
    enum et_dtype dtype, bias; /* of the heads; of the bias, ET_NONE without one */
    bool grad, causal;
    int64_t B, H, T, S, D;
    float scale;
    struct etk_heads heads[ETK_SDPA_HEADS];
    int64_t bias_stride[4], lse_stride[3];
};

/* Bytes of shared memory that a block needs. */
size_t etk_sdpa_shared(const struct etk_sdpa *);
/* Lets the kernels have it: once, before they are launched. */
cudaError_t etk_sdpa_allow(const struct etk_sdpa *);
/* PTR by etk_sdpa_array; what is not wanted is NULL. */
cudaError_t etk_launch_sdpa(const struct etk_sdpa *, void *const *ptr, cudaStream_t);
/* Of what cuDNN computed: queries from which the bias hides every key have o = 0 and
 * lse infinite, as etk_launch_sdpa says of them. Heads have two bytes an element. */
cudaError_t etk_launch_sdpa_clear(const struct etk_sdpa *, void *const *ptr,
                                  cudaStream_t);
/* DELTA: B H T floats of workspace. */
cudaError_t etk_launch_sdpa_grad(const struct etk_sdpa *, void *const *ptr,
                                 float *delta, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
