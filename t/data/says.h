/* SPDX-License-Identifier: Apache-2.0 */
/* says.h: what data sets say of themselves, all of it, and what their samples have,
 * where these are few and small. */
#ifndef ETUDE_T_DATA_SAYS_H
#define ETUDE_T_DATA_SAYS_H

#include "etude/data.h"

extern struct et_ctx *cx; /* the test's, which it makes first */

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Is WANT what data set NAME with the options SET says before it is opened, a line if
 * it can, then, a line, and what its samples are, a line each? */
void says(const char *what, const char *name, const char *const *set, const char *want);

#endif
