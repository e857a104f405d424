/* SPDX-License-Identifier: Apache-2.0 */
/* later.h: what a later version brings, by name: rows of methods.def and
 * datasets.def. */
#ifndef ETI_LATER_H
#define ETI_LATER_H

/* What the component will do, in a few words; NULL: no later version is to bring it. */
const char *eti_method_later(const char *name);
const char *eti_dataset_later(const char *name);

#endif
