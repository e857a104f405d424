/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.h: a product of matrices with any strides, and its launcher. */
#ifndef ETUDE_KERNELS_CUDA_MATMUL_H
#define ETUDE_KERNELS_CUDA_MATMUL_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ETK_BATCH_AXES = ET_MAX_DIMS - 2 };

/* Strides of one operand, in elements. */
struct etk_matrix {
    int64_t row, column;
    int64_t batch[ETK_BATCH_AXES]; /* 0: one matrix serves all along this axis */
};

/* y[i][r, c] = bias[c] + sum over t < k of a[i][r, t] b[i][t, c], r < m, c < n, i over
 * the batch axes. Sums are in f32, in f64 for f64 operands. */
struct etk_product {
    enum et_dtype in, out; /* of a and b; of y */
    enum et_dtype bias;    /* ET_NONE: none */
    int n_batch;
    int64_t batch[ETK_BATCH_AXES]; /* lengths, the slowest first */
    int64_t m, n, k;
    struct etk_matrix a, b, y;
    int64_t bias_stride;
};

/* For every product there is: what cuBLASLt refuses, or would run once per matrix. */
cudaError_t etk_launch_product(const struct etk_product *, const void *a, const void *b,
                               const void *bias, void *y, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
