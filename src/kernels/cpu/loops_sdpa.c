/* SPDX-License-Identifier: Apache-2.0 */
/* loops_sdpa.c: scaled dot-product attention and its gradient, in tiles of queries.
 *
 *   s = scale q k^T + bias, j <= i where causal;  p = e^(s - lse);  o = p v
 *   ds = p (do v^T - do . o);  dq = scale ds k, dk = scale ds^T q, dv = p^T do
 *
 * Vaswani et al., arXiv:1706.03762; p is never stored but recomputed from lse, as in
 * Dao et al., arXiv:2205.14135. Differs: all keys of a tile of 32 queries are scored
 * before one plain softmax, since a tile of scores fits the second cache.
 *
 * A thread takes whole (b, h) planes, so sums have one order. Operands of any strides,
 * in f32, bf16 or f16, are packed into padded rows of f32: keys (backward: values too)
 * also transposed, queries only where their rows are not whole vectors of it already.
 * Then all products are one small product whose vectors run along rows of B and whose
 * tile of C stays in registers. Causal tiles skip the keys to their right. FLOPs of a
 * plane: 4 T S D forward, 10 T S D backward, half where causal. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/loops_math.h"
#include "kernels/cpu/loops_sdpa.h"

#if defined __AVX512F__
#define MAX_VECS 4
#else
#define MAX_VECS 2
#endif
#define K_BLOCK ETK_SDPA_DEPTH /* rows of B: 32 KiB of them */
#define M_ROWS  ETK_SDPA_ROWS
#define M_ROWS2 ETK_SDPA_ROWS_2

/* ---- products: N is whole vectors ---- */

/* All rows of VECS vectors of columns from N on; ROWS at a time. */
INLINE void
product_columns(const struct product *g, int64_t n, int64_t k0, int64_t k,
                const int rows, const int vecs)
{
    const float *b = g->b + k0 * g->b_row + n, *a = g->a + k0 * g->a_column;
    bool add = g->add || k0 > 0;
    int64_t i = 0;
    for (; i + rows <= g->m; i += rows)
        product_tile(g, g->c + i * g->c_row + n, a + i * g->a_row, b, k, add, rows,
                     vecs);
    for (; i < g->m; i++)
        product_tile(g, g->c + i * g->c_row + n, a + i * g->a_row, b, k, add, 1, vecs);
}

static void
multiply(const struct product *g)
{
    for (int64_t k0 = 0; k0 < g->k; k0 += K_BLOCK) {
        int64_t k = g->k - k0 < K_BLOCK ? g->k - k0 : K_BLOCK, n = 0;
        for (; n + MAX_VECS * LANES <= g->n; n += MAX_VECS * LANES)
            product_columns(g, n, k0, k, M_ROWS2, MAX_VECS);
        for (; n + 2 * LANES <= g->n; n += 2 * LANES)
            product_columns(g, n, k0, k, M_ROWS, 2);
        for (; n < g->n; n += LANES)
            product_columns(g, n, k0, k, M_ROWS, 1);
    }
}

/* ---- scores ---- */

/* A tile of N queries from FIRST on, and the keys that some of them sees. */
struct tile {
    int64_t plane, first, n, keys;
    struct rows q, out, grad; /* backward: o and do, too */
};

static struct tile
tile_at(const struct sdpa_kernel *k, int64_t plane, int64_t first)
{
    struct tile t = {.plane = plane, .first = first, .n = k->T - first, .keys = k->S};
    t.n = t.n < TILE ? t.n : TILE;
    if (k->causal && first + t.n < t.keys)
        t.keys = first + t.n;
    return t;
}

static int64_t
whole_vectors(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* The keys that query I sees. */
static int64_t
seen(const struct sdpa_kernel *k, int64_t i)
{
    return k->causal && i + 1 < k->S ? i + 1 : k->S;
}

/* s = q k^T; with a bias, s = scale q k^T + bias. */
static void
score(const struct sdpa_kernel *k, const struct arrays *x, const struct scratch *w,
      const struct tile *t)
{
    multiply(&(struct product){
        .c = w->s,
        .a = t->q.p,
        .b = w->kt,
        .c_row = k->s_pad,
        .a_row = t->q.stride,
        .a_column = 1,
        .b_row = k->s_pad,
        .m = t->n,
        .n = whole_vectors(t->keys),
        .k = k->D,
    });
    if (!k->biased)
        return;
    int64_t at = t->plane / k->H * k->bias[0] + t->plane % k->H * k->bias[1] +
                 t->first * k->bias[2];
    for (int64_t i = 0; i < t->n; i++, at += k->bias[2]) {
        float *restrict s = w->s + i * k->s_pad;
        const float *bias = element(x->bias, at, k->bias_type);
        int64_t step = k->bias[3];
        if (k->bias_type != ET_F32) {
            load_row(w->bias, bias, step, t->keys, k->bias_type);
            bias = w->bias;
            step = 1;
        }
        for (int64_t j = 0; j < t->keys; j++)
            s[j] = s[j] * k->scale + bias[j * step];
    }
}

/* What the scores in a tile still lack; kept for the exponent's one rounding. */
static float
factor_of(const struct sdpa_kernel *k)
{
    return k->biased ? 1 : k->scale;
}

/* s = e^(FACTOR s - SHIFT) for N keys, 0 for the rest of the row of a tile. What pads
 * the last vector is computed and dropped, so that no element runs alone. */
static void
exponentials(float *s, int64_t n, int64_t keys, float factor, float shift)
{
    int64_t whole = whole_vectors(n);
    for (int64_t j = n; j < whole; j++)
        s[j] = s[0];
#pragma omp simd
    for (int64_t j = 0; j < whole; j++)
        s[j] = etk_expf(s[j] * factor - shift);
    memset(s + n, 0, (size_t)(whole_vectors(keys) - n) * sizeof *s);
}

/* s = e^(FACTOR s - max); the sum of it. A query that sees no key has all s 0, a sum of
 * 1, so that its o is 0, and an lse of infinity, with which e^(s - lse) is 0 again. */
static float
softmax_row(float *s, int64_t n, int64_t keys, float factor, float *lse)
{
    int64_t whole = whole_vectors(n);
    float max = s[0] * factor, sum = 0;
    for (int64_t j = n; j < whole; j++)
        s[j] = s[0];
#pragma omp simd reduction(max : max)
    for (int64_t j = 0; j < whole; j++)
        max = s[j] * factor > max ? s[j] * factor : max;
    max = max == -INFINITY ? 0 : max;
    exponentials(s, n, keys, factor, max);
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < whole; j++)
        sum += s[j];
    *lse = sum == 0 ? INFINITY : max + etk_logf(sum);
    return sum == 0 ? 1 : sum;
}

/* ---- forward ---- */

static void
forward_plane(const struct sdpa_kernel *k, const struct arrays *x,
              const struct scratch *w, int64_t plane)
{
    pack_transposed(k, w->kt, plane_of(k, x, K, plane), K, w->q);
    pack(k, w->v, plane_of(k, x, V, plane), V, 0, k->S);
    for (int64_t first = 0; first < k->T; first += TILE) {
        struct tile t = tile_at(k, plane, first);
        float sum[TILE], lse[TILE];
        t.q = rows_of(k, w->q, plane_of(k, x, Q, plane), Q, first, t.n);
        score(k, x, w, &t);
        for (int64_t i = 0; i < t.n; i++)
            sum[i] = softmax_row(w->s + i * k->s_pad, seen(k, first + i), t.keys,
                                 factor_of(k), &lse[i]);
        multiply(&(struct product){
            .c = w->out,
            .a = w->s,
            .b = w->v,
            .c_row = k->d_pad,
            .a_row = k->s_pad,
            .a_column = 1,
            .b_row = k->d_pad,
            .m = t.n,
            .n = k->d_pad,
            .k = t.keys,
        });
        if (x->p[O])
            unpack(k, plane_of(k, x, O, plane), O, w->out, first, t.n, sum);
        float *to = x->lse + plane / k->H * k->lse[0] + plane % k->H * k->lse[1];
        for (int64_t i = 0; x->lse && i < t.n; i++)
            to[(first + i) * k->lse[2]] = lse[i];
    }
}

/* ---- backward ---- */

/* p into s, ds into ds. */
static void
score_gradients(const struct sdpa_kernel *k, const struct arrays *x,
                const struct scratch *w, const struct tile *t)
{
    const float *lse = x->lse + t->plane / k->H * k->lse[0] +
                       t->plane % k->H * k->lse[1] + t->first * k->lse[2];
    score(k, x, w, t);
    multiply(&(struct product){
        .c = w->ds,
        .a = t->grad.p,
        .b = w->vt,
        .c_row = k->s_pad,
        .a_row = t->grad.stride,
        .a_column = 1,
        .b_row = k->s_pad,
        .m = t->n,
        .n = whole_vectors(t->keys),
        .k = k->D,
    });
    for (int64_t i = 0; i < t->n; i++) {
        float *restrict p = w->s + i * k->s_pad, *restrict ds = w->ds + i * k->s_pad;
        float delta = w->delta[i];
        exponentials(p, seen(k, t->first + i), t->keys, factor_of(k),
                     lse[i * k->lse[2]]);
        for (int64_t j = 0; j < whole_vectors(t->keys); j++)
            ds[j] = p[j] * (ds[j] - delta) * k->scale;
    }
}

/* TO += FROM^T ROWS: what a tile's queries add to keys or values. */
static void
add_transposed(const struct sdpa_kernel *k, float *to, const float *from,
               struct rows rows, const struct tile *t)
{
    multiply(&(struct product){
        .c = to,
        .a = from,
        .b = rows.p,
        .c_row = k->d_pad,
        .a_row = 1,
        .a_column = k->s_pad,
        .b_row = rows.stride,
        .m = t->keys,
        .n = k->d_pad,
        .k = t->n,
        .add = true,
    });
}

/* do . o, in the order in which products sum do . v: where one key has all the weight
 * the two cancel. */
static void
add_deltas(const struct sdpa_kernel *k, const struct scratch *w, const struct tile *t)
{
    memset(w->delta, 0, TILE * sizeof *w->delta);
    for (int64_t d = 0; d < k->D; d++)
        for (int64_t i = 0; i < t->n; i++)
            w->delta[i] +=
                t->grad.p[i * t->grad.stride + d] * t->out.p[i * t->out.stride + d];
}

static void
backward_tile(const struct sdpa_kernel *k, const struct arrays *x,
              const struct scratch *w, struct tile *t)
{
    t->q = rows_of(k, w->q, plane_of(k, x, Q, t->plane), Q, t->first, t->n);
    t->grad = rows_of(k, w->grad, plane_of(k, x, DO, t->plane), DO, t->first, t->n);
    t->out = rows_of(k, w->out, plane_of(k, x, O, t->plane), O, t->first, t->n);
    add_deltas(k, w, t);
    score_gradients(k, x, w, t);
    if (k->wants[2])
        add_transposed(k, w->dv, w->s, t->grad, t);
    if (k->wants[1])
        add_transposed(k, w->dk, w->ds, t->q, t);
    if (!k->wants[0])
        return;
    void *dq = plane_of(k, x, DQ, t->plane);
    bool direct = is_whole_vectors(k, DQ);
    multiply(&(struct product){
        .c = direct ? (float *)dq + t->first * k->stride[DQ][2] : w->out,
        .a = w->ds,
        .b = w->k,
        .c_row = direct ? k->stride[DQ][2] : k->d_pad,
        .a_row = k->s_pad,
        .a_column = 1,
        .b_row = k->d_pad,
        .m = t->n,
        .n = k->d_pad,
        .k = t->keys,
    });
    if (!direct)
        unpack(k, dq, DQ, w->out, t->first, t->n, NULL);
}

static void
backward_plane(const struct sdpa_kernel *k, const struct arrays *x,
               const struct scratch *w, int64_t plane)
{
    pack_transposed(k, w->kt, plane_of(k, x, K, plane), K, w->q);
    pack_transposed(k, w->vt, plane_of(k, x, V, plane), V, w->q);
    pack(k, w->k, plane_of(k, x, K, plane), K, 0, k->S);
    memset(w->dk, 0, (size_t)(k->S * k->d_pad) * sizeof *w->dk);
    memset(w->dv, 0, (size_t)(k->S * k->d_pad) * sizeof *w->dv);
    for (int64_t first = 0; first < k->T; first += TILE) {
        struct tile t = tile_at(k, plane, first);
        backward_tile(k, x, w, &t);
    }
    if (k->wants[1])
        unpack(k, plane_of(k, x, DK, plane), DK, w->dk, 0, k->S, NULL);
    if (k->wants[2])
        unpack(k, plane_of(k, x, DV, plane), DV, w->dv, 0, k->S, NULL);
}

/* ---- running and preparing ---- */

static void
run_planes(const struct sdpa_kernel *k, const struct arrays *x, void *ws, bool grad)
{
    int64_t planes = k->B * k->H;
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++) {
        struct scratch w;
        lay_out(k, &w, (float *)((char *)ws + (size_t)piece * k->bytes), grad);
        for (int64_t plane = planes * piece / k->pieces;
             plane < planes * (piece + 1) / k->pieces; plane++)
            (grad ? backward_plane : forward_plane)(k, x, &w, plane);
    }
}

static et_status
run_forward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct sdpa_kernel *k = (const struct sdpa_kernel *)kernel;
    struct arrays x = {
        .p = {[Q] = ptr[0], [K] = ptr[1], [V] = ptr[2], [O] = ptr[k->n_in]},
        .lse = ptr[k->n_in + 1],
        .bias = k->biased ? ptr[3] : NULL,
    };
    run_planes(k, &x, ws, false);
    return ET_OK;
}

static et_status
run_backward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct sdpa_kernel *k = (const struct sdpa_kernel *)kernel;
    struct arrays x = {
        .p = {[DO] = ptr[0],
              [Q] = ptr[1],
              [K] = ptr[2],
              [V] = ptr[3],
              [O] = ptr[4],
              [DQ] = ptr[k->n_in],
              [DK] = ptr[k->n_in + 1],
              [DV] = ptr[k->n_in + 2]},
        .lse = ptr[5],
        .bias = k->biased ? ptr[6] : NULL,
    };
    run_planes(k, &x, ws, true);
    return ET_OK;
}

static void
set_strides(struct sdpa_kernel *k, const struct et_call *call, bool grad)
{
    static const enum operand forward[] = {Q, K, V}, backward[] = {DO, Q, K, V, O};
    const struct et_desc *lse = grad ? &call->in[5] : &call->out[1];
    for (int i = 0; i < (grad ? 5 : 3); i++)
        memcpy(k->stride[grad ? backward[i] : forward[i]], call->in[i].stride,
               sizeof k->stride[0]);
    for (int i = 0; i < call->n_out; i++) {
        enum operand o = grad ? (enum operand)(DQ + i) : O;
        if (!grad && i > 0)
            break;
        memcpy(k->stride[o], call->out[i].stride, sizeof k->stride[0]);
        if (grad)
            k->wants[i] = call->out[i].dtype != ET_NONE;
    }
    memcpy(k->lse, lse->stride, sizeof k->lse);
    int at = grad ? 6 : 3;
    k->biased = call->n_in > at && call->in[at].dtype != ET_NONE;
    k->bias_type = k->biased ? call->in[at].dtype : ET_F32;
    for (int i = 0; k->biased && i < 4; i++) {
        int axis = i - (4 - call->in[at].ndim);
        if (axis >= 0 && call->in[at].shape[axis] > 1)
            k->bias[i] = call->in[at].stride[axis];
    }
}

/* Queries and all else of their elements have one type; lse is f32, a bias either. */
static et_status
check_dtypes(const struct et_call *call, bool grad, char *why, size_t why_size)
{
    const enum et_dtype type = call->in[grad].dtype;
    const int lse = grad ? 5 : call->n_in + 1, bias = grad ? 6 : 3;
    bool good = type == ET_F32 || type == ET_BF16 || type == ET_F16;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        enum et_dtype dtype =
            i < call->n_in ? call->in[i].dtype : call->out[i - call->n_in].dtype;
        bool may =
            dtype == (i == lse ? ET_F32 : type) || (i == bias && dtype == ET_F32);
        good = good && (dtype == ET_NONE || may);
        if (!good)
            return etk_refuse(why, why_size, "attention of %s with %s on the CPU",
                              et_dtype_name(type), et_dtype_name(dtype));
    }
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_sdpa)(struct et_device_handle *d, const struct et_call *call,
                           struct et_kernel **out, size_t *ws, char *why,
                           size_t why_size)
{
    const struct et_sdpa_attr *o = call->attr;
    bool grad = call->op == ET_OP_sdpa_grad;
    const struct et_desc *q = &call->in[grad];
    ET_TRY(check_dtypes(call, grad, why, why_size));
    if (q[0].shape[3] == 0 || q[1].shape[2] == 0)
        return etk_refuse(why, why_size, "attention to %lld keys of %lld elements",
                          (long long)q[1].shape[2], (long long)q[0].shape[3]);
    struct sdpa_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->B = q[0].shape[0];
    k->H = q[0].shape[1];
    k->T = q[0].shape[2];
    k->S = q[1].shape[2];
    k->D = q[0].shape[3];
    k->d_pad = whole_vectors(k->D);
    k->s_pad = whole_vectors(k->S);
    k->n_in = call->n_in;
    k->type = q[0].dtype;
    k->scale = (float)o->scale;
    k->causal = o->causal;
    set_strides(k, call, grad);
    int64_t planes = k->B * k->H;
    k->pieces = planes < d->threads ? (int)planes : d->threads;
    k->pieces = k->pieces > 0 ? k->pieces : 1;
    struct scratch w;
    k->bytes = (size_t)lay_out(k, &w, NULL, grad) * sizeof(float);
    *ws = (size_t)k->pieces * k->bytes;
    k->base.run = grad ? run_backward : run_forward;
    k->base.what = grad ? "loop:sdpa_grad" : "loop:sdpa";
    *out = &k->base;
    return ET_OK;
}
