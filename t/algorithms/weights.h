/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h: the weights that Composer's trainer comes to, from a file of t/golden by
 * make_training.py: what a training begins with, and how far from them it ends. */
#ifndef ETUDE_T_ALGORITHMS_WEIGHTS_H
#define ETUDE_T_ALGORITHMS_WEIGHTS_H

#include "etude/module.h"

/* Sets the parameters L of case NAME to their first values, which are of a formula.
 * They must be those that Composer has: a test counts them, and one that is not there
 * ends the program. */
void weights_fill(struct et_ctx *cx, struct et_leaves *l, const char *file,
                  const char *name);
/* The largest difference of a weight from case NAME; infinite where there are other
 * numbers of them. */
double weights_compare(struct et_ctx *cx, struct et_leaves *l, const char *file,
                       const char *name);

#endif
