/* SPDX-License-Identifier: Apache-2.0 */
/* switch.c: algorithms that change the model or the step, switched while a run goes on.
 *
 * Their class has an undo (etude/algorithm.h). Switched on, such an algorithm acts
 * between two batches as it would have before the first: parameters that the model has
 * with and without it keep their values, moments and averages, others begin anew.
 * Switched off, it takes back what it did.
 *
 * What the model is then depends on the order in which that happened, so a checkpoint
 * has the list of it (MANIFEST, "switched"): a run that goes on from there switches
 * again, in that order, what the recipe has made, before values are loaded. */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "core/base/sized.h"
#include "core/graph/graph_impl.h"
#include "core/trainer/loop.h"
#include "core/trainer/ranks.h"
#include "core/trainer/trainer_impl.h"
#include "core/trainer/view.h"

/* ---- there and back ---- */

/* Nothing may point to what surgery replaces: no formula, and no plan. */
static void
let_go(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    et_graph_reset(s->graph);
    s->batch = s->full = (struct et_samples){0};
    eti_drop_caches(s->graph, NULL);
}

et_status
eti_switch_enter(struct et_trainer *t, struct et_algorithm *a)
{
    bool changes = ETI_HOOK(a->type, undo);
    if (changes) {
        let_go(t);
        ET_TRY(eti_keep_space(t));
    }
    ET_TRY(eti_algorithm_prepare(t, a, UINT64_MAX));
    if (changes)
        let_go(t);
    return eti_algorithm_try(t, a);
}

static et_status
undo(struct et_trainer *t, struct et_algorithm *a)
{
    let_go(t);
    if (a->type->undo(a, &t->state) == ET_OK)
        return ET_OK;
    return ET_FAIL(t->state.cx, ET_EINTERNAL,
                   "%s is taken back in part: the run ends here, and goes on from its "
                   "newest checkpoint",
                   a->type->info.name);
}

et_status
eti_switch_back(struct et_trainer *t, struct et_algorithm *a)
{
    et_status status = t->params.kept.wanted ? undo(t, a) : ET_OK;
    eti_forget_kept(t);
    return status;
}

/* Off behind on is as if neither had been. */
static et_status
note(struct et_trainer *t, struct et_algorithm *a, bool on)
{
    struct eti_switches *made = &t->hooks.switches;
    const struct eti_switch *last = made->n > 0 ? &made->v[made->n - 1] : NULL;
    if (last && last->a == a && last->on && !on) {
        made->n--;
        return ET_OK;
    }
    ET_TRY(eti_grow(t->state.cx, &made->v, &made->room, made->n + 1, sizeof *made->v));
    made->v[made->n++] = (struct eti_switch){a, on};
    return ET_OK;
}

et_status
eti_switch_stays(struct et_trainer *t, struct et_algorithm *a, bool on)
{
    eti_forget_kept(t);
    a->off = !on;
    if (!ETI_HOOK(a->type, undo))
        return ET_OK;
    ET_TRY(note(t, a, on));
    return eti_saver_switched(t);
}

et_status
eti_switches_list(struct et_trainer *t, json_t **list)
{
    const struct eti_switches *made = &t->hooks.switches;
    json_t *out = made->n > 0 ? json_array() : NULL;
    for (int i = 0; i < made->n; i++)
        json_array_append_new(out, json_pack("{s:s, s:b}", "name",
                                             made->v[i].a->type->info.name, "on",
                                             made->v[i].on));
    if ((int)json_array_size(out) < made->n) {
        json_decref(out);
        return ET_FAIL(t->state.cx, ET_ENOMEM, "out of memory: the list of switches");
    }
    json_decref(*list);
    *list = out;
    return ET_OK;
}

/* ---- by request ---- */

static et_status
turn_on(struct et_trainer *t, struct et_algorithm *a)
{
    a->off = false;
    et_status status = eti_ranks_agree(t, eti_switch_enter(t, a), a->type->info.name);
    if (status == ET_OK)
        return eti_switch_stays(t, a, true);
    a->off = true;
    et_status back = eti_switch_back(t, a);
    return back != ET_OK ? back : status;
}

static et_status
turn_off(struct et_trainer *t, struct et_algorithm *a)
{
    ET_TRY(eti_ranks_agree(t, undo(t, a), a->type->info.name));
    return eti_switch_stays(t, a, false);
}

et_status
eti_switch(struct et_trainer *t, struct et_algorithm *a, bool on)
{
    if (a->off == !on)
        return ET_OK;
    ET_TRY(eti_readback_deliver(t, 0));
    ET_TRY(eti_algorithms_settle(t));
    et_status status = on ? turn_on(t, a) : turn_off(t, a);
    eti_show_again(t);
    return status;
}

/* ---- from a checkpoint ---- */

static struct et_algorithm *
find(struct et_trainer *t, const char *name)
{
    struct et_state *s = &t->state;
    for (int i = 0; i < s->n_algorithms; i++)
        if (strcmp(s->algorithms[i]->type->info.name, name) == 0)
            return s->algorithms[i];
    return NULL;
}

static et_status
again(struct et_trainer *t, struct et_algorithm *a, bool on)
{
    if (a->off == !on)
        return ET_OK;
    if (on)
        ET_TRY(eti_algorithm_prepare(t, a, ET_ON(INIT) | ET_ON(BEFORE_LOAD)));
    else
        ET_TRY(a->type->undo(a, &t->state));
    a->off = !on;
    return note(t, a, on);
}

et_status
eti_switch_again(struct et_trainer *t, const json_t *switched)
{
    size_t i;
    json_t *one;
    json_array_foreach(switched, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        struct et_algorithm *a = find(t, name);
        if (!a || !ETI_HOOK(a->type, undo)) /* left out by load.exclude_algorithms */
            continue;
        ET_TRY(again(t, a, json_is_true(json_object_get(one, "on"))));
    }
    return ET_OK;
}
