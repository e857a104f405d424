/* SPDX-License-Identifier: Apache-2.0 */
/* together.c: the ranks of a command that has no supervisor, as eval and predict: N
 * processes of this one, or those that a launcher has started. Rank 0, which is the
 * process that was there, prints and writes; each says what went wrong with it. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

static int
read_nproc(struct cli *c, int *out)
{
    char *end;
    long n = c->opt.nproc ? strtol(c->opt.nproc, &end, 10) : 1;
    if (c->opt.nproc && (end == c->opt.nproc || *end || n < 1 || n > CLI_MOST_TOGETHER))
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "--nproc: expected a number from 1 to %d, got '%s'",
                        CLI_MOST_TOGETHER, c->opt.nproc);
    *out = (int)n;
    return n == 1 || etd_comm_possible()
               ? CLI_OK
               : cli_fail(c, CLI_E_LATER, NULL,
                          "%ld ranks: this program was built without Gloo", n);
}

/* Where ranks of one process meet: nobody else knows the secret. */
static int
open_place(struct cli *c, int world)
{
    struct etd_rank_env *e = &c->rank_env;
    e->is_rank = true;
    e->launcher = "etude";
    e->world = e->local_world = world;
    snprintf(e->host, sizeof e->host, "127.0.0.1");
    e->listener = etd_store_listen(e->host, &e->port);
    if (e->listener < 0 ||
        getrandom(e->secret, sizeof e->secret, 0) != (ssize_t)sizeof e->secret)
        return cli_fail(c, CLI_E_RUN, NULL, "no place for ranks to meet: %s",
                        strerror(errno));
    return CLI_OK;
}

static void
be_rank(struct cli *c, int rank, pid_t parent)
{
    c->n_children = 0;
    c->rank_env.rank = c->rank_env.local_rank = rank;
    close(c->rank_env.listener);
    c->rank_env.listener = -1;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
}

int
cli_together_start(struct cli *c)
{
    int world = 1, code = cli_ranks_find(c);
    if (code == CLI_OK)
        code = read_nproc(c, &world);
    if (code != CLI_OK || world == 1)
        return code;
    code = open_place(c, world);
    const pid_t parent = getpid();
    fflush(NULL);
    for (int r = 1; r < world && code == CLI_OK; r++) {
        pid_t pid = fork();
        if (pid == 0) {
            be_rank(c, r, parent);
            return CLI_OK;
        }
        if (pid < 0)
            code = cli_fail(c, CLI_E_RUN, NULL, "no process for rank %d: %s", r,
                            strerror(errno));
        else
            c->child[c->n_children++] = pid;
    }
    return code == CLI_OK ? CLI_OK : cli_together_end(c, code);
}

int
cli_together_end(struct cli *c, int code)
{
    for (int i = 0; i < c->n_children; i++) {
        int status = 0;
        if (code != CLI_OK)
            kill(c->child[i], SIGTERM); /* it may wait for this one */
        while (waitpid(c->child[i], &status, 0) < 0 && errno == EINTR)
            ;
        if (code == CLI_OK && status != 0)
            code = WIFEXITED(status)
                       ? WEXITSTATUS(status)
                       : cli_fail(c, CLI_E_RUN, NULL, "signal %d ended rank %d",
                                  WTERMSIG(status), i + 1);
    }
    c->n_children = 0;
    return code;
}
