/* SPDX-License-Identifier: Apache-2.0 */
/* loops_pool.c: pooling, window by window, channels innermost.
 *
 *   max   y[n,c,p,q] = max x[n,c,h,w] over the window
 *         index[n,c,p,q] = h W + w of the maximum, of several the first
 *   mean  y[n,c,p,q] = sum x[n,c,h,w] / count[p,q]
 *
 * A window is a range of rows times a range of columns, so plain, adaptive and global
 * averages differ only in the ranges, which prepare writes down. Gradients gather: each
 * dx sums over the windows that hold it (the ranges lo..hi), in a fixed order and
 * without races. Channels-last arrays run along contiguous channels; other strides work
 * too. Reads every x once per window that holds it: bound by memory, like oneDNN's,
 * whose index of the winner has another meaning. NaN wins a maximum, the
 * first of several; a window with no element has value -inf and index -1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/loops.h"

/* A parallel region costs about what 10000 elements do. */
#define PARALLEL_ELEMENTS 16384

/* The windows along one axis. */
struct axis {
    int64_t n_in, n_out;
    int32_t *begin, *end, *count; /* [n_out]: first, past the last, divisor's factor */
    int32_t *lo, *hi;             /* [n_in]: the windows that may hold an element */
};

struct pool_kernel {
    struct et_kernel base;
    struct axis h, w;
    int64_t n, c, step[2];        /* step: dilation */
    int64_t x[4], y[4], index[4]; /* strides; x is the larger side, dx in gradients */
    bool large;                   /* worth a parallel region */
    bool contiguous;              /* every channel stride is 1 */
    int32_t *ranges;              /* what the axes point into */
};

static int64_t
min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- loops; XC, YC, IC are the channel strides ---- */

INLINE void
take_max(float *restrict y, int32_t *restrict index, const float *restrict x,
         int32_t at, int64_t n, int64_t yc, int64_t ic, int64_t xc)
{
    for (int64_t c = 0; c < n; c++) {
        float v = x[c * xc], best = y[c * yc];
        bool wins = v > best || (v != v && best == best);
        y[c * yc] = wins ? v : best;
        index[c * ic] = wins ? at : index[c * ic];
    }
}

INLINE void
max_window(const struct pool_kernel *k, float *y, int32_t *index, const float *x,
           int64_t p, int64_t q, int64_t yc, int64_t ic, int64_t xc)
{
    int64_t h0 = k->h.begin[p], w0 = k->w.begin[q];
    bool empty = h0 >= k->h.end[p] || w0 >= k->w.end[q];
    int32_t first = empty ? -1 : (int32_t)(h0 * k->w.n_in + w0);
    for (int64_t c = 0; c < k->c; c++) {
        y[c * yc] = -INFINITY;
        index[c * ic] = first;
    }
    for (int64_t h = h0; h < k->h.end[p]; h += k->step[0])
        for (int64_t w = w0; w < k->w.end[q]; w += k->step[1])
            take_max(y, index, x + h * k->x[2] + w * k->x[3],
                     (int32_t)(h * k->w.n_in + w), k->c, yc, ic, xc);
}

/* Evaluation: nobody asks which one won. */
INLINE void
max_window_value(const struct pool_kernel *k, float *restrict y,
                 const float *restrict x, int64_t p, int64_t q, int64_t yc, int64_t xc)
{
    for (int64_t c = 0; c < k->c; c++)
        y[c * yc] = -INFINITY;
    for (int64_t h = k->h.begin[p]; h < k->h.end[p]; h += k->step[0])
        for (int64_t w = k->w.begin[q]; w < k->w.end[q]; w += k->step[1])
            for (int64_t c = 0; c < k->c; c++) {
                float v = x[h * k->x[2] + w * k->x[3] + c * xc], best = y[c * yc];
                y[c * yc] = v > best || v != v ? v : best;
            }
}

static et_status
run_max(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    (void)ws;
    const struct pool_kernel *k = (const struct pool_kernel *)kernel;
    const float *x = ptr[0];
    float *y = ptr[1];
    int32_t *index = ptr[2];
#pragma omp parallel for collapse(2) schedule(static) if (k->large)
    for (int64_t n = 0; n < k->n; n++)
        for (int64_t p = 0; p < k->h.n_out; p++)
            for (int64_t q = 0; q < k->w.n_out; q++) {
                const float *xn = x + n * k->x[0];
                float *at = y + n * k->y[0] + p * k->y[2] + q * k->y[3];
                int32_t *i =
                    index ? index + n * k->index[0] + p * k->index[2] + q * k->index[3]
                          : NULL;
                if (index && k->contiguous)
                    max_window(k, at, i, xn, p, q, 1, 1, 1);
                else if (index)
                    max_window(k, at, i, xn, p, q, k->y[1], k->index[1], k->x[1]);
                else if (k->contiguous)
                    max_window_value(k, at, xn, p, q, 1, 1);
                else
                    max_window_value(k, at, xn, p, q, k->y[1], k->x[1]);
            }
    return ET_OK;
}

INLINE void
give_max(const struct pool_kernel *k, float *restrict dx, const float *restrict dy,
         const int32_t *restrict index, int64_t h, int64_t w, int64_t yc, int64_t ic,
         int64_t xc)
{
    int32_t at = (int32_t)(h * k->w.n_in + w);
    for (int64_t c = 0; c < k->c; c++)
        dx[c * xc] = 0;
    for (int64_t p = k->h.lo[h]; p < k->h.hi[h]; p++)
        for (int64_t q = k->w.lo[w]; q < k->w.hi[w]; q++) {
            const float *dyp = dy + p * k->y[2] + q * k->y[3];
            const int32_t *ip = index + p * k->index[2] + q * k->index[3];
            for (int64_t c = 0; c < k->c; c++)
                dx[c * xc] += ip[c * ic] == at ? dyp[c * yc] : 0.0f;
        }
}

static et_status
run_max_grad(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    (void)ws;
    const struct pool_kernel *k = (const struct pool_kernel *)kernel;
    const float *dy = ptr[0];
    const int32_t *index = ptr[1];
    float *dx = ptr[2];
#pragma omp parallel for collapse(2) schedule(static) if (k->large)
    for (int64_t n = 0; n < k->n; n++)
        for (int64_t h = 0; h < k->h.n_in; h++)
            for (int64_t w = 0; w < k->w.n_in; w++) {
                float *at = dx + n * k->x[0] + h * k->x[2] + w * k->x[3];
                const float *dyn = dy + n * k->y[0];
                const int32_t *in = index + n * k->index[0];
                if (k->contiguous)
                    give_max(k, at, dyn, in, h, w, 1, 1, 1);
                else
                    give_max(k, at, dyn, in, h, w, k->y[1], k->index[1], k->x[1]);
            }
    return ET_OK;
}

/* What an average multiplies by; of nothing it is 0. */
static float
factor(const struct pool_kernel *k, int64_t p, int64_t q)
{
    int64_t n = (int64_t)k->h.count[p] * k->w.count[q];
    return n > 0 ? 1.0f / (float)n : 0;
}

INLINE void
mean_window(const struct pool_kernel *k, float *restrict y, const float *restrict x,
            int64_t p, int64_t q, int64_t yc, int64_t xc)
{
    float scale = factor(k, p, q);
    for (int64_t c = 0; c < k->c; c++)
        y[c * yc] = 0;
    for (int64_t h = k->h.begin[p]; h < k->h.end[p]; h++)
        for (int64_t w = k->w.begin[q]; w < k->w.end[q]; w++)
            for (int64_t c = 0; c < k->c; c++)
                y[c * yc] += x[h * k->x[2] + w * k->x[3] + c * xc];
    for (int64_t c = 0; c < k->c; c++)
        y[c * yc] *= scale;
}

static et_status
run_mean(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    (void)ws;
    const struct pool_kernel *k = (const struct pool_kernel *)kernel;
    const float *x = ptr[0];
    float *y = ptr[1];
#pragma omp parallel for collapse(2) schedule(static) if (k->large)
    for (int64_t n = 0; n < k->n; n++)
        for (int64_t p = 0; p < k->h.n_out; p++)
            for (int64_t q = 0; q < k->w.n_out; q++) {
                float *at = y + n * k->y[0] + p * k->y[2] + q * k->y[3];
                if (k->contiguous)
                    mean_window(k, at, x + n * k->x[0], p, q, 1, 1);
                else
                    mean_window(k, at, x + n * k->x[0], p, q, k->y[1], k->x[1]);
            }
    return ET_OK;
}

INLINE void
give_mean(const struct pool_kernel *k, float *restrict dx, const float *restrict dy,
          int64_t h, int64_t w, int64_t yc, int64_t xc)
{
    for (int64_t c = 0; c < k->c; c++)
        dx[c * xc] = 0;
    for (int64_t p = k->h.lo[h]; p < k->h.hi[h]; p++)
        for (int64_t q = k->w.lo[w]; q < k->w.hi[w]; q++) {
            float scale = factor(k, p, q);
            const float *dyp = dy + p * k->y[2] + q * k->y[3];
            for (int64_t c = 0; c < k->c; c++)
                dx[c * xc] += dyp[c * yc] * scale;
        }
}

static et_status
run_mean_grad(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    (void)ws;
    const struct pool_kernel *k = (const struct pool_kernel *)kernel;
    const float *dy = ptr[0];
    float *dx = ptr[1];
#pragma omp parallel for collapse(2) schedule(static) if (k->large)
    for (int64_t n = 0; n < k->n; n++)
        for (int64_t h = 0; h < k->h.n_in; h++)
            for (int64_t w = 0; w < k->w.n_in; w++) {
                float *at = dx + n * k->x[0] + h * k->x[2] + w * k->x[3];
                if (k->contiguous)
                    give_mean(k, at, dy + n * k->y[0], h, w, 1, 1);
                else
                    give_mean(k, at, dy + n * k->y[0], h, w, k->y[1], k->x[1]);
            }
    return ET_OK;
}

/* ---- preparing ---- */

/* Windows of kernel[i] elements at distance STEP, every stride[i] from -pad[i] on. */
static void
plain_ranges(struct axis *a, const struct et_pool2d_attr *o, int i, int64_t step)
{
    int64_t reach = (o->kernel[i] - 1) * step + 1;
    for (int64_t p = 0; p < a->n_out; p++) {
        int64_t first = p * o->stride[i] - o->pad[i], end = first + reach;
        /* Windows of ceil_mode end with the padding, at most. */
        int64_t padded = min(end, a->n_in + o->pad[i]) - first;
        a->begin[p] = (int32_t)max(first, 0);
        a->end[p] = (int32_t)min(end, a->n_in);
        int64_t inside = max(a->end[p] - a->begin[p], 0);
        a->count[p] = (int32_t)(o->count_include_pad ? padded : inside);
    }
}

/* With a step, the first element of a window that is inside is not always element 0. */
static void
align_ranges(struct axis *a, const struct et_pool2d_attr *o, int i, int64_t step)
{
    for (int64_t p = 0; p < a->n_out; p++) {
        int64_t first = p * o->stride[i] - o->pad[i];
        if (first < 0)
            a->begin[p] = (int32_t)(first + (-first + step - 1) / step * step);
    }
}

/* Window p of P holds floor(p N/P) to ceil((p+1) N/P). */
static void
adaptive_ranges(struct axis *a)
{
    for (int64_t p = 0; p < a->n_out; p++) {
        a->begin[p] = (int32_t)(p * a->n_in / a->n_out);
        a->end[p] = (int32_t)(((p + 1) * a->n_in + a->n_out - 1) / a->n_out);
        a->count[p] = a->end[p] - a->begin[p];
    }
}

/* The windows whose range holds element h: an interval, because both ends only grow. */
static void
invert_ranges(struct axis *a)
{
    for (int64_t h = 0, lo = 0, hi = 0; h < a->n_in; h++) {
        while (lo < a->n_out && a->end[lo] <= h)
            lo++;
        while (hi < a->n_out && a->begin[hi] <= h)
            hi++;
        a->lo[h] = (int32_t)lo;
        a->hi[h] = (int32_t)max(lo, hi);
    }
}

static void
release_pool(struct et_kernel *kernel)
{
    free(((struct pool_kernel *)kernel)->ranges);
}

static int32_t *
place_axis(struct axis *a, int64_t n_in, int64_t n_out, int32_t *at)
{
    a->n_in = n_in;
    a->n_out = n_out;
    a->begin = at;
    a->end = a->begin + n_out;
    a->count = a->end + n_out;
    a->lo = a->count + n_out;
    a->hi = a->lo + n_in;
    return a->hi + n_in;
}

/* How windows lie: a dilation counts for maxima only. */
enum windows { PLAIN, DILATED, ADAPTIVE };

/* X is the larger side (the result of a gradient), INDEX may be NULL. */
static et_status
prepare_pool(const struct et_call *call, const struct et_desc *x,
             const struct et_desc *y, const struct et_desc *index, enum windows windows,
             struct pool_kernel **out, char *why, size_t why_size)
{
    const struct et_pool2d_attr *o = call->attr;
    if (x->dtype != ET_F32 || y->dtype != ET_F32)
        return etk_refuse(why, why_size, "the CPU pools f32, not %s",
                          et_dtype_name(x->dtype));
    struct pool_kernel *k = etk_new(sizeof *k);
    int64_t total = 2 * (x->shape[2] + x->shape[3]) + 3 * (y->shape[2] + y->shape[3]);
    int32_t *ranges = calloc((size_t)total, sizeof *ranges);
    if (!k || !ranges) {
        free(k);
        free(ranges);
        return ET_ENOMEM;
    }
    k->ranges = ranges;
    k->n = x->shape[0];
    k->c = x->shape[1];
    place_axis(&k->w, x->shape[3], y->shape[3],
               place_axis(&k->h, x->shape[2], y->shape[2], ranges));
    struct axis *axis[] = {&k->h, &k->w};
    for (int i = 0; i < 2; i++) {
        int64_t step = windows == DILATED ? o->dilation[i] : 1;
        k->step[i] = step;
        if (windows == ADAPTIVE)
            adaptive_ranges(axis[i]);
        else
            plain_ranges(axis[i], o, i, step);
        invert_ranges(axis[i]);
        if (step > 1)
            align_ranges(axis[i], o, i, step);
    }
    memcpy(k->x, x->stride, sizeof k->x);
    memcpy(k->y, y->stride, sizeof k->y);
    if (index)
        memcpy(k->index, index->stride, sizeof k->index);
    k->contiguous = x->shape[1] == 1 || (x->stride[1] == 1 && y->stride[1] == 1 &&
                                         (!index || index->stride[1] == 1));
    k->large = et_desc_count(x) >= PARALLEL_ELEMENTS;
    k->base.release = release_pool;
    *out = k;
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_max_pool2d)(struct et_device_handle *d, const struct et_call *call,
                                 struct et_kernel **out, size_t *ws, char *why,
                                 size_t why_size)
{
    (void)d;
    bool indexed = call->out[1].dtype != ET_NONE;
    struct pool_kernel *k;
    ET_TRY(prepare_pool(call, &call->in[0], &call->out[0],
                        indexed ? &call->out[1] : NULL, DILATED, &k, why, why_size));
    k->base.run = run_max;
    k->base.what = "max pool";
    *ws = 0;
    *out = &k->base;
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_max_pool2d_grad)(struct et_device_handle *d,
                                      const struct et_call *call,
                                      struct et_kernel **out, size_t *ws, char *why,
                                      size_t why_size)
{
    (void)d;
    struct pool_kernel *k;
    ET_TRY(prepare_pool(call, &call->out[0], &call->in[0], &call->in[1], DILATED, &k,
                        why, why_size));
    k->base.run = run_max_grad;
    k->base.what = "max pool gradient";
    *ws = 0;
    *out = &k->base;
    return ET_OK;
}

/* The four averages. */
et_status
ETK_NAME(etk_prepare_avg_pool2d)(struct et_device_handle *d, const struct et_call *call,
                                 struct et_kernel **out, size_t *ws, char *why,
                                 size_t why_size)
{
    (void)d;
    bool adaptive = call->op == ET_OP_adaptive_avg_pool2d ||
                    call->op == ET_OP_adaptive_avg_pool2d_grad;
    bool grad =
        call->op == ET_OP_avg_pool2d_grad || call->op == ET_OP_adaptive_avg_pool2d_grad;
    const struct et_desc *x = grad ? &call->out[0] : &call->in[0];
    const struct et_desc *y = grad ? &call->in[0] : &call->out[0];
    struct pool_kernel *k;
    ET_TRY(
        prepare_pool(call, x, y, NULL, adaptive ? ADAPTIVE : PLAIN, &k, why, why_size));
    k->base.run = grad ? run_mean_grad : run_mean;
    k->base.what = grad ? "average pool gradient" : "average pool";
    *ws = 0;
    *out = &k->base;
    return ET_OK;
}
