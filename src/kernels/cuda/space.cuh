/* SPDX-License-Identifier: Apache-2.0 */
/* space.cuh: positions of strided arrays, wide accesses to rows, loads of any dtype. */
#ifndef ETUDE_KERNELS_SPACE_CUH
#define ETUDE_KERNELS_SPACE_CUH

#include "kernels/cuda/kernel.cuh"

/* As etk_divisor, for numbers below 2^63: a division of 64 bits is a call, which costs
 * registers even where it is never reached. */
struct etk_long_divisor {
    uint64_t m;
    int s;
};

static inline struct etk_long_divisor
etk_long_divisor_of(uint64_t d)
{
    __extension__ typedef unsigned __int128 twice;
    int s = 0;
    while (s < 63 && ((uint64_t)1 << s) < d)
        s++;
    return {(uint64_t)((((twice)1 << 64) * (((twice)1 << s) - d)) / d + 1), s};
}

static __device__ __forceinline__ int64_t
etk_divide(int64_t n, const etk_long_divisor &by)
{
    return (int64_t)((__umul64hi((uint64_t)n, by.m) + (uint64_t)n) >> by.s);
}

/* An etk_walk as a kernel's argument, its divisions prepared. */
template <int SIDES> struct etk_space {
    int ndim;
    bool wide; /* more elements than an etk_divisor takes */
    int64_t count;
    int64_t shape[ET_MAX_DIMS];
    etk_divisor by[ET_MAX_DIMS];
    etk_long_divisor long_by[ET_MAX_DIMS];
    int64_t stride[SIDES][ET_MAX_DIMS];
};

/* Of the first SIDES sides of W. An axis of no elements is never divided by. */
template <int SIDES>
static inline etk_space<SIDES>
etk_space_of(const struct etk_walk *w)
{
    etk_space<SIDES> s = {};
    s.ndim = w->ndim;
    s.count = w->count;
    s.wide = w->count > INT32_MAX;
    for (int k = 0; k < w->ndim; k++) {
        s.shape[k] = w->shape[k];
        int64_t length = w->shape[k] > 0 ? w->shape[k] : 1;
        s.by[k] = etk_divisor_of(s.wide || length > INT32_MAX ? 1 : (uint32_t)length);
        s.long_by[k] = etk_long_divisor_of((uint64_t)length);
        for (int i = 0; i < SIDES; i++)
            s.stride[i][k] = w->stride[i][k];
    }
    return s;
}

/* Offsets of element I (0 <= I < count) in the sides: with every loop unrolled, AT and
 * the strides stay out of local memory. */
template <int SIDES>
static __device__ __forceinline__ void
etk_offsets(const etk_space<SIDES> &s, int64_t i, int64_t (&at)[SIDES])
{
#pragma unroll
    for (int k = 0; k < SIDES; k++)
        at[k] = 0;
#pragma unroll
    for (int axis = ET_MAX_DIMS - 1; axis > 0; axis--) {
        if (axis >= s.ndim)
            continue;
        int64_t whole = s.wide ? etk_divide(i, s.long_by[axis])
                               : (int64_t)etk_divide((uint32_t)i, s.by[axis]);
        int64_t rest = i - whole * s.shape[axis];
#pragma unroll
        for (int k = 0; k < SIDES; k++)
            at[k] += rest * s.stride[k][axis];
        i = whole;
    }
#pragma unroll
    for (int k = 0; k < SIDES; k++)
        at[k] += i * s.stride[k][0];
}

/* ---- elements of a dtype that is known at run time ---- */

/* Float dtypes and I32; what a line has once, or what may be of another dtype than the
 * rest. */
static __device__ __forceinline__ float
etk_load_any(const void *p, int dtype, int64_t at)
{
    switch (dtype) {
    case ET_BF16:
        return etk_up(((const etk_bf16 *)p)[at]);
    case ET_F16:
        return etk_up(((const etk_f16 *)p)[at]);
    default:
        return ((const float *)p)[at];
    }
}

template <class W>
static __device__ __forceinline__ void
etk_store_any(void *p, int dtype, int64_t at, W v)
{
    switch (dtype) {
    case ET_BF16:
        ((etk_bf16 *)p)[at] = etk_down<etk_bf16>((float)v);
        break;
    case ET_F16:
        ((etk_f16 *)p)[at] = etk_down<etk_f16>((float)v);
        break;
    case ET_F64:
        ((double *)p)[at] = (double)v;
        break;
    default:
        ((float *)p)[at] = (float)v;
    }
}

/* ---- rows in wide accesses ---- */

/* Elements of T before the first 16-byte boundary from P on. */
template <class T>
static __device__ __forceinline__ int64_t
etk_head(const T *p)
{
    return (int64_t)((16 - ((uintptr_t)p & 15)) & 15) / (int64_t)sizeof(T);
}

/* Can both rows be walked in the same packs? */
template <class A, class B>
static __device__ __forceinline__ bool
etk_together(const A *a, const B *b)
{
    return (((uintptr_t)a ^ (uintptr_t)b) & 15) == 0;
}

/* Shares elements 0 .. N-1 of the row P among TEAM threads of which this is MEMBER:
 * where WIDE (neighbours lie side by side), many(c) for packs c .. c + lanes - 1 that
 * begin at 16-byte boundaries and one(c) for what is before and behind them; else
 * one(c) for all. */
template <int TEAM, class T, class Many, class One>
static __device__ __forceinline__ void
etk_along(const T *p, int64_t n, int member, bool wide, Many many, One one)
{
    enum { LANES = etk_lanes<T>::count };
    if (!wide) {
        for (int64_t c = member; c < n; c += TEAM)
            one(c);
        return;
    }
    int64_t head = etk_head(p);
    if (head > n)
        head = n;
    int64_t packs = (n - head) / LANES;
    if (member < head)
        one((int64_t)member);
    if (TEAM == 1)
        for (int64_t c = 1; c < head; c++)
            one(c);
#pragma unroll 2
    for (int64_t k = member; k < packs; k += TEAM)
        many(head + k * LANES);
    for (int64_t c = head + packs * LANES + member; c < n; c += TEAM)
        one(c);
}

template <class T>
static __device__ __forceinline__ etk_pack<T, etk_lanes<T>::count>
etk_load_pack(const T *p)
{
    return *(const etk_pack<T, etk_lanes<T>::count> *)p;
}

template <class T>
static __device__ __forceinline__ void
etk_store_pack(T *p, const etk_pack<T, etk_lanes<T>::count> &v)
{
    *(etk_pack<T, etk_lanes<T>::count> *)p = v;
}

/* Over the TEAM threads that share a line: 1, a warp, or a block of TEAM. */
template <int TEAM, class T, class Op>
static __device__ __forceinline__ T
etk_team_reduce(T x, Op op, T nothing, T *slot)
{
    if (TEAM == 1)
        return x;
    if (TEAM == ETK_WARP)
        return etk_warp_reduce(x, op);
    return etk_block_reduce<(TEAM > ETK_WARP ? TEAM : ETK_WARP)>(x, op, nothing, slot);
}

#endif
