/* SPDX-License-Identifier: Apache-2.0 */
/* random.h: launcher of random. */
#ifndef ETUDE_KERNELS_CUDA_RANDOM_H
#define ETUDE_KERNELS_CUDA_RANDOM_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct etk_random {
    enum et_random_kind kind;
    int64_t samples, size; /* size: elements of a sample */
    uint32_t threshold;    /* of a word's upper 24 bits: ceil(2^24 p) */
    uint64_t ordinal;
    int64_t rng_stride; /* between the two numbers of the key */
    int ndim;
    int64_t shape[ET_MAX_DIMS], y[ET_MAX_DIMS]; /* axis 0 the samples */
    int sm_count;
};
cudaError_t etk_launch_random(const struct etk_random *, const int64_t *rng, float *y,
                              cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
