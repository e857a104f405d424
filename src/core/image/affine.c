/* SPDX-License-Identifier: Apache-2.0 */
/* affine.c: a picture turned, sheared, moved. See affine.h.
 *
 * Places are whole numbers of 2^-32 pixels, and weights of 2^-10: values are within 1
 * of those of real numbers, and the same whatever the compiler makes of the loops. */
#include "core/image/affine.h"

#include <math.h>

enum {
    PLACE_BITS = 32, /* of places, behind the point: they are added up along a row */
    WEIGHT_BITS = 10
};

struct eti_affine
eti_affine_after(const struct eti_affine *a, const struct eti_affine *b)
{
    const double *p = a->m, *q = b->m;
    return (struct eti_affine){{
        p[0] * q[0] + p[1] * q[3],
        p[0] * q[1] + p[1] * q[4],
        p[0] * q[2] + p[1] * q[5] + p[2],
        p[3] * q[0] + p[4] * q[3],
        p[3] * q[1] + p[4] * q[4],
        p[3] * q[2] + p[4] * q[5] + p[5],
    }};
}

struct eti_affine
eti_affine_of(double cx, double cy, double angle, double dx, double dy, double scale,
              double shear_x, double shear_y)
{
    const double degree = 3.14159265358979323846 / 180;
    double rot = angle * degree, sx = shear_x * degree, sy = shear_y * degree;
    /* The picture moves by R S scale; the inverse says where a point came from. */
    double a = cos(rot - sy) / cos(sy);
    double b = -cos(rot - sy) * tan(sx) / cos(sy) - sin(rot);
    double c = sin(rot - sy) / cos(sy);
    double d = -sin(rot - sy) * tan(sx) / cos(sy) + cos(rot);
    struct eti_affine m = {{d / scale, -b / scale, 0, -c / scale, a / scale, 0}};
    double x = -cx - dx, y = -cy - dy;
    m.m[2] = m.m[0] * x + m.m[1] * y + cx;
    m.m[5] = m.m[3] * x + m.m[4] * y + cy;
    return m;
}

/* ---- sampling ---- */

/* What samples. */
struct source {
    const struct et_pixels *in;
    const uint8_t *fill;
};

static int64_t
to_place(double v)
{
    /* Far outside is as good as any place there. */
    double most = (double)((int64_t)1 << 29);
    v = v < -most ? -most : v > most ? most : v;
    return llrint(ldexp(v, PLACE_BITS));
}

static const uint8_t *
pixel(const struct source *s, int64_t y, int64_t x, int64_t *stride)
{
    const struct et_pixels *in = s->in;
    if (y < 0 || y >= in->H || x < 0 || x >= in->W) {
        *stride = 1;
        return s->fill;
    }
    *stride = in->stride_c;
    return in->data + y * in->stride_y + x * in->stride_x;
}

static void
put_nearest(const struct source *s, int64_t y, int64_t x, uint8_t *out)
{
    int64_t stride;
    const uint8_t *p = pixel(s, y >> PLACE_BITS, x >> PLACE_BITS, &stride);
    for (int c = 0; c < s->in->C; c++)
        out[c] = p[c * stride];
}

/* Between four pixels. */
static void
put_bilinear(const struct source *s, int64_t y, int64_t x, uint8_t *out)
{
    const int64_t half = (int64_t)1 << (PLACE_BITS - 1), one = 1 << WEIGHT_BITS;
    y -= half;
    x -= half;
    int64_t y0 = y >> PLACE_BITS, x0 = x >> PLACE_BITS, stride[4];
    int32_t fy = (int32_t)(y >> (PLACE_BITS - WEIGHT_BITS) & (one - 1));
    int32_t fx = (int32_t)(x >> (PLACE_BITS - WEIGHT_BITS) & (one - 1));
    const uint8_t *p[4];
    for (int k = 0; k < 4; k++)
        p[k] = pixel(s, y0 + k / 2, x0 + k % 2, &stride[k]);
    for (int c = 0; c < s->in->C; c++) {
        int32_t top = (p[0][c * stride[0]] << WEIGHT_BITS) +
                      fx * (p[1][c * stride[1]] - p[0][c * stride[0]]);
        int32_t low = (p[2][c * stride[2]] << WEIGHT_BITS) +
                      fx * (p[3][c * stride[3]] - p[2][c * stride[2]]);
        int32_t v = (top << WEIGHT_BITS) + fy * (low - top);
        out[c] = (uint8_t)((v + (1 << (2 * WEIGHT_BITS - 1))) >> (2 * WEIGHT_BITS));
    }
}

void
eti_affine_sample(const struct et_pixels *in, const struct eti_affine *a, int64_t h,
                  int64_t w, enum et_filter filter, const uint8_t *fill, uint8_t *out)
{
    struct source s = {in, fill};
    const double *m = a->m;
    int64_t dx = to_place(m[0]), dy = to_place(m[3]);
    for (int64_t i = 0; i < h; i++) {
        int64_t x = to_place(m[0] * 0.5 + m[1] * ((double)i + 0.5) + m[2]);
        int64_t y = to_place(m[3] * 0.5 + m[4] * ((double)i + 0.5) + m[5]);
        for (int64_t j = 0; j < w; j++, x += dx, y += dy, out += in->C)
            if (filter == ET_NEAREST)
                put_nearest(&s, y, x, out);
            else
                put_bilinear(&s, y, x, out);
    }
}
