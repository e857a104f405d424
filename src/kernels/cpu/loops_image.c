/* SPDX-License-Identifier: Apache-2.0 */
/* loops_image.c: batches of images from raw ones: see et_image_batch.
 *
 *   y[n,i,j,c] = table[c][raw[s, c, y + i, x + j]]    or x + w-1-j where flipped
 *
 * A thread takes whole samples. Raw images are read where they lie, whatever their
 * strides: a batch shows few of them. Their bytes are moved through the table as they
 * are, so that any float dtype is a size; a table in f32 for a result in bf16 or f16 is
 * rounded before, into the workspace. */
#include "kernels/cpu/loops_convert.h"
#include "kernels/cpu/loops_side.h"

#include <string.h>

struct image_kernel {
    struct et_kernel base;
    struct et_desc raw;
    struct side frames, table, out;
    int64_t n, h, w;
    size_t size;         /* of an element of the result */
    size_t rounded;      /* where the table in the result's dtype lies */
    etk_store_fn *round; /* makes it; NULL: the table has that dtype */
    int pieces;
};

static int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t
smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

INLINE void
write_frame(const struct image_kernel *k, const int32_t *f, const uint8_t *raw,
            const char *table, char *out, const size_t size)
{
    const struct et_desc *d = &k->raw;
    int64_t y_min = larger(f[ET_FRAME_Y_MIN], 0), x_min = larger(f[ET_FRAME_X_MIN], 0);
    int64_t y_max = smaller(f[ET_FRAME_Y_MAX], d->shape[2]);
    int64_t x_max = smaller(f[ET_FRAME_X_MAX], d->shape[3]);
    int64_t step = f[ET_FRAME_FLIPPED] ? -1 : 1;
    int64_t first = (int64_t)f[ET_FRAME_X] + (f[ET_FRAME_FLIPPED] ? k->w - 1 : 0);
    const uint8_t *sample = raw + f[ET_FRAME_SAMPLE] * d->stride[0];
    for (int64_t i = 0; i < k->h; i++)
        for (int64_t j = 0; j < k->w; j++) {
            int64_t y = (int64_t)f[ET_FRAME_Y] + i, x = first + j * step;
            bool seen = y >= y_min && y < y_max && x >= x_min && x < x_max;
            for (int64_t c = 0; c < d->shape[1]; c++, out += size) {
                int byte =
                    seen
                        ? sample[c * d->stride[1] + y * d->stride[2] + x * d->stride[3]]
                        : 0;
                memcpy(out, table + (size_t)(c * 256 + byte) * size, size);
            }
        }
}

static et_status
run_image_batch(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct image_kernel *k = (const struct image_kernel *)kernel;
    const uint8_t *raw = ptr[0];
    const int32_t *frames = side_read(&k->frames, ptr[1], ws);
    const char *table = side_read(&k->table, ptr[2], ws);
    if (k->round) {
        k->round(table, (char *)ws + k->rounded, 1, k->raw.shape[1] * 256);
        table = (char *)ws + k->rounded;
    }
    char *out = side_write(&k->out, ptr[3], ws);
    size_t bytes = (size_t)(k->h * k->w * k->raw.shape[1]) * k->size;
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t n = 0; n < k->n; n++) {
        const int32_t *f = frames + n * ET_FRAME_NUMBERS;
        char *to = out + (size_t)n * bytes;
        if (f[ET_FRAME_SAMPLE] < 0 || f[ET_FRAME_SAMPLE] >= k->raw.shape[0])
            memset(to, 0xff, bytes); /* NaN */
        else if (k->size == sizeof(float))
            write_frame(k, f, raw, table, to, sizeof(float));
        else
            write_frame(k, f, raw, table, to, k->size);
    }
    side_flush(&k->out, ptr[3], ws);
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_image_batch)(struct et_device_handle *d,
                                  const struct et_call *call, struct et_kernel **out,
                                  size_t *ws, char *why, size_t why_size)
{
    const struct et_desc *frames = &call->in[1], *table = &call->in[2];
    const struct et_desc *y = &call->out[0];
    struct et_desc plain_frames = row_major(frames), plain_table = row_major(table);
    struct et_desc plain;
    (void)why, (void)why_size;
    struct image_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    et_desc_init(&plain, y->dtype, 4, y->shape, ET_CHANNELS_LAST);
    side_init(&k->frames, frames, &plain_frames, false, ws);
    side_init(&k->table, table, &plain_table, false, ws);
    side_init(&k->out, y, &plain, true, ws);
    k->raw = call->in[0];
    k->n = y->shape[0];
    k->h = y->shape[2];
    k->w = y->shape[3];
    k->size = et_dtype_size(y->dtype);
    if (y->dtype != table->dtype) {
        k->rounded = reserve(ws, (size_t)et_desc_count(table) * k->size);
        k->round = etk_stores[y->dtype][0];
    }
    k->pieces = pieces_for(d, et_desc_count(y), k->n);
    k->base.run = run_image_batch;
    k->base.what = "loop:image_batch";
    *out = &k->base;
    return ET_OK;
}
