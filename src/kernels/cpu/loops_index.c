/* SPDX-License-Identifier: Apache-2.0 */
/* loops_index.c: slices and elements chosen by an array of indices, and the sums that
 * are their gradients.
 *
 *   take         y[o, i, j] = x[o, index[i], j]
 *   gather       y[o, i, j] = x[o, index[o, i, j], j]
 *   take_grad    y[o, index[i], j] += x[o, i, j]
 *   scatter_add  y[o, index[o, i, j], j] += x[o, i, j]
 *
 * O and J stand for the axes before and after the one indexed. Sums need no atomics:
 * elements of different (o, j) never meet, so a thread takes a part of the outer axes
 * or of the columns and goes through i in order; no thread count changes a bit. An
 * index outside the axis reads NaN (0 in integer arrays) and writes nothing. */
#include "kernels/cpu/loops_arrays.h"

#define LINE 16 /* floats: threads share no cache line inside a row */

struct index_kernel {
    struct et_kernel base;
    struct arrays arrays;
    int64_t outer, n, inner; /* of the array that is indexed */
    int64_t m;               /* indices along the axis, or in all for take */
    int64_t columns;         /* of a unit of work that adds */
    size_t size;             /* of an element */
    int nothing;             /* the byte that what is outside consists of */
    bool whole;              /* an index stands for a slice */
    int pieces;
};

/* ---- reading ---- */

/* Slices FIRST .. END - 1 of y. */
INLINE void
take_slices(const struct index_kernel *k, char *y, const char *x, const int32_t *index,
            int64_t first, int64_t end, const size_t bytes)
{
    int64_t i = first % k->m, begin = first / k->m * k->n;
    for (int64_t row = first; row < end; row++) {
        int64_t from = index[i];
        char *to = y + (size_t)row * bytes;
        if (from >= 0 && from < k->n)
            memcpy(to, x + (size_t)(begin + from) * bytes, bytes);
        else
            memset(to, k->nothing, bytes);
        if (++i == k->m) {
            i = 0;
            begin += k->n;
        }
    }
}

static et_status
run_take(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct index_kernel *k = (const struct index_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    size_t bytes = (size_t)k->inner * k->size;
    int64_t rows = k->outer * k->m;
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++) {
        int64_t first = rows * piece / k->pieces, end = rows * (piece + 1) / k->pieces;
        if (first == end)
            continue;
        if (bytes == sizeof(float)) /* a number each, as in flat memory's tables */
            take_slices(k, b.out[0], b.in[0], b.in[1], first, end, sizeof(float));
        else
            take_slices(k, b.out[0], b.in[0], b.in[1], first, end, bytes);
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

INLINE void
gather_row(const struct index_kernel *k, char *y, const char *x, const int32_t *index,
           const size_t size)
{
    for (int64_t j = 0; j < k->inner; j++) {
        char *to = y + (size_t)j * size;
        if (index[j] >= 0 && index[j] < k->n)
            memcpy(to, x + (size_t)(index[j] * k->inner + j) * size, size);
        else
            memset(to, k->nothing, size);
    }
}

static et_status
run_gather(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct index_kernel *k = (const struct index_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    size_t bytes = (size_t)k->inner * k->size;
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t row = 0; row < k->outer * k->m; row++) {
        const char *x = (const char *)b.in[0] + (size_t)(row / k->m * k->n) * bytes;
        const int32_t *index = (const int32_t *)b.in[1] + row * k->inner;
        char *y = (char *)b.out[0] + (size_t)row * bytes;
        if (k->size == sizeof(float))
            gather_row(k, y, x, index, sizeof(float));
        else
            gather_row(k, y, x, index, k->size);
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

/* ---- adding ---- */

/* N neighbours; TO and FROM are at their first. */
static void
take_back(const struct index_kernel *k, float *to, const float *from,
          const int32_t *index, int64_t n)
{
    for (int64_t i = 0; i < k->m; i++) {
        if (index[i] < 0 || index[i] >= k->n)
            continue;
        float *restrict sum = to + index[i] * k->inner;
        const float *restrict x = from + i * k->inner;
        for (int64_t j = 0; j < n; j++)
            sum[j] += x[j];
    }
}

/* As above; INDEX is laid out as FROM. */
static void
scatter(const struct index_kernel *k, float *to, const float *from,
        const int32_t *index, int64_t n)
{
    for (int64_t i = 0; i < k->m; i++)
        for (int64_t j = 0; j < n; j++) {
            int32_t at = index[i * k->inner + j];
            if (at >= 0 && at < k->n)
                to[at * k->inner + j] += from[i * k->inner + j];
        }
}

static et_status
run_add(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct index_kernel *k = (const struct index_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    int64_t units = (k->inner + k->columns - 1) / k->columns;
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t unit = 0; unit < k->outer * units; unit++) {
        int64_t o = unit / units, j = unit % units * k->columns;
        int64_t n = k->inner - j < k->columns ? k->inner - j : k->columns;
        int64_t source = o * k->m * k->inner + j;
        float *to = (float *)b.out[0] + o * k->n * k->inner + j;
        const float *from = (const float *)b.in[0] + source;
        for (int64_t i = 0; i < k->n; i++)
            memset(to + i * k->inner, 0, (size_t)n * sizeof *to);
        if (k->whole)
            take_back(k, to, from, b.in[1], n);
        else
            scatter(k, to, from, (const int32_t *)b.in[1] + source, n);
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

/* ---- preparing ---- */

/* D's axes before, at and after AXIS, which stands for COUNT axes. */
static void
split(const struct et_desc *d, int axis, int count, int64_t *outer, int64_t *n,
      int64_t *inner)
{
    *outer = *n = *inner = 1;
    for (int i = 0; i < d->ndim; i++)
        *(i < axis ? outer : i < axis + count ? n : inner) *= d->shape[i];
}

/* Whole samples of X are copied to Y as they lie, in whatever format. */
static bool
are_samples(const struct et_desc *x, const struct et_desc *y, int axis)
{
    bool same =
        axis == 0 && x->ndim == y->ndim && et_desc_is_dense(x) && et_desc_is_dense(y);
    for (int i = 1; same && i < x->ndim; i++)
        same = x->stride[i] == y->stride[i] && x->stride[i] <= x->stride[0] &&
               y->stride[i] <= y->stride[0];
    return same;
}

et_status
ETK_NAME(etk_prepare_index)(struct et_device_handle *d, const struct et_call *call,
                            struct et_kernel **out, size_t *ws, char *why,
                            size_t why_size)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0], *index = &call->in[1], *y = &call->out[0];
    bool adds = call->op == ET_OP_take_grad || call->op == ET_OP_scatter_add;
    bool whole = call->op == ET_OP_take || call->op == ET_OP_take_grad;
    if (index->dtype != ET_I32 || (adds && x->dtype != ET_F32))
        return etk_refuse(why, why_size,
                          "the CPU takes i32 indices and adds in f32, not %s and %s",
                          et_dtype_name(index->dtype), et_dtype_name(x->dtype));
    struct index_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    int axes = whole ? index->ndim : 1;
    split(adds ? x : y, o->axis, axes, &k->outer, &k->m, &k->inner);
    k->n = (adds ? y : x)->shape[o->axis];
    /* Samples in any format are copied as if their rows were row-major. */
    struct et_desc in[2] = {*x, *index}, to = *y, plain = row_major(index);
    if (call->op == ET_OP_take && are_samples(x, y, o->axis)) {
        in[0] = row_major(x);
        to = row_major(y);
    }
    struct et_call as_is = *call;
    as_is.in = in;
    as_is.out = &to;
    arrays_init(&k->arrays, &as_is, &plain, ws);
    int64_t share =
        k->outer < d->threads ? (k->inner + d->threads - 1) / d->threads : k->inner;
    k->columns = (share + LINE - 1) / LINE * LINE;
    k->size = et_dtype_size(x->dtype);
    k->nothing = et_dtype_is_float(x->dtype) ? 0xff : 0;
    k->whole = whole;
    k->pieces =
        pieces_for(d, k->outer * (k->m + k->n) * k->inner,
                   k->outer * (adds ? (k->inner + k->columns - 1) / k->columns : k->m));
    k->base.run = adds ? run_add : whole ? run_take : run_gather;
    k->base.what = "loop:index";
    *out = &k->base;
    return ET_OK;
}
