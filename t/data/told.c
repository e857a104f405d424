/* SPDX-License-Identifier: Apache-2.0 */
/* What sets of texts and tables say of themselves, before they are opened and then;
 * and all that their samples have. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/data/fields.h"
#include "t/data/fixture.h"
#include "t/data/says.h"
#include "t/tap.h"

/* ---- texts ---- */

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

static void
test_packed(void)
{
    const char *folder = write_tokens(NULL, 0);
    says("documents packed whole", "packed_text",
         SET("path", folder, "seq_len", "4", "packing", "best_fit"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] < "
         "256 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 4\n"
         "4 samples, 48 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] "
         "< 256 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 4\n"
         "1 2 3 1 | 2 3 1 2 | 1 1 1 1 | 0 1 2 3\n"
         "1 2 3 | 2 3 - | 1 1 1 | 0 1 2\n"
         "2 3 1 | 3 1 - | 1 1 1 | 0 1 2\n"
         "2 3 | 3 - | 1 1 | 0 1\n");
    says("and cut, in sequences that they fill", "packed_text",
         SET("path", folder, "seq_len", "4", "packing", "wrapped"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] < "
         "256 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 4\n"
         "3 samples, 48 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] "
         "< 256 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 4\n"
         "1 2 3 1 | 2 3 - 2 | 1 1 1 2 | 0 1 2 0\n"
         "2 3 1 2 | 3 1 2 3 | 1 1 1 1 | 0 1 2 3\n"
         "3 1 2 3 | 1 - 3 - | 1 1 2 2 | 0 1 0 1\n");
    says("or end in", "packed_text",
         SET("path", folder, "seq_len", "5", "packing", "wrapped", "attention", "all"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] < "
         "256 pad -100\n"
         "3 samples, 48 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] "
         "< 256 pad -100\n"
         "1 2 3 1 2 | 2 3 - 2 3\n"
         "3 1 2 3 1 | 1 2 3 1 -\n"
         "2 3 | 3 -\n");
    says("packed, and all may look at all before", "packed_text",
         SET("path", folder, "seq_len", "4", "packing", "best_fit", "attention", "all"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] < "
         "256 pad -100\n"
         "4 samples, 48 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] "
         "< 256 pad -100\n"
         "1 2 3 1 | 2 3 1 2\n"
         "1 2 3 | 2 3 -\n"
         "2 3 1 | 3 1 -\n"
         "2 3 | 3 -\n");
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

static void
test_masked(void)
{
    const char *folder = write_tokens(words, 4);
    says("a stream with hidden tokens", "masked_text",
         SET("path", folder, "seq_len", "6", "mask_prob", "0.001"),
         "0 samples, 0 bytes; tokens: tokens i32 [6]; target: tokens i32 [6] pad -100\n"
         "3 samples, 72 bytes; tokens: tokens i32 [6] < 8; target: tokens i32 [6] < 8 "
         "pad -100\n"
         "5 1 2 4 1 4 | - - - - - -\n"
         "5 2 3 1 2 4 | - - - - - -\n"
         "5 3 4 2 4 4 | - - - - - -\n");
    says("documents with hidden tokens", "masked_text",
         SET("path", folder, "seq_len", "6", "mask_prob", "0.001", "packing",
             "best_fit"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1]; target: tokens i32 [-1] pad "
         "-100; document: tokens i32 [-1]; position: tokens i32 [-1] < 6\n"
         "4 samples, 48 bytes; tokens: tokens i32 [-1] < 8 pad 7; target: tokens i32 "
         "[-1] < 8 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 6\n"
         "5 1 2 3 1 4 | - - - - - - | 1 1 1 1 1 1 | 0 1 2 3 4 5\n"
         "5 1 2 4 | - - - - | 1 1 1 1 | 0 1 2 3\n"
         "5 2 3 4 | - - - - | 1 1 1 1 | 0 1 2 3\n"
         "5 2 4 | - - - | 1 1 1 | 0 1 2\n");
    (void)write_tokens(words, 2);
    says("whose ends are no mark", "masked_text",
         SET("path", folder, "seq_len", "6", "mask_prob", "0.001", "packing",
             "best_fit"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1]; target: tokens i32 [-1] pad "
         "-100; document: tokens i32 [-1]; position: tokens i32 [-1] < 6\n"
         "4 samples, 48 bytes; tokens: tokens i32 [-1] < 8 pad 7; target: tokens i32 "
         "[-1] < 8 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 6\n"
         "5 1 2 3 1 4 | - - - - - - | 1 1 1 1 1 1 | 0 1 2 3 4 5\n"
         "5 1 2 2 4 | - - - - - | 1 1 1 1 1 | 0 1 2 3 4\n"
         "5 2 3 2 4 | - - - - - | 1 1 1 1 1 | 0 1 2 3 4\n"
         "5 2 2 4 | - - - - | 1 1 1 1 | 0 1 2 3\n");
    (void)write_tokens(unmarked, 2);
    says("of a tokenizer without marks", "masked_text",
         SET("path", folder, "seq_len", "6", "mask_prob", "0.001", "packing",
             "best_fit"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1]; target: tokens i32 [-1] pad "
         "-100; document: tokens i32 [-1]; position: tokens i32 [-1] < 6\n"
         "2 samples, 48 bytes; tokens: tokens i32 [-1] < 8 pad 7; target: tokens i32 "
         "[-1] < 8 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 6\n"
         "1 2 3 1 2 3 | - - - - - - | 1 1 1 1 1 1 | 0 1 2 3 4 5\n"
         "1 2 2 2 2 2 | - - - - - - | 1 1 1 2 2 3 | 0 1 2 0 1 0\n");
    says("and their stream", "masked_text",
         SET("path", folder, "seq_len", "6", "mask_prob", "0.001"),
         "0 samples, 0 bytes; tokens: tokens i32 [6]; target: tokens i32 [6] pad -100\n"
         "2 samples, 48 bytes; tokens: tokens i32 [6] < 8; target: tokens i32 [6] < 8 "
         "pad -100\n"
         "1 2 2 1 2 3 | - - - - - -\n"
         "1 2 3 2 2 2 | - - - - - -\n");
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

/* Twelve tokens, of which a sample takes two less than it is long. */
static void
test_masked_limits(void)
{
    static const struct {
        const char *seq_len, *packing;
        int64_t samples; /* 0: refused */
    } rows[] = {
        {"2", "wrapped", 0},   {"3", "wrapped", 12},  {"14", "wrapped", 1},
        {"15", "wrapped", 0},  {"2", "best_fit", 0},  {"3", "best_fit", 9},
        {"14", "best_fit", 2}, {"15", "best_fit", 1},
    };
    const char *folder = write_tokens(words, 4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_dataset *d;
        et_status s = try_open(
            "masked_text",
            SET("path", folder, "seq_len", rows[i].seq_len, "packing", rows[i].packing),
            &d);
        (void)take_error(cx);
        is_int(s == ET_OK ? d->facts.n_samples : 0, rows[i].samples,
               "%s: samples of %s tokens", rows[i].packing, rows[i].seq_len);
        et_dataset_close(&d);
    }
}

/* A token is predicted from one before it. */
static void
test_least(void)
{
    static const char known[] =
        "{\"bytes\": 2, \"vocab_size\": 256, \"tokenizer\": \"bytes\"}";
    static const uint16_t token[] = {7, 8};
    char folder[512];
    snprintf(folder, sizeof folder, "%s/least", scratch_folder());
    mkdir(folder, 0777);
    write_file("least/tokens.json", known, sizeof known - 1, false);
    for (int64_t n = 1; n <= 2; n++) {
        struct et_dataset *d;
        write_file("least/train.bin", token, (size_t)n * sizeof *token, false);
        write_file("least/train.ends", &n, sizeof n, false);
        et_status s = try_open("packed_text", SET("path", folder, "seq_len", "8"), &d);
        if (n == 1)
            ok(s == ET_EINVAL && strstr(take_error(cx), "1 tokens (train)"),
               "one token is too few");
        else
            ok(s == ET_OK && d->facts.n_samples == 1, "two are a sequence");
        if (s == ET_OK)
            et_dataset_close(&d);
    }
}

/* Ends of documents that do not rise, or are not those of all tokens. */
static void
test_bad_ends(void)
{
    static const char known[] =
        "{\"bytes\": 2, \"vocab_size\": 256, \"tokenizer\": \"bytes\"}";
    static const uint16_t token[] = {1, 2, 3, 4, 5, 6};
    static const struct {
        int64_t ends[3];
        const char *says;
    } rows[] = {
        {{2, 4, 6}, NULL},
        {{2, 2, 6}, NULL},
        {{4, 3, 6}, "document 1 ends at token 3, which is not between 4 and 6"},
        {{2, 7, 6}, "document 1 ends at token 7, which is not between 2 and 6"},
        {{-1, 4, 6}, "document 0 ends at token -1, which is not between 0 and 6"},
        {{2, 4, 5}, "the documents end at token 5, of 6"},
    };
    char folder[512];
    snprintf(folder, sizeof folder, "%s/ends", scratch_folder());
    mkdir(folder, 0777);
    write_file("ends/tokens.json", known, sizeof known - 1, false);
    write_file("ends/train.bin", token, sizeof token, false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_dataset *d = NULL;
        write_file("ends/train.ends", rows[i].ends, sizeof rows[i].ends, false);
        et_status s = try_open("packed_text", SET("path", folder, "seq_len", "8"), &d);
        const char *said = take_error(cx);
        if (rows[i].says)
            ok(s == ET_EFORMAT && strstr(said, rows[i].says), "%s", rows[i].says);
        else
            ok(s == ET_OK, "ends that rise, or stay, are right");
        et_dataset_close(&d);
    }
}

static void
test_labelled(void)
{
    static const char rows[] = "label\tsentence\tother\n"
                               "10\tx y\tz\n"
                               "9\tz\ty y\n"
                               "10\ty\tx\n";
    char path[512];
    snprintf(path, sizeof path, "%s",
             write_file("rows.tsv", rows, sizeof rows - 1, false));
    const char *vocabulary = write_vocabulary();
    says("pairs with classes, which are in the order of their numbers", "labelled_text",
         SET("path", path, "tokenizer", vocabulary, "text2", "other"),
         "0 samples, 0 bytes, masked; tokens: tokens i32 [-1]; target: values i32 []; "
         "token_type: tokens u8 [-1] < 256\n"
         "3 samples, 68 bytes, masked; tokens: tokens i32 [-1] < 8 pad 7; target: "
         "values i32 [] < 2; token_type: tokens u8 [-1] < 256; 9, 10\n"
         "5 1 2 4 3 4 | 1 | 0 0 0 0 1 1\n"
         "5 3 4 2 2 4 | 0 | 0 0 0 1 1 1\n"
         "5 2 4 1 4 | 1 | 0 0 0 1 1\n");
    says("texts with numbers", "labelled_text",
         SET("path", path, "tokenizer", vocabulary, "target", "number"),
         "0 samples, 0 bytes, masked; tokens: tokens i32 [-1]; target: values f32 []; "
         "token_type: tokens u8 [-1] < 256\n"
         "3 samples, 40 bytes, masked; tokens: tokens i32 [-1] < 8 pad 7; target: "
         "values f32 []; token_type: tokens u8 [-1] < 256\n"
         "5 1 2 4 | 10 | 0 0 0 0\n"
         "5 3 4 | 9 | 0 0 0\n"
         "5 2 4 | 10 | 0 0 0\n");
}

static void
test_instructions(void)
{
    static const char rows[] = "{\"prompt\": \"ab\", \"response\": \"cd\"}\n"
                               "{\"prompt\": \"e\", \"response\": \"f\"}\n"
                               "{\"prompt\": \"ghijkl\", \"response\": \"mnop\"}\n"
                               "{\"prompt\": \"qr\", \"response\": \"\"}\n";
    char path[512];
    snprintf(path, sizeof path, "%s",
             write_file("rows.jsonl", rows, sizeof rows - 1, false));
    says("lines in sequences of their own", "instructions",
         SET("path", path, "seq_len", "8", "packing", "none"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] < "
         "256 pad -100\n"
         "3 samples, 64 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] "
         "< 256 pad -100\n"
         "97 98 99 100 | - 99 100 -\n"
         "101 102 | 102 -\n"
         "103 104 105 106 107 108 109 110 | - - - - - 109 110 -\n");
    says("the end of those that are too long", "instructions",
         SET("path", path, "seq_len", "8", "packing", "none", "truncation", "keep_end"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] < "
         "256 pad -100\n"
         "3 samples, 64 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] "
         "< 256 pad -100\n"
         "97 98 99 100 | - 99 100 -\n"
         "101 102 | 102 -\n"
         "105 106 107 108 109 110 111 112 | - - - 109 110 111 112 -\n");
    static const char talk[] =
        "{\"messages\": [{\"role\": \"assistant\", \"content\": \"x\"},"
        "{\"role\": \"user\", \"content\": \"yz\"}]}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"},"
        "{\"role\": \"assistant\", \"content\": \"cd\"},"
        "{\"role\": \"user\", \"content\": \"e\"}]}\n";
    says("messages, but where the first token alone is an answer", "instructions",
         SET("path", write_file("talk.jsonl", talk, sizeof talk - 1, false), "seq_len",
             "8", "message", "'{content}'"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] < "
         "256 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 8\n"
         "1 samples, 20 bytes; tokens: tokens i32 [-1] < 256; target: tokens i32 [-1] "
         "< 256 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 8\n"
         "97 98 99 100 101 | - 99 100 - - | 1 1 1 1 1 | 0 1 2 3 4\n");
    says("lines together", "instructions",
         SET("path", path, "seq_len", "8", "tokenizer", write_vocabulary(), "template",
             "'x{prompt} y z{response} x'", "packing", "best_fit"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1]; target: tokens i32 [-1] pad "
         "-100; document: tokens i32 [-1]; position: tokens i32 [-1] < 8\n"
         "4 samples, 76 bytes; tokens: tokens i32 [-1] < 8 pad 7; target: tokens i32 "
         "[-1] < 8 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 8\n"
         "0 2 3 0 1 | - - 0 1 - | 1 1 1 1 1 | 0 1 2 3 4\n"
         "0 2 3 0 1 | - - 0 1 - | 1 1 1 1 1 | 0 1 2 3 4\n"
         "0 2 3 0 1 | - - 0 1 - | 1 1 1 1 1 | 0 1 2 3 4\n"
         "0 2 3 1 | - - 1 - | 1 1 1 1 | 0 1 2 3\n");
}

/* ---- tables ---- */

static void
test_tables(void)
{
    static const char rows[] = "age,town,height,likes\n"
                               "1,U,5,tea\n"
                               "3,A,5,no\n"
                               "5,U,5,tea\n";
    char path[512];
    snprintf(path, sizeof path, "%s",
             write_file("rows.csv", rows, sizeof rows - 1, false));
    says("numbers that are all one, kinds, and classes", "table",
         SET("path", path, "categorical", "[town]", "test_fraction", "0"),
         "3 samples, 60 bytes; values: values f32 [4]; target: values i32 [] < 2; no, "
         "tea\n"
         "-1.22474 0 1 0 | 1\n"
         "0 1 0 0 | 0\n"
         "1.22474 0 1 0 | 1\n");
    says("numbers as they are, and a standardised one", "table",
         SET("path", path, "columns", "[height, town]", "categorical", "[town]",
             "test_fraction", "0", "target", "age", "standardize", "false",
             "standardize_target", "true"),
         "3 samples, 48 bytes; values: values f32 [3]; target: values f32 []\n"
         "0 1 5 | -1.22474\n"
         "1 0 5 | 0\n"
         "0 1 5 | 1.22474\n");
    says("a target of numbers that are classes", "table",
         SET("path", path, "columns", "[age]", "test_fraction", "0", "target", "height",
             "task", "classification", "standardize", "false"),
         "3 samples, 24 bytes; values: values f32 [1]; target: values i32 [] < 1; 5\n"
         "1 | 0\n"
         "3 | 0\n"
         "5 | 0\n");
}

/* ---- arrays ---- */

/* Numbers 1, 2, ... of TYPE, of which a file has SHAPE. */
static void
write_array(const char *name, const char *type, const char *shape, int n)
{
    static uint8_t file[2048];
    uint8_t bytes[1024];
    for (int i = 0; i < n; i++)
        if (type[1] == 'u')
            bytes[i] = (uint8_t)(1 + i);
        else if (type[1] == 'i')
            memcpy(bytes + 4 * i, &(int32_t){1 + i}, 4);
        else
            memcpy(bytes + 4 * i, &(float){1.5F + (float)i}, 4);
    const size_t size = (size_t)n * (type[1] == 'u' ? 1 : 4);
    write_file(name, file, make_npy(file, type, shape, bytes, size), false);
}

static void
test_arrays(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/npy", scratch_folder());
    mkdir(path, 0777);
    write_array("npy/y.npy", "<i4", "(2,)", 2);
    write_array("npy/x.npy", "|u1", "(2, 2, 3)", 12);
    says("images of one channel", "npy", SET("path", path),
         "2 samples, 20 bytes; x: image u8 [1,2,3]; target: values i32 [] < 3\n"
         "1 2 3,4 5 6 | 1\n"
         "7 8 9,10 11 12 | 2\n");
    write_array("npy/x.npy", "|u1", "(2, 1, 2, 3)", 12);
    says("of some, which come last", "npy", SET("path", path, "num_classes", "7"),
         "2 samples, 20 bytes; x: image u8 [3,1,2]; target: values i32 [] < 7\n"
         "1 4; 2 5; 3 6 | 1\n"
         "7 10; 8 11; 9 12 | 2\n");
    write_array("npy/x.npy", "|u1", "(2, 2, 1, 9)", 36);
    says("or first", "npy", SET("path", path),
         "2 samples, 44 bytes; x: image u8 [2,1,9]; target: values i32 [] < 3\n"
         "1 2 3 4 5 6 7 8 9; 10 11 12 13 14 15 16 17 18 | 1\n"
         "19 20 21 22 23 24 25 26 27; 28 29 30 31 32 33 34 35 36 | 2\n");
    write_array("npy/y.npy", "|u1", "(2, 2, 3)", 12);
    write_array("npy/x.npy", "|u1", "(2, 2, 3)", 12);
    says("with masks", "npy", SET("path", path),
         "2 samples, 24 bytes; x: image u8 [1,2,3]; target: mask u8 [2,3] < 13\n"
         "1 2 3,4 5 6 | 1 2 3,4 5 6\n"
         "7 8 9,10 11 12 | 7 8 9,10 11 12\n");
    write_array("npy/x.npy", "<i4", "(2, 3)", 6);
    write_array("npy/y.npy", "<i4", "(2, 3)", 6);
    says("tokens", "npy", SET("path", path),
         "2 samples, 48 bytes; x: tokens i32 [3] < 7; target: tokens i32 [3] < 7\n"
         "1 2 3 | 1 2 3\n"
         "4 5 6 | 4 5 6\n");
    write_array("npy/z.npy", "<f4", "(2, 1, 2)", 4);
    write_array("npy/x.npy", "<f4", "(2, 2)", 4);
    write_array("npy/y.npy", "<f4", "(2,)", 2);
    says("and numbers, with others", "npy", SET("path", path, "others", "[z]"),
         "2 samples, 40 bytes; x: values f32 [2]; target: values f32 []; z: values f32 "
         "[1,2]\n"
         "1.5 2.5 | 1.5 | 1.5 2.5\n"
         "3.5 4.5 | 2.5 | 3.5 4.5\n");
}

/* Labels and tokens at their bound, and below none. */
static void
test_bounds(void)
{
    static const struct {
        int32_t x[2], y;
        const char *says;
    } rows[] = {
        {{5, 0}, 6, NULL},
        {{5, 0}, 7, "npy: sample 0 has the label 7, and there are 7 classes"},
        {{5, 0}, -1, NULL}, /* it counts nothing */
        {{5, -1}, 6, "npy: sample 0 has the token -1, and there are 6"},
    };
    static uint8_t file[512];
    char path[512];
    snprintf(path, sizeof path, "%s/bounds", scratch_folder());
    mkdir(path, 0777);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_dataset *d;
        struct eti_room room = {0};
        struct et_sample s;
        struct et_error why = {0};
        bool broken;
        write_file("bounds/x.npy", file,
                   make_npy(file, "<i4", "(1, 2)", rows[i].x, sizeof rows[i].x), false);
        write_file("bounds/y.npy", file,
                   make_npy(file, "<i4", "(1,)", &rows[i].y, sizeof rows[i].y), false);
        need(cx, try_open("npy", SET("path", path, "num_classes", "7"), &d));
        et_status status = eti_sample_read(d, 0, NULL, &room, &s, &why, &broken);
        is_str(status == ET_OK ? "good" : why.message,
               rows[i].says ? rows[i].says : "good", "tokens %d and %d, label %d",
               rows[i].x[0], rows[i].x[1], rows[i].y);
        ok(broken == (status != ET_OK), "what is beyond its bound ends a run");
        eti_room_free(&room);
        et_dataset_close(&d);
    }
}

int
main(void)
{
    cx = need_ctx();
    test_packed();
    test_masked();
    test_masked_limits();
    test_least();
    test_bad_ends();
    test_labelled();
    test_instructions();
    test_tables();
    test_arrays();
    test_bounds();
    et_ctx_free(&cx);
    return done();
}
