/* SPDX-License-Identifier: Apache-2.0 */
/* normalize.c: y = (x - mean[c]) / std[c], x in [0, 1]. The last of a list. */
#include "core/data/transform_rows.h"

struct options {
    struct et_floats mean, std;
};

static const struct et_option option_table[] = {
    {
        .name = "mean",
        .type = ET_OPT_FLOATS,
        .offset = offsetof(struct options, mean),
        .flags = ET_OPT_REQUIRED,
        .help = "of each channel, or one for all, of pixels in [0, 1]",
    },
    {
        .name = "std",
        .type = ET_OPT_FLOATS,
        .offset = offsetof(struct options, std),
        .flags = ET_OPT_REQUIRED,
        .help = "of each channel, or one for all, of pixels in [0, 1]",
    },
    {.name = NULL},
};

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    const struct options *o = options;
    (void)h;
    (void)w;
    if ((o->mean.n != 1 && o->mean.n != C) || (o->std.n != 1 && o->std.n != C))
        return ET_FAIL(cx, ET_EINVAL,
                       "normalize: %d means and %d stds for images of %d channels",
                       o->mean.n, o->std.n, C);
    for (int i = 0; i < o->std.n; i++)
        if (!(o->std.v[i] > 0))
            return ET_FAIL(cx, ET_EINVAL, "normalize: std %g is not above 0",
                           o->std.v[i]);
    return ET_OK;
}

static double
value(const void *options, int c, double v)
{
    const struct options *o = options;
    double mean = o->mean.v[o->mean.n == 1 ? 0 : c];
    return (v - mean) / o->std.v[o->std.n == 1 ? 0 : c];
}

const struct et_transform_class et_transform_normalize = {
    .info =
        {
            .name = "normalize",
            .class_name = "Normalize",
            .summary =
                "subtracts a mean and divides by a standard deviation, per channel",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .check = check,
    .value = value,
};
