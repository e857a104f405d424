/* SPDX-License-Identifier: Apache-2.0 */
/* stack.c: see stack.h. The handler does nothing but system calls; what backtrace needs
 * it has loaded before. */
#include "config.h"

#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dist/run/stack.h"

enum { FRAMES = 64, STACK_BYTES = 64 << 10 };
static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* A sanitizer says more than we do, but must be the first to be asked. */
#ifdef __SANITIZE_ADDRESS__
static const bool chains = false;
#else
static const bool chains = true;
#endif

static struct {
    int fd;
    struct sigaction before[NUMBERS];     /* who was asked; then it is again */
    _Alignas(16) char stack[STACK_BYTES]; /* the handler's, when the stack ran out */
} where;

/* SIGABRT is also what the supervisor sends a rank that it takes for hung. */
static void
on_signal(int number)
{
    char head[] = "-- signal 00: this rank does not go on; it is at\n";
    char *digits = strchr(head, '0');
    void *frame[FRAMES];
    int n = backtrace(frame, FRAMES);
    digits[0] = (char)('0' + number / 10 % 10);
    digits[1] = (char)('0' + number % 10);
    if (write(where.fd, head, sizeof head - 1) > 0)
        backtrace_symbols_fd(frame, n, where.fd);
    for (int i = 0; i < NUMBERS; i++)
        if (numbers[i] == number)
            sigaction(number, &where.before[i], NULL);
    raise(number);
}

int
etd_stack_file(void)
{
    return memfd_create("stack", MFD_CLOEXEC);
}

void
etd_stack_begin(int fd)
{
    const stack_t stack = {.ss_sp = where.stack, .ss_size = sizeof where.stack};
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    void *frame[1];
    if (fd < 0)
        return;
    where.fd = fd;
    (void)backtrace(frame, 1);
    (void)sigaltstack(&stack, NULL);
    for (int i = 0; i < NUMBERS; i++)
        if (sigaction(numbers[i], NULL, &where.before[i]) == 0 &&
            (chains || where.before[i].sa_handler == SIG_DFL))
            sigaction(numbers[i], &action, NULL);
}
