/* SPDX-License-Identifier: Apache-2.0 */
/* random_erasing.c: a hole in the picture, with probability p.
 *
 * Source: Zhong, Zheng, Kang, Li, Yang, 2017, arXiv 1708.04896; the part is drawn as in
 * torchvision, on bytes: before normalize, so that 0 is black. */
#include "core/data/transform_rows.h"
#include "core/image/levels.h"

enum { VALUE, NOISE };
static const char *const fill_names[] = {"value", "noise", NULL};

struct options {
    double p;
    struct et_floats scale, ratio;
    int fill;
    int64_t value;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_P(struct options, "0.5"),
    ETI_TRANSFORM_RANGE(struct options, scale, "[0.02, 0.33]",
                        "of the picture's area, drawn evenly"),
    ETI_TRANSFORM_RANGE(struct options, ratio, "[0.3, 3.3]",
                        "width over height, drawn evenly in its logarithm"),
    {
        .name = "fill",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, fill),
        .def = "value",
        .choices = fill_names,
        .help = "what fills the hole: `value`, or noise",
    },
    {
        .name = "value",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, value),
        .def = "0",
        .max = 255,
        .help = "of what fills it, 0 to 255",
    },
    {.name = NULL},
};

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    const struct options *o = options;
    (void)C;
    (void)h;
    (void)w;
    ET_TRY(eti_transform_range(cx, "random_erasing", "scale", &o->scale, 0, 1));
    return eti_transform_range(cx, "random_erasing", "ratio", &o->ratio, 0.01, 100);
}

/* Noise is drawn value by value: on the host. */
static int
n_changes(const void *options)
{
    const struct options *o = options;
    return o->fill == VALUE;
}

/* The hole. */
static int
changes(const void *options, struct et_rng *r, int64_t H, int64_t W,
        struct et_pixel_change *out)
{
    const struct options *o = options;
    int64_t y, x, h, w;
    if (et_rng_uniform(r) >= o->p ||
        !eti_transform_part(&o->scale, &o->ratio, H, W, r, &y, &x, &h, &w))
        return 0;
    *out = (struct et_pixel_change){.kind = ET_CHANGE_ERASE,
                                    .y = (int32_t)y,
                                    .x = (int32_t)x,
                                    .h = (int32_t)h,
                                    .w = (int32_t)w,
                                    .value = (int32_t)o->value};
    return 1;
}

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct options *o = options;
    struct et_pixel_change hole;
    (void)why;
    if (changes(o, r, c->H, c->W, &hole) == 0)
        return ET_OK;
    if (o->fill == NOISE)
        eti_erase(c, hole.y, hole.x, hole.h, hole.w, NULL, r);
    else
        et_canvas_change(c, &hole);
    return ET_OK;
}

const struct et_transform_class et_transform_random_erasing = {
    .info =
        {
            .name = "random_erasing",
            .class_name = "RandomErasing",
            .summary = "makes a hole in a picture at random",
            .source = "Zhong et al., 2017, arXiv 1708.04896",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .check = check,
    .pixels = pixels,
    .n_changes = n_changes,
    .changes = changes,
};
