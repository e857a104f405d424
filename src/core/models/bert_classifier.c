/* SPDX-License-Identifier: Apache-2.0 */
/* bert_classifier.c: BERT with a head on its first token: classes of a text or a pair,
 * or with one output and the loss mse a number.
 *
 * y = W dropout(tanh(P x[0])) for x = BERT(tokens). Padding is not attended to where
 * the data have an attention_mask, and tokens are of the kinds that token_type says.
 * Source: Devlin et al. 2018 (arXiv 1810.04805), section 4.1; Hugging Face's names
 * (BertForSequenceClassification). */
#include "core/models/language.h"
#include "etude/nn.h"

#define BERT_VOCABULARY 30522 /* of its uncased word pieces */

struct et_bert_classifier_options {
    struct et_model_options common;
    int64_t n_layers, d_model, n_heads, max_seq_len, vocab_size, token_types;
    double dropout, attention_dropout;
};

/* ---- pooler ---- */

struct pooler_module {
    struct et_module base;
    struct et_module *dense;
};

static et_status
pooler_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    const struct et_bert_options *o = options;
    return ET_NEW(cx, &((struct pooler_module *)base)->dense, linear,
                  .in_features = o->d_model, .out_features = o->d_model);
}

static struct et_tensor *
pooler_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct pooler_module *m = (struct pooler_module *)base;
    if (!x)
        return NULL;
    const int64_t *s = x->desc.shape;
    x = et_reshape(f->g, et_slice(f->g, x, 1, 0, 1, 1), ET_SHAPE(s[0], s[2]));
    return et_tanh(f->g, et_forward(f, m->dense, x));
}

static const struct et_module_class pooler_class = {
    .info =
        {
            .name = "bert_pooler",
            .class_name = "BertPooler",
            .summary = "the first token, through a layer and tanh",
            .source = "arXiv 1810.04805",
            .applies_to = "text",
            .options_size = sizeof(struct et_bert_options),
        },
    .size = sizeof(struct pooler_module),
    .children = (const struct et_slot[]){ET_SLOT(pooler_module, dense), {0}},
    .init = pooler_init,
    .forward = pooler_forward,
};

/* ---- the model ---- */

static et_status
build_body(struct et_ctx *cx, struct et_module *root, const struct et_bert_options *o)
{
    ET_TRY(et_module_add(cx, root, "bert", &et_sequential_class, NULL));
    struct et_module *bert = root->items[0].module;
    ET_TRY(et_module_add(cx, bert, "embeddings", &et_bert_embeddings_class, o));
    ET_TRY(et_module_add(cx, bert, "encoder", &et_sequential_class, NULL));
    struct et_module *encoder = bert->items[1].module;
    ET_TRY(et_module_add(cx, encoder, "layer", &et_sequential_class, NULL));
    struct et_module *layers = encoder->items[0].module;
    for (int64_t i = 0; i < o->n_layers; i++)
        ET_TRY(et_module_add(cx, layers, NULL, &et_bert_layer_class, o));
    return et_module_add(cx, bert, "pooler", &pooler_class, o);
}

static et_status
bert_classifier_build(struct et_ctx *cx, struct et_model *m, const void *options,
                      const struct et_model_facts *facts)
{
    const struct et_bert_classifier_options *o = options;
    const int64_t classes = m->num_classes;
    ET_TRY(eti_language_size(cx, m, o->vocab_size, o->max_seq_len, BERT_VOCABULARY,
                             facts));
    const struct et_bert_options bert = {
        .n_layers = o->n_layers,
        .d_model = o->d_model,
        .n_heads = o->n_heads,
        .max_seq_len = o->max_seq_len,
        .vocab_size = m->num_classes,
        .dropout = o->dropout,
        .attention_dropout = o->attention_dropout,
        .token_types = o->token_types,
    };
    m->facts.vocab_size = m->num_classes;
    m->num_classes = classes;
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->root));
    ET_TRY(build_body(cx, m->root, &bert));
    ET_TRY(ET_ADD(cx, m->root, "dropout", dropout, .p = o->dropout));
    return ET_ADD(cx, m->root, "classifier", linear, .in_features = o->d_model,
                  .out_features = classes);
}

#define COUNT(field, deflt, text)                                                      \
    ETI_MODEL_COUNT(et_bert_classifier_options, field, deflt, text)

const struct et_model_class et_bert_classifier_model = {
    .info =
        {
            .name = "bert_classifier",
            .class_name = "BERTClassifier",
            .summary = "encoder-only transformer that tells classes of texts, or a "
                       "number",
            .source = "arXiv 1810.04805",
            .applies_to = "text",
            .options =
                (const struct et_option[]){
                    ET_MODEL_OPTIONS(et_bert_classifier_options),
                    COUNT(n_layers, "12", "transformer layers"),
                    COUNT(d_model, "768", "width of the residual stream"),
                    COUNT(n_heads, "12", "attention heads; they divide d_model"),
                    COUNT(max_seq_len, "512", "longest sequence"),
                    ETI_MODEL_VOCABULARY(et_bert_classifier_options, "30522"),
                    COUNT(token_types, "2", "kinds of tokens that can be told apart"),
                    ETI_MODEL_DROPOUT(et_bert_classifier_options, "0.1"),
                    ETI_MODEL_ATTENTION_DROPOUT(et_bert_classifier_options),
                    {0},
                },
            .options_size = sizeof(struct et_bert_classifier_options),
        },
    .task = ET_TASK_CLASSIFICATION,
    .beginning =
        "linear layers and tables N(0, 0.02^2), the row of [PAD] and biases 0, "
        "norms 1 and 0, as Hugging Face",
    .initializer =
        (const char *const[]){"linear_small_normal", "linear_zero_bias", NULL},
    .build = bert_classifier_build,
    .reads_tokens = true,
};
