/* SPDX-License-Identifier: Apache-2.0 */
/* random_solarize.c: bright values inverted, with probability p. */
#include "core/data/transform_rows.h"
#include "core/image/levels.h"

struct options {
    double p;
    double threshold;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_P(struct options, "0.5"),
    {
        .name = "threshold",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, threshold),
        .def = "128",
        .max = 256,
        .help = "values from it on are inverted",
    },
    {.name = NULL},
};

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct options *o = options;
    (void)why;
    if (et_rng_uniform(r) < o->p)
        eti_solarize(c, o->threshold);
    return ET_OK;
}

const struct et_transform_class et_transform_random_solarize = {
    .info =
        {
            .name = "random_solarize",
            .class_name = "RandomSolarize",
            .summary = "inverts values from a threshold on at random",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .pixels = pixels,
};
