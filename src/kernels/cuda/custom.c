/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: operations of the user's own, which launch their kernels themselves. */
#include "kernels/custom.h"

#include <stdio.h>

#include "kernels/cuda/cuda.h"

struct custom_kernel {
    struct et_kernel base;
    struct etk_custom custom;
};

static et_status
run_custom(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct custom_kernel *k = (const struct custom_kernel *)base;
    char why[200] = "";
    struct et_custom_run run = etk_custom_run(&k->custom, ptr, ws, why, sizeof why);
    run.stream = stream;
    et_status status = k->custom.type->gpu(&run);
    if (status == ET_OK)
        return etk_launched(base, cudaGetLastError());
    (void)cudaGetLastError(); /* if it failed by that: the next kernel has not */
    etk_note(base->dev, why);
    return status;
}

static void
release_custom(struct et_kernel *base)
{
    etk_custom_free(&((struct custom_kernel *)base)->custom);
}

et_status
etk_prepare_custom(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    (void)d;
    const struct et_custom_class *type = etk_custom_type(call);
    if (!type->gpu)
        return etk_refuse(why, why_size, "its class has no function for a GPU");
    struct custom_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_custom;
    k->base.release = release_custom;
    snprintf(k->base.what, sizeof k->base.what, "custom %.50s", type->name);
    *ws = etk_custom_workspace(call);
    et_status status = etk_custom_init(&k->custom, call);
    if (status != ET_OK)
        etk_release(&k->base);
    else
        *out = &k->base;
    return status;
}
