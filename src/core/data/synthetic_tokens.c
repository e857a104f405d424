/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic_tokens.c: tokens at random, for tests and for measuring speed.
 *
 * Token i is a pure function of (seed, i): word i mod 4 of Philox block i / 4, scaled
 * to the vocabulary. No memory, however long. */
#include "etude/data.h"

struct options {
    struct et_data_options common;
    int64_t num_samples, vocab_size, seed;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTIONS(struct options),
    ET_DATA_TOKEN_OPTIONS(struct options),
    {
        .name = "num_samples",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_samples),
        .def = "10000",
        .min = 1,
        .max = 1e12,
        .unit = "samples",
        .help = "of an epoch",
    },
    {
        .name = "vocab_size",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, vocab_size),
        .def = "50257",
        .min = 2,
        .max = 1e6,
        .unit = "tokens",
        .help = "all tokens are below it",
    },
    {
        .name = "seed",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, seed),
        .def = "0",
        .max = UINT32_MAX,
        .help = "of the tokens; the run's own orders them",
    },
    {.name = NULL},
};

static et_status
open_tokens(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    (void)cx;
    /* One window more, so that training has its samples at every phase. */
    et_facts_stream(&self->facts, (o->num_samples + 1) * o->common.seq_len,
                    o->vocab_size);
    return ET_OK;
}

static et_status
read_tokens(const struct et_dataset *self, int64_t at, int64_t n, int32_t *out,
            struct et_error *why)
{
    const struct options *o = self->options;
    (void)why;
    uint64_t key = et_rng_key((uint32_t)o->seed, ET_RNG_DATA);
    uint32_t word[4];
    for (int64_t i = at; i < at + n; i++) {
        if (i == at || i % 4 == 0)
            et_philox(word, key, (uint64_t)o->common.split, (uint64_t)i / 4);
        *out++ = (int32_t)((uint64_t)word[i % 4] * (uint64_t)o->vocab_size >> 32);
    }
    return ET_OK;
}

static void
describe_synthetic_tokens(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    et_facts_stream(out, 0, o->vocab_size);
}

const struct et_dataset_class et_dataset_synthetic_tokens = {
    .info =
        {
            .name = "synthetic_tokens",
            .class_name = "SyntheticTokens",
            .summary = "tokens at random; no data needed",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .open = open_tokens,
    .tokens = read_tokens,
    .describe = describe_synthetic_tokens,
};
