/* SPDX-License-Identifier: Apache-2.0 */
/* move.c: copies between layouts, and reading and writing through indices.
 *
 * An index below 0 or past the end reads NaN (0 in integer arrays) and writes nothing;
 * it never leaves the array. */
#include "kernels/ref/array.h"

#include <string.h>

void
etk_ref_copy(const struct etk_ref *r)
{
    etk_ref_cast(r);
}

void
etk_ref_concat(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    const struct etk_array *y = &r->out[0];
    int64_t at = 0;
    for (int k = 0; k < r->n_in; k++) {
        const struct etk_array *x = &r->in[k];
        for (struct etk_pos i = etk_begin(&x->d); !i.end; etk_next(&x->d, &i))
            etk_move(y, etk_offset(&y->d, i.ix) + at * y->d.stride[o->axis], x,
                     etk_offset(&x->d, i.ix));
        at += x->d.shape[o->axis];
    }
}

/* The axes of D from slowest to fastest in memory, as a description to walk. */
static struct et_desc
in_memory_order(const struct et_desc *d)
{
    struct et_desc m = *d;
    for (int i = 1; i < m.ndim; i++)
        for (int k = i; k > 0 && m.stride[k - 1] < m.stride[k]; k--) {
            int64_t stride = m.stride[k], shape = m.shape[k];
            m.stride[k] = m.stride[k - 1];
            m.shape[k] = m.shape[k - 1];
            m.stride[k - 1] = stride;
            m.shape[k - 1] = shape;
        }
    return m;
}

/* The present operand that lies first from element BEGIN on; after those of the same
 * place up to AFTER; -1: none. */
static int
next_part(const struct etk_ref *r, int64_t begin, int after)
{
    const struct et_pack_attr *o = r->attr;
    int best = -1;
    for (int k = 0; k < r->n_in; k++)
        if (r->in[k].p &&
            (o->offset[k] > begin || (o->offset[k] == begin && k > after)) &&
            (best < 0 || o->offset[k] < o->offset[best]))
            best = k;
    return best;
}

/* Zeros between the parts alone: one that lies in its place already stays as it is. */
void
etk_ref_pack(const struct etk_ref *r)
{
    const struct et_pack_attr *o = r->attr;
    const struct etk_array *y = &r->out[0];
    int64_t end = 0;
    for (int k = next_part(r, 0, -1); k >= 0; k = next_part(r, o->offset[k], k)) {
        const struct etk_array *x = &r->in[k];
        struct et_desc m = in_memory_order(&x->d);
        for (; end < o->offset[k]; end++)
            etk_set(y, end * y->d.stride[0], 0);
        for (struct etk_pos i = etk_begin(&m); !i.end; etk_next(&m, &i))
            etk_move(y, (o->offset[k] + i.n) * y->d.stride[0], x, etk_offset(&m, i.ix));
        /* (A part of nothing may lie in the place of one that is longer.) */
        if (end < o->offset[k] + et_desc_count(&x->d))
            end = o->offset[k] + et_desc_count(&x->d);
    }
    for (; end < o->total; end++)
        etk_set(y, end * y->d.stride[0], 0);
}

/* Negative amounts cut off. */
void
etk_ref_pad(const struct etk_ref *r)
{
    const struct et_pad_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        int64_t from[ET_MAX_DIMS];
        bool inside = true;
        for (int k = 0; k < y->d.ndim; k++) {
            from[k] = i.ix[k] - o->before[k];
            inside &= from[k] >= 0 && from[k] < x->d.shape[k];
        }
        if (inside)
            etk_move(y, etk_offset(&y->d, i.ix), x, etk_offset(&x->d, from));
        else
            etk_set(y, etk_offset(&y->d, i.ix), o->value);
    }
}

void
etk_ref_flip(const struct etk_ref *r)
{
    const struct et_flip_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        int64_t from[ET_MAX_DIMS];
        for (int k = 0; k < y->d.ndim; k++)
            from[k] = o->axes >> k & 1 ? y->d.shape[k] - 1 - i.ix[k] : i.ix[k];
        etk_move(y, etk_offset(&y->d, i.ix), x, etk_offset(&x->d, from));
    }
}

/* Element IX of x[:axis] + index.shape + x[axis+1:]: where in x, through the index.
 * False when the index is out of range. */
static bool
taken(const struct etk_array *index, const struct et_desc *x, int axis,
      const int64_t *ix, int64_t *from)
{
    memset(from, 0, ET_MAX_DIMS * sizeof *from);
    for (int k = 0; k < axis; k++)
        from[k] = ix[k];
    for (int k = axis + 1; k < x->ndim; k++)
        from[k] = ix[k - 1 + index->d.ndim];
    from[axis] = etk_get_int(index, etk_offset(&index->d, ix + axis));
    return from[axis] >= 0 && from[axis] < x->shape[axis];
}

void
etk_ref_take(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        int64_t from[ET_MAX_DIMS];
        if (taken(&r->in[1], &x->d, o->axis, i.ix, from))
            etk_move(y, etk_offset(&y->d, i.ix), x, etk_offset(&x->d, from));
        else
            etk_set_nothing(y, etk_offset(&y->d, i.ix));
    }
}

/* Position IX of a dense row-major array of D's shape. */
static int64_t
linear(const struct et_desc *d, const int64_t *ix)
{
    int64_t n = 0;
    for (int k = 0; k < d->ndim; k++)
        n = n * d->shape[k] + ix[k];
    return n;
}

void
etk_ref_take_grad(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    const struct etk_array *dy = &r->in[0];
    const struct et_desc *dx = &r->out[0].d;
    for (struct etk_pos i = etk_begin(&dy->d); !i.end; etk_next(&dy->d, &i)) {
        int64_t to[ET_MAX_DIMS];
        if (taken(&r->in[1], dx, o->axis, i.ix, to))
            r->acc[0][linear(dx, to)] += etk_get(dy, etk_offset(&dy->d, i.ix));
    }
    etk_flush(r, 0);
}

/* As taken, for an index with as many axes as x. */
static bool
gathered(const struct etk_array *index, const struct et_desc *x, int axis,
         const int64_t *ix, int64_t *from)
{
    memcpy(from, ix, ET_MAX_DIMS * sizeof *from);
    from[axis] = etk_get_int(index, etk_offset(&index->d, ix));
    return from[axis] >= 0 && from[axis] < x->shape[axis];
}

void
etk_ref_gather(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        int64_t from[ET_MAX_DIMS];
        if (gathered(&r->in[1], &x->d, o->axis, i.ix, from))
            etk_move(y, etk_offset(&y->d, i.ix), x, etk_offset(&x->d, from));
        else
            etk_set_nothing(y, etk_offset(&y->d, i.ix));
    }
}

void
etk_ref_scatter_add(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *index = &r->in[1];
    const struct et_desc *y = &r->out[0].d;
    for (struct etk_pos i = etk_begin(&index->d); !i.end; etk_next(&index->d, &i)) {
        int64_t to[ET_MAX_DIMS];
        if (gathered(index, y, o->axis, i.ix, to))
            r->acc[0][linear(y, to)] += etk_get(x, etk_offset(&x->d, i.ix));
    }
    etk_flush(r, 0);
}
