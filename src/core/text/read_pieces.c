/* SPDX-License-Identifier: Apache-2.0 */
/* read_pieces.c: SentencePiece's model files: a message of protocol buffers, of which
 * the pieces, two numbers of the trainer and the normalizer are read.
 *
 * Source: sentencepiece_model.proto. The library has an interface for C++ alone; what
 * it would do for us is 200 lines here (doc/libraries). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/charsmap.h"
#include "core/text/read.h"
#include "core/text/unicode.h"

/* ---- protocol buffers ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct message {
    const uint8_t *at, *end;
};
struct field {
    uint64_t number, value; /* VARINT, FIXED32 and FIXED64: the number */
    int type;
    struct message bytes; /* BYTES */
};

static bool
read_varint(struct message *m, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        uint8_t byte = *m->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool
read_fixed(struct message *m, size_t n, uint64_t *out)
{
    *out = 0;
    if ((size_t)(m->end - m->at) < n)
        return false;
    memcpy(out, m->at, n);
    m->at += n;
    return true;
}

/* The next field of M; false at its end, and where it is no message (*BROKEN). */
static bool
next_field(struct message *m, struct field *f, bool *broken)
{
    uint64_t key, n;
    if (m->at == m->end)
        return false;
    *broken = true;
    if (!read_varint(m, &key))
        return false;
    *f = (struct field){.number = key >> 3, .type = (int)(key & 7)};
    switch (f->type) {
    case VARINT:
        *broken = !read_varint(m, &f->value);
        break;
    case FIXED64:
        *broken = !read_fixed(m, 8, &f->value);
        break;
    case FIXED32:
        *broken = !read_fixed(m, 4, &f->value);
        break;
    case BYTES:
        if (!read_varint(m, &n) || n > (uint64_t)(m->end - m->at))
            return false;
        f->bytes = (struct message){m->at, m->at + n};
        m->at += n;
        *broken = false;
        break;
    default:
        return false;
    }
    return !*broken;
}

/* ---- the model ---- */

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };
enum { TYPE_UNIGRAM = 1, TYPE_BPE = 2 };

struct piece {
    const char *text;
    size_t n;
    float score;
    int type;
};

struct reading {
    struct et_tokenizer *t;
    const char *name;
    uint64_t type;
    bool byte_fallback, as_suffix;
    struct eti_charsmap *map;
    struct message table; /* of the map */
    uint8_t *kind;        /* by id */
    int64_t n, room;
};

static et_status
refuse(const struct reading *r, const char *what)
{
    return ET_FAIL(r->t->cx, ET_EFORMAT, "%s: %s", r->name, what);
}

static et_status
read_piece(struct reading *r, struct message m, struct piece *out)
{
    struct field f;
    bool broken = false;
    *out = (struct piece){.text = "", .type = NORMAL};
    while (next_field(&m, &f, &broken)) {
        if (f.number == 1 && f.type == BYTES) {
            out->text = (const char *)f.bytes.at;
            out->n = (size_t)(f.bytes.end - f.bytes.at);
        } else if (f.number == 2 && f.type == FIXED32) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&out->score, &bits, sizeof out->score);
        } else if (f.number == 3 && f.type == VARINT) {
            out->type = f.value <= BYTE ? (int)f.value : 0;
        }
    }
    if (broken || out->n == 0 || eti_utf8_span(out->text, out->n) != out->n ||
        !isfinite(out->score) || out->type < NORMAL)
        return ET_FAIL(r->t->cx, ET_EFORMAT, "%s: piece %" PRId64 " cannot be read",
                       r->name, r->n);
    if (out->type == UNUSED)
        return ET_FAIL(r->t->cx, ET_ENOTSUP,
                       "%s: pieces that are not used are not known here", r->name);
    return ET_OK;
}

static void
read_trainer(struct reading *r, struct message m)
{
    struct field f;
    bool broken = false;
    while (next_field(&m, &f, &broken)) {
        if (f.type != VARINT)
            continue;
        if (f.number == 3)
            r->type = f.value;
        else if (f.number == 24)
            r->as_suffix = f.value != 0;
        else if (f.number == 35)
            r->byte_fallback = f.value != 0;
    }
}

static void
read_normalizer(struct reading *r, struct message m)
{
    struct field f;
    bool broken = false;
    while (next_field(&m, &f, &broken)) {
        if (f.number == 2 && f.type == BYTES)
            r->table = f.bytes;
        else if (f.number == 3 && f.type == VARINT)
            r->map->prepends = f.value != 0;
        else if (f.number == 4 && f.type == VARINT)
            r->map->removes = f.value != 0;
        else if (f.number == 5 && f.type == VARINT)
            r->map->escapes = f.value != 0;
    }
}

static et_status
add_piece(struct reading *r, const struct piece *p)
{
    struct et_tokenizer *t = r->t;
    struct eti_unigram *u = &t->unigram;
    int32_t id = (int32_t)r->n;
    if (eti_vocab_find(&t->vocab, p->text, p->n) >= 0)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: piece %d is there twice", r->name,
                       (int)id);
    if (eti_vocab_add(&t->vocab, id, p->text, p->n) != ET_OK)
        return eti_text_name_file(t, r->name, "pieces");
    u->score[id] = p->score;
    r->kind[id] = (uint8_t)p->type;
    t->special[id] = p->type == CONTROL ? 1 : p->type == USER_DEFINED ? 2 : 0;
    if (p->type == UNKNOWN)
        t->unk = id;
    if (p->type == NORMAL)
        u->worst = p->score < u->worst ? p->score : u->worst;
    if (p->type == USER_DEFINED) {
        ET_TRY(eti_trie_add(&r->map->users, p->text, p->n, id));
        ET_TRY(eti_trie_add(&t->bpe.whole, p->text, p->n, id));
    }
    r->n++;
    return p->type == NORMAL || p->type == USER_DEFINED
               ? eti_trie_add(&u->trie, p->text, p->n, id)
               : ET_OK;
}

/* Reads the message: first how many pieces there are and what it says besides, then
 * the pieces. */
static et_status
read_message(struct reading *r, struct message m)
{
    struct et_tokenizer *t = r->t;
    struct message all = m;
    struct piece piece;
    struct field f;
    bool broken = false;
    size_t n = 0;
    while (next_field(&m, &f, &broken)) {
        n += f.number == 1 && f.type == BYTES;
        if (f.number == 2 && f.type == BYTES)
            read_trainer(r, f.bytes);
        else if (f.number == 3 && f.type == BYTES)
            read_normalizer(r, f.bytes);
    }
    if (broken || n == 0 || n > ETI_VOCAB_MAX)
        return refuse(r, broken ? "no SentencePiece model, or cut short" : "no pieces");
    ET_TRY(et_alloc(t->cx, n * sizeof *t->unigram.score, (void **)&t->unigram.score));
    ET_TRY(et_alloc(t->cx, n, (void **)&t->special));
    ET_TRY(et_alloc(t->cx, n, (void **)&r->kind));
    t->unigram.worst = INFINITY;
    while (next_field(&all, &f, &broken)) {
        if (f.number != 1 || f.type != BYTES)
            continue;
        ET_TRY(read_piece(r, f.bytes, &piece));
        ET_TRY(add_piece(r, &piece));
    }
    return t->unk >= 0 ? ET_OK : refuse(r, "no piece for what is unknown");
}

/* ---- BPE: merges, from the pieces' scores ---- */

struct ranked {
    float score;
    int32_t id;
};

static int
best_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The id of a part of a piece: a normal piece, or one character that only longer pieces
 * have, which gets an id behind those of all pieces. -1: no part that can be. */
static et_status
part_id(struct reading *r, const char *text, size_t n, int32_t *id)
{
    struct et_tokenizer *t = r->t;
    size_t length;
    bool good;
    *id = eti_vocab_find(&t->vocab, text, n);
    if (*id >= 0 && r->kind[*id] == NORMAL)
        return ET_OK;
    *id = eti_vocab_find(&t->bpe.extra, text, n);
    (void)eti_char(text, n, &length, &good);
    if (*id >= 0 || length != n)
        return ET_OK;
    int64_t next = t->bpe.extra.n > r->n ? t->bpe.extra.n : r->n;
    *id = (int32_t)next;
    return eti_vocab_add(&t->bpe.extra, next, text, n);
}

/* All ways to make a piece of two. */
static et_status
add_merges(struct reading *r, int32_t id, int32_t rank)
{
    size_t n, length;
    const char *text = eti_vocab_text(&r->t->vocab, id, &n);
    for (size_t at = 0; at < n; at += length) {
        bool good;
        int32_t left = -1, right = -1;
        (void)eti_char(text + at, n - at, &length, &good);
        if (at == 0)
            continue;
        ET_TRY(part_id(r, text, at, &left));
        ET_TRY(part_id(r, text + at, n - at, &right));
        if (left >= 0 && right >= 0)
            ET_TRY(eti_bpe_add_pair(r->t, left, right, rank, id));
    }
    return ET_OK;
}

static et_status
rank_merges(struct reading *r)
{
    struct ranked *all;
    int64_t n = 0;
    ET_TRY(et_alloc(r->t->cx, (size_t)r->n * sizeof *all, (void **)&all));
    for (int32_t id = 0; id < r->n; id++)
        if (r->kind[id] == NORMAL)
            all[n++] = (struct ranked){(float)r->t->unigram.score[id], id};
    qsort(all, (size_t)n, sizeof *all, best_first);
    et_status s = ET_OK;
    for (int64_t i = 0, rank = 0; i < n && s == ET_OK; i++) {
        rank += i > 0 && all[i].score != all[i - 1].score;
        s = add_merges(r, all[i].id, (int32_t)rank);
    }
    et_free(r->t->cx, all);
    return s;
}

/* Does no piece go on behind a word's end, and is the mark of one known? Then words
 * are merged one by one. */
static bool
ends_at_words(const struct reading *r)
{
    static const char mark[] = "\xe2\x96\x81";
    if (eti_vocab_find(&r->t->vocab, mark, 3) < 0)
        return false;
    for (int64_t id = 0; id < r->n; id++) {
        size_t n, at = 0;
        const char *text = eti_vocab_text(&r->t->vocab, id, &n);
        if (r->kind[id] != NORMAL && r->kind[id] != USER_DEFINED)
            continue;
        while (n - at >= 3 && memcmp(text + at, mark, 3) == 0)
            at += 3;
        for (; n - at >= 3; at++)
            if (memcmp(text + at, mark, 3) == 0)
                return false;
    }
    return true;
}

static et_status
finish_bpe(struct reading *r)
{
    static const char words[] = "\\x{2581}*[^\\x{2581}]+|\\x{2581}+";
    struct et_tokenizer *t = r->t;
    t->model = ETI_BPE;
    t->bpe.fuse_unk = true;
    ET_TRY(rank_merges(r));
    if (!r->map->escapes || !ends_at_words(r))
        return ET_OK;
    struct eti_split *s = &t->split[t->n_splits++];
    *s = (struct eti_split){.keeps_matches = true, .keeps_others = true};
    return eti_pattern(t->cx, r->name, words, sizeof words - 1, false, &s->re);
}

/* ---- all of it ---- */

static et_status
read_model(struct reading *r, const char *model, size_t n)
{
    struct et_tokenizer *t = r->t;
    const uint8_t *bytes = (const uint8_t *)model;
    ET_TRY(read_message(r, (struct message){bytes, bytes + n}));
    r->map->as_suffix = r->as_suffix;
    if (eti_charsmap_load(t->cx, r->map, (const char *)r->table.at,
                          (size_t)(r->table.end - r->table.at)) != ET_OK)
        return eti_text_name_file(t, r->name, "normalizer");
    t->has_fallback = r->byte_fallback;
    t->piece_decode = true;
    t->join[t->n_joins++] = (struct eti_join){
        .kind = ETI_JOIN_PIECES,
        .prefix = r->map->prepends || r->map->removes,
        .cleanup = r->map->removes,
    };
    if (r->type == TYPE_BPE)
        return finish_bpe(r);
    if (r->type != TYPE_UNIGRAM)
        return ET_FAIL(t->cx, ET_ENOTSUP,
                       "%s: SentencePiece's model type %" PRIu64
                       " is not known here; unigram and BPE are",
                       r->name, r->type);
    t->model = ETI_UNIGRAM;
    t->unigram.fuse_unk = true;
    t->unigram.in_float = true;
    return ET_OK;
}

et_status
eti_read_pieces(struct et_tokenizer *t, const char *name, const char *model, size_t n)
{
    struct reading r = {.t = t, .name = name, .type = TYPE_UNIGRAM};
    ET_TRY(et_alloc(t->cx, sizeof *r.map, (void **)&r.map));
    r.map->users.cx = t->cx;
    r.map->prepends = r.map->removes = r.map->escapes = true;
    t->norm[t->n_norms++] = (struct eti_norm){.kind = ETI_NORM_PIECES, .map = r.map};
    et_status s = read_model(&r, model, n);
    et_free(t->cx, r.kind);
    return s == ET_OK ? eti_tokenizer_finish(t, name) : s;
}
