/* SPDX-License-Identifier: Apache-2.0 */
/* weight_names.h: what other libraries call the tensors of our models. */
#ifndef ETI_WEIGHT_NAMES_H
#define ETI_WEIGHT_NAMES_H

#include "etude/module.h"

/* The leaf of L that a file's tensor NAME is for, or NULL. IS_TIED: in the file it is a
 * copy of that leaf, which a library that ties the two may have saved as well. */
const struct et_leaf *eti_weight_leaf(const struct et_leaves *l, const char *name,
                                      bool *is_tied);
/* Does a file hold NAME though nothing is computed from it? */
bool eti_weight_is_unused(const char *name);

#endif
