/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c: what the workbench does with signals: those that it is told of, and those
 * that end it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <term.h>
#include <unistd.h>

#include "t/tap.h"
#include "tui/crash.h"

static volatile sig_atomic_t mine; /* signals of a handler that was there before */

static void
count(int number)
{
    mine += number == SIGUSR1 || number == SIGWINCH ? 1 : 100;
}

static bool
is_awake(void)
{
    struct pollfd p = {.fd = tui_crash_fd(), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* ---- those that are told ---- */

static void
test_told(void)
{
    static const struct {
        int number;
        enum tui_caught what;
    } rows[] = {
        {SIGWINCH, TUI_CAUGHT_RESIZE}, {SIGHUP, TUI_CAUGHT_LEAVE},
        {SIGINT, TUI_CAUGHT_LEAVE},    {SIGTERM, TUI_CAUGHT_LEAVE},
        {SIGTSTP, TUI_CAUGHT_SUSPEND},
    };
    static const enum tui_caught all[] = {TUI_CAUGHT_RESIZE, TUI_CAUGHT_LEAVE,
                                          TUI_CAUGHT_SUSPEND};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int wrong = is_awake();
        raise(rows[i].number);
        wrong += !is_awake();
        tui_crash_drain();
        wrong += is_awake();
        for (int k = 0; k < 3; k++) {
            const bool is = all[k] == rows[i].what;
            wrong += tui_crash_is(all[k]) != is;
            wrong += tui_crash_take(all[k]) != is;
            wrong += tui_crash_is(all[k]);
        }
        is_int(wrong, 0, "signal %d wakes once, and is taken once", rows[i].number);
    }
    raise(SIGWINCH);
    raise(SIGTSTP);
    ok(tui_crash_take(TUI_CAUGHT_SUSPEND) && tui_crash_is(TUI_CAUGHT_RESIZE),
       "what is not taken stays");
}

/* A signal comes between a call that fails and the look at errno. */
static void
test_errno(void)
{
    fcntl(tui_crash_fd(), F_SETPIPE_SZ, 4096);
    errno = ENOENT;
    for (int i = 0; i < 70000; i++)
        raise(SIGWINCH);
    is_int(errno, ENOENT, "a signal that nobody has room for leaves errno as it was");
    tui_crash_drain();
    ok(!is_awake(), "what woke many times is taken at once");
}

/* ---- those that end it ---- */

/* All of FD, which is closed. */
static const char *
read_all(int fd)
{
    static char text[4096];
    size_t n = 0;
    for (ssize_t got;
         n < sizeof text - 1 && (got = read(fd, text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    close(fd);
    return text;
}

static bool
has_report(const char *path, int number)
{
    char line[200] = "", want[200];
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    const bool has_line = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    snprintf(want, sizeof want, "%s signal %d\n", PACKAGE_STRING, number);
    return has_line && strcmp(line, want) == 0;
}

static void
dies_by(int number, const char *folder)
{
    int screen[2], said[2], status = 0;
    char path[64], want[200];
    if (pipe(screen) != 0 || pipe(said) != 0)
        bail("no pipe");
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
        dup2(said[1], STDERR_FILENO);
        tui_crash_begin(screen[0], screen[1], folder);
        tui_crash_catch();
        raise(number);
        _exit(0);
    }
    close(screen[1]);
    close(said[1]);
    waitpid(pid, &status, 0);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == number, "signal %d ends it", number);
    const char *restored = read_all(screen[0]), *end = tigetstr("rmcup"),
               *cursor = tigetstr("cnorm");
    const char *at = strstr(restored, end ? end : "none");
    ok(at && strstr(at, cursor ? cursor : "none"),
       "the screen before it comes back, then its cursor");
    ok(strncmp(restored, "\033[?1000l\033[?1002l\033[?1006l\033[?2004l", 32) == 0,
       "after the mouse was let go");
    snprintf(path, sizeof path, "%s/crash-%ld.txt", folder ? folder : ".", (long)pid);
    snprintf(want, sizeof want,
             "\netude: the screen ended by signal %d; runs go on.%s%s\n", number,
             folder ? " Report: " : "", folder ? path : "");
    is_str(read_all(said[0]), want, "which is said");
    is_int(has_report(path, number), folder != NULL,
           "and written, where there is a folder");
    unlink(path);
}

int
main(void)
{
    char folder[] = "/tmp/etude-signals.XXXXXX";
    const struct sigaction before = {.sa_handler = count};
    int error;
    if (!mkdtemp(folder))
        bail("no folder");
    sigaction(SIGUSR1, &before, NULL);
    sigaction(SIGWINCH, &before, NULL);
    tui_crash_catch();
    test_told();
    test_errno();
    tui_crash_end();
    is_int(tui_crash_fd(), -1, "after the end nothing is waited for");
    raise(SIGUSR1);
    raise(SIGWINCH);
    is_int(mine, 2, "and signals have the handlers of before");
    if (setupterm("xterm", STDERR_FILENO, &error) == 0) {
        dies_by(SIGSEGV, folder);
        dies_by(SIGABRT, folder);
        dies_by(SIGUSR2, NULL);
    } else {
        skip(15, "no terminal is known");
    }
    rmdir(folder);
    return done();
}
