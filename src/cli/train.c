/* train.c: `etude train`: one run from a recipe to its results. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* ---- signals: the first asks the run to stop after its batch, the second ends it ----
 */

static volatile sig_atomic_t signal_received, checkpoint_asked;
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
on_checkpoint(int number)
{
    (void)number;
    checkpoint_asked = 1;
}

/* A terminal or pipe that goes away (HUP, PIPE) does not end a run. */
static void
catch_signals(void)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGUSR2};
    static const int ignored[] = {SIGHUP, SIGPIPE};
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction checkpoint = {.sa_handler = on_checkpoint, .sa_flags = SA_RESTART};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&stop.sa_mask);
    sigemptyset(&checkpoint.sa_mask);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        sigaction(stops[i], &stop, NULL);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        sigaction(ignored[i], &ignore, NULL);
    sigaction(SIGUSR1, &checkpoint, NULL);
}

/* Says that a checkpoint was asked for in vain. */
static et_status
heed(struct et_callback *self, enum et_event event, const struct et_state *s,
     struct et_log *log)
{
    (void)self;
    (void)event;
    if (checkpoint_asked)
        et_log_text(log, ET_LOG_WARN, &s->timestamp,
                    "SIGUSR1: this version writes no checkpoints; training goes on");
    checkpoint_asked = 0;
    return ET_OK;
}

static const struct et_callback_class signals_class = {
    .info =
        {
            .name = "signals",
            .class_name = "Signals",
            .summary = "answers signals that do not end a run",
            .applies_to = "any",
        },
    .events = ET_ON(BATCH_END),
    .run = heed,
};

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

static const char *
number_text(double value, char *buf, size_t size)
{
    if (isnan(value))
        return "nan";
    snprintf(buf, size, "%.4f", value);
    return buf;
}

/* The result, on stdout: what the run came to, and where it is. */
static void
summarise(const struct cli *c, const struct cli_end *end)
{
    const struct et_state *s = end->s;
    const struct et_timestamp *ts = &s->timestamp;
    char text[64];
    printf("%s: %s after %s batches", s->run_name, end->state,
           cli_count(ts->batch, text, sizeof text));
    for (int i = 0; i < s->n_eval_metrics; i++)
        printf(", %s %s", s->eval_metrics[i].name + strlen("metrics/"),
               number_text(s->eval_metrics[i].value, text, sizeof text));
    if (ts->total_wct > 0)
        printf(", %.1f s of training, %.0f samples/s", ts->total_wct,
               (double)ts->sample / ts->total_wct);
    printf("\n%s\n", et_run_directory(c->run));
}

/* The same for a program, where it has not seen the run in JSON lines already. */
static void
summarise_json(const struct cli *c, const struct cli_end *end)
{
    const struct et_state *s = end->s;
    json_t *metrics = json_object();
    for (int i = 0; i < s->n_eval_metrics; i++)
        json_object_set_new(metrics, s->eval_metrics[i].name,
                            isfinite(s->eval_metrics[i].value)
                                ? json_real(s->eval_metrics[i].value)
                                : json_null());
    (void)cli_print_json(json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:I, s:f, s:o}", "name", s->run_name, "directory",
        et_run_directory(c->run), "state", end->state, "exit_code", end->exit, "ba",
        (json_int_t)s->timestamp.batch, "sp", (json_int_t)s->timestamp.sample,
        "train_seconds", s->timestamp.total_wct, "metrics", metrics));
}

/* Why it is no success. */
static void
explain(struct cli *c, const struct cli_end *end, enum et_outcome outcome,
        const char *target)
{
    int number = (int)signal_received;
    if (outcome == ET_OUTCOME_TARGET_MISSED)
        (void)cli_fail(c, CLI_E_TARGET, "train longer: max_duration",
                       "rank 0: the target %s was not reached", target);
    else if (outcome == ET_OUTCOME_DIVERGED)
        (void)cli_fail(c, CLI_E_NOT_FINITE,
                       "lower optimizer.lr, or --alg gradient_clipping",
                       "rank 0: the run diverged: %s", end->s->stop_reason);
    else if (outcome == ET_OUTCOME_STOPPED)
        (void)cli_fail(c, CLI_E_SIGNALLED,
                       "this version writes no checkpoints: begin again",
                       "rank 0: ended by signal %d (%s) after batch %lld", number,
                       strsignal(number), (long long)end->s->timestamp.batch);
}

static int
conclude(struct cli *c, struct et_trainer *t, const char *target)
{
    enum et_outcome outcome = et_trainer_outcome(t);
    bool stopped = outcome == ET_OUTCOME_STOPPED;
    const struct cli_end end = {
        .state = ends[outcome].state,
        .exit = ends[outcome].exit + (stopped ? (int)signal_received : 0),
        .s = et_trainer_state(t),
    };
    cli_run_notice(c, &end);
    if (c->opt.json && !c->results_are_json)
        summarise_json(c, &end);
    else if (!c->opt.quiet && !c->results_are_json)
        summarise(c, &end);
    fflush(stdout);
    explain(c, &end, outcome, target);
    cli_run_end(c, &end);
    return end.exit;
}

/* ---- the run ---- */

/* C belongs to the assembly from now on, or is freed. */
static et_status
add_callback(struct eti_assembly *a, struct et_callback *c)
{
    if (a->config.n_callbacks == ET_MAX_ALGORITHMS) {
        et_callback_free(&c);
        return ET_FAIL(a->cx, ET_EINVAL, "more than %d callbacks and loggers",
                       ET_MAX_ALGORITHMS);
    }
    a->callback[a->config.n_callbacks++] = c;
    return ET_OK;
}

/* What the recipe asks for, and what every run has. */
static et_status
add_callbacks(struct cli *c, struct eti_assembly *a, struct et_recipe *recipe)
{
    struct et_callback *callback;
    ET_TRY(eti_assemble_callbacks(a, recipe, et_run_directory(c->run)));
    a->config.sink = et_run_sink(c->run);
    ET_TRY(et_run_watch(c->run, &callback));
    ET_TRY(add_callback(a, callback));
    ET_TRY(et_callback_new(c->cx, &signals_class, NULL, NULL, &callback));
    return add_callback(a, callback);
}

/* It failed with the status that stands in the context. */
static int
fail_run(struct cli *c, enum eti_stage stage, et_status status,
         const struct et_state *s)
{
    int code = cli_exit_of_status(stage, status);
    const struct cli_end end = {
        .state = code == CLI_NO_MEMORY ? "oom" : "failed",
        .exit = code,
        .s = s,
    };
    cli_run_notice(c, &end);
    (void)cli_fail_status(c, stage, status);
    cli_run_end(c, &end);
    return code;
}

/* From the run directory to the end of the run. */
static int
fit(struct cli *c, struct eti_assembly *a, struct et_recipe *recipe)
{
    struct et_trainer *t;
    a->config.interrupt = &interrupt_flag;
    et_status status = add_callbacks(c, a, recipe);
    int shown = c->progress != NULL; /* the first: it is told by itself */
    c->callback = a->callback + shown;
    c->n_callbacks = a->config.n_callbacks - shown;
    if (status == ET_OK)
        status = et_trainer_new(c->cx, &a->config, &t);
    if (status != ET_OK)
        return fail_run(c, ETI_STAGE_PARTS, status, NULL);
    cli_guard_watch(&et_trainer_state(t)->timestamp);
    status = et_trainer_fit(t, ET_TIME_UNSET);
    cli_guard_watch(NULL);
    int code = status == ET_OK
                   ? conclude(c, t, recipe->target)
                   : fail_run(c, ETI_STAGE_RUN, status, et_trainer_state(t));
    et_trainer_free(&t);
    return code;
}

static int
train(struct cli *c, struct eti_assembly *a, struct et_recipe *recipe,
      const char *resolved)
{
    struct et_callback *progress;
    int code = cli_progress_new(c, &progress);
    if (progress)
        a->callback[a->config.n_callbacks++] = progress;
    if (code != CLI_OK)
        return code;
    catch_signals();
    code = cli_run_begin(c, recipe, resolved, a->dev);
    if (code == CLI_OK)
        code = fit(c, a, recipe);
    c->progress = NULL;
    c->callback = NULL;
    return code;
}

static int
try(struct cli *c, struct eti_assembly *a)
{
    struct et_trainer *t;
    a->config.dry = true;
    et_status status = et_trainer_new(c->cx, &a->config, &t);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_PARTS, status);
    et_trainer_free(&t);
    if (c->opt.json)
        return cli_print_json(json_pack("{s:s, s:b}", "recipe", c->arg[0], "fits", 1));
    if (!c->opt.quiet)
        printf("%s: the recipe, its data and its model fit\n", c->arg[0]);
    return CLI_OK;
}

/* The recipe gives its options away when it is assembled: it is written down before. */
static int
run(struct cli *c, struct et_recipe *recipe)
{
    struct et_diagnostics errors = {0};
    struct eti_assemble_options options = {.with_train = true, .with_eval = true};
    struct eti_assembly a;
    char *resolved;
    if (et_recipe_check_train(c->cx, recipe, 1, &errors) != ET_OK ||
        eti_recipe_check_available(c->cx, recipe, &errors) != ET_OK)
        return cli_fail_list(c, &errors, stderr);
    int code = cli_assemble_options(c, &options);
    if (code == CLI_OK)
        code = cli_settle_recipe(c, recipe);
    if (code != CLI_OK)
        return code;
    et_status status = et_recipe_resolved(c->cx, recipe, &resolved);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_RECIPE, status);
    status = eti_assemble(c->cx, recipe, &options, &a);
    if (status != ET_OK)
        code = cli_fail_status(c, a.stage, status);
    else
        code = c->opt.dry_run ? try(c, &a) : train(c, &a, recipe, resolved);
    eti_assembly_release(&a);
    et_run_close(&c->run);
    et_free(c->cx, resolved);
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
