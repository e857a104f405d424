/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_elementwise.c: chains of element-wise steps become one program.
 *
 * A step joins the group of one of its operands' producers when both have the same
 * result description and no other operand depends on that group through steps outside
 * it (that would be a cycle). Values still read from outside are stored by the program;
 * the rest live in registers. On flat parameter buffers this turns an optimizer written
 * as formulas, with clipping and averaging, into one pass over memory.
 *
 * Registers are f32. A step whose result is bf16 or f16 is followed by one that rounds,
 * so that the program's numbers are those of single steps. */
#include "config.h"

#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/graph/passes.h"

struct group {
    int n_steps, length; /* members; steps of the program they make, at most */
    int step[ET_FUSED_MAX_STEPS];
};

struct fusion {
    struct eti_ir *ir;
    struct group *group;
    int n_groups;
    int *group_of;            /* per step; -1 */
    struct eti_search search; /* steps of a group run as one */
};

static bool
is_fusable(const struct eti_ir *ir, const struct eti_step *s)
{
    if (!s->op || s->commit || !(s->op->flags & ET_OPF_ELEMENTWISE) || s->n_out != 1 ||
        s->n_in > 3 || s->out[0] < 0 || s->op->id == ET_OP_fused)
        return false;
    bool flags = s->op->id != ET_OP_cast; /* a comparison's U8 will do */
    enum et_dtype dtype = ir->value[s->out[0]].desc.dtype;
    if (!eti_is_f32_or_low(dtype) && !(flags && dtype == ET_U8))
        return false;
    for (int i = 0; i < s->n_in; i++) {
        dtype = s->in[i] < 0 ? ET_NONE : ir->value[s->in[i]].desc.dtype;
        if (!eti_is_f32_or_low(dtype) && !(flags && dtype == ET_U8))
            return false;
    }
    return true;
}

/* Must the step's result be rounded by another one? */
static bool
rounds_after(const struct eti_ir *ir, const struct eti_step *s)
{
    return s->op->id != ET_OP_cast && eti_is_low(ir->value[s->out[0]].desc.dtype);
}

static int
external_inputs(const struct fusion *f, const struct group *g, int group_id, int extra)
{
    int list[ET_FUSED_MAX_STEPS * 3 + 3], n = 0;
    for (int m = 0; m <= g->n_steps; m++) {
        int step = m < g->n_steps ? g->step[m] : extra;
        const struct eti_step *s = &f->ir->step[step];
        for (int i = 0; i < s->n_in; i++) {
            int p = eti_ir_producer(f->ir, s->in[i]), at = 0;
            if (p >= 0 && f->group_of[p] == group_id &&
                f->ir->value[s->in[i]].root == s->in[i])
                continue;
            while (at < n && list[at] != s->in[i])
                at++;
            if (at == n)
                list[n++] = s->in[i];
        }
    }
    return n;
}

static bool
may_join(struct fusion *f, int step, int group_id)
{
    struct group *g = &f->group[group_id];
    const struct eti_step *s = &f->ir->step[step], *head = &f->ir->step[g->step[0]];
    if (g->length + 1 + rounds_after(f->ir, s) > ET_FUSED_MAX_STEPS ||
        !eti_same_space(&f->ir->value[s->out[0]].desc,
                        &f->ir->value[head->out[0]].desc) ||
        external_inputs(f, g, group_id, step) > ET_FUSED_MAX_IN)
        return false;
    eti_search_for(&f->search, g->step[0]);
    for (int i = 0; i < s->n_in; i++) {
        int p = eti_ir_producer(f->ir, s->in[i]);
        if (p < 0)
            continue;
        /* A view of a member (a broadcast row, say) needs the whole member first. */
        if (f->group_of[p] == group_id) {
            if (f->ir->value[s->in[i]].root != s->in[i])
                return false;
        } else if (eti_search_finds(&f->search, p)) {
            return false;
        }
    }
    return true;
}

/* Inserts STEP into the list, which stays in order of index. */
static void
insert(const struct eti_ir *ir, struct group *g, int step)
{
    int at = g->n_steps++;
    g->length += 1 + rounds_after(ir, &ir->step[step]);
    for (; at > 0 && g->step[at - 1] > step; at--)
        g->step[at] = g->step[at - 1];
    g->step[at] = step;
}

/* Whether the group could run as one: nothing it reads from outside depends on it. */
static bool
stands(struct fusion *f, int group_id)
{
    const struct group *g = &f->group[group_id];
    if (external_inputs(f, g, group_id, g->step[0]) > ET_FUSED_MAX_IN)
        return false;
    eti_search_for(&f->search, g->step[0]);
    for (int m = 0; m < g->n_steps; m++) {
        const struct eti_step *s = &f->ir->step[g->step[m]];
        for (int i = 0; i < s->n_in; i++) {
            int p = eti_ir_producer(f->ir, s->in[i]);
            if (p < 0)
                continue;
            if (f->group_of[p] == group_id ? f->ir->value[s->in[i]].root != s->in[i]
                                           : eti_search_finds(&f->search, p))
                return false;
        }
    }
    return true;
}

/* Two groups that one step reads become one, where that makes no cycle. */
static void
merge(struct fusion *f, int into, int from)
{
    struct group *a = &f->group[into], *b = &f->group[from], old = *a;
    if (into == from || a->length + b->length > ET_FUSED_MAX_STEPS ||
        !eti_same_space(&f->ir->value[f->ir->step[a->step[0]].out[0]].desc,
                        &f->ir->value[f->ir->step[b->step[0]].out[0]].desc))
        return;
    for (int m = 0; m < b->n_steps; m++) {
        insert(f->ir, a, b->step[m]);
        f->group_of[b->step[m]] = into;
    }
    eti_search_join(&f->search, old.step[0], b->step[0]);
    if (stands(f, into)) {
        b->n_steps = b->length = 0;
        return;
    }
    eti_search_join(&f->search, old.step[0], b->step[0]);
    *a = old;
    for (int m = 0; m < b->n_steps; m++)
        f->group_of[b->step[m]] = from;
}

static int
group_read(const struct fusion *f, int value)
{
    int p = eti_ir_producer(f->ir, value);
    return p < 0 || f->ir->value[value].root != value ? -1 : f->group_of[p];
}

static void
join(struct fusion *f, int step)
{
    const struct eti_step *s = &f->ir->step[step];
    int own = -1;
    for (int i = 0; i < s->n_in && own < 0; i++) {
        int id = group_read(f, s->in[i]);
        if (id >= 0 && may_join(f, step, id))
            own = id;
    }
    if (own < 0) {
        own = f->n_groups++;
        f->group[own] = (struct group){0};
    }
    if (f->group[own].n_steps > 0)
        eti_search_join(&f->search, f->group[own].step[0], step);
    insert(f->ir, &f->group[own], step);
    f->group_of[step] = own;
    for (int i = 0; i < s->n_in; i++) {
        int id = group_read(f, s->in[i]);
        if (id >= 0)
            merge(f, own, id);
    }
}

/* Stored results: those somebody outside reads. U8 intermediates cannot be stored. */
static int
stored(const struct fusion *f, const struct group *g, const int *uses, int *out)
{
    int n = 0;
    for (int m = 0; m < g->n_steps; m++) {
        int value = f->ir->step[g->step[m]].out[0], inside = 0;
        for (int k = 0; k < g->n_steps; k++) {
            const struct eti_step *s = &f->ir->step[g->step[k]];
            for (int i = 0; i < s->n_in; i++)
                inside += s->in[i] == value;
        }
        if (uses[value] == inside)
            continue;
        if (n == ET_FUSED_MAX_OUT || !eti_is_f32_or_low(f->ir->value[value].desc.dtype))
            return -1;
        out[n++] = value;
    }
    return n;
}

static bool
has(const int *list, int n, int value)
{
    for (int i = 0; i < n; i++)
        if (list[i] == value)
            return true;
    return false;
}

/* A program being written: which register holds which value. */
struct program {
    const struct eti_ir *ir;
    struct et_fused_attr *attr;
    int value[ET_FUSED_MAX_IN + ET_FUSED_MAX_STEPS]; /* per member and operand */
    uint8_t reg[ET_FUSED_MAX_IN + ET_FUSED_MAX_STEPS];
    int n;
};

static uint8_t
register_of(const struct program *p, int value)
{
    for (int k = p->n - 1; k >= 0; k--)
        if (p->value[k] == value)
            return p->reg[k];
    ET_ASSERT(false);
    return 0;
}

static void
hold(struct program *p, int value, int reg)
{
    p->value[p->n] = value;
    p->reg[p->n++] = (uint8_t)reg;
}

/* The next step of the program. */
static struct et_fused_step *
append(struct program *p, enum et_op_id op, int n_src)
{
    struct et_fused_step *to = &p->attr->step[p->attr->n_steps++];
    to->op = (uint16_t)op;
    to->n_src = (uint8_t)n_src;
    return to;
}

static void
append_rounding(struct program *p, uint8_t from, enum et_dtype dtype)
{
    struct et_fused_step *to = append(p, ET_OP_cast, 1);
    to->src[0] = from;
    to->a = dtype;
}

static void
append_member(struct program *p, const struct eti_step *s)
{
    enum et_dtype dtype = p->ir->value[s->out[0]].desc.dtype;
    if (s->op->id == ET_OP_cast) {
        uint8_t from = register_of(p, s->in[0]);
        if (eti_is_low(dtype))
            append_rounding(p, from, dtype);
        /* To f32: a register holds that already. */
        hold(p, s->out[0],
             eti_is_low(dtype) ? p->attr->n_in + p->attr->n_steps - 1 : from);
        return;
    }
    struct et_fused_step *to = append(p, s->op->id, s->n_in);
    for (int i = 0; i < s->n_in; i++)
        to->src[i] = register_of(p, s->in[i]);
    if (s->attr_size == sizeof(struct et_scalar_attr)) {
        const struct et_scalar_attr *a = s->attr;
        to->a = a->a;
        to->b = a->b;
    }
    if (eti_is_low(dtype))
        append_rounding(p, (uint8_t)(p->attr->n_in + p->attr->n_steps - 1), dtype);
    hold(p, s->out[0], p->attr->n_in + p->attr->n_steps - 1);
}

static void
write_program(struct fusion *f, const struct group *g, const int *out, int n_out)
{
    int in[ET_FUSED_MAX_STEPS * 3], made[ET_FUSED_MAX_STEPS], n_in = 0;
    for (int m = 0; m < g->n_steps; m++) {
        const struct eti_step *s = &f->ir->step[g->step[m]];
        for (int i = 0; i < s->n_in; i++)
            if (!has(made, m, s->in[i]) && !has(in, n_in, s->in[i]))
                in[n_in++] = s->in[i];
        made[m] = s->out[0];
    }
    /* A condition stored as U8 by somebody else would need a conversion on the way
     * in. */
    for (int i = 0; i < n_in; i++)
        if (!eti_is_f32_or_low(f->ir->value[in[i]].desc.dtype))
            return;
    struct et_fused_attr *attr = eti_arena_alloc(f->ir->arena, sizeof *attr);
    struct eti_step *fused =
        eti_ir_add_step(f->ir, et_op_get(ET_OP_fused), attr, sizeof *attr, n_in, n_out);
    if (!attr || !fused) {
        f->ir->failed = true;
        return;
    }
    fused->part = f->ir->step[g->step[g->n_steps - 1]].part;
    memcpy(fused->in, in, (size_t)n_in * sizeof *in);
    memcpy(fused->out, out, (size_t)n_out * sizeof *out);
    attr->n_in = n_in;
    attr->n_out = n_out;
    struct program p = {.ir = f->ir, .attr = attr};
    for (int i = 0; i < n_in; i++)
        hold(&p, in[i], i);
    for (int m = 0; m < g->n_steps; m++)
        append_member(&p, &f->ir->step[g->step[m]]);
    for (int i = 0; i < n_out; i++)
        attr->out[i] = register_of(&p, out[i]);
    /* The program takes the place of its last step; the sort puts operands first. */
    int last = g->step[g->n_steps - 1];
    for (int m = 0; m < g->n_steps; m++)
        f->ir->step[g->step[m]].op = NULL;
    for (int i = 0; i < n_out; i++)
        f->ir->value[out[i]].producer = last;
    f->ir->step[last] = *fused;
    f->ir->n_steps--;
}

void
eti_fuse_elementwise(struct eti_ir *ir)
{
    size_t n = (size_t)ir->n_steps + 1;
    struct fusion f = {.ir = ir};
    f.group = eti_arena_alloc(ir->arena, n * sizeof *f.group);
    f.group_of = eti_arena_alloc(ir->arena, n * sizeof *f.group_of);
    int *uses = eti_ir_count_uses(ir);
    if (!eti_search_new(ir, &f.search) || !f.group || !f.group_of || !uses) {
        ir->failed = true;
        return;
    }
    for (int i = 0; i < ir->n_steps; i++)
        f.group_of[i] = -1;
    for (int i = 0; i < ir->n_steps; i++)
        if (is_fusable(ir, &ir->step[i]))
            join(&f, i);
    for (int id = 0; id < f.n_groups && !ir->failed; id++) {
        int out[ET_FUSED_MAX_OUT];
        int n_out = f.group[id].n_steps > 1 ? stored(&f, &f.group[id], uses, out) : 0;
        if (n_out > 0)
            write_program(&f, &f.group[id], out, n_out);
    }
}
