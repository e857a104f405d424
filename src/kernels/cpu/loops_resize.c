/* SPDX-License-Identifier: Apache-2.0 */
/* loops_resize.c: resampling of channels-last images, and its gradient.
 *
 *   y[p,q] = sum over two rows h and two columns w of weight x[h,w]
 *   dx[h,w] = sum over the p, q that read x[h,w] of weight dy[p,q]
 *
 * Which rows and columns with which weights is settled when the kernel is prepared, as
 * kernels/ref/resize.c defines it: nearest in f32 as PyTorch has it, bilinear between
 * half-pixel centres with the border repeated. Pixels of weight 0 are not read. The
 * gradient goes by samples, or channels where samples are few, so nothing is written by
 * two threads. Other layouts are copied first. */
#include <math.h>

#include "kernels/cpu/loops_arrays.h"

#define LINE 16 /* floats: threads share no cache line */

/* Along one axis: places at[0], at[1] with weights w[0], w[1]. */
struct blend {
    int64_t at[2];
    float w[2];
};

struct resize_kernel {
    struct et_kernel base;
    struct arrays arrays;
    int64_t n, c, h, w, p, q; /* of the source and the result */
    int64_t columns;          /* gradient: channels of a unit of work */
    int pieces;
    struct blend blend[]; /* P for the rows, then Q for the columns */
};

/* The source pixels of (p, q) with a weight, as offsets of pixels: at most four. */
struct term {
    int64_t at;
    float w;
};

static int
terms_of(const struct resize_kernel *k, int64_t p, int64_t q, struct term *t)
{
    const struct blend *row = &k->blend[p], *column = &k->blend[k->p + q];
    int n = 0;
    for (int i = 0; i < 4; i++) {
        float w = row->w[i / 2] * column->w[i % 2];
        if (w != 0)
            t[n++] = (struct term){row->at[i / 2] * k->w + column->at[i % 2], w};
    }
    return n;
}

static et_status
run_resize(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct resize_kernel *k = (const struct resize_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t row = 0; row < k->n * k->p; row++) {
        const float *x = (const float *)b.in[0] + row / k->p * k->h * k->w * k->c;
        float *restrict y = (float *)b.out[0] + row * k->q * k->c;
        for (int64_t q = 0; q < k->q; q++, y += k->c) {
            struct term t[4];
            int n = terms_of(k, row % k->p, q, t);
            for (int64_t c = 0; c < k->c; c++)
                y[c] = t[0].w * x[t[0].at * k->c + c];
            for (int i = 1; i < n; i++)
                for (int64_t c = 0; c < k->c; c++)
                    y[c] += t[i].w * x[t[i].at * k->c + c];
        }
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

static et_status
run_resize_grad(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct resize_kernel *k = (const struct resize_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    int64_t units = (k->c + k->columns - 1) / k->columns;
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t unit = 0; unit < k->n * units; unit++) {
        int64_t sample = unit / units, first = unit % units * k->columns;
        int64_t m = k->c - first < k->columns ? k->c - first : k->columns;
        const float *dy = (const float *)b.in[0] + sample * k->p * k->q * k->c + first;
        float *dx = (float *)b.out[0] + sample * k->h * k->w * k->c + first;
        for (int64_t i = 0; i < k->h * k->w; i++)
            memset(dx + i * k->c, 0, (size_t)m * sizeof *dx);
        for (int64_t i = 0; i < k->p * k->q; i++, dy += k->c) {
            struct term t[4];
            int n = terms_of(k, i / k->q, i % k->q, t);
            for (int j = 0; j < n; j++) {
                float *restrict to = dx + t[j].at * k->c;
                for (int64_t c = 0; c < m; c++)
                    to[c] += t[j].w * dy[c];
            }
        }
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

/* ---- preparing ---- */

static struct blend
blend_of(const struct et_resize_attr *o, int axis, int64_t dst, int64_t size)
{
    if (o->mode == ET_RESIZE_NEAREST) {
        int64_t src = (int64_t)floorf((float)dst * (float)o->scale[axis]);
        src = src < size - 1 ? src : size - 1;
        return (struct blend){.at = {src, src}, .w = {1, 0}};
    }
    double src = fmax(0, ((double)dst + 0.5) * o->scale[axis] - 0.5);
    int64_t low = (int64_t)src < size - 1 ? (int64_t)src : size - 1;
    int64_t high = low < size - 1 ? low + 1 : low;
    double t = fmin(src - (double)low, 1);
    return (struct blend){.at = {low, high}, .w = {(float)(1 - t), (float)t}};
}

et_status
ETK_NAME(etk_prepare_resize2d)(struct et_device_handle *d, const struct et_call *call,
                               struct et_kernel **out, size_t *ws, char *why,
                               size_t why_size)
{
    bool grad = call->op == ET_OP_resize2d_grad;
    const struct et_desc *x = grad ? &call->out[0] : &call->in[0];
    const struct et_desc *y = grad ? &call->in[0] : &call->out[0];
    ET_TRY(arrays_need_f32(call, -1, why, why_size));
    int64_t p = y->shape[2], q = y->shape[3];
    struct resize_kernel *k = etk_new(sizeof *k + (size_t)(p + q) * sizeof k->blend[0]);
    if (!k)
        return ET_ENOMEM;
    struct et_desc in, result;
    et_desc_init(&in, ET_F32, 4, call->in[0].shape, ET_CHANNELS_LAST);
    et_desc_init(&result, ET_F32, 4, call->out[0].shape, ET_CHANNELS_LAST);
    k->arrays.n_in = k->arrays.n_out = 1;
    side_init(&k->arrays.in[0], &call->in[0], &in, false, ws);
    side_init(&k->arrays.out[0], &call->out[0], &result, true, ws);
    k->n = x->shape[0];
    k->c = x->shape[1];
    k->h = x->shape[2];
    k->w = x->shape[3];
    k->p = p;
    k->q = q;
    for (int64_t i = 0; i < p; i++)
        k->blend[i] = blend_of(call->attr, 0, i, k->h);
    for (int64_t i = 0; i < q; i++)
        k->blend[p + i] = blend_of(call->attr, 1, i, k->w);
    int64_t share = k->n < d->threads ? (k->c + d->threads - 1) / d->threads : k->c;
    k->columns = (share + LINE - 1) / LINE * LINE;
    int64_t units = grad ? k->n * ((k->c + k->columns - 1) / k->columns) : k->n * p;
    k->pieces = pieces_for(d, et_desc_count(x) + et_desc_count(y), units);
    k->base.run = grad ? run_resize_grad : run_resize;
    k->base.what = "loop:resize2d";
    *out = &k->base;
    return ET_OK;
}
