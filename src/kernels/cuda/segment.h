/* SPDX-License-Identifier: Apache-2.0 */
/* segment.h: launchers of sums over stretches of rows. */
#ifndef ETUDE_KERNELS_CUDA_SEGMENT_H
#define ETUDE_KERNELS_CUDA_SEGMENT_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ETK_SEGMENT_PART = 8192
}; /* elements that a block sums: 8 packs of f32 a thread */

/* y[s] = sum of x[e]^2 over first[s] width <= e < first[s + 1] width, e counting x's
 * elements in the order of its axes.
 *
 * Part p of stretch s is number p + s + first[s] width / PART: no two are the same, as
 * floor(a / P) + ceil(b / P) <= floor((a + b) / P) + 1. */
struct etk_segments {
    enum et_dtype dtype;
    struct etk_walk walk; /* x, its axes in their order */
    bool plain;           /* x's elements lie beside each other */
    int64_t rows, width;  /* of x; elements of a row */
    int64_t n, step, to;  /* stretches; distances in the table and in y */
    int64_t parts;        /* numbers there are: rows width / PART + n */
};
/* PARTS: room for a sum for each number, f32 (f64 for f64). */
cudaError_t etk_launch_segments(const struct etk_segments *, const void *x,
                                const int32_t *first, void *y, void *parts,
                                cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
