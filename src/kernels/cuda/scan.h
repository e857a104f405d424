/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h: launchers of cumsum and sort. */
#ifndef ETUDE_KERNELS_CUDA_SCAN_H
#define ETUDE_KERNELS_CUDA_SCAN_H

#include "kernels/cuda/lines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sides: x; cumsum: y; sort: the values and the places, either of which may be NULL. */
struct etk_scan {
    struct etk_lines lines;
    enum et_dtype dtype;
    bool reverse;
    /* sort */
    int64_t size; /* keys of a line: a power of 2 that its elements fit in */
    bool
        shared; /* they fit into a block's shared memory; else the workspace has them */
    unsigned blocks;
};
cudaError_t etk_launch_cumsum(const struct etk_scan *, const void *x, void *y,
                              cudaStream_t);
cudaError_t etk_launch_sort(const struct etk_scan *, const void *x, void *value,
                            int32_t *place, void *ws, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
