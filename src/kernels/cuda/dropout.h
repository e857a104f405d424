/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.h: launcher of dropout. */
#ifndef ETUDE_KERNELS_CUDA_DROPOUT_H
#define ETUDE_KERNELS_CUDA_DROPOUT_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct etk_dropout {
    enum et_dtype dtype;
    int64_t samples, size; /* size: elements of a sample */
    uint32_t threshold;    /* of a word's upper 24 bits: ceil(2^24 p) */
    double scale;          /* 1/(1-p) */
    uint64_t ordinal;
    int64_t rng_stride; /* between the two numbers of the key */
    /* Both arrays, axis 0 the samples; NDIM - 1 axes of a sample in row-major order. */
    int ndim;
    int64_t shape[ET_MAX_DIMS], x[ET_MAX_DIMS], y[ET_MAX_DIMS];
    bool dense;    /* a sample's elements lie in row-major order on both sides */
    int64_t inner; /* > 0: channels, which lie beside each other on both sides */
    int sm_count;
};
cudaError_t etk_launch_dropout(const struct etk_dropout *, const void *x,
                               const int64_t *rng, void *y, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
