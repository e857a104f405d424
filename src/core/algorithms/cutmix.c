/* SPDX-License-Identifier: Apache-2.0 */
/* cutmix.c: a box of each picture shows another one of the batch, and labels are mixed
 * by area.
 *
 *     lam ~ Beta(alpha, alpha), a box of trunc(H r) x trunc(W r), r = sqrt(1 - lam), at
 *     a place drawn, cut off at the edges; pi a permutation of the rank batch
 *     x'[box] = x[pi][box], lam' = 1 - |box| / (H W)
 *     t = lam' y + (1 - lam') y[pi], or instead the losses; masks have the box too
 *
 * Yun et al. 2019, arXiv 1905.04899; MosaicML Composer; spec/algorithms.md 2.6.
 * Differs: one box a step, the same in every microbatch and pass, on all ranks (D29);
 * masks of a batch stay as they are (D25). */
#include "config.h"

#include <math.h>

#include "core/algorithms/boxes.h"
#include "core/base/need.h"
#include "core/ops/ops.h"

struct cutmix_options {
    double alpha;
    bool interpolate_loss, uniform_sampling;
};

struct cutmix {
    struct eti_boxes box;
    struct et_tensor *partners_weight; /* f32 [1]: 1 - lam' */
    struct eti_rows partner;           /* pi */
    /* Of the microbatch under way: */
    struct et_tensor *partner_target;
    bool has_masks; /* its targets */
};

enum { DRAW_BOX, DRAW_PARTNERS };

/* ---- functions ---- */

double
et_cutmix_lambda(struct et_rng *rng, double alpha)
{
    if (!rng)
        return 0;
    return alpha > 0 ? et_rng_beta(rng, alpha, alpha) : 0;
}

void
et_cutmix_sides(double lambda, int64_t H, int64_t W, int64_t *height, int64_t *width)
{
    if (!height || !width)
        return;
    double ratio = sqrt(1 - lambda);
    *height = (int64_t)((double)H * ratio);
    *width = (int64_t)((double)W * ratio);
}

double
et_cutmix_adjusted_lambda(const int32_t box[4], int64_t H, int64_t W)
{
    if (!box)
        return 1;
    double area = (double)(box[2] - box[0]) * (double)(box[3] - box[1]);
    return 1 - area / (double)(H * W);
}

struct et_tensor *
et_cutmix_batch(struct et_graph *g, struct et_tensor *x, struct et_tensor *batch,
                struct et_tensor *index, struct et_tensor *box)
{
    ETI_NEED_IN(g, g);
    if (!x || !batch || !index || !box)
        return ETI_MISSING(g, x, batch, index, box);
    int n = x->desc.ndim;
    if (n < 3 || n > 4 || box->desc.ndim != 2 || box->desc.shape[1] != 4)
        return eti_graph_fail(
            g, ET_FAIL(et_graph_ctx(g), ET_ESHAPE,
                       "cutmix needs pictures [N,C,H,W] or masks [N,H,W], and a box "
                       "[1,4]; these have %d and %d axes",
                       n, box->desc.ndim));
    return eti_boxes_paste(g, box, eti_take_rows(g, batch, index), x);
}

/* (1 - m) a + m b, which is A itself where both are the same. */
static struct et_tensor *
blend(struct et_graph *g, struct et_tensor *a, struct et_tensor *b, struct et_tensor *m)
{
    return et_add(g, a, et_mul(g, et_sub(g, b, a), m));
}

/* ---- a step ---- */

/* The numbers of this step; the same ones when it is repeated. */
static et_status
draw(struct et_algorithm *self, struct et_state *s, int64_t H, int64_t W)
{
    const struct cutmix_options *o = self->options;
    struct cutmix *own = self->state;
    struct et_rng of_step =
        eti_draws(self, s, ET_RNG_MIX, s->timestamp.sample, DRAW_BOX);
    struct et_rng of_rank =
        eti_draws(self, s, ET_RNG_MIX, s->first_sample, DRAW_PARTNERS);
    int64_t height, width;
    et_cutmix_sides(et_cutmix_lambda(&of_step, o->alpha), H, W, &height, &width);
    ET_TRY(eti_boxes_reserve(s, &own->box, 1));
    et_box_draw(&of_step, height, width, H, W, o->uniform_sampling, own->box.v);
    ET_TRY(eti_boxes_write(s, &own->box));
    float weight = (float)(1 - et_cutmix_adjusted_lambda(own->box.v, H, W));
    if (!own->partners_weight)
        ET_TRY(et_tensor_new(s->cx, s->dev, ET_F32, 1, (const int64_t[]){1},
                             ET_ROW_MAJOR, "cutmix", &own->partners_weight));
    ET_TRY(et_tensor_write(s->cx, own->partners_weight, &weight, sizeof weight));
    ET_TRY(eti_rows_reserve(s, &own->partner, s->full.n));
    et_rng_permutation(&of_rank, own->partner.v, s->full.n);
    return eti_rows_write(s, &own->partner);
}

/* The fields beside the inputs: pictures of the same size have the same box. */
static et_status
mix_others(struct et_state *s, struct cutmix *own, struct et_tensor *index)
{
    for (int i = 0; i < s->batch.n_others; i++) {
        struct et_named_tensor *of = &s->batch.other[i];
        if (!of->tensor)
            continue;
        if (!eti_is_picture_of(of->tensor, s->batch.x))
            return ET_FAIL(s->cx, ET_ENOTSUP,
                           "cutmix cannot mix '%s', which is no picture of the inputs' "
                           "size",
                           of->name);
        of->tensor = et_cutmix_batch(s->graph, of->tensor, s->full.other[i].tensor,
                                     index, own->box.leaf);
    }
    return ET_OK;
}

static et_status
check_batch(const struct et_algorithm *self, struct et_state *s)
{
    const struct cutmix_options *o = self->options;
    const struct et_desc *x = &s->batch.x->desc;
    if (x->ndim != 4)
        return ET_FAIL(s->cx, ET_ENOTSUP,
                       "cutmix needs images [N,C,H,W]; the inputs have %d axes",
                       x->ndim);
    if (!eti_takes_dense_targets(s))
        return ET_FAIL(s->cx, ET_ENOTSUP,
                       "cutmix: the loss of a language model takes indices only");
    if (o->interpolate_loss && eti_is_picture_of(s->batch.target, s->batch.x))
        return ET_FAIL(s->cx, ET_EINVAL,
                       "cutmix: interpolate_loss has no meaning where targets are "
                       "masks: they get the box themselves");
    return ET_OK;
}

static et_status
mix_inputs(struct et_algorithm *self, struct et_state *s)
{
    struct cutmix *own = self->state;
    struct et_graph *g = s->graph;
    if (!s->batch.x)
        return et_graph_status(g);
    ET_TRY(check_batch(self, s));
    const int64_t *size = s->batch.x->desc.shape + 2;
    if (s->batch.first_row == 0)
        ET_TRY(draw(self, s, size[0], size[1]));
    struct et_tensor *index = own->partner.leaf;
    if (s->batch.n != s->full.n)
        index = et_slice(g, index, 0, s->batch.first_row, s->batch.n, 1);
    own->has_masks = eti_is_picture_of(s->batch.target, s->batch.x);
    own->partner_target = eti_take_rows(g, s->full.target, index);
    ET_TRY(mix_others(s, own, index));
    s->batch.x = et_cutmix_batch(g, s->batch.x, s->full.x, index, own->box.leaf);
    return et_graph_status(g);
}

static struct et_tensor *
mix_targets(struct et_state *s, struct cutmix *own)
{
    struct et_graph *g = s->graph;
    if (own->has_masks)
        return eti_boxes_paste(g, own->box.leaf, own->partner_target, s->batch.target);
    return blend(g, et_state_dense_target(s, s->outputs, s->batch.target),
                 et_state_dense_target(s, s->outputs, own->partner_target),
                 own->partners_weight);
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct cutmix_options *o = self->options;
    (void)s;
    return event !=
           (o->interpolate_loss ? ET_EVENT_BEFORE_LOSS : ET_EVENT_BEFORE_BACKWARD);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    struct cutmix *own = self->state;
    (void)log;
    if (event == ET_EVENT_BEFORE_FORWARD)
        return mix_inputs(self, s);
    if (event == ET_EVENT_BEFORE_LOSS)
        s->batch.target = mix_targets(s, own);
    else
        s->loss =
            blend(s->graph, s->loss,
                  et_state_loss(s, s->outputs, own->partner_target, ET_REDUCE_MEAN),
                  own->partners_weight);
    return et_graph_status(s->graph);
}

static bool
interpolates_loss(const struct et_algorithm *self)
{
    return ((const struct cutmix_options *)self->options)->interpolate_loss;
}

static void
close_cutmix(struct et_algorithm *self)
{
    struct cutmix *own = self->state;
    eti_boxes_release(self->cx, &own->box);
    et_tensor_free(&own->partners_weight);
    eti_rows_release(self->cx, &own->partner);
}

static const struct et_option table[] = {
    ETI_ROW(FLOAT, cutmix_options, alpha, "1", 0, -1, ET_OPT_MAY_CHANGE,
            "both parameters of the Beta distribution; 0 makes boxes of full size"),
    ETI_BOOL(cutmix_options, interpolate_loss, "false",
             "mix the losses of both targets instead of the targets"),
    ETI_BOOL(cutmix_options, uniform_sampling, "false",
             "cover each pixel as often, instead of those in the middle more often"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_cutmix = {
    .info =
        {
            .name = "cutmix",
            .class_name = "CutMix",
            .summary = "paste boxes of other pictures, and mix labels by area",
            .source = "Yun et al. 2019, arXiv 1905.04899; MosaicML Composer",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct cutmix_options),
        },
    .state_size = sizeof(struct cutmix),
    .events = ET_ON(BEFORE_FORWARD) | ET_ON(BEFORE_LOSS) | ET_ON(BEFORE_BACKWARD),
    .match = match,
    .apply = apply,
    .interpolates_loss = interpolates_loss,
    .close = close_cutmix,
};
