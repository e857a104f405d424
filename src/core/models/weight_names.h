/* SPDX-License-Identifier: Apache-2.0 */
/* weight_names.h: which leaf of a model a tensor of a file is for. */
#ifndef ETI_WEIGHT_NAMES_H
#define ETI_WEIGHT_NAMES_H

#include "etude/module.h"

struct eti_weight_place {
    const struct et_leaf *leaf;
    bool is_tied;    /* in the file it is a copy of that leaf, which a library that ties
                        the two may have saved as well */
    int part, parts; /* of the leaf along axis 0: 0 of 1 is all of it */
};

/* Where a file's tensor NAME belongs among the leaves L of the model called MODEL;
 * false: nowhere, and OUT->leaf is NULL. */
bool eti_weight_place(const struct et_leaves *l, const char *model, const char *name,
                      struct eti_weight_place *out);
/* Does a file hold NAME though nothing is computed from it? */
bool eti_weight_is_unused(const char *name);

#endif
