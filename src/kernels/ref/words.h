/* SPDX-License-Identifier: Apache-2.0 */
/* words.h: the random words that dropout and random are made of, for every device.
 *
 * Element E (row-major within its sample) of row N of axis 0 belongs to the sample
 * rng[1] + N and has
 *
 *   word = Philox-4x32-10(key = rng[0], counter_hi = rng[1] + N,
 *                         counter_lo = ordinal << 32 | E/4)[E % 4]
 *
 * Only (seed, sample, ordinal, element) enter: not threads, ranks or microbatches. */
#ifndef ETK_REF_WORDS_H
#define ETK_REF_WORDS_H

#include "etude/rng.h"
#include "kernels/ref/array.h"

/* The upper 24 bits of the word, as an integer. */
static inline uint32_t
etk_word24(const struct etk_array *rng, int64_t row, uint64_t ordinal, uint64_t element)
{
    uint32_t word[4];
    uint64_t key = (uint64_t)etk_get_int(rng, 0);
    uint64_t first = (uint64_t)etk_get_int(rng, rng->d.stride[0]);
    et_philox(word, key, first + (uint64_t)row, ordinal << 32 | element / 4);
    return word[element % 4] >> 8;
}

/* Elements of a sample: all axes of D but the first. */
static inline int64_t
etk_per_sample(const struct et_desc *d)
{
    int64_t n = 1;
    for (int k = 1; k < d->ndim; k++)
        n *= d->shape[k];
    return n;
}

#endif
