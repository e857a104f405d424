/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.c: products of matrices: y = op(a) op(b) + bias.
 *
 *   a [..., M, K], b [..., K, N] or [K, N], bias [N]? -> y [..., M, N]
 *   da = dy op(b)^T, db = op(a)^T dy, dbias = dy summed over all but the last axis */
#include "core/base/need.h"
#include "core/ops/ops.h"

#include <stddef.h>

/* Attributes of both ops begin alike. */
_Static_assert(offsetof(struct et_matmul_fused_attr, trans_b) ==
                   offsetof(struct et_matmul_attr, trans_b),
               "a product's attributes come first");

struct sides {
    int64_t m, k, n; /* of op(a) op(b) */
};

static struct sides
sides_of(const struct et_call *call)
{
    const struct et_matmul_attr *o = call->attr;
    const int64_t *a = call->in[0].shape + call->in[0].ndim - 2;
    const int64_t *b = call->in[1].shape + call->in[1].ndim - 2;
    return (struct sides){
        .m = a[o->trans_a != 0],
        .k = a[o->trans_a == 0],
        .n = b[o->trans_b == 0],
    };
}

ETI_INFER(matmul_infer)
{
    const struct et_matmul_attr *o = call->attr;
    const struct et_desc *a = &call->in[0], *b = &call->in[1];
    char left[ETI_TEXT], right[ETI_TEXT];
    int64_t shape[ET_MAX_DIMS];

    ET_TRY(eti_need_ndim(cx, call, 0, "a", 2, ET_MAX_DIMS));
    ET_TRY(eti_need_ndim(cx, call, 1, "b", 2, ET_MAX_DIMS));
    ET_TRY(eti_need_float(cx, call, 0, "a"));
    ET_TRY(eti_need_dtype(cx, call, 1, "b", a->dtype));
    struct sides s = sides_of(call);
    bool fits = s.k == b->shape[b->ndim - 2 + (o->trans_b != 0)];
    if (b->ndim > 2)
        fits = fits && a->ndim == b->ndim &&
               !memcmp(a->shape, b->shape, (size_t)(a->ndim - 2) * sizeof *a->shape);
    if (!fits)
        return ETI_FAIL(cx, call, ET_ESHAPE, "%s%s times %s%s does not fit",
                        et_desc_text(a, left, sizeof left), o->trans_a ? "^T" : "",
                        et_desc_text(b, right, sizeof right), o->trans_b ? "^T" : "");
    if (eti_operand(call, 2)) {
        ET_TRY(eti_need_dtype(cx, call, 2, "bias", a->dtype));
        ET_TRY(eti_need_shape(cx, call, 2, "bias", 1, &s.n));
    }
    memcpy(shape, a->shape, sizeof shape);
    shape[a->ndim - 2] = s.m;
    shape[a->ndim - 1] = s.n;
    et_desc_init(out, a->dtype, a->ndim, shape, ET_ROW_MAJOR);
    return ET_OK;
}

static int64_t
matmul_flops(const struct et_call *call)
{
    struct sides s = sides_of(call);
    int64_t matrix = call->in[0].shape[call->in[0].ndim - 2] *
                     call->in[0].shape[call->in[0].ndim - 1];
    int64_t batch = matrix ? et_desc_count(&call->in[0]) / matrix : 0;
    return 2 * batch * s.m * s.k * s.n;
}

/* The gradient of a; dy op(b)^T needs its left side to carry the batch. */
static struct et_tensor *
gradient_a(struct et_graph *g, struct et_tensor *dy, struct et_tensor *a,
           struct et_tensor *b, const struct et_matmul_attr *o)
{
    if (o->trans_a && b->desc.ndim == a->desc.ndim)
        return et_matmul(g, b, dy, o->trans_b, true);
    struct et_tensor *da = et_matmul(g, dy, b, false, !o->trans_b);
    return o->trans_a ? et_transpose(g, da, -2, -1) : da;
}

/* The gradient of b. One matrix for a whole batch: the batch is more rows. */
static struct et_tensor *
gradient_b(struct et_graph *g, struct et_tensor *dy, struct et_tensor *a,
           struct et_tensor *b, const struct et_matmul_attr *o)
{
    bool trans_a = o->trans_a;
    if (dy && b->desc.ndim == 2 && a->desc.ndim > 2) {
        if (trans_a)
            a = et_transpose(g, a, -2, -1);
        if (!a)
            return NULL;
        trans_a = false;
        a = et_reshape(g, a, 2, (int64_t[]){-1, a->desc.shape[a->desc.ndim - 1]});
        dy = et_reshape(g, dy, 2, (int64_t[]){-1, dy->desc.shape[dy->desc.ndim - 1]});
    }
    return o->trans_b ? et_matmul(g, dy, a, true, trans_a)
                      : et_matmul(g, a, dy, !trans_a, false);
}

ETI_GRADIENT(matmul_gradient)
{
    const struct et_matmul_attr *o = node->attr;
    struct et_tensor *a = node->in[0], *b = node->in[1];
    if (want[0])
        dx[0] = gradient_a(g, dy[0], a, b, o);
    if (want[1])
        dx[1] = gradient_b(g, dy[0], a, b, o);
    if (node->n_in > 2 && node->in[2] && want[2])
        dx[2] = eti_sum_like(g, dy[0], node->in[2]);
    return et_graph_status(g);
}

const struct et_op et_op_matmul = {
    .name = "matmul",
    .summary = "matrix product, of a batch or with one matrix",
    .id = ET_OP_matmul,
    .min_in = 2,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(struct et_matmul_attr),
    .flags = ET_OPF_PRODUCT,
    .infer = matmul_infer,
    .gradient = matmul_gradient,
    .flops = matmul_flops,
};

/* ---- with what follows it ---- */

/* Shape of MORE: as Y, or a vector of its rows or columns. */
static et_status
describe_more(struct et_ctx *cx, const struct et_call *call, const struct et_desc *y,
              struct et_desc *more)
{
    const struct et_matmul_fused_attr *o = call->attr;
    int64_t n = y->shape[y->ndim - 1], m = n ? et_desc_count(y) / n : 0;
    switch (o->form) {
    case ET_EPILOGUE_GELU:
        *more = *y;
        return ET_OK;
    case ET_EPILOGUE_GELU_GRAD:
    case ET_EPILOGUE_SUM_B:
        et_desc_init(more, y->dtype, 1, &n, ET_ROW_MAJOR);
        return ET_OK;
    case ET_EPILOGUE_SUM_A:
        et_desc_init(more, y->dtype, 1, &m, ET_ROW_MAJOR);
        return ET_OK;
    default:
        return ETI_FAIL(cx, call, ET_EINVAL, "no form %d", (int)o->form);
    }
}

ETI_INFER(matmul_fused_infer)
{
    const struct et_matmul_fused_attr *o = call->attr;
    bool biased = eti_operand(call, 2) != NULL, grad = o->form == ET_EPILOGUE_GELU_GRAD;
    bool sums = o->form == ET_EPILOGUE_SUM_A || o->form == ET_EPILOGUE_SUM_B;
    ET_TRY(matmul_infer(cx, call, out, view_offset));
    if (sums) /* of one matrix */
        ET_TRY(eti_need_ndim(cx, call, 0, "a", 2, 2));
    if (biased && o->form != ET_EPILOGUE_GELU)
        return ETI_FAIL(cx, call, ET_EINVAL, "form %d has no bias", (int)o->form);
    if ((eti_operand(call, 3) != NULL) != grad)
        return ETI_FAIL(cx, call, ET_EINVAL, "form %d %s pre", (int)o->form,
                        grad ? "needs" : "has no");
    if (grad) {
        ET_TRY(eti_need_dtype(cx, call, 3, "pre", out->dtype));
        ET_TRY(eti_need_shape(cx, call, 3, "pre", out->ndim, out->shape));
    }
    return describe_more(cx, call, out, out + 1);
}

const struct et_op et_op_matmul_fused = {
    .name = "matmul_fused",
    .summary = "matrix product, and what follows it, in one kernel",
    .id = ET_OP_matmul_fused,
    .min_in = 2,
    .max_in = 4,
    .n_out = 2,
    .attr_size = sizeof(struct et_matmul_fused_attr),
    .flags = ET_OPF_PRODUCT,
    .infer = matmul_fused_infer,
    .flops = matmul_flops,
};

struct et_tensor *
et_matmul(struct et_graph *g, struct et_tensor *a, struct et_tensor *b, bool trans_a,
          bool trans_b)
{
    ETI_NEED_IN(g, g);
    struct et_matmul_attr attr = {.trans_a = trans_a, .trans_b = trans_b};
    return ETI_APPLY_ATTR(g, matmul, &attr, NULL, a, b);
}

enum {
    WIDE = 1024, /* columns from which on padding adds little: at most 6 % */
    TALL =
        4096, /* rows from which on it pays: padding W moves it once more, which is 10 %
                    of the product's time at 200 FLOPs a byte */
};

/* The columns that x w^T should have on G's device: those of W, or more. */
static int64_t
columns_for(const struct et_graph *g, const struct et_tensor *x,
            const struct et_tensor *w)
{
    int64_t unit = eti_aligned_columns(g), n = w->desc.shape[0], rows = 1;
    for (int i = 0; i < x->desc.ndim - 1; i++)
        rows *= x->desc.shape[i];
    bool pays = unit > 0 && w->desc.ndim == 2 && n >= WIDE && rows >= TALL;
    return pays ? (n + unit - 1) / unit * unit : n;
}

/* X with zeros behind it on its first axis, N in all. */
static struct et_tensor *
lengthen(struct et_graph *g, struct et_tensor *x, int64_t n)
{
    static const int64_t none[ET_MAX_DIMS];
    x = eti_autocast_low(g, x);
    if (!x)
        return NULL;
    return et_pad(g, x, none, (int64_t[ET_MAX_DIMS]){n - x->desc.shape[0]}, 0);
}

struct et_tensor *
et_linear(struct et_graph *g, struct et_tensor *x, struct et_tensor *w,
          struct et_tensor *bias)
{
    ETI_NEED_IN(g, g);
    struct et_matmul_attr attr = {.trans_b = 1};
    if (!x || !w)
        return ETI_MISSING(g, x, w);
    int64_t n = w->desc.shape[0], columns = columns_for(g, x, w);
    if (columns > n) {
        struct et_tensor *y = et_linear(g, x, lengthen(g, w, columns),
                                        bias ? lengthen(g, bias, columns) : NULL);
        return et_slice(g, y, -1, 0, n, 1);
    }
    return bias ? ETI_APPLY_ATTR(g, matmul, &attr, NULL, x, w, bias)
                : ETI_APPLY_ATTR(g, matmul, &attr, NULL, x, w);
}
