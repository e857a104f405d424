/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets of text: a stream through a tokenizer, and tokens that are hidden: how
 * many, by what, and that the draws are the sample's own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/fields.h"
#include "core/data/labelled_rows.h"
#include "core/data/text_source.h"
#include "etude/rng.h"
#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char text_path[512], tokenizer[512], bert[512];

/* Options of NAME as a recipe gives them: "key=value" and so on, ending with NULL. */
static void *
options_of(const struct et_dataset_class *c, const char *const *set)
{
    void *options;
    need(cx, et_alloc(cx, c->info.options_size, &options));
    need(cx, et_options_init(cx, c->info.options, options));
    for (int i = 0; set[i]; i++) {
        char key[64];
        const char *equals = strchr(set[i], '=');
        snprintf(key, sizeof key, "%.*s", (int)(equals - set[i]), set[i]);
        need(cx, et_options_set(cx, c->info.options, options, key, equals + 1));
    }
    return options;
}

static et_status
try_open(const char *name, const char *const *set, struct et_dataset **out)
{
    const struct et_dataset_class *c = et_dataset_find(name);
    void *options = options_of(c, set);
    et_status s = et_dataset_open(cx, c, options, out);
    et_options_release(c->info.options, options);
    et_free(cx, options);
    return s;
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static char *
key(const char *name, const char *value)
{
    static char text[8][600];
    static int at;
    at = (at + 1) % 8;
    snprintf(text[at], sizeof *text, "%s=%s", name, value);
    return text[at];
}

static void
write_lines(int n, const char *word)
{
    FILE *f = fopen(text_path, "w");
    for (int i = 0; f && i < n; i++)
        fprintf(f, "line %d of the %s, and God said that it was good\n", i, word);
    if (!f || fclose(f) != 0)
        bail("cannot write %s", text_path);
}

/* ---- the stream ---- */

static int64_t
tokens_of(const char *split)
{
    struct et_dataset *d;
    need(cx, try_open("text",
                      OPTIONS(key("path", text_path), key("tokenizer", tokenizer),
                              "document=line", "seq_len=4", key("split", split)),
                      &d));
    int64_t n = d->facts.n_tokens;
    et_dataset_close(&d);
    return n;
}

static void
test_stream(void)
{
    struct et_tokenizer *t;
    struct et_encoder *e;
    struct et_dataset *d;
    struct et_error why;
    struct et_text back;
    int32_t ids[64];
    write_lines(400, "text");
    int64_t train = tokens_of("train"), test = tokens_of("test");
    ok(train > 8 * test && test > 0, "a tenth of the documents is the test's");
    is_int(tokens_of("train"), train, "the same text has the same tokens");
    need(cx, try_open("text",
                      OPTIONS(key("path", text_path), key("tokenizer", tokenizer),
                              "document=line"),
                      &d));
    need(cx, d->type->tokens(d, 0, 64, ids, &why));
    need(cx, et_tokenizer_open(cx, tokenizer, &t));
    need(cx, et_encoder_new(cx, t, &e));
    need(cx, et_decode(e, ids, 64, 0, &back));
    ok(strncmp(back.text, "line 0 of the text, and God said", 32) == 0 ||
           strncmp(back.text, "line 1 of the text, and God said", 32) == 0,
       "and they are those of the text");
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    et_dataset_close(&d);
    write_lines(900, "other text");
    ok(tokens_of("train") > 2 * train, "a text that was changed is read again");
}

/* ---- hidden tokens ---- */

static struct et_dataset *
open_masked(const char *split)
{
    struct et_dataset *d;
    need(cx, try_open("masked_text",
                      OPTIONS(key("path", text_path), key("tokenizer", bert),
                              "document=line", "seq_len=32", key("split", split)),
                      &d));
    return d;
}

struct counts {
    int64_t tokens, chosen, masked, kept, specials, wrong;
};

static void
count(const struct et_tokenizer *t, const int32_t *token, const int32_t *target,
      const int32_t *original, int64_t T, struct counts *c)
{
    struct et_tokenizer_info info;
    et_tokenizer_get_info(t, &info);
    for (int64_t i = 0; i < T; i++) {
        bool special = et_tokenizer_is_special(t, original[i]);
        c->tokens += !special;
        if (target[i] == ET_IGNORE_INDEX) {
            c->wrong += token[i] != original[i];
            continue;
        }
        c->chosen++;
        c->specials += special;
        c->wrong += target[i] != original[i];
        c->masked += token[i] == info.role[ET_TOKEN_MASK];
        c->kept += token[i] == original[i];
    }
}

/* What sample AT is before tokens are hidden. */
static void
read_original(struct et_dataset *d, const struct et_tokenizer *t, int64_t at,
              int32_t *out)
{
    struct et_tokenizer_info info;
    struct et_error why;
    et_tokenizer_get_info(t, &info);
    out[0] = info.role[ET_TOKEN_CLS];
    out[31] = info.role[ET_TOKEN_SEP];
    need(cx, eti_token_file_tokens(d, at * 30, 30, out + 1, &why));
}

static void
test_masked(void)
{
    struct et_tokenizer *t;
    struct et_dataset *d = open_masked("train");
    struct eti_room room = {0};
    struct counts c = {0};
    need(cx, et_tokenizer_open(cx, bert, &t));
    for (int64_t at = 0; at < d->facts.n_samples; at++) {
        struct et_rng draws = eti_sample_draws(3, at);
        int32_t original[32];
        struct et_sample s;
        struct et_error why;
        bool broken;
        need(cx, eti_sample_read(d, at, &draws, &room, &s, &why, &broken));
        read_original(d, t, at, original);
        count(t, s.v[0].data, s.v[1].data, original, 32, &c);
    }
    double chosen = (double)c.chosen, tokens = (double)c.tokens;
    ok(c.tokens > 10000 && chosen / tokens > 0.135 && chosen / tokens < 0.165,
       "of the tokens 15 %% are chosen (%.3f)", chosen / tokens);
    double masked = (double)c.masked / chosen, kept = (double)c.kept / chosen;
    ok(masked > 0.76 && masked < 0.84, "of these 80 %% are the mask (%.3f)", masked);
    ok(kept > 0.07 && kept < 0.13, "and 10 %% stay (%.3f)", kept);
    is_int(c.wrong, 0, "targets are the tokens that were chosen, others stay");
    is_int(c.specials, 0, "no mark is chosen");
    eti_room_free(&room);
    et_tokenizer_free(&t);
    et_dataset_close(&d);
}

/* Of a tokenizer whose first token is a mark that stands in texts, too. */
static void
test_first_mark(void)
{
    static const char unknown[] = "and God said \xc9\xb8 unto \xca\x98 the\n";
    char path[512], pieces[512];
    struct et_dataset *d;
    struct eti_room room = {0};
    int64_t marks = 0, chosen = 0, others = 0;
    snprintf(path, sizeof path, "%s/unknown.txt", scratch_folder());
    snprintf(pieces, sizeof pieces, "%.*s/unigram.json",
             (int)(strrchr(bert, '/') - bert), bert);
    FILE *f = fopen(path, "w");
    for (int i = 0; f && i < 200; i++)
        fputs(unknown, f);
    if (!f || fclose(f) != 0)
        bail("%s: cannot write it", path);
    need(cx, try_open("masked_text",
                      OPTIONS(key("path", path), key("tokenizer", pieces),
                              "document=line", "seq_len=32", "mask_prob=0.5"),
                      &d));
    for (int64_t at = 0; at < d->facts.n_samples; at++) {
        struct et_rng draws = eti_sample_draws(3, at);
        struct et_sample s;
        struct et_error why;
        bool broken;
        need(cx, eti_sample_read(d, at, &draws, &room, &s, &why, &broken));
        const int32_t *token = s.v[0].data, *target = s.v[1].data;
        for (int64_t i = 0; i < s.v[0].shape[0]; i++) {
            chosen += target[i] == 0;
            marks += target[i] == ET_IGNORE_INDEX && token[i] == 0;
            others += target[i] > 0;
        }
    }
    ok(marks > 100 && others > 100 && chosen == 0,
       "an unknown token, number 0, is never chosen (%lld stay)", (long long)marks);
    eti_room_free(&room);
    et_dataset_close(&d);
}

/* ---- documents kept apart ---- */

static struct et_dataset *
open_apart(const char *seq_len, const char *split)
{
    struct et_dataset *d;
    need(cx, try_open("masked_text",
                      OPTIONS(key("path", text_path), key("tokenizer", bert),
                              "document=line", "packing=best_fit",
                              key("seq_len", seq_len), key("split", split)),
                      &d));
    return d;
}

struct apart {
    int64_t documents, whole, wrong, text, chosen;
};

/* Looks at the N tokens of a sample, whose documents are between marks. */
static void
look_apart(const struct et_tokenizer *t, const struct et_sample *s, struct apart *c)
{
    struct et_tokenizer_info info;
    const int32_t *token = s->v[0].data, *target = s->v[1].data,
                  *document = s->v[2].data, *position = s->v[3].data;
    const int64_t n = s->v[0].shape[0];
    et_tokenizer_get_info(t, &info);
    for (int64_t i = 0; i < n; i++) {
        bool begins = i == 0 || document[i] != document[i - 1];
        bool ends = i == n - 1 || document[i] != document[i + 1];
        int32_t original = target[i] == ET_IGNORE_INDEX ? token[i] : target[i];
        c->documents += begins;
        c->wrong += begins != (token[i] == info.role[ET_TOKEN_CLS]);
        c->wrong += ends != (token[i] == info.role[ET_TOKEN_SEP]);
        c->wrong += position[i] != (begins ? 0 : position[i - 1] + 1);
        c->wrong +=
            document[i] != (begins ? (i ? document[i - 1] + 1 : 1) : document[i - 1]);
        c->text += !et_tokenizer_is_special(t, original);
        c->chosen += target[i] != ET_IGNORE_INDEX;
    }
}

static struct apart
look_at_apart(const char *seq_len)
{
    struct et_tokenizer *t;
    struct eti_room room = {0};
    struct apart c = {0};
    need(cx, et_tokenizer_open(cx, bert, &t));
    for (int i = 0; i < 2; i++) {
        struct et_dataset *d = open_apart(seq_len, i ? "test" : "train");
        for (int64_t at = 0; at < d->facts.n_samples; at++) {
            struct et_rng draws = eti_sample_draws(3, at);
            struct et_sample s;
            struct et_error why;
            bool broken;
            need(cx, eti_sample_read(d, at, &draws, &room, &s, &why, &broken));
            c.wrong += s.v[0].shape[0] != d->type->length(d, at);
            look_apart(t, &s, &c);
        }
        et_dataset_close(&d);
    }
    eti_room_free(&room);
    et_tokenizer_free(&t);
    return c;
}

static void
test_apart(void)
{
    enum { LINES = 100 };
    write_lines(LINES, "text");
    struct apart whole = look_at_apart("128"), cut = look_at_apart("16");
    is_int(whole.documents, LINES, "best_fit: each line is a document, whole");
    is_int(whole.wrong, 0, "between marks, with a number and places of its own");
    double share = (double)whole.chosen / (double)whole.text;
    ok(share > 0.12 && share < 0.18, "of whose tokens 15 %% are chosen (%.3f)", share);
    ok(cut.documents > LINES && cut.wrong == 0,
       "one longer than a sample is cut, and its parts have marks, too");
    is_int(cut.text, whole.text, "no token is lost by it");
}

/* ---- in batches ---- */

enum { SUMMED = 2 };

/* The sum of all numbers of an epoch's batches, in order, but for the first SUMMED;
 * read from batch FROM on. */
static uint64_t
sum_epoch(const char *split, int workers, int64_t epoch, int64_t from,
          const char *packing)
{
    char text[32];
    struct et_dataset *d;
    struct et_loader *l;
    const struct et_batch *b;
    uint64_t sum = 0;
    bool train = strcmp(split, "train") == 0;
    snprintf(text, sizeof text, "workers=%d", workers);
    need(cx, try_open("masked_text",
                      OPTIONS(key("path", text_path), key("tokenizer", bert),
                              "document=line", "seq_len=32", "batch_size=8", text,
                              "shuffle=false", key("split", split),
                              key("packing", packing)),
                      &d));
    struct et_loader_config config = {.seed = 17, .train = train};
    need(cx, et_loader_new(cx, d, &config, &l));
    need(cx, et_loader_seek(cx, l, epoch, from));
    for (int64_t at = 0;; at++) {
        need(cx, et_loader_next(cx, l, &b));
        if (!b)
            break;
        for (int f = 0; f < 2 && at + from >= SUMMED; f++)
            for (int64_t i = 0; i < et_desc_count(&b->field[f].desc); i++)
                sum = sum * 31 + (uint64_t)b->field[f].host.i32[i];
        et_loader_release(l, b);
    }
    et_loader_free(&l);
    et_dataset_close(&d);
    return sum;
}

static void
test_batches(void)
{
    static const char *const packings[] = {"wrapped", "best_fit"};
    for (int i = 0; i < 2; i++) {
        const char *p = packings[i];
        uint64_t first = sum_epoch("train", 0, 0, 0, p);
        ok(first == sum_epoch("train", 2, 0, 0, p), "%s: workers hide the same tokens",
           p);
        ok(first == sum_epoch("train", 0, 0, SUMMED, p), "as does a run that goes on");
        ok(first != sum_epoch("train", 0, 1, 0, p), "another epoch hides others");
        ok(sum_epoch("test", 0, 0, 0, p) == sum_epoch("test", 0, 1, 0, p),
           "but every evaluation the same");
    }
}

static void
test_refused(void)
{
    struct et_dataset *d;
    ok(try_open("masked_text",
                OPTIONS(key("path", text_path), key("tokenizer", tokenizer)),
                &d) == ET_EINVAL &&
           strstr(take_error(cx), "has no token that masks"),
       "a tokenizer without a mask is refused");
    ok(try_open(
           "masked_text",
           OPTIONS(key("path", text_path), key("tokenizer", bert), "seq_len=90000"),
           &d) == ET_EINVAL,
       "as are fewer tokens than a sample has");
    (void)take_error(cx);
}

/* ---- labelled texts ---- */

static struct et_dataset *
open_labelled(const char *path, const char *split, const char *target)
{
    struct et_dataset *d;
    need(cx, try_open("labelled_text",
                      OPTIONS(key("path", path), key("tokenizer", bert), "text=a",
                              "text2=b", key("split", split), key("target", target),
                              "seq_len=16"),
                      &d));
    return d;
}

/* Is sample AT what the tokenizer makes of the pair, with label LABEL? */
static bool
is_pair(const struct et_dataset *d, int64_t at, const char *a, const char *b,
        int32_t label)
{
    struct et_tokenizer *t;
    struct et_encoder *e;
    struct et_encoding want;
    struct eti_room room = {0};
    struct et_sample s;
    struct et_error why;
    bool broken;
    need(cx, et_tokenizer_open(cx, bert, &t));
    need(cx, et_encoder_new(cx, t, &e));
    need(cx,
         et_encode_pair(e, a, strlen(a), b, strlen(b), 16, ET_ENCODE_SPECIAL, &want));
    need(cx, eti_sample_read(d, at, NULL, &room, &s, &why, &broken));
    bool same = s.v[0].shape[0] == want.n && want.n <= 16 &&
                d->type->length(d, at) == want.n &&
                memcmp(s.v[0].data, want.id, (size_t)want.n * sizeof *want.id) == 0 &&
                memcmp(s.v[2].data, want.type, (size_t)want.n) == 0 &&
                *(const int32_t *)s.v[1].data == label;
    eti_room_free(&room);
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    return same;
}

static void
test_labelled(void)
{
    static const char train[] = "id\ta\tb\tlabel\n"
                                "0\tThe heaven\tthe earth\tyes\n"
                                "1\t\"So God\tand it was so and so and so and so\tno\n";
    static const char dev[] = "id\ta\tb\tlabel\r\n0\tOne\ttwo\tmaybe\r\n";
    static const char json[] = "{\"a\": \"x\", \"b\": \"y\", \"label\": 10}\n"
                               "{\"a\": \"z\", \"b\": \"\", \"label\": 9}\n";
    char folder[512];
    struct et_dataset *d;
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    write_file("train.tsv", train, sizeof train - 1, false);
    write_file("dev.tsv", dev, sizeof dev - 1, false);
    d = open_labelled(folder, "train", "class");
    ok(d->facts.n_samples == 2 && et_facts_classes(&d->facts) == 3 &&
           !strcmp(d->facts.class_names[0], "maybe"),
       "a folder has the classes of all its files");
    ok(is_pair(d, 0, "The heaven", "the earth", 2) &&
           is_pair(d, 1, "\"So God", "and it was so and so and so and so", 1),
       "pairs are framed, cut to seq_len, and have their class");
    et_dataset_close(&d);
    d = open_labelled(folder, "test", "class");
    ok(d->facts.n_samples == 1 && is_pair(d, 0, "One", "two", 0),
       "dev is what is evaluated, with the classes of training");
    et_dataset_close(&d);
    char path[512];
    snprintf(path, sizeof path, "%s",
             write_file("x.jsonl", json, sizeof json - 1, false));
    d = open_labelled(path, "train", "class");
    ok(d->facts.n_samples == 2 && !strcmp(d->facts.class_names[0], "9") &&
           is_pair(d, 0, "x", "y", 1),
       "classes that are integers go by their values");
    et_dataset_close(&d);
    d = open_labelled(path, "train", "number");
    struct eti_room room = {0};
    struct et_sample s;
    struct et_error why;
    bool broken;
    need(cx, eti_sample_read(d, 1, NULL, &room, &s, &why, &broken));
    ok(et_facts_classes(&d->facts) == 0 && *(const float *)s.v[1].data == 9,
       "or they are numbers to come close to");
    eti_room_free(&room);
    et_dataset_close(&d);
}

/* Where one class is no number, the empty one too, all go by their letters. */
static void
test_mixed_classes(void)
{
    static const char *const others[] = {"", "x", "1.5", "9 "};
    for (int i = 0; i < 4; i++) {
        struct et_dataset *d;
        char text[256], path[512];
        int n = snprintf(text, sizeof text,
                         "{\"a\":\"x\",\"b\":\"\",\"label\":\"9\"}\n"
                         "{\"a\":\"x\",\"b\":\"\",\"label\":\"%s\"}\n"
                         "{\"a\":\"x\",\"b\":\"\",\"label\":\"10\"}\n",
                         others[i]);
        snprintf(path, sizeof path, "%s",
                 write_file("mixed.jsonl", text, (size_t)n, false));
        d = open_labelled(path, "train", "class");
        int ten = 0, nine = 0;
        for (int k = 0; k < 3; k++) {
            ten = strcmp(d->facts.class_names[k], "10") == 0 ? k : ten;
            nine = strcmp(d->facts.class_names[k], "9") == 0 ? k : nine;
        }
        ok(ten < nine, "beside '%s' 10 is before 9", others[i]);
        et_dataset_close(&d);
    }
}

/* Each tenth row of a file is to test with. */
static void
test_row_split(void)
{
    static char text[2048];
    char path[512], seen[2][128] = {"", ""};
    size_t n = 0;
    for (int i = 0; i < 31; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"a\":\"x\",\"b\":\"\",\"label\":%d}\n", i);
    snprintf(path, sizeof path, "%s", write_file("split.jsonl", text, n, false));
    for (int k = 0; k < 2; k++) {
        struct et_dataset *d = open_labelled(path, k ? "test" : "train", "number");
        struct eti_room room = {0};
        for (int64_t at = 0; at < d->facts.n_samples; at++) {
            struct et_sample s;
            struct et_error why;
            bool broken;
            need(cx, eti_sample_read(d, at, NULL, &room, &s, &why, &broken));
            snprintf(seen[k] + strlen(seen[k]), sizeof seen[k] - strlen(seen[k]), " %g",
                     (double)*(const float *)s.v[1].data);
        }
        eti_room_free(&room);
        et_dataset_close(&d);
    }
    is_str(
        seen[0],
        " 0 1 2 3 4 5 6 7 8 10 11 12 13 14 15 16 17 18 20 21 22 23 24 25 26 27 28 30",
        "nine of ten rows train");
    is_str(seen[1], " 9 19 29", "and the tenth tests");
}

static void
test_bad_numbers(void)
{
    static const char *const labels[] = {"3x", "", "x3", "3 4", "1e"};
    for (int i = 0; i < 5; i++) {
        struct et_dataset *d;
        char text[128], path[512], want[64];
        int n =
            snprintf(text, sizeof text, "a\tb\tlabel\nx\ty\t2\nx\ty\t%s\n", labels[i]);
        snprintf(path, sizeof path, "%s",
                 write_file("numbers.tsv", text, (size_t)n, false));
        et_status s = try_open("labelled_text",
                               OPTIONS(key("path", path), key("tokenizer", bert),
                                       "text=a", "text2=b", "target=number"),
                               &d);
        snprintf(want, sizeof want, "numbers.tsv:3: '%s' is no number", labels[i]);
        const char *why = take_error(cx);
        ok(s == ET_EFORMAT && strstr(why, want), "%s", want);
        if (!strstr(why, want))
            diag("%s", why);
    }
}

/* Tokens are padded with their tokenizer's token for that, their types with 0. */
static void
test_padding(void)
{
    static const char model[] =
        "{\"added_tokens\":[{\"id\":2,\"content\":\"[PAD]\",\"special\":true}],"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"x\":0,\"y\":1},\"merges\":[]}}";
    static const char roles[] = "{\"pad_token\":\"[PAD]\"}",
                      json[] = "{\"a\": \"xyx\", \"b\": \"y\", \"label\": 0}\n";
    char rows[512], path[512];
    struct et_dataset *d;
    snprintf(rows, sizeof rows, "%s",
             write_file("padded.jsonl", json, sizeof json - 1, false));
    write_file("special_tokens_map.json", roles, sizeof roles - 1, false);
    snprintf(path, sizeof path, "%s",
             write_file("tokenizer.json", model, sizeof model - 1, false));
    need(cx, try_open("labelled_text",
                      OPTIONS(key("path", rows), key("tokenizer", path), "text=a",
                              "text2=b", "seq_len=16"),
                      &d));
    is_int(d->facts.field[0].pad, 2, "tokens are padded with the tokenizer's token");
    is_int(d->facts.field[2].pad, 0, "their types with 0");
    et_dataset_close(&d);
}

static void
test_bad_rows(void)
{
    static const struct {
        const char *name, *text, *says;
    } rows[] = {
        {"bad.tsv", "a\tb\n", "bad.tsv:1: no column 'label'"},
        {"bad.tsv", "a\tb\tlabel\nx\ty\t1\nx\ty\n", "bad.tsv:3: no cell in column 3"},
        {"bad.jsonl", "{\"a\": \"x\", \"b\": \"y\"}\n", "bad.jsonl:1: no label called"},
        {"bad.jsonl", "{\"a\": 1, \"b\": \"y\", \"label\": 1}\n",
         "bad.jsonl:1: no text called 'a'"},
        {"bad.jsonl", "\n{\"a\"}\n", "bad.jsonl:2:5: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_dataset *d;
        char path[512];
        snprintf(path, sizeof path, "%s",
                 write_file(rows[i].name, rows[i].text, strlen(rows[i].text), false));
        et_status s = try_open(
            "labelled_text",
            OPTIONS(key("path", path), key("tokenizer", bert), "text=a", "text2=b"),
            &d);
        const char *why = take_error(cx);
        ok(s == ET_EFORMAT && strstr(why, rows[i].says), "refused: %s", rows[i].says);
        if (!strstr(why, rows[i].says))
            diag("%s", why);
    }
}

static et_status
take_label(void *data, const struct eti_labelled_row *row)
{
    double *out = data;
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)row->label.n, row->label.text);
    out[row->line - 1] = strtod(text, NULL);
    return ET_OK;
}

/* A label of JSON is as exact as f32 is. */
static void
test_label_numbers(void)
{
    enum { N = 200 };
    static char text[N * 64];
    const struct eti_row_names names = {.text = "a", .label = "label"};
    struct et_rng r = et_rng_at(3, ET_RNG_USER, 0);
    double want[N], got[N] = {0};
    size_t n = 0;
    int other = 0;
    for (int i = 0; i < N; i++) {
        want[i] = (double)(float)ldexp(et_rng_uniform(&r) - 0.5, i / 2 - N / 4);
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"a\": \"x\", \"label\": %.17g}\n", want[i]);
    }
    need(cx, eti_labelled_rows(cx, write_file("exact.jsonl", text, n, false), &names,
                               take_label, got));
    for (int i = 0; i < N; i++)
        other += (float)got[i] != (float)want[i];
    is_int(other, 0, "numbers to learn are those of the file to the last bit of f32");
}

int
main(void)
{
    const char *source = getenv("ET_SRCDIR") ? getenv("ET_SRCDIR") : ".";
    unsetenv("ETUDE_CACHE_DIR"); /* the cache is where each test has it */
    cx = need_ctx();
    snprintf(text_path, sizeof text_path, "%s/text.txt", scratch_folder());
    snprintf(tokenizer, sizeof tokenizer, "%s/t/golden/tokenizers/gpt2.json", source);
    snprintf(bert, sizeof bert, "%s/t/golden/tokenizers/bert.json", source);
    setenv("XDG_CACHE_HOME", scratch_folder(), 1);
    test_stream();
    test_masked();
    test_first_mark();
    test_batches();
    test_apart();
    test_refused();
    test_labelled();
    test_mixed_classes();
    test_row_split();
    test_bad_numbers();
    test_padding();
    test_bad_rows();
    test_label_numbers();
    et_ctx_free(&cx);
    return done();
}
