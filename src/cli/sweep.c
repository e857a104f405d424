/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c: `etude sweep`: a run for each combination of values, some at a time, of
 * which the worst may be left early; and which was best.
 *
 * Each run is `etude train` in a process of its own. What is kept of a sweep is its
 * plan and the runs themselves, so it goes on from whatever moment it was ended at.
 *
 * With --halving N all runs are trained to a rung, one of N goes on to the next, N
 * times as far, and so on: Jamieson and Talwalkar 2016, arXiv 1502.07943 (successive
 * halving). Schedules are those of the whole run. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/sweep.h"

extern char **environ;

enum { JOBS = 64, ARGUMENTS = 2 * CLI_MAX_OPTIONS, SAID = 4096, VARIABLES = 2 };
enum { WORDS = ARGUMENTS - 24 }; /* of a run's arguments: what the sweep sets */

/* A process that trains a run. */
struct job {
    json_t *run; /* borrowed; NULL: none is under way */
    pid_t pid;
    int fd; /* what it says on standard error */
    char said[SAID];
    size_t n;
};

struct sweep {
    struct sweep_view view;
    struct et_time max; /* of the recipe: its max_duration */
    int rungs, rung;
    struct job job[JOBS];
    int jobs;
    int done, of; /* runs of this rung */
    bool ends;    /* a signal has come */
};

/* ---- processes ---- */

/* The processors and the GPU of job AT: an equal part of the ones that there are, where
 * nobody has said how many threads; one after the other of CUDA_VISIBLE_DEVICES. */
static int
share_machine(const struct sweep *s, int at, char buf[VARIABLES][64])
{
    int n = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const char *gpus = getenv("CUDA_VISIBLE_DEVICES");
    if (!getenv("OMP_NUM_THREADS") && s->jobs > 1)
        snprintf(buf[n++], sizeof buf[0], "OMP_NUM_THREADS=%ld",
                 cores > s->jobs ? cores / s->jobs : 1);
    if (gpus && *gpus && s->jobs > 1) {
        json_t *list = sweep_split(gpus, ',');
        size_t which = (size_t)at % json_array_size(list);
        snprintf(buf[n++], sizeof buf[0], "CUDA_VISIBLE_DEVICES=%s",
                 json_string_value(json_array_get(list, which)));
        json_decref(list);
    }
    return n;
}

/* This process's environment with N of OWN in the place of what was called so. */
static char **
environment(char own[VARIABLES][64], int n)
{
    size_t all = 0, used = 0;
    while (environ[all])
        all++;
    char **list = calloc(all + (size_t)n + 1, sizeof *list);
    for (size_t i = 0; list && i < all; i++) {
        bool mine = false;
        for (int k = 0; k < n; k++)
            mine |= strncmp(environ[i], own[k], strcspn(own[k], "=") + 1) == 0;
        if (!mine)
            list[used++] = environ[i];
    }
    for (int k = 0; list && k < n; k++)
        list[used++] = own[k];
    return list;
}

static int
spawn(struct job *j, const char *const *argv, char **env, int err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0); /* Ctrl-C is passed on, once */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    int code = posix_spawn(&j->pid, "/proc/self/exe", &files, &attributes,
                           (char *const *)(void *)argv, env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return code;
}

static void
add_words(const char **argv, int *n, const json_t *words)
{
    json_t *word;
    size_t i;
    json_array_foreach(words, i, word) argv[(*n)++] = json_string_value(word);
}

/* Begins RUN, or goes on with it, in job AT. Returns an exit code. */
static int
start(struct sweep *s, int at, json_t *run)
{
    struct job *j = &s->job[at];
    char directory[PATH_MAX], until[SWEEP_RUNG], own[VARIABLES][64];
    const char *argv[ARGUMENTS] = {
        "etude", "train", json_string_value(json_object_get(s->view.plan, "recipe"))};
    int n = 3, ends[2];
    const char *to = sweep_until(s->view.plan, s->rung, s->max, until);
    const char *below = json_string_value(json_object_get(s->view.plan, "folder"));
    if (json_is_true(json_object_get(s->view.plan, "module")))
        argv[n++] = "--module-mode";
    if (below) {
        argv[n++] = "--recipe-folder";
        argv[n++] = below;
    }
    if (s->view.c->opt.config) {
        argv[n++] = "--config";
        argv[n++] = s->view.c->opt.config;
    }
    const char *const fixed[] = {"--run-directory",
                                 sweep_run_directory(&s->view, run, directory),
                                 "--run-name",
                                 sweep_run_name(run),
                                 "--autoresume",
                                 "--progress",
                                 "none",
                                 "-q"};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        argv[n++] = fixed[i];
    if (to) {
        argv[n++] = "--until";
        argv[n++] = to;
    }
    add_words(argv, &n, json_object_get(s->view.plan, "words"));
    add_words(argv, &n, json_object_get(run, "set"));
    char **env = environment(own, share_machine(s, at, own));
    int code = !env ? ENOMEM : pipe2(ends, O_CLOEXEC) != 0 ? errno : 0;
    if (code == 0) {
        code = spawn(j, argv, env, ends[1]);
        close(ends[1]);
        if (code != 0)
            close(ends[0]);
    }
    free(env);
    if (code != 0)
        return cli_fail(s->view.c, CLI_E_RUN, NULL, "%s cannot be started: %s",
                        sweep_run_name(run), strerror(code));
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    j->run = run;
    j->fd = ends[0];
    j->n = 0;
    return CLI_OK;
}

/* What became of a run, on the screen. */
static void
tell(const struct sweep *s, const json_t *run, const char *what)
{
    char text[512], visible[ET_VISIBLE_MAX + 1], value[64] = "", metric[ET_METRIC_NAME];
    double best = sweep_run_best(&s->view, run, metric);
    const char *leaf = strrchr(metric, '/');
    if (isfinite(best))
        snprintf(value, sizeof value, ", %.40s %.6g", leaf ? leaf + 1 : metric, best);
    sweep_run_set(run, text, sizeof text);
    if (!s->view.c->opt.quiet)
        et_print(stderr, "%d/%d %s %s: %s%s\n", s->done, s->of, sweep_run_name(run),
                 et_visible(visible, sizeof visible, text, strlen(text)), what, value);
}

/* What J said last, of an error. */
static const char *
error_of(struct job *j)
{
    j->said[j->n] = '\0';
    char *from = strstr(j->said, "error ");
    if (!from)
        return "no word of why";
    from[strcspn(from, "\n")] = '\0';
    return from;
}

/* J has ended with CODE: the run has passed the rung, or will not. */
static void
settle(struct sweep *s, struct job *j, int code)
{
    char what[SAID + 64];
    json_t *run = j->run;
    j->said[j->n] = '\0';
    bool passed = code == CLI_PREEMPTED && strstr(j->said, "--until");
    j->run = NULL;
    if (s->ends && code != CLI_OK && !passed)
        return; /* it goes on when the sweep does */
    s->done++;
    if (code == CLI_OK || code == CLI_MISSED) {
        json_object_set_new(run, "rung", json_integer(s->rungs));
        tell(s, run, "finished");
    } else if (passed) {
        json_object_set_new(run, "rung", json_integer(s->rung + 1));
        snprintf(what, sizeof what, "passed rung %d of %d", s->rung + 1, s->rungs);
        tell(s, run, what);
    } else {
        json_object_set_new(run, "out", json_true());
        json_object_set_new(run, "failed", json_true());
        snprintf(what, sizeof what, "exit %d, %s", code, error_of(j));
        tell(s, run, what);
    }
}

/* Takes what J says. True: it has ended just now. */
static bool
hear(struct sweep *s, struct job *j)
{
    char more[512];
    ssize_t n;
    int status;
    while ((n = read(j->fd, more, sizeof more)) > 0) {
        size_t room = sizeof j->said - 1 - j->n;
        size_t take = (size_t)n < room ? (size_t)n : room;
        memcpy(j->said + j->n, more, take);
        j->n += take;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    close(j->fd);
    while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    settle(s, j,
           WIFEXITED(status) ? WEXITSTATUS(status) : CLI_SIGNAL + WTERMSIG(status));
    return true;
}

/* ---- a rung ---- */

/* The next run that has not passed this rung; NULL: none is left. */
static json_t *
next_run(const struct sweep *s)
{
    json_t *run;
    size_t i;
    json_array_foreach(sweep_runs(&s->view), i, run)
    {
        bool busy = false;
        for (int k = 0; k < s->jobs; k++)
            busy |= s->job[k].run == run;
        if (!busy && !sweep_run_is_out(run) && sweep_run_rung(run) <= s->rung)
            return run;
    }
    return NULL;
}

/* Starts what there is room for; how many are under way is *ACTIVE. */
static int
fill_jobs(struct sweep *s, int *active)
{
    int code = CLI_OK;
    *active = 0;
    for (int i = 0; i < s->jobs && code == CLI_OK; i++) {
        json_t *run = s->job[i].run || s->ends ? NULL : next_run(s);
        if (run)
            code = start(s, i, run);
        *active += s->job[i].run != NULL;
    }
    return code;
}

static void
pass_signal(struct sweep *s)
{
    if (s->ends || !cli_signal_received())
        return;
    s->ends = true;
    for (int i = 0; i < s->jobs; i++)
        if (s->job[i].run)
            (void)kill(s->job[i].pid, SIGTERM);
}

/* Waits until one of them has something to say. */
static void
wait_jobs(const struct sweep *s)
{
    enum { LOOK_MS = 200 }; /* a signal is seen after so long */
    struct pollfd fd[JOBS];
    nfds_t n = 0;
    for (int i = 0; i < s->jobs; i++)
        if (s->job[i].run)
            fd[n++] = (struct pollfd){.fd = s->job[i].fd, .events = POLLIN};
    (void)poll(fd, n, LOOK_MS);
}

/* Trains all runs that are in to the rung. Returns an exit code. */
static int
train_rung(struct sweep *s)
{
    int active, code;
    json_t *run;
    size_t i;
    s->done = s->of = 0;
    json_array_foreach(sweep_runs(&s->view), i, run) s->of +=
        !sweep_run_is_out(run) && sweep_run_rung(run) <= s->rung;
    while ((code = fill_jobs(s, &active)) == CLI_OK && active > 0) {
        wait_jobs(s);
        pass_signal(s);
        for (int k = 0; k < s->jobs && code == CLI_OK; k++)
            if (s->job[k].run && hear(s, &s->job[k]))
                code = sweep_plan_write(s->view.c, s->view.folder, s->view.plan);
        if (code != CLI_OK)
            break;
    }
    for (int k = 0; k < s->jobs && code != CLI_OK; k++)
        if (s->job[k].run)
            (void)kill(s->job[k].pid, SIGTERM);
    return code;
}

/* Has no run of the ranking been evaluated yet, so that there is nothing to go by? */
static bool
none_is_known(const struct sweep *s, const struct sweep_ranked *list, int n)
{
    char until[SWEEP_RUNG];
    if (!list || n == 0 || !isnan(list[0].best)) /* the best is the first */
        return false;
    et_report(
        s->view.c->cx, ET_LOG_WARN,
        "rung %d of %d: no run has a value to be judged by at %s, so all go on; a "
        "shorter eval_interval lets them be judged there",
        s->rung + 1, s->rungs, sweep_until(s->view.plan, s->rung, s->max, until));
    return true;
}

/* Behind a rung only the best go on. */
static int
leave_worst(struct sweep *s)
{
    int n, left = sweep_left(s->view.plan, s->rung);
    struct sweep_ranked *list = sweep_rank(&s->view, false, &n);
    if (none_is_known(s, list, n))
        left = n;
    for (int i = left; list && i < n; i++)
        json_object_set_new(list[i].run, "out", json_true());
    if (list && n > left && !s->view.c->opt.quiet)
        et_print(stderr, "rung %d of %d: %d of %d runs go on\n", s->rung + 1, s->rungs,
                 left, n);
    sweep_free_ranking(list, n);
    return sweep_plan_write(s->view.c, s->view.folder, s->view.plan);
}

/* Exit 1 where no run has finished. */
static int
conclude(const struct sweep *s)
{
    int n, finished = 0;
    struct sweep_ranked *list = sweep_rank(&s->view, true, &n);
    sweep_print(&s->view, list, n);
    for (int i = 0; i < n; i++)
        finished += sweep_run_rung(list[i].run) == s->rungs;
    sweep_free_ranking(list, n);
    const char *name = json_string_value(json_object_get(s->view.plan, "sweep"));
    char hint[ET_RUN_NAME + 64];
    snprintf(hint, sizeof hint, "etude sweep --resume %s", name);
    if (s->ends)
        return cli_fail(s->view.c, CLI_E_SIGNALLED, hint,
                        "sweep %s: stopped by signal %d", name, cli_signal_received());
    if (finished == 0)
        return cli_fail(s->view.c, CLI_E_RUN, NULL, "sweep %s: no run has finished",
                        name);
    return CLI_OK;
}

/* ---- the command ---- */

/* A run's arguments have room for WORDS of the plan's. */
static int
check_words(const struct sweep *s)
{
    const size_t common = json_array_size(json_object_get(s->view.plan, "words"));
    json_t *run;
    size_t i;
    json_array_foreach(sweep_runs(&s->view), i, run)
    {
        const size_t n = common + json_array_size(json_object_get(run, "set"));
        if (n > WORDS)
            return cli_fail(s->view.c, CLI_E_OPERAND, NULL,
                            "%s has %zu settings, and a run of a sweep at most %d",
                            sweep_run_name(run), n, WORDS);
    }
    return CLI_OK;
}

/* Every run's recipe is read, so that what is wrong with one is said before the first
 * begins. */
static int
check_runs(struct sweep *s)
{
    struct et_override own[WORDS + CLI_OWN_OVERRIDES];
    struct cli *c = s->view.c;
    struct et_override *const given = c->override;
    const int n = c->n_overrides;
    const json_t *below = json_object_get(s->view.plan, "folder");
    char text[512];
    const char *recipe = json_string_value(json_object_get(s->view.plan, "recipe"));
    json_t *run, *word;
    size_t i, k;
    int code = check_words(s);
    if (code != CLI_OK)
        return code;
    c->opt.recipe_folder = below ? json_string_value(below) : c->opt.recipe_folder;
    c->override = own; /* a plan may have more of them than the command line */
    c->n_overrides = 0;
    json_array_foreach(json_object_get(s->view.plan, "words"), i, word)
    {
        const char *words = json_string_value(word);
        enum et_override_kind kind = ET_OVERRIDE_SET;
        if (strncmp(words, "--", 2) == 0) {
            kind = strcmp(words, "--alg") == 0      ? ET_OVERRIDE_ALG
                   : strcmp(words, "--no-alg") == 0 ? ET_OVERRIDE_NO_ALG
                                                    : ET_OVERRIDE_UNSET;
            words = json_string_value(
                json_array_get(json_object_get(s->view.plan, "words"), ++i));
        }
        c->override[c->n_overrides++] = (struct et_override){kind, words};
    }
    const int common = c->n_overrides;
    json_array_foreach(sweep_runs(&s->view), i, run)
    {
        c->n_overrides = common;
        json_array_foreach(json_object_get(run, "set"), k, word)
            c->override[c->n_overrides++] =
            (struct et_override){ET_OVERRIDE_SET, json_string_value(word)};
        struct et_recipe *r = cli_load_recipe(c, recipe, &code);
        if (!r) {
            et_print(stderr, "  in %s: %s\n", sweep_run_name(run),
                     sweep_run_set(run, text, sizeof text));
            break;
        }
        s->max = r->max_duration;
        et_recipe_free(&r);
    }
    c->override = given;
    c->n_overrides = n;
    return code;
}

static int
print_plan(const struct sweep *s)
{
    json_t *run;
    size_t i;
    char text[512], until[SWEEP_RUNG];
    if (s->view.c->opt.json)
        return cli_print_json(json_incref(s->view.plan));
    json_array_foreach(sweep_runs(&s->view), i, run) et_print(
        stdout, "%s  %s\n", sweep_run_name(run), sweep_run_set(run, text, sizeof text));
    for (int k = 0; k + 1 < s->rungs; k++)
        et_print(stdout, "to %s: all of %d, then %d\n",
                 sweep_until(s->view.plan, k, s->max, until),
                 k > 0 ? sweep_left(s->view.plan, k - 1) : (int)i,
                 sweep_left(s->view.plan, k));
    return CLI_OK;
}

static int
run_rungs(struct sweep *s)
{
    int code = sweep_plan_write(s->view.c, s->view.folder, s->view.plan);
    cli_signals_catch(0);
    for (; code == CLI_OK && s->rung < s->rungs && !s->ends; s->rung++) {
        code = train_rung(s);
        if (code == CLI_OK && !s->ends && s->rung + 1 < s->rungs)
            code = leave_worst(s);
    }
    return code == CLI_OK ? conclude(s) : code;
}

static int
read_jobs(struct cli *c, int *out)
{
    char *end;
    long n = c->opt.jobs ? strtol(c->opt.jobs, &end, 10) : 1;
    *out = (int)n;
    if (!c->opt.jobs || (end != c->opt.jobs && !*end && n >= 1 && n <= JOBS))
        return CLI_OK;
    return cli_fail(c, CLI_E_VALUE, NULL, "--jobs: expected 1 to %d, got '%s'", JOBS,
                    c->opt.jobs);
}

/* Where runs of that name are, a sweep does not begin: it would go on with them. */
static int
check_new(const struct sweep *s)
{
    char path[PATH_MAX];
    const char *name = json_string_value(json_object_get(s->view.plan, "sweep"));
    json_t *run;
    size_t i;
    snprintf(path, sizeof path, "%s/%s.sweep", s->view.folder, name);
    bool there = access(path, F_OK) == 0;
    json_array_foreach(sweep_runs(&s->view), i, run) there |=
        access(sweep_run_directory(&s->view, run, path), F_OK) == 0;
    if (!there)
        return CLI_OK;
    snprintf(path, sizeof path, "etude sweep --resume %s goes on with it", name);
    return cli_fail(s->view.c, CLI_E_VALUE, path,
                    "a sweep %s has been begun; --run-name gives this one another name",
                    name);
}

/* A sweep that goes on has its recipe and settings. */
static int
check_resumed(struct cli *c)
{
    bool more = c->n_args > 0 || c->n_overrides > 0 || c->opt.random || c->opt.list ||
                c->opt.halving || c->opt.metric || c->opt.run_name ||
                c->opt.leave_one_out;
    if (!c->opt.resume || !more)
        return CLI_OK;
    return cli_fail(c, CLI_E_OPERAND, NULL,
                    "a sweep that goes on has its recipe and settings");
}

int
cli_sweep(struct cli *c)
{
    int code = check_resumed(c);
    struct sweep *s = code == CLI_OK ? calloc(1, sizeof *s) : NULL;
    if (code != CLI_OK)
        return code;
    if (!s)
        return cli_fail(c, CLI_E_MEMORY, NULL, "out of memory: the sweep");
    s->view.c = c;
    s->view.folder = c->opt.run_directory ? c->opt.run_directory : "runs";
    s->view.plan = c->opt.resume ? sweep_plan_read(c, c->opt.resume, &code)
                                 : sweep_plan_make(c, &code);
    if (s->view.plan) {
        s->rungs = sweep_rungs(s->view.plan);
        code = read_jobs(c, &s->jobs);
    }
    if (code == CLI_OK)
        code = check_runs(s);
    if (code == CLI_OK && !c->opt.resume && !c->opt.dry_run)
        code = check_new(s);
    if (code == CLI_OK)
        code = c->opt.dry_run ? print_plan(s) : run_rungs(s);
    json_decref(s->view.plan);
    free(s);
    return code;
}
