/* SPDX-License-Identifier: Apache-2.0 */
/* progressive_resizing.c: images begin small and grow with the run.
 *
 *     done = clamp((elapsed - delay) / (1 - finetune - delay), 0, 1)
 *     scale = initial + (1 - initial) done
 *     width = round(W scale / inc) inc, height in proportion, rounded down
 *     pixel (i, j) is that at (i, j) W / width, down as across
 *
 * Touvron et al. 2019, arXiv 1906.06423; MosaicML Composer; spec/algorithms.md 2.19.
 * Differs: the width is the rounded one exactly (D16); bilinear on request (D26); one
 * window a step on all ranks (1.5). Windows are index arrays, not slices: their place
 * changes every step, their size seldom. */
#include "config.h"

#include <math.h>

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"
#include "core/ops/ops.h"

enum mode { MODE_CROP, MODE_RESIZE };

struct progressive_resizing_options {
    int mode; /* enum mode */
    double initial_scale, finetune_fraction, delay_fraction;
    int64_t size_increment;
    bool resize_targets, bilinear;
};

/* Rows and columns of a window. */
struct window {
    struct eti_rows rows, columns;
};

struct progressive_resizing {
    struct window x, target;
};

double
et_resize_scale(double elapsed, double initial_scale, double delay_fraction,
                double finetune_fraction)
{
    double done = 0;
    if (elapsed >= delay_fraction)
        done = fmin(
            (elapsed - delay_fraction) / (1 - finetune_fraction - delay_fraction), 1);
    return initial_scale + (1 - initial_scale) * done;
}

void
et_resize_size(double scale, int64_t increment, int64_t size[2])
{
    if (!size)
        return;
    double full = (double)size[1], step = (double)increment;
    double width = nearbyint(full * scale / step) * step; /* half to even */
    if (width >= full)
        return;
    size[0] = (int64_t)(width / full * (double)size[0] + 1e-9);
    size[1] = (int64_t)width;
}

/* Labels keep their values: the nearest pixel's. */
static struct et_tensor *
resize_labels(struct et_graph *g, struct et_tensor *y, int64_t height, int64_t width,
              double step)
{
    const int64_t *n = y->desc.shape;
    struct et_tensor *image =
        et_reshape(g, y, 4, (const int64_t[]){n[0], 1, n[1], n[2]});
    image = et_resize2d_by(g, et_cast(g, image, ET_F32), ET_RESIZE_NEAREST, height,
                           width, step);
    return et_reshape(g, et_cast(g, image, y->desc.dtype), 3,
                      (const int64_t[]){n[0], height, width});
}

struct et_tensor *
et_resize_batch(struct et_graph *g, struct et_tensor *x, enum et_resize_mode mode,
                int64_t height, int64_t width, double step)
{
    ETI_NEED_IN(g, g);
    if (!x)
        return ETI_MISSING(g, x);
    if (x->desc.ndim == 3)
        return resize_labels(g, x, height, width, step);
    return et_resize2d_by(g, x, mode, height, width, step);
}

struct et_tensor *
et_crop_batch(struct et_graph *g, struct et_tensor *x, struct et_tensor *rows,
              struct et_tensor *columns)
{
    ETI_NEED_IN(g, g);
    static const int to_nhwc[] = {0, 2, 3, 1}, to_nchw[] = {0, 3, 1, 2};
    if (!x || !rows || !columns)
        return ETI_MISSING(g, x, rows, columns);
    if (x->desc.ndim != 4)
        return et_take(g, et_take(g, x, rows, 1), columns, 2);
    x = et_permute(g, x, to_nhwc);
    x = et_take(g, et_take(g, x, rows, 1), columns, 2);
    return et_permute(g, x, to_nchw);
}

/* ---- crops ---- */

static et_status
write_range(struct et_state *s, struct eti_rows *r, int64_t first, int64_t n)
{
    ET_TRY(eti_rows_reserve(s, r, n));
    for (int64_t i = 0; i < n; i++)
        r->v[i] = (int32_t)(first + i);
    return eti_rows_write(s, r);
}

static et_status
crop(struct et_state *s, struct window *w, const int64_t corner[2],
     const int64_t size[2], struct et_tensor **x)
{
    ET_TRY(write_range(s, &w->rows, corner[0], size[0]));
    ET_TRY(write_range(s, &w->columns, corner[1], size[1]));
    *x = et_crop_batch(s->graph, *x, w->rows.leaf, w->columns.leaf);
    return ET_OK;
}

static void
draw_corner(const struct et_algorithm *self, const struct et_state *s,
            const int64_t full[2], const int64_t size[2], int64_t corner[2])
{
    struct et_rng rng = eti_draws(self, s, ET_RNG_MIX, s->timestamp.sample, 0);
    for (int i = 0; i < 2; i++)
        corner[i] = full[i] > size[i]
                        ? (int64_t)et_rng_below(&rng, (uint64_t)(full[i] - size[i]))
                        : 0;
}

/* ---- a batch ---- */

static const int64_t *
pixels(const struct et_tensor *t)
{
    return t->desc.shape + t->desc.ndim - 2;
}

static et_status
check_shapes(struct et_state *s, const struct progressive_resizing_options *o)
{
    const struct et_desc *x = &s->batch.x->desc;
    int target = s->batch.target ? s->batch.target->desc.ndim : 0;
    if (x->ndim != 4)
        return ET_FAIL(
            s->cx, ET_EINVAL,
            "progressive_resizing needs images [N,C,H,W]; the inputs have %d axes",
            x->ndim);
    if (o->resize_targets && target != 3 && target != 4)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "progressive_resizing: resize_targets needs targets [N,H,W] or "
                       "[N,C,H,W]; these have %d axes",
                       target);
    return ET_OK;
}

/* Other fields that are as large as the images are masks of them, and follow. */
static et_status
change_others(struct et_state *s, const struct progressive_resizing_options *o,
              struct progressive_resizing *own, const int64_t full[2],
              const int64_t corner[2], const int64_t scaled[2])
{
    double step = (double)full[1] / (double)scaled[1];
    for (int i = 0; i < s->batch.n_others; i++) {
        struct et_tensor **t = &s->batch.other[i].tensor;
        if (!*t || (*t)->desc.ndim < 3 || (*t)->desc.ndim > 4 ||
            pixels(*t)[0] != full[0] || pixels(*t)[1] != full[1])
            continue;
        if (o->mode == MODE_CROP)
            ET_TRY(crop(s, &own->x, corner, scaled, t));
        else
            *t = et_resize_batch(s->graph, *t, ET_RESIZE_NEAREST, scaled[0], scaled[1],
                                 step);
    }
    return ET_OK;
}

/* SCALED is the size that FULL becomes; targets change in the same proportion. */
static et_status
change(struct et_algorithm *self, struct et_state *s, const int64_t full[2],
       const int64_t scaled[2])
{
    const struct progressive_resizing_options *o = self->options;
    struct progressive_resizing *own = self->state;
    struct et_tensor **target = o->resize_targets ? &s->batch.target : NULL;
    int64_t corner[2], target_corner[2] = {0}, target_size[2] = {0};
    enum et_resize_mode how = o->bilinear ? ET_RESIZE_BILINEAR : ET_RESIZE_NEAREST;
    double s_width = (double)scaled[1] / (double)full[1];
    double step = (double)full[1] / (double)scaled[1];
    draw_corner(self, s, full, scaled, corner);
    for (int i = 0; target && i < 2; i++) {
        double n = (double)pixels(*target)[i];
        target_size[i] = (int64_t)(s_width * n + 1e-9);
        target_corner[i] = (int64_t)(n / (double)full[i] * (double)corner[i]);
    }
    ET_TRY(change_others(s, o, own, full, corner, scaled));
    if (o->mode == MODE_CROP) {
        ET_TRY(crop(s, &own->x, corner, scaled, &s->batch.x));
        if (target)
            ET_TRY(crop(s, &own->target, target_corner, target_size, target));
    } else {
        s->batch.x =
            et_resize_batch(s->graph, s->batch.x, how, scaled[0], scaled[1], step);
        if (target)
            *target = et_resize_batch(s->graph, *target, how, target_size[0],
                                      target_size[1], step);
    }
    return et_graph_status(s->graph);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct progressive_resizing_options *o = self->options;
    double elapsed;
    (void)event;
    if (!s->batch.x)
        return et_graph_status(s->graph);
    ET_TRY(check_shapes(s, o));
    ET_TRY(et_state_elapsed(s, &elapsed));
    double scale = et_resize_scale(elapsed, o->initial_scale, o->delay_fraction,
                                   o->finetune_fraction);
    const int64_t full[] = {pixels(s->batch.x)[0], pixels(s->batch.x)[1]};
    int64_t size[] = {full[0], full[1]};
    et_resize_size(scale, o->size_increment, size);
    if (size[0] < 1 || size[1] < 1)
        return ET_FAIL(
            s->cx, ET_EINVAL,
            "progressive_resizing: %g of %lldx%lld in steps of %lld leaves no "
            "pixels; use a larger initial_scale or a smaller size_increment",
            scale, (long long)full[0], (long long)full[1],
            (long long)o->size_increment);
    et_log_metric(log, "progressive_resizing/height", (double)size[0]);
    et_log_metric(log, "progressive_resizing/width", (double)size[1]);
    et_log_metric(log, "progressive_resizing/scale_factor", scale);
    return size[1] == full[1] ? ET_OK : change(self, s, full, size);
}

static void
close_progressive_resizing(struct et_algorithm *self)
{
    struct progressive_resizing *own = self->state;
    struct eti_rows *all[] = {&own->x.rows, &own->x.columns, &own->target.rows,
                              &own->target.columns};
    for (int i = 0; i < 4; i++)
        eti_rows_release(self->cx, all[i]);
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct progressive_resizing_options *o = options;
    if (o->delay_fraction + o->finetune_fraction >= 1)
        return ET_FAIL(
            cx, ET_EINVAL,
            "progressive_resizing: delay_fraction %g and finetune_fraction %g "
            "leave no time to grow; their sum must be below 1",
            o->delay_fraction, o->finetune_fraction);
    if (o->bilinear && o->mode == MODE_CROP)
        return ET_FAIL(
            cx, ET_EINVAL,
            "progressive_resizing: bilinear is for mode resize; a crop keeps "
            "its pixels");
    return ET_OK;
}

static const char *const modes[] = {"crop", "resize", NULL};

#define FRACTION(field, defaults, words)                                               \
    ETI_ROW(FLOAT, progressive_resizing_options, field, defaults, 0, 1, 0, words)

static const struct et_option table[] = {
    ETI_ENUM(progressive_resizing_options, mode, "resize", modes, 0,
             "a window of the image, or all of it made smaller"),
    FRACTION(initial_scale, "0.5", "size at the start, relative to the images' own"),
    FRACTION(finetune_fraction, "0.2", "fraction of the run at full size, at its end"),
    FRACTION(delay_fraction, "0.5", "fraction of the run before images grow"),
    ETI_ROW(INT, progressive_resizing_options, size_increment, "4", 1, -1, 0,
            "widths are multiples of this many pixels"),
    ETI_BOOL(progressive_resizing_options, resize_targets, "false",
             "targets are masks that change with the images"),
    ETI_BOOL(progressive_resizing_options, bilinear, "false",
             "mix neighbouring pixels instead of taking the nearest"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_progressive_resizing = {
    .info =
        {
            .name = "progressive_resizing",
            .class_name = "ProgressiveResizing",
            .summary = "begin with small images and grow them",
            .source = "Touvron et al. 2019, arXiv 1906.06423; MosaicML Composer",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct progressive_resizing_options),
        },
    .state_size = sizeof(struct progressive_resizing),
    .events = ET_ON(AFTER_DATALOADER),
    .check = check,
    .apply = apply,
    .close = close_progressive_resizing,
};
