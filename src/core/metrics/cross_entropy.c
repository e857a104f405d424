/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy.c: mean cross entropy over all positions of all batches. */
#include "core/metrics/metric.h"

const struct et_metric_class et_metric_cross_entropy = {
    .info =
        {
            .name = "CrossEntropy",
            .class_name = "CrossEntropy",
            .summary = "mean cross entropy in nats, for logits [N,C,...]",
            .source = "MosaicML Composer",
            .applies_to = "any",
            .options = eti_metric_table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums = 2,
    .update = eti_metric_losses,
    .compute = eti_metric_mean,
};
