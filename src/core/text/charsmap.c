/* SPDX-License-Identifier: Apache-2.0 */
/* charsmap.c: the normalizer that a SentencePiece model carries: a table of what texts
 * are replaced by, and what is done with spaces.
 *
 * The table is a double-array trie, as darts-clone writes it, whose values are places
 * in a list of texts that end with 0. Source: SentencePiece, normalizer.cc. */
#include "core/text/charsmap.h"

#include <string.h>
#include <utf8proc.h>

#include "core/base/memory.h"
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

et_status
eti_charsmap_save(struct et_ctx *cx, const struct eti_charsmap *m, uint8_t **out,
                  size_t *n)
{
    const uint32_t bytes = (uint32_t)(m->n_units * sizeof *m->unit);
    *n = sizeof bytes + bytes + m->n_texts;
    ET_TRY(et_alloc(cx, *n, (void **)out));
    memcpy(*out, &bytes, sizeof bytes);
    memcpy(*out + sizeof bytes, m->unit, bytes);
    memcpy(*out + sizeof bytes + bytes, m->text, m->n_texts);
    return ET_OK;
}

/* ---- what the table has ---- */

/* A place in the trie, and whether a text ends there. */
struct place {
    uint32_t at, value;
    bool ends;
};

/* Goes on from *P by BYTE; false: no text does. */
static bool
step(const struct eti_charsmap *m, struct place *p, uint8_t byte)
{
    const uint32_t at = p->at ^ byte;
    if (byte == 0 || at >= m->n_units || (m->unit[at] & ((1u << 31) | 0xff)) != byte)
        return false;
    *p = (struct place){.at = at ^ unit_offset(m->unit[at])};
    if (p->at >= m->n_units)
        return false;
    p->ends = m->unit[at] >> 8 & 1;
    p->value = m->unit[p->at] & ~(1u << 31);
    p->ends &= p->value < m->n_texts;
    return true;
}

static struct place
root_of(const struct eti_charsmap *m)
{
    return (struct place){.at = m->n_units > 0 ? unit_offset(m->unit[0]) : 0};
}

const char *
eti_charsmap_find(const struct eti_charsmap *m, const char *key, size_t n)
{
    struct place p = root_of(m);
    for (size_t i = 0; i < n; i++)
        if (!step(m, &p, (uint8_t)key[i]))
            return NULL;
    return n > 0 && p.ends ? m->text + p.value : NULL;
}

et_status
eti_charsmap_each(struct et_ctx *cx, const struct eti_charsmap *m,
                  eti_charsmap_fn *each, void *arg)
{
    enum { LONGEST = 32, STEPS = 1 << 22 }; /* nfkc: 0.9 million */
    struct place path[LONGEST + 1] = {root_of(m)};
    char key[LONGEST] = "";
    int n = 0, byte = 1, steps = 0;
    while (n > 0 || byte < 256) {
        struct place p = path[n];
        if (byte == 256) { /* all behind this place are done */
            byte = (uint8_t)key[--n] + 1;
            continue;
        }
        if (!step(m, &p, (uint8_t)byte)) {
            byte++;
            continue;
        }
        if (n == LONGEST || ++steps > STEPS) /* texts may share their ends, or circle */
            return ET_FAIL(cx, ET_EFORMAT, "a table of characters that does not end");
        key[n++] = (char)byte;
        path[n] = p;
        byte = 1;
        if (p.ends)
            ET_TRY(each(arg, key, (size_t)n, m->text + p.value));
    }
    return ET_OK;
}

/* ---- as Hugging Face's tokenizers use it ---- */

/* What the shortest text of the table that TEXT begins with becomes; NULL: none does.
 * (SentencePiece takes the longest.) */
static const char *
find_shortest(const struct eti_charsmap *m, const char *text, size_t n)
{
    struct place p = root_of(m);
    for (size_t i = 0; i < n; i++) {
        if (!step(m, &p, (uint8_t)text[i]))
            return NULL;
        if (p.ends)
            return m->text + p.value;
    }
    return NULL;
}

/* How many bytes of TEXT are one letter with its marks. */
static size_t
cluster(const char *text, size_t n)
{
    bool good;
    size_t length, end;
    utf8proc_int32_t state = 0;
    uint32_t c = eti_char(text, n, &end, &good);
    while (end < n) {
        const uint32_t next = eti_char(text + end, n - end, &length, &good);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)c,
                                             (utf8proc_int32_t)next, &state))
            break;
        c = next;
        end += length;
    }
    return end;
}

static et_status
put_mapped(struct et_encoder *e, const struct eti_charsmap *m, const char *text,
           size_t n, struct eti_buf *out)
{
    const char *by = find_shortest(m, text, n);
    return by ? eti_buf_put(e, out, by, strlen(by)) : eti_buf_put(e, out, text, n);
}

et_status
eti_charsmap_precompiled(struct et_encoder *e, const struct eti_charsmap *m,
                         const char *text, size_t n, struct eti_buf *out)
{
    enum { WHOLE = 6 }; /* a letter of fewer bytes is looked up with its marks */
    for (size_t at = 0; at < n;) {
        const size_t end = at + cluster(text + at, n - at);
        if (end - at < WHOLE && find_shortest(m, text + at, end - at)) {
            ET_TRY(put_mapped(e, m, text + at, end - at, out));
            at = end;
        }
        for (size_t length; at < end; at += length) {
            bool good;
            (void)eti_char(text + at, end - at, &length, &good);
            ET_TRY(put_mapped(e, m, text + at, length, out));
        }
    }
    return ET_OK;
}
