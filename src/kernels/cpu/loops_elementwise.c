/* SPDX-License-Identifier: Apache-2.0 */
/* loops_elementwise.c: one interpreter for element-wise ops and fused programs.
 *
 *   y[i] = f(x0[i], x1[i], ...), f a list of steps on registers
 *
 * A plain op is a program of one step, so a chain computes the same bits fused or not.
 * Elements are numbered in the memory order of the result; blocks of some hundred pass
 * through all steps while they are in the first cache. An operand that lies in that
 * order is read in place, a number or a row of a block's length is spread out once per
 * thread, anything else is gathered per block. Moves each operand and result once:
 * bound by memory for all but programs of many e^x. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/loops.h"

#include "kernels/cpu/loops_convert.h"
#include "kernels/cpu/loops_steps.h"
#include "kernels/cpu/tiles.h"

#define MAX_REG     (ET_FUSED_MAX_IN + ET_FUSED_MAX_STEPS)
#define CACHE_BYTES (24 * 1024) /* of the first cache's 32 or 48 KiB, for registers */
#define MAX_BLOCK   ETK_ELEMENT_MAX
#define MIN_BLOCK   ETK_ELEMENT_MIN
/* Below this a second thread costs more than it saves: a region takes about 1 us. */
#define PARALLEL_COUNT 16384

/* An operand's place for every element of the space: axes, slowest first. */
struct walk {
    int ndim;
    int64_t shape[ET_MAX_DIMS], stride[ET_MAX_DIMS];
};

enum kind {
    IN_PLACE, /* element i of the space lies at i */
    REPEATED, /* every block holds the same */
    GATHERED,
};

struct operand {
    enum kind kind;
    struct walk walk;
    size_t size; /* of an element */
    etk_load_fn *load;
    etk_store_fn *store;
};

struct step {
    etk_step_fn *fn;
    int src[3];
    double a, b;
};

struct program {
    struct et_kernel base;
    int n_in, n_out, n_steps, n_slots, pieces;
    size_t size; /* of an element of a register: 4 or 8 */
    int64_t count, block;
    struct operand in[ET_FUSED_MAX_IN], out[ET_FUSED_MAX_OUT];
    bool wanted[ET_FUSED_MAX_OUT];
    int result[ET_FUSED_MAX_OUT];   /* the register an output is stored from */
    int last_read[ET_FUSED_MAX_IN]; /* step */
    int slot[MAX_REG];              /* block of the workspace; -1: none */
    int direct[MAX_REG];            /* the output a step may write into; -1: none */
    struct step step[ET_FUSED_MAX_STEPS];
};

/* ---- running ---- */

/* N times the first element of BLOCK, which has SIZE bytes: 4 or 8. */
static void
repeat_first(char *block, size_t size, int64_t n)
{
    if (size == sizeof(float)) {
        float *to = (float *)block, v = to[0];
        for (int64_t i = 1; i < n; i++)
            to[i] = v;
    } else {
        double *to = (double *)block, v = to[0];
        for (int64_t i = 1; i < n; i++)
            to[i] = v;
    }
}

/* Elements BEGIN .. BEGIN + N of an operand at P, one stretch of the last axis at a
 * time: into BLOCK, or from it where STORES. */
static void
transfer(const struct operand *o, char *p, char *block, size_t size, int64_t begin,
         int64_t n, bool stores)
{
    const struct walk *w = &o->walk;
    int last = w->ndim - 1;
    int64_t at[ET_MAX_DIMS], offset = 0, rest = begin;
    for (int i = last; i >= 0; i--) {
        at[i] = i > 0 ? rest % w->shape[i] : rest;
        rest /= w->shape[i];
        offset += at[i] * w->stride[i];
    }
    while (n > 0) {
        int64_t run = w->shape[last] - at[last];
        run = run < n ? run : n;
        char *from = p + offset * (int64_t)o->size;
        if (stores)
            o->store(block, from, w->stride[last], run);
        else
            o->load(block, from, w->stride[last], w->stride[last] ? run : 1);
        if (!stores && w->stride[last] == 0)
            repeat_first(block, size, run);
        block += run * (int64_t)size;
        n -= run;
        offset += run * w->stride[last];
        at[last] += run;
        for (int i = last; i > 0 && at[i] == w->shape[i]; i--) {
            offset += w->stride[i - 1] - at[i] * w->stride[i];
            at[i] = 0;
            at[i - 1]++;
        }
    }
}

/* One thread's registers and where their blocks are. */
struct frame {
    const struct program *k;
    void *const *ptr;
    char *slots;
    int direct[MAX_REG]; /* as program's, less what this call's aliases forbid */
    const void *reg[MAX_REG];
};

static char *
slot(const struct frame *f, int reg)
{
    return f->slots + (size_t)f->k->slot[reg] * (size_t)f->k->block * f->k->size;
}

/* A result that is also an operand must not be written before that was read. */
static void
settle_aliases(struct frame *f)
{
    const struct program *k = f->k;
    memcpy(f->direct, k->direct, sizeof f->direct);
    for (int s = 0; s < k->n_steps; s++) {
        int r = k->n_in + s, o = k->direct[r];
        for (int i = 0; o >= 0 && i < k->n_in; i++)
            if (f->ptr[i] == f->ptr[k->n_in + o] && k->last_read[i] > s)
                f->direct[r] = -1;
    }
}

static void
run_block(struct frame *f, int64_t begin, int64_t n)
{
    const struct program *k = f->k;
    for (int i = 0; i < k->n_in; i++) {
        if (k->in[i].kind == IN_PLACE)
            f->reg[i] = (char *)f->ptr[i] + begin * (int64_t)k->size;
        else if (k->in[i].kind == GATHERED)
            transfer(&k->in[i], f->ptr[i], slot(f, i), k->size, begin, n, false);
    }
    for (int s = 0; s < k->n_steps; s++) {
        const struct step *step = &k->step[s];
        int r = k->n_in + s, o = f->direct[r];
        char *y = o >= 0 ? (char *)f->ptr[k->n_in + o] + begin * (int64_t)k->size
                         : slot(f, r);
        const void *x[3];
        for (int i = 0; i < 3; i++)
            x[i] = f->reg[step->src[i]];
        step->fn(n, y, x, step->a, step->b);
        f->reg[r] = y;
    }
    for (int o = 0; o < k->n_out; o++)
        if (k->wanted[o] && f->direct[k->result[o]] != o)
            transfer(&k->out[o], f->ptr[k->n_in + o], (char *)f->reg[k->result[o]],
                     k->size, begin, n, true);
}

static et_status
run_program(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct program *k = (const struct program *)kernel;
    int64_t blocks = (k->count + k->block - 1) / k->block;
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++) {
        size_t bytes = (size_t)k->n_slots * (size_t)k->block * k->size;
        struct frame f = {
            .k = k, .ptr = ptr, .slots = (char *)ws + (size_t)piece * bytes};
        settle_aliases(&f);
        for (int i = 0; i < k->n_in; i++) {
            if (k->in[i].kind != IN_PLACE)
                f.reg[i] = slot(&f, i);
            if (k->in[i].kind == REPEATED)
                transfer(&k->in[i], ptr[i], slot(&f, i), k->size, 0,
                         k->block < k->count ? k->block : k->count, false);
        }
        int64_t end = blocks * (piece + 1) / k->pieces;
        for (int64_t b = blocks * piece / k->pieces; b < end; b++) {
            int64_t begin = b * k->block, n = k->count - begin;
            run_block(&f, begin, n < k->block ? n : k->block);
        }
    }
    return ET_OK;
}

/* ---- preparing ---- */

/* Axes of the space from the slowest to the fastest; those of length 1 are left out. */
static int
space_order(const struct et_desc *d, int *order)
{
    int n = 0;
    for (int i = 0; i < d->ndim; i++) {
        if (d->shape[i] == 1)
            continue;
        int at = n++;
        for (; at > 0 && d->stride[order[at - 1]] < d->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return n;
}

/* X is aligned with SPACE at the last axis; what it lacks repeats. */
static struct walk
walk_of(const struct et_desc *space, const int *order, int n, const struct et_desc *x)
{
    struct walk w = {.ndim = 1, .shape = {1}};
    for (int i = 0; i < n; i++) {
        int axis = order[i] - (space->ndim - x->ndim), last = w.ndim - 1;
        int64_t length = space->shape[order[i]];
        int64_t stride = axis < 0 || x->shape[axis] == 1 ? 0 : x->stride[axis];
        if (i > 0 && w.stride[last] == length * stride) {
            w.shape[last] *= length;
        } else {
            last = i > 0 ? w.ndim++ : 0;
            w.shape[last] = length;
        }
        w.stride[last] = stride;
    }
    return w;
}

static void
init_operand(struct operand *o, const struct et_desc *space, const int *order, int n,
             const struct et_desc *x, bool wide)
{
    o->walk = walk_of(space, order, n, x);
    o->size = et_dtype_size(x->dtype);
    o->load = etk_loads[x->dtype][wide];
    o->store = etk_stores[x->dtype][wide];
    bool native = x->dtype == (wide ? ET_F64 : ET_F32);
    bool flat = o->walk.ndim == 1 && (o->walk.stride[0] == 1 || o->walk.shape[0] == 1);
    o->kind = native && flat ? IN_PLACE : GATHERED;
}

/* The length after which an operand repeats: 1 for a number; 0: it does not. */
static int64_t
period(const struct operand *o)
{
    const struct walk *w = &o->walk;
    if (o->kind == IN_PLACE)
        return 0;
    if (w->ndim == 1)
        return w->stride[0] == 0 ? 1 : 0;
    return w->ndim == 2 && w->stride[0] == 0 ? w->shape[1] : 0;
}

/* Blocks hold whole periods of the first row that fits; others are gathered. */
static void
choose_block(struct program *k)
{
    int64_t n = CACHE_BYTES / ((int64_t)k->size * (k->n_in + k->n_steps + 1));
    n = n < MIN_BLOCK ? MIN_BLOCK : n > MAX_BLOCK ? MAX_BLOCK : n;
    k->block = n - n % 64;
    int64_t row = 1;
    for (int i = 0; i < k->n_in; i++) {
        int64_t p = period(&k->in[i]);
        if (p > 1 && row == 1 && p <= MAX_BLOCK) {
            row = p;
            k->block = p < k->block ? k->block - k->block % p : p;
        }
        if (p == 1 || (p > 1 && p == row))
            k->in[i].kind = REPEATED;
    }
}

/* A register's block is free again after the last step that reads it. */
static void
choose_slots(struct program *k)
{
    int last[MAX_REG], owner[MAX_REG] = {0}, n_reg = k->n_in + k->n_steps;
    for (int r = 0; r < n_reg; r++)
        last[r] = k->direct[r] = k->slot[r] = -1;
    for (int s = 0; s < k->n_steps; s++)
        for (int i = 0; i < 3; i++)
            last[k->step[s].src[i]] = s;
    for (int o = 0; o < k->n_out; o++)
        if (k->wanted[o]) {
            int r = k->result[o];
            last[r] = k->n_steps;
            if (r >= k->n_in && k->direct[r] < 0 && k->out[o].kind == IN_PLACE)
                k->direct[r] = o;
        }
    for (int i = 0; i < k->n_in; i++) {
        k->last_read[i] = last[i];
        if (k->in[i].kind != IN_PLACE) {
            owner[k->n_slots] = n_reg; /* never free */
            k->slot[i] = k->n_slots++;
        }
    }
    /* Owner: the step that reads the slot last. */
    for (int s = 0; s < k->n_steps; s++) {
        int r = k->n_in + s, at = 0;
        while (at < k->n_slots && owner[at] >= s)
            at++;
        k->n_slots += at == k->n_slots;
        owner[at] = last[r] > s ? last[r] : s;
        k->slot[r] = at;
    }
}

static et_status
refuse_dtype(const struct et_call *call, char *why, size_t why_size)
{
    for (int i = 0; i < call->n_in; i++)
        if (!etk_loads[call->in[i].dtype][0])
            return etk_refuse(why, why_size, "operand %d has dtype %s", i,
                              et_dtype_name(call->in[i].dtype));
    return ET_OK;
}

/* Integers of 32 and more bits go through doubles, like F64. */
static bool
is_wide(enum et_dtype dtype)
{
    return dtype == ET_F64 || dtype == ET_I32 || dtype == ET_I64;
}

static bool
computes_wide(const struct et_call *call)
{
    bool wide = false;
    for (int i = 0; i < call->n_in; i++)
        wide |= is_wide(call->in[i].dtype);
    for (int i = 0; i < call->n_out; i++)
        wide |= is_wide(call->out[i].dtype);
    return wide;
}

/* Operands and results; steps are there already. */
static et_status
finish(struct et_device_handle *d, const struct et_call *call, struct program *k,
       size_t *ws)
{
    const struct et_desc *space = &call->out[0];
    bool wide = computes_wide(call);
    int order[ET_MAX_DIMS];
    for (int i = 0; i < call->n_out; i++) {
        k->wanted[i] = call->out[i].dtype != ET_NONE;
        if (space->dtype == ET_NONE)
            space = &call->out[i];
    }
    int n = space_order(space, order);
    k->n_in = call->n_in;
    k->n_out = call->n_out;
    k->count = et_desc_count(space);
    k->size = wide ? sizeof(double) : sizeof(float);
    for (int i = 0; i < call->n_in; i++)
        init_operand(&k->in[i], space, order, n, &call->in[i], wide);
    for (int i = 0; i < call->n_out; i++)
        if (k->wanted[i])
            init_operand(&k->out[i], space, order, n, &call->out[i], wide);
    choose_block(k);
    choose_slots(k);
    k->pieces = k->count < PARALLEL_COUNT ? 1 : d->threads;
    *ws = (size_t)k->pieces * (size_t)k->n_slots * (size_t)k->block * k->size;
    k->base.run = run_program;
    return ET_OK;
}

/* A cast inside a program rounds to the dtype that A names. */
#define CELLS ETK_ELEMENT_CAST
#define CAST_STEP(type, column)                                                        \
    static void cast_##type(int64_t n, void *y, const void *const *x, double a,        \
                            double b)                                                  \
    {                                                                                  \
        double cells[CELLS];                                                           \
        (void)b;                                                                       \
        for (int64_t i = 0; i < n; i += CELLS) {                                       \
            int64_t run = n - i < CELLS ? n - i : CELLS;                               \
            etk_stores[(int)a][column]((const type *)x[0] + i, cells, 1, run);         \
            etk_loads[(int)a][column]((type *)y + i, cells, 1, run);                   \
        }                                                                              \
    }
CAST_STEP(float, 0)
CAST_STEP(double, 1)

static etk_step_fn *
step_of(enum et_op_id op, bool wide, double a)
{
    if (op == ET_OP_cast)
        return wide ? cast_double : cast_float;
    if (op == ET_OP_pow_scalar) /* the powers that need no logarithm */
        op = a == 2      ? ET_OP_square
             : a == 0.5  ? ET_OP_sqrt
             : a == -0.5 ? ET_OP_rsqrt
             : a == -1   ? ET_OP_reciprocal
                         : op;
    return op < ET_OP_COUNT ? etk_steps[op][wide] : NULL;
}

et_status
ETK_NAME(etk_prepare_elementwise)(struct et_device_handle *d,
                                  const struct et_call *call, struct et_kernel **out,
                                  size_t *ws, char *why, size_t why_size)
{
    static const struct et_scalar_attr none;
    const struct et_scalar_attr *o = call->attr ? call->attr : &none;
    ET_TRY(refuse_dtype(call, why, why_size));
    struct program *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    if (call->op == ET_OP_cast) { /* reading and writing do all there is to do */
        k->base.what = "loop:cast";
    } else {
        struct step *s = &k->step[k->n_steps++];
        k->result[0] = call->n_in;
        s->a = o->a;
        s->b = o->b;
        s->fn = step_of(call->op, computes_wide(call), o->a);
        for (int i = 0; i < call->n_in; i++)
            s->src[i] = i;
        k->base.what = "loop:elementwise";
    }
    *out = &k->base;
    return finish(d, call, k, ws);
}

et_status
ETK_NAME(etk_prepare_fused)(struct et_device_handle *d, const struct et_call *call,
                            struct et_kernel **out, size_t *ws, char *why,
                            size_t why_size)
{
    const struct et_fused_attr *o = call->attr;
    ET_TRY(refuse_dtype(call, why, why_size));
    struct program *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->n_steps = o->n_steps;
    for (int i = 0; i < o->n_steps; i++) {
        const struct et_fused_step *from = &o->step[i];
        struct step *s = &k->step[i];
        s->fn = step_of((enum et_op_id)from->op, computes_wide(call), from->a);
        s->a = from->a;
        s->b = from->b;
        for (int j = 0; j < 3; j++)
            s->src[j] = j < from->n_src ? from->src[j] : from->src[0];
        if (!s->fn) {
            free(k);
            return etk_refuse(why, why_size,
                              "step %d is op %d, which is no element function", i,
                              from->op);
        }
    }
    for (int i = 0; i < o->n_out; i++)
        k->result[i] = o->out[i];
    k->base.what = "loop:fused";
    *out = &k->base;
    return finish(d, call, k, ws);
}
