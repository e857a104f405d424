/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.c: do the model and the data of a recipe go together? What their classes say of
 * it, without a file; what shapes say, rehearse.c finds. */
#include "config.h"

#include <string.h>

#include "core/assemble/assemble.h"
#include "core/base/sized.h"
#include "core/recipe/recipe.h"
#include "etude/data.h"
#include "etude/model.h"

/* Does the data set say, without its files, that it has no class for each pixel? */
static bool
has_no_masks(const struct et_part *part)
{
    const struct et_dataset_class *c = ETI_CLASS(dataset, part->component);
    struct et_data_facts facts = {0};
    if (!c->describe)
        return false;
    c->describe(part->options, &facts);
    const struct et_field *target = et_facts_target(&facts);
    return target && target->kind != ET_FIELD_MASK;
}

/* Are the targets the tokens that follow? */
static bool
gives_next(const struct et_dataset_class *c)
{
    return c->tokens || (ETI_HAS(c, gives_next) && c->gives_next);
}

/* PART, which PATH names, is what MODEL learns from. */
static void
check_part(const struct et_model_class *model, const struct et_part *part,
           const char *path, struct et_diagnostics *errors)
{
    const struct et_component *data = part->component;
    if (!data || !data->applies_to || !part->value ||
        strcmp(data->applies_to, "any") == 0)
        return;
    struct et_place at = eti_value_place(part->value);
    bool is_text = strcmp(data->applies_to, "text") == 0;
    bool wants_text = model->task == ET_TASK_LANGUAGE || model->reads_tokens;
    if (is_text != wants_text)
        et_diagnostics_add(errors, ET_E_CONFLICT, &at, path, NULL,
                           "model %s reads %s, %s gives %s", model->info.name,
                           wants_text ? "tokens" : "images", data->name,
                           is_text ? "tokens" : "images");
    else if (model->task == ET_TASK_SEGMENTATION && has_no_masks(part))
        et_diagnostics_add(errors, ET_E_CONFLICT, &at, path, NULL,
                           "model %s learns a class for each pixel, %s gives one for "
                           "each image",
                           model->info.name, data->name);
    else if (ETI_HAS(model, wants_masked) && model->wants_masked &&
             gives_next(ETI_CLASS(dataset, data)))
        et_diagnostics_add(errors, ET_E_UNAVAILABLE, &at, path, NULL,
                           "model %s learns tokens that were masked, %s gives the next "
                           "ones, which it would copy; masked_text masks them",
                           model->info.name, data->name);
}

void
eti_recipe_check_kinds(const struct et_recipe *recipe, struct et_diagnostics *errors)
{
    const struct et_component *model = recipe->model.component;
    if (!model)
        return;
    const struct et_model_class *c = ETI_CLASS(model, model);
    check_part(c, &recipe->train_data, "train_data", errors);
    for (int i = 0; i < recipe->eval_data.n; i++)
        check_part(c, &recipe->eval_data.v[i], "eval_data", errors);
}
