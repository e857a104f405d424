/* SPDX-License-Identifier: Apache-2.0 */
/* binary_f1_score.c: harmonic mean of the second class's precision and recall. */
#include "core/metrics/metric.h"

static double
compute_binary_f1(const double *sums, int n)
{
    return eti_metric_f1(sums, n / 3, 1);
}

static const struct et_option table[] = {
    ETI_METRIC_CLASSES,
    ETI_METRIC_IGNORE("-100"),
};

const struct et_metric_class et_metric_binary_f1_score = {
    .info =
        {
            .name = "BinaryF1Score",
            .class_name = "BinaryF1Score",
            .summary = "F1 score of the second of two classes, for logits [N,2]",
            .source = "torchmetrics",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums_per_class = 3,
    .n_classes = 2,
    .update = eti_metric_confusion,
    .compute = compute_binary_f1,
};
