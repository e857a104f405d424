/* SPDX-License-Identifier: Apache-2.0 */
/* gpt2.c: the GPT-2 family as a model: options and what the data say. The network
 * itself is core/modules/gpt2.c. */
#include "core/models/language.h"
#include "etude/nn.h"

#define GPT2_VOCABULARY 50257 /* of its byte-pair encoding */

enum position { POSITION_LEARNED, POSITION_ALIBI };
static const char *const positions[] = {"learned", "alibi", NULL};

struct gpt2_model_options {
    struct et_model_options common;
    int64_t n_layers, d_model, n_heads, max_seq_len, vocab_size;
    double dropout, attention_dropout;
    int position;
};

static et_status
gpt2_build(struct et_ctx *cx, struct et_model *m, const void *options,
           const struct et_model_facts *facts)
{
    const struct gpt2_model_options *o = options;
    ET_TRY(eti_language_size(cx, m, o->vocab_size, o->max_seq_len, GPT2_VOCABULARY,
                             facts));
    return ET_NEW(cx, &m->root, gpt2, .n_layers = o->n_layers, .d_model = o->d_model,
                  .n_heads = o->n_heads, .max_seq_len = o->max_seq_len,
                  .vocab_size = m->num_classes, .dropout = o->dropout,
                  .alibi = o->position == POSITION_ALIBI,
                  .attention_dropout = o->attention_dropout);
}

#define COUNT(field, deflt, text)                                                      \
    ETI_MODEL_COUNT(gpt2_model_options, field, deflt, text)

const struct et_model_class et_gpt2_model = {
    .info =
        {
            .name = "gpt2",
            .class_name = "GPT2",
            .summary = "decoder-only transformer that predicts the next token",
            .source = "Radford et al. 2019",
            .applies_to = "text",
            .options =
                (const struct et_option[]){
                    ET_MODEL_START_OPTIONS(gpt2_model_options),
                    COUNT(n_layers, "12", "transformer blocks"),
                    COUNT(d_model, "768", "width of the residual stream"),
                    COUNT(n_heads, "12", "attention heads; they divide d_model"),
                    COUNT(max_seq_len, "1024", "longest sequence"),
                    ETI_MODEL_VOCABULARY(gpt2_model_options, "50257"),
                    {
                        .name = "position",
                        .type = ET_OPT_ENUM,
                        .offset = offsetof(struct gpt2_model_options, position),
                        .def = "learned",
                        .choices = positions,
                        .help = "how positions enter: a learned table, or ALiBi's bias",
                    },
                    ETI_MODEL_DROPOUT(gpt2_model_options, "0"),
                    ETI_MODEL_ATTENTION_DROPOUT(gpt2_model_options),
                    {0},
                },
            .options_size = sizeof(struct gpt2_model_options),
        },
    .task = ET_TASK_LANGUAGE,
    .beginning =
        "weights and tables N(0, 0.02^2), the ends of residual branches (c_proj) "
        "N(0, 0.02^2 / (2 n_layers)), biases 0, norms 1 and 0, as Hugging Face",
    .build = gpt2_build,
};
