/* SPDX-License-Identifier: Apache-2.0 */
/* confusion.c: what was said against what was true, class by class: see metric.h. */
#include "core/metrics/metric.h"

#include <math.h>

/* X [N,C,...] summed to [C]. */
static struct et_tensor *
by_class(struct et_graph *g, struct et_tensor *x)
{
    return x ? et_sum(g, x, ((1u << x->desc.ndim) - 1) & ~2u, false) : NULL;
}

struct et_tensor *
eti_metric_confusion(struct et_graph *g, const struct et_metric_options *o,
                     struct et_tensor *logits, const struct et_samples *samples)
{
    struct et_tensor *target = samples->target;
    if (!logits || !target)
        return NULL;
    if (et_dtype_is_float(target->desc.dtype))
        target = et_argmax(g, target, 1);
    struct et_tensor *counted = eti_metric_counted(g, target, o->ignore_index);
    if (!counted)
        return NULL;
    int64_t shape[ET_MAX_DIMS] = {target->desc.shape[0], 1};
    for (int i = 1; i < target->desc.ndim; i++)
        shape[i + 1] = target->desc.shape[i];
    counted = et_reshape(g, counted, target->desc.ndim + 1, shape);
    struct et_tensor *is = et_mul(g, et_one_hot(g, target, o->num_classes), counted);
    struct et_tensor *said =
        et_mul(g, et_one_hot(g, et_argmax(g, logits, 1), o->num_classes), counted);
    struct et_tensor *all[] = {by_class(g, et_mul(g, is, said)), by_class(g, said),
                               by_class(g, is)};
    return et_concat(g, all, 3, 0);
}

double
eti_metric_f1(const double *sums, int classes, int c)
{
    double either = sums[classes + c] + sums[2 * classes + c];
    return either > 0 ? 2 * sums[c] / either : NAN;
}
