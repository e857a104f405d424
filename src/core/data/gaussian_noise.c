/* SPDX-License-Identifier: Apache-2.0 */
/* gaussian_noise.c: noise on each value, with probability p. */
#include "core/data/transform_rows.h"
#include "core/image/levels.h"

struct options {
    double p;
    double mean, sigma;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_P(struct options, "1"),
    {
        .name = "mean",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, mean),
        .def = "0",
        .min = -1,
        .max = 1,
        .help = "of the noise, where white is 1",
    },
    {
        .name = "sigma",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, sigma),
        .def = "0.1",
        .max = 10,
        .help = "standard deviation, where white is 1",
    },
    {.name = NULL},
};

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct options *o = options;
    (void)why;
    if (et_rng_uniform(r) < o->p)
        eti_noise(c, o->mean, o->sigma, r);
    return ET_OK;
}

const struct et_transform_class et_transform_gaussian_noise = {
    .info =
        {
            .name = "gaussian_noise",
            .class_name = "GaussianNoise",
            .summary = "adds noise to each value",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .pixels = pixels,
};
