/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.c: y = x/(1-p) where kept, 0 elsewhere; the same op is its own gradient.
 *
 * This is the definition of the mask, for every device. Element E (row-major within its
 * sample) of row N of axis 0 belongs to the sample rng[1] + N and is kept iff u >= p:
 *
 *   word = Philox-4x32-10(key = rng[0], counter_hi = rng[1] + N,
 *                         counter_lo = ordinal << 32 | E/4)[E % 4]
 *   u = (word >> 8) 2^-24
 *
 * Only (seed, sample, ordinal, element) enter: not threads, ranks or microbatches. */
#include "kernels/ref/array.h"

#include "etude/rng.h"

static double
uniform(const struct etk_array *rng, int64_t row, uint64_t ordinal, uint64_t element)
{
    uint32_t word[4];
    uint64_t key = (uint64_t)etk_get_int(rng, 0);
    uint64_t first = (uint64_t)etk_get_int(rng, rng->d.stride[0]);
    et_philox(word, key, first + (uint64_t)row, ordinal << 32 | element / 4);
    return (word[element % 4] >> 8) * 0x1p-24;
}

void
etk_ref_dropout(const struct etk_ref *r)
{
    const struct et_dropout_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    int64_t per_sample = 1;
    for (int k = 1; k < y->d.ndim; k++)
        per_sample *= y->d.shape[k];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        double u = uniform(&r->in[1], i.n / per_sample, o->ordinal,
                           (uint64_t)(i.n % per_sample));
        double v = u >= o->p ? etk_get(x, etk_offset(&x->d, i.ix)) / (1 - o->p) : 0;
        etk_set(y, etk_offset(&y->d, i.ix), v);
    }
}
