/* SPDX-License-Identifier: Apache-2.0 */
/* transform.h: pictures on their way into a batch.
 *
 * Letters: C channels, H W pixels. */
#ifndef ETUDE_TRANSFORM_H
#define ETUDE_TRANSFORM_H

#include <stdint.h>

#include "etude/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A picture that is somewhere: value (y, x, c) is data[y * stride_y + x * stride_x +
 * c * stride_c]. Strides may be negative; a mask has one channel. Borrowed memory. */
struct et_pixels {
    const uint8_t *data;
    int C;
    int64_t H, W, stride_c, stride_y, stride_x;
};

/* Bytes that lie dense, the channels of a pixel side by side [H,W,C]; or channel by
 * channel [C,H,W]. */
static inline struct et_pixels
et_pixels_hwc(const uint8_t *data, int C, int64_t H, int64_t W)
{
    const struct et_pixels p = {data, C, H, W, 1, W * C, C};
    return p;
}
static inline struct et_pixels
et_pixels_chw(const uint8_t *data, int C, int64_t H, int64_t W)
{
    const struct et_pixels p = {data, C, H, W, H * W, W, 1};
    return p;
}

/* How pixels are interpolated. */
enum et_filter { ET_NEAREST = 0, ET_BILINEAR = 1, ET_BICUBIC = 2 };

/* A picture that is worked on: value (y, x, c) is data[(y * W + x) * C + c]. */
struct et_canvas {
    uint8_t *data;
    int C;
    int64_t H, W;
    struct eti_scratch *room; /* internal: et_canvas_room */
};
/* BYTES to work in, until the function returns: the same block, sample after sample.
 * NULL: no memory. */
void *et_canvas_room(struct et_canvas *c, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
