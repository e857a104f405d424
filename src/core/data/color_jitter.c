/* SPDX-License-Identifier: Apache-2.0 */
/* color_jitter.c: brightness, contrast, saturation and hue drawn by sample, in an order
 * drawn by sample, as torchvision's ColorJitter. */
#include "core/data/transform_rows.h"
#include "core/image/levels.h"

struct options {
    double brightness, contrast, saturation, hue;
};

static const struct et_option option_table[] = {
    {
        .name = "brightness",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, brightness),
        .def = "0",
        .max = 10,
        .help = "b: a factor from max(0, 1 - b) to 1 + b",
    },
    {
        .name = "contrast",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, contrast),
        .def = "0",
        .max = 10,
        .help = "likewise",
    },
    {
        .name = "saturation",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, saturation),
        .def = "0",
        .max = 10,
        .help = "likewise",
    },
    {
        .name = "hue",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, hue),
        .def = "0",
        .max = 0.5,
        .help = "h: a shift from -h to h of a turn",
    },
    {.name = NULL},
};

/* A factor from max(0, 1 - BY) to 1 + BY. */
static double
factor(double by, struct et_rng *r)
{
    double low = by < 1 ? 1 - by : 0;
    return low + (1 + by - low) * et_rng_uniform(r);
}

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct options *o = options;
    int32_t order[4];
    (void)why;
    et_rng_permutation(r, order, 4);
    double brightness = factor(o->brightness, r), contrast = factor(o->contrast, r);
    double saturation = factor(o->saturation, r);
    double hue = o->hue * (2 * et_rng_uniform(r) - 1);
    for (int i = 0; i < 4; i++) {
        if (order[i] == 0 && o->brightness > 0)
            eti_brightness(c, brightness);
        if (order[i] == 1 && o->contrast > 0)
            eti_contrast(c, contrast);
        if (order[i] == 2 && o->saturation > 0)
            eti_saturation(c, saturation);
        if (order[i] == 3 && o->hue > 0)
            eti_hue(c, hue);
    }
    return ET_OK;
}

const struct et_transform_class et_transform_color_jitter = {
    .info =
        {
            .name = "color_jitter",
            .class_name = "ColorJitter",
            .summary = "changes brightness, contrast, saturation and hue at random",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .pixels = pixels,
};
