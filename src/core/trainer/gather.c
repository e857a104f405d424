/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c: rows of all ranks, in the order of the data.
 *
 * A batch of n samples gives rank r those from n r / W to n (r + 1) / W (core/data/
 * loader_fill.c): put one behind the other they are the batch. An exchange has one size
 * for all, so each rank sends as many rows as the one that has most, and what it does
 * not have, or has only because the batch had none for it, is left out again.
 *
 * Source: Accelerate's gather_for_metrics, pad_across_processes and then gather.
 * Differs: ranks say how many rows are their own; nothing is guessed from the length of
 * the data set. */
#include "config.h"

#include <string.h>

#include "core/trainer/gather.h"
#include "core/trainer/ranks.h"

/* What ranks tell each other first. */
struct size {
    int64_t rows, length; /* own rows; entries of axis 1 */
    int64_t bytes;        /* of such an entry */
};

/* What all come to. */
struct sizes {
    struct size *of; /* [world] */
    int64_t rows, most, length, bytes;
};

/* N rows of what D describes. */
static struct size
size_of(const struct et_desc *d, int64_t n)
{
    const int64_t length = d->ndim > 1 ? d->shape[1] : 1;
    const int64_t entries = d->ndim > 0 ? d->shape[0] * length : 1;
    return (struct size){n, length,
                         entries > 0 ? (int64_t)et_desc_bytes(d) / entries : 0};
}

static et_status
exchange_sizes(struct et_ctx *cx, struct et_comm *c, int64_t n, const struct et_desc *d,
               struct sizes *out)
{
    const int world = et_comm_world(c);
    const struct size own = size_of(d, n);
    void *block;
    ET_TRY(et_alloc(cx, (size_t)world * sizeof own, &block));
    *out = (struct sizes){.of = block};
    ET_TRY(et_comm_all_gather(cx, c, &own, sizeof own, out->of));
    for (int r = 0; r < world; r++) {
        const struct size *s = &out->of[r];
        out->rows += s->rows;
        out->most = s->rows > out->most ? s->rows : out->most;
        if (s->rows > 0 && s->length > out->length)
            out->length = s->length;
        if (s->rows > 0)
            out->bytes = s->bytes;
    }
    return ET_OK;
}

static void
fill(void *to, enum et_dtype dtype, int64_t n, double pad)
{
    for (int64_t i = 0; i < n; i++)
        if (dtype == ET_F32)
            ((float *)to)[i] = (float)pad;
        else
            ((int32_t *)to)[i] = (int32_t)pad;
}

/* N rows of OWN bytes become rows of ALL bytes. */
static void
lengthen(char *to, const char *from, int64_t n, size_t own, size_t all,
         enum et_dtype dtype, double pad)
{
    for (int64_t i = 0; i < n; i++, to += all, from += own) {
        memcpy(to, from, own);
        if (all > own)
            fill(to + own, dtype, (int64_t)((all - own) / et_dtype_size(dtype)), pad);
    }
}

/* Of each rank's MOST rows of ROW bytes only its own, without gaps. */
static void
close_gaps(char *all, const struct sizes *s, int world, size_t row)
{
    char *to = all;
    for (int r = 0; r < world; r++) {
        size_t bytes = (size_t)s->of[r].rows * row;
        memmove(to, all + (size_t)r * (size_t)s->most * row, bytes);
        to += bytes;
    }
}

static et_status
exchange_rows(struct et_ctx *cx, struct et_comm *c, const void *rows, int64_t n,
              const struct et_desc *d, double pad, const struct sizes *s,
              struct eti_rows_of *out)
{
    const int world = et_comm_world(c);
    const struct size have = size_of(d, n);
    const size_t own = (size_t)(have.bytes * have.length);
    const size_t row = (size_t)(s->bytes * s->length);
    void *mine, *all;
    ET_TRY(et_alloc(cx, (size_t)s->most * row, &mine));
    lengthen(mine, rows, n, own, row, d->dtype, pad);
    et_status status = et_alloc(cx, (size_t)world * (size_t)s->most * row, &all);
    if (status == ET_OK) {
        out->data = all;
        status = et_comm_all_gather(cx, c, mine, (size_t)s->most * row, all);
    }
    et_free(cx, mine);
    if (status == ET_OK)
        close_gaps(all, s, world, row);
    return status;
}

et_status
eti_gather_rows(struct et_ctx *cx, struct et_comm *c, const void *rows, int64_t n,
                const struct et_desc *d, double pad, struct eti_rows_of *out)
{
    struct sizes s = {0};
    *out = (struct eti_rows_of){0};
    et_comm_set_mark(c, -1, ETI_AT_ROWS, 0);
    et_status status = exchange_sizes(cx, c, n, d, &s);
    if (status == ET_OK && d->ndim > 0) {
        const bool last = d->ndim == 4 && d->stride[1] == 1 && d->shape[1] > 1;
        int64_t shape[ET_MAX_DIMS];
        memcpy(shape, d->shape, sizeof shape);
        shape[0] = s.rows;
        if (d->ndim > 1)
            shape[1] = s.length;
        et_desc_init(&out->desc, d->dtype, d->ndim, shape,
                     last ? ET_CHANNELS_LAST : ET_ROW_MAJOR);
    }
    if (status == ET_OK && s.rows > 0)
        status = exchange_rows(cx, c, rows, n, d, pad, &s, out);
    et_free(cx, s.of);
    return status;
}

void
eti_gathered_free(struct et_ctx *cx, struct eti_rows_of *rows)
{
    et_free(cx, rows->data);
    rows->data = NULL;
}
