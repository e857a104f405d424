/* SPDX-License-Identifier: Apache-2.0 */
/* loops_scan.c: lines along an axis, in order and summed up.
 *
 *   sort    an element's order among floats and its place make one 64-bit key, so that
 *           all keys differ and equals stay in their order; keys are merged in runs
 *           that grow from ETK_SORT_RUN, and values fetched by place
 *   cumsum  sums are kept in f64 */
#include <omp.h>

#include "kernels/cpu/loops_arrays.h"
#include "kernels/cpu/loops_math.h"

struct scan_kernel {
    struct et_kernel base;
    struct arrays arrays;
    struct lines lines;
    bool reverse;
    size_t keys;      /* sort: where a thread's keys begin in the workspace */
    size_t keys_size; /* bytes of one thread's: two sets of a line's keys */
    int pieces;
};

/* INDEX: which result holds integers, as a position among all arrays. */
static et_status
prepare(const struct et_call *call, int index, struct scan_kernel **out, size_t *ws,
        char *why, size_t why_size)
{
    const struct et_axis_attr *o = call->attr;
    ET_TRY(arrays_need_f32(call, index, why, why_size));
    struct scan_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct et_desc want = lines_layout(&call->in[0], o->axis, &k->lines);
    arrays_init(&k->arrays, call, &want, ws);
    k->reverse = o->reverse;
    *out = k;
    return ET_OK;
}

/* ---- cumsum ---- */

/* COLS columns of N rows, of which X and Y are the first and the others follow STRIDE
 * elements apart: before it where STRIDE is negative. */
INLINE void
cumsum_columns(const float *restrict x, float *restrict y, int64_t n, int64_t stride,
               int64_t cols)
{
    double sum[ETK_SCAN_COLS] = {0};
    for (int64_t i = 0; i < n; i++, x += stride, y += stride)
        for (int64_t j = 0; j < cols; j++) {
            sum[j] += (double)x[j];
            y[j] = (float)sum[j];
        }
}

static et_status
run_cumsum(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct scan_kernel *k = (const struct scan_kernel *)kernel;
    const struct lines *l = &k->lines;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    int64_t blocks = (l->inner + ETK_SCAN_COLS - 1) / ETK_SCAN_COLS;
    int64_t first = k->reverse ? (l->n - 1) * l->inner : 0;
    int64_t stride = k->reverse ? -l->inner : l->inner;
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t i = 0; i < l->outer * blocks; i++) {
        int64_t column = i % blocks * ETK_SCAN_COLS;
        int64_t at = i / blocks * l->n * l->inner + column + first;
        int64_t cols =
            l->inner - column < ETK_SCAN_COLS ? l->inner - column : ETK_SCAN_COLS;
        const float *x = (const float *)b.in[0] + at;
        float *y = (float *)b.out[0] + at;
        if (cols == 1)
            cumsum_columns(x, y, l->n, stride, 1);
        else
            cumsum_columns(x, y, l->n, stride, cols);
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_cumsum)(struct et_device_handle *d, const struct et_call *call,
                             struct et_kernel **out, size_t *ws, char *why,
                             size_t why_size)
{
    struct scan_kernel *k;
    ET_TRY(prepare(call, -1, &k, ws, why, why_size));
    k->pieces = pieces_for(d, et_desc_count(&call->in[0]),
                           k->lines.outer *
                               ((k->lines.inner + ETK_SCAN_COLS - 1) / ETK_SCAN_COLS));
    k->base.run = run_cumsum;
    k->base.what = "loop:cumsum";
    *out = &k->base;
    return ET_OK;
}

/* ---- sort ---- */

/* Orders as the floats do: NaN is the largest, and -0 is 0. */
static inline uint32_t
order_of(float v)
{
    uint32_t bits = bits_of_float(v + 0.0f);
    return v != v ? UINT32_MAX : bits >> 31 ? ~bits : bits | 1u << 31;
}

static void
insert_runs(uint64_t *key, int64_t n)
{
    for (int64_t run = 0; run < n; run += ETK_SORT_RUN)
        for (int64_t i = run + 1; i < n && i < run + ETK_SORT_RUN; i++) {
            uint64_t own = key[i];
            int64_t at = i;
            for (; at > run && key[at - 1] > own; at--)
                key[at] = key[at - 1];
            key[at] = own;
        }
}

/* A[0 .. n_a) and the N_B keys behind them, each in order, become one run at TO. */
static void
merge(const uint64_t *restrict a, int64_t n_a, int64_t n_b, uint64_t *restrict to)
{
    const uint64_t *b = a + n_a, *end_a = b, *end_b = b + n_b;
    while (a < end_a && b < end_b) {
        bool second = *b < *a;
        *to++ = second ? *b : *a;
        b += second;
        a += !second;
    }
    while (a < end_a)
        *to++ = *a++;
    while (b < end_b)
        *to++ = *b++;
}

/* Puts N keys in order; returns where they are then, KEY or OTHER. */
static const uint64_t *
sort_keys(uint64_t *key, uint64_t *other, int64_t n)
{
    insert_runs(key, n);
    for (int64_t run = ETK_SORT_RUN; run < n; run *= 2) {
        for (int64_t at = 0; at < n; at += 2 * run) {
            int64_t left = n - at, a = left < run ? left : run;
            int64_t b = left - a < run ? left - a : run;
            merge(key + at, a, b, other + at);
        }
        uint64_t *swap = key;
        key = other;
        other = swap;
    }
    return key;
}

static void
sort_line(const struct scan_kernel *k, const float *x, float *value, int32_t *index,
          uint64_t *key)
{
    int64_t n = k->lines.n, s = k->lines.inner;
    uint32_t turn = k->reverse ? UINT32_MAX : 0;
    for (int64_t i = 0; i < n; i++)
        key[i] = (uint64_t)(order_of(x[i * s]) ^ turn) << 32 | (uint32_t)i;
    const uint64_t *sorted = sort_keys(key, key + n, n);
    for (int64_t i = 0; i < n; i++) {
        uint32_t place = (uint32_t)sorted[i];
        if (value)
            value[i * s] = x[place * s];
        if (index)
            index[i * s] = (int32_t)place;
    }
}

static et_status
run_sort(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct scan_kernel *k = (const struct scan_kernel *)kernel;
    const struct lines *l = &k->lines;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    float *value = b.out[0];
    int32_t *index = b.out[1];
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t i = 0; i < l->outer * l->inner; i++) {
        int64_t at = i / l->inner * l->n * l->inner + i % l->inner;
        char *keys = (char *)ws + k->keys + (size_t)omp_get_thread_num() * k->keys_size;
        sort_line(k, (const float *)b.in[0] + at, value ? value + at : NULL,
                  index ? index + at : NULL, (uint64_t *)keys);
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_sort)(struct et_device_handle *d, const struct et_call *call,
                           struct et_kernel **out, size_t *ws, char *why,
                           size_t why_size)
{
    struct scan_kernel *k;
    ET_TRY(prepare(call, 2, &k, ws, why, why_size));
    /* A key's comparisons are some ten elements' worth. */
    k->pieces = pieces_for(d, 10 * et_desc_count(&call->in[0]),
                           k->lines.outer * k->lines.inner);
    k->keys_size = etk_round_up(2 * (size_t)k->lines.n * sizeof(uint64_t));
    k->keys = reserve(ws, (size_t)k->pieces * k->keys_size);
    k->base.run = run_sort;
    k->base.what = "loop:sort";
    *out = &k->base;
    return ET_OK;
}
