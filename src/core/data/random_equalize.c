/* SPDX-License-Identifier: Apache-2.0 */
/* random_equalize.c: an even histogram, with probability p. */
#include "core/data/transform_rows.h"
#include "core/image/levels.h"

struct options {
    double p;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_P(struct options, "0.5"),
    {.name = NULL},
};

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct options *o = options;
    (void)why;
    if (et_rng_uniform(r) < o->p)
        eti_equalize(c);
    return ET_OK;
}

const struct et_transform_class et_transform_random_equalize = {
    .info =
        {
            .name = "random_equalize",
            .class_name = "RandomEqualize",
            .summary = "gives each channel an even histogram at random",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .pixels = pixels,
};
