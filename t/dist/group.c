/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: see group.h. */
#include "config.h"

#include "t/dist/group.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "t/tap.h"

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool
group_possible(void)
{
#ifdef ET_GLOO
    return true;
#else
    return false;
#endif
}

int
group_hold_port(int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) != 0)
        bail("no port of 127.0.0.1: %s", strerror(errno));
    *port = ntohs(a.sin_port);
    return fd;
}

static void
set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* What torchrun would put there. */
static void
set_environment(int rank, int world, int port, int listener, int timeout_s)
{
    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
    set_number("WORLD_SIZE", world);
    set_number("LOCAL_WORLD_SIZE", world);
    set_number("MASTER_PORT", port);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    if (rank == 0)
        set_number("ETUDE_RANK_LISTENER", listener);
    else
        close(listener);
    if (timeout_s)
        set_number("ETUDE_RANK_TIMEOUT", timeout_s);
}

static int
be_rank(group_fn *fn, void *data)
{
    struct et_ctx *cx;
    struct et_comm *c;
    struct etd_rank_env env;
    if (et_ctx_new(&cx) != ET_OK)
        return 101;
    int code = 100;
    if (etd_rank_env_read(cx, &env) == ET_OK && etd_comm_open(cx, &env, &c) == ET_OK) {
        code = fn(cx, c, data);
        et_comm_close(&c);
    } else {
        printf("%s", et_error_get(cx)->message);
    }
    et_ctx_free(&cx);
    fflush(stdout);
    return code == 0 && tap_has_leaked() ? 103 : code;
}

static int
be_bare(group_fn *fn, void *data)
{
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        return 101;
    int code = fn(cx, NULL, data);
    et_ctx_free(&cx);
    fflush(stdout);
    return code == 0 && tap_has_leaked() ? 103 : code;
}

static void
start(struct group *g, int world, int timeout_s, group_fn *fn, void *data,
      int (*be)(group_fn *fn, void *data))
{
    *g = (struct group){.world = world};
    int listener = etd_store_listen("127.0.0.1", &g->port);
    if (listener < 0)
        bail("no port of 127.0.0.1: %s", strerror(errno));
    fflush(stdout);
    for (int r = 0; r < world; r++) {
        int fd[2];
        if (pipe(fd) != 0)
            bail("pipe: %s", strerror(errno));
        g->pid[r] = fork();
        if (g->pid[r] < 0)
            bail("fork: %s", strerror(errno));
        if (g->pid[r] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(fd[1], STDOUT_FILENO);
            close(fd[0]);
            close(fd[1]);
            set_environment(r, world, g->port, listener, timeout_s);
            exit(be(fn, data));
        }
        close(fd[1]);
        g->said[r] = fd[0];
        g->exit[r] = -1000;
    }
    close(listener);
}

void
group_start(struct group *g, int world, int timeout_s, group_fn *fn, void *data)
{
    start(g, world, timeout_s, fn, data, be_rank);
}

void
group_start_bare(struct group *g, int world, int timeout_s, group_fn *fn, void *data)
{
    start(g, world, timeout_s, fn, data, be_bare);
}

static void
reap(struct group *g, int r, int options)
{
    int status;
    if (g->exit[r] != -1000 || waitpid(g->pid[r], &status, options) != g->pid[r])
        return;
    g->exit[r] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ssize_t n = read(g->said[r], g->text[r], sizeof g->text[r] - 1);
    g->text[r][n > 0 ? n : 0] = '\0';
    close(g->said[r]);
}

void
group_wait(struct group *g, double most_s, int but)
{
    double start = now();
    int left = 1;
    while (left && now() < start + most_s) {
        left = 0;
        for (int r = 0; r < g->world; r++) {
            reap(g, r, WNOHANG);
            left += g->exit[r] == -1000 && r != but;
        }
        if (left)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    for (int r = 0; r < g->world; r++) {
        if (g->exit[r] != -1000)
            continue;
        kill(g->pid[r], SIGKILL);
        reap(g, r, 0);
    }
}

bool
group_run(int world, group_fn *fn, void *data)
{
    struct group g;
    bool good = true;
    group_start(&g, world, 300, fn, data);
    group_wait(&g, 600, -1);
    for (int r = 0; r < world; r++) {
        good &= g.exit[r] == 0;
        if (g.exit[r] != 0)
            diag("rank %d of %d: exit %d: %s", r, world, g.exit[r], g.text[r]);
    }
    return good;
}
