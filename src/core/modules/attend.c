/* SPDX-License-Identifier: Apache-2.0 */
/* attend.c: attention with dropout on its probabilities.
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
