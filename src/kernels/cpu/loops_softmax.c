/* SPDX-License-Identifier: Apache-2.0 */
/* loops_softmax.c: softmax, its logarithm, cross entropy, and their gradients.
 *
 *   lse = m + log sum_c e^(z_c - m), m = max z;  log softmax(z)_c = z_c - lse
 *   softmax:      dx = y (dy - sum y dy);  log softmax: dx = dy - e^y sum dy
 *   index target: loss = w_t (lse - z_t), 0 where t is ignored, NaN where t is no class
 *   dense target: loss = sum_c w_c t_c (lse - z_c)
 *   dz_c = dloss (e^(z_c - lse) sum_k w_k t_k - w_c t_c), written nowhere else
 *
 * Line by line: three passes over a line that stays in cache. Lines whose elements are
 * neighbours (rows, channels-last) run in vectors. Lines of bf16 and f16 are widened to
 * f32 on the way into that cache and rounded on the way out. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/loops_convert.h"
#include "kernels/cpu/loops_math.h"
#include "kernels/cpu/loops_side.h"

struct softmax_kernel {
    struct et_kernel base;
    enum et_op_id op;
    struct lines lines;
    int pieces, n_in;
    struct side side[5 + 2]; /* operands, then results */
    int64_t ignore;
    bool dense;         /* the target */
    enum et_dtype type; /* of lines */
    unsigned low;       /* bit i: array i is lines of bf16 or f16 */
    size_t rows_at;     /* per piece: their lines in f32 */
};

/* ---- one line: N elements at a distance of S, which callers give as 1 if they can
 * ---- */

INLINE float
line_max(const float *z, int64_t n, int64_t s)
{
    float m = -INFINITY;
#pragma omp simd reduction(max : m)
    for (int64_t c = 0; c < n; c++)
        m = z[c * s] > m ? z[c * s] : m;
    return m;
}

INLINE float
line_lse(const float *z, int64_t n, int64_t s)
{
    float m = line_max(z, n, s), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < n; c++)
        sum += etk_expf(z[c * s] - m);
    /* A line of -inf alone; but NaN hides from the maximum. */
    return m == -INFINITY && z[0] == m ? m : m + etk_logf(sum);
}

INLINE void
softmax_line(const float *x, float *y, int64_t n, int64_t s)
{
    float m = line_max(x, n, s), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < n; c++) {
        float e = etk_expf(x[c * s] - m);
        y[c * s] = e;
        sum += e;
    }
    float scale = 1 / sum;
#pragma omp simd
    for (int64_t c = 0; c < n; c++)
        y[c * s] *= scale;
}

INLINE void
log_softmax_line(const float *x, float *y, int64_t n, int64_t s)
{
    float lse = line_lse(x, n, s);
#pragma omp simd
    for (int64_t c = 0; c < n; c++)
        y[c * s] = x[c * s] - lse;
}

INLINE void
softmax_grad_line(const float *dy, const float *y, float *dx, int64_t n, int64_t s)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < n; c++)
        sum += y[c * s] * dy[c * s];
#pragma omp simd
    for (int64_t c = 0; c < n; c++)
        dx[c * s] = y[c * s] * (dy[c * s] - sum);
}

INLINE void
log_softmax_grad_line(const float *dy, const float *y, float *dx, int64_t n, int64_t s)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < n; c++)
        sum += dy[c * s];
#pragma omp simd
    for (int64_t c = 0; c < n; c++)
        dx[c * s] = dy[c * s] - etk_expf(y[c * s]) * sum;
}

/* The target of one position. */
struct target {
    const float *dense;  /* NULL: an index */
    const float *weight; /* [C], or NULL */
    int32_t index;
};

INLINE float
dense_loss(const struct target *t, const float *z, float lse, int64_t n, int64_t s)
{
    float loss = 0;
#pragma omp simd reduction(+ : loss)
    for (int64_t c = 0; c < n; c++) {
        float w = t->dense[c * s] * (t->weight ? t->weight[c] : 1);
        loss += w != 0 ? w * (lse - z[c * s]) : 0;
    }
    return loss;
}

INLINE float
line_loss(const struct softmax_kernel *k, const struct target *t, const float *z,
          float lse, int64_t s)
{
    if (t->dense)
        return dense_loss(t, z, lse, k->lines.n, s);
    if (t->index == k->ignore)
        return 0;
    if (t->index < 0 || t->index >= k->lines.n)
        return NAN;
    float w = t->weight ? t->weight[t->index] : 1;
    return w != 0 ? w * (lse - z[t->index * s]) : 0;
}

INLINE void
dense_loss_grad(const struct target *t, const float *z, float *dz, float lse, float d,
                int64_t n, int64_t s)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < n; c++)
        sum += t->dense[c * s] * (t->weight ? t->weight[c] : 1);
#pragma omp simd
    for (int64_t c = 0; c < n; c++) {
        float w = t->dense[c * s] * (t->weight ? t->weight[c] : 1);
        dz[c * s] = d * (etk_expf(z[c * s] - lse) * sum - w);
    }
}

INLINE void
line_loss_grad(const struct softmax_kernel *k, const struct target *t, const float *z,
               float *dz, float lse, float d, int64_t s)
{
    int64_t n = k->lines.n;
    if (t->dense) {
        dense_loss_grad(t, z, dz, lse, d, n, s);
        return;
    }
    bool ignored = t->index == k->ignore;
    if (ignored || t->index < 0 || t->index >= n) {
        for (int64_t c = 0; c < n; c++)
            dz[c * s] = ignored ? 0 : NAN;
        return;
    }
    d *= t->weight ? t->weight[t->index] : 1;
#pragma omp simd
    for (int64_t c = 0; c < n; c++)
        dz[c * s] = d * etk_expf(z[c * s] - lse);
    dz[t->index * s] = d * (etk_expf(z[t->index * s] - lse) - 1);
}

/* ---- all lines ---- */

/* P: operands, then results, dense. LINE is the number, AT its first element. */
INLINE void
one_line(const struct softmax_kernel *k, void *const *p, int64_t line, int64_t at,
         int64_t s)
{
    int64_t n = k->lines.n;
    struct target t = {0};
    if (k->op == ET_OP_softmax)
        softmax_line((float *)p[0] + at, (float *)p[1] + at, n, s);
    else if (k->op == ET_OP_log_softmax)
        log_softmax_line((float *)p[0] + at, (float *)p[1] + at, n, s);
    else if (k->op == ET_OP_softmax_grad)
        softmax_grad_line((float *)p[0] + at, (float *)p[1] + at, (float *)p[2] + at, n,
                          s);
    else if (k->op == ET_OP_log_softmax_grad)
        log_softmax_grad_line((float *)p[0] + at, (float *)p[1] + at,
                              (float *)p[2] + at, n, s);
    else {
        bool grad = k->op == ET_OP_cross_entropy_grad;
        const void *target = p[1 + grad];
        const float *z = (float *)p[grad] + at;
        t.weight = grad ? (k->n_in > 4 ? p[4] : NULL) : (k->n_in > 2 ? p[2] : NULL);
        if (k->dense)
            t.dense = (const float *)target + at;
        else
            t.index = ((const int32_t *)target)[line];
        if (grad) {
            line_loss_grad(k, &t, z, (float *)p[k->n_in] + at, ((float *)p[3])[line],
                           ((float *)p[0])[line], s);
            return;
        }
        float lse = line_lse(z, n, s), *loss = p[k->n_in], *to = p[k->n_in + 1];
        if (loss)
            loss[line] = line_loss(k, &t, z, lse, s);
        if (to)
            to[line] = lse;
    }
}

/* One whose elements are neighbours, in f32. No inline: compiling it is slow. */
static void
dense_line(const struct softmax_kernel *k, void *const *p, int64_t line, int64_t at)
{
    one_line(k, p, line, at, 1);
}

/* One line with those arrays of P that are low in ROWS, a line each. */
INLINE void
low_line(const struct softmax_kernel *k, void *const *p, int n_arrays, int64_t line,
         int64_t at, int64_t s, enum et_dtype type, float *rows)
{
    int64_t n = k->lines.n;
    void *q[7];
    for (int i = 0; i < n_arrays; i++) {
        bool low = p[i] && k->low >> i & 1;
        q[i] = low ? rows + i * n : p[i];
        if (low && i < k->n_in)
            widen_line(rows + i * n, (uint16_t *)p[i] + at, n, s, type);
    }
    dense_line(k, q, line, 0);
    for (int i = k->n_in; i < n_arrays; i++)
        if (p[i] && k->low >> i & 1)
            narrow_line((uint16_t *)p[i] + at, rows + i * n, n, s, type);
}

/* Lines [BEGIN, END). */
static void
run_lines(const struct softmax_kernel *k, void *const *p, int n_arrays, float *rows,
          int64_t begin, int64_t end)
{
    const struct lines *l = &k->lines;
    for (int64_t i = begin; i < end; i++) {
        int64_t s = l->inner, at = i / s * l->n * s + i % s;
        if (k->low && k->type == ET_BF16)
            low_line(k, p, n_arrays, i, at, s, ET_BF16, rows);
        else if (k->low)
            low_line(k, p, n_arrays, i, at, s, ET_F16, rows);
        else if (s == 1)
            dense_line(k, p, i, at);
        else
            one_line(k, p, i, at, s);
    }
}

static et_status
run_softmax(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct softmax_kernel *k = (const struct softmax_kernel *)kernel;
    const struct lines *l = &k->lines;
    int n_out = k->op == ET_OP_cross_entropy ? 2 : 1, n_arrays = k->n_in + n_out;
    int64_t count = l->outer * l->inner;
    void *p[7] = {NULL};
    for (int i = 0; i < k->n_in; i++)
        p[i] = (void *)side_read(&k->side[i], ptr[i], ws);
    for (int i = k->n_in; i < n_arrays; i++)
        p[i] = side_write(&k->side[i], ptr[i], ws);
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++)
        run_lines(k, p, n_arrays,
                  (float *)((char *)ws + k->rows_at) + piece * n_arrays * l->n,
                  count * piece / k->pieces, count * (piece + 1) / k->pieces);
    for (int i = k->n_in; i < n_arrays; i++)
        side_flush(&k->side[i], ptr[i], ws);
    return ET_OK;
}

/* ---- preparing ---- */

/* Lines are all of X's dtype, all else is f32 or an index. *LOW: which are not f32. */
static et_status
check_dtypes(const struct et_call *call, const struct et_desc *x, unsigned *low,
             char *why, size_t why_size)
{
    bool may = x->dtype == ET_BF16 || x->dtype == ET_F16;
    *low = 0;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const struct et_desc *d =
            i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        bool is_line = may && et_desc_same_shape(d, x);
        bool good =
            is_line ? d->dtype == x->dtype : d->dtype == ET_F32 || d->dtype == ET_I32;
        if (d->dtype != ET_NONE && !good)
            return etk_refuse(why, why_size, "lines of %s beside %s on the CPU",
                              et_dtype_name(x->dtype), et_dtype_name(d->dtype));
        *low |= (unsigned)(is_line && d->dtype != ET_NONE) << i;
    }
    return ET_OK;
}

/* All arrays of the shape of X lie alike; those of positions, row-major. */
static et_status
prepare(struct et_device_handle *d, const struct et_call *call, const struct et_desc *x,
        int axis, struct softmax_kernel **out, size_t *ws, char *why, size_t why_size)
{
    unsigned low;
    ET_TRY(check_dtypes(call, x, &low, why, why_size));
    struct softmax_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct et_desc want = lines_layout(x, axis, &k->lines);
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        bool result = i >= call->n_in;
        const struct et_desc *have = result ? &call->out[i - call->n_in] : &call->in[i];
        struct et_desc as = et_desc_same_shape(have, x) ? want : row_major(have);
        as.dtype = have->dtype;
        side_init(&k->side[i], have, &as, result, ws);
    }
    k->op = call->op;
    k->n_in = call->n_in;
    int64_t count = k->lines.outer * k->lines.inner;
    k->pieces = pieces_for(d, count * k->lines.n, count);
    k->type = x->dtype;
    k->low = low;
    if (low)
        k->rows_at = reserve(ws, (size_t)(k->pieces * (call->n_in + call->n_out)) *
                                     (size_t)k->lines.n * sizeof(float));
    k->base.run = run_softmax;
    k->base.what = "loop:softmax";
    *out = k;
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_softmax)(struct et_device_handle *d, const struct et_call *call,
                              struct et_kernel **out, size_t *ws, char *why,
                              size_t why_size)
{
    const struct et_axis_attr *o = call->attr;
    struct softmax_kernel *k;
    ET_TRY(prepare(d, call, &call->in[0], o->axis, &k, ws, why, why_size));
    *out = &k->base;
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_cross_entropy)(struct et_device_handle *d,
                                    const struct et_call *call, struct et_kernel **out,
                                    size_t *ws, char *why, size_t why_size)
{
    const struct et_cross_entropy_attr *o = call->attr;
    int logits = call->op == ET_OP_cross_entropy_grad;
    struct softmax_kernel *k;
    ET_TRY(prepare(d, call, &call->in[logits], 1, &k, ws, why, why_size));
    k->ignore = o->ignore_index;
    k->dense = call->in[logits + 1].dtype != ET_I32;
    k->base.what = "loop:cross_entropy";
    *out = &k->base;
    return ET_OK;
}
