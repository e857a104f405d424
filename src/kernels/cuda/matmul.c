/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.c: y = op(a) op(b) + bias, by cuBLASLt where it takes the operands.
 *
 *   a [..., M, K], b [..., K, N] or [K, N], bias [N]? -> y [..., M, N]
 *
 * A transpose is only an exchange of strides. Batch axes that run on are merged; where
 * b has none, those of a become rows, so that one large product runs. Of what remains
 * cuBLASLt takes one batch axis: the longest; it is called once for each position along
 * the others. Strides that it does not take, and batches of too many calls, go to the
 * kernel of matmul.cu. Row-major against column-major: gemm.c. */
#include "config.h"
#include "kernels/cuda/matmul_fused.h"

#include <stdio.h>
#include <string.h>

enum { MOST_CALLS = 32 }; /* of cuBLASLt for one product */

struct matmul_kernel {
    struct et_kernel base;
    struct etk_product product;
    size_t in, out;            /* bytes of an element */
    int n_in;                  /* operands of the call; y follows them */
    int calls;                 /* of cuBLASLt; 0: the own kernel */
    int64_t at[MOST_CALLS][3]; /* where each call's a, b and y begin, in elements */
    struct etk_gemm gemm;
    struct etk_choice wide, loose; /* for multiples of ETK_WIDE; for any */
    bool has_loose;
};

/* ---- the product ---- */

/* D as NB batch axes of Y's, rows and columns; TURN exchanges the last two. */
static struct etk_matrix
matrix_of(const struct et_desc *d, bool turn, int nb)
{
    struct etk_matrix x = {0};
    int rows = d->ndim - 2, columns = d->ndim - 1, first = nb - rows;
    x.row = d->stride[turn ? columns : rows];
    x.column = d->stride[turn ? rows : columns];
    for (int i = 0; i < rows; i++)
        x.batch[first + i] = d->shape[i] == 1 ? 0 : d->stride[i];
    return x;
}

static void
drop_axis(struct etk_product *p, int axis)
{
    for (int i = axis; i + 1 < p->n_batch; i++) {
        p->batch[i] = p->batch[i + 1];
        p->a.batch[i] = p->a.batch[i + 1];
        p->b.batch[i] = p->b.batch[i + 1];
        p->y.batch[i] = p->y.batch[i + 1];
    }
    p->n_batch--;
}

static bool
runs_on(const struct etk_product *p, const struct etk_matrix *x, int axis)
{
    return x->batch[axis] == p->batch[axis + 1] * x->batch[axis + 1];
}

/* Where b serves all along the last batch axis, and the rows of a and y run on. */
static bool
more_rows(const struct etk_product *p)
{
    int last = p->n_batch - 1;
    return p->b.batch[last] == 0 &&
           (p->m == 1 || (p->a.batch[last] == p->m * p->a.row &&
                          p->y.batch[last] == p->m * p->y.row));
}

static void
simplify(struct etk_product *p)
{
    for (int i = p->n_batch - 1; i >= 0; i--) {
        if (p->batch[i] == 1) {
            drop_axis(p, i);
        } else if (i == p->n_batch - 1 && more_rows(p)) {
            if (p->m == 1) {
                p->a.row = p->a.batch[i];
                p->y.row = p->y.batch[i];
            }
            p->m *= p->batch[i];
            drop_axis(p, i);
        } else if (i + 1 < p->n_batch && runs_on(p, &p->a, i) && runs_on(p, &p->b, i) &&
                   runs_on(p, &p->y, i)) {
            p->batch[i + 1] *= p->batch[i];
            drop_axis(p, i);
        }
    }
}

static struct etk_product
product_of(const struct et_call *call)
{
    const struct et_matmul_attr *o = call->attr;
    const struct et_desc *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
    bool biased = call->n_in > 2 && call->in[2].dtype != ET_NONE;
    int nb = y->ndim - 2;
    struct etk_product p = {
        .in = a->dtype,
        .out = y->dtype,
        .bias = biased ? call->in[2].dtype : ET_NONE,
        .n_batch = nb,
        .m = y->shape[nb],
        .n = y->shape[nb + 1],
        .k = a->shape[a->ndim - (o->trans_a ? 2 : 1)],
        .a = matrix_of(a, o->trans_a, nb),
        .b = matrix_of(b, o->trans_b, nb),
        .y = matrix_of(y, false, nb),
        .bias_stride = biased ? call->in[2].stride[0] : 0,
    };
    memcpy(p.batch, y->shape, (size_t)nb * sizeof *p.batch);
    simplify(&p);
    return p;
}

/* ---- for cuBLASLt ---- */

/* X of ROWS x COLUMNS as cuBLASLt takes it; false where it does not. The stride along
 * an axis of length 1 is free. */
static bool
side_of(const struct etk_matrix *x, int64_t rows, int64_t columns, bool may_turn,
        struct etk_gemm_side *out)
{
    if ((x->column == 1 || columns == 1) && (x->row >= columns || rows == 1)) {
        *out = (struct etk_gemm_side){.ld = rows == 1 ? columns : x->row};
        return true;
    }
    if (may_turn && (x->row == 1 || rows == 1) && (x->column >= rows || columns == 1)) {
        *out = (struct etk_gemm_side){.turned = true,
                                      .ld = columns == 1 ? rows : x->column};
        return true;
    }
    return false;
}

/* cuBLASLt (13.0) adds no bias to a result that is wider than its operands: its advice
 * calls that an invalid value. */
static bool
fits_dtypes(const struct etk_product *p)
{
    bool in = p->in == ET_F32 || p->in == ET_BF16 || p->in == ET_F16;
    bool bias = p->bias == ET_NONE || (p->bias == p->out && p->out == p->in &&
                                       (p->bias_stride == 1 || p->n == 1));
    return in && bias && (p->out == p->in || p->out == ET_F32);
}

static int
longest_axis(const struct etk_product *p)
{
    int best = 0;
    for (int i = 1; i < p->n_batch; i++)
        if (p->batch[i] > p->batch[best])
            best = i;
    return best;
}

/* Fills SHAPE and where the calls begin; no calls where the own kernel is better. */
static void
plan_calls(struct matmul_kernel *k, bool tf32, struct etk_gemm_shape *shape)
{
    const struct etk_product *p = &k->product;
    *shape = (struct etk_gemm_shape){.in = p->in,
                                     .out = p->out,
                                     .epilogue = p->bias == ET_NONE
                                                     ? CUBLASLT_EPILOGUE_DEFAULT
                                                     : CUBLASLT_EPILOGUE_BIAS,
                                     .tf32 = tf32 && p->in == ET_F32,
                                     .m = p->m,
                                     .n = p->n,
                                     .k = p->k,
                                     .batch = 1};
    int64_t calls = 1;
    int axis = longest_axis(p);
    for (int i = 0; i < p->n_batch; i++)
        calls *= i == axis ? 1 : p->batch[i];
    if (calls > MOST_CALLS || p->k == 0 || !fits_dtypes(p) ||
        !side_of(&p->a, p->m, p->k, true, &shape->a) ||
        !side_of(&p->b, p->k, p->n, true, &shape->b) ||
        !side_of(&p->y, p->m, p->n, false, &shape->y))
        return;
    if (p->n_batch > 0) {
        shape->batch = p->batch[axis];
        shape->a.batch = p->a.batch[axis];
        shape->b.batch = p->b.batch[axis];
        shape->y.batch = p->y.batch[axis];
    }
    if (p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX ||
        shape->batch > INT32_MAX)
        return;
    k->calls = (int)calls;
    for (int call = 0; call < k->calls; call++) {
        int64_t rest = call, *at = k->at[call];
        for (int i = p->n_batch - 1; i >= 0; i--) {
            if (i == axis)
                continue;
            int64_t ix = rest % p->batch[i];
            rest /= p->batch[i];
            at[0] += ix * p->a.batch[i];
            at[1] += ix * p->b.batch[i];
            at[2] += ix * p->y.batch[i];
        }
    }
}

bool
etk_matmul_shape(const struct et_call *call, bool tf32, struct etk_gemm_shape *shape)
{
    struct matmul_kernel k = {.product = product_of(call)};
    plan_calls(&k, tf32, shape);
    return k.calls == 1 && shape->batch == 1;
}

static void
release_matmul(struct et_kernel *base)
{
    etk_gemm_close(&((struct matmul_kernel *)base)->gemm);
}

/* Algorithms for both alignments. Without one for any address, or with none at all, the
 * own kernel does it. */
static et_status
choose(struct et_device_handle *d, struct matmul_kernel *k, size_t *ws)
{
    struct etk_gemm_shape shape;
    plan_calls(k, d->tf32, &shape);
    if (k->calls == 0)
        return ET_OK;
    ET_TRY(etk_gemm_open(d, &shape, &k->gemm));
    et_status status = etk_blas_choose(d, &shape, &k->gemm, ETK_WIDE, &k->wide);
    if (status == ET_ENOTSUP) {
        k->calls = 0;
        return ET_OK;
    }
    ET_TRY(status);
    status = etk_blas_choose(d, &shape, &k->gemm, (unsigned)k->in, &k->loose);
    if (status != ET_OK && status != ET_ENOTSUP)
        return status;
    k->has_loose = status == ET_OK;
    *ws = k->wide.workspace;
    if (k->has_loose && k->loose.workspace > *ws)
        *ws = k->loose.workspace;
    return ET_OK;
}

/* ---- running ---- */

static struct etk_gemm_operands
operands_of(const struct matmul_kernel *k, void *const *ptr, int call)
{
    const int64_t *at = k->at[call];
    return (struct etk_gemm_operands){
        .a = (const char *)ptr[0] + (size_t)at[0] * k->in,
        .b = (const char *)ptr[1] + (size_t)at[1] * k->in,
        .vector = k->product.bias == ET_NONE ? NULL : ptr[2],
        .y = (char *)ptr[k->n_in] + (size_t)at[2] * k->out,
    };
}

/* The algorithm for these addresses; NULL where the library knows none. */
static const struct etk_choice *
choice_of(const struct matmul_kernel *k, const struct etk_gemm_operands *o)
{
    uintptr_t all =
        (uintptr_t)o->a | (uintptr_t)o->b | (uintptr_t)o->vector | (uintptr_t)o->y;
    return all % ETK_WIDE == 0 ? &k->wide : k->has_loose ? &k->loose : NULL;
}

static et_status
run_matmul(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    struct matmul_kernel *k = (struct matmul_kernel *)base;
    bool all = k->calls > 0;
    for (int i = 0; i < k->calls; i++) {
        struct etk_gemm_operands o = operands_of(k, ptr, i);
        all = all && choice_of(k, &o);
    }
    if (!all) {
        struct etk_gemm_operands o = operands_of(k, ptr, 0);
        return etk_launched(
            base, etk_launch_product(&k->product, o.a, o.b, o.vector, o.y, stream));
    }
    for (int i = 0; i < k->calls; i++) {
        struct etk_gemm_operands o = operands_of(k, ptr, i);
        ET_TRY(etk_blas_run(base->dev, &k->gemm, choice_of(k, &o), &o, ws, stream));
    }
    return ET_OK;
}

et_status
etk_prepare_matmul(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    (void)why;
    (void)why_size;
    struct matmul_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_matmul;
    k->base.release = release_matmul;
    k->product = product_of(call);
    k->in = et_dtype_size(k->product.in);
    k->out = et_dtype_size(k->product.out);
    k->n_in = call->n_in;
    et_status status = choose(d, k, ws);
    if (status != ET_OK) {
        etk_release(&k->base);
        return status;
    }
    if (k->calls > 0)
        etk_blas_describe(&k->wide, k->base.what, sizeof k->base.what);
    else
        snprintf(k->base.what, sizeof k->base.what, "product of any strides");
    *out = &k->base;
    return ET_OK;
}
