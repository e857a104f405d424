/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.h: were other headers those that this library was compiled with? */
#ifndef ETI_LAYOUTS_H
#define ETI_LAYOUTS_H

#include "etude/abi.h"

/* A released layout of a struct that has since grown at its end. */
struct eti_old_layout {
    uint32_t name, fields;
};

/* Is each of the N LAYOUTS of a caller that is of a struct which is here too as it is
 * here, or one of N_OLD? Else WHY says what differs: "struct et_model is 56 bytes
 * there, 64 here". */
bool eti_layouts_fit(const struct et_layout *layouts, size_t n,
                     const struct eti_old_layout *old, size_t n_old, char *why,
                     size_t why_size);
/* The same, with those that releases had: layouts_old.def. */
bool eti_layouts_known(const struct et_layout *layouts, size_t n, char *why,
                       size_t why_size);
/* Bytes that the struct NAME has in LAYOUTS; 0: it is not there, or not here. */
size_t eti_layouts_size(const struct et_layout *layouts, size_t n, const char *name);

#endif
