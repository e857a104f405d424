/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c: what a language model writes after each evaluation, so that a person sees
 * what it has learned: a line of the log, and a text of loggers that show such.
 *
 * The seed is the same each time, so that two texts differ by the weights alone. What
 * is no printable character is made visible.
 *
 * Source: MosaicML Composer, Generate. Differs: one prompt; after evaluations, not at
 * an interval. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "core/callbacks/callbacks.h"
#include "core/data/text_source.h"
#include "core/trainer/generate.h"
#include "core/trainer/log.h"
#include "etude/diagnostic.h"

enum { MOST = 4096 };

struct options {
    char *prompt, *tokenizer;
    int64_t length, top_k, seed;
    double temperature, top_p;
};

static const struct et_option option_table[] = {
    {
        .name = "prompt",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, prompt),
        .def = "In the beginning ",
        .help = "what the text goes on from",
    },
    {
        .name = "length",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, length),
        .def = "100",
        .min = 1,
        .max = MOST,
        .unit = "tokens",
        .help = "that are added, at most: a token that ends texts ends it",
    },
    {
        .name = "temperature",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, temperature),
        .def = "0.8",
        .max = 100,
        .help = "scores are divided by it; 0: always the most likely",
    },
    {
        .name = "top_k",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, top_k),
        .def = "0",
        .max = 1e9,
        .unit = "tokens",
        .help = "the most likely, among which is drawn; 0: all",
    },
    {
        .name = "top_p",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, top_p),
        .def = "1",
        .max = 1,
        .help = "drawn is among the fewest that have this probability together",
    },
    {
        .name = "seed",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, seed),
        .def = "17",
        .max = 4294967295.0,
        .help = "of what is drawn",
    },
    {
        .name = "tokenizer",
        .type = ET_OPT_PATH,
        .offset = offsetof(struct options, tokenizer),
        .flags = ET_OPT_OPTIONAL,
        .help = "the file of another tokenizer than the training data's",
    },
    {.name = NULL},
};

struct state {
    struct eti_generator *generator;
    struct et_tokenizer *tokenizer;
    struct et_encoder *encoder;
    int64_t T;     /* tokens of a sequence, as evaluations have them; 0: not seen yet */
    bool is_quiet; /* it cannot be done, and that was said */
};

static et_status
prepare(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct state *g = self->state;
    if (!g->generator)
        ET_TRY(eti_generator_new(self->cx, s->dev, s->model, g->T, &g->generator));
    if (!g->tokenizer && o->tokenizer)
        ET_TRY(et_tokenizer_open(self->cx, o->tokenizer, &g->tokenizer));
    if (!g->tokenizer && s->train_set)
        ET_TRY(eti_text_tokenizer(self->cx, s->train_set, &g->tokenizer));
    if (!g->tokenizer)
        return ET_FAIL(self->cx, ET_ENOENT,
                       "the run has no training data, and the "
                       "option tokenizer names none");
    return g->encoder ? ET_OK : et_encoder_new(self->cx, g->tokenizer, &g->encoder);
}

static et_status
write_text(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct state *g = self->state;
    const struct eti_generate how = {.length = o->length,
                                     .temperature = o->temperature,
                                     .top_k = o->top_k,
                                     .top_p = o->top_p,
                                     .seed = (uint32_t)o->seed};
    struct eti_generated made;
    char *visible = NULL;
    ET_TRY(prepare(self, s));
    et_status status = eti_generator_text(g->generator, &how, g->tokenizer, g->encoder,
                                          o->prompt, strlen(o->prompt), &made);
    if (status == ET_OK)
        status = et_alloc(self->cx, 4 * made.n + 1, (void **)&visible);
    if (status == ET_OK) {
        et_visible(visible, 4 * made.n + 1, made.text, made.n);
        et_log_text(log, ET_LOG_INFO, &s->timestamp, "generate: %s", visible);
        eti_log_passage(log, "generate", visible);
    }
    et_free(self->cx, visible);
    et_free(self->cx, made.text);
    return status;
}

/* What cannot be done is said once, and the run goes on. */
static et_status
evaluated(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    struct state *g = self->state;
    if (g->is_quiet || g->T == 0)
        return ET_OK;
    et_status status = write_text(self, s, log);
    if (status == ET_OK || status == ET_ENOMEM)
        return status;
    et_log_text(log, ET_LOG_WARN, &s->timestamp, "generate: %s",
                et_error_get(self->cx)->message);
    et_error_clear(self->cx);
    g->is_quiet = true;
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct state *g = self->state;
    (void)event;
    (void)log;
    if (!*o->prompt)
        return ET_FAIL(self->cx, ET_EINVAL, "generate: the prompt has no text");
    if (s->batch.x && s->batch.x->desc.ndim == 2)
        g->T = s->batch.x->desc.shape[1];
    return ET_OK;
}

static void
release(struct et_callback *self)
{
    struct state *g = self->state;
    eti_generator_free(&g->generator);
    et_encoder_free(&g->encoder);
    et_tokenizer_free(&g->tokenizer);
}

const struct et_callback_class et_callback_generate = {
    .info =
        {
            .name = "generate",
            .class_name = "Generate",
            .summary = "text that a language model writes after each evaluation",
            .source = "MosaicML Composer, Generate",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .events = ET_ON(EVAL_BEFORE_FORWARD),
    .run = run,
    .evaluated = evaluated,
    .close = release,
};
