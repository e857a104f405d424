/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c: what signals do to `etude train` and `etude worker serve`.
 *
 * INT, TERM, USR2: the batch is finished, the state saved, the run ends; a second one,
 * or the end of the grace, ends the process at once: the last checkpoint stands. USR1:
 * saves and goes on. HUP and PIPE: a terminal or pipe that goes away ends no run.
 *
 * Where matrices are multiplied no handler may run. While oneDNN 2.6's kernels do it
 * the stack pointer points into memory of the heap, below which a handler's frame, 2.5
 * KB with AVX-512's registers, overwrites what others have there. So all threads of a
 * process that trains block these signals, and one that computes nothing takes them. */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/thread.h"

/* Written by the thread that takes signals, or by handlers. */
static volatile int received, interrupt, checkpoint;
static unsigned grace;

static void
on_stop(int number)
{
    if (received)
        _exit(CLI_SIGNAL + number);
    __atomic_store_n(&received, number, __ATOMIC_RELAXED);
    __atomic_store_n(&interrupt, 1, __ATOMIC_RELAXED);
    if (grace)
        alarm(grace);
}

static void
on_alarm(int number)
{
    (void)number;
    _exit(CLI_SIGNAL + received);
}

static void
on_checkpoint(int number)
{
    (void)number;
    __atomic_store_n(&checkpoint, 1, __ATOMIC_RELAXED);
}

static const struct {
    int number;
    void (*handler)(int);
} table[] = {
    {SIGINT, on_stop},        {SIGTERM, on_stop}, {SIGUSR2, on_stop},
    {SIGALRM, on_alarm},      {SIGHUP, SIG_IGN},  {SIGPIPE, SIG_IGN},
    {SIGUSR1, on_checkpoint},
};
enum { SIGNALS = sizeof table / sizeof *table };

static void
set_handler(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static sigset_t taken; /* those that the thread waits for */
static bool has_thread, is_caught;

/* Ends the process as NUMBER does where nobody catches it. */
static void
end_by(int number)
{
    sigset_t one;
    set_handler(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
}

static void *
take(void *unused)
{
    int number;
    (void)unused;
    while (sigwait(&taken, &number) == 0) {
        if (!__atomic_load_n(&is_caught, __ATOMIC_ACQUIRE))
            end_by(number);
        for (int i = 0; i < SIGNALS; i++)
            if (table[i].number == number)
                table[i].handler(number);
    }
    return NULL;
}

et_status
cli_signals_apart(struct et_ctx *cx)
{
    pthread_t thread;
    sigemptyset(&taken);
    for (int i = 0; i < SIGNALS; i++)
        if (table[i].handler != SIG_IGN)
            sigaddset(&taken, table[i].number);
    int error = eti_thread_begin(&thread, take, NULL);
    if (error) {
        et_status status =
            ET_FAIL(cx, ET_EIO, "no thread that takes signals: %s", strerror(error));
        et_error_set_code(cx, ET_E_SYSTEM_LIMIT);
        et_hint(cx, "a higher limit (ulimit -u)");
        return status;
    }
    pthread_detach(thread);
    pthread_sigmask(SIG_BLOCK, &taken, NULL);
    has_thread = true;
    return ET_OK;
}

void
cli_signals_catch(double seconds)
{
    grace = seconds > 0 && seconds < 1e6 ? (unsigned)ceil(seconds) : 0;
    __atomic_store_n(&is_caught, true, __ATOMIC_RELEASE);
    for (int i = 0; i < SIGNALS; i++) /* (what is ignored is never taken) */
        set_handler(table[i].number, has_thread && table[i].handler != SIG_IGN
                                         ? SIG_DFL
                                         : table[i].handler);
}

int
cli_signal_received(void)
{
    return __atomic_load_n(&received, __ATOMIC_RELAXED);
}

void
cli_signals_end_run(void)
{
    __atomic_store_n(&interrupt, 1, __ATOMIC_RELAXED);
}

volatile const int *
cli_signal_interrupt(void)
{
    return &interrupt;
}

volatile int *
cli_signal_checkpoint(void)
{
    return &checkpoint;
}
