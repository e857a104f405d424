/* SPDX-License-Identifier: Apache-2.0 */
/* match.c: see match.h. */
#include "core/assemble/match.h"

#include <string.h>

/* What a model reads, and what data give. */
static const char *
what_is_read(const struct et_field *x)
{
    static const char *const words[] = {
        [ET_FIELD_IMAGE] = "images",
        [ET_FIELD_MASK] = "masks",
        [ET_FIELD_TOKENS] = "tokens",
        [ET_FIELD_VALUES] = "numbers",
    };
    return words[x->kind];
}

/* A model of pixels learns a class for each. */
static et_status
check_pixels(const struct eti_assembly *a, const struct et_model_class *c,
             const struct et_dataset *set)
{
    const struct et_field *target = et_facts_target(&set->facts);
    if (c->task != ET_TASK_SEGMENTATION || (target && target->ndim >= 2))
        return ET_OK;
    return ET_FAIL(
        a->cx, ET_EINVAL,
        "model %s learns a class for each pixel, %s gives one for each image",
        c->info.name, set->type->info.name);
}

/* The reverse. What a plugin's model gives is not known. */
static et_status
check_masks(const struct eti_assembly *a)
{
    const struct eti_data *data = a->train.set ? &a->train : &a->eval[0];
    const struct et_model_class *c = a->model->type;
    const struct et_field *target =
        data->set ? et_facts_target(&data->set->facts) : NULL;
    if (a->model->task != ET_TASK_CLASSIFICATION || c->info.class_size > 0 || !target ||
        target->kind != ET_FIELD_MASK)
        return ET_OK;
    return ET_FAIL(
        a->cx, ET_EINVAL,
        "model %s learns a class for each image, %s gives one for each pixel",
        c->info.name, data->set->type->info.name);
}

et_status
eti_match_kind(const struct eti_assembly *a, const struct et_model_class *c)
{
    const struct eti_data *data = a->train.set ? &a->train : &a->eval[0];
    if (!data->set)
        return ET_OK;
    const struct et_field *x = &data->set->facts.field[ET_FIELD_X];
    bool wants = c->task == ET_TASK_LANGUAGE || c->reads_tokens;
    if (wants == (x->kind == ET_FIELD_TOKENS))
        return check_pixels(a, c, data->set);
    return ET_FAIL(a->cx, ET_EINVAL, "model %s reads %s, %s gives %s", c->info.name,
                   wants ? "tokens" : "images", data->set->type->info.name,
                   what_is_read(x));
}

/* Each label needs an output: one without has a loss that is no number. */
static et_status
check_classes(const struct eti_assembly *a, const char *what,
              const struct eti_data *data)
{
    int64_t has = a->model->num_classes;
    if (!data->set || a->model->task != ET_TASK_CLASSIFICATION ||
        et_facts_classes(&data->set->facts) <= has)
        return ET_OK;
    int64_t n = et_facts_classes(&data->set->facts);
    return ET_FAIL(
        a->cx, ET_EINVAL,
        "%s has %lld classes (labels 0 to %lld), the model's num_classes is %lld", what,
        (long long)n, (long long)n - 1, (long long)has);
}

/* Data that number the classes that they have themselves may number others than those
 * that are trained on: what is measured then means nothing. */
static void
compare_classes(const struct eti_assembly *a, const struct eti_data *data)
{
    const struct et_data_facts *own = data->set ? &data->set->facts : NULL;
    const struct et_data_facts *train = a->train.set ? &a->train.set->facts : NULL;
    if (!own || !train || !own->class_names || !train->class_names)
        return;
    const int64_t n = et_facts_classes(own), m = et_facts_classes(train);
    for (int64_t k = 0; k < n && k < m; k++)
        if (strcmp(own->class_names[k], train->class_names[k]) != 0) {
            et_report(
                a->cx, ET_LOG_WARN,
                "class %lld of eval_data is '%.100s', and '%.100s' of train_data: "
                "their numbers are not the same",
                (long long)k, own->class_names[k], train->class_names[k]);
            return;
        }
}

et_status
eti_match_outputs(const struct eti_assembly *a)
{
    ET_TRY(check_masks(a));
    ET_TRY(check_classes(a, "train_data", &a->train));
    for (int i = 0; i < ETI_MAX_EVAL_DATA; i++) {
        ET_TRY(check_classes(a, "eval_data", &a->eval[i]));
        compare_classes(a, &a->eval[i]);
    }
    return ET_OK;
}
