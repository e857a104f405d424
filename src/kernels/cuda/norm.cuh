/* SPDX-License-Identifier: Apache-2.0 */
/* norm.cuh: what the kernels of row_norm.cu, channel_norm.cu and norm_any.cu share. */
#ifndef ETUDE_KERNELS_CUDA_NORM_CUH
#define ETUDE_KERNELS_CUDA_NORM_CUH

#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/norm.h"

template <class T> struct etk_is_bf16 {
    enum { value = 0 };
};
template <> struct etk_is_bf16<etk_bf16> {
    enum { value = 1 };
};

/* A sum that is not contracted with the product before it: the bits of two kernels. */
static __device__ __forceinline__ float
etk_add_rounded(float a, float b)
{
    return __fadd_rn(a, b);
}
static __device__ __forceinline__ double
etk_add_rounded(double a, double b)
{
    return __dadd_rn(a, b);
}

/* V neighbours as they lie in memory, 16 or 8 bytes or one element: narrow ones stay
 * narrow until they are asked for, or 16 bytes of bf16 would take 8 registers and not
 * 4. */
template <class T, int V> struct etk_raw {
    enum { WORDS = V * sizeof(T) / 4 };
    typedef etk_pack<uint32_t, WORDS> words;
    uint32_t w[WORDS];

    /* From P, a multiple of their size. */
    __device__ __forceinline__ void load(const T *p)
    {
        words v = *reinterpret_cast<const words *>(p);
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            w[i] = v.v[i];
    }
    /* The same, past what else the caches hold: nobody will read it again soon. */
    __device__ __forceinline__ void stream(const T *p)
    {
        if constexpr (WORDS == 4) {
            uint4 v = __ldcs(reinterpret_cast<const uint4 *>(p));
            w[0] = v.x;
            w[1] = v.y;
            w[2] = v.z;
            w[3] = v.w;
        } else {
            uint2 v = __ldcs(reinterpret_cast<const uint2 *>(p));
            w[0] = v.x;
            w[1] = v.y;
        }
    }
    __device__ __forceinline__ void store(T *p) const
    {
        words v;
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            v.v[i] = w[i];
        *reinterpret_cast<words *>(p) = v;
    }
    /* Rounds V into place K. */
    __device__ __forceinline__ void set(int k, float v)
    {
        if constexpr (sizeof(T) == 4) {
            w[k] = __float_as_uint(v);
        } else {
            uint32_t bits;
            if constexpr (etk_is_bf16<T>::value)
                bits = __bfloat16_as_ushort(etk_down<T>(v));
            else
                bits = __half_as_ushort(etk_down<T>(v));
            w[k / 2] = k % 2 ? (w[k / 2] & 0xffffu) | bits << 16
                             : (w[k / 2] & 0xffff0000u) | bits;
        }
    }
    __device__ __forceinline__ float operator[](int k) const
    {
        if constexpr (sizeof(T) == 4)
            return __uint_as_float(w[k]);
        else if constexpr (etk_is_bf16<T>::value)
            return __uint_as_float(k % 2 ? w[k / 2] & 0xffff0000u : w[k / 2] << 16);
        else
            return __half2float(
                __ushort_as_half((unsigned short)(k % 2 ? w[k / 2] >> 16 : w[k / 2])));
    }
};
template <class T> struct etk_raw<T, 1> {
    T v;

    __device__ __forceinline__ void load(const T *p)
    {
        v = *p;
    }
    __device__ __forceinline__ void stream(const T *p)
    {
        v = *p;
    }
    __device__ __forceinline__ void store(T *p) const
    {
        *p = v;
    }
    __device__ __forceinline__ void set(int, float x)
    {
        v = etk_down<T>(x);
    }
    __device__ __forceinline__ float operator[](int) const
    {
        return etk_up(v);
    }
};

/* V rounded, to P, a multiple of their size. */
template <class T, int V>
static __device__ __forceinline__ void
etk_put(T *p, const float *v)
{
    etk_pack<T, V> pack;
#pragma unroll
    for (int k = 0; k < V; k++)
        pack.v[k] = etk_down<T>(v[k]);
    *reinterpret_cast<etk_pack<T, V> *>(p) = pack;
}

static __device__ __forceinline__ float
etk_param(const etk_norm_param &a, int64_t at)
{
    return a.dtype == ET_BF16  ? etk_up(static_cast<const etk_bf16 *>(a.p)[at])
           : a.dtype == ET_F16 ? etk_up(static_cast<const etk_f16 *>(a.p)[at])
                               : static_cast<const float *>(a.p)[at];
}

/* Numbers AT .. AT + V - 1, AT a multiple of V; OTHERWISE without an array. */
template <int V>
static __device__ __forceinline__ void
etk_params(const etk_norm_param &a, int64_t at, float otherwise, float *out)
{
    if constexpr (V % 4 == 0) {
        if (a.p && a.quick) {
            const float *from = static_cast<const float *>(a.p) + at;
#pragma unroll
            for (int k = 0; k < V; k++)
                out[k] =
                    reinterpret_cast<const etk_pack<float, 4> *>(from)[k / 4].v[k % 4];
            return;
        }
    }
#pragma unroll
    for (int k = 0; k < V; k++)
        out[k] = a.p ? etk_param(a, at + k) : otherwise;
}

static __device__ __forceinline__ void
etk_param_store(const etk_norm_param &a, int64_t at, float v)
{
    if (a.dtype == ET_BF16)
        static_cast<etk_bf16 *>(a.p)[at] = etk_down<etk_bf16>(v);
    else if (a.dtype == ET_F16)
        static_cast<etk_f16 *>(a.p)[at] = etk_down<etk_f16>(v);
    else
        static_cast<float *>(a.p)[at] = v;
}

#endif
