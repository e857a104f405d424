/* SPDX-License-Identifier: Apache-2.0 */
/* masked_accuracy.c: the fraction of tokens that count whose largest logit is the
 * target's. */
#include "core/metrics/metric.h"

static struct et_tensor *
update(struct et_graph *g, const struct et_metric_options *o, struct et_tensor *logits,
       const struct et_samples *samples)
{
    struct et_tensor *target = samples->target;
    if (!logits || !target)
        return NULL;
    struct et_tensor *counted = eti_metric_counted(g, target, o->ignore_index);
    struct et_tensor *hit =
        et_equal(g, et_argmax(g, logits, logits->desc.ndim - 1), target);
    struct et_tensor *correct = et_mul(g, et_cast(g, hit, ET_F32), counted);
    return eti_metric_pair(g, et_sum(g, correct, 0, false),
                           et_sum(g, counted, 0, false));
}

const struct et_metric_class et_metric_masked_accuracy = {
    .info =
        {
            .name = "MaskedAccuracy",
            .class_name = "MaskedAccuracy",
            .summary = "correct over all tokens that count, for logits [...,V]",
            .source = "MosaicML Composer, composer/metrics/nlp.py",
            .applies_to = "text",
            .options = eti_metric_table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums = 2,
    .update = update,
    .compute = eti_metric_mean,
};
