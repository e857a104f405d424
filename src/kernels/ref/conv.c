/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: convolution (cross-correlation) and its gradients; zero padding.
 *
 *   y[n,k,p,q] = sum_{c,r,s} w[k,c,r,s] x[n, g(k) C/G + c, p S - P + r D,
 *                                         q S - P + s D]
 *
 * with stride S, padding P, dilation D and group g(k) of output channel k. The input
 * gradient, which is also transposed convolution, and the weight gradient are the same
 * sum seen from x and from w. Letters as in op.h; index 0 of an attribute is the
 * height. */
#include "kernels/ref/array.h"

/* Sizes of one convolution; Y and X name the image with K and with C channels. */
struct conv {
    const struct et_conv2d_attr *o;
    struct etk_array x, y, w;
    int64_t group_in, group_out; /* channels per group: of x and of y */
    int64_t taps[2];
};

static struct conv
conv_of(const struct etk_ref *r, const struct etk_array *x, const struct etk_array *y,
        const struct etk_array *w)
{
    struct conv v = {.o = r->attr, .x = *x, .y = *y, .w = *w};
    v.group_in = w->d.shape[1];
    v.group_out = w->d.shape[0] / v.o->groups;
    v.taps[0] = w->d.shape[2];
    v.taps[1] = w->d.shape[3];
    return v;
}

/* The row or column of x that tap T of output row or column P reads; -1 outside. */
static int64_t
source(const struct conv *v, int axis, int64_t p, int64_t t)
{
    int64_t at = p * v->o->stride[axis] - v->o->pad[axis] + t * v->o->dilation[axis];
    return at >= 0 && at < v->x.d.shape[2 + axis] ? at : -1;
}

/* The row or column of y whose tap T reads row or column AT of x; -1 if none. */
static int64_t
target(const struct conv *v, int axis, int64_t at, int64_t t)
{
    int64_t p = at + v->o->pad[axis] - t * v->o->dilation[axis];
    if (p < 0 || p % v->o->stride[axis])
        return -1;
    p /= v->o->stride[axis];
    return p < v->y.d.shape[2 + axis] ? p : -1;
}

static double
conv_at(const struct conv *v, int64_t n, int64_t k, int64_t p, int64_t q)
{
    int64_t from = k / v->group_out * v->group_in;
    double sum = 0;
    for (int64_t r = 0; r < v->taps[0]; r++)
        for (int64_t s = 0; s < v->taps[1]; s++) {
            int64_t h = source(v, 0, p, r), w = source(v, 1, q, s);
            if (h >= 0 && w >= 0)
                sum += etk_dot(&v->w, etk_offset4(&v->w.d, k, 0, r, s), 1, &v->x,
                               etk_offset4(&v->x.d, n, from, h, w), 1, v->group_in);
        }
    return sum;
}

static double
grad_input_at(const struct conv *v, int64_t n, int64_t c, int64_t h, int64_t w)
{
    int64_t from = c / v->group_in * v->group_out;
    double sum = 0;
    for (int64_t r = 0; r < v->taps[0]; r++)
        for (int64_t s = 0; s < v->taps[1]; s++) {
            int64_t p = target(v, 0, h, r), q = target(v, 1, w, s);
            if (p >= 0 && q >= 0)
                sum += etk_dot(&v->w, etk_offset4(&v->w.d, from, c % v->group_in, r, s),
                               0, &v->y, etk_offset4(&v->y.d, n, from, p, q), 1,
                               v->group_out);
        }
    return sum;
}

static double
grad_weight_at(const struct conv *v, int64_t k, int64_t c, int64_t r, int64_t s)
{
    int64_t from = k / v->group_out * v->group_in + c;
    double sum = 0;
    for (int64_t p = 0; p < v->y.d.shape[2]; p++)
        for (int64_t q = 0; q < v->y.d.shape[3]; q++) {
            int64_t h = source(v, 0, p, r), w = source(v, 1, q, s);
            if (h >= 0 && w >= 0)
                sum += etk_dot(&v->y, etk_offset4(&v->y.d, 0, k, p, q), 0, &v->x,
                               etk_offset4(&v->x.d, 0, from, h, w), 0, v->y.d.shape[0]);
        }
    return sum;
}

/* Computes every element of OUT; BIAS (may be absent) is per element of axis 1. */
static void
each(const struct conv *v, const struct etk_array *out, const struct etk_array *bias,
     double (*at)(const struct conv *, int64_t, int64_t, int64_t, int64_t))
{
    for (struct etk_pos i = etk_begin(&out->d); !i.end; etk_next(&out->d, &i)) {
        double sum = at(v, i.ix[0], i.ix[1], i.ix[2], i.ix[3]);
        if (bias && bias->p)
            sum += etk_get(bias, i.ix[1] * bias->d.stride[0]);
        etk_set(out, etk_offset(&out->d, i.ix), sum);
    }
}

void
etk_ref_conv2d(const struct etk_ref *r)
{
    struct conv v = conv_of(r, &r->in[0], &r->out[0], &r->in[1]);
    each(&v, &r->out[0], r->n_in > 2 ? &r->in[2] : NULL, conv_at);
}

void
etk_ref_conv2d_fused(const struct etk_ref *r)
{
    const struct et_conv2d_fused_attr *o = r->attr;
    const struct etk_array *y = &r->out[0], *scale = &r->in[2], *shift = &r->in[3];
    const struct etk_array *residual = r->n_in > 4 ? &r->in[4] : NULL;
    struct conv v = conv_of(r, &r->in[0], y, &r->in[1]);
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        int64_t k = i.ix[1];
        double value = conv_at(&v, i.ix[0], k, i.ix[2], i.ix[3]) *
                       etk_get(scale, k * scale->d.stride[0]);
        value += etk_get(shift, k * shift->d.stride[0]);
        if (residual && residual->p)
            value += etk_get(residual, etk_offset(&residual->d, i.ix));
        etk_set(y, etk_offset(&y->d, i.ix), o->relu && value < 0 ? 0 : value);
    }
}

void
etk_ref_conv2d_grad_input(const struct etk_ref *r)
{
    struct conv v = conv_of(r, &r->out[0], &r->in[0], &r->in[1]);
    each(&v, &r->out[0], r->n_in > 2 ? &r->in[2] : NULL, grad_input_at);
}

void
etk_ref_conv2d_grad_weight(const struct etk_ref *r)
{
    struct conv v = conv_of(r, &r->in[0], &r->in[1], &r->out[0]);
    each(&v, &r->out[0], NULL, grad_weight_at);
}
