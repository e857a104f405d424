/* SPDX-License-Identifier: Apache-2.0 */
/* miou.c: mean over classes of intersection over union, in percent.
 *
 *     per class c: positions where both prediction and target are c, over those where
 *     either is; mean over the classes that occur in either
 *
 * An intersection is where both are c, a union what is said plus what is true less
 * that. */
#include "core/metrics/metric.h"

#include <math.h>

static double
compute(const double *sums, int n)
{
    int classes = n / 3, present = 0;
    double total = 0;
    for (int c = 0; c < classes; c++) {
        double either = sums[classes + c] + sums[2 * classes + c] - sums[c];
        if (either == 0)
            continue;
        total += sums[c] / either;
        present++;
    }
    return present ? 100 * total / present : NAN;
}

static const struct et_option table[] = {
    ETI_METRIC_CLASSES,
    ETI_METRIC_IGNORE("-1"),
};

const struct et_metric_class et_metric_miou = {
    .info =
        {
            .name = "MIoU",
            .class_name = "MIoU",
            .summary = "mean intersection over union in percent, for logits [N,C,H,W]",
            .source = "MosaicML Composer, composer/metrics/metrics.py",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums_per_class = 3,
    .update = eti_metric_confusion,
    .compute = compute,
};
