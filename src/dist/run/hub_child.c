/* SPDX-License-Identifier: Apache-2.0 */
/* hub_child.c: see hub_child.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/run/hub_child.h"
#include "dist/wire/wire.h"

static const double AGAIN_SECONDS = 1, END_SECONDS = 5;

/* FD becomes its descriptor 3: it ends when our end is closed, so also when we are
 * gone. All others are closed on exec. */
static bool
spawn_hub(struct etd_supervisor *s, int fd, pid_t *pid)
{
    extern char **environ;
    char name[] = "etude", command[] = ETD_HUB_COMMAND;
    char *argv[] = {name, command, s->directory, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fd, ETD_HUB_FD); /* also where it is 3 */
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&how, &none);
    int error = posix_spawn(pid, s->l->program, &files, &how, argv, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return error == 0;
}

/* Counts hubs that could not be started or ended without a message: people are told at
 * the third in a row. */
static void
no_hub(struct etd_supervisor *s, const char *why)
{
    enum { ACCIDENTS = 2 };
    if (s->hub_failures++ == ACCIDENTS)
        etd_sup_say(s, ET_LOG_WARN,
                    "nobody can attach to this run, and no command reaches it: the hub "
                    "does not begin (%s)",
                    why);
}

void
etd_hub_due(struct etd_supervisor *s)
{
    int link[2];
    double t = etd_sup_now(s);
    if (!s->l->program || !s->run || s->hub > 0 || t < s->hub_at)
        return;
    s->hub_at = t + AGAIN_SECONDS;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0)
        return;
    pid_t pid;
    bool spawned = spawn_hub(s, link[1], &pid);
    close(link[1]);
    if (!spawned) {
        close(link[0]);
        no_hub(s, "it cannot be started");
        return;
    }
    s->hub_heard = false;
    s->hub = pid;
    s->hub_fd = link[0];
    s->hub_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
}

static void
forget(struct etd_supervisor *s)
{
    if (s->hub_fd >= 0)
        close(s->hub_fd);
    if (s->hub_pidfd >= 0)
        close(s->hub_pidfd);
    s->hub = 0;
    s->hub_fd = s->hub_pidfd = -1;
}

void
etd_hub_reap(struct etd_supervisor *s)
{
    int status;
    char why[32];
    if (s->hub <= 0 || waitpid(s->hub, &status, WNOHANG) != s->hub)
        return;
    forget(s);
    if (!s->hub_heard) {
        snprintf(why, sizeof why, "%s %d", WIFEXITED(status) ? "exit code" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        no_hub(s, why);
    }
    s->hub_at = etd_sup_now(s) + AGAIN_SECONDS;
}

/* Waits at most SECONDS for the hub to close its socket, which says that it is done.
 * Anything else that it sends is a command that can no longer be applied. */
static bool
hear_end(const struct etd_supervisor *s, double seconds)
{
    char bytes[ETD_CONTROL_BYTES];
    double end = eti_monotonic(s->cx) + seconds;
    for (;;) {
        struct pollfd p = {.fd = s->hub_fd, .events = POLLIN};
        double left = end - eti_monotonic(s->cx);
        /* Looks once more when the time is up: this process may have slept past it. */
        int got = poll(&p, 1, left > 0 ? (int)(1e3 * left) + 1 : 0);
        if (got <= 0 && left <= 0)
            return false;
        if (got <= 0)
            continue;
        ssize_t n = recv(s->hub_fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return true;
    }
}

/* Does not wait for the process: after viewers are told and the socket is closed, the
 * kernel takes 20 ms to release its inotify. If the run goes on, it is reaped later. */
void
etd_hub_end(struct etd_supervisor *s)
{
    int status;
    if (s->hub <= 0)
        return;
    bool told = s->hub_fd >= 0 && shutdown(s->hub_fd, SHUT_WR) == 0;
    if (!told || !hear_end(s, END_SECONDS)) {
        kill(s->hub, SIGKILL);
        (void)waitpid(s->hub, &status, 0);
        forget(s);
        return;
    }
    close(s->hub_fd);
    s->hub_fd = -1;
    etd_hub_reap(s);
}
