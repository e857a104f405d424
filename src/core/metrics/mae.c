/* SPDX-License-Identifier: Apache-2.0 */
/* mae.c: the mean of the absolute differences, over all numbers of all samples. */
#include "core/metrics/metric.h"

#include "core/losses/losses.h"

static struct et_tensor *
update(struct et_graph *g, const struct et_metric_options *o, struct et_tensor *outputs,
       const struct et_samples *samples)
{
    (void)o;
    if (!outputs)
        return NULL;
    struct et_tensor *d = eti_loss_apart(g, outputs, samples->target);
    double n = (double)et_desc_count(&outputs->desc);
    return eti_metric_pair(g, et_sum(g, et_abs(g, d), 0, false),
                           et_fill(g, ET_F32, 0, NULL, n));
}

const struct et_metric_class et_metric_mae = {
    .info =
        {
            .name = "MAE",
            .class_name = "MeanAbsoluteError",
            .summary = "mean of the absolute differences",
            .source = "torchmetrics",
            .applies_to = "any",
        },
    .n_sums = 2,
    .update = update,
    .compute = eti_metric_mean,
};
