/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c: from the bytes of a raw image to the floats of a batch, in one pass.
 *
 * Transforms move a frame over the raw image; pixels are then read once, through a
 * table of 256 values per channel that holds (byte / 255 - mean) / std, and written
 * where the batch wants them: y[i, j, c] = table[c][raw(f.y + i, f.x + j, c)], black
 * where the frame hangs over. 1 byte read and 4 written per value; no copy in between,
 * unless the image is resized. */
#include "core/data/pipeline.h"

#include <string.h>

/* Adds the transforms that are on. */
static et_status
add_steps(struct et_ctx *cx, struct eti_pipeline *p, const struct et_parts *transforms)
{
    for (int i = 0; i < transforms->n; i++) {
        const struct et_part *part = &transforms->v[i];
        if (part->off)
            continue;
        if (p->n_steps == ETI_MAX_STEPS)
            return ET_FAIL(cx, ET_EINVAL, "transforms: %d, more than %d", transforms->n,
                           ETI_MAX_STEPS);
        /* Its component is the first member of its class. */
        p->step[p->n_steps++] = (struct eti_transform_step){
            .type = (const struct et_transform_class *)part->component,
            .options = part->options,
        };
    }
    return ET_OK;
}

static et_status
check_steps(struct et_ctx *cx, struct eti_pipeline *p, bool resolution)
{
    for (int i = 0; i < p->n_steps; i++) {
        const struct eti_transform_step *t = &p->step[i];
        const char *name = t->type->info.name;
        if (t->type->value && i != p->n_steps - 1)
            return ET_FAIL(cx, ET_EINVAL,
                           "transforms: %s must be last, it is number %d of %d", name,
                           i + 1, p->n_steps);
        if (t->type->resize && (i != 0 || resolution))
            return ET_FAIL(cx, ET_EINVAL, "transforms: %s must be first%s", name,
                           resolution ? ", and excludes resolution" : "");
        if (t->type->check)
            ET_TRY(t->type->check(cx, t->options, p->C, &p->out_h, &p->out_w));
        if (t->type->resize) {
            t->type->resize(t->options, &p->h, &p->w);
            p->out_h = p->h;
            p->out_w = p->w;
        }
    }
    return ET_OK;
}

static void
fill_table(struct eti_pipeline *p)
{
    const struct eti_transform_step *last =
        p->n_steps ? &p->step[p->n_steps - 1] : NULL;
    for (int c = 0; c < p->C; c++)
        for (int byte = 0; byte < 256; byte++) {
            double v = byte / 255.0;
            if (last && last->type->value)
                v = last->type->value(last->options, c, v);
            p->table[c][byte] = (float)v;
        }
}

/* A batch has images of one size: where the data have not, the list begins with it. */
static et_status
check_size(struct et_ctx *cx, const struct eti_pipeline *p)
{
    if ((p->h > 0 && p->w > 0) || (p->n_steps > 0 && p->step[0].type->resize))
        return ET_OK;
    et_status status =
        ET_FAIL(cx, ET_EINVAL, "the images differ in size, and a batch has one");
    et_hint(cx, "transforms that begin with resize, or resolution, give them one");
    return status;
}

et_status
eti_pipeline_init(struct et_ctx *cx, struct eti_pipeline *p,
                  const struct et_field *image, int64_t resolution,
                  const struct et_parts *transforms)
{
    *p = (struct eti_pipeline){
        .C = (int)image->shape[0],
        .h = resolution ? resolution : image->shape[1],
        .w = resolution ? resolution : image->shape[2],
    };
    p->out_h = p->h;
    p->out_w = p->w;
    ET_TRY(add_steps(cx, p, transforms));
    ET_TRY(check_size(cx, p));
    ET_TRY(check_steps(cx, p, resolution != 0));
    p->resizes = p->h != image->shape[1] || p->w != image->shape[2];
    fill_table(p);
    return ET_OK;
}

size_t
eti_pipeline_scratch(const struct eti_pipeline *p)
{
    return p->resizes ? (size_t)(p->h * p->w * p->C) : 0;
}

/* Bilinear with half-pixel centres: output i looks at (i + 1/2) * from / to - 1/2.
 * Differs from Pillow: no low-pass filter when shrinking. */
static void
resize(const struct eti_pipeline *p, const struct et_pixels *f, uint8_t *out)
{
    const uint8_t *src = f->data;
    double scale_y = (double)f->H / p->h, scale_x = (double)f->W / p->w;
    for (int64_t i = 0; i < p->h; i++) {
        double y = (i + 0.5) * scale_y - 0.5;
        y = y < 0 ? 0 : y > f->H - 1 ? f->H - 1 : y;
        int64_t y0 = (int64_t)y, y1 = y0 + 1 < f->H ? y0 + 1 : y0;
        const uint8_t *r0 = src + y0 * f->stride_y, *r1 = src + y1 * f->stride_y;
        for (int64_t j = 0; j < p->w; j++) {
            double x = (j + 0.5) * scale_x - 0.5;
            x = x < 0 ? 0 : x > f->W - 1 ? f->W - 1 : x;
            int64_t x0 = (int64_t)x, x1 = x0 + 1 < f->W ? x0 + 1 : x0;
            for (int c = 0; c < f->C; c++) {
                int64_t a = x0 * f->stride_x + c * f->stride_c;
                int64_t b = x1 * f->stride_x + c * f->stride_c;
                double top = r0[a] + (x - x0) * (r0[b] - r0[a]);
                double bottom = r1[a] + (x - x0) * (r1[b] - r1[a]);
                *out++ = (uint8_t)(top + (y - y0) * (bottom - top) + 0.5);
            }
        }
    }
}

void
eti_frame_crop(struct et_frame *f, int64_t dy, int64_t dx, int64_t h, int64_t w)
{
    /* What an earlier crop cut off stays black in the padding of a later one. */
    f->y_min = f->y > f->y_min ? f->y : f->y_min;
    f->x_min = f->x > f->x_min ? f->x : f->x_min;
    f->y_max = f->y + f->h < f->y_max ? f->y + f->h : f->y_max;
    f->x_max = f->x + f->w < f->x_max ? f->x + f->w : f->x_max;
    f->y += dy;
    f->x += f->flipped ? f->w - w - dx : dx;
    f->h = h;
    f->w = w;
}

static int64_t
clamp(int64_t v, int64_t high)
{
    return v < 0 ? 0 : v > high ? high : v;
}

static float *
write_black(const struct eti_pipeline *p, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < p->C; c++)
            *out++ = p->table[c][0];
    return out;
}

/* N pixels of C channels from SRC on, STEP bytes apart. Inlined for the constants
 * below: a loop over unknown strides takes three times as long. */
static inline __attribute__((always_inline)) float *
write_span(const float table[][256], const uint8_t *src, int64_t step, int64_t stride_c,
           int C, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < C; c++)
            out[i * C + c] = table[c][src[i * step + c * stride_c]];
    return out + n * C;
}

static float *
write_pixels(const struct eti_pipeline *p, const uint8_t *src, int64_t step,
             int64_t stride_c, int64_t n, float *out)
{
    int C = p->C;
    if (C == 1 && step == 1)
        return write_span(p->table, src, 1, 0, 1, n, out);
    if (C == 1 && step == -1)
        return write_span(p->table, src, -1, 0, 1, n, out);
    if (C == 3)
        return write_span(p->table, src, step, stride_c, 3, n, out);
    return write_span(p->table, src, step, stride_c, C, n, out);
}

static void
write_frame(const struct eti_pipeline *p, const struct et_pixels *r,
            const struct et_frame *f, float *out)
{
    /* Columns [from, to) of the frame are seen. */
    int64_t from = clamp(f->flipped ? f->x + f->w - f->x_max : f->x_min - f->x, f->w);
    int64_t to = clamp(f->flipped ? f->x + f->w - f->x_min : f->x_max - f->x, f->w);
    int64_t first = f->flipped ? f->x + f->w - 1 - from : f->x + from;
    int64_t step = f->flipped ? -r->stride_x : r->stride_x;
    for (int64_t y = f->y; y < f->y + f->h; y++) {
        if (y < f->y_min || y >= f->y_max || from >= to) {
            out = write_black(p, f->w, out);
            continue;
        }
        out = write_black(p, from, out);
        out = write_pixels(p, r->data + y * r->stride_y + first * r->stride_x, step,
                           r->stride_c, to - from, out);
        out = write_black(p, f->w - to, out);
    }
}

void
eti_pipeline_frame(const struct eti_pipeline *p, uint32_t seed, int64_t place,
                   struct et_frame *out)
{
    *out = (struct et_frame){
        .h = p->h,
        .w = p->w,
        .y_max = p->h,
        .x_max = p->w,
    };
    for (int i = 0; i < p->n_steps; i++) {
        const struct eti_transform_step *t = &p->step[i];
        if (!t->type->frame)
            continue;
        /* Each transform has its own ordinals: one more draw in a first one does not
         * shift a second one's. */
        struct et_rng draws = et_rng_at(seed, ET_RNG_AUGMENT, (uint64_t)place);
        draws.ordinal = (uint64_t)i << 32;
        t->type->frame(t->options, &draws, out);
    }
}

void
eti_pipeline_run(const struct eti_pipeline *p, const struct et_pixels *pixels,
                 uint8_t *scratch, uint32_t seed, int64_t place, float *out)
{
    struct et_pixels r = *pixels;
    struct et_frame f;
    if (p->resizes) {
        resize(p, pixels, scratch);
        r = et_pixels_hwc(scratch, p->C, p->h, p->w);
    }
    eti_pipeline_frame(p, seed, place, &f);
    write_frame(p, &r, &f, out);
}

/* The row or column of a mask of N that is under I of the OUT that images have after
 * resizing: the one in which its middle lies. */
static int64_t
nearest(int64_t i, int64_t n, int64_t out)
{
    return (2 * i + 1) * n / (2 * out);
}

void
eti_pipeline_mask(const struct eti_pipeline *p, const struct et_pixels *mask,
                  uint32_t seed, int64_t place, int32_t *out)
{
    struct et_frame f;
    eti_pipeline_frame(p, seed, place, &f);
    for (int64_t i = 0; i < f.h; i++) {
        int64_t y = f.y + i;
        bool seen = y >= f.y_min && y < f.y_max;
        const uint8_t *row =
            mask->data + (seen ? nearest(y, mask->H, p->h) * mask->stride_y : 0);
        for (int64_t j = 0; j < f.w; j++) {
            int64_t x = f.flipped ? f.x + f.w - 1 - j : f.x + j;
            int v = UINT8_MAX;
            if (seen && x >= f.x_min && x < f.x_max)
                v = row[nearest(x, mask->W, p->w) * mask->stride_x];
            *out++ = v == UINT8_MAX ? ET_IGNORE_INDEX : v;
        }
    }
}
