/* SPDX-License-Identifier: Apache-2.0 */
/* bert.c: the parts of an encoder-only transformer with norms behind each sum.
 *
 * x = LN(word + position + type); per layer a = LN(x + W_o attention(x)),
 * y = LN(a + B gelu(A a)). Source: Devlin et al. 2018 (arXiv 1810.04805); names as in
 * Hugging Face's BertForMaskedLM, as is [PAD], token 0: its row begins as 0 and gets no
 * gradient where it is looked up. Of the samples' fields token_type I32 [B,T] says
 * which kind each token is of (without it all are of kind 0), and attention_mask I32
 * [B,T] which are attended to: 1; 0 is padding (without it all are). document and
 * position are as in gpt2.c. */
#include "core/modules/common.h"

#define EPS 1e-12
#define STD 0.02

static et_status
linear_new(struct et_ctx *cx, struct et_module **slot, int64_t in, int64_t out)
{
    ET_TRY(ET_NEW(cx, slot, linear, .in_features = in, .out_features = out));
    struct et_linear_module *l = (struct et_linear_module *)*slot;
    l->weight.init = eti_init_normal(STD);
    l->bias.init = eti_init_constant(0);
    return ET_OK;
}

static et_status
table_new(struct et_ctx *cx, struct et_module **slot, int64_t rows, int64_t d)
{
    return ET_NEW(cx, slot, embedding, .num_embeddings = rows, .features = d,
                  .std = STD);
}

/* The first N rows of an embedding's table. */
static struct et_tensor *
rows(struct et_graph *g, struct et_module *table, int64_t n)
{
    return et_slice(g, ((struct et_embedding_module *)table)->weight.tensor, 0, 0, n,
                    1);
}

/* M at H, told what to add. */
static struct et_tensor *
end_branch(struct et_forward *f, struct et_module *m, struct et_tensor *h,
           struct et_tensor *residual)
{
    struct et_tensor *outer = f->residual;
    f->residual = residual;
    struct et_tensor *y = et_forward(f, m, h);
    f->residual = outer;
    return y;
}

#define BERT_CLASS(id, class_text, summary_text, ...)                                  \
    const struct et_module_class et_##id##_class = {                                   \
        .info =                                                                        \
            {                                                                          \
                .name = #id,                                                           \
                .class_name = class_text,                                              \
                .summary = summary_text,                                               \
                .source = "arXiv 1810.04805",                                          \
                .applies_to = "text",                                                  \
                .options_size = sizeof(struct et_bert_options),                        \
            },                                                                         \
        .size = sizeof(struct et_##id##_module),                                       \
        .init = id##_init,                                                             \
        .forward = id##_forward,                                                       \
        __VA_ARGS__,                                                                   \
    };

/* ---- embeddings ---- */

static et_status
bert_embeddings_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_bert_embeddings_module *m = (struct et_bert_embeddings_module *)base;
    const struct et_bert_options *o = options;
    ET_TRY(ET_NEW(cx, &m->word_embeddings, embedding, .num_embeddings = o->vocab_size,
                  .features = o->d_model, .std = STD, .padding = true));
    ET_TRY(table_new(cx, &m->position_embeddings, o->max_seq_len, o->d_model));
    ET_TRY(table_new(cx, &m->token_type_embeddings, eti_int_or(o->token_types, 2),
                     o->d_model));
    ET_TRY(ET_NEW(cx, &m->LayerNorm, layer_norm, .features = o->d_model, .eps = EPS));
    return ET_NEW(cx, &m->dropout, dropout, .p = o->dropout);
}

static struct et_tensor *
bert_embeddings_forward(struct et_module *base, struct et_forward *f,
                        struct et_tensor *token)
{
    struct et_bert_embeddings_module *m = (struct et_bert_embeddings_module *)base;
    struct et_tensor *x = et_forward(f, m->word_embeddings, token);
    if (!x)
        return NULL;
    x = eti_add_positions(f, m->position_embeddings, x);
    struct et_tensor *kind = et_forward_input(f, "token_type");
    x = et_add(f->g, x,
               kind ? et_forward(f, m->token_type_embeddings, kind)
                    : rows(f->g, m->token_type_embeddings, 1));
    return et_forward(f, m->dropout, et_forward(f, m->LayerNorm, x));
}

BERT_CLASS(bert_embeddings, "BertEmbeddings", "words, positions and types as vectors",
           .children = (const struct et_slot[]){
               ET_SLOT(et_bert_embeddings_module, word_embeddings),
               ET_SLOT(et_bert_embeddings_module, position_embeddings),
               ET_SLOT(et_bert_embeddings_module, token_type_embeddings),
               ET_SLOT(et_bert_embeddings_module, LayerNorm),
               ET_SLOT(et_bert_embeddings_module, dropout),
               {0},
           })

/* ---- self-attention ---- */

static et_status
bert_self_attention_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_bert_self_attention_module *m =
        (struct et_bert_self_attention_module *)base;
    const struct et_bert_options *o = options;
    if (o->d_model % o->n_heads)
        return ET_FAIL(cx, ET_EINVAL, "%lld heads do not divide d_model %lld",
                       (long long)o->n_heads, (long long)o->d_model);
    m->n_heads = o->n_heads;
    m->attention_dropout = o->attention_dropout;
    ET_TRY(linear_new(cx, &m->query, o->d_model, o->d_model));
    ET_TRY(linear_new(cx, &m->key, o->d_model, o->d_model));
    return linear_new(cx, &m->value, o->d_model, o->d_model);
}

/* [B,T,D] as [B,H,T,D/H]. */
static struct et_tensor *
heads(struct et_graph *g, struct et_tensor *x, int64_t n)
{
    if (!x)
        return NULL;
    const int64_t *s = x->desc.shape;
    x = et_reshape(g, x, ET_SHAPE(s[0], s[1], n, s[2] / n));
    return et_permute(g, x, (const int[]){0, 2, 1, 3});
}

static struct et_tensor *
bert_self_attention_forward(struct et_module *base, struct et_forward *f,
                            struct et_tensor *x)
{
    struct et_bert_self_attention_module *m =
        (struct et_bert_self_attention_module *)base;
    struct et_graph *g = f->g;
    if (!x)
        return NULL;
    struct et_tensor *bias = m->alibi.tensor;
    int64_t t = x->desc.shape[1];
    if (bias)
        bias = et_slice(g, et_slice(g, bias, 2, 0, t, 1), 3, 0, t, 1);
    struct et_tensor *const parts[] = {
        heads(g, et_forward(f, m->query, x), m->n_heads),
        heads(g, et_forward(f, m->key, x), m->n_heads),
        heads(g, et_forward(f, m->value, x), m->n_heads),
    };
    struct et_tensor *y =
        eti_attend(f, parts, eti_hide_fields(f, bias), false, m->attention_dropout);
    y = et_permute(g, y, (const int[]){0, 2, 1, 3});
    return et_reshape(g, y, x->desc.ndim, x->desc.shape);
}

BERT_CLASS(bert_self_attention, "BertSelfAttention",
           "multi-head self-attention over all tokens",
           .params =
               (const struct et_slot[]){
                   ET_SLOT(et_bert_self_attention_module, alibi),
                   {0},
               },
           .children = (const struct et_slot[]){
               ET_SLOT(et_bert_self_attention_module, query),
               ET_SLOT(et_bert_self_attention_module, key),
               ET_SLOT(et_bert_self_attention_module, value),
               {0},
           })

/* ---- ends of branches: LN(dropout(dense h) + residual) ---- */

static et_status
branch_end(struct et_ctx *cx, struct et_bert_output_module *m,
           const struct et_bert_options *o, int64_t in)
{
    ET_TRY(linear_new(cx, &m->dense, in, o->d_model));
    ET_TRY(ET_NEW(cx, &m->LayerNorm, layer_norm, .features = o->d_model, .eps = EPS));
    return ET_NEW(cx, &m->dropout, dropout, .p = o->dropout);
}

static et_status
bert_self_output_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    const struct et_bert_options *o = options;
    return branch_end(cx, (struct et_bert_output_module *)base, o, o->d_model);
}

static et_status
bert_output_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    const struct et_bert_options *o = options;
    return branch_end(cx, (struct et_bert_output_module *)base, o, 4 * o->d_model);
}

static struct et_tensor *
bert_output_forward(struct et_module *base, struct et_forward *f, struct et_tensor *h)
{
    struct et_bert_output_module *m = (struct et_bert_output_module *)base;
    h = et_forward(f, m->dropout, et_forward(f, m->dense, h));
    return et_forward(f, m->LayerNorm, et_add(f->g, h, f->residual));
}

static const struct et_slot output_children[] = {
    ET_SLOT(et_bert_output_module, dense),
    ET_SLOT(et_bert_output_module, LayerNorm),
    ET_SLOT(et_bert_output_module, dropout),
    {0},
};

#define et_bert_self_output_module et_bert_output_module
#define bert_self_output_forward   bert_output_forward
BERT_CLASS(bert_self_output, "BertSelfOutput", "end of an attention branch",
           .children = output_children)
BERT_CLASS(bert_output, "BertOutput", "end of a feed-forward branch",
           .children = output_children)

/* ---- the gated end of a feed-forward branch ---- */

/* Inputs and outputs of a linear layer, which may have been factorised; false: it is
 * neither. */
static bool
linear_sizes(const struct et_module *m, int64_t *in, int64_t *out)
{
    int64_t latent;
    if (m && et_module_is(m, &et_linear_class)) {
        const struct et_linear_options *o = &((const struct et_linear_module *)m)->o;
        *in = o->in_features;
        *out = o->out_features;
        return true;
    }
    if (!m || !et_module_is(m, &et_factorized_linear_class))
        return false;
    const struct et_factorized_module *two = (const struct et_factorized_module *)m;
    return linear_sizes(two->module0, in, &latent) &&
           linear_sizes(two->module1, &latent, out);
}

static et_status
bert_gated_output_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_bert_gated_output_module *m = (struct et_bert_gated_output_module *)base;
    const struct et_bert_gated_output_options *o = options;
    if (!o->output || !et_module_is(o->output, &et_bert_output_class) || !o->act)
        return ET_FAIL(cx, ET_EINVAL,
                       "bert_gated_output is made from a BertOutput and an activation");
    const struct et_bert_output_module *old = (struct et_bert_output_module *)o->output;
    const struct et_layer_norm_module *norm =
        (struct et_layer_norm_module *)old->LayerNorm;
    int64_t d, wide;
    if (!linear_sizes(old->dense, &wide, &d) || !norm ||
        !et_module_is(&norm->base, &et_layer_norm_class) || !old->dropout ||
        !et_module_is(old->dropout, &et_dropout_class))
        return ET_FAIL(cx, ET_ENOTSUP,
                       "bert_gated_output is made from a BertOutput of a linear layer, "
                       "a layer norm and a dropout");
    ET_TRY(ET_NEW(cx, &m->gated_layer, linear, .in_features = d, .out_features = wide,
                  .no_bias = !o->gated_layer_bias));
    ET_TRY(ET_NEW(cx, &m->non_gated_layer, linear, .in_features = d,
                  .out_features = wide, .no_bias = !o->non_gated_layer_bias));
    ET_TRY(et_module_new(cx, o->act, NULL, &m->act));
    ET_TRY(ET_NEW(cx, &m->wo, linear, .in_features = wide, .out_features = d));
    ET_TRY(ET_NEW(cx, &m->dropout, dropout,
                  .p = ((struct et_dropout_module *)old->dropout)->o.p));
    return ET_NEW(cx, &m->layernorm, layer_norm, .features = d, .eps = norm->o.eps);
}

static struct et_tensor *
bert_gated_output_forward(struct et_module *base, struct et_forward *f,
                          struct et_tensor *x)
{
    struct et_bert_gated_output_module *m = (struct et_bert_gated_output_module *)base;
    struct et_tensor *gate = et_forward(f, m->act, et_forward(f, m->gated_layer, x));
    struct et_tensor *u = et_mul(f->g, gate, et_forward(f, m->non_gated_layer, x));
    u = et_forward(f, m->wo, et_forward(f, m->dropout, u));
    return et_forward(f, m->layernorm, et_add(f->g, u, f->residual));
}

const struct et_module_class et_bert_gated_output_class = {
    .info =
        {
            .name = "bert_gated_output",
            .class_name = "BERTGatedFFOutput",
            .summary = "gated feed-forward branch and its end",
            .source = "arXiv 2002.05202",
            .applies_to = "text",
            .options_size = sizeof(struct et_bert_gated_output_options),
        },
    .size = sizeof(struct et_bert_gated_output_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_bert_gated_output_module, gated_layer),
            ET_SLOT(et_bert_gated_output_module, non_gated_layer),
            ET_SLOT(et_bert_gated_output_module, act),
            ET_SLOT(et_bert_gated_output_module, wo),
            ET_SLOT(et_bert_gated_output_module, dropout),
            ET_SLOT(et_bert_gated_output_module, layernorm),
            {0},
        },
    .init = bert_gated_output_init,
    .forward = bert_gated_output_forward,
};

/* ---- attention and its end ---- */

static et_status
bert_attention_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_bert_attention_module *m = (struct et_bert_attention_module *)base;
    ET_TRY(et_module_new(cx, &et_bert_self_attention_class, options, &m->self));
    return et_module_new(cx, &et_bert_self_output_class, options, &m->output);
}

static struct et_tensor *
bert_attention_forward(struct et_module *base, struct et_forward *f,
                       struct et_tensor *x)
{
    struct et_bert_attention_module *m = (struct et_bert_attention_module *)base;
    return end_branch(f, m->output, et_forward(f, m->self, x), x);
}

BERT_CLASS(bert_attention, "BertAttention", "self-attention with its sum and norm",
           .children = (const struct et_slot[]){
               ET_SLOT(et_bert_attention_module, self),
               ET_SLOT(et_bert_attention_module, output),
               {0},
           })

/* ---- feed-forward, up ---- */

static et_status
bert_intermediate_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_bert_intermediate_module *m = (struct et_bert_intermediate_module *)base;
    const struct et_bert_options *o = options;
    ET_TRY(linear_new(cx, &m->dense, o->d_model, 4 * o->d_model));
    return et_module_new(cx, &et_gelu_class, NULL, &m->intermediate_act_fn);
}

static struct et_tensor *
bert_intermediate_forward(struct et_module *base, struct et_forward *f,
                          struct et_tensor *x)
{
    struct et_bert_intermediate_module *m = (struct et_bert_intermediate_module *)base;
    return et_forward(f, m->intermediate_act_fn, et_forward(f, m->dense, x));
}

BERT_CLASS(bert_intermediate, "BertIntermediate",
           "the wide half of a feed-forward part",
           .children = (const struct et_slot[]){
               ET_SLOT(et_bert_intermediate_module, dense),
               ET_SLOT(et_bert_intermediate_module, intermediate_act_fn),
               {0},
           })

/* ---- layer ---- */

static et_status
bert_layer_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_bert_layer_module *m = (struct et_bert_layer_module *)base;
    ET_TRY(et_module_new(cx, &et_bert_attention_class, options, &m->attention));
    ET_TRY(et_module_new(cx, &et_bert_intermediate_class, options, &m->intermediate));
    return et_module_new(cx, &et_bert_output_class, options, &m->output);
}

static struct et_tensor *
bert_layer_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_bert_layer_module *m = (struct et_bert_layer_module *)base;
    struct et_tensor *a = et_forward(f, m->attention, x);
    return end_branch(f, m->output, et_forward(f, m->intermediate, a), a);
}

BERT_CLASS(bert_layer, "BertLayer", "attention and feed-forward part",
           .children = (const struct et_slot[]){
               ET_SLOT(et_bert_layer_module, attention),
               ET_SLOT(et_bert_layer_module, intermediate),
               ET_SLOT(et_bert_layer_module, output),
               {0},
           })

/* ---- the model, with the head that guesses masked tokens ---- */

/* dense, GELU and norm before the tied table. */
static et_status
head_new(struct et_ctx *cx, struct et_bert_predictions_module *m,
         const struct et_bert_options *o)
{
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->transform));
    ET_TRY(ET_ADD(cx, m->transform, "dense", linear, .in_features = o->d_model,
                  .out_features = o->d_model));
    struct et_linear_module *dense =
        (struct et_linear_module *)m->transform->items[0].module;
    dense->weight.init = eti_init_normal(STD);
    dense->bias.init = eti_init_constant(0);
    ET_TRY(et_module_add(cx, m->transform, "transform_act_fn", &et_gelu_class, NULL));
    return ET_ADD(cx, m->transform, "LayerNorm", layer_norm, .features = o->d_model,
                  .eps = EPS);
}

static et_status
bert_predictions_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_bert_predictions_module *m = (struct et_bert_predictions_module *)base;
    const struct et_bert_options *o = options;
    et_param_declare(&m->bias, eti_init_constant(0), ET_SHAPE(o->vocab_size));
    return head_new(cx, m, o);
}

static struct et_tensor *
bert_predictions_forward(struct et_module *base, struct et_forward *f,
                         struct et_tensor *x)
{
    struct et_bert_predictions_module *m = (struct et_bert_predictions_module *)base;
    return et_forward(f, m->transform, x);
}

BERT_CLASS(bert_predictions, "BertLMPredictionHead", "what comes before the tied table",
           .params =
               (const struct et_slot[]){
                   ET_SLOT(et_bert_predictions_module, bias),
                   {0},
               },
           .children = (const struct et_slot[]){
               ET_SLOT(et_bert_predictions_module, transform),
               {0},
           })

static et_status
bert_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_bert_module *m = (struct et_bert_module *)base;
    const struct et_bert_options *o = options;
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->bert));
    ET_TRY(et_module_add(cx, m->bert, "embeddings", &et_bert_embeddings_class, o));
    ET_TRY(et_module_add(cx, m->bert, "encoder", &et_sequential_class, NULL));
    struct et_module *encoder = m->bert->items[1].module;
    ET_TRY(et_module_add(cx, encoder, "layer", &et_sequential_class, NULL));
    struct et_module *layers = encoder->items[0].module;
    for (int64_t i = 0; i < o->n_layers; i++)
        ET_TRY(et_module_add(cx, layers, NULL, &et_bert_layer_class, o));
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->cls));
    return et_module_add(cx, m->cls, "predictions", &et_bert_predictions_class, o);
}

static struct et_tensor *
bert_forward(struct et_module *base, struct et_forward *f, struct et_tensor *token)
{
    struct et_bert_module *m = (struct et_bert_module *)base;
    struct et_module *head = m->cls->items[0].module, *body = m->bert->items[0].module;
    struct et_module *words =
        ((struct et_bert_embeddings_module *)body)->word_embeddings;
    struct et_tensor *x = et_forward(f, m->cls, et_forward(f, m->bert, token));
    return et_linear(f->g, x, ((struct et_embedding_module *)words)->weight.tensor,
                     ((struct et_bert_predictions_module *)head)->bias.tensor);
}

BERT_CLASS(bert, "BertForMaskedLM", "encoder that guesses masked tokens",
           .children = (const struct et_slot[]){
               ET_SLOT(et_bert_module, bert),
               ET_SLOT(et_bert_module, cls),
               {0},
           })
