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

/* Those that act at EVENT: ACTING, in the user's order, with their places in WHO. */
static int
find_acting(const struct et_algorithm_class *const *list, int n, enum et_event event,
            struct et_algorithm *acting, int *who)
{
    int m = 0;
    for (int i = 0; i < n && m < ET_MAX_ALGORITHMS; i++) {
        if (!(list[i]->events & UINT64_C(1) << event))
            continue;
        acting[m] = (struct et_algorithm){.type = list[i]};
        who[m++] = i;
    }
    return m;
}

int
eti_timeline_at(const struct et_algorithm_class *const *list, int n,
                enum et_event event, struct eti_turn *out)
{
    struct et_algorithm acting[ET_MAX_ALGORITHMS], *order[ET_MAX_ALGORITHMS];
    int who[ET_MAX_ALGORITHMS], m = find_acting(list, n, event, acting, who);
    for (int i = 0; i < m; i++)
        order[i] = &acting[i];
    et_engine_order(order, m, event);
    for (int i = 0; i < m; i++)
        out[i] = (struct eti_turn){
            .who = who[order[i] - acting],
            .reason = reason_of(order[i]->type, event, m),
        };
    return m;
}

et_status
eti_timeline_with(struct et_ctx *cx, const struct et_pass *const *passes, int n_passes,
                  const struct et_algorithm_class *const *list, int n,
                  enum et_event event, struct eti_turn *out, int *m)
{
    struct et_algorithm acting[ET_MAX_ALGORITHMS], *order[ET_MAX_ALGORITHMS];
    int who[ET_MAX_ALGORITHMS];
    *m = eti_timeline_at(list, n, event, out);
    if (n_passes == 0)
        return ET_OK;
    find_acting(list, n, event, acting, who);
    for (int i = 0; i < *m; i++)
        order[i] = &acting[i];
    ET_TRY(et_engine_order_with(cx, passes, n_passes, order, *m, event));
    for (int i = 0; i < *m; i++) {
        int now = who[order[i] - acting];
        if (now != out[i].who)
            out[i] = (struct eti_turn){.who = now, .reason = "by a plugin's pass"};
    }
    return ET_OK;
}
