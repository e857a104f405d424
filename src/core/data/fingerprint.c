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

static et_status
hash_images(struct et_ctx *cx, const struct et_dataset *set, XXH3_state_t *hash)
{
    const struct et_data_facts *f = &set->facts;
    size_t bytes = (size_t)(f->C * f->H * f->W);
    void *scratch;
    ET_TRY(et_alloc(cx, bytes + 1, &scratch));
    for (int64_t i = 0; i < PLACES && f->n_samples > 0; i++) {
        struct et_error why = {0};
        const uint8_t *pixels = NULL;
        int32_t label = -1; /* as is one that cannot be read */
        if (set->type->image(set, place(i, f->n_samples), scratch, &pixels, &label,
                             &why) == ET_OK)
            XXH3_64bits_update(hash, pixels, bytes);
        XXH3_64bits_update(hash, &label, sizeof label);
    }
    et_free(cx, scratch);
    return ET_OK;
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
    const int64_t facts[] = {f->kind, f->n_samples, f->n_tokens, f->C, f->H, f->W};
    XXH3_state_t *hash = XXH3_createState();
    et_status status = ET_OK;
    if (!hash)
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: a fingerprint of the data");
    XXH3_64bits_reset(hash);
    XXH3_64bits_update(hash, facts, sizeof facts);
    if (f->kind == ET_DATA_TOKENS)
        hash_tokens(set, hash);
    else
        status = hash_images(cx, set, hash);
    *out = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return status;
}
