/* SPDX-License-Identifier: Apache-2.0 */
/* random_solarize.c: bright values inverted, with probability p. */
#include "core/data/transform_rows.h"

#include <math.h>

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

static int
n_changes(const void *options)
{
    (void)options;
    return 1;
}

static int
changes(const void *options, struct et_rng *r, int64_t h, int64_t w,
        struct et_pixel_change *out)
{
    const struct options *o = options;
    (void)h;
    (void)w;
    return eti_transform_maybe(o->p, ET_CHANGE_SOLARIZE, (int)ceil(o->threshold), r,
                               out);
}

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    (void)why;
    eti_transform_do(changes, options, r, c);
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
    .n_changes = n_changes,
    .changes = changes,
};
