/* SPDX-License-Identifier: Apache-2.0 */
/* gpt2.c: the body of a decoder-only language model, and its tied head.
 *
 * x = wte[token] + wpe[position]; blocks; layer norm; logits = x wte^T. Of the samples'
 * fields position I32 [B,T] says where a token stands (without it from 0 on), and
 * document I32 [B,T] which tokens see each other: those of one document (without it
 * all).
 * Source: Radford et al. 2019; names as in Hugging Face's GPT2LMHeadModel. */
#include "core/modules/common.h"

static et_status
transformer_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_gpt2_transformer_module *m = (struct et_gpt2_transformer_module *)base;
    const struct et_gpt2_options *o = options;
    const double std = 0.02;
    ET_TRY(ET_NEW(cx, &m->wte, embedding, .num_embeddings = o->vocab_size,
                  .features = o->d_model, .std = std));
    if (!o->alibi)
        ET_TRY(ET_NEW(cx, &m->wpe, embedding, .num_embeddings = o->max_seq_len,
                      .features = o->d_model, .std = std));
    ET_TRY(ET_NEW(cx, &m->drop, dropout, .p = o->dropout));
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->h));
    /* Two residual branches a layer end in c_proj: their sum keeps its variance. */
    double out_std = std / sqrt(2 * (double)o->n_layers);
    for (int64_t i = 0; i < o->n_layers; i++)
        ET_TRY(ET_ADD(cx, m->h, NULL, gpt2_block, .d_model = o->d_model,
                      .n_heads = o->n_heads, .dropout = o->dropout, .out_std = out_std,
                      .attention_dropout = o->attention_dropout));
    for (int i = 0; o->alibi && i < m->h->n_items; i++) {
        struct et_module *block = m->h->items[i].module;
        ET_TRY(et_attention_set_alibi(cx, ((struct et_gpt2_block_module *)block)->attn,
                                      o->max_seq_len));
    }
    return ET_NEW(cx, &m->ln_f, layer_norm, .features = o->d_model);
}

static struct et_tensor *
transformer_forward(struct et_module *base, struct et_forward *f,
                    struct et_tensor *token)
{
    struct et_gpt2_transformer_module *m = (struct et_gpt2_transformer_module *)base;
    struct et_tensor *x = eti_add_positions(f, m->wpe, et_forward(f, m->wte, token));
    x = et_forward(f, m->h, et_forward(f, m->drop, x));
    return et_forward(f, m->ln_f, x);
}

const struct et_module_class et_gpt2_transformer_class = {
    .info =
        {
            .name = "gpt2_transformer",
            .class_name = "GPT2Model",
            .summary = "embeddings, blocks and a last norm",
            .source = "Radford et al. 2019",
            .applies_to = "text",
            .options_size = sizeof(struct et_gpt2_options),
        },
    .size = sizeof(struct et_gpt2_transformer_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_gpt2_transformer_module, wte),
            ET_SLOT(et_gpt2_transformer_module, wpe),
            ET_SLOT(et_gpt2_transformer_module, drop),
            ET_SLOT(et_gpt2_transformer_module, h),
            ET_SLOT(et_gpt2_transformer_module, ln_f),
            {0},
        },
    .init = transformer_init,
    .forward = transformer_forward,
};

static et_status
gpt2_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_gpt2_module *m = (struct et_gpt2_module *)base;
    return et_module_new(cx, &et_gpt2_transformer_class, options, &m->transformer);
}

static struct et_tensor *
gpt2_forward(struct et_module *base, struct et_forward *f, struct et_tensor *token)
{
    struct et_gpt2_module *m = (struct et_gpt2_module *)base;
    struct et_module *body = m->transformer;
    struct et_module *wte = ((struct et_gpt2_transformer_module *)body)->wte;
    return et_linear(f->g, et_forward(f, body, token),
                     ((struct et_embedding_module *)wte)->weight.tensor, NULL);
}

const struct et_module_class et_gpt2_class = {
    .info =
        {
            .name = "gpt2",
            .class_name = "GPT2LMHeadModel",
            .summary = "transformer whose head is the token table",
            .source = "Radford et al. 2019",
            .applies_to = "text",
            .options_size = sizeof(struct et_gpt2_options),
        },
    .size = sizeof(struct et_gpt2_module),
    .children = (const struct et_slot[]){ET_SLOT(et_gpt2_module, transformer), {0}},
    .init = gpt2_init,
    .forward = gpt2_forward,
};
