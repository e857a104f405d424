/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that tokenizers are made of: UTF-8 and classes of characters, tables of texts
 * and of pairs, base64, patterns; and which of several files says what. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

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

/* ---- steps of tokenizers ---- */

static char folder[] = "/tmp/etude-parts-XXXXXX";

static void
put_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

static void
drop_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static struct et_tokenizer *
open_folder(void)
{
    struct et_tokenizer *t;
    if (et_tokenizer_open(cx, folder, &t) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return t;
}

/* The ids of TEXT, as "1 5 6", by a tokenizer.json of JSON, in which ' stands for ". */
static const char *
ids_of(const char *json, const char *text)
{
    static char out[512], quoted[4096];
    struct et_encoder *e;
    struct et_encoding a;
    size_t used = 0;
    snprintf(quoted, sizeof quoted, "%s", json);
    for (char *c = quoted; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    put_file("tokenizer.json", quoted);
    struct et_tokenizer *t = open_folder();
    if (et_encoder_new(cx, t, &e) != ET_OK ||
        et_encode(e, text, strlen(text), 0, &a) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    out[0] = '\0';
    for (int64_t i = 0; i < a.n; i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%d", i ? " " : "",
                                 (int)a.id[i]);
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    drop_file("tokenizer.json");
    return out;
}

static void
test_models(void)
{
    static const struct {
        const char *what, *json, *text, *ids;
    } row[] = {
        {"of two equal merges the later one counts",
         "{'model':{'type':'BPE','vocab':{'a':0,'b':1,'ab':2,'ba':3},"
         "'merges':['a b','b a','a b']}}",
         "aba", "0 3"},
        {"a BPE model with a dropout of 0 has no dropout",
         "{'model':{'type':'BPE','dropout':0,'vocab':{'a':0},'merges':[]}}", "a", "0"},
        {"an added token that the model has keeps the model's id",
         "{'added_tokens':[{'id':5,'content':'b'}],"
         "'model':{'type':'BPE','vocab':{'a':0,'b':1},'merges':[]}}",
         "ab", "0 1"},
        {"the last piece of a Unigram model may be its unknown one",
         "{'model':{'type':'Unigram','unk_id':1,'vocab':[['a',-1],['?',-2]]}}", "ax",
         "0 1"},
        {"an unknown letter scores below the worst piece, whatever the pieces score",
         "{'model':{'type':'Unigram','unk_id':0,'vocab':[['?',20],['abcdefg',12]]}}",
         "abcdefg", "0"},
        {"with prepend_scheme first only the first word gets the mark",
         "{'pre_tokenizer':{'type':'Sequence','pretokenizers':["
         "{'type':'WhitespaceSplit'},{'type':'Metaspace','replacement':'_',"
         "'prepend_scheme':'first'}]},"
         "'model':{'type':'BPE','vocab':{'a':0,'b':1,'_':2},'merges':[]}}",
         "a b", "2 0 1"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        is_str(ids_of(row[i].json, row[i].text), row[i].ids, "%s", row[i].what);
}

/* Each sign of ASCII is a word of its own to BERT. */
static void
test_signs(void)
{
    char json[256], text[4] = "a.a";
    int wrong = 0;
    for (int c = '!'; c <= '~'; c++) {
        bool is_letter =
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        text[1] = (char)c;
        snprintf(json, sizeof json,
                 "{'pre_tokenizer':{'type':'BertPreTokenizer'},'model':{'type':"
                 "'WordPiece','unk_token':'[?]','continuing_subword_prefix':'##','"
                 "vocab':{'[?]':0,'a':1,'##a':2}}}");
        const char *ids = ids_of(json, text);
        const char *want = c == 'a' ? "1 2 2" : is_letter ? "0" : "1 0 1";
        if (strcmp(ids, want) != 0 && wrong++ == 0)
            diag("%s: %s", text, ids);
    }
    is_int(wrong, 0,
           "BERT's words end at each sign of ASCII, and at no letter or digit");
}

/* N ids decoded twice by the tokenizer at PATH. */
static const char *
decoded_twice(const char *path, const int32_t *id, int64_t n)
{
    static char out[512];
    struct et_tokenizer *t;
    struct et_encoder *e;
    struct et_text text;
    size_t used = 0;
    if (et_tokenizer_open(cx, path, &t) != ET_OK || et_encoder_new(cx, t, &e) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (int i = 0; i < 2; i++) {
        if (et_decode(e, id, n, 0, &text) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        used += (size_t)snprintf(out + used, sizeof out - used, "[%.*s]", (int)text.n,
                                 text.text);
    }
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    return out;
}

/* A text that is decoded again is the same, without a text encoded between. */
static void
test_decoding(void)
{
    static const int32_t all[] = {0, 1, 2, 3};
    char path[1024];
    struct et_tokenizer *t;
    int32_t id[2];
    const char *src = getenv("ET_SRCDIR") ? getenv("ET_SRCDIR") : ".";
    snprintf(path, sizeof path, "%s/t/golden/tokenizers/pieces-unigram.model", src);
    if (et_tokenizer_open(cx, path, &t) != ET_OK)
        bail("no %s", path);
    id[0] = id[1] = et_tokenizer_id(t, "\xe2\x96\x81the", 6);
    et_tokenizer_free(&t);
    if (id[0] < 0)
        bail("the piece is not there");
    is_str(decoded_twice(path, id, 2), "[the the][the the]",
           "decoding drops the space before a text each time");
    put_file("tokenizer.json",
             "{\"decoder\":{\"type\":\"ByteFallback\"},\"model\":{\"type\":\"BPE\","
             "\"vocab\":{\"<0x41>\":0,\"<0x41)\":1,\"<0xg1>\":2,\"<0x4a>\":3},"
             "\"merges\":[]}}");
    is_str(decoded_twice(folder, all, 4), "[A<0x41)<0xg1>J][A<0x41)<0xg1>J]",
           "decoding turns a whole byte token into its byte, and leaves incomplete "
           "ones as text");
    drop_file("tokenizer.json");
}

/* ---- roles ---- */

static int32_t
role_of(const struct et_tokenizer *t, enum et_token_role role)
{
    struct et_tokenizer_info info;
    et_tokenizer_get_info(t, &info);
    return info.role[role];
}

/* Of several files that give a token its role the first one counts. */
static void
test_roles(void)
{
    static const char model[] =
        "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"e\",\"vocab\":{\"a\":0,\"b\":1,"
        "\"c\":2,\"d\":3,\"e\":4},\"merges\":[]}}";
    static const struct {
        const char *what, *map, *config, *generation, *model;
        int32_t bos, eos, pad;
    } row[] = {
        {"special_tokens_map.json before tokenizer_config.json",
         "{\"bos_token\":\"a\"}",
         "{\"bos_token\":\"b\",\"eos_token\":{\"content\":\"c\"}}", NULL, NULL, 0, 2,
         -1},
        {"generation_config.json before config.json", NULL, NULL,
         "{\"eos_token_id\":[2,3]}", "{\"eos_token_id\":1,\"pad_token_id\":3}", -1, 2,
         3},
        {"names before numbers", NULL, "{\"eos_token\":\"d\"}",
         "{\"eos_token_id\":0,\"bos_token_id\":1,\"pad_token_id\":5}", NULL, 1, 3, -1},
    };
    static const char *const names[] = {"special_tokens_map.json",
                                        "tokenizer_config.json",
                                        "generation_config.json", "config.json"};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *const texts[] = {row[i].map, row[i].config, row[i].generation,
                                     row[i].model};
        put_file("tokenizer.json", model);
        for (int k = 0; k < 4; k++)
            if (texts[k])
                put_file(names[k], texts[k]);
        struct et_tokenizer *t = open_folder();
        ok(role_of(t, ET_TOKEN_BOS) == row[i].bos &&
               role_of(t, ET_TOKEN_EOS) == row[i].eos &&
               role_of(t, ET_TOKEN_PAD) == row[i].pad,
           "a token's role comes from %s", row[i].what);
        is_int(role_of(t, ET_TOKEN_UNK), 4, "the unknown token comes from the model");
        et_tokenizer_free(&t);
        for (int k = 0; k < 4; k++)
            drop_file(names[k]);
    }
    put_file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\n");
    struct et_tokenizer *t = open_folder();
    is_int(et_tokenizer_id(t, "c", 1), 2, "tokenizer.json is read before vocab.txt");
    et_tokenizer_free(&t);
    drop_file("tokenizer.json");
    struct et_encoder *e;
    struct et_encoding a;
    t = open_folder();
    if (et_encoder_new(cx, t, &e) != ET_OK ||
        et_encode_pair(e, "a", 1, "b a", 3, 0, ET_ENCODE_SPECIAL, &a) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    static const int32_t ids[] = {1, 3, 2, 4, 3, 2};
    static const uint8_t types[] = {0, 0, 0, 1, 1, 1};
    ok(a.n == 6 && memcmp(a.id, ids, sizeof ids) == 0 &&
           memcmp(a.type, types, sizeof types) == 0,
       "a pair for BERT has marks around both texts, and type 1 for the second");
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    drop_file("vocab.txt");
    if (et_tokenizer_open(cx, "bytes", &t) != ET_OK)
        bail("no bytes");
    ok(et_tokenizer_cut(t, "abcde", 5, 3) == 3 &&
           et_tokenizer_cut(t, "abcde", 5, 9) == 5,
       "the byte tokenizer cuts a text anywhere, but not behind its end");
    et_tokenizer_free(&t);
}

/* ---- classes at their limits ---- */

static void
test_limits(void)
{
    static const struct {
        const char *name;
        bool (*is)(uint32_t c);
        uint32_t in[12], out[12];
    } row[] = {
        {"space",
         eti_is_space,
         {'\t', '\r', ' ', 0x85, 0xa0, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x3000},
         {8, 14, 0x84, 0x86, 0x180e, 0x200b, 0xfeff}},
        {"control",
         eti_is_control,
         {1, 8, 14, 31, 0x7f, 0x9f, 0xad, 0x200b, 0xe000, 0xf8ff, 0x10fffd},
         {'\t', '\n', '\r', ' ', 0xa0, 0x378}},
        {"mark",
         eti_is_mark,
         {0x300, 0x301, 0x36f, 0x483, 0x20d0},
         {0x2ff, 0x488, 0x903, 0x93e, 'a'}},
        {"letter of a word",
         eti_is_word,
         {'a', 'Z', '0', '_', 0xe9, 0x203f, 0x301, 0x2160},
         {'-', ' ', '.', 0xb2, 0x2014, 0x2019}},
        {"Chinese character",
         eti_is_chinese,
         {0x3400, 0x4dbf, 0x4e00, 0x9fff, 0x20000, 0x2a6df, 0x2a700, 0x2b73f, 0x2b740,
          0xf900, 0xfaff, 0x2fa1f},
         {0x33ff, 0x4dc0, 0x4dff, 0xa000, 0x1ffff, 0x2a6e0, 0x2a6ff, 0x2b81f + 1,
          0xf8ff, 0xfb00, 0x2f7ff, 0x2fa20}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int wrong = 0;
        for (int k = 0; k < 12; k++) {
            bool bad = (row[i].in[k] && !row[i].is(row[i].in[k])) ||
                       (row[i].out[k] && row[i].is(row[i].out[k]));
            if (bad && wrong++ == 0)
                diag("%x or %x", (unsigned)row[i].in[k], (unsigned)row[i].out[k]);
        }
        is_int(wrong, 0,
               "characters of the class %s are in it, and their neighbours are not",
               row[i].name);
    }
}

/* ---- normalizers ---- */

/* What TEXT becomes by N steps. */
static void
is_normal(const char *says, const struct eti_norm *steps, int n, const char *text,
          const char *want)
{
    struct et_tokenizer t = {.n_norms = n};
    struct et_encoder e = {
        .cx = cx, .t = &t, .match = pcre2_match_data_create(1, NULL)};
    const char *out;
    size_t n_out;
    char got[256] = "";
    memcpy(t.norm, steps, (size_t)n * sizeof *steps);
    if (eti_normalize(&e, text, strlen(text), &out, &n_out) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (size_t i = 0; i < n_out && i + 1 < sizeof got; i++)
        got[i] = out[i];
    is_str(got, want, "%s", says);
    et_free(cx, e.norm[0].text);
    et_free(cx, e.norm[1].text);
    pcre2_match_data_free(e.match);
}

static void
test_normalizers(void)
{
    enum { COMPAT = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT };
    static char line[] = "_";
    const struct eti_norm marks = {.kind = ETI_NORM_STRIP_ACCENTS},
                          compat = {.kind = ETI_NORM_FORM, .form = COMPAT},
                          lower = {.kind = ETI_NORM_LOWER},
                          left = {.kind = ETI_NORM_STRIP, .left = true},
                          right = {.kind = ETI_NORM_STRIP, .right = true},
                          put = {.kind = ETI_NORM_PREPEND, .text = line, .n = 1},
                          plain = {.kind = ETI_NORM_BERT},
                          clean = {.kind = ETI_NORM_BERT, .clean = true},
                          small = {.kind = ETI_NORM_BERT, .lower = true};
    struct eti_norm by = {.kind = ETI_NORM_REPLACE, .text = line, .n = 1};
    const struct eti_norm three[] = {put, lower, put, lower};
    is_normal("marks of each kind are taken out", &marks, 1,
              "a\xcc\x81"
              "b\xe0\xa4\x83"
              "c\xe2\x83\x9d"
              "d",
              "abcd");
    is_normal("a letter may become more letters than it has bytes", &compat, 1,
              "\xef\xb7\xba",
              "\xd8\xb5\xd9\x84\xd9\x89 \xd8\xa7\xd9\x84\xd9\x84\xd9\x87 "
              "\xd8\xb9\xd9\x84\xd9\x8a\xd9\x87 \xd9\x88\xd8\xb3\xd9\x84\xd9\x85");
    is_normal("blanks at the left are taken off", &left, 1, " \t a b \n", "a b \n");
    is_normal("or at the right", &right, 1, " \t a b \n", " \t a b");
    is_normal("and all there is of a text of blanks", &left, 1, " \t ", "");
    is_normal("nothing is put before nothing", &put, 1, "", "");
    is_normal("steps go on with what the last one made", three, 4, "AZ", "__az");
    if (eti_pattern(cx, "x", "x*", 2, false, &by.re) != ET_OK)
        bail("no pattern");
    is_normal("where a pattern matches nothing something is put in, but behind a match",
              &by, 1, "axb", "_a_b_");
    is_normal("between letters of however many bytes", &by, 1,
              "\xc3\xa9\xf0\x9f\x98\x80x", "_\xc3\xa9_\xf0\x9f\x98\x80_");
    is_normal("and in no text that is empty", &by, 1, "", "");
    pcre2_code_free(by.re);
    is_normal("without a wish BERT's step changes nothing", &plain, 1,
              "A\x01\t\xc2\xa0Z\xc2\x85\xef\xbf\xbd\xe4\xb8\xad",
              "A\x01\t\xc2\xa0Z\xc2\x85\xef\xbf\xbd\xe4\xb8\xad");
    is_normal("it cleans", &clean, 1, "A\x01\t\xc2\xa0Z\xc2\x85\xef\xbf\xbd", "A  Z");
    is_normal("or makes letters small", &small, 1, "AMZ[@\xc3\x89", "amz[@\xc3\xa9");
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder))
        bail("no context or folder");
    test_utf8();
    test_classes();
    test_many_texts();
    test_pairs();
    test_base64();
    test_long_pattern();
    test_models();
    test_signs();
    test_decoding();
    test_roles();
    test_limits();
    test_normalizers();
    rmdir(folder);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
