/* SPDX-License-Identifier: Apache-2.0 */
/* transformer.c: causal self-attention, the feed-forward part, and a pre-norm block.
 *
 * o = softmax(q k^T / sqrt(d) + bias) v per head, over positions <= one's own.
 * Sources: Vaswani et al. 2017 (arXiv 1706.03762); Radford et al. 2019 (GPT-2), whose
 * weight names these are; Press et al. 2022 (2108.12409) for ALiBi.
 */
#include "core/base/need.h"
#include "core/modules/common.h"
#include "core/modules/kv_cache.h"

static et_status
attention_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_attention_module *m = (struct et_attention_module *)base;
    m->o = *(const struct et_attention_options *)options;
    ETI_NEED_POSITIVE(cx, "attention", &m->o, d_model);
    ETI_NEED_POSITIVE(cx, "attention", &m->o, n_heads);
    int64_t d = m->o.d_model;
    if (d % m->o.n_heads)
        return ET_FAIL(cx, ET_EINVAL, "%lld heads do not divide d_model %lld",
                       (long long)m->o.n_heads, (long long)d);
    ET_TRY(ET_NEW(cx, &m->c_attn, conv1d, .in_features = d, .out_features = 3 * d));
    ET_TRY(ET_NEW(cx, &m->c_proj, conv1d, .in_features = d, .out_features = d,
                  .std = m->o.out_std));
    return ET_NEW(cx, &m->resid_dropout, dropout, .p = m->o.dropout);
}

/* Part I of three of [B,T,3D], as [B,H,T,D/H]. */
static struct et_tensor *
heads(struct et_forward *f, struct et_tensor *qkv, int i, int64_t n_heads, int64_t d)
{
    if (!qkv)
        return NULL;
    int64_t b = qkv->desc.shape[0], t = qkv->desc.shape[1];
    struct et_tensor *x = et_slice(f->g, qkv, 2, i * d, d, 1);
    x = et_reshape(f->g, x, ET_SHAPE(b, t, n_heads, d / n_heads));
    return et_permute(f->g, x, (const int[]){0, 2, 1, 3});
}

static struct et_tensor *
attention_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_attention_module *m = (struct et_attention_module *)base;
    int64_t d = m->o.d_model, h = m->o.n_heads;
    struct et_tensor *bias = m->alibi.tensor, *qkv = et_forward(f, m->c_attn, x);
    if (!qkv)
        return NULL;
    int64_t b = qkv->desc.shape[0], t = qkv->desc.shape[1];
    int64_t keys = eti_kv_keys(f->g, t);
    if (bias)
        bias = et_slice(f->g, bias, 3, 0, keys, 1);
    bias = eti_kv_hide(f->g, eti_hide_fields(f, bias));
    struct et_tensor *parts[] = {heads(f, qkv, 0, h, d), heads(f, qkv, 1, h, d),
                                 heads(f, qkv, 2, h, d)};
    eti_kv_keep(f->g, base, parts + 1);
    struct et_tensor *y = eti_attend(f, parts, bias, keys == t, m->o.attention_dropout);
    y = et_permute(f->g, y, (const int[]){0, 2, 1, 3});
    y = et_reshape(f->g, y, ET_SHAPE(b, t, d));
    return et_forward(f, m->resid_dropout, et_forward(f, m->c_proj, y));
}

/* Slopes 2^(-8 (i+1) / n), with every second of the doubled list where n is no power of
 * two. */
void
et_alibi_slopes(int64_t n_heads, double *slopes)
{
    if (!slopes)
        return;
    int64_t p = 1;
    while (2 * p <= n_heads)
        p *= 2;
    for (int64_t i = 0; i < p; i++)
        slopes[i] = exp2(-8.0 * (double)(i + 1) / (double)p);
    for (int64_t i = p; i < n_heads; i++)
        slopes[i] = exp2(-8.0 * (double)(2 * (i - p) + 1) / (double)(2 * p));
}

et_status
et_attention_set_alibi(struct et_ctx *cx, struct et_module *attention,
                       int64_t max_seq_len)
{
    ETI_NEED(cx, cx, attention);
    bool causal = et_module_is(attention, &et_attention_class);
    if (!causal && !et_module_is(attention, &et_bert_self_attention_class))
        return ET_FAIL(cx, ET_EINVAL, "a module of class %s is no attention",
                       attention->type->info.name);
    struct et_attention_module *m = (struct et_attention_module *)attention;
    struct et_bert_self_attention_module *b =
        (struct et_bert_self_attention_module *)attention;
    struct et_param *p = causal ? &m->alibi : &b->alibi;
    int64_t h = causal ? m->o.n_heads : b->n_heads, rows = causal ? 1 : max_seq_len;
    int64_t n = h * rows * max_seq_len;
    void *slopes, *bias = NULL;
    ET_TRY(et_alloc(cx, (size_t)h * sizeof(double), &slopes));
    et_status status = et_alloc(cx, (size_t)n * sizeof(float), &bias);
    if (status == ET_OK) {
        et_alibi_slopes(h, slopes);
        for (int64_t i = 0; i < n; i++) {
            int64_t row = i / max_seq_len % rows, key = i % max_seq_len;
            double far = causal ? (double)key : -fabs((double)(row - key));
            ((float *)bias)[i] =
                (float)(((double *)slopes)[i / (rows * max_seq_len)] * far);
        }
        et_tensor_free(&p->tensor);
        et_free(cx, p->value);
        *p = (struct et_param){0};
        et_buffer_declare(p, eti_init_constant(0), ET_SHAPE(1, h, rows, max_seq_len));
        status = et_param_write(cx, p, bias, n);
    }
    et_free(cx, bias);
    et_free(cx, slopes);
    return status;
}

const struct et_module_class et_attention_class = {
    .info =
        {
            .name = "attention",
            .class_name = "GPT2Attention",
            .summary = "causal multi-head self-attention",
            .source = "arXiv 1706.03762",
            .applies_to = "text",
            .options_size = sizeof(struct et_attention_options),
        },
    .size = sizeof(struct et_attention_module),
    .params = (const struct et_slot[]){ET_SLOT(et_attention_module, alibi), {0}},
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_attention_module, c_attn),
            ET_SLOT(et_attention_module, c_proj),
            ET_SLOT(et_attention_module, resid_dropout),
            {0},
        },
    .init = attention_init,
    .forward = attention_forward,
};

static et_status
gpt2_mlp_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_gpt2_mlp_module *m = (struct et_gpt2_mlp_module *)base;
    const struct et_gpt2_mlp_options *o = options;
    int64_t hidden = eti_int_or(o->d_hidden, 4 * o->d_model);
    ET_TRY(ET_NEW(cx, &m->c_fc, conv1d, .in_features = o->d_model,
                  .out_features = hidden));
    ET_TRY(et_module_new(cx, &et_gelu_tanh_class, NULL, &m->act));
    ET_TRY(ET_NEW(cx, &m->c_proj, conv1d, .in_features = hidden,
                  .out_features = o->d_model, .std = o->out_std));
    return ET_NEW(cx, &m->dropout, dropout, .p = o->dropout);
}

static struct et_tensor *
gpt2_mlp_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_gpt2_mlp_module *m = (struct et_gpt2_mlp_module *)base;
    struct et_tensor *y = et_forward(f, m->act, et_forward(f, m->c_fc, x));
    return et_forward(f, m->dropout, et_forward(f, m->c_proj, y));
}

const struct et_module_class et_gpt2_mlp_class = {
    .info =
        {
            .name = "gpt2_mlp",
            .class_name = "GPT2MLP",
            .summary = "two linear layers with a GELU between",
            .source = "Radford et al. 2019",
            .applies_to = "text",
            .options_size = sizeof(struct et_gpt2_mlp_options),
        },
    .size = sizeof(struct et_gpt2_mlp_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_gpt2_mlp_module, c_fc),
            ET_SLOT(et_gpt2_mlp_module, act),
            ET_SLOT(et_gpt2_mlp_module, c_proj),
            ET_SLOT(et_gpt2_mlp_module, dropout),
            {0},
        },
    .init = gpt2_mlp_init,
    .forward = gpt2_mlp_forward,
};

static et_status
gpt2_block_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_gpt2_block_module *m = (struct et_gpt2_block_module *)base;
    const struct et_gpt2_block_options *o = options;
    ET_TRY(ET_NEW(cx, &m->ln_1, layer_norm, .features = o->d_model));
    ET_TRY(ET_NEW(cx, &m->attn, attention, .d_model = o->d_model, .n_heads = o->n_heads,
                  .dropout = o->dropout, .out_std = o->out_std,
                  .attention_dropout = o->attention_dropout));
    ET_TRY(ET_NEW(cx, &m->ln_2, layer_norm, .features = o->d_model));
    return ET_NEW(cx, &m->mlp, gpt2_mlp, .d_model = o->d_model, .dropout = o->dropout,
                  .out_std = o->out_std);
}

static struct et_tensor *
gpt2_block_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_gpt2_block_module *m = (struct et_gpt2_block_module *)base;
    x = et_add(f->g, x, et_forward(f, m->attn, et_forward(f, m->ln_1, x)));
    return et_add(f->g, x, et_forward(f, m->mlp, et_forward(f, m->ln_2, x)));
}

const struct et_module_class et_gpt2_block_class = {
    .info =
        {
            .name = "gpt2_block",
            .class_name = "GPT2Block",
            .summary = "attention and feed-forward part, each behind a norm",
            .source = "Radford et al. 2019",
            .applies_to = "text",
            .options_size = sizeof(struct et_gpt2_block_options),
        },
    .size = sizeof(struct et_gpt2_block_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_gpt2_block_module, ln_1),
            ET_SLOT(et_gpt2_block_module, attn),
            ET_SLOT(et_gpt2_block_module, ln_2),
            ET_SLOT(et_gpt2_block_module, mlp),
            {0},
        },
    .init = gpt2_block_init,
    .forward = gpt2_block_forward,
};
