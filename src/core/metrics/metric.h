/* SPDX-License-Identifier: Apache-2.0 */
/* metric.h: what the metrics share. */
#ifndef ETI_METRIC_H
#define ETI_METRIC_H

#include "etude/metric.h"

#define ET_METRIC(name) extern const struct et_metric_class et_metric_##name;
#include "core/metrics/metrics.def"
#undef ET_METRIC

/* f32 [2] = two numbers, of one element each. */
struct et_tensor *eti_metric_pair(struct et_graph *g, struct et_tensor *a,
                                  struct et_tensor *b);
/* f32, of TARGET's shape: 1 where an index target counts, 0 where it is ignored. */
struct et_tensor *eti_metric_counted(struct et_graph *g, struct et_tensor *target,
                                     int64_t ignore_index);
/* Sum of losses and what they weigh: positions that count, or the sum of a dense
 * target. Axis 1 of LOGITS is the class. */
struct et_tensor *eti_metric_losses(struct et_graph *g,
                                    const struct et_metric_options *o,
                                    struct et_tensor *logits,
                                    const struct et_samples *samples);
/* The same for logits [...,V] with target [...]. */
struct et_tensor *eti_metric_token_losses(struct et_graph *g,
                                          const struct et_metric_options *o,
                                          struct et_tensor *logits,
                                          const struct et_samples *samples);
/* Per class three totals: positions where both prediction and target are it, where the
 * prediction is, where the target is. */
struct et_tensor *eti_metric_confusion(struct et_graph *g,
                                       const struct et_metric_options *o,
                                       struct et_tensor *logits,
                                       const struct et_samples *samples);
/* Of those: 2 both / (said + is), the harmonic mean of precision and recall of class C;
 * NaN where it occurs in neither. */
double eti_metric_f1(const double *sums, int classes, int c);
/* sums[0] / sums[1]; NaN for nothing. */
double eti_metric_mean(const double *sums, int n);

extern const struct et_option eti_metric_table[];

#define ETI_METRIC_CLASSES                                                             \
    {                                                                                  \
        .name = "num_classes", .type = ET_OPT_INT,                                     \
        .offset = offsetof(struct et_metric_options, num_classes), .def = "0",         \
        .min = 0, .max = 1 << 20, .help = "how many classes there are; 0 = not said",  \
    }

/* The last rows of an option table. */
#define ETI_METRIC_IGNORE(number)                                                      \
    {                                                                                  \
        .name = "ignore_index",                                                        \
        .type = ET_OPT_INT,                                                            \
        .offset = offsetof(struct et_metric_options, ignore_index),                    \
        .def = number,                                                                 \
        .help = "positions with this target count nothing",                            \
    },                                                                                 \
    {                                                                                  \
        .name = NULL,                                                                  \
    }

#endif
