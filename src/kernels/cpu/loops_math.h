/* SPDX-License-Identifier: Apache-2.0 */
/* loops_math.h: elementary functions that the compiler turns into vector code.
 *
 *   e^x     x = n ln 2 + r, |r| <= ln(2)/2; a polynomial in r, times 2^n
 *   log x   x = 2^n (1 + f); f - f^2/2 + f^3 P(f)
 *   tanh x  x + x^3 P(x^2) below 0.625, else 1 - 2/(e^2x + 1)
 *   erfc z  e^(-z^2) t Q(t), t = 1/(1 + z/2), for z >= 0, in the normal distribution
 *
 * P and Q are Chebyshev fits of our own; errors stay below 3 ulp, of erfc below 2e-6
 * relative where it is small. No branch, no call: every choice is a select. Doubles
 * take libm's functions, for they are no hot path. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_MATH_H
#define ETUDE_KERNELS_CPU_LOOPS_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LN2_HIGH 0.693359375f /* few bits: n LN2_HIGH is exact */
#define LN2_LOW  -2.12194440e-4f
#define ROUNDER  12582912.0f /* 1.5 * 2^23: adding it rounds to an integer */

/* Bits are unsigned: those of NaN and of negative numbers may overflow in passing. */
static inline float
float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t
bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float
etk_expf(float x)
{
    x = x > 89 ? 89 : x; /* beyond: infinity, and 0 */
    x = x < -105 ? -105 : x;
    float shifted = x * 1.44269504f + ROUNDER, n = shifted - ROUNDER;
    float r = x - n * LN2_HIGH;
    r = r - n * LN2_LOW;
    float p = 1.392618359e-3f;
    p = p * r + 8.363179053e-3f;
    p = p * r + 4.166655462e-2f;
    p = p * r + 1.666657699e-1f;
    p = p * r + 0.5f;
    p = p * (r * r) + r + 1;
    /* In two steps, since 2^n alone may be out of range. */
    int32_t k = (int32_t)(bits_of_float(shifted) - bits_of_float(ROUNDER));
    uint32_t a = (uint32_t)(k >> 1), b = (uint32_t)k - a;
    return p * float_of_bits((a + 127) << 23) * float_of_bits((b + 127) << 23);
}

static inline float
etk_logf(float x)
{
    float up = x < 1.17549435e-38f ? x * 8388608.0f : x; /* subnormal numbers */
    uint32_t bits = bits_of_float(up);
    int32_t k = (int32_t)(bits - 0x3f3504f3) >> 23; /* sqrt(1/2) */
    float f = float_of_bits(bits - ((uint32_t)k << 23)) - 1;
    float n = (float)k - (x < 1.17549435e-38f ? 23.0f : 0.0f), p = 6.971611471e-2f;
    p = p * f - 1.147973385e-1f;
    p = p * f + 1.168541992e-1f;
    p = p * f - 1.242568733e-1f;
    p = p * f + 1.424905765e-1f;
    p = p * f - 1.666780232e-1f;
    p = p * f + 2.000071575e-1f;
    p = p * f - 2.499999696e-1f;
    p = p * f + 3.333333118e-1f;
    float square = f * f;
    float y = n * LN2_LOW + (p * f * square - 0.5f * square) + f + n * LN2_HIGH;
    y = x == 0 ? -INFINITY : y;
    y = x < 0 ? NAN : y;
    return x == INFINITY || x != x ? x : y;
}

/* log(1 + x), x in [0, 1]: what rounding 1 + x loses is put back as a ratio. */
static inline float
etk_log1pf(float x)
{
    float u = 1 + x, d = u - 1;
    return d == 0 ? x : etk_logf(u) * (x / d);
}

static inline float
etk_tanhf(float x)
{
    float a = fabsf(x), s = x * x, p = -6.045165097e-3f;
    p = p * s + 2.096132911e-2f;
    p = p * s - 5.384326318e-2f;
    p = p * s + 1.333271885e-1f;
    p = p * s - 3.333332843e-1f;
    float small = p * s * x + x;
    float large = 1 - 2 / (etk_expf(2 * a) + 1);
    large = x < 0 ? -large : large;
    return a < 0.625f ? small : large;
}

/* erfc(z) e^(z^2), z >= 0. */
static inline float
etk_erfcxf(float z)
{
    float t = 1 / (1 + 0.5f * z), p = -6.078072281e-2f;
    p = p * t + 2.925036193e-1f;
    p = p * t - 5.026363844e-1f;
    p = p * t + 2.944803575e-1f;
    p = p * t - 3.698936442e-2f;
    p = p * t + 2.066417922e-1f;
    p = p * t + 2.42218152e-1f;
    p = p * t + 2.824812622e-1f;
    p = p * t + 2.820812353e-1f;
    return t * p;
}

/* The normal distribution, Phi(x). Its e^(-x^2/2) is written as in its density, so that
 * a formula of both has one exponential. */
static inline float
etk_normalf(float x)
{
    float tail = 0.5f * etk_erfcxf(fabsf(x) * 0.707106781f) * etk_expf(-0.5f * x * x);
    return x < 0 ? tail : 1 - tail;
}

static inline double
etk_normal(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

#define ETK_EXP(x)   _Generic((x), float : etk_expf, double : exp)(x)
#define ETK_LOG(x)   _Generic((x), float : etk_logf, double : log)(x)
#define ETK_LOG1P(x) _Generic((x), float : etk_log1pf, double : log1p)(x)
#define ETK_TANH(x)  _Generic((x), float : etk_tanhf, double : tanh)(x)
/* The library's: of a large number only it knows how many turns to take away. */
#define ETK_SIN(x)     _Generic((x), float : sinf, double : sin)(x)
#define ETK_COS(x)     _Generic((x), float : cosf, double : cos)(x)
#define ETK_NORMAL(x)  _Generic((x), float : etk_normalf, double : etk_normal)(x)
#define ETK_SQRT(x)    _Generic((x), float : sqrtf, double : sqrt)(x)
#define ETK_RSQRT(x)   (1 / ETK_SQRT(x))
#define ETK_INVERSE(x) (1 / (x))
#define ETK_ABS(x)     _Generic((x), float : fabsf, double : fabs)(x)
#define ETK_FLOOR(x)   _Generic((x), float : floorf, double : floor)(x)
#define ETK_POW(x, a)  _Generic((x), float : powf, double : pow)(x, a)

#endif
