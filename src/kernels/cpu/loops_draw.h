/* SPDX-License-Identifier: Apache-2.0 */
/* loops_draw.h: random words of a sample's elements, as kernels/ref/words.h has them.
 *
 * Counters are independent, so 16 blocks of four words run side by side in vectors.
 * Some 100 integer operations per four elements: bound by arithmetic, not memory. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_DRAW_H
#define ETUDE_KERNELS_CPU_LOOPS_DRAW_H

#include "etude/rng.h"
#include "kernels/cpu/tiles.h"

/* The words of ETK_DRAW elements from block FIRST on. */
static inline void
etk_draw(uint32_t *restrict word, uint64_t key, uint64_t sample, uint64_t ordinal,
         uint64_t first)
{
    enum { BLOCKS = ETK_DRAW / 4 };
    uint32_t c0[BLOCKS], c1[BLOCKS], c2[BLOCKS], c3[BLOCKS];
#pragma omp simd
    for (int i = 0; i < BLOCKS; i++) {
        uint32_t out[4];
        et_philox(out, key, sample, ordinal << 32 | (first + (uint64_t)i));
        c0[i] = out[0];
        c1[i] = out[1];
        c2[i] = out[2];
        c3[i] = out[3];
    }
    for (int i = 0; i < BLOCKS; i++) {
        word[4 * i] = c0[i];
        word[4 * i + 1] = c1[i];
        word[4 * i + 2] = c2[i];
        word[4 * i + 3] = c3[i];
    }
}

#endif
