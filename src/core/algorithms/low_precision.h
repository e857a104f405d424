/* SPDX-License-Identifier: Apache-2.0 */
/* low_precision.h: what the two methods for norms in low precision share. */
#ifndef ETI_LOW_PRECISION_H
#define ETI_LOW_PRECISION_H

#include "core/algorithms/algorithms.h"

struct eti_low_precision_options {
    int apply_at; /* a place in the list: */
};
extern const char *const eti_low_precision_times[];

typedef et_status eti_low_precision_fn(struct et_ctx *cx, struct et_module *root,
                                       struct et_surgery *out);

/* Does SELF act at EVENT, by its options? */
bool eti_low_precision_match(struct et_algorithm *self, enum et_event event,
                             const struct et_state *s);
/* CHANGE on the model, whose norms are of TYPE, THINGS in words; a warning where the
 * run has no low precision or the model no norms. */
ET_NODISCARD et_status eti_low_precision_apply(struct et_algorithm *self,
                                               struct et_state *s,
                                               const struct et_module_class *type,
                                               const char *things,
                                               eti_low_precision_fn *change);

#endif
