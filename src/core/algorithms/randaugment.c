/* SPDX-License-Identifier: Apache-2.0 */
/* randaugment.c: depth augmentations of each picture, drawn evenly from a set, by the
 * loader.
 *
 * Cubuk et al. 2020, arXiv 1909.13719; MosaicML Composer; spec/algorithms.md 2.20. As
 * there, and not in the paper, levels are drawn anew for each, up to the severity. */
#include "config.h"

#include "core/algorithms/augment.h"

struct randaugment_options {
    double severity;
    int64_t depth;
    int augmentation_set;
};

static et_status
change(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct randaugment_options *o = options;
    uint8_t *spare = et_canvas_room(c, (size_t)(c->H * c->W * c->C));
    if (!spare)
        return eti_why(why, ET_ENOMEM, "randaugment: no memory for a picture");
    for (int64_t i = 0; i < o->depth; i++) {
        struct eti_augment a = eti_augment_draw(
            (enum et_augmentation_set)o->augmentation_set, o->severity, c->H, c->W, r);
        eti_augment_apply(c, &a, spare);
    }
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_ROW(FLOAT, randaugment_options, severity, "9", 0, 10, ET_OPT_MAY_CHANGE,
            "how strong augmentations are, at most"),
    ETI_ROW(INT, randaugment_options, depth, "2", 0, 64, 0,
            "augmentations of a picture"),
    ETI_ENUM(
        randaugment_options, augmentation_set, "all", eti_augment_sets, 0,
        "all; safe: none that ImageNet-C tests with; original: as AugMix's authors"),
    {.name = NULL},
};

#define RANDAUGMENT_INFO                                                               \
    {                                                                                  \
        .name = "randaugment", .class_name = "RandAugment",                            \
        .summary = "augment pictures at random",                                       \
        .source = "Cubuk et al. 2020, arXiv 1909.13719; MosaicML Composer",            \
        .applies_to = "vision", .options = table,                                      \
        .options_size = sizeof(struct randaugment_options),                            \
    }

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    (void)options, (void)h, (void)w;
    return eti_augment_check(cx, "randaugment", C);
}

static const struct et_transform_class of_picture = {
    .info = RANDAUGMENT_INFO,
    .check = check,
    .pixels = change,
};

et_status
et_randaugment_image(struct et_ctx *cx, uint8_t *pixels, int C, int64_t H, int64_t W,
                     double severity, int64_t depth, enum et_augmentation_set set,
                     struct et_rng *rng)
{
    ETI_NEED(cx, cx, pixels, rng);
    const struct randaugment_options o = {severity, depth, set};
    return eti_augment_image(cx, &of_picture, &o, set, pixels, C, H, W, rng);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)event, (void)s, (void)log;
    eti_tell_transform(self);
    return ET_OK;
}

static const struct et_transform_class *
transform(const struct et_algorithm *self)
{
    (void)self;
    return &of_picture;
}

const struct et_algorithm_class et_algorithm_randaugment = {
    .info = RANDAUGMENT_INFO,
    .events = ET_ON(FIT_START),
    .flags = ET_ALG_PREPARES,
    .apply = apply,
    .transform = transform,
};
