/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: preparing pooling and resizing of images. */
#include "kernels/cuda/pool.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cuda/lines.h"
#include "kernels/cuda/reduce.h"

/* The kernels count pixels of a plane, and products of two lengths, in 31 bits. */
static et_status
need_small(const struct et_desc *a, const struct et_desc *b, const char *op, char *why,
           size_t why_size)
{
    for (int i = 2; i < 4; i++)
        if ((a->shape[i] + 1) * (b->shape[i] + 1) > INT32_MAX ||
            a->shape[2] * a->shape[3] > INT32_MAX ||
            b->shape[2] * b->shape[3] > INT32_MAX)
            return etk_refuse(
                why, why_size,
                "%s from %lldx%lld to %lldx%lld pixels; a plane has fewer "
                "than 2^31",
                op, (long long)a->shape[2], (long long)a->shape[3],
                (long long)b->shape[2], (long long)b->shape[3]);
    return etk_need_float(a, op, why, why_size);
}

/* Packs of channels begin at multiples of 16 bytes in an image that does. */
static bool
in_packs(const struct et_desc *d, int64_t lanes)
{
    return d->stride[1] == 1 && d->shape[1] % lanes == 0 && d->stride[0] % lanes == 0 &&
           d->stride[2] % lanes == 0 && d->stride[3] % lanes == 0;
}

static bool
aligned(const void *a, const void *b, const void *c)
{
    return (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) & 15) == 0;
}

/* ---- pooling ---- */

struct pool_kernel {
    struct et_kernel base;
    struct etk_pool pool;
};

/* x -> y, index */
static et_status
run_pool(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct etk_pool *p = &((const struct pool_kernel *)base)->pool;
    (void)ws;
    int32_t *index = p->op == ET_OP_max_pool2d ? ptr[2] : NULL;
    bool packs = p->neighbours && aligned(ptr[0], ptr[1], index);
    return etk_launched(base, etk_launch_pool(p, packs, ptr[0], index, ptr[1], stream));
}

/* dy, index -> dx; dy -> dx */
static et_status
run_pool_grad(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct etk_pool *p = &((const struct pool_kernel *)base)->pool;
    (void)ws;
    bool max = p->op == ET_OP_max_pool2d_grad;
    int32_t *index = max ? ptr[1] : NULL;
    void *dx = ptr[max ? 2 : 1];
    bool packs = p->neighbours && aligned(ptr[0], index, dx);
    return etk_launched(base, etk_launch_pool(p, packs, ptr[0], index, dx, stream));
}

static struct etk_window
window_of(const struct et_pool2d_attr *o, int axis, const struct et_desc *large,
          const struct et_desc *small)
{
    return (struct etk_window){
        .large = (int)large->shape[2 + axis],
        .small = (int)small->shape[2 + axis],
        .kernel = o->kernel[axis],
        .stride = o->stride[axis] ? o->stride[axis] : 1,
        .pad = o->pad[axis],
        .step = o->dilation[axis] ? o->dilation[axis] : 1,
    };
}

/* One window over each whole plane: a sum over rows and columns. */
static bool
is_whole(const struct etk_pool *p)
{
    return p->h.small == 1 && p->w.small == 1 &&
           (p->adaptive || (p->h.kernel == p->h.large && p->w.kernel == p->w.large &&
                            p->h.pad == 0 && p->w.pad == 0));
}

et_status
etk_prepare_pool(struct et_device_handle *d, const struct et_call *call,
                 struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    enum { ROWS_AND_COLUMNS = 1 << 2 | 1 << 3 };
    const struct et_pool2d_attr *o = call->attr;
    enum et_op_id op = call->op;
    bool max = op == ET_OP_max_pool2d || op == ET_OP_max_pool2d_grad;
    bool grad = op == ET_OP_max_pool2d_grad || op == ET_OP_avg_pool2d_grad ||
                op == ET_OP_adaptive_avg_pool2d_grad;
    const struct et_desc *index = !max ? NULL : grad ? &call->in[1] : &call->out[1];
    const struct et_desc *small = grad ? &call->in[0] : &call->out[0];
    const struct et_desc *large = grad ? &call->out[0] : &call->in[0];
    if (small->dtype == ET_NONE)
        small = index; /* which alone is wanted */
    ET_TRY(need_small(large, small, "pooling", why, why_size));
    struct etk_pool p = {
        .op = op,
        .dtype = large->dtype,
        .adaptive =
            op == ET_OP_adaptive_avg_pool2d || op == ET_OP_adaptive_avg_pool2d_grad,
        .include_pad = o->count_include_pad,
        .h = window_of(o, 0, large, small),
        .w = window_of(o, 1, large, small),
        .n = large->shape[0],
        .c = large->shape[1],
        .sm_count = d->gpu.sm_count,
    };
    if (!max && !grad && is_whole(&p))
        return etk_new_reduce(d, ET_OP_sum, large, small, ROWS_AND_COLUMNS,
                              1 / ((double)p.h.large * p.w.large), out, ws);
    int64_t lanes = 16 / (int64_t)et_dtype_size(large->dtype);
    p.neighbours = in_packs(large, lanes) && in_packs(small, lanes);
    memcpy(p.large, large->stride, sizeof p.large);
    memcpy(p.small, small->stride, sizeof p.small);
    if (index && index->dtype != ET_NONE) {
        p.neighbours &= in_packs(index, lanes);
        memcpy(p.index, index->stride, sizeof p.index);
    }
    struct pool_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->pool = p;
    k->base.run = grad ? run_pool_grad : run_pool;
    snprintf(k->base.what, sizeof k->base.what, "pool%s",
             p.neighbours ? ", 16 bytes at once" : "");
    *out = &k->base;
    return ET_OK;
}

/* ---- resizing ---- */

struct resize_kernel {
    struct et_kernel base;
    struct etk_resize resize;
};

static et_status
run_resize(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct etk_resize *r = &((const struct resize_kernel *)base)->resize;
    (void)ws;
    bool packs = r->neighbours && aligned(ptr[0], ptr[1], NULL);
    return etk_launched(base, etk_launch_resize(r, packs, ptr[0], ptr[1], stream));
}

et_status
etk_prepare_resize(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_resize_attr *o = call->attr;
    const struct et_desc *from = &call->in[0], *to = &call->out[0];
    bool grad = call->op == ET_OP_resize2d_grad;
    const struct et_desc *source = grad ? to : from, *result = grad ? from : to;
    (void)ws;
    ET_TRY(need_small(from, to, "resizing", why, why_size));
    struct resize_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    int64_t lanes = 16 / (int64_t)et_dtype_size(from->dtype);
    k->resize = (struct etk_resize){
        .dtype = from->dtype,
        .grad = grad,
        .nearest = o->mode == ET_RESIZE_NEAREST,
        .n = from->shape[0],
        .c = from->shape[1],
        .size = {(int)source->shape[2], (int)source->shape[3]},
        .result = {(int)result->shape[2], (int)result->shape[3]},
        .scale = {(float)o->scale[0], (float)o->scale[1]},
        .neighbours = in_packs(from, lanes) && in_packs(to, lanes),
        .sm_count = d->gpu.sm_count,
    };
    memcpy(k->resize.from, from->stride, sizeof k->resize.from);
    memcpy(k->resize.to, to->stride, sizeof k->resize.to);
    k->base.run = run_resize;
    snprintf(k->base.what, sizeof k->base.what, "resize%s",
             k->resize.neighbours ? ", 16 bytes at once" : "");
    *out = &k->base;
    return ET_OK;
}
