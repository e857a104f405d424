/* SPDX-License-Identifier: Apache-2.0 */
/* loops_batch_norm.c: batch normalisation of [positions, C], channels innermost.
 *
 *   mean m, biased variance v of each channel over P positions; r = 1/sqrt(v + eps)
 *   y  = (x - m) gamma r + beta (+ residual), through relu where the attribute says so,
 *        the sum after the rounding that the attribute says
 *   dx = gamma r (g - sum(g)/P - (x - m) r^2 sum(g (x - m))/P),
 *        where g is dy where relu let y pass, else 0
 *
 * (Ioffe and Szegedy, arXiv:1502.03167.) Channels-last images are such arrays. Sums are
 * taken about the first position's values, in f32 over 64 rows and beyond in f64: one
 * pass, and no cancellation where a mean is large. Rows of few channels count as one
 * wide row. Forward reads x twice and writes y; backward reads dy, x (and y) twice and
 * writes dx: bound by memory. The second pass runs backwards through each thread's
 * share, to meet what the first one left in the cache. Images are all in f32 or all in
 * bf16, which is read and written where it lies; all else is f32. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/loops_arrays.h"
#include "kernels/cpu/loops_convert.h"
#include "kernels/cpu/tiles.h"

#define WIDE  ETK_BATCH_WIDE
#define ROWS  ETK_BATCH_ROWS
#define BLOCK ETK_BATCH_BLOCK

enum { X_IN, GAMMA, BETA, RESIDUAL };          /* forward: operands */
enum { DY, X_GRAD, GAMMA_GRAD, MEAN, VAR, Y }; /* backward */

struct norm_kernel {
    struct et_kernel base;
    struct arrays arrays;
    int pieces;
    int64_t count, c, width; /* elements; channels; of a wide row */
    double eps;
    bool relu;
    enum et_dtype image;         /* of x, y and what is like them: f32 or bf16 */
    enum et_dtype stored;        /* what the norm is rounded to before a sum */
    size_t coef_at;              /* f32 [4][width] */
    size_t sums_at, piece_bytes; /* per piece: f64 [2][c], f32 [2][width] */
};

/* One piece's share of the elements, in wide rows; the last may be short. */
static void
share_of(const struct norm_kernel *k, int piece, int64_t *begin, int64_t *end)
{
    int64_t rows = (k->count + k->width - 1) / k->width;
    *begin = rows * piece / k->pieces * k->width;
    *end = rows * (piece + 1) / k->pieces * k->width;
    *end = *end < k->count ? *end : k->count;
}

static double *
sums_of(const struct norm_kernel *k, void *ws, int piece)
{
    return (double *)((char *)ws + k->sums_at + (size_t)piece * k->piece_bytes);
}

static float *
coef_of(const struct norm_kernel *k, void *ws, int i)
{
    return (float *)((char *)ws + k->coef_at) + i * k->width;
}

/* Sets coefficient I of channel C in all rows of a wide row. */
static void
set_coef(const struct norm_kernel *k, void *ws, int i, int64_t c, float v)
{
    float *to = coef_of(k, ws, i);
    for (int64_t j = c; j < k->width; j += k->c)
        to[j] = v;
}

/* Element C of an operand with one per channel, which may be absent. */
static double
affine(const struct bound *b, int i, int64_t c, double otherwise)
{
    const float *p = b->in[i];
    return p ? p[c] : otherwise;
}

static void
store(const struct bound *b, int i, int64_t c, double v)
{
    float *p = b->out[i];
    if (p)
        p[c] = (float)v;
}

/* ---- elements of images; T, their dtype, is a constant in every expansion ---- */

INLINE float
get(const void *p, int64_t i, enum et_dtype t)
{
    const uint16_t *low = p;
    const float *f32 = p;
    return t == ET_BF16 ? from_bf16(low[i]) : f32[i];
}

INLINE void
put(void *p, int64_t i, enum et_dtype t, float v)
{
    uint16_t *low = p;
    float *f32 = p;
    if (t == ET_BF16)
        low[i] = to_bf16(v);
    else
        f32[i] = v;
}

/* ---- first pass: two sums per channel ---- */

/* The terms of one element: forward d and d^2, d = x - shift; backward g and g d. */
INLINE void
terms(enum et_dtype t, const void *x, const void *dy, const void *y, const float *shift,
      int64_t at, int64_t j, float *a, float *b)
{
    float d = get(x, at, t) - shift[j];
    if (!dy) {
        *a = d;
        *b = d * d;
        return;
    }
    float g = get(dy, at, t);
    if (y)
        g = get(y, at, t) <= 0 ? 0 : g;
    *a = g;
    *b = g * d;
}

/* Adds rows of N elements; four at a time, to load and store the sums less often. */
INLINE void
add_rows(enum et_dtype t, const void *x, const void *dy, const void *y,
         const float *shift, float *s, float *q, int64_t begin, int64_t rows, int64_t w,
         int64_t n)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        int64_t at = begin + r * w;
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            float a0, a1, a2, a3, b0, b1, b2, b3;
            terms(t, x, dy, y, shift, at + j, j, &a0, &b0);
            terms(t, x, dy, y, shift, at + w + j, j, &a1, &b1);
            terms(t, x, dy, y, shift, at + 2 * w + j, j, &a2, &b2);
            terms(t, x, dy, y, shift, at + 3 * w + j, j, &a3, &b3);
            s[j] += (a0 + a1) + (a2 + a3);
            q[j] += (b0 + b1) + (b2 + b3);
        }
    }
    for (; r < rows; r++) {
        int64_t at = begin + r * w;
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            float a, b;
            terms(t, x, dy, y, shift, at + j, j, &a, &b);
            s[j] += a;
            q[j] += b;
        }
    }
}

/* Moves the f32 sums to the f64 ones. */
static void
flush_sums(const struct norm_kernel *k, float *s, double *sums)
{
    for (int i = 0; i < 2; i++)
        for (int64_t j = 0; j < k->width; j += k->c)
            for (int64_t c = 0; c < k->c; c++) {
                sums[i * k->c + c] += s[i * k->width + j + c];
                s[i * k->width + j + c] = 0;
            }
}

INLINE void
sum_share(const struct norm_kernel *k, enum et_dtype t, const void *x, const void *dy,
          const void *y, void *ws, int piece)
{
    double *sums = sums_of(k, ws, piece);
    float *s = (float *)(sums + 2 * k->c);
    const float *shift = coef_of(k, ws, 0);
    int64_t begin, end, w = k->width;
    share_of(k, piece, &begin, &end);
    for (int64_t c = 0; c < 2 * k->c; c++)
        sums[c] = 0;
    for (int64_t j = 0; j < 2 * w; j++)
        s[j] = 0;
    while (begin < end) {
        int64_t rows = (end - begin) / w, n = w;
        if (rows == 0) { /* what is left of a wide row */
            rows = 1;
            n = end - begin;
        }
        rows = rows < ROWS ? rows : ROWS;
        add_rows(t, x, dy, y, shift, s, s + w, begin, rows, w, n);
        flush_sums(k, s, sums);
        begin += n < w ? n : rows * w;
    }
}

/* The sums of all pieces of one channel, in their order. */
static void
total(const struct norm_kernel *k, void *ws, int64_t c, double *a, double *b)
{
    *a = *b = 0;
    for (int i = 0; i < k->pieces; i++) {
        const double *sums = sums_of(k, ws, i);
        *a += sums[c];
        *b += sums[k->c + c];
    }
}

/* ---- second pass ---- */

struct images {
    const void *x, *residual, *dy, *y;
    void *out, *dresidual;
};

/* V as DTYPE holds it. */
INLINE float
rounded(float v, enum et_dtype dtype)
{
    return dtype == ET_BF16  ? from_bf16(to_bf16(v))
           : dtype == ET_F16 ? from_f16(to_f16(v))
                             : v;
}

INLINE void
write_forward(const struct norm_kernel *k, enum et_dtype t, void *ws, const void *x,
              const void *residual, enum et_dtype stored, bool relu, void *y,
              int64_t at, int64_t n)
{
    const float *mean = coef_of(k, ws, 0), *scale = coef_of(k, ws, 1),
                *beta = coef_of(k, ws, 2);
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        float v = (get(x, at + j, t) - mean[j]) * scale[j] + beta[j];
        if (residual)
            v = rounded(v, stored) + get(residual, at + j, t);
        if (relu)
            v = v < 0 ? 0 : v;
        put(y, at + j, t, v);
    }
}

/* DX may be DY: each element is read before it is written. */
INLINE void
write_backward(const struct norm_kernel *k, enum et_dtype t, void *ws, const void *x,
               const void *dy, const void *y, void *dx, void *dresidual, int64_t at,
               int64_t n)
{
    const float *mean = coef_of(k, ws, 0), *scale = coef_of(k, ws, 1),
                *offset = coef_of(k, ws, 2), *slope = coef_of(k, ws, 3);
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        float g = get(dy, at + j, t), d = get(x, at + j, t) - mean[j];
        if (y)
            g = get(y, at + j, t) <= 0 ? 0 : g;
        if (dx)
            put(dx, at + j, t, scale[j] * (g - offset[j]) - slope[j] * d);
        if (dresidual)
            put(dresidual, at + j, t, g);
    }
}

/* One wide row, with what is constant over the call as a constant. */
INLINE void
write_row(const struct norm_kernel *k, enum et_dtype t, void *ws,
          const struct images *a, int64_t at, int64_t n)
{
    if (!a->dy && a->residual && k->stored == ET_BF16)
        write_forward(k, t, ws, a->x, a->residual, ET_BF16, k->relu, a->out, at, n);
    else if (!a->dy && a->residual && k->stored == ET_F16)
        write_forward(k, t, ws, a->x, a->residual, ET_F16, k->relu, a->out, at, n);
    else if (!a->dy && a->residual && k->relu)
        write_forward(k, t, ws, a->x, a->residual, ET_F32, true, a->out, at, n);
    else if (!a->dy && a->residual)
        write_forward(k, t, ws, a->x, a->residual, ET_F32, false, a->out, at, n);
    else if (!a->dy && k->relu)
        write_forward(k, t, ws, a->x, NULL, ET_F32, true, a->out, at, n);
    else if (!a->dy)
        write_forward(k, t, ws, a->x, NULL, ET_F32, false, a->out, at, n);
    else if (a->y && a->out && a->dresidual)
        write_backward(k, t, ws, a->x, a->dy, a->y, a->out, a->dresidual, at, n);
    else if (a->y && a->out)
        write_backward(k, t, ws, a->x, a->dy, a->y, a->out, NULL, at, n);
    else if (a->out && !a->dresidual)
        write_backward(k, t, ws, a->x, a->dy, NULL, a->out, NULL, at, n);
    else
        write_backward(k, t, ws, a->x, a->dy, a->y, a->out, a->dresidual, at, n);
}

INLINE void
write_share(const struct norm_kernel *k, enum et_dtype t, void *ws,
            const struct images *a, int piece)
{
    int64_t begin, end, w = k->width, step = (BLOCK + w - 1) / w * w;
    share_of(k, piece, &begin, &end);
    int64_t block = begin + (end - begin + step - 1) / step * step;
    while (block > begin) {
        block -= step;
        int64_t stop = block + step < end ? block + step : end;
        for (int64_t at = block; at < stop; at += w)
            write_row(k, t, ws, a, at, stop - at < w ? stop - at : w);
    }
}

/* ---- the two ops ---- */

/* In the forward pass DY and Y are NULL, in the backward pass Y may be. */
INLINE void
sum_images(const struct norm_kernel *k, enum et_dtype t, const struct images *a,
           void *ws, int piece)
{
    if (!a->dy)
        sum_share(k, t, a->x, NULL, NULL, ws, piece);
    else if (!a->y)
        sum_share(k, t, a->x, a->dy, NULL, ws, piece);
    else
        sum_share(k, t, a->x, a->dy, a->y, ws, piece);
}

static void
sum_all(const struct norm_kernel *k, const struct images *a, void *ws)
{
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++) {
        if (k->image == ET_BF16)
            sum_images(k, ET_BF16, a, ws, piece);
        else
            sum_images(k, ET_F32, a, ws, piece);
    }
}

static void
write_all(const struct norm_kernel *k, const struct images *a, void *ws)
{
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++) {
        if (k->image == ET_BF16)
            write_share(k, ET_BF16, ws, a, piece);
        else
            write_share(k, ET_F32, ws, a, piece);
    }
}

static et_status
run_forward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct norm_kernel *k = (const struct norm_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    const struct images a = {
        .x = b.in[X_IN], .residual = b.in[RESIDUAL], .out = b.out[0]};
    for (int64_t c = 0; c < k->c; c++)
        set_coef(k, ws, 0, c, get(a.x, c, k->image));
    sum_all(k, &a, ws);
    double n = (double)(k->count / k->c);
    for (int64_t c = 0; c < k->c; c++) {
        double sum, squares, shift = coef_of(k, ws, 0)[c];
        total(k, ws, c, &sum, &squares);
        double mean = sum / n, var = squares / n - mean * mean;
        var = var < 0 ? 0 : var;
        mean += shift;
        set_coef(k, ws, 0, c, (float)mean);
        set_coef(k, ws, 1, c, (float)(affine(&b, GAMMA, c, 1) / sqrt(var + k->eps)));
        set_coef(k, ws, 2, c, (float)affine(&b, BETA, c, 0));
        store(&b, 1, c, mean);
        store(&b, 2, c, var);
    }
    if (a.out)
        write_all(k, &a, ws);
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

static et_status
run_backward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct norm_kernel *k = (const struct norm_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    const struct images a = {
        .dy = b.in[DY],
        .x = b.in[X_GRAD],
        .y = k->relu ? b.in[Y] : NULL,
        .out = b.out[0],
        .dresidual = b.out[3],
    };
    for (int64_t c = 0; c < k->c; c++)
        set_coef(k, ws, 0, c, (float)affine(&b, MEAN, c, 0));
    sum_all(k, &a, ws);
    double n = (double)(k->count / k->c);
    for (int64_t c = 0; c < k->c; c++) {
        double sum, sum_d, rstd = 1 / sqrt(affine(&b, VAR, c, 0) + k->eps);
        double scale = affine(&b, GAMMA_GRAD, c, 1) * rstd;
        total(k, ws, c, &sum, &sum_d);
        set_coef(k, ws, 1, c, (float)scale);
        set_coef(k, ws, 2, c, (float)(sum / n));
        set_coef(k, ws, 3, c, (float)(scale * rstd * rstd * sum_d / n));
        store(&b, 1, c, sum_d * rstd);
        store(&b, 2, c, sum);
    }
    if (a.out || a.dresidual)
        write_all(k, &a, ws);
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

/* Are all images, which are shaped like X, in its dtype, f32 or bf16, and all else in
 * f32? */
static et_status
check_dtypes(const struct et_call *call, const struct et_desc *x, char *why,
             size_t why_size)
{
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const struct et_desc *d =
            i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        enum et_dtype want =
            et_desc_same_shape(d, x) && x->dtype == ET_BF16 ? ET_BF16 : ET_F32;
        if (d->dtype != ET_NONE && d->dtype != want)
            return etk_refuse(
                why, why_size, "batch norm of %s on the CPU takes %s there, not %s",
                et_dtype_name(x->dtype), et_dtype_name(want), et_dtype_name(d->dtype));
    }
    return ET_OK;
}

/* X's shape with the channels innermost. */
static struct et_desc
channels_innermost(const struct et_desc *x)
{
    struct et_desc d = *x;
    int64_t stride = x->shape[1];
    d.stride[1] = 1;
    for (int i = x->ndim - 1; i >= 0; i--)
        if (i != 1) {
            d.stride[i] = stride;
            stride *= x->shape[i];
        }
    return d;
}

et_status
ETK_NAME(etk_prepare_batch_norm)(struct et_device_handle *d, const struct et_call *call,
                                 struct et_kernel **out, size_t *ws, char *why,
                                 size_t why_size)
{
    const struct et_norm_attr *o = call->attr;
    bool grad = call->op == ET_OP_batch_norm_grad;
    const struct et_desc *x = &call->in[grad ? X_GRAD : X_IN];
    if (grad && o->relu && (call->n_in <= Y || call->in[Y].dtype == ET_NONE))
        return etk_refuse(why, why_size, "the gradient through relu needs y");
    ET_TRY(check_dtypes(call, x, why, why_size));
    struct norm_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct et_desc want = channels_innermost(x);
    arrays_init(&k->arrays, call, &want, ws);
    k->count = et_desc_count(x);
    k->c = x->shape[1];
    k->width = k->c < WIDE ? WIDE / k->c * k->c : k->c;
    k->pieces = pieces_for(d, k->count, (k->count + k->width - 1) / k->width);
    k->eps = o->eps;
    k->relu = o->relu;
    k->image = x->dtype;
    k->stored = (enum et_dtype)o->stored;
    k->coef_at = reserve(ws, (size_t)(4 * k->width) * sizeof(float));
    k->piece_bytes = etk_round_up((size_t)(2 * k->c) * sizeof(double) +
                                  (size_t)(2 * k->width) * sizeof(float));
    k->sums_at = reserve(ws, (size_t)k->pieces * k->piece_bytes);
    k->base.run = grad ? run_backward : run_forward;
    k->base.what = grad ? "loop:batch_norm_grad" : "loop:batch_norm";
    *out = &k->base;
    return ET_OK;
}
