/* SPDX-License-Identifier: Apache-2.0 */
/* ir.c: building the intermediate form of a plan, and what passes ask of it. */
#include "config.h"

#include "core/graph/graph_impl.h"

int
eti_ir_add_value(struct eti_ir *ir, const struct et_desc *desc, int producer)
{
    const struct et_desc own = *desc; /* DESC may lie in the array that grows */
    if (eti_grow(ir->g->cx, &ir->value, &ir->cap_values, ir->n_values + 1,
                 sizeof *ir->value) != ET_OK) {
        ir->failed = true;
        return 0;
    }
    int id = ir->n_values++;
    ir->value[id] = (struct eti_value){
        .desc = own,
        .root = id,
        .producer = producer,
        .leaf = -1,
        .into = -1,
        .first = -1,
        .last = -1,
    };
    return id;
}

struct eti_step *
eti_ir_add_step(struct eti_ir *ir, const struct et_op *op, const void *attr,
                size_t attr_size, int n_in, int n_out)
{
    int *ids = eti_arena_alloc(ir->arena, (size_t)(n_in + n_out + 1) * sizeof *ids);
    if (!ids || eti_grow(ir->g->cx, &ir->step, &ir->cap_steps, ir->n_steps + 1,
                         sizeof *ir->step) != ET_OK) {
        ir->failed = true;
        return NULL;
    }
    struct eti_step *s = &ir->step[ir->n_steps++];
    *s = (struct eti_step){
        .op = op,
        .attr = attr,
        .attr_size = attr_size,
        .n_in = n_in,
        .n_out = n_out,
        .in = ids,
        .out = ids + n_in,
    };
    return s;
}

void
eti_ir_widen(struct eti_ir *ir, struct eti_step *s, int n_in, int n_out)
{
    n_in = n_in > s->n_in ? n_in : s->n_in;
    n_out = n_out > s->n_out ? n_out : s->n_out;
    int *ids = eti_arena_alloc(ir->arena, (size_t)(n_in + n_out) * sizeof *ids);
    if (!ids) {
        ir->failed = true;
        return;
    }
    for (int i = 0; i < n_in; i++)
        ids[i] = i < s->n_in ? s->in[i] : -1;
    for (int i = 0; i < n_out; i++)
        ids[n_in + i] = i < s->n_out ? s->out[i] : -1;
    s->in = ids;
    s->out = ids + n_in;
    s->n_in = n_in;
    s->n_out = n_out;
}

/* ---- what a step or a value is ---- */

bool
eti_is_low(enum et_dtype dtype)
{
    return dtype == ET_BF16 || dtype == ET_F16;
}

bool
eti_is_f32_or_low(enum et_dtype dtype)
{
    return dtype == ET_F32 || eti_is_low(dtype);
}

bool
eti_same_space(const struct et_desc *a, const struct et_desc *b)
{
    struct et_desc c = *a;
    c.dtype = b->dtype;
    return et_desc_equal(&c, b);
}

bool
eti_ir_same_value(const struct eti_ir *ir, int a, int b)
{
    if (a < 0 || b < 0 || a == b)
        return a == b;
    const struct eti_value *x = &ir->value[a], *y = &ir->value[b];
    return x->root == y->root && x->offset == y->offset &&
           et_desc_equal(&x->desc, &y->desc);
}

bool
eti_ir_is(const struct eti_ir *ir, int step, enum et_op_id id)
{
    return ir->step[step].op && ir->step[step].op->id == id;
}

int
eti_ir_producer(const struct eti_ir *ir, int value)
{
    return value < 0 ? -1 : ir->value[ir->value[value].root].producer;
}

int
eti_ir_made_by(const struct eti_ir *ir, int value, enum et_op_id id)
{
    if (value < 0 || ir->value[value].root != value)
        return -1;
    int step = ir->value[value].producer;
    return step >= 0 && eti_ir_is(ir, step, id) ? step : -1;
}

int
eti_ir_made_alone(const struct eti_ir *ir, const int *uses, int value, enum et_op_id id)
{
    return value >= 0 && uses[value] == 1 ? eti_ir_made_by(ir, value, id) : -1;
}

int *
eti_ir_count_uses(struct eti_ir *ir)
{
    int *uses = eti_arena_alloc(ir->arena, (size_t)(ir->n_values + 1) * sizeof *uses);
    if (!uses)
        return NULL;
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        for (int j = 0; s->op && j < s->n_in; j++)
            if (s->in[j] >= 0)
                uses[ir->value[s->in[j]].root]++;
    }
    for (int i = 0; i < ir->n_values; i++)
        if (ir->value[i].wanted)
            uses[ir->value[i].root]++;
    return uses;
}

/* ---- what depends on what ---- */

bool
eti_search_new(struct eti_ir *ir, struct eti_search *s)
{
    size_t n = (size_t)ir->n_steps + 1;
    *s = (struct eti_search){
        .ir = ir,
        .with = eti_arena_alloc(ir->arena, n * sizeof(int)),
        .seen = eti_arena_alloc(ir->arena, n * sizeof(int)),
        .stack = eti_arena_alloc(ir->arena, n * sizeof(int)),
    };
    ir->failed |= !s->with || !s->seen || !s->stack;
    for (int i = 0; !ir->failed && i < ir->n_steps; i++)
        s->with[i] = i;
    return !ir->failed;
}

void
eti_search_join(struct eti_search *s, int a, int b)
{
    int next = s->with[a];
    s->with[a] = s->with[b];
    s->with[b] = next;
}

void
eti_search_for(struct eti_search *s, int first)
{
    s->number++;
    s->first = first;
}

/* STEP and those it runs with are to be looked at. */
static void
reach(struct eti_search *s, int step)
{
    if (step < 0 || s->seen[step] == s->number)
        return;
    int at = step;
    do {
        s->seen[at] = s->number;
        s->stack[s->n++] = at;
        at = s->with[at];
    } while (at != step);
}

bool
eti_search_finds(struct eti_search *s, int later)
{
    s->n = 0;
    reach(s, later);
    while (s->n > 0) {
        int at = s->stack[--s->n];
        if (at == s->first)
            return true;
        const struct eti_step *step = &s->ir->step[at];
        for (int i = 0; step->op && i < step->n_in; i++)
            reach(s, eti_ir_producer(s->ir, step->in[i]));
    }
    return false;
}

bool
eti_ir_depends(struct eti_search *s, int later, int first)
{
    eti_search_for(s, first);
    return eti_search_finds(s, later);
}
