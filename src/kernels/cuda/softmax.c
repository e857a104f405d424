/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.c: preparing softmax and cross entropy. */
#include "kernels/cuda/softmax.h"

#include <stdio.h>

/* ---- softmax ---- */

struct softmax_kernel {
    struct et_kernel base;
    struct etk_softmax softmax;
};

static et_status
run_softmax(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct softmax_kernel *k = (const struct softmax_kernel *)base;
    (void)ws;
    return etk_launched(base, etk_launch_softmax(&k->softmax, ptr, stream));
}

et_status
etk_prepare_softmax(struct et_device_handle *d, const struct et_call *call,
                    struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_axis_attr *o = call->attr;
    (void)ws;
    ET_TRY(etk_need_float(&call->in[0], "softmax", why, why_size));
    struct softmax_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct etk_softmax *s = &k->softmax;
    s->dtype = call->in[0].dtype;
    s->grad = call->n_in > 1;
    s->logarithm = call->op == ET_OP_log_softmax || call->op == ET_OP_log_softmax_grad;
    const struct et_desc *side[3] = {&call->in[0]};
    for (int i = 1; i < call->n_in; i++)
        side[i] = &call->in[i];
    side[call->n_in] = &call->out[0];
    etk_lines_init(&s->lines, d, o->axis, side, call->n_in + 1);
    k->base.run = run_softmax;
    snprintf(k->base.what, sizeof k->base.what, "softmax, %d threads a line",
             s->lines.team);
    *out = &k->base;
    return ET_OK;
}

/* ---- cross entropy ---- */

struct cross_entropy_kernel {
    struct et_kernel base;
    struct etk_cross_entropy loss;
    bool weighted;
};

static et_status
run_cross_entropy(struct et_kernel *base, void *const *ptr, void *ws,
                  cudaStream_t stream)
{
    const struct cross_entropy_kernel *k = (const struct cross_entropy_kernel *)base;
    (void)ws;
    /* (logits, target, weight?) -> loss, lse */
    void *side[ETK_LINE_SIDES] = {ptr[0], ptr[1], ptr[2 + k->weighted],
                                  ptr[3 + k->weighted]};
    return etk_launched(base, etk_launch_cross_entropy(
                                  &k->loss, side, k->weighted ? ptr[2] : NULL, stream));
}

static et_status
run_cross_entropy_grad(struct et_kernel *base, void *const *ptr, void *ws,
                       cudaStream_t stream)
{
    const struct cross_entropy_kernel *k = (const struct cross_entropy_kernel *)base;
    (void)ws;
    /* (dloss, logits, target, lse, weight?) -> dlogits */
    void *side[ETK_LINE_SIDES] = {ptr[1], ptr[2], ptr[0], ptr[3], ptr[4 + k->weighted]};
    return etk_launched(base, etk_launch_cross_entropy(
                                  &k->loss, side, k->weighted ? ptr[4] : NULL, stream));
}

/* A left-out result stands as the other one: its pointer is NULL. An operand that is
 * left out at the end may be in the list as NULL. */
et_status
etk_prepare_cross_entropy(struct et_device_handle *d, const struct et_call *call,
                          struct et_kernel **out, size_t *ws, char *why,
                          size_t why_size)
{
    const struct et_cross_entropy_attr *o = call->attr;
    bool grad = call->op == ET_OP_cross_entropy_grad;
    int weight = grad ? 4 : 2;
    const struct et_desc *logits = &call->in[grad], *target = &call->in[grad + 1];
    (void)ws;
    ET_TRY(etk_need_float(logits, "cross entropy", why, why_size));
    if (target->dtype != ET_I32)
        ET_TRY(etk_need_float(target, "cross entropy of targets", why, why_size));
    struct cross_entropy_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    const struct et_desc *loss = grad ? &call->in[0] : &call->out[0];
    const struct et_desc *lse = grad ? &call->in[3] : &call->out[1];
    loss = loss->dtype == ET_NONE ? lse : loss;
    lse = lse->dtype == ET_NONE ? loss : lse;
    const struct et_desc *side[ETK_LINE_SIDES] = {logits, target, loss, lse,
                                                  &call->out[0]};
    struct etk_cross_entropy *c = &k->loss;
    etk_lines_init(&c->lines, d, 1, side, grad ? 5 : 4);
    c->dtype = logits->dtype;
    c->target = target->dtype;
    c->loss = loss->dtype;
    c->lse = lse->dtype;
    c->ignore = o->ignore_index;
    c->grad = grad;
    k->weighted = call->n_in > weight;
    if (k->weighted) {
        c->weight = call->in[weight].dtype;
        c->weight_step = call->in[weight].stride[0];
    }
    k->base.run = grad ? run_cross_entropy_grad : run_cross_entropy;
    snprintf(k->base.what, sizeof k->base.what, "cross entropy, %d threads a line",
             c->lines.team);
    *out = &k->base;
    return ET_OK;
}
