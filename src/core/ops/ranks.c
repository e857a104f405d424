/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c: what ranks do together, as operations of a graph.
 *
 * all_reduce: y = sum over ranks r of weight_r x_r, the same on all ranks. For the
 * gradient the loss is taken to be the sum of all ranks' losses, as
 * torch.distributed.nn does: dx = weight sum over ranks of dy. */
#include "core/base/need.h"
#include "core/ops/ops.h"

ETI_INFER(all_reduce_infer)
{
    char text[ETI_TEXT];
    static const int64_t one[] = {1};
    ET_TRY(eti_need(cx, call, 0, "x"));
    const struct et_desc *x = &call->in[0];
    et_desc_text(x, text, sizeof text);
    if (x->dtype != ET_F32 && x->dtype != ET_F64)
        return ETI_FAIL(cx, call, ET_EDTYPE, "x is %s; ranks add up f32 and f64", text);
    if (!et_desc_is_dense(x))
        return ETI_FAIL(cx, call, ET_EINVAL, "x, %s, is not dense", text);
    ET_TRY(eti_may_shape(cx, call, 1, "weight", 1, one));
    if (eti_operand(call, 1))
        ET_TRY(eti_need_dtype(cx, call, 1, "weight", ET_F32));
    *out = *x;
    return ET_OK;
}

ETI_GRADIENT(all_reduce_gradient)
{
    struct et_tensor *weight = node->n_in > 1 ? node->in[1] : NULL;
    if (!want[0])
        return et_graph_status(g);
    dx[0] = et_all_reduce(g, dy[0], NULL);
    if (weight && dx[0])
        dx[0] = et_mul(g, dx[0], et_cast(g, weight, dx[0]->desc.dtype));
    return et_graph_status(g);
}

const struct et_op et_op_all_reduce = {
    .name = "all_reduce",
    .summary = "the ranks' arrays, weighted and added up",
    .id = ET_OP_all_reduce,
    .min_in = 1,
    .max_in = 2,
    .n_out = 1,
    .infer = all_reduce_infer,
    .gradient = all_reduce_gradient,
    .flops = eti_flops_operand,
};

struct et_tensor *
et_all_reduce(struct et_graph *g, struct et_tensor *x, struct et_tensor *weight)
{
    ETI_NEED_IN(g, g);
    struct et_tensor *in[] = {x && !et_desc_is_dense(&x->desc) ? eti_standard(g, x) : x,
                              weight};
    return et_apply(g, ET_OP_all_reduce, in, 2, NULL, 0, NULL);
}
