/* SPDX-License-Identifier: Apache-2.0 */
/* rng.h: counter-based random numbers.
 *
 * Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
 * A draw is a pure function of (seed, stream, index, ordinal), so it does not depend on
 * threads, ranks, workers or microbatches, and a resume restores a counter. INDEX is a
 * global sample index (or another counter the stream defines), ORDINAL numbers the
 * draws made for it.
 *
 *     struct et_rng r = et_rng_at(seed, ET_RNG_USER, sample);
 *     double x = et_rng_uniform(&r), y = et_rng_normal(&r);
 */
#ifndef ETUDE_RNG_H
#define ETUDE_RNG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Streams never share draws. Names are part of what a seed means: never reorder. */
enum et_rng_stream {
    ET_RNG_INIT = 0,    /* initial weights: index = hash of the parameter's name */
    ET_RNG_SHUFFLE = 1, /* sample order: index = epoch */
    ET_RNG_AUGMENT = 2, /* crop, flip: index = global sample */
    ET_RNG_DROPOUT = 3, /* masks: index = global sample, ordinal = the op's */
    ET_RNG_MIX = 4, /* mixing coefficients, permutations, boxes: index = first sample */
    ET_RNG_SELECT = 5, /* which samples are kept */
    ET_RNG_DATA = 6,   /* synthetic data */
    ET_RNG_USER = 7,   /* plugins and user code */
    ET_RNG_NOISE = 8,  /* on the learning rate: index = the time */
};

/* Kernels draw with the same lines. */
#ifdef __CUDACC__
#define ET_ON_DEVICE __host__ __device__
#else
#define ET_ON_DEVICE
#endif

/* Four 32-bit words of Philox-4x32-10. */
ET_ON_DEVICE static inline void
et_philox(uint32_t out[4], uint64_t key, uint64_t counter_hi, uint64_t counter_lo)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter_lo, c1 = (uint32_t)(counter_lo >> 32);
    uint32_t c2 = (uint32_t)counter_hi, c3 = (uint32_t)(counter_hi >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A position in one stream: draws follow each other from ordinal 0. */
struct et_rng {
    uint64_t key;     /* seed and stream */
    uint64_t index;   /* counter, high half */
    uint64_t ordinal; /* counter, low half: next block of four words */
    uint32_t word[4]; /* the current block */
    int left;         /* words not yet used */
};

/* The beginning of (SEED, STREAM, INDEX). */
struct et_rng et_rng_at(uint32_t seed, enum et_rng_stream stream, uint64_t index);
uint32_t et_rng_u32(struct et_rng *r);
uint64_t et_rng_u64(struct et_rng *r);
double et_rng_uniform(struct et_rng *r);                  /* [0, 1), 53 bits */
float et_rng_uniform_f32(struct et_rng *r);               /* [0, 1), 24 bits */
double et_rng_normal(struct et_rng *r);                   /* mean 0, variance 1 */
uint64_t et_rng_below(struct et_rng *r, uint64_t n);      /* [0, n), unbiased; n > 0 */
double et_rng_beta(struct et_rng *r, double a, double b); /* Beta(a, b); a, b > 0 */
/* N parts of 1 into OUT: Dirichlet(alpha, ... alpha); alpha > 0. */
void et_rng_dirichlet(struct et_rng *r, double alpha, double *out, int64_t n);
/* A uniform permutation of 0 .. n-1 into OUT. */
void et_rng_permutation(struct et_rng *r, int32_t *out, int64_t n);

/* The key that (seed, stream) stands for, for kernels that count on the device. */
uint64_t et_rng_key(uint32_t seed, enum et_rng_stream stream);

#ifdef __cplusplus
}
#endif
#endif
