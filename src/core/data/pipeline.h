/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h: from the bytes of a raw image, or of a picture's file, to the floats of a
 * batch; and from those of its masks to their classes. */
#ifndef ETI_DATA_PIPELINE_H
#define ETI_DATA_PIPELINE_H

#include "core/image/view.h"
#include "etude/data.h"

enum { ETI_MAX_STEPS = 16 };

/* The transforms of a loader, checked and prepared. */
struct eti_pipeline {
    int C; /* of raw images, whose sizes may differ */
    struct eti_transform_step {
        const struct et_transform_class *type;
        const void *options;
        uint64_t ordinal; /* where its draws begin */
    } step[ETI_MAX_STEPS];
    int n_steps;
    const char *shrinks;  /* the first that changes pixels and leaves fewer; NULL */
    int64_t resolution;   /* side to resize to first; 0 = none */
    int64_t h, w;         /* of raw images; -1: they differ */
    bool cuts;            /* the geometry cuts and flips left and right, and no pixels
                             are changed: et_image_batch does it */
    int n_changes;        /* at most, of what else et_image_augment does */
    char host_only[160];  /* why no device can do it; "": one can that has the images */
    int64_t out_h, out_w; /* of what is written */
    float table[ET_MAX_CHANNELS][256]; /* byte -> value, by channel */
};

/* Which part of a raw image a sample shows, where it is only cut and flipped: for a
 * device that has all images. Coordinates are those of the raw image; outside SEEN it
 * is black. */
struct eti_shown {
    int64_t y, x, h, w;   /* the frame; y, x may be negative */
    int64_t y_min, x_min; /* seen: half-open ranges within the raw image */
    int64_t y_max, x_max; /* likewise */
    bool flipped;         /* left and right exchanged, within the frame */
};

/* One image on its way, and memory that the next one takes again; zero it to begin. */
struct eti_shot {
    struct et_view view;     /* what is shown of PIXELS, by steps before STEP */
    struct et_pixels pixels; /* of the data set, or DECODER's */
    int step;
    int64_t H, W; /* of the whole image */
    struct eti_decoder decoder, mask[ET_MAX_FIELDS];
    struct eti_looker looker;
    struct eti_scratch canvas[2], room;
};

/* Checks the list against the data's image. RESOLUTION: side to resize to first; 0 =
 * none. ADDED, which may be NULL: more of them, before the one of values. The parts'
 * options are borrowed. EINVAL also where images differ in size and nothing gives them
 * one. */
ET_NODISCARD et_status eti_pipeline_init(struct et_ctx *cx, struct eti_pipeline *p,
                                         const struct et_field *image,
                                         int64_t resolution,
                                         const struct et_parts *transforms,
                                         const struct et_parts *added);
/* What the sample at PLACE of the order of consumption shows, where the pipeline only
 * cuts. */
void eti_pipeline_frame(const struct eti_pipeline *p, uint32_t seed, int64_t place,
                        struct eti_shown *out);
/* The same as a row for et_image_augment, with room for n_changes; where it is not
 * host_only. AT: which image. */
void eti_pipeline_tell(const struct eti_pipeline *p, uint32_t seed, int64_t place,
                       int64_t at, int32_t *row);
/* Numbers of such a row. */
int64_t eti_pipeline_numbers(const struct eti_pipeline *p);
/* Makes S the image V of the sample at PLACE: of a file only what the sample shows is
 * decoded. EFORMAT: the file cannot be read; the sentence does not name it. */
ET_NODISCARD et_status eti_pipeline_take(const struct eti_pipeline *p,
                                         struct eti_shot *s,
                                         const struct et_sample_value *v, uint32_t seed,
                                         int64_t place, struct et_error *why);
/* Writes what was taken: OUT f32 [out_h, out_w, C]. ENOMEM, or what a transform says.
 */
ET_NODISCARD et_status eti_pipeline_run(const struct eti_pipeline *p,
                                        struct eti_shot *s, uint32_t seed,
                                        int64_t place, float *out,
                                        struct et_error *why);
/* The same of a mask of that sample, by its nearest pixels: OUT I32 [out_h, out_w].
 * 255, and what lies outside, counts nothing. ENOMEM. */
ET_NODISCARD et_status eti_pipeline_mask(const struct eti_pipeline *p,
                                         struct eti_shot *s,
                                         const struct et_pixels *mask, uint32_t seed,
                                         int64_t place, int32_t *out,
                                         struct et_error *why);
void eti_shot_free(struct eti_shot *s);

#endif
