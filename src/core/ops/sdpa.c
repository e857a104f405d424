/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa.c: attention, o = softmax(scale q k^T + bias) v, of each of B times H heads.
 *
 *   q o [B,H,T,D], k v [B,H,S,D], bias [1|B,H,1|T,S]?, lse [B,H,T]
 *
 * lse, the log of each row's sum of exponentials, is what the gradient needs to find
 * the probabilities again without keeping them (2205.14135). Bias gets no gradient.
 * Results lie as their operands do: heads that are slices of packed rows give rows of
 * heads side by side, so that merging them afterwards is a view. */
#include "core/base/need.h"
#include "core/ops/ops.h"

#include <math.h>

/* Checks q, k, v from operand I on, and the bias, operand J. */
static et_status
check_heads(struct et_ctx *cx, const struct et_call *call, int i, int j)
{
    const int64_t *q = call->in[i].shape;
    int64_t kv[4], bias[4];

    ET_TRY(eti_need_ndim(cx, call, i, "q", 4, 4));
    ET_TRY(eti_need_float(cx, call, i, "q"));
    ET_TRY(eti_need_ndim(cx, call, i + 1, "k", 4, 4));
    memcpy(kv, q, sizeof kv);
    kv[2] = call->in[i + 1].shape[2];
    for (int n = 1; n < 3; n++) {
        ET_TRY(eti_need_dtype(cx, call, i + n, n == 1 ? "k" : "v", call->in[i].dtype));
        ET_TRY(eti_need_shape(cx, call, i + n, n == 1 ? "k" : "v", 4, kv));
    }
    const struct et_desc *b = eti_operand(call, j);
    if (!b)
        return ET_OK;
    ET_TRY(eti_need_ndim(cx, call, j, "bias", 4, 4));
    memcpy(bias, (int64_t[]){q[0], q[1], q[2], kv[2]}, sizeof bias);
    for (int n = 0; n < 3; n += 2)
        if (b->shape[n] == 1)
            bias[n] = 1;
    return eti_may_shape(cx, call, j, "bias", 4, bias);
}

ETI_INFER(sdpa_infer)
{
    const struct et_desc *q = &call->in[0];
    ET_TRY(check_heads(cx, call, 0, 3));
    et_desc_like(&out[0], q->dtype, 4, q->shape, q);
    et_desc_init(&out[1], eti_wide(q->dtype), 3, q->shape, ET_ROW_MAJOR);
    return ET_OK;
}

ETI_INFER(sdpa_grad_infer)
{
    const struct et_desc *q = &call->in[1];
    ET_TRY(check_heads(cx, call, 1, 6));
    ET_TRY(eti_need_shape(cx, call, 0, "do", 4, q->shape));
    ET_TRY(eti_need_shape(cx, call, 4, "o", 4, q->shape));
    ET_TRY(eti_need_shape(cx, call, 5, "lse", 3, q->shape));
    for (int i = 0; i < 3; i++)
        et_desc_like(&out[i], q->dtype, 4, call->in[1 + i].shape, &call->in[1 + i]);
    return ET_OK;
}

/* Products of T x D and S x D matrices: two forward, five back; half of them if
 * causal. */
static int64_t
products(const struct et_call *call, int i, int64_t n)
{
    const struct et_sdpa_attr *o = call->attr;
    int64_t s = call->in[i + 1].shape[2];
    return 2 * n * et_desc_count(&call->in[i]) * s / (o->causal ? 2 : 1);
}

static int64_t
sdpa_flops(const struct et_call *call)
{
    return products(call, 0, 2);
}

static int64_t
sdpa_grad_flops(const struct et_call *call)
{
    return products(call, 1, 5);
}

ETI_GRADIENT(sdpa_gradient)
{
    const struct et_sdpa_attr *o = node->attr;
    struct et_tensor *q = node->in[0], *k = node->in[1], *v = node->in[2];
    struct et_tensor *y = &node->out[0], *lse = &node->out[1], *grads[3] = {NULL};
    struct et_tensor *bias = node->n_in > 3 ? node->in[3] : NULL;

    if (bias)
        ETI_APPLY_ATTR(g, sdpa_grad, o, grads, dy[0], q, k, v, y, lse, bias);
    else
        ETI_APPLY_ATTR(g, sdpa_grad, o, grads, dy[0], q, k, v, y, lse);
    for (int i = 0; i < 3; i++)
        if (want[i])
            dx[i] = grads[i];
    return et_graph_status(g);
}

const struct et_op et_op_sdpa = {
    .name = "sdpa",
    .summary = "scaled dot-product attention",
    .id = ET_OP_sdpa,
    .min_in = 3,
    .max_in = 4,
    .n_out = 2,
    .attr_size = sizeof(struct et_sdpa_attr),
    .flags = ET_OPF_PRODUCT,
    .infer = sdpa_infer,
    .gradient = sdpa_gradient,
    .flops = sdpa_flops,
};

const struct et_op et_op_sdpa_grad = {
    .name = "sdpa_grad",
    .summary = "gradients of sdpa",
    .id = ET_OP_sdpa_grad,
    .flags = ET_OPF_STRIDED | ET_OPF_PRODUCT,
    .min_in = 6,
    .max_in = 7,
    .n_out = 3,
    .attr_size = sizeof(struct et_sdpa_attr),
    .infer = sdpa_grad_infer,
    .flops = sdpa_grad_flops,
};

/* A bias shared by the heads, repeated for each. */
static struct et_tensor *
per_head(struct et_graph *g, struct et_tensor *bias, const struct et_tensor *q)
{
    int64_t shape[ET_MAX_DIMS];
    if (bias->desc.ndim != 4 || bias->desc.shape[1] != 1 || q->desc.ndim != 4)
        return bias;
    memcpy(shape, bias->desc.shape, sizeof shape);
    shape[1] = q->desc.shape[1];
    return et_expand(g, bias, 4, shape);
}

struct et_tensor *
et_sdpa(struct et_graph *g, struct et_tensor *q, struct et_tensor *k,
        struct et_tensor *v, struct et_tensor *bias, bool causal, double scale)
{
    ETI_NEED_IN(g, g);
    struct et_sdpa_attr attr = {.scale = scale, .causal = causal};

    if (!q || !k || !v)
        return ETI_MISSING(g, q, k, v);
    if (attr.scale == 0 && q->desc.ndim == 4)
        attr.scale = 1 / sqrt((double)q->desc.shape[3]);
    if (!bias)
        return ETI_APPLY_ATTR(g, sdpa, &attr, NULL, q, k, v);
    bias = per_head(g, bias, q);
    return bias ? ETI_APPLY_ATTR(g, sdpa, &attr, NULL, q, k, v, bias) : NULL;
}
