/* SPDX-License-Identifier: Apache-2.0 */
/* levels.c: what changes pixels one by one. See levels.h.
 *
 * Source: torchvision/transforms/v2/functional/_color.py, for bytes. Where a value
 * depends on that byte alone, a table of 256 has it. */
#include "core/image/levels.h"

#include <math.h>
#include <string.h>

typedef uint8_t table[256];

static int64_t
count(const struct et_canvas *c)
{
    return c->H * c->W;
}

static uint8_t
cut(float v)
{
    return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

/* ---- by table ---- */

static void
look_up(struct et_canvas *c, const table *of)
{
    int64_t n = count(c);
    uint8_t *p = c->data;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < c->C; k++, p++)
            *p = of[k][*p];
}

/* One table for all channels. */
static void
look_up_same(struct et_canvas *c, const table of)
{
    int64_t n = count(c) * c->C;
    for (int64_t i = 0; i < n; i++)
        c->data[i] = of[c->data[i]];
}

/* Each byte times OWN, plus OTHER. */
static void
blend(struct et_canvas *c, float own, float other)
{
    table t;
    for (int i = 0; i < 256; i++)
        t[i] = cut((float)i * own + other);
    look_up_same(c, t);
}

void
eti_brightness(struct et_canvas *c, double factor)
{
    blend(c, (float)factor, 0);
}

void
eti_invert(struct et_canvas *c)
{
    table t;
    for (int i = 0; i < 256; i++)
        t[i] = (uint8_t)(255 - i);
    look_up_same(c, t);
}

void
eti_posterize(struct et_canvas *c, int bits)
{
    table t;
    for (int i = 0; i < 256; i++)
        t[i] = (uint8_t)(bits >= 8 ? i : i & ((1 << bits) - 1) << (8 - bits));
    look_up_same(c, t);
}

void
eti_solarize(struct et_canvas *c, double threshold)
{
    table t;
    for (int i = 0; i < 256; i++)
        t[i] = (uint8_t)(i >= threshold ? 255 - i : i);
    look_up_same(c, t);
}

/* How often each value occurs, by channel. */
static void
count_values(const struct et_canvas *c, int64_t of[][256])
{
    int64_t n = count(c);
    const uint8_t *p = c->data;
    memset(of, 0, (size_t)c->C * sizeof *of);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < c->C; k++)
            of[k][*p++]++;
}

static void
stretch(const int64_t *times, table t)
{
    int low = 0, high = 255;
    while (low < 255 && !times[low])
        low++;
    while (high > low && !times[high])
        high--;
    float scale = high > low ? (float)(high - low) * (1.0f / 255) : 1;
    for (int i = 0; i < 256; i++)
        t[i] = cut((float)(i - (high > low ? low : 0)) / scale);
}

void
eti_autocontrast(struct et_canvas *c)
{
    int64_t times[4][256];
    table t[4];
    count_values(c, times);
    for (int k = 0; k < c->C; k++)
        stretch(times[k], t[k]);
    look_up(c, (const table *)t);
}

/* Values below a value, in steps of which there are 255 up to the largest one. */
static void
even(const int64_t *times, int64_t n, table t)
{
    int largest = 255;
    int64_t below = 0;
    while (largest > 0 && !times[largest])
        largest--;
    int64_t step = (n - times[largest]) / 255;
    for (int i = 0; i < 256; i++) {
        int64_t v = step ? (below + step / 2) / step : i;
        t[i] = (uint8_t)(v > 255 ? 255 : v);
        below += times[i];
    }
}

void
eti_equalize(struct et_canvas *c)
{
    int64_t times[4][256];
    table t[4];
    count_values(c, times);
    for (int k = 0; k < c->C; k++)
        even(times[k], count(c), t[k]);
    look_up(c, (const table *)t);
}

/* ---- of three channels ---- */

/* Cut off, as a byte of torchvision's grey is. */
static uint8_t
grey_of(const uint8_t *p)
{
    return (uint8_t)(0.2989f * p[0] + 0.587f * p[1] + 0.114f * p[2]);
}

/* The grey of all pixels is on average m: each byte times OWN, plus m OTHER. */
static void
contrast(struct et_canvas *c, float own, float other)
{
    int64_t n = count(c), sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += c->C == 3 ? grey_of(c->data + 3 * i) : c->data[i];
    blend(c, own, (float)((double)sum / (double)n) * other);
}

void
eti_contrast(struct et_canvas *c, double factor)
{
    contrast(c, (float)factor, (float)(1 - factor));
}

static void
saturation(struct et_canvas *c, float own, float other)
{
    int64_t n = count(c);
    if (c->C != 3)
        return;
    for (uint8_t *p = c->data; n > 0; n--, p += 3) {
        float grey = grey_of(p) * other;
        for (int k = 0; k < 3; k++)
            p[k] = cut(p[k] * own + grey);
    }
}

void
eti_saturation(struct et_canvas *c, double factor)
{
    saturation(c, (float)factor, (float)(1 - factor));
}

void
eti_grey(struct et_canvas *c)
{
    int64_t n = count(c);
    if (c->C != 3)
        return;
    for (uint8_t *p = c->data; n > 0; n--, p += 3)
        memset(p, grey_of(p), 3);
}

/* Hue in [0, 6), counted from red over green to blue; 0 of a grey. */
static float
hue_of(const uint8_t *p, int low, int high)
{
    if (high == low)
        return 0;
    float range = (float)(high - low);
    float r = (float)(high - p[0]) / range, g = (float)(high - p[1]) / range;
    float b = (float)(high - p[2]) / range;
    float h = p[0] == high ? b - g : p[1] == high ? 2 + r - b : 4 + g - r;
    return h < 0 ? h + 6 : h;
}

/* A colour in [0, 1] as a byte, as torchvision's to_dtype makes it. */
static uint8_t
from_unit(float v)
{
    return cut((v < 0 ? 0 : v > 1 ? 1 : v) * 255.999f);
}

/* The colour of hue H, in [0, 6), saturation S and value V. */
static void
set_hsv(float h, float s, float v, uint8_t *p)
{
    static const uint8_t order[6][3] = {{0, 2, 3}, {1, 0, 3}, {3, 0, 2},
                                        {3, 1, 0}, {2, 3, 0}, {0, 3, 1}};
    int sector = (int)h;
    float f = h - (float)sector;
    sector %= 6;
    uint8_t of[4] = {from_unit(v), from_unit((1 - s * f) * v),
                     from_unit((s * f + (1 - s)) * v), from_unit((1 - s) * v)};
    for (int k = 0; k < 3; k++)
        p[k] = of[order[sector][k]];
}

/* By SIXTHS of a turn. */
static void
turn_hue(struct et_canvas *c, float sixths)
{
    int64_t n = count(c);
    if (c->C != 3)
        return;
    for (uint8_t *p = c->data; n > 0; n--, p += 3) {
        int low = p[0] < p[1] ? p[0] : p[1], high = p[0] > p[1] ? p[0] : p[1];
        low = p[2] < low ? p[2] : low;
        high = p[2] > high ? p[2] : high;
        float h = hue_of(p, low, high) + sixths;
        h -= 6 * floorf(h / 6);
        set_hsv(h, high ? (float)(high - low) / (float)high : 0, (float)high / 255, p);
    }
}

void
eti_hue(struct et_canvas *c, double shift)
{
    if (shift != 0)
        turn_hue(c, (float)(6 * shift));
}

/* ---- noise and holes ---- */

void
eti_noise(struct et_canvas *c, double mean, double sigma, struct et_rng *r)
{
    int64_t n = count(c) * c->C;
    for (int64_t i = 0; i < n; i++) {
        double v = c->data[i] + 255 * (mean + sigma * et_rng_normal(r)) + 0.5;
        c->data[i] = v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
    }
}

void
eti_erase(struct et_canvas *c, int64_t y, int64_t x, int64_t h, int64_t w,
          const uint8_t *values, struct et_rng *r)
{
    for (int64_t i = y; i < y + h; i++) {
        uint8_t *p = c->data + (i * c->W + x) * c->C;
        for (int64_t j = 0; j < w; j++)
            for (int k = 0; k < c->C; k++)
                *p++ = values ? values[k] : (uint8_t)et_rng_u32(r);
    }
}

/* ---- changes that are told ---- */

static void
erase(struct et_canvas *c, const struct et_pixel_change *t)
{
    uint8_t values[4];
    memset(values, t->value, sizeof values);
    eti_erase(c, t->y, t->x, t->h, t->w, values, NULL);
}

void
et_canvas_change(struct et_canvas *c, const struct et_pixel_change *t)
{
    if (!c || !t)
        return;
    switch ((enum et_change_kind)t->kind) {
    case ET_CHANGE_BLEND:
        blend(c, t->own, t->other);
        break;
    case ET_CHANGE_CONTRAST:
        contrast(c, t->own, t->other);
        break;
    case ET_CHANGE_SATURATION:
        saturation(c, t->own, t->other);
        break;
    case ET_CHANGE_HUE:
        turn_hue(c, t->own);
        break;
    case ET_CHANGE_GREY:
        eti_grey(c);
        break;
    case ET_CHANGE_INVERT:
        eti_invert(c);
        break;
    case ET_CHANGE_POSTERIZE:
        eti_posterize(c, t->value);
        break;
    case ET_CHANGE_SOLARIZE:
        eti_solarize(c, t->value);
        break;
    case ET_CHANGE_AUTOCONTRAST:
        eti_autocontrast(c);
        break;
    case ET_CHANGE_EQUALIZE:
        eti_equalize(c);
        break;
    case ET_CHANGE_ERASE:
        erase(c, t);
        break;
    case ET_CHANGES:
        break;
    }
}
