/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c: batch, layer and group normalisation, and their gradients.
 *
 * With mean m, biased variance v and x^ = (x - m)/sqrt(v + eps) over a set of elements:
 *
 *   y  = gamma x^ + beta (+ residual), through relu where attr.relu says so
 *   dx = (g - mean(g) - x^ mean(g x^))/sqrt(v + eps) (+ dsum),  g = gamma dy
 *
 * Layer norm's residual is added to x before all else, and the sum is a result.
 *
 * A set is a channel (batch norm; Ioffe and Szegedy, arXiv:1502.03167), the last axes
 * of a position (layer norm; Ba et al., arXiv:1607.06450), or a group of channels of
 * one sample (group norm; Wu and He, arXiv:1803.08494). */
#include "kernels/ref/array.h"

#include <math.h>

static double
affine(const struct etk_array *a, int64_t n, double otherwise)
{
    return a->p ? etk_get(a, etk_offset_linear(&a->d, n)) : otherwise;
}

static void
store(const struct etk_array *a, int64_t n, double v)
{
    if (a->p)
        etk_set(a, etk_offset_linear(&a->d, n), v);
}

/* Operand K, or an absent one. */
static struct etk_array
operand(const struct etk_ref *r, int k)
{
    return k < r->n_in ? r->in[k] : (struct etk_array){.p = NULL};
}

/* ---- batch norm: one channel at a time ---- */

/* A walk over channel C: REST is x without axis 1. */
static struct etk_pos
begin_channel(const struct et_desc *rest, int64_t c)
{
    struct etk_pos i = etk_begin(rest);
    i.ix[1] = c;
    return i;
}

static void
next_channel(const struct et_desc *rest, struct etk_pos *i, int64_t c)
{
    etk_next(rest, i);
    i->ix[1] = c;
}

static void
batch_statistics(const struct etk_array *x, const struct et_desc *rest, int64_t c,
                 double *mean, double *var)
{
    double sum = 0, squares = 0, n = (double)et_desc_count(rest);
    for (struct etk_pos i = begin_channel(rest, c); !i.end; next_channel(rest, &i, c))
        sum += etk_get(x, etk_offset(&x->d, i.ix));
    *mean = sum / n;
    for (struct etk_pos i = begin_channel(rest, c); !i.end; next_channel(rest, &i, c)) {
        double v = etk_get(x, etk_offset(&x->d, i.ix)) - *mean;
        squares += v * v;
    }
    *var = squares / n;
}

void
etk_ref_batch_norm(const struct etk_ref *r)
{
    const struct et_norm_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    struct etk_array gamma = operand(r, 1), beta = operand(r, 2),
                     residual = operand(r, 3);
    struct et_desc rest = etk_without(&x->d, 1);
    for (int64_t c = 0; c < x->d.shape[1]; c++) {
        double mean, var;
        batch_statistics(x, &rest, c, &mean, &var);
        double scale = affine(&gamma, c, 1) / sqrt(var + o->eps);
        for (struct etk_pos i = begin_channel(&rest, c); !i.end;
             next_channel(&rest, &i, c)) {
            double v = (etk_get(x, etk_offset(&x->d, i.ix)) - mean) * scale;
            v += affine(&beta, c, 0);
            if (residual.p) /* as if the norm's own result had been stored */
                v = etk_round(o->stored ? (enum et_dtype)o->stored : y->d.dtype, v) +
                    etk_get(&residual, etk_offset(&residual.d, i.ix));
            etk_set(y, etk_offset(&y->d, i.ix), o->relu && v < 0 ? 0 : v);
        }
        store(&r->out[1], c, mean);
        store(&r->out[2], c, var);
    }
}

/* dy, cleared where relu cut y off. */
static double
masked(const struct etk_ref *r, const int64_t *ix)
{
    const struct et_norm_attr *o = r->attr;
    const struct etk_array *dy = &r->in[0], *y = &r->in[5];
    if (o->relu && etk_get(y, etk_offset(&y->d, ix)) <= 0)
        return 0;
    return etk_get(dy, etk_offset(&dy->d, ix));
}

void
etk_ref_batch_norm_grad(const struct etk_ref *r)
{
    const struct et_norm_attr *o = r->attr;
    const struct etk_array *x = &r->in[1], *dx = &r->out[0], *dresidual = &r->out[3];
    struct et_desc rest = etk_without(&x->d, 1);
    double n = (double)et_desc_count(&rest);
    for (int64_t c = 0; c < x->d.shape[1]; c++) {
        double mean = affine(&r->in[3], c, 0);
        double rstd = 1 / sqrt(affine(&r->in[4], c, 0) + o->eps);
        double sum = 0, sum_xhat = 0, scale = affine(&r->in[2], c, 1) * rstd;
        for (struct etk_pos i = begin_channel(&rest, c); !i.end;
             next_channel(&rest, &i, c)) {
            double g = masked(r, i.ix);
            sum += g;
            sum_xhat += g * (etk_get(x, etk_offset(&x->d, i.ix)) - mean) * rstd;
        }
        for (struct etk_pos i = begin_channel(&rest, c); !i.end;
             next_channel(&rest, &i, c)) {
            double xhat = (etk_get(x, etk_offset(&x->d, i.ix)) - mean) * rstd;
            double g = masked(r, i.ix);
            etk_set(dx, etk_offset(&dx->d, i.ix),
                    scale * (g - sum / n - xhat * sum_xhat / n));
            if (r->n_out > 3)
                etk_set(dresidual, etk_offset(&dresidual->d, i.ix), g);
        }
        store(&r->out[1], c, sum_xhat);
        store(&r->out[2], c, sum);
    }
}

/* ---- layer and group norm: ROWS stretches of SIZE elements in row-major order ---- */

struct rows {
    int64_t count, size;
    int64_t groups; /* group norm: stretches per sample; else 1 */
    int64_t repeat; /* elements in a row that share a gamma */
};

static struct rows
layer_rows(const struct et_desc *x, const struct et_norm_attr *o)
{
    struct rows v = {.count = 1, .size = 1, .groups = 1, .repeat = 1};
    for (int k = 0; k < x->ndim; k++)
        *(k < x->ndim - o->axes ? &v.count : &v.size) *= x->shape[k];
    return v;
}

static struct rows
group_rows(const struct et_desc *x, const struct et_norm_attr *o)
{
    struct rows v = {
        .count = x->shape[0] * o->groups, .groups = o->groups, .repeat = 1};
    for (int k = 2; k < x->ndim; k++)
        v.repeat *= x->shape[k];
    v.size = x->shape[1] / o->groups * v.repeat;
    return v;
}

static double
at(const struct etk_array *a, const struct rows *v, int64_t row, int64_t i)
{
    return etk_get(a, etk_offset_linear(&a->d, row * v->size + i));
}

/* Which gamma belongs to element I of ROW. */
static int64_t
channel(const struct rows *v, int64_t row, int64_t i)
{
    return (row % v->groups * v->size + i) / v->repeat;
}

/* x, or x + residual as x's dtype holds it. */
static double
input(const struct etk_ref *r, const struct rows *v, int64_t row, int64_t i)
{
    const struct etk_array *x = &r->in[0];
    struct etk_array residual = operand(r, 3);
    double value = at(x, v, row, i);
    return residual.p ? etk_round(x->d.dtype, value + at(&residual, v, row, i)) : value;
}

static void
norm(const struct etk_ref *r, struct rows v)
{
    const struct et_norm_attr *o = r->attr;
    struct etk_array gamma = operand(r, 1), beta = operand(r, 2);
    for (int64_t row = 0; row < v.count; row++) {
        double mean = 0, var = 0;
        for (int64_t i = 0; i < v.size; i++)
            mean += input(r, &v, row, i) / (double)v.size;
        for (int64_t i = 0; i < v.size; i++)
            var += pow(input(r, &v, row, i) - mean, 2) / (double)v.size;
        double rstd = 1 / sqrt(var + o->eps);
        for (int64_t i = 0; i < v.size; i++) {
            int64_t c = channel(&v, row, i), n = row * v.size + i;
            double x = input(r, &v, row, i);
            double y = (x - mean) * rstd * affine(&gamma, c, 1) + affine(&beta, c, 0);
            /* y may be narrower than x: as if it had been stored in x's dtype first. */
            store(&r->out[0], n, etk_round(r->in[0].d.dtype, y));
            if (r->n_out > 3)
                store(&r->out[3], n, x);
        }
        store(&r->out[1], row, mean);
        store(&r->out[2], row, rstd);
    }
}

static void
norm_grad(const struct etk_ref *r, struct rows v)
{
    const struct etk_array *dy = &r->in[0], *x = &r->in[1];
    struct etk_array dsum = operand(r, 5);
    for (int64_t row = 0; row < v.count; row++) {
        double mean = affine(&r->in[3], row, 0), rstd = affine(&r->in[4], row, 0);
        double sum = 0, sum_xhat = 0;
        for (int64_t i = 0; i < v.size; i++) {
            int64_t c = channel(&v, row, i);
            double d = at(dy, &v, row, i), xhat = (at(x, &v, row, i) - mean) * rstd;
            double g = d * affine(&r->in[2], c, 1);
            sum += g / (double)v.size;
            sum_xhat += g * xhat / (double)v.size;
            if (r->out[1].p)
                r->acc[1][c] += d * xhat;
            if (r->out[2].p)
                r->acc[2][c] += d;
        }
        for (int64_t i = 0; i < v.size; i++) {
            double xhat = (at(x, &v, row, i) - mean) * rstd;
            double g = at(dy, &v, row, i) * affine(&r->in[2], channel(&v, row, i), 1);
            /* As if dx had been stored before the sum. */
            double dx = etk_round(x->d.dtype, rstd * (g - sum - xhat * sum_xhat));
            if (dsum.p)
                dx = etk_round(x->d.dtype, dx + at(&dsum, &v, row, i));
            store(&r->out[0], row * v.size + i, dx);
            if (r->n_out > 3)
                store(&r->out[3], row * v.size + i, dx);
        }
    }
    etk_flush(r, 1);
    etk_flush(r, 2);
}

void
etk_ref_layer_norm(const struct etk_ref *r)
{
    norm(r, layer_rows(&r->in[0].d, r->attr));
}

void
etk_ref_layer_norm_grad(const struct etk_ref *r)
{
    norm_grad(r, layer_rows(&r->in[1].d, r->attr));
}

void
etk_ref_group_norm(const struct etk_ref *r)
{
    norm(r, group_rows(&r->in[0].d, r->attr));
}

void
etk_ref_group_norm_grad(const struct etk_ref *r)
{
    norm_grad(r, group_rows(&r->in[1].d, r->attr));
}
