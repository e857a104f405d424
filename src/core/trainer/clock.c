/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c: how long a batch took. */
#include "config.h"

#include "core/base/seams.h"
#include "core/trainer/part.h"

struct clock {
    double start;   /* monotonic seconds: of the batch under way, or the last step */
    double seconds; /* ranks: since the last batch, at the last step */
    float took;     /* ranks: the last batch, for rank 0 */
};

void
eti_clock_start(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_CLOCK);
    struct clock *own = p->own;
    own->start = eti_monotonic(p->s->cx);
}

void
eti_clock_skip(struct et_trainer *t, double seconds)
{
    struct clock *own = eti_part_own(t, ETI_PART_CLOCK);
    own->start += seconds;
}

double
eti_clock_batch(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_CLOCK);
    struct clock *own = p->own;
    double now = eti_monotonic(p->s->cx), took = now - own->start;
    if (p->common->comm)
        return (double)own->took;
    own->start = now;
    return took;
}

static float
say(struct eti_part *p)
{
    struct clock *own = p->own;
    double now = eti_monotonic(p->s->cx);
    own->seconds += now - own->start;
    own->start = now;
    return p->s->rank == 0 ? (float)own->seconds : 0;
}

static void
hear(struct eti_part *p, float sum, bool again)
{
    struct clock *own = p->own;
    own->took = sum;
    if (!again)
        own->seconds = 0;
}

const struct eti_part_type eti_part_clock = {
    .size = sizeof(struct clock),
    .say = say,
    .hear = hear,
};
