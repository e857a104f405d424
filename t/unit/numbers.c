/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as loggers print them: the bytes of printf, whatever the number. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/loggers/loggers.h"
#include "t/tap.h"

static uint64_t
draw(void)
{
    static uint64_t x = 0x9E3779B97F4A7C15u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static int wrong;

static void
compare(double value)
{
    char got[ETI_NUMBER], wanted[ETI_NUMBER];
    for (int decimals = -1; decimals <= 12; decimals++) {
        int n = decimals < 0 ? eti_put_nine(got, value)
                             : eti_put_fixed(got, value, decimals);
        if (decimals < 0)
            snprintf(wanted, sizeof wanted, "%.9g", value);
        else
            snprintf(wanted, sizeof wanted, "%.*f", decimals, value);
        if (n == (int)strlen(wanted) && strcmp(got, wanted) == 0)
            continue;
        if (wrong++ < 5)
            diag("%a with %d decimals: %s, wanted %s", value, decimals, got, wanted);
    }
}

/* VALUE, its neighbours, and all of them below zero. */
static void
compare_around(double value)
{
    const double v[] = {value, nextafter(value, INFINITY), nextafter(value, 0)};
    for (int i = 0; i < 3; i++) {
        compare(v[i]);
        compare(-v[i]);
    }
}

static void
test_corners(void)
{
    static const double values[] = {0,
                                    1,
                                    0.5,
                                    1.5,
                                    2.5,
                                    0.125,
                                    1e-4,
                                    99999.9995,
                                    999999.995,
                                    999999999.5,
                                    1e9,
                                    1e15,
                                    1e16,
                                    0x1p53,
                                    1763647402.114,
                                    0.000999999999995,
                                    INFINITY,
                                    NAN,
                                    5e-324,
                                    1.7e308};
    wrong = 0;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        compare_around(values[i]);
    for (double power = 1e-12; power < 1e17; power *= 10)
        for (int digit = 1; digit < 10; digit++)
            compare_around(digit * power);
    is_int(wrong, 0, "zero, powers of ten, the largest and what is next to them");
}

static void
test_ties(void)
{
    wrong = 0;
    for (int i = 0; i < 5000; i++) {
        compare_around((double)(draw() % 2000000) / 2048);
        compare_around(((double)(draw() % 1000000000) + 0.5) * 1e-5);
    }
    is_int(wrong, 0, "what lies in the middle between two results, and close to it");
}

static void
test_any(void)
{
    wrong = 0;
    for (int i = 0; i < 10000; i++) {
        uint64_t bits = draw();
        double any;
        memcpy(&any, &bits, sizeof any);
        compare(any);
        compare((double)(float)((double)(int64_t)draw() *
                                exp2((double)(draw() % 64) - 80)));
    }
    is_int(wrong, 0, "10,000 doubles of any bits, and as many floats of usual size");
}

int
main(void)
{
    test_corners();
    test_ties();
    test_any();
    return done();
}
