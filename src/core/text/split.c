/* SPDX-License-Identifier: Apache-2.0 */
/* split.c: a normalised text into words, step by step: each step hands the parts that
 * it finds to the next, and the last to the model. */
#include "config.h"

#include <string.h>

#include "core/text/impl.h"
#include "core/text/unicode.h"

static et_status
hand_on(struct et_encoder *e, int stage, const char *text, size_t n)
{
    return n ? eti_split(e, stage + 1, text, n) : ET_OK;
}

/* The next match behind FROM; false: none. A pattern that JIT has no stack for is
 * tried again without it. */
static et_status
find(struct et_encoder *e, const pcre2_code *re, const char *text, size_t n,
     size_t from, size_t *begin, size_t *end, bool *found)
{
    PCRE2_SPTR s = (PCRE2_SPTR)text;
    size_t jit = 0;
    (void)pcre2_pattern_info(re, PCRE2_INFO_JITSIZE, &jit);
    int code = PCRE2_ERROR_JIT_STACKLIMIT;
    if (jit > 0)
        code = pcre2_jit_match(re, s, n, from, 0, e->match, NULL);
    if (code == PCRE2_ERROR_JIT_STACKLIMIT)
        code = pcre2_match(re, s, n, from, PCRE2_NO_UTF_CHECK, e->match, NULL);
    *found = code > 0 || code == 0;
    if (code < 0 && code != PCRE2_ERROR_NOMATCH)
        return ET_FAIL(e->cx, code == PCRE2_ERROR_NOMEMORY ? ET_ENOMEM : ET_EFORMAT,
                       "%s: its pattern gave up on a text (PCRE2 %d)", e->t->path,
                       code);
    if (!*found)
        return ET_OK;
    const size_t *at = pcre2_get_ovector_pointer(e->match);
    *begin = at[0];
    *end = at[1];
    return ET_OK;
}

/* Behind an empty match, the next character. */
static size_t
step_over(const char *text, size_t n, size_t at)
{
    size_t length = 1;
    bool good;
    if (at < n)
        (void)eti_char(text + at, n - at, &length, &good);
    return at + length;
}

static et_status
split_pattern(struct et_encoder *e, int stage, const char *text, size_t n)
{
    const struct eti_split *s = &e->t->split[stage];
    size_t done = 0, from = 0, begin = 0, end = 0;
    bool found;
    while (from <= n) {
        ET_TRY(find(e, s->re, text, n, from, &begin, &end, &found));
        if (!found)
            break;
        if (begin > done && s->keeps_others)
            ET_TRY(hand_on(e, stage, text + done, begin - done));
        if (s->keeps_matches)
            ET_TRY(hand_on(e, stage, text + begin, end - begin));
        done = end; /* an empty match parts what stands around it */
        from = end > begin ? end : step_over(text, n, end);
    }
    return s->keeps_others ? hand_on(e, stage, text + done, n - done) : ET_OK;
}

enum bert_class { LETTER, SPACE, PUNCT };

static enum bert_class
bert_class(const char *text, size_t n, size_t *length)
{
    static const uint8_t ascii[128] = {
        ['\t'] = SPACE, ['\n'] = SPACE, [11] = SPACE,  [12] = SPACE,  ['\r'] = SPACE,
        [' '] = SPACE,  ['!'] = PUNCT,  ['"'] = PUNCT, ['#'] = PUNCT, ['$'] = PUNCT,
        ['%'] = PUNCT,  ['&'] = PUNCT,  [39] = PUNCT,  ['('] = PUNCT, [')'] = PUNCT,
        ['*'] = PUNCT,  ['+'] = PUNCT,  [','] = PUNCT, ['-'] = PUNCT, ['.'] = PUNCT,
        ['/'] = PUNCT,  [':'] = PUNCT,  [';'] = PUNCT, ['<'] = PUNCT, ['='] = PUNCT,
        ['>'] = PUNCT,  ['?'] = PUNCT,  ['@'] = PUNCT, ['['] = PUNCT, [92] = PUNCT,
        [']'] = PUNCT,  ['^'] = PUNCT,  ['_'] = PUNCT, ['`'] = PUNCT, ['{'] = PUNCT,
        ['|'] = PUNCT,  ['}'] = PUNCT,  ['~'] = PUNCT,
    };
    uint8_t byte = (uint8_t)text[0];
    bool good;
    *length = 1;
    if (byte < 0x80)
        return ascii[byte];
    uint32_t c = eti_char(text, n, length, &good);
    return eti_is_space(c) ? SPACE : eti_is_punct(c) ? PUNCT : LETTER;
}

static et_status
split_bert(struct et_encoder *e, int stage, const char *text, size_t n)
{
    size_t begin = 0, length;
    for (size_t at = 0; at < n; at += length) {
        enum bert_class c = bert_class(text + at, n - at, &length);
        if (c == LETTER)
            continue;
        ET_TRY(hand_on(e, stage, text + begin, at - begin));
        if (c == PUNCT)
            ET_TRY(hand_on(e, stage, text + at, length));
        begin = at + length;
    }
    return hand_on(e, stage, text + begin, n - begin);
}

static et_status
split_prefix(struct et_encoder *e, int stage, const char *text, size_t n)
{
    struct eti_buf *b = &e->stage[stage];
    if (text[0] == ' ')
        return hand_on(e, stage, text, n);
    b->n = 0;
    ET_TRY(eti_buf_put(e, b, " ", 1));
    ET_TRY(eti_buf_put(e, b, text, n));
    return hand_on(e, stage, b->text, (size_t)b->n);
}

/* Each word of B begins with the mark, but for what stands before the first. */
static et_status
split_at_marks(struct et_encoder *e, int stage, const struct eti_buf *b)
{
    const struct eti_split *s = &e->t->split[stage];
    const char *text = b->text, *end = b->text + b->n, *begin = text, *mark;
    const char *from = text;
    while ((mark = memmem(from, (size_t)(end - from), s->text, s->n)) != NULL) {
        ET_TRY(hand_on(e, stage, begin, (size_t)(mark - begin)));
        begin = mark;
        from = mark + s->n;
    }
    return hand_on(e, stage, begin, (size_t)(end - begin));
}

static et_status
split_metaspace(struct et_encoder *e, int stage, const char *text, size_t n)
{
    const struct eti_split *s = &e->t->split[stage];
    struct eti_buf *b = &e->stage[stage];
    bool marked = text[0] == ' ' || (n >= s->n && memcmp(text, s->text, s->n) == 0);
    bool prepends = s->prepend == ETI_PREPEND_ALWAYS ||
                    (s->prepend == ETI_PREPEND_FIRST && e->first);
    b->n = 0;
    if (prepends && !marked)
        ET_TRY(eti_buf_put(e, b, s->text, s->n));
    for (size_t at = 0; at < n;) {
        const char *space = memchr(text + at, ' ', n - at);
        size_t run = space ? (size_t)(space - text) - at : n - at;
        ET_TRY(eti_buf_put(e, b, text + at, run));
        if (space)
            ET_TRY(eti_buf_put(e, b, s->text, s->n));
        at += run + (space != NULL);
    }
    e->first = false;
    return s->splits ? split_at_marks(e, stage, b)
                     : hand_on(e, stage, b->text, (size_t)b->n);
}

et_status
eti_split(struct et_encoder *e, int stage, const char *text, size_t n)
{
    if (stage == e->t->n_splits)
        return eti_word(e, text, n);
    switch (e->t->split[stage].kind) {
    case ETI_SPLIT_PATTERN:
        return split_pattern(e, stage, text, n);
    case ETI_SPLIT_BERT:
        return split_bert(e, stage, text, n);
    case ETI_SPLIT_PREFIX:
        return split_prefix(e, stage, text, n);
    case ETI_SPLIT_METASPACE:
        return split_metaspace(e, stage, text, n);
    }
    return ET_OK;
}
