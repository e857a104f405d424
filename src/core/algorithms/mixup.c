/* SPDX-License-Identifier: Apache-2.0 */
/* mixup.c: training on convex combinations of pairs of samples.
 *
 *     b ~ Beta(alpha, alpha), m = min(b, 1 - b), pi a permutation of the rank batch
 *     x' = (1 - m) x + m x[pi];  targets likewise, or instead the losses
 *
 * Zhang et al. 2018, arXiv 1710.09412; spec/algorithms.md 2.18.
 * Differs: one draw a step, the same in every microbatch and pass (D29). */
#include "config.h"

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"
#include "core/ops/ops.h"

struct mixup_options {
    double alpha;
    bool interpolate_loss;
};

struct mixup {
    struct et_tensor *m;              /* f32 [1] */
    struct eti_rows partner;          /* pi */
    struct et_tensor *partner_target; /* of the microbatch under way */
};

enum { DRAW_M, DRAW_PARTNERS };

/* (1 - m) a + m b, which is A itself where both are the same. */
static struct et_tensor *
blend(struct et_graph *g, struct et_tensor *a, struct et_tensor *b, struct et_tensor *m)
{
    return et_add(g, a, et_mul(g, et_sub(g, b, a), m));
}

double
et_mixup_coefficient(struct et_rng *rng, double alpha)
{
    if (!rng)
        return 0;
    double b = alpha > 0 ? et_rng_beta(rng, alpha, alpha) : 0;
    return b < 1 - b ? b : 1 - b;
}

struct et_tensor *
et_mixup_batch(struct et_graph *g, struct et_tensor *x, struct et_tensor *batch,
               struct et_tensor *index, struct et_tensor *m)
{
    ETI_NEED_IN(g, g);
    if (!x || !batch || !index || !m)
        return ETI_MISSING(g, x, batch, index, m);
    return blend(g, x, eti_take_rows(g, batch, index), m);
}

/* The numbers of this step; the same ones when it is repeated. */
static et_status
draw(struct et_algorithm *self, struct et_state *s)
{
    const struct mixup_options *o = self->options;
    struct mixup *own = self->state;
    struct et_rng of_step = eti_draws(self, s, ET_RNG_MIX, s->timestamp.sample, DRAW_M);
    struct et_rng of_rank =
        eti_draws(self, s, ET_RNG_MIX, s->first_sample, DRAW_PARTNERS);
    float m = (float)et_mixup_coefficient(&of_step, o->alpha);
    if (!own->m)
        ET_TRY(et_tensor_new(s->cx, s->dev, ET_F32, 1, (const int64_t[]){1},
                             ET_ROW_MAJOR, "mixup", &own->m));
    ET_TRY(et_tensor_write(s->cx, own->m, &m, sizeof m));
    ET_TRY(eti_rows_reserve(s, &own->partner, s->full.n));
    et_rng_permutation(&of_rank, own->partner.v, s->full.n);
    return eti_rows_write(s, &own->partner);
}

/* The fields beside the inputs: numbers are mixed as these are. */
static et_status
mix_others(struct et_state *s, struct mixup *own, struct et_tensor *index)
{
    for (int i = 0; i < s->batch.n_others; i++) {
        struct et_named_tensor *of = &s->batch.other[i];
        if (of->tensor && !et_dtype_is_float(of->tensor->desc.dtype))
            return ET_FAIL(s->cx, ET_ENOTSUP,
                           "mixup cannot mix '%s', which has %s and no real numbers",
                           of->name, et_dtype_name(of->tensor->desc.dtype));
        of->tensor = et_mixup_batch(s->graph, of->tensor, s->full.other[i].tensor,
                                    index, own->m);
    }
    return ET_OK;
}

static et_status
mix_inputs(struct et_algorithm *self, struct et_state *s)
{
    struct mixup *own = self->state;
    struct et_graph *g = s->graph;
    if (s->batch.x && !et_dtype_is_float(s->batch.x->desc.dtype))
        return ET_FAIL(s->cx, ET_ENOTSUP, "mixup needs inputs of real numbers, not %s",
                       et_dtype_name(s->batch.x->desc.dtype));
    if (!eti_takes_dense_targets(s))
        return ET_FAIL(s->cx, ET_ENOTSUP,
                       "mixup: the loss of a language model takes indices only");
    if (s->batch.first_row == 0)
        ET_TRY(draw(self, s));
    struct et_tensor *index = own->partner.leaf;
    if (s->batch.n != s->full.n)
        index = et_slice(g, index, 0, s->batch.first_row, s->batch.n, 1);
    s->batch.x = et_mixup_batch(g, s->batch.x, s->full.x, index, own->m);
    own->partner_target = eti_take_rows(g, s->full.target, index);
    ET_TRY(mix_others(s, own, index));
    return et_graph_status(g);
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct mixup_options *o = self->options;
    (void)s;
    return o->alpha > 0 && event != (o->interpolate_loss ? ET_EVENT_BEFORE_LOSS
                                                         : ET_EVENT_BEFORE_BACKWARD);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    struct mixup *own = self->state;
    struct et_graph *g = s->graph;
    (void)log;
    if (event == ET_EVENT_BEFORE_FORWARD)
        return mix_inputs(self, s);
    if (event == ET_EVENT_BEFORE_LOSS)
        s->batch.target =
            blend(g, et_state_dense_target(s, s->outputs, s->batch.target),
                  et_state_dense_target(s, s->outputs, own->partner_target), own->m);
    else
        s->loss = blend(
            g, s->loss,
            et_state_loss(s, s->outputs, own->partner_target, ET_REDUCE_MEAN), own->m);
    return et_graph_status(g);
}

static bool
interpolates_loss(const struct et_algorithm *self)
{
    return ((const struct mixup_options *)self->options)->interpolate_loss;
}

static void
close_mixup(struct et_algorithm *self)
{
    struct mixup *own = self->state;
    et_tensor_free(&own->m);
    eti_rows_release(self->cx, &own->partner);
}

static const struct et_option table[] = {
    ETI_ROW(FLOAT, mixup_options, alpha, "0.2", 0, -1, ET_OPT_MAY_CHANGE,
            "both parameters of the Beta distribution; 0 mixes nothing"),
    ETI_BOOL(mixup_options, interpolate_loss, "false",
             "mix the losses of both targets instead of the targets"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_mixup = {
    .info =
        {
            .name = "mixup",
            .class_name = "MixUp",
            .summary = "train on convex combinations of pairs of samples",
            .source = "Zhang et al. 2018, arXiv 1710.09412",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct mixup_options),
        },
    .state_size = sizeof(struct mixup),
    .events = ET_ON(BEFORE_FORWARD) | ET_ON(BEFORE_LOSS) | ET_ON(BEFORE_BACKWARD),
    .match = match,
    .apply = apply,
    .interpolates_loss = interpolates_loss,
    .close = close_mixup,
};
