/* SPDX-License-Identifier: Apache-2.0 */
/* array.c: reading, writing and walking arrays of any dtype and stride. */
#include "kernels/ref/array.h"

#include <math.h>
#include <string.h>

/* The 16-bit formats: a sign, exponent bits, MANTISSA bits. (Reading them: array.h.) */
struct small_float {
    int mantissa, bias;
};
static const struct small_float bf16 = {.mantissa = 7, .bias = 127};
static const struct small_float f16 = {.mantissa = 10, .bias = 15};

/* Rounds to nearest, ties to even, in one step from double. A full mantissa that is
 * rounded up carries into the exponent, and from the highest exponent into infinity. */
static uint16_t
encode(const struct small_float *f, double v)
{
    const int dropped = 52 - f->mantissa; /* bits of a double's fraction */
    const uint64_t top = 0x7fff >> f->mantissa << f->mantissa;
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    if (isnan(v))
        return (uint16_t)(sign | top | 1 << (f->mantissa - 1));
    uint64_t bits, code;
    v = fabs(v);
    memcpy(&bits, &v, sizeof bits);
    if (bits >> 52 <= (uint64_t)(1023 - f->bias)) { /* counts units of the smallest */
        code = (uint64_t)nearbyint(ldexp(v, f->bias - 1 + f->mantissa));
    } else {
        uint64_t odd = bits >> dropped & 1;
        bits += ((uint64_t)1 << (dropped - 1)) - 1 + odd;
        code = (bits >> dropped) - ((uint64_t)(1023 - f->bias) << f->mantissa);
    }
    return (uint16_t)(sign | (code < top ? code : top));
}

static double
saturate(double v, double low, double high)
{
    return isnan(v) ? 0 : fmin(fmax(trunc(v), low), high);
}

static void *
element(const struct etk_array *a, int64_t offset)
{
    return a->p + offset * (int64_t)et_dtype_size(a->d.dtype);
}

double
etk_get_or(const struct etk_array *a, int64_t offset, double otherwise)
{
    return a->p ? etk_get(a, offset) : otherwise;
}

/* N elements of A from OFFSET on, one each STRIDE, as doubles. */
static void
widen(const struct etk_array *a, int64_t offset, int64_t stride, int n, double *to)
{
#define EACH(type, value)                                                              \
    for (int i = 0; i < n; i++) {                                                      \
        type v = ((const type *)(const void *)a->p)[offset + i * stride];              \
        to[i] = value;                                                                 \
    }
    if (a->d.dtype == ET_F32)
        EACH(float, (double)v)
    else if (a->d.dtype == ET_F64)
        EACH(double, v)
    else if (a->d.dtype == ET_BF16)
        EACH(uint16_t, etk_from_bf16(v))
    else if (a->d.dtype == ET_F16)
        EACH(uint16_t, etk_from_f16(v))
    else
        for (int i = 0; i < n; i++)
            to[i] = etk_get(a, offset + i * stride);
#undef EACH
}

/* etk_dot's sums where both rows are of one dtype, as most are: NUMBER of a TYPE. */
#define DOT(name, type, NUMBER)                                                        \
    static double name(const void *a, int64_t from, int64_t xs, const void *b,         \
                       int64_t by, int64_t ys, int64_t n)                              \
    {                                                                                  \
        const type *x = (const type *)a + from, *y = (const type *)b + by;             \
        double s[4] = {0};                                                             \
        int64_t i = 0;                                                                 \
        for (; i + 4 <= n; i += 4, x += 4 * xs, y += 4 * ys) {                         \
            s[0] += NUMBER(x[0]) * NUMBER(y[0]);                                       \
            s[1] += NUMBER(x[xs]) * NUMBER(y[ys]);                                     \
            s[2] += NUMBER(x[2 * xs]) * NUMBER(y[2 * ys]);                             \
            s[3] += NUMBER(x[3 * xs]) * NUMBER(y[3 * ys]);                             \
        }                                                                              \
        for (int k = 0; i < n; i++, k++)                                               \
            s[k] += NUMBER(x[k * xs]) * NUMBER(y[k * ys]);                             \
        return (s[0] + s[1]) + (s[2] + s[3]);                                          \
    }
DOT(dot_of_f64, double, (double))
DOT(dot_of_f32, float, (double))
DOT(dot_of_bf16, uint16_t, etk_from_bf16)
DOT(dot_of_f16, uint16_t, etk_from_f16)
#undef DOT

/* Four sums, so that an addition need not wait for the one before it: tests spend most
 * of their time here. */
double
etk_dot(const struct etk_array *a, int64_t a_offset, int a_axis,
        const struct etk_array *b, int64_t b_offset, int b_axis, int64_t n)
{
    enum { PIECE = 64 }; /* whole fours */
    int64_t as = a->d.stride[a_axis], bs = b->d.stride[b_axis];
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, x[PIECE], y[PIECE];
    if (a->d.dtype == b->d.dtype)
        switch (a->d.dtype) {
        case ET_F64:
            return dot_of_f64(a->p, a_offset, as, b->p, b_offset, bs, n);
        case ET_F32:
            return dot_of_f32(a->p, a_offset, as, b->p, b_offset, bs, n);
        case ET_BF16:
            return dot_of_bf16(a->p, a_offset, as, b->p, b_offset, bs, n);
        case ET_F16:
            return dot_of_f16(a->p, a_offset, as, b->p, b_offset, bs, n);
        default:
            break;
        }
    for (int64_t at = 0; at < n; at += PIECE) {
        int m = n - at < PIECE ? (int)(n - at) : PIECE;
        widen(a, a_offset + at * as, as, m, x);
        widen(b, b_offset + at * bs, bs, m, y);
        for (; m % 4 > 0; m++)
            x[m] = y[m] = 0;
        for (int i = 0; i < m; i += 4) {
            s0 += x[i] * y[i];
            s1 += x[i + 1] * y[i + 1];
            s2 += x[i + 2] * y[i + 2];
            s3 += x[i + 3] * y[i + 3];
        }
    }
    return (s0 + s1) + (s2 + s3);
}

int64_t
etk_get_int(const struct etk_array *a, int64_t offset)
{
    if (a->d.dtype == ET_I64)
        return *(const int64_t *)element(a, offset);
    return (int64_t)etk_get(a, offset);
}

void
etk_set(const struct etk_array *a, int64_t offset, double v)
{
    if (!a->p)
        return;
    void *p = a->p;
    switch (a->d.dtype) {
    case ET_F32:
        ((float *)p)[offset] = (float)v;
        break;
    case ET_F64:
        ((double *)p)[offset] = v;
        break;
    case ET_BF16:
        ((uint16_t *)p)[offset] = encode(&bf16, v);
        break;
    case ET_F16:
        ((uint16_t *)p)[offset] = encode(&f16, v);
        break;
    case ET_I32:
        ((int32_t *)p)[offset] = (int32_t)saturate(v, INT32_MIN, INT32_MAX);
        break;
    case ET_I64: /* 2^63 itself does not fit; the double below it does */
        ((int64_t *)p)[offset] =
            v >= 0x1p63 ? INT64_MAX : (int64_t)saturate(v, -0x1p63, 0x1p63);
        break;
    case ET_U8:
        ((uint8_t *)p)[offset] = (uint8_t)saturate(v, 0, UINT8_MAX);
        break;
    default:
        break;
    }
}

void
etk_move(const struct etk_array *dst, int64_t dst_offset, const struct etk_array *src,
         int64_t src_offset)
{
    if (!dst->p)
        return;
    if (dst->d.dtype == src->d.dtype)
        memcpy(element(dst, dst_offset), element(src, src_offset),
               et_dtype_size(dst->d.dtype));
    else
        etk_set(dst, dst_offset, etk_get(src, src_offset));
}

double
etk_round(enum et_dtype dtype, double value)
{
    if (dtype == ET_F64)
        return value;
    double cell = 0;
    struct etk_array one = {.d = {.dtype = dtype}, .p = (char *)&cell};
    etk_set(&one, 0, value);
    return etk_get(&one, 0);
}

void
etk_set_nothing(const struct etk_array *a, int64_t offset)
{
    etk_set(a, offset, NAN); /* which an integer array takes as 0 */
}

/* Do the elements of D lie in row-major order? */
static bool
is_row_major(const struct et_desc *d)
{
    int64_t stride = 1;
    for (int i = d->ndim - 1; i >= 0; i--) {
        if (d->stride[i] != stride)
            return false;
        stride *= d->shape[i];
    }
    return true;
}

int64_t
etk_offset_linear(const struct et_desc *d, int64_t n)
{
    if (is_row_major(d)) /* as most arrays: divisions take long */
        return n;
    int64_t offset = 0;
    for (int i = d->ndim - 1; i >= 0; i--) {
        offset += n % d->shape[i] * d->stride[i];
        n /= d->shape[i];
    }
    return offset;
}

struct et_desc
etk_without(const struct et_desc *d, int axis)
{
    struct et_desc rest = *d;
    if (d->ndim > 0)
        rest.shape[axis] = 1;
    return rest;
}

void
etk_flush(const struct etk_ref *r, int output)
{
    const struct etk_array *y = &r->out[output];
    if (!y->p)
        return;
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i))
        etk_set(y, etk_offset(&y->d, i.ix), r->acc[output][i.n]);
}

bool
etk_wins(double a, double b)
{
    return a > b || (isnan(a) && !isnan(b));
}
