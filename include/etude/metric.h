/* SPDX-License-Identifier: Apache-2.0 */
/* metric.h: what a run measures besides its loss.
 *
 * A metric adds up a few numbers over batches and makes one value of them at the end.
 * The numbers stay on the device: an update appends nodes and assignments to the step's
 * graph, and nothing waits for the host until the value is asked for. What is averaged
 * is weighted by samples (tokens for language), so values do not depend on how data is
 * cut into batches, microbatches and ranks.
 *
 * Source: MosaicML Composer's metrics. Differs: its CrossEntropy averages batches. */
#ifndef ETUDE_METRIC_H
#define ETUDE_METRIC_H

#include "etude/field.h"
#include "etude/graph.h"
#include "etude/option.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_model;

/* The options of every metric: a class without a table has these, with an ignore_index
 * of -100 (ET_IGNORE_INDEX). A class may have a struct of its own that begins with
 * them. */
struct et_metric_options {
    int64_t ignore_index;   /* positions with this index target count nothing */
    int64_t num_classes;    /* metrics that look at each class; 0 = not said */
    struct et_model *model; /* borrowed; metrics that ask it; NULL = not said */
};

struct et_metric_class {
    struct et_component info; /* name as in metric keys: "Accuracy" */
    int n_sums;               /* numbers that are added up */
    int n_sums_per_class;     /* or, where this is not 0, so many times num_classes */
    int n_classes;            /* it makes sense for so many alone; 0 = for any */
    bool needs_model;         /* options must say which */

    /* Appends this batch's numbers, f32 [sums], and returns them. Shapes of OUTPUTS and
     * of the samples' target: see the class's summary. Other fields, such as a mask of
     * what counts, are there by name: et_samples_find. */
    struct et_tensor *(*update)(struct et_graph *g,
                                const struct et_metric_options *options,
                                struct et_tensor *outputs,
                                const struct et_samples *samples);

    /* The value of N totals; NaN when there were no samples. */
    double (*compute)(const double *sums, int n);
};

const struct et_metric_class *et_metric_find(const char *name); /* NULL: none */
/* All classes, *N of them; borrowed, for ever. */
const struct et_metric_class *const *et_metric_list(int *n);

struct et_metric;

/* A metric of a run that the task does not have by itself. */
struct et_metric_use {
    const struct et_metric_class *type; /* borrowed, as all is here */
    const void *options;                /* its struct; NULL = defaults */
};

/* A metric at zero. OPTIONS, the class's own struct, are copied, but for what they
 * point to; NULL = defaults. EINVAL when the class needs num_classes or the model and
 * it is not said, or other num_classes. */
ET_NODISCARD et_status et_metric_new_sized(struct et_ctx *cx, size_t size,
                                           struct et_device *dev,
                                           const struct et_metric_class *type,
                                           const struct et_metric_options *options,
                                           struct et_metric **out);
/* et_metric_new(cx, dev, type, options, out) */
#define et_metric_new(cx, ...)                                                         \
    et_metric_new_sized((cx), sizeof(struct et_metric_options), __VA_ARGS__)
void et_metric_free(struct et_metric **m);
const struct et_metric_class *et_metric_class(const struct et_metric *m);

/* Back to zero. */
ET_NODISCARD et_status et_metric_reset(struct et_metric *m);

/* Appends one batch or microbatch; at most one update of M per evaluation. OUTPUTS:
 * logits [N,C,...] with a target I32 [N,...] or f32 [N,C,...]; language metrics take
 * logits [...,V] with a target I32 [...]. */
void et_metric_update(struct et_graph *g, struct et_metric *m,
                      struct et_tensor *outputs, const struct et_samples *samples);

/* The same from zero: as et_metric_reset before it, within the evaluation. */
void et_metric_begin(struct et_graph *g, struct et_metric *m, struct et_tensor *outputs,
                     const struct et_samples *samples);

/* For who reads totals together with other numbers: what the pending evaluation makes
 * of them, f32 [n_sums] each, and the value of such numbers. */
void et_metric_totals(struct et_graph *g, const struct et_metric *m,
                      struct et_tensor **sum, struct et_tensor **carry);
double et_metric_value_of(const struct et_metric *m, const float *sum,
                          const float *carry);

/* How many totals there are. */
int et_metric_n_sums(const struct et_metric *m);
/* The totals so far: what ranks add up. Waits for the device. */
ET_NODISCARD et_status et_metric_read(const struct et_metric *m, double *sums);
/* The value of this rank's totals. Waits for the device. */
ET_NODISCARD et_status et_metric_value(const struct et_metric *m, double *out);

#ifdef __cplusplus
}
#endif
#endif
