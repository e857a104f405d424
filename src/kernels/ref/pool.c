/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: pooling over windows of a plane, and its gradients.
 *
 * The index of a winner is h W + w in the input plane; the first of equals wins, NaN
 * wins over numbers, and a window with no pixel has index -1 and value -inf. The
 * average divides by the pixels of the window inside the image, or inside the padded
 * image with count_include_pad; what ceil mode adds beyond the padding never counts.
 * Adaptive window i of P over a length H is floor(i H/P) .. ceil((i+1) H/P) - 1. */
#include "kernels/ref/array.h"

#include <math.h>

/* One axis of a window: COUNT taps from START, STEP apart; only 0 .. LENGTH-1 exist. */
struct span {
    int64_t start, step, count, length, pad;
};

static struct span
window(const struct et_pool2d_attr *o, int axis, int64_t p, int64_t length)
{
    return (struct span){
        .start = p * o->stride[axis] - o->pad[axis],
        .step = o->dilation[axis] ? o->dilation[axis] : 1,
        .count = o->kernel[axis],
        .length = length,
        .pad = o->pad[axis],
    };
}

static struct span
adaptive_window(int64_t p, int64_t windows, int64_t length)
{
    int64_t start = p * length / windows;
    int64_t end = ((p + 1) * length + windows - 1) / windows;
    return (struct span){
        .start = start, .step = 1, .count = end - start, .length = length};
}

static bool
inside(const struct span *s, int64_t at)
{
    return at >= 0 && at < s->length;
}

static int64_t
taps_inside(const struct span *s, bool include_pad)
{
    int64_t margin = include_pad ? s->pad : 0, n = 0;
    for (int64_t t = 0; t < s->count; t++) {
        int64_t at = s->start + t * s->step;
        n += at >= -margin && at < s->length + margin;
    }
    return n;
}

void
etk_ref_max_pool2d(const struct etk_ref *r)
{
    const struct et_pool2d_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0], *index = &r->out[1];
    const struct et_desc *wanted = y->p ? &y->d : &index->d;
    for (struct etk_pos i = etk_begin(wanted); !i.end; etk_next(wanted, &i)) {
        struct span rows = window(o, 0, i.ix[2], x->d.shape[2]);
        struct span columns = window(o, 1, i.ix[3], x->d.shape[3]);
        double best = -INFINITY;
        int64_t winner = -1;
        for (int64_t t = 0; t < rows.count * columns.count; t++) {
            int64_t h = rows.start + t / columns.count * rows.step;
            int64_t w = columns.start + t % columns.count * columns.step;
            if (!inside(&rows, h) || !inside(&columns, w))
                continue;
            double v = etk_get(x, etk_offset4(&x->d, i.ix[0], i.ix[1], h, w));
            if (winner < 0 || etk_wins(v, best)) {
                best = v;
                winner = h * columns.length + w;
            }
        }
        etk_set(y, etk_offset(&y->d, i.ix), best);
        etk_set(index, etk_offset(&index->d, i.ix), (double)winner);
    }
}

/* Adds V to element n, c, h, w of gradient DX. */
static void
add4(const struct etk_ref *r, const int64_t *ix, int64_t h, int64_t w, double v)
{
    const int64_t *shape = r->out[0].d.shape;
    r->acc[0][((ix[0] * shape[1] + ix[1]) * shape[2] + h) * shape[3] + w] += v;
}

void
etk_ref_max_pool2d_grad(const struct etk_ref *r)
{
    const struct etk_array *dy = &r->in[0], *index = &r->in[1];
    int64_t width = r->out[0].d.shape[3], plane = r->out[0].d.shape[2] * width;
    for (struct etk_pos i = etk_begin(&dy->d); !i.end; etk_next(&dy->d, &i)) {
        int64_t winner = etk_get_int(index, etk_offset(&index->d, i.ix));
        if (winner >= 0 && winner < plane)
            add4(r, i.ix, winner / width, winner % width,
                 etk_get(dy, etk_offset(&dy->d, i.ix)));
    }
    etk_flush(r, 0);
}

static double
average(const struct etk_array *x, const int64_t *ix, const struct span *rows,
        const struct span *columns, bool include_pad)
{
    double sum = 0;
    for (int64_t t = 0; t < rows->count * columns->count; t++) {
        int64_t h = rows->start + t / columns->count * rows->step;
        int64_t w = columns->start + t % columns->count * columns->step;
        if (inside(rows, h) && inside(columns, w))
            sum += etk_get(x, etk_offset4(&x->d, ix[0], ix[1], h, w));
    }
    int64_t n = taps_inside(rows, include_pad) * taps_inside(columns, include_pad);
    return n ? sum / (double)n : 0;
}

static void
spread(const struct etk_ref *r, const int64_t *ix, const struct span *rows,
       const struct span *columns, bool include_pad, double dy)
{
    int64_t n = taps_inside(rows, include_pad) * taps_inside(columns, include_pad);
    for (int64_t t = 0; t < rows->count * columns->count; t++) {
        int64_t h = rows->start + t / columns->count * rows->step;
        int64_t w = columns->start + t % columns->count * columns->step;
        if (inside(rows, h) && inside(columns, w))
            add4(r, ix, h, w, dy / (double)n);
    }
}

/* The window of position IX of pooled image P over image X. */
static void
windows(const struct etk_ref *r, bool adaptive, const struct et_desc *p,
        const struct et_desc *x, const int64_t *ix, struct span *span)
{
    for (int k = 0; k < 2; k++)
        span[k] = adaptive
                      ? adaptive_window(ix[2 + k], p->shape[2 + k], x->shape[2 + k])
                      : window(r->attr, k, ix[2 + k], x->shape[2 + k]);
}

static void
pool(const struct etk_ref *r, bool adaptive)
{
    const struct et_pool2d_attr *o = r->attr;
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        struct span span[2];
        windows(r, adaptive, &y->d, &x->d, i.ix, span);
        etk_set(
            y, etk_offset(&y->d, i.ix),
            average(x, i.ix, &span[0], &span[1], !adaptive && o->count_include_pad));
    }
}

static void
pool_grad(const struct etk_ref *r, bool adaptive)
{
    const struct et_pool2d_attr *o = r->attr;
    const struct etk_array *dy = &r->in[0];
    for (struct etk_pos i = etk_begin(&dy->d); !i.end; etk_next(&dy->d, &i)) {
        struct span span[2];
        windows(r, adaptive, &dy->d, &r->out[0].d, i.ix, span);
        spread(r, i.ix, &span[0], &span[1], !adaptive && o->count_include_pad,
               etk_get(dy, etk_offset(&dy->d, i.ix)));
    }
    etk_flush(r, 0);
}

void
etk_ref_avg_pool2d(const struct etk_ref *r)
{
    pool(r, false);
}

void
etk_ref_avg_pool2d_grad(const struct etk_ref *r)
{
    pool_grad(r, false);
}

void
etk_ref_adaptive_avg_pool2d(const struct etk_ref *r)
{
    pool(r, true);
}

void
etk_ref_adaptive_avg_pool2d_grad(const struct etk_ref *r)
{
    pool_grad(r, true);
}
