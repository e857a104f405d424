/* SPDX-License-Identifier: Apache-2.0 */
/* random_grayscale.c: grey, with probability p. */
#include "core/data/transform_rows.h"
#include "core/image/levels.h"

struct options {
    double p;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_P(struct options, "0.1"),
    {.name = NULL},
};

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct options *o = options;
    (void)why;
    if (et_rng_uniform(r) < o->p)
        eti_grey(c);
    return ET_OK;
}

const struct et_transform_class et_transform_random_grayscale = {
    .info =
        {
            .name = "random_grayscale",
            .class_name = "RandomGrayscale",
            .summary = "makes a picture grey at random",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .pixels = pixels,
};
