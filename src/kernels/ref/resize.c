/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c: resampling of images; each result pixel is a weighted sum of four pixels.
 *
 * nearest: src = min(floor(dst * scale), size - 1), in f32 as PyTorch has it.
 * bilinear: src = max(0, (dst + 1/2) scale - 1/2), between its two neighbours, with the
 * border repeated; no antialiasing. */
#include "kernels/ref/array.h"

#include <math.h>

/* Along one axis: pixels at[0], at[1] with weights w[0], w[1]. */
struct blend {
    int64_t at[2];
    double w[2];
};

static struct blend
blend_of(const struct et_resize_attr *o, int axis, int64_t dst, int64_t size)
{
    if (o->mode == ET_RESIZE_NEAREST) {
        int64_t src = (int64_t)floorf((float)dst * (float)o->scale[axis]);
        src = src < size - 1 ? src : size - 1;
        return (struct blend){.at = {src, src}, .w = {1, 0}};
    }
    double src = fmax(0, ((double)dst + 0.5) * o->scale[axis] - 0.5);
    int64_t low = (int64_t)src < size - 1 ? (int64_t)src : size - 1;
    int64_t high = low < size - 1 ? low + 1 : low;
    double t = fmin(src - (double)low, 1);
    return (struct blend){.at = {low, high}, .w = {1 - t, t}};
}

void
etk_ref_resize2d(const struct etk_ref *r)
{
    const struct etk_array *x = &r->in[0], *y = &r->out[0];
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        struct blend h = blend_of(r->attr, 0, i.ix[2], x->d.shape[2]);
        struct blend w = blend_of(r->attr, 1, i.ix[3], x->d.shape[3]);
        double sum = 0;
        for (int k = 0; k < 4; k++) {
            double weight = h.w[k / 2] * w.w[k % 2];
            if (weight != 0)
                sum += weight * etk_get(x, etk_offset4(&x->d, i.ix[0], i.ix[1],
                                                       h.at[k / 2], w.at[k % 2]));
        }
        etk_set(y, etk_offset(&y->d, i.ix), sum);
    }
}

void
etk_ref_resize2d_grad(const struct etk_ref *r)
{
    const struct etk_array *dy = &r->in[0];
    const int64_t *shape = r->out[0].d.shape;
    for (struct etk_pos i = etk_begin(&dy->d); !i.end; etk_next(&dy->d, &i)) {
        struct blend h = blend_of(r->attr, 0, i.ix[2], shape[2]);
        struct blend w = blend_of(r->attr, 1, i.ix[3], shape[3]);
        int64_t plane = (i.ix[0] * shape[1] + i.ix[1]) * shape[2];
        double v = etk_get(dy, etk_offset(&dy->d, i.ix));
        for (int k = 0; k < 4; k++) {
            double weight = h.w[k / 2] * w.w[k % 2];
            if (weight != 0)
                r->acc[0][(plane + h.at[k / 2]) * shape[3] + w.at[k % 2]] += weight * v;
        }
    }
    etk_flush(r, 0);
}
