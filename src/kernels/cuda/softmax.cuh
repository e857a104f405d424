/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.cuh: the sum of exponentials of a line in one pass. */
#ifndef ETUDE_KERNELS_SOFTMAX_CUH
#define ETUDE_KERNELS_SOFTMAX_CUH

#include <float.h>

#include "kernels/cuda/space.cuh"

/* sum = sum of e^(z - max) over what was added, in one pass: when the largest grows,
 * what was summed shrinks (Milakov and Gimelshein 2018). The largest starts at the
 * lowest finite number, so -inf adds 0 without inf - inf. NaN and +inf make the sum
 * NaN.
 *
 * __expf(x) errs by 2 + 1.17 |x| units in the last place; terms of large -x are small
 * beside the largest, which is 1, so the sum's error stays within its 8 units. */
struct etk_exponentials {
    float max, sum;

    __device__ __forceinline__ void add(float z)
    {
        if (z > max) {
            sum *= __expf(max - z);
            max = z;
        }
        sum += __expf(z - max);
    }
    /* log of the sum of e^z. */
    __device__ __forceinline__ float lse() const
    {
        return sum == 0 ? -INFINITY : max + logf(sum);
    }
};

/* Those of a line that TEAM threads share; all of them get the whole. SLOT: as for
 * etk_block_reduce. */
template <int TEAM, class T>
static __device__ __forceinline__ etk_exponentials
etk_exponentials_of(const T *z, int64_t step, int64_t n, int member, float *slot)
{
    enum { LANES = etk_lanes<T>::count };
    etk_exponentials e = {-FLT_MAX, 0};
    etk_along<TEAM>(
        z, n, member, step == 1,
        [&](int64_t c) {
            etk_pack<T, LANES> v = etk_load_pack(z + c);
#pragma unroll
            for (int j = 0; j < LANES; j++)
                e.add(etk_up(v.v[j]));
        },
        [&](int64_t c) { e.add(etk_up(z[c * step])); });
    float own = e.max;
    e.max = etk_team_reduce<TEAM>(own, etk_larger(), -FLT_MAX, slot);
    e.sum = etk_team_reduce<TEAM>(e.sum * __expf(own - e.max), etk_plus(), 0.0f, slot);
    return e;
}

/* Which line a thread's team takes first, and how many teams there are. */
template <int TEAM>
static __device__ __forceinline__ int64_t
etk_first_line(void)
{
    return etk_thread() / TEAM;
}

template <int TEAM>
static __device__ __forceinline__ int64_t
etk_lines_apart(void)
{
    return etk_threads() / TEAM;
}

enum { ETK_LINE_THREADS = 256 };

/* Blocks for COUNT lines of TEAM threads each. */
static inline unsigned
etk_line_blocks(int64_t count, int team)
{
    int64_t blocks = etk_ceil_div(count, ETK_LINE_THREADS / team);
    return (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX);
}

#endif
