/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tokenizers before tokenizer.json: merges line by line, words of BERT and
 * their marks, and which of several files says what a token is for. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etude/tokenizer.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char dir[] = "/tmp/etude-older-XXXXXX";

static const char *
place(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void
put(const char *name, const char *text)
{
    FILE *f = fopen(place(name), "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", name);
}

static void
drop_all(void)
{
    static const char *const names[] = {"vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "special_tokens_map.json",
                                        "tokenizer_config.json",
                                        "generation_config.json",
                                        "config.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(place(names[i]));
}

static struct et_tokenizer *
open_it(const char *name)
{
    struct et_tokenizer *t = NULL;
    if (et_tokenizer_open(cx, place(name), &t) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return t;
}

/* The ids of TEXT, and behind "/" the types of a pair of it and "y". */
static const char *
ids_of(const struct et_tokenizer *t, const char *text, unsigned flags, bool is_pair)
{
    static char got[1024];
    struct et_encoder *e;
    struct et_encoding a;
    size_t n = 0;
    got[0] = 0;
    if (et_encoder_new(cx, t, &e) != ET_OK ||
        et_encode_pair(e, text, strlen(text), is_pair ? "y" : NULL, is_pair, 0, flags,
                       &a) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (int64_t i = 0; i < a.n && n < sizeof got - 16; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", i ? " " : "",
                              (int)a.id[i]);
    for (int64_t i = 0; is_pair && i < a.n && n < sizeof got - 16; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", i ? " " : " / ",
                              (int)a.type[i]);
    et_encoder_free(&e);
    return got;
}

/* ---- merges ---- */

#define VOCAB                                                                          \
    "{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4,\"bc\":5,\"<|endoftext|>\":6,\"x\":"  \
    "7}"

static void
test_merges(void)
{
    static const struct {
        const char *says, *vocab, *merges,
            *want; /* ids of "abcab", or how the error begins */
    } rows[] = {
        {"merges go from the first", VOCAB, "#version: 0.2\na b\nb c\nab c\n", "4 3"},
        {"a line before them says a version, or does not", VOCAB, "#version\nb c\na b",
         "0 5 3"},
        {"lines may end with a return, and be empty", VOCAB, "\r\nb c\r\n\r\na b\r\n",
         "0 5 3"},
        {"a version that is not first is a merge", VOCAB, "a b\n#version: x",
         "merges.txt:2: merge 2: '#version:' is no token"},
        {"one of three texts is none", VOCAB, "a b\na b c\n",
         "merges.txt:2: a merge is two texts"},
        {"nor is one of one", VOCAB, "\nab\n", "merges.txt:2: a merge is two texts"},
        {"the left text is to be a token", VOCAB, "a b\nz c\n",
         "merges.txt:2: merge 2: 'z' is no token"},
        {"the right one too", VOCAB, "a b\n\nc zz\n",
         "merges.txt:3: merge 2: 'zz' is no token"},
        {"and both together", VOCAB, "c a", "merges.txt:1: merge 1: 'ca' is no token"},
        {"a text is once in the vocabulary", "{\"a\":0,\n\"a\":1}", "",
         "vocab.json:2:"},
        {"which has numbers", "{\"a\":\"0\"}", "",
         "vocab.json: vocab: a has no number"},
        {"and is an object", "[]", "", "vocab.json: no JSON object"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_tokenizer *t = NULL;
        put("vocab.json", rows[i].vocab);
        put("merges.txt", rows[i].merges);
        et_status s = et_tokenizer_open(cx, place("vocab.json"), &t);
        const char *why = et_error_get(cx)->message, *slash = strrchr(why, '/');
        const size_t n = strlen(rows[i].want);
        why = slash ? slash + 1 : why;
        why = strncmp(why, rows[i].want, n) == 0 ? rows[i].want : why;
        is_str(s == ET_OK ? ids_of(t, "abcab", 0, false) : why, rows[i].want, "%s",
               rows[i].says);
        if (s == ET_OK)
            ok(et_tokenizer_is_special(t, 6) && !et_tokenizer_is_special(t, 4),
               "and <|endoftext|> is no text");
        et_error_clear(cx);
        et_tokenizer_free(&t);
    }
    drop_all();
}

/* The two texts of a merge have 1024 bytes at most. */
static void
test_long_merge(void)
{
    char vocab[4096], merges[1300], left[600], right[600];
    for (int more = 0; more <= 1; more++) {
        struct et_tokenizer *t = NULL;
        memset(left, 'l', sizeof left);
        memset(right, 'r', sizeof right);
        left[512] = right[512 + more] = 0;
        snprintf(vocab, sizeof vocab, "{\"%s\":0,\"%s\":1,\"%s%s\":2}", left, right,
                 left, right);
        snprintf(merges, sizeof merges, "%s %s\n", left, right);
        put("vocab.json", vocab);
        put("merges.txt", merges);
        et_status s = et_tokenizer_open(cx, place("merges.txt"), &t);
        ok(s == (more ? ET_EFORMAT : ET_OK), "a merge of %d bytes is %s", 1024 + more,
           more ? "refused" : "taken");
        et_error_clear(cx);
        et_tokenizer_free(&t);
    }
    drop_all();
}

/* ---- BERT ---- */

static void
test_bert(void)
{
    static const char marked[] = "[UNK]\nx\ny\n##y\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nX\n"
                                 "\xc3\xa9\ne\n\xe4\xb8\xad\n##\xe4\xb8\xad\n";
    static const struct {
        const char *says, *config, *text, *want;
    } rows[] = {
        {"text has its marks, and a second one its type", "{}", "xy X",
         "4 1 3 1 5 2 5 / 0 0 0 0 0 1 1"},
        {"marks in a text are those", "{}", "[MASK] [PAD]",
         "4 7 6 5 2 5 / 0 0 0 0 1 1"},
        {"letters are made small, without accents, and signs alone", "{}",
         "X\xc3\x89 \xc3\xa9x\xe4\xb8\xad", "4 0 0 11 5 2 5 / 0 0 0 0 0 1 1"},
        {"accents go with capitals", "{}", "\xc3\x89", "4 10 5 2 5 / 0 0 0 1 1"},
        {"unless they stay", "{\"strip_accents\":false}", "\xc3\x89",
         "4 9 5 2 5 / 0 0 0 1 1"},
        {"as do capitals, with accents", "{\"do_lower_case\":false}", "X \xc3\xa9",
         "4 8 9 5 2 5 / 0 0 0 0 1 1"},
        {"or without", "{\"do_lower_case\":false,\"strip_accents\":true}", "X \xc3\xa9",
         "4 8 10 5 2 5 / 0 0 0 0 1 1"},
        {"Chinese signs are words", "{}", "x\xe4\xb8\xad",
         "4 1 11 5 2 5 / 0 0 0 0 1 1"},
        {"or parts of one", "{\"tokenize_chinese_chars\":false}", "x\xe4\xb8\xad",
         "4 1 12 5 2 5 / 0 0 0 0 1 1"},
    };
    put("vocab.txt", marked);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put("tokenizer_config.json", rows[i].config);
        struct et_tokenizer *t = open_it("vocab.txt");
        is_str(ids_of(t, rows[i].text, ET_ENCODE_SPECIAL, true), rows[i].want, "%s",
               rows[i].says);
        for (int32_t id = 0; i == 0 && id < 13; id++)
            ok(et_tokenizer_is_special(t, id) == (id == 0 || (id >= 4 && id < 8)),
               "token %d is %s", (int)id, id && (id < 4 || id > 7) ? "text" : "a mark");
        et_tokenizer_free(&t);
    }
    put("vocab.txt", "[UNK]\ny\n[CLS]\n##y\n");
    struct et_tokenizer *t = open_it("vocab.txt");
    is_str(ids_of(t, "y", ET_ENCODE_SPECIAL, false), "1",
           "without [SEP] a text has no marks");
    char word[128], want[512] = "1";
    memset(word, 'y', sizeof word);
    for (int i = 1; i < 100; i++)
        memcpy(want + 2 * i - 1, " 3", 3);
    word[100] = 0;
    is_str(ids_of(t, word, 0, false), want, "a word of 100 letters is taken apart");
    word[100] = 'y';
    word[101] = 0;
    is_str(ids_of(t, word, 0, false), "0", "and one of 101 is unknown");
    et_tokenizer_free(&t);
    drop_all();
}

/* ---- what tokens are for ---- */

static const char *
roles_of(void)
{
    static char got[64];
    struct et_tokenizer *t = open_it("vocab.json");
    struct et_tokenizer_info info;
    size_t n = 0;
    et_tokenizer_get_info(t, &info);
    for (int i = 0; i < ET_TOKEN_ROLES; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", i ? " " : "",
                              (int)info.role[i]);
    et_tokenizer_free(&t);
    return got;
}

static void
test_roles(void)
{
    put("vocab.json", "{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":6}");
    put("merges.txt", "");
    is_str(roles_of(), "-1 -1 -1 -1 -1 -1 -1", "letters are for nothing");
    put("special_tokens_map.json",
        "{\"unk_token\":\"b\",\"bos_token\":{\"content\":\"c\"},\"eos_token\":\"d\","
        "\"pad_token\":\"e\",\"cls_token\":\"f\",\"sep_token\":\"g\","
        "\"mask_token\":\"a\"}");
    is_str(roles_of(), "1 2 3 4 5 6 0", "a file says which token is for what");
    put("special_tokens_map.json", "{\"bos_token\":\"c\",\"eos_token\":\"none\"}");
    put("tokenizer_config.json", "{\"bos_token\":\"d\",\"eos_token\":\"e\"}");
    put("generation_config.json",
        "{\"bos_token_id\":5,\"eos_token_id\":[5,1],\"pad_token_id\":[6,1]}");
    put("config.json", "{\"pad_token_id\":1,\"sep_token_id\":1}");
    is_str(roles_of(), "-1 2 4 6 -1 -1 -1",
           "of several files the first that has it, and of a list its first");
    unlink(place("generation_config.json"));
    put("config.json", "{\"pad_token_id\":7,\"eos_token_id\":0}");
    is_str(roles_of(), "-1 2 4 -1 -1 -1 -1", "what is no token is for nothing");
    unlink(place("config.json"));
    put("special_tokens_map.json", "{\"split_special_tokens\":true}");
    put("tokenizer_config.json", "{}");
    put("vocab.json", "{\"a\":0,\"<|endoftext|>\":1,\"<\":2}");
    struct et_tokenizer *t = open_it("vocab.json");
    is_str(ids_of(t, "<|endoftext|>a", 0, false), "2 0",
           "one file is enough to say that marks in a text are text");
    et_tokenizer_free(&t);
    drop_all();
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(dir))
        bail("no context or folder");
    test_merges();
    test_long_merge();
    test_bert();
    test_roles();
    rmdir(dir);
    et_ctx_free(&cx);
    return done();
}
