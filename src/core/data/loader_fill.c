/* SPDX-License-Identifier: Apache-2.0 */
/* loader_fill.c: one batch: which samples it has, and writing them. See loader_impl.h.
 *
 * All that is drawn here is keyed by the seed and by epoch or place, so that it does
 * not matter who fills a slot, or when. */
#include <inttypes.h>
#include <string.h>

#include "core/data/file.h"
#include "core/data/loader_impl.h"

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
sample_at(const struct et_loader *l, struct eti_slot *s, const struct eti_order *order,
          int64_t place)
{
    if (s->bucket.place)
        return eti_bucket_at(l, &s->bucket, order, s->batch.epoch, place);
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
        if (s->n_skipped < ETI_SKIPPED_NAMED)
            eti_why(&s->skipped[s->n_skipped], ET_EFORMAT,
                    "%.900s (sample %" PRId64 " skipped, %" PRId64 " of %" PRId64
                    " allowed)",
                    why->message, at, l->n_corrupt, l->max_corrupt);
        s->n_skipped++;
    } else if (i == l->n_corrupt) {
        status = eti_why(&s->why, ET_EFORMAT,
                         "%.900s (sample %" PRId64 ", %" PRId64
                         " already skipped of %" PRId64 " allowed by max_corrupt)",
                         why->message, at, l->n_corrupt, l->max_corrupt);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* Has the memory fetched that will be read next: samples come in random order, and
 * waiting for them takes as long as writing them (measured at 784 bytes). */
static void
prefetch(const struct et_pixels *image)
{
    enum { LINE = 64, MOST = 4096 };
    const uint8_t *p = image->data;
    const int64_t bytes = image->C * image->H * image->W;
    for (int64_t i = 0; i < bytes && i < MOST; i += LINE)
        __builtin_prefetch(p + i);
}

/* A token that is none would make the loss NaN, long after. Of the N of sample AT. */
static et_status
check_tokens(const struct et_loader *l, struct eti_slot *s, int64_t at,
             const int32_t *token, int64_t n)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = token[i] > largest ? token[i] : largest;
    int64_t vocab_size = l->data->facts.field[ET_FIELD_X].below;
    if (largest < vocab_size || vocab_size == 0)
        return ET_OK;
    return eti_why(&s->why, ET_EFORMAT,
                   "%s: sample %" PRId64 " has the token %d, and there are %" PRId64,
                   l->data->type->info.name, at, (int)largest, vocab_size);
}

/* Makes pixels of what came as files: masks whole, of the image what the sample at
 * PLACE shows. */
static et_status
decode(const struct et_loader *l, int64_t at, int64_t place, struct eti_shot *shot,
       struct et_sample *s, struct et_error *why, bool *broken)
{
    const struct et_data_facts *f = &l->data->facts;
    for (int i = 0; i < f->n_fields; i++)
        if (f->field[i].kind == ET_FIELD_MASK &&
            eti_value_is_file(&f->field[i], &s->v[i]))
            ET_TRY(eti_sample_decode(l->data, at, i, &shot->mask[i], s, why, broken));
    if (l->image < 0 || l->resident)
        return ET_OK;
    const struct et_sample_value *image = &s->v[l->image];
    if (eti_pipeline_take(&l->pipeline, shot, image, l->config.seed, place, why) !=
        ET_OK)
        return eti_name_file(image, why);
    for (int i = 0; i < f->n_fields; i++) {
        const struct et_pixels *mask = &s->v[i].pixels;
        if (f->field[i].kind == ET_FIELD_MASK &&
            (mask->H != shot->H || mask->W != shot->W)) {
            (void)eti_why(why, ET_EFORMAT,
                          "a mask of %" PRId64 " x %" PRId64
                          " pixels for a picture of %" PRId64 " x %" PRId64,
                          mask->W, mask->H, shot->W, shot->H);
            return eti_name_file(&s->v[i], why);
        }
    }
    return ET_OK;
}

/* Finds sample *AT, which is to be at PLACE, or the next one that can be read. */
static et_status
read_sample(struct et_loader *l, struct eti_slot *s, int64_t *at, int64_t place,
            struct eti_room *room, struct eti_shot *shot, struct et_sample *out)
{
    for (;;) {
        struct et_error why = {0};
        bool broken;
        struct et_rng draws =
            eti_sample_draws(l->config.seed, l->config.train ? place : *at);
        et_status status =
            eti_sample_read(l->data, *at, &draws, room, out, &why, &broken);
        if (status == ET_OK)
            status = decode(l, *at, place, shot, out, &why, &broken);
        if (status == ET_OK)
            return ET_OK;
        if (broken)
            return eti_why(&s->why, status, "%.900s", why.message);
        if (status != ET_EFORMAT)
            return eti_why(&s->why, status, "%.900s (sample %" PRId64 ")", why.message,
                           *at);
        ET_TRY(note_corrupt(l, s, *at, &why));
        *at = (*at + 1) % l->n;
    }
}

/* Where the device has the pixels: what sample R shows of image AT. */
static void
write_frame(const struct et_loader *l, struct eti_slot *s, int64_t r, int64_t at)
{
    int32_t *row = s->frames + r * l->row_numbers;
    struct eti_shown f;
    if (!l->pipeline.cuts) {
        eti_pipeline_tell(&l->pipeline, l->config.seed, s->batch.first + r, at, row);
        return;
    }
    eti_pipeline_frame(&l->pipeline, l->config.seed, s->batch.first + r, &f);
    row[ET_FRAME_SAMPLE] = (int32_t)at;
    row[ET_FRAME_Y] = (int32_t)f.y;
    row[ET_FRAME_X] = (int32_t)f.x;
    row[ET_FRAME_Y_MIN] = (int32_t)f.y_min;
    row[ET_FRAME_X_MIN] = (int32_t)f.x_min;
    row[ET_FRAME_Y_MAX] = (int32_t)f.y_max;
    row[ET_FRAME_X_MAX] = (int32_t)f.x_max;
    row[ET_FRAME_FLIPPED] = f.flipped;
}

static et_status
write_sample(const struct et_loader *l, struct eti_slot *s, int64_t r, int64_t at,
             struct eti_shot *shot, const struct et_sample *sample)
{
    if (l->resident)
        write_frame(l, s, r, at);
    else if (l->image >= 0)
        ET_TRY(eti_pipeline_run(
            &l->pipeline, shot, l->config.seed, s->batch.first + r,
            (float *)s->of[l->image].memory + r * l->column[l->image].row, &s->why));
    return eti_collate_sample(l, s, r, at, shot, sample);
}

/* Reads one sample ahead of writing. */
static et_status
fill_samples(struct et_loader *l, struct eti_slot *s, const struct eti_order *order,
             int64_t first)
{
    const int64_t n = s->batch.n_samples;
    struct et_sample sample[2];
    int64_t at[2];
    for (int64_t i = 0; i <= n; i++) {
        const int now = i % 2, last = 1 - now;
        if (i < n) {
            at[now] = sample_at(l, s, order, first + i);
            ET_TRY(read_sample(l, s, &at[now], s->batch.first + i, &s->room[now],
                               &s->shot[now], &sample[now]));
            if (l->image >= 0 && !l->resident)
                prefetch(&sample[now].v[l->image].pixels);
        }
        if (i > 0)
            ET_TRY(write_sample(l, s, i - 1, at[last], &s->shot[last], &sample[last]));
    }
    eti_collate_end(l, s);
    return ET_OK;
}

/* How many tokens the samples [FIRST, FIRST + N) of the epoch have: known without
 * reading them, so that all ranks come to the same number. */
static int64_t
count_tokens(const struct et_loader *l, struct eti_slot *s,
             const struct eti_order *order, int64_t first, int64_t n)
{
    const struct et_dataset_class *c = l->data->type;
    const struct eti_column *x = &l->column[ET_FIELD_X];
    int64_t sum = 0;
    if (l->field[ET_FIELD_X].kind != ET_FIELD_TOKENS)
        return 0;
    if (!x->differs)
        return n * x->row;
    for (int64_t i = 0; c->length && i < n; i++)
        sum += c->length(l->data, sample_at(l, s, order, first + i));
    return sum;
}

static et_status
fill_tokens(struct et_loader *l, struct eti_slot *s, const struct eti_order *order,
            int64_t first)
{
    struct et_batch *b = &s->batch;
    const struct et_dataset *data = l->data;
    int64_t T = data->common->seq_len, phase = window_phase(l, b->epoch);
    int32_t *x = s->of[ET_FIELD_X].memory, *target = s->of[ET_FIELD_TARGET].memory;
    for (int64_t i = 0; i < b->n_samples; i++, x += T, target += T) {
        struct et_error why = {0};
        int64_t at = sample_at(l, s, order, first + i), begin = phase + at * T;
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
    eti_collate_end(l, s);
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
    eti_order_init(&order, l->n, l->config.seed, b->epoch);
    b->n_tokens = count_tokens(l, s, &order, first, b->n_samples);
    b->all_tokens =
        count_tokens(l, s, &order, b->batch * l->batch_size, b->all_samples);
    return l->data->type->tokens ? fill_tokens(l, s, &order, first)
                                 : fill_samples(l, s, &order, first);
}
