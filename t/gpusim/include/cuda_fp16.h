/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fp16.h: IEEE half precision, with the roundings of the hardware.
 *
 * From f32: to the nearest, ties to even; what is too large is infinity, a NaN of any
 * payload is 0x7fff. To f32: exact; a NaN is 0x7fffffff. C sees the types alone. */
#ifndef ETUDE_GPUSIM_CUDA_FP16_H
#define ETUDE_GPUSIM_CUDA_FP16_H

#ifndef __cplusplus
typedef struct {
    unsigned short x;
} __half_raw;
typedef __half_raw __half;
typedef struct {
    __half x, y;
} __half2;
#else

#include <stdint.h>
#include <string.h>

#include <cmath>

#include "vector_types.h"

struct __half_raw {
    unsigned short x;
};

inline unsigned short
gpusim_fp16_of_double(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    unsigned sign = (unsigned)(u >> 48) & 0x8000u;
    double size = fabs(x);
    if (size != size)
        return 0x7fff;
    if (size >= 65520.0) /* half a step above the largest, 65504 */
        return (unsigned short)(sign | 0x7c00);
    if (size <
        0x1p-14) /* in steps of 2^-24; 1024 of them are the smallest normal one */
        return (unsigned short)(sign | (unsigned)rint(size * 0x1p24));
    int exponent;
    double fraction = frexp(size, &exponent);           /* [0.5, 1) */
    unsigned steps = (unsigned)rint(fraction * 2048.0); /* [1024, 2048] */
    /* (A carry of the mantissa goes into the exponent.) */
    return (unsigned short)(sign | (((unsigned)(exponent + 13) << 10) + steps));
}

inline unsigned short
gpusim_fp16_of(float x)
{
    return gpusim_fp16_of_double(x);
}

inline float
gpusim_fp16_to(unsigned short h)
{
    unsigned exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31 && mantissa != 0) {
        const uint32_t nan = 0x7fffffffu;
        float x;
        memcpy(&x, &nan, sizeof x);
        return x;
    }
    float size = exponent == 31  ? HUGE_VALF
                 : exponent == 0 ? ldexpf((float)mantissa, -24)
                                 : ldexpf((float)(mantissa + 1024), (int)exponent - 25);
    return h & 0x8000 ? -size : size;
}

struct __half {
    unsigned short bits;

    __half() = default;
    constexpr __half(const __half_raw &raw) : bits(raw.x)
    {
    }
    __half(float x) : bits(gpusim_fp16_of(x))
    {
    }
    /* (CUDA too rounds a double once.) */
    __half(double x) : bits(gpusim_fp16_of_double(x))
    {
    }
    __half(int x) : bits(gpusim_fp16_of_double(x))
    {
    }
    operator __half_raw() const
    {
        return {bits};
    }
    operator float() const
    {
        return gpusim_fp16_to(bits);
    }
};
struct alignas(4) __half2 {
    __half x, y;
};

inline __half
__float2half(float x)
{
    return __half(x);
}
inline __half
__float2half_rn(float x)
{
    return __half(x);
}
inline __half
__double2half(double x)
{
    return __half(x);
}
inline float
__half2float(__half x)
{
    return (float)x;
}
inline unsigned short
__half_as_ushort(__half x)
{
    return x.bits;
}
inline __half
__ushort_as_half(unsigned short bits)
{
    return __half_raw{bits};
}
inline bool
__hisnan(__half x)
{
    return std::isnan((float)x);
}
/* Sums, products and the like of two are rounded once: f32 holds the exact product and
 * enough of the sum. */
inline __half
__hadd(__half x, __half y)
{
    return __half((float)x + (float)y);
}
inline __half
__hsub(__half x, __half y)
{
    return __half((float)x - (float)y);
}
inline __half
__hmul(__half x, __half y)
{
    return __half((float)x * (float)y);
}
inline __half2
make_half2(__half x, __half y)
{
    return {x, y};
}
inline __half2
__halves2half2(__half x, __half y)
{
    return {x, y};
}
inline __half2
__floats2half2_rn(float x, float y)
{
    return {__half(x), __half(y)};
}
inline __half2
__float22half2_rn(float2 x)
{
    return {__half(x.x), __half(x.y)};
}
inline __half2
__float2half2_rn(float x)
{
    return {__half(x), __half(x)};
}
inline float2
__half22float2(__half2 x)
{
    return {(float)x.x, (float)x.y};
}
inline __half
__low2half(__half2 x)
{
    return x.x;
}
inline __half
__high2half(__half2 x)
{
    return x.y;
}
inline float
__low2float(__half2 x)
{
    return (float)x.x;
}
inline float
__high2float(__half2 x)
{
    return (float)x.y;
}

#endif
#endif
