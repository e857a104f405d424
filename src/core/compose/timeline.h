/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.h: who acts at an event, in which order, and why there. */
#ifndef ETI_TIMELINE_H
#define ETI_TIMELINE_H

#include "etude/algorithm.h"

struct eti_turn {
    int who;            /* index in the user's order */
    const char *reason; /* why it does not stand where the recipe has it; "" */
};

/* Those of the N classes in LIST, which is the user's order, that may act at EVENT, as
 * the engine calls them: OUT [N]. Returns their number. */
int eti_timeline_at(const struct et_algorithm_class *const *list, int n,
                    enum et_event event, struct eti_turn *out);
/* The same, their number *M, with the N_PASSES of plugins. EINVAL as
 * et_engine_order_with has it. */
ET_NODISCARD et_status eti_timeline_with(struct et_ctx *cx,
                                         const struct et_pass *const *passes,
                                         int n_passes,
                                         const struct et_algorithm_class *const *list,
                                         int n, enum et_event event,
                                         struct eti_turn *out, int *m);

#endif
