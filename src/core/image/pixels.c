/* SPDX-License-Identifier: Apache-2.0 */
/* pixels.c: views of pictures, and memory for them. See pixels.h. */
#include "core/image/pixels.h"

#include <stdlib.h>
#include <string.h>

#include "core/data/file.h"

et_status
eti_scratch_need(struct eti_scratch *room, size_t bytes, struct et_error *why)
{
    if (bytes <= room->bytes)
        return ET_OK;
    eti_scratch_free(room);
    room->data = malloc(bytes);
    if (!room->data)
        return eti_why(why, ET_ENOMEM, "no memory for a picture of %zu bytes", bytes);
    room->bytes = bytes;
    return ET_OK;
}

void
eti_scratch_free(struct eti_scratch *room)
{
    free(room->data);
    *room = (struct eti_scratch){0};
}

void *
et_canvas_room(struct et_canvas *c, size_t bytes)
{
    struct et_error why = {0};
    if (!c || !c->room)
        return NULL;
    return eti_scratch_need(c->room, bytes, &why) == ET_OK ? c->room->data : NULL;
}

struct et_pixels
eti_canvas_view(const struct et_canvas *c)
{
    return (struct et_pixels){
        .data = c->data,
        .C = c->C,
        .H = c->H,
        .W = c->W,
        .stride_c = 1,
        .stride_x = c->C,
        .stride_y = c->C * c->W,
    };
}

struct et_pixels
eti_pixels_part(const struct et_pixels *p, int64_t y, int64_t x, int64_t h, int64_t w)
{
    struct et_pixels part = *p;
    part.data += y * p->stride_y + x * p->stride_x;
    part.H = h;
    part.W = w;
    return part;
}

struct et_pixels
eti_pixels_flip_x(const struct et_pixels *p)
{
    struct et_pixels flipped = eti_pixels_part(p, 0, p->W - 1, p->H, p->W);
    flipped.stride_x = -p->stride_x;
    return flipped;
}

struct et_pixels
eti_pixels_flip_y(const struct et_pixels *p)
{
    struct et_pixels flipped = eti_pixels_part(p, p->H - 1, 0, p->H, p->W);
    flipped.stride_y = -p->stride_y;
    return flipped;
}

bool
eti_pixels_has_packed_rows(const struct et_pixels *p)
{
    return p->stride_x == p->C && (p->C == 1 || p->stride_c == 1);
}

void
eti_pixels_copy(const struct et_pixels *p, uint8_t *out)
{
    bool packed = eti_pixels_has_packed_rows(p);
    for (int64_t y = 0; y < p->H; y++) {
        const uint8_t *row = p->data + y * p->stride_y;
        if (packed) {
            memcpy(out, row, (size_t)(p->W * p->C));
            out += p->W * p->C;
            continue;
        }
        for (int64_t x = 0; x < p->W; x++)
            for (int c = 0; c < p->C; c++)
                *out++ = row[x * p->stride_x + c * p->stride_c];
    }
}

void
eti_grey_of_rgb(const uint8_t *rgb, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++, rgb += 3)
        out[i] =
            (uint8_t)((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 0x8000) >> 16);
}
