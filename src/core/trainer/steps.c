/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c: the parts of the loop that a user may replace, and what they are otherwise.
 *
 * Source: pytorch-accelerated's overridable methods (spec/trainer.md 14.1-14.3). */
#include "config.h"

#include <string.h>

#include "core/trainer/trainer_impl.h"

static const struct et_trainer_steps *
own_steps(const struct et_trainer *t)
{
    static const struct et_trainer_steps none;
    return t->config.steps ? t->config.steps : &none;
}

et_status
eti_step_at(struct et_trainer *t, enum et_event event)
{
    const struct et_trainer_steps *own = own_steps(t);
    return own->at_event && !t->common.is_trial
               ? own->at_event(own->data, &t->state, event)
               : ET_OK;
}

/* Events that come at every batch, and do not need the last one's numbers. */
static bool
is_within_batch(enum et_event event)
{
    const uint64_t within =
        ET_ON(BEFORE_DATALOADER) | ET_ON(AFTER_DATALOADER) | ET_ON(BATCH_START) |
        ET_ON(BEFORE_TRAIN_BATCH) | ET_ON(BEFORE_FORWARD) | ET_ON(AFTER_FORWARD) |
        ET_ON(BEFORE_LOSS) | ET_ON(AFTER_LOSS) | ET_ON(BEFORE_BACKWARD) |
        ET_ON(AFTER_BACKWARD) | ET_ON(AFTER_TRAIN_BATCH) | ET_ON(BATCH_CHECKPOINT);
    return within >> event & 1;
}

et_status
eti_run(struct et_trainer *t, enum et_event event)
{
    if (eti_readback_waiting(t) > 0 && !is_within_batch(event))
        ET_TRY(eti_readback_deliver(t, 0));
    ET_TRY(eti_step_at(t, event));
    return et_engine_run(&t->state, event, NULL, NULL);
}

/* FORWARD's outputs, or the model's, in the run's precision. */
static struct et_tensor *
outputs_of(struct et_trainer *t, et_forward_step *forward, struct et_forward *f)
{
    struct et_state *s = &t->state;
    bool was = et_autocast(s->graph, true);
    struct et_tensor *y = forward ? forward(own_steps(t)->data, s, f)
                                  : et_model_forward(s->model, f, s->batch.x);
    et_autocast(s->graph, was);
    return y;
}

struct et_tensor *
eti_step_train_forward(struct et_trainer *t, struct et_forward *f)
{
    return outputs_of(t, own_steps(t)->train_forward, f);
}

struct et_tensor *
eti_step_eval_forward(struct et_trainer *t)
{
    struct et_forward f = {
        .g = t->state.graph, .samples = &t->state.batch, .rng = t->rng};
    return outputs_of(t, own_steps(t)->eval_forward, &f);
}

struct et_tensor *
eti_step_predict_forward(struct et_trainer *t)
{
    struct et_forward f = {
        .g = t->state.graph, .samples = &t->state.batch, .rng = t->rng};
    return outputs_of(t, own_steps(t)->predict_forward, &f);
}

struct et_tensor *
eti_step_train_loss(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const struct et_trainer_steps *own = own_steps(t);
    if (!own->train_loss)
        return et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
    bool was = et_autocast(s->graph, true);
    struct et_tensor *loss = own->train_loss(own->data, s);
    et_autocast(s->graph, was);
    return loss;
}

et_status
eti_step_backward(struct et_trainer *t, struct et_tensor *loss)
{
    struct et_state *s = &t->state;
    const struct et_trainer_steps *own = own_steps(t);
    struct eti_params *all = &t->params;
    struct eti_trained *of = &all->trained;
    if (own->backward)
        ET_TRY(own->backward(own->data, s, loss, of->leaf, of->n, of->grad));
    else
        ET_TRY(et_grad(s->graph, loss, of->leaf, of->n, of->grad));
    memset(all->grads, 0, (size_t)all->n * sizeof(struct et_tensor *));
    for (int i = 0; i < of->n; i++)
        all->grads[of->slot[i]] = of->grad[i];
    return ET_OK;
}

struct et_tensor *
eti_step_clip(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const struct et_trainer_steps *own = own_steps(t);
    return own->clip_gradients ? own->clip_gradients(own->data, s, s->grad) : s->grad;
}

et_status
eti_step_optimizer(struct et_trainer *t, struct et_tensor *skip)
{
    struct et_state *s = &t->state;
    const struct et_trainer_steps *own = own_steps(t);
    if (own->optimizer_step)
        return own->optimizer_step(own->data, s, s->grad, skip);
    return et_optimizer_update(s->graph, s->optimizer, s->grad, NULL, skip);
}

struct et_timestamp
eti_schedule_time(const struct et_trainer *t)
{
    const struct et_timestamp *held = &t->common.held;
    struct et_timestamp ts = t->state.timestamp;
    ts.batch -= held->batch;
    ts.sample -= held->sample;
    ts.token -= held->token;
    ts.batch_in_epoch -= held->batch_in_epoch;
    ts.sample_in_epoch -= held->sample_in_epoch;
    ts.token_in_epoch -= held->token_in_epoch;
    return ts;
}

et_status
eti_step_scheduler(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const struct et_trainer_steps *own = own_steps(t);
    const struct et_timestamp now = eti_schedule_time(t);
    if (own->scheduler_step)
        ET_TRY(own->scheduler_step(own->data, s, &s->lr_factor));
    else
        ET_TRY(et_schedule_alpha(s->cx, t->config.schedulers, t->config.n_schedulers,
                                 &now, &t->length, &s->lr_factor));
    return eti_groups_schedule(t);
}
