/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.c: y[.., m, n] = sum_k op(a)[.., m, k] op(b)[.., k, n] + bias[.., n].
 *
 * b without leading axes serves every matrix of a; the bias broadcasts to y. */
#include "kernels/ref/array.h"

/* The last two axes of A as rows and columns of op(A). */
static struct et_desc
turned(const struct et_desc *a, bool turn)
{
    struct et_desc d = *a;
    if (turn) {
        d.shape[d.ndim - 1] = a->shape[d.ndim - 2];
        d.shape[d.ndim - 2] = a->shape[d.ndim - 1];
        d.stride[d.ndim - 1] = a->stride[d.ndim - 2];
        d.stride[d.ndim - 2] = a->stride[d.ndim - 1];
    }
    return d;
}

/* Where the matrix begins that belongs to the one of y at IX. */
static int64_t
matrix_offset(const struct et_desc *d, int ndim, const int64_t *ix)
{
    struct et_desc leading = *d;
    leading.shape[d->ndim - 1] = leading.shape[d->ndim - 2] = 1;
    return etk_offset_broadcast(&leading, ndim, ix);
}

/* Element I of Y before what follows it. */
static double
element(const struct etk_ref *r, const struct etk_array *a, const struct etk_array *b,
        const struct etk_pos *i)
{
    const struct etk_array *y = &r->out[0], *bias = r->n_in > 2 ? &r->in[2] : NULL;
    int ndim = y->d.ndim;
    const int64_t *as = &a->d.stride[a->d.ndim - 2];
    const int64_t *bs = &b->d.stride[b->d.ndim - 2];
    int64_t at = matrix_offset(&a->d, ndim, i->ix) + i->ix[ndim - 2] * as[0];
    int64_t bt = matrix_offset(&b->d, ndim, i->ix) + i->ix[ndim - 1] * bs[1];
    double sum =
        etk_dot(a, at, a->d.ndim - 1, b, bt, b->d.ndim - 2, a->d.shape[a->d.ndim - 1]);
    if (bias && bias->p)
        sum += etk_get(bias, etk_offset_broadcast(&bias->d, ndim, i->ix));
    return sum;
}

void
etk_ref_matmul(const struct etk_ref *r)
{
    const struct et_matmul_attr *o = r->attr;
    const struct etk_array *y = &r->out[0];
    struct etk_array a = r->in[0], b = r->in[1];
    a.d = turned(&a.d, o->trans_a);
    b.d = turned(&b.d, o->trans_b);
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i))
        etk_set(y, etk_offset(&y->d, i.ix), element(r, &a, &b, &i));
}

/* ---- with what follows it ---- */

/* more[i] = sum over the first axis of X, or the last, of what stands at I of the
 * rest. */
static void
sum_operand(const struct etk_array *x, bool over_rows, const struct etk_array *more)
{
    int rows = x->d.ndim - 2, columns = x->d.ndim - 1;
    int over = over_rows ? rows : columns;
    struct et_desc rest = etk_without(&x->d, over);
    for (struct etk_pos p = etk_begin(&rest); !p.end; etk_next(&rest, &p)) {
        double sum = 0;
        int64_t at = etk_offset(&rest, p.ix);
        for (int64_t k = 0; k < x->d.shape[over]; k++)
            sum += etk_get(x, at + k * x->d.stride[over]);
        etk_set(more, etk_offset_linear(&more->d, p.n), sum);
    }
}

/* Sums of the gradient are of what has not been rounded, in the workspace. */
void
etk_ref_matmul_fused(const struct etk_ref *r)
{
    const struct et_matmul_fused_attr *o = r->attr;
    const struct etk_array *y = &r->out[0], *more = &r->out[1];
    bool grad = o->form == ET_EPILOGUE_GELU_GRAD, gelu = o->form == ET_EPILOGUE_GELU;
    const struct etk_array *pre = grad ? &r->in[3] : NULL;
    etk_scalar_fn *follows = gelu   ? etk_scalar(ET_OP_gelu_tanh)
                             : grad ? etk_scalar(ET_OP_gelu_tanh_grad)
                                    : NULL;
    struct etk_array a = r->in[0], b = r->in[1];
    a.d = turned(&a.d, o->trans_a);
    b.d = turned(&b.d, o->trans_b);
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        double x[2] = {element(r, &a, &b, &i), 0};
        if (grad)
            x[1] = etk_get(pre, etk_offset(&pre->d, i.ix));
        double value = follows ? follows(x, 0, 0) : x[0];
        etk_set(y, etk_offset(&y->d, i.ix), value);
        if (more->p && gelu)
            etk_set(more, etk_offset(&more->d, i.ix), x[0]);
        if (more->p && grad)
            r->acc[1][i.ix[y->d.ndim - 1]] += value;
    }
    if (more->p && grad)
        etk_flush(r, 1);
    else if (more->p && !gelu)
        sum_operand(o->form == ET_EPILOGUE_SUM_A ? &a : &b,
                    o->form == ET_EPILOGUE_SUM_B, more);
}
