/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic_images.c: images of noise, for tests and for measuring speed.
 *
 * gaussian: every byte is 128 + 20 z, z of mean 0 and variance 1, labels at random.
 * separable: the mean rises with the label, by one deviation a class, or less where
 * more than nine classes have to fit: a linear layer can tell them apart.
 *
 * NUM_UNIQUE images exist and repeat. Image i is a pure function of (seed, i), and
 * those of the test split are others. Source: spec of synthetic data sets, MosaicML
 * Composer. Differs: z is the sum of four uniform bytes (Irwin-Hall), so that a large
 * image costs one draw a byte; bytes, not floats, so that transforms see what they see
 * of real ones. */
#include "core/data/image_set.h"

struct options {
    struct et_data_options common;
    int64_t num_samples, num_unique, num_classes, channels, seed;
    int type;
};

enum { GAUSSIAN, SEPARABLE };
static const char *const type_names[] = {"gaussian", "separable", NULL};

static const struct et_option option_table[] = {
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    {
        .name = "num_samples",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_samples),
        .def = "10000",
        .min = 1,
        .max = 1e12,
        .unit = "samples",
        .help = "of an epoch",
    },
    {
        .name = "num_unique",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_unique),
        .def = "100",
        .min = 1,
        .max = 1e6,
        .unit = "samples",
        .help = "that exist; they repeat",
    },
    {
        .name = "num_classes",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_classes),
        .def = "10",
        .min = 1,
        .max = 1e6,
        .help = "labels are below it",
    },
    {
        .name = "channels",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, channels),
        .def = "3",
        .min = 1,
        .max = ET_MAX_CHANNELS,
        .help = "of an image",
    },
    {
        .name = "type",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, type),
        .def = "gaussian",
        .choices = type_names,
        .help = "noise alone, or with a mean that tells the class",
    },
    {
        .name = "seed",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, seed),
        .def = "0",
        .max = UINT32_MAX,
        .help = "of the images; the run's own orders them",
    },
    {.name = NULL},
};

enum {
    DEFAULT_SIDE = 32,
    SIGMA = 20,           /* bytes per standard deviation */
    SUM_MEAN = 510,       /* of four uniform bytes: 4 * 255 / 2 */
    TEST_INDEX = 1 << 30, /* the test split's images are numbered from here */
};
static const double SUM_SIGMA = 147.8; /* sqrt(4 * (256^2 - 1) / 12) */

/* How many deviations the mean of class LABEL lies from 0: within +-4. */
static double
class_mean(const struct options *o, int32_t label)
{
    double classes = (double)o->num_classes - 1;
    if (o->type != SEPARABLE || classes < 1)
        return 0;
    double step = classes > 8 ? 8 / classes : 1;
    return (label - classes / 2) * step;
}

static void
draw_image(const struct options *o, int64_t index, int64_t bytes, uint8_t *out,
           int32_t *label)
{
    struct et_rng r = et_rng_at((uint32_t)o->seed, ET_RNG_DATA, (uint64_t)index);
    *label = (int32_t)et_rng_below(&r, (uint64_t)o->num_classes);
    double mean = 128.5 + SIGMA * class_mean(o, *label);
    for (int64_t i = 0; i < bytes; i++) {
        uint32_t w = et_rng_u32(&r);
        int sum = (int)((w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24));
        double v = mean + (sum - SUM_MEAN) * (SIGMA / SUM_SIGMA);
        out[i] = v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
    }
}

static et_status
open_images(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct eti_image_set *set = self->state;
    int64_t side = o->common.resolution ? o->common.resolution : DEFAULT_SIDE;
    int64_t bytes = side * side * o->channels, n = o->num_unique;
    if (n > o->num_samples)
        n = o->num_samples;
    et_facts_images(&self->facts, o->num_samples, (int)o->channels, side, side,
                    o->num_classes);
    self->facts.bytes = n * bytes;
    ET_TRY(et_alloc(cx, (size_t)(n * bytes), (void **)&set->block[0].data));
    set->n_blocks = 1;
    ET_TRY(eti_image_set_reserve(cx, set, n));
    for (int64_t i = 0; i < n; i++) {
        uint8_t *pixels = set->block[0].data + i * bytes;
        int64_t index = i + (o->common.split == ET_SPLIT_TEST ? TEST_INDEX : 0);
        draw_image(o, index, bytes, pixels, &set->labels[i]);
        set->pixels[i] = pixels;
    }
    return ET_OK;
}

static et_status
read_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
            struct et_error *why)
{
    const struct options *o = self->options;
    return eti_image_set_sample(self, at % o->num_unique, out, why);
}

static void
describe_images(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    int64_t side = o->common.resolution ? o->common.resolution : DEFAULT_SIDE;
    et_facts_images(out, 0, (int)o->channels, side, side, o->num_classes);
}

const struct et_dataset_class et_dataset_synthetic_images = {
    .info =
        {
            .name = "synthetic_images",
            .class_name = "SyntheticImages",
            .summary = "images of noise; no data needed",
            .source = "MosaicML Composer, synthetic data sets",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_image_set),
    .open = open_images,
    .sample = read_sample,
    .close = eti_image_set_close,
    .describe = describe_images,
};
