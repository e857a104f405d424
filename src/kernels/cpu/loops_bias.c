/* SPDX-License-Identifier: Apache-2.0 */
/* loops_bias.c: y[i,c] += bias[c], for what oneDNN cannot add by itself.
 *
 * Bound by memory: 8 bytes moved per addition. */
#include "kernels/cpu/loops.h"

#define PARALLEL_ELEMENTS 16384

void
ETK_NAME(etk_add_bias)(float *restrict y, const float *restrict bias, int64_t rows,
                       int64_t c)
{
#pragma omp parallel for schedule(static) if (rows * c >= PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < c; j++)
            y[i * c + j] += bias[j];
}
