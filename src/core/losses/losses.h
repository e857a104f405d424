/* SPDX-License-Identifier: Apache-2.0 */
/* losses.h: what the files of src/core/losses share. */
#ifndef ETI_LOSSES_H
#define ETI_LOSSES_H

#include "etude/graph.h"
#include "etude/model.h"
#include "etude/op.h"

#define ET_LOSS(name) extern const struct et_loss_class et_loss_##name;
#include "core/losses/losses.def"
#undef ET_LOSS

/* Mean, sum, or per-sample means of values V [N,...]. */
struct et_tensor *eti_loss_reduce(struct et_graph *g, struct et_tensor *v,
                                  enum et_reduction reduction);
/* TARGET as f32 of Z's shape [N,C,...]: classes become one-hot rows. */
struct et_tensor *eti_loss_dense(struct et_graph *g, struct et_tensor *z,
                                 struct et_tensor *target);
/* et_loss_class.counted of losses that are et_cross_entropy: WEIGHT? [C] of the
 * classes. MASKED: as there. */
struct et_tensor *eti_loss_counted(struct et_graph *g, struct et_tensor *target,
                                   struct et_tensor *weight, int64_t ignore_index,
                                   bool masked);
/* What the mean over the batch of M's loss is over, by its class's COUNTED; NULL: all
 * that SAMPLES have counts alike, or G has failed. */
struct et_tensor *eti_model_counted(struct et_model *m, struct et_graph *g,
                                    const struct et_samples *samples, bool masked);
/* Y - TARGET, of real numbers as many as Y has. */
struct et_tensor *eti_loss_apart(struct et_graph *g, struct et_tensor *y,
                                 struct et_tensor *target);

/* A loss without options, and one with a table and its struct. */
#define ETI_LOSS_INFO(its_name, its_class, its_summary, its_source)                    \
    .name = its_name, .class_name = its_class, .summary = its_summary,                 \
    .source = its_source, .applies_to = "any"

#endif
