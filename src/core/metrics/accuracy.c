/* SPDX-License-Identifier: Apache-2.0 */
/* accuracy.c: the fraction of positions whose largest logit is the target's.
 *
 * A dense target stands for its largest entry. Positions to be ignored do not count, so
 * this is MaskedAccuracy too. */
#include "core/metrics/metric.h"

static struct et_tensor *
update(struct et_graph *g, const struct et_metric_options *o, struct et_tensor *logits,
       const struct et_samples *samples)
{
    struct et_tensor *target = samples->target;
    if (target && et_dtype_is_float(target->desc.dtype))
        target = et_argmax(g, target, 1);
    struct et_tensor *counted = eti_metric_counted(g, target, o->ignore_index);
    struct et_tensor *hit = et_equal(g, et_argmax(g, logits, 1), target);
    struct et_tensor *correct = et_mul(g, et_cast(g, hit, ET_F32), counted);
    return eti_metric_pair(g, et_sum(g, correct, 0, false),
                           et_sum(g, counted, 0, false));
}

const struct et_metric_class et_metric_accuracy = {
    .info =
        {
            .name = "Accuracy",
            .class_name = "Accuracy",
            .summary = "correct over all, for logits [N,C,...]",
            .source = "MosaicML Composer",
            .applies_to = "any",
            .options = eti_metric_table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums = 2,
    .update = update,
    .compute = eti_metric_mean,
};
