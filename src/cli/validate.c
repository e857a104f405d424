/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c: `etude validate`: recipes are read and checked, nothing of them runs. */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "core/models/weight_file.h"
#include "core/recipe/value.h"

/* With --json a line says for each recipe what became of it. */
static int
conclude(struct cli *c, const char *name, int code, bool tried)
{
    if (c->opt.json) {
        json_t *line = json_pack("{s:o, s:b}", "recipe", cli_json_text(name), "valid",
                                 code == CLI_OK);
        if (!line)
            return CLI_NO_MEMORY;
        cli_put_json_as(stdout, line, 0);
    } else if (code == CLI_OK && !c->opt.quiet) {
        et_print(stdout, "%s: fits the schema%s\n", name,
                 tried ? ", and its model fits its data"
                       : "; its model was not tried: its data are not known here");
    }
    return code;
}

/* The file that the model starts from is there and whole, as far as its header says. */
static int
check_weights(struct cli *c, const struct et_recipe *recipe)
{
    const struct et_model_options *o = recipe->model.options;
    struct eti_weight_file file;
    if (!recipe->model.component || !o || !o->weights.path)
        return CLI_OK;
    et_status status = eti_weight_file_open(c->cx, o->weights.path, &file);
    if (status == ET_OK) {
        eti_weight_file_close(&file);
        return CLI_OK;
    }
    const struct et_value *weights = eti_value_get(recipe->model.value, "weights");
    const struct et_value *path = eti_value_get(weights, "path");
    const struct et_place place =
        weights ? eti_value_place(path ? path : weights) : (struct et_place){0};
    return cli_fail_status_at(c, ETI_STAGE_DATA, status, &place, "model.weights");
}

static int
validate(struct cli *c, const char *name)
{
    struct et_diagnostics errors = {0};
    bool tried = false;
    int code;
    struct et_recipe *recipe = cli_load_recipe(c, name, &code);
    if (!recipe)
        return conclude(c, name, code, false);
    if (eti_recipe_check_available(c->cx, recipe, &errors) != ET_OK) {
        code = cli_fail_list(c, &errors, stderr);
        et_error_clear(c->cx);
    } else if ((code = check_weights(c, recipe)) != CLI_OK) {
        ; /* it has been said */
    } else if (eti_rehearse(c->cx, recipe, &tried) != ET_OK) {
        const struct et_error *e = et_error_get(c->cx);
        const size_t n = strlen(name);
        const bool has_place =
            strncmp(e->message, name, n) == 0 && e->message[n] == ':';
        code = cli_fail(c, CLI_E_PARTS, *e->hint ? e->hint : NULL, "%s%s%s",
                        has_place ? "" : name, has_place ? "" : ": ", e->message);
        et_error_clear(c->cx);
    }
    et_recipe_free(&recipe);
    return conclude(c, name, code, tried);
}

int
cli_validate(struct cli *c)
{
    int code = CLI_OK;
    if (c->n_args == 0)
        return cli_fail(c, CLI_E_OPERAND, "etude recipes lists the installed ones",
                        "validate needs a recipe: etude validate RECIPE...");
    for (int i = 0; i < c->n_args; i++) {
        int one = validate(c, c->arg[i]);
        if (code == CLI_OK)
            code = one;
    }
    return code;
}
