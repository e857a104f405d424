/* SPDX-License-Identifier: Apache-2.0 */
/* loss.c: the model's own loss, mean over all samples of all batches. */
#include "core/metrics/metric.h"

#include "etude/model.h"

static struct et_tensor *
update(struct et_graph *g, const struct et_metric_options *o, struct et_tensor *outputs,
       const struct et_samples *samples)
{
    if (!outputs)
        return NULL;
    struct et_tensor *each =
        et_model_loss(o->model, g, outputs, samples, ET_REDUCE_NONE);
    struct et_tensor *n = et_fill(g, ET_F32, 0, NULL, (double)outputs->desc.shape[0]);
    return eti_metric_pair(g, et_sum(g, each, 0, false), n);
}

const struct et_metric_class et_metric_loss = {
    .info =
        {
            .name = "Loss",
            .class_name = "LossMetric",
            .summary = "mean of the loss that training minimises",
            .source = "MosaicML Composer, composer/metrics/metrics.py",
            .applies_to = "any",
            .options = eti_metric_table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums = 2,
    .needs_model = true,
    .update = update,
    .compute = eti_metric_mean,
};
