/* SPDX-License-Identifier: Apache-2.0 */
/* normalize.c: what a text becomes before it is split. */
#include <string.h>
#include <utf8proc.h>

#include "core/base/memory.h"
#include "core/text/charsmap.h"
#include "core/text/impl.h"
#include "core/text/unicode.h"

et_status
eti_buf_put(struct et_encoder *e, struct eti_buf *b, const char *text, size_t n)
{
    return eti_text_append(e->cx, &b->text, &b->n, &b->room, text, n);
}

et_status
eti_buf_put_char(struct et_encoder *e, struct eti_buf *b, uint32_t c)
{
    ET_TRY(eti_grow(e->cx, &b->text, &b->room, b->n + 5, 1));
    b->n += (int64_t)eti_char_put(c, b->text + b->n);
    return ET_OK;
}

/* ---- BERT's ---- */

static et_status
put_lower(struct et_encoder *e, const struct eti_norm *m, uint32_t c,
          struct eti_buf *out)
{
    uint32_t lower[2] = {c};
    int n = m->lower ? eti_char_lower(c, lower) : 1;
    for (int i = 0; i < n; i++)
        ET_TRY(eti_buf_put_char(e, out, lower[i]));
    return ET_OK;
}

/* (Two marks that are no accents, in an order that is not the canonical one, stay in
 * it.) */
static et_status
bert_char(struct et_encoder *e, const struct eti_norm *m, uint32_t c,
          struct eti_buf *out)
{
    uint32_t parts[8] = {c};
    int n = 1;
    if (m->clean && (c == 0 || c == ETI_REPLACEMENT || eti_is_control(c)))
        return ET_OK;
    if (m->clean && eti_is_space(c))
        c = parts[0] = ' ';
    bool alone = m->chinese && eti_is_chinese(c);
    if (alone)
        ET_TRY(eti_buf_put(e, out, " ", 1));
    if (m->accents)
        n = eti_char_decompose(c, parts);
    for (int i = 0; i < n; i++)
        if (!m->accents || !eti_is_mark(parts[i]))
            ET_TRY(put_lower(e, m, parts[i], out));
    return alone ? eti_buf_put(e, out, " ", 1) : ET_OK;
}

static et_status
run_bert(struct et_encoder *e, const struct eti_norm *m, const char *text, size_t n,
         struct eti_buf *out)
{
    char ascii[128]; /* what each becomes; 0: nothing */
    for (int c = 0; c < 128; c++) {
        ascii[c] = (char)(m->lower && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        if (m->clean && eti_is_space((uint32_t)c))
            ascii[c] = ' ';
        if (m->clean && eti_is_control((uint32_t)c))
            ascii[c] = 0;
    }
    for (size_t at = 0, length; at < n; at += length) {
        bool good;
        ET_TRY(eti_grow(e->cx, &out->text, &out->room, out->n + 64, 1));
        int64_t to = out->n;
        size_t end = n - at < 64 ? n : at + 64;
        for (; at < end && (uint8_t)text[at] < 0x80; at++) {
            out->text[to] = ascii[(uint8_t)text[at]];
            to += out->text[to] != 0 || !m->clean;
        }
        out->n = to;
        length = 0;
        if (at == end)
            continue;
        uint32_t c = eti_char(text + at, n - at, &length, &good);
        ET_TRY(bert_char(e, m, c, out));
    }
    return ET_OK;
}

/* ---- the others ---- */

static et_status
run_form(struct et_encoder *e, const struct eti_norm *m, const char *text, size_t n,
         struct eti_buf *out)
{
    utf8proc_option_t how = (utf8proc_option_t)m->form;
    const utf8proc_uint8_t *s = (const utf8proc_uint8_t *)text;
    utf8proc_ssize_t room, used = (utf8proc_ssize_t)n;
    if (eti_is_ascii(text, n))
        return eti_buf_put(e, out, text, n);
    do { /* decomposing may take more than there were bytes */
        room = used;
        ET_TRY(eti_grow(e->cx, &out->text, &out->room, 4 * (int64_t)room + 8, 1));
        used = utf8proc_decompose(s, (utf8proc_ssize_t)n,
                                  (utf8proc_int32_t *)(void *)out->text, room, how);
    } while (used > room);
    if (used >= 0)
        used = utf8proc_reencode((utf8proc_int32_t *)(void *)out->text, used, how);
    if (used < 0)
        return ET_FAIL(e->cx, ET_EINTERNAL, "utf8proc: %s", utf8proc_errmsg(used));
    out->n = used;
    return ET_OK;
}

static et_status
run_lower(struct et_encoder *e, const char *text, size_t n, struct eti_buf *out)
{
    static const struct eti_norm lower = {.lower = true};
    for (size_t at = 0, length; at < n; at += length) {
        bool good;
        uint32_t c = eti_char(text + at, n - at, &length, &good);
        ET_TRY(put_lower(e, &lower, c, out));
    }
    return ET_OK;
}

/* Marks of all kinds are taken out: the text is decomposed by a step before. */
static et_status
run_strip_accents(struct et_encoder *e, const char *text, size_t n, struct eti_buf *out)
{
    for (size_t at = 0, length; at < n; at += length) {
        bool good;
        uint32_t c = eti_char(text + at, n - at, &length, &good);
        utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
        if (k < UTF8PROC_CATEGORY_MN || k > UTF8PROC_CATEGORY_ME)
            ET_TRY(eti_buf_put(e, out, text + at, length));
    }
    return ET_OK;
}

static et_status
run_strip(struct et_encoder *e, const struct eti_norm *m, const char *text, size_t n,
          struct eti_buf *out)
{
    size_t begin = n, end = 0;
    for (size_t at = 0, length; at < n; at += length) {
        bool good;
        if (eti_is_space(eti_char(text + at, n - at, &length, &good)))
            continue;
        begin = at < begin ? at : begin;
        end = at + length;
    }
    begin = m->left ? begin : 0;
    end = m->right ? end : n;
    return begin < end ? eti_buf_put(e, out, text + begin, end - begin) : ET_OK;
}

/* The next match at or behind FROM: *AT is where it begins and ends; false: none. */
static et_status
next_match(struct et_encoder *e, const struct eti_norm *m, const char *text, size_t n,
           size_t from, const size_t **at, bool *found)
{
    int code = pcre2_match(m->re, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK,
                           e->match, NULL);
    *found = code != PCRE2_ERROR_NOMATCH;
    if (!*found)
        return ET_OK;
    *at = pcre2_get_ovector_pointer(e->match);
    if (code >= 0 && (*at)[0] >= from && (*at)[1] >= (*at)[0])
        return ET_OK;
    return ET_FAIL(e->cx, ET_EFORMAT, "%s: its pattern gave up on a text (PCRE2 %d)",
                   e->t->path, code);
}

/* Where the pattern matches nothing, what it is replaced by is put in; but not behind a
 * match. */
static et_status
run_replace(struct et_encoder *e, const struct eti_norm *m, const char *text, size_t n,
            struct eti_buf *out)
{
    size_t done = 0, from = 0, last = SIZE_MAX;
    while (n > 0 && from <= n) {
        const size_t *at;
        bool found, good;
        ET_TRY(next_match(e, m, text, n, from, &at, &found));
        if (!found)
            break;
        if (at[1] == at[0] && at[1] == last) {
            size_t length = 1;
            if (from < n)
                (void)eti_char(text + from, n - from, &length, &good);
            from += length;
            continue;
        }
        ET_TRY(eti_buf_put(e, out, text + done, at[0] - done));
        ET_TRY(eti_buf_put(e, out, m->text, m->n));
        done = from = last = at[1];
    }
    return eti_buf_put(e, out, text + done, n - done);
}

static et_status
run_prepend(struct et_encoder *e, const struct eti_norm *m, const char *text, size_t n,
            struct eti_buf *out)
{
    if (n > 0)
        ET_TRY(eti_buf_put(e, out, m->text, m->n));
    return eti_buf_put(e, out, text, n);
}

static et_status
run_one(struct et_encoder *e, const struct eti_norm *m, const char *text, size_t n,
        struct eti_buf *out)
{
    switch (m->kind) {
    case ETI_NORM_BERT:
        return run_bert(e, m, text, n, out);
    case ETI_NORM_FORM:
        return run_form(e, m, text, n, out);
    case ETI_NORM_LOWER:
        return run_lower(e, text, n, out);
    case ETI_NORM_STRIP_ACCENTS:
        return run_strip_accents(e, text, n, out);
    case ETI_NORM_STRIP:
        return run_strip(e, m, text, n, out);
    case ETI_NORM_PREPEND:
        return run_prepend(e, m, text, n, out);
    case ETI_NORM_REPLACE:
        return run_replace(e, m, text, n, out);
    case ETI_NORM_PIECES:
        return eti_charsmap_run(e, m->map, text, n, out);
    case ETI_NORM_PRECOMPILED:
        return eti_charsmap_precompiled(e, m->map, text, n, out);
    }
    return ET_OK;
}

et_status
eti_normalize(struct et_encoder *e, const char *text, size_t n, const char **out,
              size_t *n_out)
{
    *out = text;
    *n_out = n;
    for (int i = 0; i < e->t->n_norms; i++) {
        struct eti_buf *b = &e->norm[i % 2];
        b->n = 0;
        ET_TRY(eti_grow(e->cx, &b->text, &b->room, 1, 1));
        ET_TRY(run_one(e, &e->t->norm[i], *out, *n_out, b));
        *out = b->text;
        *n_out = (size_t)b->n;
    }
    return ET_OK;
}
