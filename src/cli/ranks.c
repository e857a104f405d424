/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c: runs a process as one rank of several (dist/comm/rank_env.h). It finds the
 * other ranks and takes the seed and the run's name from rank 0. Where the launcher
 * keeps no run directory, rank 0 does. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

int
cli_ranks_find(struct cli *c)
{
    et_status status = etd_rank_env_read(c->cx, &c->rank_env);
    if (status == ET_OK && c->rank_env.is_rank && !c->rank && c->opt.nproc)
        return cli_fail(c, CLI_E_VALUE, "leave --nproc out",
                        "--nproc %s: this process is rank %d of %d that %s has "
                        "started, and starts none",
                        c->opt.nproc, c->rank_env.rank, c->rank_env.world,
                        c->rank_env.launcher);
    if (status == ET_OK)
        return CLI_OK;
    int code = cli_fail(c, status == ET_EINVAL ? CLI_E_VALUE : CLI_E_LATER, NULL, "%s",
                        et_error_get(c->cx)->message);
    et_error_clear(c->cx);
    return code;
}

int
cli_ranks_threads(const struct cli *c)
{
    const char *given = getenv("OMP_NUM_THREADS");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (c->rank_env.local_world == 1 || (given && *given))
        return 0;
    return cores > c->rank_env.local_world ? (int)(cores / c->rank_env.local_world) : 1;
}

/* What rank 0 has drawn or been told, for all. */
struct drawn {
    int64_t seed;
    char name[ET_RUN_NAME];
};

static et_status
take_drawn(struct cli *c, struct et_recipe *recipe)
{
    struct drawn d = {.seed = recipe->seed};
    char quoted[ET_RUN_NAME + 2];
    if (recipe->run_name)
        snprintf(d.name, sizeof d.name, "%s", recipe->run_name);
    ET_TRY(et_comm_broadcast(c->cx, c->comm, &d, sizeof d, 0));
    recipe->seed = d.seed;
    if (et_comm_rank(c->comm) == 0 || !d.name[0])
        return ET_OK;
    snprintf(quoted, sizeof quoted, "'%s'", d.name);
    return et_options_set(c->cx, et_recipe_table, recipe, "run_name", quoted);
}

int
cli_ranks_join(struct cli *c, struct et_recipe *recipe)
{
    if (c->rank_env.world == 1)
        return CLI_OK;
    et_status status = etd_comm_open(c->cx, &c->rank_env, &c->comm);
    if (status == ET_OK)
        status = take_drawn(c, recipe);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_RUN, status);
}

int
cli_ranks_share(struct cli *c)
{
    if (c->run)
        snprintf(c->directory, sizeof c->directory, "%s", et_run_directory(c->run));
    et_status status =
        et_comm_broadcast(c->cx, c->comm, c->directory, sizeof c->directory, 0);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_RUN, status);
}
