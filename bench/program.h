/* SPDX-License-Identifier: Apache-2.0 */
/* program.h: what the programs that measure share: a clock, the end at a failure, and
 * what becomes of many numbers. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "etude/ctx.h"

/* Seconds since some moment. */
static inline double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* For qsort, of doubles. */
static inline int
by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The value at the part P, from 0 to 1, of the N of V, sorted. */
static inline double
part(const double *v, int n, double p)
{
    return v[(int)(p * (n - 1) + 0.5)];
}

/* Ends the program where STATUS, of a call with CX, is a failure. */
static inline void
must(struct et_ctx *cx, et_status status)
{
    if (status == ET_OK)
        return;
    fprintf(stderr, "bench: %s\n", et_error_get(cx)->message);
    exit(1);
}

#endif
