/* SPDX-License-Identifier: Apache-2.0 */
/* random_affine.c: turned, moved, made larger and sheared, each at random, as
 * torchvision's RandomAffine. */
#include "core/data/transform_rows.h"

#include <math.h>

struct options {
    double degrees, translate, shear;
    struct et_floats scale;
    int filter;
};

static const struct et_option option_table[] = {
    {
        .name = "degrees",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, degrees),
        .def = "0",
        .max = 180,
        .help = "turned by -degrees to degrees",
    },
    {
        .name = "translate",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, translate),
        .def = "0",
        .max = 1,
        .help = "moved by so much of the width and of the height, at most",
    },
    ETI_TRANSFORM_RANGE(struct options, scale, "[1, 1]", "made larger, drawn evenly"),
    {
        .name = "shear",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, shear),
        .def = "0",
        .max = 80,
        .help = "sheared along x by -shear to shear degrees",
    },
    ETI_TRANSFORM_FILTER(struct options),
    {.name = NULL},
};

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    const struct options *o = options;
    (void)C;
    (void)h;
    (void)w;
    return eti_transform_range(cx, "random_affine", "scale", &o->scale, 0.01, 100);
}

/* From -MOST to MOST. */
static double
draw(double most, struct et_rng *r)
{
    return most * (2 * et_rng_uniform(r) - 1);
}

static void
geometry(const void *options, struct et_rng *r, struct et_view *v)
{
    const struct options *o = options;
    double angle = draw(o->degrees, r);
    double dx = round(draw(o->translate * (double)v->w, r));
    double dy = round(draw(o->translate * (double)v->h, r));
    double scale = eti_transform_draw(&o->scale, r), shear = draw(o->shear, r);
    et_view_turn(v, angle, dx, dy, scale, shear, 0, (enum et_filter)o->filter);
}

const struct et_transform_class et_transform_random_affine = {
    .info =
        {
            .name = "random_affine",
            .class_name = "RandomAffine",
            .summary = "turns, moves, scales and shears a picture at random",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .check = check,
    .geometry = geometry,
};
