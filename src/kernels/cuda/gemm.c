/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c: a product of matrices as cuBLASLt is told of it.
 *
 * cuBLASLt's matrices are column-major: its D[i, j] is at i + j ld. A row-major y[m, n]
 * is therefore the column-major y^T[n, m] in the same memory, and
 *
 *     y^T = op(b)^T op(a)^T,     D [n, m] = opA(A) [n, k] opB(B) [k, m]
 *
 * so that cuBLASLt's A is our b and its B our a. What is not turned, [rows, columns]
 * with the columns contiguous, is to cuBLASLt a matrix of columns x rows, and used as
 * it lies (CUBLAS_OP_N); what is turned is CUBLAS_OP_T. The bias, one number per column
 * of y, is one per row of D, which is what cuBLASLt adds; an auxiliary matrix lies like
 * D, and so by rows like y. */
#include "config.h"
#include "kernels/cuda/gemm.h"

#include <string.h>

static cudaDataType_t
data_type(enum et_dtype dtype)
{
    return dtype == ET_BF16 ? CUDA_R_16BF : dtype == ET_F16 ? CUDA_R_16F : CUDA_R_32F;
}

#define TRY_BLAS(d, call)                                                              \
    do {                                                                               \
        cublasStatus_t code_ = (call);                                                 \
        if (code_ != CUBLAS_STATUS_SUCCESS)                                            \
            return etk_fail(d, ETK_BLAS, (int)code_, #call);                           \
    } while (0)

/* [ROWS, COLUMNS] row-major, BATCH times. */
static et_status
layout(struct et_device_handle *d, cublasLtMatrixLayout_t *out, enum et_dtype dtype,
       const struct etk_gemm_side *side, int64_t rows, int64_t columns, int64_t batch)
{
    int64_t inner = side->turned ? rows : columns,
            outer = side->turned ? columns : rows;
    TRY_BLAS(d, cublasLtMatrixLayoutCreate(out, data_type(dtype), (uint64_t)inner,
                                           (uint64_t)outer, side->ld));
    int32_t count = (int32_t)batch;
    int64_t stride = side->batch;
    TRY_BLAS(d, cublasLtMatrixLayoutSetAttribute(
                    *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    TRY_BLAS(d, cublasLtMatrixLayoutSetAttribute(
                    *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                    sizeof stride));
    return ET_OK;
}

static et_status
operation(struct et_device_handle *d, cublasLtMatmulDesc_t *out,
          const struct etk_gemm_shape *s)
{
    bool tf32 = s->tf32 && s->in == ET_F32;
    TRY_BLAS(d, cublasLtMatmulDescCreate(
                    out, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                    CUDA_R_32F));
    int32_t left = s->b.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t right = s->a.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t epilogue = s->epilogue ? s->epilogue : CUBLASLT_EPILOGUE_DEFAULT;
    TRY_BLAS(d, cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSA, &left,
                                               sizeof left));
    TRY_BLAS(d, cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSB,
                                               &right, sizeof right));
    TRY_BLAS(d, cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                               &epilogue, sizeof epilogue));
    int32_t dtype = data_type(s->out);
    if (etk_gemm_has_vector(s))
        TRY_BLAS(d, cublasLtMatmulDescSetAttribute(*out,
                                                   CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                   &dtype, sizeof dtype));
    /* Its dtype is the result's. */
    if (etk_gemm_has_aux(s))
        TRY_BLAS(d, cublasLtMatmulDescSetAttribute(*out,
                                                   CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
                                                   &s->aux_ld, sizeof s->aux_ld));
    return ET_OK;
}

et_status
etk_gemm_open(struct et_device_handle *d, const struct etk_gemm_shape *s,
              struct etk_gemm *out)
{
    memset(out, 0, sizeof *out);
    ET_TRY(operation(d, &out->op, s));
    ET_TRY(layout(d, &out->a, s->in, &s->a, s->m, s->k, s->batch));
    ET_TRY(layout(d, &out->b, s->in, &s->b, s->k, s->n, s->batch));
    return layout(d, &out->y, s->out, &s->y, s->m, s->n, s->batch);
}

void
etk_gemm_close(struct etk_gemm *gemm)
{
    /* Descriptions are memory of the host: freeing them does not fail. */
    if (gemm->op)
        (void)cublasLtMatmulDescDestroy(gemm->op);
    cublasLtMatrixLayout_t layouts[] = {gemm->a, gemm->b, gemm->y};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            (void)cublasLtMatrixLayoutDestroy(layouts[i]);
    memset(gemm, 0, sizeof *gemm);
}

et_status
etk_gemm_set_vector(struct et_device_handle *d, struct etk_gemm *gemm, void *vector)
{
    TRY_BLAS(d,
             cublasLtMatmulDescSetAttribute(gemm->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                            &vector, sizeof vector));
    return ET_OK;
}

et_status
etk_gemm_set_aux(struct et_device_handle *d, struct etk_gemm *gemm, void *aux)
{
    TRY_BLAS(
        d, cublasLtMatmulDescSetAttribute(
               gemm->op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux));
    return ET_OK;
}
