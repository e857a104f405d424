/* SPDX-License-Identifier: Apache-2.0 */
/* resize_short.c: the short side to a size, the long one with it. */
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

/* As torchvision's Resize with one number, which cuts the long side off to a whole
 * one. */
static void
resized(const struct options *o, int64_t *h, int64_t *w)
{
    if (*h < *w) {
        *w = o->size * *w / *h;
        *h = o->size;
    } else {
        *h = o->size * *h / *w;
        *w = o->size;
    }
}

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    (void)cx;
    (void)C;
    if (*h > 0 && *w > 0)
        resized(options, h, w);
    return ET_OK;
}

static void
geometry(const void *options, struct et_rng *r, struct et_view *v)
{
    const struct options *o = options;
    int64_t h = v->h, w = v->w;
    (void)r;
    resized(o, &h, &w);
    et_view_resize(v, h, w, (enum et_filter)o->filter);
}

const struct et_transform_class et_transform_resize_short = {
    .info =
        {
            .name = "resize_short",
            .class_name = "ResizeShort",
            .summary = "resizes the short side to a size, and the long one with it",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .check = check,
    .geometry = geometry,
};
