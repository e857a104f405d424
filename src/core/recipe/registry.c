/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c: what this build was made with, for each kind a recipe can name. */
#include "config.h"

#include <string.h>

#include "core/models/stack.h"
#include "core/optim/group.h"
#include "etude/algorithm.h"
#include "etude/callback.h"
#include "etude/data.h"
#include "etude/metric.h"
#include "etude/model.h"
#include "etude/optim.h"
#include "etude/recipe.h"
#include "etude/sched.h"

/* A kind whose classes are an array that ends with NULL, each beginning with its
 * info. */
#define FROM_ARRAY(kind, classes)                                                      \
    static const struct et_component *kind##_at(int i)                                 \
    {                                                                                  \
        int n = 0;                                                                     \
        while (classes[n] && n < i)                                                    \
            n++;                                                                       \
        return classes[n] ? &classes[n]->info : NULL;                                  \
    }
/* A kind with a function that lists them. */
#define FROM_LIST(kind, type, list)                                                    \
    static const struct et_component *kind##_at(int i)                                 \
    {                                                                                  \
        int n;                                                                         \
        const struct type *const *classes = list(&n);                                  \
        return i < n ? &classes[i]->info : NULL;                                       \
    }

static const struct et_component *
group_at(int i)
{
    return i == 0 ? &et_param_group_info : NULL;
}

/* The modules that a recipe can write. */
static const struct et_component *
layer_at(int i)
{
    for (const struct et_module_class *const *c = et_module_classes; *c; c++)
        if (eti_is_layer(*c) && i-- == 0)
            return &(*c)->info;
    return NULL;
}

FROM_ARRAY(model, et_model_classes)
FROM_ARRAY(dataset, et_dataset_classes)
FROM_ARRAY(transform, et_transform_classes)
FROM_ARRAY(algorithm, et_algorithm_classes)
FROM_ARRAY(callback, et_callback_classes)
FROM_ARRAY(logger, et_logger_classes)
FROM_ARRAY(loss, et_loss_classes)
FROM_LIST(metric, et_metric_class, et_metric_list)
FROM_LIST(optimizer, et_optimizer_class, et_optimizer_list)
FROM_LIST(scheduler, et_scheduler_class, et_scheduler_list)

static const struct et_component *(*const lists[ET_KIND_COUNT])(int i) = {
    [ET_KIND_MODEL] = model_at,         [ET_KIND_DATASET] = dataset_at,
    [ET_KIND_TRANSFORM] = transform_at, [ET_KIND_OPTIMIZER] = optimizer_at,
    [ET_KIND_GROUP] = group_at,         [ET_KIND_SCHEDULER] = scheduler_at,
    [ET_KIND_ALGORITHM] = algorithm_at, [ET_KIND_CALLBACK] = callback_at,
    [ET_KIND_LOGGER] = logger_at,       [ET_KIND_METRIC] = metric_at,
    [ET_KIND_LOSS] = loss_at,           [ET_KIND_LAYER] = layer_at,
};

static const struct et_component *
core_get(const struct et_registry *self, enum et_kind kind, int i)
{
    (void)self;
    return lists[kind](i);
}

static const struct et_component *
core_find(const struct et_registry *self, enum et_kind kind, const char *name)
{
    (void)self;
    const struct et_scheduler_class *c =
        kind == ET_KIND_SCHEDULER ? et_scheduler_find(name) : NULL;
    const struct et_component *layer = NULL;
    for (int i = 0; kind == ET_KIND_LAYER && (layer = layer_at(i)); i++)
        if (strcmp(layer->class_name, name) == 0) /* as PyTorch has it: "Conv2d" */
            break;
    return c ? &c->info : layer;
}

const struct et_registry *
et_registry_core(void)
{
    static const struct et_registry core = {.get = core_get, .find = core_find};
    return &core;
}
