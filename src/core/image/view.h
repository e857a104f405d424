/* SPDX-License-Identifier: Apache-2.0 */
/* view.h: pixels of what a sample shows. See etude/transform.h. */
#ifndef ETI_IMAGE_VIEW_H
#define ETI_IMAGE_VIEW_H

#include "core/image/decode.h"
#include "core/image/resample.h"
#include "etude/transform.h"

/* Memory to look with, used again; zero it to begin. */
struct eti_looker {
    struct eti_resampler resampler;
    struct eti_scratch first; /* what is before a turn */
};

/* Does V only cut and flip? */
bool eti_view_is_whole(const struct et_view *v);

/* What must be had of a picture of C channels to show V, and how small it may come. */
struct eti_picture_want eti_view_want(const struct et_view *v, int C);
/* V on what came of that. */
void eti_view_onto(struct et_view *v, const struct eti_picture *p);

/* Writes what V shows of IN to OUT, packed: v->h x v->w pixels of IN's channels.
 * FILTER: the view's own, or ET_NEAREST for masks. FILL: the values outside, IN->C of
 * them. */
ET_NODISCARD et_status eti_view_look(struct eti_looker *l, const struct et_view *v,
                                     const struct et_pixels *in, int filter,
                                     const uint8_t *fill, uint8_t *out,
                                     struct et_error *why);
/* V as a row of et_image_augment says it, without a sample and changes. */
void eti_view_tell(const struct et_view *v, struct et_shown *out);
void eti_looker_free(struct eti_looker *l);

#endif
