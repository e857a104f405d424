/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c: see timeline.h. The engine's own function orders, so that what is shown
 * is what happens. */
#include "config.h"

#include "core/compose/timeline.h"

#include "etude/trainer.h"

/* Why A does not stand where the recipe's text has it; "" where it does. */
static const char *
reason_of(const struct et_algorithm_class *a, enum et_event event, int n)
{
    unsigned flags = a->flags;
    if (flags & ET_ALG_FIRST)
        return "before all others";
    if (flags & ET_ALG_LAST)
        return "after all others";
    if (event == ET_EVENT_INIT && flags & ET_ALG_INIT_AFTER_SURGERY)
        return "after every surgery";
    if (event == ET_EVENT_INIT && flags & ET_ALG_INIT_LAST)
        return "after the model is complete";
    return n > 1 && et_event_is_reversed(event) ? "reverse order" : "";
}

int
eti_timeline_at(const struct et_algorithm_class *const *list, int n,
                enum et_event event, struct eti_turn *out)
{
    struct et_algorithm acting[ET_MAX_ALGORITHMS], *order[ET_MAX_ALGORITHMS];
    int m = 0, who[ET_MAX_ALGORITHMS];
    for (int i = 0; i < n && m < ET_MAX_ALGORITHMS; i++) {
        if (!(list[i]->events & UINT64_C(1) << event))
            continue;
        acting[m] = (struct et_algorithm){.type = list[i]};
        order[m] = &acting[m];
        who[m++] = i;
    }
    et_engine_order(order, m, event);
    for (int i = 0; i < m; i++)
        out[i] = (struct eti_turn){
            .who = who[order[i] - acting],
            .reason = reason_of(order[i]->type, event, m),
        };
    return m;
}
