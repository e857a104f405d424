/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor_begin.c: a start that does not come to an end. Until its first batch a
 * rank reads data, builds its model and waits for others, and nothing of that moves its
 * counter on the board; what the system counts is looked at instead: the processor's
 * time of its process, and the bytes that it has read. A group in which nobody uses
 * either for the run's timeout (supervisor_watch.c) hangs.
 *
 * A rank that computes for ever before its first batch is not found so: nobody knows
 * how long that takes for data and models of people. One signal ends it, though. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dist/run/supervisor.h"

static const double LOOK_SECONDS = 1;
/* The share of a processor that a process uses while it only waits. (The thread that
 * sends records looks 20 times a second whether there are any.) */
static const double BUSY = 0.02;

static bool
is_starting(const struct etd_supervisor *s, int i)
{
    return s->rank[i].pid > 0 && s->board->rank[i].phase == ETD_PHASE_STARTING;
}

bool
etd_sup_is_starting(const struct etd_supervisor *s)
{
    bool starting = s->alive > 0;
    for (int i = 0; i < s->l->nproc; i++)
        starting = starting && (s->rank[i].pid <= 0 || is_starting(s, i));
    return starting;
}

/* The file NAME of process PID in TEXT; false: it cannot be read. */
static bool
read_proc(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Seconds of the processor that process PID has had, and bytes that it has read. */
static void
count_work(pid_t pid, double *seconds, unsigned long long *bytes)
{
    char text[1024];
    unsigned long user = 0, system = 0;
    *seconds = 0;
    *bytes = 0;
    const char *behind =
        read_proc(pid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;
    if (behind &&
        sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
               &user, &system) == 2)
        *seconds = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    const char *read =
        read_proc(pid, "io", text, sizeof text) ? strstr(text, "rchar: ") : NULL;
    if (read)
        (void)sscanf(read, "rchar: %llu", bytes);
}

/* Has it done anything in the last PASSED seconds? */
static bool
has_worked(struct etd_sup_rank *r, double passed)
{
    double seconds;
    unsigned long long bytes;
    count_work(r->pid, &seconds, &bytes);
    bool worked =
        seconds - r->worked_seconds >= BUSY * passed || bytes != r->read_bytes;
    r->worked_seconds = seconds;
    r->read_bytes = bytes;
    return worked;
}

void
etd_sup_watch_start(struct etd_supervisor *s)
{
    double t = etd_sup_now(s), passed = t - s->began_looked;
    int first = -1;
    bool worked = false;
    if (s->hung || s->failed >= 0 || s->alive == 0 || passed < LOOK_SECONDS)
        return;
    s->began_looked = t;
    for (int i = 0; i < s->l->nproc; i++) {
        if (s->rank[i].pid <= 0)
            continue;
        if (!is_starting(s, i)) {
            s->began_stood = 0;
            return; /* the others are waited for, and that is watched */
        }
        first = first < 0 ? i : first;
        worked = has_worked(&s->rank[i], passed) || worked;
    }
    s->began_stood = worked ? 0 : s->began_stood + passed;
    if (first >= 0 && s->began_stood >= etd_sup_timeout(s))
        etd_sup_end_hang(s, first, s->began_stood);
}
