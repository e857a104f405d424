/* SPDX-License-Identifier: Apache-2.0 */
/* step.h: a batch on its way through the model (step.c), and the steps of it that a
 * user may replace (steps.c). */
#ifndef ETI_TRAINER_STEP_H
#define ETI_TRAINER_STEP_H

#include "core/trainer/part.h"

/* Into how many microbatches batches are cut. */
struct eti_pieces {
    bool is_auto;  /* grad_accum adapts to memory */
    int64_t accum; /* grad_accum when it is fixed, or what auto has come to */
};

/* What the last batches took. */
struct eti_measured {
    struct et_plan_info train, eval;
    int64_t flops, bytes; /* of the last training batch */
};

/* One batch through closure and update, with retries. */
ET_NODISCARD et_status eti_train_batch(struct et_trainer *t);
/* The same in a dry graph, which leaves nothing behind; in pieces where the batch does
 * not fit and grad_accum is auto. The caller drops what is pending. */
ET_NODISCARD et_status eti_plan_step(struct et_trainer *t);
/* Rows [FIRST, FIRST + N) of ALL, as nodes. */
struct et_samples eti_rows(struct et_graph *g, const struct et_samples *all,
                           int64_t first, int64_t n);
/* Computes what hooks made of the batch, which the pieces of it then share. */
ET_NODISCARD et_status eti_keep_batch(struct et_trainer *t);
/* How many pieces to try next, at most MOST, after NOW were too large for memory. Not
 * ALONE: other ranks, which know no more than that, must come to the same number. */
int64_t eti_more_pieces(const struct et_trainer *t, int64_t now, int64_t most,
                        bool alone);

/* ---- steps.c: the user's step, or the default ---- */

ET_NODISCARD et_status eti_step_at(struct et_trainer *t, enum et_event event);
struct et_tensor *eti_step_train_forward(struct et_trainer *t, struct et_forward *f);
struct et_tensor *eti_step_eval_forward(struct et_trainer *t);
struct et_tensor *eti_step_predict_forward(struct et_trainer *t);
struct et_tensor *eti_step_train_loss(struct et_trainer *t);
/* The gradients of LOSS into t->params. */
ET_NODISCARD et_status eti_step_backward(struct et_trainer *t, struct et_tensor *loss);
/* What state->grad becomes for the update. */
struct et_tensor *eti_step_clip(struct et_trainer *t);
ET_NODISCARD et_status eti_step_optimizer(struct et_trainer *t, struct et_tensor *skip);
/* The timestamp as schedules have it. */
struct et_timestamp eti_schedule_time(const struct et_trainer *t);
/* Sets state->lr_factor. */
ET_NODISCARD et_status eti_step_scheduler(struct et_trainer *t);

#endif
