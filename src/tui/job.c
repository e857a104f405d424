/* SPDX-License-Identifier: Apache-2.0 */
/* job.c: see job.h. */
#define _GNU_SOURCE
#include "config.h"

#include "tui/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "etude/diagnostic.h"

extern char **environ;

enum { INPUT_FD = 9, MOST_ARGUMENTS = 192 };

static void
close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void
tui_job_stop(struct tui_job *job)
{
    if (job->pid > 0) {
        (void)kill(job->pid, SIGKILL);
        while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (job->cx) {
        close_end(&job->out);
        close_end(&job->err);
        close_end(&job->input);
        et_free(job->cx, job->text);
    }
    *job = (struct tui_job){.out = -1, .err = -1, .input = -1};
}

/* A file in memory with the N bytes of TEXT. */
static int
file_of(const char *text, size_t n)
{
    int fd = memfd_create("recipe", MFD_CLOEXEC);
    for (size_t did = 0; fd >= 0 && did < n;) {
        ssize_t more = write(fd, text + did, n - did);
        if (more < 0 && errno != EINTR)
            close_end(&fd);
        did += more > 0 ? (size_t)more : 0;
    }
    return fd;
}

static int
spawn(struct tui_job *job, const char *const *argument, int out, int err)
{
    /* Not the path behind it: the file may have been replaced since. */
    static const char exe[] = "/proc/self/exe";
    char *argv[MOST_ARGUMENTS] = {(char *)"etude"};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    for (int i = 1; *argument && i < MOST_ARGUMENTS - 1; i++)
        argv[i] = (char *)*argument++;
    if (*argument)
        return E2BIG;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, err, 2);
    if (job->input >= 0)
        posix_spawn_file_actions_adddup2(&files, job->input, INPUT_FD);
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0); /* ctrl-C is the screen's */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    int code = posix_spawn(&job->pid, exe, &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return code;
}

et_status
tui_job_start(struct tui_job *job, struct et_ctx *cx, const char *const *argument,
              const char *input, size_t n)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    void *block;
    tui_job_stop(job);
    ET_TRY(et_alloc(cx, TUI_JOB_BYTES, &block));
    job->cx = cx;
    job->text = block;
    int code = pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ? errno : 0;
    if (code == 0 && input && (job->input = file_of(input, n)) < 0)
        code = errno;
    job->out = out[0];
    job->err = err[0];
    if (code == 0)
        code = spawn(job, argument, out[1], err[1]);
    close_end(&out[1]);
    close_end(&err[1]);
    if (code == 0) {
        (void)fcntl(job->out, F_SETFL, O_NONBLOCK);
        (void)fcntl(job->err, F_SETFL, O_NONBLOCK);
        return ET_OK;
    }
    tui_job_stop(job);
    return ET_FAIL(cx, ET_EIO, "cannot start etude: %s", strerror(code));
}

/* What there is of FD; it is closed at its end. */
static void
drain(int *fd, char *text, size_t *n, size_t most)
{
    char rest[4096];
    while (*fd >= 0) {
        bool fits = *n + 1 < most;
        ssize_t got =
            read(*fd, fits ? text + *n : rest, fits ? most - 1 - *n : sizeof rest);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0)
            close_end(fd);
        else if (fits)
            *n += (size_t)got;
    }
}

static void
end(struct tui_job *job)
{
    int status = 0;
    while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    job->pid = 0;
    job->is_done = true;
    job->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    job->text[job->n] = '\0';
    job->error[job->n_error] = '\0';
    job->error[strcspn(job->error, "\n")] = '\0';
    close_end(&job->input);
}

bool
tui_job_poll(struct tui_job *job, double seconds)
{
    if (job->pid <= 0)
        return false;
    do {
        struct pollfd wait[2] = {{job->out, POLLIN, 0}, {job->err, POLLIN, 0}};
        int ready = seconds > 0 ? poll(wait, 2, (int)(seconds * 1e3)) : 1;
        drain(&job->out, job->text, &job->n, TUI_JOB_BYTES);
        drain(&job->err, job->error, &job->n_error, sizeof job->error);
        if (job->out < 0 && job->err < 0) {
            end(job);
            return true;
        }
        if (ready == 0)
            return false;
    } while (seconds > 0);
    return false;
}
