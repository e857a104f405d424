/* SPDX-License-Identifier: Apache-2.0 */
/* match.h: whether a recipe's model and its data go together. */
#ifndef ETI_ASSEMBLE_MATCH_H
#define ETI_ASSEMBLE_MATCH_H

#include "core/assemble/assemble.h"

/* Before a model of C is made. EINVAL where it reads images and the data give tokens,
 * or the reverse, or where it learns a class for each pixel and the data have one for
 * each image: that is said here, and not by a shape. */
ET_NODISCARD et_status eti_match_kind(const struct eti_assembly *a,
                                      const struct et_model_class *c);
/* Of A's model: EINVAL where it gives no masks and the data have some, or fewer classes
 * than they have. Warns where eval_data number their classes otherwise than
 * train_data. */
ET_NODISCARD et_status eti_match_outputs(const struct eti_assembly *a);

#endif
