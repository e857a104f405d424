/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer says of itself, by what its files say: which tokens are special, what
 * their roles are, whether bytes come back; large vocabularies; and what is refused. */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/text/base64.h"
#include "core/text/impl.h"
#include "core/text/unicode.h"
#include "etude/tokenizer.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char dir[] = "/tmp/etude-files-XXXXXX";

static void
put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

static void
drop(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
}

static struct et_tokenizer *
open_named(const char *name)
{
    char path[512];
    struct et_tokenizer *t = NULL;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (et_tokenizer_open(cx, path, &t) != ET_OK)
        diag("%s", et_error_get(cx)->message);
    return t;
}

/* The tokenizer.json of TEXT. */
static struct et_tokenizer *
open_json(const char *text)
{
    put("tokenizer.json", text);
    struct et_tokenizer *t = open_named("tokenizer.json");
    drop("tokenizer.json");
    return t;
}

/* ---- special tokens and roles ---- */

#define OF(vocab) "\"model\":{\"type\":\"BPE\",\"vocab\":{" vocab "},\"merges\":[]}"
#define ADDED(id, text, more)                                                          \
    "{\"id\":" #id ",\"content\":\"" text "\",\"special\":" more "}"

static void
test_special(void)
{
    struct et_tokenizer *t = open_json("{\"added_tokens\":[" ADDED(
        1, "<m>", "true") "," ADDED(2, "<u>", "false") "]," OF("\"a\":0") "}");
    bool good = t && !et_tokenizer_is_special(t, 0) && et_tokenizer_is_special(t, 1) &&
                !et_tokenizer_is_special(t, 2) && !et_tokenizer_is_special(t, 3) &&
                !et_tokenizer_is_special(t, -1);
    ok(good, "an added token is special where its file says so, and else is not");
    struct et_encoder *e;
    struct et_text text;
    if (!t || et_encoder_new(cx, t, &e) != ET_OK)
        bail("no encoder");
    ok(et_decode(e, (int32_t[]){1, 0, 2}, 3, ET_DECODE_SKIP_SPECIAL, &text) == ET_OK &&
           strcmp(text.text, "a <u>") == 0,
       "what a user added is text, and stays where special tokens are left out");
    et_encoder_free(&e);
    et_tokenizer_free(&t);
}

static void
test_roles(void)
{
    struct et_tokenizer_info info = {0};
    put("special_tokens_map.json", "{\"bos_token\":\"<x>\"}");
    struct et_tokenizer *t =
        open_json("{" OF("\"<s>\":0,\"</s>\":1,\"<x>\":2,\"<pad>\":3,\"<bos>\":4") "}");
    et_tokenizer_get_info(t, &info);
    ok(t && info.role[ET_TOKEN_BOS] == 2 && info.role[ET_TOKEN_EOS] == 1 &&
           info.role[ET_TOKEN_PAD] == 3 && info.role[ET_TOKEN_MASK] == -1,
       "a role that a file names is that token's, and others go to usual texts");
    et_tokenizer_free(&t);
    drop("special_tokens_map.json");
    t = open_json("{" OF("\"<bos>\":0,\"<s>\":1") "}");
    et_tokenizer_get_info(t, &info);
    ok(t && info.role[ET_TOKEN_BOS] == 1,
       "of usual texts the first in our list counts");
    et_tokenizer_free(&t);
}

/* All 256 bytes as their characters, but LACKS. */
static void
put_bytes(char *out, int lacks, const char *end)
{
    *out = 0;
    for (int b = 0, id = 0; b < 256; b++) {
        char shown[5] = "";
        shown[eti_byte_char((uint8_t)b, shown)] = 0;
        if (b == lacks)
            continue;
        sprintf(out + strlen(out), "%s\"%s%s%s\":%d", id ? "," : "",
                *shown == '"' || *shown == '\\' ? "\\" : "", shown, end, id);
        id++;
    }
}

/* What stands around a text has its room within the limit. */
static void
test_limits(void)
{
    struct et_tokenizer *t = open_json(
        "{" OF("\"a\":0,\"[C]\":1,\"[S]\":2") ",\"post_processor\":{\"type\":"
                                              "\"BertProcessing\",\"cls\":[\"[C]\",1],"
                                              "\"sep\":[\"[S]\",2]}}");
    struct et_encoder *e;
    int wrong = 0;
    if (!t || et_encoder_new(cx, t, &e) != ET_OK)
        bail("no encoder");
    for (int64_t limit = 0; limit < 12; limit++)
        for (size_t n = 0; n < 8; n++) {
            struct et_encoding a;
            int64_t room = limit == 0 ? 8 : limit > 2 ? limit - 2 : 0;
            int64_t left = (int64_t)n < room ? (int64_t)n : room;
            wrong += et_encode_pair(e, "aaaaaaaa", n, NULL, 0, limit, ET_ENCODE_SPECIAL,
                                    &a) != ET_OK ||
                     a.n != left + 2 || a.id[0] != 1 || a.id[a.n - 1] != 2;
        }
    is_int(wrong, 0, "a text is cut to what its marks leave of the limit");
    et_encoder_free(&e);
    et_tokenizer_free(&t);
}

/* A special token of a file that does not say so is not normalized. */
static void
test_not_normalized(void)
{
    struct et_tokenizer *t =
        open_json("{\"added_tokens\":[" ADDED(1, "<M>", "true") "," ADDED(
            2, "<U>",
            "false") "]," OF("\"?\":0") ",\"normalizer\":{\"type\":\"Lowercase\"}}");
    struct et_encoding a;
    struct et_encoder *e;
    if (!t || et_encoder_new(cx, t, &e) != ET_OK)
        bail("no encoder");
    ok(et_encode(e, "<M>", 3, 0, &a) == ET_OK && a.n == 1 && a.id[0] == 1 &&
           et_encode(e, "<m>", 3, 0, &a) == ET_OK && a.n == 0,
       "a special token is found as it is written alone");
    ok(et_encode(e, "<u>", 3, 0, &a) == ET_OK && a.n == 1 && a.id[0] == 2 &&
           et_encode(e, "<U>", 3, 0, &a) == ET_OK && a.n == 1 && a.id[0] == 2,
       "another one in what is normalized");
    et_encoder_free(&e);
    et_tokenizer_free(&t);
}

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

/* Bytes that are no UTF-8 cannot be normalized. */
static void
test_not_utf8(void)
{
    static char vocab[8192], text[16384];
    struct et_encoding a;
    struct et_encoder *e;
    struct et_text back;
    put_bytes(vocab, -1, "");
    snprintf(text, sizeof text,
             "{\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":"
             "\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":"
             "\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{%s},"
             "\"merges\":[]}}",
             vocab);
    struct et_tokenizer *t = open_json(text);
    if (!t || et_encoder_new(cx, t, &e) != ET_OK)
        bail("no encoder");
    int32_t id[32];
    bool good = et_encode(e, "a\xff", 2, 0, &a) == ET_OK && a.n == 4;
    memcpy(id, a.id, (size_t)(good ? a.n : 0) * sizeof *id);
    ok(good && et_decode(e, id, 4, 0, &back) == ET_OK &&
           strcmp(back.text, "a\xef\xbf\xbd") == 0,
       "a byte-level tokenizer that normalizes has U+FFFD for what is no UTF-8");
    et_encoder_free(&e);
    et_tokenizer_free(&t);
}

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

/* ---- GPT-2's two files ---- */

static void
test_beside(void)
{
    char was[4096];
    struct et_tokenizer *t = NULL;
    put("vocab.json", "{\"a\":0,\"b\":1,\"ab\":2}");
    put("merges.txt", "#version: 0.2\na b\n");
    put("generation_config.json", "{\"eos_token_id\":2}");
    if (!getcwd(was, sizeof was) || chdir(dir) != 0)
        bail("no folder");
    bool opened = et_tokenizer_open(cx, "merges.txt", &t) == ET_OK;
    struct et_tokenizer_info info = {0};
    et_tokenizer_get_info(t, &info);
    ok(opened && info.vocab_size == 3 && info.role[ET_TOKEN_EOS] == 2,
       "what stands beside a file of the current folder is looked for there");
    if (!opened)
        diag("%s", et_error_get(cx)->message);
    et_tokenizer_free(&t);
    if (chdir(was) != 0)
        bail("no way back");
    drop("vocab.json");
    drop("merges.txt");
    drop("generation_config.json");
}

/* ---- which give bytes back ---- */

static void
test_exact(void)
{
    static const char splits[] = "\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                                 "\"add_prefix_space\":false}",
                      joins[] = "\"decoder\":{\"type\":\"ByteLevel\"}",
                      prefix[] = "\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                                 "\"add_prefix_space\":true}",
                      removes[] =
                          "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
                          "{\"type\":\"Split\",\"pattern\":{\"String\":\"x\"},"
                          "\"behavior\":\"Removed\"},{\"type\":\"ByteLevel\","
                          "\"add_prefix_space\":false}]}";
    static const struct {
        const char *says, *splits, *joins, *more;
        int lacks;
        bool is_exact;
    } rows[] = {
        {"of all bytes", splits, joins, "", -1, true},
        {"that lacks a byte", splits, joins, "", 255, false},
        {"without a decoder", splits, "\"decoder\":null", "", -1, false},
        {"that puts a space before", prefix, joins, "", -1, false},
        {"that leaves out what a pattern matches", removes, joins, "", -1, false},
        {"with a normalizer", splits, joins, "\"normalizer\":{\"type\":\"NFC\"},", -1,
         false},
        {"with a token that takes in spaces", splits, joins,
         "\"added_tokens\":[{\"id\":256,\"content\":\"<m>\",\"lstrip\":true}],", -1,
         false},
        {"with a token that takes in spaces behind it", splits, joins,
         "\"added_tokens\":[{\"id\":256,\"content\":\"<m>\",\"rstrip\":true}],", -1,
         false},
        {"with a token", splits, joins,
         "\"added_tokens\":[{\"id\":256,\"content\":\"<m>\"}],", -1, true},
    };
    static char vocab[8192], text[16384];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_tokenizer_info info = {0};
        put_bytes(vocab, rows[i].lacks, "");
        snprintf(text, sizeof text,
                 "{%s%s,%s,\"model\":{\"type\":\"BPE\",\"vocab\":{%s},\"merges\":[]}}",
                 rows[i].more, rows[i].splits, rows[i].joins, vocab);
        struct et_tokenizer *t = open_json(text);
        et_tokenizer_get_info(t, &info);
        ok(t && info.is_exact == rows[i].is_exact,
           "a byte-level tokenizer %s %s bytes back", rows[i].says,
           rows[i].is_exact ? "gives" : "does not always give");
        et_tokenizer_free(&t);
    }
}

/* ---- large vocabularies ---- */

/* Tokens of the letters' pairs: each is one merge. */
static void
test_many_merges(void)
{
    enum { LETTERS = 150 }; /* from U+0100 on */
    json_t *vocab = json_object(), *merges = json_array();
    char letter[LETTERS][3], pair[8];
    int n = 0, wrong = 0;
    for (int i = 0; i < LETTERS; i++) {
        letter[i][eti_char_put(0x100u + (uint32_t)i, letter[i])] = 0;
        json_object_set_new(vocab, letter[i], json_integer(n++));
    }
    for (int i = 0; i < LETTERS; i++)
        for (int k = 0; k < LETTERS; k++) {
            snprintf(pair, sizeof pair, "%.2s%.2s", letter[i], letter[k]);
            json_object_set_new(vocab, pair, json_integer(n++));
            json_array_append_new(merges, json_pack("[s, s]", letter[i], letter[k]));
        }
    json_t *json = json_pack("{s:{s:s, s:o, s:o}}", "model", "type", "BPE", "vocab",
                             vocab, "merges", merges);
    char *text = json_dumps(json, JSON_COMPACT);
    struct et_tokenizer *t = open_json(text);
    struct et_encoder *e;
    if (!t || et_encoder_new(cx, t, &e) != ET_OK)
        bail("no tokenizer of many merges");
    for (int i = 0; i < LETTERS * LETTERS; i++) {
        struct et_encoding a;
        snprintf(pair, sizeof pair, "%.2s%.2s", letter[i / LETTERS],
                 letter[i % LETTERS]);
        wrong +=
            et_encode(e, pair, 4, 0, &a) != ET_OK || a.n != 1 || a.id[0] != LETTERS + i;
    }
    is_int(wrong, 0, "each of 22500 merges is made");
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    free(text);
    json_decref(json);
}

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

/* ---- what is refused ---- */

#define MODEL OF("\"a\":0,\"b\":1")
#define BYTES_MODEL                                                                    \
    MODEL ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
#define TEMPLATE(single)                                                               \
    "{" MODEL                                                                          \
    ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" single         \
    "],\"special_tokens\":{\"c\":{\"ids\":[0]},\"far\":{\"ids\":[2]},\"none\":{"       \
    "\"ids\":[]}}}}"
#define A        "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define B        "{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}"
#define IS(id)   "{\"SpecialToken\":{\"id\":\"" id "\",\"type_id\":0}}"
#define EIGHT(x) x x x x x x x x
#define BERT(cls)                                                                      \
    "{" MODEL ",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":" cls          \
    ",\"sep\":[\"b\",1]}}"

static const struct {
    const char *json, *says;
} refused[] = {
    {"{" BYTES_MODEL EIGHT("{\"type\":\"Digits\"},")
         EIGHT("{\"type\":\"Digits\"},") "{\"type\":\"Digits\"}]}}",
     "more than 16 steps of a kind"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" EIGHT(
         "{\"type\":\"NFC\"},") EIGHT("{\"type\":\"NFC\"},") "{\"type\":\"NFC\"}]}}",
     "more than 16 steps of a kind"},
    {"{" MODEL ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" EIGHT(
         "{\"type\":\"Fuse\"},") EIGHT("{\"type\":\"Fuse\"},") "{\"type\":\"Fuse\"}]}}",
     "more than 16 steps of a kind"},
    {"{" BYTES_MODEL "{\"type\":\"ByteLevel\"},{\"type\":\"Digits\"}]}}",
     "a pre-tokenizer behind ByteLevel"},
    {"{" BYTES_MODEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
     "\"use_regex\":false},{\"type\":\"Digits\"}]}}",
     "a pre-tokenizer behind ByteLevel"},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0}},"
     "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}",
     "ByteLevel without BPE"},
    {"{" MODEL ",\"decoder\":{\"type\":\"ByteLevel\"}}",
     "a decoder ByteLevel without a pre-tokenizer ByteLevel"},
    {"{" BYTES_MODEL "{\"type\":\"ByteLevel\"}]},\"decoder\":{\"type\":\"Sequence\","
     "\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"ByteLevel\"}]}}",
     "a decoder beside ByteLevel"},
    {"{" BYTES_MODEL "{\"type\":\"ByteLevel\"}]},\"decoder\":{\"type\":\"Sequence\","
     "\"decoders\":[{\"type\":\"ByteLevel\"},{\"type\":\"Fuse\"}]}}",
     "a decoder beside ByteLevel"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Sequence\"}}", "a Sequence without a list"},
    {"{" MODEL ",\"normalizer\":{\"lower\":true}}", "normalizer without a type"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Prepend\"}}", "prepend is no text"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Precompiled\"}}",
     "precompiled_charsmap is no text"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Glob\":\"a\"},"
     "\"content\":\"b\"}}",
     "a pattern is neither String nor Regex"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},"
     "\"content\":\"b\"}}",
     "a pattern that is empty"},
    {"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"}}}",
     "content is no text"},
    {"{" MODEL ",\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},"
     "\"content\":\"b\"}}",
     "a decoder's Replace by a pattern"},
    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\"}}",
     "replacement is empty"},
    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\","
     "\"prepend_scheme\":\"often\"}}",
     "prepend_scheme often"},
    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"CharDelimiterSplit\"}}",
     "delimiter is no text"},
    {BERT("[\"a\",2]"), "cls is no token"},
    {BERT("[\"a\",-1]"), "cls is no token"},
    {BERT("[\"a\"]"), "cls is no token"},
    {TEMPLATE(A "," A), "each text is to stand in it once"},
    {TEMPLATE(A "," B), "each text is to stand in it once"},
    {TEMPLATE(IS("c")), "each text is to stand in it once"},
    {TEMPLATE(A "," IS("far")), "template: far is no token"},
    {TEMPLATE(A "," IS("none")), "template: no ids of none"},
    {TEMPLATE(A "," IS("other")), "template: no ids of other"},
    {TEMPLATE("{}"), "template: a part of no kind"},
    {TEMPLATE(EIGHT(IS("c") ",") EIGHT(IS("c") ",") A),
     "a template of more than 16 parts"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"ab\":1},\"merges\":[\"a a "
     "a\"]}}",
     "merge 1 is no two texts"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1},\"merges\":"
     "[\"a a\",[\"a\"]]}}",
     "merge 2 is no two texts"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", "merges is no list"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"?"
     "\"}}",
     "unk_token ? is no token"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "vocab is no list of pieces"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0],[\"b\"]]}}",
     "piece 1 is not a text and a score"},
    {"{\"added_tokens\":[{\"id\":1}]," MODEL "}",
     "an added token without content or id"},
    {"{\"added_tokens\":[{\"id\":1,\"content\":\"\"}]," MODEL "}",
     "an added token without content or id"},
    {"{\"added_tokens\":[{\"id\":1,\"content\":\"x\"}]," MODEL "}",
     "two tokens have the number 1"},
    {"{\"added_tokens\":[{\"id\":16777216,\"content\":\"x\"}]," MODEL "}",
     "an added token's id is 16777216"},
    {"{\"model\":[]}", "no model"},
};

static void
test_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char path[512];
        struct et_tokenizer *t = NULL;
        snprintf(path, sizeof path, "%s/tokenizer.json", dir);
        put("tokenizer.json", refused[i].json);
        et_status s = et_tokenizer_open(cx, path, &t);
        const char *why = et_error_get(cx)->message;
        bool good = s != ET_OK && !t && strstr(why, refused[i].says) &&
                    strstr(why, "tokenizer.json") && !strchr(why, '\n');
        if (!good)
            diag("%s", why);
        ok(good, "refused: %s", refused[i].says);
        et_error_clear(cx);
        et_tokenizer_free(&t);
    }
    drop("tokenizer.json");
}

/* Files before prepend_scheme have add_prefix_space alone. */
static void
test_old_metaspace(void)
{
    static const char text[] =
        "{" OF("\"a\":0,\"_\":1") ",\"pre_tokenizer\":{\"type\":"
                                  "\"Metaspace\",\"replacement\":\"_\",%s}}";
    static const struct {
        const char *option;
        int n;
    } rows[] = {{"\"add_prefix_space\":false", 1},
                {"\"add_prefix_space\":true", 2},
                {"\"prepend_scheme\":\"never\"", 1},
                {"\"add_prefix_space\":false,\"prepend_scheme\":\"always\"", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[512];
        struct et_encoding a = {0};
        struct et_encoder *e = NULL;
        snprintf(json, sizeof json, text, rows[i].option);
        struct et_tokenizer *t = open_json(json);
        ok(t && et_encoder_new(cx, t, &e) == ET_OK &&
               et_encode(e, "a", 1, 0, &a) == ET_OK && a.n == rows[i].n,
           "%s makes %d of a letter", rows[i].option, rows[i].n);
        et_encoder_free(&e);
        et_tokenizer_free(&t);
    }
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(dir))
        bail("no context or folder");
    test_special();
    test_roles();
    test_limits();
    test_not_normalized();
    test_utf8();
    test_classes();
    test_not_utf8();
    test_long_pattern();
    test_beside();
    test_exact();
    test_many_merges();
    test_many_texts();
    test_base64();
    test_refused();
    test_old_metaspace();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    rmdir(dir);
    et_ctx_free(&cx);
    return done();
}
