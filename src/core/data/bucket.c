/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.c: an order in which samples of like length go together.
 *
 * The epoch's order, as it would be, is cut into windows of 50 batches. The samples of
 * a window are sorted by length, then cut into batches, and the batches are put in an
 * order that is drawn by (seed, epoch, window), so that training does not go from short
 * to long again and again. Like the order itself this needs no memory of what was
 * before: a batch is the same for any workers and ranks, and after a resume.
 *
 * Source: the grouping by length of Hugging Face's Trainer, whose windows are 50
 * batches too. Differs: the longest sample does not come first. */
#include <stdlib.h>

#include "core/data/loader_impl.h"

enum { WINDOW = 50 }; /* batches */

struct eti_bucketed {
    int32_t length, before; /* where in the window it would be */
    int64_t at;
};

size_t
eti_bucket_bytes(const struct et_loader *l)
{
    return (size_t)(WINDOW * l->batch_size) * sizeof(struct eti_bucketed);
}

static int
by_length(const void *a, const void *b)
{
    const struct eti_bucketed *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return x->before < y->before ? -1 : x->before > y->before;
}

static void
sort_window(const struct et_loader *l, const struct eti_order *order, int64_t first,
            int64_t n, struct eti_bucketed *out)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at =
            l->data->common->shuffle ? eti_order_at(order, first + i) : first + i;
        out[i] = (struct eti_bucketed){(int32_t)l->data->type->length(l->data, at),
                                       (int32_t)i, at};
    }
    qsort(out, (size_t)n, sizeof *out, by_length);
}

/* Which of the N full batches of a window comes at place I. */
static int64_t
choose_batch(const struct et_loader *l, int64_t epoch, int64_t window, int64_t n,
             int64_t i)
{
    int32_t batch[WINDOW];
    struct et_rng r = et_rng_at(l->config.seed, ET_RNG_SHUFFLE, (uint64_t)epoch);
    if (!l->data->common->shuffle || i >= n) /* a last one that is short stays last */
        return i;
    r.ordinal = (uint64_t)(2 + window) << 32; /* far from other draws of the stream */
    et_rng_permutation(&r, batch, n);
    return batch[i];
}

int64_t
eti_bucket_at(const struct et_loader *l, struct eti_bucket *b,
              const struct eti_order *order, int64_t epoch, int64_t place)
{
    const int64_t size = WINDOW * l->batch_size, window = place / size;
    const int64_t first = window * size;
    const int64_t n = l->samples - first < size ? l->samples - first : size;
    if (!b->full || b->epoch != epoch || b->window != window) {
        sort_window(l, order, first, n, b->place);
        b->epoch = epoch;
        b->window = window;
        b->full = true;
    }
    int64_t batch = choose_batch(l, epoch, window, n / l->batch_size,
                                 (place - first) / l->batch_size);
    return b->place[batch * l->batch_size + place % l->batch_size].at;
}
