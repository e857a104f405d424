/* SPDX-License-Identifier: Apache-2.0 */
/* color_jitter.c: brightness, contrast, saturation and hue drawn by sample, in an order
 * drawn by sample, as torchvision's ColorJitter. */
#include "core/data/transform_rows.h"

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

static int
n_changes(const void *options)
{
    const struct options *o = options;
    return (o->brightness > 0) + (o->contrast > 0) + (o->saturation > 0) + (o->hue > 0);
}

static struct et_pixel_change
blend(enum et_change_kind kind, double factor, double other)
{
    return (struct et_pixel_change){
        .kind = kind, .own = (float)factor, .other = (float)other};
}

static int
changes(const void *options, struct et_rng *r, int64_t h, int64_t w,
        struct et_pixel_change *out)
{
    const struct options *o = options;
    int32_t order[4];
    int n = 0;
    (void)h;
    (void)w;
    et_rng_permutation(r, order, 4);
    double brightness = factor(o->brightness, r), contrast = factor(o->contrast, r);
    double saturation = factor(o->saturation, r);
    double hue = o->hue * (2 * et_rng_uniform(r) - 1);
    for (int i = 0; i < 4; i++) {
        if (order[i] == 0 && o->brightness > 0)
            out[n++] = blend(ET_CHANGE_BLEND, brightness, 0);
        if (order[i] == 1 && o->contrast > 0)
            out[n++] = blend(ET_CHANGE_CONTRAST, contrast, 1 - contrast);
        if (order[i] == 2 && o->saturation > 0)
            out[n++] = blend(ET_CHANGE_SATURATION, saturation, 1 - saturation);
        if (order[i] == 3 && hue != 0)
            out[n++] = blend(ET_CHANGE_HUE, 6 * hue, 0);
    }
    return n;
}

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    (void)why;
    eti_transform_do(changes, options, r, c);
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
    .n_changes = n_changes,
    .changes = changes,
};
