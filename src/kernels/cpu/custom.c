/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: operations of the user's own: items shared out to threads. */
#include "kernels/custom.h"

#include <stdio.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tiles.h"

struct custom_kernel {
    struct et_kernel base;
    struct etk_custom custom;
    struct et_device_handle *dev;
    int64_t items;
    int pieces;
};

/* A thread has failed: the first one's status and sentence stay. */
static void
note(struct custom_kernel *k, et_status *status, et_status failed, const char *why)
{
#pragma omp critical(etk_custom)
    if (*status == ET_OK) {
        *status = failed;
        snprintf(k->dev->why, sizeof k->dev->why, "%s", why);
    }
}

static et_status
run_custom(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    struct custom_kernel *k = (struct custom_kernel *)kernel;
    et_status status = ET_OK;
#pragma omp parallel for schedule(static, 1) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t i = 0; i < k->pieces; i++) {
        char why[sizeof k->dev->why] = "";
        struct et_custom_run run = etk_custom_run(&k->custom, ptr, ws, why, sizeof why);
        run.begin = k->items * i / k->pieces;
        run.end = k->items * (i + 1) / k->pieces;
        et_status own = k->custom.type->host(&run);
        if (own != ET_OK)
            note(k, &status, own, why);
    }
    return status;
}

static void
release_custom(struct et_kernel *kernel)
{
    etk_custom_free(&((struct custom_kernel *)kernel)->custom);
}

/* Elements of the largest array. */
static int64_t
work_of(const struct et_call *call)
{
    int64_t most = 0;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const struct et_desc *d =
            i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        int64_t n = d->dtype == ET_NONE ? 0 : et_desc_count(d);
        most = n > most ? n : most;
    }
    return most;
}

et_status
etk_prepare_custom(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    if (!etk_custom_type(call)->host)
        return etk_refuse(why, why_size, "its class has no host function");
    struct custom_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_custom;
    k->base.release = release_custom;
    k->base.what = "custom";
    k->dev = d;
    k->items = etk_custom_items(call);
    bool shared = k->items > 1 && work_of(call) >= ETK_PARALLEL_COUNT;
    k->pieces = !shared ? 1 : k->items < d->threads ? (int)k->items : d->threads;
    *ws = etk_custom_workspace(call);
    et_status status = etk_custom_init(&k->custom, call);
    if (status != ET_OK)
        etk_release(&k->base);
    else
        *out = &k->base;
    return status;
}
