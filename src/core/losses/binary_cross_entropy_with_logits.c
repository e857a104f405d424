/* SPDX-License-Identifier: Apache-2.0 */
/* binary_cross_entropy_with_logits.c: each class alone: summed over classes, averaged
 * over samples (spec/trainer.md 15.6). Differs from PyTorch, which averages both. */
#include "core/losses/losses.h"

static struct et_tensor *
each(struct et_graph *g, const void *options, struct et_tensor *z,
     const struct et_samples *samples)
{
    (void)options;
    struct et_tensor *l =
        et_bce_with_logits(g, z, eti_loss_dense(g, z, samples->target), ET_REDUCE_NONE);
    return et_sum(g, l, 2, false); /* axis 1: the classes */
}

const struct et_loss_class et_loss_binary_cross_entropy_with_logits = {
    .info = {ETI_LOSS_INFO(
        "binary_cross_entropy_with_logits", "BinaryCrossEntropyWithLogits",
        "cross entropy of each class alone, added up", "MosaicML Composer")},
    .each = each,
    .takes = ET_TAKES_CLASSES | ET_TAKES_SHARES,
};
