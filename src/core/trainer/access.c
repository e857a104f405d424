/* SPDX-License-Identifier: Apache-2.0 */
/* access.c: the public functions that read and replace parts of struct et_state. */
#include "core/trainer/state.h"

/* A function that returns FIELD as TYPE. */
#define GET(type, name, field)                                                         \
    type et_state_get_##name(const struct et_state *s)                                 \
    {                                                                                  \
        return s ? s->field : (type){0};                                               \
    }
GET(struct et_ctx *, ctx, cx)
GET(struct et_device *, device, dev)
GET(struct et_graph *, graph, graph)
GET(struct et_log *, log, log)
GET(const char *, run_name, run_name)
GET(uint32_t, seed, seed)
GET(struct et_comm *, comm, comm)
GET(int, rank, rank)
GET(int, world, world)
GET(int, precision, precision)
GET(const struct et_model *, model, model)
GET(const struct et_param_space *, params, params)
GET(const struct et_optimizer *, optimizer, optimizer)
GET(const struct et_loading *, loading, loading)
GET(int64_t, surgeries, surgeries)
GET(double, lr_factor, lr_factor)
GET(struct et_time, max_duration, max_duration)
GET(const char *, stop_reason, stop_reason)
GET(bool, target_reached, target_reached)
GET(bool, interrupted, interrupted)
GET(bool, checkpoint_due, checkpoint_due)
GET(const char *, dataloader_label, dataloader_label)
GET(int64_t, dataloader_len, dataloader_len)
GET(int64_t, train_len, train_len)
GET(int64_t, train_samples, train_samples)
GET(int64_t, max_seq_len, max_seq_len)
GET(int64_t, grad_accum, grad_accum)
GET(int64_t, batch_size, batch_size)
GET(int64_t, first_sample, first_sample)
GET(int, pass, pass)
GET(struct et_tensor *, outputs, outputs)
GET(struct et_tensor *, loss, loss)
GET(struct et_tensor *, grad, grad)
GET(double, loss_scale, loss_scale)
GET(double, loss_value, loss_value)
GET(int64_t, batch_flops, batch_flops)

/* One that returns the address of FIELD. */
#define GET_AT(type, name, field)                                                      \
    const type *et_state_get_##name(const struct et_state *s)                          \
    {                                                                                  \
        return s ? &s->field : NULL;                                                   \
    }
GET_AT(struct et_timestamp, timestamp, timestamp)
GET_AT(struct et_timestamp, eval_timestamp, eval_timestamp)
GET_AT(struct et_timestamp, predict_timestamp, predict_timestamp)
GET_AT(struct et_samples, full, full)
GET_AT(struct et_samples, batch, batch)

const struct et_algorithm *
et_state_get_algorithm(const struct et_state *s, int i)
{
    if (!s)
        return NULL;
    return i >= 0 && i < s->n_algorithms ? s->algorithms[i] : NULL;
}

const struct et_callback *
et_state_get_callback(const struct et_state *s, int i)
{
    if (!s)
        return NULL;
    return i >= 0 && i < s->n_callbacks ? s->callbacks[i] : NULL;
}

const struct et_metric_value *
et_state_get_train_metrics(const struct et_state *s, int *n)
{
    if (!s || !n)
        return NULL;
    *n = s->n_train_metrics;
    return s->train_metrics;
}

const struct et_metric_value *
et_state_get_eval_metrics(const struct et_state *s, int *n)
{
    if (!s || !n)
        return NULL;
    *n = s->n_eval_metrics;
    return s->eval_metrics;
}

/* ---- what is replaced ---- */

void
et_state_set_full(struct et_state *s, const struct et_samples *samples)
{
    if (!s || !samples)
        return;
    s->full = *samples;
}

void
et_state_set_batch(struct et_state *s, const struct et_samples *samples)
{
    if (!s || !samples)
        return;
    s->batch = *samples;
}

void
et_state_set_outputs(struct et_state *s, struct et_tensor *outputs)
{
    if (!s)
        return;
    s->outputs = outputs;
}

void
et_state_set_loss(struct et_state *s, struct et_tensor *loss)
{
    if (!s)
        return;
    s->loss = loss;
}

void
et_state_set_grad(struct et_state *s, struct et_tensor *grad)
{
    if (!s)
        return;
    s->grad = grad;
}

void
et_state_set_step(struct et_state *s, et_step_fn *step, void *data)
{
    if (!s)
        return;
    s->step = step;
    s->step_data = data;
}

void
et_state_set_keep_local(struct et_state *s, bool keep)
{
    if (!s)
        return;
    s->keep_local = keep;
}

struct et_model *
et_state_edit_model(struct et_state *s)
{
    if (!s)
        return NULL;
    return s->model;
}

struct et_param_space *
et_state_edit_params(struct et_state *s)
{
    if (!s)
        return NULL;
    return s->params;
}

struct et_optimizer *
et_state_edit_optimizer(struct et_state *s)
{
    if (!s)
        return NULL;
    return s->optimizer;
}
