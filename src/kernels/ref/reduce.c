/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: sums, extremes, winners and order. NaN wins every comparison, as in
 * PyTorch. */
#include "kernels/ref/array.h"

#include <math.h>

/* Result N in row-major order: begins at OUTER, the position of its first element in X,
 * and runs over INNER, x's axes of the mask. */
static void
split(const struct et_desc *x, uint32_t axes, struct et_desc *outer,
      struct et_desc *inner)
{
    *outer = *inner = *x;
    for (int k = 0; k < x->ndim; k++)
        (axes >> k & 1 ? outer : inner)->shape[k] = 1;
}

static double
sum_of(double sum, double v)
{
    return sum + v;
}

static double
max_of(double best, double v)
{
    return etk_wins(v, best) ? v : best;
}

static double
min_of(double best, double v)
{
    return etk_wins(-v, -best) ? v : best;
}

static void
reduce(const struct etk_ref *r, double start, double (*step)(double, double))
{
    const struct et_reduce_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    struct et_desc outer, inner;
    split(&x->d, o->axes, &outer, &inner);
    for (struct etk_pos i = etk_begin(&outer); !i.end; etk_next(&outer, &i)) {
        int64_t base = etk_offset(&outer, i.ix);
        double value = start;
        for (struct etk_pos k = etk_begin(&inner); !k.end; etk_next(&inner, &k))
            value = step(value, etk_get(x, base + etk_offset(&inner, k.ix)));
        etk_set(y, etk_offset_linear(&y->d, i.n), value);
    }
}

void
etk_ref_sum(const struct etk_ref *r)
{
    reduce(r, 0, sum_of);
}

void
etk_ref_amax(const struct etk_ref *r)
{
    reduce(r, -INFINITY, max_of);
}

void
etk_ref_amin(const struct etk_ref *r)
{
    reduce(r, INFINITY, min_of);
}

void
etk_ref_sum_squares(const struct etk_ref *r)
{
    const struct etk_array *x = &r->in[0];
    double sum = 0;
    for (struct etk_pos i = etk_begin(&x->d); !i.end; etk_next(&x->d, &i)) {
        double v = etk_get(x, etk_offset(&x->d, i.ix));
        sum += v * v;
    }
    etk_set(&r->out[0], 0, sum);
}

/* Where stretch S begins: a row of X. */
static int64_t
first_row(const struct etk_ref *r, int64_t s)
{
    int64_t row = (int64_t)etk_get(&r->in[1], etk_offset_linear(&r->in[1].d, s));
    return row < 0 ? 0 : row < r->in[0].d.shape[0] ? row : r->in[0].d.shape[0];
}

void
etk_ref_segment_sum_squares(const struct etk_ref *r)
{
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    for (int64_t s = 0; s < y->d.shape[0]; s++) {
        int64_t first = first_row(r, s);
        struct et_desc rows = x->d;
        rows.shape[0] = first_row(r, s + 1) - first;
        double sum = 0;
        for (struct etk_pos i = etk_begin(&rows); !i.end; etk_next(&rows, &i)) {
            double v = etk_get(x, first * x->d.stride[0] + etk_offset(&rows, i.ix));
            sum += v * v;
        }
        etk_set(y, etk_offset_linear(&y->d, s), sum);
    }
}

void
etk_ref_argmax(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    struct et_desc rest = etk_without(&x->d, o->axis);
    for (struct etk_pos i = etk_begin(&rest); !i.end; etk_next(&rest, &i)) {
        int64_t base = etk_offset(&x->d, i.ix), stride = x->d.stride[o->axis], best = 0;
        for (int64_t k = 1; k < x->d.shape[o->axis]; k++)
            if (etk_wins(etk_get(x, base + k * stride),
                         etk_get(x, base + best * stride)))
                best = k;
        etk_set(y, etk_offset_linear(&y->d, i.n), (double)best);
    }
}

/* Is element A of a line along AXIS before element B? In descending order or in
 * ascending; equals stay. */
static bool
before(const struct etk_array *line, int axis, bool descending, int64_t a, int64_t b)
{
    int64_t stride = line->d.stride[axis];
    double va = etk_get(line, a * stride), vb = etk_get(line, b * stride);
    bool wins = etk_wins(va, vb), loses = etk_wins(vb, va);
    return (descending ? wins : loses) || (!wins && !loses && a < b);
}

/* Element J of a line is written at its rank, the number of elements before it, if that
 * is below N. */
static void
put_in_order(const struct etk_ref *r, int axis, bool descending, int64_t n)
{
    const struct etk_array *x = &r->in[0], *value = &r->out[0], *index = &r->out[1];
    struct et_desc rest = etk_without(&x->d, axis);
    for (struct etk_pos i = etk_begin(&rest); !i.end; etk_next(&rest, &i)) {
        struct etk_array line = {.d = x->d};
        int64_t base = etk_offset(&x->d, i.ix);
        line.p = x->p + base * (int64_t)et_dtype_size(x->d.dtype);
        for (int64_t j = 0; j < x->d.shape[axis]; j++) {
            int64_t rank = 0;
            for (int64_t k = 0; k < x->d.shape[axis]; k++)
                rank += before(&line, axis, descending, k, j);
            if (rank >= n)
                continue;
            i.ix[axis] = rank;
            etk_move(value, etk_offset(&value->d, i.ix), x,
                     base + j * x->d.stride[axis]);
            etk_set(index, etk_offset(&index->d, i.ix), (double)j);
        }
        i.ix[axis] = 0;
    }
}

void
etk_ref_topk(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    put_in_order(r, r->in[0].d.ndim - 1, true, o->n);
}

void
etk_ref_sort(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    put_in_order(r, o->axis, o->reverse, r->in[0].d.shape[o->axis]);
}

void
etk_ref_cumsum(const struct etk_ref *r)
{
    const struct et_axis_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    struct et_desc rest = etk_without(&x->d, o->axis);
    int64_t n = x->d.shape[o->axis];
    for (struct etk_pos i = etk_begin(&rest); !i.end; etk_next(&rest, &i)) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) {
            i.ix[o->axis] = o->reverse ? n - 1 - k : k;
            sum += etk_get(x, etk_offset(&x->d, i.ix));
            etk_set(y, etk_offset(&y->d, i.ix), sum);
        }
        i.ix[o->axis] = 0;
    }
}
