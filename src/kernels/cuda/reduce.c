/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: preparing reductions: which axes lie how, parts, and the second stage. */
#include "kernels/cuda/reduce.h"

#include <stdio.h>

enum {
    BLOCK = 256,          /* threads */
    PART = 16384,         /* elements of a part, at least: 8 packs a thread */
    BLOCKS_PER_SM = 8,    /* what fills a multiprocessor */
    MOST_PARTS = 4096,    /* of a result */
    ROW_OF_A_WARP = 2048, /* elements; longer ones take a block */
};

struct reduce_kernel {
    struct et_kernel base;
    struct etk_reduce plain, packed; /* the first stage, without and with packs */
    struct etk_reduce second;        /* where it has parts */
    bool packs;                      /* there is a packed one */
};

static et_status
run_reduce(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    const struct reduce_kernel *k = (const struct reduce_kernel *)base;
    bool packed = k->packs && ((uintptr_t)ptr[0] & 15) == 0;
    const struct etk_reduce *first = packed ? &k->packed : &k->plain;
    if (first->parts == 1)
        return etk_launched(base, etk_launch_reduce(first, ptr[0], ptr[1], stream));
    ET_TRY(etk_launched(base, etk_launch_reduce(first, ptr[0], ws, stream)));
    return etk_launched(base, etk_launch_reduce(&k->second, ws, ptr[1], stream));
}

/* ---- the axes ---- */

static void
append(struct et_desc *d, int64_t length, int64_t stride)
{
    d->shape[d->ndim] = length;
    d->stride[d->ndim++] = stride;
}

/* The axes of X in two: those that stay, with their strides in Y, and those that go. */
static void
split(const struct et_desc *x, const struct et_desc *y, uint32_t axes,
      struct etk_reduce *r)
{
    struct et_desc kept = {.dtype = x->dtype}, to = kept, reduced = kept;
    bool keepdim = y->ndim == x->ndim;
    for (int i = 0; i < x->ndim; i++) {
        if (axes >> i & 1) {
            append(&reduced, x->shape[i], x->stride[i]);
            continue;
        }
        append(&to, x->shape[i], y->stride[keepdim ? i : kept.ndim]);
        append(&kept, x->shape[i], x->stride[i]);
    }
    etk_walk_init(&r->kept, (const struct et_desc *[]){&kept, &to}, 2);
    etk_walk_init(&r->reduced, (const struct et_desc *[]){&reduced}, 1);
}

static void
pop_columns(struct etk_reduce *r)
{
    struct etk_walk *k = &r->kept;
    int last = k->ndim - 1;
    r->cols = k->shape[last];
    r->from = k->stride[0][last];
    r->to = k->stride[1][last];
    k->count /= r->cols;
    if (last > 0) {
        k->ndim--;
    } else {
        k->shape[0] = 1;
        k->stride[0][0] = k->stride[1][0] = 0;
    }
}

/* Does every axis of W but the last begin at a multiple of LANES in x? */
static bool
steps_by(const struct etk_walk *w, int ndim, int64_t lanes)
{
    for (int i = 0; i < ndim; i++)
        if (w->stride[0][i] % lanes != 0)
            return false;
    return true;
}

/* R in packs of LANES; false where its strides do not allow it. */
static bool
pack(struct etk_reduce *r, int64_t lanes)
{
    struct etk_walk *w = &r->reduced;
    int last = w->ndim - 1;
    if (!steps_by(&r->kept, r->kept.ndim, lanes) || r->dense)
        return false;
    r->packs = true;
    if (r->columns) {
        if (r->from != 1 || r->cols % lanes != 0 || !steps_by(w, w->ndim, lanes))
            return false;
        r->cols /= lanes;
        r->from = lanes;
        return true;
    }
    if (w->stride[0][last] != 1 || w->shape[last] % lanes != 0 ||
        !steps_by(w, last, lanes))
        return false;
    w->shape[last] /= lanes;
    w->stride[0][last] = lanes;
    w->count /= lanes;
    return true;
}

/* ---- the grid ---- */

static int64_t
clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* LANES: elements of x in an element of R's walks. */
static void
choose_grid(struct etk_reduce *r, int64_t lanes, int sm_count)
{
    int64_t length = r->reduced.count, fill = (int64_t)sm_count * BLOCKS_PER_SM, tasks;
    r->across = 1;
    if (r->columns) {
        while (r->across < 32 && r->across < r->cols)
            r->across *= 2;
        tasks = r->kept.count * etk_ceil_div(r->cols, r->across);
    } else {
        r->team = length * lanes <= ROW_OF_A_WARP ? 32 : BLOCK;
        tasks = r->kept.count;
    }
    /* A block of columns reads ACROSS packs of each of its rows. */
    int64_t part = etk_ceil_div(PART, lanes * r->across);
    int64_t parts = clamp(fill / clamp(tasks, 1, fill), 1, MOST_PARTS);
    parts = clamp(parts, 1, clamp(length / part, 1, MOST_PARTS));
    if (!r->columns && r->team != BLOCK)
        parts = 1;
    r->share = etk_ceil_div(length, parts);
    if (r->dense) /* parts begin at a multiple of a pack */
        r->share = etk_ceil_div(r->share, BLOCK) * BLOCK;
    r->parts =
        (int)clamp(etk_ceil_div(length, clamp(r->share, 1, length + 1)), 1, parts);
}

/* S adds up FIRST's parts, which lie in the workspace: [result][part] of rows,
 * [part][result] of columns, the results row-major as WALKED. FIRST then leaves the
 * scale to it. */
static void
choose_second(struct etk_reduce *s, const struct etk_reduce *first,
              const struct etk_walk *walked, int sm_count)
{
    *s = *first;
    s->in = first->in == ET_F64 ? ET_F64 : ET_F32;
    s->squares = s->packs = false;
    s->dense = !s->columns;
    s->kept = *walked;
    int64_t stride = s->columns ? 1 : first->parts;
    for (int i = s->kept.ndim - 1; i >= 0; i--) {
        s->kept.stride[0][i] = stride;
        stride *= s->kept.shape[i];
    }
    struct et_desc parts = {.ndim = 1, .shape = {first->parts}};
    parts.stride[0] = s->columns ? walked->count : 1;
    etk_walk_init(&s->reduced, (const struct et_desc *[]){&parts}, 1);
    if (s->columns)
        pop_columns(s);
    struct etk_reduce packed = *s;
    int64_t lanes = 16 / (int64_t)et_dtype_size(s->in);
    if (pack(&packed, lanes))
        *s = packed;
    choose_grid(s, s->packs ? lanes : 1, sm_count);
    s->parts = 1;
    s->share = s->reduced.count;
}

et_status
etk_new_reduce(struct et_device_handle *d, enum et_op_id op, const struct et_desc *x,
               const struct et_desc *y, uint32_t axes, double scale,
               struct et_kernel **out, size_t *ws)
{
    struct reduce_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct etk_reduce *r = &k->plain;
    *r = (struct etk_reduce){
        .in = x->dtype,
        .out = y->dtype,
        .largest = op == ET_OP_amax || op == ET_OP_amin,
        .squares = op == ET_OP_sum_squares,
        .sign = op == ET_OP_amin ? -1 : 1,
        .scale = scale,
    };
    split(x, y, axes, r);
    struct etk_walk results = r->kept;
    int a = r->kept.ndim - 1, b = r->reduced.ndim - 1;
    int64_t fastest = r->reduced.stride[0][b];
    r->columns = r->kept.count > 1 && r->reduced.count > 1 &&
                 r->kept.stride[0][a] > 0 &&
                 (fastest == 0 || r->kept.stride[0][a] < fastest);
    if (r->columns)
        pop_columns(r);
    r->dense =
        !r->columns && r->reduced.ndim == 1 && (fastest == 1 || r->reduced.count == 1);
    int64_t lanes = 16 / (int64_t)et_dtype_size(x->dtype);
    k->packed = *r;
    k->packs = pack(&k->packed, lanes);
    choose_grid(r, 1, d->gpu.sm_count);
    choose_grid(&k->packed, k->packs ? lanes : 1, d->gpu.sm_count);
    /* Both are cut alike, so that one second stage serves both. */
    if (k->packs) {
        r->team = k->packed.team;
        r->parts = k->packed.parts;
        r->share = k->packed.share * (r->columns ? 1 : lanes);
    }
    if (r->parts > 1) {
        choose_second(&k->second, r, &results, d->gpu.sm_count);
        r->out = k->packed.out = k->second.in;
        r->scale = k->packed.scale = 1;
        *ws = (size_t)(results.count * r->parts) * et_dtype_size(k->second.in);
    }
    k->base.run = run_reduce;
    snprintf(k->base.what, sizeof k->base.what, "reduce %s, %d parts",
             r->columns ? "columns" : "rows", r->parts);
    *out = &k->base;
    return ET_OK;
}

static bool
is_float(enum et_dtype dtype)
{
    return dtype == ET_F32 || dtype == ET_BF16 || dtype == ET_F16 || dtype == ET_F64;
}

et_status
etk_prepare_reduce(struct et_device_handle *d, const struct et_call *call,
                   struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_reduce_attr *o = call->attr;
    enum et_dtype in = call->in[0].dtype, to = call->out[0].dtype;
    if (!is_float(in) || !is_float(to))
        return etk_refuse(why, why_size, "a reduction of %s to %s: both are floats",
                          et_dtype_name(in), et_dtype_name(to));
    uint32_t axes = call->op == ET_OP_sum_squares ? ~(uint32_t)0 : o->axes;
    return etk_new_reduce(d, call->op, &call->in[0], &call->out[0], axes, 1, out, ws);
}
