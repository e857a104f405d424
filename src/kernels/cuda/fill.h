/* SPDX-License-Identifier: Apache-2.0 */
/* fill.h: launchers of constants. */
#ifndef ETUDE_KERNELS_CUDA_FILL_H
#define ETUDE_KERNELS_CUDA_FILL_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct etk_fill {
    enum et_dtype dtype;
    int64_t count;
    double start, step; /* element i is start + i step */
    int sm_count;
};
cudaError_t etk_launch_fill(const struct etk_fill *, void *out, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
