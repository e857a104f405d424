/* SPDX-License-Identifier: Apache-2.0 */
/* soft_cross_entropy.c: cross entropy of index or dense targets; spec/algorithms.md
 * 1.8. */
#include "core/losses/losses.h"

static struct et_tensor *
whole(struct et_graph *g, const void *options, struct et_tensor *z,
      const struct et_samples *samples, enum et_reduction reduction)
{
    (void)options;
    struct et_tensor *l =
        et_cross_entropy(g, z, samples->target, NULL, ET_IGNORE_INDEX, reduction);
    return reduction == ET_REDUCE_NONE ? eti_loss_reduce(g, l, reduction) : l;
}

static struct et_tensor *
counted(struct et_graph *g, const void *options, const struct et_samples *samples,
        bool masked)
{
    (void)options;
    return eti_loss_counted(g, samples->target, NULL, ET_IGNORE_INDEX, masked);
}

const struct et_loss_class et_loss_soft_cross_entropy = {
    .info = {ETI_LOSS_INFO("soft_cross_entropy", "SoftCrossEntropy",
                           "cross entropy with classes or probabilities",
                           "MosaicML Composer")},
    .whole = whole,
    .takes = ET_TAKES_CLASSES | ET_TAKES_SHARES,
    .counted = counted,
};
