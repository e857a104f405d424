/* SPDX-License-Identifier: Apache-2.0 */
/* attend.c: attention with dropout on its probabilities, and what the samples' fields
 * say of which tokens see each other and where they stand.
 *
 * o = dropout(softmax(q k^T / sqrt(d) + bias)) v. Without dropout it is the operation
 * sdpa, which keeps no [T,S] array; with it the scores are an array of the graph, since
 * the mask is one of their elements (Vaswani et al. 2017, arXiv 1706.03762; where
 * Hugging Face's GPT-2 and BERT have it). */
#include "core/modules/common.h"

/* -infinity where a key comes after the query. S [B,H,T,S]. */
static struct et_tensor *
hide_later(struct et_graph *g, struct et_tensor *s)
{
    if (!s)
        return NULL;
    int64_t t = s->desc.shape[2], n = s->desc.shape[3];
    struct et_tensor *query = et_reshape(g, et_iota(g, ET_I32, t), ET_SHAPE(t, 1));
    struct et_tensor *key = et_reshape(g, et_iota(g, ET_I32, n), ET_SHAPE(1, n));
    struct et_tensor *never = et_fill(g, s->desc.dtype, ET_SHAPE(1), -INFINITY);
    return et_where(g, et_less_equal(g, key, query), s, never);
}

struct et_tensor *
eti_attend(struct et_forward *f, struct et_tensor *const qkv[3], struct et_tensor *bias,
           bool causal, double dropout)
{
    struct et_graph *g = f->g;
    struct et_tensor *q = qkv[0];
    if (!f->training || !(dropout > 0) || !q)
        return et_sdpa(g, q, qkv[1], qkv[2], bias, causal, 0);
    double scale = 1 / sqrt((double)q->desc.shape[3]);
    struct et_tensor *s = et_matmul(g, et_mul_scalar(g, q, scale), qkv[1], false, true);
    if (bias && s) /* scores may be of the low dtype of mixed precision */
        s = et_add(g, s, et_cast(g, bias, s->desc.dtype));
    if (causal)
        s = hide_later(g, s);
    s = et_dropout(g, et_softmax(g, s, 3), f->rng, dropout, f->ordinal++);
    return et_matmul(g, s, qkv[2], false, false);
}

struct et_tensor *
eti_as_bias(struct et_graph *g, struct et_tensor *visible)
{
    return et_mul_scalar(g, et_add_scalar(g, et_cast(g, visible, ET_F32), -1), 1e9);
}

struct et_tensor *
eti_hide_fields(struct et_forward *f, struct et_tensor *bias)
{
    struct et_graph *g = f->g;
    struct et_tensor *mask = et_forward_input(f, "attention_mask");
    struct et_tensor *document = et_forward_input(f, "document");
    if (mask) {
        const int64_t *s = mask->desc.shape;
        mask = eti_as_bias(g, et_reshape(g, mask, ET_SHAPE(s[0], 1, 1, s[1])));
        bias = bias ? et_add(g, bias, mask) : mask;
    }
    if (document) {
        const int64_t *s = document->desc.shape;
        struct et_tensor *query = et_reshape(g, document, ET_SHAPE(s[0], 1, s[1], 1));
        struct et_tensor *key = et_reshape(g, document, ET_SHAPE(s[0], 1, 1, s[1]));
        struct et_tensor *other = eti_as_bias(g, et_equal(g, query, key));
        bias = bias ? et_add(g, bias, other) : other;
    }
    return bias;
}

struct et_tensor *
eti_add_positions(struct et_forward *f, struct et_module *wpe, struct et_tensor *x)
{
    if (!wpe || !x)
        return x;
    struct et_tensor *position = et_forward_input(f, "position");
    struct et_tensor *table = ((struct et_embedding_module *)wpe)->weight.tensor;
    return et_add(f->g, x,
                  position ? et_forward(f, wpe, position)
                           : et_slice(f->g, table, 0, 0, x->desc.shape[1], 1));
}
