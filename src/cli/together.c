/* SPDX-License-Identifier: Apache-2.0 */
/* together.c: the ranks of a command that has no supervisor, as eval and predict: N
 * processes that this one starts and waits for, or those that a launcher has started.
 * Rank 0 prints and writes; each says what went wrong with it, but for what another one
 * has said. The process that waits says it for a rank that a signal ended. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

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

/* ---- what has been said ---- */

/* In memory of all ranks: a hash of each text in the upper bits, 1 + the rank that says
 * it in the lower ones. */
struct cli_said {
    _Atomic uint64_t text[64];
};

enum { RANK_BITS = 8 };

static void
share_said(struct cli *c)
{
    void *shared = mmap(NULL, sizeof *c->said, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    c->said = shared != MAP_FAILED ? shared : NULL; /* each says all then */
}

static bool
claim(const struct cli *c, const char *text)
{
    const uint64_t key = XXH3_64bits(text, strlen(text)) >> RANK_BITS << RANK_BITS;
    const uint64_t mine = key | (uint64_t)(c->rank_env.rank + 1);
    for (size_t i = 0; i < sizeof c->said->text / sizeof *c->said->text; i++) {
        uint64_t is = 0;
        if (atomic_compare_exchange_strong(&c->said->text[i], &is, mine) || is == mine)
            return true;
        if (is >> RANK_BITS == key >> RANK_BITS)
            return false;
    }
    return true;
}

bool
cli_together_claim(const struct cli *c, const char *text, sigset_t *before)
{
    sigset_t end;
    if (!c->said)
        return true;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &end, before);
    if (claim(c, text))
        return true;
    pthread_sigmask(SIG_SETMASK, before, NULL);
    return false;
}

void
cli_together_said(const struct cli *c, const sigset_t *before)
{
    if (c->said)
        pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- ranks ---- */

static void
be_rank(struct cli *c, int rank, pid_t parent)
{
    c->n_children = 0;
    c->rank_env.rank = c->rank_env.local_rank = rank;
    if (rank > 0) {
        close(c->rank_env.listener);
        c->rank_env.listener = -1;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
}

/* The rank of PID, which has ended; -1: it is another child. */
static int
take_rank(struct cli *c, pid_t pid)
{
    for (int r = 0; r < c->n_children; r++)
        if (c->child[r] == pid) {
            c->child[r] = 0;
            return r;
        }
    return -1;
}

static void
end_others(const struct cli *c)
{
    for (int r = 0; r < c->n_children; r++)
        if (c->child[r] > 0)
            kill(c->child[r], SIGTERM); /* it may wait for the one that has ended */
}

/* Waits for all ranks. Where several failed, a signal that nobody here sent was the
 * reason: the others lost that rank, and their codes say no more. */
static int
wait_for_ranks(struct cli *c, int code)
{
    int killed = -1, signal = 0, status;
    bool are_told = code != CLI_OK;
    if (are_told)
        end_others(c);
    for (int left = c->n_children; left > 0;) {
        const pid_t pid = waitpid(-1, &status, 0);
        const int rank = pid > 0 ? take_rank(c, pid) : -1;
        if (pid < 0 && errno != EINTR)
            break;
        if (rank < 0)
            continue;
        left--;
        const bool is_ours =
            are_told && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
        if (WIFSIGNALED(status) && !is_ours && killed < 0) {
            killed = rank;
            signal = WTERMSIG(status);
        } else if (WIFEXITED(status) && code == CLI_OK) {
            code = WEXITSTATUS(status);
        }
        if (!are_told && (WIFSIGNALED(status) || (status != 0 && rank == 0))) {
            are_told = true;
            end_others(c);
        }
    }
    c->n_children = 0;
    return killed < 0 ? code
                      : cli_fail(c, CLI_E_RUN, NULL, "signal %d (%s) ended rank %d",
                                 signal, strsignal(signal), killed);
}

int
cli_together_start(struct cli *c, bool *is_rank)
{
    int world = 1, code = cli_ranks_find(c);
    *is_rank = true;
    if (code == CLI_OK)
        code = read_nproc(c, &world);
    if (code != CLI_OK || world == 1)
        return code;
    code = open_place(c, world);
    share_said(c);
    const pid_t parent = getpid();
    fflush(NULL);
    for (int r = 0; r < world && code == CLI_OK; r++) {
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
    *is_rank = false;
    if (c->rank_env.listener >= 0)
        close(c->rank_env.listener);
    c->rank_env.listener = -1;
    return wait_for_ranks(c, code);
}
