/* SPDX-License-Identifier: Apache-2.0 */
/* random_resized_crop.c: a part of the picture, of random area and shape, at one size.
 *
 * Source: Szegedy et al., 2014, arXiv 1409.4842, section 6; the part is drawn as in
 * torchvision, whose way out where ten tries fail is taken too: the largest part in the
 * middle whose shape is allowed. */
#include "core/data/transform_rows.h"

#include <math.h>

struct options {
    int64_t size;
    struct et_floats scale, ratio;
    int filter;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_SIZE(struct options),
    ETI_TRANSFORM_RANGE(struct options, scale, "[0.08, 1]",
                        "of the picture's area, drawn evenly"),
    ETI_TRANSFORM_RANGE(struct options, ratio, "[0.75, 1.3333333333333333]",
                        "width over height, drawn evenly in its logarithm"),
    ETI_TRANSFORM_FILTER(struct options),
    {.name = NULL},
};

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    const struct options *o = options;
    (void)C;
    ET_TRY(eti_transform_range(cx, "random_resized_crop", "scale", &o->scale, 1e-6, 1));
    ET_TRY(
        eti_transform_range(cx, "random_resized_crop", "ratio", &o->ratio, 0.01, 100));
    *h = *w = o->size;
    return ET_OK;
}

static void
find_middle(const struct options *o, const struct et_view *v, int64_t *y, int64_t *x,
            int64_t *h, int64_t *w)
{
    double shape = (double)v->w / (double)v->h;
    double low = o->ratio.v[0], high = o->ratio.v[1];
    *h = shape < low ? llrint((double)v->w / low) : v->h;
    *w = shape > high ? llrint((double)v->h * high) : v->w;
    *h = *h < 1 ? 1 : *h > v->h ? v->h : *h;
    *w = *w < 1 ? 1 : *w > v->w ? v->w : *w;
    *y = (v->h - *h) / 2;
    *x = (v->w - *w) / 2;
}

static void
geometry(const void *options, struct et_rng *r, struct et_view *v)
{
    const struct options *o = options;
    int64_t y, x, h, w;
    if (!eti_transform_part(&o->scale, &o->ratio, v->h, v->w, r, &y, &x, &h, &w))
        find_middle(o, v, &y, &x, &h, &w);
    et_view_crop(v, y, x, h, w);
    et_view_resize(v, o->size, o->size, (enum et_filter)o->filter);
}

const struct et_transform_class et_transform_random_resized_crop = {
    .info =
        {
            .name = "random_resized_crop",
            .class_name = "RandomResizedCrop",
            .summary =
                "cuts a part of random area and shape, and resizes it to a square",
            .source = "Szegedy et al., 2014, arXiv 1409.4842, section 6",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .check = check,
    .geometry = geometry,
};
