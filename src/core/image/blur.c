/* SPDX-License-Identifier: Apache-2.0 */
/* blur.c: what makes a pixel of its neighbours. See blur.h.
 *
 * Source: torchvision/transforms/v2/functional/_misc.py and _color.py, for bytes. The
 * Gaussian is done down, then along, in float: as exact as the square of weights. */
#include "core/image/blur.h"

#include <math.h>
#include <string.h>

static void
gaussian(int size, double sigma, float *w)
{
    double sum = 0, exact[ETI_BLUR_MOST];
    for (int k = 0; k < size; k++) {
        double at = k - (size - 1) / 2.0;
        exact[k] = exp(-at * at / (2 * sigma * sigma));
        sum += exact[k];
    }
    for (int k = 0; k < size; k++)
        w[k] = (float)(exact[k] / sum);
}

/* The row or column that is seen at AT: mirrored at the first and last of N. */
static int64_t
mirror(int64_t at, int64_t n)
{
    at = at < 0 ? -at : at;
    return at >= n ? 2 * (n - 1) - at : at;
}

static uint8_t
rounded(float v)
{
    v = rintf(v);
    return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

/* Row Y blurred down, into LINE, and mirrored to PAD pixels on each side. */
static void
blur_down(const struct et_canvas *c, const uint8_t *from, int64_t y, int size,
          const float *w, float *line)
{
    int64_t pad = size / 2, n = c->W * c->C;
    float *inner = line + pad * c->C;
    memset(inner, 0, (size_t)n * sizeof *inner);
    for (int k = 0; k < size; k++) {
        const uint8_t *row = from + mirror(y + k - pad, c->H) * n;
        for (int64_t i = 0; i < n; i++)
            inner[i] += w[k] * row[i];
    }
    for (int64_t x = 1; x <= pad; x++)
        for (int k = 0; k < c->C; k++) {
            inner[-x * c->C + k] = inner[mirror(-x, c->W) * c->C + k];
            inner[(c->W - 1 + x) * c->C + k] =
                inner[mirror(c->W - 1 + x, c->W) * c->C + k];
        }
}

/* SUM: to work in. */
static void
blur_along(const struct et_canvas *c, const float *line, int size, const float *w,
           float *sum, uint8_t *out)
{
    int64_t n = c->W * c->C;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int k = 0; k < size; k++)
        for (int64_t i = 0; i < n; i++)
            sum[i] += w[k] * line[k * c->C + i];
    for (int64_t i = 0; i < n; i++)
        out[i] = rounded(sum[i]);
}

et_status
eti_gaussian_blur(struct et_canvas *c, int size, double sigma, struct et_error *why)
{
    float w[ETI_BLUR_MOST];
    size_t row = (size_t)(c->W * c->C), bytes = (size_t)c->H * row;
    size_t line = row + (size_t)((size - 1) * c->C);
    ET_TRY(eti_scratch_need(c->room, bytes + 8 + (line + row) * sizeof(float), why));
    uint8_t *copy = c->room->data;
    float *sum = (float *)(copy + (bytes + 7) / 8 * 8);
    gaussian(size, sigma, w);
    memcpy(copy, c->data, bytes);
    for (int64_t y = 0; y < c->H; y++) {
        blur_down(c, copy, y, size, w, sum + row);
        blur_along(c, sum + row, size, w, sum, c->data + (size_t)y * row);
    }
    return ET_OK;
}

/* Eight neighbours and five times itself, over 13, as a whole number. */
static int
smooth(const uint8_t *p, int64_t row, int C)
{
    int sum = 4 * p[0];
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            sum += p[dy * row + dx * C];
    return (2 * sum + 13) / 26; /* rounded; 13 is odd, so there is no half */
}

et_status
eti_sharpness(struct et_canvas *c, double factor, struct et_error *why)
{
    int64_t row = c->W * c->C;
    size_t bytes = (size_t)(c->H * row);
    if (c->H <= 2 || c->W <= 2)
        return ET_OK;
    ET_TRY(eti_scratch_need(c->room, bytes, why));
    uint8_t *copy = c->room->data;
    memcpy(copy, c->data, bytes);
    float other = (float)(1 - factor);
    for (int64_t y = 1; y < c->H - 1; y++)
        for (int64_t i = c->C; i < row - c->C; i++) {
            const uint8_t *p = copy + y * row + i;
            float v = (float)*p + (float)(smooth(p, row, c->C) - *p) * other;
            c->data[y * row + i] = v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
        }
    return ET_OK;
}
