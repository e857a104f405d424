/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c: how many ranks there are, which of them start here, and where they meet:
 * from the command line, a launcher's environment, or Slurm's (UX.md section 2). Each
 * value remembers where it came from, so that a conflict names both places. And `etude
 * launch`, which starts any program so. */
#include "config.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "dist/run/spawn.h"

/* A number and who said it. */
struct said {
    long value;
    const char *source; /* NULL: nobody, it is the default */
};

static int
read_number(struct cli *c, const char *source, const char *text, long least,
            struct said *out)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < least || value > INT_MAX)
        return cli_fail(c, CLI_E_VALUE, NULL, "%s: expected a number >= %ld, got '%s'",
                        source, least, text);
    *out = (struct said){value, source};
    return CLI_OK;
}

/* OPTION, called FLAG, else the first of NAMES (NULL-terminated) that is set. -1 is as
 * good as nothing where UNSET says so. */
static int
find_number(struct cli *c, const char *flag, const char *option,
            const char *const *names, long least, bool unset, struct said *out)
{
    if (option && !(unset && strcmp(option, "-1") == 0))
        return read_number(c, flag, option, least, out);
    for (; !out->source && *names; names++) {
        const char *text = getenv(*names);
        if (text && *text && !(unset && strcmp(text, "-1") == 0))
            return read_number(c, *names, text, least, out);
    }
    return CLI_OK;
}

static const char *
source(const struct said *s)
{
    return s->source ? s->source : "default";
}

/* Where rank 0 answers: by a loopback address where that is this machine. (Slurm's
 * names of machines are no matter while all ranks are on one.) */
static void
find_host(const struct cli *c, char *out, size_t size)
{
    const char *given = getenv("MASTER_ADDR");
    const char *host = c->opt.master_addr ? c->opt.master_addr : given;
    const char *here = host && *host ? etd_rank_env_on_loopback(host) : "127.0.0.1";
    snprintf(out, size, "%s", here ? here : host);
}

/* How many ranks there are in all, where Slurm alone says something: of one task for
 * each machine it starts the launchers of ranks; else each task is to be one rank. */
static int
read_slurm(struct cli *c, const struct said *nproc, const struct said *node,
           struct said *world, struct said *base)
{
    static const char *const task_names[] = {"SLURM_NTASKS", NULL};
    static const char *const machine_names[] = {"SLURM_JOB_NUM_NODES", "SLURM_NNODES",
                                                NULL};
    static const char *const rank_names[] = {"SLURM_PROCID", NULL};
    struct said tasks = {0, NULL}, machines = {1, NULL};
    int code = find_number(c, NULL, NULL, task_names, 1, false, &tasks);
    if (code == CLI_OK)
        code = find_number(c, NULL, NULL, machine_names, 1, false, &machines);
    if (code != CLI_OK || !tasks.source)
        return code;
    *world = tasks;
    if (machines.source && machines.value == 1 && tasks.value > 1 &&
        tasks.value != nproc->value)
        return cli_fail(
            c, CLI_E_VALUE,
            "srun etude train starts a rank for each task; etude train -n N "
            "starts N ranks itself",
            "%ld tasks (SLURM_NTASKS) on one machine, and nproc %ld (%s)", tasks.value,
            nproc->value, source(nproc));
    if (tasks.value != machines.value)
        return base->source ? CLI_OK
                            : find_number(c, NULL, NULL, rank_names, 0, false, base);
    world->value *= nproc->value;
    if (!base->source && node->value > 0)
        *base = (struct said){node->value * nproc->value, node->source};
    return CLI_OK;
}

static int
check_format(struct cli *c, const char *flag, const char *format)
{
    const char *at;
    size_t n;
    if (!format || etd_print_format(format, &at, &n))
        return CLI_OK;
    char hint[128];
    snprintf(hint, sizeof hint, "the fields are %s", etd_print_fields);
    return cli_fail(c, CLI_E_VALUE, hint, "%s: no field is called %.*s", flag, (int)n,
                    at);
}

int
cli_launch_read(struct cli *c, int64_t nproc_wanted, struct etd_launch *l)
{
    static const char *const nproc_names[] = {"LOCAL_WORLD_SIZE", NULL};
    static const char *const world_names[] = {"WORLD_SIZE", NULL};
    static const char *const base_names[] = {"BASE_RANK", NULL};
    static const char *const node_names[] = {"NODE_RANK", "SLURM_NODEID", NULL};
    static const char *const port_names[] = {"MASTER_PORT", NULL};
    struct said nproc = {1, NULL}, world = {0, NULL}, base = {0, NULL},
                node = {0, NULL}, port = {0, NULL};
    const struct cli_options *o = &c->opt;
    const char *alone = getenv("RANK");
    if (alone && *alone)
        return cli_fail(c, CLI_E_LATER, "a rank of a launcher has both",
                        "RANK=%s without LOCAL_RANK: this version does not do that",
                        alone);
    if (nproc_wanted != ET_INT_UNSET && !o->nproc)
        nproc = (struct said){(long)nproc_wanted, "launch.nproc"};
    int code = check_format(c, "--stdout", o->rank_stdout);
    if (code == CLI_OK)
        code = check_format(c, "--stderr", o->rank_stderr);
    if (code == CLI_OK)
        code = find_number(c, "--nproc", o->nproc, nproc_names, 1, false, &nproc);
    if (code == CLI_OK)
        code =
            find_number(c, "--world_size", o->world_size, world_names, 1, true, &world);
    if (code == CLI_OK)
        code = find_number(c, "--base_rank", o->base_rank, base_names, 0, false, &base);
    if (code == CLI_OK)
        code = find_number(c, "--node_rank", o->node_rank, node_names, 0, true, &node);
    if (code == CLI_OK)
        code = find_number(c, "--master_port", o->master_port, port_names, 1, false,
                           &port);
    if (code == CLI_OK && port.value > UINT16_MAX)
        code = cli_fail(c, CLI_E_VALUE, NULL, "%s: expected a port <= %d, got '%ld'",
                        source(&port), UINT16_MAX, port.value);
    if (code == CLI_OK && !world.source)
        code = read_slurm(c, &nproc, &node, &world, &base);
    if (code != CLI_OK)
        return code;
    if (!world.source)
        world.value = base.value + nproc.value;
    if (base.value + nproc.value > world.value)
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "base_rank %ld (%s) + nproc %ld (%s) > world_size %ld (%s)",
                        base.value, source(&base), nproc.value, source(&nproc),
                        world.value, source(&world));
    find_host(c, l->host, sizeof l->host);
    if (world.value > nproc.value || base.value > 0 || node.value > 0 ||
        !etd_rank_env_on_loopback(l->host))
        return cli_fail(c, CLI_E_LATER, NULL,
                        "world_size %ld (%s), nproc %ld (%s), at %s: this version does "
                        "not train on several machines",
                        world.value, source(&world), nproc.value, source(&nproc),
                        l->host);
    if (world.value > 1 && !etd_comm_possible())
        return cli_fail(
            c, CLI_E_LATER, NULL,
            "%ld ranks (%s): this program was built without Gloo, and trains "
            "with one",
            nproc.value, source(&nproc));
    l->nproc = (int)nproc.value;
    l->world = (int)world.value;
    l->base = (int)base.value;
    l->node = (int)node.value;
    l->port = (int)port.value;
    return CLI_OK;
}

/* ---- `etude launch` ---- */

/* Seconds that --timeout says; 0: it is not given. */
static int
read_timeout(struct cli *c, int *out)
{
    static const struct et_option rows[] = {
        {
            .name = "timeout",
            .type = ET_OPT_SECONDS,
            .def = "0s",
            .max = INT_MAX / 1000,
        },
        {0},
    };
    double seconds = 0;
    et_status status = et_options_init(c->cx, rows, &seconds);
    if (status == ET_OK && c->opt.timeout)
        status = et_options_set(c->cx, rows, &seconds, "timeout", c->opt.timeout);
    *out = seconds > 0 && seconds < 1 ? 1 : (int)seconds;
    if (status == ET_OK)
        return CLI_OK;
    int code = cli_fail(c, CLI_E_VALUE, NULL, "--%s", et_error_get(c->cx)->message);
    et_error_clear(c->cx);
    return code;
}

/* A rank that has failed has said why itself: this is which one it was. */
static int
say_end(struct cli *c, const struct etd_spawned *end)
{
    const char *late = end->late ? "; others did not end by themselves" : "";
    if (end->rank < 0)
        return CLI_OK;
    if (end->signal)
        cli_fail(c, CLI_E_RUN, NULL, "rank %d of %s: ended by signal %d, %s%s",
                 end->rank, c->arg[0], end->signal, strsignal(end->signal), late);
    else
        cli_fail(c, CLI_E_RUN, NULL, "rank %d of %s: exit code %d%s", end->rank,
                 c->arg[0], end->exit, late);
    return end->exit;
}

int
cli_launch(struct cli *c)
{
    struct etd_launch l = {.listener = -1};
    struct etd_spawned end;
    int timeout_s;
    if (c->n_args == 0)
        return cli_fail(c, CLI_E_OPERAND, "etude launch -n 2 ./program",
                        "launch: no program is named");
    int code = cli_launch_read(c, ET_INT_UNSET, &l);
    if (code == CLI_OK)
        code = read_timeout(c, &timeout_s);
    if (code != CLI_OK)
        return code;
    c->arg[c->n_args] = NULL;
    et_status status =
        etd_spawn(c->cx, &l, timeout_s, (char *const *)(uintptr_t)c->arg, &end);
    if (status == ET_ENOENT)
        return cli_fail(c, CLI_E_NAME, NULL, "%s", et_error_get(c->cx)->message);
    return status == ET_OK ? say_end(c, &end)
                           : cli_fail_status(c, ETI_STAGE_RUN, status);
}
