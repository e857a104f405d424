/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_norm.c: batch norm takes the ReLU and the residual sum that follow it.
 *
 *   forward   y = relu(bn(x) [+ r])      one pass over x and r instead of three; in
 *             bf16 and f16 bn(x) is rounded before the sum, as if it had been stored
 *   backward  d = dy * (y > 0), dx = bn'(d)   d is never stored unless somebody else
 *             reads it, and then batch_norm_grad writes it as dresidual
 *
 * Values whose only reader was fused away vanish; the others keep their identity. */
#include "config.h"

#include <string.h>

#include "core/graph/passes.h"

/* Room for N_IN operands; the ReLU is said in the attributes, and that the norm is
 * rounded to the dtype STORED before a sum. */
static bool
extend(struct eti_ir *ir, struct eti_step *s, int n_in, enum et_dtype stored)
{
    struct et_norm_attr *attr = eti_arena_alloc(ir->arena, sizeof *attr);
    eti_ir_widen(ir, s, n_in, s->n_out);
    ir->failed |= !attr;
    if (ir->failed)
        return false;
    memcpy(attr, s->attr, sizeof *attr);
    attr->relu = 1;
    attr->stored = (int32_t)stored;
    s->attr = attr;
    return true;
}

/* relu(bn) or relu(bn + r): the sum's operand that is a batch norm read by nobody
 * else. */
static bool
find_norm(const struct eti_ir *ir, const int *uses, int value, int *norm, int *residual,
          int *sum)
{
    *residual = *sum = -1;
    *norm = eti_ir_made_alone(ir, uses, value, ET_OP_batch_norm);
    if (*norm >= 0)
        return true;
    *sum = eti_ir_made_alone(ir, uses, value, ET_OP_add);
    if (*sum < 0)
        return false;
    const struct eti_step *s = &ir->step[*sum];
    for (int side = 0; side < 2; side++) {
        int bn = s->in[side], other = s->in[!side];
        *norm = eti_ir_made_alone(ir, uses, bn, ET_OP_batch_norm);
        if (*norm < 0 || ir->step[*norm].n_in > 3 ||
            !et_desc_equal(&ir->value[other].desc, &ir->value[bn].desc))
            continue;
        *residual = other;
        return true;
    }
    return false;
}

static void
fuse_forward(struct eti_ir *ir, int *uses, int relu)
{
    struct eti_step *r = &ir->step[relu];
    int norm, residual, sum, in = r->in[0], out = r->out[0];
    if (!find_norm(ir, uses, in, &norm, &residual, &sum) ||
        ((const struct et_norm_attr *)ir->step[norm].attr)->relu ||
        ir->step[norm].out[0] < 0)
        return;
    struct eti_step *bn = &ir->step[norm];
    if (!extend(ir, bn, 4, sum < 0 ? ET_NONE : ir->value[out].desc.dtype))
        return;
    bn->in[3] = residual;
    bn->out[0] = out;
    ir->value[out].producer = norm;
    r->op = NULL;
    if (sum >= 0)
        ir->step[sum].op = NULL;
}

/* bn_grad(relu_grad(dy, y), x, ...): y says where the gradient passes, whoever made
 * it. */
static void
fuse_backward(struct eti_ir *ir, int *uses, int grad)
{
    struct eti_step *b = &ir->step[grad];
    int d = b->in[0], mask = eti_ir_made_by(ir, d, ET_OP_relu_grad);
    if (mask < 0 || ((const struct et_norm_attr *)b->attr)->relu)
        return;
    int dy = ir->step[mask].in[0], y = ir->step[mask].in[1];
    if (!et_desc_equal(&ir->value[dy].desc, &ir->value[y].desc) ||
        !et_desc_equal(&ir->value[dy].desc, &ir->value[b->in[1]].desc))
        return;
    if (!extend(ir, b, 6, ET_NONE))
        return;
    b->in[0] = dy;
    b->in[5] = y;
    ir->step[mask].op = NULL;
    b->out[3] = uses[d] > 1 ? d : -1;
    if (uses[d] > 1)
        ir->value[d].producer = grad;
}

void
eti_fuse_norm(struct eti_ir *ir)
{
    int *uses = eti_ir_count_uses(ir);
    if (!uses)
        return;
    for (int i = 0; i < ir->n_steps; i++)
        if (eti_ir_is(ir, i, ET_OP_relu))
            fuse_forward(ir, uses, i);
    for (int i = 0; i < ir->n_steps; i++)
        if (eti_ir_is(ir, i, ET_OP_batch_norm_grad))
            fuse_backward(ir, uses, i);
}
