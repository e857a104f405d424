/* SPDX-License-Identifier: Apache-2.0 */
/* placeholder.h: options of schedules that are formulas of how long a run is, as
 * pytorch-accelerated's placeholders:
 *
 *     t_max: (NUM_EPOCHS - 1) * NUM_UPDATE_STEPS_PER_EPOCH ba
 *
 *     NUM_EPOCHS                   max_duration, in epochs
 *     NUM_UPDATE_STEPS_PER_EPOCH   updates of an epoch: one for each batch
 *     PER_PROCESS_NUM_UPDATE_STEPS_PER_EPOCH   the same: every rank takes part in each
 *     TRAIN_DATALOADER_LEN         batches of train_data
 *     EVAL_DATALOADER_LEN          batches of the first eval_data
 *
 * What a formula may be is in formula.h. One of a time ends with a unit; it comes to a
 * whole number of it, what is behind the point left out.
 *
 * Source: pytorch-accelerated, TrainerPlaceholderValues (spec/trainer.md 5.8). Differs:
 * all operators, and brackets, mean what they do elsewhere. */
#ifndef ETI_PLACEHOLDER_H
#define ETI_PLACEHOLDER_H

#include "etude/option.h"

/* What is known of a run; NaN: not known. */
struct eti_placeholders {
    double epochs, train_batches, eval_batches;
};
extern const struct eti_placeholders eti_nothing_known;

/* Is TEXT such a formula, or meant to be one? False where TEXT is NULL. */
bool eti_is_formula(const char *text);
/* A value of type TYPE, TIME or FLOAT, as text that et_options_set reads, from the
 * formula TEXT. EINVAL: the message in WHY says what is wrong; *KNOWN is false where
 * all that is wrong is that a placeholder has no value yet. */
ET_NODISCARD et_status eti_formula_text(const char *text, enum et_option_type type,
                                        const struct eti_placeholders *p, char *out,
                                        size_t size, bool *known, struct et_error *why);

#endif
