/* SPDX-License-Identifier: Apache-2.0 */
/* image_set.c: image sets held in memory whole. See image_set.h. */
#include "core/data/image_set.h"

et_status
eti_image_set_reserve(struct et_ctx *cx, struct eti_image_set *set, int64_t n)
{
    ET_TRY(et_alloc(cx, (size_t)n * sizeof *set->pixels, (void **)&set->pixels));
    return et_alloc(cx, (size_t)n * sizeof *set->labels, (void **)&set->labels);
}

et_status
eti_image_set_check(struct et_ctx *cx, const struct eti_image_set *set,
                    const char *path, int64_t n, int num_classes)
{
    for (int64_t i = 0; i < n; i++)
        if (set->labels[i] >= num_classes)
            return ET_FAIL(cx, ET_EFORMAT, "%s: label %d at index %lld but %d classes",
                           path, set->labels[i], (long long)i, num_classes);
    return ET_OK;
}

et_status
eti_image_set_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
                     struct et_error *why)
{
    const struct eti_image_set *set = self->state;
    const int64_t *n = self->facts.field[ET_FIELD_X].shape;
    (void)why;
    out->v[ET_FIELD_X].pixels = (set->planar ? et_pixels_chw : et_pixels_hwc)(
        set->pixels[at], (int)n[0], n[1], n[2]);
    out->v[ET_FIELD_TARGET].data = &set->labels[at];
    return ET_OK;
}

void
eti_image_set_close(struct et_dataset *self)
{
    struct eti_image_set *set = self->state;
    for (int i = 0; i < set->n_blocks; i++)
        et_free(self->cx, set->block[i].data);
    et_free(self->cx, set->pixels);
    et_free(self->cx, set->labels);
}
