/* SPDX-License-Identifier: Apache-2.0 */
/* transform_rows.c: see transform_rows.h. */
#include "core/data/transform_rows.h"

#include <math.h>

et_status
eti_transform_range(struct et_ctx *cx, const char *who, const char *name,
                    const struct et_floats *v, double low, double high)
{
    if (v->n == 2 && v->v[0] <= v->v[1] && v->v[0] >= low && v->v[1] <= high)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "%s: %s is two numbers from %g to %g, the smaller one first", who,
                   name, low, high);
}

double
eti_transform_draw(const struct et_floats *v, struct et_rng *r)
{
    return v->v[0] + (v->v[1] - v->v[0]) * et_rng_uniform(r);
}

bool
eti_transform_part(const struct et_floats *scale, const struct et_floats *ratio,
                   int64_t H, int64_t W, struct et_rng *r, int64_t *y, int64_t *x,
                   int64_t *h, int64_t *w)
{
    enum { TRIES = 10 };
    double low = log(ratio->v[0]), high = log(ratio->v[1]);
    for (int i = 0; i < TRIES; i++) {
        double area = (double)(H * W) * eti_transform_draw(scale, r);
        double aspect = exp(low + (high - low) * et_rng_uniform(r));
        *w = llrint(sqrt(area * aspect));
        *h = llrint(sqrt(area / aspect));
        if (*w < 1 || *w > W || *h < 1 || *h > H)
            continue;
        *y = (int64_t)et_rng_below(r, (uint64_t)(H - *h + 1));
        *x = (int64_t)et_rng_below(r, (uint64_t)(W - *w + 1));
        return true;
    }
    return false;
}

void
eti_transform_do(int (*changes)(const void *, struct et_rng *, int64_t, int64_t,
                                struct et_pixel_change *),
                 const void *options, struct et_rng *r, struct et_canvas *c)
{
    struct et_pixel_change change[ET_MAX_CHANGES];
    int n = changes(options, r, c->H, c->W, change);
    for (int i = 0; i < n; i++)
        et_canvas_change(c, &change[i]);
}

int
eti_transform_maybe(double p, enum et_change_kind kind, int value, struct et_rng *r,
                    struct et_pixel_change *out)
{
    if (et_rng_uniform(r) >= p)
        return 0;
    *out = (struct et_pixel_change){.kind = kind, .value = value};
    return 1;
}
