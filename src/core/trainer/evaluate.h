/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.h: on what a trainer evaluates, when, and towards which target (evaluate.c,
 * evaluators.c, target.c). */
#ifndef ETI_TRAINER_EVALUATE_H
#define ETI_TRAINER_EVALUATE_H

#include "core/trainer/part.h"

enum { ETI_MAX_EVALUATORS = 16 };

struct eti_evaluator {
    struct et_evaluator config;
    struct et_metric *metric[ETI_MAX_METRICS];
    int n_metrics;
    int64_t last_batch; /* timestamp.batch at its last run; -1 before the first */
};

struct eti_evaluation {
    struct eti_evaluator v[ETI_MAX_EVALUATORS];
    int n;
    struct et_metric_value value[ETI_MAX_METRICS * ETI_MAX_EVALUATORS];
    int pending; /* event whose evaluation was broken off or left out; 0: none */
    /* Pieces of a batch; more where memory is short. */
    int64_t split;
};

ET_NODISCARD et_status eti_evaluate_due(struct et_trainer *t, enum et_event event);
/* An evaluation that the checkpoint's run was kept from. */
ET_NODISCARD et_status eti_evaluate_pending(struct et_trainer *t);
/* N more; and those from FIRST on no more. */
ET_NODISCARD et_status eti_evaluators_add(struct et_trainer *t,
                                          const struct et_evaluator *evaluators, int n);
void eti_evaluators_drop(struct et_trainer *t, int first);
/* "accuracy>=.765" fits one metric of the evaluators: EINVAL. */
ET_NODISCARD et_status eti_target_init(struct et_trainer *t);
/* The same against the metrics of an evaluation. */
ET_NODISCARD et_status eti_target_check(struct et_trainer *t, bool *reached);

#endif
