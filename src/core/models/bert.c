/* SPDX-License-Identifier: Apache-2.0 */
/* bert.c: BERT as a model: options and what the data say. The network itself is
 * core/modules/bert.c; targets are -100 but where a token was masked. */
#include "core/models/language.h"
#include "etude/nn.h"

#define BERT_VOCABULARY 30522 /* of its uncased word pieces */

struct bert_model_options {
    struct et_model_options common;
    int64_t n_layers, d_model, n_heads, max_seq_len, vocab_size, token_types;
    double dropout, attention_dropout;
};

static et_status
bert_build(struct et_ctx *cx, struct et_model *m, const void *options,
           const struct et_model_facts *facts)
{
    const struct bert_model_options *o = options;
    ET_TRY(eti_language_size(cx, m, o->vocab_size, o->max_seq_len, BERT_VOCABULARY,
                             facts));
    return ET_NEW(cx, &m->root, bert, .n_layers = o->n_layers, .d_model = o->d_model,
                  .n_heads = o->n_heads, .max_seq_len = o->max_seq_len,
                  .vocab_size = m->num_classes, .dropout = o->dropout,
                  .attention_dropout = o->attention_dropout,
                  .token_types = o->token_types);
}

#define COUNT(field, deflt, text)                                                      \
    ETI_MODEL_COUNT(bert_model_options, field, deflt, text)

const struct et_model_class et_bert_model = {
    .info =
        {
            .name = "bert",
            .class_name = "BERT",
            .summary = "encoder-only transformer that guesses masked tokens",
            .source = "arXiv 1810.04805",
            .applies_to = "text",
            .options =
                (const struct et_option[]){
                    ET_MODEL_START_OPTIONS(bert_model_options),
                    COUNT(n_layers, "12", "transformer layers"),
                    COUNT(d_model, "768", "width of the residual stream"),
                    COUNT(n_heads, "12", "attention heads; they divide d_model"),
                    COUNT(max_seq_len, "512", "longest sequence"),
                    ETI_MODEL_VOCABULARY(bert_model_options, "30522"),
                    {
                        .name = "token_types",
                        .type = ET_OPT_INT,
                        .offset = offsetof(struct bert_model_options, token_types),
                        .def = "2",
                        .min = 1,
                        .max = 1 << 16,
                        .flags = ET_OPT_LATER,
                        .help = "kinds of tokens that can be told apart",
                    },
                    ETI_MODEL_DROPOUT(bert_model_options, "0.1"),
                    ETI_MODEL_ATTENTION_DROPOUT(bert_model_options),
                    {0},
                },
            .options_size = sizeof(struct bert_model_options),
        },
    .task = ET_TASK_LANGUAGE,
    .beginning =
        "weights and tables N(0, 0.02^2), the row of [PAD] and biases 0, norms 1 "
        "and 0, as Hugging Face",
    .build = bert_build,
    .wants_masked = true,
};
