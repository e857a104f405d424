/* SPDX-License-Identifier: Apache-2.0 */
/* random.c: numbers drawn for each sample.
 *
 * This is their definition, for every device. Of an element's word (words.h) w is the
 * upper 24 bits:
 *
 *   uniform    w 2^-24
 *   Bernoulli  1 where w 2^-24 < p, else 0
 *   normal     elements 2i and 2i + 1 of a sample are r cos(2 pi v) and r sin(2 pi v),
 *              r = sqrt(-2 ln u), u = (w[2i] + 1) 2^-24, v = w[2i + 1] 2^-24 (Box and
 *              Muller 1958) */
#include "kernels/ref/words.h"

#define TURN 6.28318530717958647693 /* 2 pi */

/* cos(2 pi V), V in [0, 2): quarters of a turn are taken away first, exactly. */
static double
cos_of_turns(double v)
{
    double quarters = floor(4 * v + 0.5), rest = v - quarters / 4;
    switch ((int)quarters & 3) {
    case 0:
        return cos(TURN * rest);
    case 1:
        return -sin(TURN * rest);
    case 2:
        return -cos(TURN * rest);
    default:
        return sin(TURN * rest);
    }
}

static double
normal(const struct etk_array *rng, int64_t row, uint64_t ordinal, uint64_t element)
{
    uint64_t even = element & ~(uint64_t)1;
    double u = (etk_word24(rng, row, ordinal, even) + 1) * 0x1p-24;
    double v = etk_word24(rng, row, ordinal, even + 1) * 0x1p-24;
    /* The sine is the cosine three quarters of a turn on. */
    return sqrt(-2 * log(u)) * cos_of_turns(element == even ? v : v + 0.75);
}

void
etk_ref_random(const struct etk_ref *r)
{
    const struct et_random_attr *o = r->attr;
    const struct etk_array *rng = &r->in[0], *y = &r->out[0];
    int64_t per_sample = etk_per_sample(&y->d);
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        int64_t row = i.n / per_sample;
        uint64_t element = (uint64_t)(i.n % per_sample);
        double u = etk_word24(rng, row, o->ordinal, element) * 0x1p-24;
        double v = o->kind == ET_RANDOM_UNIFORM  ? u
                   : o->kind == ET_RANDOM_NORMAL ? normal(rng, row, o->ordinal, element)
                                                 : u < o->p;
        etk_set(y, etk_offset(&y->d, i.ix), v);
    }
}
