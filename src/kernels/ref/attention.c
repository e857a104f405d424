/* SPDX-License-Identifier: Apache-2.0 */
/* attention.c: scaled dot-product attention and its gradient (Vaswani et al.,
 * arXiv:1706.03762).
 *
 *   s_ij = scale q_i . k_j + bias_ij, j <= i where causal; lse_i = log sum_j e^(s_ij)
 *   p_ij = e^(s_ij - lse_i);  o_i = sum_j p_ij v_j
 *   ds_ij = p_ij (do_i . v_j - do_i . o_i);  dv_j = sum_i p_ij do_i
 *   dq_i = scale sum_j ds_ij k_j;  dk_j = scale sum_i ds_ij q_i
 *
 * Positions align at the top left: query i sees keys 0 .. i. Gradients use the lse
 * given. A query that sees no key, because causality or a bias of -infinity hides all,
 * has o_i = 0 and lse_i = infinity, with which every p_ij is 0 again. */
#include "kernels/ref/array.h"

#include <math.h>

struct attention {
    const struct et_sdpa_attr *o;
    struct etk_array q, k, v, bias;
    int64_t B, H, T, S, D;
};

static struct attention
attention_of(const struct etk_ref *r, const struct etk_array *q, int bias)
{
    struct attention a = {.o = r->attr, .q = q[0], .k = q[1], .v = q[2]};
    if (bias < r->n_in)
        a.bias = r->in[bias];
    a.B = a.q.d.shape[0];
    a.H = a.q.d.shape[1];
    a.T = a.q.d.shape[2];
    a.S = a.k.d.shape[2];
    a.D = a.q.d.shape[3];
    return a;
}

/* Row I of X times row J of Y over their last axes. */
static double
dot(const struct etk_array *x, const struct etk_array *y, int64_t b, int64_t h,
    int64_t i, int64_t j)
{
    return etk_dot(x, etk_offset4(&x->d, b, h, i, 0), 3, y,
                   etk_offset4(&y->d, b, h, j, 0), 3, x->d.shape[3]);
}

static double
score(const struct attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    double s = a->o->scale * dot(&a->q, &a->k, b, h, i, j);
    if (a->bias.p)
        s += etk_get(&a->bias,
                     etk_offset_broadcast(&a->bias.d, 4, (int64_t[]){b, h, i, j}));
    return s;
}

/* The keys that query I sees. Others play no part, whatever they hold. */
static int64_t
seen(const struct attention *a, int64_t i)
{
    return a->o->causal && i + 1 < a->S ? i + 1 : a->S;
}

/* The largest score of query I, and the sum of the e^(s_ij - max): 0 where it sees no
 * key, for then *MAX is 0. */
static void
softmax(const struct attention *a, int64_t b, int64_t h, int64_t i, double *max,
        double *sum)
{
    *max = -INFINITY;
    *sum = 0;
    for (int64_t j = 0; j < seen(a, i); j++)
        *max = fmax(*max, score(a, b, h, i, j));
    if (*max == -INFINITY)
        *max = 0;
    for (int64_t j = 0; j < seen(a, i); j++)
        *sum += exp(score(a, b, h, i, j) - *max);
}

/* Adds FACTOR times row FROM of X to row TO of the result whose sums ACC holds. */
static void
add_row(double *acc, int64_t length, const struct etk_array *x, int64_t b, int64_t h,
        int64_t from, int64_t to, double factor)
{
    int64_t depth = x->d.shape[3];
    double *row = acc + ((b * x->d.shape[1] + h) * length + to) * depth;
    for (int64_t d = 0; d < depth; d++)
        row[d] += factor * etk_get(x, etk_offset4(&x->d, b, h, from, d));
}

void
etk_ref_sdpa(const struct etk_ref *r)
{
    struct attention a = attention_of(r, r->in, 3);
    const struct etk_array *lse = &r->out[1];
    struct et_desc rest = etk_without(&r->out[0].d, 3);
    for (struct etk_pos p = etk_begin(&rest); !p.end; etk_next(&rest, &p)) {
        int64_t b = p.ix[0], h = p.ix[1], i = p.ix[2];
        double max, sum;
        softmax(&a, b, h, i, &max, &sum);
        if (lse->p)
            etk_set(lse, etk_offset_linear(&lse->d, p.n),
                    sum == 0 ? INFINITY : max + log(sum));
        for (int64_t j = 0; j < seen(&a, i) && sum != 0; j++) {
            double w = exp(score(&a, b, h, i, j) - max) / sum;
            if (w != 0)
                add_row(r->acc[0], a.T, &a.v, b, h, j, i, w);
        }
    }
    etk_flush(r, 0);
}

void
etk_ref_sdpa_grad(const struct etk_ref *r)
{
    struct attention a = attention_of(r, r->in + 1, 6);
    const struct etk_array *dout = &r->in[0], *out = &r->in[4], *lse = &r->in[5];
    struct et_desc rest = etk_without(&out->d, 3);
    for (struct etk_pos p = etk_begin(&rest); !p.end; etk_next(&rest, &p)) {
        int64_t b = p.ix[0], h = p.ix[1], i = p.ix[2];
        double l = etk_get(lse, etk_offset_linear(&lse->d, p.n));
        double base = dot(dout, out, b, h, i, i);
        for (int64_t j = 0; j < seen(&a, i); j++) {
            double w = exp(score(&a, b, h, i, j) - l);
            double ds = w * (dot(dout, &a.v, b, h, i, j) - base) * a.o->scale;
            if (w == 0)
                continue;
            if (r->out[0].p)
                add_row(r->acc[0], a.T, &a.k, b, h, j, i, ds);
            if (r->out[1].p)
                add_row(r->acc[1], a.S, &a.q, b, h, i, j, ds);
            if (r->out[2].p)
                add_row(r->acc[2], a.S, dout, b, h, i, j, w);
        }
    }
    for (int k = 0; k < 3; k++)
        etk_flush(r, k);
}
