/* SPDX-License-Identifier: Apache-2.0 */
/* loader_fill.c: one batch: which samples it has, and writing them. See loader_impl.h.
 *
 * All that is drawn here is keyed by the seed and by epoch or place, so that it does
 * not matter who fills a slot, or when. */
#include <inttypes.h>
#include <string.h>

#include "core/data/file.h"
#include "core/data/loader_impl.h"
#include "core/data/order.h"

/* ---- which samples ---- */

int64_t
eti_loader_whole(const struct et_loader *l, int64_t batch)
{
    int64_t left = l->samples - batch * l->batch_size;
    return left < l->batch_size ? left : l->batch_size;
}

int64_t
eti_loader_slice(const struct et_loader *l, int64_t batch, int64_t *first, bool *spare)
{
    int64_t size = eti_loader_whole(l, batch);
    int64_t from = size * l->config.rank / l->config.world_size;
    int64_t to = size * (l->config.rank + 1) / l->config.world_size;
    *spare = to == from;
    if (*spare) /* there is a sample: the batch would not be, otherwise */
        from = from < size ? from : size - 1;
    *first = batch * l->batch_size + from;
    return *spare ? 1 : to - from;
}

int64_t
eti_loader_windows(const struct et_data_facts *f, int64_t T, bool train)
{
    int64_t n = train ? (f->n_tokens - T) / T : (f->n_tokens - 1) / T;
    return n > 0 ? n : 1;
}

static int64_t
window_phase(const struct et_loader *l, int64_t epoch)
{
    if (!l->config.train)
        return 0;
    int64_t T = l->data->common->seq_len;
    int64_t spare =
        l->data->facts.n_tokens - l->n * T; /* places for the first window */
    struct et_rng r = et_rng_at(l->config.seed, ET_RNG_SHUFFLE, (uint64_t)epoch);
    r.ordinal = (uint64_t)1 << 32; /* far from the order's keys */
    return (int64_t)et_rng_below(&r, (uint64_t)(spare < T ? spare : T));
}

static int64_t
sample_at(const struct et_loader *l, const struct eti_order *order, int64_t place)
{
    return l->data->common->shuffle ? eti_order_at(order, place) : place;
}

/* ---- filling a slot ---- */

/* Counts sample AT as unreadable. EFORMAT when that is one too many. */
static et_status
note_corrupt(struct et_loader *l, struct eti_slot *s, int64_t at,
             const struct et_error *why)
{
    et_status status = ET_OK;
    pthread_mutex_lock(&l->lock);
    int64_t i = 0;
    while (i < l->n_corrupt && l->corrupt[i] != at)
        i++;
    if (i == l->n_corrupt && i < l->max_corrupt) {
        l->corrupt[l->n_corrupt++] = at;
        s->n_skipped++;
        eti_why(&s->skipped, ET_EFORMAT,
                "%.900s (sample %" PRId64 " skipped, %" PRId64 " of %" PRId64
                " allowed)",
                why->message, at, l->n_corrupt, l->max_corrupt);
    } else if (i == l->n_corrupt) {
        status = eti_why(&s->why, ET_EFORMAT,
                         "%.900s (sample %" PRId64 ", %" PRId64
                         " already skipped of %" PRId64 " allowed)",
                         why->message, at, l->n_corrupt, l->max_corrupt);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* A raw image on its way into a batch. */
struct raw {
    const uint8_t *pixels;
    int32_t label;
    int64_t at; /* its number in the data set */
};

/* Has the memory fetched that will be read next: samples come in random order, and
 * waiting for them takes as long as writing them (measured at 784 bytes). */
static void
prefetch(const uint8_t *p, int64_t bytes)
{
    enum { LINE = 64, MOST = 4096 };
    for (int64_t i = 0; i < bytes && i < MOST; i += LINE)
        __builtin_prefetch(p + i);
}

/* A label that is no class would make the loss NaN, long after; negative ones count for
 * nothing. */
static et_status
check_label(const struct et_loader *l, struct eti_slot *s, int64_t at, int32_t label)
{
    int classes = l->data->facts.num_classes;
    if (label < classes || classes == 0)
        return ET_OK;
    return eti_why(&s->why, ET_EFORMAT,
                   "%s: sample %" PRId64 " has the label %d, and there are %d classes",
                   l->data->type->info.name, at, (int)label, classes);
}

/* The same of the N tokens of sample AT. */
static et_status
check_tokens(const struct et_loader *l, struct eti_slot *s, int64_t at,
             const int32_t *token, int64_t n)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = token[i] > largest ? token[i] : largest;
    int64_t vocab_size = l->data->facts.vocab_size;
    if (largest < vocab_size || vocab_size == 0)
        return ET_OK;
    return eti_why(&s->why, ET_EFORMAT,
                   "%s: sample %" PRId64 " has the token %d, and there are %" PRId64,
                   l->data->type->info.name, at, (int)largest, vocab_size);
}

/* Finds sample AT, or the next one that can be read. */
static et_status
read_image(struct et_loader *l, struct eti_slot *s, int64_t at, uint8_t *scratch,
           struct raw *out)
{
    const struct et_dataset *data = l->data;
    for (;;) {
        struct et_error why = {0};
        et_status status =
            data->type->image(data, at, scratch, &out->pixels, &out->label, &why);
        out->at = at;
        if (status == ET_OK)
            return check_label(l, s, at, out->label);
        if (status != ET_EFORMAT)
            return eti_why(&s->why, status, "%.900s (sample %" PRId64 ")", why.message,
                           at);
        ET_TRY(note_corrupt(l, s, at, &why));
        at = (at + 1) % l->n;
    }
}

/* Reads one sample ahead of writing. */
static et_status
fill_images(struct et_loader *l, struct eti_slot *s, const struct eti_order *order,
            int64_t first)
{
    struct et_batch *b = &s->batch;
    uint8_t *resized = s->scratch + 2 * l->raw_bytes;
    struct raw raw[2];
    for (int64_t i = 0; i <= b->n_samples; i++) {
        if (i < b->n_samples) {
            ET_TRY(read_image(l, s, sample_at(l, order, first + i),
                              s->scratch + i % 2 * l->raw_bytes, &raw[i % 2]));
            prefetch(raw[i % 2].pixels, l->raw_bytes);
        }
        if (i == 0)
            continue;
        const struct raw *r = &raw[(i - 1) % 2];
        b->target[i - 1] = r->label;
        eti_pipeline_run(&l->pipeline, r->pixels, resized, l->config.seed,
                         b->first + i - 1, (float *)b->x + (i - 1) * l->x_stride);
    }
    return ET_OK;
}

/* Where the device has the pixels: what the samples show of them. */
static et_status
fill_frames(struct et_loader *l, struct eti_slot *s, const struct eti_order *order,
            int64_t first)
{
    struct et_batch *b = &s->batch;
    int32_t *row = s->frames;
    struct raw raw;
    for (int64_t i = 0; i < b->n_samples; i++, row += ET_FRAME_NUMBERS) {
        struct et_frame f;
        ET_TRY(read_image(l, s, sample_at(l, order, first + i), s->scratch, &raw));
        b->target[i] = raw.label;
        eti_pipeline_frame(&l->pipeline, l->config.seed, b->first + i, &f);
        row[ET_FRAME_SAMPLE] = (int32_t)raw.at;
        row[ET_FRAME_Y] = (int32_t)f.y;
        row[ET_FRAME_X] = (int32_t)f.x;
        row[ET_FRAME_Y_MIN] = (int32_t)f.y_min;
        row[ET_FRAME_X_MIN] = (int32_t)f.x_min;
        row[ET_FRAME_Y_MAX] = (int32_t)f.y_max;
        row[ET_FRAME_X_MAX] = (int32_t)f.x_max;
        row[ET_FRAME_FLIPPED] = f.flipped;
    }
    return ET_OK;
}

static et_status
fill_tokens(struct et_loader *l, struct eti_slot *s, const struct eti_order *order,
            int64_t first)
{
    struct et_batch *b = &s->batch;
    const struct et_dataset *data = l->data;
    int64_t T = data->common->seq_len, phase = window_phase(l, b->epoch);
    int32_t *x = b->x, *target = b->target;
    for (int64_t i = 0; i < b->n_samples; i++, x += T, target += T) {
        struct et_error why = {0};
        int64_t at = sample_at(l, order, first + i), begin = phase + at * T;
        et_status status = data->type->tokens(data, begin, T, x, &why);
        if (status == ET_OK)
            status = data->type->tokens(data, begin + T, 1, &target[T - 1], &why);
        if (status != ET_OK)
            return eti_why(&s->why, status, "%.900s (sample %" PRId64 ")", why.message,
                           at);
        memcpy(target, x + 1, (size_t)(T - 1) * sizeof *target);
        ET_TRY(check_tokens(l, s, at, x, 1));
        ET_TRY(check_tokens(l, s, at, target, T));
    }
    b->n_tokens = b->n_samples * T;
    b->all_tokens = b->all_samples * T;
    return ET_OK;
}

et_status
eti_loader_fill(struct et_loader *l, struct eti_slot *s)
{
    struct et_batch *b = &s->batch;
    struct eti_order order;
    int64_t first;
    s->n_skipped = 0;
    b->epoch = s->number / l->batches;
    b->batch = s->number % l->batches;
    b->n_samples = eti_loader_slice(l, b->batch, &first, &b->spare);
    b->all_samples = eti_loader_whole(l, b->batch);
    b->first = b->epoch * l->samples + first;
    b->x_desc.shape[0] = b->target_desc.shape[0] = b->n_samples;
    const struct eti_batch_tensors *t =
        b->n_samples == l->x_desc.shape[0] ? &s->full : &s->last;
    *(l->resident ? &b->frames : &b->x_tensor) = t->x;
    b->target_tensor = t->target;
    eti_order_init(&order, l->n, l->config.seed, b->epoch);
    return l->data->facts.kind == ET_DATA_TOKENS ? fill_tokens(l, s, &order, first)
           : l->resident                         ? fill_frames(l, s, &order, first)
                                                 : fill_images(l, s, &order, first);
}
