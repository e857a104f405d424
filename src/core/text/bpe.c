/* SPDX-License-Identifier: Apache-2.0 */
/* bpe.c: byte-pair encoding: of the pairs that lie beside each other the one of the
 * lowest rank is merged, the leftmost of equals, until no pair is known.
 *
 * Source: Sennrich et al., Neural Machine Translation of Rare Words with Subword Units,
 * 2016; the same ids as Hugging Face's tokenizers and SentencePiece.
 *
 * A short word's ranks lie side by side and are looked through at every merge; a long
 * one's wait in a heap, so that a megabyte of one letter does not take hours. */
#include <string.h>

#include "core/base/memory.h"
#include "core/text/impl.h"
#include "core/text/unicode.h"

enum { SHORT = 64, NO_RANK = INT32_MAX };

/* ---- pairs ---- */

static uint64_t
pair_key(int32_t left, int32_t right)
{
    return ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) + 1;
}

static uint64_t
hash_of(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u;
    return key ^ key >> 32;
}

const struct eti_pair *
eti_bpe_pair(const struct eti_bpe *b, int32_t left, int32_t right)
{
    uint64_t key = pair_key(left, right);
    for (uint64_t at = hash_of(key); b->pair; at++) {
        const struct eti_pair *p = &b->pair[at & b->mask];
        if (p->key == key)
            return p;
        if (p->key == 0)
            break;
    }
    return NULL;
}

static struct eti_pair *
free_place(struct eti_pair *all, uint64_t mask, uint64_t key)
{
    uint64_t at = hash_of(key);
    while (all[at & mask].key && all[at & mask].key != key)
        at++;
    return &all[at & mask];
}

/* The latest of equal pairs is the one that counts, as in a map that is filled. */
et_status
eti_bpe_add_pair(struct et_tokenizer *t, int32_t left, int32_t right, int32_t rank,
                 int32_t id)
{
    struct eti_bpe *b = &t->bpe;
    if (!b->pair || (uint64_t)b->n_pairs * 2 >= b->mask) {
        uint64_t mask = b->pair ? b->mask * 2 + 1 : 4095;
        struct eti_pair *bigger;
        ET_TRY(et_alloc(t->cx, (mask + 1) * sizeof *bigger, (void **)&bigger));
        for (uint64_t i = 0; b->pair && i <= b->mask; i++)
            if (b->pair[i].key)
                *free_place(bigger, mask, b->pair[i].key) = b->pair[i];
        et_free(t->cx, b->pair);
        b->pair = bigger;
        b->mask = mask;
    }
    uint64_t key = pair_key(left, right);
    struct eti_pair *p = free_place(b->pair, b->mask, key);
    b->n_pairs += p->key == 0;
    *p = (struct eti_pair){.key = key, .rank = rank, .id = id};
    return ET_OK;
}

/* ---- bytes as characters ---- */

/* Bytes that print are their own characters; the others, which are 0 .. 32, 127 .. 160
 * and 173, are U+0100 and those that follow, in this order. */
static uint32_t
char_of(uint8_t byte)
{
    if (byte <= 32)
        return 256u + byte;
    if (byte >= 127 && byte <= 160)
        return 289u + byte - 127;
    return byte == 173 ? 323 : byte;
}

size_t
eti_byte_char(uint8_t byte, char out[4])
{
    return eti_char_put(char_of(byte), out);
}

/* The byte that C is written for; -1: none. */
static int
byte_of(uint32_t c)
{
    if (c >= 256 && c <= 288)
        return (int)c - 256;
    if (c >= 289 && c <= 322)
        return (int)c - 289 + 127;
    if (c == 323)
        return 173;
    return c < 256 && char_of((uint8_t)c) == c ? (int)c : -1;
}

int64_t
eti_byte_text(const char *text, size_t n, char *out)
{
    int64_t n_out = 0;
    for (size_t at = 0, length; at < n; at += length) {
        bool good;
        int byte = byte_of(eti_char(text + at, n - at, &length, &good));
        if (byte < 0)
            return -1;
        out[n_out++] = (char)byte;
    }
    return n_out;
}

/* ---- what a word begins as ---- */

static et_status
put_symbol(struct et_encoder *e, int64_t *n, int32_t id)
{
    ET_TRY(eti_grow(e->cx, &e->symbol, &e->symbol_room, *n + 1, sizeof *e->symbol));
    e->symbol[(*n)++] = (struct eti_symbol){.id = id};
    return ET_OK;
}

/* What a character that has no token of its own is. */
static et_status
put_unknown(struct et_encoder *e, int64_t *n, const char *text, size_t length)
{
    const struct et_tokenizer *t = e->t;
    if (eti_has_bytes(t, text, length)) {
        for (size_t i = 0; i < length; i++)
            ET_TRY(put_symbol(e, n, t->fallback[(uint8_t)text[i]]));
        return ET_OK;
    }
    if (t->unk < 0 || (t->bpe.fuse_unk && *n > 0 && e->symbol[*n - 1].id == t->unk))
        return ET_OK;
    return put_symbol(e, n, t->unk);
}

/* The id of a character that begins (FIRST) or ends (LAST) its word; -1: none. */
static int32_t
char_id(const struct et_tokenizer *t, const char *text, size_t n, bool first, bool last)
{
    const struct eti_bpe *b = &t->bpe;
    char whole[64];
    size_t at = 0;
    if (!b->prefix && !b->suffix) {
        if (n == 1)
            return b->byte_id[(uint8_t)text[0]];
        int32_t id = eti_vocab_find(&t->vocab, text, n);
        return id >= 0 ? id : eti_vocab_find(&b->extra, text, n);
    }
    size_t n_prefix = b->prefix && !first ? strlen(b->prefix) : 0;
    size_t n_suffix = b->suffix && last ? strlen(b->suffix) : 0;
    if (n_prefix + n + n_suffix > sizeof whole)
        return -1;
    memcpy(whole, b->prefix ? b->prefix : "", n_prefix);
    at += n_prefix;
    memcpy(whole + at, text, n);
    at += n;
    memcpy(whole + at, b->suffix ? b->suffix : "", n_suffix);
    return eti_vocab_find(&t->vocab, whole, at + n_suffix);
}

/* A byte-level word whose ends are marked: characters are those of its bytes. */
static et_status
begin_bytes(struct et_encoder *e, const char *text, size_t n, int64_t *n_symbols)
{
    const struct et_tokenizer *t = e->t;
    bool marked = t->bpe.prefix || t->bpe.suffix;
    ET_TRY(eti_grow(e->cx, &e->symbol, &e->symbol_room, (int64_t)n, sizeof *e->symbol));
    for (size_t i = 0; i < n; i++) {
        int32_t id = t->bpe.byte_id[(uint8_t)text[i]];
        char shown[4];
        if (marked) {
            size_t length = eti_byte_char((uint8_t)text[i], shown);
            id = char_id(t, shown, length, i == 0, i + 1 == n);
        }
        if (id >= 0)
            ET_TRY(put_symbol(e, n_symbols, id));
        else
            ET_TRY(put_unknown(e, n_symbols, text + i, 1));
    }
    return ET_OK;
}

static et_status
begin_chars(struct et_encoder *e, const char *text, size_t n, int64_t *n_symbols)
{
    const struct et_tokenizer *t = e->t;
    for (size_t at = 0, length; at < n; at += length) {
        bool good;
        int32_t whole = -1;
        if (t->bpe.whole.n > 0 &&
            (length = eti_trie_longest(&t->bpe.whole, text + at, n - at, &whole)) > 0) {
            ET_TRY(put_symbol(e, n_symbols, whole));
            continue;
        }
        (void)eti_char(text + at, n - at, &length, &good);
        int32_t id = char_id(t, text + at, length, at == 0, at + length == n);
        if (id >= 0)
            ET_TRY(put_symbol(e, n_symbols, id));
        else
            ET_TRY(put_unknown(e, n_symbols, text + at, length));
    }
    return ET_OK;
}

/* ---- merging ---- */

static void
rank_pair(const struct eti_bpe *b, struct eti_symbol *left, int32_t right)
{
    const struct eti_pair *p = eti_bpe_pair(b, left->id, right);
    left->rank = p ? p->rank : NO_RANK;
    left->merged = p ? p->id : -1;
}

/* The number of symbols that are left. */
static int64_t
merge_short(const struct eti_bpe *b, struct eti_symbol *s, int64_t n)
{
    for (int64_t i = 0; i + 1 < n; i++)
        rank_pair(b, &s[i], s[i + 1].id);
    while (n > 1) {
        int64_t best = 0;
        for (int64_t i = 1; i + 1 < n; i++)
            if (s[i].rank < s[best].rank)
                best = i;
        if (s[best].rank == NO_RANK)
            break;
        s[best].id = s[best].merged;
        n--;
        memmove(&s[best + 1], &s[best + 2], (size_t)(n - best - 1) * sizeof *s);
        if (best + 1 < n)
            rank_pair(b, &s[best], s[best + 1].id);
        if (best > 0)
            rank_pair(b, &s[best - 1], s[best].id);
    }
    return n;
}

/* A pair of symbols as it was: the left's place, and its rank then. */
struct eti_entry {
    int32_t rank;
    uint32_t at;
};

static bool
is_before(struct eti_entry a, struct eti_entry b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static et_status
push(struct et_encoder *e, struct eti_entry x)
{
    ET_TRY(eti_grow(e->cx, &e->heap, &e->heap_room, e->n_heap + 1, sizeof *e->heap));
    int64_t at = e->n_heap++;
    for (; at > 0 && is_before(x, e->heap[(at - 1) / 2]); at = (at - 1) / 2)
        e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = x;
    return ET_OK;
}

static struct eti_entry
pop(struct et_encoder *e)
{
    struct eti_entry top = e->heap[0], x = e->heap[--e->n_heap];
    int64_t at = 0, child;
    while ((child = 2 * at + 1) < e->n_heap) {
        if (child + 1 < e->n_heap && is_before(e->heap[child + 1], e->heap[child]))
            child++;
        if (!is_before(e->heap[child], x))
            break;
        e->heap[at] = e->heap[child];
        at = child;
    }
    if (e->n_heap > 0)
        e->heap[at] = x;
    return top;
}

static et_status
push_pair(struct et_encoder *e, uint32_t at)
{
    struct eti_symbol *s = &e->symbol[at];
    if (s->next == UINT32_MAX) {
        s->rank = NO_RANK;
        return ET_OK;
    }
    rank_pair(&e->t->bpe, s, e->symbol[s->next].id);
    return s->rank == NO_RANK ? ET_OK : push(e, (struct eti_entry){s->rank, at});
}

/* Puts the symbol behind AT into that at AT; its id becomes -1. */
static et_status
join_next(struct et_encoder *e, uint32_t at)
{
    struct eti_symbol *s = &e->symbol[at], *gone = &e->symbol[s->next];
    s->id = s->merged;
    s->next = gone->next;
    gone->id = -1;
    gone->rank = NO_RANK;
    if (s->next != UINT32_MAX)
        e->symbol[s->next].prev = at;
    ET_TRY(push_pair(e, at));
    return s->prev == UINT32_MAX ? ET_OK : push_pair(e, s->prev);
}

static et_status
merge_long(struct et_encoder *e, int64_t n, int64_t *left)
{
    struct eti_symbol *s = e->symbol;
    e->n_heap = 0;
    for (int64_t i = 0; i < n; i++) {
        s[i].prev = i > 0 ? (uint32_t)i - 1 : UINT32_MAX;
        s[i].next = i + 1 < n ? (uint32_t)i + 1 : UINT32_MAX;
    }
    for (int64_t i = 0; i < n; i++)
        ET_TRY(push_pair(e, (uint32_t)i));
    while (e->n_heap > 0) {
        struct eti_entry x = pop(e);
        if (s[x.at].id >= 0 && s[x.at].rank == x.rank) /* it still is that pair */
            ET_TRY(join_next(e, x.at));
    }
    *left = 0;
    for (int64_t i = 0; i < n; i++)
        if (s[i].id >= 0)
            s[(*left)++].id = s[i].id;
    return ET_OK;
}

/* ---- ids ---- */

/* Characters that only longer pieces know are unknown where nothing took them in. */
static et_status
put_symbols(struct et_encoder *e, int64_t n)
{
    const struct et_tokenizer *t = e->t;
    bool was_unk = false;
    for (int64_t i = 0; i < n; i++) {
        int32_t id = e->symbol[i].id;
        size_t length;
        if (id < t->vocab.n) {
            if (id != t->unk || !was_unk || !t->bpe.fuse_unk)
                ET_TRY(eti_put_id(e, id));
            was_unk = id == t->unk;
            continue;
        }
        const char *text = eti_vocab_text(&t->bpe.extra, id, &length);
        ET_TRY(eti_put_unknown(e, text, length, t->bpe.fuse_unk, &was_unk));
    }
    return ET_OK;
}

et_status
eti_bpe_word(struct et_encoder *e, const char *text, size_t n)
{
    const struct et_tokenizer *t = e->t;
    int64_t n_symbols = 0;
    if (t->bpe.whole_words) {
        int32_t id = eti_vocab_find(t->byte_level ? &t->bytes : &t->vocab, text, n);
        if (id >= 0)
            return eti_put_id(e, id);
    }
    if (n >= INT32_MAX)
        return ET_FAIL(e->cx, ET_EFORMAT, "a word of 2 GiB or more");
    if (t->byte_level)
        ET_TRY(begin_bytes(e, text, n, &n_symbols));
    else
        ET_TRY(begin_chars(e, text, n, &n_symbols));
    if (n_symbols <= SHORT)
        n_symbols = merge_short(&t->bpe, e->symbol, n_symbols);
    else
        ET_TRY(merge_long(e, n_symbols, &n_symbols));
    return put_symbols(e, n_symbols);
}
