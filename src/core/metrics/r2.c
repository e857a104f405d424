/* SPDX-License-Identifier: Apache-2.0 */
/* r2.c: which part of the targets' variance the outputs explain:
 *
 *     1 - sum (y - t)^2 / sum (t - mean t)^2
 *
 * over all numbers together; 1 is all of it, and what says the mean alone gets 0. The
 * sums are those of t, t^2 and (y - t)^2, so that batches and ranks add up. */
#include "core/metrics/metric.h"

#include <math.h>

#include "core/losses/losses.h"

static struct et_tensor *
update(struct et_graph *g, const struct et_metric_options *o, struct et_tensor *outputs,
       const struct et_samples *samples)
{
    const int64_t one = 1;
    struct et_tensor *t = samples->target;
    (void)o;
    if (!outputs || !t)
        return NULL;
    struct et_tensor *d = eti_loss_apart(g, outputs, t);
    struct et_tensor *all[] = {et_sum(g, et_square(g, d), 0, false),
                               et_sum(g, t, 0, false),
                               et_sum(g, et_square(g, t), 0, false)};
    struct et_tensor *part[4];
    for (int i = 0; i < 3; i++)
        part[i] = et_reshape(g, et_cast(g, all[i], ET_F32), 1, &one);
    part[3] = et_fill(g, ET_F32, 1, &one, (double)et_desc_count(&t->desc));
    return et_concat(g, part, 4, 0);
}

static double
compute(const double *sums, int n)
{
    (void)n;
    double spread = sums[3] > 0 ? sums[2] - sums[1] * sums[1] / sums[3] : 0;
    return spread > 0 ? 1 - sums[0] / spread : NAN;
}

const struct et_metric_class et_metric_r2 = {
    .info =
        {
            .name = "R2",
            .class_name = "R2Score",
            .summary = "part of the targets' variance that is explained",
            .source = "torchmetrics",
            .applies_to = "any",
        },
    .n_sums = 4,
    .update = update,
    .compute = compute,
};
