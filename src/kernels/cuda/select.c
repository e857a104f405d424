/* SPDX-License-Identifier: Apache-2.0 */
/* select.c: preparing argmax and topk. */
#include "kernels/cuda/select.h"

#include <stdio.h>

enum { FEW = 32 }; /* so many are found by looking again and again */

struct select_kernel {
    struct et_kernel base;
    struct etk_select select;
};

static et_status
run_select(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct select_kernel *k = (const struct select_kernel *)base;
    (void)ws;
    bool top = k->select.k > 0;
    return etk_launched(base,
                        etk_launch_select(&k->select, ptr[0], top ? ptr[1] : NULL,
                                          (int32_t *)(top ? ptr[2] : ptr[1]), stream));
}

et_status
etk_prepare_select(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    bool top = call->op == ET_OP_topk;
    (void)ws;
    ET_TRY(etk_need_float(x, top ? "topk" : "argmax", why, why_size));
    struct select_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    /* A result that nobody wants stands as the other one. */
    const struct et_desc *value = &call->out[0], *index = &call->out[top];
    value = value->dtype == ET_NONE ? index : value;
    index = index->dtype == ET_NONE ? value : index;
    struct etk_select *s = &k->select;
    s->dtype = x->dtype;
    s->k = top ? o->n : 0;
    s->ranks = s->k > FEW;
    etk_lines_init(&s->lines, d, top ? x->ndim - 1 : o->axis,
                   (const struct et_desc *[]){x, value, index}, 3);
    k->base.run = run_select;
    snprintf(k->base.what, sizeof k->base.what, "%s, %d threads a line",
             s->ranks ? "topk by ranks" : "select", s->lines.team);
    *out = &k->base;
    return ET_OK;
}
