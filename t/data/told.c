/* SPDX-License-Identifier: Apache-2.0 */
/* What data sets say of themselves, before they are opened and then, all of it; and all
 * that their samples have, where these are few and small. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/data/fields.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- as text ---- */

struct text {
    char s[4096];
    size_t n;
};

#define ADD(t, ...)                                                                    \
    ((t)->n += (size_t)snprintf((t)->s + (t)->n, sizeof(t)->s - (t)->n, __VA_ARGS__))

static void
add_field(struct text *t, const struct et_field *f)
{
    static const char *const kinds[] = {
        [ET_FIELD_IMAGE] = "image",
        [ET_FIELD_TOKENS] = "tokens",
        [ET_FIELD_MASK] = "mask",
        [ET_FIELD_VALUES] = "values",
    };
    ADD(t, "; %s: %s %s [", f->name, kinds[f->kind], et_dtype_name(f->dtype));
    for (int i = 0; i < f->ndim; i++)
        ADD(t, "%s%" PRId64, i ? "," : "", f->shape[i]);
    ADD(t, "]");
    if (f->below)
        ADD(t, " < %" PRId64, f->below);
    if (f->pad)
        ADD(t, " pad %g", (double)f->pad);
}

/* "3 samples, 40 bytes; tokens: tokens i32 [-1] < 256; ...", and names of classes. */
static void
add_facts(struct text *t, const struct et_data_facts *f)
{
    ADD(t, "%" PRId64 " samples, %" PRId64 " bytes", f->n_samples, f->bytes);
    if (f->n_tokens)
        ADD(t, ", %" PRId64 " tokens", f->n_tokens);
    if (f->wants_attention_mask)
        ADD(t, ", masked");
    for (int i = 0; i < f->n_fields; i++)
        add_field(t, &f->field[i]);
    const int64_t n = f->class_names ? et_facts_classes(f) : 0;
    for (int64_t i = 0; i < n; i++)
        ADD(t, "%s%s", i ? ", " : "; ", f->class_names[i]);
    ADD(t, "\n");
}

/* The N numbers of FIELD at DATA; "-": there is nothing to predict. */
static void
add_numbers(struct text *t, const struct et_field *field, const void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        ADD(t, "%s", i ? " " : "");
        if (field->dtype == ET_F32)
            ADD(t, "%g", (double)((const float *)data)[i]);
        else if (field->dtype == ET_U8)
            ADD(t, "%d", ((const uint8_t *)data)[i]);
        else if (((const int32_t *)data)[i] == ET_IGNORE_INDEX)
            ADD(t, "-");
        else
            ADD(t, "%" PRId32, ((const int32_t *)data)[i]);
    }
}

/* A picture that is a file, by its path, which each has as its bytes; and what a mask's
 * values become. */
static void
add_file(struct text *t, const struct et_field *field, const struct et_sample_value *v)
{
    const char *path = v->file + strlen(scratch_folder()) + 1;
    const size_t n = (size_t)v->shape[0];
    ADD(t, "%s", path);
    if (n != strlen(path) || memcmp(v->data, path, n) != 0)
        ADD(t, " with other bytes");
    for (int i = 0; i < 256 && field->kind == ET_FIELD_MASK; i++)
        if (i < 3 || i > 253)
            ADD(t, " %d->%d", i, v->classes[i]);
}

/* "1 2 3 | 2 3 -", a line for each sample. */
static void
add_samples(struct text *t, const struct et_dataset *d)
{
    struct eti_room room = {0};
    for (int64_t at = 0; d->type->sample && at < d->facts.n_samples; at++) {
        struct et_sample s;
        struct et_error why;
        bool broken;
        need(cx, eti_sample_read(d, at, NULL, &room, &s, &why, &broken));
        for (int f = 0; f < d->facts.n_fields; f++) {
            const struct et_field *field = &d->facts.field[f];
            int64_t n = 1;
            for (int i = 0; i < field->ndim; i++)
                n *= s.v[f].shape[i];
            ADD(t, "%s", f ? " | " : "");
            if (eti_value_is_file(field, &s.v[f]))
                add_file(t, field, &s.v[f]);
            else
                add_numbers(t, field, s.v[f].data, n);
        }
        ADD(t, "%s\n",
            !d->type->length || d->type->length(d, at) == s.v[0].shape[0]
                ? ""
                : " (has another length)");
    }
    eti_room_free(&room);
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What data set NAME with the options SET says before it is opened, then, and what its
 * samples are. */
static void
says(const char *what, const char *name, const char *const *set, const char *want)
{
    const struct et_dataset_class *c = et_dataset_find(name);
    struct text t = {.n = 0};
    struct et_data_facts before = {0};
    struct et_dataset *d;
    void *options;
    need(cx, et_options_new(cx, &c->info, set, &options));
    if (c->describe) {
        c->describe(options, &before);
        add_facts(&t, &before);
    }
    need(cx, et_dataset_open(cx, c, options, &d));
    add_facts(&t, &d->facts);
    add_samples(&t, d);
    is_str(t.s, want, "%s", what);
    et_dataset_close(&d);
    et_options_free(&c->info, &options);
}

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
    const struct et_dataset_class *c = et_dataset_find("masked_text");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_dataset *d = NULL;
        void *options;
        need(cx, et_options_new(cx, &c->info,
                                SET("path", folder, "seq_len", rows[i].seq_len,
                                    "packing", rows[i].packing),
                                &options));
        et_status s = et_dataset_open(cx, c, options, &d);
        (void)take_error(cx);
        is_int(s == ET_OK ? d->facts.n_samples : 0, rows[i].samples,
               "%s: samples of %s tokens", rows[i].packing, rows[i].seq_len);
        et_dataset_close(&d);
        et_options_free(&c->info, &options);
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
                               "{\"prompt\": \"ghijkl\", \"response\": \"mnop\"}\n";
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
    says("lines together", "instructions",
         SET("path", path, "seq_len", "8", "tokenizer", write_vocabulary(), "template",
             "'x{prompt} y z{response} x'", "packing", "best_fit"),
         "0 samples, 0 bytes; tokens: tokens i32 [-1]; target: tokens i32 [-1] pad "
         "-100; document: tokens i32 [-1]; position: tokens i32 [-1] < 8\n"
         "3 samples, 60 bytes; tokens: tokens i32 [-1] < 8 pad 7; target: tokens i32 "
         "[-1] < 8 pad -100; document: tokens i32 [-1]; position: tokens i32 [-1] < 8\n"
         "0 2 3 0 1 | - - 0 1 - | 1 1 1 1 1 | 0 1 2 3 4\n"
         "0 2 3 0 1 | - - 0 1 - | 1 1 1 1 1 | 0 1 2 3 4\n"
         "0 2 3 0 1 | - - 0 1 - | 1 1 1 1 1 | 0 1 2 3 4\n");
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

/* ---- pictures ---- */

/* Writes files, each with its own path below the folder as what it has. */
static void
write_files(const char *const *paths)
{
    for (; *paths; paths++) {
        char folder[700];
        for (const char *slash = strchr(*paths, '/'); slash;
             slash = strchr(slash + 1, '/')) {
            snprintf(folder, sizeof folder, "%s/%.*s", scratch_folder(),
                     (int)(slash - *paths), *paths);
            mkdir(folder, 0777);
        }
        write_file(*paths, *paths, strlen(*paths), false);
    }
}

static const char *
inside(const char *path)
{
    static char whole[4][700];
    static int at;
    at = (at + 1) % 4;
    snprintf(whole[at], sizeof *whole, "%s/%s", scratch_folder(), path);
    return whole[at];
}

static void
test_folders(void)
{
    static const char *const
        apart[] = {"apart/train/dog/b", "apart/train/dog/a", "apart/train/cat/c",
                   "apart/train/note",  "apart/test/dog/e",  "apart/valid/dog/d",
                   "apart/valid/eel/f", "apart/mine/dog/g",  NULL},
        *const mixed[] = {"mixed/dog/a", "mixed/dog/b", "mixed/dog/c", "mixed/cat/a",
                          "mixed/cat/b", "mixed/cat/c", NULL};
    static const char lines[] = "dog/a\ncat/c\n";
    write_files(apart);
    write_files(mixed);
    says("a folder for each class", "imagefolder", SET("path", inside("apart")),
         "3 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "apart/train/cat/c | 0\n"
         "apart/train/dog/a | 1\n"
         "apart/train/dog/b | 1\n");
    says("and another to evaluate with", "imagefolder",
         SET("path", inside("apart"), "split", "test", "color", "grey"),
         "1 samples, 0 bytes; image: image u8 [1,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "apart/valid/dog/d | 1\n");
    says("those that are named", "imagefolder",
         SET("path", inside("apart"), "files",
             write_file("lines.txt", lines, sizeof lines - 1, false)),
         "2 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "apart/train/dog/a | 1\n"
         "apart/train/cat/c | 0\n");
    says("a part to train with", "imagefolder",
         SET("path", inside("mixed"), "test_fraction", "0.4"),
         "2 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "mixed/cat/a | 0\n"
         "mixed/cat/b | 0\n");
    says("and the rest", "imagefolder",
         SET("path", inside("mixed"), "test_fraction", "0.4", "split", "test"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "mixed/cat/c | 0\n"
         "mixed/dog/a | 1\n"
         "mixed/dog/b | 1\n"
         "mixed/dog/c | 1\n");
}

static void
test_csv(void)
{
    static const char *const pictures[] = {"csv/a", "csv/b", "csv/c", "csv/d", NULL};
    static const char rows[] = "kind,picture,x,y,name\n"
                               "3,a,1.5,7,dog\n"
                               "1,b,2.5,8,cat\n"
                               "3,c,3.5,9,dog\n"
                               "0,d,4.5,6,eel\n";
    write_files(pictures);
    const char *path = inside("csv/rows.csv");
    write_file("csv/rows.csv", rows, sizeof rows - 1, false);
    says("pictures with names of classes", "csv_images",
         SET("path", path, "file_column", "picture"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 3; "
         "cat, dog, eel\n"
         "csv/a | 1\n"
         "csv/b | 0\n"
         "csv/c | 1\n"
         "csv/d | 2\n");
    says("in an order of the user's", "csv_images",
         SET("path", path, "file_column", "picture", "classes", "[eel, fox, cat, dog]"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 4; "
         "eel, fox, cat, dog\n"
         "csv/a | 3\n"
         "csv/b | 2\n"
         "csv/c | 3\n"
         "csv/d | 0\n");
    says("with numbers of classes", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[kind]"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 4\n"
         "csv/a | 3\n"
         "csv/b | 1\n"
         "csv/c | 3\n"
         "csv/d | 0\n");
    says("of which there may be more", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[kind]", "num_classes",
             "6", "color", "grey"),
         "4 samples, 0 bytes; image: image u8 [1,-1,-1]; target: values i32 [] < 6\n"
         "csv/a | 3\n"
         "csv/b | 1\n"
         "csv/c | 3\n"
         "csv/d | 0\n");
    says("that are names", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[kind]", "classes",
             "['3', '0', '1']"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 3; 3, "
         "0, 1\n"
         "csv/a | 0\n"
         "csv/b | 2\n"
         "csv/c | 0\n"
         "csv/d | 1\n");
    says("that are numbers", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[kind]", "task",
             "regression"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values f32 []\n"
         "csv/a | 3\n"
         "csv/b | 1\n"
         "csv/c | 3\n"
         "csv/d | 0\n");
    says("with a number", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[x]"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values f32 []\n"
         "csv/a | 1.5\n"
         "csv/b | 2.5\n"
         "csv/c | 3.5\n"
         "csv/d | 4.5\n");
    says("that is a class", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[x]", "task",
             "classification"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 4; "
         "1.5, 2.5, 3.5, 4.5\n"
         "csv/a | 0\n"
         "csv/b | 1\n"
         "csv/c | 2\n"
         "csv/d | 3\n");
    says("with several numbers", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[y, kind]"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values f32 [2]\n"
         "csv/a | 7 3\n"
         "csv/b | 8 1\n"
         "csv/c | 9 3\n"
         "csv/d | 6 0\n");
}

static void
test_masks(void)
{
    static const char *const files[] = {"masks/images/a.b.jpg",
                                        "masks/images/c.jpg",
                                        "masks/images/d.jpg",
                                        "masks/masks/a.b.png",
                                        "masks/masks/c.png",
                                        "masks/masks/d.png",
                                        "apart2/train/images/a.jpg",
                                        "apart2/train/masks/a.png",
                                        "apart2/val/images/b.jpg",
                                        "apart2/val/masks/b.png",
                                        "ade/images/training/a.jpg",
                                        "ade/annotations/training/a.png",
                                        "ade/images/validation/b.jpg",
                                        "ade/annotations/validation/b.png",
                                        "voc/JPEGImages/a.jpg",
                                        "voc/JPEGImages/b.jpg",
                                        "voc/SegmentationClass/a.png",
                                        "voc/SegmentationClass/b.png",
                                        "voc/ImageSets/Segmentation/train.txt",
                                        "voc/ImageSets/Segmentation/val.txt",
                                        NULL};
    write_files(files);
    write_file("voc/ImageSets/Segmentation/train.txt", "a\n", 2, false);
    write_file("voc/ImageSets/Segmentation/val.txt", "b\n", 2, false);
    says("pictures with masks", "segmentation",
         SET("path", inside("masks"), "num_classes", "4", "ignore_index", "2"),
         "3 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 4\n"
         "masks/images/a.b.jpg | masks/masks/a.b.png 0->0 1->1 2->255 254->254 "
         "255->255\n"
         "masks/images/c.jpg | masks/masks/c.png 0->0 1->1 2->255 254->254 255->255\n"
         "masks/images/d.jpg | masks/masks/d.png 0->0 1->1 2->255 254->254 255->255\n");
    says("of which some are to evaluate with", "segmentation",
         SET("path", inside("masks"), "num_classes", "4", "test_fraction", "0.5",
             "split", "test", "color", "grey", "skip_zero", "true", "ignore_index",
             "1"),
         "2 samples, 0 bytes; image: image u8 [1,-1,-1]; target: mask u8 [-1,-1] < 4\n"
         "masks/images/c.jpg | masks/masks/c.png 0->255 1->255 2->1 254->253 255->254\n"
         "masks/images/d.jpg | masks/masks/d.png 0->255 1->255 2->1 254->253 "
         "255->254\n");
    says("some to train with", "segmentation",
         SET("path", inside("masks"), "num_classes", "4", "test_fraction", "0.5"),
         "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 4\n"
         "masks/images/a.b.jpg | masks/masks/a.b.png 0->0 1->1 2->2 254->254 "
         "255->255\n");
    says("or lie apart", "segmentation",
         SET("path", inside("apart2"), "num_classes", "3", "split", "test"),
         "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 3\n"
         "apart2/val/images/b.jpg | apart2/val/masks/b.png 0->0 1->1 2->2 254->254 "
         "255->255\n");
    says(
        "as in ADE20K", "segmentation",
        SET("path", inside("ade"), "layout", "ade20k", "split", "test"),
        "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 150\n"
        "ade/images/validation/b.jpg | ade/annotations/validation/b.png 0->255 1->0 "
        "2->1 254->253 255->255\n");
    says("or in VOC", "segmentation",
         SET("path", inside("voc"), "layout", "voc", "split", "test"),
         "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 21; "
         "background, aeroplane, bicycle, bird, boat, bottle, bus, car, cat, chair, "
         "cow, diningtable, dog, horse, motorbike, person, pottedplant, sheep, sofa, "
         "train, tvmonitor\n"
         "voc/JPEGImages/b.jpg | voc/SegmentationClass/b.png 0->0 1->1 2->2 254->254 "
         "255->255\n");
    says("of which some are others'", "segmentation",
         SET("path", inside("voc"), "layout", "voc", "num_classes", "5"),
         "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 5\n"
         "voc/JPEGImages/a.jpg | voc/SegmentationClass/a.png 0->0 1->1 2->2 254->254 "
         "255->255\n");
}

int
main(void)
{
    cx = need_ctx();
    test_packed();
    test_masked();
    test_masked_limits();
    test_labelled();
    test_instructions();
    test_tables();
    test_folders();
    test_csv();
    test_masks();
    et_ctx_free(&cx);
    return done();
}
