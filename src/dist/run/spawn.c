/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c: see spawn.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/comm/store.h"
#include "dist/run/spawn.h"

/* Seconds in which the others find out that one is gone, and in which they end. */
static const double TO_NOTICE = 10, TO_END = 5;

struct spawn {
    struct et_ctx *cx;
    const struct etd_launch *l;
    struct etd_spawned *out;
    pid_t *pid; /* [l->nproc]; 0: it has ended */
    int left;
    sigset_t caught, before;
    double deadline; /* when the next signal goes to those that are left; 0: never */
    bool asked;      /* they have been asked to end */
};

/* ---- starting ---- */

/* Each rank gets its part of the cores, unless somebody has said how many. */
static void
set_threads(const struct etd_launch *l)
{
    char text[32];
    long cores = sysconf(_SC_NPROCESSORS_ONLN) / l->nproc;
    snprintf(text, sizeof text, "%ld", cores > 1 ? cores : 1);
    setenv("OMP_NUM_THREADS", text, 0);
}

static void
become(const struct spawn *s, int number, pid_t parent, int timeout_s, int fd,
       char *const *argv)
{
    char text[16];
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
    if (getppid() != parent)
        raise(SIGTERM);
    etd_rank_environment(s->l, number);
    set_threads(s->l);
    if (timeout_s > 0) {
        snprintf(text, sizeof text, "%d", timeout_s);
        setenv("ETUDE_RANK_TIMEOUT", text, 1);
    }
    if (s->l->listener >= 0 && number == 0)
        fcntl(s->l->listener, F_SETFD, 0); /* it outlives the exec */
    execvp(argv[0], argv);
    int why = errno;
    if (write(fd, &why, sizeof why) < 0)
        _exit(126);
    _exit(127);
}

/* FD is at its end once the program runs; before that, it says why it does not. */
static et_status
start_one(struct spawn *s, int number, int timeout_s, char *const *argv)
{
    int ends[2], why = 0;
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return ET_FAIL(s->cx, ET_EIO, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        become(s, number, parent, timeout_s, ends[1], argv);
    close(ends[1]);
    bool failed = pid > 0 && read(ends[0], &why, sizeof why) == sizeof why;
    close(ends[0]);
    if (pid < 0)
        return ET_FAIL(s->cx, ET_EIO, "no process for rank %d: %s", number,
                       strerror(errno));
    if (failed) {
        waitpid(pid, NULL, 0);
        return ET_FAIL(s->cx, why == ENOENT ? ET_ENOENT : ET_EIO, "cannot run %s: %s",
                       argv[0], strerror(why));
    }
    s->pid[number] = pid;
    s->left++;
    return ET_OK;
}

/* ---- until all have ended ---- */

static void
tell_all(const struct spawn *s, int number)
{
    for (int i = 0; i < s->l->nproc; i++)
        if (s->pid[i] > 0)
            kill(s->pid[i], number);
}

static void
took_end(struct spawn *s, int number, int status)
{
    struct etd_spawned *o = s->out;
    s->pid[number] = 0;
    s->left--;
    if (status == 0 || o->rank >= 0)
        return;
    o->rank = s->l->base + number;
    o->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    o->exit = o->signal ? 128 + o->signal : WEXITSTATUS(status);
    if (s->deadline == 0)
        s->deadline = eti_monotonic(s->cx) + TO_NOTICE;
}

static void
reap(struct spawn *s)
{
    int status;
    for (int i = 0; i < s->l->nproc; i++)
        if (s->pid[i] > 0 && waitpid(s->pid[i], &status, WNOHANG) == s->pid[i])
            took_end(s, i, status);
}

/* SIGTERM, and SIGKILL to those that it does not end. */
static void
end_all(struct spawn *s)
{
    s->out->late = true;
    tell_all(s, s->asked ? SIGKILL : SIGTERM);
    s->asked = true;
    s->deadline = eti_monotonic(s->cx) + TO_END;
}

static void
take_signal(struct spawn *s, int number)
{
    if (number == SIGCHLD || number <= 0)
        return;
    tell_all(s, s->asked ? SIGKILL : number);
    s->asked = true;
}

static void
wait_all(struct spawn *s)
{
    while (s->left > 0) {
        const struct timespec tick = {.tv_nsec = 200000000};
        take_signal(s, sigtimedwait(&s->caught, NULL, &tick));
        reap(s);
        if (s->left > 0 && s->deadline > 0 && eti_monotonic(s->cx) >= s->deadline)
            end_all(s);
    }
}

et_status
etd_spawn(struct et_ctx *cx, const struct etd_launch *launch, int timeout_s,
          char *const *argv, struct etd_spawned *out)
{
    struct etd_launch l = *launch;
    struct spawn s = {.cx = cx, .l = &l, .out = out};
    void *block;
    *out = (struct etd_spawned){.rank = -1};
    ET_TRY(et_alloc(cx, (size_t)l.nproc * sizeof *s.pid, &block));
    s.pid = block;
    sigemptyset(&s.caught);
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&s.caught, numbers[i]);
    sigprocmask(SIG_BLOCK, &s.caught, &s.before);
    l.listener = l.port == 0 ? etd_store_listen(l.host, &l.port) : -1;
    etd_draw_secret();
    et_status status = ET_OK;
    for (int i = 0; i < l.nproc && status == ET_OK; i++)
        status = start_one(&s, i, timeout_s, argv);
    if (l.listener >= 0)
        close(l.listener);
    if (status != ET_OK)
        tell_all(&s, SIGKILL);
    wait_all(&s);
    sigprocmask(SIG_SETMASK, &s.before, NULL);
    et_free(cx, s.pid);
    return status;
}
