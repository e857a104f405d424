/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h: what a component's class cannot do without. */
#ifndef ETI_PLUGIN_FIELDS_H
#define ETI_PLUGIN_FIELDS_H

#include "etude/option.h"

/* What the class of KIND that INFO begins lacks, ": the field .update is missing", into
 * WHY. False: nothing. INFO->class_size bytes are read. */
bool eti_class_lacks(enum et_kind kind, const struct et_component *info, char *why,
                     size_t size);

#endif
