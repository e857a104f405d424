/* miou.c: mean over classes of intersection over union, in percent.
 *
 *     per class c: positions where both prediction and target are c, over those where
 *     either is; mean over the classes that occur in either
 *
 * Per class two totals: intersections, then unions. */
#include "core/metrics/metric.h"

#include <math.h>

/* X [N,C,...] summed to [C]. */
static struct et_tensor *
by_class(struct et_graph *g, struct et_tensor *x)
{
    return x ? et_sum(g, x, ((1u << x->desc.ndim) - 1) & ~2u, false) : NULL;
}

static struct et_tensor *
update(struct et_graph *g, const struct et_metric_options *o, struct et_tensor *logits,
       struct et_tensor *target)
{
    if (!logits || !target)
        return NULL;
    struct et_tensor *counted = eti_metric_counted(g, target, o->ignore_index);
    int64_t shape[ET_MAX_DIMS] = {target->desc.shape[0], 1};
    for (int i = 1; i < target->desc.ndim; i++)
        shape[i + 1] = target->desc.shape[i];
    counted = et_reshape(g, counted, target->desc.ndim + 1, shape);
    struct et_tensor *is = et_mul(g, et_one_hot(g, target, o->num_classes), counted);
    struct et_tensor *said =
        et_mul(g, et_one_hot(g, et_argmax(g, logits, 1), o->num_classes), counted);
    struct et_tensor *both = by_class(g, et_mul(g, is, said));
    struct et_tensor *either = by_class(g, et_maximum(g, is, said));
    return et_concat(g, (struct et_tensor *[]){both, either}, 2, 0);
}

static double
compute(const double *sums, int n)
{
    int classes = n / 2, present = 0;
    double total = 0;
    for (int c = 0; c < classes; c++) {
        if (sums[classes + c] == 0)
            continue;
        total += sums[c] / sums[classes + c];
        present++;
    }
    return present ? 100 * total / present : NAN;
}

static const struct et_option table[] = {
    {
        .name = "num_classes",
        .type = ET_OPT_INT,
        .offset = offsetof(struct et_metric_options, num_classes),
        .def = "0",
        .min = 0,
        .max = 1 << 20,
        .help = "how many classes there are; 0 = not said",
    },
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
    .n_sums_per_class = 2,
    .update = update,
    .compute = compute,
};
