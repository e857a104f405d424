/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: what hooks and the trainer ask of the state. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "core/base/need.h"
#include "core/trainer/readback.h"
#include "core/trainer/trainer_impl.h"

void
et_state_stop(struct et_state *s, const char *why)
{
    if (!s)
        return;
    s->stop = true;
    if (!s->stop_reason)
        s->stop_reason = why;
}

et_status
eti_is_over(const struct et_state *s, bool *over)
{
    int order;
    *over = s->stop;
    if (s->stop)
        return ET_OK;
    ET_TRY(et_timestamp_compare(s->cx, &s->timestamp, s->max_duration, &order));
    *over = order >= 0;
    return ET_OK;
}

et_status
et_state_elapsed(const struct et_state *s, double *out)
{
    ETI_NEED(s ? s->cx : NULL, s, out);
    return et_timestamp_elapsed(s->cx, &s->timestamp, s->max_duration, out);
}

/* The interval in a unit that is counted: a dur becomes that part of max_duration, in
 * batches where that is in epochs. */
et_status
eti_settle_interval(const struct et_state *s, struct et_time *interval)
{
    if (interval->unit != ET_TIME_DURATION)
        return ET_OK;
    double whole = s->max_duration.value;
    interval->unit = s->max_duration.unit;
    if (interval->unit == ET_TIME_EPOCH) {
        if (s->train_len < 1)
            return ET_FAIL(s->cx, ET_EINVAL,
                           "an interval in dur needs the loader's length");
        whole *= (double)s->train_len;
        interval->unit = ET_TIME_BATCH;
    }
    interval->value = ceil(interval->value * whole);
    return ET_OK;
}

bool
et_state_metric(const struct et_state *s, const char *name, double *out)
{
    if (!s || !name)
        return false;
    const struct et_metric_value *lists[] = {s->train_metrics, s->eval_metrics};
    int counts[] = {s->n_train_metrics, s->n_eval_metrics};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < counts[k]; i++)
            if (strcmp(lists[k][i].name, name) == 0) {
                *out = lists[k][i].value;
                return true;
            }
    return false;
}

struct et_tensor *
et_state_loss(struct et_state *s, struct et_tensor *outputs, struct et_tensor *target,
              enum et_reduction reduction)
{
    if (!s)
        return NULL;
    struct et_samples samples = s->batch;
    samples.target = target;
    return et_model_loss(s->model, s->graph, outputs, &samples, reduction);
}

struct et_tensor *
et_state_dense_target(struct et_state *s, struct et_tensor *outputs,
                      struct et_tensor *target)
{
    if (!outputs || !target)
        return NULL;
    if (et_dtype_is_float(target->desc.dtype))
        return target;
    return et_one_hot(s->graph, target, outputs->desc.shape[1]);
}

et_status
et_state_follow_surgery(struct et_state *s)
{
    ETI_NEED(s ? s->cx : NULL, s);
    struct et_trainer *t = (struct et_trainer *)s;
    ET_TRY(eti_readback_settle(t));
    return eti_bind_parameters(t);
}

struct et_tensor *
et_state_grad_squares(struct et_state *s)
{
    if (!s)
        return NULL;
    static const int64_t one[] = {1};
    if (!s->grad)
        return NULL;
    if (s->squares_of != s->grad) {
        s->grad_squares =
            et_reshape(s->graph, et_sum_squares(s->graph, s->grad), 1, one);
        s->squares_of = s->grad;
    }
    return s->grad_squares;
}

/* |f g|^2 = f f |g|^2, in this order: f^2 alone may underflow. What was not finite is
 * not afterwards either: inf times 0 is NaN. */
void
et_state_scale_grad(struct et_state *s, struct et_tensor *factor)
{
    if (!s)
        return;
    struct et_graph *g = s->graph;
    struct et_tensor *squares = et_state_grad_squares(s);
    s->grad = et_mul(g, s->grad, factor);
    s->grad_squares = et_mul(g, et_mul(g, squares, factor), factor);
    s->squares_of = s->grad;
}
