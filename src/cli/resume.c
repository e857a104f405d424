/* SPDX-License-Identifier: Apache-2.0 */
/* resume.c: --resume, --autoresume and `etude rerun`: the recipe of a run that was. */
#include "config.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/library/facts.h"
#include "dist/worker/target.h"

static void
resolved_path(const struct eti_origin_run *from, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/recipe.resolved.yaml", from->directory);
}

/* A run by its name, or "last". */
static int
find_by_name(struct cli *c, const char *text, struct eti_origin_run *out)
{
    int code = CLI_OK;
    json_t *facts = cli_run_find(c, text, &code);
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    et_status status = directory ? eti_origin_find(c->cx, directory, out) : ET_OK;
    json_decref(facts);
    return status == ET_OK ? code : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

int
cli_find_origin(struct cli *c, const char *text, struct eti_origin_run *out)
{
    et_status status = eti_origin_find(c->cx, text, out);
    if (status == ET_ENOENT && !strchr(text, '/')) {
        et_error_clear(c->cx);
        return find_by_name(c, text, out);
    }
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

/* The same of a run's directory: there is a run to go on with. */
static int
find_run(struct cli *c, const char *text, struct eti_origin_run *out)
{
    int code = cli_find_origin(c, text, out);
    if (code == CLI_OK && !out->directory[0])
        return cli_fail(c, CLI_E_CHECKPOINT_ALONE,
                        "a new run may begin there: load.path=CKPT",
                        "%s lies in no run's directory", text);
    return code;
}

int
cli_resume_find(struct cli *c, struct eti_origin_run *out)
{
    *out = (struct eti_origin_run){0};
    if (c->opt.resume && c->opt.autoresume)
        return cli_fail(c, CLI_E_OPTION, NULL,
                        "--resume and --autoresume exclude each other");
    if (c->opt.resume)
        return find_run(c, c->opt.resume, out);
    if (!c->opt.autoresume)
        return CLI_OK;
    if (!c->opt.run_directory)
        return cli_fail(c, CLI_E_OPTION, NULL,
                        "--autoresume needs --run_directory, where it finds the run");
    return eti_is_run(c->cx, c->opt.run_directory)
               ? find_run(c, c->opt.run_directory, out)
               : CLI_OK;
}

struct et_recipe *
cli_resume_recipe(struct cli *c, const struct eti_origin_run *from, int *exit)
{
    char path[PATH_MAX];
    bool installed = c->opt.module_mode;
    if (!from->directory[0] || c->n_args > 0)
        return cli_load_only_recipe(c, exit);
    resolved_path(from, path);
    c->opt.module_mode = false;
    struct et_recipe *recipe = cli_load_recipe(c, path, exit);
    c->opt.module_mode = installed;
    return recipe;
}

static int
compare(struct cli *c, const struct eti_origin_run *from, const struct et_recipe *then,
        struct et_recipe *recipe, struct eti_assemble_options *o)
{
    struct et_diagnostics errors = {0};
    et_status status = eti_resume_take_over(c->cx, then, recipe);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_RECIPE, status);
    int code = cli_settle_recipe(c, recipe, o);
    if (code != CLI_OK)
        return code;
    status = eti_recipe_check_resume(c->cx, then, recipe, &errors);
    if (status == ET_OK)
        status = eti_resume_check_length(c->cx, from, recipe, &errors);
    if (status == ET_OK)
        return CLI_OK;
    code = errors.n > 0 ? cli_fail_list(c, &errors, stderr)
                        : cli_fail_status(c, ETI_STAGE_RECIPE, status);
    et_error_clear(c->cx);
    return code;
}

int
cli_resume_settle(struct cli *c, const struct eti_origin_run *from,
                  struct et_recipe *recipe, struct eti_assemble_options *o)
{
    char path[PATH_MAX];
    struct et_recipe *then;
    struct et_diagnostics errors = {0};
    const struct et_recipe_env env = {.load_plugins = cli_load_plugins, .data = c};
    resolved_path(from, path);
    et_status status = et_recipe_load(c->cx, path, NULL, 0, &env, &then, &errors);
    int code = status == ET_OK ? compare(c, from, then, recipe, o)
               : errors.n > 0  ? cli_fail_list(c, &errors, stderr)
                               : cli_fail_status(c, ETI_STAGE_RECIPE, status);
    et_error_clear(c->cx);
    et_recipe_free(&then);
    return code;
}

/* The new run has a name of its own. */
static void
drop_name(struct cli *c)
{
    memmove(c->override + 1, c->override,
            (size_t)c->n_overrides++ * sizeof *c->override);
    c->override[0] = (struct et_override){ET_OVERRIDE_UNSET, "run_name"};
}

/* A run of a worker is trained again there, where its data are, unless another worker
 * is named. */
static int
rerun_far(struct cli *c, const char *text, const struct etd_target *from)
{
    char path[PATH_MAX], worker[ETD_ADDRESS];
    int code;
    if (!from->run[0])
        return cli_fail(c, CLI_E_OPERAND, "etude worker runs lists them",
                        "%s names no run: etude rerun RUN@WORKER", text);
    snprintf(worker, sizeof worker, "%s",
             strstr(text, "://") ? from->address : strrchr(text, '@') + 1);
    json_t *facts = cli_run_fetch(c, text, from, false, &code);
    if (!facts)
        return code;
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    snprintf(path, sizeof path, "%s/recipe.resolved.yaml", directory);
    drop_name(c);
    if (access(path, R_OK) == 0)
        code =
            cli_train_on(c, path, json_string_value(json_object_get(facts, "recipe")),
                         c->opt.on ? c->opt.on : worker);
    else
        code = cli_fail(c, CLI_E_NO_RUN, NULL, "%s has no recipe.resolved.yaml", text);
    cli_run_forget_copy(directory);
    json_decref(facts);
    return code;
}

/* The recipe of the new run has the name that it had. */
int
cli_rerun(struct cli *c)
{
    char path[PATH_MAX];
    struct eti_origin_run from;
    struct etd_target far;
    if (c->n_args != 1)
        return cli_fail(c, CLI_E_OPERAND, "etude runs lists them",
                        "rerun takes one run: etude rerun RUN [key=value...]");
    if (cli_run_is_far(c, c->arg[0], &far))
        return rerun_far(c, c->arg[0], &far);
    int code = find_run(c, c->arg[0], &from);
    if (code != CLI_OK)
        return code;
    resolved_path(&from, path);
    drop_name(c);
    json_t *facts;
    et_status status = eti_facts_read_state(c->cx, from.directory, &facts);
    if (status != ET_OK) /* its name is lost: the recipe is there */
        et_error_clear(c->cx);
    code =
        cli_train_recipe(c, path, json_string_value(json_object_get(facts, "recipe")));
    json_decref(facts);
    return code;
}
