/* SPDX-License-Identifier: Apache-2.0 */
/* focal.c: cross entropy of each class alone, where what is known already counts less:
 *
 *     l = -a (1 - p)^gamma log p,  p and a: sigmoid(z), alpha where the target is 1,
 *                                          and 1 - these where it is 0
 *
 * added up over the classes. Lin et al. 2017, arXiv 1708.02002; as torchvision's
 * sigmoid_focal_loss. */
#include "core/losses/losses.h"

struct focal_options {
    double gamma, alpha;
};

/* A t + (1 - A) (1 - t) of T, all of it floats. */
static struct et_tensor *
chosen(struct et_graph *g, struct et_tensor *a, struct et_tensor *t)
{
    struct et_tensor *not_a = et_add_scalar(g, et_neg(g, a), 1);
    struct et_tensor *not_t = et_add_scalar(g, et_neg(g, t), 1);
    return et_add(g, et_mul(g, a, t), et_mul(g, not_a, not_t));
}

static struct et_tensor *
each(struct et_graph *g, const void *options, struct et_tensor *z,
     const struct et_samples *samples)
{
    const struct focal_options *o = options;
    struct et_tensor *t = eti_loss_dense(g, z, samples->target);
    struct et_tensor *l = et_bce_with_logits(g, z, t, ET_REDUCE_NONE);
    struct et_tensor *p = chosen(g, et_sigmoid(g, z), t);
    l = et_mul(g, l, et_pow_scalar(g, et_add_scalar(g, et_neg(g, p), 1), o->gamma));
    if (o->alpha >= 0)
        l = et_mul(g, l, chosen(g, et_fill(g, ET_F32, 0, NULL, o->alpha), t));
    return et_sum(g, l, 2, false);
}

static const struct et_option table[] = {
    {
        .name = "gamma",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct focal_options, gamma),
        .def = "2.0",
        .min = 0,
        .max = -1,
        .help = "how much less a class counts that is known well",
    },
    {
        .name = "alpha",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct focal_options, alpha),
        .def = "0.25",
        .min = -1,
        .max = 1,
        .help = "weight of what is there, against what is not; negative: both count "
                "alike",
    },
    {0},
};

const struct et_loss_class et_loss_focal = {
    .info = {ETI_LOSS_INFO("focal", "FocalLoss",
                           "cross entropy of each class, less of what is known well",
                           "Lin et al. 2017, arXiv 1708.02002; torchvision"),
             .options = table, .options_size = sizeof(struct focal_options)},
    .each = each,
    .takes = ET_TAKES_CLASSES | ET_TAKES_SHARES,
};
