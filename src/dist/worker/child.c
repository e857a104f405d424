/* SPDX-License-Identifier: Apache-2.0 */
/* child.c: see child.h. */
#include "config.h"

#include "dist/worker/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* What a child finds in its environment: all that is here, and that a worker starts it.
 * The caller frees the list; NULL: no memory. */
static char **
environment(void)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **list = calloc(n + 2, sizeof *list);
    if (!list)
        return NULL;
    memcpy(list, environ, n * sizeof *list);
    list[n] = (char *)(uintptr_t) "ETUDE_SERVED=1"; /* which nobody writes to */
    return list;
}

bool
etd_child_start(struct etd_child *c, const char *program, const char *const *argv,
                bool errors)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int out[2];
    *c = (struct etd_child){.fd = -1};
    char **with = environment();
    if (!with || pipe2(out, O_CLOEXEC) != 0) {
        free(with);
        return false;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    if (errors)
        posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
                                         0);
    /* What is ignored or held back here is not for it to inherit. */
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int failed = posix_spawnp(&c->pid, program, &actions, &attributes,
                              (char *const *)(void *)argv, with);
    free(with);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    if (failed || fcntl(out[0], F_SETFL, O_NONBLOCK) != 0) {
        close(out[0]);
        c->pid = failed ? 0 : c->pid;
        etd_child_kill(c);
        errno = failed ? failed : errno;
        return false;
    }
    c->fd = out[0];
    return true;
}

bool
etd_child_step(struct etd_child *c, int *status)
{
    char more[512];
    ssize_t n;
    if (c->pid <= 0)
        return false;
    while ((n = read(c->fd, more, sizeof more)) > 0) {
        size_t room = sizeof c->said - 1 - c->n;
        size_t take = (size_t)n < room ? (size_t)n : room;
        memcpy(c->said + c->n, more, take);
        c->n += take;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    c->said[c->n] = '\0';
    close(c->fd);
    c->fd = -1;
    while (waitpid(c->pid, status, 0) < 0 && errno == EINTR)
        continue;
    c->pid = 0;
    return true;
}

void
etd_child_kill(struct etd_child *c)
{
    if (c->pid > 0) {
        (void)kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (c->fd >= 0)
        close(c->fd);
    c->pid = 0;
    c->fd = -1;
}
