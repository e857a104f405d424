/* SPDX-License-Identifier: Apache-2.0 */
/* segment.c: preparing sums of squares of stretches of rows. */
#include "kernels/cuda/segment.h"

#include <stdio.h>

struct segment_kernel {
    struct et_kernel base;
    struct etk_segments s;
};

static et_status
run_segment(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct segment_kernel *k = (const struct segment_kernel *)base;
    return etk_launched(base,
                        etk_launch_segments(&k->s, ptr[0], ptr[1], ptr[2], ws, stream));
}

/* The axes of X as they come, which etk_walk_init would sort; those that run on as one
 * are one. */
static void
walk_in_order(struct etk_walk *w, const struct et_desc *x)
{
    *w = (struct etk_walk){.ndim = 1, .sides = 1, .count = et_desc_count(x)};
    w->shape[0] = w->stride[0][0] = 1;
    for (int i = 0; i < x->ndim; i++) {
        int last = w->ndim - 1;
        if (x->shape[i] == 1)
            continue;
        if (w->shape[last] == 1)
            w->shape[last] = x->shape[i];
        else if (w->stride[0][last] == x->shape[i] * x->stride[i])
            w->shape[last] *= x->shape[i];
        else
            w->shape[last = w->ndim++] = x->shape[i];
        w->stride[0][last] = x->stride[i];
    }
}

et_status
etk_prepare_segment(struct et_device_handle *d, const struct et_call *call,
                    struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_desc *x = &call->in[0], *first = &call->in[1], *y = &call->out[0];
    (void)d, (void)why, (void)why_size;
    struct segment_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct etk_segments *s = &k->s;
    s->dtype = x->dtype;
    walk_in_order(&s->walk, x);
    s->plain = s->walk.ndim == 1 && s->walk.stride[0][0] == 1;
    s->rows = x->shape[0];
    s->width = s->rows > 0 ? s->walk.count / s->rows : 0;
    s->n = y->shape[0];
    s->step = first->stride[0];
    s->to = y->stride[0];
    s->parts = s->walk.count / ETK_SEGMENT_PART + s->n;
    *ws = (size_t)s->parts * et_dtype_size(y->dtype);
    k->base.run = run_segment;
    snprintf(k->base.what, sizeof k->base.what, "segments, %lld parts",
             (long long)s->parts);
    *out = &k->base;
    return ET_OK;
}
