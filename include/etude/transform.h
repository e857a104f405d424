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
