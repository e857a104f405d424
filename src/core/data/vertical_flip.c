/* SPDX-License-Identifier: Apache-2.0 */
/* vertical_flip.c: top and bottom exchanged, with probability p. */
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
        et_view_flip_y(v);
}

const struct et_transform_class et_transform_vertical_flip = {
    .info =
        {
            .name = "vertical_flip",
            .class_name = "VerticalFlip",
            .summary = "exchanges top and bottom at random",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .geometry = geometry,
};
