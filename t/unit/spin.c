/* SPDX-License-Identifier: Apache-2.0 */
/* How long OpenMP's threads look for work: a time, whatever a turn takes. */
#include <stdlib.h>

#include "core/base/seams.h"
#include "core/graph/spin.h"
#include "etude/ctx.h"
#include "t/tap.h"

static double clock_now, clock_step;

static double
tick(void)
{
    return clock_now += clock_step;
}

static long
told(void)
{
    const char *text = getenv("GOMP_SPINCOUNT");
    return text ? strtol(text, NULL, 10) : -1;
}

int
main(void)
{
    struct et_ctx *cx;
    struct eti_seams seams = eti_system;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    is_int(eti_spin_count(30), 1000, "turns of 30 ns are made for 30 microseconds");
    is_int(eti_spin_count(300), 100, "ten times slower ones a tenth as often");
    is_int(eti_spin_count(1e9), 1, "there is one turn even if it takes a second");
    is_int(eti_spin_count(0), 150000, "a clock that stands still ends the count");
    is_int(eti_spin_count(-1), 150000, "so does one that goes back");
    seams.monotonic = tick;
    eti_ctx_set_seams(cx, &seams);
    unsetenv("GOMP_SPINCOUNT");
    clock_step = 150e-6; /* of 1,000 turns */
    eti_spin_set(cx);
    is_int(told(), 200, "OpenMP is told what the clock found: 200 turns of 150 ns");
    clock_step = 15e-6;
    eti_spin_set(cx);
    is_int(told(), 200, "what OpenMP was told stays");
    eti_ctx_set_seams(cx, &eti_system);
    unsetenv("GOMP_SPINCOUNT");
    eti_spin_set(cx);
    is_int(told() >= 1 && told() <= 150000, 1,
           "by the system's clock it is a count too");
    et_ctx_free(&cx);
    return done();
}
