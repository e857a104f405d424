/* SPDX-License-Identifier: Apache-2.0 */
/* dice.c: per class c with probabilities p, 1 - (2 sum p t + s) / (sum p + sum t + s),
 * s = 1 (Milletari et al. 2016, 1606.04797, without squares). */
#include "core/losses/losses.h"

#define SMOOTHING 1.0

static struct et_tensor *
each(struct et_graph *g, const void *options, struct et_tensor *z,
     const struct et_samples *samples)
{
    (void)options;
    struct et_tensor *t = eti_loss_dense(g, z, samples->target),
                     *p = et_softmax(g, z, 1);
    uint32_t space = z ? (1u << z->desc.ndim) - 4 : 0; /* axes behind N and C */
    struct et_tensor *both = et_mul(g, p, t), *p_sum = p, *t_sum = t;
    if (space) {
        both = et_sum(g, both, space, false);
        p_sum = et_sum(g, p, space, false);
        t_sum = et_sum(g, t, space, false);
    }
    struct et_tensor *above = et_add_scalar(g, et_mul_scalar(g, both, 2), SMOOTHING);
    struct et_tensor *below = et_add_scalar(g, et_add(g, p_sum, t_sum), SMOOTHING);
    struct et_tensor *score = et_div(g, above, below); /* [N,C] */
    return et_add_scalar(g, et_neg(g, score), 1);
}

const struct et_loss_class et_loss_dice = {
    .info = {ETI_LOSS_INFO("dice", "DiceLoss",
                           "1 - Dice of the softmax, mean over classes",
                           "Milletari et al. 2016, arXiv 1606.04797")},
    .each = each,
    .takes = ET_TAKES_CLASSES | ET_TAKES_SHARES,
};
