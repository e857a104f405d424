/* SPDX-License-Identifier: Apache-2.0 */
/* pixels.h: pictures as bytes in memory: views of them, and canvases to work on.
 *
 * Letters: C channels, H W pixels. A value is a byte, 0 black. */
#ifndef ETI_IMAGE_PIXELS_H
#define ETI_IMAGE_PIXELS_H

#include <stddef.h>
#include <stdint.h>

#include "etude/transform.h"

/* Memory that is used again, by one thread at a time. It only grows, and is malloc's:
 * a context's is for the thread that has the context. Zero it to begin. */
struct eti_scratch {
    void *data;
    size_t bytes;
};
/* Makes it BYTES at least; what was in it is lost where it grows. ENOMEM: in WHY. */
ET_NODISCARD et_status eti_scratch_need(struct eti_scratch *room, size_t bytes,
                                        struct et_error *why);
void eti_scratch_free(struct eti_scratch *room);

struct et_pixels eti_canvas_view(const struct et_canvas *c);
/* The same memory seen from (Y, X) on, H x W of it; left and right, or top and bottom,
 * exchanged. */
struct et_pixels eti_pixels_part(const struct et_pixels *p, int64_t y, int64_t x,
                                 int64_t h, int64_t w);
struct et_pixels eti_pixels_flip_x(const struct et_pixels *p);
struct et_pixels eti_pixels_flip_y(const struct et_pixels *p);
/* Writes all of P to OUT, packed. */
void eti_pixels_copy(const struct et_pixels *p, uint8_t *out);
/* Are the values of a row one behind the other? */
bool eti_pixels_has_packed_rows(const struct et_pixels *p);

/* The brightness of N pixels of red, green, blue, in whole numbers as Pillow's "L"
 * (ITU-R 601-2): (19595 R + 38470 G + 7471 B + 2^15) / 2^16. OUT may be RGB. */
void eti_grey_of_rgb(const uint8_t *rgb, int64_t n, uint8_t *out);

#endif
