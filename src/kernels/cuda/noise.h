/* SPDX-License-Identifier: Apache-2.0 */
/* noise.h: random operands for kernels that are timed. */
#ifndef ETUDE_KERNELS_CUDA_NOISE_H
#define ETUDE_KERNELS_CUDA_NOISE_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Uniform in [-1, 1). A GPU's power, and so its clock, depends on how many bits change:
 * zeros are multiplied faster than numbers. DTYPE: f32, bf16 or f16. */
cudaError_t etk_launch_noise(enum et_dtype dtype, void *out, int64_t count,
                             uint64_t seed, int sm_count, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
