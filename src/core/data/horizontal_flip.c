/* SPDX-License-Identifier: Apache-2.0 */
/* horizontal_flip.c: left and right exchanged, with probability p. */
#include "core/data/transform_rows.h"

struct options {
    double p;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_P(struct options, "0.5"),
    {.name = NULL},
};

static void
geometry(const void *options, struct et_rng *r, struct et_view *v)
{
    const struct options *o = options;
    if (et_rng_uniform(r) < o->p)
        et_view_flip_x(v);
}

const struct et_transform_class et_transform_horizontal_flip = {
    .info =
        {
            .name = "horizontal_flip",
            .class_name = "HorizontalFlip",
            .summary = "exchanges left and right at random",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .geometry = geometry,
    .cuts = true,
};
