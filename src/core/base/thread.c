/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c: see thread.h. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/base/thread.h"

int
eti_thread_begin(pthread_t *thread, void *(*run)(void *), void *data)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, data);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int
eti_thread_count(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long n = text ? strtol(text, NULL, 10) : 0;
    cpu_set_t set;
    if (n <= 0)
        n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (int)n : 1;
}

/* ---- work in parts ---- */

struct part {
    eti_part_fn *run;
    void *data;
    int64_t first, end;
    pthread_t thread;
    bool begun;
};

static void *
run_part(void *data)
{
    const struct part *p = data;
    p->run(p->data, p->first, p->end);
    return NULL;
}

void
eti_thread_split(int threads, int64_t n, int64_t lot, eti_part_fn *run, void *data)
{
    enum { MOST = 64 };
    struct part part[MOST];
    int64_t lots = (n + lot - 1) / lot;
    int parts = threads < 1 ? 1 : threads > MOST ? MOST : threads;
    parts = lots < parts ? (int)lots : parts;
    for (int i = 0; i < parts; i++) {
        int64_t first = lots * i / parts * lot, end = lots * (i + 1) / parts * lot;
        part[i] = (struct part){.run = run, .data = data, .first = first};
        part[i].end = end < n ? end : n;
    }
    for (int i = 1; i < parts; i++)
        part[i].begun = eti_thread_begin(&part[i].thread, run_part, &part[i]) == 0;
    for (int i = 0; i < parts; i++)
        if (!part[i].begun)
            run_part(&part[i]);
    for (int i = 1; i < parts; i++)
        if (part[i].begun)
            pthread_join(part[i].thread, NULL);
}
