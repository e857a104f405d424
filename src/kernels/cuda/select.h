/* SPDX-License-Identifier: Apache-2.0 */
/* select.h: launchers of argmax and topk. */
#ifndef ETUDE_KERNELS_CUDA_SELECT_H
#define ETUDE_KERNELS_CUDA_SELECT_H

#include "kernels/cuda/lines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sides: x; argmax: the index, one a line; topk: the values and the indices of lines of
 * K elements, either of which may be NULL. */
struct etk_select {
    struct etk_lines lines;
    enum et_dtype dtype;
    int64_t k;  /* 0: argmax */
    bool ranks; /* topk by counting what is larger, not by looking K times */
};
cudaError_t etk_launch_select(const struct etk_select *, const void *x, void *value,
                              int32_t *index, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
