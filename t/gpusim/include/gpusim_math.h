/* SPDX-License-Identifier: Apache-2.0 */
/* gpusim_math.h: CUDA's integer and float intrinsics on the host. The fast ones are the
 * accurate functions: their errors on a GPU (CUDA C++ Programming Guide, "Intrinsic
 * Functions") do not show here. Included by cuda_runtime.h. */
#ifndef ETUDE_GPUSIM_MATH_H
#define ETUDE_GPUSIM_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

template <class To, class From>
inline To
gpusim_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

/* GPUSIM_ONE(what it gives, name, what it takes, formula of x) */
#define GPUSIM_ONE(R, name, T, value)                                                  \
    inline R name(T x)                                                                 \
    {                                                                                  \
        return value;                                                                  \
    }
#define GPUSIM_TWO(R, name, T, value)                                                  \
    inline R name(T x, T y)                                                            \
    {                                                                                  \
        return value;                                                                  \
    }

GPUSIM_ONE(int, __float_as_int, float, gpusim_bits<int>(x))
GPUSIM_ONE(unsigned, __float_as_uint, float, gpusim_bits<unsigned>(x))
GPUSIM_ONE(float, __int_as_float, int, gpusim_bits<float>(x))
GPUSIM_ONE(float, __uint_as_float, unsigned, gpusim_bits<float>(x))
GPUSIM_ONE(long long, __double_as_longlong, double, gpusim_bits<long long>(x))
GPUSIM_ONE(double, __longlong_as_double, long long, gpusim_bits<double>(x))

GPUSIM_ONE(int, __popc, unsigned, __builtin_popcount(x))
GPUSIM_ONE(int, __popcll, unsigned long long, __builtin_popcountll(x))
GPUSIM_ONE(int, __clz, int, x ? __builtin_clz((unsigned)x) : 32)
GPUSIM_ONE(int, __clzll, long long, x ? __builtin_clzll((unsigned long long)x) : 64)
GPUSIM_ONE(int, __ffs, int, __builtin_ffs(x))
GPUSIM_ONE(int, __ffsll, long long, __builtin_ffsll(x))
GPUSIM_TWO(unsigned, __umulhi, unsigned, (unsigned)(((uint64_t)x * y) >> 32))
GPUSIM_TWO(int, __mulhi, int, (int)(((int64_t)x * y) >> 32))
GPUSIM_TWO(unsigned long long, __umul64hi, unsigned long long,
           (unsigned long long)(((unsigned __int128)x * y) >> 64))
GPUSIM_TWO(unsigned, __uhadd, unsigned, (unsigned)(((uint64_t)x + y) >> 1))

inline unsigned
__brev(unsigned x)
{
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
/* Bytes of y:x picked by the nibbles of PICK; bit 3 of a nibble repeats the sign. */
inline unsigned
__byte_perm(unsigned x, unsigned y, unsigned pick)
{
    uint64_t both = (uint64_t)y << 32 | x;
    unsigned out = 0;
    for (int i = 0; i < 4; i++) {
        unsigned nibble = pick >> (4 * i) & 15;
        unsigned byte = (unsigned)(both >> (8 * (nibble & 7))) & 255;
        if (nibble & 8)
            byte = byte & 128 ? 255 : 0;
        out |= byte << (8 * i);
    }
    return out;
}
inline unsigned
__funnelshift_l(unsigned low, unsigned high, unsigned by)
{
    by &= 31;
    return by ? high << by | low >> (32 - by) : high;
}
inline unsigned
__funnelshift_r(unsigned low, unsigned high, unsigned by)
{
    by &= 31;
    return by ? low >> by | high << (32 - by) : low;
}

GPUSIM_ONE(float, __expf, float, expf(x))
GPUSIM_ONE(float, __exp10f, float, powf(10.0f, x))
GPUSIM_ONE(float, __logf, float, logf(x))
GPUSIM_ONE(float, __log2f, float, log2f(x))
GPUSIM_ONE(float, __log10f, float, log10f(x))
GPUSIM_ONE(float, __sinf, float, sinf(x))
GPUSIM_ONE(float, __cosf, float, cosf(x))
GPUSIM_ONE(float, __tanf, float, tanf(x))
GPUSIM_TWO(float, __powf, float, powf(x, y))
GPUSIM_ONE(float, __saturatef, float, x > 1.0f ? 1.0f : x > 0.0f ? x : 0.0f)
GPUSIM_ONE(float, rsqrtf, float, (float)(1.0 / sqrt((double)x)))
GPUSIM_ONE(double, rsqrt, double, 1.0 / sqrt(x))
GPUSIM_ONE(float, __frsqrt_rn, float, (float)(1.0 / sqrt((double)x)))
GPUSIM_ONE(float, __frcp_rn, float, 1.0f / x)
GPUSIM_ONE(float, __fsqrt_rn, float, sqrtf(x))
GPUSIM_TWO(float, __fadd_rn, float, x + y)
GPUSIM_TWO(float, __fsub_rn, float, x - y)
GPUSIM_TWO(float, __fmul_rn, float, x *y)
GPUSIM_TWO(float, __fdiv_rn, float, x / y)
GPUSIM_TWO(float, __fdividef, float, x / y)
GPUSIM_TWO(double, __dadd_rn, double, x + y)
GPUSIM_TWO(double, __dmul_rn, double, x *y)
inline float
__fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}
inline double
__fma_rn(double x, double y, double z)
{
    return fma(x, y, z);
}
inline void
__sincosf(float x, float *s, float *c)
{
    *s = sinf(x);
    *c = cosf(x);
}

/* To integers as the GPU does: what does not fit is the nearest that does, NaN is 0. */
template <class I>
inline I
gpusim_to_integer(double whole)
{
    const int bits = sizeof(I) * 8;
    const bool is_signed = (I)-1 < (I)1;
    double high = ldexp(1.0, bits - is_signed), low = is_signed ? -high : 0.0;
    if (whole != whole)
        return 0;
    if (whole <= low)
        return (I)low;
    return whole >= high ? (I)(~(uint64_t)0 >> (64 - bits + is_signed)) : (I)whole;
}
GPUSIM_ONE(int, __float2int_rn, float, gpusim_to_integer<int>(rint(x)))
GPUSIM_ONE(int, __float2int_rz, float, gpusim_to_integer<int>(trunc(x)))
GPUSIM_ONE(int, __float2int_rd, float, gpusim_to_integer<int>(floor(x)))
GPUSIM_ONE(int, __float2int_ru, float, gpusim_to_integer<int>(ceil(x)))
GPUSIM_ONE(unsigned, __float2uint_rn, float, gpusim_to_integer<unsigned>(rint(x)))
GPUSIM_ONE(unsigned, __float2uint_rz, float, gpusim_to_integer<unsigned>(trunc(x)))
GPUSIM_ONE(unsigned, __float2uint_rd, float, gpusim_to_integer<unsigned>(floor(x)))
GPUSIM_ONE(long long, __float2ll_rn, float, gpusim_to_integer<long long>(rint(x)))
GPUSIM_ONE(long long, __float2ll_rd, float, gpusim_to_integer<long long>(floor(x)))
GPUSIM_ONE(int, __double2int_rn, double, gpusim_to_integer<int>(rint(x)))
GPUSIM_ONE(long long, __double2ll_rn, double, gpusim_to_integer<long long>(rint(x)))
GPUSIM_ONE(float, __int2float_rn, int, (float)x)
GPUSIM_ONE(float, __uint2float_rn, unsigned, (float)x)
GPUSIM_ONE(float, __ll2float_rn, long long, (float)x)
GPUSIM_ONE(float, __double2float_rn, double, (float)x)

/* min and max of the language: the other number where one is NaN. */
GPUSIM_TWO(int, min, int, x < y ? x : y)
GPUSIM_TWO(int, max, int, x > y ? x : y)
GPUSIM_TWO(unsigned, min, unsigned, x < y ? x : y)
GPUSIM_TWO(unsigned, max, unsigned, x > y ? x : y)
GPUSIM_TWO(long, min, long, x < y ? x : y)
GPUSIM_TWO(long, max, long, x > y ? x : y)
GPUSIM_TWO(long long, min, long long, x < y ? x : y)
GPUSIM_TWO(long long, max, long long, x > y ? x : y)
GPUSIM_TWO(unsigned long, min, unsigned long, x < y ? x : y)
GPUSIM_TWO(unsigned long, max, unsigned long, x > y ? x : y)
GPUSIM_TWO(unsigned long long, min, unsigned long long, x < y ? x : y)
GPUSIM_TWO(unsigned long long, max, unsigned long long, x > y ? x : y)
GPUSIM_TWO(float, min, float, fminf(x, y))
GPUSIM_TWO(float, max, float, fmaxf(x, y))
GPUSIM_TWO(double, min, double, fmin(x, y))
GPUSIM_TWO(double, max, double, fmax(x, y))
/* 1 / sqrt(2 pi) and the like stay with their users; these are CUDA's own. */
GPUSIM_ONE(float, normcdff, float,
           (float)(0.5 * erfc(-(double)x * 0.70710678118654752440)))
GPUSIM_ONE(float, sinpif, float, (float)sin(3.14159265358979323846 * (double)x))
GPUSIM_ONE(float, cospif, float, (float)cos(3.14159265358979323846 * (double)x))
#undef GPUSIM_ONE
#undef GPUSIM_TWO

#endif
