/* SPDX-License-Identifier: Apache-2.0 */
/* mse.c: the mean of the squared differences. */
#include "core/losses/losses.h"

static struct et_tensor *
each(struct et_graph *g, const void *options, struct et_tensor *y,
     const struct et_samples *samples)
{
    (void)options;
    return et_square(g, eti_loss_apart(g, y, samples->target));
}

const struct et_loss_class et_loss_mse = {
    .info = {ETI_LOSS_INFO("mse", "MeanSquaredError", "mean of the squared differences",
                           "PyTorch")},
    .each = each,
    .takes = ET_TAKES_NUMBERS,
};
