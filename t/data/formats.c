/* SPDX-License-Identifier: Apache-2.0 */
/* CIFAR and token files, texts, synthetic data, and summaries. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/data/cache.h"
#include "core/data/cifar.h"
#include "core/data/token_file.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* A data set with options given as text: name, value, name, value, NULL. */
struct opened {
    const struct et_dataset_class *type;
    void *options;
    struct et_dataset *data;
};

static et_status
try_open(struct opened *o, const char *name, const char *const *settings)
{
    o->type = et_dataset_find(name);
    if (!o->type)
        bail("no data set %s", name);
    o->options = calloc(1, o->type->info.options_size);
    need(cx, et_options_init(cx, o->type->info.options, o->options));
    for (; settings && *settings; settings += 2)
        need(cx, et_options_set(cx, o->type->info.options, o->options, settings[0],
                                settings[1]));
    return et_dataset_open(cx, o->type, o->options, &o->data);
}

static void
finish(struct opened *o)
{
    et_dataset_close(&o->data);
    et_options_release(o->type->info.options, o->options);
    free(o->options);
}

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
refused(et_status want, const char *message, const char *name,
        const char *const *settings, const char *why)
{
    struct opened o;
    is_int(try_open(&o, name, settings), want, "%s is refused", why);
    const char *got = take_error(cx);
    ok(strstr(got, message) != NULL, "and the sentence says so: %s", got);
    finish(&o);
}

static void
defaults(void)
{
    int n = 0, sound = 0;
    for (; et_dataset_classes[n]; n++) {
        const struct et_dataset_class *c = et_dataset_classes[n];
        char *options = calloc(1, c->info.options_size);
        need(cx, et_options_init(cx, c->info.options, options));
        struct et_data_options *common = (struct et_data_options *)options;
        et_data_prepare_train(options);
        sound += common->split == ET_SPLIT_TRAIN && common->shuffle;
        et_data_prepare_eval(options);
        sound += common->split == ET_SPLIT_TEST && !common->shuffle;
        sound += common->workers == ET_INT_UNSET &&
                 common->batch_size == ET_INT_UNSET &&
                 common->subset_num_batches == -1 && !common->drop_last;
        sound += et_dataset_find(c->info.name) == c && (!c->sample) != (!c->tokens);
        et_options_release(c->info.options, options);
        free(options);
    }
    ok(n == 23 && sound == 4 * n, "all %d data sets have the common options' defaults",
       n);
}

static void
cifar(void)
{
    static uint8_t bytes[2 * 3074];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i % 251);
    bytes[0] = 9;
    bytes[3073] = 3;
    const char *dir = scratch_folder();
    for (int i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        bytes[0] = (uint8_t)i;
        write_file(name, bytes, 2 * 3073, i == 5);
    }
    struct opened o;
    need(cx, try_open(&o, "cifar10", SETTINGS("path", dir)));
    /* batches.meta.txt */
    static const char *const classes[] = {"airplane", "automobile", "bird", "cat",
                                          "deer",     "dog",        "frog", "horse",
                                          "ship",     "truck"};
    int wrong = 0;
    for (int i = 0; i < 10; i++)
        wrong += strcmp(o.data->facts.class_names[i], classes[i]) != 0;
    is_int(wrong, 0, "CIFAR-10's classes have their names");
    ok(o.data->facts.n_samples == 10 && o.data->facts.field[0].shape[0] == 3 &&
           o.data->facts.field[0].shape[1] == 32 && o.data->facts.field[1].below == 10,
       "CIFAR-10's five files are one set of 3x32x32");
    int32_t label;
    struct et_pixels p = raw_image(o.data, 6, &label);
    ok(label == 4 && p.data[0] == 1 &&
           p.data[2 * p.stride_c + 3 * p.stride_y + 5] == (1 + 2048 + 96 + 5) % 251,
       "pixels are planar, after the label");
    finish(&o);
    refused(ET_ENOENT, "test_batch.bin", "cifar10",
            SETTINGS("path", dir, "split", "test"), "a file that is missing");
    write_file("data_batch_3.bin", bytes, 2 * 3073 + 1, false);
    refused(ET_EFORMAT, "data_batch_3.bin: 6147 is not a multiple of 3073", "cifar10",
            SETTINGS("path", dir), "a length that does not fit");
    write_file("data_batch_3.bin", bytes, 0, false);
    refused(ET_EFORMAT, "data_batch_3.bin: 0 bytes: no samples", "cifar10",
            SETTINGS("path", dir), "an empty file");
    bytes[3073] = 10;
    write_file("data_batch_3.bin", bytes, 2 * 3073, false);
    refused(ET_EFORMAT, "data_batch_3.bin: label 10 at index 1 but 10 classes",
            "cifar10", SETTINGS("path", dir), "a label beyond the classes");

    bytes[0] = 19;
    bytes[1] = 99;
    bytes[3074] = 0;
    bytes[3075] = 50;
    write_file("train.bin", bytes, 2 * 3074, false);
    need(cx, try_open(&o, "cifar100", SETTINGS("path", dir)));
    (void)raw_image(o.data, 0, &label);
    ok(o.data->facts.field[1].below == 100 && label == 99,
       "CIFAR-100 has 100 fine classes");
    finish(&o);
    need(cx, try_open(&o, "cifar100", SETTINGS("path", dir, "labels", "coarse")));
    (void)raw_image(o.data, 0, &label);
    ok(o.data->facts.field[1].below == 20 && label == 19, "or 20 coarse ones");
    finish(&o);
}

static void
token_files(void)
{
    static uint8_t bytes[40000];
    for (int i = 0; i < 20000; i++) {
        bytes[2 * i] = (uint8_t)i;
        bytes[2 * i + 1] = (uint8_t)(i >> 8);
    }
    char path[600];
    snprintf(path, sizeof path, "%s",
             write_file("train.bin", bytes, sizeof bytes, false));
    write_file("val.bin", bytes + 100, 100, false);
    struct opened o;
    static int32_t out[20000];
    struct et_error why = {0};
    need(cx, try_open(&o, "tokens", SETTINGS("path", path, "seq_len", "8")));
    need(cx, o.data->type->tokens(o.data, 0, 18000, out, &why));
    ok(o.data->facts.n_tokens == 18000 && o.data->facts.field[0].below == 50257 &&
           out[0] == 0 && out[300] == 300 && out[17999] == 17999,
       "of a file train has the first nine tenths, 16-bit little-endian");
    finish(&o);
    need(cx, try_open(&o, "tokens",
                      SETTINGS("path", path, "split", "test", "header", "40")));
    need(cx, o.data->type->tokens(o.data, 0, 1, out, &why));
    ok(o.data->facts.n_tokens == 1998 && out[0] == 20 + 19980 - 1998,
       "test has the rest, after the header");
    finish(&o);
    need(cx,
         try_open(&o, "tokens",
                  SETTINGS("path", scratch_folder(), "split", "test", "seq_len", "8")));
    need(cx, o.data->type->tokens(o.data, 0, 50, out, &why));
    ok(o.data->facts.n_tokens == 50 && out[0] == 50 && out[49] == 99,
       "of a folder test has all of val.bin");
    finish(&o);

    need(cx, try_open(&o, "tokens",
                      SETTINGS("path", path, "vocab_size", "17000", "batch_size", "4",
                               "shuffle", "false")));
    is_int(o.data->type->tokens(o.data, 16990, 20, out, &why), ET_EFORMAT,
           "a token beyond the vocabulary is refused");
    ok(strstr(why.message, "train.bin: token 17000 at 17000 >= vocabulary 17000"),
       "and the sentence says where: %s", why.message);
    ok(o.data->type->tokens(o.data, 16990, 10, out, &why) == ET_OK && out[9] == 16999,
       "the last token of the vocabulary is read");
    is_int(o.data->type->tokens(o.data, 16990, 11, out, &why), ET_EFORMAT,
           "and the one behind it refused, where none is larger");
    if (truncate(path, 1000) != 0)
        bail("cannot cut %s", path);
    is_int(o.data->type->tokens(o.data, 490, 20, out, &why), ET_EIO,
           "a file cut while it is read is an error");
    ok(strstr(why.message,
              "train.bin shrank from 39.1 KiB to 1000 bytes while training"),
       "and the sentence says so: %s", why.message);
    /* Through the loader the sentence has the sample's number. */
    struct et_loader *loader;
    const struct et_batch *b;
    need(cx, et_loader_new(cx, o.data, &(struct et_loader_config){0}, &loader));
    is_int(et_loader_next(cx, loader, &b), ET_EIO, "which the loader passes on");
    ok(strstr(take_error(cx), "(sample 0)"), "with the number of the sample");
    et_loader_free(&loader);
    finish(&o);

    write_file("odd.bin", bytes, 5, false);
    snprintf(path, sizeof path, "%s/odd.bin", scratch_folder());
    refused(ET_EFORMAT, "odd.bin: 5 bytes is not a multiple of 2", "tokens",
            SETTINGS("path", path), "an odd length");
    write_file("odd.bin", bytes, 100, false);
    refused(ET_EFORMAT, "tokens: 45 tokens (train) but seq_len 128 needs 129", "tokens",
            SETTINGS("path", path), "a file shorter than a sample");
    refused(ET_EFORMAT, "odd.bin: 100 bytes but a header of 1024", "tokens",
            SETTINGS("path", path, "header", "1Ki"), "a file shorter than its header");

    snprintf(path, sizeof path, "%s",
             write_file("text", "In the beginning God created", 28, false));
    refused(ET_EFORMAT, "empty: no tokens in 0 bytes", "text_bytes",
            SETTINGS("path", write_file("empty", "", 0, false), "seq_len", "4"),
            "a file without a token");
    need(cx, try_open(&o, "text_bytes", SETTINGS("path", path, "seq_len", "4")));
    need(cx, o.data->type->tokens(o.data, 0, 2, out, &why));
    ok(o.data->facts.n_tokens == 26 && o.data->facts.field[0].below == 256 &&
           o.data->facts.n_samples == 6 && out[0] == 'I' && out[1] == 'n',
       "a text's bytes are its tokens");
    finish(&o);
}

static et_status
write_word(struct et_ctx *ctx, int fd, void *data)
{
    int *calls = data;
    ++*calls;
    if (*calls > 2)
        return ET_FAIL(ctx, ET_EIO, "third call");
    return write(fd, "word", 4) == 4 ? ET_OK : ET_EIO;
}

static void
caches(void)
{
    char home[300], path[400];
    snprintf(home, sizeof home, "%s/cache", scratch_folder());
    setenv("XDG_CACHE_HOME", home, 1);
    int calls = 0, fd = -1;
    char text[8] = "";
    need(cx, eti_cache_open(cx, "thing", 4, write_word, &calls, &fd));
    ok(pread(fd, text, 8, 0) == 4 && !strcmp(text, "word"),
       "what is not cached is made");
    close(fd);
    need(cx, eti_cache_open(cx, "thing", 4, write_word, &calls, &fd));
    ok(calls == 1 && pread(fd, text, 8, 0) == 4, "what is cached is read");
    close(fd);
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    is_int(eti_cache_open(cx, "thing", 4, write_word, &calls, &fd), ET_EIO,
           "without a cache there is an error");
    et_error_clear(cx);
    need(cx, eti_temporary_open(cx, write_word, &calls, &fd));
    ok(calls == 2 && pread(fd, text, 8, 0) == 4, "and a temporary file serves");
    close(fd);
    setenv("XDG_CACHE_HOME", home, 1);
    is_int(eti_cache_open(cx, "other", -1, write_word, &calls, &fd), ET_EIO,
           "what cannot be made is an error");
    et_error_clear(cx);
    snprintf(path, sizeof path, "%s/etude/thing", home);
    unlink(path);
    snprintf(path, sizeof path, "%s/etude", home);
    ok(rmdir(path) == 0, "and leaves no file behind");
    rmdir(home);
}

static void
bible(void)
{
    if (access("/usr/bin/bible", X_OK) != 0) {
        skip(4, "bible-kjv is not installed");
        return;
    }
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    struct opened o;
    static int32_t out[64];
    struct et_error why;
    need(cx, try_open(&o, "bible_kjv", SETTINGS("split", "test")));
    int64_t test = o.data->facts.n_tokens;
    need(cx, o.data->type->tokens(o.data, test - 6, 6, out, &why));
    is_int(out[0] == 'A' && out[4] == '.' && out[5] == '\n', 1,
           "the Bible ends with Amen");
    finish(&o);
    need(cx, try_open(&o, "bible_kjv", NULL));
    need(cx, o.data->type->tokens(o.data, 0, 20, out, &why));
    char text[21] = "";
    for (int i = 0; i < 20; i++)
        text[i] = (char)out[i];
    is_str(text, "Ge1:1 In the beginni", "and begins with Genesis");
    is_int(o.data->facts.n_tokens + test, 4404412, "it has 4.4 million bytes");
    is_int(test, 440441, "of which a tenth is to test");
    finish(&o);
    refused(ET_ENOENT, "cannot run /nowhere/bible", "bible_kjv",
            SETTINGS("path", "/nowhere/bible"), "a program that is missing");
    refused(ET_EFORMAT, "/bin/true printed 0 verses, not 31102", "bible_kjv",
            SETTINGS("path", "/bin/true"), "another program");
    refused(ET_EIO, "/bin/false failed with status 1", "bible_kjv",
            SETTINGS("path", "/bin/false"), "a program that fails");
}

/* A program that prints LINES lines of LETTER and ends with STATUS. */
static void
put_program(char letter, int lines, const char *status, char path[512])
{
    char text[256];
    int n = snprintf(text, sizeof text,
                     "#!/bin/sh\ni=0\nwhile [ $i -lt %d ]; do echo %c; i=$((i+1)); "
                     "done\n%s\n",
                     lines, letter, status);
    snprintf(path, 512, "%s", write_file("program", text, (size_t)n, false));
    if (chmod(path, 0755) != 0)
        bail("cannot make %s a program", path);
}

/* Texts of other programs: each has its own in the cache. */
static void
other_bibles(void)
{
    enum { VERSES = 31102 };
    static const struct {
        int lines;
        const char *status, *says;
    } rows[] = {{VERSES - 1, "", "printed 31101 verses, not 31102"},
                {VERSES + 1, "", "printed 31103 verses, not 31102"},
                {VERSES, "exit 1", "failed with status 1"},
                {VERSES, "exit 3", "failed with status 3"},
                {VERSES, "kill -9 $$", "failed with status 137"}};
    char path[512];
    struct et_error why;
    int32_t out[2];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_program('A', rows[i].lines, rows[i].status, path);
        refused(i < 2 ? ET_EFORMAT : ET_EIO, rows[i].says, "bible_kjv",
                SETTINGS("path", path), "a program that does not print the text");
    }
    setenv("XDG_CACHE_HOME", scratch_folder(), 1);
    int wrong = 0;
    for (int i = 0; i < 3; i++) { /* the last is the first one again */
        struct opened o;
        const char letter = i == 1 ? 'B' : 'A';
        const struct timespec times[2] = {{.tv_sec = 1000 + i % 2},
                                          {.tv_sec = 1000 + i % 2}};
        put_program(letter, VERSES, "", path);
        if (utimensat(AT_FDCWD, path, times, 0) != 0)
            bail("no time for %s", path);
        need(cx, try_open(&o, "bible_kjv", SETTINGS("path", path)));
        need(cx, o.data->type->tokens(o.data, 0, 2, out, &why));
        wrong += out[0] != letter || out[1] != '\n';
        finish(&o);
    }
    is_int(wrong, 0, "programs of one size and of other times have each its own text");
    unlink(path);
}

/* What data sets say before they are opened. */
static void
told(void)
{
    static const char *const names[] = {"text", "bible_kjv", "packed_text",
                                        "instructions", "text_bytes"};
    for (int i = 0; i < 5; i++)
        for (int named = 0; named < (i < 4 ? 2 : 1); named++) {
            struct et_data_facts f = {0};
            const struct et_dataset_class *type = et_dataset_find(names[i]);
            void *options;
            need(cx, et_options_new(cx, &type->info, NULL, &options));
            if (named)
                need(cx, et_options_set(cx, type->info.options, options, "tokenizer",
                                        "a.json"));
            type->describe(options, &f);
            is_int(f.field[0].below, named ? 0 : 256, "%s has %s tokens", names[i],
                   named ? "as many as its tokenizer has" : "256");
            et_options_free(&type->info, &options);
        }
}

static void
synthetic(void)
{
    struct opened o, again;
    struct et_data_summary s;
    const char *const *settings =
        SETTINGS("num_samples", "500", "num_unique", "200", "resolution", "16");
    need(cx, try_open(&o, "synthetic_images", settings));
    need(cx, try_open(&again, "synthetic_images", settings));
    int32_t a, b, c;
    const uint8_t *p = raw_image(o.data, 7, &a).data;
    const uint8_t *r = raw_image(o.data, 207, &c).data;
    const uint8_t *q = raw_image(again.data, 7, &b).data;
    ok(a == b && memcmp(p, q, 768) == 0,
       "a synthetic image is a function of its number");
    ok(p == r && a == c, "and repeats after num_unique");
    finish(&again);
    need(cx, et_data_summarise(cx, o.data, 0, &s));
    int most = 0;
    int64_t sum = 0;
    for (int i = 0; i < 10; i++) {
        sum += s.counts[i];
        most = s.counts[i] > most ? (int)s.counts[i] : most;
    }
    ok(s.n_read == 500 && sum == 500 && s.n_counts == 10 && s.n_first == 32 &&
           s.first[7] == a,
       "a summary counts labels and shows the first");
    /* 153,600 values of deviation 20: five standard errors; bytes round by 1/12. */
    is_near(s.mean[0] * 255, 128, 0.01, "noise has mean 128");
    is_near(s.std[2] * 255, 20, 0.01, "and deviation 20");
    et_data_summary_release(cx, &s);
    finish(&o);

    /* A deviation a class, or what leaves eight in all. */
    static const struct {
        const char *classes;
        int n, step;
    } separable[] = {{"5", 5, 20}, {"9", 9, 20}, {"17", 17, 10}};
    for (int row = 0; row < 3; row++) {
        const int n = separable[row].n;
        need(cx, try_open(&o, "synthetic_images",
                          SETTINGS("type", "separable", "channels", "1", "num_classes",
                                   separable[row].classes)));
        double mean[17] = {0}, count[17] = {0};
        for (int i = 0; i < 100; i++) {
            p = raw_image(o.data, i, &a).data;
            double total = 0;
            for (int k = 0; k < 1024; k++)
                total += p[k];
            mean[a] += total / 1024;
            count[a]++;
        }
        int rises = 0;
        for (int k = 0; k < n; k++) {
            double want = 128 + separable[row].step * (k - (n - 1) / 2.0);
            rises += count[k] > 0 && fabs(mean[k] / count[k] - want) < 1;
        }
        is_int(rises, n, "images of %d classes are %d bytes apart", n,
               separable[row].step);
        finish(&o);
    }

    need(cx, try_open(&o, "synthetic_tokens",
                      SETTINGS("vocab_size", "7", "seq_len", "16")));
    int32_t x[100], y[100];
    struct et_error why;
    need(cx, o.data->type->tokens(o.data, 0, 100, x, &why));
    int same = 0;
    for (int from = 0; from < 50; from++) {
        need(cx, o.data->type->tokens(o.data, from, 50, y, &why));
        same += memcmp(x + from, y, 50 * sizeof *y) == 0;
    }
    is_int(same, 50, "synthetic tokens are the same wherever one begins to read");
    need(cx, et_data_summarise(cx, o.data, 70000, &s));
    int even = 0;
    for (int k = 0; k < 7; k++)
        even += llabs(s.counts[k] - 10000) < 5 * 93; /* sqrt(70000 / 7 * 6 / 7) */
    ok(even == 7 && s.n_counts == 7 && s.first[3] == x[3], "and even");
    et_data_summary_release(cx, &s);
    finish(&o);
}

int
main(void)
{
    unsetenv("ETUDE_CACHE_DIR"); /* the cache is where each test has it */
    cx = need_ctx();
    defaults();
    cifar();
    token_files();
    caches();
    bible();
    other_bibles();
    told();
    synthetic();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "all memory is given back");
    et_ctx_free(&cx);
    return done();
}
