/* SPDX-License-Identifier: Apache-2.0 */
/* view.c: what a sample shows of its picture. See etude/transform.h and view.h.
 *
 * Along each axis a view is a line, ORIGIN + X STEP, from places of the result to
 * places of the picture: cutting moves its origin, resizing changes its step, flipping
 * its sign, so that any number of them are done at once. A turn cannot be told by two
 * lines: what came before it stays as it is, what comes after is put into its matrix.
 */
#include "core/image/view.h"

#include <math.h>
#include <string.h>

#include "core/image/affine.h"

const char *const et_filter_names[] = {"nearest", "bilinear", "bicubic", NULL};

/* ---- changing a view ---- */

static struct et_view_axis
whole_axis(int64_t n)
{
    return (struct et_view_axis){.step = 1, .hi = n, .to = n};
}

struct et_view
et_view_of(int64_t h, int64_t w)
{
    return (struct et_view){
        .h = h,
        .w = w,
        .filter = ET_BILINEAR,
        .y = whole_axis(h),
        .x = whole_axis(w),
    };
}

static int64_t
clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static void
crop_axis(struct et_view_axis *a, int64_t at, int64_t n)
{
    a->origin += (double)at * a->step;
    a->from = clamp(a->from - at, 0, n);
    a->to = clamp(a->to - at, a->from, n);
}

void
et_view_crop(struct et_view *v, int64_t y, int64_t x, int64_t h, int64_t w)
{
    if (!v)
        return;
    crop_axis(&v->y, y, h);
    crop_axis(&v->x, x, w);
    v->h = h;
    v->w = w;
}

static void
flip_axis(struct et_view_axis *a, int64_t n)
{
    int64_t from = a->from;
    a->origin += (double)n * a->step;
    a->step = -a->step;
    a->from = n - a->to;
    a->to = n - from;
}

void
et_view_flip_x(struct et_view *v)
{
    if (!v)
        return;
    flip_axis(&v->x, v->w);
}

void
et_view_flip_y(struct et_view *v)
{
    if (!v)
        return;
    flip_axis(&v->y, v->h);
}

/* N pixels become M. Filters are not to see what was cut off. */
static void
resize_axis(struct et_view_axis *a, int64_t n, int64_t m)
{
    double by = (double)n / (double)m;
    double first = a->origin + (double)a->from * a->step;
    double last = a->origin + (double)a->to * a->step;
    int64_t lo = (int64_t)floor(fmin(first, last));
    int64_t hi = (int64_t)ceil(fmax(first, last));
    if (n == m)
        return;
    a->lo = clamp(lo, a->lo, a->hi);
    a->hi = clamp(hi, a->lo, a->hi);
    a->step *= by;
    a->from = clamp(llrint((double)a->from / by), 0, m);
    a->to = clamp(llrint((double)a->to / by), a->from, m);
}

void
et_view_resize(struct et_view *v, int64_t h, int64_t w, enum et_filter filter)
{
    if (!v || (h == v->h && w == v->w))
        return;
    resize_axis(&v->y, v->h, h);
    resize_axis(&v->x, v->w, w);
    v->h = h;
    v->w = w;
    v->filter = (int)filter;
}

/* The matrix of what V's axes do. */
static struct eti_affine
of_axes(const struct et_view *v)
{
    return (struct eti_affine){{v->x.step, 0, v->x.origin, 0, v->y.step, v->y.origin}};
}

static struct eti_affine
of_turn(const struct et_view *v)
{
    struct eti_affine a;
    memcpy(a.m, v->turn, sizeof a.m);
    return a;
}

void
et_view_turn(struct et_view *v, double angle, double dx, double dy, double scale,
             double shear_x, double shear_y, enum et_filter filter)
{
    if (!v)
        return;
    struct eti_affine turn = eti_affine_of((double)v->w / 2, (double)v->h / 2, angle,
                                           dx, dy, scale, shear_x, shear_y);
    if (v->turned) {
        struct eti_affine before = of_turn(v), axes = of_axes(v);
        axes = eti_affine_after(&before, &axes);
        turn = eti_affine_after(&axes, &turn);
    } else {
        v->first_h = v->h;
        v->first_w = v->w;
        v->first_y = v->y;
        v->first_x = v->x;
    }
    v->turned = true;
    memcpy(v->turn, turn.m, sizeof v->turn);
    v->y = whole_axis(v->h);
    v->x = whole_axis(v->w);
    if (filter == ET_NEAREST || v->filter == ET_NEAREST)
        v->filter = (int)filter;
}

/* ---- what is needed for it ---- */

static bool
axis_is_whole(const struct et_view_axis *a)
{
    return fabs(a->step) == 1 && a->origin == floor(a->origin);
}

bool
eti_view_is_whole(const struct et_view *v)
{
    return !v->turned && axis_is_whole(&v->y) && axis_is_whole(&v->x);
}

/* Which pixels an axis looks at: [*AT, *AT + *N). */
static void
find_range(const struct et_view_axis *a, int filter, int64_t *at, int64_t *n)
{
    double first = a->origin + (double)a->from * a->step;
    double last = a->origin + (double)a->to * a->step;
    double reach = axis_is_whole(a) ? 0 : (filter + 1) * fmax(1, fabs(a->step));
    int64_t from = (int64_t)floor(fmin(first, last) - reach);
    int64_t to = (int64_t)ceil(fmax(first, last) + reach);
    from = clamp(from, a->lo, a->hi - 1);
    to = clamp(to, from + 1, a->hi);
    *at = from;
    *n = to - from;
}

struct eti_picture_want
eti_view_want(const struct et_view *v, int C)
{
    const struct et_view_axis *y = v->turned ? &v->first_y : &v->y;
    const struct et_view_axis *x = v->turned ? &v->first_x : &v->x;
    struct eti_picture_want want = {.C = C};
    find_range(y, v->filter, &want.y, &want.h);
    find_range(x, v->filter, &want.x, &want.w);
    /* As many pixels as it shows of the part. */
    want.out_h = (int64_t)ceil((double)want.h / fabs(y->step));
    want.out_w = (int64_t)ceil((double)want.w / fabs(x->step));
    return want;
}

static void
axis_onto(struct et_view_axis *a, double at, int by, int64_t n)
{
    a->origin = (a->origin - at) / by;
    a->step /= by;
    a->lo = clamp((int64_t)floor(((double)a->lo - at) / by), 0, n - 1);
    a->hi = clamp((int64_t)ceil(((double)a->hi - at) / by), a->lo + 1, n);
}

void
eti_view_onto(struct et_view *v, const struct eti_picture *p)
{
    axis_onto(v->turned ? &v->first_y : &v->y, p->y, p->shrunk, p->pixels.H);
    axis_onto(v->turned ? &v->first_x : &v->x, p->x, p->shrunk, p->pixels.W);
}

/* ---- looking ---- */

static void
fill_all(uint8_t *out, int64_t n, int C, const uint8_t *fill)
{
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < C; c++)
            *out++ = fill[c];
}

/* The part of an axis that is not black. */
static struct eti_axis
seen(const struct et_view_axis *a)
{
    return (struct eti_axis){
        .n = a->to - a->from,
        .origin = a->origin + (double)a->from * a->step,
        .step = a->step,
        .lo = a->lo,
        .hi = a->hi,
    };
}

static et_status
look_along(struct eti_looker *l, const struct et_view_axis *y,
           const struct et_view_axis *x, int64_t h, int64_t w,
           const struct et_pixels *in, int filter, const uint8_t *fill, uint8_t *out,
           struct et_error *why)
{
    struct eti_axis down = seen(y), over = seen(x);
    if (down.n < h || over.n < w)
        fill_all(out, h * w, in->C, fill);
    if (down.n == 0 || over.n == 0)
        return ET_OK;
    if (axis_is_whole(y) && axis_is_whole(x))
        filter = ET_NEAREST;
    return eti_resample(&l->resampler, in, &down, &over, (enum et_filter)filter,
                        out + (y->from * w + x->from) * in->C, w * in->C, why);
}

/* Rows and columns that a later crop left black. */
static void
fill_border(const struct et_view *v, int C, const uint8_t *fill, uint8_t *out)
{
    for (int64_t i = 0; i < v->h; i++) {
        uint8_t *row = out + i * v->w * C;
        bool black = i < v->y.from || i >= v->y.to;
        fill_all(row, black ? v->w : v->x.from, C, fill);
        if (!black)
            fill_all(row + v->x.to * C, v->w - v->x.to, C, fill);
    }
}

static et_status
look_turned(struct eti_looker *l, const struct et_view *v, const struct et_pixels *in,
            int filter, const uint8_t *fill, uint8_t *out, struct et_error *why)
{
    struct et_pixels first = *in;
    struct et_view_axis plain_y = whole_axis(in->H), plain_x = whole_axis(in->W);
    bool plain = v->first_h == in->H && v->first_w == in->W &&
                 memcmp(&v->first_y, &plain_y, sizeof plain_y) == 0 &&
                 memcmp(&v->first_x, &plain_x, sizeof plain_x) == 0;
    if (!plain) {
        size_t bytes = (size_t)(v->first_h * v->first_w * in->C);
        ET_TRY(eti_scratch_need(&l->first, bytes, why));
        struct et_canvas c = {l->first.data, in->C, v->first_h, v->first_w, NULL};
        ET_TRY(look_along(l, &v->first_y, &v->first_x, c.H, c.W, in, filter, fill,
                          c.data, why));
        first = eti_canvas_view(&c);
    }
    struct eti_affine turn = of_turn(v), axes = of_axes(v);
    turn = eti_affine_after(&turn, &axes);
    eti_affine_sample(&first, &turn, v->h, v->w, filter ? ET_BILINEAR : ET_NEAREST,
                      fill, out);
    fill_border(v, in->C, fill, out);
    return ET_OK;
}

et_status
eti_view_look(struct eti_looker *l, const struct et_view *v, const struct et_pixels *in,
              int filter, const uint8_t *fill, uint8_t *out, struct et_error *why)
{
    if (v->turned)
        return look_turned(l, v, in, filter, fill, out, why);
    return look_along(l, &v->y, &v->x, v->h, v->w, in, filter, fill, out, why);
}

/* ---- telling ---- */

static struct et_shown_axis
tell_axis(const struct et_view_axis *a)
{
    struct eti_axis along = seen(a);
    return (struct et_shown_axis){.origin = along.origin,
                                  .step = along.step,
                                  .lo = (int32_t)along.lo,
                                  .hi = (int32_t)along.hi,
                                  .from = (int32_t)a->from,
                                  .to = (int32_t)a->to};
}

void
eti_view_tell(const struct et_view *v, struct et_shown *out)
{
    const struct et_view_axis *y = v->turned ? &v->first_y : &v->y;
    const struct et_view_axis *x = v->turned ? &v->first_x : &v->x;
    bool whole = axis_is_whole(y) && axis_is_whole(x);
    *out = (struct et_shown){.filter = whole ? ET_NEAREST : v->filter};
    out->y = tell_axis(y);
    out->x = tell_axis(x);
    if (!v->turned)
        return;
    struct eti_affine turn = of_turn(v), axes = of_axes(v);
    turn = eti_affine_after(&turn, &axes);
    memcpy(out->turn, turn.m, sizeof out->turn);
    out->turned = v->filter ? 2 : 1;
    out->h = (int32_t)v->first_h;
    out->w = (int32_t)v->first_w;
    out->edge[0] = (int32_t)v->y.from;
    out->edge[1] = (int32_t)v->y.to;
    out->edge[2] = (int32_t)v->x.from;
    out->edge[3] = (int32_t)v->x.to;
}

void
eti_looker_free(struct eti_looker *l)
{
    eti_resampler_free(&l->resampler);
    eti_scratch_free(&l->first);
}
