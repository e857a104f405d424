/* SPDX-License-Identifier: Apache-2.0 */
/* cutout.c: square holes in the pictures of a batch.
 *
 *     L = trunc(length min(H, W)); x = 0 in num_holes squares of L at places drawn
 *
 * DeVries and Taylor 2017, arXiv 1708.04552; MosaicML Composer; spec/algorithms.md 2.7.
 * All pictures of a step have the same holes. Differs: zeros are written, and NaN does
 * not survive (D6); one draw for all ranks (1.5). */
#include "config.h"

#include "core/algorithms/boxes.h"
#include "core/base/need.h"
#include "core/ops/ops.h"

struct cutout_options {
    int64_t num_holes;
    double length;
    bool uniform_sampling;
};

struct cutout {
    struct eti_boxes holes;
};

struct et_tensor *
et_cutout_batch(struct et_graph *g, struct et_tensor *x, struct et_tensor *boxes)
{
    ETI_NEED_IN(g, g);
    if (!x || !boxes)
        return ETI_MISSING(g, x, boxes);
    int n = x->desc.ndim;
    if (n < 3 || n > 4 || boxes->desc.ndim != 2 || boxes->desc.shape[1] != 4)
        return eti_graph_fail(
            g, ET_FAIL(et_graph_ctx(g), ET_ESHAPE,
                       "cutout needs pictures [N,C,H,W] or [C,H,W] and boxes [K,4]; "
                       "these have %d and %d axes",
                       n, boxes->desc.ndim));
    struct et_tensor *zero = et_fill(g, x->desc.dtype, 1, (const int64_t[]){1}, 0);
    return eti_boxes_paste(g, boxes, zero, x);
}

static et_status
draw(struct et_algorithm *self, struct et_state *s, int64_t H, int64_t W)
{
    const struct cutout_options *o = self->options;
    struct cutout *own = self->state;
    struct et_rng rng = eti_draws(self, s, ET_RNG_MIX, s->timestamp.sample, 0);
    int64_t side = (int64_t)((double)(H < W ? H : W) * o->length);
    ET_TRY(eti_boxes_reserve(s, &own->holes, o->num_holes));
    for (int64_t i = 0; i < o->num_holes; i++)
        et_box_draw(&rng, side, side, H, W, o->uniform_sampling, own->holes.v + 4 * i);
    return eti_boxes_write(s, &own->holes);
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    (void)event, (void)s;
    return ((const struct cutout_options *)self->options)->num_holes > 0;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    struct cutout *own = self->state;
    (void)event, (void)log;
    if (!s->batch.x)
        return et_graph_status(s->graph);
    const struct et_desc *x = &s->batch.x->desc;
    if (x->ndim != 4)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "cutout needs images [N,C,H,W]; the inputs have %d axes",
                       x->ndim);
    ET_TRY(draw(self, s, x->shape[2], x->shape[3]));
    s->batch.x = et_cutout_batch(s->graph, s->batch.x, own->holes.leaf);
    return et_graph_status(s->graph);
}

static void
close_cutout(struct et_algorithm *self)
{
    eti_boxes_release(self->cx, &((struct cutout *)self->state)->holes);
}

static const struct et_option table[] = {
    ETI_ROW(INT, cutout_options, num_holes, "1", 0, 1024, 0, "holes of a picture"),
    ETI_ROW(FLOAT, cutout_options, length, "0.5", 0, 1,
            ET_OPT_MIN_OPEN | ET_OPT_MAX_OPEN | ET_OPT_MAY_CHANGE,
            "side of a hole, relative to the picture's shorter one"),
    ETI_BOOL(cutout_options, uniform_sampling, "false",
             "cover each pixel as often, instead of those in the middle more often"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_cutout = {
    .info =
        {
            .name = "cutout",
            .class_name = "CutOut",
            .summary = "cut square holes into pictures",
            .source = "DeVries and Taylor 2017, arXiv 1708.04552; MosaicML Composer",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct cutout_options),
        },
    .state_size = sizeof(struct cutout),
    .events = ET_ON(AFTER_DATALOADER),
    .match = match,
    .apply = apply,
    .close = close_cutout,
};
