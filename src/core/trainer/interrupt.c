/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c: somebody wants the run to stop: by a signal, by a request, or because a
 * rank has a reason that the others do not know. All ranks stop after the same batch.
 */
#include "config.h"

#include "core/trainer/part.h"
#include "core/trainer/ranks.h"
#include "etude/control.h"

struct interrupt {
    bool requested;  /* by a person: control.c */
    bool has_reason; /* of this rank's own */
    bool agreed;     /* some rank said so in a step */
};

static bool
signalled(const struct eti_part *p)
{
    const struct interrupt *own = p->own;
    return p->common->comm ? own->agreed : eti_is_set(p->config->interrupt);
}

void
eti_ask_to_stop(struct et_trainer *t)
{
    struct interrupt *own = eti_part_own(t, ETI_PART_INTERRUPT);
    own->requested = true;
}

void
eti_interrupt_forget(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_INTERRUPT);
    struct interrupt *own = p->own;
    *own = (struct interrupt){0};
    p->s->interrupted = false;
}

void
eti_stop_all_ranks(struct et_trainer *t, const char *why)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_INTERRUPT);
    struct interrupt *own = p->own;
    own->has_reason = true; /* the step tells the others */
    if (!p->common->comm)
        et_state_stop(p->s, why);
}

bool
eti_interrupted(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_INTERRUPT);
    const struct interrupt *own = p->own;
    struct eti_common *c = p->common;
    if (c->outcome != ET_OUTCOME_DIVERGED && (signalled(p) || own->requested)) {
        c->outcome = ET_OUTCOME_STOPPED;
        p->s->interrupted = true;
        et_state_stop(p->s, signalled(p) ? "interrupted" : ET_STOPPED_ON_REQUEST);
    }
    return c->outcome == ET_OUTCOME_STOPPED;
}

et_status
eti_listen_for_stop(struct et_trainer *t)
{
    struct eti_part *p = eti_part_of(t, ETI_PART_INTERRUPT);
    struct interrupt *own = p->own;
    struct et_comm *comm = p->common->comm;
    uint8_t any = own->agreed || eti_is_set(p->config->interrupt);
    if (!comm)
        return ET_OK;
    et_comm_set_mark(comm, -1, ETI_AT_STOP, 0);
    ET_TRY(et_comm_all_reduce(p->s->cx, comm, &any, 1, ET_U8, ET_COMM_MAX));
    own->agreed = any;
    return ET_OK;
}

static float
say(struct eti_part *p)
{
    const struct interrupt *own = p->own;
    return eti_is_set(p->config->interrupt) || own->has_reason;
}

static void
hear(struct eti_part *p, float sum, bool again)
{
    struct interrupt *own = p->own;
    (void)again;
    own->agreed |= sum > 0;
}

const struct eti_part_type eti_part_interrupt = {
    .size = sizeof(struct interrupt),
    .say = say,
    .hear = hear,
};
