/* SPDX-License-Identifier: Apache-2.0 */
/* language_perplexity.c: exp of the mean cross entropy over all tokens that count. */
#include "core/metrics/metric.h"

#include <math.h>

static double
compute(const double *sums, int n)
{
    return exp(eti_metric_mean(sums, n));
}

const struct et_metric_class et_metric_language_perplexity = {
    .info =
        {
            .name = "LanguagePerplexity",
            .class_name = "LanguagePerplexity",
            .summary = "exp of the mean cross entropy a token, for logits [...,V]",
            .source = "MosaicML Composer, composer/metrics/nlp.py",
            .applies_to = "text",
            .options = eti_metric_table,
            .options_size = sizeof(struct et_metric_options),
        },
    .n_sums = 2,
    .update = eti_metric_token_losses,
    .compute = compute,
};
