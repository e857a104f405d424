/* program.h: what the programs that measure share: a clock, and the end at a failure.
 */
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
