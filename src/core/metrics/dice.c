/* SPDX-License-Identifier: Apache-2.0 */
/* dice.c: mean over the classes that occur of 2 both / (said + true), in percent. */
#include "core/metrics/metric.h"

#include <math.h>

static double
compute_dice(const double *sums, int n)
{
    int classes = n / 3, present = 0;
    double total = 0;
    for (int c = 0; c < classes; c++)
        if (!isnan(eti_metric_f1(sums, classes, c))) {
            total += eti_metric_f1(sums, classes, c);
            present++;
        }
    return present ? 100 * total / present : NAN;
}

static const struct et_option table[] = {
    ETI_METRIC_CLASSES,
    ETI_METRIC_IGNORE("-1"),
};

const struct et_metric_class et_metric_dice = {
    .info =
        {
            .name = "Dice",
            .class_name = "Dice",
            .summary =
                "mean Dice score of the classes in percent, for logits [N,C,H,W]",
            .source = "MosaicML Composer, composer/metrics/metrics.py",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums_per_class = 3,
    .update = eti_metric_confusion,
    .compute = compute_dice,
};
