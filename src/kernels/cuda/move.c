/* SPDX-License-Identifier: Apache-2.0 */
/* move.c: preparing copies, and arrays put together from copies: concat, pack, pad,
 * flip.
 *
 * Each is a list of strided copies into parts of the result; borders are copies of a
 * number, a flip one from negative strides. Copies that are one stretch of memory on
 * both sides share launches: 300 gradients without gaps are packed by 10. */
#include "kernels/cuda/move.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PREPARE(name)                                                                  \
    et_status etk_prepare_##name(struct et_device_handle *d,                           \
                                 const struct et_call *call, struct et_kernel **out,   \
                                 size_t *ws, char *why, size_t why_size)
#define UNUSED() (void)ws, (void)why, (void)why_size

struct job {
    int source;                  /* operand; NUMBER */
    int64_t to, from;            /* first bytes */
    bool stretch;                /* all of both sides runs on */
    struct etk_rows wide, plain; /* in the largest units, and in elements */
};
enum { NUMBER = -1 };

struct move_kernel {
    struct et_kernel base;
    int n_in, n_jobs, sm_count;
    bool has_number;                       /* that is not made of zero bytes */
    _Alignas(16) unsigned char number[16]; /* as the dtype holds it, again and again */
    struct job job[];
};

/* ---- running ---- */

static et_status
run_move(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct move_kernel *k = (const struct move_kernel *)base;
    struct etk_batch batch = {.n = 0};
    (void)ws;
    for (int i = 0; i < k->n_jobs; i++) {
        const struct job *j = &k->job[i];
        char *to = (char *)ptr[k->n_in] + j->to;
        const char *from =
            j->source == NUMBER ? NULL : (char *)ptr[j->source] + j->from;
        cudaError_t code = cudaSuccess;
        if (from == to) /* a part of a pack that lies in its place already */
            continue;
        if (j->stretch) {
            batch.to[batch.n] = to;
            batch.from[batch.n] = from;
            batch.bytes[batch.n++] = j->plain.count * j->plain.unit;
        } else {
            bool fits = ((uintptr_t)to | (uintptr_t)from) % (unsigned)j->wide.unit == 0;
            code = etk_launch_rows(fits ? &j->wide : &j->plain, to, from, k->number,
                                   k->sm_count, stream);
        }
        if (code == cudaSuccess && batch.n == ETK_BATCH) {
            code = etk_launch_batch(&batch, stream);
            batch.n = 0;
        }
        ET_TRY(etk_launched(base, code));
    }
    return batch.n ? etk_launched(base, etk_launch_batch(&batch, stream)) : ET_OK;
}

/* ---- preparing ---- */

/* The largest unit into which the last axis and the other strides divide. */
static int
largest_unit(const struct etk_walk *w, int size)
{
    int last = w->ndim - 1, most = 16 / size;
    if (w->stride[0][last] != 1 || w->stride[1][last] != 1)
        return size;
    for (; most > 1; most /= 2) {
        bool fits = w->shape[last] % most == 0;
        for (int i = 0; i < last && fits; i++)
            fits = w->stride[0][i] % most == 0 && w->stride[1][i] % most == 0;
        if (fits)
            break;
    }
    return most * size;
}

/* Squares pay where both of their sides are long enough to fill a sector of 32
 * bytes. */
static int
turned_axis(const struct etk_walk *w)
{
    int last = w->ndim - 1;
    if (w->stride[0][last] != 1 || w->stride[1][last] == 1 || w->shape[last] < 8)
        return -1;
    for (int i = 0; i < last; i++)
        if (w->stride[1][i] == 1 && w->shape[i] >= 8)
            return i;
    return -1;
}

static struct etk_rows
rows_of(const struct etk_walk *w, int size, int unit)
{
    struct etk_rows r = {.unit = unit, .ndim = w->ndim, .turned = -1};
    int last = w->ndim - 1, each = unit / size;
    r.count = w->count / each;
    for (int i = 0; i <= last; i++) {
        r.shape[i] = w->shape[i] / (i == last ? each : 1);
        r.to[i] = i == last ? w->stride[0][i] : w->stride[0][i] / each;
        r.from[i] = i == last ? w->stride[1][i] : w->stride[1][i] / each;
    }
    if (unit == size)
        r.turned = turned_axis(w);
    return r;
}

static struct move_kernel *
move_new(struct et_device_handle *d, const struct et_call *call, int max_jobs,
         const char *what)
{
    struct move_kernel *k = etk_new(sizeof *k + (size_t)max_jobs * sizeof k->job[0]);
    if (!k)
        return NULL;
    k->n_in = call->n_in;
    k->sm_count = d->gpu.sm_count;
    k->base.run = run_move;
    snprintf(k->base.what, sizeof k->base.what, "%s", what);
    return k;
}

/* Copies FROM to the part of the result that TO describes; offsets in elements. */
static void
add_job(struct move_kernel *k, const struct et_desc *to, int64_t to_offset, int source,
        const struct et_desc *from, int64_t from_offset)
{
    const struct et_desc *side[2] = {to, from};
    struct etk_walk w;
    int64_t size = (int64_t)et_dtype_size(to->dtype);
    if (et_desc_count(to) == 0)
        return;
    struct job *j = &k->job[k->n_jobs++];
    etk_walk_init(&w, side, 2);
    j->source = source;
    j->to = to_offset * size;
    j->from = from_offset * size;
    bool on = w.stride[0][0] == 1 && w.stride[1][0] == (source != NUMBER);
    j->stretch = w.ndim == 1 && (on || w.count == 1) && !k->has_number;
    /* A number has no neighbours of its own: it goes along with the target's. */
    if (source == NUMBER)
        memcpy(w.stride[1], w.stride[0], sizeof w.stride[0]);
    j->plain = rows_of(&w, (int)size, (int)size);
    j->wide = rows_of(&w, (int)size, largest_unit(&w, (int)size));
}

static void
add_number(struct move_kernel *k, const struct et_desc *to, int64_t to_offset)
{
    struct et_desc zero = *to;
    memset(zero.stride, 0, sizeof zero.stride);
    add_job(k, to, to_offset, NUMBER, &zero, 0);
}

PREPARE(copy)
{
    UNUSED();
    if (call->in[0].dtype != call->out[0].dtype)
        return etk_refuse(why, why_size, "copy does not change the dtype");
    struct move_kernel *k = move_new(d, call, 1, "copy");
    if (!k)
        return ET_ENOMEM;
    add_job(k, &call->out[0], 0, 0, &call->in[0], 0);
    *out = &k->base;
    return ET_OK;
}

PREPARE(concat)
{
    UNUSED();
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *y = &call->out[0];
    struct move_kernel *k = move_new(d, call, call->n_in, "concat");
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

/* The strides X would have, were it dense in its memory order, STRIDE apart. */
static struct et_desc
packed(const struct et_desc *x, int64_t stride)
{
    struct et_desc d = *x;
    for (int i = 0; i < x->ndim; i++) {
        d.stride[i] = stride;
        for (int j = 0; j < x->ndim; j++)
            if (x->stride[j] < x->stride[i] || (x->stride[j] == x->stride[i] && j > i))
                d.stride[i] *= x->shape[j];
    }
    return d;
}

static void
add_gap(struct move_kernel *k, const struct et_desc *y, int64_t begin, int64_t end)
{
    struct et_desc gap = *y;
    gap.shape[0] = end > begin ? end - begin : 0;
    add_number(k, &gap, begin * y->stride[0]);
}

/* The present input that lies first from element BEGIN on; -1: none. */
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
    struct move_kernel *k = move_new(d, call, 2 * call->n_in + 1, "pack");
    if (!k)
        return ET_ENOMEM;
    int64_t end = 0;
    for (int i = next_part(call, 0, -1); i >= 0; i = next_part(call, o->offset[i], i)) {
        struct et_desc part = packed(&call->in[i], y->stride[0]);
        add_gap(k, y, end, o->offset[i]);
        add_job(k, &part, o->offset[i] * y->stride[0], i, &call->in[i], 0);
        /* (A part of nothing may lie in the place of one that is longer.) */
        if (end < o->offset[i] + et_desc_count(&part))
            end = o->offset[i] + et_desc_count(&part);
    }
    add_gap(k, y, end, o->total);
    *out = &k->base;
    return ET_OK;
}

static uint16_t
bf16_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (uint16_t)(v != v ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A normal number: what is left of 2^-112 of it after its 13 low bits; a subnormal one
 * in quanta of 2^-24. */
static uint16_t
f16_of(float v)
{
    float a = v < 0 ? -v : v;
    uint32_t bits, whole, code;
    memcpy(&bits, &v, sizeof bits);
    whole = (bits & 0x7fffffff) - (112u << 23);
    code = (whole + 0xfff + (whole >> 13 & 1)) >> 13;
    if (a < 0x1p-14f)
        code = (uint32_t)lrintf(a * 0x1p24f);
    if (a >= 65520)
        code = 0x7c00;
    return (uint16_t)((bits >> 16 & 0x8000) | (v != v ? 0x7e00 : code));
}

static double
between(double v, double low, double high)
{
    return v != v ? 0 : v < low ? low : v > high ? high : v;
}

/* VALUE as the dtype holds it, over all of NUMBER. Floats become integers by
 * truncation. */
static void
hold_number(struct move_kernel *k, enum et_dtype dtype, double value)
{
    size_t size = et_dtype_size(dtype);
    union {
        float f32;
        double f64;
        uint16_t b16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
    } element = {.f64 = 0};
    k->has_number = value != 0 || signbit(value);
    if (dtype == ET_F32)
        element.f32 = (float)value;
    else if (dtype == ET_F64)
        element.f64 = value;
    else if (dtype == ET_BF16)
        element.b16 = bf16_of((float)value);
    else if (dtype == ET_F16)
        element.b16 = f16_of((float)value);
    else if (dtype == ET_I32)
        element.i32 = (int32_t)between(value, INT32_MIN, INT32_MAX);
    else if (dtype == ET_I64) /* the largest double below 2^63 */
        element.i64 = (int64_t)between(value, -0x1p63, 0x1.fffffffffffffp62);
    else
        element.u8 = (uint8_t)between(value, 0, UINT8_MAX);
    memcpy(k->number, &element, size);
    for (size_t i = size; i < sizeof k->number; i++)
        k->number[i] = k->number[i - size];
}

/* The border of axis k is what lies outside on it and inside on those before: slabs
 * that do not overlap. A negative border cuts off. */
PREPARE(pad)
{
    UNUSED();
    const struct et_pad_attr *o = call->attr;
    const struct et_desc *x = &call->in[0], *y = &call->out[0];
    struct move_kernel *k = move_new(d, call, 1 + 2 * ET_MAX_DIMS, "pad");
    if (!k)
        return ET_ENOMEM;
    hold_number(k, y->dtype, o->value);
    struct et_desc inside = *y, from = *x;
    int64_t to_offset = 0, from_offset = 0;
    for (int i = 0; i < y->ndim; i++) {
        int64_t begin = o->before[i] > 0 ? o->before[i] : 0;
        int64_t end = o->before[i] + x->shape[i];
        begin = begin < y->shape[i] ? begin : y->shape[i];
        end = end < y->shape[i] ? end : y->shape[i];
        end = end > begin ? end : begin;
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
    struct move_kernel *k = move_new(d, call, 1, "flip");
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
