/* SPDX-License-Identifier: Apache-2.0 */
/* random_rotation.c: turned about the middle by a random angle. */
#include "core/data/transform_rows.h"

struct options {
    double degrees;
    int filter;
};

static const struct et_option option_table[] = {
    {
        .name = "degrees",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, degrees),
        .flags = ET_OPT_REQUIRED,
        .max = 180,
        .help = "turned by -degrees to degrees",
    },
    ETI_TRANSFORM_FILTER(struct options),
    {.name = NULL},
};

static void
geometry(const void *options, struct et_rng *r, struct et_view *v)
{
    const struct options *o = options;
    double angle = o->degrees * (2 * et_rng_uniform(r) - 1);
    et_view_turn(v, angle, 0, 0, 1, 0, 0, (enum et_filter)o->filter);
}

const struct et_transform_class et_transform_random_rotation = {
    .info =
        {
            .name = "random_rotation",
            .class_name = "RandomRotation",
            .summary = "turns a picture about its middle at random",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .geometry = geometry,
};
