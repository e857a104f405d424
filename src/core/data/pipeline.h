/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h: from the bytes of a raw image to the floats of a batch, in one pass; and
 * from those of its masks to their classes. */
#ifndef ETI_DATA_PIPELINE_H
#define ETI_DATA_PIPELINE_H

#include "etude/data.h"

enum { ETI_MAX_STEPS = 16 };

/* The transforms of a loader, checked and prepared. */
struct eti_pipeline {
    int C; /* of raw images, whose sizes may differ */
    struct eti_transform_step {
        const struct et_transform_class *type;
        const void *options;
    } step[ETI_MAX_STEPS];
    int n_steps;
    int64_t h, w;                      /* after resizing: what frames are in */
    bool resizes;                      /* h, w differ from the raw size, or that by
                                          sample */
    int64_t out_h, out_w;              /* of what is written */
    float table[ET_MAX_CHANNELS][256]; /* byte -> value, by channel */
};

/* Checks the list against the data's image. RESOLUTION: side to resize to first; 0 =
 * none. The parts' options are borrowed. EINVAL also where images differ in size and
 * nothing gives them one. */
ET_NODISCARD et_status eti_pipeline_init(struct et_ctx *cx, struct eti_pipeline *p,
                                         const struct et_field *image,
                                         int64_t resolution,
                                         const struct et_parts *transforms);
/* What the sample at PLACE of the order of consumption shows. */
void eti_pipeline_frame(const struct eti_pipeline *p, uint32_t seed, int64_t place,
                        struct et_frame *out);
/* Bytes that eti_pipeline_run needs besides; 0 unless it resizes. */
size_t eti_pipeline_scratch(const struct eti_pipeline *p);
/* Writes the sample at PLACE of the order of consumption: OUT f32 [out_h, out_w, C]. */
void eti_pipeline_run(const struct eti_pipeline *p, const struct et_pixels *pixels,
                      uint8_t *scratch, uint32_t seed, int64_t place, float *out);
/* The same of a mask of that sample, by its nearest pixels: OUT I32 [out_h, out_w].
 * 255, and what lies outside, counts nothing. */
void eti_pipeline_mask(const struct eti_pipeline *p, const struct et_pixels *mask,
                       uint32_t seed, int64_t place, int32_t *out);

/* The row of a transform whose result is a square of SIZE. */
#define ETI_TRANSFORM_SIZE(S)                                                          \
    {                                                                                  \
        .name = "size", .type = ET_OPT_INT, .offset = offsetof(S, size), .min = 1,     \
        .max = 4096, .flags = ET_OPT_REQUIRED, .unit = "pixels",                       \
        .help = "side of the result",                                                  \
    }

/* Sets the frame to H x W at (DY, DX) of what it is now: what every crop does. */
void eti_frame_crop(struct et_frame *f, int64_t dy, int64_t dx, int64_t h, int64_t w);

#endif
