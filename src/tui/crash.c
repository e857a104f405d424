/* SPDX-License-Identifier: Apache-2.0 */
/* crash.c: see crash.h.
 *
 * The handlers call nothing but what POSIX allows there, backtrace_symbols_fd besides,
 * which was called once before so that it need not load anything. */
#include "config.h"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "tui/crash.h"

static const int fatal[] = {
    SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,    SIGSEGV, SIGSYS,
    SIGXCPU, SIGXFSZ, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF,
};
static const struct {
    int number;
    enum tui_caught what;
} told[] = {
    {SIGWINCH, TUI_CAUGHT_RESIZE}, {SIGHUP, TUI_CAUGHT_LEAVE},
    {SIGINT, TUI_CAUGHT_LEAVE},    {SIGTERM, TUI_CAUGHT_LEAVE},
    {SIGTSTP, TUI_CAUGHT_SUSPEND},
};
enum {
    FATAL = sizeof fatal / sizeof *fatal,
    TOLD = sizeof told / sizeof *told,
    RESTORE = 256,
    FRAMES = 64,
    STACK = 64 << 10,
};
static _Alignas(16) char handler_stack[STACK]; /* for when the other one is full */

/* One terminal, one process: what its handlers need. */
static struct {
    int in, out;
    struct termios saved;
    bool has_saved, caught;
    char restore[RESTORE]; /* what makes the screen as it was */
    size_t restore_bytes;
    char report[PATH_MAX]; /* "": no report is written */
    int wake[2];
    atomic_int flags;
    struct sigaction before[FATAL], told_before[TOLD];
} c = {.wake = {-1, -1}};

/* ---- handlers ---- */

static void
put(int fd, const char *text)
{
    size_t n = strlen(text);
    if (write(fd, text, n) < 0)
        return; /* there is nobody left to tell */
}

static void
put_number(int fd, int n)
{
    char digits[12];
    int at = sizeof digits;
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0 && at > 0);
    put(fd, digits + at);
}

static void
give_back(void)
{
    for (size_t done = 0; done < c.restore_bytes;) {
        ssize_t n = write(c.out, c.restore + done, c.restore_bytes - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    if (c.has_saved)
        tcsetattr(c.in, TCSANOW, &c.saved);
}

static void
write_report(int number)
{
    void *frame[FRAMES];
    int fd =
        *c.report ? open(c.report, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    put(STDERR_FILENO, "\netude: the screen ended by signal ");
    put_number(STDERR_FILENO, number);
    put(STDERR_FILENO, "; runs go on.");
    if (fd >= 0) {
        put(fd, PACKAGE_STRING " signal ");
        put_number(fd, number);
        put(fd, "\n");
        backtrace_symbols_fd(frame, backtrace(frame, FRAMES), fd);
        close(fd);
        put(STDERR_FILENO, " Report: ");
        put(STDERR_FILENO, c.report);
    }
    put(STDERR_FILENO, "\n");
}

static void
die(int number)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t all;
    give_back();
    write_report(number);
    sigaction(number, &plain, NULL);
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    raise(number);
}

static void
tell(int number)
{
    const int was = errno; /* of a call that the program has not looked at yet */
    for (int i = 0; i < TOLD; i++)
        if (told[i].number == number)
            atomic_fetch_or(&c.flags, (int)told[i].what);
    (void)!write(c.wake[1], "", 1); /* where it is full somebody will look */
    errno = was;
}

/* ---- setting up ---- */

static void
add_restore(const char *name)
{
    const char *text = tigetstr(name);
    if (!text || text == (char *)-1)
        return;
    for (; *text && c.restore_bytes < RESTORE - 1; text++) {
        if (text[0] == '$' && text[1] == '<') { /* padding, for terminals of old */
            text = strchr(text, '>');
            if (!text)
                return;
            continue;
        }
        c.restore[c.restore_bytes++] = *text;
    }
}

static void
add_text(const char *text)
{
    size_t n = strlen(text);
    if (c.restore_bytes + n < RESTORE) {
        memcpy(c.restore + c.restore_bytes, text, n);
        c.restore_bytes += n;
    }
}

void
tui_crash_begin(int in, int out, const char *crash)
{
    void *frame[2];
    c.in = in;
    c.out = out;
    c.restore_bytes = 0;
    c.has_saved = tcgetattr(in, &c.saved) == 0;
    atomic_store(&c.flags, 0);
    const char *mouse = tigetstr("kmous");
    if (mouse && mouse != (char *)-1)
        add_text("\033[?1000l\033[?1002l\033[?1006l\033[?2004l");
    add_restore("sgr0");
    add_restore("rmkx");
    add_restore("rmcup");
    add_restore("cnorm"); /* last: some give a cursor back as it was, others hidden */
    snprintf(c.report, sizeof c.report, crash ? "%s/crash-%ld.txt" : "%s",
             crash ? crash : "", (long)getpid());
    backtrace(frame, 2);
}

void
tui_crash_catch(void)
{
    struct sigaction dies = {.sa_handler = die,
                             .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = STACK};
    struct sigaction tells = {.sa_handler = tell, .sa_flags = SA_RESTART};
    sigfillset(&dies.sa_mask);
    sigfillset(&tells.sa_mask);
    sigaltstack(&stack, NULL);
    if (pipe(c.wake) == 0)
        for (int i = 0; i < 2; i++) {
            fcntl(c.wake[i], F_SETFL, O_NONBLOCK);
            fcntl(c.wake[i], F_SETFD, FD_CLOEXEC);
        }
    for (int i = 0; i < FATAL; i++)
        sigaction(fatal[i], &dies, &c.before[i]);
    for (int i = 0; i < TOLD; i++)
        sigaction(told[i].number, &tells, &c.told_before[i]);
    c.caught = true;
}

void
tui_crash_end(void)
{
    for (int i = 0; i < FATAL && c.caught; i++)
        sigaction(fatal[i], &c.before[i], NULL);
    for (int i = 0; i < TOLD && c.caught; i++)
        sigaction(told[i].number, &c.told_before[i], NULL);
    c.caught = false;
    for (int i = 0; i < 2; i++) {
        if (c.wake[i] >= 0)
            close(c.wake[i]);
        c.wake[i] = -1;
    }
}

bool
tui_crash_is(enum tui_caught what)
{
    return (atomic_load(&c.flags) & (int)what) != 0;
}

bool
tui_crash_take(enum tui_caught what)
{
    return (atomic_fetch_and(&c.flags, ~(int)what) & (int)what) != 0;
}

int
tui_crash_fd(void)
{
    return c.wake[0];
}

void
tui_crash_drain(void)
{
    char bytes[64];
    while (c.wake[0] >= 0 && read(c.wake[0], bytes, sizeof bytes) > 0)
        continue;
}

void
tui_crash_stop(void)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    struct sigaction ours;
    sigset_t stop;
    sigaction(SIGTSTP, &plain, &ours);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &ours, NULL);
}
