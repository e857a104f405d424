/* SPDX-License-Identifier: Apache-2.0 */
/* image.c: batches of images from raw ones: see et_image_batch. */
#include "kernels/ref/array.h"

/* Number K of row N of the frames. */
static int64_t
number(const struct etk_array *frames, int64_t n, enum et_frame_number k)
{
    return etk_get_int(frames, n * frames->d.stride[0] + k * frames->d.stride[1]);
}

/* The byte of element IX of the batch: 0 where it is not seen. */
static int64_t
byte_at(const struct etk_array *raw, const struct etk_array *f, const int64_t *ix,
        int64_t width)
{
    int64_t n = ix[0];
    bool flipped = number(f, n, ET_FRAME_FLIPPED) != 0;
    int64_t y = number(f, n, ET_FRAME_Y) + ix[2];
    int64_t x = number(f, n, ET_FRAME_X) + (flipped ? width - 1 - ix[3] : ix[3]);
    bool seen = y >= number(f, n, ET_FRAME_Y_MIN) && y < number(f, n, ET_FRAME_Y_MAX) &&
                x >= number(f, n, ET_FRAME_X_MIN) && x < number(f, n, ET_FRAME_X_MAX);
    bool inside = y >= 0 && y < raw->d.shape[2] && x >= 0 && x < raw->d.shape[3];
    int64_t sample = number(f, n, ET_FRAME_SAMPLE);
    return seen && inside ? etk_get_int(raw, etk_offset4(&raw->d, sample, ix[1], y, x))
                          : 0;
}

void
etk_ref_image_batch(const struct etk_ref *r)
{
    const struct etk_array *raw = &r->in[0], *frames = &r->in[1], *table = &r->in[2];
    const struct etk_array *out = &r->out[0];
    for (struct etk_pos i = etk_begin(&out->d); !i.end; etk_next(&out->d, &i)) {
        int64_t sample = number(frames, i.ix[0], ET_FRAME_SAMPLE);
        int64_t to = etk_offset(&out->d, i.ix);
        if (sample < 0 || sample >= raw->d.shape[0]) {
            etk_set_nothing(out, to);
            continue;
        }
        int64_t byte = byte_at(raw, frames, i.ix, out->d.shape[3]);
        etk_move(out, to, table,
                 i.ix[1] * table->d.stride[0] + byte * table->d.stride[1]);
    }
}
