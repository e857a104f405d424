/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer says of itself, as its files say it: which tokens are special, what
 * their roles are, whether bytes come back; large vocabularies; and what is refused. */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

enum { VOCAB_MOST = 8192 };

/* All 256 bytes as their characters, but LACKS. */
static void
put_bytes(char *out, int lacks, const char *end)
{
    int at = 0;
    for (int b = 0, id = 0; b < 256; b++) {
        char shown[5] = "";
        shown[eti_byte_char((uint8_t)b, shown)] = 0;
        if (b == lacks)
            continue;
        at += snprintf(out + at, VOCAB_MOST - (size_t)at, "%s\"%s%s%s\":%d",
                       id ? "," : "", *shown == '"' || *shown == '\\' ? "\\" : "",
                       shown, end, id);
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

/* Bytes that are no UTF-8 cannot be normalized. */
static void
test_not_utf8(void)
{
    static char vocab[VOCAB_MOST], text[16384];
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

/* A piece over a blank: GPT-2's pattern, which divides there, is used unless a file
 * says otherwise. */
static void
test_pattern(void)
{
    static const struct {
        const char *says;
        int n;
    } rows[] = {{"", 3}, {",\"use_regex\":true", 3}, {",\"use_regex\":false", 2}};
    static char vocab[VOCAB_MOST], text[16384];
    put_bytes(vocab, -1, "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_encoding a;
        struct et_encoder *e;
        snprintf(
            text, sizeof text,
            "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
            "false%s},\"model\":{\"type\":\"BPE\",\"vocab\":{%s,\"a\xc4\xa0\":256},"
            "\"merges\":[\"a \xc4\xa0\"]}}",
            rows[i].says, vocab);
        struct et_tokenizer *t = open_json(text);
        if (!t || et_encoder_new(cx, t, &e) != ET_OK)
            bail("no encoder");
        ok(et_encode(e, "a a", 3, 0, &a) == ET_OK && a.n == rows[i].n,
           "a file of bytes that says '%s' of the pattern: %d tokens", rows[i].says,
           rows[i].n);
        et_encoder_free(&e);
        et_tokenizer_free(&t);
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
    put("merges.txt", "#version: 0.2\na c\na b\n");
    ok(et_tokenizer_open(cx, "merges.txt", &t) == ET_EFORMAT && !t,
       "a merge of what is no token is refused, and not where the merges end");
    const char *told = et_error_get(cx)->message;
    ok(strstr(told, "merges.txt:2") != NULL, "with its line: %s", told);
    et_error_clear(cx);
    if (chdir(was) != 0)
        bail("no way back");
    drop("vocab.json");
    drop("merges.txt");
    drop("generation_config.json");
}

/* ---- patterns ---- */

/* One that matches nothing parts characters, of however many bytes. */
static void
test_empty_matches(void)
{
    static const char text[] = "\xc3\xa9\xe2\x82\xac"
                               "a\xf0\x9f\x98\x80";
    struct et_tokenizer *t =
        open_json("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":"
                  "\"x*\"},\"behavior\":\"Isolated\"}," OF(
                      "\"\xc3\xa9\":0,\"\xe2\x82\xac\":1,\"a\":2,"
                      "\"\xf0\x9f\x98\x80\":3") "}");
    struct et_encoder *e;
    struct et_encoding a;
    if (!t || et_encoder_new(cx, t, &e) != ET_OK)
        bail("no encoder");
    bool same = et_encode(e, text, sizeof text - 1, 0, &a) == ET_OK && a.n == 4;
    for (int i = 0; same && i < 4; i++)
        same = a.id[i] == i;
    ok(same, "a pattern that matches nothing leaves characters whole");
    et_encoder_free(&e);
    et_tokenizer_free(&t);
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
    static char vocab[VOCAB_MOST], text[16384];
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

/* ---- SentencePiece's pieces ---- */

/* Puts a piece of a SentencePiece model at TO: its text, score and type. */
static size_t
put_piece(char *to, const char *text, float score, int type)
{
    const size_t n = strlen(text);
    char *at = to;
    *at++ = 0x0a;
    *at++ = (char)(n + 9);
    *at++ = 0x0a;
    *at++ = (char)n;
    memcpy(at, text, n);
    at += n;
    *at++ = 0x15;
    memcpy(at, &score, sizeof score);
    at += sizeof score;
    *at++ = 0x18;
    *at++ = (char)type;
    return (size_t)(at - to);
}

/* The tokenizer of <unk>, "a", and a piece of TEXT and TYPE. */
static struct et_tokenizer *
open_piece(const char *text, int type)
{
    char model[256], path[512];
    size_t n = put_piece(model, "<unk>", 0, 2);
    struct et_tokenizer *t = NULL;
    n += put_piece(model + n, "a", -1, 1);
    n += put_piece(model + n, text, -2, type);
    snprintf(path, sizeof path, "%s/a.model", dir);
    FILE *f = fopen(path, "w");
    if (!f || fwrite(model, 1, n, f) != n || fclose(f) != 0)
        bail("cannot write %s", path);
    (void)!et_tokenizer_open(cx, path, &t);
    unlink(path);
    return t;
}

static void
test_pieces(void)
{
    static const struct {
        const char *text;
        int type;
        const char *says;
    } rows[] = {{"b", 5, "pieces that are not used are not known here"},
                {"a", 1, "piece 2 is there twice"},
                {"a", 4, "piece 2 is there twice"},
                {"<unk>", 1, "piece 2 is there twice"},
                {"b", 0, "piece 2 cannot be read"},
                {"b", 7, "piece 2 cannot be read"},
                {"", 1, "piece 2 cannot be read"},
                {"\xff", 1, "piece 2 cannot be read"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_tokenizer *t = open_piece(rows[i].text, rows[i].type);
        ok(!t && strstr(et_error_get(cx)->message, rows[i].says),
           "refused: %s, type %d", rows[i].says, rows[i].type);
        et_error_clear(cx);
        et_tokenizer_free(&t);
    }
    for (int type = 1; type < 5; type += type == 1 ? 2 : 1) {
        struct et_tokenizer *t = open_piece("<x>", type);
        struct et_encoder *e = NULL;
        struct et_text text = {.text = ""};
        const bool control = type == 3;
        if (!t)
            bail("no piece of type %d", type);
        ok(et_encoder_new(cx, t, &e) == ET_OK &&
               et_tokenizer_is_special(t, 2) == control &&
               et_decode(e, (int32_t[]){2}, 1, ET_DECODE_SKIP_SPECIAL, &text) ==
                   ET_OK &&
               strcmp(text.text, control ? "" : "<x>") == 0,
           "a piece of type %d is %s", type,
           control ? "special and no text" : "text, and stays");
        et_encoder_free(&e);
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
    test_not_utf8();
    test_pattern();
    test_beside();
    test_empty_matches();
    test_exact();
    test_pieces();
    test_many_merges();
    test_refused();
    test_old_metaspace();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    rmdir(dir);
    et_ctx_free(&cx);
    return done();
}
