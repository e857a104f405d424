/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.c: matrix products by oneDNN.
 *
 *   y[...,m,n] = b[n] + sum_k A[...,m,k] B[...,k,n]     A, B: a, b or their transposes
 *
 * A transpose is only an exchange of strides. Leading axes that lie one behind the
 * other are merged; where B has none, those of A become rows, so that one large product
 * runs. Operands go to oneDNN with the strides they have wherever it has a fast kernel
 * for that, and packed otherwise. Where rows are many, B is brought into the layout
 * oneDNN asks for first. That is worth nothing for most shapes and costs little, but
 * the input's gradient of a GPT-2's MLP ran at 189 GF/s with B as it lies and at 322
 * packed (two threads, bench/cpu/matmul). */
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/tiles.h"

#include <string.h>

/* Packing costs about what 32 rows of the product do. */
#define PACK_FROM ETK_MATMUL_PACK /* rows */

/* So many terms in a sum pay for transposing the result. */
#define STAND_FROM ETK_MATMUL_STAND

/* A, B, y as arrays of the same number of axes, each [batch..., rows, columns]. */
struct product {
    struct et_desc a, b, y;
    int64_t n_batch; /* batch axes */
    int first; /* the operand of the op that A is: 0, or 1 if they changed places */
};

/* [batch..., rows, columns] with NB batch axes; absent batch axes have length 1. */
static void
view(struct et_desc *v, const struct et_desc *d, bool transposed, int nb)
{
    int own = d->ndim - 2;
    memset(v, 0, sizeof *v);
    v->dtype = d->dtype;
    v->ndim = nb + 2;
    for (int i = 0; i < nb; i++) {
        v->shape[i] = own > 0 ? d->shape[i] : 1;
        v->stride[i] = own > 0 ? d->stride[i] : 0;
    }
    for (int i = 0; i < 2; i++) {
        int from = own + (transposed ? 1 - i : i);
        v->shape[nb + i] = d->shape[from];
        v->stride[nb + i] = d->stride[from];
    }
}

static void
drop_axis(struct et_desc *d, int axis)
{
    for (int i = axis; i + 1 < d->ndim; i++) {
        d->shape[i] = d->shape[i + 1];
        d->stride[i] = d->stride[i + 1];
    }
    d->ndim--;
    d->shape[d->ndim] = d->stride[d->ndim] = 0;
}

/* Whether axis I runs on into axis I + 1, so that both are one axis. */
static bool
runs_on(const struct et_desc *d, int i)
{
    return d->shape[i] == 1 || d->shape[i + 1] == 1 ||
           d->stride[i] == d->shape[i + 1] * d->stride[i + 1];
}

static void
merge_axis(struct et_desc *d, int i)
{
    if (d->shape[i + 1] == 1)
        d->stride[i + 1] = d->stride[i];
    d->shape[i + 1] *= d->shape[i];
    drop_axis(d, i);
}

/* Merges batch axes, and all of them into the rows where B has none. */
static void
simplify(struct product *p, int nb)
{
    for (int i = nb - 1; i >= 0; i--) {
        bool alone = true;
        for (int j = 0; j < nb; j++)
            alone = alone && p->b.shape[j] == 1;
        bool last = i == nb - 1;
        if (last && alone && runs_on(&p->a, i) && runs_on(&p->y, i)) {
            merge_axis(&p->a, i);
            merge_axis(&p->y, i);
            drop_axis(&p->b, i);
            nb--;
        } else if (!last && runs_on(&p->a, i) && runs_on(&p->b, i) &&
                   runs_on(&p->y, i)) {
            merge_axis(&p->a, i);
            merge_axis(&p->b, i);
            merge_axis(&p->y, i);
            nb--;
        }
    }
    p->n_batch = nb;
}

static void
transpose(struct et_desc *d)
{
    int r = d->ndim - 2, c = d->ndim - 1;
    int64_t shape = d->shape[r], stride = d->stride[r];
    d->shape[r] = d->shape[c];
    d->stride[r] = d->stride[c];
    d->shape[c] = shape;
    d->stride[c] = stride;
}

/* A gradient of weights, A with its columns contiguous, is computed as B^T A^T where it
 * has more columns than rows, and transposed behind. 768 x 4096 x 3072 from cold
 * caches, two threads: 137 GF/s as given, 271 the other way round. */
static void
stand_upright(struct product *p)
{
    int r = p->n_batch, c = r + 1;
    if (r > 0 || p->a.stride[r] != 1 || p->a.stride[c] == 1 || p->b.stride[c] != 1 ||
        p->y.shape[r] >= p->y.shape[c] || p->a.shape[c] < STAND_FROM)
        return;
    struct et_desc a = p->a;
    p->a = p->b;
    p->b = a;
    p->first = 1;
    transpose(&p->a);
    transpose(&p->b);
    transpose(&p->y);
}

/* Dense in the order of axes; row-major. */
static struct et_desc
dense(const struct et_desc *d)
{
    struct et_desc v;
    et_desc_init(&v, d->dtype, d->ndim, d->shape, ET_ROW_MAJOR);
    return v;
}

/* Gives axes of length 1 the strides that they have in a packed array. Theirs count for
 * nothing and may be anything; but oneDNN tells from the strides which way a matrix
 * lies and how long its rows are. (One column of 6 rows with strides 1 and 3 is to it a
 * matrix of 6 columns in rows of 3, which it refuses to multiply when it is to run.) */
static void
settle_strides(struct et_desc *d)
{
    int r = d->ndim - 2, c = d->ndim - 1;
    if (d->shape[c] == 1)
        d->stride[c] = 1;
    if (d->shape[r] == 1) /* beside a column that steps over rows, it lies turned */
        d->stride[r] = d->stride[c] == 1 ? d->shape[c] : 1;
    for (int i = r - 1; i >= 0; i--)
        if (d->shape[i] == 1)
            d->stride[i] = d->shape[i + 1] * d->stride[i + 1];
}

/* Whether a matrix is one BLAS would take: one of its two axes is contiguous and the
 * other steps over whole rows. */
static bool
is_plain(const struct et_desc *d, bool may_transpose)
{
    int r = d->ndim - 2, c = d->ndim - 1;
    /* One row whose elements lie apart: oneDNN 3.7 reads them as if they did not. */
    if (d->shape[r] == 1 && d->shape[c] > 1 && d->stride[c] != 1)
        return false;
    bool rows = (d->stride[c] == 1 || d->shape[c] == 1) &&
                (d->stride[r] >= d->shape[c] || d->shape[r] == 1);
    bool columns = (d->stride[r] == 1 || d->shape[r] == 1) &&
                   (d->stride[c] >= d->shape[r] || d->shape[c] == 1);
    for (int i = 0; i < r; i++)
        if (d->stride[i] == 0 && d->shape[i] > 1)
            return false;
    return rows || (may_transpose && columns);
}

/* The layouts of a product, and what oneDNN makes of them. */
struct layouts {
    etk_layout a, b, bias, y; /* b: as it lies. bias NULL: none */
    const_dnnl_primitive_desc_t pd;
};

static struct layouts
describe_product(struct etk_program *p, const struct et_desc *a,
                 const struct et_desc *b, const struct et_desc *bias,
                 const struct et_desc *y)
{
    struct layouts l = {
        .a = etk_program_layout(p, a),
        .b = etk_program_layout(p, b),
        .bias = bias ? etk_program_layout(p, bias) : NULL,
        .y = etk_program_layout(p, y),
    };
    bool pack = a->ndim == 2 && a->shape[0] >= PACK_FROM;
    l.pd = etk_program_matmul(p, l.a, pack ? etk_program_layout_any(p, b) : l.b, l.bias,
                              l.y);
    return l;
}

/* [N] as [1, ..., 1, N]: oneDNN's bias has the axes of the result. */
static struct et_desc
bias_view(const struct et_desc *b, int ndim)
{
    int64_t shape[ET_MAX_DIMS] = {1, 1, 1, 1, 1, 1};
    struct et_desc v;
    shape[ndim - 1] = b->shape[0];
    et_desc_init(&v, b->dtype, ndim, shape, ET_ROW_MAJOR);
    v.stride[ndim - 1] = b->stride[0];
    return v;
}

/* K is 0: the sum over nothing, plus the bias. Y is dense as the op makes it. */
static et_status
prepare_empty_sum(struct et_device_handle *d, const struct et_call *call,
                  struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_desc *y = &call->out[0];
    struct et_desc rows = dense(y), bias;
    struct etk_program *p = etk_program_new(d);
    int my = etk_program_output(p, y, &rows, etk_program_layout(p, &rows), call->n_in);
    etk_program_zero(p, my, et_desc_bytes(&rows));
    if (call->n_in > 2 && call->in[2].dtype == ET_F32) {
        bias = dense(&call->in[2]);
        int mb =
            etk_program_input(p, &call->in[2], &bias, etk_program_layout(p, &bias), 2);
        int64_t n = y->shape[y->ndim - 1];
        etk_program_bias(p, my, mb, et_desc_count(y) / n, n);
    }
    etk_program_store(p, y, &rows, my, call->n_in);
    return etk_program_finish(p, out, ws, why, why_size);
}

et_status
etk_prepare_matmul(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_matmul_attr *attr = call->attr;
    bool biased = call->n_in > 2 && call->in[2].dtype != ET_NONE;
    for (int i = 0; i < 2; i++)
        if (etk_data_type(d, call->in[i].dtype) == dnnl_data_type_undef)
            return etk_refuse(why, why_size, "oneDNN does not multiply %s on CPUs",
                              et_dtype_name(call->in[i].dtype));
    if (et_desc_count(&call->in[0]) == 0 && call->out[0].dtype == ET_F32)
        return prepare_empty_sum(d, call, out, ws, why, why_size);
    struct product v = {.first = 0};
    int nb = call->out[0].ndim - 2;
    view(&v.a, &call->in[0], attr->trans_a, nb);
    view(&v.b, &call->in[1], attr->trans_b, nb);
    view(&v.y, &call->out[0], false, nb);
    simplify(&v, nb);
    settle_strides(&v.a);
    settle_strides(&v.b);
    settle_strides(&v.y);
    if (!biased)
        stand_upright(&v);

    struct et_desc a = is_plain(&v.a, true) ? v.a : dense(&v.a);
    struct et_desc b = is_plain(&v.b, true) ? v.b : dense(&v.b);
    struct et_desc y = is_plain(&v.y, false) ? v.y : dense(&v.y);
    struct et_desc given = {0}, bias = {0};
    if (biased) {
        given = bias_view(&call->in[2], y.ndim);
        bias = dense(&given);
    }
    struct etk_program *p = etk_program_new(d);
    struct layouts l = describe_product(p, &a, &b, biased ? &bias : NULL, &y);
    if (!l.pd) { /* strides oneDNN has only its reference for */
        a = dense(&v.a);
        b = dense(&v.b);
        y = dense(&v.y);
        l = describe_product(p, &a, &b, biased ? &bias : NULL, &y);
    }
    etk_program_require(p, l.pd);
    int memory_bias = biased ? etk_program_input(p, &given, &bias, l.bias, 2) : 0;
    etk_layout best = etk_desc_layout(l.pd, dnnl_query_weights_md);
    int mb = etk_program_input(p, &v.b, &b, l.b, !v.first);
    int my = etk_program_output(p, &v.y, &y, l.y, call->n_in);
    etk_program_add(p, l.pd,
                    (struct etk_arg[]){
                        {DNNL_ARG_SRC, etk_program_input(p, &v.a, &a, l.a, v.first)},
                        {DNNL_ARG_WEIGHTS, etk_program_reorder(p, mb, l.b, best)},
                        {DNNL_ARG_DST, my},
                        {biased ? DNNL_ARG_BIAS : 0, memory_bias},
                        {0, 0},
                    });
    etk_program_store(p, &v.y, &y, my, call->n_in);
    return etk_program_finish(p, out, ws, why, why_size);
}
