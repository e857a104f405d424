/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c: reading the recipe of a command, and settling what it leaves open. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

enum { SETTING_BYTES = 512 };

/* A number nobody chose: for names and seeds. */
static uint64_t
draw(void)
{
    uint64_t x;
    struct timespec now;
    if (getrandom(&x, sizeof x, 0) == (ssize_t)sizeof x)
        return x;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
}

/* VALUE in quotes of YAML. Returns BUF. */
static const char *
quote(char buf[SETTING_BYTES], const char *value)
{
    size_t n = 0;
    buf[n++] = '\'';
    for (; *value && n + 4 < SETTING_BYTES; value++) {
        if (*value == '\'')
            buf[n++] = '\'';
        buf[n++] = *value;
    }
    snprintf(buf + n, SETTING_BYTES - n, "'");
    return buf;
}

/* An option of the launch that stands for KEY is an override like any other. */
static void
add_setting(struct cli *c, char buf[SETTING_BYTES + 16], const char *key,
            const char *value)
{
    char quoted[SETTING_BYTES];
    snprintf(buf, SETTING_BYTES + 16, "%s=%s", key, quote(quoted, value));
    c->override[c->n_overrides++] = (struct et_override){ET_OVERRIDE_SET, buf};
}

struct et_recipe *
cli_load_recipe(struct cli *c, const char *name, int *exit)
{
    extern char **environ;
    char path[PATH_MAX], run_name[SETTING_BYTES + 16], target[SETTING_BYTES + 16];
    char timeout[SETTING_BYTES + 16];
    struct et_recipe *recipe;
    struct et_diagnostics errors = {0};
    const struct et_recipe_env env = {
        .variables = (const char *const *)environ,
        .allowed = c->config ? (const char *const *)c->config->set.env.v : NULL,
        .load_plugins = cli_load_plugins,
        .data = c,
        .folder = c->opt.recipe_folder,
    };
    struct stat st;
    int n_overrides = c->n_overrides;
    if (c->opt.module_mode && !cli_recipe_find(name, path, sizeof path)) {
        *exit = cli_fail(c, CLI_E_NAME, "etude recipes lists them",
                         "no installed recipe is called '%s'", name);
        return NULL;
    }
    if (env.folder && (stat(env.folder, &st) != 0 || !S_ISDIR(st.st_mode))) {
        *exit = cli_fail(c, CLI_E_VALUE, NULL, "--recipe-folder %s is no folder",
                         env.folder);
        return NULL;
    }
    if (c->opt.run_name)
        add_setting(c, run_name, "run_name", c->opt.run_name);
    if (c->opt.timeout)
        add_setting(c, timeout, "timeout", c->opt.timeout);
    if (c->opt.target)
        add_setting(c, target, "target", c->opt.target);
    et_status status =
        et_recipe_load(c->cx, c->opt.module_mode ? path : name, c->override,
                       c->n_overrides, &env, &recipe, &errors);
    c->n_overrides = n_overrides;
    *exit = CLI_OK;
    if (status == ET_OK)
        return recipe;
    if (errors.n > 0 && errors.v[0].code == ET_E_READ && !c->opt.module_mode &&
        cli_recipe_find(name, path, sizeof path))
        snprintf(errors.v[0].hint, sizeof errors.v[0].hint,
                 "an installed recipe is called so: etude %s -m %.60s",
                 c->command->name, name);
    if (errors.n > 0)
        *exit = cli_fail_list(c, &errors, stderr);
    else
        *exit = cli_fail_status(c, ETI_STAGE_RECIPE, status);
    et_error_clear(c->cx);
    return NULL;
}

struct et_recipe *
cli_load_only_recipe(struct cli *c, int *exit)
{
    const char *command = c->command->name;
    if (c->n_args == 1)
        return cli_load_recipe(c, c->arg[0], exit);
    if (c->n_args == 0)
        *exit = cli_fail(c, CLI_E_OPERAND, "etude recipes lists the installed ones",
                         "%s needs a recipe: etude %s RECIPE", command, command);
    else
        *exit = cli_fail(c, CLI_E_OPERAND, "settings are written key=value",
                         "%s takes one recipe, not also '%s'", command, c->arg[1]);
    return NULL;
}

static int
choose_name(struct cli *c, struct et_recipe *recipe)
{
    const char *name = getenv("ETUDE_RUN_NAME");
    char drawn[ET_RUN_NAME], quoted[SETTING_BYTES];
    if (recipe->run_name)
        return CLI_OK;
    if (!name || !*name)
        name = et_run_name_draw(draw(), drawn);
    if (et_run_name_check(c->cx, name) != ET_OK) {
        int code = cli_fail(c, CLI_E_VALUE, NULL, "ETUDE_RUN_NAME: %s",
                            et_error_get(c->cx)->message);
        et_error_clear(c->cx);
        return code;
    }
    et_status status =
        et_options_set(c->cx, et_recipe_table, recipe, "run_name", quote(quoted, name));
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_RECIPE, status);
}

int
cli_settle_recipe(struct cli *c, struct et_recipe *recipe,
                  struct eti_assemble_options *o)
{
    if (recipe->seed == ET_INT_UNSET)
        recipe->seed = (int64_t)(draw() & 0xffffffffu);
    int code = choose_name(c, recipe);
    if (code != CLI_OK)
        return code;
    et_status status =
        eti_assemble_device(c->cx, recipe, o->device, o->threads, &o->dev);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_DEVICE, status);
}

/* Ranks that a launcher promises, but for those of `train`; this version is one. */
static int
check_launcher(struct cli *c)
{
    static const struct {
        const char *name;
        long most;
    } limits[] = {
        {"WORLD_SIZE", 1}, {"LOCAL_WORLD_SIZE", 1}, {"SLURM_NTASKS", 1},
        {"BASE_RANK", 0},  {"NODE_RANK", 0},        {"RANK", 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const char *value = getenv(limits[i].name);
        char *end = NULL;
        long n = value && *value ? strtol(value, &end, 10) : 0;
        if (end && *end)
            return cli_fail(c, CLI_E_VALUE, NULL, "%s: expected a number, got '%s'",
                            limits[i].name, value);
        if (n > limits[i].most && !c->rank_env.is_rank)
            return cli_fail(c, CLI_E_LATER, NULL,
                            "%s=%s: this version trains with one rank", limits[i].name,
                            value);
    }
    return CLI_OK;
}

int
cli_assemble_options(struct cli *c, struct eti_assemble_options *o)
{
    const char *limit = getenv("ETUDE_LIMIT_BATCHES");
    const char *device = getenv("ETUDE_DEVICE");
    if (device && *device)
        o->device = device;
    if (limit && *limit) {
        char *end;
        o->limit_batches = strtoll(limit, &end, 10);
        if (*end || o->limit_batches < 1)
            return cli_fail(c, CLI_E_VALUE, NULL,
                            "ETUDE_LIMIT_BATCHES: expected a number >= 1, got '%s'",
                            limit);
    }
    return check_launcher(c);
}
