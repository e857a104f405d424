/* SPDX-License-Identifier: Apache-2.0 */
/* image.c: preparing batches that are made from raw images. */
#include "kernels/cuda/image.h"

#include <stdio.h>
#include <string.h>

enum { WIDE_BYTES = 16, ROW_BYTES = ET_FRAME_NUMBERS * sizeof(int32_t) };

struct image_kernel {
    struct et_kernel base;
    struct etk_image image;
    bool divides; /* a sample of the result is a number of wide stores */
};

static et_status
run_image_batch(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct image_kernel *k = (const struct image_kernel *)base;
    struct etk_image image = k->image;
    (void)ws;
    image.wide_frames &= (uintptr_t)ptr[1] % ROW_BYTES == 0;
    bool wide = k->divides && (uintptr_t)ptr[3] % WIDE_BYTES == 0;
    return etk_launched(base, etk_launch_image_batch(&image, wide, ptr[0], ptr[1],
                                                     ptr[2], ptr[3], stream));
}

et_status
etk_prepare_image_batch(struct et_device_handle *d, const struct et_call *call,
                        struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_desc *raw = &call->in[0], *frames = &call->in[1];
    const struct et_desc *table = &call->in[2], *y = &call->out[0];
    int64_t sample = y->shape[1] * y->shape[2] * y->shape[3];
    (void)ws;
    if (sample > INT32_MAX || raw->shape[2] > INT32_MAX || raw->shape[3] > INT32_MAX)
        return etk_refuse(
            why, why_size, "an image of %lldx%lldx%lld: at most 2^31 elements",
            (long long)y->shape[1], (long long)y->shape[2], (long long)y->shape[3]);
    struct image_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_image_batch;
    k->image = (struct etk_image){
        .size = (int)et_dtype_size(y->dtype),
        .rounded = (int)(y->dtype == table->dtype ? ET_NONE : y->dtype),
        .n = y->shape[0],
        .channels = (int)y->shape[1],
        .h = (int)y->shape[2],
        .w = (int)y->shape[3],
        .samples = raw->shape[0],
        .raw_h = (int)raw->shape[2],
        .raw_w = (int)raw->shape[3],
        .plain = et_desc_is_contiguous(y, ET_CHANNELS_LAST),
        .wide_frames = et_desc_is_contiguous(frames, ET_ROW_MAJOR),
        .sm_count = d->gpu.sm_count,
    };
    memcpy(k->image.raw, raw->stride, sizeof k->image.raw);
    memcpy(k->image.frames, frames->stride, sizeof k->image.frames);
    memcpy(k->image.table, table->stride, sizeof k->image.table);
    memcpy(k->image.result, y->stride, sizeof k->image.result);
    k->divides = k->image.plain && sample * k->image.size % WIDE_BYTES == 0;
    snprintf(k->base.what, sizeof k->base.what, "image_batch");
    *out = &k->base;
    return ET_OK;
}
