/* gemm.h: a product of matrices as cuBLASLt is told of it. */
#ifndef ETUDE_KERNELS_CUDA_GEMM_H
#define ETUDE_KERNELS_CUDA_GEMM_H

#include <cublasLt.h>

#include "kernels/cuda/cuda.h"

/* One operand, row-major. Not turned: element (r, c) at r ld + c; turned: r + c ld. */
struct etk_gemm_side {
    bool turned;
    int64_t ld;    /* elements; at least the length of the contiguous axis */
    int64_t batch; /* elements to the next matrix; 0: one for all */
};

/* y[m, n] = a[m, k] b[k, n] (+ bias[n]), BATCH times. Y is not turned. */
struct etk_gemm_shape {
    enum et_dtype in, out; /* of a and b; of y and bias: f32, or that of a */
    bool biased;
    bool tf32; /* f32 operands may be rounded to 10 bits */
    int64_t m, n, k, batch;
    struct etk_gemm_side a, b, y;
};

/* cuBLASLt's descriptions of a shape. */
struct etk_gemm {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, y;
};

/* An algorithm for a shape. */
struct etk_choice {
    cublasLtMatmulAlgo_t algo;
    size_t workspace; /* bytes */
};

/* Needs no GPU. The caller frees *OUT, after a failure too; D may be NULL. */
et_status etk_gemm_open(struct et_device_handle *d, const struct etk_gemm_shape *shape,
                        struct etk_gemm *out);
void etk_gemm_close(struct etk_gemm *gemm);
/* Where the bias is; for cuBLASLt's advice, how well it is aligned. */
et_status etk_gemm_set_bias(struct et_device_handle *d, struct etk_gemm *gemm,
                            const void *bias);

/* ---- the handle and the choice of algorithms (blas.c) ---- */

enum { ETK_WIDE = 16 }; /* bytes: what the widest loads want */

/* The algorithm for operands that begin at multiples of ALIGN bytes: a power of two, at
 * least the size of an element. ENOTSUP where cuBLASLt has none. Below ETK_WIDE, which
 * is rare (blocks of memory begin at multiples of ETK_ALIGN), nothing is timed. */
et_status etk_blas_choose(struct et_device_handle *d,
                          const struct etk_gemm_shape *shape, struct etk_gemm *gemm,
                          unsigned align, struct etk_choice *out);
/* WS: CHOICE's workspace, ETK_ALIGN-aligned. BIAS: NULL where the shape has none. */
et_status etk_blas_run(struct et_device_handle *d, struct etk_gemm *gemm,
                       const struct etk_choice *choice, const void *a, const void *b,
                       const void *bias, void *y, void *ws, cudaStream_t stream);
/* What was chosen, for people. */
void etk_blas_describe(const struct etk_choice *choice, char *out, size_t size);

#endif
