/* SPDX-License-Identifier: Apache-2.0 */
/* move.h: launchers of copies. */
#ifndef ETUDE_KERNELS_CUDA_MOVE_H
#define ETUDE_KERNELS_CUDA_MOVE_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A strided copy of units of 1, 2, 4, 8 or 16 bytes: elements, or as many neighbours of
 * both sides as fit. Axes: slowest of the target first; strides may be negative. */
struct etk_rows {
    int unit, ndim;
    int64_t count;              /* units */
    int64_t shape[ET_MAX_DIMS]; /* in units */
    int64_t to[ET_MAX_DIMS], from[ET_MAX_DIMS];
    int turned; /* the axis along which the source runs on where the target does not, to
                   be copied in squares; -1: none */
};
/* FROM NULL: every unit becomes the 16 bytes of NUMBER, or their first. */
cudaError_t etk_launch_rows(const struct etk_rows *, void *to, const void *from,
                            const void *number, int sm_count, cudaStream_t);

/* Up to ETK_BATCH stretches of memory, in one launch; FROM NULL: zeros. */
enum { ETK_BATCH = 32 };
struct etk_batch {
    int n;
    void *to[ETK_BATCH];
    const void *from[ETK_BATCH];
    int64_t bytes[ETK_BATCH];
};
cudaError_t etk_launch_batch(const struct etk_batch *, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
