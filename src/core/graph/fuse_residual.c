/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_residual.c: layer norm takes the sum before it and the casts around it.
 *
 *   forward   s = x + r, y = norm(s)     one pass over x and r, which writes s and y;
 *             in mixed precision r comes and y goes in bf16 or f16 while s is f32
 *   backward  ds = ds' + norm'(dy)       one pass over dy, s and ds', which writes ds
 *             in f32, for x, and in the dtype of r, for r
 *
 * ds' is the gradient that s has from whoever else reads it: in a transformer that puts
 * its norms before its layers, the next sum. There each sum cost six passes over the
 * residual stream, three on the way back, and the casts besides.
 *
 * Kernels round where the single steps stored, so nothing changes but the passes. */
#include "config.h"

#include "core/graph/passes.h"

struct residual {
    struct eti_ir *ir;
    int *uses;
    struct eti_search search;
};

static const struct et_desc *
desc_of(const struct residual *f, int value)
{
    return &f->ir->value[value].desc;
}

/* The cast from F32 to a narrow dtype that is STEP; its operand is a result of OP.
 * Returns the step of that; else -1. */
static int
narrowed(const struct residual *f, int step, enum et_op_id op)
{
    const struct eti_step *c = &f->ir->step[step];
    if (!eti_ir_is(f->ir, step, ET_OP_cast) || c->out[0] < 0 ||
        !eti_is_low(desc_of(f, c->out[0])->dtype) ||
        desc_of(f, c->in[0])->dtype != ET_F32 ||
        !eti_same_space(desc_of(f, c->in[0]), desc_of(f, c->out[0])))
        return -1;
    return eti_ir_made_by(f->ir, c->in[0], op);
}

/* What VALUE was cast from, if that was narrow and VALUE is F32; else VALUE. */
static int
before_cast(const struct residual *f, int value)
{
    int cast = eti_ir_made_by(f->ir, value, ET_OP_cast);
    if (cast < 0)
        return value;
    int from = f->ir->step[cast].in[0];
    return eti_is_low(desc_of(f, from)->dtype) && desc_of(f, value)->dtype == ET_F32 &&
                   eti_same_space(desc_of(f, from), desc_of(f, value))
               ? from
               : value;
}

/* STEP reads operand I from before its cast. */
static void
read_narrow(struct residual *f, int step, int i)
{
    int *in = &f->ir->step[step].in[i], from = before_cast(f, *in);
    f->uses[f->ir->value[*in].root]--;
    f->uses[f->ir->value[from].root]++;
    *in = from;
}

/* Result I of STEP is VALUE from now on; OLD, which made it, goes. */
static void
take_over(struct residual *f, int step, int i, int value, int old)
{
    f->ir->step[step].out[i] = value;
    f->ir->value[value].producer = step;
    f->ir->step[old].op = NULL;
}

/* ---- forward ---- */

/* cast(norm(x)), where nobody else reads the norm. */
static void
narrow_result(struct residual *f, int cast)
{
    int norm = narrowed(f, cast, ET_OP_layer_norm);
    const struct eti_step *c = &f->ir->step[cast];
    if (norm >= 0 && f->ir->step[norm].out[0] == c->in[0] && f->uses[c->in[0]] == 1)
        take_over(f, norm, 0, c->out[0], cast);
}

/* norm(x + r): the stream is the operand that has not been cast. */
static void
take_sum(struct residual *f, int norm)
{
    struct eti_ir *ir = f->ir;
    struct eti_step *s = &ir->step[norm];
    int sum = s->in[0], add = eti_ir_made_by(ir, sum, ET_OP_add);
    if (add < 0 || (s->n_in > 3 && s->in[3] >= 0) || s->out[3] >= 0)
        return;
    const int *in = ir->step[add].in;
    int side = before_cast(f, in[0]) != in[0], x = in[side], r = in[!side];
    if (!et_desc_equal(desc_of(f, x), desc_of(f, sum)) ||
        !eti_same_space(desc_of(f, r), desc_of(f, sum)) ||
        !et_desc_is_contiguous(desc_of(f, sum), ET_ROW_MAJOR))
        return;
    /* Gamma and beta may be made of the sum. */
    eti_search_for(&f->search, add);
    for (int i = 1; i < s->n_in && i < 3; i++)
        if (eti_search_finds(&f->search, eti_ir_producer(ir, s->in[i])))
            return;
    eti_ir_widen(ir, s, 4, 4);
    if (ir->failed)
        return;
    s->in[0] = x;
    s->in[3] = r;
    f->uses[sum]--;
    take_over(f, norm, 3, sum, add);
    if (f->uses[sum] == 0)
        s->out[3] = -1;
    read_narrow(f, norm, 3);
}

/* ---- backward ---- */

/* norm'(dy) + ds', where nobody else reads the first. */
static void
take_gradient(struct residual *f, int add)
{
    struct eti_ir *ir = f->ir;
    const struct eti_step *a = &ir->step[add];
    for (int side = 0; side < 2; side++) {
        int dx = a->in[side], other = a->in[!side];
        int grad = eti_ir_made_by(ir, dx, ET_OP_layer_norm_grad);
        struct eti_step *s = &ir->step[grad < 0 ? 0 : grad];
        if (grad < 0 || (s->n_in > 5 && s->in[5] >= 0) || s->out[0] != dx ||
            f->uses[dx] != 1 || !et_desc_equal(desc_of(f, dx), desc_of(f, a->out[0])) ||
            !et_desc_equal(desc_of(f, dx), desc_of(f, other)) ||
            eti_ir_depends(&f->search, eti_ir_producer(ir, other), grad))
            continue;
        eti_ir_widen(ir, s, 6, 4);
        if (ir->failed)
            return;
        s->in[5] = other;
        take_over(f, grad, 0, a->out[0], add);
        return;
    }
}

/* cast(dx): a second copy of it, or the only one. */
static void
copy_narrow(struct residual *f, int cast)
{
    struct eti_ir *ir = f->ir;
    const struct eti_step *c = &ir->step[cast];
    int grad = narrowed(f, cast, ET_OP_layer_norm_grad), dx = c->in[0];
    if (grad < 0 || ir->step[grad].out[0] != dx || ir->step[grad].out[3] >= 0)
        return;
    take_over(f, grad, 3, c->out[0], cast);
    if (--f->uses[dx] == 0)
        ir->step[grad].out[0] = -1;
}

void
eti_fuse_residual(struct eti_ir *ir)
{
    struct residual f = {.ir = ir, .uses = eti_ir_count_uses(ir)};
    if (!eti_search_new(ir, &f.search) || !f.uses) {
        ir->failed = true;
        return;
    }
    for (int i = 0; i < ir->n_steps && !ir->failed; i++) {
        if (eti_ir_is(ir, i, ET_OP_layer_norm))
            take_sum(&f, i);
        if (eti_ir_is(ir, i, ET_OP_layer_norm_grad) && ir->step[i].in[0] >= 0)
            read_narrow(&f, i, 0);
    }
    for (int i = 0; i < ir->n_steps && !ir->failed; i++)
        if (eti_ir_is(ir, i, ET_OP_add) && ir->step[i].out[0] >= 0)
            take_gradient(&f, i);
    for (int i = 0; i < ir->n_steps; i++)
        if (eti_ir_is(ir, i, ET_OP_cast)) {
            narrow_result(&f, i);
            copy_narrow(&f, i);
        }
    eti_remove_dead(ir); /* casts that nobody reads any more */
}
