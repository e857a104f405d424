/* SPDX-License-Identifier: Apache-2.0 */
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

/* y[m, n] = a[m, k] b[k, n] and what follows it, BATCH times. Y is not turned. By rows,
 * with p the product:
 *
 *   BIAS                 y = p + vector[n]
 *   GELU[_AUX][_BIAS]    y = gelu(p [+ vector[n]]), aux = what gelu was taken of
 *   DGELU[_BGRAD]        y = p gelu'(aux), vector[n] = sums of the columns of y
 *   BGRADA               y = p, vector[n] = sums of the columns of b: our b is its A
 *   BGRADB               y = p, vector[m] = sums of the rows of a
 *
 * Its gelu is the one with tanh. */
struct etk_gemm_shape {
    enum et_dtype in, out; /* of a and b; of y, vector and aux: f32, or that of a */
    cublasLtEpilogue_t epilogue; /* any but DEFAULT and BIAS: batch 1 */
    bool tf32;                   /* f32 operands may be rounded to 10 bits */
    int64_t m, n, k, batch;
    struct etk_gemm_side a, b, y;
    int64_t aux_ld; /* elements from row to row of aux: a multiple of ETK_AUX_LD */
};

/* The manual's, of CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD where the epilogue is a
 * gelu. */
enum { ETK_AUX_LD = 8 };

/* Does it read or write a vector, an auxiliary matrix? Epilogues are made of bits. */
static inline bool
etk_gemm_has_vector(const struct etk_gemm_shape *s)
{
    const unsigned adds = CUBLASLT_EPILOGUE_BIAS,
                   sums = CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB;
    const unsigned sums_result =
        CUBLASLT_EPILOGUE_DGELU_BGRAD & ~(unsigned)CUBLASLT_EPILOGUE_DGELU;
    return (s->epilogue & (adds | sums | sums_result)) != 0;
}

static inline bool
etk_gemm_has_aux(const struct etk_gemm_shape *s)
{
    const unsigned aux = CUBLASLT_EPILOGUE_GELU_AUX & ~(unsigned)CUBLASLT_EPILOGUE_GELU;
    return (s->epilogue & aux) != 0;
}

/* Where a product finds what; VECTOR and AUX as the epilogue has them. */
struct etk_gemm_operands {
    const void *a, *b;
    void *vector, *aux, *y;
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
ET_NODISCARD et_status etk_gemm_open(struct et_device_handle *d,
                                     const struct etk_gemm_shape *shape,
                                     struct etk_gemm *out);
void etk_gemm_close(struct etk_gemm *gemm);
/* Where vector and aux are; for cuBLASLt's advice, how well they are aligned. */
ET_NODISCARD et_status etk_gemm_set_vector(struct et_device_handle *d,
                                           struct etk_gemm *gemm, void *vector);
ET_NODISCARD et_status etk_gemm_set_aux(struct et_device_handle *d,
                                        struct etk_gemm *gemm, void *aux);

/* ---- the handle and the choice of algorithms (blas.c) ---- */

enum { ETK_WIDE = 16 }; /* bytes: what the widest loads want */

enum { ETK_GEMM_KEY = 640 };
/* Everything that a choice for SHAPE depends on, as text. */
void etk_blas_key(const struct et_device_handle *d, const struct etk_gemm_shape *shape,
                  unsigned align, char key[ETK_GEMM_KEY]);
/* The algorithm for operands that begin at multiples of ALIGN bytes: a power of two, at
 * least the size of an element. ENOTSUP where cuBLASLt has none. Below ETK_WIDE, which
 * is rare (blocks of memory begin at multiples of ETK_ALIGN), nothing is timed. */
ET_NODISCARD et_status etk_blas_choose(struct et_device_handle *d,
                                       const struct etk_gemm_shape *shape,
                                       struct etk_gemm *gemm, unsigned align,
                                       struct etk_choice *out);
/* WS: CHOICE's workspace, ETK_ALIGN-aligned. */
ET_NODISCARD et_status etk_blas_run(struct et_device_handle *d, struct etk_gemm *gemm,
                                    const struct etk_choice *choice,
                                    const struct etk_gemm_operands *at, void *ws,
                                    cudaStream_t stream);
/* What was chosen, for people. */
void etk_blas_describe(const struct etk_choice *choice, char *out, size_t size);

#endif
