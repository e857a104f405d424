/* SPDX-License-Identifier: Apache-2.0 */
/* loss.c: what training minimises, as formulas.
 *
 * Soft cross entropy: spec/algorithms.md 1.8. Binary cross entropy: summed over
 * classes, averaged over samples (spec/trainer.md 15.6). Dice, per class c with
 * probabilities p: 1 - (2 sum p t + s) / (sum p + sum t + s), s = 1 (Milletari et al.
 * 2016, 1606.04797, without squares). Index targets become one-hot where a formula
 * needs them. */
#include "core/base/need.h"
#include "core/graph/graph_impl.h"
#include "etude/model.h"

#include "core/ops/ops.h"

#define DICE_SMOOTHING 1.0

const char *const et_loss_names[] = {
    "soft_cross_entropy", "binary_cross_entropy_with_logits", "dice", "mse", NULL,
};

#define LOSS(its_name, its_class, its_summary, its_source)                             \
    &(const struct et_loss_class)                                                      \
    {                                                                                  \
        .info = {                                                                      \
            .name = its_name,                                                          \
            .class_name = its_class,                                                   \
            .summary = its_summary,                                                    \
            .source = its_source,                                                      \
            .applies_to = "any",                                                       \
        },                                                                             \
    }

const struct et_loss_class *const et_loss_classes[] = {
    LOSS("soft_cross_entropy", "SoftCrossEntropy",
         "cross entropy with classes or probabilities", "MosaicML Composer"),
    LOSS("binary_cross_entropy_with_logits", "BinaryCrossEntropyWithLogits",
         "cross entropy of each class alone, added up", "MosaicML Composer"),
    LOSS("dice", "DiceLoss", "1 - Dice of the softmax, mean over classes",
         "Milletari et al. 2016, arXiv 1606.04797"),
    LOSS("mse", "MeanSquaredError", "mean of the squared differences", "PyTorch"),
    NULL,
};

void
et_model_set_loss(struct et_model *m, const struct et_loss_class *loss,
                  const void *options)
{
    if (!m)
        return;
    m->own_loss = NULL;
    for (int i = 0; loss && et_loss_classes[i]; i++)
        if (et_loss_classes[i] == loss) {
            m->loss = (enum et_loss)i;
            return;
        }
    m->own_loss = loss;
    m->own_loss_options = options;
}

/* Mean, sum, or per-sample means of values V [N,...]. */
static struct et_tensor *
reduce(struct et_graph *g, struct et_tensor *v, enum et_reduction reduction)
{
    uint32_t all_but_first = v ? (1u << v->desc.ndim) - 2 : 0;
    switch (reduction) {
    case ET_REDUCE_MEAN:
        return et_mean(g, v, 0, false);
    case ET_REDUCE_SUM:
        return et_sum(g, v, 0, false);
    case ET_REDUCE_NONE:
        break;
    }
    return all_but_first ? et_mean(g, v, all_but_first, false) : v;
}

static struct et_tensor *
dense(struct et_graph *g, struct et_tensor *z, struct et_tensor *target)
{
    if (!z || !target || et_desc_same_shape(&z->desc, &target->desc))
        return target;
    return et_one_hot(g, target, z->desc.shape[1]);
}

static struct et_tensor *
cross_entropy(struct et_graph *g, struct et_tensor *z, struct et_tensor *target,
              enum et_reduction reduction)
{
    struct et_tensor *l =
        et_cross_entropy(g, z, target, NULL, ET_IGNORE_INDEX, reduction);
    return reduction == ET_REDUCE_NONE ? reduce(g, l, reduction) : l;
}

static struct et_tensor *
binary_cross_entropy(struct et_graph *g, struct et_tensor *z, struct et_tensor *target,
                     enum et_reduction reduction)
{
    struct et_tensor *l = et_bce_with_logits(g, z, dense(g, z, target), ET_REDUCE_NONE);
    return reduce(g, et_sum(g, l, 2, false), reduction); /* axis 1: the classes */
}

static struct et_tensor *
dice(struct et_graph *g, struct et_tensor *z, struct et_tensor *target,
     enum et_reduction reduction)
{
    struct et_tensor *t = dense(g, z, target), *p = et_softmax(g, z, 1);
    uint32_t space = z ? (1u << z->desc.ndim) - 4 : 0; /* axes behind N and C */
    struct et_tensor *both = et_mul(g, p, t), *p_sum = p, *t_sum = t;
    if (space) {
        both = et_sum(g, both, space, false);
        p_sum = et_sum(g, p, space, false);
        t_sum = et_sum(g, t, space, false);
    }
    struct et_tensor *above =
        et_add_scalar(g, et_mul_scalar(g, both, 2), DICE_SMOOTHING);
    struct et_tensor *below = et_add_scalar(g, et_add(g, p_sum, t_sum), DICE_SMOOTHING);
    struct et_tensor *score = et_div(g, above, below); /* [N,C] */
    return reduce(g, et_add_scalar(g, et_neg(g, score), 1), reduction);
}

static struct et_tensor *
mean_squared_error(struct et_graph *g, struct et_tensor *y, struct et_tensor *target,
                   enum et_reduction reduction)
{
    return reduce(g, et_square(g, et_sub(g, y, target)), reduction);
}

/* Logits [B,T,V] and targets [B,T] as B T positions. */
static struct et_tensor *
language(struct et_graph *g, struct et_tensor *z, struct et_tensor *target,
         enum et_reduction reduction)
{
    if (!z || !target)
        return NULL;
    int64_t b = z->desc.shape[0], t = z->desc.shape[1], v = z->desc.shape[2];
    z = et_reshape(g, z, 2, (const int64_t[]){b * t, v});
    target = et_reshape(g, target, 1, (const int64_t[]){b * t});
    struct et_tensor *l =
        et_cross_entropy(g, z, target, NULL, ET_IGNORE_INDEX, reduction);
    if (reduction != ET_REDUCE_NONE)
        return l;
    return et_mean(g, et_reshape(g, l, 2, (const int64_t[]){b, t}), 2, false);
}

/* A class's own. One number for all samples would be taken for one sample's. */
static struct et_tensor *
own(struct et_model *m, struct et_graph *g, struct et_tensor *outputs,
    const struct et_samples *samples, enum et_reduction reduction)
{
    const struct et_loss_class *c = m->own_loss;
    char text[128];
    struct et_tensor *v =
        outputs ? c->each(g, m->own_loss_options, outputs, samples) : NULL;
    if (et_graph_status(g) != ET_OK)
        return NULL;
    if (v && v->desc.dtype == ET_F32 && v->desc.ndim > 0 &&
        v->desc.shape[0] == outputs->desc.shape[0])
        return reduce(g, v, reduction);
    return eti_graph_fail(
        g,
        ET_FAIL(m->cx, ET_ESHAPE,
                "loss %s gives %s, not f32 with one value or more for each of %lld "
                "samples",
                c->info.name, v ? et_desc_text(&v->desc, text, sizeof text) : "nothing",
                outputs ? (long long)outputs->desc.shape[0] : 0));
}

static struct et_tensor *
loss(struct et_model *m, struct et_graph *g, struct et_tensor *outputs,
     const struct et_samples *samples, enum et_reduction reduction)
{
    struct et_tensor *target = samples->target;
    if (m->own_loss)
        return own(m, g, outputs, samples, reduction);
    if (m->type->task == ET_TASK_LANGUAGE)
        return language(g, outputs, target, reduction);
    switch (m->loss) {
    case ET_LOSS_SOFT_CROSS_ENTROPY:
        return cross_entropy(g, outputs, target, reduction);
    case ET_LOSS_BCE_WITH_LOGITS:
        return binary_cross_entropy(g, outputs, target, reduction);
    case ET_LOSS_DICE:
        return dice(g, outputs, target, reduction);
    case ET_LOSS_MSE:
        return mean_squared_error(g, outputs, target, reduction);
    }
    return NULL;
}

struct et_tensor *
et_model_loss(struct et_model *m, struct et_graph *g, struct et_tensor *outputs,
              const struct et_samples *samples, enum et_reduction reduction)
{
    ETI_NEED_IN(g, m, g, samples);
    struct et_tensor *target = samples->target;
    if (!outputs || !target)
        return ETI_MISSING(g, outputs, target);
    bool was = et_autocast(g, true);
    struct et_tensor *l = loss(m, g, outputs, samples, reduction);
    if (!l && m->loss == ET_LOSS_MSE && target->desc.dtype == ET_I32)
        et_hint(m->cx, "loss mse takes numbers of the outputs' shape, not classes; "
                       "soft_cross_entropy takes those");
    et_autocast(g, was);
    return l;
}
