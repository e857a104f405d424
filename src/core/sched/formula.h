/* SPDX-License-Identifier: Apache-2.0 */
/* formula.h: what a line such as "0.95 ^ ep" comes to.
 *
 *     a + b  a - b  a * b  a / b  a % b  -a  a ^ b or a ** b
 *     a < b  a <= b  a > b  a >= b  a == b  a != b: 1 or 0
 *     abs ceil cos exp floor log log2 sin sqrt tanh (a), min max (a, b, ...), pi
 *
 * bind as in C, powers as in Python: -2 ^ 2 is -4, 2 ^ 3 ^ 2 is 512. */
#ifndef ETI_FORMULA_H
#define ETI_FORMULA_H

#include "etude/status.h"

struct eti_variable {
    const char *name;
    double value;
};

/* The value of TEXT with these variables. Allocates nothing. EINVAL: the message in WHY
 * says what is wrong, and at which character. */
ET_NODISCARD et_status eti_formula(const char *text, const struct eti_variable *v,
                                   int n, double *out, struct et_error *why);

#endif
