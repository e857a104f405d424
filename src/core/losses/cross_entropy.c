/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy.c: as PyTorch's: index or dense targets, weights of the classes, a part
 * of the target that all classes share:
 *
 *     t' = (1 - s) one_hot(t) + s / C
 *
 * Positions with ignore_index count nothing. */
#include "core/losses/losses.h"

#include "core/graph/graph_impl.h"

enum { MOST_WEIGHTS = 256 };

struct cross_entropy_options {
    struct et_floats weight;
    int64_t ignore_index;
    double smoothing;
};

/* The weights as an array [C]; NULL: there are none, or G has failed. */
static struct et_tensor *
weights_of(struct et_graph *g, const struct cross_entropy_options *o, int64_t classes)
{
    struct et_tensor *part[MOST_WEIGHTS];
    const int64_t one = 1;
    if (o->weight.n == 0)
        return NULL;
    if (o->weight.n != classes || classes > MOST_WEIGHTS)
        return eti_graph_fail(g,
                              ET_FAIL(et_graph_ctx(g), ET_EINVAL,
                                      "loss cross_entropy has %d weights, and there "
                                      "are %lld classes (%d at most have weights)",
                                      o->weight.n, (long long)classes, MOST_WEIGHTS));
    for (int i = 0; i < o->weight.n; i++)
        part[i] = et_fill(g, ET_F32, 1, &one, o->weight.v[i]);
    return et_concat(g, part, o->weight.n, 0);
}

/* 1 where an index target counts, as f32; of dense ones the sum of what is there. */
static struct et_tensor *
mass_of(struct et_graph *g, const struct cross_entropy_options *o,
        struct et_tensor *target, struct et_tensor *weight)
{
    if (et_dtype_is_float(target->desc.dtype))
        return et_sum(g, target, 2, false);
    struct et_tensor *ignored =
        et_equal(g, target, et_fill(g, ET_I32, 0, NULL, (double)o->ignore_index));
    struct et_tensor *counts =
        et_add_scalar(g, et_neg(g, et_cast(g, ignored, ET_F32)), 1);
    if (!weight)
        return counts;
    /* The place of class 0 stands for what is ignored, and counts 0 times. */
    struct et_tensor *place = et_mul(g, target, et_cast(g, counts, ET_I32));
    return et_mul(g, counts, et_take(g, weight, place, 0));
}

/* Each position's loss with a part of the target that all classes share. */
static struct et_tensor *
smoothed(struct et_graph *g, const struct cross_entropy_options *o, struct et_tensor *z,
         struct et_tensor *target, struct et_tensor *weight)
{
    double s = o->smoothing;
    struct et_tensor *even =
        et_fill(g, ET_F32, z->desc.ndim, z->desc.shape, 1.0 / (double)z->desc.shape[1]);
    struct et_tensor *hard =
        et_cross_entropy(g, z, target, weight, o->ignore_index, ET_REDUCE_NONE);
    struct et_tensor *soft =
        et_cross_entropy(g, z, even, weight, o->ignore_index, ET_REDUCE_NONE);
    struct et_tensor *mass = mass_of(g, o, target, NULL);
    /* No product: where no class counts a mean's gradient is NaN, even times 0. */
    soft = et_dtype_is_float(target->desc.dtype)
               ? et_mul(g, soft, mass)
               : et_where(g, mass, soft, et_fill(g, ET_F32, 0, NULL, 0));
    return et_add(g, et_mul_scalar(g, hard, 1 - s), et_mul_scalar(g, soft, s));
}

static struct et_tensor *
whole(struct et_graph *g, const void *options, struct et_tensor *z,
      const struct et_samples *samples, enum et_reduction reduction)
{
    const struct cross_entropy_options *o = options;
    struct et_tensor *target = samples->target;
    struct et_tensor *weight = weights_of(g, o, z->desc.shape[1]);
    if (et_graph_status(g) != ET_OK)
        return NULL;
    if (o->smoothing == 0) {
        struct et_tensor *l =
            et_cross_entropy(g, z, target, weight, o->ignore_index, reduction);
        return reduction == ET_REDUCE_NONE ? eti_loss_reduce(g, l, reduction) : l;
    }
    struct et_tensor *l = smoothed(g, o, z, target, weight);
    if (reduction != ET_REDUCE_MEAN)
        return eti_loss_reduce(g, l, reduction);
    return et_div(g, et_sum(g, l, 0, false),
                  et_sum(g, mass_of(g, o, target, weight), 0, false));
}

static struct et_tensor *
counted(struct et_graph *g, const void *options, const struct et_samples *samples,
        bool masked)
{
    const struct cross_entropy_options *o = options;
    struct et_tensor *weight = weights_of(g, o, o->weight.n);
    return eti_loss_counted(g, samples->target, weight, o->ignore_index, masked);
}

static const struct et_option table[] = {
    {
        .name = "weight",
        .type = ET_OPT_FLOATS,
        .offset = offsetof(struct cross_entropy_options, weight),
        .flags = ET_OPT_OPTIONAL,
        .help = "of each class; unset: all count alike",
    },
    {
        .name = "ignore_index",
        .type = ET_OPT_INT,
        .offset = offsetof(struct cross_entropy_options, ignore_index),
        .def = "-100",
        .min = INT32_MIN,
        .max = INT32_MAX,
        .help = "positions with this target count nothing",
    },
    {
        .name = "smoothing",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct cross_entropy_options, smoothing),
        .def = "0.0",
        .min = 0,
        .max = 1,
        .help = "part of the target that all classes share",
    },
    {0},
};

const struct et_loss_class et_loss_cross_entropy = {
    .info = {ETI_LOSS_INFO("cross_entropy", "CrossEntropyLoss",
                           "cross entropy, with weights of the classes", "PyTorch"),
             .options = table, .options_size = sizeof(struct cross_entropy_options)},
    .whole = whole,
    .takes = ET_TAKES_CLASSES | ET_TAKES_SHARES,
    .counted = counted,
};
