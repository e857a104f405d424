/* state.c: what hooks ask of the state. */
#include "config.h"

#include <string.h>

#include "core/trainer/trainer_impl.h"

void
et_state_stop(struct et_state *s, const char *why)
{
    s->stop = true;
    if (!s->stop_reason)
        s->stop_reason = why;
}

et_status
et_state_elapsed(const struct et_state *s, double *out)
{
    return et_timestamp_elapsed(s->cx, &s->timestamp, s->max_duration, out);
}

bool
et_state_metric(const struct et_state *s, const char *name, double *out)
{
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
    return et_model_loss(s->model, s->graph, outputs, target, reduction);
}

struct et_tensor *
et_state_dense_target(struct et_state *s, struct et_tensor *outputs, struct et_tensor *target)
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
    struct et_trainer *t = (struct et_trainer *)s;
    ET_TRY(eti_late_deliver(t, 0)); /* unsettled updates speak of the old parameters */
    return eti_bind_parameters(t);
}
