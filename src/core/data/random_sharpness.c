/* SPDX-License-Identifier: Apache-2.0 */
/* random_sharpness.c: sharper or smoother, with probability p. */
#include "core/data/transform_rows.h"
#include "core/image/blur.h"

struct options {
    double p;
    double factor;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_P(struct options, "0.5"),
    {
        .name = "factor",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, factor),
        .def = "2",
        .max = 100,
        .also = "sharpness_factor",
        .help = "0 smooths, 1 changes nothing, 2 sharpens",
    },
    {.name = NULL},
};

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct options *o = options;
    if (et_rng_uniform(r) >= o->p)
        return ET_OK;
    return eti_sharpness(c, o->factor, why);
}

const struct et_transform_class et_transform_random_sharpness = {
    .info =
        {
            .name = "random_sharpness",
            .class_name = "RandomAdjustSharpness",
            .summary = "sharpens a picture at random, or smooths it",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .pixels = pixels,
};
