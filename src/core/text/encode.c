/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c: an encoder: what one thread needs to encode, and the way of a text through
 * a tokenizer's steps (impl.h). */
#include <string.h>

#include "core/base/need.h"
#include "core/base/memory.h"
#include "core/text/impl.h"
#include "core/text/unicode.h"
#include "core/text/words.h"

et_status
et_encoder_new(struct et_ctx *cx, const struct et_tokenizer *t, struct et_encoder **out)
{
    struct et_encoder *e;
    ETI_NEED(cx, out);
    *out = NULL;
    ETI_NEED(cx, cx, t);
    ET_TRY(et_alloc(cx, sizeof *e, (void **)&e));
    e->cx = cx;
    e->t = t;
    e->match = pcre2_match_data_create(8, NULL);
    et_status s = e->match ? eti_cache_new(e)
                           : ET_FAIL(cx, ET_ENOMEM, "no memory for an encoder");
    if (s == ET_OK)
        *out = e;
    else
        et_encoder_free(&e);
    return s;
}

void
et_encoder_free(struct et_encoder **encoder)
{
    struct et_encoder *e = encoder ? *encoder : NULL;
    if (!e)
        return;
    *encoder = NULL;
    pcre2_match_data_free(e->match);
    void *const owned[] = {e->id,
                           e->second,
                           e->type,
                           e->clean.text,
                           e->norm[0].text,
                           e->norm[1].text,
                           e->decoded[0].text,
                           e->decoded[1].text,
                           e->symbol,
                           e->heap,
                           e->best,
                           e->end,
                           e->cache};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        et_free(e->cx, owned[i]);
    for (int i = 0; i < ETI_MAX_STAGES; i++)
        et_free(e->cx, e->stage[i].text);
    et_free(e->cx, e);
}

/* ---- between added tokens ---- */

/* Runs of UTF-8 are split into words; what is between them is one, of bytes. */
static et_status
split_valid(struct et_encoder *e, const char *text, size_t n)
{
    if (!e->t->byte_level)
        return eti_split(e, 0, text, n);
    for (size_t at = 0; at < n;) {
        size_t good = eti_utf8_span(text + at, n - at), bad = 0;
        if (good > 0)
            ET_TRY(eti_split(e, 0, text + at, good));
        at += good;
        while (at + bad < n && eti_utf8_span(text + at + bad, n - at - bad) == 0)
            bad++;
        ET_TRY(eti_word(e, text + at, bad));
        at += bad;
    }
    return ET_OK;
}

typedef et_status part_fn(struct et_encoder *e, const char *text, size_t n);

static et_status
normal_part(struct et_encoder *e, const char *text, size_t n)
{
    return n ? split_valid(e, text, n) : ET_OK;
}

static bool
is_word_char(uint32_t c)
{
    return c == '_' || eti_is_word(c);
}

/* Does a character of words end before AT, or begin there? */
static bool
touches_word(const char *text, size_t n, size_t begin, size_t end)
{
    size_t length, at = begin;
    bool good;
    if (end < n && is_word_char(eti_char(text + end, n - end, &length, &good)))
        return true;
    if (begin == 0)
        return false;
    for (at--; at > 0 && ((uint8_t)text[at] & 0xc0) == 0x80;)
        at--;
    return is_word_char(eti_char(text + at, n - at, &length, &good));
}

/* Takes the spaces before *BEGIN and behind *END in, as the token asks. */
static void
take_spaces(const struct eti_added *a, const char *text, size_t n, size_t done,
            size_t *begin, size_t *end)
{
    size_t length;
    bool good;
    while (a->lstrip && *begin > done) {
        size_t at = *begin - 1;
        while (at > done && ((uint8_t)text[at] & 0xc0) == 0x80)
            at--;
        if (!eti_is_space(eti_char(text + at, n - at, &length, &good)))
            break;
        *begin = at;
    }
    while (a->rstrip && *end < n &&
           eti_is_space(eti_char(text + *end, n - *end, &length, &good)))
        *end += length;
}

/* Puts the ids of added tokens that TEXT spells, and hands what is between to PART. */
static et_status
cut_out(struct et_encoder *e, const struct eti_trie *trie, bool plain, const char *text,
        size_t n, part_fn *part)
{
    size_t done = 0, at = 0;
    while (trie->n > 0 && at < n) {
        int32_t which;
        if (!trie->begins[(uint8_t)text[at]]) {
            at++;
            continue;
        }
        size_t length = eti_trie_longest(trie, text + at, n - at, &which);
        if (length == 0) {
            at++;
            continue;
        }
        const struct eti_added *a = &e->t->added[which];
        size_t begin = at, end = at + length;
        at = end;
        if ((plain && a->special) ||
            (a->single_word && touches_word(text, n, begin, end)))
            continue;
        take_spaces(a, text, n, done, &begin, &end);
        e->first = done == 0 && e->first;
        ET_TRY(part(e, text + done, begin > done ? begin - done : 0));
        ET_TRY(eti_put_id(e, a->id));
        e->first = false;
        done = at = end;
    }
    return part(e, text + done, n - done);
}

static et_status
raw_part(struct et_encoder *e, const char *text, size_t n)
{
    if (n == 0)
        return ET_OK;
    ET_TRY(eti_normalize(e, text, n, &text, &n));
    return cut_out(e, &e->t->normal, e->plain, text, n, normal_part);
}

/* TEXT with U+FFFD for what is not UTF-8, where the tokens are no bytes. */
static et_status
clean(struct et_encoder *e, const char **text, size_t *n)
{
    size_t at = eti_utf8_span(*text, *n), length;
    bool good;
    if (at == *n || (e->t->byte_level && e->t->n_norms == 0))
        return ET_OK;
    e->clean.n = 0;
    ET_TRY(eti_buf_put(e, &e->clean, *text, at));
    for (; at < *n; at += length) {
        uint32_t c = eti_char(*text + at, *n - at, &length, &good);
        ET_TRY(eti_buf_put_char(e, &e->clean, c));
    }
    *text = e->clean.text;
    *n = (size_t)e->clean.n;
    return ET_OK;
}

/* Puts the ids of TEXT behind those that are there. */
static et_status
put_text(struct et_encoder *e, const char *text, size_t n, unsigned flags)
{
    ET_TRY(clean(e, &text, &n));
    e->plain = (flags & ET_ENCODE_PLAIN) != 0 || e->t->plain;
    e->first = true;
    return cut_out(e, &e->t->raw, e->plain, text, n, raw_part);
}

/* ---- what stands around ---- */

static et_status
put_typed(struct et_encoder *e, int64_t *n, const int32_t *id, int64_t n_ids,
          uint8_t type)
{
    ET_TRY(eti_grow(e->cx, &e->second, &e->second_room, *n + n_ids + 1,
                    sizeof *e->second));
    ET_TRY(eti_grow(e->cx, &e->type, &e->type_room, *n + n_ids + 1, 1));
    if (n_ids > 0)
        memcpy(e->second + *n, id, (size_t)n_ids * sizeof *id);
    memset(e->type + *n, type, (size_t)n_ids);
    *n += n_ids;
    return ET_OK;
}

/* The ids at e->id are A's, then B's. */
static et_status
put_frame(struct et_encoder *e, const struct eti_frame *frame, int n_frame, int64_t n_a,
          int64_t b, int64_t n_b, struct et_encoding *out)
{
    int64_t n = 0;
    for (int i = 0; i < n_frame; i++) {
        const struct eti_frame *f = &frame[i];
        const int32_t *id = f->id == ETI_FRAME_A   ? e->id
                            : f->id == ETI_FRAME_B ? e->id + b
                                                   : &f->id;
        int64_t n_ids = f->id == ETI_FRAME_A ? n_a : f->id == ETI_FRAME_B ? n_b : 1;
        ET_TRY(put_typed(e, &n, id, n_ids, f->type));
    }
    ET_TRY(put_typed(e, &n, NULL, 0, 0));
    *out = (struct et_encoding){.id = e->second, .type = e->type, .n = n};
    return ET_OK;
}

static const struct eti_frame bare[] = {{.id = ETI_FRAME_A},
                                        {.id = ETI_FRAME_B, .type = 1}};

et_status
et_encode(struct et_encoder *e, const char *text, size_t n, unsigned flags,
          struct et_encoding *out)
{
    ETI_NEED(e ? e->cx : NULL, e, text, out);
    *out = (struct et_encoding){0};
    e->n = 0;
    ET_TRY(put_text(e, text, n, flags));
    *out = (struct et_encoding){.id = e->id, .n = e->n};
    if (!(flags & ET_ENCODE_SPECIAL) || e->t->n_one == 0)
        return ET_OK;
    return put_frame(e, e->t->one, e->t->n_one, e->n, 0, 0, out);
}

/* The shorter of the two keeps all it has where both then fit into ROOM; else each gets
 * half, and the longer (B, where they are alike) what is odd. */
static void
shorten(int64_t room, int64_t *n_a, int64_t *n_b)
{
    int64_t *less = *n_a > *n_b ? n_b : n_a, *more = *n_a > *n_b ? n_a : n_b;
    if (*n_a + *n_b <= room)
        return;
    if (*less <= room - *less) {
        *more = room - *less;
        return;
    }
    *less = room / 2;
    *more = *less + room % 2;
}

et_status
et_encode_pair(struct et_encoder *e, const char *a, size_t n_a, const char *b,
               size_t n_b, int64_t limit, unsigned flags, struct et_encoding *out)
{
    ETI_NEED(e ? e->cx : NULL, e, a, out);
    const struct et_tokenizer *t = e->t;
    bool framed = flags & ET_ENCODE_SPECIAL && (b ? t->n_two : t->n_one) > 0;
    const struct eti_frame *frame = !framed ? bare : b ? t->two : t->one;
    int n_frame = !framed ? (b ? 2 : 1) : b ? t->n_two : t->n_one;
    *out = (struct et_encoding){0};
    e->n = 0;
    ET_TRY(put_text(e, a, n_a, flags));
    int64_t first = e->n, second;
    if (b)
        ET_TRY(put_text(e, b, n_b, flags));
    second = e->n - first;
    int64_t left = first, around = n_frame - (b ? 2 : 1);
    if (limit > 0 && b)
        shorten(limit > around ? limit - around : 0, &left, &second);
    else if (limit > 0 && left > limit - around)
        left = limit > around ? limit - around : 0;
    return put_frame(e, frame, n_frame, left, first, second, out);
}
