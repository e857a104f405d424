/* SPDX-License-Identifier: Apache-2.0 */
/* golden.h: modules against what Composer makes of them (t/golden/methods.txt). */
#ifndef ETUDE_T_ALGORITHMS_GOLDEN_H
#define ETUDE_T_ALGORITHMS_GOLDEN_H

#include "t/algorithms/fixture.h"

/* make_methods.py's vision(), for a method to change. */
struct et_module *golden_vision(struct et_ctx *cx);
/* Tests that ROOT has the case NAME's parameters, and for its weights and inputs its
 * outputs, gradient and running statistics to TOLERANCE. */
void golden_check(struct formula *f, struct et_module *root, const char *name,
                  double tolerance);
/* The N numbers of the line "KEY v v ..."; the test ends if it has not so many. */
void golden_numbers(const char *key, int64_t n, float *out);
/* LOW is a norm that METHOD has replaced, PLAIN one that it has not, of the same
 * numbers. Tests that in bf16, of values with a mean of 96, LOW gives Composer's
 * outputs and gradients, the lines "METHOD_large_...", and PLAIN others. */
void golden_low_norm(struct formula *f, struct et_module *low, struct et_module *plain,
                     const char *method, int ndim, const int64_t *shape);
/* Releases SURGERY, of which STATUS says how it went: the test ends if it did not.
 * Returns how many modules were replaced. */
int replaced(struct et_ctx *cx, et_status status, struct et_surgery *surgery);

/* Tests that STATUS is ET_EINVAL: WHAT is refused, and why. */
void refused(struct et_ctx *cx, et_status status, const char *what);

#endif
