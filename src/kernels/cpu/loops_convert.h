/* SPDX-License-Identifier: Apache-2.0 */
/* loops_convert.h: elements of any dtype to and from the type a program computes in.
 *
 * Floats become integers by truncation, saturating; NaN becomes 0. The 16-bit formats
 * round to nearest, ties to even. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_CONVERT_H
#define ETUDE_KERNELS_CPU_LOOPS_CONVERT_H

#include "etude/device.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/loops_math.h"

static inline float
from_bf16(uint16_t v)
{
    return float_of_bits((uint32_t)v << 16);
}

static inline uint16_t
to_bf16(float v)
{
    uint32_t bits = bits_of_float(v);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(v != v ? (bits >> 16 | 0x40) : rounded);
}

/* Exponent and mantissa in a float's place, then times 2^112 for the other bias. */
static inline float
from_f16(uint16_t v)
{
    float magnitude = float_of_bits((v & 0x7fffu) << 13) * 0x1p112f;
    magnitude = (v & 0x7c00) == 0x7c00 ? float_of_bits(0x7f800000 | (v & 0x3ffu) << 13)
                                       : magnitude;
    return v & 0x8000 ? -magnitude : magnitude;
}

static inline uint16_t
to_f16(float v)
{
    uint32_t bits = bits_of_float(v), sign = bits >> 16 & 0x8000;
    float a = fabsf(v);
    /* A normal number: rebias, round the 13 bits that go. */
    uint32_t whole = bits_of_float(a) - (112u << 23);
    uint32_t normal = (whole + 0xfff + (whole >> 13 & 1)) >> 13;
    /* A subnormal one: 0.5 has quanta of 2^-24, so adding it rounds. */
    uint32_t tiny = bits_of_float(a + 0.5f) - 0x3f000000u;
    uint32_t code = a < 0x1p-14f ? tiny : normal;
    code = a >= 65520 ? 0x7c00 : code;
    return (uint16_t)(sign | (v != v ? 0x7e00 : code));
}

/* N elements of TYPE, BF16 or F16, each S behind the one before, to and from f32. */
INLINE void
widen_line(float *to, const uint16_t *from, int64_t n, int64_t s, enum et_dtype type)
{
#pragma omp simd
    for (int64_t c = 0; c < n; c++)
        to[c] = type == ET_BF16 ? from_bf16(from[c * s]) : from_f16(from[c * s]);
}

INLINE void
narrow_line(uint16_t *to, const float *from, int64_t n, int64_t s, enum et_dtype type)
{
#pragma omp simd
    for (int64_t c = 0; c < n; c++)
        to[c * s] = type == ET_BF16 ? to_bf16(from[c]) : to_f16(from[c]);
}

static inline double
between(double v, double low, double high)
{
    v = v != v ? 0 : v;
    v = v < low ? low : v;
    return v > high ? high : v;
}

static inline int64_t
to_i64(double v)
{
    if (v != v)
        return 0;
    return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* dtype, C type of an element, v as T, v of type T as an element */
#define ETK_CONVERT_MAP(F)                                                             \
    F(F32, float, (T)v, (float)v)                                                      \
    F(F64, double, (T)v, (double)v)                                                    \
    F(BF16, uint16_t, (T)from_bf16(v), to_bf16((float)v))                              \
    F(F16, uint16_t, (T)from_f16(v), to_f16((float)v))                                 \
    F(I32, int32_t, (T)v, (int32_t)between((double)v, INT32_MIN, INT32_MAX))           \
    F(I64, int64_t, (T)v, to_i64((double)v))                                           \
    F(U8, uint8_t, (T)v, (uint8_t)between((double)v, 0, UINT8_MAX))

/* N elements at a distance of STRIDE, to or from a dense block. */
typedef void etk_load_fn(void *block, const void *from, int64_t stride, int64_t n);
typedef void etk_store_fn(const void *block, void *to, int64_t stride, int64_t n);

#define CONVERT_BODY(dtype, element, type, load, store)                                \
    static void load_##dtype##_##type(void *block, const void *from, int64_t stride,   \
                                      int64_t n)                                       \
    {                                                                                  \
        typedef type T;                                                                \
        T *restrict to = block;                                                        \
        const element *x = from;                                                       \
        for (int64_t i = 0; i < n; i++) {                                              \
            element v = x[i * stride];                                                 \
            to[i] = load;                                                              \
        }                                                                              \
    }                                                                                  \
    static void store_##dtype##_##type(const void *block, void *to, int64_t stride,    \
                                       int64_t n)                                      \
    {                                                                                  \
        typedef type T;                                                                \
        const T *restrict x = block;                                                   \
        element *y = to;                                                               \
        for (int64_t i = 0; i < n; i++) {                                              \
            T v = x[i];                                                                \
            y[i * stride] = store;                                                     \
        }                                                                              \
    }
#define CONVERT_F(dtype, element, load, store)                                         \
    CONVERT_BODY(dtype, element, float, load, store)                                   \
    CONVERT_BODY(dtype, element, double, load, store)
ETK_CONVERT_MAP(CONVERT_F)

/* [dtype][0] f32, [dtype][1] f64 */
#define LOAD_ROW(dtype, element, load, store)                                          \
    [ET_##dtype] = {load_##dtype##_float, load_##dtype##_double},
#define STORE_ROW(dtype, element, load, store)                                         \
    [ET_##dtype] = {store_##dtype##_float, store_##dtype##_double},
static etk_load_fn *const etk_loads[ET_DTYPE_COUNT][2] = {ETK_CONVERT_MAP(LOAD_ROW)};
static etk_store_fn *const etk_stores[ET_DTYPE_COUNT][2] = {ETK_CONVERT_MAP(STORE_ROW)};

#endif
