/* train.c: `etude train`: one run from a recipe to its results. */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* ---- signals: the first asks the run to stop after its batch, the second ends it ----
 */

static volatile sig_atomic_t signal_received;
static volatile int interrupt_flag;

static void
on_signal(int number)
{
    if (signal_received)
        _exit(CLI_SIGNAL + number);
    signal_received = number;
    interrupt_flag = 1;
}

static void
catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&stop.sa_mask);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &ignore, NULL);
}

/* ---- results ---- */

/* How a run may end: et_outcome, state of GLOSSARY.md, exit code. */
static const struct {
    const char *state;
    int exit;
} ends[] = {
    [ET_OUTCOME_FINISHED] = {"finished", CLI_OK},
    [ET_OUTCOME_TARGET_REACHED] = {"reached-target", CLI_OK},
    [ET_OUTCOME_TARGET_MISSED] = {"finished", CLI_MISSED},
    [ET_OUTCOME_STOPPED] = {"killed", CLI_SIGNAL},
    [ET_OUTCOME_DIVERGED] = {"diverged", CLI_DIVERGED},
};

/* One line on stdout: what the run came to. */
static void
summarise(const struct cli *c, struct et_trainer *t, const char *state)
{
    const struct et_state *s = et_trainer_state(t);
    const struct et_timestamp *ts = &s->timestamp;
    char batches[32];
    if (c->opt.quiet || c->results_are_json)
        return;
    printf("%s: %s after %s batches", s->run_name, state,
           cli_count(ts->batch, batches, sizeof batches));
    for (int i = 0; i < s->n_eval_metrics; i++)
        printf(", %s %.4f", s->eval_metrics[i].name + strlen("metrics/"),
               s->eval_metrics[i].value);
    if (ts->total_wct > 0)
        printf(", %.1f s of training, %.0f samples/s", ts->total_wct,
               (double)ts->sample / ts->total_wct);
    printf("\n");
}

static int
conclude(struct cli *c, struct et_trainer *t)
{
    enum et_outcome outcome = et_trainer_outcome(t);
    summarise(c, t, ends[outcome].state);
    switch (outcome) {
    case ET_OUTCOME_TARGET_MISSED:
        return cli_fail(c, CLI_E_TARGET, NULL, "the target was not reached");
    case ET_OUTCOME_DIVERGED:
        return cli_fail(c, CLI_E_NOT_FINITE, "lower optimizer.lr, or clip gradients",
                        "the run diverged: %s", et_trainer_state(t)->stop_reason);
    case ET_OUTCOME_STOPPED:
        return cli_fail(c, CLI_E_SIGNALLED, NULL,
                        "ended by signal %d; nothing was saved", (int)signal_received) +
               (int)signal_received;
    default:
        return ends[outcome].exit;
    }
}

/* ---- the run ---- */

/* Progress is one more logger of the run. */
static int
add_progress(struct cli *c, struct eti_assembly *a)
{
    struct et_callback *progress;
    int code = cli_progress_new(c, &progress);
    if (!progress)
        return code;
    if (a->config.n_callbacks == ET_MAX_ALGORITHMS) {
        et_callback_free(&progress);
        c->progress = NULL;
        return CLI_OK;
    }
    a->callback[a->config.n_callbacks++] = progress;
    a->config.callbacks = a->callback;
    return code;
}

static int
fit(struct cli *c, struct eti_assembly *a)
{
    struct et_trainer *t;
    a->config.interrupt = &interrupt_flag;
    a->config.dry = c->opt.dry_run;
    et_status status = et_trainer_new(c->cx, &a->config, &t);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_PARTS, status);
    int code = CLI_OK;
    if (c->opt.dry_run) {
        printf("%s: the recipe, its data and its model fit\n", a->recipe->run_name);
    } else {
        catch_signals();
        status = et_trainer_fit(t, ET_TIME_UNSET);
        code = status == ET_OK ? conclude(c, t)
                               : cli_fail_status(c, ETI_STAGE_RUN, status);
    }
    c->progress = NULL;
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
        .with_hooks = !c->opt.dry_run,
    };
    struct eti_assembly a;
    if (et_recipe_check_train(c->cx, recipe, 1, &errors) != ET_OK ||
        eti_recipe_check_available(c->cx, recipe, &errors) != ET_OK)
        return cli_fail_list(c, &errors, stderr);
    int code = cli_assemble_options(c, &options);
    if (code != CLI_OK)
        return code;
    cli_settle_recipe(c, recipe);
    et_status status = eti_assemble(c->cx, recipe, &options, &a);
    code = status == ET_OK ? CLI_OK : cli_fail_status(c, a.stage, status);
    if (code == CLI_OK && !c->opt.dry_run)
        code = add_progress(c, &a);
    if (code == CLI_OK)
        code = fit(c, &a);
    c->progress = NULL;
    eti_assembly_release(&a);
    return code;
}

int
cli_train(struct cli *c)
{
    int code;
    struct et_recipe *recipe = cli_load_only_recipe(c, &code);
    if (recipe)
        code = run(c, recipe);
    et_recipe_free(&recipe);
    return code;
}
