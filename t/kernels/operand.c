/* SPDX-License-Identifier: Apache-2.0 */
/* operand.c: the arrays that cases compare devices on; see compare.h. */
#include "t/kernels/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/rng.h"
#include "t/tap.h"

const char *
op_name(enum et_op_id op)
{
    static const char *const names[] = {
#define ET_OP(name, number) [number] = #name,
#include "etude/ops.def"
#undef ET_OP
    };
    return names[op];
}

void
operand_free(struct operand *o)
{
    free(o->block);
    free(o);
}

void
bench_clear(struct bench *b)
{
    while (b->operands) {
        struct operand *o = b->operands;
        b->operands = o->next;
        operand_free(o);
    }
}

void *
need(void *block)
{
    if (!block)
        bail("no memory");
    return block;
}

/* Axes A and B of the row-major array D exchanged in memory. */
static void
exchange(struct et_desc *d, int a, int b)
{
    struct et_desc t;
    int64_t shape[ET_MAX_DIMS];
    memcpy(shape, d->shape, sizeof shape);
    shape[a] = d->shape[b];
    shape[b] = d->shape[a];
    et_desc_init(&t, d->dtype, d->ndim, shape, ET_ROW_MAJOR);
    memcpy(d->stride, t.stride, sizeof d->stride);
    d->stride[a] = t.stride[b];
    d->stride[b] = t.stride[a];
}

static void
lay_out(struct operand *o, enum layout layout)
{
    struct et_desc *d = &o->d;
    if (layout == TURNED && d->ndim >= 2) {
        exchange(d, d->ndim - 1, d->ndim - 2);
    } else if (layout == HEADS && d->ndim >= 3) {
        exchange(d, 1, 2);
    } else if (layout == PACKED && d->ndim == 4) {
        exchange(d, 1, 2);
        o->base = d->shape[1] * d->shape[3];
        d->stride[0] *= 3;
        d->stride[2] *= 3;
    } else if (layout == GAPS) {
        o->base = 1;
        for (int i = 0; i < d->ndim; i++)
            d->stride[i] *= 2;
    } else if (layout == SHIFTED) {
        o->base = 1;
    } else if (layout == REPEAT && d->ndim > 0) {
        d->stride[0] = 0;
    }
}

static struct operand *
make(struct bench *b, const struct et_desc *d, enum layout layout)
{
    struct operand *o = need(calloc(1, sizeof *o));
    o->d = *d;
    lay_out(o, layout);
    o->extent = o->base +
                (layout == GAPS     ? 2
                 : layout == PACKED ? 3
                                    : 1) *
                    et_desc_count(d) +
                1;
    o->block = need(malloc((size_t)o->extent * et_dtype_size(d->dtype)));
    memset(o->block, POISON, (size_t)o->extent * et_dtype_size(d->dtype));
    o->next = b->operands;
    b->operands = o;
    return o;
}

static enum et_dtype
narrowed(const struct bench *b, enum et_dtype dtype)
{
    return dtype == ET_F32 && b->narrow ? b->narrow : dtype;
}

struct operand *
result(struct bench *b, enum et_dtype dtype, enum layout layout, int ndim,
       const int64_t *shape)
{
    struct et_desc d;
    et_desc_init(&d, narrowed(b, dtype), ndim, shape,
                 (layout == LAST || layout == SHIFTED) && ndim == 4 ? ET_CHANNELS_LAST
                                                                    : ET_ROW_MAJOR);
    return make(b, &d, layout);
}

struct operand *
result_as(struct bench *b, const struct et_desc *d)
{
    return make(b, d, ROW);
}

struct operand *
wide_result(struct bench *b, int ndim, const int64_t *shape)
{
    struct et_desc d;
    et_desc_init(&d, ET_F32, ndim, shape, ET_ROW_MAJOR);
    return make(b, &d, ROW);
}

struct operand *
result_like(struct bench *b, enum et_dtype dtype, const struct operand *x)
{
    struct et_desc d;
    et_desc_like(&d, narrowed(b, dtype), x->d.ndim, x->d.shape, &x->d);
    return make(b, &d, ROW);
}

uint32_t
draws_seed(void)
{
    const char *text = getenv("ETUDE_KERNELS_SEED");
    return text ? (uint32_t)strtoul(text, NULL, 10) : 17;
}

static double
draw(struct et_rng *rng, enum contents contents, int64_t limit)
{
    static const double special[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e-40};
    switch (contents) {
    case POSITIVE:
        return 0.1 + 1.9 * et_rng_uniform(rng);
    case COARSE:
        return (double)et_rng_below(rng, 7) - 3;
    case FAR:
        return 100 + et_rng_normal(rng);
    case INDEX:
        return limit > 0 ? (double)et_rng_below(rng, (uint64_t)limit) : 0;
    case SPECIAL:
        if (et_rng_below(rng, 3) == 0)
            return special[et_rng_below(rng, 6)];
        return et_rng_normal(rng);
    case HOLES:
        return et_rng_below(rng, 3) == 0 ? -INFINITY : 0;
    default:
        return et_rng_normal(rng);
    }
}

struct etk_array
array_of(const struct operand *o)
{
    char *p = o->block + o->base * (int64_t)et_dtype_size(o->d.dtype);
    return (struct etk_array){.d = o->d, .p = p};
}

struct operand *
operand(struct bench *b, enum et_dtype dtype, enum contents contents, int64_t limit,
        enum layout layout, int ndim, const int64_t *shape)
{
    struct operand *o = result(b, dtype, layout, ndim, shape);
    o->contents = contents;
    o->limit = limit;
    o->due = contents != GIVEN;
    return o;
}

/* FNV-1a, on from H. */
static uint64_t
hash(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

void
fill_operand(struct operand *o, enum et_op_id op, const char *name, int number)
{
    if (!o || !o->due)
        return;
    char place[16];
    snprintf(place, sizeof place, ": %d ", number);
    uint64_t key = hash(hash(UINT64_C(0xcbf29ce484222325), op_name(op)), place);
    struct et_rng rng = et_rng_at(draws_seed(), ET_RNG_DATA, hash(key, name));
    struct etk_array a = array_of(o);
    for (struct etk_pos i = etk_begin(&o->d); !i.end; etk_next(&o->d, &i))
        etk_set(&a, etk_offset(&o->d, i.ix), draw(&rng, o->contents, o->limit));
    o->due = false;
}

struct operand *
wide_operand(struct bench *b, enum contents contents, enum layout layout, int ndim,
             const int64_t *shape)
{
    enum et_dtype narrow = b->narrow;
    b->narrow = ET_NONE;
    struct operand *o = operand(b, ET_F32, contents, 0, layout, ndim, shape);
    b->narrow = narrow;
    return o;
}

struct operand *
normal(struct bench *b, enum layout layout, int ndim, const int64_t *shape)
{
    return operand(b, ET_F32, NORMAL, 0, layout, ndim, shape);
}

struct operand *
operand_copy(const struct operand *o)
{
    size_t bytes = (size_t)o->extent * et_dtype_size(o->d.dtype);
    struct operand *c = need(malloc(sizeof *c));
    *c = *o;
    c->next = NULL;
    c->block = need(malloc(bytes));
    memcpy(c->block, o->block, bytes);
    return c;
}
