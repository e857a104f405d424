/* SPDX-License-Identifier: Apache-2.0 */
/* draws.c: rows of random numbers, a lot of 64 at a time: see draws.h.
 *
 * Loops over the lanes of a lot have no branch and no call, so that compilers make
 * vector code of them. The same bits come out on every processor: each sum and product
 * is rounded by itself (sources.am forbids to contract them), and logarithm, sine and
 * cosine are polynomials of our own. */
#include "config.h"

#include "core/base/draws.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LANES = ETI_DRAW_LOT / 4 }; /* blocks of four words */

#define INLINE static inline __attribute__((always_inline))

/* Words of LANES blocks of et_philox from BLOCK on, the first words of all first. */
INLINE void
philox(uint32_t w[4][LANES], uint64_t key, uint64_t index, uint64_t block)
{
    uint32_t *restrict c0 = w[0], *restrict c1 = w[1];
    uint32_t *restrict c2 = w[2], *restrict c3 = w[3];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int l = 0; l < LANES; l++) {
        c0[l] = (uint32_t)(block + (uint64_t)l);
        c1[l] = (uint32_t)((block + (uint64_t)l) >> 32);
        c2[l] = (uint32_t)index;
        c3[l] = (uint32_t)(index >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int l = 0; l < LANES; l++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[l];
            uint64_t p1 = (uint64_t)0xCD9E8D57u * c2[l];
            c0[l] = (uint32_t)(p1 >> 32) ^ c1[l] ^ k0;
            c2[l] = (uint32_t)(p0 >> 32) ^ c3[l] ^ k1;
            c1[l] = (uint32_t)p1;
            c3[l] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

INLINE float
float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint32_t
bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* log x for 0 < x <= 1: x = 2^k (1 + f), from sqrt(1/2) to sqrt(2); right to 3 in the
 * last place. The fit is that of the CPU's loops (kernels/cpu/loops_math.h), whose
 * headers stay in their folder. */
INLINE float
log_of(float x)
{
    uint32_t bits = bits_of(x);
    int32_t k = (int32_t)(bits - 0x3f3504f3) >> 23;
    float f = float_of(bits - ((uint32_t)k << 23)) - 1, n = (float)k, square = f * f;
    float p = 6.971611471e-2f;
    p = p * f - 1.147973385e-1f;
    p = p * f + 1.168541992e-1f;
    p = p * f - 1.242568733e-1f;
    p = p * f + 1.424905765e-1f;
    p = p * f - 1.666780232e-1f;
    p = p * f + 2.000071575e-1f;
    p = p * f - 2.499999696e-1f;
    p = p * f + 3.333333118e-1f;
    float low = n * -2.12194440e-4f + (p * f * square - 0.5f * square);
    return low + f + n * 0.693359375f;
}

/* Two normal numbers of two words: sqrt(-2 log u) times cosine and sine of v turns. */
INLINE void
pair(uint32_t u, uint32_t v, float *x, float *y)
{
    float r = sqrtf(-2 * log_of((float)((int32_t)(u >> 8) + 1) * 0x1p-24f));
    /* v turns are QUARTER quarters and an eighth at most in either direction,
     * exactly. */
    int32_t turn = (int32_t)(v >> 8), quarter = (turn + (1 << 21)) >> 22;
    float a = (float)(turn - quarter * (1 << 22)) * 0x1p-22f, square = a * a;
    /* sin and cos of a pi / 2: fits at Chebyshev's points, right to 5e-9. */
    float sine = -4.602149213e-3f;
    sine = sine * square + 7.968021765e-2f;
    sine = sine * square - 6.459634777e-1f;
    sine = (sine * square + 1.570796322f) * a;
    float cosine = 9.067398984e-4f;
    cosine = cosine * square - 2.086152834e-2f;
    cosine = cosine * square + 2.536694104e-1f;
    cosine = cosine * square - 1.233700549f;
    cosine = cosine * square + 1;
    uint32_t s = bits_of(sine), c = bits_of(cosine);
    uint32_t odd = 0u - (uint32_t)(quarter & 1); /* all ones: they change places */
    uint32_t along = (c & ~odd) | (s & odd), across = (s & ~odd) | (c & odd);
    *x = r * float_of(along ^ (uint32_t)((quarter + 1) & 2) << 30);
    *y = r * float_of(across ^ (uint32_t)(quarter & 2) << 30);
}

/* A row and what its numbers are scaled to. */
struct row {
    uint64_t key, index;
    bool normal;
    double a, b; /* low and high, or mean and deviation */
};

/* The lot whose first block of words is BLOCK. */
INLINE void
draw_lot(const struct row *row, uint64_t block, float *restrict out)
{
    uint32_t w[4][LANES];
    float z[4][LANES];
    philox(w, row->key, row->index, block);
    if (row->normal) {
        float mean = (float)row->a, deviation = (float)row->b;
        for (int l = 0; l < LANES; l++) {
            pair(w[0][l], w[1][l], &z[0][l], &z[1][l]);
            pair(w[2][l], w[3][l], &z[2][l], &z[3][l]);
        }
        for (int l = 0; l < LANES; l++)
            for (int k = 0; k < 4; k++)
                z[k][l] = mean + deviation * z[k][l];
    } else {
        double low = row->a, width = row->b - row->a;
        for (int l = 0; l < LANES; l++)
            for (int k = 0; k < 4; k++)
                z[k][l] =
                    (float)(low + width * ((float)(int32_t)(w[k][l] >> 8) * 0x1p-24f));
    }
    for (int l = 0; l < LANES; l++)
        for (int k = 0; k < 4; k++)
            out[4 * l + k] = z[k][l];
}

INLINE void
draw_lots(const struct row *row, int64_t first, int64_t n, float *out)
{
    float last[ETI_DRAW_LOT];
    uint64_t block = (uint64_t)first / 4;
    for (; n >= ETI_DRAW_LOT; n -= ETI_DRAW_LOT, block += LANES, out += ETI_DRAW_LOT)
        draw_lot(row, block, out);
    if (n > 0) {
        draw_lot(row, block, last);
        memcpy(out, last, (size_t)n * sizeof *out);
    }
}

static void
draw_anywhere(const struct row *row, int64_t first, int64_t n, float *out)
{
    draw_lots(row, first, n, out);
}

#ifdef __x86_64__
/* (Without the FMA that processors with AVX2 have: see above.) */
__attribute__((target("avx2"))) static void
draw_with_avx2(const struct row *row, int64_t first, int64_t n, float *out)
{
    draw_lots(row, first, n, out);
}
#endif

static void
draw(const struct row *row, int64_t first, int64_t n, float *out)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        draw_with_avx2(row, first, n, out);
        return;
    }
#endif
    draw_anywhere(row, first, n, out);
}

void
eti_draw_uniform(uint64_t key, uint64_t index, int64_t first, int64_t n, double low,
                 double high, float *out)
{
    draw(&(struct row){.key = key, .index = index, .a = low, .b = high}, first, n, out);
}

void
eti_draw_normal(uint64_t key, uint64_t index, int64_t first, int64_t n, double mean,
                double deviation, float *out)
{
    draw(
        &(struct row){
            .key = key, .index = index, .normal = true, .a = mean, .b = deviation},
        first, n, out);
}
