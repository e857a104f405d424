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

static et_status
refuse_large(const struct et_call *call, char *why, size_t why_size)
{
    const struct et_desc *raw = &call->in[0], *y = &call->out[0];
    int64_t sample = y->shape[1] * y->shape[2] * y->shape[3];
    if (sample <= INT32_MAX && raw->shape[2] <= INT32_MAX && raw->shape[3] <= INT32_MAX)
        return ET_OK;
    return etk_refuse(
        why, why_size, "an image of %lldx%lldx%lld: at most 2^31 elements",
        (long long)y->shape[1], (long long)y->shape[2], (long long)y->shape[3]);
}

static void
describe(const struct et_device_handle *d, const struct et_call *call,
         struct etk_image *out)
{
    const struct et_desc *raw = &call->in[0], *frames = &call->in[1];
    const struct et_desc *table = &call->in[2], *y = &call->out[0];
    *out = (struct etk_image){
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
    memcpy(out->raw, raw->stride, sizeof out->raw);
    memcpy(out->frames, frames->stride, sizeof out->frames);
    memcpy(out->table, table->stride, sizeof out->table);
    memcpy(out->result, y->stride, sizeof out->result);
}

et_status
etk_prepare_image_batch(struct et_device_handle *d, const struct et_call *call,
                        struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_desc *y = &call->out[0];
    int64_t sample = y->shape[1] * y->shape[2] * y->shape[3];
    (void)ws;
    ET_TRY(refuse_large(call, why, why_size));
    struct image_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_image_batch;
    describe(d, call, &k->image);
    k->divides = k->image.plain && sample * k->image.size % WIDE_BYTES == 0;
    snprintf(k->base.what, sizeof k->base.what, "image_batch");
    *out = &k->base;
    return ET_OK;
}

struct augment_kernel {
    struct et_kernel base;
    struct etk_augment augment;
};

static et_status
run_image_augment(struct et_kernel *base, void *const *ptr, void *ws,
                  cudaStream_t stream)
{
    const struct augment_kernel *k = (const struct augment_kernel *)base;
    (void)ws;
    return etk_launched(base, etk_launch_image_augment(&k->augment, ptr[0], ptr[1],
                                                       ptr[2], ptr[3], stream));
}

et_status
etk_prepare_image_augment(struct et_device_handle *d, const struct et_call *call,
                          struct et_kernel **out, size_t *ws, char *why,
                          size_t why_size)
{
    (void)ws;
    ET_TRY(refuse_large(call, why, why_size));
    struct augment_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_image_augment;
    describe(d, call, &k->augment.image);
    k->augment.numbers = (int)call->in[1].shape[1];
    snprintf(k->base.what, sizeof k->base.what, "image_augment");
    *out = &k->base;
    return ET_OK;
}
