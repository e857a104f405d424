/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers: the ids of Hugging Face's tokenizers and of SentencePiece, and their
 * texts; what is refused; several threads. t/golden/make_tokenizers.py made the
 * files. */
#include "config.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text/write_pieces.h"
#include "etude/tokenizer.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char folder[512];

/* ---- one tokenizer and its encoder ---- */

struct both {
    struct et_tokenizer *t;
    struct et_encoder *e;
};

static bool
open_both(const char *path, struct both *b)
{
    *b = (struct both){0};
    if (et_tokenizer_open(cx, path, &b->t) != ET_OK ||
        et_encoder_new(cx, b->t, &b->e) != ET_OK) {
        diag("%s", et_error_get(cx)->message);
        return false;
    }
    return true;
}

static void
close_both(struct both *b)
{
    et_encoder_free(&b->e);
    et_tokenizer_free(&b->t);
}

static bool
opens(const char *name, struct both *b)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open_both(path, b);
}

/* ---- the peers' answers ---- */

static bool
same_ids(const char *what, const json_t *want, const int32_t *id, int64_t n)
{
    bool same = (int64_t)json_array_size(want) == n;
    for (int64_t i = 0; same && i < n; i++)
        same = json_integer_value(json_array_get(want, (size_t)i)) == id[i];
    if (!same) {
        char *text = json_dumps(want, JSON_COMPACT);
        diag("%s: wanted %.300s", what, text);
        for (int64_t i = 0; i < n && i < 40; i++)
            diag("  got %d", (int)id[i]);
        free(text);
    }
    return same;
}

static size_t
from_hex(const char *hex, char *out)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1]};
        out[i] = (char)strtol(two, NULL, 16);
    }
    return n;
}

static bool
same_text(const json_t *want, const struct et_text *got)
{
    bool same = json_string_length(want) == got->n &&
                memcmp(json_string_value(want), got->text, got->n) == 0;
    if (!same)
        diag("decoded '%.200s', wanted '%.200s'", got->text, json_string_value(want));
    return same;
}

/* Can what TEXT decodes to be compared? Bytes that are no UTF-8 are kept here. */
static bool
is_compared(const json_t *want)
{
    return !strstr(json_string_value(want), "\xef\xbf\xbd");
}

static bool
agrees(struct both *b, const json_t *row)
{
    static const char second[] = "second text";
    char text[4096];
    struct et_encoding a;
    struct et_text t;
    const json_t *decoded = json_array_get(row, 3);
    size_t n = from_hex(json_string_value(json_array_get(row, 1)), text);
    bool same = et_encode(b->e, text, n, 0, &a) == ET_OK &&
                same_ids(text, json_array_get(row, 2), a.id, a.n);
    int32_t ids[4096];
    int64_t n_ids = a.n;
    if (a.n > 0)
        memcpy(ids, a.id, (size_t)a.n * sizeof *ids);
    same &= et_decode(b->e, ids, n_ids, 0, &t) == ET_OK &&
            (!is_compared(decoded) || same_text(decoded, &t));
    if (json_array_size(row) < 6)
        return same;
    same &= et_encode_pair(b->e, text, n, second, sizeof second - 1, 0,
                           ET_ENCODE_SPECIAL, &a) == ET_OK &&
            same_ids("a pair", json_array_get(row, 4), a.id, a.n);
    for (int64_t i = 0; same && i < a.n; i++)
        same = json_integer_value(json_array_get(json_array_get(row, 5), (size_t)i)) ==
               a.type[i];
    return same;
}

static void
test_golden(void)
{
    char path[1024], now[64] = "";
    char *line = NULL;
    size_t room = 0;
    struct both b = {0};
    int texts = 0, wrong = 0;
    snprintf(path, sizeof path, "%s/expected.jsonl", folder);
    FILE *f = fopen(path, "r");
    if (!f)
        bail("no %s", path);
    while (getline(&line, &room, f) > 0) {
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
        const char *name = json_string_value(json_array_get(row, 0));
        if (strcmp(name, now) != 0) {
            if (now[0])
                ok(texts > 20 && wrong == 0, "%s gives the ids and texts of its peer",
                   now);
            close_both(&b);
            texts = wrong = 0;
            snprintf(now, sizeof now, "%s", name);
            if (!opens(name, &b))
                bail("cannot open %s", name);
        }
        texts++;
        wrong += !agrees(&b, row);
        json_decref(row);
    }
    ok(texts > 20 && wrong == 0, "%s gives the ids and texts of its peer", now);
    close_both(&b);
    free(line);
    fclose(f);
}

/* ---- a SentencePiece model as tokenizer.json ---- */

/* Opens the tokenizer.json that is written of NAME. */
static bool
opens_written(const char *name, struct both *b)
{
    char dir[] = "/tmp/etude-tokenizer-XXXXXX", path[512];
    json_t *json = NULL;
    if (!mkdtemp(dir) || !opens(name, b))
        bail("no folder, or no %s", name);
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    bool good = eti_pieces_json(cx, b->t, &json) == ET_OK &&
                json_dump_file(json, path, JSON_COMPACT) == 0;
    json_decref(json);
    close_both(b);
    good = good && open_both(path, b);
    unlink(path);
    rmdir(dir);
    return good;
}

/* A control piece whose letters are no pieces cannot be kept from a text there. */
static bool
spells_control(const struct both *b, const char *text, size_t n)
{
    return et_tokenizer_id(b->t, "<", 1) < 0 &&
           (memmem(text, n, "s>", 2) || memmem(text, n, "<unk>", 5));
}

static bool
same_as(const struct both *a, const struct both *b, const char *text, size_t n)
{
    struct et_encoding x, y;
    bool same = et_encode(a->e, text, n, ET_ENCODE_PLAIN, &x) == ET_OK &&
                et_encode(b->e, text, n, ET_ENCODE_PLAIN, &y) == ET_OK && x.n == y.n &&
                (x.n == 0 || memcmp(x.id, y.id, (size_t)x.n * sizeof *x.id) == 0);
    same |= spells_control(a, text, n);
    if (!same)
        diag("'%s'", text);
    return same;
}

static void
test_written(const char *name)
{
    static const char *const texts[] = {"Lord God and the <sep>Lord",
                                        "<s> </s> <unk>",
                                        " \xe2\x96\x81  x \xe2\x96\x81 ",
                                        "\xef\xac\x81\xcc\x81",
                                        "A\xcc\x8a\xcc\x81",
                                        "\t\xcc\x81x",
                                        "e\xcc\x81\xcc\xa3",
                                        "/* ---- room ---- */"};
    char path[1024];
    char *line = NULL;
    size_t room = 0;
    struct both model, json;
    int n = 0, wrong = 0;
    snprintf(path, sizeof path, "%s/expected.jsonl", folder);
    FILE *f = fopen(path, "r");
    if (!f || !opens(name, &model) || !opens_written(name, &json))
        bail("no %s, or no tokenizer.json of %s: %s", path, name,
             et_error_get(cx)->message);
    for (; getline(&line, &room, f) > 0; n++) {
        char text[4096];
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
        wrong += !same_as(&model, &json, text,
                          from_hex(json_string_value(json_array_get(row, 1)), text));
        json_decref(row);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        wrong += !same_as(&model, &json, texts[i], strlen(texts[i]));
    ok(n > 200 && wrong == 0, "the tokenizer.json of %s gives its ids", name);
    free(line);
    fclose(f);
    close_both(&model);
    close_both(&json);
}

/* ---- bytes ---- */

static bool
comes_back(struct both *b, const char *text, size_t n)
{
    struct et_encoding a;
    struct et_text t;
    int32_t *ids;
    if (et_encode(b->e, text, n, 0, &a) != ET_OK)
        return false;
    int64_t n_ids = a.n;
    ids = malloc((size_t)(n_ids + 1) * sizeof *ids);
    if (n_ids > 0)
        memcpy(ids, a.id, (size_t)n_ids * sizeof *ids);
    bool same = et_decode(b->e, ids, n_ids, 0, &t) == ET_OK && t.n == n &&
                memcmp(t.text, text, n) == 0;
    free(ids);
    return same;
}

static void
test_exact(const char *name)
{
    struct et_tokenizer_info info;
    struct both b;
    uint32_t state = 1;
    char text[512];
    int lost = 0;
    if (!(strcmp(name, "bytes") == 0 ? open_both(name, &b) : opens(name, &b)))
        bail("cannot open %s", name);
    et_tokenizer_get_info(b.t, &info);
    for (int i = 0; i < 2000; i++) {
        size_t n = (size_t)i % sizeof text;
        for (size_t k = 0; k < n; k++) {
            state = state * 1664525 + 1013904223;
            text[k] = (char)(i % 3 ? "ab \n\xc3\xa9\xe2\x82\xff 1"[state >> 24 & 7]
                                   : (char)(state >> 24));
        }
        lost += !comes_back(&b, text, n);
    }
    ok(info.is_exact && lost == 0, "%s gives any bytes back", name);
    close_both(&b);
}

/* What is no UTF-8 is what Python's decoder with errors="replace" makes of it. */
static void
test_invalid(void)
{
    static const char *const texts[][2] = {
        {"a\xffz", "a\xef\xbf\xbdz"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82 x", "\xef\xbf\xbd x"},
        {"\xf0\x9f\x98", "\xef\xbf\xbd"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    struct both b;
    bool same = opens("unigram.json", &b);
    for (size_t i = 0; same && i < sizeof texts / sizeof *texts; i++) {
        struct et_encoding a;
        int32_t ids[64];
        same = et_encode(b.e, texts[i][0], strlen(texts[i][0]), 0, &a) == ET_OK &&
               a.n < 64;
        int64_t n = a.n;
        memcpy(ids, a.id, (size_t)n * sizeof *ids);
        same = same &&
               et_encode(b.e, texts[i][1], strlen(texts[i][1]), 0, &a) == ET_OK &&
               a.n == n && memcmp(ids, a.id, (size_t)n * sizeof *ids) == 0;
        if (!same)
            diag("text %zu", i);
    }
    ok(same, "where tokens are no bytes, what is no UTF-8 becomes U+FFFD");
    close_both(&b);
}

/* A text whose sums of scores become larger than floats can add well: SentencePiece
 * takes this line apart in the same way wherever it stands. */
static void
test_long(void)
{
    enum { TIMES = 12000, LINE = 21 };
    static const char line[] =
        "And Cain went out from the presence of the LORD, and dwelt i ";
    static char text[TIMES * (sizeof line - 1)];
    struct et_encoding a;
    struct both b;
    int64_t at = LINE;
    if (!opens("pieces-unigram.model", &b))
        bail("no pieces-unigram.model");
    for (size_t i = 0; i < TIMES; i++)
        memcpy(text + i * (sizeof line - 1), line, sizeof line - 1);
    bool long_enough = et_encode(b.e, text, sizeof text, 0, &a) == ET_OK &&
                       a.n == (int64_t)TIMES * LINE;
    while (long_enough && at < a.n && a.id[at] == a.id[at - LINE])
        at++;
    ok(long_enough && at == a.n,
       "the tokens of a line do not depend on what precedes it");
    if (long_enough && at < a.n)
        diag("token %d is another", (int)at);
    close_both(&b);
}

/* ---- options of a call ---- */

static void
test_plain(void)
{
    static const char text[] = "a<|endoftext|>b";
    struct et_encoding a;
    struct both b;
    if (!opens("gpt2.json", &b))
        bail("no gpt2.json");
    bool has =
        et_encode(b.e, text, strlen(text), 0, &a) == ET_OK && a.n == 3 && a.id[1] == 0;
    bool none = et_encode(b.e, text, strlen(text), ET_ENCODE_PLAIN, &a) == ET_OK;
    for (int64_t i = 0; i < a.n; i++)
        none &= a.id[i] != 0;
    ok(has && none, "special tokens in a text are text where it is plain");
    struct et_text t;
    int32_t ids[] = {0, (int32_t)et_tokenizer_id(b.t, "a", 1), 0};
    ok(et_decode(b.e, ids, 3, ET_DECODE_SKIP_SPECIAL, &t) == ET_OK && t.n == 1 &&
           t.text[0] == 'a',
       "decoding leaves them out where it is asked to");
    ids[1] = 1 << 20;
    ok(et_decode(b.e, ids, 3, 0, &t) == ET_EINVAL &&
           strstr(et_error_get(cx)->message, "1048576"),
       "an id of no token is refused with its number");
    et_error_clear(cx);
    close_both(&b);
}

/* The lengths that Hugging Face's longest_first leaves of two texts. */
static void
test_limit(void)
{
    static const struct {
        size_t a, b;
        int64_t limit, left_a, left_b;
    } rows[] = {{5, 9, 20, 5, 9}, {5, 9, 15, 5, 7}, {9, 5, 14, 6, 5},
                {5, 9, 11, 4, 4}, {7, 7, 12, 4, 5}, {9, 5, 12, 5, 4}};
    static const char text[] = "a a a a a a a a a a";
    struct both b;
    bool good = opens("bert.json", &b);
    for (size_t i = 0; good && i < sizeof rows / sizeof *rows; i++) {
        struct et_encoding a;
        good = et_encode_pair(b.e, text, 2 * rows[i].a, text, 2 * rows[i].b,
                              rows[i].limit, ET_ENCODE_SPECIAL, &a) == ET_OK;
        int64_t second = 0;
        for (int64_t k = 0; k < a.n; k++)
            second += a.type[k];
        good =
            good && second == rows[i].left_b + 1 && a.n - second == rows[i].left_a + 2;
        if (!good)
            diag("row %zu: %lld and %lld", i, (long long)(a.n - second - 2),
                 (long long)second - 1);
    }
    ok(good, "two texts are shortened as Hugging Face does it");
    close_both(&b);
}

/* ---- places to cut ---- */

static void
test_cut(const char *name)
{
    static const char text[] =
        "one two\n three  four, five six [UNK] seven   \n eight nine";
    struct et_encoding a;
    struct both b;
    int32_t whole[256];
    size_t n = strlen(text);
    if (!opens(name, &b))
        bail("cannot open %s", name);
    bool same = et_encode(b.e, text, n, 0, &a) == ET_OK;
    int64_t n_whole = a.n, cuts = 0;
    memcpy(whole, a.id, (size_t)n_whole * sizeof *whole);
    for (size_t from = 0; same && from < n; from++) {
        size_t at = et_tokenizer_cut(b.t, text, n, from);
        cuts += at < n;
        same = at >= from && et_encode(b.e, text, at, 0, &a) == ET_OK;
        int64_t first = a.n;
        same =
            same && memcmp(a.id, whole, (size_t)first * sizeof *whole) == 0 &&
            et_encode(b.e, text + at, n - at, 0, &a) == ET_OK &&
            first + a.n == n_whole &&
            (a.n == 0 || memcmp(a.id, whole + first, (size_t)a.n * sizeof *whole) == 0);
    }
    ok(same && cuts > 10, "%s says where a text may be cut in two", name);
    close_both(&b);
}

/* ---- what the golden files do not ask for ---- */

#define BPE_OF(more)                                                                   \
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\" "   \
    "\":2,"                                                                            \
    "\"<m>\":3},\"merges\":[]" more "}"
#define MARK(more)                                                                     \
    "\"added_tokens\":[{\"id\":3,\"content\":\"<m>\",\"special\":true" more "}],"
static const struct {
    const char *says, *json, *text;
    int n;
    int32_t id[4];
} small[] = {
    {"unknown characters are one token each",
     "{" BPE_OF("") "}",
     "bbab",
     4,
     {0, 0, 1, 0}},
    {"or one for all that follow each other",
     "{" BPE_OF(",\"fuse_unk\":true") "}",
     "bbab",
     3,
     {0, 1, 0}},
    {"a mark leaves the space before it",
     "{" MARK("") BPE_OF("") "}",
     "a <m>",
     3,
     {1, 2, 3}},
    {"or takes it in", "{" MARK(",\"lstrip\":true") BPE_OF("") "}", "a <m>", 2, {1, 3}},
    {"as it does the space behind",
     "{" MARK(",\"rstrip\":true") BPE_OF("") "}",
     "<m> a",
     2,
     {3, 1}},
    {"a mark that is a word is none inside of one",
     "{" MARK(",\"single_word\":true") BPE_OF("") "}",
     "<m>a",
     4,
     {0, 0, 0, 1}},
    {"of pieces that sum to the same the first that was found wins",
     "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],"
     "[\"b\",-1],[\"ab\",-2]]}}",
     "ab",
     1,
     {3}},
};

static bool
open_text(const char *path, const char *json, struct both *b)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(json, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
    bool opened = open_both(path, b);
    unlink(path);
    return opened;
}

static void
test_small(void)
{
    char dir[] = "/tmp/etude-tokenizer-XXXXXX", path[512];
    struct et_encoding a;
    struct both b;
    if (!mkdtemp(dir))
        bail("no folder");
    snprintf(path, sizeof path, "%s/a.json", dir);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        bool good =
            open_text(path, small[i].json, &b) &&
            et_encode(b.e, small[i].text, strlen(small[i].text), 0, &a) == ET_OK;
        good = good && a.n == small[i].n;
        for (int k = 0; good && k < small[i].n; k++)
            good = a.id[k] == small[i].id[k];
        ok(good, "%s", small[i].says);
        close_both(&b);
    }
    rmdir(dir);
    if (!opens("bert.json", &b))
        bail("no bert.json");
    /* U+1B7E is punctuation since Unicode 14. */
    ok(et_encode(b.e,
                 "a\xe1\xad\xbe"
                 "b",
                 5, 0, &a) == ET_OK &&
           a.n == 1,
       "signs that are younger than Unicode 8 do not part words");
    close_both(&b);
}

/* ---- files that are refused ---- */

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}"
static const struct {
    const char *name, *text, *says;
} refused[] = {
    {"a.json", "", "a.json:1:0: "},
    {"a.json", "{\"model\":\n{\"type\"}}", "a.json:2:8: "},
    {"a.json", "{\"model\": {\"type\": \"Other\"}}", "model Other is not known here"},
    {"a.json", "{" MODEL ",\"normalizer\":{\"type\":\"Nmt\"}}",
     "normalizer Nmt is not"},
    {"a.json",
     "{" MODEL ",\"normalizer\":{\"type\":\"Precompiled\","
     "\"precompiled_charsmap\":\"AAA!\"}}",
     "letter 3 is not of base64"},
    {"a.json",
     "{" MODEL ",\"normalizer\":{\"type\":\"Precompiled\","
     "\"precompiled_charsmap\":\"BAAAAA==\"}}",
     "a table of characters whose size is wrong"},
    {"a.json", "{" MODEL ",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}",
     "pre-tokenizer UnicodeScripts is not"},
    {"a.json", "{" MODEL ",\"decoder\":{\"type\":\"CTC\"}}", "decoder CTC is not"},
    {"a.json", "{" MODEL ",\"post_processor\":{\"type\":\"Own\"}}",
     "post-processor Own is not"},
    {"a.json",
     "{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\","
     "\"pattern\":{\"Regex\":\"(a\"}}}",
     "pattern (a: missing closing parenthesis"},
    {"a.json",
     "{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":"
     "\"MergedWithNext\",\"pattern\":{\"Regex\":\"a\"}}}",
     "behavior MergedWithNext is not"},
    {"a.json",
     "{\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{},\"merges\":[]}}",
     "dropout is not known here"},
    {"a.json",
     "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}",
     "merge 1: 'b' is no token"},
    {"a.json",
     "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}",
     "two tokens have the number 0"},
    {"a.json",
     "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999},\"merges\":[]}}",
     "token 99999999 is not in 0 .. 16777215"},
    {"a.json", "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}",
     "unk_token [UNK] is no token"},
    {"vocab.json", "{\"a\":0}", "no merges.txt beside it"},
    {"a.txt", "a\nb\n", "no token for what is unknown"},
    {"a.model", "\x0a\xff\xff", "no SentencePiece model, or cut short"},
    {"a.model", "", "no pieces"},
    {"a.bin", "x", "a tokenizer is a .json, .txt or .model, or \"bytes\""},
};

static void
test_refused(void)
{
    char dir[] = "/tmp/etude-tokenizer-XXXXXX", path[512];
    if (!mkdtemp(dir))
        bail("no folder");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct et_tokenizer *t;
        snprintf(path, sizeof path, "%s/%s", dir, refused[i].name);
        FILE *f = fopen(path, "w");
        if (!f || fputs(refused[i].text, f) < 0 || fclose(f) != 0)
            bail("cannot write %s", path);
        et_status s = et_tokenizer_open(cx, path, &t);
        const char *why = et_error_get(cx)->message;
        bool good = s != ET_OK && !t && strstr(why, refused[i].says) &&
                    strstr(why, refused[i].name) && !strchr(why, '\n');
        if (!good)
            diag("%s", why);
        ok(good, "refused: %s", refused[i].says);
        et_error_clear(cx);
        et_tokenizer_free(&t);
        unlink(path);
    }
    struct et_tokenizer *t;
    ok(et_tokenizer_open(cx, dir, &t) == ET_ENOENT &&
           strstr(et_error_get(cx)->message, dir),
       "a folder without a tokenizer's file is refused");
    et_error_clear(cx);
    rmdir(dir);
}

/* ---- files before tokenizer.json ---- */

static void
write_vocab(const struct et_tokenizer *t, const char *path)
{
    struct et_tokenizer_info info;
    size_t n;
    et_tokenizer_get_info(t, &info);
    FILE *f = fopen(path, "w");
    for (int32_t id = 0; f && id < info.vocab_size; id++) {
        const char *text = et_tokenizer_token(t, id, &n);
        fprintf(f, "%.*s\r\n", (int)n, text ? text : "");
    }
    if (!f || fclose(f) != 0)
        bail("cannot write %s", path);
}

/* A vocab.txt is read as the tokenizer.json that it was taken from. */
static void
test_vocab_txt(void)
{
    static const char text[] = "In the beginning G\xc3\xb6"
                               "d \xe4\xb8\xad created [MASK].";
    char dir[] = "/tmp/etude-tokenizer-XXXXXX", path[512], config[512];
    struct et_encoding a, c;
    struct both json, txt;
    if (!mkdtemp(dir) || !opens("bert.json", &json))
        bail("no folder or tokenizer");
    snprintf(path, sizeof path, "%s/vocab.txt", dir);
    snprintf(config, sizeof config, "%s/tokenizer_config.json", dir);
    write_vocab(json.t, path);
    bool same = open_both(dir, &txt) &&
                et_encode(json.e, text, strlen(text), ET_ENCODE_SPECIAL, &a) == ET_OK &&
                et_encode(txt.e, text, strlen(text), ET_ENCODE_SPECIAL, &c) == ET_OK &&
                a.n == c.n && memcmp(a.id, c.id, (size_t)a.n * sizeof *a.id) == 0;
    struct et_tokenizer_info info;
    et_tokenizer_get_info(txt.t, &info);
    ok(same && info.role[ET_TOKEN_MASK] == et_tokenizer_id(txt.t, "[MASK]", 6) &&
           et_tokenizer_is_special(txt.t, info.role[ET_TOKEN_CLS]),
       "vocab.txt makes the same tokenizer, with its marks");
    close_both(&txt);
    FILE *f = fopen(config, "w");
    if (!f || fputs("{\"do_lower_case\": false}", f) < 0 || fclose(f) != 0)
        bail("cannot write %s", config);
    same = open_both(dir, &txt) && et_encode(txt.e, "THE", 3, 0, &c) == ET_OK &&
           et_encode(json.e, "THE", 3, 0, &a) == ET_OK && a.n == 1 && c.n == 1 &&
           c.id[0] != a.id[0];
    ok(same, "tokenizer_config.json says that it is not uncased");
    close_both(&txt);
    f = fopen(config, "w");
    if (!f ||
        fputs("{\"strip_accents\": false, \"tokenize_chinese_chars\": false}", f) < 0 ||
        fclose(f) != 0 || !open_both(dir, &txt))
        bail("cannot write %s", config);
    /* Of these the vocabulary has only "e". */
    same = et_encode(txt.e, "E \xc3\xa9", 4, 0, &c) == ET_OK && c.n == 2 &&
           c.id[0] == et_tokenizer_id(txt.t, "e", 1) && c.id[1] != c.id[0];
    ok(same, "that accents stay");
    same = et_encode(txt.e, "e\xe4\xb8\xad", 4, 0, &c) == ET_OK && c.n == 1;
    ok(same, "and that Chinese signs are no words of their own");
    close_both(&txt);
    close_both(&json);
    unlink(config);
    unlink(path);
    rmdir(dir);
}

/* ---- threads, memory ---- */

struct thread {
    const struct et_tokenizer *t;
    uint64_t sum;
    bool good;
};

static void *
encode_much(void *data)
{
    static const char text[] =
        "In the beginning God created the heaven and the earth. ";
    struct thread *w = data;
    struct et_ctx *own;
    struct et_encoder *e;
    w->good = et_ctx_new(&own) == ET_OK && et_encoder_new(own, w->t, &e) == ET_OK;
    for (int i = 0; w->good && i < 2000; i++) {
        struct et_encoding a;
        char more[128];
        int n = snprintf(more, sizeof more, "%s%d", text, i);
        w->good = et_encode(e, more, (size_t)n, 0, &a) == ET_OK;
        for (int64_t k = 0; k < a.n; k++)
            w->sum = w->sum * 31 + (uint64_t)a.id[k];
    }
    et_encoder_free(&e);
    et_ctx_free(&own);
    return NULL;
}

static void
test_threads(void)
{
    struct thread w[3] = {0};
    pthread_t thread[3];
    struct both b;
    if (!opens("gpt2.json", &b))
        bail("no gpt2.json");
    for (int i = 0; i < 3; i++) {
        w[i].t = b.t;
        pthread_create(&thread[i], NULL, encode_much, &w[i]);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    ok(w[0].good && w[1].good && w[2].good && w[0].sum == w[1].sum &&
           w[1].sum == w[2].sum,
       "threads share a tokenizer, and get the same ids");
    close_both(&b);
}

static void
test_steady(const char *name)
{
    static const char text[] =
        "In \xc3\x89t\xc3\xa9! the beginning God created 12 heavens ";
    struct et_alloc_stats before, after;
    struct et_encoding a;
    struct both b;
    if (!opens(name, &b))
        bail("cannot open %s", name);
    bool good = et_encode(b.e, text, strlen(text), 0, &a) == ET_OK;
    et_alloc_get_stats(cx, &before);
    for (int i = 0; i < 100; i++)
        good &= et_encode(b.e, text, strlen(text) - (size_t)i % 8, 0, &a) == ET_OK;
    et_alloc_get_stats(cx, &after);
    ok(good && before.allocs == after.allocs, "%s allocates nothing once it is warm",
       name);
    close_both(&b);
}

int
main(void)
{
    struct et_alloc_stats stats;
    snprintf(folder, sizeof folder, "%s/t/golden/tokenizers",
             getenv("ET_SRCDIR") ? getenv("ET_SRCDIR") : ".");
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_golden();
    test_written("pieces-bpe.model");
    test_written("pieces-unigram.model");
    test_exact("bytes");
    test_exact("gpt2.json");
    test_invalid();
    test_long();
    test_plain();
    test_limit();
    test_cut("gpt2.json");
    test_cut("bert.json");
    test_small();
    test_refused();
    test_vocab_txt();
    test_threads();
    static const char *const steady[] = {
        "gpt2.json", "bert.json",  "unigram.json",     "llama.json",
        "clip.json", "words.json", "pieces-bpe.model", "pieces-unigram.model"};
    for (size_t i = 0; i < sizeof steady / sizeof *steady; i++)
        test_steady(steady[i]);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
