/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_simulated.c: the codes of the simulator's cublasLt.h, for gemm.c. */
#include <cublasLt.h>

#include "t/kernels/blas_names.h"

#define NAME(x) (long)(x),
#define SIZE(x) (long)sizeof(x),
const long simulated_names[] = {BLAS_NAMES(NAME, SIZE)};
