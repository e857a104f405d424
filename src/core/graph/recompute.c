/* SPDX-License-Identifier: Apache-2.0 */
/* recompute.c: values that are cheaper to make twice than to keep.
 *
 * An activation or a layer norm is read by the product behind it and, much later, by
 * the gradient of that product's weights. What it was made from is kept until then
 * anyway, for its own gradient: the value is made again there, and its memory is free
 * in between. A step of GPT keeps 9 numbers of each position and feature of a block
 * instead of 15. Where nobody else keeps what it is made from, it stays.
 *
 * On the host alone: the time that it takes is measured there, and a GPU's products
 * make their activations themselves. */
#include "config.h"

#include "core/graph/graph_impl.h"
#include "core/graph/passes.h"

/* The work of the late reader for each of the value's elements hides what making these
 * again takes: a guess that measurements do not contradict. In a GPT of d=384, whose
 * products do 768 FLOP for each element of a GELU and 2304 for that of a norm, ratios
 * of speed were 0.98 to 1.02 where the same build against itself came to 0.99 to 1.04.
 * One of d=128, with a third of that work, came to 0.94 to 0.96, but once also with
 * nothing made again. */
enum {
    WORTH = 1 << 20,         /* bytes: less saves nothing that anybody sees */
    FAR = 16,                /* steps from one reader to the next: a block's, about */
    WORK = 768,              /* FLOP of the late reader for each element */
    WORK_OF_NORM = 3 * WORK, /* a norm looks at each several times */
};

struct recompute {
    struct eti_ir *ir;
    int n_steps, n_values; /* before any was added */
    int *last; /* [n_values]: the last step that reads a root; -1: none does */
};

/* Does STEP read VALUE, or a view of it? */
static bool
reads(const struct eti_ir *ir, int step, int value)
{
    const struct eti_step *s = &ir->step[step];
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && ir->value[s->in[i]].root == value)
            return true;
    return false;
}

/* The first reader of VALUE that is FAR behind the one before it; -1: none is. *BEFORE:
 * that one. */
static int
find_late(const struct recompute *r, int value, int *before)
{
    const struct eti_value *v = &r->ir->value[value];
    *before = v->producer;
    for (int i = v->producer + 1; i <= r->last[value]; i++) {
        if (!reads(r->ir, i, value))
            continue;
        if (*before > v->producer && i - *before >= FAR)
            return i;
        *before = i;
    }
    return -1;
}

/* Is STEP a product that does enough with each element of VALUE, made by a step of
 * OP? */
static bool
hides(const struct recompute *r, int step, int value, const struct et_op *op)
{
    const int64_t work = op->id == ET_OP_layer_norm ? WORK_OF_NORM : WORK;
    const struct eti_step *s = &r->ir->step[step];
    struct et_desc *desc =
        eti_arena_alloc(r->ir->arena, (size_t)(s->n_in + s->n_out + 1) * sizeof *desc);
    if (!desc || !(s->op->flags & ET_OPF_PRODUCT) || !s->op->flops)
        return false;
    const struct et_call call = eti_step_call(r->ir, s, desc);
    return s->op->flops(&call) >= work * et_desc_count(&r->ir->value[value].desc);
}

/* Is VALUE, an operand, there when step AT runs, whatever becomes of the rest? Leaves
 * are: what is committed to them is so behind all other steps. */
static bool
is_kept(const struct recompute *r, int value, int at)
{
    int root = r->ir->value[value].root;
    return r->ir->value[root].leaf >= 0 || (root < r->n_values && r->last[root] >= at);
}

/* The operands of the step that makes VALUE again, into IN; false: it is no step for
 * that. A norm of a sum takes the sum that it has left. */
static bool
find_operands(const struct recompute *r, const struct eti_step *s, int in[4])
{
    bool is_norm = s->op->id == ET_OP_layer_norm;
    if (s->once || s->commit || s->n_in > 4 ||
        !(is_norm || ((s->op->flags & ET_OPF_ELEMENTWISE) && s->n_out == 1)))
        return false;
    for (int i = 0; i < s->n_in; i++)
        in[i] = s->in[i];
    if (!is_norm || s->n_in < 4 || s->in[3] < 0)
        return true;
    in[0] = s->out[3];
    in[3] = -1;
    /* A sum in fewer bits is not what the norm has seen. */
    return in[0] >= 0 && r->ir->value[in[0]].desc.dtype == ET_F32;
}

/* Whoever reads VALUE from step LATE on reads AGAIN. */
static void
hand_over(struct recompute *r, int value, int again, int late)
{
    struct eti_ir *ir = r->ir;
    for (int i = late; i <= r->last[value]; i++)
        for (int j = 0; j < ir->step[i].n_in && !ir->failed; j++) {
            int in = ir->step[i].in[j], to = again;
            if (in < 0 || ir->value[in].root != value)
                continue;
            if (in != value) {
                to = eti_ir_add_value(ir, &ir->value[in].desc, -1);
                ir->value[to].root = again;
                ir->value[to].offset = ir->value[in].offset;
            }
            ir->step[i].in[j] = to;
        }
}

static void
make_again(struct recompute *r, int step, int late, int before)
{
    struct eti_ir *ir = r->ir;
    const struct eti_step s = ir->step[step];
    int in[4], value = s.out[0];
    if (!find_operands(r, &s, in))
        return;
    for (int i = 0; i < s.n_in; i++)
        if (in[i] >= 0 && !is_kept(r, in[i], late))
            return;
    int again = eti_ir_add_value(ir, &ir->value[value].desc, ir->n_steps);
    struct eti_step *copy =
        eti_ir_add_step(ir, s.op, s.attr, s.attr_size, s.n_in, s.n_out);
    if (ir->failed)
        return;
    for (int i = 0; i < s.n_in; i++)
        copy->in[i] = in[i];
    for (int i = 0; i < s.n_out; i++)
        copy->out[i] = i == 0 ? again : -1;
    copy->part = ir->step[late].part;
    hand_over(r, value, again, late);
    r->last[value] = before;
}

/* New steps stand behind the others: eti_sort puts each before its first reader. */
void
eti_recompute(struct eti_ir *ir)
{
    struct et_device_info info;
    struct recompute r = {.ir = ir, .n_steps = ir->n_steps, .n_values = ir->n_values};
    et_device_get_info(ir->g->dev, &info);
    if (!info.host_memory)
        return;
    r.last = eti_arena_alloc(ir->arena, (size_t)(ir->n_values + 1) * sizeof *r.last);
    if (!r.last) {
        ir->failed = true;
        return;
    }
    for (int i = 0; i < ir->n_values; i++)
        r.last[i] = -1;
    for (int i = 0; i < ir->n_steps; i++)
        for (int j = 0; j < ir->step[i].n_in; j++)
            if (ir->step[i].in[j] >= 0)
                r.last[ir->value[ir->step[i].in[j]].root] = i;
    for (int i = 0; i < r.n_steps && !ir->failed; i++) {
        const struct eti_step *s = &ir->step[i];
        int value = s->n_out > 0 ? s->out[0] : -1, before;
        if (value < 0 || ir->value[value].root != value || ir->value[value].wanted ||
            et_desc_bytes(&ir->value[value].desc) < WORTH)
            continue;
        int late = find_late(&r, value, &before);
        if (late >= 0 && !ir->step[late].commit && hides(&r, late, value, s->op))
            make_again(&r, i, late, before);
    }
}
