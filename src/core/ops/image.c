/* SPDX-License-Identifier: Apache-2.0 */
/* image.c: batches of images made from raw ones where those lie.
 *
 * A data set that fits is kept on the device as bytes, and a batch is sent as its
 * frames alone: which image, which part of it, turned or not. What core/data/pipeline.c
 * does on the host is then a kernel of the step: image_batch where images are only cut
 * and flipped, which reads a byte for each number, else image_augment. */
#include "core/base/need.h"
#include "core/ops/ops.h"

/* What both ops ask of the raw images, of NAME, whose rows have NUMBERS numbers, and of
 * the table. */
static et_status
infer(struct et_ctx *cx, const struct et_call *call, const char *name, int64_t numbers,
      struct et_desc *out)
{
    const struct et_image_batch_attr *o = call->attr;
    const struct et_desc *raw = &call->in[0];
    int64_t n = call->in[1].shape[0], c = raw->shape[1];
    ET_TRY(eti_need_shape(cx, call, 1, name, 2, (int64_t[]){n, numbers}));
    ET_TRY(eti_need_float(cx, call, 2, "table"));
    ET_TRY(eti_need_shape(cx, call, 2, "table", 2, (int64_t[]){c, 256}));
    if (o->dtype != ET_NONE) {
        ET_TRY(eti_need_dtype(cx, call, 2, "table", ET_F32));
        if (o->dtype != ET_BF16 && o->dtype != ET_F16)
            return ETI_FAIL(cx, call, ET_EDTYPE,
                            "a batch is rounded to bf16 or f16, not %s",
                            et_dtype_name((enum et_dtype)o->dtype));
    }
    if (o->shape[0] < 1 || o->shape[1] < 1)
        return ETI_FAIL(cx, call, ET_ESHAPE, "frames of %lldx%lld",
                        (long long)o->shape[0], (long long)o->shape[1]);
    et_desc_init(out, o->dtype ? (enum et_dtype)o->dtype : call->in[2].dtype, 4,
                 (int64_t[]){n, c, o->shape[0], o->shape[1]}, ET_CHANNELS_LAST);
    return ET_OK;
}

/* The first two operands, whose kinds come before their sizes. */
static et_status
need_images(struct et_ctx *cx, const struct et_call *call, const char *name)
{
    ET_TRY(eti_need_dtype(cx, call, 0, "raw", ET_U8));
    ET_TRY(eti_need_ndim(cx, call, 0, "raw", 4, 4));
    ET_TRY(eti_need_dtype(cx, call, 1, name, ET_I32));
    return eti_need_ndim(cx, call, 1, name, 2, 2);
}

ETI_INFER(image_batch_infer)
{
    ET_TRY(need_images(cx, call, "frames"));
    return infer(cx, call, "frames", ET_FRAME_NUMBERS, out);
}

ETI_INFER(image_augment_infer)
{
    enum { CHANNELS = 4 };
    ET_TRY(need_images(cx, call, "rows"));
    const int64_t numbers = call->in[1].shape[1], room = numbers - ET_SHOWN_NUMBERS;
    if (room < 0 || room % ET_CHANGE_NUMBERS ||
        room / ET_CHANGE_NUMBERS > ET_MAX_CHANGES)
        return ETI_FAIL(cx, call, ET_ESHAPE,
                        "rows of %lld numbers: there are %d, and %d more for each of "
                        "at most %d changes",
                        (long long)numbers, ET_SHOWN_NUMBERS, ET_CHANGE_NUMBERS,
                        ET_MAX_CHANGES);
    if (call->in[0].shape[1] > CHANNELS)
        return ETI_FAIL(cx, call, ET_ESHAPE,
                        "images of %lld channels: there are %d at most",
                        (long long)call->in[0].shape[1], CHANNELS);
    return infer(cx, call, "rows", numbers, out);
}

/* Of the raw images only what frames show is read: a byte per element at most. */
static int64_t
image_batch_bytes(const struct et_call *call)
{
    const struct et_desc *y = &call->out[0];
    return et_desc_count(y) + (int64_t)(et_desc_bytes(&call->in[1]) +
                                        et_desc_bytes(&call->in[2]) + et_desc_bytes(y));
}

const struct et_op et_op_image_batch = {
    .name = "image_batch",
    .summary = "frames on raw images, byte by byte through a table",
    .id = ET_OP_image_batch,
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(struct et_image_batch_attr),
    .infer = image_batch_infer,
    .flops = eti_flops_none,
    .bytes = image_batch_bytes,
};

/* Of each pixel, and of the neighbours that are mixed for it. */
static int64_t
image_augment_bytes(const struct et_call *call)
{
    enum { NEIGHBOURS = 4 };
    const struct et_desc *y = &call->out[0];
    return NEIGHBOURS * et_desc_count(y) +
           (int64_t)(et_desc_bytes(&call->in[1]) + et_desc_bytes(&call->in[2]) +
                     et_desc_bytes(y));
}

const struct et_op et_op_image_augment = {
    .name = "image_augment",
    .summary = "raw images shown, turned and changed, byte by byte through a table",
    .id = ET_OP_image_augment,
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .attr_size = sizeof(struct et_image_batch_attr),
    .infer = image_augment_infer,
    .flops = eti_flops_none,
    .bytes = image_augment_bytes,
};

struct et_tensor *
et_image_batch(struct et_graph *g, struct et_tensor *raw, struct et_tensor *frames,
               struct et_tensor *table, int64_t height, int64_t width)
{
    ETI_NEED_IN(g, g);
    struct et_image_batch_attr attr = {.shape = {height, width}};
    return ETI_APPLY_ATTR(g, image_batch, &attr, NULL, raw, frames, table);
}

struct et_tensor *
et_image_augment(struct et_graph *g, struct et_tensor *raw, struct et_tensor *rows,
                 struct et_tensor *table, int64_t height, int64_t width)
{
    ETI_NEED_IN(g, g);
    struct et_image_batch_attr attr = {.shape = {height, width}};
    return ETI_APPLY_ATTR(g, image_augment, &attr, NULL, raw, rows, table);
}
