/* SPDX-License-Identifier: Apache-2.0 */
/* passing.c: signals to a process that shows a run, passed on to the run: `train`, of
 * one here and of one elsewhere. */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum { SIGNALS = 65 };
static volatile sig_atomic_t came[SIGNALS];

static void
on_signal(int number)
{
    came[number]++;
}

void
cli_passing_begin(void)
{
    static const int ignored[] = {SIGHUP, SIGPIPE};
    struct sigaction action = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        sigaction(ignored[i], &action, NULL);
    etd_front_catch(on_signal);
}

/* Waits for one of IN, WAIT_MS at most (-1: without end), unless the second signal has
 * come. Signals come while it waits and at no other time, so none is missed in between.
 * True: it has. */
static bool
is_told_again(struct pollfd in[2], int wait_ms, int *n)
{
    const struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000L};
    sigset_t both, before;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, &before);
    bool told = came[SIGINT] > 1 || came[SIGTERM];
    if (!told)
        *n = ppoll(in, 2, wait_ms < 0 ? NULL : &wait, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return told;
}

enum answer { STOP, LEAVE, NEITHER };

/* UX.md: on a terminal the first ctrl-C asks. The run may end meanwhile: then there is
 * nothing to ask any more. */
static enum answer
ask_what_to_do(const struct cli_passing *p)
{
    char line[64] = "";
    struct pollfd in[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = p->fd, .events = POLLIN}};
    if (p->progress && p->progress->type->close)
        p->progress->type->close(p->progress); /* the bar stays above */
    fprintf(stderr, "enter leave it running, s stop with a checkpoint: ");
    fflush(stderr);
    while (!in[0].revents) {
        int n;
        if (is_told_again(in, p->wait_ms, &n))
            return STOP;
        if ((n == 0 || (n > 0 && in[1].revents)) && p->hear(p->data))
            return NEITHER;
    }
    ssize_t n = read(STDIN_FILENO, line, sizeof line - 1);
    if (n <= 0 || line[0] == 's' || line[0] == 'S') /* or nobody is there to ask */
        return STOP;
    return line[0] == '\n' || line[0] == '\r' ? LEAVE : NEITHER;
}

bool
cli_pass_signals(const struct cli_passing *p)
{
    static int passed[SIGNALS];
    bool leaves = false;
    for (int i = 1; i < SIGNALS; i++) {
        if (came[i] == passed[i])
            continue;
        bool asks = i == SIGINT && passed[i] == 0 && p->can_ask &&
                    isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
        enum answer answer = asks ? ask_what_to_do(p) : STOP;
        leaves = leaves || answer == LEAVE;
        if (answer != STOP) {
            came[i] = passed[i] = 0;
            continue;
        }
        if (asks) /* the one that asked and the one that answered are one */
            passed[i] = came[i] - 1;
        for (; passed[i] < came[i]; passed[i]++)
            p->pass(p->data, i);
    }
    return leaves;
}
