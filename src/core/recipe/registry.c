/* registry.c: what this build was made with, for each kind a recipe can name. */
#include "config.h"

#include "etude/data.h"
#include "etude/model.h"
#include "etude/recipe.h"
#include "etude/sched.h"

static const struct et_component *
scheduler_at(int i)
{
    int n;
    const struct et_scheduler_class *const *list = et_scheduler_list(&n);
    return i < n ? &list[i]->info : NULL;
}

static const struct et_component *
scheduler_find(const char *name)
{
    const struct et_scheduler_class *c = et_scheduler_find(name);
    return c ? &c->info : NULL;
}

static const struct et_component *
model_at(int i)
{
    return et_model_classes[i] ? &et_model_classes[i]->info : NULL;
}

static const struct et_component *
dataset_at(int i)
{
    return et_dataset_classes[i] ? &et_dataset_classes[i]->info : NULL;
}

static const struct et_component *
transform_at(int i)
{
    return et_transform_classes[i] ? &et_transform_classes[i]->info : NULL;
}

const struct et_registry *
et_registry_core(void)
{
    static const struct et_registry core = {
        .get = {
            [ET_KIND_MODEL] = model_at,
            [ET_KIND_DATASET] = dataset_at,
            [ET_KIND_TRANSFORM] = transform_at,
            [ET_KIND_SCHEDULER] = scheduler_at,
        },
        .find = {
            [ET_KIND_SCHEDULER] = scheduler_find,
        },
    };
    return &core;
}
