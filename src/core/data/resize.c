/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c: pictures to a square, whatever their shape. */
#include "core/data/transform_rows.h"

struct options {
    int64_t size;
    int filter;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_SIZE(struct options),
    ETI_TRANSFORM_FILTER(struct options),
    {.name = NULL},
};

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    const struct options *o = options;
    (void)cx;
    (void)C;
    *h = *w = o->size;
    return ET_OK;
}

static void
geometry(const void *options, struct et_rng *r, struct et_view *v)
{
    const struct options *o = options;
    (void)r;
    et_view_resize(v, o->size, o->size, (enum et_filter)o->filter);
}

const struct et_transform_class et_transform_resize = {
    .info =
        {
            .name = "resize",
            .class_name = "Resize",
            .summary = "resizes pictures to a square, as Pillow does",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .check = check,
    .geometry = geometry,
};
