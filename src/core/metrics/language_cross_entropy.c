/* SPDX-License-Identifier: Apache-2.0 */
/* language_cross_entropy.c: mean cross entropy over all tokens that count. */
#include "core/metrics/metric.h"

const struct et_metric_class et_metric_language_cross_entropy = {
    .info =
        {
            .name = "LanguageCrossEntropy",
            .class_name = "LanguageCrossEntropy",
            .summary = "mean cross entropy in nats a token, for logits [...,V]",
            .source = "MosaicML Composer, composer/metrics/nlp.py",
            .applies_to = "text",
            .options = eti_metric_table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums = 2,
    .update = eti_metric_token_losses,
    .compute = eti_metric_mean,
};
