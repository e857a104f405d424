/* SPDX-License-Identifier: Apache-2.0 */
/* l1.c: the mean of the absolute differences. */
#include "core/losses/losses.h"

static struct et_tensor *
each(struct et_graph *g, const void *options, struct et_tensor *y,
     const struct et_samples *samples)
{
    (void)options;
    return et_abs(g, eti_loss_apart(g, y, samples->target));
}

const struct et_loss_class et_loss_l1 = {
    .info = {ETI_LOSS_INFO("l1", "L1Loss", "mean of the absolute differences",
                           "PyTorch")},
    .each = each,
    .takes = ET_TAKES_NUMBERS,
};
