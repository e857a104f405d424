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

void
etk_ref_matmul(const struct etk_ref *r)
{
    const struct et_matmul_attr *o = r->attr;
    const struct etk_array *y = &r->out[0], *bias = r->n_in > 2 ? &r->in[2] : NULL;
    struct etk_array a = r->in[0], b = r->in[1];
    a.d = turned(&a.d, o->trans_a);
    b.d = turned(&b.d, o->trans_b);
    int ndim = y->d.ndim;
    const int64_t *as = &a.d.stride[a.d.ndim - 2];
    const int64_t *bs = &b.d.stride[b.d.ndim - 2];
    int64_t terms = a.d.shape[a.d.ndim - 1];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        int64_t at = matrix_offset(&a.d, ndim, i.ix) + i.ix[ndim - 2] * as[0];
        int64_t bt = matrix_offset(&b.d, ndim, i.ix) + i.ix[ndim - 1] * bs[1];
        double sum = etk_dot(&a, at, a.d.ndim - 1, &b, bt, b.d.ndim - 2, terms);
        if (bias && bias->p)
            sum += etk_get(bias, etk_offset_broadcast(&bias->d, ndim, i.ix));
        etk_set(y, etk_offset(&y->d, i.ix), sum);
    }
}
