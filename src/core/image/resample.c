/* SPDX-License-Identifier: Apache-2.0 */
/* resample.c: a picture at another size, by separable filters. See resample.h.
 *
 * Row by row of the result: first down, from rows of the input to one line of 16-bit
 * values with 6 bits behind the point, then along that line. The line stays in the
 * nearest cache, and no picture lies between the two passes (but for bicubic). Whole
 * numbers all along: with SSE2's products of 16 bits, or without, the bits are the
 * same.
 *
 * Source: the filters and the middle of a pixel as in Pillow,
 * src/libImaging/Resample.c. */
#include "core/image/resample.h"

#include <math.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    LINE_BITS = 6, /* behind the point, of the line */
    LINE_MOST = 255 << LINE_BITS,
    LINE_SPARE = 16 /* values behind the line that are read, and count nothing */
};

/* Which values of the input one of the result is made of. COUNT is even; a last one may
 * have the weight 0, and FIRST + COUNT lie behind the input's end. */
struct tap {
    int32_t first, count;
};

/* One axis, ready. */
struct taps {
    const struct tap *tap;
    const int16_t *weight; /* [n][most] */
    int64_t most;
    int bits;            /* of weights: they add up to about 1 << bits */
    int64_t first, last; /* [first, last) are looked at */
};

struct eti_axis
eti_axis_of(int64_t from, int64_t to, int64_t n)
{
    return (struct eti_axis){
        .n = n,
        .origin = (double)from,
        .step = (double)(to - from) / (double)n,
        .lo = from,
        .hi = to,
    };
}

/* ---- weights ---- */

static double
bilinear(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double
bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static const struct filter {
    double (*weight)(double x);
    double support;
} filters[] = {
    [ET_BILINEAR] = {bilinear, 1},
    [ET_BICUBIC] = {bicubic, 2},
};

static int64_t
clamp(double v, int64_t lo, int64_t hi)
{
    return v < (double)lo ? lo : v > (double)hi ? hi : (int64_t)v;
}

/* How far the filter reaches, in values of the input. */
static double
reach(const struct eti_axis *a, const struct filter *f)
{
    double step = fabs(a->step);
    return f->support * (step < 1 ? 1 : step);
}

static double
middle(const struct eti_axis *a, int64_t i)
{
    return a->origin + ((double)i + 0.5) * a->step;
}

static void
find_tap(const struct eti_axis *a, const struct filter *f, int64_t i, struct tap *out)
{
    double at = middle(a, i), support = reach(a, f);
    int64_t from = clamp(floor(at - support + 0.5), a->lo, a->hi - 1);
    int64_t to = clamp(floor(at + support + 0.5), from + 1, a->hi);
    *out = (struct tap){(int32_t)from, (int32_t)(to - from)};
}

/* Weights of one value, adding up to 1. */
static void
weigh(const struct eti_axis *a, const struct filter *f, int64_t i, const struct tap *t,
      double *out)
{
    double at = middle(a, i), scale = f->support / reach(a, f), sum = 0;
    for (int32_t k = 0; k < t->count; k++) {
        out[k] = f->weight(((double)(t->first + k) - at + 0.5) * scale);
        sum += out[k];
    }
    if (fabs(sum) < 0.1) { /* what it is to see is out of sight */
        memset(out, 0, (size_t)t->count * sizeof *out);
        out[at < (double)t->first ? 0 : t->count - 1] = sum = 1;
    }
    for (int32_t k = 0; k < t->count; k++)
        out[k] /= sum;
}

static void
round_weights(const double *w, int32_t n, int bits, int16_t *out)
{
    for (int32_t k = 0; k < n; k++)
        out[k] = (int16_t)lrint(ldexp(w[k], bits));
}

/* How many bits weights have room for, the same for all parts of a picture: where the
 * result is smaller they are, too, but twice as large at an edge, where half of the
 * filter is cut off. Where more of it is, the LARGEST needs them. */
static int
find_bits(const struct eti_axis *a, double largest)
{
    double step = fabs(a->step);
    int bits = step >= 8 ? 16 : step >= 4 ? 15 : 14;
    while (bits > 14 && ldexp(largest, bits) > INT16_MAX)
        bits--;
    return bits;
}

static et_status
find_taps(const struct eti_axis *a, const struct filter *f,
          struct eti_scratch *tap_room, struct eti_scratch *weight_room,
          struct taps *out, struct et_error *why)
{
    int64_t most = (int64_t)ceil(reach(a, f)) * 2 + 2;
    ET_TRY(eti_scratch_need(tap_room, (size_t)a->n * sizeof(struct tap), why));
    /* As real numbers, and behind them what they are rounded to. */
    size_t n = (size_t)(a->n * most);
    ET_TRY(eti_scratch_need(weight_room, n * (sizeof(double) + sizeof(int16_t)), why));
    struct tap *tap = tap_room->data;
    double *exact = weight_room->data;
    int16_t *weight = (int16_t *)(exact + n);
    memset(weight, 0, n * sizeof *weight);
    double largest = 0;
    *out = (struct taps){tap, weight, most, 0, a->hi, a->lo};
    for (int64_t i = 0; i < a->n; i++) {
        find_tap(a, f, i, &tap[i]);
        weigh(a, f, i, &tap[i], exact + i * most);
        for (int32_t k = 0; k < tap[i].count; k++)
            largest = fmax(largest, exact[i * most + k]);
        out->first = tap[i].first < out->first ? tap[i].first : out->first;
        int64_t end = tap[i].first + tap[i].count;
        out->last = end > out->last ? end : out->last;
    }
    out->bits = find_bits(a, largest);
    for (int64_t i = 0; i < a->n; i++) {
        round_weights(exact + i * most, tap[i].count, out->bits, weight + i * most);
        tap[i].count += tap[i].count & 1;
    }
    return ET_OK;
}

/* ---- down: rows of the input to a line ---- */

static int16_t
to_line(int32_t sum, int shift)
{
    int32_t v = (sum + (1 << shift >> 1)) >> shift;
    return (int16_t)(v < 0 ? 0 : v > LINE_MOST ? LINE_MOST : v);
}

/* Values [FROM, N) of the line, one by one. ROW: the input's first one. */
static void
down_rest(const uint8_t *row, int64_t stride, const struct tap *t, const int16_t *w,
          int shift, int64_t from, int64_t n, int16_t *line)
{
    for (int64_t i = from; i < n; i++) {
        int32_t sum = 0;
        for (int32_t k = 0; k < t->count; k++)
            if (w[k]) /* the last row may be behind the input */
                sum += w[k] * row[(t->first + k) * stride + i];
        line[i] = to_line(sum, shift);
    }
}

#ifdef __SSE2__

/* Two weights, in every pair of 16 bits. */
static __m128i
pair(const int16_t *w)
{
    int32_t two;
    memcpy(&two, w, sizeof two);
    return _mm_set1_epi32(two);
}

/* Eight values at a time. */
static int64_t
down_eights(const uint8_t *row, int64_t stride, const struct tap *t, const int16_t *w,
            int shift, int64_t n, int16_t *line)
{
    const __m128i zero = _mm_setzero_si128(), most = _mm_set1_epi16(LINE_MOST);
    const __m128i half = _mm_set1_epi32(1 << shift >> 1);
    const __m128i count = _mm_cvtsi32_si128(shift);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i low = half, high = half;
        const uint8_t *p = row + t->first * stride + i;
        for (int32_t k = 0; k < t->count; k += 2, p += 2 * stride) {
            const uint8_t *q = w[k + 1] ? p + stride : p;
            __m128i a = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)p), zero);
            __m128i b = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)q), zero);
            __m128i ww = pair(w + k);
            low = _mm_add_epi32(low, _mm_madd_epi16(_mm_unpacklo_epi16(a, b), ww));
            high = _mm_add_epi32(high, _mm_madd_epi16(_mm_unpackhi_epi16(a, b), ww));
        }
        __m128i v =
            _mm_packs_epi32(_mm_sra_epi32(low, count), _mm_sra_epi32(high, count));
        v = _mm_min_epi16(_mm_max_epi16(v, zero), most);
        _mm_storeu_si128((__m128i *)(line + i), v);
    }
    return i;
}

#else

static int64_t
down_eights(const uint8_t *row, int64_t stride, const struct tap *t, const int16_t *w,
            int shift, int64_t n, int16_t *line)
{
    (void)row;
    (void)stride;
    (void)t;
    (void)w;
    (void)shift;
    (void)n;
    (void)line;
    return 0;
}

#endif

/* ---- along: a line to a row of the result ---- */

static uint8_t
to_byte(int32_t sum, int shift)
{
    int32_t v = (sum + (1 << shift >> 1)) >> shift;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* LINE: the value whose number in the input is FIRST. */
static void
along(const int16_t *line, const struct taps *x, int C, int64_t from, int64_t n,
      uint8_t *out)
{
    int shift = x->bits + LINE_BITS;
    for (int64_t i = from; i < n; i++) {
        const int16_t *w = x->weight + i * x->most;
        const int16_t *p = line + (x->tap[i].first - x->first) * C;
        for (int c = 0; c < C; c++) {
            int32_t sum = 0;
            for (int32_t k = 0; k < x->tap[i].count; k++)
                sum += w[k] * p[k * C + c];
            out[i * C + c] = to_byte(sum, shift);
        }
    }
}

#ifdef __SSE2__

/* Pixels of three values, but the last one: four bytes are written for each. */
static int64_t
along_rgb(const int16_t *line, const struct taps *x, int64_t n, uint8_t *out)
{
    int shift = x->bits + LINE_BITS;
    const __m128i half = _mm_set1_epi32(1 << shift >> 1);
    const __m128i count = _mm_cvtsi32_si128(shift);
    int64_t i = 0;
    for (; i + 1 < n; i++, out += 3) {
        const int16_t *w = x->weight + i * x->most;
        const int16_t *p = line + (x->tap[i].first - x->first) * 3;
        __m128i sum = half;
        for (int32_t k = 0; k < x->tap[i].count; k += 2, p += 6) {
            __m128i a = _mm_loadl_epi64((const __m128i *)p);
            __m128i b = _mm_loadl_epi64((const __m128i *)(p + 3));
            sum = _mm_add_epi32(sum,
                                _mm_madd_epi16(_mm_unpacklo_epi16(a, b), pair(w + k)));
        }
        sum = _mm_sra_epi32(sum, count);
        sum = _mm_packs_epi32(sum, sum);
        int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
        memcpy(out, &four, sizeof four);
    }
    return i;
}

#else

static int64_t
along_rgb(const int16_t *line, const struct taps *x, int64_t n, uint8_t *out)
{
    (void)line;
    (void)x;
    (void)n;
    (void)out;
    return 0;
}

#endif

/* ---- nearest ---- */

static int64_t
nearest(const struct eti_axis *a, int64_t i)
{
    return clamp(floor(middle(a, i)), a->lo, a->hi - 1);
}

static et_status
pick(struct eti_resampler *r, const struct et_pixels *in, const struct eti_axis *y,
     const struct eti_axis *x, uint8_t *out, int64_t stride, struct et_error *why)
{
    ET_TRY(eti_scratch_need(&r->taps[0], (size_t)x->n * sizeof(int64_t), why));
    int64_t *at = r->taps[0].data;
    for (int64_t j = 0; j < x->n; j++)
        at[j] = nearest(x, j) * in->stride_x;
    for (int64_t i = 0; i < y->n; i++) {
        const uint8_t *row = in->data + nearest(y, i) * in->stride_y;
        uint8_t *to = out + i * stride;
        for (int64_t j = 0; j < x->n; j++)
            for (int c = 0; c < in->C; c++)
                *to++ = row[at[j] + c * in->stride_c];
    }
    return ET_OK;
}

/* ---- all of it ---- */

/* The columns and rows that are looked at, as packed rows: P itself where it has such.
 */
static et_status
pack(struct eti_resampler *r, struct et_pixels *p, const struct taps *y,
     const struct taps *x, struct et_error *why)
{
    *p = eti_pixels_part(p, y->first, x->first, y->last - y->first, x->last - x->first);
    if (eti_pixels_has_packed_rows(p))
        return ET_OK;
    ET_TRY(eti_scratch_need(&r->packed, (size_t)(p->H * p->W * p->C), why));
    eti_pixels_copy(p, r->packed.data);
    struct et_canvas c = {r->packed.data, p->C, p->H, p->W, NULL};
    *p = eti_canvas_view(&c);
    return ET_OK;
}

/* Value I of axis Y, of N values a row, as a line. */
static void
make_line(const struct et_pixels *p, const struct taps *y, int64_t i, int64_t n,
          int16_t *line)
{
    const int16_t *w = y->weight + i * y->most;
    int shift = y->bits - LINE_BITS;
    struct tap t = y->tap[i];
    t.first -= (int32_t)y->first;
    int64_t done = down_eights(p->data, p->stride_y, &t, w, shift, n, line);
    down_rest(p->data, p->stride_y, &t, w, shift, done, n, line);
}

static void
make_row(const int16_t *line, const struct taps *x, int C, int64_t n, uint8_t *out)
{
    int64_t done = C == 3 ? along_rgb(line, x, n, out) : 0;
    along(line, x, C, done, n, out);
}

/* Down, then along. */
static et_status
down_first(struct eti_resampler *r, const struct et_pixels *p, const struct taps *y,
           const struct taps *x, int64_t h, int64_t w, uint8_t *out, int64_t stride,
           struct et_error *why)
{
    int64_t n = p->W * p->C;
    ET_TRY(eti_scratch_need(&r->line, (size_t)(n + LINE_SPARE) * sizeof(int16_t), why));
    int16_t *line = r->line.data;
    memset(line + n, 0, LINE_SPARE * sizeof *line);
    for (int64_t i = 0; i < h; i++, out += stride) {
        make_line(p, y, i, n, line);
        make_row(line, x, p->C, w, out);
    }
    return ET_OK;
}

/* Along, then down. Bicubic weights overshoot, and what is cut off at 0 and 255 in
 * between depends on which comes first: so it does as Pillow. */
static et_status
along_first(struct eti_resampler *r, const struct et_pixels *p, const struct taps *y,
            const struct taps *x, int64_t h, int64_t w, uint8_t *out, int64_t stride,
            struct et_error *why)
{
    int64_t n = p->W * p->C, m = w * p->C, most = n > m ? n : m;
    ET_TRY(
        eti_scratch_need(&r->line, (size_t)(most + LINE_SPARE) * sizeof(int16_t), why));
    ET_TRY(eti_scratch_need(&r->narrow, (size_t)(p->H * m), why));
    int16_t *line = r->line.data;
    uint8_t *row = r->narrow.data;
    memset(line + n, 0, LINE_SPARE * sizeof *line);
    for (int64_t i = 0; i < p->H; i++, row += m) {
        for (int64_t j = 0; j < n; j++)
            line[j] = (int16_t)(p->data[i * p->stride_y + j] << LINE_BITS);
        make_row(line, x, p->C, w, row);
    }
    struct et_pixels narrow = {r->narrow.data, p->C, p->H, w, 1, m, p->C};
    for (int64_t i = 0; i < h; i++, out += stride) {
        make_line(&narrow, y, i, m, line);
        for (int64_t j = 0; j < m; j++)
            out[j] = to_byte(line[j], LINE_BITS);
    }
    return ET_OK;
}

et_status
eti_resample(struct eti_resampler *r, const struct et_pixels *in,
             const struct eti_axis *y, const struct eti_axis *x, enum et_filter filter,
             uint8_t *out, int64_t stride, struct et_error *why)
{
    struct et_pixels p = *in;
    struct taps down, over;
    if (filter == ET_NEAREST)
        return pick(r, in, y, x, out, stride, why);
    ET_TRY(find_taps(y, &filters[filter], &r->taps[0], &r->weights[0], &down, why));
    ET_TRY(find_taps(x, &filters[filter], &r->taps[1], &r->weights[1], &over, why));
    ET_TRY(pack(r, &p, &down, &over, why));
    return (filter == ET_BICUBIC ? along_first : down_first)(r, &p, &down, &over, y->n,
                                                             x->n, out, stride, why);
}

void
eti_resampler_free(struct eti_resampler *r)
{
    for (int i = 0; i < 2; i++) {
        eti_scratch_free(&r->taps[i]);
        eti_scratch_free(&r->weights[i]);
    }
    eti_scratch_free(&r->packed);
    eti_scratch_free(&r->narrow);
    eti_scratch_free(&r->line);
}
