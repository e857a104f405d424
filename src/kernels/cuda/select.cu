/* SPDX-License-Identifier: Apache-2.0 */
/* select.cu: where the largest elements of a line lie.
 *
 *   argmax  the first of the largest along an axis
 *   topk    the k largest, descending; equals in their order
 *
 * An element and its place make one 64-bit key: the float's order (order.cuh), then the
 * place upside down. The largest key is the winner, all keys differ, and the next winner
 * is the largest key below the last one. A few winners are found by as many passes over
 * the line, which stays in the caches; many by counting for each element the keys that
 * are larger. */
#include "kernels/cuda/order.cuh"
#include "kernels/cuda/select.h"
#include "kernels/cuda/softmax.cuh"

enum { THREADS = ETK_LINE_THREADS };

struct select_arg {
    etk_space<3> lines;
    int64_t n, k, step[3];
};

static __device__ __forceinline__ uint64_t
key_of(float v, int64_t place)
{
    return (uint64_t)etk_order_of(v) << 32 | (0xffffffffu - (uint32_t)place);
}

static __device__ __forceinline__ int64_t
place_of(uint64_t key)
{
    return 0xffffffffu - (uint32_t)key;
}

/* The largest key of a line, below LAST where there is one; every thread of the team
 * gets it. No key is 0: its place would be 2^32 - 1. */
template <int TEAM, class T>
static __device__ __forceinline__ uint64_t
largest_key(const T *x, int64_t step, int64_t n, int member, bool below, uint64_t last,
            uint64_t *slot)
{
    enum { LANES = etk_lanes<T>::count };
    uint64_t best = 0;
    auto look = [&](int64_t c, T v) {
        uint64_t key = key_of(etk_up(v), c);
        if (key > best && (!below || key < last))
            best = key;
    };
    etk_along<TEAM>(
        x, n, member, step == 1,
        [&](int64_t c) {
            etk_pack<T, LANES> v = etk_load_pack(x + c);
#pragma unroll
            for (int j = 0; j < LANES; j++)
                look(c + j, v.v[j]);
        },
        [&](int64_t c) { look(c, x[c * step]); });
    return etk_team_reduce<TEAM>(best, etk_larger(), (uint64_t)0, slot);
}

/* Team t takes lines t, t + teams, ... below their count; its member 0 stores the place
 * (argmax, k = 0), or the j-th value and place for each j below k. */
template <class T, int TEAM>
static __global__ void __launch_bounds__(THREADS, 2)
    pick(const T *__restrict__ x0, T *__restrict__ value, int32_t *__restrict__ index,
         const __grid_constant__ select_arg g)
{
    __shared__ uint64_t slot[ETK_WARP];
    int member = threadIdx.x % TEAM;
    for (int64_t line = etk_first_line<TEAM>(); line < g.lines.count;
         line += etk_lines_apart<TEAM>()) {
        int64_t at[3];
        uint64_t key = 0;
        etk_offsets(g.lines, line, at);
        const T *x = x0 + at[0];
        for (int64_t j = 0; j < (g.k ? g.k : 1); j++) {
            key = largest_key<TEAM>(x, g.step[0], g.n, member, j > 0, key, slot);
            if (member == 0 && index)
                index[at[2] + j * g.step[2]] = (int32_t)place_of(key);
            if (member == 0 && value)
                value[at[1] + j * g.step[1]] = x[place_of(key) * g.step[0]];
        }
    }
}

/* Block (b, l): elements b THREADS + thread of lines l, l + blocks, ... The line's keys
 * pass through shared memory, THREADS at a time; each thread counts those above its
 * own, which is the rank at which its element is stored, if below k. */
template <class T>
static __global__ void __launch_bounds__(THREADS, 2)
    rank(const T *__restrict__ x0, T *__restrict__ value, int32_t *__restrict__ index,
         const __grid_constant__ select_arg g)
{
    __shared__ uint64_t tile[THREADS];
    int64_t c = etk_thread();
    for (int64_t line = blockIdx.y; line < g.lines.count; line += gridDim.y) {
        int64_t at[3], above = 0;
        etk_offsets(g.lines, line, at);
        const T *x = x0 + at[0];
        uint64_t own = c < g.n ? key_of(etk_up(x[c * g.step[0]]), c) : 0;
        for (int64_t first = 0; first < g.n; first += THREADS) {
            int64_t i = first + threadIdx.x;
            tile[threadIdx.x] = i < g.n ? key_of(etk_up(x[i * g.step[0]]), i) : 0;
            __syncthreads();
            int larger = 0;
#pragma unroll 8
            for (int j = 0; j < THREADS; j++)
                larger += tile[j] > own;
            above += larger;
            __syncthreads();
        }
        if (c < g.n && above < g.k && index)
            index[at[2] + above * g.step[2]] = (int32_t)c;
        if (c < g.n && above < g.k && value)
            value[at[1] + above * g.step[1]] = x[c * g.step[0]];
    }
}

template <class T>
static cudaError_t
launch(const struct etk_select *s, const void *x, void *value, int32_t *index,
       cudaStream_t stream)
{
    select_arg g = {};
    g.lines = etk_space_of<3>(&s->lines.rest);
    g.n = s->lines.n;
    g.k = s->k;
    for (int i = 0; i < 3; i++)
        g.step[i] = s->lines.step[i];
    int64_t lines = g.lines.count;
    if (s->ranks) {
        dim3 grid((unsigned)etk_ceil_div(g.n, THREADS),
                  (unsigned)(lines < 65535 ? lines : 65535));
        return etk_launch(rank<T>, grid, THREADS, 0, stream, (const T *)x, (T *)value,
                          index, g);
    }
    int team = s->lines.team;
    return etk_launch(team == 1    ? pick<T, 1>
                      : team == 32 ? pick<T, 32>
                                   : pick<T, THREADS>,
                      etk_line_blocks(lines, team), THREADS, 0, stream, (const T *)x,
                      (T *)value, index, g);
}

cudaError_t
etk_launch_select(const struct etk_select *s, const void *x, void *value,
                  int32_t *index, cudaStream_t stream)
{
    return ETK_FLOATS(s->dtype, launch, s, x, value, index, stream);
}
