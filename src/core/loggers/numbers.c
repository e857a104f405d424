/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.c: numbers as text, the same bytes as printf's in a tenth of its time.
 *
 * A logger prints a dozen numbers for every batch. printf computes with as many digits
 * as a double can have; here a number is multiplied by a power of ten in 64 bits and
 * rounded once. Where that product is too near the middle between two results to tell,
 * or is too large, printf decides. */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/loggers/loggers.h"

enum { DECIMALS = 13 }; /* the most that are asked for, and one */

static const long double power[DECIMALS] = {1e0L, 1e1L, 1e2L, 1e3L,  1e4L,  1e5L, 1e6L,
                                            1e7L, 1e8L, 1e9L, 1e10L, 1e11L, 1e12L};

/* SIZE times ten to the DECIMALS, rounded; false: that cannot be told from here. The
 * product is off by less than 1e-4 below 1e15. */
static bool
scale(double size, int decimals, uint64_t *out)
{
    if (decimals < 0 || decimals >= DECIMALS)
        return false;
    long double x = (long double)size * power[decimals];
    if (!(x < 1e15L))
        return false;
    uint64_t n = (uint64_t)x;
    double rest = (double)(x - (long double)n);
    if (fabs(rest - 0.5) < 1e-3)
        return false;
    *out = n + (rest > 0.5);
    return true;
}

/* N with a point before its last DECIMALS digits, and a sign if NEGATIVE. */
static int
put(char *buf, bool negative, uint64_t n, int decimals)
{
    char digit[24];
    int k = 0, at = 0;
    for (; n > 0 || k <= decimals; n /= 10)
        digit[k++] = (char)('0' + n % 10);
    if (negative)
        buf[at++] = '-';
    while (k > 0) {
        if (k == decimals)
            buf[at++] = '.';
        buf[at++] = digit[--k];
    }
    buf[at] = '\0';
    return at;
}

int
eti_put_fixed(char *buf, double value, int decimals)
{
    uint64_t n;
    if (!isfinite(value) || !scale(fabs(value), decimals, &n))
        return snprintf(buf, ETI_NUMBER, "%.*f", decimals, value);
    return put(buf, signbit(value) != 0, n, decimals);
}

/* Decimals that leave nine digits of SIZE, which is from 1e-4 on and below 1e9; next to
 * a power of ten it may be one too many. */
static int
decimals_for_nine(double size)
{
    int decimals = 8;
    for (double top = 10; size >= top; top *= 10)
        decimals--;
    for (double low = 1; size < low; low /= 10)
        decimals++;
    return decimals;
}

int
eti_put_nine(char *buf, double value)
{
    const uint64_t least = 100000000, past = 1000000000;
    double size = fabs(value);
    uint64_t n;
    bool is_usual = size >= 1e-4 && size < 1e9;
    int decimals = is_usual ? decimals_for_nine(size) : -1;
    if (!scale(size, decimals, &n) || n < least || n >= past)
        return snprintf(buf, ETI_NUMBER, "%.9g", value);
    for (; decimals > 0 && n % 10 == 0; decimals--)
        n /= 10;
    return put(buf, value < 0, n, decimals);
}
