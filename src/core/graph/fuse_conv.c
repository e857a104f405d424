/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_conv.c: convolutions take the batch norm of an evaluation, the residual sum and
 * the ReLU that follow them.
 *
 *   y = relu(conv(x, w) scale[k] + shift[k] [+ r])
 *
 * y is written once and not read again.
 *
 * Batch norm with running statistics is a scale and a shift for each channel
 * (et_batch_norm_eval). In f32, and only where the device says that it gains by it
 * (fuses_convolutions): what follows is rounded as if it stood by itself. */
#include "config.h"

#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/graph/passes.h"

/* A convolution, scaled and shifted: steps, and the values of both numbers. */
struct match {
    int conv, mul, add;
    int scale, shift;
};

/* VALUE's root where it has a number for each of K channels and VALUE repeats them over
 * the pixels of images; else -1. */
static int
channels_of(const struct eti_ir *ir, int value, int64_t k)
{
    const struct eti_value *v = &ir->value[value];
    const struct et_desc *d = &v->desc, *root = &ir->value[v->root].desc;
    int channel = d->ndim - 3;
    if (root->dtype != ET_F32 || root->ndim != 1 || root->shape[0] != k ||
        root->stride[0] != 1 || channel < 0)
        return -1;
    for (int i = 0; i < d->ndim; i++)
        if (i == channel ? d->shape[i] != k || (k > 1 && d->stride[i] != 1)
                         : d->shape[i] != 1 && d->stride[i] != 0)
            return -1;
    return v->root;
}

/* Is VALUE a convolution, scaled and shifted? */
static bool
find(const struct eti_ir *ir, const int *uses, int value, struct match *m)
{
    m->add = eti_ir_made_by(ir, value, ET_OP_add);
    const struct eti_step *add = m->add < 0 ? NULL : &ir->step[m->add];
    for (int i = 0; add && i < 2; i++) {
        m->mul = eti_ir_made_alone(ir, uses, add->in[i], ET_OP_mul);
        const struct eti_step *mul = m->mul < 0 ? NULL : &ir->step[m->mul];
        for (int j = 0; mul && j < 2; j++) {
            m->conv = eti_ir_made_alone(ir, uses, mul->in[j], ET_OP_conv2d);
            if (m->conv < 0)
                continue;
            const struct eti_step *conv = &ir->step[m->conv];
            const struct et_desc *y = &ir->value[conv->out[0]].desc;
            m->scale = channels_of(ir, mul->in[!j], y->shape[1]);
            m->shift = channels_of(ir, add->in[!i], y->shape[1]);
            if (y->dtype == ET_F32 && m->scale >= 0 && m->shift >= 0 &&
                (conv->n_in < 3 || conv->in[2] < 0) &&
                et_desc_equal(y, &ir->value[value].desc))
                return true;
        }
    }
    return false;
}

/* M's convolution makes VALUE, with the RESIDUAL (-1: none). */
static void
become(struct eti_ir *ir, const struct match *m, int value, int residual, bool relu)
{
    struct eti_step *s = &ir->step[m->conv];
    struct et_conv2d_fused_attr *attr = eti_arena_alloc(ir->arena, sizeof *attr);
    eti_ir_widen(ir, s, 5, 1);
    ir->failed |= !attr;
    if (ir->failed)
        return;
    memset(attr, 0, sizeof *attr);
    memcpy(&attr->conv, s->attr, sizeof attr->conv);
    attr->relu = relu;
    s->op = et_op_get(ET_OP_conv2d_fused);
    s->attr = attr;
    s->attr_size = sizeof *attr;
    s->in[2] = m->scale;
    s->in[3] = m->shift;
    s->in[4] = residual;
    s->n_in = residual < 0 ? 4 : 5;
    s->out[0] = value;
    ir->value[value].producer = m->conv;
    ir->step[m->mul].op = NULL;
    ir->step[m->add].op = NULL;
}

/* The ReLU of step RELU: of such a convolution, or of its sum with something else. */
static void
fuse_relu(struct eti_ir *ir, const int *uses, int relu)
{
    struct eti_step *r = &ir->step[relu];
    int in = r->in[0], out = r->out[0],
        sum = eti_ir_made_alone(ir, uses, in, ET_OP_add);
    struct match m;
    if (sum < 0 || !et_desc_equal(&ir->value[in].desc, &ir->value[out].desc))
        return;
    if (find(ir, uses, in, &m)) {
        become(ir, &m, out, -1, true);
        r->op = NULL;
        return;
    }
    for (int i = 0; i < 2; i++) {
        int value = ir->step[sum].in[i], other = ir->step[sum].in[!i];
        if (uses[value] != 1 || !find(ir, uses, value, &m) ||
            !et_desc_equal(&ir->value[other].desc, &ir->value[out].desc))
            continue;
        become(ir, &m, out, other, true);
        ir->step[sum].op = NULL;
        r->op = NULL;
        return;
    }
}

void
eti_fuse_conv(struct eti_ir *ir)
{
    int *uses;
    if (!ir->g->dev->table->fuses_convolutions || !(uses = eti_ir_count_uses(ir)))
        return;
    for (int i = 0; i < ir->n_steps; i++)
        if (eti_ir_is(ir, i, ET_OP_relu))
            fuse_relu(ir, uses, i);
    for (int i = 0; i < ir->n_steps; i++) {
        struct match m;
        if (eti_ir_is(ir, i, ET_OP_add) && find(ir, uses, ir->step[i].out[0], &m))
            become(ir, &m, ir->step[i].out[0], -1, false);
    }
}
