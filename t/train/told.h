/* SPDX-License-Identifier: Apache-2.0 */
/* told.h: all that a short run tells, as text: which records, by kind and batch; of
 * each metric its values in those records, "-" where one lacks it; messages; how many
 * weights there are in the end, their norm, and the sum of their magnitudes times 1 to
 * 7 by turns. What a clock has to do with is "*"; what a device tells of its memory is
 * left out. */
#ifndef ETUDE_T_TRAIN_TOLD_H
#define ETUDE_T_TRAIN_TOLD_H

#include "t/train/recipe_run.h"

/* For free(). */
char *told(struct et_ctx *cx, const char *recipe, const struct recipe_choice *choice);

#endif
