/* SPDX-License-Identifier: Apache-2.0 */
/* loops_move.c: arrays put together from copies: concat, pack, pad, flip, fill, iota.
 *
 * Each is a list of strided copies into parts of the result; a number is a copy from
 * strides of 0, a flip one from strides below 0. Moves each element once. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/loops.h"

#include "kernels/cpu/loops_convert.h"

struct job {
    struct etk_copy copy;
    int source;       /* operand; -1: the number */
    int64_t to, from; /* first elements */
};

struct move_kernel {
    struct et_kernel base;
    int n_in, n_jobs;
    double number[1]; /* as the dtype holds it */
    struct job job[];
};

static et_status
run_move(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    (void)ws;
    const struct move_kernel *k = (const struct move_kernel *)kernel;
    for (int i = 0; i < k->n_jobs; i++) {
        const struct job *j = &k->job[i];
        int64_t size = (int64_t)j->copy.size;
        const char *from = j->source < 0 ? (const char *)k->number : ptr[j->source];
        char *to = (char *)ptr[k->n_in] + j->to * size;
        from += j->from * size;
        if (from != to) /* a part of a pack may lie in its place already */
            ETK_NAME(etk_copy_run)(&j->copy, to, from);
    }
    return ET_OK;
}

static struct move_kernel *
move_new(const struct et_call *call, int max_jobs, double number)
{
    struct move_kernel *k = etk_new(sizeof *k + (size_t)max_jobs * sizeof k->job[0]);
    if (!k)
        return NULL;
    k->n_in = call->n_in;
    k->base.run = run_move;
    k->base.what = "loop:move";
    etk_stores[call->out[0].dtype][1](&number, k->number, 1, 1);
    return k;
}

/* Copies FROM to the part of the result that TO describes. */
static void
add_job(struct move_kernel *k, const struct et_desc *to, int64_t to_offset, int source,
        const struct et_desc *from, int64_t from_offset)
{
    if (et_desc_count(to) == 0)
        return;
    struct job *j = &k->job[k->n_jobs++];
    etk_copy_init(&j->copy, to, from);
    j->source = source;
    j->to = to_offset;
    j->from = from_offset;
}

static void
add_number(struct move_kernel *k, const struct et_desc *to, int64_t to_offset)
{
    struct et_desc zero = *to;
    memset(zero.stride, 0, sizeof zero.stride);
    add_job(k, to, to_offset, -1, &zero, 0);
}

#define PREPARE(name)                                                                  \
    et_status ETK_NAME(etk_prepare_##name)(                                            \
        struct et_device_handle * d, const struct et_call *call,                       \
        struct et_kernel **out, size_t *ws, char *why, size_t why_size)
#define UNUSED() (void)d, (void)ws, (void)why, (void)why_size

PREPARE(fill)
{
    UNUSED();
    const struct et_shape_attr *o = call->attr;
    struct move_kernel *k = move_new(call, 1, o->value);
    if (!k)
        return ET_ENOMEM;
    add_number(k, &call->out[0], 0);
    *out = &k->base;
    return ET_OK;
}

PREPARE(concat)
{
    UNUSED();
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *y = &call->out[0];
    struct move_kernel *k = move_new(call, call->n_in, 0);
    if (!k)
        return ET_ENOMEM;
    int64_t at = 0;
    for (int i = 0; i < call->n_in; i++) {
        struct et_desc part = *y;
        part.shape[o->axis] = call->in[i].shape[o->axis];
        add_job(k, &part, at * y->stride[o->axis], i, &call->in[i], 0);
        at += part.shape[o->axis];
    }
    *out = &k->base;
    return ET_OK;
}

/* The strides X would have, were it dense in its memory order. */
static struct et_desc
packed(const struct et_desc *x)
{
    struct et_desc d = *x;
    for (int i = 0; i < x->ndim; i++) {
        d.stride[i] = 1;
        for (int j = 0; j < x->ndim; j++)
            if (x->stride[j] < x->stride[i] || (x->stride[j] == x->stride[i] && j > i))
                d.stride[i] *= x->shape[j];
    }
    return d;
}

/* The present input that lies first from element BEGIN on; after those of the same
 * place up to AFTER; -1: none. */
static int
next_part(const struct et_call *call, int64_t begin, int after)
{
    const struct et_pack_attr *o = call->attr;
    int best = -1;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i].dtype != ET_NONE &&
            (o->offset[i] > begin || (o->offset[i] == begin && i > after)) &&
            (best < 0 || o->offset[i] < o->offset[best]))
            best = i;
    return best;
}

/* In the order of their places, with zeros between the arrays. */
PREPARE(pack)
{
    UNUSED();
    const struct et_pack_attr *o = call->attr;
    const struct et_desc *y = &call->out[0];
    struct move_kernel *k = move_new(call, 2 * call->n_in + 1, 0);
    if (!k)
        return ET_ENOMEM;
    struct et_desc gap = *y;
    int64_t end = 0;
    for (int i = next_part(call, 0, -1); i >= 0; i = next_part(call, o->offset[i], i)) {
        struct et_desc part = packed(&call->in[i]);
        for (int axis = 0; axis < part.ndim; axis++)
            part.stride[axis] *= y->stride[0];
        gap.shape[0] = o->offset[i] > end ? o->offset[i] - end : 0;
        add_number(k, &gap, end * y->stride[0]);
        add_job(k, &part, o->offset[i] * y->stride[0], i, &call->in[i], 0);
        /* (A part of nothing may lie in the place of one that is longer.) */
        if (end < o->offset[i] + et_desc_count(&part))
            end = o->offset[i] + et_desc_count(&part);
    }
    gap.shape[0] = o->total - end;
    add_number(k, &gap, end * y->stride[0]);
    *out = &k->base;
    return ET_OK;
}

static int64_t
clamped(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The border of axis i is what lies outside on it and inside on those before: slabs
 * that do not overlap. A negative border cuts off. The operand may lie in its place
 * already. */
PREPARE(pad)
{
    UNUSED();
    const struct et_pad_attr *o = call->attr;
    const struct et_desc *x = &call->in[0], *y = &call->out[0];
    struct move_kernel *k = move_new(call, 1 + 2 * ET_MAX_DIMS, o->value);
    if (!k)
        return ET_ENOMEM;
    struct et_desc inside = *y, from = *x;
    int64_t to_offset = 0, from_offset = 0;
    for (int i = 0; i < y->ndim; i++) {
        int64_t begin = clamped(o->before[i], 0, y->shape[i]);
        int64_t end = clamped(o->before[i] + x->shape[i], begin, y->shape[i]);
        struct et_desc slab = inside;
        slab.shape[i] = begin;
        add_number(k, &slab, to_offset);
        slab.shape[i] = y->shape[i] - end;
        add_number(k, &slab, to_offset + end * y->stride[i]);
        inside.shape[i] = from.shape[i] = end - begin;
        to_offset += begin * y->stride[i];
        from_offset += (begin - o->before[i]) * x->stride[i];
    }
    add_job(k, &inside, to_offset, 0, &from, from_offset);
    *out = &k->base;
    return ET_OK;
}

PREPARE(flip)
{
    UNUSED();
    const struct et_flip_attr *o = call->attr;
    struct et_desc from = call->in[0];
    struct move_kernel *k = move_new(call, 1, 0);
    if (!k)
        return ET_ENOMEM;
    int64_t offset = 0;
    for (int i = 0; i < from.ndim; i++)
        if (o->axes >> i & 1) {
            offset += (from.shape[i] - 1) * from.stride[i];
            from.stride[i] = -from.stride[i];
        }
    add_job(k, &call->out[0], 0, 0, &from, offset);
    *out = &k->base;
    return ET_OK;
}

/* ---- iota: 0, 1, 2, ... ---- */

struct iota_kernel {
    struct et_kernel base;
    int64_t n, stride;
    size_t size;
    etk_store_fn *store;
};

static et_status
run_iota(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    (void)ws;
    const struct iota_kernel *k = (const struct iota_kernel *)kernel;
    for (int64_t i = 0; i < k->n; i++) {
        double v = (double)i;
        k->store(&v, (char *)ptr[0] + i * k->stride * (int64_t)k->size, 1, 1);
    }
    return ET_OK;
}

PREPARE(iota)
{
    UNUSED();
    struct iota_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->n = et_desc_count(&call->out[0]);
    k->stride = call->out[0].ndim > 0 ? call->out[0].stride[0] : 1;
    k->size = et_dtype_size(call->out[0].dtype);
    k->store = etk_stores[call->out[0].dtype][1];
    k->base.run = run_iota;
    k->base.what = "loop:iota";
    *out = &k->base;
    return ET_OK;
}
