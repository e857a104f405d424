/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c: see keeper.h. */
#include "config.h"

#include "cli/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"

static const double LONG = 60; /* seconds after which an end is no sign of the next */
enum { FIRST = 1, MOST = 16 }; /* seconds until there is another */

/* The exit status of CHILD, as waitpid gives it; *STOP is passed on to it. */
static int
wait_for(pid_t child, volatile const int *stop)
{
    int status = 0;
    bool told = false;
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, child, 0),
                         .events = POLLIN};
    for (;;) {
        pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child || (got < 0 && errno != EINTR))
            break;
        if (*stop && !told)
            told = kill(child, SIGTERM) == 0;
        (void)poll(&end, 1, 1000); /* which a signal ends */
    }
    if (end.fd >= 0)
        close(end.fd);
    return status;
}

static void
wait_seconds(int seconds, volatile const int *stop)
{
    const struct timespec pause = {0, 100000000};
    for (int i = 0; i < 10 * seconds && !*stop; i++)
        nanosleep(&pause, NULL);
}

bool
cli_keep(struct et_ctx *cx, volatile const int *stop, int *code)
{
    int seconds = FIRST;
    const pid_t self = getpid();
    *code = 0;
    while (!*stop) {
        double began = eti_monotonic(cx);
        pid_t child = fork();
        if (child < 0)
            return true;
        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            return getppid() == self;
        }
        int status = wait_for(child, stop);
        *code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        if (WIFEXITED(status) || *stop)
            return false;
        seconds = eti_monotonic(cx) - began >= LONG ? FIRST : seconds;
        et_report(cx, ET_LOG_ERROR,
                  "the worker was ended by signal %d (%s); it begins again in %d s",
                  WTERMSIG(status), strsignal(WTERMSIG(status)), seconds);
        wait_seconds(seconds, stop);
        seconds = seconds < MOST ? 2 * seconds : MOST;
    }
    return false;
}
