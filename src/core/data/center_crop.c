/* SPDX-License-Identifier: Apache-2.0 */
/* center_crop.c: the middle of a picture. */
#include "core/data/transform_rows.h"

struct options {
    int64_t size;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_SIZE(struct options),
    {.name = NULL},
};

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    const struct options *o = options;
    (void)C;
    if ((*h > 0 && o->size > *h) || (*w > 0 && o->size > *w))
        return ET_FAIL(cx, ET_EINVAL,
                       "center_crop: size %lld exceeds the image, %lldx%lld",
                       (long long)o->size, (long long)*h, (long long)*w);
    *h = *w = o->size;
    return ET_OK;
}

/* Of pictures that differ in size one may be smaller: it gets a black border. */
static void
geometry(const void *options, struct et_rng *r, struct et_view *v)
{
    const struct options *o = options;
    (void)r;
    et_view_crop(v, (v->h - o->size) / 2, (v->w - o->size) / 2, o->size, o->size);
}

const struct et_transform_class et_transform_center_crop = {
    .info =
        {
            .name = "center_crop",
            .class_name = "CenterCrop",
            .summary = "keeps the square in the middle",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .check = check,
    .geometry = geometry,
    .cuts = true,
};
