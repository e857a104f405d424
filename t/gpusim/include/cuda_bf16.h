/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_bf16.h: bfloat16, the upper half of an f32, with the roundings of the hardware.
 *
 * From f32: to the nearest, ties to even; what is too large is infinity, a NaN of any
 * payload is 0x7fff. To f32: exact; a NaN keeps its payload. C sees the types alone. */
#ifndef ETUDE_GPUSIM_CUDA_BF16_H
#define ETUDE_GPUSIM_CUDA_BF16_H

#ifndef __cplusplus
typedef struct {
    unsigned short x;
} __nv_bfloat16_raw;
typedef __nv_bfloat16_raw __nv_bfloat16;
typedef struct {
    __nv_bfloat16 x, y;
} __nv_bfloat162;
#else

#include <stdint.h>
#include <string.h>

#include <cmath>

#include "vector_types.h"

struct __nv_bfloat16_raw {
    unsigned short x;
};

inline unsigned short
gpusim_bf16_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (unsigned short)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

/* To f32 with what was lost kept in the last bit (round to odd), and then to bf16: once
 * rounded. */
inline unsigned short
gpusim_bf16_of_double(double x)
{
    float narrow = (float)x;
    if (std::isfinite(narrow) && (double)narrow != x) {
        if (std::fabs((double)narrow) > std::fabs(x))
            narrow = std::nextafter(narrow, 0.0f);
        uint32_t u;
        memcpy(&u, &narrow, sizeof u);
        u |= 1u;
        memcpy(&narrow, &u, sizeof u);
    }
    return gpusim_bf16_of(narrow);
}

inline float
gpusim_bf16_to(unsigned short h)
{
    uint32_t u = (uint32_t)h << 16;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

struct __nv_bfloat16 {
    unsigned short bits;

    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(const __nv_bfloat16_raw &raw) : bits(raw.x)
    {
    }
    __nv_bfloat16(float x) : bits(gpusim_bf16_of(x))
    {
    }
    /* (CUDA too rounds a double once.) */
    __nv_bfloat16(double x) : bits(gpusim_bf16_of_double(x))
    {
    }
    __nv_bfloat16(int x) : bits(gpusim_bf16_of_double(x))
    {
    }
    operator __nv_bfloat16_raw() const
    {
        return {bits};
    }
    operator float() const
    {
        return gpusim_bf16_to(bits);
    }
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

inline __nv_bfloat16
__float2bfloat16(float x)
{
    return __nv_bfloat16(x);
}
inline __nv_bfloat16
__float2bfloat16_rn(float x)
{
    return __nv_bfloat16(x);
}
inline __nv_bfloat16
__double2bfloat16(double x)
{
    return __nv_bfloat16(x);
}
inline float
__bfloat162float(__nv_bfloat16 x)
{
    return (float)x;
}
inline unsigned short
__bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}
inline __nv_bfloat16
__ushort_as_bfloat16(unsigned short bits)
{
    return __nv_bfloat16_raw{bits};
}
inline bool
__hisnan(__nv_bfloat16 x)
{
    return std::isnan((float)x);
}
/* Sums, products and the like of two are rounded once: f32 holds the exact product and
 * enough of the sum. */
inline __nv_bfloat16
__hadd(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat16((float)x + (float)y);
}
inline __nv_bfloat16
__hsub(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat16((float)x - (float)y);
}
inline __nv_bfloat16
__hmul(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat16((float)x * (float)y);
}
inline __nv_bfloat162
make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return {x, y};
}
inline __nv_bfloat162
__halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return {x, y};
}
inline __nv_bfloat162
__floats2bfloat162_rn(float x, float y)
{
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
inline __nv_bfloat162
__float22bfloat162_rn(float2 x)
{
    return {__nv_bfloat16(x.x), __nv_bfloat16(x.y)};
}
inline __nv_bfloat162
__float2bfloat162_rn(float x)
{
    return {__nv_bfloat16(x), __nv_bfloat16(x)};
}
inline float2
__bfloat1622float2(__nv_bfloat162 x)
{
    return {(float)x.x, (float)x.y};
}
inline __nv_bfloat16
__low2bfloat16(__nv_bfloat162 x)
{
    return x.x;
}
inline __nv_bfloat16
__high2bfloat16(__nv_bfloat162 x)
{
    return x.y;
}
inline float
__low2float(__nv_bfloat162 x)
{
    return (float)x.x;
}
inline float
__high2float(__nv_bfloat162 x)
{
    return (float)x.y;
}

#endif
#endif
