/* SPDX-License-Identifier: Apache-2.0 */
/* index.c: preparing what reads and adds through indices.
 *
 *   take         y[o, i, j] = x[o, index[i], j]
 *   gather       y[o, i, j] = x[o, index[o, i, j], j]
 *   take_grad    y[o, index[i], j] += x[o, i, j]
 *   scatter_add  y[o, index[o, i, j], j] += x[o, i, j]
 *
 * O and J stand for the axes before and after the one that is indexed. An index outside
 * the axis reads NaN (0 in integer arrays) and writes nothing. */
#include "kernels/cuda/index.h"

#include <stdio.h>

#include "kernels/cuda/lines.h"

/* D's axes FIRST .. FIRST + COUNT - 1 as an array of NDIM axes from AT on; where it has
 * no axis it repeats. SHAPE is that of the whole. */
static struct et_desc
spread(const struct et_desc *d, int first, int count, const struct et_desc *shape,
       int at)
{
    struct et_desc s = *shape;
    for (int i = 0; i < s.ndim; i++)
        s.stride[i] = i >= at && i < at + count ? d->stride[first + i - at] : 0;
    return s;
}

/* ---- reading ---- */

struct gather_kernel {
    struct et_kernel base;
    struct etk_gather one, wide; /* elements; several at once, where unit is larger */
};

static et_status
run_gather(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct gather_kernel *k = (const struct gather_kernel *)base;
    (void)ws;
    uintptr_t both = (uintptr_t)ptr[0] | (uintptr_t)ptr[2];
    const struct etk_gather *g =
        both % (uintptr_t)k->wide.unit == 0 ? &k->wide : &k->one;
    return etk_launched(base, etk_launch_gather(g, ptr[0], ptr[1], ptr[2], stream));
}

/* G with its innermost axis in units of BYTES, each COUNT elements; false where the
 * strides do not allow it. */
static bool
widen(struct etk_gather *g, int count)
{
    struct etk_walk *w = &g->walk;
    int last = w->ndim - 1;
    if (w->stride[0][last] != 1 || w->stride[1][last] != 1 || w->stride[2][last] != 0 ||
        w->shape[last] % count != 0 || g->step % count != 0)
        return false;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < last; i++) {
            if (w->stride[side][i] % count != 0)
                return false;
            w->stride[side][i] /= count;
        }
    w->shape[last] /= count;
    w->count /= count;
    g->step /= count;
    g->unit *= count;
    return true;
}

et_status
etk_prepare_gather(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0], *index = &call->in[1], *y = &call->out[0];
    bool whole = call->op == ET_OP_take;
    (void)ws;
    if (index->dtype != ET_I32)
        return etk_refuse(why, why_size, "indices are i32, not %s",
                          et_dtype_name(index->dtype));
    struct gather_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    int axes = whole ? index->ndim : 1;
    struct et_desc from = spread(x, 0, o->axis, y, 0), by = *index;
    struct et_desc behind =
        spread(x, o->axis + 1, x->ndim - o->axis - 1, y, o->axis + axes);
    for (int i = o->axis; i < y->ndim; i++)
        from.stride[i] = behind.stride[i];
    if (whole)
        by = spread(index, 0, axes, y, o->axis);
    k->one = (struct etk_gather){
        .n = x->shape[o->axis],
        .step = x->stride[o->axis],
        .unit = (int)et_dtype_size(x->dtype),
        .nothing = et_dtype_is_float(x->dtype) ? 0xff : 0,
        .sm_count = d->gpu.sm_count,
    };
    etk_walk_init(&k->one.walk, (const struct et_desc *[]){y, &from, &by}, 3);
    k->wide = k->one;
    for (int unit = 16; unit > k->one.unit; unit /= 2) {
        struct etk_gather wide = k->one;
        if (widen(&wide, unit / k->one.unit)) {
            k->wide = wide;
            break;
        }
    }
    k->base.run = run_gather;
    snprintf(k->base.what, sizeof k->base.what, "gather, %d bytes at once",
             k->wide.unit);
    *out = &k->base;
    return ET_OK;
}

/* ---- adding ---- */

struct segment_kernel {
    struct et_kernel base;
    struct etk_segment one, packed;
    bool packs;
};

struct scatter_kernel {
    struct et_kernel base;
    struct etk_scatter scatter;
    bool direct; /* sums are in y */
};

static et_status
run_segment(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct segment_kernel *k = (const struct segment_kernel *)base;
    bool packs = k->packs && (((uintptr_t)ptr[0] | (uintptr_t)ptr[2]) & 15) == 0;
    return etk_launched(base, etk_launch_segment(packs ? &k->packed : &k->one, packs,
                                                 ptr[0], ptr[1], ptr[2], ws, stream));
}

static et_status
run_scatter(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct scatter_kernel *k = (const struct scatter_kernel *)base;
    return etk_launched(base, etk_launch_scatter(&k->scatter, ptr[0], ptr[1], ptr[2],
                                                 k->direct ? NULL : ws, stream));
}

/* Columns in packs of LANES elements, where all that they are added to allows it. */
static bool
pack(struct etk_segment *s, int64_t lanes)
{
    struct etk_walk *c = &s->columns;
    int last = c->ndim - 1;
    bool fits = c->stride[0][last] == 1 && c->stride[1][last] == 1 &&
                c->shape[last] % lanes == 0 && s->scale % lanes == 0;
    for (int i = 0; i < last; i++)
        fits &= c->stride[0][i] % lanes == 0 && c->stride[1][i] % lanes == 0;
    for (int i = 0; i < s->tokens.ndim; i++)
        fits &= s->tokens.stride[1][i] % lanes == 0;
    if (!fits)
        return false;
    c->shape[last] /= lanes;
    c->stride[0][last] = c->stride[1][last] = lanes;
    c->count /= lanes;
    return true;
}

static void
finish_segment(struct segment_kernel *k, const struct et_device_handle *d,
               const struct et_desc *y, int64_t keys, size_t *ws)
{
    struct etk_segment *s = &k->one;
    keys =
        keys < (int64_t)1 << 31 ? keys : (int64_t)1 << 31; /* i32 reaches no further */
    etk_walk_init(&s->clear, (const struct et_desc *[]){y}, 1);
    s->dtype = y->dtype;
    s->outside = (uint32_t)keys;
    s->passes = 1;
    while (s->passes < 4 && keys >> (s->passes * ETK_DIGIT))
        s->passes++;
    s->dense = et_desc_is_dense(y);
    s->sm_count = d->gpu.sm_count;
    k->packed = *s;
    k->packs = pack(&k->packed, 16 / (int64_t)et_dtype_size(y->dtype));
    k->base.run = run_segment;
    snprintf(k->base.what, sizeof k->base.what, "sort by %d digits and sum%s",
             s->passes, k->packs ? ", 16 bytes at once" : "");
    *ws = etk_segment_room_of(s->tokens.count, s->columns.count).bytes;
}

static et_status
need_addable(const struct et_call *call, char *why, size_t why_size)
{
    const struct et_desc *index = &call->in[1];
    ET_TRY(etk_need_float(&call->in[0], "sums through indices", why, why_size));
    if (index->dtype != ET_I32)
        return etk_refuse(why, why_size, "indices are i32, not %s",
                          et_dtype_name(index->dtype));
    return ET_OK;
}

et_status
etk_prepare_take_grad(struct et_device_handle *d, const struct et_call *call,
                      struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0], *index = &call->in[1], *y = &call->out[0];
    int axes = index->ndim;
    ET_TRY(need_addable(call, why, why_size));
    if (et_desc_count(index) >= INT32_MAX)
        return etk_refuse(why, why_size, "%lld indices; fewer than 2^31 are sorted",
                          (long long)et_desc_count(index));
    struct segment_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct etk_segment *s = &k->one;
    /* x's axes of the index, and x's and y's other ones. */
    struct et_desc from = spread(x, o->axis, axes, index, 0);
    struct et_desc nowhere = spread(x, 0, 0, index, 0);
    struct et_desc to = etk_drop_axis(y, o->axis), rest = to;
    for (int i = 0; i < rest.ndim; i++)
        rest.stride[i] = x->stride[i < o->axis ? i : i + axes];
    etk_walk_init(&s->tokens, (const struct et_desc *[]){index, &from, &nowhere}, 3);
    etk_walk_init(&s->columns, (const struct et_desc *[]){&to, &rest}, 2);
    s->n = y->shape[o->axis];
    s->step = 1;
    s->scale = y->stride[o->axis];
    finish_segment(k, d, y, s->n, ws);
    *out = &k->base;
    return ET_OK;
}

/* Elements from the first of D to behind its last. */
static int64_t
extent_of(const struct et_desc *d)
{
    int64_t extent = 1;
    for (int i = 0; i < d->ndim; i++)
        extent += (d->shape[i] - 1) * d->stride[i];
    return extent;
}

/* Few long lines are sorted; of many or short ones each has a thread. */
et_status
etk_prepare_scatter_add(struct et_device_handle *d, const struct et_call *call,
                        struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    enum { MANY = 2048, SHORT = 256 };
    const struct et_axis_attr *o = call->attr;
    const struct et_desc *x = &call->in[0], *index = &call->in[1], *y = &call->out[0];
    struct et_desc to = etk_drop_axis(y, o->axis), from = etk_drop_axis(x, o->axis);
    struct et_desc by = etk_drop_axis(index, o->axis);
    int64_t m = x->shape[o->axis], lines = et_desc_count(&to), keys = extent_of(y);
    ET_TRY(need_addable(call, why, why_size));
    if (lines < MANY && m > SHORT && keys < INT32_MAX && lines * m < INT32_MAX) {
        struct segment_kernel *k = etk_new(sizeof *k);
        if (!k)
            return ET_ENOMEM;
        struct et_desc place = *index, one = {.ndim = 0};
        for (int i = 0; i < place.ndim; i++)
            place.stride[i] = i == o->axis ? 0 : y->stride[i];
        etk_walk_init(&k->one.tokens, (const struct et_desc *[]){index, x, &place}, 3);
        etk_walk_init(&k->one.columns, (const struct et_desc *[]){&one, &one}, 2);
        k->one.n = y->shape[o->axis];
        k->one.step = y->stride[o->axis];
        k->one.scale = 1;
        finish_segment(k, d, y, keys, ws);
        *out = &k->base;
        return ET_OK;
    }
    struct scatter_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->scatter = (struct etk_scatter){
        .dtype = y->dtype,
        .m = m,
        .n = y->shape[o->axis],
        .to = y->stride[o->axis],
        .from = x->stride[o->axis],
        .by = index->stride[o->axis],
    };
    etk_walk_init(&k->scatter.lines, (const struct et_desc *[]){&to, &from, &by}, 3);
    k->direct = y->dtype == ET_F32;
    *ws = k->direct ? 0 : (size_t)(lines * y->shape[o->axis]) * sizeof(float);
    k->base.run = run_scatter;
    snprintf(k->base.what, sizeof k->base.what, "scatter, a thread a line");
    *out = &k->base;
    return ET_OK;
}
