/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of random numbers: each is a function of its place alone, even ones are those of
 * et_rng, normal ones are what double Box-Muller makes of the same words, on every
 * processor in the same bits; and work that threads share is done once, all of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/base/draws.h"
#include "core/base/thread.h"
#include "etude/rng.h"
#include "t/tap.h"

enum { N = 1 << 16 };
static float row[N], part[N];

static uint64_t
key_of(uint32_t seed)
{
    return et_rng_key(seed, ET_RNG_INIT);
}

/* Any part of a row, whatever its length, has the row's bits and writes no more. */
static void
test_parts(void)
{
    static const int64_t lengths[] = {0, 1, 3, 4, 63, 64, 65, 127, 128, 1000};
    typedef void draw_fn(uint64_t, uint64_t, int64_t, int64_t, double, double, float *);
    static draw_fn *const draws[] = {eti_draw_uniform, eti_draw_normal};
    for (int d = 0; d < 2; d++) {
        bool same = true, apart = true;
        draws[d](key_of(7), 5, 0, N, -1, 2, row);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int64_t first = 0; first <= 5 * ETI_DRAW_LOT; first += ETI_DRAW_LOT) {
                int64_t n = lengths[i];
                part[n] = 17;
                draws[d](key_of(7), 5, first, n, -1, 2, part);
                same &= memcmp(part, row + first, (size_t)n * sizeof *part) == 0;
                apart &= part[n] == 17;
            }
        ok(same, "%s numbers of a part are those of the row", d ? "normal" : "even");
        ok(apart, "and nothing is written behind the part");
        draws[d](key_of(8), 5, 0, 64, -1, 2, part);
        ok(memcmp(part, row, 64 * sizeof *part) != 0, "another key is another row");
        draws[d](key_of(7), 6, 0, 64, -1, 2, part);
        ok(memcmp(part, row, 64 * sizeof *part) != 0, "so is another index");
    }
}

/* Blocks are counted in 64 bits. */
static void
test_far(void)
{
    uint32_t word[4];
    int64_t first = ((int64_t)1 << 34) - ETI_DRAW_LOT; /* blocks below and above 2^32 */
    bool same = true;
    eti_draw_uniform(key_of(3), 9, first, 2 * ETI_DRAW_LOT, 0, 1, part);
    for (int i = 0; i < 2 * ETI_DRAW_LOT; i++) {
        et_philox(word, key_of(3), 9, (uint64_t)(first + i) / 4);
        same &= part[i] == (float)(word[i % 4] >> 8) * 0x1p-24f;
    }
    ok(same, "numbers beyond 2^34 are of blocks beyond 2^32");
}

static void
test_uniform(void)
{
    struct et_rng r = et_rng_at(21, ET_RNG_INIT, 0x123456789abcdefu);
    bool same = true;
    eti_draw_uniform(key_of(21), 0x123456789abcdefu, 0, N, -0.25, 0.5, row);
    for (int i = 0; i < N; i++)
        same &= row[i] == (float)(-0.25 + 0.75 * et_rng_uniform_f32(&r));
    ok(same, "even numbers are the draws of et_rng_uniform_f32, scaled");
}

/* f32 has 24 digits: a logarithm right to 3 in the last place and a square root give
 * the length to 2; sine and cosine, of which one may be small, to 1e-7. */
#define NEAR 1e-6

static void
test_normal(void)
{
    struct et_rng r = et_rng_at(21, ET_RNG_INIT, 77);
    double worst = 0;
    eti_draw_normal(key_of(21), 77, 0, N, 3, 0.5, row);
    for (int i = 0; i < N; i += 2) {
        double u = (et_rng_u32(&r) >> 8) + 1, v = et_rng_u32(&r) >> 8;
        double length = sqrt(-2 * log(u * 0x1p-24)), turn = 2 * M_PI * v * 0x1p-24;
        worst = fmax(worst, fabs(row[i] - (3 + 0.5 * length * cos(turn))));
        worst = fmax(worst, fabs(row[i + 1] - (3 + 0.5 * length * sin(turn))));
    }
    ok(worst < NEAR, "normal numbers are those of Box and Muller (worst %.1e)", worst);
}

/* Moments and shares, to five standard errors of N numbers. */
static void
test_distribution(void)
{
    static const double at[] = {-2, -1, 0, 0.5, 1.5, 3};
    double m1 = 0, m2 = 0, m4 = 0, beside = 0;
    int below[6] = {0};
    eti_draw_normal(key_of(1), 2, 0, N, 0, 1, row);
    for (int i = 0; i < N; i++) {
        double z = row[i];
        m1 += z / N;
        m2 += z * z / N;
        m4 += z * z * z * z / N;
        beside += z * row[i ^ 1] / N; /* of the same two words */
        for (int k = 0; k < 6; k++)
            below[k] += z < at[k];
    }
    is_near(m1, 0, 5 / sqrt(N), "their mean is 0");
    is_near(m2, 1, 5 * sqrt(2.0 / N), "their variance is 1");
    is_near(m4, 3, 5 * sqrt(96.0 / N), "their fourth moment is 3");
    /* (Each pair counts twice.) */
    is_near(beside, 0, 5 * sqrt(2.0 / N), "two of a pair are not correlated");
    for (int k = 0; k < 6; k++) {
        double p = erfc(-at[k] / sqrt(2)) / 2;
        is_near((double)below[k] / N, p, 5 * sqrt(p * (1 - p) / N),
                "as many are below %g as should be", at[k]);
    }
}

/* Whoever changes these bits changes what a seed means: all first weights. */
static void
test_bits(void)
{
    eti_draw_normal(key_of(17), 42, 0, N, 0, 0.02, row);
    is_int((int64_t)XXH64(row, sizeof row, 0), 0x6a433e1947a0a933,
           "a row's bits are known");
}

/* ---- threads ---- */

enum { ITEMS = 1000 };
static int done_by[ITEMS];

static void
note(void *data, int64_t first, int64_t end)
{
    bool *aligned = data;
    if (first % 8 != 0)
        *aligned = false;
    for (int64_t i = first; i < end; i++)
        __atomic_add_fetch(&done_by[i], 1, __ATOMIC_RELAXED);
}

static void
test_split(void)
{
    static const int threads[] = {-1, 0, 1, 2, 3, 7, 64, 1000};
    static const int64_t counts[] = {0, 1, 7, 8, 9, 63, 64, 65, ITEMS};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        bool once = true, aligned = true;
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            memset(done_by, 0, sizeof done_by);
            eti_thread_split(threads[t], counts[c], 8, note, &aligned);
            for (int i = 0; i < ITEMS; i++)
                once &= done_by[i] == (i < counts[c]);
        }
        ok(once, "%d threads do each item once", threads[t]);
        ok(aligned, "in parts that begin at multiples of a lot");
    }
    setenv("OMP_NUM_THREADS", "3", 1);
    is_int(eti_thread_count(), 3, "OMP_NUM_THREADS says how many threads there are");
    setenv("OMP_NUM_THREADS", "0", 1);
    int all = eti_thread_count();
    unsetenv("OMP_NUM_THREADS");
    ok(all >= 1 && eti_thread_count() == all,
       "without it, or a number, as many as there are processors");
}

int
main(void)
{
    test_parts();
    test_far();
    test_uniform();
    test_normal();
    test_distribution();
    test_bits();
    test_split();
    return done();
}
