/* SPDX-License-Identifier: Apache-2.0 */
/* loops_select.c: where the largest elements of a line lie.
 *
 *   argmax  the first of the largest along an axis
 *   topk    the k largest of the last axis, descending; equals in their order
 *
 * NaN is larger than every number. argmax looks for the largest value in vectors and
 * then for its place; topk keeps a sorted list of k, which most elements never
 * enter. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/loops_arrays.h"

struct select_kernel {
    struct et_kernel base;
    struct arrays arrays;
    struct lines lines;
    int64_t k;    /* topk */
    size_t spare; /* topk: stands for a result nobody wants */
    int pieces;
};

/* The place of the first largest of N elements at a distance of S. */
INLINE int32_t
argmax_line(const float *x, int64_t n, int64_t s)
{
    float m = -INFINITY;
    int nans = 0;
#pragma omp simd reduction(max : m) reduction(| : nans)
    for (int64_t c = 0; c < n; c++) {
        float v = x[c * s];
        m = v > m ? v : m;
        nans |= v != v;
    }
    for (int64_t c = 0; c < n; c++)
        if (nans ? x[c * s] != x[c * s] : x[c * s] == m)
            return (int32_t)c;
    return 0;
}

static et_status
run_argmax(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct select_kernel *k = (const struct select_kernel *)kernel;
    const struct lines *l = &k->lines;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    const float *x = b.in[0];
    int32_t *y = b.out[0];
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t i = 0; i < l->outer * l->inner; i++)
        y[i] = l->inner == 1
                   ? argmax_line(x + i * l->n, l->n, 1)
                   : argmax_line(x + i / l->inner * l->n * l->inner + i % l->inner,
                                 l->n, l->inner);
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

INLINE bool
wins(float a, float b)
{
    return a > b || (a != a && b == b);
}

/* The K largest of N elements; VALUE and INDEX are the list. */
static void
topk_line(const float *x, int64_t n, int64_t k, float *value, int32_t *index)
{
    int64_t have = 0;
    for (int64_t c = 0; c < n; c++) {
        if (have == k && !wins(x[c], value[k - 1]))
            continue;
        int64_t at = have < k ? have++ : k - 1;
        for (; at > 0 && wins(x[c], value[at - 1]); at--) {
            value[at] = value[at - 1];
            index[at] = index[at - 1];
        }
        value[at] = x[c];
        index[at] = (int32_t)c;
    }
}

static et_status
run_topk(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct select_kernel *k = (const struct select_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    const float *x = b.in[0];
    float *value = b.out[0] ? b.out[0] : (void *)((char *)ws + k->spare);
    int32_t *index = b.out[1] ? b.out[1] : (void *)((char *)ws + k->spare);
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t i = 0; i < k->lines.outer; i++)
        topk_line(x + i * k->lines.n, k->lines.n, k->k, value + i * k->k,
                  index + i * k->k);
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

/* INDEX: which result holds integers, as a position among all arrays. */
static et_status
prepare(struct et_device_handle *d, const struct et_call *call, int axis, int index,
        struct select_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_desc *x = &call->in[0];
    ET_TRY(arrays_need_f32(call, index, why, why_size));
    struct select_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct et_desc want = lines_layout(x, axis, &k->lines);
    int64_t count = k->lines.outer * k->lines.inner;
    arrays_init(&k->arrays, call, &want, ws);
    k->pieces = pieces_for(d, et_desc_count(x), count);
    *out = k;
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_argmax)(struct et_device_handle *d, const struct et_call *call,
                             struct et_kernel **out, size_t *ws, char *why,
                             size_t why_size)
{
    const struct et_axis_attr *o = call->attr;
    struct select_kernel *k;
    ET_TRY(prepare(d, call, o->axis, 1, &k, ws, why, why_size));
    k->base.run = run_argmax;
    k->base.what = "loop:argmax";
    *out = &k->base;
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_topk)(struct et_device_handle *d, const struct et_call *call,
                           struct et_kernel **out, size_t *ws, char *why,
                           size_t why_size)
{
    const struct et_axis_attr *o = call->attr;
    struct select_kernel *k;
    ET_TRY(prepare(d, call, call->in[0].ndim - 1, 2, &k, ws, why, why_size));
    k->k = o->n;
    k->spare = reserve(ws, (size_t)(k->lines.outer * k->k) * sizeof(float));
    k->base.run = run_topk;
    k->base.what = "loop:topk";
    *out = &k->base;
    return ET_OK;
}
