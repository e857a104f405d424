/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper of a process that serves: when it makes another one, how long it waits
 * before, and what it ends with. Nothing is waited for: pauses are counted. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/keeper.h"
#include "core/base/seams.h"
#include "t/tap.h"

enum { NEVER = 1 << 20 };

/* How a child ends: by SIGNAL, or with CODE; after SECONDS. */
struct end {
    int signal, code;
    double seconds;
};

static struct {
    double now;
    int children;
} * shared; /* with all children */

static char said[1024];
static int naps, nap_of_stop; /* pauses of a tenth of a second */
static volatile int stop;

static double
tell_now(void)
{
    return shared->now;
}

/* In place of the C library's. */
int
nanosleep(const struct timespec *pause, struct timespec *left)
{
    (void)left;
    if (pause->tv_sec != 0 || pause->tv_nsec != 100000000)
        bail("a pause of another length");
    if (++naps == nap_of_stop)
        stop = 1;
    return 0;
}

static void
hear(void *data, enum et_log_level level, const char *text)
{
    (void)data, (void)level;
    const char *seconds = strstr(text, "again in "), *number = strstr(text, "signal ");
    const size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s%.*s:%.*s", n ? " " : "",
             number ? (int)strcspn(number + 7, " ") : 0, number ? number + 7 : "",
             seconds ? (int)strcspn(seconds + 9, " ") : 0, seconds ? seconds + 9 : "");
}

static void
on_signal(int number)
{
    if (number == SIGTERM)
        _exit(5);
    stop = 1;
}

/* Keeps children that end as END says, one after the other. Returns the code. */
static int
keep(struct et_ctx *cx, const struct end *end)
{
    int code = -1;
    said[0] = '\0';
    naps = stop = 0;
    *shared = (typeof(*shared)){.now = 1000};
    if (cli_keep(cx, &stop, &code)) {
        const struct end *mine = &end[shared->children++];
        shared->now += mine->seconds;
        if (mine->signal)
            kill(getpid(), mine->signal);
        _exit(mine->code);
    }
    return code;
}

static void
test_ends(struct et_ctx *cx)
{
    static const struct end well[] = {{0, 7, 0}};
    is_int(keep(cx, well), 7, "a child that ends by itself has its code");
    ok(shared->children == 1 && naps == 0 && !*said, "and no other follows");
    static const struct end badly[] = {
        {SIGSEGV, 0, 0}, {SIGABRT, 0, 0}, {SIGKILL, 0, 0}, {SIGSEGV, 0, 0},
        {SIGSEGV, 0, 0}, {SIGSEGV, 0, 0}, {0, 3, 0}};
    is_int(keep(cx, badly), 3,
           "one that a signal ends has followers, to one that ends");
    is_str(said, "11:1 6:2 9:4 11:8 11:16 11:16",
           "each after twice as long, up to 16 s, which is said with its signal");
    is_int(naps, 10 * (1 + 2 + 4 + 8 + 16 + 16), "and waited");
    is_int(shared->children, 7, "a child each");
    static const struct end late[] = {{SIGSEGV, 0, 0},    {SIGSEGV, 0, 59.9},
                                      {SIGSEGV, 0, 60},   {SIGSEGV, 0, 0},
                                      {SIGSEGV, 0, 1000}, {0, 0, 0}};
    is_int(keep(cx, late), 0, "one that has lived for a minute");
    is_str(said, "11:1 11:2 11:1 11:2 11:1", "is no sign of the next");
}

static void
test_stop(struct et_ctx *cx)
{
    static const struct end badly[] = {{SIGSEGV, 0, 0}, {SIGSEGV, 0, 0}, {0, 3, 0}};
    nap_of_stop = 14;
    is_int(keep(cx, badly), 0, "a stop that comes in a pause ends it");
    ok(naps == 14 && shared->children == 2, "at once, and without another child");
    nap_of_stop = NEVER;
}

/* A child lives until it is told to end, which happens when it has begun. */
static void
test_told(struct et_ctx *cx, bool takes)
{
    int code = -1;
    said[0] = '\0';
    stop = 0;
    *shared = (typeof(*shared)){.now = 1000};
    signal(SIGUSR1, on_signal);
    if (cli_keep(cx, &stop, &code)) {
        int at_death = 0;
        shared->children++;
        if (prctl(PR_GET_PDEATHSIG, &at_death) != 0 || at_death != SIGKILL)
            _exit(1); /* it would outlive its keeper */
        signal(SIGTERM, takes ? on_signal : SIG_DFL);
        usleep(20000);
        kill(getppid(), SIGUSR1);
        for (;;)
            pause();
    }
    is_int(code, takes ? 5 : 0, "a stop is passed on to the child, which %s",
           takes ? "ends as it likes" : "it ends");
    ok(shared->children == 1 && !*said, "and that is the end");
}

int
main(void)
{
    struct eti_seams seams = eti_system;
    struct et_ctx *cx;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || et_ctx_new(&cx) != ET_OK)
        bail("no context");
    seams.monotonic = tell_now;
    eti_ctx_set_seams(cx, &seams);
    et_ctx_set_log(cx, ET_LOG_ERROR, hear, NULL);
    nap_of_stop = NEVER;
    test_ends(cx);
    test_stop(cx);
    test_told(cx, true);
    test_told(cx, false);
    et_ctx_free(&cx);
    return done();
}
