/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c: `etude eval`: a recipe's model on its eval_data. */
#include "config.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "core/base/comm.h"
#include "core/trainer/state.h"

static int
print_metrics(struct cli *c, const struct et_state *s)
{
    json_t *all = c->opt.json ? json_object() : NULL;
    for (int i = 0; i < s->n_eval_metrics; i++)
        if (all)
            json_object_set_new(all, s->eval_metrics[i].name,
                                isfinite(s->eval_metrics[i].value)
                                    ? json_real(s->eval_metrics[i].value)
                                    : json_null());
        else
            et_print(stdout, "%s %.6g\n", s->eval_metrics[i].name,
                     isnan(s->eval_metrics[i].value) ? NAN : s->eval_metrics[i].value);
    return all ? cli_print_json(all) : CLI_OK;
}

static int
evaluate(struct cli *c, struct eti_assembly *a, const struct eti_origin_run *from,
         void *data)
{
    (void)from;
    (void)data;
    struct et_trainer *t;
    et_status status = et_trainer_new(c->cx, &a->config, &t);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_PARTS, status);
    status = et_trainer_eval(t);
    int code = CLI_OK;
    if (status != ET_OK)
        code = cli_fail_status(c, ETI_STAGE_RUN, status);
    else if (et_comm_rank(c->comm) == 0)
        code = print_metrics(c, et_trainer_state(t));
    et_trainer_free(&t);
    return code;
}

/* Where the weights come from. */
struct source {
    struct eti_origin_run run; /* checkpoints "": not from there */
    const char *file;          /* safetensors; NULL: not from one */
    struct et_load_config load;
};

static bool
is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* --load, or else what the recipe begins from. The operand may have been a run. */
static int
find_source(struct cli *c, const struct et_recipe *recipe, struct source *out)
{
    const char *text = c->opt.load               ? c->opt.load
                       : out->run.checkpoints[0] ? NULL
                                                 : recipe->load.path;
    if (text && is_file(text)) {
        out->file = text;
        out->run = (struct eti_origin_run){0};
        return CLI_OK;
    }
    et_status status = text ? eti_origin_find(c->cx, text, &out->run) : ET_OK;
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    out->load = (struct et_load_config){
        .directory = out->run.checkpoints,
        .name = out->run.name[0] ? out->run.name : NULL,
        .weights_only = true,
        .lenient = !recipe->load.strict,
    };
    if (!out->run.checkpoints[0] &&
        !((const struct et_model_options *)recipe->model.options)->weights.path)
        et_report(c->cx, ET_LOG_WARN,
                  "no weights are loaded: this is the model at its start");
    return CLI_OK;
}

static int
assemble_and_use(struct cli *c, struct et_recipe *recipe, const struct source *from,
                 cli_use_model *use, void *data)
{
    struct eti_assemble_options options = {.with_eval = true};
    struct eti_assembly a;
    int code = cli_assemble_options(c, &options);
    options.threads = cli_ranks_threads(c);
    if (code == CLI_OK)
        code = cli_settle_recipe(c, recipe, &options);
    if (code == CLI_OK)
        code = cli_ranks_join(c, recipe);
    if (code != CLI_OK) {
        et_device_close(&options.dev);
        return code;
    }
    options.comm = c->comm;
    et_status status = eti_assemble(c->cx, recipe, &options, &a);
    if (status == ET_OK && from->file) {
        a.stage = ETI_STAGE_DATA;
        status = et_model_load_weights(c->cx, a.model, from->file);
    }
    if (from->run.checkpoints[0])
        a.config.load = &from->load;
    code = status == ET_OK ? use(c, &a, &from->run, data)
                           : cli_fail_status(c, a.stage, status);
    if (code != CLI_OK)
        eti_comm_fail(c->comm, ET_EIO); /* such as a file that cannot be written */
    eti_assembly_release(&a);
    et_comm_close(&c->comm);
    return code;
}

static int
run(struct cli *c, struct et_recipe *recipe, struct source *from, cli_use_model *use,
    void *data)
{
    struct et_diagnostics errors = {0};
    if (eti_recipe_check_available(c->cx, recipe, &errors) != ET_OK)
        return cli_fail_list(c, &errors, stderr);
    if (recipe->eval_data.n == 0)
        return cli_fail(c, CLI_E_PARTS, "add eval_data='{name: ..., batch_size: ...}'",
                        "the recipe has no eval_data");
    bool is_rank = true;
    int code = find_source(c, recipe, from);
    if (code == CLI_OK)
        code = cli_together_start(c, &is_rank);
    if (code == CLI_OK && is_rank)
        code = assemble_and_use(c, recipe, from, use, data);
    return code;
}

/* The operand is a recipe where it is a file, or looks like the path of one. */
static bool
is_recipe(struct cli *c)
{
    struct eti_origin_run run;
    const char *text = c->n_args == 1 ? c->arg[0] : "", *dot = strrchr(text, '.');
    if (c->n_args != 1 || c->opt.module_mode || is_file(text))
        return true;
    if (!strchr(text, '/') && (!dot || strcmp(dot, ".yaml") != 0))
        return false;
    bool none = eti_origin_find(c->cx, text, &run) != ET_OK;
    et_error_clear(c->cx);
    return none;
}

/* Otherwise it is a run or one of its checkpoints. */
int
cli_use(struct cli *c, cli_use_model *use, void *data)
{
    int code = CLI_OK;
    char path[PATH_MAX];
    struct source from = {0};
    struct et_recipe *recipe = NULL;
    if (!is_recipe(c))
        code = cli_find_origin(c, c->arg[0], &from.run);
    if (code == CLI_OK && from.run.directory[0]) {
        snprintf(path, sizeof path, "%s/recipe.resolved.yaml", from.run.directory);
        recipe = cli_load_recipe(c, path, &code);
    } else if (code == CLI_OK) {
        recipe = cli_load_only_recipe(c, &code);
    }
    if (recipe)
        code = run(c, recipe, &from, use, data);
    et_recipe_free(&recipe);
    return code;
}

int
cli_eval(struct cli *c)
{
    return cli_use(c, evaluate, NULL);
}
