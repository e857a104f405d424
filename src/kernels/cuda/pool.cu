/* SPDX-License-Identifier: Apache-2.0 */
/* pool.cu: pooling over windows of a plane, and its gradients.
 *
 *   max   y = largest x of the window, index = h W + w of it, of several the first;
 *         NaN is the largest; a window with no pixel has -inf and -1
 *   mean  y = sum x / count, where count is of the pixels of the window that lie inside
 *         the image, or inside the padded image
 *
 * A thread makes one result, or as many channels' as 16 bytes hold where channels lie
 * side by side; windows that overlap meet in the caches. Gradients gather: each dx sums
 * over the windows that hold it, rows before columns, so in one order and without
 * atomics. What is read and written once: x, y and index. */
#include "kernels/cuda/image.cuh"
#include "kernels/cuda/pool.h"

enum { THREADS = 256 };

struct pool_arg {
    etk_pixels pixels; /* of the result */
    etk_strides large, small, index;
    struct etk_window h, w;
    bool adaptive, include_pad;
};

/* First tap, the one behind the last, and what the mean's divisor has from this
 * axis. */
struct span {
    int first, end, count;
};

/* The window of pooled position P. Adaptive: floor(p H / P) .. ceil((p + 1) H / P) - 1.
 * The taps of a plain one are not yet cut off at the image. */
static __device__ __forceinline__ span
span_of(const pool_arg &g, const struct etk_window &s, int p)
{
    if (g.adaptive) {
        int first = (int)((uint32_t)(p * s.large) / (uint32_t)s.small);
        int end =
            (int)((uint32_t)((p + 1) * s.large + s.small - 1) / (uint32_t)s.small);
        return {first, end, end - first};
    }
    int first = p * s.stride - s.pad, end = first + (s.kernel - 1) * s.step + 1;
    int margin = g.include_pad ? s.pad : 0;
    int count = min(end, s.large + margin) - max(first, -margin);
    return {first, end, max(count, 0)};
}

/* The pooled positions whose windows may hold position H of the image: the first, and
 * the one behind the last. */
static __device__ __forceinline__ span
holders_of(const pool_arg &g, const struct etk_window &s, int h)
{
    if (g.adaptive) {
        int first = (int)((uint32_t)(h * s.small) / (uint32_t)s.large);
        int end =
            (int)((uint32_t)((h + 1) * s.small + s.large - 1) / (uint32_t)s.large);
        return {first, end, 0};
    }
    int behind = h + s.pad - (s.kernel - 1) * s.step;
    int first = behind <= 0 ? 0 : (behind + s.stride - 1) / s.stride;
    return {first, min((h + s.pad) / s.stride + 1, s.small), 0};
}

template <int LANES>
static __device__ __forceinline__ void
load_places(const int32_t *p, int32_t (&v)[LANES])
{
    enum { N = LANES < 4 ? LANES : 4 };
#pragma unroll
    for (int j = 0; j < LANES; j += N) {
        etk_pack<int32_t, N> some = *(const etk_pack<int32_t, N> *)(p + j);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[j + i] = some.v[i];
    }
}

template <int LANES>
static __device__ __forceinline__ void
store_places(int32_t *p, const int32_t (&v)[LANES])
{
    enum { N = LANES < 4 ? LANES : 4 };
#pragma unroll
    for (int j = 0; j < LANES; j += N) {
        etk_pack<int32_t, N> some;
#pragma unroll
        for (int i = 0; i < N; i++)
            some.v[i] = v[j + i];
        *(etk_pack<int32_t, N> *)(p + j) = some;
    }
}

/* Thread t makes y at places t, t + threads, ...; only taps inside the image are
 * read. */
template <class T, int LANES>
static __global__ void __launch_bounds__(THREADS, 2)
    max_pool(const T *__restrict__ x, T *__restrict__ y, int32_t *__restrict__ index,
             const __grid_constant__ pool_arg g)
{
    for (int64_t i = etk_thread(); i < g.pixels.count; i += etk_threads()) {
        etk_pixel at = etk_pixel_at(g.pixels, i);
        const T *plane = x + etk_plane(g.large, at);
        span rows = span_of(g, g.h, at.h), cols = span_of(g, g.w, at.w);
        float best[LANES];
        int32_t winner[LANES];
#pragma unroll
        for (int j = 0; j < LANES; j++) {
            best[j] = -INFINITY;
            winner[j] = -1;
        }
        for (int h = rows.first; h < rows.end && h < g.h.large; h += g.h.step) {
            if (h < 0)
                continue;
            for (int w = cols.first; w < cols.end && w < g.w.large; w += g.w.step) {
                if (w < 0)
                    continue;
                etk_pack<T, LANES> v =
                    *(const etk_pack<T, LANES> *)(plane + etk_in_plane(g.large, h, w));
#pragma unroll
                for (int j = 0; j < LANES; j++) {
                    float one = etk_up(v.v[j]);
                    bool wins = one > best[j] || (one != one && best[j] == best[j]) ||
                                winner[j] < 0;
                    best[j] = wins ? one : best[j];
                    winner[j] = wins ? h * g.w.large + w : winner[j];
                }
            }
        }
        if (y)
            etk_store_lanes<T, LANES>(
                y + etk_plane(g.small, at) + etk_in_plane(g.small, at.h, at.w), best);
        if (index)
            store_places<LANES>(index + etk_plane(g.index, at) +
                                    etk_in_plane(g.index, at.h, at.w),
                                winner);
    }
}

/* Thread t makes dx at places t, t + threads, ... */
template <class T, int LANES>
static __global__ void __launch_bounds__(THREADS, 2)
    max_pool_grad(const T *__restrict__ dy, const int32_t *__restrict__ index,
                  T *__restrict__ dx, const __grid_constant__ pool_arg g)
{
    for (int64_t i = etk_thread(); i < g.pixels.count; i += etk_threads()) {
        etk_pixel at = etk_pixel_at(g.pixels, i);
        const T *plane = dy + etk_plane(g.small, at);
        const int32_t *places = index + etk_plane(g.index, at);
        span rows = holders_of(g, g.h, at.h), cols = holders_of(g, g.w, at.w);
        int own = at.h * g.w.large + at.w;
        float sum[LANES] = {};
        for (int p = rows.first; p < rows.end; p++)
            for (int q = cols.first; q < cols.end; q++) {
                int32_t winner[LANES];
                load_places<LANES>(places + etk_in_plane(g.index, p, q), winner);
                etk_pack<T, LANES> v =
                    *(const etk_pack<T, LANES> *)(plane + etk_in_plane(g.small, p, q));
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    sum[j] += winner[j] == own ? etk_up(v.v[j]) : 0;
            }
        etk_store_lanes<T, LANES>(
            dx + etk_plane(g.large, at) + etk_in_plane(g.large, at.h, at.w), sum);
    }
}

/* As max_pool. */
template <class T, int LANES>
static __global__ void __launch_bounds__(THREADS, 2)
    mean_pool(const T *__restrict__ x, T *__restrict__ y,
              const __grid_constant__ pool_arg g)
{
    for (int64_t i = etk_thread(); i < g.pixels.count; i += etk_threads()) {
        etk_pixel at = etk_pixel_at(g.pixels, i);
        const T *plane = x + etk_plane(g.large, at);
        span rows = span_of(g, g.h, at.h), cols = span_of(g, g.w, at.w);
        float sum[LANES] = {};
        for (int h = max(rows.first, 0); h < min(rows.end, g.h.large); h++)
            for (int w = max(cols.first, 0); w < min(cols.end, g.w.large); w++) {
                etk_pack<T, LANES> v =
                    *(const etk_pack<T, LANES> *)(plane + etk_in_plane(g.large, h, w));
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    sum[j] += etk_up(v.v[j]);
            }
        int count = rows.count * cols.count;
        float scale = count > 0 ? 1.0f / (float)count : 0;
#pragma unroll
        for (int j = 0; j < LANES; j++)
            sum[j] *= scale;
        etk_store_lanes<T, LANES>(
            y + etk_plane(g.small, at) + etk_in_plane(g.small, at.h, at.w), sum);
    }
}

/* As max_pool_grad. */
template <class T, int LANES>
static __global__ void __launch_bounds__(THREADS, 2)
    mean_pool_grad(const T *__restrict__ dy, T *__restrict__ dx,
                   const __grid_constant__ pool_arg g)
{
    for (int64_t i = etk_thread(); i < g.pixels.count; i += etk_threads()) {
        etk_pixel at = etk_pixel_at(g.pixels, i);
        const T *plane = dy + etk_plane(g.small, at);
        span rows = holders_of(g, g.h, at.h), cols = holders_of(g, g.w, at.w);
        float sum[LANES] = {};
        for (int p = rows.first; p < rows.end; p++) {
            int down = span_of(g, g.h, p).count;
            for (int q = cols.first; q < cols.end; q++) {
                float scale = 1.0f / (float)(down * span_of(g, g.w, q).count);
                etk_pack<T, LANES> v =
                    *(const etk_pack<T, LANES> *)(plane + etk_in_plane(g.small, p, q));
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    sum[j] += scale * etk_up(v.v[j]);
            }
        }
        etk_store_lanes<T, LANES>(
            dx + etk_plane(g.large, at) + etk_in_plane(g.large, at.h, at.w), sum);
    }
}

template <class T, int LANES>
static cudaError_t
launch_lanes(const struct etk_pool *p, const void *from, int32_t *index, void *to,
             cudaStream_t stream)
{
    pool_arg g = {};
    bool back = p->op == ET_OP_max_pool2d_grad || p->op == ET_OP_avg_pool2d_grad ||
                p->op == ET_OP_adaptive_avg_pool2d_grad;
    g.pixels = etk_pixels_of(p->n, p->c / LANES, back ? p->h.large : p->h.small,
                             back ? p->w.large : p->w.small);
    g.large = etk_strides_of(p->large, LANES);
    g.small = etk_strides_of(p->small, LANES);
    g.index = etk_strides_of(p->index, LANES);
    g.h = p->h;
    g.w = p->w;
    g.adaptive = p->adaptive;
    g.include_pad = p->include_pad;
    unsigned grid = etk_blocks(g.pixels.count, 1, THREADS, p->sm_count);
    if (p->op == ET_OP_max_pool2d)
        return etk_launch(max_pool<T, LANES>, grid, THREADS, 0, stream, (const T *)from,
                          (T *)to, index, g);
    if (p->op == ET_OP_max_pool2d_grad)
        return etk_launch(max_pool_grad<T, LANES>, grid, THREADS, 0, stream,
                          (const T *)from, (const int32_t *)index, (T *)to, g);
    return etk_launch(back ? mean_pool_grad<T, LANES> : mean_pool<T, LANES>, grid,
                      THREADS, 0, stream, (const T *)from, (T *)to, g);
}

template <class T>
static cudaError_t
launch(const struct etk_pool *p, bool packs, const void *from, int32_t *index, void *to,
       cudaStream_t stream)
{
    return packs ? launch_lanes<T, etk_lanes<T>::count>(p, from, index, to, stream)
                 : launch_lanes<T, 1>(p, from, index, to, stream);
}

cudaError_t
etk_launch_pool(const struct etk_pool *p, bool packs, const void *from, int32_t *index,
                void *to, cudaStream_t stream)
{
    return ETK_FLOATS(p->dtype, launch, p, packs, from, index, to, stream);
}
