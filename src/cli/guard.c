/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c: a plugin runs in this process, so one that crashes or ends the program takes
 * the run with it. Addresses on the stack tell which plugin it was, and that is printed
 * before the end. A fault that no plugin made is left as it is. */
#include "config.h"

#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "dist/comm/terminate.h"

enum { FRAMES = 64, STACK_BYTES = 64 << 10 };
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

/* What handlers may look at. */
static struct {
    struct cli *_Atomic cli; /* NULL: nothing is guarded */
    const struct et_timestamp *_Atomic now;
    int rank;
    char loading[256]; /* names; "": none is being loaded */
    bool is_installed;
    /* For a handler when the stack is what ran out; aligned, as AddressSanitizer clears
     * its notes of it. */
    _Alignas(16) char stack[STACK_BYTES];
} guard;

/* The plugin nearest to the top of the stack, or those being loaded; NULL: it was
 * none. */
static const char *
culprit(const struct cli *c)
{
    void *frame[FRAMES];
    int n = backtrace(frame, FRAMES);
    const char *path = NULL;
    for (int i = 0; i < n && !path; i++)
        path = cli_plugin_at(c, frame[i]);
    return path || !guard.loading[0] ? path : guard.loading;
}

/* ---- a crash: nothing but writes from here ---- */

static void
say(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
}

static void
say_number(int64_t n)
{
    char digits[24], *at = digits + sizeof digits - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    say(at);
}

static const char *
signal_name(int number)
{
    static const char *const names[] = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL",
                                        "SIGABRT"};
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        if (crashes[i] == number)
            return names[i];
    return "?";
}

static void
on_crash(int number)
{
    const struct cli *c = guard.cli;
    const struct et_timestamp *now = guard.now;
    const char *path = c ? culprit(c) : NULL;
    if (!path) { /* as if there were no handler: it was reset when this one began */
        raise(number);
        return;
    }
    say("\netude: error E4005: plugin ");
    say(path);
    say(" crashed (");
    say(signal_name(number));
    say(")");
    if (path == guard.loading)
        say(" while it was loaded");
    if (now) {
        say(", rank ");
        say_number(guard.rank);
        say(", step ");
        say_number(now->batch);
    }
    say("\n");
    _exit(CLI_FAILED);
}

/* A library has run out of memory, and cannot say so: an exception that leaves oneDNN
 * while it is loaded, for one. Where it is a plugin, abort() follows, and names it. */
static void
on_bad_alloc(void)
{
    const struct cli *c = guard.cli;
    const struct et_timestamp *now = guard.now;
    if (c && culprit(c))
        return;
    say("\netude: error E7001: too little memory for a library");
    if (now) {
        say(", rank ");
        say_number(guard.rank);
        say(", step ");
        say_number(now->batch);
    }
    say("\n  hint: a higher limit of addresses (ulimit -v), or fewer other programs\n");
    _exit(CLI_NO_MEMORY);
}

void
cli_guard_memory(void)
{
    etd_on_bad_alloc(on_bad_alloc);
}

/* ---- exit() in a call ---- */

static void
at_exit(void)
{
    struct cli *c = guard.cli;
    const struct et_timestamp *now = guard.now;
    guard.cli = NULL;
    if (!c)
        return;
    const struct cli_end end = {.state = "failed", .exit = CLI_FAILED};
    const char *path = culprit(c);
    if (c->run)
        cli_run_notice(c, &end);
    char where[64] = "";
    if (now)
        snprintf(where, sizeof where, ", rank %d, step %lld", guard.rank,
                 (long long)now->batch);
    (void)cli_fail(c, CLI_E_PLUGIN, NULL, "%s%s ended the program%s%s",
                   path ? "plugin " : "a library", path ? path : "",
                   path && path == guard.loading ? " while it was loaded" : "", where);
    if (c->run)
        cli_run_end(c, &end);
    fflush(NULL);
    _exit(CLI_FAILED);
}

/* ---- on and off ---- */

void
cli_guard_begin(struct cli *c)
{
    void *frame[1];
    const stack_t stack = {.ss_sp = guard.stack, .ss_size = sizeof guard.stack};
    struct sigaction act = {.sa_handler = on_crash,
                            .sa_flags = SA_ONSTACK | SA_RESETHAND};
    if (!guard.is_installed) {
        guard.is_installed = true;
        (void)backtrace(frame, 1); /* loads what it needs: a handler must not */
        sigaltstack(&stack, NULL);
        for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
            sigaction(crashes[i], &act, NULL);
        atexit(at_exit);
    }
    guard.cli = c;
}

void
cli_guard_end(void)
{
    guard.cli = NULL;
}

void
cli_guard_loading(const char *const *names, int n)
{
    size_t used = 0;
    guard.loading[0] = '\0';
    for (int i = 0; i < n && used < sizeof guard.loading; i++)
        used += (size_t)snprintf(guard.loading + used, sizeof guard.loading - used,
                                 "%s%s", i ? " or " : "", names[i]);
}

void
cli_guard_watch(const struct et_timestamp *ts, int rank)
{
    guard.rank = rank;
    guard.now = ts;
}
