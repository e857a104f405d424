/* validate.c: `etude validate`: recipes are read and checked, nothing of them runs. */
#include "config.h"

#include <jansson.h>

#include "cli/cli.h"

/* With --json a line says for each recipe what became of it. */
static int
conclude(struct cli *c, const char *name, int code)
{
    if (c->opt.json) {
        json_t *line = json_pack("{s:s, s:b}", "recipe", name, "valid", code == CLI_OK);
        if (!line)
            return CLI_NO_MEMORY;
        json_dumpf(line, stdout, 0);
        putchar('\n');
        json_decref(line);
    } else if (code == CLI_OK && !c->opt.quiet) {
        printf("%s: fits the schema\n", name);
    }
    return code;
}

static int
validate(struct cli *c, const char *name)
{
    struct et_diagnostics errors = {0};
    int code;
    struct et_recipe *recipe = cli_load_recipe(c, name, &code);
    if (!recipe)
        return conclude(c, name, code);
    if (eti_recipe_check_available(c->cx, recipe, &errors) != ET_OK) {
        code = cli_fail_list(c, &errors, stderr);
        et_error_clear(c->cx);
    }
    et_recipe_free(&recipe);
    return conclude(c, name, code);
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
