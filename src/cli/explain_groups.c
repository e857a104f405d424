/* SPDX-License-Identifier: Apache-2.0 */
/* explain_groups.c: the parameter groups of a recipe's optimizer: how much of the model
 * is in each, and the rate, the decay and the schedule that it gets. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "cli/cli.h"
#include "core/optim/group.h"
#include "etude/model.h"

static const struct et_parts *
groups_of(const struct et_recipe *recipe)
{
    const struct et_recipe_optimizer *extra = recipe->optimizer.extra;
    return extra && extra->groups.n > 0 ? &extra->groups : NULL;
}

bool
cli_has_groups(const struct et_recipe *recipe)
{
    return groups_of(recipe) != NULL;
}

/* How many parameters of MODEL, and numbers in them, each group has: N [1 + rows]. */
static et_status
count(struct et_ctx *cx, const struct eti_assembly *a, int64_t *parameters,
      int64_t *numbers)
{
    struct eti_group_patterns patterns;
    struct et_leaves leaves = {0};
    et_status status =
        eti_group_patterns_init(cx, a->config.groups, a->config.n_groups, &patterns);
    if (status == ET_OK)
        status = et_module_leaves(cx, a->model->root, ET_PARAM, &leaves);
    for (int i = 0; i < leaves.n && status == ET_OK; i++) {
        int group = eti_group_patterns_find(&patterns, leaves.v[i].name);
        parameters[group]++;
        numbers[group] += et_desc_count(&leaves.v[i].param->desc);
    }
    et_leaves_release(&leaves);
    eti_group_patterns_release(&patterns);
    return status;
}

/* "constant, linear", or what the rest has. */
static const char *
schedule_of(const struct et_parts *own, char *buf, size_t size)
{
    size_t used = 0;
    snprintf(buf, size, "%s", "as the rest");
    for (int i = 0; i < own->n && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
                                 own->v[i].component->name);
    return buf;
}

/* The row of group I - 1 of the recipe; 0: the rest. */
static json_t *
group_json(const struct et_recipe *recipe, int i)
{
    const struct et_optimizer_options *common = recipe->optimizer.options;
    const struct eti_group_options *o =
        i > 0 ? groups_of(recipe)->v[i - 1].options : NULL;
    double rate = common->lr, decay = common->weight_decay;
    char schedule[128];
    if (o && !eti_group_rate(o->is.lr, common->lr, &rate))
        rate = NAN;
    if (o && !isnan(o->is.weight_decay))
        decay = o->is.weight_decay;
    return json_pack(
        "{s:s, s:f, s:f, s:s}", "match", o ? o->is.match : "(the rest)", "lr", rate,
        "weight_decay", decay, "scheduler",
        schedule_of(o ? &o->scheduler : &recipe->scheduler, schedule, sizeof schedule));
}

json_t *
cli_groups_json(struct et_ctx *cx, const struct et_recipe *recipe,
                const struct eti_assembly *a)
{
    int64_t parameters[1 + ET_MAX_PARAM_GROUPS] = {0};
    int64_t numbers[1 + ET_MAX_PARAM_GROUPS] = {0};
    json_t *list = json_array();
    bool counted = a->model && count(cx, a, parameters, numbers) == ET_OK;
    et_error_clear(cx);
    for (int i = 0; i <= groups_of(recipe)->n; i++) {
        json_t *row = group_json(recipe, i);
        if (row && counted) {
            json_object_set_new(row, "parameters", json_integer(parameters[i]));
            json_object_set_new(row, "numbers", json_integer(numbers[i]));
        }
        json_array_append_new(list, row);
    }
    return list;
}

/* A number of ROW under KEY; "?" where the model could not be built to count. */
static const char *
number_text(json_t *row, const char *key, char *buf, size_t size)
{
    json_t *v = json_object_get(row, key);
    if (json_is_integer(v))
        snprintf(buf, size, "%lld", (long long)json_integer_value(v));
    else
        snprintf(buf, size, json_is_real(v) ? "%g" : "?", json_real_value(v));
    return buf;
}

void
cli_print_groups(json_t *list)
{
    static const char *const keys[] = {"parameters", "numbers", "lr", "weight_decay"};
    char cell[4][32];
    json_t *row;
    size_t i;
    et_print(stdout, "\n%-22s %10s %11s %8s %12s  %s\n", "parameter groups",
             "parameters", "numbers", "lr", "weight_decay", "schedule");
    json_array_foreach(list, i, row)
    {
        char number[16] = "   ";
        for (int k = 0; k < 4; k++)
            number_text(row, keys[k], cell[k], sizeof cell[k]);
        if (i > 0)
            snprintf(number, sizeof number, "%-2d ", (int)i - 1);
        et_print(stdout, "%s%-19s %10s %11s %8s %12s  %s\n", number,
                 json_string_value(json_object_get(row, "match")), cell[0], cell[1],
                 cell[2], cell[3],
                 json_string_value(json_object_get(row, "scheduler")));
    }
}
