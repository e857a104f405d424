/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.c: y = x m / (1 - p), m = 0 with probability p, else 1  (1207.0580).
 *
 * The mask is a function of (key, sample, ordinal) and of the element's place in its
 * sample in row-major order of the axes, never of layout, rank or microbatch. So the
 * gradient is the same operation on dy. */
#include "core/base/need.h"
#include "core/ops/ops.h"

ETI_INFER(dropout_infer)
{
    const struct et_dropout_attr *o = call->attr;
    ET_TRY(eti_need_ndim(cx, call, 0, "x", 1, ET_MAX_DIMS));
    ET_TRY(eti_need_float(cx, call, 0, "x"));
    ET_TRY(eti_need_dtype(cx, call, 1, "rng", ET_I64));
    ET_TRY(eti_need_shape(cx, call, 1, "rng", 1, (int64_t[]){2}));
    if (!(o->p >= 0 && o->p < 1))
        return ETI_FAIL(cx, call, ET_EINVAL, "probability %g is outside [0, 1)", o->p);
    eti_desc_same(out, call->in[0].dtype, &call->in[0]);
    return ET_OK;
}

ETI_GRADIENT(dropout_gradient)
{
    const struct et_dropout_attr *o = node->attr;
    if (want[0])
        dx[0] = et_dropout(g, dy[0], node->in[1], o->p, o->ordinal);
    return et_graph_status(g);
}

const struct et_op et_op_dropout = {
    .name = "dropout",
    .summary = "some elements zero, the others scaled so that the mean stays",
    .id = ET_OP_dropout,
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(struct et_dropout_attr),
    .infer = dropout_infer,
    .gradient = dropout_gradient,
};

struct et_tensor *
et_dropout(struct et_graph *g, struct et_tensor *x, struct et_tensor *rng, double p,
           uint64_t ordinal)
{
    ETI_NEED_IN(g, g);
    struct et_dropout_attr attr = {.p = p, .ordinal = ordinal};
    if (p == 0)
        return x;
    return ETI_APPLY_ATTR(g, dropout, &attr, NULL, x, rng);
}
