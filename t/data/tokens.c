/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tokens of texts come from: what a folder of tokens says, what is kept of a
 * text, and whose tokenizer is whose. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/data/fields.h"
#include "core/data/text_source.h"
#include "t/data/fixture.h"
#include "t/data/says.h"
#include "t/tap.h"

/* Marks are neither first nor last of the vocabulary. */
static const char words[] = "[UNK]\nx\ny\nz\n[SEP]\n[CLS]\n[MASK]\n[PAD]\n";

/* No word is a mark but the one that hides. */
static const char unmarked[] = "[UNK]\nx\ny\nz\nu\nv\n[MASK]\n[PAD]\n";

/* Twelve tokens of three documents, in a folder as `data tokenize` leaves it: bytes; or
 * words of which END, 0: none, ends each. */
static const char *
write_tokens(const char *vocabulary, int end)
{
    static const int64_t ends[] = {3, 10, 12};
    static const uint16_t bytes[] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3};
    static char folder[512];
    uint16_t token[12];
    char known[128] = "{\"bytes\": 2, \"vocab_size\": 256, \"tokenizer\": \"bytes\"}";
    memcpy(token, bytes, sizeof token);
    if (end)
        token[2] = token[9] = token[11] = (uint16_t)end;
    if (vocabulary)
        snprintf(known, sizeof known,
                 "{\"bytes\": 2, \"vocab_size\": 8, \"tokenizer\": \"vocab.txt\", "
                 "\"end\": %d}",
                 end ? end : 1);
    snprintf(folder, sizeof folder, "%s/made", scratch_folder());
    mkdir(folder, 0777);
    if (vocabulary)
        write_file("made/vocab.txt", vocabulary, strlen(vocabulary), false);
    write_file("made/tokens.json", known, strlen(known), false);
    write_file("made/train.bin", token, sizeof token, false);
    write_file("made/train.ends", ends, sizeof ends, false);
    return folder;
}

static const char *
write_vocabulary(void)
{
    static char path[512];
    char folder[512];
    snprintf(folder, sizeof folder, "%s/words", scratch_folder());
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s",
             write_file("words/vocab.txt", words, sizeof words - 1, false));
    return path;
}

/* What comes of opening data set NAME; its error stands. */
static et_status
try_open(const char *name, const char *const *set, struct et_dataset **out)
{
    const struct et_dataset_class *c = et_dataset_find(name);
    void *options;
    *out = NULL;
    need(cx, et_options_new(cx, &c->info, set, &options));
    et_status s = et_dataset_open(cx, c, options, out);
    et_options_free(&c->info, &options);
    return s;
}

/* What tokens.json of a folder says, and what it may not. */
static void
test_token_folders(void)
{
    static char long_name[300];
    static const struct {
        const char *text;
        int width;
        int64_t size;
        int32_t end;
    } rows[] = {
        {"{\"bytes\":2,\"vocab_size\":9,\"tokenizer\":\"a.json\",\"end\":7}", 2, 9, 7},
        {"{\"bytes\":4,\"vocab_size\":1,\"tokenizer\":\"a.json\"}", 4, 1, -1},
        {"{\"bytes\":4,\"vocab_size\":2147483647,\"tokenizer\":\"a.json\","
         "\"end\":null}",
         4, INT32_MAX, -1},
        {"{\"bytes\":2,\"vocab_size\":9,\"tokenizer\":\"a.json\",\"end\":0}", 2, 9, 0},
        {"{\"bytes\":4,\"vocab_size\":2147483648,\"tokenizer\":\"a.json\"}", 0, 0, 0},
        {"{\"bytes\":3,\"vocab_size\":9,\"tokenizer\":\"a.json\"}", 0, 0, 0},
        {"{\"bytes\":1,\"vocab_size\":9,\"tokenizer\":\"a.json\"}", 0, 0, 0},
        {"{\"bytes\":2,\"vocab_size\":0,\"tokenizer\":\"a.json\"}", 0, 0, 0},
        {"{\"bytes\":2,\"vocab_size\":9,\"tokenizer\":\"../a.json\"}", 0, 0, 0},
        {"{\"bytes\":2,\"vocab_size\":9}", 0, 0, 0},
        {long_name, 0, 0, 0},
        {long_name, 2, 9, -1},
    };
    static char letters[257];
    char folder[512];
    static const char name[] = "{\"bytes\":2,\"vocab_size\":9,\"tokenizer\":\"";
    snprintf(folder, sizeof folder, "%s/says", scratch_folder());
    mkdir(folder, 0777);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct eti_token_folder is = {0};
        bool found = false;
        memset(letters, 'a', 256);
        letters[rows[i].width ? 255 : 256] = 0;
        snprintf(long_name, sizeof long_name, "%s%s\"}", name, letters);
        write_file("says/tokens.json", rows[i].text, strlen(rows[i].text), false);
        et_status s = eti_token_folder_read(cx, folder, &is, &found);
        ok(s == (rows[i].width ? ET_OK : ET_EFORMAT) && is.width == rows[i].width &&
               is.vocab_size == rows[i].size && is.end == rows[i].end,
           "%.70s is %s", rows[i].text, rows[i].width ? "taken" : "refused");
        if (s != ET_OK)
            take_error(cx);
    }
}

/* A text's tokens are kept, for each way to cut it and each vocabulary. */
static void
test_kept_tokens(void)
{
    enum { TIMES = 20 };
    static const char text[] = "x y\nz\n\ny\n\n",
                      turned[] = "[UNK]\ny\nz\nx\n[SEP]\n[CLS]\n[MASK]\n[PAD]\n";
    static const struct {
        const char *document, *want;
        bool is_turned;
    } rows[] = {
        {"line", "1 2 4 3 4 2 4 3 4 1 2 4 | 1 1 1 2 2 3 3 4 4 5 5 5", false},
        {"blank", "1 2 3 4 2 4 1 2 3 4 1 2 | 1 1 1 1 2 2 3 3 3 3 4 4", false},
        {"file", "1 2 3 2 1 2 3 2 1 2 3 2 | 1 1 1 1 1 1 1 1 1 1 1 1", false},
        {"line", "3 1 4 2 4 1 4 2 4 3 1 4 | 1 1 1 2 2 3 3 4 4 5 5 5", true},
    };
    char path[512], vocabulary[512], all[TIMES * sizeof text] = "";
    for (size_t i = 0; i < TIMES; i++)
        memcpy(all + i * (sizeof text - 1), text, sizeof text);
    snprintf(path, sizeof path, "%s", write_file("kept.txt", all, strlen(all), false));
    snprintf(vocabulary, sizeof vocabulary, "%s", write_vocabulary());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_dataset *d;
        struct eti_room room = {0};
        struct et_sample s;
        struct et_error why = {0};
        char got[128] = "";
        size_t n = 0;
        bool broken;
        if (rows[i].is_turned)
            write_file("words/vocab.txt", turned, sizeof turned - 1, false);
        need(cx, try_open("packed_text",
                          SET("path", path, "tokenizer", vocabulary, "seq_len", "12",
                              "packing", "wrapped", "document", rows[i].document),
                          &d));
        if (eti_sample_read(d, 0, NULL, &room, &s, &why, &broken) != ET_OK)
            bail("%s", why.message);
        for (int f = 0; f < 3; f += 2)
            for (int64_t k = 0; k < s.v[f].shape[0]; k++)
                n += (size_t)snprintf(got + n, sizeof got - n, "%s%d",
                                      k > 0   ? " "
                                      : f > 0 ? " | "
                                              : "",
                                      (int)((const int32_t *)s.v[f].data)[k]);
        is_str(got, rows[i].want, "documents are: a %s%s", rows[i].document,
               rows[i].is_turned ? ", of other words" : "");
        eti_room_free(&room);
        et_dataset_close(&d);
    }
}

/* The tokenizer that a set's tokens are of: one named, the folder's, or bytes. */
static void
test_tokenizers(void)
{
    char path[512], vocabulary[512], folder[512];
    snprintf(path, sizeof path, "%s",
             write_file("some.txt", "x\n\ny\n\nz\n\nx\n", 14, false));
    snprintf(vocabulary, sizeof vocabulary, "%s", write_vocabulary());
    snprintf(folder, sizeof folder, "%s", write_tokens(unmarked, 4));
    const struct {
        const char *says;
        const char *const *set;
        int64_t size;
    } rows[] = {
        {"one that is named",
         SET("path", path, "tokenizer", vocabulary, "seq_len", "4", "document", "line"),
         8},
        {"the folder's own", SET("path", folder, "seq_len", "4"), 8},
        {"bytes", SET("path", path, "seq_len", "4", "document", "line"), 256},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_dataset *d;
        struct et_tokenizer *t = NULL;
        struct et_tokenizer_info info = {0};
        need(cx, try_open("packed_text", rows[i].set, &d));
        need(cx, eti_text_tokenizer(cx, d, &t));
        et_tokenizer_get_info(t, &info);
        ok(info.vocab_size == rows[i].size &&
               et_tokenizer_id(t, "u", 1) == (i == 1   ? 4
                                              : i == 2 ? 'u'
                                                       : -1),
           "tokens are of %s", rows[i].says);
        et_tokenizer_free(&t);
        if (i == 2) {
            d->facts.field[ET_FIELD_X].below = 257;
            ok(eti_text_tokenizer(cx, d, &t) == ET_ENOENT && !t &&
                   strstr(take_error(cx), "says of no tokenizer"),
               "and of none that is known where there are more than bytes");
        }
        et_dataset_close(&d);
    }
    struct et_dataset *d = NULL;
    ok(try_open("packed_text",
                SET("path", folder, "tokenizer", vocabulary, "seq_len", "4"),
                &d) == ET_EINVAL &&
           strstr(take_error(cx), "has tokens, and its own tokenizer"),
       "tokens are not made anew by another");
    et_dataset_close(&d);
}

/* A recipe may ask for more tokens than the folder knows, not for fewer. */
static void
test_vocabulary_sizes(void)
{
    static const struct {
        const char *size;
        int64_t below; /* 0: it is refused */
    } rows[] = {{"50257", 8}, {"300", 300}, {"9", 9}, {"8", 8}, {"7", 0}};
    const char *folder = write_tokens(words, 4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_dataset *d = NULL;
        et_status status = try_open(
            "tokens", SET("path", folder, "seq_len", "4", "vocab_size", rows[i].size),
            &d);
        ok(rows[i].below
               ? status == ET_OK && d->facts.field[ET_FIELD_X].below == rows[i].below
               : status == ET_EINVAL,
           "a folder of 8 tokens and a vocab_size of %s: %d", rows[i].size,
           (int)rows[i].below);
        et_error_clear(cx);
        et_dataset_close(&d);
    }
}

int
main(void)
{
    cx = need_ctx();
    test_vocabulary_sizes();
    test_token_folders();
    test_kept_tokens();
    test_tokenizers();
    et_ctx_free(&cx);
    return done();
}
