/* SPDX-License-Identifier: Apache-2.0 */
/* elements.cuh: elements of every dtype, and what kernels/elements.def's formulas need.
 *
 * For the kernel that interprets programs (elementwise.cu) and for those that are
 * compiled at run time: rtc_source.c puts this very text, embedded by make, before each,
 * with elements.def at its place. So it includes nothing else, and knows no type but the
 * language's.
 *
 * Sums and products of different steps must not become one instruction, nor those of
 * one formula in one compiler only: all is compiled with -fmad=false, and what is meant
 * to be fused says ETK_FMA. Then a chain gives the bits of its single steps. */
#ifndef ETUDE_KERNELS_ELEMENTS_CUH
#define ETUDE_KERNELS_ELEMENTS_CUH

#define ETK_INLINE static __device__ __forceinline__

/* ---- elements ---- */

struct etk_b16 {
    unsigned short bits; /* bf16 */
};
struct etk_h16 {
    unsigned short bits; /* f16 */
};

/* N neighbours; accesses are of 16 bytes where they are so many. */
template <class E, int N>
struct alignas(N * sizeof(E) < 16 ? N * sizeof(E) : 16) etk_lot {
    E v[N];
};

/* clang-format off */
/* X as the type a program computes in. */
template <class R> ETK_INLINE R etk_from(float x) { return (R)x; }
template <class R> ETK_INLINE R etk_from(double x) { return (R)x; }
template <class R> ETK_INLINE R etk_from(int x) { return (R)x; }
template <class R> ETK_INLINE R etk_from(long long x) { return (R)x; }
template <class R> ETK_INLINE R etk_from(unsigned char x) { return (R)x; }
template <class R> ETK_INLINE R etk_from(etk_b16 x)
{
    return (R)__uint_as_float((unsigned)x.bits << 16);
}

/* Rounding to nearest, ties to even; two at once where there are two. */
#ifdef ETK_SIM
ETK_INLINE etk_b16 etk_to_b16(float x)
{
    unsigned bits = __float_as_uint(x);
    unsigned rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return {(unsigned short)(x != x ? 0x7fff : rounded)};
}
template <class R> ETK_INLINE R etk_from(etk_h16 x)
{
    /* Exponent and mantissa in a float's place, then times 2^112 for the other bias. */
    bool top = (x.bits & 0x7c00) == 0x7c00;
    float m = __uint_as_float(top ? 0x7f800000u | (x.bits & 0x3ffu) << 13
                                  : (x.bits & 0x7fffu) << 13);
    m = top ? m : m * 5192296858534827628530496329220096.0f;
    return (R)(x.bits & 0x8000 ? -m : m);
}
ETK_INLINE etk_h16 etk_to_h16(float x)
{
    unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000;
    float a = __uint_as_float(bits & 0x7fffffffu);
    unsigned whole = (bits & 0x7fffffffu) - (112u << 23); /* a normal number: rebias */
    unsigned normal = (whole + 0xfff + (whole >> 13 & 1)) >> 13;
    /* A subnormal one: 0.5 has quanta of 2^-24, so adding it rounds. */
    unsigned tiny = __float_as_uint(a + 0.5f) - 0x3f000000u;
    unsigned code = a < 6.103515625e-5f ? tiny : normal;
    code = a >= 65520.0f ? 0x7c00 : code;
    return {(unsigned short)(x != x ? 0x7fff : sign | code)};
}
ETK_INLINE void etk_put_two(etk_b16 *y, float a, float b)
{
    y[0] = etk_to_b16(a);
    y[1] = etk_to_b16(b);
}
ETK_INLINE void etk_put_two(etk_h16 *y, float a, float b)
{
    y[0] = etk_to_h16(a);
    y[1] = etk_to_h16(b);
}
#else
ETK_INLINE etk_b16 etk_to_b16(float x)
{
    etk_b16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
template <class R> ETK_INLINE R etk_from(etk_h16 x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return (R)y;
}
ETK_INLINE etk_h16 etk_to_h16(float x)
{
    etk_h16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
ETK_INLINE void etk_put_two(etk_b16 *y, float a, float b)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    y[0].bits = (unsigned short)both;
    y[1].bits = (unsigned short)(both >> 16);
}
ETK_INLINE void etk_put_two(etk_h16 *y, float a, float b)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    y[0].bits = (unsigned short)both;
    y[1].bits = (unsigned short)(both >> 16);
}
#endif

/* A double as a float that rounds once more to 16 bits as the double itself would: cut
 * off, with the last bit set where anything was (Boldo and Melquiond 2008, "Emulation
 * of FMA and correctly rounded sums", rounding to odd). */
ETK_INLINE float etk_odd(float x) { return x; }
ETK_INLINE float etk_odd(double x)
{
    float f = (float)x;
    double a = x < 0 ? -x : x;
    if ((double)f == x || x != x)
        return f;
    unsigned bits = __float_as_uint(f);
    bits -= (double)__uint_as_float(bits & 0x7fffffffu) > a;
    return __uint_as_float(bits | 1);
}

/* Floats become integers by truncation, saturating; NaN becomes 0. */
template <class R> ETK_INLINE void etk_put(float &y, R x) { y = (float)x; }
template <class R> ETK_INLINE void etk_put(double &y, R x) { y = (double)x; }
template <class R> ETK_INLINE void etk_put(etk_b16 &y, R x) { y = etk_to_b16(etk_odd(x)); }
template <class R> ETK_INLINE void etk_put(etk_h16 &y, R x) { y = etk_to_h16(etk_odd(x)); }
template <class R> ETK_INLINE void etk_put(int &y, R x)
{
    const R end = (R)2147483648.0;
    y = x != x ? 0 : x >= end ? 2147483647 : x < -end ? -2147483647 - 1 : (int)x;
}
template <class R> ETK_INLINE void etk_put(long long &y, R x)
{
    const R end = (R)9223372036854775808.0;
    const long long most = 9223372036854775807ll;
    y = x != x ? 0 : x >= end ? most : x < -end ? -most - 1 : (long long)x;
}
template <class R> ETK_INLINE void etk_put(unsigned char &y, R x)
{
    y = (unsigned char)(x > 0 ? x < (R)255 ? (int)x : 255 : 0); /* NaN > 0 is false */
}

/* X as E holds it. */
template <class E, class R> ETK_INLINE R etk_rounded(R x)
{
    E y;
    etk_put(y, x);
    return etk_from<R>(y);
}

/* N results into memory at once. */
template <class E, int N, class R> ETK_INLINE void etk_put_lot(E *to, const R *x)
{
    etk_lot<E, N> y;
#pragma unroll
    for (int k = 0; k < N; k++)
        etk_put(y.v[k], x[k]);
    *(etk_lot<E, N> *)to = y;
}
template <class E, int N> ETK_INLINE void etk_put_pairs(E *to, const float *x)
{
    etk_lot<E, N> y;
#pragma unroll
    for (int k = 0; k + 1 < N; k += 2)
        etk_put_two(&y.v[k], x[k], x[k + 1]);
    if (N % 2)
        etk_put(y.v[N - 1], x[N - 1]);
    *(etk_lot<E, N> *)to = y;
}
template <int N> ETK_INLINE void etk_store(etk_b16 *to, const float *x)
{
    etk_put_pairs<etk_b16, N>(to, x);
}
template <int N> ETK_INLINE void etk_store(etk_h16 *to, const float *x)
{
    etk_put_pairs<etk_h16, N>(to, x);
}
template <int N, class E, class R> ETK_INLINE void etk_store(E *to, const R *x)
{
    etk_put_lot<E, N>(to, x);
}
template <int N, class E> ETK_INLINE etk_lot<E, N> etk_load(const E *from)
{
    return *(const etk_lot<E, N> *)from;
}
/* clang-format on */

/* ---- places ---- */

enum { ETK_MAX_SIDES = 24, ETK_MAX_AXES = 6 };

/* The arrays that a program walks together: results first, then operands. Lasts as long
 * as a launch: it is the kernel's one parameter. Axes: slowest first; thread t works on
 * the t-th place of count, an element or N neighbours along the last axis, whose length
 * counts in places too; strides count elements. */
struct etk_sides {
    long long count;    /* places */
    long long elements; /* of a walk that is dense: some may be left after the places */
    int ndim;
    unsigned length[ETK_MAX_AXES]; /* where count < 2^31 */
    /* n / length, see etk_over */
    unsigned multiplier[ETK_MAX_AXES], shift[ETK_MAX_AXES];
    long long length64[ETK_MAX_AXES];
    long long stride[ETK_MAX_SIDES][ETK_MAX_AXES];
    void *ptr[ETK_MAX_SIDES];
};

/* REST / length[axis], which it leaves in REST; the remainder. Below 2^31 without
 * dividing (Granlund and Montgomery 1994; struct etk_divisor). */
ETK_INLINE unsigned
etk_over(const struct etk_sides &a, int axis, unsigned &rest)
{
    unsigned n = rest;
    rest = (__umulhi(n, a.multiplier[axis]) + n) >> a.shift[axis];
    return n - rest * a.length[axis];
}
ETK_INLINE long long
etk_over(const struct etk_sides &a, int axis, long long &rest)
{
    long long n = rest;
    rest = n / a.length64[axis];
    return n - rest * a.length64[axis];
}

/* ---- functions ---- */

/* Errors in units of the last place (CUDA Math API, "Mathematical Functions Appendix"):
 * exp 2, log 1, log1p 1, sin 2, cos 2, tanh 2, rsqrt 2, pow 4; fdividef 2, and 0 where
 * the divisor is above 2^126. sqrt and / round. The comparison allows 10 for a formula. */
/* clang-format off */
ETK_INLINE float etk_exp(float x) { return expf(x); }
ETK_INLINE double etk_exp(double x) { return exp(x); }
ETK_INLINE float etk_log(float x) { return logf(x); }
ETK_INLINE double etk_log(double x) { return log(x); }
ETK_INLINE float etk_log1p(float x) { return log1pf(x); }
ETK_INLINE double etk_log1p(double x) { return log1p(x); }
ETK_INLINE float etk_tanh(float x) { return tanhf(x); }
ETK_INLINE double etk_tanh(double x) { return tanh(x); }
ETK_INLINE float etk_sin(float x) { return sinf(x); }
ETK_INLINE double etk_sin(double x) { return sin(x); }
ETK_INLINE float etk_cos(float x) { return cosf(x); }
ETK_INLINE double etk_cos(double x) { return cos(x); }
ETK_INLINE float etk_sqrt(float x) { return sqrtf(x); }
ETK_INLINE double etk_sqrt(double x) { return sqrt(x); }
ETK_INLINE float etk_rsqrt(float x) { return rsqrtf(x); }
ETK_INLINE double etk_rsqrt(double x) { return 1 / sqrt(x); }
ETK_INLINE float etk_abs(float x) { return fabsf(x); }
ETK_INLINE double etk_abs(double x) { return fabs(x); }
ETK_INLINE float etk_floor(float x) { return floorf(x); }
ETK_INLINE double etk_floor(double x) { return floor(x); }
ETK_INLINE float etk_pow(float x, float a) { return powf(x, a); }
ETK_INLINE double etk_pow(double x, double a) { return pow(x, a); }
ETK_INLINE float etk_inverse(float x) { return __fdividef(1.0f, x); }
ETK_INLINE double etk_inverse(double x) { return 1 / x; }
/* clang-format on */
#define ETK_FMA(a, b, c) fmaf(a, b, c)

/* The normal distribution Phi, of which erfc(z) e^(z^2) = t Q(t), t = 1/(1 + z/2), is
 * the tail; Q as in kernels/cpu/loops_math.h. One exponential and no branch: 25
 * instructions, of which an element of bf16 to bf16 may take about 25 at full speed. */
ETK_INLINE float
etk_normal(float x)
{
    float t = etk_inverse(1 + etk_abs(x) * 0.3535533906f), p = -6.078072281e-2f;
    p = ETK_FMA(p, t, 2.925036193e-1f);
    p = ETK_FMA(p, t, -5.026363844e-1f);
    p = ETK_FMA(p, t, 2.944803575e-1f);
    p = ETK_FMA(p, t, -3.698936442e-2f);
    p = ETK_FMA(p, t, 2.066417922e-1f);
    p = ETK_FMA(p, t, 2.42218152e-1f);
    p = ETK_FMA(p, t, 2.824812622e-1f);
    p = ETK_FMA(p, t, 2.820812353e-1f);
    float tail = 0.5f * (t * p) * etk_exp(-0.5f * x * x);
    return x < 0 ? tail : 1 - tail;
}
ETK_INLINE double
etk_normal(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

#define ETK_EXP     etk_exp
#define ETK_LOG     etk_log
#define ETK_LOG1P   etk_log1p
#define ETK_TANH    etk_tanh
#define ETK_SIN     etk_sin
#define ETK_COS     etk_cos
#define ETK_NORMAL  etk_normal
#define ETK_SQRT    etk_sqrt
#define ETK_RSQRT   etk_rsqrt
#define ETK_ABS     etk_abs
#define ETK_FLOOR   etk_floor
#define ETK_POW     etk_pow
#define ETK_INVERSE etk_inverse

#define ETK_ELEMENT(name, n, first, value)                                             \
    template <class R> ETK_INLINE R etk_step_##name(R X, R Y, R Z, R A, R B)           \
    {                                                                                  \
        R V = first;                                                                   \
        (void)X, (void)Y, (void)Z, (void)A, (void)B, (void)V;                          \
        return value;                                                                  \
    }
#include "kernels/elements.def"

#endif
