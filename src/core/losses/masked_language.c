/* SPDX-License-Identifier: Apache-2.0 */
/* masked_language.c: cross entropy of tokens: those that were masked, or each next one,
 * whatever the data set asks for. Logits [B,T,V], target [B,T]; -100 counts nothing. */
#include "core/losses/losses.h"

static struct et_tensor *
whole(struct et_graph *g, const void *options, struct et_tensor *z,
      const struct et_samples *samples, enum et_reduction reduction)
{
    (void)options;
    struct et_tensor *target = samples->target;
    int64_t b = z->desc.shape[0], t = z->desc.shape[1], v = z->desc.shape[2];
    z = et_reshape(g, z, 2, (const int64_t[]){b * t, v});
    target = et_reshape(g, target, 1, (const int64_t[]){b * t});
    struct et_tensor *l =
        et_cross_entropy(g, z, target, NULL, ET_IGNORE_INDEX, reduction);
    if (reduction != ET_REDUCE_NONE)
        return l;
    return et_mean(g, et_reshape(g, l, 2, (const int64_t[]){b, t}), 2, false);
}

static struct et_tensor *
counted(struct et_graph *g, const void *options, const struct et_samples *samples,
        bool masked)
{
    (void)options;
    return eti_loss_counted(g, samples->target, NULL, ET_IGNORE_INDEX, masked);
}

const struct et_loss_class et_loss_masked_language = {
    .info = {ETI_LOSS_INFO("masked_language", "MaskedLanguageLoss",
                           "cross entropy of tokens, -100 counts nothing",
                           "arXiv 1810.04805")},
    .whole = whole,
    .takes = ET_TAKES_TOKENS,
    .counted = counted,
};
