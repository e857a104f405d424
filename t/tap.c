/* SPDX-License-Identifier: Apache-2.0 */
/* tap.c: see tap.h. */
#include "t/tap.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
/* AddressSanitizer guesses where a thread's late TLS block is from what libc wrote
 * before it. For blocks at some addresses the guess is wrong, and the leak check, which
 * reads there, crashes. None of our memory is held by such a block alone.
 *
 * And more memory than there can be is refused, as it is elsewhere: tests ask for
 * it. */
const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
    return "intercept_tls_get_addr=0:allocator_may_return_null=1";
}
#endif

static int planned, run, failed;
static bool leaked;

static bool
result(bool pass, const char *fmt, va_list args)
{
    char name[512];
    vsnprintf(name, sizeof name, fmt, args);
    run++;
    failed += !pass;
    printf("%sok %d - %s\n", pass ? "" : "not ", run, name);
    fflush(stdout);
    return pass;
}

void
plan(int tests)
{
    planned = tests;
    printf("1..%d\n", tests);
    fflush(stdout);
}

void
skip_all(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    exit(0);
}

int
done(void)
{
    if (!planned)
        printf("1..%d\n", run);
    else if (planned != run)
        printf("# planned %d tests, ran %d\n", planned, run);
    return failed || leaked || (planned && planned != run);
}

bool
tap_has_leaked(void)
{
    return leaked;
}

/* Said at once: in a process that a test began, nobody asks for done(). */
void
tap_leaked(uint64_t blocks)
{
    leaked = true;
    printf("not ok - a context is freed with nothing left in it\n"
           "# %llu blocks of memory were left in it\n",
           (unsigned long long)blocks);
    fflush(stdout);
}

bool
ok(bool pass, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    result(pass, fmt, args);
    va_end(args);
    return pass;
}

bool
is_int(int64_t got, int64_t want, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    bool pass = result(got == want, fmt, args);
    va_end(args);
    if (!pass)
        diag("got %lld, wanted %lld", (long long)got, (long long)want);
    return pass;
}

bool
is_str(const char *got, const char *want, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    bool same = got && want ? strcmp(got, want) == 0 : got == want;
    bool pass = result(same, fmt, args);
    va_end(args);
    if (!pass)
        diag("got    %s\n#   wanted %s", got ? got : "NULL", want ? want : "NULL");
    return pass;
}

static bool
near(double got, double want, double tol)
{
    return got == want || fabs(got - want) <= tol * fmax(1, fabs(want));
}

bool
is_near(double got, double want, double tol, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    bool pass = result(near(got, want, tol), fmt, args);
    va_end(args);
    if (!pass)
        diag("got %.9g, wanted %.9g, tolerance %.2g", got, want, tol);
    return pass;
}

bool
is_near_array(const float *got, const float *want, int64_t n, double tol,
              const char *fmt, ...)
{
    int64_t bad = 0, worst = -1;
    double worst_error = -1;
    for (int64_t i = 0; i < n; i++) {
        if (near(got[i], want[i], tol))
            continue;
        bad++;
        double error = fabs((double)got[i] - want[i]);
        if (isnan(error) || error > worst_error) {
            worst = i;
            worst_error = isnan(error) ? INFINITY : error;
        }
    }
    va_list args;
    va_start(args, fmt);
    bool pass = result(bad == 0, fmt, args);
    va_end(args);
    if (!pass)
        diag("%lld of %lld differ; worst at %lld: got %.9g, wanted %.9g",
             (long long)bad, (long long)n, (long long)worst, got[worst], want[worst]);
    return pass;
}

void
skip(int tests, const char *why)
{
    for (int i = 0; i < tests; i++)
        printf("ok %d # SKIP %s\n", ++run, why);
    fflush(stdout);
}

void
diag(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("#   ");
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
    fflush(stdout);
}

void
bail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("Bail out! ");
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
    fflush(stdout);
    exit(255);
}
