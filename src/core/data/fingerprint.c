/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint.c: a number by which data are known again when a run goes on.
 *
 * XXH3 over the facts and over what lies at 64 places from the first to the last. It
 * tells other data from the same; a change between those places is not seen. */
#include <string.h>
#include <xxhash.h>

#include "core/data/loader_impl.h"

enum { PLACES = 64, TOKENS = 64 /* at each */ };

/* Place I of N things. */
static int64_t
place(int64_t i, int64_t n)
{
    return n > 1 ? i * (n - 1) / (PLACES - 1) : 0;
}

static bool
is_dense(const struct et_pixels *p)
{
    return p->stride_x == p->C
               ? p->stride_c == 1 && p->stride_y == p->W * p->C
               : p->stride_x == 1 && p->stride_y == p->W && p->stride_c == p->H * p->W;
}

/* The bytes of an image as they lie, by which a run is known that was saved before
 * samples had fields; one by one where there are gaps. */
static void
hash_pixels(const struct et_pixels *p, XXH3_state_t *hash)
{
    if (is_dense(p)) {
        XXH3_64bits_update(hash, p->data, (size_t)(p->C * p->H * p->W));
        return;
    }
    for (int c = 0; c < p->C; c++)
        for (int64_t y = 0; y < p->H; y++)
            for (int64_t x = 0; x < p->W; x++)
                XXH3_64bits_update(
                    hash, p->data + c * p->stride_c + y * p->stride_y + x * p->stride_x,
                    1);
}

static void
hash_sample(const struct et_sample *s, XXH3_state_t *hash)
{
    const struct et_data_facts *f = s->facts;
    for (int i = 0; i < f->n_fields; i++) {
        size_t n = et_dtype_size(f->field[i].dtype);
        if (eti_value_is_file(&f->field[i], &s->v[i])) {
            XXH3_64bits_update(hash, s->v[i].data, (size_t)s->v[i].shape[0]);
            continue;
        }
        if (f->field[i].kind <= ET_FIELD_MASK) {
            hash_pixels(&s->v[i].pixels, hash);
            continue;
        }
        for (int k = 0; k < f->field[i].ndim; k++)
            n *= (size_t)s->v[i].shape[k];
        XXH3_64bits_update(hash, s->v[i].data, n);
    }
}

static void
hash_samples(const struct et_dataset *set, XXH3_state_t *hash)
{
    struct eti_room room = {0};
    struct et_sample sample;
    int64_t n = set->facts.n_samples;
    for (int64_t i = 0; i < PLACES && n > 0; i++) {
        static const int32_t unreadable = -1;
        struct et_error why = {0};
        bool broken;
        if (eti_sample_read(set, place(i, n), NULL, &room, &sample, &why, &broken) ==
            ET_OK)
            hash_sample(&sample, hash);
        else
            XXH3_64bits_update(hash, &unreadable, sizeof unreadable);
    }
    eti_room_free(&room);
}

static void
hash_tokens(const struct et_dataset *set, XXH3_state_t *hash)
{
    int64_t n = set->facts.n_tokens < TOKENS ? set->facts.n_tokens : TOKENS;
    for (int64_t i = 0; i < PLACES && n > 0; i++) {
        struct et_error why = {0};
        int32_t token[TOKENS] = {0};
        if (set->type->tokens(set, place(i, set->facts.n_tokens - n + 1), n, token,
                              &why) == ET_OK)
            XXH3_64bits_update(hash, token, sizeof token);
    }
}

et_status
eti_data_fingerprint(struct et_ctx *cx, const struct et_dataset *set, uint64_t *out)
{
    const struct et_data_facts *f = &set->facts;
    const int64_t *shape = f->field[ET_FIELD_X].shape;
    const bool image = eti_facts_image(f) == ET_FIELD_X, stream = set->type->tokens;
    const int64_t facts[] = {stream,
                             f->n_samples,
                             f->n_tokens,
                             image ? shape[0] : 0,
                             image ? shape[1] : 0,
                             image ? shape[2] : 0};
    XXH3_state_t *hash = XXH3_createState();
    if (!hash)
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: a fingerprint of the data");
    XXH3_64bits_reset(hash);
    XXH3_64bits_update(hash, facts, sizeof facts);
    if (stream)
        hash_tokens(set, hash);
    else
        hash_samples(set, hash);
    *out = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return ET_OK;
}
