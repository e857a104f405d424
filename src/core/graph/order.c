/* SPDX-License-Identifier: Apache-2.0 */
/* order.c: which steps of a plan run, and in which order. */
#include "config.h"

#include <string.h>

#include "core/graph/passes.h"

/* Removes steps of which nobody wants a result. */
void
eti_remove_dead(struct eti_ir *ir)
{
    int *uses = eti_ir_count_uses(ir);
    if (!uses)
        return;
    for (int i = ir->n_steps - 1; i >= 0; i--) {
        struct eti_step *s = &ir->step[i];
        if (!s->op || s->commit)
            continue;
        bool live = (s->op->flags & ET_OPF_EFFECT) != 0;
        for (int j = 0; j < s->n_out; j++) {
            if (s->out[j] >= 0 && uses[s->out[j]] == 0)
                s->out[j] = -1;
            live |= s->out[j] >= 0;
        }
        if (live)
            continue;
        for (int j = 0; j < s->n_in; j++)
            if (s->in[j] >= 0)
                uses[ir->value[s->in[j]].root]--;
        s->op = NULL;
    }
}

enum { BEGUN = 1, EMITTED };

static void
emit(struct eti_ir *ir, int i, int *done, int *order, int *n)
{
    ir->cyclic = ir->cyclic || done[i] == BEGUN;
    if (done[i])
        return;
    done[i] = BEGUN;
    const struct eti_step *s = &ir->step[i];
    for (int j = 0; j < s->n_in; j++) {
        int producer = eti_ir_producer(ir, s->in[j]);
        if (producer >= 0 && ir->step[producer].op)
            emit(ir, producer, done, order, n);
    }
    done[i] = EMITTED;
    order[(*n)++] = i;
}

/* The first all_reduce from step FROM on; n_steps: no step is one. */
static int
next_collective(const struct eti_ir *ir, int from)
{
    int i = from;
    while (i < ir->n_steps && !eti_ir_is(ir, i, ET_OP_all_reduce))
        i++;
    return i;
}

/* All that VALUE is made of is there, or only to be put together. */
static bool
is_there(const struct eti_ir *ir, int value, const int *done)
{
    int from = eti_ir_producer(ir, value);
    if (from < 0 || !ir->step[from].op || done[from])
        return true;
    const struct eti_step *s = &ir->step[from];
    bool there = s->op->id == ET_OP_pack || s->op->id == ET_OP_copy;
    for (int j = 0; j < s->n_in && there; j++)
        there = is_there(ir, s->in[j], done);
    return there;
}

/* Collectives come in the order in which they were built, which is the same on all
 * ranks, and as early as that allows: what is left of the backward pass goes on beside
 * them. */
static bool
is_ready(const struct eti_ir *ir, int collective, const int *done)
{
    const struct eti_step *s = &ir->step[collective];
    for (int j = 0; j < s->n_in; j++)
        if (!is_there(ir, s->in[j], done))
            return false;
    return true;
}

/* Puts steps in an order in which operands come first, otherwise as they were; removed
 * steps go. Passes may leave a step before what it reads, never a cycle. */
void
eti_sort(struct eti_ir *ir)
{
    int n = 0, count = ir->n_steps;
    int *done = eti_arena_alloc(ir->arena, (size_t)(count + 1) * sizeof *done);
    int *order = eti_arena_alloc(ir->arena, (size_t)(count + 1) * sizeof *order);
    struct eti_step *sorted =
        eti_arena_alloc(ir->arena, (size_t)(count + 1) * sizeof *sorted);
    if (!done || !order || !sorted) {
        ir->failed = true;
        return;
    }
    int collective = next_collective(ir, 0);
    for (int commit = 0; commit < 2; commit++)
        for (int i = 0; i < count; i++) {
            if (!ir->step[i].op || ir->step[i].commit != commit)
                continue;
            emit(ir, i, done, order, &n);
            for (; collective < count && is_ready(ir, collective, done);
                 collective = next_collective(ir, collective + 1))
                emit(ir, collective, done, order, &n);
        }
    for (int i = 0; i < n; i++)
        sorted[i] = ir->step[order[i]];
    if (n > 0) /* a plan of leaves alone has no steps, nor room for any */
        memcpy(ir->step, sorted, (size_t)n * sizeof *sorted);
    ir->n_steps = n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < sorted[i].n_out && !sorted[i].commit; j++)
            if (sorted[i].out[j] >= 0)
                ir->value[sorted[i].out[j]].producer = i;
    for (int i = 0; i < ir->n_values; i++)
        ir->value[i].producer = ir->value[ir->value[i].root].producer;
}
