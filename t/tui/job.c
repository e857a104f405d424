/* SPDX-License-Identifier: Apache-2.0 */
/* job.c: a command that the workbench runs beside itself: what it prints and says is
 * taken as it comes, and nobody waits for what it does not say. The command is this
 * program once more. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "tui/job.h"

enum { PATIENCE = 60 }; /* seconds: then it will never come */

/* ---- the command ---- */

static int
be_command(const char *what)
{
    char line[64] = "";
    if (strcmp(what, "prints") == 0 && write(1, "half", 4) == 4)
        pause();
    if (strcmp(what, "says") == 0 && write(2, "no such thing\nnor any", 21) == 21)
        pause();
    if (strcmp(what, "dies") == 0)
        raise(SIGKILL);
    if (strcmp(what, "reads") == 0) {
        FILE *f = fopen(TUI_JOB_INPUT, "r");
        if (f && fgets(line, sizeof line, f))
            printf("read %s", line);
        return 3;
    }
    fputs("first\nsecond\n", stderr);
    for (int i = 0; strcmp(what, "goes on") == 0 && i < 2 * TUI_JOB_BYTES; i++)
        putchar('a' + i % 26);
    return 0;
}

/* ---- who starts it ---- */

static struct tui_job job = {.out = -1, .err = -1, .input = -1};

static void
start(struct et_ctx *cx, const char *what, const char *input)
{
    const char *const arguments[] = {what, NULL};
    need(cx, tui_job_start(&job, cx, arguments, input, input ? strlen(input) : 0));
}

/* Takes what there is until it has printed N bytes, and said M. */
static bool
has_come(size_t n, size_t m)
{
    while ((job.n < n || job.n_error < m) && !job.is_done)
        (void)tui_job_poll(&job, 0.01);
    return job.n == n && job.n_error == m;
}

static bool
ends(void)
{
    while (!tui_job_poll(&job, 1))
        continue;
    return job.is_done;
}

int
main(int argc, char **argv)
{
    if (argc > 1)
        return be_command(argv[1]);
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    alarm(PATIENCE);
    start(cx, "prints", NULL);
    ok(has_come(4, 0) && !job.is_done && strcmp(job.text, "half") == 0,
       "what it has printed is there while it says nothing");
    start(cx, "says", NULL);
    ok(has_come(0, 21) && !job.is_done, "and what it says while it prints nothing");
    start(cx, "reads", "seed: 3\n");
    ok(ends() && job.code == 3 && strcmp(job.text, "read seed: 3\n") == 0,
       "it reads what it is given, and its exit code is told");
    start(cx, "dies", NULL);
    ok(ends() && job.code == 128 + SIGKILL,
       "one that a signal ended has done nothing well");
    start(cx, "goes on", NULL);
    ok(ends() && job.code == 0 && job.n == TUI_JOB_BYTES - 1 && job.text[job.n] == '\0',
       "of a long answer the beginning is kept, and the rest taken");
    is_str(job.error, "first", "and of what it said the first line");
    start(cx, "prints", NULL);
    const int out = job.out;
    const pid_t pid = job.pid;
    ok(getpgid(pid) == pid, "keys of the terminal that end the screen do not end it");
    tui_job_stop(&job);
    ok(fcntl(out, F_GETFD) < 0 && kill(pid, 0) != 0 && job.pid == 0,
       "one that is stopped is gone, with its pipes");
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
