/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_parts.c: a sum of padded parts that tile an axis is their concatenation.
 *
 *   pad(a, 0 | n - i) + pad(b, i | 0) = concat(a, b)
 *
 * The gradients of slices arrive in that form: for attention's packed q, k, v three
 * arrays of mostly zeros, and two sums, for what is one copy. */
#include "config.h"

#include <string.h>

#include "core/graph/passes.h"

enum { MAX_PARTS = 8 };

struct parts {
    struct eti_ir *ir;
    const int *uses;
    int step[MAX_PARTS]; /* pads, by where they begin */
    int64_t begin[MAX_PARTS];
    int n, axis; /* axis -1: not known yet */
};

/* The axis that a pad with zeros lengthens; -1 if it is none or several. */
static int
padded_axis(const struct eti_ir *ir, const struct eti_step *s)
{
    const struct et_pad_attr *o = s->attr;
    int axis = -1, ndim = ir->value[s->out[0]].desc.ndim;
    for (int i = 0; i < ndim; i++) {
        if (o->before[i] == 0 && o->after[i] == 0)
            continue;
        if (axis >= 0 || o->before[i] < 0 || o->after[i] < 0)
            return -1;
        axis = i;
    }
    return o->value == 0 ? axis : -1;
}

/* Collects the pads below VALUE, each read once; false if there is anything else. */
static bool
collect(struct parts *p, int value)
{
    const struct eti_ir *ir = p->ir;
    int sum = eti_ir_made_alone(ir, p->uses, value, ET_OP_add);
    if (sum >= 0)
        return collect(p, ir->step[sum].in[0]) && collect(p, ir->step[sum].in[1]);
    int step = eti_ir_made_alone(ir, p->uses, value, ET_OP_pad);
    if (step < 0 || p->n == MAX_PARTS)
        return false;
    const struct eti_step *s = &ir->step[step];
    int axis = padded_axis(ir, s);
    if (axis < 0 || (p->axis >= 0 && p->axis != axis))
        return false;
    p->axis = axis;
    int64_t begin = ((const struct et_pad_attr *)s->attr)->before[axis];
    int at = p->n++;
    for (; at > 0 && p->begin[at - 1] > begin; at--) {
        p->begin[at] = p->begin[at - 1];
        p->step[at] = p->step[at - 1];
    }
    p->begin[at] = begin;
    p->step[at] = step;
    return true;
}

static bool
tiles(const struct parts *p, const struct et_desc *whole)
{
    int64_t at = 0;
    for (int i = 0; i < p->n; i++) {
        const struct eti_step *s = &p->ir->step[p->step[i]];
        if (p->begin[i] != at)
            return false;
        at += p->ir->value[s->in[0]].desc.shape[p->axis];
    }
    return at == whole->shape[p->axis];
}

static void
concatenate(struct parts *p, int sum)
{
    struct eti_ir *ir = p->ir;
    struct et_axis_attr *attr = eti_arena_alloc(ir->arena, sizeof *attr);
    int *ids = eti_arena_alloc(ir->arena, (MAX_PARTS + 1) * sizeof *ids);
    if (!attr || !ids)
        return;
    attr->axis = p->axis;
    for (int i = 0; i < p->n; i++)
        ids[i] = ir->step[p->step[i]].in[0];
    ids[p->n] = ir->step[sum].out[0];
    struct eti_step *s = &ir->step[sum];
    *s = (struct eti_step){
        .op = et_op_get(ET_OP_concat),
        .attr = attr,
        .attr_size = sizeof *attr,
        .n_in = p->n,
        .n_out = 1,
        .in = ids,
        .out = ids + p->n,
    };
}

void
eti_fuse_parts(struct eti_ir *ir)
{
    const int *uses = eti_ir_count_uses(ir);
    /* From the end, so that the outermost sum of a tree is met first. */
    for (int i = ir->n_steps - 1; uses && i >= 0; i--) {
        const struct eti_step *s = &ir->step[i];
        if (!eti_ir_is(ir, i, ET_OP_add) || s->out[0] < 0)
            continue;
        struct parts p = {.ir = ir, .uses = uses, .axis = -1};
        if (collect(&p, s->in[0]) && collect(&p, s->in[1]) && p.n > 1 &&
            tiles(&p, &ir->value[s->out[0]].desc))
            concatenate(&p, i);
    }
    eti_remove_dead(ir);
}
