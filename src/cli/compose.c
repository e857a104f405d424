/* SPDX-License-Identifier: Apache-2.0 */
/* compose.c: `etude compose`: the recipe composer. */
#include "config.h"

#include "cli/workbench.h"
#include "tui/compose.h"

static int
begin(struct cli *c, struct tui_app *app, void *data)
{
    char path[PATH_MAX];
    const char *name = data;
    if (!name)
        return CLI_OK;
    if (c->opt.module_mode && !cli_recipe_find(name, path, sizeof path))
        return cli_fail(c, CLI_E_NAME, "etude recipes lists them",
                        "no installed recipe is called '%s'", name);
    et_status status = tui_compose_open(app, c->opt.module_mode ? path : name);
    if (status == ET_OK)
        return CLI_OK;
    char hint[PATH_MAX + 64] = "etude recipes lists the installed ones";
    if (!c->opt.module_mode && cli_recipe_find(name, path, sizeof path))
        snprintf(hint, sizeof hint,
                 "an installed recipe is called so: etude compose -m %s", name);
    int code = cli_fail(c, (enum cli_error)ET_E_READ, hint, "%s",
                        et_error_get(c->cx)->message);
    et_error_clear(c->cx);
    return code;
}

int
cli_compose(struct cli *c)
{
    if (c->n_args > 1)
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "compose takes one recipe, not also '%s'", c->arg[1]);
    return cli_workbench(c, TUI_IN_compose, begin,
                         c->n_args == 1 ? (void *)c->arg[0] : NULL);
}
