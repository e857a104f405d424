/* SPDX-License-Identifier: Apache-2.0 */
/* charsmap.c: the normalizer that a SentencePiece model carries: a table of what texts
 * are replaced by, and what is done with spaces.
 *
 * The table is a double-array trie, as darts-clone writes it, whose values are places
 * in a list of texts that end with 0. Source: SentencePiece, normalizer.cc. */
#include "core/text/charsmap.h"

#include <string.h>

#include "core/text/unicode.h"

/* ---- the trie ---- */

static uint32_t
unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* Bytes of the longest text in the table that TEXT begins with; 0: none. */
static size_t
find_longest(const struct eti_charsmap *m, const char *text, size_t n, uint32_t *value)
{
    size_t longest = 0;
    uint32_t at = 0;
    if (m->n_units == 0)
        return 0;
    at ^= unit_offset(m->unit[0]);
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)text[i];
        at ^= byte;
        if (at >= m->n_units || (m->unit[at] & ((1u << 31) | 0xff)) != byte)
            break;
        uint32_t unit = m->unit[at];
        at ^= unit_offset(unit);
        if (at >= m->n_units)
            break;
        if (unit >> 8 & 1) {
            longest = i + 1;
            *value = m->unit[at] & ~(1u << 31);
        }
    }
    return longest;
}

/* What TEXT begins with, and what that becomes. */
static size_t
take(const struct eti_charsmap *m, const char *text, size_t n, const char **by,
     size_t *n_by)
{
    int32_t id;
    uint32_t value;
    size_t length = eti_trie_longest(&m->users, text, n, &id);
    bool good;
    *by = text;
    *n_by = length;
    if (length > 0)
        return length;
    length = find_longest(m, text, n, &value);
    if (length > 0 && value < m->n_texts) {
        *by = m->text + value;
        *n_by = strlen(*by);
        return length;
    }
    (void)eti_char(text, n, &length, &good);
    *n_by = length;
    if (!good) {
        *by = "\xef\xbf\xbd";
        *n_by = 3;
    }
    return length;
}

/* ---- spaces ---- */

static const char mark[] = "\xe2\x96\x81"; /* U+2581 */
enum { MARK = sizeof mark - 1 };

static et_status
put_space(struct et_encoder *e, const struct eti_charsmap *m, struct eti_buf *out)
{
    return m->escapes ? eti_buf_put(e, out, mark, MARK) : eti_buf_put(e, out, " ", 1);
}

static size_t
space_length(const struct eti_charsmap *m)
{
    return m->escapes ? MARK : 1;
}

static bool
ends_with_space(const struct eti_charsmap *m, const struct eti_buf *b)
{
    size_t n = space_length(m);
    return b->n >= (int64_t)n &&
           memcmp(b->text + b->n - n, m->escapes ? mark : " ", n) == 0;
}

et_status
eti_charsmap_run(struct et_encoder *e, const struct eti_charsmap *m, const char *text,
                 size_t n, struct eti_buf *out)
{
    const char *by;
    size_t at = 0, n_by, length;
    bool was_space = m->removes;
    while (m->removes && at < n) { /* spaces at the beginning */
        length = take(m, text + at, n - at, &by, &n_by);
        if (n_by != 1 || by[0] != ' ')
            break;
        at += length;
    }
    if (at == n)
        return ET_OK;
    if (m->prepends && !m->as_suffix)
        ET_TRY(put_space(e, m, out));
    for (; at < n; at += length) {
        length = take(m, text + at, n - at, &by, &n_by);
        for (; was_space && n_by > 0 && by[0] == ' '; n_by--)
            by++;
        for (size_t i = 0; i < n_by; i++) {
            if (by[i] == ' ')
                ET_TRY(put_space(e, m, out));
            else
                ET_TRY(eti_buf_put(e, out, by + i, 1));
        }
        was_space = m->removes && (n_by > 0 ? by[n_by - 1] == ' ' : was_space);
    }
    while (m->removes && ends_with_space(m, out))
        out->n -= (int64_t)space_length(m);
    if (m->prepends && m->as_suffix)
        ET_TRY(put_space(e, m, out));
    return ET_OK;
}

void
eti_charsmap_free(struct et_ctx *cx, struct eti_charsmap *m)
{
    if (!m)
        return;
    et_free(cx, m->unit);
    et_free(cx, m->text);
    eti_trie_release(&m->users);
    et_free(cx, m);
}

et_status
eti_charsmap_load(struct et_ctx *cx, struct eti_charsmap *m, const char *blob, size_t n)
{
    uint32_t bytes;
    if (n == 0)
        return ET_OK;
    if (n < sizeof bytes)
        return ET_FAIL(cx, ET_EFORMAT, "a table of characters that is cut short");
    memcpy(&bytes, blob, sizeof bytes);
    if (bytes > n - sizeof bytes || bytes % sizeof *m->unit || bytes == 0)
        return ET_FAIL(cx, ET_EFORMAT, "a table of characters whose size is wrong");
    m->n_units = bytes / sizeof *m->unit;
    ET_TRY(et_alloc(cx, bytes, (void **)&m->unit));
    memcpy(m->unit, blob + sizeof bytes, bytes);
    m->n_texts = n - sizeof bytes - bytes;
    ET_TRY(et_alloc(cx, m->n_texts + 1, (void **)&m->text));
    memcpy(m->text, blob + sizeof bytes + bytes, m->n_texts);
    return ET_OK;
}
