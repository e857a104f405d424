/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: preparing cumsum and sort. */
#include "kernels/cuda/scan.h"

#include <stdio.h>

enum { SHARED_KEYS = 2048 }; /* of a line in shared memory: 16 KiB */

struct scan_kernel {
    struct et_kernel base;
    struct etk_scan scan;
};

static struct scan_kernel *
scan_new(struct et_device_handle *d, const struct et_call *call,
         const struct et_desc *const *side, int sides)
{
    const struct et_axis_attr *o = call->attr;
    struct scan_kernel *k = etk_new(sizeof *k);
    if (!k)
        return NULL;
    k->scan.dtype = call->in[0].dtype;
    k->scan.reverse = o->reverse;
    etk_lines_init(&k->scan.lines, d, o->axis, side, sides);
    return k;
}

static et_status
run_cumsum(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct scan_kernel *k = (const struct scan_kernel *)base;
    (void)ws;
    return etk_launched(base, etk_launch_cumsum(&k->scan, ptr[0], ptr[1], stream));
}

et_status
etk_prepare_cumsum(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    (void)ws;
    ET_TRY(etk_need_float(&call->in[0], "cumsum", why, why_size));
    struct scan_kernel *k =
        scan_new(d, call, (const struct et_desc *[]){&call->in[0], &call->out[0]}, 2);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_cumsum;
    snprintf(k->base.what, sizeof k->base.what, "cumsum, %s a line",
             k->scan.lines.team == 1 ? "a thread" : "a warp");
    *out = &k->base;
    return ET_OK;
}

static et_status
run_sort(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct scan_kernel *k = (const struct scan_kernel *)base;
    return etk_launched(
        base, etk_launch_sort(&k->scan, ptr[0], ptr[1], (int32_t *)ptr[2], ws, stream));
}

et_status
etk_prepare_sort(struct et_device_handle *d, const struct et_call *call,
                 struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    ET_TRY(etk_need_float(&call->in[0], "sort", why, why_size));
    /* A result that nobody wants stands as the other one. */
    const struct et_desc *value = &call->out[0], *place = &call->out[1];
    value = value->dtype == ET_NONE ? place : value;
    place = place->dtype == ET_NONE ? value : place;
    struct scan_kernel *k =
        scan_new(d, call, (const struct et_desc *[]){&call->in[0], value, place}, 3);
    if (!k)
        return ET_ENOMEM;
    struct etk_scan *s = &k->scan;
    for (s->size = 2; s->size < s->lines.n; s->size *= 2)
        ;
    s->shared = s->size <= SHARED_KEYS;
    int64_t count = s->lines.rest.count, most = 4 * (int64_t)d->gpu.sm_count;
    s->blocks = (unsigned)(count < most ? count : most);
    if (!s->shared)
        *ws = (size_t)s->blocks * (size_t)s->size * sizeof(uint64_t);
    k->base.run = run_sort;
    snprintf(k->base.what, sizeof k->base.what, "sort, a block a line, keys in %s",
             s->shared ? "shared memory" : "the workspace");
    *out = &k->base;
    return ET_OK;
}
