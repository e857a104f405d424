/* SPDX-License-Identifier: Apache-2.0 */
/* train.c: `etude train`: one run from a recipe to its results. */
#include "config.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/color.h"
#include "core/base/comm.h"
#include "core/base/utf8.h"
#include "dist/wire/endpoint.h"
#include "core/trainer/state.h"

/* ---- results ---- */

/* The exit code of a run that ended so. */
static const int exits[] = {
    [ET_OUTCOME_FINISHED] = CLI_OK,          [ET_OUTCOME_TARGET_REACHED] = CLI_OK,
    [ET_OUTCOME_TARGET_MISSED] = CLI_MISSED, [ET_OUTCOME_STOPPED] = CLI_PREEMPTED,
    [ET_OUTCOME_UNSAVED] = CLI_CANNOT_WRITE, [ET_OUTCOME_DIVERGED] = CLI_DIVERGED,
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
    et_print(c->out, "%s: %s after %s batches", s->run_name, end->state,
             cli_count(ts->batch, text, sizeof text));
    for (int i = 0; i < s->n_eval_metrics; i++)
        et_print(c->out, ", %s %s", s->eval_metrics[i].name + strlen("metrics/"),
                 number_text(s->eval_metrics[i].value, text, sizeof text));
    if (ts->total_wct > 0)
        fprintf(c->out, ", %.1f s of training, %.0f samples/s on average",
                ts->total_wct, (double)ts->sample / ts->total_wct);
    et_print(c->out, "\n%s\n", et_run_directory(c->run));
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
    json_t *all =
        json_pack("{s:s, s:o, s:s, s:i, s:I, s:I, s:f, s:o}", "name", s->run_name,
                  "directory", cli_json_text(et_run_directory(c->run)), "state",
                  end->state, "exit_code", end->exit, "ba",
                  (json_int_t)s->timestamp.batch, "sp", (json_int_t)s->timestamp.sample,
                  "train_seconds", s->timestamp.total_wct, "metrics", metrics);
    if (all)
        cli_put_json(c->out, all);
}

/* Stopped by a command, and not by a signal? */
static bool
was_asked(const struct et_state *s)
{
    return s->stop_reason && strcmp(s->stop_reason, ET_STOPPED_ON_REQUEST) == 0;
}

/* Is there a whole checkpoint? Looked for in a context of its own: the error that
 * stands in the other is yet to be told. */
static bool
has_saved(const char *directory)
{
    char folder[PATH_MAX];
    struct et_ctx *cx;
    struct et_checkpoint_info *list = NULL;
    int n = 0, damaged, unfinished;
    if (et_ctx_new(&cx) != ET_OK)
        return false;
    snprintf(folder, sizeof folder, "%s/checkpoints", directory);
    if (et_checkpoint_list(cx, folder, &list, &n, &damaged, &unfinished) != ET_OK)
        n = 0;
    et_free(cx, list);
    et_ctx_free(&cx);
    return n > 0;
}

/* How to go on with what the run has saved; from the start where that is nothing. */
static const char *
way_on(struct cli *c, char *hint, size_t size)
{
    bool saved = has_saved(et_run_directory(c->run));
    snprintf(hint, size, "etude %s %s", saved ? "train --resume" : "rerun",
             et_run_directory(c->run));
    return hint;
}

/* Says why the run did not end well. */
static void
explain(struct cli *c, const struct cli_end *end, enum et_outcome outcome,
        const char *target)
{
    char hint[PATH_MAX + 64];
    int number = cli_signal_received();
    if (outcome == ET_OUTCOME_TARGET_MISSED)
        (void)cli_fail(c, CLI_E_TARGET, "train longer: max_duration",
                       "rank 0: the target %s was not reached", target);
    else if (outcome == ET_OUTCOME_DIVERGED)
        (void)cli_fail(c, CLI_E_NOT_FINITE,
                       "lower optimizer.lr, or --alg "
                       "'gradient_clipping(clipping_type=norm,clipping_threshold=1)'",
                       "rank 0: the run diverged: %s", end->s->stop_reason);
    else if (outcome == ET_OUTCOME_STOPPED && was_asked(end->s))
        (void)cli_fail(c, CLI_E_SIGNALLED, way_on(c, hint, sizeof hint),
                       "rank 0: stopped on request after batch %lld, and saved",
                       (long long)end->s->timestamp.batch);
    else if (outcome == ET_OUTCOME_STOPPED && number == 0 && c->opt.until)
        (void)cli_fail(c, CLI_E_SIGNALLED, way_on(c, hint, sizeof hint),
                       "rank 0: --until %s: stopped after batch %lld, and saved",
                       c->opt.until, (long long)end->s->timestamp.batch);
    else if (outcome == ET_OUTCOME_STOPPED && number == 0)
        (void)cli_fail(
            c, CLI_E_SIGNALLED, way_on(c, hint, sizeof hint),
            "rank 0: stopped after batch %lld as another rank was, and saved",
            (long long)end->s->timestamp.batch);
    else if (outcome == ET_OUTCOME_STOPPED)
        (void)cli_fail(c, CLI_E_SIGNALLED, way_on(c, hint, sizeof hint),
                       "rank 0: stopped by signal %d (%s) after batch %lld, and saved",
                       number, strsignal(number), (long long)end->s->timestamp.batch);
    else if (outcome == ET_OUTCOME_UNSAVED)
        (void)cli_fail(c, CLI_E_WRITE, way_on(c, hint, sizeof hint),
                       "rank 0: what the run came to at batch %lld could not be saved",
                       (long long)end->s->timestamp.batch);
}

static int
conclude(struct cli *c, struct et_trainer *t, const char *target)
{
    enum et_outcome outcome = et_trainer_outcome(t);
    if (!c->run) /* rank 0 says it */
        return exits[outcome];
    bool asked = outcome == ET_OUTCOME_STOPPED && was_asked(et_trainer_state(t));
    const struct cli_end end = {
        .state = asked ? "stopped" : eti_outcome_state(outcome),
        .exit = exits[outcome],
        .s = et_trainer_state(t),
    };
    cli_run_notice(c, &end);
    if (c->opt.json && !c->results_are_json)
        summarise_json(c, &end);
    else if (!c->opt.quiet && !c->results_are_json)
        summarise(c, &end);
    fflush(c->out);
    explain(c, &end, outcome, target);
    cli_run_end(c, &end);
    return end.exit;
}

/* ---- the run ---- */

/* What the recipe asks for, and what every run has. */
static et_status
add_callbacks(struct cli *c, struct eti_assembly *a, struct et_recipe *recipe)
{
    struct et_callback *callback;
    ET_TRY(eti_assemble_callbacks(a, recipe, c->directory));
    if (c->rank) {
        ET_TRY(etd_rank_watch(c->rank, c->comm, &callback));
        ET_TRY(eti_assembly_add(a, callback));
    }
    if (!c->run)
        return ET_OK;
    a->config.sink = et_run_sink(c->run);
    ET_TRY(et_run_watch(c->cx, &callback));
    return eti_assembly_add(a, callback);
}

/* It failed with the status that stands in the context. */
static int
fail_run(struct cli *c, enum eti_stage stage, et_status status,
         const struct et_state *s)
{
    char hint[PATH_MAX + 64];
    if (!c->run)
        return cli_fail_status(c, stage, status);
    int code = cli_exit_of_status(c, stage, status);
    if (status == ET_EDEVICE)
        et_hint(c->cx, "once the GPU is well: %s", way_on(c, hint, sizeof hint));
    else if (stage == ETI_STAGE_RUN && (status == ET_EFORMAT || status == ET_EIO) &&
             et_error_get(c->cx)->code == 0)
        et_hint(c->cx, "with the data as they were: %s", way_on(c, hint, sizeof hint));
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

/* A run about to begin, or to go on. */
struct launch {
    struct eti_origin_run from; /* directory "": a new run */
    struct et_recipe *recipe;
    struct et_request *replay; /* of the run that goes on; owned */
    const char *recipe_name;   /* NULL: nobody knows, or the run that goes on has it */
    char *resolved;            /* owned */
    char digest[ETI_RECIPE_DIGEST];
};

/* Where to save, and what to begin from. A run that goes on and has not saved anything
 * yet begins at 0, unless somebody insists. */
static et_status
set_saving(struct cli *c, struct eti_assembly *a, struct launch *l,
           struct eti_saving *saving)
{
    struct et_checkpoint_info *list;
    int n, damaged, unfinished;
    if (c->run)
        ET_TRY(eti_saving_init(saving, c->cx, l->recipe, l->digest, c->run));
    else
        ET_TRY(eti_saving_init_at(saving, c->cx, l->recipe, l->digest, c->directory, "",
                                  0));
    saving->checkpoint.asked = cli_signal_checkpoint();
    if (l->from.directory[0]) {
        ET_TRY(et_checkpoint_list(c->cx, saving->directory, &list, &n, &damaged,
                                  &unfinished));
        et_free(c->cx, list);
        if (c->opt.resume || n > 0 || damaged > 0)
            eti_saving_resume(saving, l->from.name);
    }
    eti_saving_apply(saving, &a->config);
    a->config.interrupt = cli_signal_interrupt();
    if (c->rank)
        a->config.control = etd_rank_control(c->rank);
    if (l->from.directory[0])
        ET_TRY(etd_rank_replay(c->cx, c->directory, &l->replay, &a->config.n_replay));
    a->config.replay = l->replay;
    a->config.registry = c->registry;
    return ET_OK;
}

static int
fit(struct cli *c, struct eti_assembly *a, const char *target)
{
    struct et_trainer *t;
    struct cli_until until;
    cli_until_begin(c, &until, &a->config);
    et_status status = et_trainer_new(c->cx, &a->config, &t);
    if (status != ET_OK)
        return fail_run(c, ETI_STAGE_PARTS, status, NULL);
    cli_guard_watch(&et_trainer_state(t)->timestamp, et_comm_rank(c->comm));
    status = et_trainer_fit(t, ET_TIME_UNSET);
    cli_guard_watch(NULL, 0);
    int code = status == ET_OK
                   ? conclude(c, t, target)
                   : fail_run(c, ETI_STAGE_RUN, status, et_trainer_state(t));
    et_trainer_free(&t);
    return code;
}

/* From the run directory to the end of the run. */
static int
prepare_and_fit(struct cli *c, struct eti_assembly *a, struct launch *l)
{
    struct eti_saving saving = {0};
    et_status status = set_saving(c, a, l, &saving);
    if (status == ET_OK)
        status = add_callbacks(c, a, l->recipe);
    int shown = c->progress != NULL; /* the first: it is told by itself */
    c->callback = a->callback + shown;
    c->n_callbacks = a->config.n_callbacks - shown;
    eti_comm_fail(c->comm, status);
    int code = status == ET_OK ? fit(c, a, l->recipe->target)
                               : fail_run(c, ETI_STAGE_PARTS, status, NULL);
    eti_saving_release(&saving);
    return code;
}

static int
train(struct cli *c, struct eti_assembly *a, struct launch *l)
{
    struct et_callback *progress = NULL;
    bool follows = et_comm_rank(c->comm) > 0; /* rank 0 keeps the run, and shows it */
    int code = follows || c->rank ? CLI_OK : cli_progress_new(c, &progress);
    if (progress)
        a->callback[a->config.n_callbacks++] = progress;
    if (code != CLI_OK)
        return code;
    cli_signals_catch(l->recipe->grace);
    const struct cli_run run = {
        .recipe = l->recipe,
        .recipe_name = l->recipe_name,
        .resolved = l->resolved,
        .resumed = l->from.directory[0] ? l->from.directory : NULL,
        .dev = a->dev,
    };
    code = follows ? CLI_OK : cli_run_begin(c, &run);
    if (code != CLI_OK)
        eti_comm_fail(c->comm, ET_EIO); /* whatever it was: there is no run */
    if (code == CLI_OK)
        code = cli_ranks_share(c);
    if (code == CLI_OK)
        code = prepare_and_fit(c, a, l);
    c->progress = NULL;
    c->callback = NULL;
    return code;
}

static int
try(struct cli *c, struct eti_assembly *a, const struct et_recipe *recipe,
    const char *name)
{
    struct et_trainer *t;
    a->config.dry = true;
    et_status status = et_trainer_new(c->cx, &a->config, &t);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_PARTS, status);
    status = et_trainer_fit(t, ET_BATCHES(1)); /* plans it, and computes nothing */
    if (status == ET_OK)
        status = eti_check_callbacks(t, recipe);
    et_trainer_free(&t);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_PARTS, status);
    if (c->opt.json)
        return cli_print_json(
            json_pack("{s:o, s:b}", "recipe", cli_json_text(name), "fits", 1));
    if (!c->opt.quiet)
        et_print(stdout, "%s: the recipe, its data and its model fit\n", name);
    return CLI_OK;
}

/* Checks of the recipe that need no device: made before anything is started. */
static int
check(struct cli *c, const struct launch *l, int world)
{
    struct et_diagnostics errors = {0};
    if (et_recipe_check_train(c->cx, l->recipe, world, &errors) != ET_OK ||
        eti_recipe_check_available(c->cx, l->recipe, &errors) != ET_OK)
        return cli_fail_list(c, &errors, stderr);
    int code = cli_until_check(c);
    return code == CLI_OK ? cli_check_limits(c) : code;
}

/* Fills what the recipe leaves open. It gives its options away when it is assembled: it
 * is written down before. */
static int
settle(struct cli *c, struct launch *l, struct eti_assemble_options *options)
{
    struct eti_origin_run
        begin; /* what load.path means is known before a run is made */
    et_status status = ET_OK;
    if (l->recipe->load.path && !l->from.directory[0])
        status = eti_origin_find(c->cx, l->recipe->load.path, &begin);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    int code = cli_assemble_options(c, options);
    options->threads = cli_ranks_threads(c);
    if (code == CLI_OK)
        code = l->from.directory[0] ? cli_resume_settle(c, &l->from, l->recipe, options)
                                    : cli_settle_recipe(c, l->recipe, options);
    if (code == CLI_OK && !c->opt.dry_run)
        code = cli_ranks_join(c, l->recipe);
    if (code != CLI_OK)
        return code;
    options->comm = c->comm;
    status = et_recipe_resolved(c->cx, l->recipe, &l->resolved);
    if (status == ET_OK)
        status = eti_recipe_digest(c->cx, l->recipe, l->digest);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_RECIPE, status);
}

/* Does it all in this process: as a rank, or under another launcher. */
static int
run_here(struct cli *c, struct launch *l, const char *name)
{
    struct eti_assemble_options options = {
        .with_train = true, .with_eval = true, .is_trial = c->opt.dry_run};
    struct eti_assembly a;
    et_status status = cli_signals_apart(c->cx);
    int code = status == ET_OK ? settle(c, l, &options)
                               : cli_fail_status(c, ETI_STAGE_DEVICE, status);
    if (code == CLI_OK) {
        status = eti_assemble(c->cx, l->recipe, &options, &a);
        eti_comm_fail(c->comm, status);
        if (status != ET_OK)
            code = cli_fail_status(c, a.stage, status);
        else
            code = c->opt.dry_run ? try(c, &a, l->recipe, name) : train(c, &a, l);
        eti_assembly_release(&a);
        et_run_close(&c->run);
    } else {
        eti_comm_fail(c->comm, ET_EINVAL);
        et_device_close(&options.dev);
    }
    et_comm_close(&c->comm);
    et_free(c->cx, l->replay);
    et_free(c->cx, l->resolved);
    return code;
}

static int
run_rank(struct cli *c, struct launch *l, const char *name)
{
    const char *again = etd_rank_resumes(c->rank);
    int code = CLI_OK;
    et_ctx_set_log(c->cx, ET_LOG_DEBUG, cli_log, c);
    c->out = etd_rank_out(c->rank);
    c->err = etd_rank_err(c->rank);
    if (again && eti_origin_find(c->cx, again, &l->from) != ET_OK)
        code = cli_fail_status(c, ETI_STAGE_OUTPUT, et_error_get(c->cx)->status);
    if (code == CLI_OK)
        code = cli_ranks_find(c); /* as the supervisor's environment has it */
    if (code == CLI_OK)
        code = run_here(c, l, name);
    const struct etd_end end = {.exit = code};
    if (etd_rank_number(c->rank) > 0) /* rank 0 has said how it ended */
        etd_rank_end(c->rank, &end);
    c->out = stdout;
    c->err = stderr;
    etd_rank_free(&c->rank);
    return code;
}

/* How the run is started: its processes, from the options. */
static int
plan_launch(struct cli *c, const struct launch *l, struct etd_launch *out)
{
    size_t size;
    const char *bytes = et_recipe_bytes(l->recipe, &size);
    *out = (struct etd_launch){
        .out = c->opt.rank_stdout,
        .err = c->opt.rank_stderr,
        .restart = c->opt.autoresume,
        /* Not said: it follows the steps (supervisor_watch.c). */
        .timeout = l->recipe->timeout == ET_RECIPE_TIMEOUT ? 0 : l->recipe->timeout,
        .grace = l->recipe->grace,
        .program = "/proc/self/exe",
        .config =
            {
                .directory = c->opt.run_directory,
                .recipe = bytes,
                .recipe_bytes = size,
                .recipe_name = l->recipe_name,
                .command = (const char *const *)c->argv,
                .n_command = c->argc,
                .record_interval = l->recipe->record_interval,
            },
    };
    c->has_color = cli_has_color(c, STDERR_FILENO);
    int code = cli_progress_check(c);
    return code == CLI_OK ? cli_launch_read(c, l->recipe->launch.nproc, out) : code;
}

/* A run does not begin if nobody could attach to it or stop it. (A run that loses its
 * socket later goes on and says so.) It does not begin either if its directory's name
 * cannot be sent as JSON, which its processes speak. */
static int
check_places(struct cli *c, const struct launch *l)
{
    char folder[PATH_MAX];
    uint32_t character;
    const char *path = l->from.directory[0] ? l->from.directory : c->opt.run_directory;
    size_t n = path ? strlen(path) : 0;
    for (size_t at = 0; at < n;) {
        int length = eti_utf8_decode(path + at, n - at, &character);
        if (length == 0)
            return cli_fail(c, CLI_E_VALUE, "give it another name",
                            "the run directory %s: byte %zu is not UTF-8", path,
                            at + 1);
        at += (size_t)length;
    }
    et_status status =
        etd_endpoint_make_folder(c->cx, etd_endpoint_folder(folder, sizeof folder));
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

static int
run(struct cli *c, struct launch *l, const char *name)
{
    struct etd_launch plan;
    struct etd_front *front;
    bool foreign = etd_rank_env_launcher() != NULL;
    const char *worker = l->recipe->launch.worker;
    /* (One that is resumed goes on where it is.) */
    if (worker && !foreign && !c->opt.dry_run && !l->from.directory[0])
        return cli_train_on(c, name, l->recipe_name, worker);
    int code = foreign ? cli_ranks_find(c) : plan_launch(c, l, &plan);
    if (code == CLI_OK)
        code = check(c, l, foreign ? c->rank_env.world : plan.world);
    if (code == CLI_OK && c->opt.dry_run && !foreign)
        code = cli_ranks_find(c);
    if (code != CLI_OK)
        return code;
    if (c->opt.dry_run || foreign)
        return run_here(c, l, name);
    code = check_places(c, l);
    if (code != CLI_OK)
        return code;
    c->nproc = plan.nproc;
    if (etd_launch(c->cx, &plan, &front, &c->rank, &code) != ET_OK) {
        code = cli_fail(c, (enum cli_error)ET_E_SYSTEM_LIMIT, NULL, "%s",
                        et_error_get(c->cx)->message);
        et_error_clear(c->cx);
        return code;
    }
    if (front)
        return cli_front(c, front);
    return c->rank ? run_rank(c, l, name) : code; /* the supervisor's */
}

int
cli_train_recipe(struct cli *c, const char *path, const char *name)
{
    int code;
    if (c->opt.on)
        return cli_train_on(c, path, name, c->opt.on);
    struct launch l = {
        .recipe = cli_load_recipe(c, path, &code),
        .recipe_name = name,
    };
    if (l.recipe)
        code = run(c, &l, path);
    et_recipe_free(&l.recipe);
    return code;
}

/* The name of the recipe at PATH: without folder and ending. Returns BUF. */
static const char *
name_recipe(char buf[NAME_MAX + 1], const char *path)
{
    static const char *const endings[] = {".yaml", ".yml"};
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (n > ending && strcmp(base + n - ending, endings[i]) == 0) {
            n -= ending;
            break;
        }
    }
    snprintf(buf, NAME_MAX + 1, "%.*s", (int)n, base);
    return buf;
}

/* A descriptor that the caller has opened says nothing of the recipe in it. */
static bool
has_name(const char *path)
{
    static const char *const nameless[] = {"/proc/self/fd/", "/dev/fd/", "/dev/stdin"};
    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++)
        if (strncmp(path, nameless[i], strlen(nameless[i])) == 0)
            return false;
    return true;
}

int
cli_train(struct cli *c)
{
    struct launch l = {0};
    char name[NAME_MAX + 1];
    if (c->opt.on && c->n_args == 1)
        return cli_train_on(c, c->arg[0],
                            has_name(c->arg[0]) ? name_recipe(name, c->arg[0]) : NULL,
                            c->opt.on);
    int code = cli_resume_find(c, &l.from);
    if (code != CLI_OK)
        return code;
    if (c->n_args && has_name(c->arg[0]))
        l.recipe_name = name_recipe(name, c->arg[0]);
    l.recipe = cli_resume_recipe(c, &l.from, &code);
    if (l.recipe)
        code = run(c, &l, c->n_args ? c->arg[0] : l.from.directory);
    et_recipe_free(&l.recipe);
    return code;
}
