/* SPDX-License-Identifier: Apache-2.0 */
/* loops_copy.c: copies between any two strided layouts of one shape.
 *
 * to[i] = from[i] for every index i. Axes are sorted by the target's strides and merged
 * where both sides run on, so most copies become rows of memcpy. Where the source's
 * fastest axis is another one (a transpose), squares of 16 x 16 keep both sides' cache
 * lines in use. Moves 2 bytes per byte of the array. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/loops.h"
#include "kernels/cpu/tiles.h"

/* Below this a parallel region costs more than it saves (0.8 us each, 20 GB/s a
 * core). */
#define PARALLEL_BYTES (64 * 1024)
#define TILE           ETK_COPY_TILE

/* A row of N elements with strides; and a plane of M x N, whose second axis is
 * contiguous in the target and the first in the source. */
#define DEFINE_ROWS(type)                                                              \
    static void row_##type(type *restrict to, int64_t dt, const type *restrict from,   \
                           int64_t df, int64_t n)                                      \
    {                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                \
            to[i * dt] = from[i * df];                                                 \
    }                                                                                  \
    static void plane_##type(type *restrict to, int64_t dt, const type *restrict from, \
                             int64_t df, int64_t m, int64_t n)                         \
    {                                                                                  \
        for (int64_t j0 = 0; j0 < n; j0 += TILE)                                       \
            for (int64_t i = 0; i < m; i++)                                            \
                for (int64_t j = j0; j < n && j < j0 + TILE; j++)                      \
                    to[i * dt + j] = from[i + j * df];                                 \
    }
DEFINE_ROWS(uint8_t)
DEFINE_ROWS(uint16_t)
DEFINE_ROWS(uint32_t)
DEFINE_ROWS(uint64_t)

static void
copy_row(size_t size, char *to, int64_t dt, const char *from, int64_t df, int64_t n)
{
    if (dt == 1 && df == 1)
        memcpy(to, from, (size_t)n * size);
    else if (size == 4)
        row_uint32_t((uint32_t *)to, dt, (const uint32_t *)from, df, n);
    else if (size == 8)
        row_uint64_t((uint64_t *)to, dt, (const uint64_t *)from, df, n);
    else if (size == 2)
        row_uint16_t((uint16_t *)to, dt, (const uint16_t *)from, df, n);
    else
        row_uint8_t((uint8_t *)to, dt, (const uint8_t *)from, df, n);
}

static void
copy_plane(size_t size, char *to, int64_t dt, const char *from, int64_t df, int64_t m,
           int64_t n)
{
    if (size == 4)
        plane_uint32_t((uint32_t *)to, dt, (const uint32_t *)from, df, m, n);
    else if (size == 8)
        plane_uint64_t((uint64_t *)to, dt, (const uint64_t *)from, df, m, n);
    else if (size == 2)
        plane_uint16_t((uint16_t *)to, dt, (const uint16_t *)from, df, m, n);
    else
        plane_uint8_t((uint8_t *)to, dt, (const uint8_t *)from, df, m, n);
}

/* The axis, apart from the last, along which the source is contiguous; -1: none. */
static int
transposed_axis(const struct etk_copy *c)
{
    if (c->to[c->ndim - 1] != 1 || c->from[c->ndim - 1] == 1)
        return -1;
    for (int i = 0; i < c->ndim - 1; i++)
        if (c->from[i] == 1)
            return i;
    return -1;
}

/* What remains after the last axis, and after axis T, is walked by one index. */
static void
offsets(const struct etk_copy *c, int t, int64_t index, int64_t *to, int64_t *from)
{
    *to = *from = 0;
    for (int i = c->ndim - 2; i >= 0; i--) {
        int64_t n = i == t ? (c->shape[i] + TILE - 1) / TILE : c->shape[i];
        int64_t at = index % n * (i == t ? TILE : 1);
        *to += at * c->to[i];
        *from += at * c->from[i];
        index /= n;
    }
}

static int64_t
tile_start(const struct etk_copy *c, int t, int64_t index)
{
    for (int i = c->ndim - 2; i > t; i--)
        index /= c->shape[i];
    return index % ((c->shape[t] + TILE - 1) / TILE) * TILE;
}

void
ETK_NAME(etk_copy_run)(const struct etk_copy *c, void *to, const void *from)
{
    int t = transposed_axis(c);
    int64_t n = c->shape[c->ndim - 1], outer = 1;
    for (int i = 0; i < c->ndim - 1; i++)
        outer *= i == t ? (c->shape[i] + TILE - 1) / TILE : c->shape[i];
    /* One long row: cut it, so that all threads have some. */
    int64_t cut = outer == 1 && t < 0 ? 16384 : n;
    int64_t pieces = cut > 0 ? (n + cut - 1) / cut : 0;

    bool large = (size_t)(outer * n) * c->size >= PARALLEL_BYTES;
#pragma omp parallel for schedule(static) if (large)
    for (int64_t k = 0; k < outer * pieces; k++) {
        int64_t i = k / pieces, begin = k % pieces * cut, at_to, at_from;
        int64_t count = n - begin < cut ? n - begin : cut;
        offsets(c, t, i, &at_to, &at_from);
        at_to += begin * c->to[c->ndim - 1];
        at_from += begin * c->from[c->ndim - 1];
        char *a = (char *)to + at_to * (int64_t)c->size;
        const char *b = (const char *)from + at_from * (int64_t)c->size;
        if (t < 0) {
            copy_row(c->size, a, c->to[c->ndim - 1], b, c->from[c->ndim - 1], count);
        } else {
            int64_t m = c->shape[t] - tile_start(c, t, i);
            copy_plane(c->size, a, c->to[t], b, c->from[c->ndim - 1],
                       m < TILE ? m : TILE, n);
        }
    }
}

struct copy_kernel {
    struct et_kernel base;
    struct etk_copy copy;
};

static et_status
run_copy(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    (void)ws;
    const struct copy_kernel *k = (const struct copy_kernel *)kernel;
    ETK_NAME(etk_copy_run)(&k->copy, ptr[1], ptr[0]);
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_copy)(struct et_device_handle *d, const struct et_call *call,
                           struct et_kernel **out, size_t *ws, char *why,
                           size_t why_size)
{
    (void)d;
    if (call->in[0].dtype != call->out[0].dtype ||
        !et_desc_same_shape(&call->in[0], &call->out[0]))
        return etk_refuse(why, why_size, "copy changes neither shape nor dtype");
    struct copy_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    etk_copy_init(&k->copy, &call->out[0], &call->in[0]);
    k->base.run = run_copy;
    k->base.what = "copy";
    *ws = 0;
    *out = &k->base;
    return ET_OK;
}
