/* SPDX-License-Identifier: Apache-2.0 */
/* horizontal_flip.c: left and right exchanged, with probability p. */
#include "core/data/pipeline.h"

struct options {
    double p;
};

static const struct et_option option_table[] = {
    {
        .name = "p",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, p),
        .def = "0.5",
        .max = 1,
        .help = "probability",
    },
    {.name = NULL},
};

static void
frame(const void *options, struct et_rng *r, struct et_frame *f)
{
    const struct options *o = options;
    f->flipped ^= et_rng_uniform(r) < o->p;
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
    .frame = frame,
};
