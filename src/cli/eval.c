/* eval.c: `etude eval`: a recipe's model on its eval_data. */
#include "config.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

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
            printf("%s %.6g\n", s->eval_metrics[i].name,
                   isnan(s->eval_metrics[i].value) ? NAN : s->eval_metrics[i].value);
    return all ? cli_print_json(all) : CLI_OK;
}

static int
evaluate(struct cli *c, struct eti_assembly *a)
{
    struct et_trainer *t;
    et_status status = et_trainer_new(c->cx, &a->config, &t);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_PARTS, status);
    status = et_trainer_eval(t);
    int code = status == ET_OK ? print_metrics(c, et_trainer_state(t))
                               : cli_fail_status(c, ETI_STAGE_RUN, status);
    et_trainer_free(&t);
    return code;
}

static int
run(struct cli *c, struct et_recipe *recipe)
{
    struct et_diagnostics errors = {0};
    struct eti_assemble_options options = {.with_eval = true};
    struct eti_assembly a;
    if (eti_recipe_check_available(c->cx, recipe, &errors) != ET_OK)
        return cli_fail_list(c, &errors, stderr);
    if (recipe->eval_data.n == 0)
        return cli_fail(c, CLI_E_PARTS, NULL, "the recipe has no eval_data");
    int code = cli_assemble_options(c, &options);
    if (code == CLI_OK)
        code = cli_settle_recipe(c, recipe);
    if (code != CLI_OK)
        return code;
    et_report(c->cx, ET_LOG_WARN,
              "no weights are loaded: this is the model at its start");
    et_status status = eti_assemble(c->cx, recipe, &options, &a);
    code = status == ET_OK ? evaluate(c, &a) : cli_fail_status(c, a.stage, status);
    eti_assembly_release(&a);
    return code;
}

int
cli_eval(struct cli *c)
{
    int code;
    char path[PATH_MAX];
    if (c->n_args == 1) {
        snprintf(path, sizeof path, "%s/run.json", c->arg[0]);
        if (access(path, F_OK) == 0)
            return cli_fail(c, CLI_E_LATER, NULL,
                            "%s is a run: this version evaluates recipes only",
                            c->arg[0]);
    }
    struct et_recipe *recipe = cli_load_only_recipe(c, &code);
    if (recipe)
        code = run(c, recipe);
    et_recipe_free(&recipe);
    return code;
}
