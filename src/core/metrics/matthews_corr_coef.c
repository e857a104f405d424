/* SPDX-License-Identifier: Apache-2.0 */
/* matthews_corr_coef.c: how prediction and target go together, from -1 to 1. */
#include "core/metrics/metric.h"

#include <math.h>

/* With s samples, c right ones, p_k said and t_k true of class k:
 *
 *     (c s - sum p_k t_k) / sqrt((s^2 - sum p_k^2) (s^2 - sum t_k^2))
 *
 * (Gorodkin 2004, doi 10.1016/j.compbiolchem.2004.09.006); 0 where either is one class
 * alone. */
static double
compute_matthews(const double *sums, int n)
{
    int classes = n / 3;
    double s = 0, right = 0, pt = 0, pp = 0, tt = 0;
    for (int k = 0; k < classes; k++) {
        double p = sums[classes + k], t = sums[2 * classes + k];
        s += t;
        right += sums[k];
        pt += p * t;
        pp += p * p;
        tt += t * t;
    }
    double square = (s * s - pp) * (s * s - tt);
    return s == 0 ? NAN : square > 0 ? (right * s - pt) / sqrt(square) : 0;
}

static const struct et_option table[] = {
    ETI_METRIC_CLASSES,
    ETI_METRIC_IGNORE("-100"),
};

const struct et_metric_class et_metric_matthews_corr_coef = {
    .info =
        {
            .name = "MatthewsCorrCoef",
            .class_name = "MatthewsCorrCoef",
            .summary = "correlation of prediction and target, for logits [N,C,...]",
            .source = "torchmetrics; doi 10.1016/j.compbiolchem.2004.09.006",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums_per_class = 3,
    .update = eti_metric_confusion,
    .compute = compute_matthews,
};
