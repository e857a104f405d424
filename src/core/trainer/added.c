/* SPDX-License-Identifier: Apache-2.0 */
/* added.c: the training loader has the transforms of the algorithms that are on.
 *
 * It is asked between two batches, when none is held: at the beginning of a fit, and
 * after an algorithm has been switched, has joined, or has had an option set. All ranks
 * do so at the same batch. */
#include "config.h"

#include <string.h>

#include "core/base/sized.h"
#include "core/data/loader_impl.h"
#include "core/trainer/loop.h"
#include "core/trainer/readback.h"
#include "core/trainer/trainer_impl.h"

/* What algorithms want added, in the user's order: V has room for all. BY: whose. */
static struct et_parts
list_wanted(const struct et_trainer *t, struct et_part *v,
            const struct et_algorithm **by)
{
    const struct et_state *s = &t->state;
    int n = 0;
    for (int i = 0; i < s->n_algorithms; i++) {
        const struct et_algorithm *a = s->algorithms[i];
        const struct et_transform_class *c =
            !a->off && ETI_HOOK(a->type, transform) ? a->type->transform(a) : NULL;
        if (!c)
            continue;
        v[n] = (struct et_part){.component = &c->info, .options = a->options};
        by[n++] = a;
    }
    return (struct et_parts){v, n};
}

void
eti_added_forget(struct et_trainer *t)
{
    t->added.of = NULL;
}

et_status
eti_added_try(struct et_trainer *t, int64_t size[2])
{
    struct et_part v[ET_MAX_ALGORITHMS];
    const struct et_algorithm *by[ET_MAX_ALGORITHMS];
    struct et_parts wanted = list_wanted(t, v, by);
    return eti_loader_try(t->state.cx, t->config.train, &wanted, size);
}

et_status
eti_added_follow(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_part v[ET_MAX_ALGORITHMS];
    const struct et_algorithm *by[ET_MAX_ALGORITHMS];
    struct et_parts wanted = list_wanted(t, v, by);
    struct eti_extras *now = &t->added;
    size_t bytes = (size_t)wanted.n * sizeof *by;
    if (now->of == t->config.train && now->n == wanted.n &&
        memcmp(now->by, by, bytes) == 0)
        return ET_OK;
    ET_TRY(eti_readback_deliver(t, 0));
    et_graph_reset(s->graph);
    s->batch = s->full = (struct et_samples){0};
    now->of = NULL;
    ET_TRY(eti_loader_add(s->cx, t->config.train, &wanted));
    now->of = t->config.train;
    now->n = wanted.n;
    memcpy(now->by, by, bytes);
    return ET_OK;
}
