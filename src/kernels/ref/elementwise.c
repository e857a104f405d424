/* SPDX-License-Identifier: Apache-2.0 */
/* elementwise.c: constants, single element-wise ops, and fused programs of them. */
#include "kernels/ref/array.h"

void
etk_ref_fill(const struct etk_ref *r)
{
    const struct et_shape_attr *o = r->attr;
    const struct etk_array *y = &r->out[0];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i))
        etk_set(y, etk_offset(&y->d, i.ix), o->value);
}

void
etk_ref_iota(const struct etk_ref *r)
{
    const struct etk_array *y = &r->out[0];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i))
        etk_set(y, etk_offset(&y->d, i.ix), (double)i.n);
}

void
etk_ref_cast(const struct etk_ref *r)
{
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i))
        etk_move(y, etk_offset(&y->d, i.ix), x,
                 etk_offset_broadcast(&x->d, y->d.ndim, i.ix));
}

static double
get_broadcast(const struct etk_array *a, const struct et_desc *full, const int64_t *ix)
{
    return etk_get(a, etk_offset_broadcast(&a->d, full->ndim, ix));
}

/* A result in bf16 or f16 was one in f32 first, as in the registers of a fused
 * program. */
void
etk_ref_elementwise(const struct etk_ref *r)
{
    static const struct et_scalar_attr none;
    const struct et_scalar_attr *o = r->attr ? r->attr : &none;
    const struct etk_array *y = &r->out[0];
    etk_scalar_fn *fn = etk_scalar(r->op);
    bool low = y->d.dtype == ET_BF16 || y->d.dtype == ET_F16;
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        double x[3] = {0};
        for (int k = 0; k < r->n_in; k++)
            x[k] = get_broadcast(&r->in[k], &y->d, i.ix);
        double v = fn(x, o->a, o->b);
        etk_set(y, etk_offset(&y->d, i.ix), low ? etk_round(ET_F32, v) : v);
    }
}

/* A cast inside a program rounds to the dtype its scalar A names; every other result to
 * f32, as a program of one step would store it. Where results are wider, so are
 * they. */
static double
run_step(const struct et_fused_step *s, const double *reg, bool wide)
{
    double x[3] = {0};
    for (int k = 0; k < s->n_src; k++)
        x[k] = reg[s->src[k]];
    if (s->op == ET_OP_cast)
        return etk_round((enum et_dtype)s->a, x[0]);
    double v = etk_scalar((enum et_op_id)s->op)(x, s->a, s->b);
    return wide ? v : etk_round(ET_F32, v);
}

/* All inputs of an element are read before its outputs are written, so that an output
 * may be an input. */
void
etk_ref_fused(const struct etk_ref *r)
{
    const struct et_fused_attr *o = r->attr;
    const struct et_desc *d = &r->out[0].d;
    for (int k = 1; k < o->n_out; k++)
        if (d->dtype == ET_NONE)
            d = &r->out[k].d;
    double reg[ET_FUSED_MAX_IN + ET_FUSED_MAX_STEPS];
    bool wide = d->dtype == ET_F64 || d->dtype == ET_I32 || d->dtype == ET_I64;
    for (struct etk_pos i = etk_begin(d); !i.end; etk_next(d, &i)) {
        for (int k = 0; k < o->n_in; k++)
            reg[k] = get_broadcast(&r->in[k], d, i.ix);
        for (int k = 0; k < o->n_steps; k++)
            reg[o->n_in + k] = run_step(&o->step[k], reg, wide);
        for (int k = 0; k < o->n_out; k++)
            etk_set(&r->out[k], etk_offset(&r->out[k].d, i.ix), reg[o->out[k]]);
    }
}
