/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa_graph.c: see sdpa_graph.h.
 *
 * The sequence of operations is what cuDNN's engines recognise (documented with
 * cudnn-frontend, docs/operations/Attention.md), from which they make one kernel that
 * keeps scores in registers: no operation may be added, left out or moved. Keys are
 * given as [B,H,D,S], the same memory with two axes exchanged; backward, values too. */
#include "kernels/cuda/sdpa_graph.h"

#include <math.h>

enum { B, H, ROW, STEP, AXES };

/* An attention while its graph is written. */
struct writer {
    struct etk_dnn_graph *g;
    const struct etk_sdpa *a;
    cudnnDataType_t dtype;
    int64_t scores[AXES], rows[AXES]; /* shapes [B,H,T,S] and [B,H,T,1] */
};

static int
pointwise(struct writer *w, cudnnPointwiseMode_t mode, int x, int b,
          const int64_t shape[AXES])
{
    int out = etk_dnn_virtual(w->g, CUDNN_DATA_FLOAT, AXES, shape);
    return etk_dnn_pointwise(w->g, mode, x, b, ETK_DNN_NO_TENSOR, out);
}

/* The array WHAT as [B,H,ROWS,D], TURNED as [B,H,D,ROWS]. */
static int
add_heads(struct writer *w, enum etk_sdpa_array what, int64_t rows, bool turned)
{
    const struct etk_heads *at = &w->a->heads[what];
    int64_t shape[AXES] = {w->a->B, w->a->H, rows, w->a->D};
    int64_t stride[AXES] = {at->b, at->h, at->row, at->step};
    if (turned) {
        shape[ROW] = w->a->D;
        shape[STEP] = rows;
        stride[ROW] = at->step;
        stride[STEP] = at->row;
    }
    return etk_dnn_tensor(w->g, w->dtype, AXES, shape, stride, (int)what);
}

static int
add_lse(struct writer *w)
{
    const int64_t *at = w->a->lse_stride;
    int64_t stride[AXES] = {at[B], at[H], at[ROW], 1};
    return etk_dnn_tensor(w->g, CUDNN_DATA_FLOAT, AXES, w->rows, stride, ETK_SDPA_LSE);
}

/* The bias as it lies in memory: axes along which it repeats have length 1. */
static int
add_bias(struct writer *w)
{
    int64_t shape[AXES], stride[AXES];
    cudnnDataType_t dtype = CUDNN_DATA_FLOAT;
    (void)etk_dnn_dtype(w->a->bias, &dtype);
    for (int i = 0; i < AXES; i++) {
        shape[i] = w->a->bias_stride[i] ? w->scores[i] : 1;
        stride[i] = w->a->bias_stride[i] ? w->a->bias_stride[i] : 1;
    }
    return etk_dnn_tensor(w->g, dtype, AXES, shape, stride, ETK_SDPA_BIAS);
}

/* -infinity where the key comes after the query. */
static int
mask(struct writer *w, int s)
{
    int i = etk_dnn_index(w->g, ROW, s,
                          etk_dnn_virtual(w->g, CUDNN_DATA_INT32, AXES, w->scores));
    int j = etk_dnn_index(w->g, STEP, s,
                          etk_dnn_virtual(w->g, CUDNN_DATA_INT32, AXES, w->scores));
    int seen = etk_dnn_virtual(w->g, CUDNN_DATA_BOOLEAN, AXES, w->scores);
    etk_dnn_pointwise(w->g, CUDNN_POINTWISE_CMP_GE, i, j, ETK_DNN_NO_TENSOR, seen);
    int nothing = etk_dnn_value(w->g, AXES, -INFINITY);
    int out = etk_dnn_virtual(w->g, CUDNN_DATA_FLOAT, AXES, w->scores);
    return etk_dnn_pointwise(w->g, CUDNN_POINTWISE_BINARY_SELECT, s, nothing, seen,
                             out);
}

/* scale q k^T, with the bias. */
static int
score(struct writer *w, int q, int k)
{
    int s = etk_dnn_virtual(w->g, CUDNN_DATA_FLOAT, AXES, w->scores);
    etk_dnn_matmul(w->g, q, k, s);
    s = pointwise(w, CUDNN_POINTWISE_MUL, s, etk_dnn_value(w->g, AXES, w->a->scale),
                  w->scores);
    return w->a->bias == ET_NONE
               ? s
               : pointwise(w, CUDNN_POINTWISE_ADD, s, add_bias(w), w->scores);
}

/* X [B,H,T,S] in the heads' dtype as [B,H,S,T]. */
static int
turn(struct writer *w, int x)
{
    const int64_t *n = w->scores;
    int64_t shape[AXES] = {n[B], n[H], n[STEP], n[ROW]};
    int64_t stride[AXES] = {n[H] * n[ROW] * n[STEP], n[ROW] * n[STEP], 1, n[STEP]};
    return etk_dnn_reshape(
        w->g, x, etk_dnn_virtual_strided(w->g, w->dtype, AXES, shape, stride));
}

static void
write_forward(struct writer *w)
{
    const struct etk_sdpa *a = w->a;
    int q = add_heads(w, ETK_SDPA_Q, a->T, false);
    int s = score(w, q, add_heads(w, ETK_SDPA_K, a->S, true));
    if (a->causal)
        s = mask(w, s);
    int most = etk_dnn_reduce(w->g, CUDNN_REDUCE_TENSOR_MAX, s,
                              etk_dnn_virtual(w->g, CUDNN_DATA_FLOAT, AXES, w->rows));
    int p = pointwise(w, CUDNN_POINTWISE_SUB, s, most, w->scores);
    p = pointwise(w, CUDNN_POINTWISE_EXP, p, ETK_DNN_NO_TENSOR, w->scores);
    int sum = etk_dnn_reduce(w->g, CUDNN_REDUCE_TENSOR_ADD, p,
                             etk_dnn_virtual(w->g, CUDNN_DATA_FLOAT, AXES, w->rows));
    int lse = pointwise(w, CUDNN_POINTWISE_LOG, sum, ETK_DNN_NO_TENSOR, w->rows);
    etk_dnn_pointwise(w->g, CUDNN_POINTWISE_ADD, most, lse, ETK_DNN_NO_TENSOR,
                      add_lse(w));
    int narrow = etk_dnn_virtual(w->g, w->dtype, AXES, w->scores);
    etk_dnn_pointwise(w->g, CUDNN_POINTWISE_DIV, p, sum, ETK_DNN_NO_TENSOR, narrow);
    int v = add_heads(w, ETK_SDPA_V, a->S, false);
    etk_dnn_matmul(w->g, narrow, v, add_heads(w, ETK_SDPA_O, a->T, false));
}

/* do . o, in memory. */
static int
write_row_sums(struct writer *w, int grad)
{
    const struct etk_sdpa *a = w->a;
    int64_t heads[AXES] = {a->B, a->H, a->T, a->D};
    int64_t dense[AXES] = {a->H * a->T, a->T, 1, 1};
    int x = pointwise(w, CUDNN_POINTWISE_MUL, grad,
                      add_heads(w, ETK_SDPA_O, a->T, false), heads);
    x = etk_dnn_reduce(w->g, CUDNN_REDUCE_TENSOR_ADD, x,
                       etk_dnn_virtual(w->g, CUDNN_DATA_FLOAT, AXES, w->rows));
    /* (What dropout would scale by.) */
    int one = etk_dnn_value(w->g, AXES, 1);
    int sum =
        etk_dnn_tensor(w->g, CUDNN_DATA_FLOAT, AXES, w->rows, dense, ETK_SDPA_SUM);
    return etk_dnn_pointwise(w->g, CUDNN_POINTWISE_MUL, x, one, ETK_DNN_NO_TENSOR, sum);
}

/* dq = ds k, through a sum in memory that blocks add to, or at once. */
static void
write_query_gradient(struct writer *w, int ds, int k, bool deterministic)
{
    const struct etk_sdpa *a = w->a;
    const struct etk_heads *at = &a->heads[ETK_SDPA_K];
    int64_t keys[AXES] = {a->B, a->H, a->S, a->D};
    int64_t stride[AXES] = {at->b, at->h, at->row, at->step};
    int64_t heads[AXES] = {a->B, a->H, a->T, a->D};
    int64_t dense[AXES] = {a->H * a->T * a->D, a->T * a->D, a->D, 1};
    k = etk_dnn_reshape(w->g, k,
                        etk_dnn_virtual_strided(w->g, w->dtype, AXES, keys, stride));
    int dq = add_heads(w, ETK_SDPA_DQ, a->T, false);
    if (deterministic) {
        etk_dnn_matmul(w->g, ds, k, dq);
        return;
    }
    int total =
        etk_dnn_tensor(w->g, CUDNN_DATA_FLOAT, AXES, heads, dense, ETK_SDPA_TOTAL);
    etk_dnn_matmul(w->g, ds, k, total);
    etk_dnn_pointwise(w->g, CUDNN_POINTWISE_IDENTITY, total, ETK_DNN_NO_TENSOR,
                      ETK_DNN_NO_TENSOR, dq);
}

static void
write_backward(struct writer *w, bool deterministic)
{
    const struct etk_sdpa *a = w->a;
    int grad = add_heads(w, ETK_SDPA_DO, a->T, false);
    int sum = write_row_sums(w, grad);
    int q = add_heads(w, ETK_SDPA_Q, a->T, false);
    int k = add_heads(w, ETK_SDPA_K, a->S, true);
    int s = pointwise(w, CUDNN_POINTWISE_SUB, score(w, q, k), add_lse(w), w->scores);
    if (a->causal)
        s = mask(w, s);
    int p = pointwise(w, CUDNN_POINTWISE_EXP, s, ETK_DNN_NO_TENSOR, w->scores);
    etk_dnn_matmul(w->g, turn(w, p), grad, add_heads(w, ETK_SDPA_DV, a->S, false));

    int dp = etk_dnn_virtual(w->g, CUDNN_DATA_FLOAT, AXES, w->scores);
    etk_dnn_matmul(w->g, grad, add_heads(w, ETK_SDPA_V, a->S, true), dp);
    dp = pointwise(w, CUDNN_POINTWISE_SUB, dp, sum, w->scores);
    dp = pointwise(w, CUDNN_POINTWISE_MUL, dp, p, w->scores);
    int ds = etk_dnn_virtual(w->g, w->dtype, AXES, w->scores);
    etk_dnn_pointwise(w->g, CUDNN_POINTWISE_MUL, dp,
                      etk_dnn_value(w->g, AXES, a->scale), ETK_DNN_NO_TENSOR, ds);
    etk_dnn_matmul(w->g, turn(w, ds), q, add_heads(w, ETK_SDPA_DK, a->S, false));
    write_query_gradient(w, ds, k, deterministic);
}

void
etk_sdpa_graph(struct etk_dnn_graph *g, const struct etk_sdpa *a, bool deterministic)
{
    struct writer w = {
        .g = g,
        .a = a,
        .dtype = CUDNN_DATA_FLOAT,
        .scores = {a->B, a->H, a->T, a->S},
        .rows = {a->B, a->H, a->T, 1},
    };
    (void)etk_dnn_dtype(a->dtype, &w.dtype); /* one of the three that it knows */
    if (a->grad)
        write_backward(&w, deterministic);
    else
        write_forward(&w);
}
