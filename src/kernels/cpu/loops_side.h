/* SPDX-License-Identifier: Apache-2.0 */
/* loops_side.h: operands in the layout that a loop wants.
 *
 * A loop is written for dense arrays. An array that lies otherwise (a slice, a view of
 * heads, another axis order) is copied into the workspace before the loop, or out of it
 * after: two more passes over memory, and no second version of the loop. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_SIDE_H
#define ETUDE_KERNELS_CPU_LOOPS_SIDE_H

#include "kernels/cpu/loops.h"
#include "kernels/cpu/tiles.h"

struct side {
    struct etk_copy copy;
    size_t at; /* in the workspace */
    bool copied;
};

static inline size_t
reserve(size_t *ws, size_t bytes)
{
    size_t at = *ws;
    *ws += etk_round_up(bytes);
    return at;
}

/* HAVE is where the array lies, WANT where the loop will have it. */
static inline void
side_init(struct side *s, const struct et_desc *have, const struct et_desc *want,
          bool is_result, size_t *ws)
{
    s->copied = have->dtype != ET_NONE && !et_desc_equal(have, want);
    if (!s->copied)
        return;
    s->at = reserve(ws, et_desc_bytes(want));
    if (is_result)
        etk_copy_init(&s->copy, have, want);
    else
        etk_copy_init(&s->copy, want, have);
}

/* An operand; P may be NULL. */
static inline const void *
side_read(const struct side *s, const void *p, void *ws)
{
    if (!s->copied)
        return p;
    ETK_NAME(etk_copy_run)(&s->copy, (char *)ws + s->at, p);
    return (char *)ws + s->at;
}

/* Where to write a result, and when it is written. */
static inline void *
side_write(const struct side *s, void *p, void *ws)
{
    return s->copied ? (char *)ws + s->at : p;
}

static inline void
side_flush(const struct side *s, void *p, void *ws)
{
    if (s->copied)
        ETK_NAME(etk_copy_run)(&s->copy, p, (char *)ws + s->at);
}

/* Dense row-major of the same shape and dtype. */
static inline struct et_desc
row_major(const struct et_desc *d)
{
    struct et_desc r;
    et_desc_init(&r, d->dtype, d->ndim, d->shape, ET_ROW_MAJOR);
    return r;
}

/* The lines of a dense array along an axis: element i of line (o, j) lies at
 * (o n + i) inner + j. */
struct lines {
    int64_t outer, n, inner;
};

/* A layout of D in which lines, numbered (o, j), follow the row-major order of the
 * other axes: row-major itself, or channels-last for axis 1. */
static inline struct et_desc
lines_layout(const struct et_desc *d, int axis, struct lines *l)
{
    struct et_desc want = row_major(d);
    if (d->ndim == 4 && axis == 1 && et_desc_is_contiguous(d, ET_CHANNELS_LAST))
        et_desc_init(&want, d->dtype, 4, d->shape, ET_CHANNELS_LAST);
    l->n = d->ndim > 0 ? d->shape[axis] : 1;
    l->inner = d->ndim > 0 ? want.stride[axis] : 1;
    l->outer = l->n > 0 ? et_desc_count(d) / (l->n * l->inner) : 0;
    return want;
}

static inline int
pieces_for(const struct et_device_handle *d, int64_t work, int64_t units)
{
    if (work < ETK_PARALLEL_COUNT || units < 2)
        return 1;
    return units < d->threads ? (int)units : d->threads;
}

#endif
