/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c: ids back into text. Steps work on a list of texts, one of each token, which
 * lie end to end in a buffer. */
#include "core/base/need.h"
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/text/impl.h"
#include "core/text/unicode.h"

static const char mark[] = "\xe2\x96\x81"; /* U+2581 */

/* One token's text, and where in the list it is. */
struct token {
    const char *text;
    size_t n;
    int64_t place, last;
};

static bool
begins_with(const struct token *k, const char *text, size_t n)
{
    return k->n >= n && memcmp(k->text, text, n) == 0;
}

/* Puts TEXT with BY in the place of each WHAT. */
static et_status
put_replaced(struct et_encoder *e, struct eti_buf *out, const struct token *k,
             const char *what, size_t n, const char *by, size_t n_by)
{
    const char *text = k->text, *end = k->text + k->n, *at;
    while (n > 0 && (at = memmem(text, (size_t)(end - text), what, n)) != NULL) {
        ET_TRY(eti_buf_put(e, out, text, (size_t)(at - text)));
        ET_TRY(eti_buf_put(e, out, by, n_by));
        text = at + n;
    }
    return eti_buf_put(e, out, text, (size_t)(end - text));
}

/* ---- the steps ---- */

/* Spaces that a tokenizer put around punctuation: in one token's text alone. */
static et_status
clean_up(struct et_encoder *e, struct eti_buf *out, int64_t from)
{
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct eti_buf *spare = &e->clean;
        struct token k = {.text = out->text + from, .n = (size_t)(out->n - from)};
        if (!memmem(k.text, k.n, pairs[i][0], strlen(pairs[i][0])))
            continue;
        spare->n = 0;
        ET_TRY(put_replaced(e, spare, &k, pairs[i][0], strlen(pairs[i][0]), pairs[i][1],
                            strlen(pairs[i][1])));
        out->n = from;
        ET_TRY(eti_buf_put(e, out, spare->text, (size_t)spare->n));
    }
    return ET_OK;
}

static et_status
join_wordpiece(struct et_encoder *e, const struct eti_join *j, const struct token *k,
               struct eti_buf *out)
{
    int64_t from = out->n;
    bool goes_on = k->place > 0 && begins_with(k, j->text, j->n);
    if (k->place > 0 && !goes_on)
        ET_TRY(eti_buf_put(e, out, " ", 1));
    size_t skip = goes_on ? j->n : 0;
    ET_TRY(eti_buf_put(e, out, k->text + skip, k->n - skip));
    return j->cleanup ? clean_up(e, out, from) : ET_OK;
}

/* The first token's marks are no spaces of the text. */
static et_status
join_metaspace(struct et_encoder *e, const struct eti_join *j, const struct token *k,
               struct eti_buf *out)
{
    bool none = k->place == 0 && j->prefix;
    return put_replaced(e, out, k, j->text, j->n, " ", none ? 0 : 1);
}

static et_status
join_suffix(struct et_encoder *e, const struct eti_join *j, const struct token *k,
            struct eti_buf *out)
{
    bool last = k->place == k->last;
    return put_replaced(e, out, k, j->text, j->n, " ", last ? 0 : 1);
}

static int
hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* The byte of "<0x0A>"; -1: it is something else. */
static int
fallback_byte(const struct token *k)
{
    if (k->n != 6 || memcmp(k->text, "<0x", 3) != 0 || k->text[5] != '>')
        return -1;
    int high = hex(k->text[3]), low = hex(k->text[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static et_status
join_fallback(struct et_encoder *e, const struct token *k, struct eti_buf *out)
{
    int byte = fallback_byte(k);
    char c = (char)byte;
    return byte < 0 ? eti_buf_put(e, out, k->text, k->n) : eti_buf_put(e, out, &c, 1);
}

/* Spaces that begin a text are not its own: the first, or all (CLEANUP). */
static et_status
join_pieces(struct et_encoder *e, const struct eti_join *j, const struct token *k,
            struct eti_buf *out)
{
    struct token rest = *k;
    if (e->t->has_fallback && fallback_byte(k) >= 0)
        return join_fallback(e, k, out);
    if (j->prefix && out->n == 0 && e->first && begins_with(k, mark, sizeof mark - 1)) {
        rest.text += sizeof mark - 1;
        rest.n -= sizeof mark - 1;
        e->first = j->cleanup;
    }
    return put_replaced(e, out, &rest, mark, sizeof mark - 1, " ", 1);
}

static et_status
join_strip(struct et_encoder *e, const struct eti_join *j, const struct token *k,
           struct eti_buf *out)
{
    struct token rest = *k;
    for (int64_t i = 0; i < j->start && j->n && begins_with(&rest, j->text, j->n);
         i++) {
        rest.text += j->n;
        rest.n -= j->n;
    }
    for (int64_t i = 0; i < j->stop && j->n && rest.n >= j->n &&
                        memcmp(rest.text + rest.n - j->n, j->text, j->n) == 0;
         i++)
        rest.n -= j->n;
    return eti_buf_put(e, out, rest.text, rest.n);
}

static et_status
join_one(struct et_encoder *e, const struct eti_join *j, const struct token *k,
         struct eti_buf *out)
{
    switch (j->kind) {
    case ETI_JOIN_WORDPIECE:
        return join_wordpiece(e, j, k, out);
    case ETI_JOIN_METASPACE:
        return join_metaspace(e, j, k, out);
    case ETI_JOIN_SUFFIX:
        return join_suffix(e, j, k, out);
    case ETI_JOIN_REPLACE:
        return put_replaced(e, out, k, j->text, j->n, j->by, j->n_by);
    case ETI_JOIN_FALLBACK:
        return join_fallback(e, k, out);
    case ETI_JOIN_STRIP:
        return join_strip(e, j, k, out);
    case ETI_JOIN_PIECES:
        return join_pieces(e, j, k, out);
    case ETI_JOIN_BYTES:
    case ETI_JOIN_FUSE:
        break;
    }
    return eti_buf_put(e, out, k->text, k->n);
}

/* ---- the list ---- */

/* The texts of ids into the buffer; *N becomes how many there are. */
static et_status
list_tokens(struct et_encoder *e, const int32_t *id, unsigned flags, bool bytes,
            int64_t *n)
{
    const struct et_tokenizer *t = e->t;
    struct eti_buf *out = &e->decoded[0];
    int64_t n_all = *n;
    *n = 0;
    out->n = 0;
    ET_TRY(eti_grow(e->cx, &e->end, &e->end_room, n_all + 1, sizeof *e->end));
    for (int64_t i = 0; i < n_all; i++) {
        size_t length;
        const char *text =
            eti_vocab_text(bytes ? &t->bytes : &t->vocab, id[i], &length);
        if (!text)
            return ET_FAIL(e->cx, ET_EINVAL, "no token has the number %d", (int)id[i]);
        if (flags & ET_DECODE_SKIP_SPECIAL && t->special[id[i]] == 1)
            continue;
        if (t->piece_decode && t->special[id[i]] == 1)
            text = "", length = 0; /* SentencePiece's control tokens are no text */
        if (t->piece_decode && id[i] == t->unk)
            text = " \xe2\x81\x87 ", length = 5;
        if (t->spaced && *n > 0)
            ET_TRY(eti_buf_put(e, out, " ", 1));
        ET_TRY(eti_buf_put(e, out, text, length));
        e->end[(*n)++] = out->n;
    }
    return ET_OK;
}

/* One step over the list, which changes places with the buffer it writes. */
static et_status
run_join(struct et_encoder *e, const struct eti_join *j, int64_t *n)
{
    struct eti_buf *in = &e->decoded[0], *out = &e->decoded[1];
    int64_t from = 0;
    if (j->kind == ETI_JOIN_FUSE) {
        e->end[0] = in->n;
        *n = *n > 0;
        return ET_OK;
    }
    out->n = 0;
    for (int64_t i = 0; i < *n; i++) {
        struct token k = {
            .text = in->text + from,
            .n = (size_t)(e->end[i] - from),
            .place = i,
            .last = *n - 1,
        };
        from = e->end[i];
        ET_TRY(join_one(e, j, &k, out));
        e->end[i] = out->n;
    }
    struct eti_buf swap = *in;
    *in = *out;
    *out = swap;
    return ET_OK;
}

et_status
et_decode(struct et_encoder *e, const int32_t *id, int64_t n, unsigned flags,
          struct et_text *out)
{
    ETI_NEED(e ? e->cx : NULL, e, id, out);
    const struct et_tokenizer *t = e->t;
    bool bytes = t->n_joins == 1 && t->join[0].kind == ETI_JOIN_BYTES;
    struct eti_buf *text = &e->decoded[0];
    *out = (struct et_text){.text = ""};
    e->first = true;
    ET_TRY(list_tokens(e, id, flags, bytes || t->model == ETI_BYTES, &n));
    for (int i = 0; i < t->n_joins && !bytes; i++)
        ET_TRY(run_join(e, &t->join[i], &n));
    ET_TRY(eti_grow(e->cx, &text->text, &text->room, text->n + 1, 1));
    text->text[text->n] = 0;
    out->text = text->text;
    out->n = (size_t)text->n;
    return ET_OK;
}
