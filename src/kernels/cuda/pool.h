/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h: launchers of pooling and resizing. */
#ifndef ETUDE_KERNELS_CUDA_POOL_H
#define ETUDE_KERNELS_CUDA_POOL_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A window along one axis: taps at start, start + step, ... below start + reach; only
 * 0 .. length - 1 exist. */
struct etk_window {
    int large, small; /* lengths of the image and of the pooled one */
    int kernel, stride, pad, step;
};

/* Images [N,C,H,W] and [N,C,P,Q] of any strides. */
struct etk_pool {
    enum et_op_id op;
    enum et_dtype dtype;
    bool adaptive, include_pad;
    struct etk_window h, w;
    int64_t n, c;
    int64_t large[4], small[4], index[4]; /* strides */
    bool neighbours; /* channels lie side by side in packs of 16 bytes */
    int sm_count;
};
/* PACKS: only where NEIGHBOURS, and all of it at multiples of 16 bytes. FROM: x, or dy;
 * TO: y, or dx. INDEX may be NULL. */
cudaError_t etk_launch_pool(const struct etk_pool *, bool packs, const void *from,
                            int32_t *index, void *to, cudaStream_t);

struct etk_resize {
    enum et_dtype dtype;
    bool grad, nearest;
    int64_t n, c;
    int size[2], result[2]; /* of the source and of the resized image */
    float scale[2];         /* source pixels for one of the result */
    int64_t from[4], to[4]; /* strides of what is read and written */
    bool neighbours;
    int sm_count;
};
cudaError_t etk_launch_resize(const struct etk_resize *, bool packs, const void *from,
                              void *to, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
