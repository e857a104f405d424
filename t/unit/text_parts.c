/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that tokenizers are made of: UTF-8 and classes of characters, tables of texts
 * and of pairs, base64, patterns. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/text/base64.h"
#include "core/text/impl.h"
#include "core/text/unicode.h"
#include "etude/rng.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- UTF-8 ---- */

/* The character of N bytes at B by the definition (RFC 3629, section 3); -1: none. */
static int64_t
defined(const uint8_t *b, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = n == 1 ? b[0] : b[0] & (0xffu >> (n + 1));
    bool lead = n == 1   ? b[0] < 0x80
                : n == 2 ? (b[0] & 0xe0) == 0xc0
                : n == 3 ? (b[0] & 0xf0) == 0xe0
                         : (b[0] & 0xf8) == 0xf0;
    for (size_t i = 1; i < n; i++) {
        lead = lead && (b[i] & 0xc0) == 0x80;
        c = c << 6 | (b[i] & 0x3f);
    }
    bool good = lead && c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
    return good ? (int64_t)c : -1;
}

static bool
same_char(const uint8_t *b, size_t n)
{
    size_t length;
    bool good;
    uint32_t c = eti_char((const char *)b, n, &length, &good);
    int64_t want = -1;
    for (size_t k = 1; want < 0 && k <= n; k++) {
        want = defined(b, k);
        if (want >= 0 && (!good || c != want || length != k))
            return false;
    }
    return want >= 0 ? eti_utf8_span((const char *)b, length) == length
                     : !good && length >= 1 && eti_utf8_span((const char *)b, n) == 0;
}

static void
test_utf8(void)
{
    static const uint8_t ends[] = {0x00, 0x7f, 0x80, 0x8f, 0x90,
                                   0x9f, 0xa0, 0xbf, 0xc0};
    enum { ENDS = sizeof ends };
    int wrong = 0;
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            uint8_t text[4] = {(uint8_t)a, (uint8_t)b};
            wrong += !same_char(text, 1) || !same_char(text, 2);
            for (int i = 0; i < ENDS * ENDS; i++) {
                text[2] = ends[i / ENDS];
                text[3] = ends[i % ENDS];
                wrong += !same_char(text, 3) || !same_char(text, 4);
            }
        }
    is_int(wrong, 0,
           "bytes are characters by the definition of UTF-8, and by no other");
}

/* Tokenizers has the classes of Unicode 8: both ends of ranges that are younger. */
static void
test_classes(void)
{
    ok(eti_is_punct(0x2e42) && !eti_is_punct(0x2e43) && !eti_is_punct(0x2e4f) &&
           eti_is_mark(0x1abd) && !eti_is_mark(0x1abf) && !eti_is_mark(0x1ace) &&
           !eti_is_punct(0x1b7d) && !eti_is_punct(0x1b7e) && eti_is_punct(0x1b60) &&
           !eti_is_mark(0xb55) && !eti_is_mark(0x1e944),
       "what is younger than Unicode 8 is no mark and no punctuation");
}

/* ---- tables ---- */

static void
test_many_texts(void)
{
    enum { TEXTS = 30000 };
    struct eti_vocab v = {.cx = cx};
    struct eti_trie trie = {.cx = cx};
    int lost = 0, astray = 0;
    char text[32];
    for (int i = 0; i < TEXTS; i++) {
        int n = snprintf(text, sizeof text, "%x,", i * 2654435761u);
        if (eti_vocab_add(&v, i, text, (size_t)n) != ET_OK ||
            eti_trie_add(&trie, text, (size_t)n, i) != ET_OK)
            bail("no memory");
    }
    for (int i = 0; i < TEXTS; i++) {
        int32_t id = -1;
        size_t length;
        int n = snprintf(text, sizeof text, "%x,z", i * 2654435761u);
        lost += eti_vocab_find(&v, text, (size_t)n - 1) != i;
        astray += eti_trie_longest(&trie, text, (size_t)n, &id) != (size_t)n - 1 ||
                  id != i || eti_vocab_find(&v, text, (size_t)n) != -1;
        const char *own = eti_vocab_text(&v, i, &length);
        lost += length != (size_t)n - 1 || memcmp(own, text, length) != 0;
    }
    is_int(lost, 0, "of 30000 texts each is found by its bytes and by its number");
    is_int(astray, 0,
           "a trie finds each as the longest, and none is found that is not there");
    ok(eti_vocab_add(&v, TEXTS - 1, "new", 3) == ET_EFORMAT &&
           strstr(et_error_get(cx)->message, "two tokens have the number 29999"),
       "the last number cannot be given twice");
    et_error_clear(cx);
    struct eti_vocab w = {.cx = cx};
    ok(eti_vocab_add(&w, ETI_VOCAB_MAX, "a", 1) == ET_EFORMAT &&
           eti_vocab_add(&w, -1, "a", 1) == ET_EFORMAT,
       "numbers that are too large, or below 0, are refused");
    et_error_clear(cx);
    eti_vocab_release(&w);
    eti_vocab_release(&v);
    eti_trie_release(&trie);
}

/* Pairs of any numbers, as many as the table must grow for again and again. */
static void
test_pairs(void)
{
    enum { PAIRS = 100000 };
    static int32_t left[PAIRS], right[PAIRS];
    struct et_rng r = et_rng_at(4, ET_RNG_USER, 0);
    struct et_tokenizer *t;
    int lost = 0;
    if (et_alloc(cx, sizeof *t, (void **)&t) != ET_OK)
        bail("no memory");
    t->cx = cx;
    for (int i = 0; i < PAIRS; i++) {
        left[i] = (int32_t)(et_rng_u32(&r) & 0xffffff);
        right[i] = (int32_t)(et_rng_u32(&r) & 0xffffff);
        if (eti_bpe_add_pair(t, left[i], right[i], i, PAIRS - i) != ET_OK)
            bail("no memory");
    }
    for (int i = 0; i < PAIRS; i++) {
        const struct eti_pair *p = eti_bpe_pair(&t->bpe, left[i], right[i]);
        lost += !p || p->rank != i || p->id != PAIRS - i;
    }
    is_int(lost, 0, "of 100000 pairs each has its rank and its token");
    is_int(t->bpe.n_pairs, PAIRS, "and no other is there");
    ok(eti_bpe_pair(&t->bpe, -1, 5) == NULL, "nor is one that was never put in");
    et_free(cx, t->bpe.pair);
    et_free(cx, t);
}

/* ---- base64 ---- */

static void
test_base64(void)
{
    static const struct {
        const char *bytes, *text; /* RFC 4648, section 10 */
    } rows[] = {{"", ""},
                {"f", "Zg=="},
                {"fo", "Zm8="},
                {"foo", "Zm9v"},
                {"foob", "Zm9vYg=="},
                {"fooba", "Zm9vYmE="},
                {"foobar", "Zm9vYmFy"},
                {"\xff\xef\xbe", "/+++"}};
    static const char *const wrong[] = {
        "Zg=", "Z===", "Zg==Zg==", "Z g=", "Zm9*", "=Zg=", "Zm9v\n"};
    int bad = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].bytes), n_text, n_back;
        char *text = NULL;
        uint8_t *back = NULL;
        bad += eti_base64_encode(cx, (const uint8_t *)rows[i].bytes, n, &text,
                                 &n_text) != ET_OK ||
               strcmp(text, rows[i].text) != 0 || n_text != strlen(text) ||
               eti_base64_decode(cx, text, n_text, &back, &n_back) != ET_OK ||
               n_back != n || memcmp(back, rows[i].bytes, n) != 0;
        et_free(cx, text);
        et_free(cx, back);
    }
    is_int(bad, 0, "base64 is RFC 4648's, both ways");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint8_t *back = NULL;
        size_t n;
        bad +=
            eti_base64_decode(cx, wrong[i], strlen(wrong[i]), &back, &n) != ET_EFORMAT;
        et_free(cx, back);
    }
    is_int(bad, 0, "and what is no base64 is refused");
    et_error_clear(cx);
}

/* ---- patterns ---- */

/* Patterns of as many bytes as there is room for, with \s written out. */
static void
test_long_pattern(void)
{
    enum { MOST = 8192, WRITTEN_OUT = 18 };
    static char pattern[MOST + 1];
    for (int more = 0; more < 2; more++) {
        pcre2_code *re;
        size_t n = MOST - WRITTEN_OUT + (size_t)more;
        memset(pattern, 'a', n);
        memcpy(pattern + n, "\\s", 2);
        et_status s = eti_pattern(cx, "a.json", pattern, n + 2, false, &re);
        ok(more ? s == ET_ENOTSUP && strstr(et_error_get(cx)->message, "a pattern of")
                : s == ET_OK,
           "a pattern of %d bytes is %s", MOST + more, more ? "refused" : "taken");
        et_error_clear(cx);
        pcre2_code_free(re);
    }
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_utf8();
    test_classes();
    test_many_texts();
    test_pairs();
    test_base64();
    test_long_pattern();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
