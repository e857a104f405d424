/* SPDX-License-Identifier: Apache-2.0 */
/* augmix.c: each picture mixed with chains of augmentations of it, by the loader.
 *
 *     w ~ Dirichlet(alpha, ... alpha) of width chains, m ~ Beta(alpha, alpha)
 *     x' = trunc((1 - m) x + m sum_c w_c chain_c(x)), in f32
 *     a chain: depth augmentations drawn evenly from a set, or 1 to 3 of them
 *
 * Hendrycks et al. 2020, arXiv 1912.02781; MosaicML Composer; spec/algorithms.md 2.2.
 * The loss of the paper that compares three views is not part of it. */
#include "config.h"

#include <string.h>

#include "core/algorithms/augment.h"

struct augmix_options {
    double severity;
    int64_t depth, width;
    double alpha;
    int augmentation_set;
};

enum { MOST_CHAINS = 64 };

/* Where a picture of N bytes is worked on. */
struct desk {
    float *sum;
    uint8_t *chain, *spare;
};

static bool
find_desk(struct et_canvas *c, int64_t n, struct desk *out)
{
    out->sum = et_canvas_room(c, (size_t)n * (sizeof *out->sum + 2));
    if (!out->sum)
        return false;
    out->chain = (uint8_t *)(out->sum + n);
    out->spare = out->chain + n;
    return true;
}

void
eti_augmix_add(float *sum, const uint8_t *chain, int64_t n, float weight)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += weight * (float)chain[i];
}

void
eti_augmix_end(uint8_t *x, const float *sum, int64_t n, float m)
{
    for (int64_t i = 0; i < n; i++) {
        float v = (1 - m) * (float)x[i] + m * sum[i];
        x[i] = v >= 255 ? 255 : (uint8_t)v;
    }
}

/* One chain of C into D->chain. */
static void
run_chain(const struct augmix_options *o, const struct et_canvas *c, struct desk *d,
          struct et_rng *r)
{
    struct et_canvas own = *c;
    int64_t depth = o->depth > 0 ? o->depth : 1 + (int64_t)et_rng_below(r, 3);
    own.data = d->chain;
    memcpy(d->chain, c->data, (size_t)(c->H * c->W * c->C));
    for (int64_t i = 0; i < depth; i++) {
        struct eti_augment a = eti_augment_draw(
            (enum et_augmentation_set)o->augmentation_set, o->severity, c->H, c->W, r);
        eti_augment_apply(&own, &a, d->spare);
    }
}

static et_status
change(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct augmix_options *o = options;
    int64_t n = c->H * c->W * c->C;
    double weight[MOST_CHAINS];
    struct desk d;
    if (!find_desk(c, n, &d))
        return eti_why(why, ET_ENOMEM, "augmix: no memory for a picture");
    memset(d.sum, 0, (size_t)n * sizeof *d.sum);
    et_rng_dirichlet(r, o->alpha, weight, o->width);
    float m = (float)et_rng_beta(r, o->alpha, o->alpha);
    for (int64_t i = 0; i < o->width; i++) {
        run_chain(o, c, &d, r);
        eti_augmix_add(d.sum, d.chain, n, (float)weight[i]);
    }
    eti_augmix_end(c->data, d.sum, n, m);
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_ROW(FLOAT, augmix_options, severity, "3", 0, 10, ET_OPT_MAY_CHANGE,
            "how strong augmentations are, at most"),
    ETI_ROW(INT, augmix_options, depth, "-1", -1, 64, 0,
            "augmentations of a chain; 0 or less: 1 to 3, drawn"),
    ETI_ROW(INT, augmix_options, width, "3", 1, MOST_CHAINS, 0, "chains"),
    ETI_ROW(FLOAT, augmix_options, alpha, "1", 0, -1, ET_OPT_MIN_OPEN,
            "all parameters of the Dirichlet and the Beta distribution"),
    ETI_ENUM(augmix_options, augmentation_set, "all", eti_augment_sets, 0,
             "all; safe: none that ImageNet-C tests with; original: as the authors"),
    {.name = NULL},
};

#define AUGMIX_INFO                                                                    \
    {                                                                                  \
        .name = "augmix", .class_name = "AugMix",                                      \
        .summary = "mix pictures with chains of augmentations of them",                \
        .source = "Hendrycks et al. 2020, arXiv 1912.02781; MosaicML Composer",        \
        .applies_to = "vision", .options = table,                                      \
        .options_size = sizeof(struct augmix_options),                                 \
    }

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    (void)options, (void)h, (void)w;
    return eti_augment_check(cx, "augmix", C);
}

static const struct et_transform_class of_picture = {
    .info = AUGMIX_INFO,
    .check = check,
    .pixels = change,
};

et_status
et_augmix_image(struct et_ctx *cx, uint8_t *pixels, int C, int64_t H, int64_t W,
                double severity, int64_t depth, int64_t width, double alpha,
                enum et_augmentation_set set, struct et_rng *rng)
{
    ETI_NEED(cx, cx, pixels, rng);
    const struct augmix_options o = {severity, depth < 1 ? -1 : depth, width, alpha,
                                     set};
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

const struct et_algorithm_class et_algorithm_augmix = {
    .info = AUGMIX_INFO,
    .events = ET_ON(FIT_START),
    .flags = ET_ALG_PREPARES,
    .apply = apply,
    .transform = transform,
};
