/* SPDX-License-Identifier: Apache-2.0 */
/* transform_rows.h: what the tables of many transforms have in common. */
#ifndef ETI_DATA_TRANSFORM_ROWS_H
#define ETI_DATA_TRANSFORM_ROWS_H

#include <stddef.h>

#include "etude/transform.h"

/* A transform whose result is a square of SIZE. */
#define ETI_TRANSFORM_SIZE(S)                                                          \
    {                                                                                  \
        .name = "size", .type = ET_OPT_INT, .offset = offsetof(S, size), .min = 1,     \
        .max = 4096, .flags = ET_OPT_REQUIRED, .unit = "pixels",                       \
        .help = "side of the result",                                                  \
    }
#define ETI_TRANSFORM_P(S, value)                                                      \
    {                                                                                  \
        .name = "p", .type = ET_OPT_FLOAT, .offset = offsetof(S, p), .def = value,     \
        .max = 1, .help = "probability",                                               \
    }
/* How pixels are interpolated. */
#define ETI_TRANSFORM_FILTER(S)                                                        \
    {                                                                                  \
        .name = "filter", .type = ET_OPT_ENUM, .offset = offsetof(S, filter),          \
        .def = "bilinear", .choices = et_filter_names,                                 \
        .help = "nearest pixel, or weighted means of what a pixel covers",             \
        .also = "interpolation",                                                       \
    }
/* Two numbers, the smaller first; eti_transform_range checks that. */
#define ETI_TRANSFORM_RANGE(S, field, value, its_help)                                 \
    {                                                                                  \
        .name = #field, .type = ET_OPT_FLOATS, .offset = offsetof(S, field),           \
        .def = value, .help = its_help,                                                \
    }

/* EINVAL unless V, the option NAME of the transform WHO, is two numbers in order within
 * [LOW, HIGH]. */
ET_NODISCARD et_status eti_transform_range(struct et_ctx *cx, const char *who,
                                           const char *name, const struct et_floats *v,
                                           double low, double high);
/* A number of V's range, evenly. */
double eti_transform_draw(const struct et_floats *v, struct et_rng *r);

/* A part of an H x W picture: its area a fraction of the picture's that SCALE draws,
 * its width over its height what RATIO draws, evenly in its logarithm; anywhere. FALSE:
 * ten tries found none that fits. */
bool eti_transform_part(const struct et_floats *scale, const struct et_floats *ratio,
                        int64_t H, int64_t W, struct et_rng *r, int64_t *y, int64_t *x,
                        int64_t *h, int64_t *w);

/* Does to C what CHANGES, a transform's own, tells: its `pixels`. */
void eti_transform_do(int (*changes)(const void *, struct et_rng *, int64_t, int64_t,
                                     struct et_pixel_change *),
                      const void *options, struct et_rng *r, struct et_canvas *c);
/* The one change KIND, with probability P: what many transforms tell. */
int eti_transform_maybe(double p, enum et_change_kind kind, int value, struct et_rng *r,
                        struct et_pixel_change *out);

#endif
