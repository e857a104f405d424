/* SPDX-License-Identifier: Apache-2.0 */
/* scan.cu: lines along an axis, in order and summed up.
 *
 *   cumsum  a thread or a warp a line. A warp adds up 32 elements in f32, in five steps;
 *           what was before them is kept in f64
 *   sort    a block a line: Batcher's bitonic network (1968) on keys of an element's
 *           order (order.cuh) and its place, which all differ, so that equals stay in
 *           their order */
#include "kernels/cuda/order.cuh"
#include "kernels/cuda/scan.h"
#include "kernels/cuda/softmax.cuh"

enum { THREADS = ETK_LINE_THREADS };

/* ---- cumsum ---- */

struct cumsum_arg {
    etk_space<2> lines;
    int64_t n, step[2];
    bool reverse;
};

/* Team t takes lines t, t + teams, ... below their count; member m of a warp elements
 * m, m + 32, ... below n, from the end where REVERSE. */
template <class T, int TEAM>
static __global__ void __launch_bounds__(THREADS, 2)
    cumsum(const T *x0, T *y0, const __grid_constant__ cumsum_arg g)
{
    int member = threadIdx.x % TEAM;
    for (int64_t line = etk_first_line<TEAM>(); line < g.lines.count;
         line += etk_lines_apart<TEAM>()) {
        int64_t at[2];
        double before = 0;
        etk_offsets(g.lines, line, at);
        for (int64_t first = 0; first < g.n; first += TEAM) {
            int64_t c = first + member, i = g.reverse ? g.n - 1 - c : c;
            float sum = c < g.n ? etk_up(x0[at[0] + i * g.step[0]]) : 0.0f;
#pragma unroll
            for (int by = 1; by < TEAM; by *= 2) {
                float other = __shfl_up_sync(0xffffffffu, sum, by);
                sum += member >= by ? other : 0.0f;
            }
            if (c < g.n)
                y0[at[1] + i * g.step[1]] = etk_down<T>((float)(before + (double)sum));
            before +=
                (double)(TEAM > 1 ? __shfl_sync(0xffffffffu, sum, TEAM - 1) : sum);
        }
    }
}

template <class T>
static cudaError_t
launch_cumsum(const struct etk_scan *s, const void *x, void *y, cudaStream_t stream)
{
    cumsum_arg g = {};
    g.lines = etk_space_of<2>(&s->lines.rest);
    g.n = s->lines.n;
    g.reverse = s->reverse;
    for (int i = 0; i < 2; i++)
        g.step[i] = s->lines.step[i];
    int team = s->lines.team == 1 ? 1 : ETK_WARP;
    return etk_launch(team == 1 ? cumsum<T, 1> : cumsum<T, ETK_WARP>,
                      etk_line_blocks(g.lines.count, team), THREADS, 0, stream,
                      (const T *)x, (T *)y, g);
}

cudaError_t
etk_launch_cumsum(const struct etk_scan *s, const void *x, void *y, cudaStream_t stream)
{
    return ETK_FLOATS(s->dtype, launch_cumsum, s, x, y, stream);
}

/* ---- sort ---- */

struct sort_arg {
    etk_space<3> lines;
    int64_t n, step[3];
    int64_t size; /* keys, a power of 2: those from n on are above all */
    bool reverse;
};

/* Puts SIZE keys in order. Thread t compares pairs t, t + THREADS, ... of each step. */
static __device__ __forceinline__ void
sort_keys(uint64_t *key, int64_t size)
{
    for (int64_t run = 2; run <= size; run *= 2)
        for (int64_t apart = run / 2; apart > 0; apart /= 2) {
            for (int64_t t = threadIdx.x; t < size / 2; t += THREADS) {
                int64_t low = t & (apart - 1), i = 2 * (t - low) + low;
                uint64_t a = key[i], b = key[i + apart];
                if ((a > b) == ((i & run) == 0)) {
                    key[i] = b;
                    key[i + apart] = a;
                }
            }
            __syncthreads();
        }
}

/* Block b takes lines b, b + blocks, ... below their count. ROOM: SIZE keys for each
 * block, NULL where shared memory has them. */
template <class T>
static __global__ void __launch_bounds__(THREADS, 2)
    sort_lines(const T *x0, T *value, int32_t *place, uint64_t *room,
               const __grid_constant__ sort_arg g)
{
    ETK_SHARED(uint64_t, shared);
    uint64_t *key = room ? room + blockIdx.x * g.size : shared;
    const uint32_t turn = g.reverse ? 0xffffffffu : 0;
    for (int64_t line = blockIdx.x; line < g.lines.count; line += gridDim.x) {
        int64_t at[3];
        etk_offsets(g.lines, line, at);
        const T *x = x0 + at[0];
        for (int64_t i = threadIdx.x; i < g.size; i += THREADS)
            key[i] = i < g.n ? (uint64_t)(etk_order_of(etk_up(x[i * g.step[0]])) ^ turn)
                                       << 32 |
                                   (uint32_t)i
                             : ~(uint64_t)0;
        __syncthreads();
        sort_keys(key, g.size);
        for (int64_t i = threadIdx.x; i < g.n; i += THREADS) {
            int64_t from = (uint32_t)key[i];
            if (value)
                value[at[1] + i * g.step[1]] = x[from * g.step[0]];
            if (place)
                place[at[2] + i * g.step[2]] = (int32_t)from;
        }
        __syncthreads();
    }
}

template <class T>
static cudaError_t
launch_sort(const struct etk_scan *s, const void *x, void *value, int32_t *place,
            void *ws, cudaStream_t stream)
{
    sort_arg g = {};
    g.lines = etk_space_of<3>(&s->lines.rest);
    g.n = s->lines.n;
    g.size = s->size;
    g.reverse = s->reverse;
    for (int i = 0; i < 3; i++)
        g.step[i] = s->lines.step[i];
    size_t shared = s->shared ? (size_t)g.size * sizeof(uint64_t) : 0;
    return etk_launch(sort_lines<T>, s->blocks, THREADS, shared, stream, (const T *)x,
                      (T *)value, place, s->shared ? NULL : (uint64_t *)ws, g);
}

cudaError_t
etk_launch_sort(const struct etk_scan *s, const void *x, void *value, int32_t *place,
                void *ws, cudaStream_t stream)
{
    return ETK_FLOATS(s->dtype, launch_sort, s, x, value, place, ws, stream);
}
