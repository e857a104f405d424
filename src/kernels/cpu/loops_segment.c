/* SPDX-License-Identifier: Apache-2.0 */
/* loops_segment.c: sums of squares of stretches of rows.
 *
 *   y[s] = sum of x[r, ...]^2 over first[s] <= r < first[s + 1]
 *
 * x is one row of elements in the order of its axes. Each stretch is cut into parts of
 * PART elements from its own beginning, so that its sum does not depend on what lies
 * beside it, nor on the number of threads. A part is summed in 64 lanes of f32, 32
 * terms each, and lanes and parts in f64: the error does not grow with the length.
 *
 * Part p of stretch s has the number p + s + (elements before s) / PART: no two are the
 * same, since floor(a / P) + ceil(b / P) <= floor((a + b) / P) + 1, and whoever has the
 * number finds s by halving. Reads x once. */
#include <stdlib.h>

#include "kernels/cpu/loops_convert.h"
#include "kernels/cpu/loops_side.h"
#include "kernels/cpu/tiles.h"

#define LANES ETK_SEGMENT_LANES
#define PART  ETK_SEGMENT_PART

struct segment_kernel {
    struct et_kernel base;
    int ndim; /* axes of x that do not run on as one, slowest first */
    int64_t shape[ET_MAX_DIMS], stride[ET_MAX_DIMS];
    int64_t rows, width; /* of x: elements of a row */
    int64_t n, step, to; /* stretches; distances in the table and in y */
    int64_t parts;       /* numbers there are for them */
    int pieces;
    size_t size, y_size; /* of an element */
    bool plain;          /* f32 beside each other */
    etk_load_fn *load;
    etk_store_fn *store;
};

/* ---- running ---- */

/* The element that stretch S begins with. */
static int64_t
begin_of(const struct segment_kernel *k, const int32_t *first, int64_t s)
{
    int64_t row = first[s * k->step];
    return (row < 0 ? 0 : row < k->rows ? row : k->rows) * k->width;
}

/* The number of part 0 of stretch S. */
static int64_t
number_of(const struct segment_kernel *k, const int32_t *first, int64_t s)
{
    return begin_of(k, first, s) / PART + s;
}

static double
sum_plain(const float *x, int64_t n)
{
    float lane[LANES] = {0};
    double sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int j = 0; j < LANES; j++)
            lane[j] += x[i + j] * x[i + j];
    for (int j = 0; i + j < n; j++)
        lane[j] += x[i + j] * x[i + j];
    for (int j = 0; j < LANES; j++)
        sum += (double)lane[j];
    return sum;
}

/* Elements AT .. END of any dtype and layout, one stretch of the last axis at a
 * time. */
static double
sum_any(const struct segment_kernel *k, const char *x, int64_t at, int64_t end)
{
    double block[256], sum = 0;
    int last = k->ndim - 1;
    while (at < end) {
        int64_t inner = at % k->shape[last], rest = at / k->shape[last];
        int64_t offset = inner * k->stride[last], n = k->shape[last] - inner;
        for (int i = last - 1; i >= 0; i--) {
            offset += rest % k->shape[i] * k->stride[i];
            rest /= k->shape[i];
        }
        n = n < end - at ? n : end - at;
        n = n < 256 ? n : 256;
        k->load(block, x + offset * (int64_t)k->size, k->stride[last], n);
        for (int64_t i = 0; i < n; i++)
            sum += block[i] * block[i];
        at += n;
    }
    return sum;
}

/* The part with NUMBER into TO; nothing where no part has it. */
static void
sum_part(const struct segment_kernel *k, const char *x, const int32_t *first,
         int64_t number, double *to)
{
    int64_t low = 0, high = k->n; /* the last stretch that begins at or before NUMBER */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (number_of(k, first, middle) <= number)
            low = middle;
        else
            high = middle;
    }
    int64_t part = number - number_of(k, first, low), end = begin_of(k, first, low + 1);
    int64_t at = begin_of(k, first, low) + part * PART;
    if (part < 0 || at >= end)
        return;
    end = end - at < PART ? end : at + PART;
    *to =
        k->plain ? sum_plain((const float *)x + at, end - at) : sum_any(k, x, at, end);
}

static et_status
run_segment(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct segment_kernel *k = (const struct segment_kernel *)kernel;
    const int32_t *first = ptr[1];
    double *parts = ws;
    if (k->n == 0)
        return ET_OK;
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t i = 0; i < k->parts; i++)
        sum_part(k, ptr[0], first, i, &parts[i]);
    for (int64_t s = 0; s < k->n; s++) {
        int64_t length = begin_of(k, first, s + 1) - begin_of(k, first, s);
        const double *of = parts + number_of(k, first, s);
        double sum = 0;
        for (int64_t p = 0; p * PART < length; p++)
            sum += of[p];
        k->store(&sum, (char *)ptr[2] + s * k->to * (int64_t)k->y_size, 1, 1);
    }
    return ET_OK;
}

/* ---- preparing ---- */

static void
merge_axes(struct segment_kernel *k, const struct et_desc *x)
{
    k->ndim = 1;
    k->shape[0] = k->stride[0] = 1;
    for (int i = 0; i < x->ndim; i++) {
        int last = k->ndim - 1;
        if (x->shape[i] == 1)
            continue;
        if (k->shape[last] == 1)
            k->shape[last] = x->shape[i];
        else if (k->stride[last] == x->shape[i] * x->stride[i])
            k->shape[last] *= x->shape[i];
        else
            k->shape[last = k->ndim++] = x->shape[i];
        k->stride[last] = x->stride[i];
    }
}

et_status
ETK_NAME(etk_prepare_segment)(struct et_device_handle *d, const struct et_call *call,
                              struct et_kernel **out, size_t *ws, char *why,
                              size_t why_size)
{
    (void)why, (void)why_size;
    const struct et_desc *x = &call->in[0], *first = &call->in[1], *y = &call->out[0];
    struct segment_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    int64_t count = et_desc_count(x);
    merge_axes(k, x);
    k->rows = x->shape[0];
    k->width = k->rows > 0 ? count / k->rows : 0;
    k->n = y->shape[0];
    k->step = first->stride[0];
    k->to = y->stride[0];
    k->parts = count / PART + k->n;
    k->pieces = pieces_for(d, count, k->parts);
    k->size = et_dtype_size(x->dtype);
    k->y_size = et_dtype_size(y->dtype);
    k->plain = x->dtype == ET_F32 && k->ndim == 1 && k->stride[0] == 1;
    k->load = etk_loads[x->dtype][1];
    k->store = etk_stores[y->dtype][1];
    *ws = (size_t)k->parts * sizeof(double);
    k->base.run = run_segment;
    k->base.what = "loop:segments";
    *out = &k->base;
    return ET_OK;
}
