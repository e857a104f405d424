/* SPDX-License-Identifier: Apache-2.0 */
/* write_pieces.c: see write_pieces.h.
 *
 * Source: transformers' convert_slow_tokenizer.py for which steps mean a model. Two of
 * SentencePiece's rules are written otherwise than there:
 *
 * - Of the table's texts SentencePiece takes the longest at each place. Precompiled
 *   looks a letter up together with its marks, takes the shortest text that this begins
 *   with, and drops the rest. So a sign that is put before marks parts them from their
 *   letter; a letter that has its marks in the table is composed before, by NFC; and
 *   between two marks that do not compose with one letter a sign keeps NFC from going
 *   past the first.
 * - Control pieces, the unknown one and those of bytes are no text to SentencePiece.
 *   Here they get a score by which they never are the best way.
 */
#include "config.h"

#include "core/text/write_pieces.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "core/base/memory.h"
#include "core/text/base64.h"
#include "core/text/charsmap.h"
#include "core/text/unicode.h"

/* The sign: it is no character, parts what stands beside it, and no table has it. */
#define SIGN "\xef\xbf\xb0" /* U+FFF0 */
#define MARK "\xe2\x96\x81" /* U+2581 */

/* What cannot be the best way sums to less than any other. */
#define NEVER 1000.0

struct writing {
    struct et_ctx *cx;
    json_t *norms;
    struct eti_buf pairs; /* of marks that one letter takes both, as a pattern */
    int n_texts;          /* of more than one character, without NFC */
    bool composes;
};

static et_status
no_memory(struct et_ctx *cx)
{
    return ET_FAIL(cx, ET_ENOMEM, "no memory for tokenizer.json");
}

/* ---- normalizers ---- */

/* Adds STEP, which it takes. */
static et_status
add_step(struct writing *w, json_t *step)
{
    return json_array_append_new(w->norms, step) == 0 ? ET_OK : no_memory(w->cx);
}

static et_status
replace_text(struct writing *w, const char *what, size_t n, const char *by)
{
    return add_step(w, json_pack("{s:s, s:{s:s%}, s:s}", "type", "Replace", "pattern",
                                 "String", what, n, "content", by));
}

static et_status
replace(struct writing *w, const char *pattern, const char *by)
{
    return add_step(w, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern",
                                 "Regex", pattern, "content", by));
}

/* The characters of a text of the table, at most 3 of which are looked at. */
static int
characters(const char *key, size_t n, uint32_t last[2])
{
    int count = 0;
    for (size_t at = 0, length; at < n; at += length, count++) {
        bool good;
        last[0] = last[1];
        last[1] = eti_char(key + at, n - at, &length, &good);
    }
    return count;
}

static bool
is_mark(uint32_t c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

static et_status
add_pair(struct writing *w, const uint32_t mark[2])
{
    char pair[40];
    const int n = snprintf(pair, sizeof pair, "|\\x{%" PRIx32 "}\\x{%" PRIx32 "}",
                           mark[0], mark[1]);
    if (w->pairs.text &&
        memmem(w->pairs.text, (size_t)w->pairs.n, pair, (size_t)n) != NULL)
        return ET_OK;
    return eti_text_append(w->cx, &w->pairs.text, &w->pairs.n, &w->pairs.room, pair,
                           (size_t)n);
}

static et_status
see_text(void *arg, const char *key, size_t n, const char *by)
{
    enum { TEXTS = 64 };
    struct writing *w = arg;
    uint32_t last[2] = {0};
    const int count = characters(key, n, last);
    if (w->composes)
        return count > 2 && is_mark(last[0]) && is_mark(last[1]) ? add_pair(w, last)
                                                                 : ET_OK;
    if (count < 2 || ++w->n_texts > TEXTS)
        return ET_OK;
    if (w->n_texts == TEXTS)
        et_report(w->cx, ET_LOG_WARN,
                  "tokenizer.json: the model replaces more than %d texts of several "
                  "characters: the others are left as they are there",
                  TEXTS - 1);
    return w->n_texts == TEXTS ? ET_OK : replace_text(w, key, n, by);
}

/* Composes what the table composes. */
static et_status
add_composing(struct writing *w)
{
    static const char begin[] = "(?!", end[] = ")\\p{M}\\K(?=\\p{M})";
    struct eti_buf pattern = {0};
    if (!w->composes)
        return ET_OK;
    const char *pairs = w->pairs.n > 0 ? w->pairs.text + 1 : "\\z";
    const size_t n = w->pairs.n > 0 ? (size_t)w->pairs.n - 1 : 2;
    et_status s = eti_text_append(w->cx, &pattern.text, &pattern.n, &pattern.room,
                                  begin, sizeof begin - 1);
    if (s == ET_OK)
        s = eti_text_append(w->cx, &pattern.text, &pattern.n, &pattern.room, pairs, n);
    if (s == ET_OK)
        s = eti_text_append(w->cx, &pattern.text, &pattern.n, &pattern.room, end,
                            sizeof end); /* with its 0 */
    if (s == ET_OK)
        s = replace(w, pattern.text, SIGN);
    et_free(w->cx, pattern.text);
    return s == ET_OK ? add_step(w, json_pack("{s:s}", "type", "NFC")) : s;
}

static et_status
add_table(struct writing *w, const struct eti_charsmap *m)
{
    uint8_t *table = NULL;
    char *text = NULL;
    size_t n = 0;
    et_status s = eti_charsmap_save(w->cx, m, &table, &n);
    if (s == ET_OK)
        s = eti_base64_encode(w->cx, table, n, &text, &n);
    if (s == ET_OK)
        s = add_step(w, json_pack("{s:s, s:s%}", "type", "Precompiled",
                                  "precompiled_charsmap", text, n));
    et_free(w->cx, table);
    et_free(w->cx, text);
    return s;
}

/* What the table of the model makes of texts. */
static et_status
add_map(struct writing *w, const struct eti_charsmap *m)
{
    static const char acute[] = "e\xcc\x81";
    if (m->n_units == 0)
        return ET_OK;
    w->composes = eti_charsmap_find(m, acute, sizeof acute - 1) != NULL;
    ET_TRY(eti_charsmap_each(w->cx, m, see_text, w));
    ET_TRY(add_composing(w));
    ET_TRY(replace(w,
                   "(?:.|\\n)\\K(?=[\\p{M}\\x{200c}\\x{200d}\\x{e33}\\x{eb3}"
                   "\\x{ff9e}\\x{ff9f}]|(?<=\\r)\\n)",
                   SIGN));
    ET_TRY(add_table(w, m));
    return replace_text(w, SIGN, sizeof SIGN - 1, "");
}

static et_status
add_spaces(struct writing *w, const struct eti_charsmap *m)
{
    const char *space = m->escapes ? MARK : " ";
    if (m->removes) {
        ET_TRY(replace(w, "\\A +", ""));
        ET_TRY(replace(w, " {2,}", " "));
    }
    if (m->escapes)
        ET_TRY(replace_text(w, " ", 1, MARK));
    if (m->removes)
        ET_TRY(replace(w, m->escapes ? "\\x{2581}+\\z" : " +\\z", ""));
    if (m->prepends && m->as_suffix)
        return replace(w, "(?<=.|\\n)\\z", space);
    if (m->prepends)
        return add_step(w,
                        json_pack("{s:s, s:s}", "type", "Prepend", "prepend", space));
    return ET_OK;
}

/* ---- the model ---- */

/* Pieces that are no text: of those that text is made of, SPECIAL is 0 or 2. */
static bool
is_text(const struct et_tokenizer *t, int32_t id)
{
    bool is_byte = false;
    for (int b = 0; t->has_fallback && b < 256; b++)
        is_byte |= t->fallback[b] == id;
    return t->special[id] != 1 && id != t->unk && !is_byte;
}

static json_t *
scored_pieces(const struct et_tokenizer *t)
{
    json_t *vocab = json_array();
    for (int32_t id = 0; id < t->vocab.n; id++) {
        size_t n;
        const char *text = eti_vocab_text(&t->vocab, id, &n);
        const double score =
            is_text(t, id) ? t->unigram.score[id] : t->unigram.worst - NEVER;
        json_array_append_new(vocab, json_pack("[s%, f]", text, n, score));
    }
    return vocab;
}

static json_t *
numbered_pieces(const struct et_tokenizer *t)
{
    json_t *vocab = json_object();
    for (int32_t id = 0; id < t->vocab.n; id++) {
        size_t n;
        const char *text = eti_vocab_text(&t->vocab, id, &n);
        json_object_setn_new(vocab, text, n, json_integer(id));
    }
    return vocab;
}

static int
by_rank(const void *a, const void *b)
{
    const struct eti_pair *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->id != y->id ? (x->id < y->id ? -1 : 1)
                          : (x->key < y->key ? -1 : x->key > y->key);
}

/* The merges that tokenizer.json can have: of pieces, the first of which goes first. */
static et_status
merges(struct et_ctx *cx, const struct et_tokenizer *t, json_t **out)
{
    const struct eti_bpe *b = &t->bpe;
    struct eti_pair *all;
    int64_t n = 0, left_out = 0;
    *out = json_array();
    ET_TRY(et_alloc(cx, (size_t)(b->n_pairs + 1) * sizeof *all, (void **)&all));
    for (uint64_t i = 0; b->pair && i <= b->mask; i++)
        if (b->pair[i].key)
            all[n++] = b->pair[i];
    qsort(all, (size_t)n, sizeof *all, by_rank);
    for (int64_t i = 0; i < n; i++) {
        size_t n_left, n_right;
        const uint64_t key = all[i].key - 1;
        const char *left = eti_vocab_text(&t->vocab, (int64_t)(key >> 32), &n_left);
        const char *right =
            eti_vocab_text(&t->vocab, (int64_t)(key & UINT32_MAX), &n_right);
        if (left && right)
            json_array_append_new(*out,
                                  json_pack("[s%, s%]", left, n_left, right, n_right));
        else
            left_out++;
    }
    et_free(cx, all);
    if (left_out > 0)
        et_report(cx, ET_LOG_WARN,
                  "tokenizer.json: %" PRId64
                  " merges have a character that is no piece "
                  "of the model: texts with it have other ids there",
                  left_out);
    return ET_OK;
}

/* ---- pieces of the user ---- */

struct user {
    const char *text;
    size_t n;
};

static int
longest_first(const void *a, const void *b)
{
    const struct user *x = a, *y = b;
    return x->n != y->n ? (x->n > y->n ? -1 : 1) : memcmp(x->text, y->text, x->n);
}

static et_status
append_literal(struct et_ctx *cx, struct eti_buf *p, const struct user *u)
{
    for (size_t at = 0, length; at < u->n; at += length) {
        char one[16];
        bool good;
        const uint32_t c = eti_char(u->text + at, u->n - at, &length, &good);
        const int n = snprintf(one, sizeof one, "\\x{%" PRIx32 "}", c);
        ET_TRY(eti_text_append(cx, &p->text, &p->n, &p->room, one, (size_t)n));
    }
    return ET_OK;
}

static et_status
user_pattern(struct et_ctx *cx, struct user *all, int64_t n, struct eti_buf *p)
{
    qsort(all, (size_t)n, sizeof *all, longest_first);
    for (int64_t i = 0; i < n; i++) {
        if (i > 0)
            ET_TRY(eti_text_append(cx, &p->text, &p->n, &p->room, "|", 1));
        ET_TRY(append_literal(cx, p, &all[i]));
    }
    return eti_text_append(cx, &p->text, &p->n, &p->room, "", 1);
}

/* The user's pieces are words of their own; *OUT is NULL where there are none. */
static et_status
user_split(struct et_ctx *cx, const struct et_tokenizer *t, json_t **out)
{
    struct eti_buf pattern = {0};
    struct user *all;
    int64_t n = 0;
    *out = NULL;
    ET_TRY(et_alloc(cx, (size_t)(t->vocab.n + 1) * sizeof *all, (void **)&all));
    for (int32_t id = 0; id < t->vocab.n; id++)
        if (t->special[id] == 2) {
            all[n].text = eti_vocab_text(&t->vocab, id, &all[n].n);
            n++;
        }
    et_status s = n > 0 ? user_pattern(cx, all, n, &pattern) : ET_OK;
    if (s == ET_OK && n > 0)
        *out = json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern",
                         "Regex", pattern.text, "behavior", "Isolated", "invert", 0);
    et_free(cx, pattern.text);
    et_free(cx, all);
    return s;
}

/* ---- the file ---- */

static et_status
model_of(struct et_ctx *cx, const struct et_tokenizer *t, bool has_users, json_t **out)
{
    json_t *pairs = NULL;
    size_t n;
    const char *unk = eti_vocab_text(&t->vocab, t->unk, &n);
    if (t->model == ETI_UNIGRAM) {
        *out =
            json_pack("{s:s, s:i, s:o, s:b}", "type", "Unigram", "unk_id", (int)t->unk,
                      "vocab", scored_pieces(t), "byte_fallback", (int)t->has_fallback);
        return *out ? ET_OK : no_memory(cx);
    }
    ET_TRY(merges(cx, t, &pairs));
    *out = json_pack("{s:s, s:n, s:s%, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type",
                     "BPE", "dropout", "unk_token", unk, n, "continuing_subword_prefix",
                     "end_of_word_suffix", "fuse_unk", 1, "byte_fallback",
                     (int)t->has_fallback, "ignore_merges", (int)has_users, "vocab",
                     numbered_pieces(t), "merges", pairs);
    return *out ? ET_OK : no_memory(cx);
}

static json_t *
specials(const struct et_tokenizer *t)
{
    json_t *added = json_array();
    for (int32_t id = 0; id < t->vocab.n; id++) {
        size_t n;
        const char *text = eti_vocab_text(&t->vocab, id, &n);
        if (t->special[id] == 1 || id == t->unk)
            json_array_append_new(
                added, json_pack("{s:i, s:s%, s:b, s:b, s:b, s:b, s:b}", "id", (int)id,
                                 "content", text, n, "single_word", 0, "lstrip", 0,
                                 "rstrip", 0, "normalized", 0, "special", 1));
    }
    return added;
}

static json_t *
decoder(const struct et_tokenizer *t, const struct eti_charsmap *m)
{
    json_t *list = json_array();
    json_array_append_new(list, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace",
                                          "pattern", "String", MARK, "content", " "));
    if (t->has_fallback)
        json_array_append_new(list, json_pack("{s:s}", "type", "ByteFallback"));
    json_array_append_new(list, json_pack("{s:s}", "type", "Fuse"));
    if (m->prepends)
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip",
                                              "content", " ", "start", !m->as_suffix,
                                              "stop", (int)m->as_suffix));
    return json_pack("{s:s, s:o}", "type", "Sequence", "decoders", list);
}

et_status
eti_pieces_json(struct et_ctx *cx, const struct et_tokenizer *t, json_t **out)
{
    const struct eti_charsmap *m = t->norm[0].map;
    struct writing w = {.cx = cx, .norms = json_array()};
    json_t *split = NULL, *model = NULL;
    *out = NULL;
    et_status s = add_map(&w, m);
    if (s == ET_OK)
        s = add_spaces(&w, m);
    if (s == ET_OK)
        s = user_split(cx, t, &split);
    if (s == ET_OK)
        s = model_of(cx, t, split != NULL, &model);
    et_free(cx, w.pairs.text);
    if (s == ET_OK) {
        *out = json_pack("{s:s, s:n, s:n, s:o, s:{s:s, s:O}, s:o?, s:n, s:o, s:O}",
                         "version", "1.0", "truncation", "padding", "added_tokens",
                         specials(t), "normalizer", "type", "Sequence", "normalizers",
                         w.norms, "pre_tokenizer", split, "post_processor", "decoder",
                         decoder(t, m), "model", model);
        split = NULL;
        s = *out ? ET_OK : no_memory(cx);
    }
    json_decref(split);
    json_decref(model);
    json_decref(w.norms);
    return s;
}
