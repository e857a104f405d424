/* SPDX-License-Identifier: Apache-2.0 */
/* spin.c: how long OpenMP's threads look for work before they sleep.
 *
 * libgomp takes a count of turns, each of which has a PAUSE. That is 10 cycles on an
 * Intel before Skylake, 140 since, and 26 ns on a Zen 3: a count that is right on one
 * processor is ten times too long or too short on another. So a turn is timed once, and
 * the count is what a time comes to. */
#include "config.h"

#include "core/graph/spin.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/seams.h"

enum { TRIES = 5, TURNS = 1000 };
static const double SPIN_NS = 30000, LEAST_NS = 0.2;

static inline void
turn(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#else
    __asm__ volatile("" ::: "memory");
#endif
}

/* Nanoseconds of a turn: the quickest of TRIES, so that no interruption is in it. */
static double
time_turn(const struct et_ctx *cx)
{
    double best = 1;
    for (int i = 0; i < TRIES; i++) {
        double start = eti_monotonic(cx);
        for (int k = 0; k < TURNS; k++)
            turn();
        double took = eti_monotonic(cx) - start;
        best = took < best ? took : best;
    }
    return 1e9 * best / TURNS;
}

long
eti_spin_count(double ns)
{
    double count = SPIN_NS / (ns > LEAST_NS ? ns : LEAST_NS);
    return count < 1 ? 1 : (long)count;
}

void
eti_spin_set(const struct et_ctx *cx)
{
    char text[24];
    if (getenv("GOMP_SPINCOUNT"))
        return;
    snprintf(text, sizeof text, "%ld", eti_spin_count(time_turn(cx)));
    setenv("GOMP_SPINCOUNT", text, 0);
}
