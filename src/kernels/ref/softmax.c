/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.c: softmax, its logarithm, and cross entropy over an axis.
 *
 *   lse = m + log sum_c e^(z_c - m), m = max z;  log softmax(z)_c = z_c - lse
 *   index target t: loss = -w_t log softmax(z)_t, 0 where t is ignore_index
 *   dense target t: loss = -sum_c w_c t_c log softmax(z)_c
 *
 * Any other index outside 0 .. C-1 makes the loss and its gradient NaN at that
 * position. */
#include "kernels/ref/array.h"

#include <math.h>

/* The elements of one line along an axis. */
struct line {
    const struct etk_array *a;
    int64_t base, stride, n;
};

static struct line
line_at(const struct etk_array *a, int axis, const int64_t *ix)
{
    return (struct line){
        .a = a,
        .base = etk_offset(&a->d, ix),
        .stride = a->d.stride[axis],
        .n = a->d.shape[axis],
    };
}

static double
get(const struct line *l, int64_t c)
{
    return etk_get(l->a, l->base + c * l->stride);
}

static void
set(const struct line *l, int64_t c, double v)
{
    etk_set(l->a, l->base + c * l->stride, v);
}

static double
largest(const struct line *l)
{
    double max = -INFINITY;
    for (int64_t c = 0; c < l->n; c++)
        max = etk_wins(get(l, c), max) ? get(l, c) : max;
    return max;
}

static double
sum_exp(const struct line *l, double max)
{
    double sum = 0;
    for (int64_t c = 0; c < l->n; c++)
        sum += exp(get(l, c) - max);
    return sum;
}

static double
log_sum_exp(const struct line *l)
{
    double max = largest(l);
    return isinf(max) && max < 0 ? max : max + log(sum_exp(l, max));
}

/* Not e^(x - lse): beside a large m the logarithm is lost, and with it the quotient. */
void
etk_ref_softmax(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    struct et_desc rest = etk_without(&r->in[0].d, o->axis);
    for (struct etk_pos i = etk_begin(&rest); !i.end; etk_next(&rest, &i)) {
        struct line x = line_at(&r->in[0], o->axis, i.ix);
        struct line y = line_at(&r->out[0], o->axis, i.ix);
        double max = largest(&x), sum = sum_exp(&x, max);
        for (int64_t c = 0; c < x.n; c++)
            set(&y, c, exp(get(&x, c) - max) / sum);
    }
}

void
etk_ref_log_softmax(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    struct et_desc rest = etk_without(&r->in[0].d, o->axis);
    for (struct etk_pos i = etk_begin(&rest); !i.end; etk_next(&rest, &i)) {
        struct line x = line_at(&r->in[0], o->axis, i.ix);
        struct line y = line_at(&r->out[0], o->axis, i.ix);
        double lse = log_sum_exp(&x);
        for (int64_t c = 0; c < x.n; c++)
            set(&y, c, get(&x, c) - lse);
    }
}

/* softmax: dx = y (dy - sum y dy). log softmax: dx = dy - e^y sum dy. */
static void
softmax_grad(const struct etk_ref *r, bool logarithm)
{
    const struct et_axis_attr *o = r->attr;
    struct et_desc rest = etk_without(&r->in[0].d, o->axis);
    for (struct etk_pos i = etk_begin(&rest); !i.end; etk_next(&rest, &i)) {
        struct line dy = line_at(&r->in[0], o->axis, i.ix);
        struct line y = line_at(&r->in[1], o->axis, i.ix);
        struct line dx = line_at(&r->out[0], o->axis, i.ix);
        double sum = 0;
        for (int64_t c = 0; c < y.n; c++)
            sum += logarithm ? get(&dy, c) : get(&y, c) * get(&dy, c);
        for (int64_t c = 0; c < y.n; c++)
            set(&dx, c,
                logarithm ? get(&dy, c) - exp(get(&y, c)) * sum
                          : get(&y, c) * (get(&dy, c) - sum));
    }
}

void
etk_ref_softmax_grad(const struct etk_ref *r)
{
    softmax_grad(r, false);
}

void
etk_ref_log_softmax_grad(const struct etk_ref *r)
{
    softmax_grad(r, true);
}

/* Target of one position: weight of class C in the loss, w_c t_c. */
struct target {
    const struct etk_array *weight; /* [C], may be absent */
    struct line dense;
    int64_t index;
    bool is_dense, ignored, wrong;
};

static struct target
target_at(const struct etk_ref *r, const struct etk_array *t,
          const struct etk_array *weight, int64_t classes, const struct etk_pos *i)
{
    const struct et_cross_entropy_attr *o = r->attr;
    struct target v = {.weight = weight, .is_dense = et_dtype_is_float(t->d.dtype)};
    if (v.is_dense) {
        v.dense = line_at(t, 1, i->ix);
        return v;
    }
    v.index = etk_get_int(t, etk_offset_linear(&t->d, i->n));
    v.ignored = v.index == o->ignore_index;
    v.wrong = !v.ignored && (v.index < 0 || v.index >= classes);
    return v;
}

/* The weight of a class that is not the target plays no part, whatever it is. */
static double
class_weight(const struct target *t, int64_t c)
{
    double w = t->weight ? etk_get_or(t->weight, c * t->weight->d.stride[0], 1) : 1;
    if (t->is_dense)
        return w * get(&t->dense, c);
    return c == t->index ? w : 0;
}

static double
loss_of(const struct target *t, const struct line *z, double lse)
{
    if (t->ignored)
        return 0;
    if (t->wrong)
        return NAN;
    double loss = 0;
    for (int64_t c = 0; c < z->n; c++) {
        double w = class_weight(t, c);
        if (w != 0)
            loss += w * (lse - get(z, c));
    }
    return loss;
}

void
etk_ref_cross_entropy(const struct etk_ref *r)
{
    const struct etk_array *logits = &r->in[0], *loss = &r->out[0],
                           *out_lse = &r->out[1];
    struct et_desc rest = etk_without(&logits->d, 1);
    for (struct etk_pos i = etk_begin(&rest); !i.end; etk_next(&rest, &i)) {
        struct line z = line_at(logits, 1, i.ix);
        struct target t =
            target_at(r, &r->in[1], r->n_in > 2 ? &r->in[2] : NULL, z.n, &i);
        double lse = log_sum_exp(&z);
        if (loss->p)
            etk_set(loss, etk_offset_linear(&loss->d, i.n), loss_of(&t, &z, lse));
        if (out_lse->p)
            etk_set(out_lse, etk_offset_linear(&out_lse->d, i.n), lse);
    }
}

/* dz_c = dloss (p_c sum_k w_k t_k - w_c t_c). */
void
etk_ref_cross_entropy_grad(const struct etk_ref *r)
{
    const struct etk_array *dloss = &r->in[0], *logits = &r->in[1], *lse = &r->in[3];
    struct et_desc rest = etk_without(&logits->d, 1);
    for (struct etk_pos i = etk_begin(&rest); !i.end; etk_next(&rest, &i)) {
        struct line z = line_at(logits, 1, i.ix), dz = line_at(&r->out[0], 1, i.ix);
        struct target t =
            target_at(r, &r->in[2], r->n_in > 4 ? &r->in[4] : NULL, z.n, &i);
        double d = etk_get(dloss, etk_offset_linear(&dloss->d, i.n));
        double l = etk_get(lse, etk_offset_linear(&lse->d, i.n)), sum = 0;
        for (int64_t c = 0; c < z.n; c++)
            sum += class_weight(&t, c);
        for (int64_t c = 0; c < z.n; c++)
            set(&dz, c,
                t.ignored ? 0
                : t.wrong ? NAN
                          : d * (exp(get(&z, c) - l) * sum - class_weight(&t, c)));
    }
}
