/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.c: y = x/(1-p) where kept, 0 elsewhere; the same op is its own gradient.
 *
 * This is the definition of the mask, for every device: an element is kept iff u >= p,
 * where u = w 2^-24 and w is the upper 24 bits of its word (words.h). */
#include "kernels/ref/words.h"

void
etk_ref_dropout(const struct etk_ref *r)
{
    const struct et_dropout_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    int64_t per_sample = etk_per_sample(&y->d);
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        double u = etk_word24(&r->in[1], i.n / per_sample, o->ordinal,
                              (uint64_t)(i.n % per_sample)) *
                   0x1p-24;
        double v = u >= o->p ? etk_get(x, etk_offset(&x->d, i.ix)) / (1 - o->p) : 0;
        etk_set(y, etk_offset(&y->d, i.ix), v);
    }
}
