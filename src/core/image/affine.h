/* SPDX-License-Identifier: Apache-2.0 */
/* affine.h: a picture turned, sheared, moved: each pixel of the result asks one place
 * of the input. */
#ifndef ETI_IMAGE_AFFINE_H
#define ETI_IMAGE_AFFINE_H

#include "core/image/resample.h"

/* Where a point of the result lies in the input: (x, y) at
 * (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]). A pixel's middle is at its number
 * and a half, in both. */
struct eti_affine {
    double m[6];
};

/* What shows first as A says, then as B does: a point p of the result lies at A(B(p)).
 */
struct eti_affine eti_affine_after(const struct eti_affine *a,
                                   const struct eti_affine *b);
/* About the point (CX, CY): turned clockwise by ANGLE degrees, sheared by SHEAR_X and
 * SHEAR_Y degrees, made larger by SCALE, then moved by DX, DY pixels. As torchvision's
 * affine, whose matrix this is. */
struct eti_affine eti_affine_of(double cx, double cy, double angle, double dx,
                                double dy, double scale, double shear_x,
                                double shear_y);

/* Writes h x w pixels to OUT, packed. What lies outside IN has the values FILL
 * (IN->C of them). ET_NEAREST or ET_BILINEAR; no filter where the result is
 * smaller. */
void eti_affine_sample(const struct et_pixels *in, const struct eti_affine *a,
                       int64_t h, int64_t w, enum et_filter filter, const uint8_t *fill,
                       uint8_t *out);

#endif
