/* SPDX-License-Identifier: Apache-2.0 */
/* view.c: what the state shows of a batch: as it begins, and later, for observers who
 * come after it, as the batch left it. */
#include "config.h"

#include <string.h>

#include "core/data/loader_impl.h"
#include "core/trainer/engine.h"
#include "core/trainer/loop.h"
#include "core/trainer/trainer_impl.h"
#include "core/trainer/view.h"

void
eti_show_batch(struct et_trainer *t, const struct et_batch *b)
{
    struct et_state *s = &t->state;
    et_graph_reset(s->graph);
    s->batch = s->full = et_batch_samples(s->graph, b);
    s->masked = eti_batch_is_masked(b);
}

void
eti_show_again(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    if (t->shown) {
        eti_show_batch(t, t->shown);
    } else {
        et_graph_reset(s->graph);
        s->batch = s->full = (struct et_samples){0};
    }
}

void
eti_view_take(struct et_trainer *t, struct eti_view *out)
{
    const struct et_state *s = &t->state;
    *out = (struct eti_view){
        .ts = s->timestamp,
        .batch = s->batch,
        .full = s->full,
        .lr_factor = s->lr_factor,
        .grad_accum = s->grad_accum,
        .flops = s->batch_flops,
    };
    memcpy(out->group_factor, t->groups.factor, sizeof out->group_factor);
    for (int i = 0; i <= t->config.n_groups; i++)
        out->lr[i] = et_optimizer_group(s->optimizer, i)->lr;
}

void
eti_view_show(struct et_trainer *t, const struct eti_view *v)
{
    struct et_state *s = &t->state;
    s->timestamp = v->ts;
    s->batch = v->batch;
    s->full = v->full;
    s->lr_factor = v->lr_factor;
    s->grad_accum = v->grad_accum;
    s->batch_flops = v->flops;
    memcpy(t->groups.factor, v->group_factor, sizeof v->group_factor);
    for (int i = 0; i <= t->config.n_groups; i++)
        et_optimizer_group(s->optimizer, i)->lr = v->lr[i];
}

et_status
eti_view_end_batch(struct et_trainer *t, bool *back)
{
    struct et_state *s = &t->state;
    struct et_timestamp ts = s->timestamp;
    *back = eti_judge(t);
    et_status status = eti_engine_watch(s, ET_EVENT_BATCH_END);
    if (status == ET_OK)
        et_log_emit(s->log, ET_RECORD_BATCH, &ts, NULL);
    return status;
}
