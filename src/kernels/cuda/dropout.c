/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.c: preparing dropout, whose mask kernels/ref/dropout.c defines. */
#include "kernels/cuda/dropout.h"

#include <math.h>
#include <stdio.h>

struct dropout_kernel {
    struct et_kernel base;
    struct etk_dropout dropout;
};

static et_status
run_dropout(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct dropout_kernel *k = (const struct dropout_kernel *)base;
    (void)ws;
    return etk_launched(
        base, etk_launch_dropout(&k->dropout, ptr[0], ptr[1], ptr[2], stream));
}

et_status
etk_prepare_dropout(struct et_device_handle *d, const struct et_call *call,
                    struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_dropout_attr *o = call->attr;
    const struct et_desc *x = &call->in[0], *y = &call->out[0];
    (void)ws;
    if (!et_dtype_is_float(x->dtype) || x->dtype != y->dtype ||
        call->in[1].dtype != ET_I64)
        return etk_refuse(why, why_size,
                          "dropout takes floats and a key of i64, not %s and %s",
                          et_dtype_name(x->dtype), et_dtype_name(call->in[1].dtype));
    struct dropout_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct etk_dropout *p = &k->dropout;
    p->dtype = x->dtype;
    p->ndim = x->ndim > 0 ? x->ndim : 1;
    for (int i = 0; i < p->ndim; i++) {
        p->shape[i] = i < x->ndim ? x->shape[i] : 1;
        p->x[i] = x->stride[i];
        p->y[i] = y->stride[i];
    }
    p->samples = p->shape[0];
    p->size = et_desc_count(x) / p->samples;
    p->dense = et_desc_is_contiguous(x, ET_ROW_MAJOR) &&
               et_desc_is_contiguous(y, ET_ROW_MAJOR);
    if (x->ndim == 4 && x->stride[1] == 1 && y->stride[1] == 1 &&
        x->shape[2] * x->shape[3] % 4 == 0)
        p->inner = x->shape[1];
    p->threshold = (uint32_t)ceil(o->p * 0x1p24);
    p->scale = 1 / (1 - o->p);
    p->ordinal = o->ordinal;
    p->rng_stride = call->in[1].stride[0];
    p->sm_count = d->gpu.sm_count;
    k->base.run = run_dropout;
    snprintf(k->base.what, sizeof k->base.what, "dropout%s",
             p->dense   ? ""
             : p->inner ? ", channels-last"
                        : ", strided");
    *out = &k->base;
    return ET_OK;
}
