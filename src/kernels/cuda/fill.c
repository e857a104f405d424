/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c: preparing constants. */
#include "kernels/cuda/fill.h"

#include <stdio.h>

struct fill_kernel {
    struct et_kernel base;
    struct etk_fill fill;
};

static et_status
run_fill(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    struct fill_kernel *k = (struct fill_kernel *)base;
    (void)ws;
    return etk_launched(base, etk_launch_fill(&k->fill, ptr[0], stream));
}

et_status
etk_prepare_fill(struct et_device_handle *d, const struct et_call *call,
                 struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_shape_attr *attr = call->attr;
    bool counts = call->op == ET_OP_iota;
    (void)ws;
    if (!et_desc_is_dense(&call->out[0]))
        return etk_refuse(why, why_size,
                          "constants are written into dense arrays only");
    struct fill_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_fill;
    k->fill = (struct etk_fill){
        .dtype = call->out[0].dtype,
        .count = et_desc_count(&call->out[0]),
        .start = counts ? 0 : attr->value,
        .step = counts ? 1 : 0,
        .sm_count = d->gpu.sm_count,
    };
    snprintf(k->base.what, sizeof k->base.what, "fill");
    *out = &k->base;
    return ET_OK;
}
