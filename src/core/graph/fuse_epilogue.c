/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_epilogue.c: products of matrices take what follows them into their kernel.
 *
 *   forward   p = x w + bias, y = gelu_tanh(p)     one pass over y and p, not two
 *   backward  dg = dy w^T, dp = gelu_tanh'(p) dg   dg is never stored
 *             dbias = sum of dp's rows             dp is not read again for it
 *             dw = x^T dy, dbias = sum of dy       dy is read once, not twice
 *
 * Only where the device says that it takes the form (epilogues, in device.h). The
 * product is not rounded before what follows it: a plan on such a device differs from
 * an eager run by that rounding. */
#include "config.h"

#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/graph/passes.h"

struct epilogues {
    struct eti_ir *ir;
    int *uses; /* per value: readers of its memory */
    struct eti_search search;
};

static bool
takes(const struct eti_ir *ir, enum et_epilogue form)
{
    return ir->g->dev->table->epilogues >> form & 1;
}

/* PRODUCT's step becomes one of FORM that reads PRE besides and makes Y and MORE; -1:
 * none. */
static bool
become(struct eti_ir *ir, int product, enum et_epilogue form, int pre, int y, int more)
{
    struct eti_step *s = &ir->step[product];
    const struct et_matmul_attr *o = s->attr;
    struct et_matmul_fused_attr *attr = eti_arena_alloc(ir->arena, sizeof *attr);
    int *ids = eti_arena_alloc(ir->arena, 6 * sizeof *ids);
    if (!attr || !ids) {
        ir->failed = true;
        return false;
    }
    *attr = (struct et_matmul_fused_attr){
        .trans_a = o->trans_a, .trans_b = o->trans_b, .form = (int32_t)form};
    ids[0] = s->in[0];
    ids[1] = s->in[1];
    ids[2] = s->n_in > 2 ? s->in[2] : -1;
    ids[3] = pre;
    ids[4] = y;
    ids[5] = more;
    *s = (struct eti_step){
        .op = et_op_get(ET_OP_matmul_fused),
        .attr = attr,
        .attr_size = sizeof *attr,
        .n_in = 4,
        .n_out = 2,
        .in = ids,
        .out = ids + 4,
    };
    for (int i = 0; i < s->n_out; i++)
        if (s->out[i] >= 0)
            ir->value[s->out[i]].producer = product;
    return true;
}

static bool
is_biased(const struct eti_step *s)
{
    return s->n_in > 2 && s->in[2] >= 0;
}

/* y = gelu_tanh(p) in step GELU, p a product. Who else reads p has it of MORE. */
static void
fuse_gelu(struct epilogues *e, int gelu)
{
    struct eti_ir *ir = e->ir;
    const struct eti_step *s = &ir->step[gelu];
    int p = s->in[0], y = s->out[0], product = eti_ir_made_by(ir, p, ET_OP_matmul);
    if (product < 0 || !eti_is_f32_or_low(ir->value[p].desc.dtype) ||
        !et_desc_equal(&ir->value[p].desc, &ir->value[y].desc))
        return;
    if (become(ir, product, ET_EPILOGUE_GELU, -1, y, e->uses[p] > 1 ? p : -1))
        ir->step[gelu].op = NULL;
}

/* dp = gelu_tanh_grad(dg, p) in step GRAD, dg a product that nobody else reads. */
static void
fuse_gelu_grad(struct epilogues *e, int grad)
{
    struct eti_ir *ir = e->ir;
    const struct eti_step *s = &ir->step[grad];
    int dg = s->in[0], pre = s->in[1], dp = s->out[0];
    int product = eti_ir_made_alone(ir, e->uses, dg, ET_OP_matmul);
    if (product < 0 || is_biased(&ir->step[product]) ||
        !eti_is_f32_or_low(ir->value[dg].desc.dtype) ||
        !et_desc_equal(&ir->value[dg].desc, &ir->value[dp].desc) ||
        !et_desc_equal(&ir->value[dg].desc, &ir->value[pre].desc))
        return;
    if (become(ir, product, ET_EPILOGUE_GELU_GRAD, pre, dp, -1))
        ir->step[grad].op = NULL;
}

/* ---- sums over all axes but the last: gradients of a bias ---- */

static bool
sums_rows(const struct eti_ir *ir, const struct eti_step *s)
{
    const struct et_reduce_attr *o = s->attr;
    const struct et_desc *x = &ir->value[s->in[0]].desc;
    return x->ndim >= 2 && o->axes == (1u << (x->ndim - 1)) - 1 && s->out[0] >= 0 &&
           et_desc_is_contiguous(&ir->value[s->out[0]].desc, ET_ROW_MAJOR);
}

/* VALUE as a vector: itself, or one of which it becomes a view, where the axes that
 * were summed stay with length 1. */
static int
as_vector(struct eti_ir *ir, int value)
{
    struct et_desc d = ir->value[value].desc;
    int64_t n = et_desc_count(&d);
    if (d.ndim == 1)
        return value;
    et_desc_init(&d, d.dtype, 1, &n, ET_ROW_MAJOR);
    int vector = eti_ir_add_value(ir, &d, ir->value[value].producer);
    if (ir->failed)
        return value;
    ir->value[vector].wanted = ir->value[value].wanted;
    for (int i = 0; i < vector; i++)
        if (ir->value[i].root == value)
            ir->value[i].root = vector;
    return vector;
}

/* The sum of a fused gelu's gradient. */
static bool
join_gelu_grad(struct epilogues *e, int sum)
{
    struct eti_ir *ir = e->ir;
    const struct eti_step *s = &ir->step[sum];
    int step = eti_ir_made_by(ir, s->in[0], ET_OP_matmul_fused);
    if (step < 0)
        return false;
    struct eti_step *fused = &ir->step[step];
    const struct et_matmul_fused_attr *o = fused->attr;
    if (o->form != ET_EPILOGUE_GELU_GRAD || fused->out[1] >= 0)
        return false;
    fused->out[1] = as_vector(ir, s->out[0]);
    ir->value[fused->out[1]].producer = step;
    ir->step[sum].op = NULL;
    return true;
}

/* Is operand I of a product the rows of X, as a matrix, with its terms along them? */
static bool
multiplies_rows(const struct eti_ir *ir, const struct eti_step *s, int i, int x)
{
    const struct et_matmul_attr *o = s->attr;
    const struct eti_value *v = &ir->value[s->in[i]], *of = &ir->value[x];
    bool along = i == 0 ? o->trans_a != 0 : o->trans_b == 0;
    return along && v->root == of->root && v->offset == of->offset &&
           v->desc.ndim == 2 && et_desc_is_contiguous(&v->desc, ET_ROW_MAJOR) &&
           et_desc_is_contiguous(&of->desc, ET_ROW_MAJOR) &&
           et_desc_count(&v->desc) == et_desc_count(&of->desc) &&
           v->desc.shape[1] == of->desc.shape[of->desc.ndim - 1];
}

/* dbias in step SUM, of the dy that a product for dw reads. */
static void
join_product(struct epilogues *e, int sum)
{
    struct eti_ir *ir = e->ir;
    int dy = ir->step[sum].in[0], out = ir->step[sum].out[0];
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        if (!eti_ir_is(ir, i, ET_OP_matmul) || is_biased(s) || s->out[0] < 0 ||
            ir->value[s->out[0]].desc.dtype != ir->value[out].desc.dtype)
            continue;
        for (int k = 0; k < 2; k++) {
            enum et_epilogue form = k == 0 ? ET_EPILOGUE_SUM_A : ET_EPILOGUE_SUM_B;
            if (!takes(ir, form) || !multiplies_rows(ir, s, k, dy) ||
                eti_ir_depends(&e->search, i, sum))
                continue;
            if (become(ir, i, form, -1, s->out[0], as_vector(ir, out)))
                ir->step[sum].op = NULL;
            return;
        }
    }
}

void
eti_fuse_epilogue(struct eti_ir *ir)
{
    struct epilogues e = {.ir = ir};
    if (ir->g->dev->table->epilogues == 0 || !(e.uses = eti_ir_count_uses(ir)) ||
        !eti_search_new(ir, &e.search))
        return;
    for (int i = 0; i < ir->n_steps && !ir->failed; i++) {
        const struct eti_step *s = &ir->step[i];
        if (!s->op || s->commit || s->out[0] < 0)
            continue;
        if (s->op->id == ET_OP_gelu_tanh && takes(ir, ET_EPILOGUE_GELU))
            fuse_gelu(&e, i);
        else if (s->op->id == ET_OP_gelu_tanh_grad && takes(ir, ET_EPILOGUE_GELU_GRAD))
            fuse_gelu_grad(&e, i);
    }
    for (int i = 0; i < ir->n_steps && !ir->failed; i++) {
        const struct eti_step *s = &ir->step[i];
        if (eti_ir_is(ir, i, ET_OP_sum) && sums_rows(ir, s) &&
            eti_is_f32_or_low(ir->value[s->in[0]].desc.dtype) && !join_gelu_grad(&e, i))
            join_product(&e, i);
    }
    eti_sort(ir);
}
