/* SPDX-License-Identifier: Apache-2.0 */
/* view.h: what the state shows of a batch, apart from its numbers (view.c). */
#ifndef ETI_TRAINER_VIEW_H
#define ETI_TRAINER_VIEW_H

#include "etude/trainer.h"

/* A batch as it was left, for observers who come later. */
struct eti_view {
    struct et_timestamp ts;
    struct et_samples batch, full;
    double lr_factor, group_factor[1 + ET_MAX_PARAM_GROUPS];
    double lr[1 + ET_MAX_PARAM_GROUPS]; /* which algorithms may have set */
    int64_t grad_accum, flops;
};

/* An empty graph, and in the state what B holds, for all who read batches. */
void eti_show_batch(struct et_trainer *t, const struct et_batch *b);
/* The same for the batch that is shown already, if any is. */
void eti_show_again(struct et_trainer *t);

void eti_view_take(struct et_trainer *t, struct eti_view *out);
/* The state shows it again. */
void eti_view_show(struct et_trainer *t, const struct eti_view *v);
/* What is to be done about the batch that the state shows, all of it being known: its
 * BATCH_END for those who observe, and its record. *BACK: the run went back to an
 * earlier state, and what came since is void. */
ET_NODISCARD et_status eti_view_end_batch(struct et_trainer *t, bool *back);

#endif
