/* SPDX-License-Identifier: Apache-2.0 */
/* told.h: all that a short run tells, as text: which records, by kind and batch; of
 * each metric its values in those records, "-" where one lacks it; messages; how many
 * weights and running statistics there are in the end (behind the first rank: weights
 * alone), their norm, and the sum of their magnitudes times 1 to 7 by turns. What a
 * clock has to do with is "*"; what a device tells of its memory is left out. */
#ifndef ETUDE_T_TRAIN_TOLD_H
#define ETUDE_T_TRAIN_TOLD_H

#include "t/train/recipe_run.h"

/* Is the metric NAME, or the line that begins so, about what a clock has to do with? */
bool told_varies(const char *name);
/* For free(). */
char *told(struct et_ctx *cx, const char *recipe, const struct recipe_choice *choice);

/* The same of a run that is stopped after STOP batches and resumed from its
 * checkpoint. */
char *told_in_two(struct et_ctx *cx, const char *recipe,
                  const struct recipe_choice *choice, int64_t stop);

#endif
