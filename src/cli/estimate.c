/* SPDX-License-Identifier: Apache-2.0 */
/* estimate.c: `etude estimate`: what a run will need, from its plans. */
#include "config.h"

#include <jansson.h>

#include "cli/cli.h"

static void
print_text(const struct et_estimate *e)
{
    char a[32], b[32];
    et_print(stdout, "parameters        %s\n", cli_count(e->params, a, sizeof a));
    et_print(stdout, "FLOPs a sample    %s\n",
             cli_scaled(e->flops_per_sample, "FLOP", a, sizeof a));
    et_print(stdout, "peak memory       %s\n",
             cli_bytes((double)e->peak_bytes, a, sizeof a));
    et_print(stdout, "  step            %s of intermediates, %s of workspace\n",
             cli_bytes((double)e->train.slab_bytes, a, sizeof a),
             cli_bytes((double)e->train.workspace_bytes, b, sizeof b));
    printf("time a batch      %.1f ms at least\n", e->seconds_per_batch * 1e3);
    printf("microbatches      %lld\n", (long long)e->grad_accum);
    et_print(stdout, "checkpoint        %s, %s of it the model\n",
             cli_bytes((double)e->checkpoint_bytes, a, sizeof a),
             cli_bytes((double)e->weights_bytes, b, sizeof b));
    et_print(stdout,
             "  copy            %s more of the host's memory where it is saved\n",
             cli_bytes((double)e->checkpoint_bytes, a, sizeof a));
    printf("nodes, kernels    %d, %d\n", e->train.nodes, e->train.kernels);
}

static json_t *
plan_json(const struct et_plan_info *p)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:i, s:i}", "slab_bytes", (json_int_t)p->slab_bytes,
        "output_bytes", (json_int_t)p->output_bytes, "workspace_bytes",
        (json_int_t)p->workspace_bytes, "flops", (json_int_t)p->flops, "moved_bytes",
        (json_int_t)p->moved_bytes, "nodes", p->nodes, "kernels", p->kernels);
}

/* {"name", "samples", "classes"}, or "tokens" and "vocab_size". */
static json_t *
data_json(const struct eti_data *d)
{
    const struct et_data_facts *f = &d->set->facts;
    const char *name = d->set->type->info.name;
    if (f->n_tokens > 0)
        return json_pack("{s:s, s:I, s:I}", "name", name, "tokens",
                         (json_int_t)f->n_tokens, "vocab_size",
                         (json_int_t)f->field[ET_FIELD_X].below);
    return json_pack("{s:s, s:I, s:I}", "name", name, "samples",
                     (json_int_t)f->n_samples, "classes",
                     (json_int_t)et_facts_classes(f));
}

static json_t *
to_json(const struct et_estimate *e, const struct eti_assembly *a)
{
    json_t *data = json_array();
    if (a->train.set)
        json_array_append_new(data, data_json(&a->train));
    for (int i = 0; i < ETI_MAX_EVAL_DATA && a->eval[i].set; i++)
        json_array_append_new(data, data_json(&a->eval[i]));
    return json_pack("{s:I, s:f, s:I, s:f, s:I, s:I, s:I, s:o, s:o, s:o}", "params",
                     (json_int_t)e->params, "flops_per_sample", e->flops_per_sample,
                     "peak_bytes", (json_int_t)e->peak_bytes, "seconds_per_batch",
                     e->seconds_per_batch, "grad_accum", (json_int_t)e->grad_accum,
                     "checkpoint_bytes", (json_int_t)e->checkpoint_bytes,
                     "weights_bytes", (json_int_t)e->weights_bytes, "data", data,
                     "train", plan_json(&e->train), "eval", plan_json(&e->eval));
}

static int
estimate(struct cli *c, struct eti_assembly *a)
{
    struct et_trainer *t;
    struct et_estimate e;
    a->config.dry = true;
    et_status status = et_trainer_new(c->cx, &a->config, &t);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_PARTS, status);
    status = et_trainer_estimate(t, &e);
    int code = CLI_OK;
    if (status != ET_OK)
        code = cli_fail_status(c, ETI_STAGE_PARTS, status);
    else if (c->opt.json)
        code = cli_print_json(to_json(&e, a));
    else
        print_text(&e);
    et_trainer_free(&t);
    return code;
}

static int
run(struct cli *c, struct et_recipe *recipe)
{
    struct et_diagnostics errors = {0};
    struct eti_assemble_options options = {
        .with_train = true,
        .with_eval = true,
        .is_trial = true,
    };
    struct eti_assembly a;
    if (et_recipe_check_train(c->cx, recipe, 1, &errors) != ET_OK ||
        eti_recipe_check_available(c->cx, recipe, &errors) != ET_OK)
        return cli_fail_list(c, &errors, stderr);
    int code = cli_assemble_options(c, &options);
    if (code == CLI_OK)
        code = cli_settle_recipe(c, recipe, &options);
    if (code != CLI_OK)
        return code;
    et_status status = eti_assemble(c->cx, recipe, &options, &a);
    code = status == ET_OK ? estimate(c, &a) : cli_fail_status(c, a.stage, status);
    eti_assembly_release(&a);
    return code;
}

int
cli_estimate(struct cli *c)
{
    int code;
    struct et_recipe *recipe = cli_load_only_recipe(c, &code);
    if (recipe)
        code = run(c, recipe);
    et_recipe_free(&recipe);
    return code;
}
