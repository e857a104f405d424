/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c: see fields.h. Who writes a class leaves a field out with no word from the
 * compiler, and the call of a function that is not there is a crash in the midst of a
 * run. */
#include "config.h"

#include "core/plugin/fields.h"

#include <stdio.h>

#include "etude/algorithm.h"
#include "etude/callback.h"
#include "etude/data.h"
#include "etude/metric.h"
#include "etude/model.h"
#include "etude/module.h"
#include "etude/optim.h"
#include "etude/sched.h"
#include "etude/transform.h"

/* Where a field lies in its class; size 0: no field. */
struct field {
    size_t at, size;
};

struct need {
    enum et_kind kind;
    struct field when;   /* needed where this is set; none: always */
    struct field any[3]; /* one of these */
    const char *text;    /* their names */
    const char *why;     /* the name of WHEN */
};

#define FIELD(tag, name)                                                               \
    {                                                                                  \
        offsetof(struct tag, name), sizeof(((struct tag *)0)->name)                    \
    }
#define NEED(kind, tag, name)                                                          \
    {                                                                                  \
        ET_KIND_##kind, {0, 0}, {FIELD(tag, name)}, "." #name, NULL                    \
    }
/* NAME, where OTHER is set. */
#define WITH(kind, tag, other, name)                                                   \
    {                                                                                  \
        ET_KIND_##kind, FIELD(tag, other), {FIELD(tag, name)}, "." #name, "." #other   \
    }

static const struct need needs[] = {
    NEED(MODEL, et_model_class, build),
    NEED(DATASET, et_dataset_class, open),
    {ET_KIND_DATASET,
     {0, 0},
     {FIELD(et_dataset_class, sample), FIELD(et_dataset_class, tokens)},
     ".sample or .tokens",
     NULL},
    {ET_KIND_TRANSFORM,
     {0, 0},
     {FIELD(et_transform_class, geometry), FIELD(et_transform_class, pixels),
      FIELD(et_transform_class, value)},
     ".geometry, .pixels or .value",
     NULL},
    NEED(OPTIMIZER, et_optimizer_class, moments),
    NEED(OPTIMIZER, et_optimizer_class, hyper),
    NEED(OPTIMIZER, et_optimizer_class, update),
    WITH(OPTIMIZER, et_optimizer_class, state_shape, states),
    WITH(OPTIMIZER, et_optimizer_class, states, state_shape),
    WITH(OPTIMIZER, et_optimizer_class, states, by_tensor),
    NEED(SCHEDULER, et_scheduler_class, alpha),
    {ET_KIND_ALGORITHM,
     {0, 0},
     {FIELD(et_algorithm_class, events), FIELD(et_algorithm_class, transform),
      FIELD(et_algorithm_class, update)},
     ".events",
     NULL},
    WITH(ALGORITHM, et_algorithm_class, events, apply),
    WITH(ALGORITHM, et_algorithm_class, apply, events),
    WITH(CALLBACK, et_callback_class, events, run),
    WITH(CALLBACK, et_callback_class, run, events),
    WITH(LOGGER, et_callback_class, events, run),
    WITH(LOGGER, et_callback_class, run, events),
    NEED(LOGGER, et_callback_class, is_logger),
    NEED(METRIC, et_metric_class, update),
    NEED(METRIC, et_metric_class, compute),
    {ET_KIND_METRIC,
     {0, 0},
     {FIELD(et_metric_class, n_sums), FIELD(et_metric_class, n_sums_per_class)},
     ".n_sums or .n_sums_per_class",
     NULL},
    {ET_KIND_LOSS,
     {0, 0},
     {FIELD(et_loss_class, each), FIELD(et_loss_class, whole)},
     ".each or .whole",
     NULL},
    NEED(LAYER, et_module_class, size),
    NEED(LAYER, et_module_class, forward),
};

/* Is any byte of F set? A shorter class, of an older Etude, does not have what is
 * behind its end. */
static bool
is_set(const struct et_component *info, struct field f)
{
    const unsigned char *bytes = (const unsigned char *)info;
    for (size_t i = f.at; i < f.at + f.size && i < info->class_size; i++)
        if (bytes[i])
            return true;
    return false;
}

static bool
is_met(const struct et_component *info, const struct need *n)
{
    if (n->when.size && !is_set(info, n->when))
        return true;
    for (int i = 0; i < 3; i++)
        if (n->any[i].size && is_set(info, n->any[i]))
            return true;
    return false;
}

bool
eti_class_lacks(enum et_kind kind, const struct et_component *info, char *why,
                size_t size)
{
    if (info->options && info->options_size == 0) {
        snprintf(
            why, size,
            ": the field .info.options_size is missing, which .info.options needs");
        return true;
    }
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        const struct need *n = &needs[i];
        if (n->kind != kind || is_met(info, n))
            continue;
        snprintf(why, size, ": the field %s is missing%s%s%s", n->text,
                 n->why ? ", which " : "", n->why ? n->why : "",
                 n->why ? " needs" : "");
        return true;
    }
    return false;
}
