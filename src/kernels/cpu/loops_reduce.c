/* SPDX-License-Identifier: Apache-2.0 */
/* loops_reduce.c: sums, extremes and sums of squares over any axes.
 *
 *   y[kept] = sum over the reduced axes of x (or max, min, x^2)
 *
 * Two loops. Where the fastest axis is reduced, runs of it are summed in 64 lanes;
 * where it is kept (bias gradients, averages over channels-last planes), rows are added
 * to a row of sums. Either way some dozen terms are added in f32 and those parts in
 * f64, so the error does not grow with the length. Few results of many terms are split
 * among threads into parts that are added in order: the same bits for the same thread
 * count. Reads x once. NaN wins every comparison. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/loops_convert.h"
#include "kernels/cpu/loops_side.h"
#include "kernels/cpu/tiles.h"

#define LANES ETK_REDUCE_LANES
#define RUN   ETK_REDUCE_RUN
#define COLS  ETK_REDUCE_COLS
#define ROWS  ETK_REDUCE_ROWS
#define WIDE  ETK_REDUCE_WIDE

enum reduce_op { SUM, MAX, MIN, SQUARES };

struct dims {
    int ndim;
    int64_t count, shape[ET_MAX_DIMS], stride[ET_MAX_DIMS], to[ET_MAX_DIMS];
};

struct reduce_kernel {
    struct et_kernel base;
    enum reduce_op op;
    bool columns, wide; /* wide: not f32, read through doubles */
    struct dims kept, reduced;
    int64_t run, run_stride; /* of the reduced axis that rows of lanes follow */
    int64_t cols, fold;      /* columns; rows side by side in one wide row */
    int64_t col_to;          /* their distance in the result */
    int64_t units;           /* per result: stretches of RUN, or rows */
    int64_t chunks;          /* of columns */
    int parts;               /* a result's terms are split in so many */
    int pieces;
    size_t size; /* of an element of x */
    etk_load_fn *load;
    etk_store_fn *store;
    size_t y_size;
};

/* ---- arithmetic, by a constant op ---- */

INLINE double
start_of(enum reduce_op op)
{
    return op == MAX ? -INFINITY : op == MIN ? INFINITY : 0;
}

INLINE float
join_f32(enum reduce_op op, float a, float v)
{
    if (op == SUM)
        return a + v;
    if (op == SQUARES)
        return a + v * v;
    if (op == MAX)
        return v > a || v != v ? v : a;
    return v < a || v != v ? v : a;
}

/* Of parts that are sums already. */
INLINE double
join_parts(enum reduce_op op, double a, double v)
{
    if (op == SUM || op == SQUARES)
        return a + v;
    if (op == MAX)
        return v > a || v != v ? v : a;
    return v < a || v != v ? v : a;
}

static int64_t
offset_of(const struct dims *d, int64_t index, const int64_t *stride)
{
    int64_t offset = 0;
    for (int i = d->ndim - 1; i >= 0; i--) {
        offset += index % d->shape[i] * stride[i];
        index /= d->shape[i];
    }
    return offset;
}

/* ---- runs of the fastest axis ---- */

INLINE double
reduce_run(enum reduce_op op, const float *x, int64_t n)
{
    float lane[LANES];
    double sum = start_of(op);
    for (int j = 0; j < LANES; j++)
        lane[j] = (float)start_of(op);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int j = 0; j < LANES; j++)
            lane[j] = join_f32(op, lane[j], x[i + j]);
    for (int j = 0; i + j < n; j++)
        lane[j] = join_f32(op, lane[j], x[i + j]);
    for (int j = 0; j < LANES; j++)
        sum = join_parts(op, sum, lane[j]);
    return sum;
}

/* Any dtype and stride. */
INLINE double
reduce_wide(const struct reduce_kernel *k, enum reduce_op op, const char *x, int64_t n)
{
    double block[WIDE], sum = start_of(op);
    for (int64_t i = 0; i < n; i += WIDE) {
        int64_t m = n - i < WIDE ? n - i : WIDE;
        k->load(block, x + i * k->run_stride * (int64_t)k->size, k->run_stride, m);
        for (int64_t j = 0; j < m; j++)
            sum = join_parts(op, sum, op == SQUARES ? block[j] * block[j] : block[j]);
    }
    return sum;
}

INLINE void
reduce_runs(const struct reduce_kernel *k, enum reduce_op op, const char *x,
            int64_t first, int64_t end, double *to)
{
    int64_t per_run = (k->run + RUN - 1) / RUN;
    double sum = start_of(op);
    for (int64_t u = first; u < end; u++) {
        int64_t at = u % per_run * RUN, n = k->run - at < RUN ? k->run - at : RUN;
        int64_t offset = offset_of(&k->reduced, u / per_run, k->reduced.stride);
        const char *from = x + (offset + at * k->run_stride) * (int64_t)k->size;
        double v = k->wide ? reduce_wide(k, op, from, n)
                           : reduce_run(op, (const float *)from, n);
        sum = join_parts(op, sum, v);
    }
    *to = sum;
}

/* ---- rows of columns ---- */

INLINE void
reduce_rows(const struct reduce_kernel *k, enum reduce_op op, const float *x,
            int64_t first, int64_t end, int64_t cols, double *to)
{
    float acc[COLS];
    const struct dims *r = &k->reduced;
    int last = r->ndim - 1;
    for (int64_t c = 0; c < cols; c++)
        to[c] = start_of(op);
    while (first < end) {
        int64_t n = r->shape[last] - first % r->shape[last];
        n = n < end - first ? n : end - first;
        n = n < ROWS ? n : ROWS;
        const float *row = x + offset_of(r, first, r->stride);
        for (int64_t c = 0; c < cols; c++)
            acc[c] = (float)start_of(op);
        for (int64_t i = 0; i < n; i++, row += r->stride[last])
#pragma omp simd
            for (int64_t c = 0; c < cols; c++)
                acc[c] = join_f32(op, acc[c], row[c]);
        for (int64_t c = 0; c < cols; c++)
            to[c] = join_parts(op, to[c], acc[c]);
        first += n;
    }
}

/* ---- tasks ---- */

/* One part of one result (or chunk of columns) into TO. */
INLINE void
reduce_task(const struct reduce_kernel *k, enum reduce_op op, const char *x,
            int64_t task, int part, double *to)
{
    int64_t first = k->units * part / k->parts, end = k->units * (part + 1) / k->parts;
    int64_t offset = offset_of(&k->kept, task / k->chunks, k->kept.stride);
    int64_t col = task % k->chunks * COLS;
    if (!k->columns)
        reduce_runs(k, op, x + offset * (int64_t)k->size, first, end, to);
    else
        reduce_rows(k, op, (const float *)x + offset + col, first, end,
                    k->cols * k->fold - col < COLS ? k->cols * k->fold - col : COLS,
                    to);
}

/* Adds up the parts of a task, and rows that were side by side; stores the result. */
INLINE void
finish_task(const struct reduce_kernel *k, enum reduce_op op, const double *from,
            char *y, int64_t task)
{
    int64_t width = k->columns ? COLS : 1, n = 1, col = task % k->chunks * COLS;
    int64_t at = offset_of(&k->kept, task / k->chunks, k->kept.to);
    if (k->columns)
        n = k->cols - col < COLS ? k->cols - col : COLS;
    for (int64_t c = 0; c < n; c++) {
        double v = start_of(op);
        for (int part = 0; part < k->parts; part++)
            for (int64_t f = 0; f < k->fold; f++)
                v = join_parts(op, v, from[part * width + f * k->cols + c]);
        int64_t to = at + (col + c) * k->col_to;
        k->store(&v, y + to * (int64_t)k->y_size, 1, 1);
    }
}

INLINE void
reduce_all(const struct reduce_kernel *k, enum reduce_op op, void *const *ptr, void *ws)
{
    int64_t tasks = k->kept.count * k->chunks, width = k->columns ? COLS : 1;
    double *parts = ws;
    if (k->parts == 1) {
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
        for (int64_t t = 0; t < tasks; t++) {
            double sum[COLS];
            reduce_task(k, op, ptr[0], t, 0, sum);
            finish_task(k, op, sum, ptr[1], t);
        }
        return;
    }
#pragma omp parallel for schedule(static) num_threads(k->pieces)
    for (int64_t i = 0; i < tasks * k->parts; i++)
        reduce_task(k, op, ptr[0], i % tasks, (int)(i / tasks),
                    parts + (i % tasks * k->parts + i / tasks) * width);
    for (int64_t t = 0; t < tasks; t++)
        finish_task(k, op, parts + t * k->parts * width, ptr[1], t);
}

static et_status
run_reduce(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct reduce_kernel *k = (const struct reduce_kernel *)kernel;
    if (k->op == SUM)
        reduce_all(k, SUM, ptr, ws);
    else if (k->op == MAX)
        reduce_all(k, MAX, ptr, ws);
    else if (k->op == MIN)
        reduce_all(k, MIN, ptr, ws);
    else
        reduce_all(k, SQUARES, ptr, ws);
    return ET_OK;
}

/* ---- preparing ---- */

/* Appends an axis behind the others, merged with the last where both sides run on. */
static void
append_axis(struct dims *d, int64_t length, int64_t stride, int64_t to)
{
    int last = d->ndim - 1;
    if (d->ndim > 0 && d->stride[last] == length * stride &&
        d->to[last] == length * to) {
        d->shape[last] *= length;
    } else {
        last = d->ndim++;
        d->shape[last] = length;
    }
    d->stride[last] = stride;
    d->to[last] = to;
    d->count *= length;
}

/* Splits the axes of X, the slowest in memory first. */
static void
split_axes(const struct et_desc *x, const struct et_desc *y, uint32_t axes,
           struct dims *kept, struct dims *reduced)
{
    int order[ET_MAX_DIMS];
    int64_t to[ET_MAX_DIMS];
    for (int i = 0, out = 0; i < x->ndim; i++) {
        bool gone = axes >> i & 1;
        to[i] = gone ? 0 : y->stride[y->ndim == x->ndim ? i : out];
        out += !gone;
        int at = i;
        for (; at > 0 && x->stride[order[at - 1]] < x->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    kept->count = reduced->count = 1;
    for (int i = 0; i < x->ndim; i++) {
        int axis = order[i];
        if (x->shape[axis] == 1)
            continue;
        if (axes >> axis & 1)
            append_axis(reduced, x->shape[axis], x->stride[axis], 0);
        else
            append_axis(kept, x->shape[axis], x->stride[axis], to[axis]);
    }
}

/* Takes the last axis out of D. */
static void
pop_axis(struct dims *d)
{
    d->ndim--;
    d->count = 1;
    for (int i = 0; i < d->ndim; i++)
        d->count *= d->shape[i];
}

static void
choose_columns(struct reduce_kernel *k)
{
    struct dims *kept = &k->kept, *r = &k->reduced;
    int last = kept->ndim - 1;
    k->cols = kept->shape[last];
    k->col_to = kept->to[last];
    pop_axis(kept);
    k->fold = 1;
    last = r->ndim - 1;
    /* Short rows that follow each other count as one: fewer, longer loops. */
    while (r->stride[last] == k->cols * k->fold && r->shape[last] % 2 == 0 &&
           k->cols * k->fold * 2 <= ETK_REDUCE_FOLD) {
        k->fold *= 2;
        r->shape[last] /= 2;
        r->stride[last] *= 2;
        r->count /= 2;
    }
    k->units = r->count;
    k->chunks = (k->cols + COLS - 1) / COLS;
}

static void
choose_runs(struct reduce_kernel *k)
{
    struct dims *r = &k->reduced;
    k->run = k->run_stride = 1;
    if (r->ndim > 0) {
        k->run = r->shape[r->ndim - 1];
        k->run_stride = r->stride[r->ndim - 1];
        pop_axis(r);
    }
    k->wide |= k->run > 1 && k->run_stride != 1;
    k->units = r->count * ((k->run + RUN - 1) / RUN);
    k->fold = k->chunks = 1;
}

static et_status
prepare(struct et_device_handle *d, const struct et_call *call, enum reduce_op op,
        uint32_t axes, struct et_kernel **out, size_t *ws)
{
    const struct et_desc *x = &call->in[0], *y = &call->out[0];
    struct reduce_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->op = op;
    k->wide = x->dtype != ET_F32;
    k->size = et_dtype_size(x->dtype);
    k->y_size = et_dtype_size(y->dtype);
    k->load = etk_loads[x->dtype][1];
    k->store = etk_stores[y->dtype][1];
    split_axes(x, y, axes, &k->kept, &k->reduced);
    int a = k->kept.ndim - 1, b = k->reduced.ndim - 1;
    k->columns = !k->wide && a >= 0 && b >= 0 && k->kept.stride[a] == 1 &&
                 k->reduced.stride[b] > 1;
    if (k->columns)
        choose_columns(k);
    else
        choose_runs(k);
    int64_t tasks = k->kept.count * k->chunks;
    bool split = tasks < 2 * d->threads && d->threads > 1 && k->units > 1;
    k->pieces = pieces_for(d, et_desc_count(x), split ? k->units : tasks);
    k->parts = split && k->pieces > 1 ? k->pieces : 1;
    *ws = k->parts > 1
              ? (size_t)(tasks * k->parts) * (k->columns ? COLS : 1) * sizeof(double)
              : 0;
    k->base.run = run_reduce;
    k->base.what = k->columns ? "loop:reduce columns" : "loop:reduce runs";
    *out = &k->base;
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_reduce)(struct et_device_handle *d, const struct et_call *call,
                             struct et_kernel **out, size_t *ws, char *why,
                             size_t why_size)
{
    (void)why, (void)why_size;
    const struct et_reduce_attr *o = call->attr;
    enum reduce_op op = call->op == ET_OP_sum    ? SUM
                        : call->op == ET_OP_amax ? MAX
                                                 : MIN;
    return prepare(d, call, op, o->axes, out, ws);
}

et_status
ETK_NAME(etk_prepare_sum_squares)(struct et_device_handle *d,
                                  const struct et_call *call, struct et_kernel **out,
                                  size_t *ws, char *why, size_t why_size)
{
    (void)why, (void)why_size;
    return prepare(d, call, SQUARES, ~(uint32_t)0, out, ws);
}
