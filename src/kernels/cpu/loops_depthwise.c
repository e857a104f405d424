/* SPDX-License-Identifier: Apache-2.0 */
/* loops_depthwise.c: the weight gradient of a depthwise convolution.
 *
 *   dw[c,r,s] = sum_npq x[n,c,p*sh+r-ph,q*sw+s-pw] dy[n,c,p,q]
 *
 * Channels-last, 32 channels at a time. A thread takes a range of (n, p) rows and keeps
 * its own sums, [R S] by 32 channels of them in the first cache; a row of one r runs
 * with S x 2 vectors of sums in registers. The threads' sums are added in order, so a
 * thread count gives one result. 2 R S FLOPs per element of dy, of which x is read R/sh
 * times from cache and once from memory. oneDNN 2.6.3 reaches 10 to 14 GF/s with 5 x 5
 * filters; see bench/cpu/conv. */
#include <omp.h>
#include <string.h>

#include "kernels/cpu/loops.h"
#include "kernels/cpu/tiles.h"

#define LANES      ETK_DEPTHWISE_LANES
#define PAIR       ETK_DEPTHWISE_PAIR
#define MAX_KERNEL 7

/* Sixteen floats, anywhere. */
typedef float vec __attribute__((vector_size(64), aligned(4), may_alias));

struct depthwise_kernel {
    struct et_kernel base;
    int64_t n, c, h, w, p, q, kernel, stride[2], pad[2];
    int64_t x[4], y[4], dw[4]; /* strides */
};

/* First and past the last q whose tap s falls inside the row. */
static inline int64_t
first_q(const struct depthwise_kernel *k, int64_t s)
{
    int64_t need = k->pad[1] - s;
    return need <= 0 ? 0 : (need + k->stride[1] - 1) / k->stride[1];
}

static inline int64_t
end_q(const struct depthwise_kernel *k, int64_t s)
{
    int64_t room = k->w - 1 + k->pad[1] - s;
    int64_t end = room < 0 ? 0 : room / k->stride[1] + 1;
    return end < k->q ? end : k->q;
}

/* sum += the products of tap s over columns FROM .. TO - 1 of 16 V channels. */
INLINE void
add_tap(const struct depthwise_kernel *k, float *sum, const float *x, const float *dy,
        int64_t s, int64_t from, int64_t to, const int v)
{
    for (int64_t q = from; q < to; q++) {
        const float *at = x + (q * k->stride[1] + s - k->pad[1]) * k->x[3];
        for (int i = 0; i < v; i++)
            *(vec *)(sum + i * LANES) += *(const vec *)(at + i * LANES) *
                                         *(const vec *)(dy + q * k->y[3] + i * LANES);
    }
}

/* sum[s] += the row's products; x and dy are at column 0. */
INLINE void
add_row(const struct depthwise_kernel *k, float *sum, const float *x, const float *dy,
        const int kernel, const int v)
{
    int64_t xw = k->x[3], yw = k->y[3];
    /* From begin to end all taps are inside; before and behind, some are. */
    int64_t begin = first_q(k, 0), end = end_q(k, kernel - 1);
    end = end < begin ? begin : end;
    for (int s = 0; s < kernel; s++) {
        int64_t last = end_q(k, s);
        add_tap(k, sum + s * PAIR * LANES, x, dy, s, first_q(k, s),
                begin < last ? begin : last, v);
        add_tap(k, sum + s * PAIR * LANES, x, dy, s, end, last, v);
    }
    vec acc[MAX_KERNEL][PAIR];
#pragma GCC unroll 8
    for (int s = 0; s < kernel; s++)
#pragma GCC unroll 2
        for (int i = 0; i < v; i++)
            acc[s][i] = *(vec *)(sum + (s * PAIR + i) * LANES);
    for (int64_t q = begin; q < end; q++) {
        const float *at = x + (q * k->stride[1] - k->pad[1]) * xw, *d = dy + q * yw;
#pragma GCC unroll 8
        for (int s = 0; s < kernel; s++)
#pragma GCC unroll 2
            for (int i = 0; i < v; i++)
                acc[s][i] += *(const vec *)(at + s * xw + i * LANES) *
                             *(const vec *)(d + i * LANES);
    }
#pragma GCC unroll 8
    for (int s = 0; s < kernel; s++)
#pragma GCC unroll 2
        for (int i = 0; i < v; i++)
            *(vec *)(sum + (s * PAIR + i) * LANES) = acc[s][i];
}

/* Fewer than 16 channels. */
static void
add_row_rest(const struct depthwise_kernel *k, float *sum, const float *x,
             const float *dy, int64_t channels)
{
    for (int64_t s = 0; s < k->kernel; s++)
        for (int64_t q = first_q(k, s); q < end_q(k, s); q++)
            for (int64_t c = 0; c < channels; c++)
                sum[s * PAIR * LANES + c] +=
                    x[(q * k->stride[1] + s - k->pad[1]) * k->x[3] + c] *
                    dy[q * k->y[3] + c];
}

static void
add_any_row(const struct depthwise_kernel *k, float *sum, const float *x,
            const float *dy, int64_t channels)
{
    if (channels >= PAIR * LANES && k->kernel == 3)
        add_row(k, sum, x, dy, 3, 2);
    else if (channels >= PAIR * LANES && k->kernel == 5)
        add_row(k, sum, x, dy, 5, 2);
    else if (channels >= PAIR * LANES)
        add_row(k, sum, x, dy, 7, 2);
    else if (channels >= LANES && k->kernel == 3)
        add_row(k, sum, x, dy, 3, 1);
    else if (channels >= LANES && k->kernel == 5)
        add_row(k, sum, x, dy, 5, 1);
    else if (channels >= LANES)
        add_row(k, sum, x, dy, 7, 1);
    else
        add_row_rest(k, sum, x, dy, channels);
}

/* How many channels the block at C takes: 32, 16, or what is left. */
static int64_t
block_of(const struct depthwise_kernel *k, int64_t c)
{
    int64_t left = k->c - c;
    return left >= PAIR * LANES ? PAIR * LANES : left > LANES ? LANES : left;
}

/* Rows FROM .. TO - 1 of all (n, p) into SUM [blocks][R][S][32]. */
static void
add_rows(const struct depthwise_kernel *k, float *sum, const float *x, const float *dy,
         int64_t from, int64_t to)
{
    int64_t row = k->kernel * PAIR * LANES;
    for (int64_t c = 0, channels; c < k->c; c += channels, sum += k->kernel * row) {
        channels = block_of(k, c);
        for (int64_t i = from; i < to; i++) {
            int64_t n = i / k->p, p = i % k->p;
            for (int64_t r = 0; r < k->kernel; r++) {
                int64_t h = p * k->stride[0] + r - k->pad[0];
                if (h >= 0 && h < k->h)
                    add_any_row(k, sum + r * row, x + n * k->x[0] + h * k->x[2] + c,
                                dy + n * k->y[0] + p * k->y[2] + c, channels);
            }
        }
    }
}

static int64_t
blocks(const struct depthwise_kernel *k)
{
    int64_t n = 0;
    for (int64_t c = 0; c < k->c; c += block_of(k, c))
        n++;
    return n;
}

/* Elements of one thread's sums. */
static int64_t
sum_size(const struct depthwise_kernel *k)
{
    return blocks(k) * k->kernel * k->kernel * PAIR * LANES;
}

static et_status
run_depthwise(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct depthwise_kernel *k = (const struct depthwise_kernel *)kernel;
    int64_t size = sum_size(k), rows = k->n * k->p;
    float *sum = ws, *dw = ptr[2];
    int threads = k->base.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t t = 0; t < threads; t++) {
        memset(sum + t * size, 0, (size_t)size * sizeof *sum);
        add_rows(k, sum + t * size, ptr[0], ptr[1], rows * t / threads,
                 rows * (t + 1) / threads);
    }
    for (int64_t c = 0, channels, base = 0; c < k->c; c += channels) {
        channels = block_of(k, c);
        for (int64_t i = 0; i < k->kernel * k->kernel; i++, base += PAIR * LANES)
            for (int64_t j = 0; j < channels; j++) {
                float total = 0;
                for (int t = 0; t < threads; t++)
                    total += sum[t * size + base + j];
                dw[(c + j) * k->dw[0] + i / k->kernel * k->dw[2] +
                   i % k->kernel * k->dw[3]] = total;
            }
    }
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_depthwise_weights)(struct et_device_handle *d,
                                        const struct et_call *call,
                                        struct et_kernel **out, size_t *ws, char *why,
                                        size_t why_size)
{
    const struct et_conv2d_attr *a = call->attr;
    const struct et_desc *x = &call->in[0], *dy = &call->in[1], *dw = &call->out[0];
    int64_t r = dw->shape[2];
    if (a->groups != x->shape[1] || dy->shape[1] != x->shape[1] || dw->shape[1] != 1 ||
        r != dw->shape[3] || (r != 3 && r != 5 && r != 7) || a->dilation[0] != 1 ||
        a->dilation[1] != 1 || x->stride[1] != 1 || dy->stride[1] != 1 ||
        x->dtype != ET_F32 || dy->dtype != ET_F32 || dw->dtype != ET_F32)
        return etk_refuse(why, why_size, "not a plain depthwise convolution");
    struct depthwise_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->n = x->shape[0];
    k->c = x->shape[1];
    k->h = x->shape[2];
    k->w = x->shape[3];
    k->p = dy->shape[2];
    k->q = dy->shape[3];
    k->kernel = r;
    for (int i = 0; i < 2; i++) {
        k->stride[i] = a->stride[i];
        k->pad[i] = a->pad[i];
    }
    memcpy(k->x, x->stride, sizeof k->x);
    memcpy(k->y, dy->stride, sizeof k->y);
    memcpy(k->dw, dw->stride, sizeof k->dw);
    k->base.run = run_depthwise;
    k->base.what = "depthwise weights";
    *ws = (size_t)(d->threads * sum_size(k)) * sizeof(float);
    *out = &k->base;
    return ET_OK;
}
