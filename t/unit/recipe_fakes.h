/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_fakes.h: components by the names of the two example recipes, so that recipes
 * are tested whatever else this build has. Models, transforms, optimizers and
 * schedulers are the core's. */
#ifndef ETUDE_T_RECIPE_FAKES_H
#define ETUDE_T_RECIPE_FAKES_H

#include <stddef.h>
#include <string.h>

#include "etude/data.h"
#include "etude/recipe.h"

struct fake {
    struct et_time half_life, update_interval;
    double alpha, smoothing, threshold;
    struct et_texts layers;
    int type;
};
static const char *const fake_types[] = {"adaptive", "norm", "value", NULL};
#define FAKE(field, kind) .type = ET_OPT_##kind, .offset = offsetof(struct fake, field)
static const struct et_option fake_ema[] = {
    {.name = "half_life", FAKE(half_life, TIME), .def = "1000ba"},
    {.name = "update_interval", FAKE(update_interval, TIME), .def = "1ba"},
    {0},
};
static const struct et_option fake_cutmix[] = {
    {.name = "alpha", FAKE(alpha, FLOAT), .def = "1.0", .flags = ET_OPT_MIN_OPEN},
    {.name = "layers", FAKE(layers, TEXTS), .flags = ET_OPT_OPTIONAL},
    {0},
};
static const struct et_option fake_smoothing[] = {
    {.name = "smoothing", FAKE(smoothing, FLOAT), .flags = ET_OPT_REQUIRED, .max = 1},
    {0},
};
static const struct et_option fake_clipping[] = {
    {.name = "clipping_type", FAKE(type, ENUM), .choices = fake_types, .def = "norm"},
    {.name = "clipping_threshold", FAKE(threshold, FLOAT), .flags = ET_OPT_REQUIRED},
    {0},
};
struct fake_data {
    struct et_data_options common;
};
static const struct et_option fake_images[] = {
    ET_DATA_OPTION_PATH(struct fake_data, "/data", 0, "where"),
    ET_DATA_OPTIONS(struct fake_data),
    ET_DATA_IMAGE_OPTIONS(struct fake_data),
    {0},
};
static const struct et_option fake_tokens[] = {
    ET_DATA_OPTION_PATH(struct fake_data, "/data", 0, "where"),
    ET_DATA_OPTIONS(struct fake_data),
    ET_DATA_TOKEN_OPTIONS(struct fake_data),
    {0},
};

#define COMPONENT(its_name, table, type)                                               \
    {                                                                                  \
        .name = its_name, .options = table, .options_size = sizeof(type)               \
    }
static const struct et_component fake_algorithms[] = {
    {.name = "blurpool"},
    COMPONENT("cutmix", fake_cutmix, struct fake),
    COMPONENT("ema", fake_ema, struct fake),
    COMPONENT("gradient_clipping", fake_clipping, struct fake),
    COMPONENT("label_smoothing", fake_smoothing, struct fake),
    {0},
};
static const struct et_component fake_callbacks[] = {
    {.name = "speed_monitor"},     {.name = "memory_monitor"}, {.name = "lr_monitor"},
    {.name = "runtime_estimator"}, {.name = "early_stopper"},  {0},
};
static const struct et_component fake_loggers[] = {
    {.name = "jsonl"},
    {.name = "tensorboard"},
    {.name = "csv"},
    {0},
};
static const struct et_component fake_datasets[] = {
    COMPONENT("fashion_mnist", fake_images, struct fake_data),
    COMPONENT("bible_kjv", fake_tokens, struct fake_data),
    {0},
};

static const struct et_component *
fake_get(const struct et_registry *self, enum et_kind kind, int i)
{
    static const struct et_component *const fakes[ET_KIND_COUNT] = {
        [ET_KIND_ALGORITHM] = fake_algorithms,
        [ET_KIND_CALLBACK] = fake_callbacks,
        [ET_KIND_LOGGER] = fake_loggers,
        [ET_KIND_DATASET] = fake_datasets,
    };
    int n = 0;
    (void)self;
    if (!fakes[kind])
        return et_registry_core()->get(et_registry_core(), kind, i);
    while (fakes[kind][n].name && n < i)
        n++;
    return fakes[kind][n].name ? &fakes[kind][n] : NULL;
}

/* Made-up components where recipes of the tests name them, the core's schedulers. */
static const struct et_component *
fake_find(const struct et_registry *self, enum et_kind kind, const char *name)
{
    (void)self;
    return kind == ET_KIND_SCHEDULER ? et_registry_find(NULL, kind, name) : NULL;
}

static inline struct et_registry
fake_registry(void)
{
    return (struct et_registry){.get = fake_get, .find = fake_find};
}

#endif
