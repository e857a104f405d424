/* signals.c: what signals do to `etude train`.
 *
 * INT, TERM, USR2: the batch is finished, the state saved, the run ends; a second one,
 * or the end of the grace, ends the process at once: the last checkpoint stands. USR1:
 * saves and goes on. HUP and PIPE: a terminal or pipe that goes away ends no run. */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"

static volatile sig_atomic_t received;
static volatile int interrupt, checkpoint;
static unsigned grace;

static void
on_stop(int number)
{
    if (received)
        _exit(CLI_SIGNAL + number);
    received = number;
    interrupt = 1;
    if (grace)
        alarm(grace);
}

static void
on_alarm(int number)
{
    (void)number;
    _exit(CLI_SIGNAL + (int)received);
}

static void
on_checkpoint(int number)
{
    (void)number;
    checkpoint = 1;
}

void
cli_signals_catch(double seconds)
{
    static const struct {
        int number;
        void (*handler)(int);
    } table[] = {
        {SIGINT, on_stop},        {SIGTERM, on_stop}, {SIGUSR2, on_stop},
        {SIGALRM, on_alarm},      {SIGHUP, SIG_IGN},  {SIGPIPE, SIG_IGN},
        {SIGUSR1, on_checkpoint},
    };
    grace = seconds > 0 && seconds < 1e6 ? (unsigned)ceil(seconds) : 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct sigaction action = {.sa_handler = table[i].handler,
                                   .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        sigaction(table[i].number, &action, NULL);
    }
}

int
cli_signal_received(void)
{
    return (int)received;
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
