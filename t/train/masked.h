/* SPDX-License-Identifier: Apache-2.0 */
/* masked.h: recipes in whose batches some targets count nothing, others more than
 * others: as many in each row as chance has it. */
#ifndef ETUDE_T_TRAIN_MASKED_H
#define ETUDE_T_TRAIN_MASKED_H

#include <stdio.h>

#include "t/tap.h"
#include "t/train/recipes.h"

#define MASKED_SIZES "n_layers: 1, d_model: 16, n_heads: 2, dropout: 0"
#define MASKED_SGD   "optimizer: {name: sgd, lr: 0.05}\n"
/* Classes that weigh differently; also with a part that all share. */
#define WEIGHED                                                                        \
    "max_duration: 6ba\nseed: 17\nmodel: mlp\n" IMAGE_DATA MASKED_SGD                  \
    "loss:\n  name: cross_entropy\n"                                                   \
    "  weight: [0.1, 3, 1, 0.5, 2, 1, 7, 1, 0.2, 1]\n"
#define WEIGHED_SMOOTH WEIGHED "  smoothing: 0.3\n"
/* Class 3 is left out, as if it were no class at all. */
#define LEFT_OUT                                                                       \
    "max_duration: 6ba\nseed: 17\nmodel: mlp\n" IMAGE_DATA MASKED_SGD                  \
    "loss:\n  name: cross_entropy\n  ignore_index: 3\n  smoothing: 0.2\n"

static inline void
write_masked(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

/* Answers of 1 to 24 bytes behind questions of 1 to 6: rows of other lengths, and of
 * each only a part counts. */
static inline void
write_asked(const char *folder)
{
    char text[8192];
    size_t n = 0;
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"prompt\": \"%.*s\", \"response\": \"%.*s\"}\n",
                              1 + i % 6, "question", 1 + i * 7 % 24,
                              "an answer of some length or less");
    write_masked(folder, "asked.jsonl", text);
}

/* The recipe of a gpt2 that learns the answers, whose file is made in FOLDER; borrowed
 * until the next call. */
static inline const char *
asked_recipe(const char *folder)
{
    static char text[2048];
    write_asked(folder);
    snprintf(text, sizeof text,
             "max_duration: 6ba\nseed: 17\n"
             "model: {name: gpt2, " MASKED_SIZES ", max_seq_len: 32}\n"
             "train_data: {name: instructions, path: %s/asked.jsonl, packing: none,\n"
             "  seq_len: 32, pad_to_multiple: 4, batch_size: 8, workers: 0}\n%s",
             folder, MASKED_SGD);
    return text;
}

/* The recipe of a bert that guesses one token of 25: some rows have none. */
static inline const char *
guessed_recipe(const char *folder)
{
    static char text[2048];
    static const char vocabulary[] =
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\ngreen\nblue\nsea\nsky\nsun\n";
    char words[4096];
    size_t n = 0;
    for (int i = 0; i < 600; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "%s ",
                              (const char *[]){"red", "green", "blue", "sea", "sky",
                                               "sun"}[(i * i + i / 7) % 6]);
    write_masked(folder, "vocab.txt", vocabulary);
    write_masked(folder, "words.txt", words);
    snprintf(text, sizeof text,
             "max_duration: 6ba\nseed: 17\n"
             "model: {name: bert, " MASKED_SIZES ", max_seq_len: 8}\n"
             "train_data: {name: masked_text, path: %s/words.txt, mask_prob: 0.04,\n"
             "  tokenizer: %s/vocab.txt, seq_len: 8, batch_size: 8, workers: 0}\n%s",
             folder, folder, MASKED_SGD);
    return text;
}

#endif
