/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h: what et_image_augment shows of a raw image, and what it makes of a pixel:
 * for every device but ref, which has formulas of its own.
 *
 * These are the formulas of core/image (resample.c, affine.c, levels.c), step by step:
 * whole numbers, but for the weights of a filter, which are rounded to such from
 * doubles, and for colours, which are floats cut off to bytes. Each product and each
 * sum is rounded by itself (ETK_MUL and the others; no a * b + c in one instruction),
 * so that the bytes are the host's. Whoever includes this defines
 *
 *   ETK_PICTURE        what functions begin with: static inline
 *   ETK_MUL, ETK_ADD   of two doubles
 *   ETK_MULF, ETK_ADDF of two floats
 *   ETK_ONE_BY_ONE     before loops that are not to be unrolled; it may be empty
 *
 * A row may hold anything: places are kept within the image, numbers that are none or
 * too large become 0. */
#ifndef ETUDE_KERNELS_PICTURE_H
#define ETUDE_KERNELS_PICTURE_H

#include <math.h>
#include <stdint.h>

#include "etude/attr.h"

enum {
    ETK_PICTURE_CHANNELS = 4, /* at most */
    ETK_TAP_KEPT = 8,         /* weights of a tap that are kept */
    ETK_LINE_BITS = 6,        /* behind the point, between the two axes */
    ETK_LINE_MOST = 255 << ETK_LINE_BITS,
    ETK_PLACE_BITS = 32, /* of places in a turned picture */
    ETK_WEIGHT_BITS = 10,
    ETK_NEAREST = 0, /* enum et_filter */
    ETK_BILINEAR = 1,
    ETK_BICUBIC = 2
};

/* A raw image: its byte (c, y, x) is data[c stride_c + y stride_y + x stride_x]. */
struct etk_raw {
    const uint8_t *data;
    int64_t stride_c, stride_y, stride_x;
    int C, H, W;
};

/* One axis, ready: see struct et_shown_axis. */
struct etk_line {
    double origin, step, support, scale;
    int lo, hi, from, to;
    int bits; /* of weights */
    int filter;
};

/* What value I of an axis is made of: COUNT values of the image, and their weights. */
struct etk_tap {
    int first, count;
    double at,
        sum; /* where it lies; what weights are divided by; 0: one counts alone */
    int kept[ETK_TAP_KEPT];
};

/* ---- numbers ---- */

ETK_PICTURE double
etk_sane(double v)
{
    return fabs(v) <= 1073741824.0 ? v : 0;
}

ETK_PICTURE int
etk_clamp(double v, int lo, int hi)
{
    return !(v >= (double)lo) ? lo : v > (double)hi ? hi : (int)v;
}

ETK_PICTURE int
etk_bound(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

ETK_PICTURE uint8_t
etk_cut(float v)
{
    return (uint8_t)(!(v > 0) ? 0 : v >= 255 ? 255 : (int)v);
}

/* ---- along an axis ---- */

/* FILTER: 0 to 2. SIZE: of the image, along it. */
ETK_PICTURE void
etk_line_of(const struct et_shown_axis *a, int filter, int size, struct etk_line *out)
{
    double step = etk_sane(a->step), wide = fabs(step) < 1 ? 1 : fabs(step);
    double support = filter == ETK_BICUBIC ? 2 : 1;
    out->origin = etk_sane(a->origin);
    out->step = step;
    out->support = ETK_MUL(support, wide);
    out->scale = support / out->support;
    out->lo = etk_bound(a->lo, 0, size - 1);
    out->hi = etk_bound(a->hi, out->lo + 1, size);
    out->from = a->from;
    out->to = a->to;
    out->bits = fabs(step) >= 8 ? 16 : fabs(step) >= 4 ? 15 : 14;
    out->filter = filter;
}

ETK_PICTURE double
etk_middle(const struct etk_line *a, int i)
{
    double from = (double)i - (double)a->from;
    return ETK_ADD(a->origin, ETK_MUL(ETK_ADD(from, 0.5), a->step));
}

ETK_PICTURE int
etk_nearest(const struct etk_line *a, int i)
{
    return etk_clamp(floor(etk_middle(a, i)), a->lo, a->hi - 1);
}

/* Of the filter, at X. */
ETK_PICTURE double
etk_filter_at(int filter, double x)
{
    x = fabs(x);
    if (filter != ETK_BICUBIC)
        return x < 1 ? ETK_ADD(1, -x) : 0;
    if (x < 1)
        return ETK_ADD(ETK_MUL(ETK_MUL(ETK_ADD(ETK_MUL(1.5, x), -2.5), x), x), 1);
    if (x < 2)
        return ETK_MUL(ETK_ADD(ETK_MUL(ETK_ADD(ETK_MUL(ETK_ADD(x, -5), x), 8), x), -4),
                       -0.5);
    return 0;
}

/* Not yet divided by the sum of all. */
ETK_PICTURE double
etk_weight(const struct etk_line *a, const struct etk_tap *t, int k)
{
    double from = ETK_ADD(ETK_ADD((double)(t->first + k), -t->at), 0.5);
    return etk_filter_at(a->filter, ETK_MUL(from, a->scale));
}

/* As a whole number. */
ETK_PICTURE int
etk_rounded_weight(const struct etk_line *a, const struct etk_tap *t, int k)
{
    double w;
    if (t->sum != 0)
        w = etk_weight(a, t, k) / t->sum;
    else
        w = k == (t->at < (double)t->first ? 0 : t->count - 1);
    return (int16_t)(int)rint(ETK_MUL(w, (double)(1 << a->bits)));
}

ETK_PICTURE void
etk_find_tap(const struct etk_line *a, int i, struct etk_tap *t)
{
    double sum = 0;
    t->at = etk_middle(a, i);
    t->first =
        etk_clamp(floor(ETK_ADD(ETK_ADD(t->at, -a->support), 0.5)), a->lo, a->hi - 1);
    t->count = etk_clamp(floor(ETK_ADD(ETK_ADD(t->at, a->support), 0.5)), t->first + 1,
                         a->hi) -
               t->first;
    ETK_ONE_BY_ONE
    for (int k = 0; k < t->count; k++)
        sum = ETK_ADD(sum, etk_weight(a, t, k));
    t->sum = fabs(sum) < 0.1 ? 0 : sum; /* what it is to see is out of sight */
    ETK_ONE_BY_ONE
    for (int k = 0; k < t->count && k < ETK_TAP_KEPT; k++)
        t->kept[k] = etk_rounded_weight(a, t, k);
}

ETK_PICTURE int
etk_tap_weight(const struct etk_line *a, const struct etk_tap *t, int k)
{
    return k < ETK_TAP_KEPT ? t->kept[k] : etk_rounded_weight(a, t, k);
}

ETK_PICTURE int
etk_shifted(int sum, int shift, int most)
{
    return etk_bound((sum + (1 << shift >> 1)) >> shift, 0, most);
}

/* Down, then along: between the two 6 bits behind the point. */
ETK_PICTURE uint8_t
etk_down_first(const struct etk_raw *r, const struct etk_line *y,
               const struct etk_tap *ty, const struct etk_line *x,
               const struct etk_tap *tx, int c)
{
    const uint8_t *p = r->data + c * r->stride_c;
    int sum = 0;
    ETK_ONE_BY_ONE
    for (int k = 0; k < tx->count; k++) {
        const uint8_t *column = p + (tx->first + k) * r->stride_x;
        int line = 0;
        ETK_ONE_BY_ONE
        for (int m = 0; m < ty->count; m++)
            line += etk_tap_weight(y, ty, m) * column[(ty->first + m) * r->stride_y];
        sum += etk_tap_weight(x, tx, k) *
               etk_shifted(line, y->bits - ETK_LINE_BITS, ETK_LINE_MOST);
    }
    return (uint8_t)etk_shifted(sum, x->bits + ETK_LINE_BITS, 255);
}

/* Along, then down: a byte in between, as Pillow has it, for what overshoots. */
ETK_PICTURE uint8_t
etk_along_first(const struct etk_raw *r, const struct etk_line *y,
                const struct etk_tap *ty, const struct etk_line *x,
                const struct etk_tap *tx, int c)
{
    const uint8_t *p = r->data + c * r->stride_c;
    int sum = 0;
    ETK_ONE_BY_ONE
    for (int m = 0; m < ty->count; m++) {
        const uint8_t *row = p + (ty->first + m) * r->stride_y;
        int line = 0;
        ETK_ONE_BY_ONE
        for (int k = 0; k < tx->count; k++)
            line += etk_tap_weight(x, tx, k) *
                    (row[(tx->first + k) * r->stride_x] << ETK_LINE_BITS);
        sum +=
            etk_tap_weight(y, ty, m) * etk_shifted(line, x->bits + ETK_LINE_BITS, 255);
    }
    return (uint8_t)etk_shifted(
        etk_shifted(sum, y->bits - ETK_LINE_BITS, ETK_LINE_MOST), ETK_LINE_BITS, 255);
}

/* Pixel (I, J) of what the axes show, of the taps that make it. */
ETK_PICTURE void
etk_resampled(const struct etk_raw *r, const struct etk_line *y,
              const struct etk_tap *ty, const struct etk_line *x,
              const struct etk_tap *tx, uint8_t *out)
{
    for (int c = 0; c < r->C; c++)
        out[c] = y->filter == ETK_BICUBIC ? etk_along_first(r, y, ty, x, tx, c)
                                          : etk_down_first(r, y, ty, x, tx, c);
}

ETK_PICTURE int
etk_is_seen(const struct etk_line *a, int i)
{
    return i >= a->from && i < a->to;
}

ETK_PICTURE void
etk_pixel_of_axes(const struct etk_raw *r, const struct etk_line *y,
                  const struct etk_line *x, int i, int j, uint8_t *out)
{
    struct etk_tap ty, tx;
    for (int c = 0; c < r->C; c++)
        out[c] = 0;
    if (!etk_is_seen(y, i) || !etk_is_seen(x, j))
        return;
    if (y->filter == ETK_NEAREST) {
        const uint8_t *p =
            r->data + etk_nearest(y, i) * r->stride_y + etk_nearest(x, j) * r->stride_x;
        for (int c = 0; c < r->C; c++)
            out[c] = p[c * r->stride_c];
        return;
    }
    etk_find_tap(y, i, &ty);
    etk_find_tap(x, j, &tx);
    etk_resampled(r, y, &ty, x, &tx, out);
}

/* ---- turned ---- */

ETK_PICTURE int64_t
etk_place(double v)
{
    const double most = 536870912.0;
    v = !(v >= -most) ? -most : v > most ? most : v;
    return (int64_t)rint(ETK_MUL(v, 4294967296.0));
}

/* Where column J of row I lies: M are three numbers of a turn. */
ETK_PICTURE int64_t
etk_turned_place(const double *m, int i, int j)
{
    double a = etk_sane(m[0]), b = etk_sane(m[1]), c = etk_sane(m[2]);
    double begin =
        ETK_ADD(ETK_ADD(ETK_MUL(a, 0.5), ETK_MUL(b, ETK_ADD((double)i, 0.5))), c);
    return (int64_t)((uint64_t)etk_place(begin) + (uint64_t)etk_place(a) * (uint64_t)j);
}

/* Pixel (Y, X) of what is turned, black outside. */
ETK_PICTURE void
etk_pixel_before(const struct etk_raw *r, const struct et_shown *v,
                 const struct etk_line *down, const struct etk_line *along, int64_t y,
                 int64_t x, uint8_t *out)
{
    if (y >= 0 && y < v->h && x >= 0 && x < v->w) {
        etk_pixel_of_axes(r, down, along, (int)y, (int)x, out);
        return;
    }
    for (int c = 0; c < r->C; c++)
        out[c] = 0;
}

ETK_PICTURE void
etk_pixel_between(const struct etk_raw *r, const struct et_shown *v,
                  const struct etk_line *down, const struct etk_line *along, int64_t y,
                  int64_t x, uint8_t *out)
{
    const int64_t half = (int64_t)1 << (ETK_PLACE_BITS - 1);
    const int one = 1 << ETK_WEIGHT_BITS;
    y = (int64_t)((uint64_t)y - (uint64_t)half);
    x = (int64_t)((uint64_t)x - (uint64_t)half);
    int fy = (int)(y >> (ETK_PLACE_BITS - ETK_WEIGHT_BITS) & (one - 1));
    int fx = (int)(x >> (ETK_PLACE_BITS - ETK_WEIGHT_BITS) & (one - 1));
    uint8_t p[4][ETK_PICTURE_CHANNELS];
    ETK_ONE_BY_ONE
    for (int k = 0; k < 4; k++)
        etk_pixel_before(r, v, down, along, (y >> ETK_PLACE_BITS) + k / 2,
                         (x >> ETK_PLACE_BITS) + k % 2, p[k]);
    for (int c = 0; c < r->C; c++) {
        int top = (p[0][c] << ETK_WEIGHT_BITS) + fx * (p[1][c] - p[0][c]);
        int low = (p[2][c] << ETK_WEIGHT_BITS) + fx * (p[3][c] - p[2][c]);
        int sum = (top << ETK_WEIGHT_BITS) + fy * (low - top);
        out[c] = (uint8_t)((sum + (1 << (2 * ETK_WEIGHT_BITS - 1))) >>
                           (2 * ETK_WEIGHT_BITS));
    }
}

/* ---- what is shown ---- */

/* What a row shows, ready. */
struct etk_show {
    const struct et_shown *row;
    struct etk_line y, x;
    int turned;
};

ETK_PICTURE void
etk_show_of(const struct et_shown *row, const struct etk_raw *r, struct etk_show *out)
{
    int filter = row->filter == ETK_BILINEAR || row->filter == ETK_BICUBIC
                     ? row->filter
                     : ETK_NEAREST;
    out->row = row;
    out->turned = row->turned == 1 || row->turned == 2 ? row->turned : 0;
    etk_line_of(&row->y, filter, r->H, &out->y);
    etk_line_of(&row->x, filter, r->W, &out->x);
}

/* Pixel (I, J), before it is changed. */
ETK_PICTURE void
etk_shown_pixel(const struct etk_raw *r, const struct etk_show *s, int i, int j,
                uint8_t *out)
{
    const struct et_shown *v = s->row;
    if (!s->turned) {
        etk_pixel_of_axes(r, &s->y, &s->x, i, j, out);
        return;
    }
    for (int c = 0; c < r->C; c++)
        out[c] = 0;
    if (i < v->edge[0] || i >= v->edge[1] || j < v->edge[2] || j >= v->edge[3])
        return;
    int64_t x = etk_turned_place(v->turn, i, j);
    int64_t y = etk_turned_place(v->turn + 3, i, j);
    if (s->turned == 1)
        etk_pixel_before(r, v, &s->y, &s->x, y >> ETK_PLACE_BITS, x >> ETK_PLACE_BITS,
                         out);
    else
        etk_pixel_between(r, v, &s->y, &s->x, y, x, out);
}

/* ---- changes ---- */

ETK_PICTURE uint8_t
etk_grey(const uint8_t *p)
{
    return (uint8_t)(int)ETK_ADDF(
        ETK_ADDF(ETK_MULF(0.2989f, p[0]), ETK_MULF(0.587f, p[1])),
        ETK_MULF(0.114f, p[2]));
}

/* Does a change ask how often each byte occurs? */
ETK_PICTURE int
etk_change_counts(int kind)
{
    return kind == ET_CHANGE_CONTRAST || kind == ET_CHANGE_AUTOCONTRAST ||
           kind == ET_CHANGE_EQUALIZE;
}

/* Is it a table of 256 bytes for each channel? */
ETK_PICTURE int
etk_change_is_table(int kind)
{
    return etk_change_counts(kind) || kind == ET_CHANGE_BLEND ||
           kind == ET_CHANGE_INVERT || kind == ET_CHANGE_POSTERIZE ||
           kind == ET_CHANGE_SOLARIZE;
}

/* Which byte of channel C a change counts: for the contrast the grey, as channel 0. */
ETK_PICTURE int
etk_counted(int kind, int C, int c, const uint8_t *p)
{
    if (kind != ET_CHANGE_CONTRAST)
        return p[c];
    return c ? -1 : C == 3 ? etk_grey(p) : p[0];
}

ETK_PICTURE uint8_t
etk_contrasted(const struct et_pixel_change *t, const uint32_t *times, int n, int v)
{
    int64_t sum = 0;
    for (int i = 0; i < 256; i++)
        sum += (int64_t)i * times[i];
    float mean = (float)((double)sum / (double)n);
    return etk_cut(ETK_ADDF(ETK_MULF((float)v, t->own), ETK_MULF(mean, t->other)));
}

ETK_PICTURE uint8_t
etk_stretched(const uint32_t *times, int v)
{
    int low = 0, high = 255;
    while (low < 255 && !times[low])
        low++;
    while (high > low && !times[high])
        high--;
    float scale = high > low ? ETK_MULF((float)(high - low), 1.0f / 255) : 1;
    return etk_cut((float)(v - (high > low ? low : 0)) / scale);
}

ETK_PICTURE uint8_t
etk_evened(const uint32_t *times, int n, int v)
{
    int largest = 255;
    int64_t below = 0;
    while (largest > 0 && !times[largest])
        largest--;
    int64_t step = ((int64_t)n - times[largest]) / 255;
    for (int i = 0; i < v; i++)
        below += times[i];
    int64_t even = step ? (below + step / 2) / step : v;
    return (uint8_t)(even > 255 ? 255 : even);
}

/* What byte V becomes. TIMES: how often each occurs in its channel (of the contrast:
 * channel 0), of N pixels. */
ETK_PICTURE uint8_t
etk_changed_byte(const struct et_pixel_change *t, const uint32_t *times, int n, int v)
{
    int bits = etk_bound(t->value, 0, 8);
    switch (t->kind) {
    case ET_CHANGE_BLEND:
        return etk_cut(ETK_ADDF(ETK_MULF((float)v, t->own), t->other));
    case ET_CHANGE_CONTRAST:
        return etk_contrasted(t, times, n, v);
    case ET_CHANGE_INVERT:
        return (uint8_t)(255 - v);
    case ET_CHANGE_POSTERIZE:
        return (uint8_t)(v & ((1 << bits) - 1) << (8 - bits));
    case ET_CHANGE_SOLARIZE:
        return (uint8_t)(v >= t->value ? 255 - v : v);
    case ET_CHANGE_AUTOCONTRAST:
        return etk_stretched(times, v);
    case ET_CHANGE_EQUALIZE:
        return etk_evened(times, n, v);
    default:
        return (uint8_t)v;
    }
}

ETK_PICTURE void
etk_saturate(const struct et_pixel_change *t, uint8_t *p)
{
    float grey = ETK_MULF(etk_grey(p), t->other);
    for (int k = 0; k < 3; k++)
        p[k] = etk_cut(ETK_ADDF(ETK_MULF(p[k], t->own), grey));
}

/* Hue in [0, 6); 0 of a grey. */
ETK_PICTURE float
etk_hue_of(const uint8_t *p, int low, int high)
{
    if (high == low)
        return 0;
    float range = (float)(high - low);
    float r = (float)(high - p[0]) / range, g = (float)(high - p[1]) / range;
    float b = (float)(high - p[2]) / range;
    float h = p[0] == high   ? ETK_ADDF(b, -g)
              : p[1] == high ? ETK_ADDF(ETK_ADDF(2, r), -b)
                             : ETK_ADDF(ETK_ADDF(4, g), -r);
    return h < 0 ? ETK_ADDF(h, 6) : h;
}

ETK_PICTURE uint8_t
etk_from_unit(float v)
{
    return etk_cut(ETK_MULF(!(v > 0) ? 0 : v > 1 ? 1 : v, 255.999f));
}

/* Turns the hue by T->own of six parts of a turn. */
ETK_PICTURE void
etk_turn_hue(const struct et_pixel_change *t, uint8_t *p)
{
    const uint8_t order[6][3] = {{0, 2, 3}, {1, 0, 3}, {3, 0, 2},
                                 {3, 1, 0}, {2, 3, 0}, {0, 3, 1}};
    int low = p[0] < p[1] ? p[0] : p[1], high = p[0] > p[1] ? p[0] : p[1];
    low = p[2] < low ? p[2] : low;
    high = p[2] > high ? p[2] : high;
    float shift = fabsf(t->own) <= 6 ? t->own : 0;
    float h = ETK_ADDF(etk_hue_of(p, low, high), shift);
    h = ETK_ADDF(h, -ETK_MULF(6, floorf(h / 6)));
    float s = high ? (float)(high - low) / (float)high : 0, v = (float)high / 255;
    int sector = (int)h;
    float f = ETK_ADDF(h, -(float)sector), sf = ETK_MULF(s, f);
    const uint8_t of[4] = {etk_from_unit(v),
                           etk_from_unit(ETK_MULF(ETK_ADDF(1, -sf), v)),
                           etk_from_unit(ETK_MULF(ETK_ADDF(sf, ETK_ADDF(1, -s)), v)),
                           etk_from_unit(ETK_MULF(ETK_ADDF(1, -s), v))};
    for (int k = 0; k < 3; k++)
        p[k] = of[order[sector % 6][k]];
}

/* Does a change that is no table to pixel (I, J) of C channels. */
ETK_PICTURE void
etk_change_pixel(const struct et_pixel_change *t, int C, int i, int j, uint8_t *p)
{
    if (t->kind == ET_CHANGE_ERASE && i >= t->y && (int64_t)i < (int64_t)t->y + t->h &&
        j >= t->x && (int64_t)j < (int64_t)t->x + t->w)
        for (int c = 0; c < C; c++)
            p[c] = (uint8_t)t->value;
    if (C != 3)
        return;
    if (t->kind == ET_CHANGE_SATURATION)
        etk_saturate(t, p);
    else if (t->kind == ET_CHANGE_HUE)
        etk_turn_hue(t, p);
    else if (t->kind == ET_CHANGE_GREY)
        p[0] = p[1] = p[2] = etk_grey(p);
}

#endif
