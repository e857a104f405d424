/* SPDX-License-Identifier: Apache-2.0 */
/* random.c: preparing random, whose numbers kernels/ref/random.c defines. */
#include "kernels/cuda/random.h"

#include <math.h>
#include <stdio.h>

struct random_kernel {
    struct et_kernel base;
    struct etk_random random;
};

static et_status
run_random(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct random_kernel *k = (const struct random_kernel *)base;
    (void)ws;
    return etk_launched(base, etk_launch_random(&k->random, ptr[0], ptr[1], stream));
}

et_status
etk_prepare_random(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_random_attr *o = call->attr;
    const struct et_desc *y = &call->out[0];
    (void)ws;
    if (y->dtype != ET_F32 || call->in[0].dtype != ET_I64)
        return etk_refuse(why, why_size,
                          "random makes f32 of a key of i64, not %s of %s",
                          et_dtype_name(y->dtype), et_dtype_name(call->in[0].dtype));
    struct random_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct etk_random *p = &k->random;
    p->kind = (enum et_random_kind)o->kind;
    p->ndim = y->ndim;
    for (int i = 0; i < y->ndim; i++) {
        p->shape[i] = y->shape[i];
        p->y[i] = y->stride[i];
    }
    p->samples = y->shape[0];
    p->size = et_desc_count(y) / p->samples;
    p->threshold = (uint32_t)ceil(o->p * 0x1p24);
    p->ordinal = o->ordinal;
    p->rng_stride = call->in[0].stride[0];
    p->sm_count = d->gpu.sm_count;
    k->base.run = run_random;
    snprintf(k->base.what, sizeof k->base.what, "random");
    *out = &k->base;
    return ET_OK;
}
