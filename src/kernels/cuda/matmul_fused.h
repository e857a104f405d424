/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_fused.h: a product as cuBLASLt takes it, for products with more to them. */
#ifndef ETUDE_KERNELS_CUDA_MATMUL_FUSED_H
#define ETUDE_KERNELS_CUDA_MATMUL_FUSED_H

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/matmul.h"

/* The shape of a call of matmul that cuBLASLt computes at once, without batches; false
 * for any other. */
bool etk_matmul_shape(const struct et_call *call, bool tf32,
                      struct etk_gemm_shape *shape);

#endif
