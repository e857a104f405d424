/* SPDX-License-Identifier: Apache-2.0 */
/* blas_names.h: what of cuBLASLt's header the simulator's repeats: NAME(x) is a code,
 * SIZE(x) a type that is kept on disk or handed over. */
#ifndef T_KERNELS_BLAS_NAMES_H
#define T_KERNELS_BLAS_NAMES_H

#define BLAS_NAMES(NAME, SIZE)                                                         \
    NAME(CUBLAS_STATUS_SUCCESS)                                                        \
    NAME(CUBLAS_STATUS_NOT_INITIALIZED)                                                \
    NAME(CUBLAS_STATUS_ALLOC_FAILED)                                                   \
    NAME(CUBLAS_STATUS_INVALID_VALUE)                                                  \
    NAME(CUBLAS_STATUS_EXECUTION_FAILED)                                               \
    NAME(CUBLAS_STATUS_INTERNAL_ERROR)                                                 \
    NAME(CUBLAS_STATUS_NOT_SUPPORTED)                                                  \
    NAME(CUBLAS_OP_N)                                                                  \
    NAME(CUBLAS_OP_T)                                                                  \
    NAME(CUBLAS_COMPUTE_32F)                                                           \
    NAME(CUBLAS_COMPUTE_32F_FAST_TF32)                                                 \
    NAME(CUDA_R_32F)                                                                   \
    NAME(CUDA_R_16F)                                                                   \
    NAME(CUDA_R_16BF)                                                                  \
    NAME(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)                                           \
    NAME(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)                                  \
    NAME(CUBLASLT_MATMUL_DESC_TRANSA)                                                  \
    NAME(CUBLASLT_MATMUL_DESC_TRANSB)                                                  \
    NAME(CUBLASLT_MATMUL_DESC_EPILOGUE)                                                \
    NAME(CUBLASLT_MATMUL_DESC_BIAS_POINTER)                                            \
    NAME(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)                                          \
    NAME(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER)                                    \
    NAME(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD)                                         \
    NAME(CUBLASLT_EPILOGUE_DEFAULT)                                                    \
    NAME(CUBLASLT_EPILOGUE_BIAS)                                                       \
    NAME(CUBLASLT_EPILOGUE_GELU)                                                       \
    NAME(CUBLASLT_EPILOGUE_GELU_AUX)                                                   \
    NAME(CUBLASLT_EPILOGUE_GELU_BIAS)                                                  \
    NAME(CUBLASLT_EPILOGUE_GELU_AUX_BIAS)                                              \
    NAME(CUBLASLT_EPILOGUE_DGELU)                                                      \
    NAME(CUBLASLT_EPILOGUE_DGELU_BGRAD)                                                \
    NAME(CUBLASLT_EPILOGUE_BGRADA)                                                     \
    NAME(CUBLASLT_EPILOGUE_BGRADB)                                                     \
    NAME(CUBLASLT_REDUCTION_SCHEME_NONE)                                               \
    NAME(CUBLASLT_REDUCTION_SCHEME_INPLACE)                                            \
    NAME(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)                                       \
    NAME(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)                                        \
    NAME(CUBLASLT_REDUCTION_SCHEME_MASK)                                               \
    NAME(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)                                     \
    NAME(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)                                   \
    NAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)                                   \
    NAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)                                   \
    NAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)                                   \
    NAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)                                   \
    NAME(CUBLASLT_ALGO_CONFIG_ID)                                                      \
    NAME(CUBLASLT_ALGO_CONFIG_TILE_ID)                                                 \
    NAME(CUBLASLT_ALGO_CONFIG_SPLITK_NUM)                                              \
    NAME(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)                                        \
    SIZE(cublasLtMatmulAlgo_t)                                                         \
    SIZE(cublasLtMatmulHeuristicResult_t)

/* In the order of the list, by the simulator's header. */
extern const long simulated_names[];

#endif
