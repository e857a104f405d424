/* SPDX-License-Identifier: Apache-2.0 */
/* What signals do to a process that trains, with a thread that takes them and without
 * one: each case in a process of its own. No clock is waited for. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "t/tap.h"

static volatile unsigned alarm_in = 9999; /* seconds; 9999: none was asked for */

/* In place of the C library's. */
unsigned
alarm(unsigned seconds)
{
    alarm_in = seconds;
    return 0;
}

/* What was seen: bits. */
enum { INTERRUPTED = 1, SAVES = 2, RECEIVED = 4, RINGS = 8 };

/* Waits until the signals of this process have been taken. */
static void
settle(int number)
{
    for (int i = 0; i < 5000; i++) {
        if (cli_signal_received() == number || *cli_signal_checkpoint())
            return;
        usleep(1000);
    }
    _exit(99);
}

/* The end of a process with GRACE seconds that gets the signals NUMBER, and then NEXT
 * (0: none). Of one that goes on, what it has seen. */
static int
end_of(bool apart, double grace, int number, int next, unsigned rings)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        struct et_ctx *cx;
        if (et_ctx_new(&cx) != ET_OK || (apart && cli_signals_apart(cx) != ET_OK))
            _exit(98);
        cli_signals_catch(grace);
        kill(getpid(), SIGHUP); /* these end nothing */
        kill(getpid(), SIGPIPE);
        kill(getpid(), number);
        settle(number);
        if (next)
            kill(getpid(), next);
        for (int i = 0; next && i < 5000 && cli_signal_received() != next; i++)
            usleep(1000);
        _exit((*cli_signal_interrupt() ? INTERRUPTED : 0) |
              (*cli_signal_checkpoint() ? SAVES : 0) |
              (cli_signal_received() == number ? RECEIVED : 0) |
              (alarm_in == rings ? RINGS : 0));
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        bail("no process");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void
test_signals(bool apart)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGUSR2};
    const char *who = apart ? "a thread" : "a handler";
    for (int i = 0; i < 3; i++) {
        is_int(end_of(apart, 0, stops[i], 0, 9999), INTERRUPTED | RECEIVED | RINGS,
               "%s takes signal %d: the run is to stop, and no grace is set", who,
               stops[i]);
        is_int(end_of(apart, 0, stops[i], stops[(i + 1) % 3], 0),
               CLI_SIGNAL + stops[(i + 1) % 3], "a second one ends it at once");
        is_int(end_of(apart, 60, stops[i], SIGALRM, 0), CLI_SIGNAL + stops[i],
               "so does the end of the grace, as the first one would");
    }
    is_int(end_of(apart, 60, SIGUSR1, 0, 9999), SAVES | RINGS,
           "USR1 saves, and the run goes on");
    is_int(end_of(apart, 60, SIGUSR1, SIGINT, 60), INTERRUPTED | SAVES | RINGS,
           "a signal to stop is the first one then");
}

static void
test_grace(void)
{
    static const struct {
        double grace;
        unsigned rings;
    } rows[] = {{0.25, 1},        {1, 1},    {1.5, 2},   {25, 25},
                {999999, 999999}, {0, 9999}, {-1, 9999}, {1e6, 9999}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(end_of(false, rows[i].grace, SIGTERM, 0, rows[i].rings),
               INTERRUPTED | RECEIVED | RINGS, "%g s of grace end after %u s",
               rows[i].grace, rows[i].rings);
}

/* Before they are caught, signals do what they do to any process. */
static void
test_before(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            struct et_ctx *cx;
            if (et_ctx_new(&cx) != ET_OK || cli_signals_apart(cx) != ET_OK)
                _exit(98);
            kill(getpid(), numbers[i]);
            sleep(30);
            _exit(97);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            bail("no process");
        ok(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i],
           "before the run signal %d ends the process", numbers[i]);
    }
}

int
main(void)
{
    test_signals(false);
    test_signals(true);
    test_grace();
    test_before();
    return done();
}
