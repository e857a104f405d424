/* SPDX-License-Identifier: Apache-2.0 */
/* loops_product.h: a tile of a product of matrices, its sums in registers. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_PRODUCT_H
#define ETUDE_KERNELS_CPU_LOOPS_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/loops.h"
#include "kernels/cpu/tiles.h"

#if defined __AVX512F__
#define LANES ETK_LANES_V4
#elif defined __AVX2__
#define LANES ETK_LANES_V3
#else
#define LANES ETK_LANES_BASE
#endif

/* What a tile has at most. */
enum { PRODUCT_ROWS = 12, PRODUCT_VECS = 4 };

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* C (+)= A B; A has any strides, the rows of B and C are dense. */
struct product {
    float *c;
    const float *a, *b;
    int64_t c_row, a_row, a_column, b_row; /* strides */
    int64_t m, n, k;
    bool add;
};

/* ROWS of C by VECS vectors; the sums are of K terms. */
INLINE void
product_tile(const struct product *g, float *c, const float *a, const float *b,
             int64_t k, bool add, const int rows, const int vecs)
{
    vec sum[PRODUCT_ROWS][PRODUCT_VECS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            sum[i][j] = add ? *(vec *)(c + i * g->c_row + j * LANES) : (vec){0};
    for (int64_t l = 0; l < k; l++, a += g->a_column, b += g->b_row) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < vecs; j++)
                sum[i][j] += a[i * g->a_row] * *(const vec *)(b + j * LANES);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            *(vec *)(c + i * g->c_row + j * LANES) = sum[i][j];
}

#endif
