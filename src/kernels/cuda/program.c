/* SPDX-License-Identifier: Apache-2.0 */
/* program.c: what an element-wise op or a fused chain computes, and how its arrays are
 * walked. */
#include "kernels/cuda/program.h"

#include <string.h>

static bool
is_wide(enum et_dtype dtype)
{
    return dtype == ET_F64 || dtype == ET_I32 || dtype == ET_I64;
}

/* The sides of the program, in its order, and where the call has their pointers. */
static void
collect_sides(const struct et_call *call, struct etk_program *p,
              const struct et_desc **side)
{
    int n = 0;
    for (int i = 0; i < call->n_out; i++)
        if (call->out[i].dtype != ET_NONE) {
            p->result[n] = p->result[i];
            p->pointer[n] = (uint8_t)(call->n_in + i);
            side[n++] = &call->out[i];
        }
    p->n_out = n;
    p->n_in = call->n_in;
    for (int i = 0; i < call->n_in; i++) {
        p->pointer[n] = (uint8_t)i;
        side[n++] = &call->in[i];
    }
    for (int i = 0; i < n; i++) {
        p->dtype[i] = (uint8_t)side[i]->dtype;
        p->wide |= is_wide(side[i]->dtype);
    }
}

/* A thread takes 16 bytes of the smallest elements, and 32 of the larger, from each
 * array; twice that of f32 where few arrays are read, so that enough is on its way. All
 * arrays must then lie dense, or repeat, along the last axis, in rows that begin where
 * such loads may. */
static int
choose_lanes(const struct etk_program *p, const struct etk_walk *w)
{
    size_t smallest = 8;
    int last = w->ndim - 1, streams = 0;
    for (int i = 0; i < w->sides; i++) {
        if (w->stride[i][last] == 0)
            continue;
        size_t size = et_dtype_size((enum et_dtype)p->dtype[i]);
        smallest = size < smallest ? size : smallest;
        streams += i >= p->n_out;
    }
    int lanes = smallest >= 8 ? 2 : smallest == 4 ? (streams > 2 ? 4 : 8) : 8;
    for (; lanes > 1; lanes /= 2) {
        bool fits = w->ndim == 1 || w->shape[last] % lanes == 0;
        for (int i = 0; i < w->sides && fits; i++) {
            fits =
                w->stride[i][last] == 1 || (i >= p->n_out && w->stride[i][last] == 0);
            for (int axis = 0; axis < last && w->stride[i][last] == 1; axis++)
                fits = fits && w->stride[i][axis] % lanes == 0;
        }
        if (fits)
            return lanes;
    }
    return 1;
}

/* The powers that need no logarithm. */
static int
simplest(int op, double a)
{
    if (op != ET_OP_pow_scalar)
        return op;
    return a == 2      ? ET_OP_square
           : a == 0.5  ? ET_OP_sqrt
           : a == -0.5 ? ET_OP_rsqrt
           : a == -1   ? ET_OP_reciprocal
                       : op;
}

static bool
is_step(int op)
{
    switch (op) {
#define ETK_ELEMENT(name, n, first, value) case ET_OP_##name:
#include "kernels/elements.def"
    case ET_OP_cast:
        return true;
    default:
        return false;
    }
}

et_status
etk_program_of(const struct et_call *call, struct etk_program *p,
               struct etk_shape *shape, char *why, size_t why_size)
{
    static const struct et_scalar_attr none;
    const struct et_desc *side[ETK_SIDES];
    memset(p, 0, sizeof *p);
    if (call->op == ET_OP_fused) {
        const struct et_fused_attr *o = call->attr;
        p->n_steps = o->n_steps;
        memcpy(p->step, o->step, sizeof p->step);
        memcpy(p->result, o->out, sizeof p->result);
    } else if (call->op != ET_OP_cast) { /* of which loading and storing are all */
        const struct et_scalar_attr *o = call->attr ? call->attr : &none;
        p->n_steps = 1;
        p->result[0] = (uint8_t)call->n_in;
        p->step[0] = (struct et_fused_step){
            .op = (uint16_t)call->op,
            .src = {0, 1, 2},
            .n_src = (uint8_t)call->n_in,
            .a = o->a,
            .b = o->b,
        };
    }
    for (int i = 0; i < p->n_steps; i++) {
        p->step[i].op = (uint16_t)simplest(p->step[i].op, p->step[i].a);
        if (!is_step(p->step[i].op))
            return etk_refuse(why, why_size,
                              "step %d is op %d, which is no element function", i,
                              p->step[i].op);
    }
    collect_sides(call, p, side);
    etk_walk_init(&shape->walk, side, p->n_out + p->n_in);
    shape->lanes = choose_lanes(p, &shape->walk);
    return ET_OK;
}
