/* SPDX-License-Identifier: Apache-2.0 */
/* judge.h: what operand.c, compare.c and sizes.c share; private to the harness. */
#ifndef T_KERNELS_JUDGE_H
#define T_KERNELS_JUDGE_H

#include "kernels/ref/array.h"
#include "t/kernels/compare.h"

#define POISON 0xff
enum { MAX_OPERANDS = 32 };

/* BLOCK, or the end of the program where it is NULL. */
void *need(void *block);
void operand_free(struct operand *o);
/* The elements of O, as the reference sees them. */
struct etk_array array_of(const struct operand *o);
/* The same bytes in the same places, with results as nothing has written them. They
 * belong to the caller. */
struct operand *operand_copy(const struct operand *o);

/* Runs OP on ALL (operands, then results; NULL: left out, not wanted) on the reference,
 * which must take them: the program ends where it refuses. */
void run_reference(struct bench *b, enum et_op_id op, const struct trial *t,
                   struct operand *const *all);

/* For result K, which is a float and not exact, the size of what is summed into each of
 * its elements (see sizes.c). WIDE: operands and results in f64, the results computed.
 * The answer has an element for each of WIDE's result and belongs to the caller. */
void sizes_of(struct bench *b, const struct trial *t, struct operand *const *wide,
              struct operand **size);
/* One test of b->op, named after the case and MORE. */
void report(const struct bench *b, bool pass, const char *name, const char *more);
/* Is result K judged by its bits? */
bool is_exact(const struct trial *t, int k);

#endif
