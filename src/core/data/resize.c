/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c: images to a square, bilinear. The first of a list. */
#include "core/data/pipeline.h"

struct options {
    int64_t size;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_SIZE(struct options),
    {.name = NULL},
};

static void
resize(const void *options, int64_t *h, int64_t *w)
{
    const struct options *o = options;
    *h = *w = o->size;
}

const struct et_transform_class et_transform_resize = {
    .info =
        {
            .name = "resize",
            .class_name = "Resize",
            .summary = "resizes images to a square, bilinear with half-pixel centres",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .resize = resize,
};
