/* SPDX-License-Identifier: Apache-2.0 */
/* resample.h: a picture, or a part of it, at another size. */
#ifndef ETI_IMAGE_RESAMPLE_H
#define ETI_IMAGE_RESAMPLE_H

#include "core/image/pixels.h"

/* One axis of the result: the middle of value i of N lies at ORIGIN + (i + 1/2) STEP of
 * the input, where value j reaches from j to j + 1. STEP below 0 flips. Values outside
 * [LO, HI) are not looked at: the filter's weights within are made to add up to 1. */
struct eti_axis {
    int64_t n;
    double origin, step;
    int64_t lo, hi;
};

/* Memory of a resampler, used again; zero it to begin. */
struct eti_resampler {
    struct eti_scratch taps[2], weights[2], packed, line, narrow;
};

/* The axis that shows [FROM, TO) of the input by N values, and sees nothing else. */
struct eti_axis eti_axis_of(int64_t from, int64_t to, int64_t n);

/* Writes y.n x x.n pixels of IN's channels to OUT, rows STRIDE bytes apart. Bilinear
 * and bicubic are Pillow's: where the picture shrinks, the filter is as wide as what a
 * pixel of the result covers. Weights have 14 to 16 bits, and what lies between the two
 * axes 14, so that values are within 1 of Pillow's, which rounds between them; a plane
 * stays a plane. The same on every processor. ENOMEM: in WHY. */
ET_NODISCARD et_status eti_resample(struct eti_resampler *r, const struct et_pixels *in,
                                    const struct eti_axis *y, const struct eti_axis *x,
                                    enum et_filter filter, uint8_t *out, int64_t stride,
                                    struct et_error *why);
void eti_resampler_free(struct eti_resampler *r);

#endif
