/* recipe.c: reading the recipe of a command, and settling what it leaves open. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

static const char *const openers[] = {
    "brisk", "calm",  "early", "grim",  "bold",  "clear", "deft",  "eager",
    "fair",  "glad",  "hale",  "keen",  "lively", "merry", "neat",  "plain",
    "quick", "quiet", "ready", "sharp", "sleek", "smart", "sound", "spry",
    "stout", "sunny", "swift", "tidy",  "true",  "vivid", "warm",  "witty",
};
static const char *const animals[] = {
    "otter",  "heron", "mole",   "toad",  "badger", "crane", "dingo",  "egret",
    "falcon", "gecko", "hare",   "ibex",  "jackal", "koala", "lemur",  "lynx",
    "marten", "newt",  "ocelot", "panda", "quail",  "raven", "seal",   "stoat",
    "swan",   "tapir", "turtle", "vole",  "walrus", "wren",  "yak",    "zebra",
};
enum { N_WORDS = 32 };
_Static_assert(sizeof openers / sizeof openers[0] == N_WORDS, "5 bits choose one");
_Static_assert(sizeof animals / sizeof animals[0] == N_WORDS, "5 bits choose one");

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

struct et_recipe *
cli_load_recipe(struct cli *c, const char *name, int *exit)
{
    extern char **environ;
    char path[PATH_MAX];
    struct et_recipe *recipe;
    struct et_diagnostics errors = {0};
    const struct et_recipe_env env = {.variables = (const char *const *)environ};
    if (c->opt.module_mode && !cli_recipe_find(name, path, sizeof path)) {
        *exit = cli_fail(c, CLI_E_NAME, "etude recipes lists them",
                         "no installed recipe is called '%s'", name);
        return NULL;
    }
    et_status status = et_recipe_load(c->cx, c->opt.module_mode ? path : name, c->override,
                                      c->n_overrides, &env, &recipe, &errors);
    *exit = CLI_OK;
    if (status == ET_OK)
        return recipe;
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

static void
set_text(struct cli *c, struct et_recipe *recipe, const char *key, const char *value)
{
    char quoted[256];
    size_t n = 0;
    quoted[n++] = '\'';
    for (; *value && n + 4 < sizeof quoted; value++) {
        if (*value == '\'')
            quoted[n++] = '\'';
        quoted[n++] = *value;
    }
    quoted[n++] = '\'';
    quoted[n] = '\0';
    if (et_options_set(c->cx, et_recipe_table, recipe, key, quoted) != ET_OK)
        et_error_clear(c->cx); /* no memory for a name: the run goes without */
}

static void
choose_name(struct cli *c, struct et_recipe *recipe)
{
    const char *from_env = getenv("ETUDE_RUN_NAME");
    char words[64];
    uint64_t x = draw();
    snprintf(words, sizeof words, "%s-%s", openers[x % N_WORDS],
             animals[x / N_WORDS % N_WORDS]);
    if (c->opt.run_name)
        set_text(c, recipe, "run_name", c->opt.run_name);
    else if (!recipe->run_name)
        set_text(c, recipe, "run_name", from_env && *from_env ? from_env : words);
}

void
cli_settle_recipe(struct cli *c, struct et_recipe *recipe)
{
    choose_name(c, recipe);
    if (c->opt.target)
        set_text(c, recipe, "target", c->opt.target);
    if (recipe->seed == ET_INT_UNSET)
        recipe->seed = (int64_t)(draw() & 0xffffffffu);
    if (recipe->device == ET_RUN_AUTO)
        recipe->device = ET_RUN_CPU;
    if (recipe->precision == ET_PRECISION_AUTO)
        recipe->precision = ET_PRECISION_FP32;
}

/* Ranks that a launcher promises; this version is one. */
static int
check_launcher(struct cli *c)
{
    static const char *const names[] = {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && strtol(value, NULL, 10) > 1)
            return cli_fail(c, CLI_E_LATER, NULL, "%s=%s: this version trains with one rank",
                            names[i], value);
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
                            "ETUDE_LIMIT_BATCHES: expected a number >= 1, got '%s'", limit);
    }
    return check_launcher(c);
}
