/* SPDX-License-Identifier: Apache-2.0 */
/* words.c: the ids of words: from the encoder's cache, or from the model.
 *
 * A text has few words that come often. A line of the cache is as long as one of the
 * processor's, and holds a short word with its ids; a word has two places. Words that
 * are longer, or of more tokens, are computed each time. */
#include <string.h>

#include "core/base/memory.h"
#include "core/text/words.h"

enum {
    LINES = 1 << 14, /* 1 MiB */
    WORD_MAX = 32,
    IDS_MAX = 7,
};

struct eti_cached {
    uint64_t word[WORD_MAX / sizeof(uint64_t)]; /* zeroed behind its end */
    uint8_t length, n;
    uint8_t age; /* 1: used later than the other of the two */
    uint8_t unused;
    int32_t id[IDS_MAX];
};
_Static_assert(sizeof(struct eti_cached) == 64, "a line of the cache");

et_status
eti_put_id(struct et_encoder *e, int32_t id)
{
    if (e->n == e->id_room)
        ET_TRY(eti_grow(e->cx, &e->id, &e->id_room, e->n + 1, sizeof *e->id));
    e->id[e->n++] = id;
    return ET_OK;
}

et_status
eti_put_unknown(struct et_encoder *e, const char *text, size_t n, bool fuse,
                bool *was_unk)
{
    const struct et_tokenizer *t = e->t;
    if (eti_has_bytes(t, text, n)) {
        *was_unk = false;
        for (size_t i = 0; i < n; i++)
            ET_TRY(eti_put_id(e, t->fallback[(uint8_t)text[i]]));
        return ET_OK;
    }
    bool joins = *was_unk && fuse;
    *was_unk = true;
    return joins || t->unk < 0 ? ET_OK : eti_put_id(e, t->unk);
}

static et_status
ask_model(struct et_encoder *e, const char *text, size_t n)
{
    switch (e->t->model) {
    case ETI_BPE:
        return eti_bpe_word(e, text, n);
    case ETI_WORDPIECE:
        return eti_wordpiece_word(e, text, n);
    case ETI_UNIGRAM:
        return eti_unigram_word(e, text, n);
    case ETI_BYTES:
        break;
    }
    for (size_t i = 0; i < n; i++)
        ET_TRY(eti_put_id(e, (uint8_t)text[i]));
    return ET_OK;
}

/* Copies N bytes, 1 .. WORD_MAX, and zeroes what is behind them to a multiple of 8. */
static size_t
load(uint64_t *word, const char *text, size_t n)
{
    size_t whole = (n - 1) / 8;
    for (size_t i = 0; i < whole; i++)
        memcpy(&word[i], text + 8 * i, 8);
    word[whole] = 0;
    for (size_t i = 8 * whole, shift = 0; i < n; i++, shift += 8)
        word[whole] |= (uint64_t)(uint8_t)text[i] << shift;
    return whole + 1;
}

static uint64_t
hash_of(const uint64_t *word, size_t parts, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < parts; i++) {
        h = (h ^ word[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h >> 16;
}

static bool
holds(const struct eti_cached *l, const uint64_t *word, size_t parts, size_t n)
{
    uint64_t differs = (uint64_t)l->length ^ n;
    for (size_t i = 0; i < parts; i++)
        differs |= l->word[i] ^ word[i];
    return differs == 0;
}

static et_status
put_line(struct et_encoder *e, struct eti_cached *l, struct eti_cached *other)
{
    if (e->n + IDS_MAX > e->id_room)
        ET_TRY(eti_grow(e->cx, &e->id, &e->id_room, e->n + IDS_MAX, sizeof *e->id));
    memcpy(e->id + e->n, l->id, sizeof l->id); /* of which N count */
    e->n += l->n;
    l->age = 1;
    other->age = 0;
    return ET_OK;
}

et_status
eti_word(struct et_encoder *e, const char *text, size_t n)
{
    uint64_t word[WORD_MAX / sizeof(uint64_t)];
    if (n == 0)
        return ET_OK;
    if (n > WORD_MAX || !e->cache)
        return ask_model(e, text, n);
    size_t parts = load(word, text, n);
    uint64_t at = hash_of(word, parts, n) % LINES;
    struct eti_cached *a = &e->cache[at], *b = &e->cache[at ^ 1];
    if (holds(a, word, parts, n))
        return put_line(e, a, b);
    if (holds(b, word, parts, n))
        return put_line(e, b, a);
    int64_t before = e->n;
    ET_TRY(ask_model(e, text, n));
    if (e->n - before > IDS_MAX)
        return ET_OK;
    if (a->age > b->age)
        a = b;
    memcpy(a->word, word, parts * sizeof *word);
    a->length = (uint8_t)n;
    a->n = (uint8_t)(e->n - before);
    a->age = 0;
    if (a->n > 0) /* some words become no id */
        memcpy(a->id, e->id + before, (size_t)a->n * sizeof *a->id);
    return ET_OK;
}

/* Models whose words are worth keeping. */
static bool
has_words(const struct et_tokenizer *t)
{
    return t->model == ETI_WORDPIECE || (t->model == ETI_BPE && t->n_splits > 0) ||
           (t->model == ETI_UNIGRAM && t->n_splits > 0);
}

et_status
eti_cache_new(struct et_encoder *e)
{
    return has_words(e->t)
               ? et_alloc(e->cx, LINES * sizeof(struct eti_cached), (void **)&e->cache)
               : ET_OK;
}
