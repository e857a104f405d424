/* evaluate.c: when to evaluate, and doing it. Source: spec/trainer.md 1.6 and 7.6.
 *
 * An interval in any unit fires when its counter crosses a multiple; at the end of fit
 * whatever has not been evaluated at this batch is, unless its interval is 0. Evaluation
 * does not count in the training clock. An interrupt ends it after the batch under way:
 * EVAL_END is still fired (ema gives the weights back there), with nothing logged. */
#include "config.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"

/* An empty list keeps all; else any regular expression that matches anywhere, in any
 * case, keeps a metric. */
static et_status
keeps(struct et_trainer *t, const char *const *patterns, const char *name, bool *keep)
{
    *keep = !patterns || !patterns[0];
    for (int i = 0; patterns && patterns[i] && !*keep; i++) {
        regex_t re;
        if (regcomp(&re, patterns[i], REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
            return ET_FAIL(t->state.cx, ET_EINVAL, "'%s' is not a regular expression",
                           patterns[i]);
        *keep = regexec(&re, name, 0, NULL, 0) == 0;
        regfree(&re);
    }
    return ET_OK;
}

static et_status
select_metrics(struct et_trainer *t, struct eti_evaluator *e)
{
    ET_TRY(eti_metrics_new(t, et_task_metrics(t->state.model->type->task, false), e->metric,
                           &e->n_metrics));
    int kept = 0, n = e->n_metrics;
    for (int i = 0; i < n; i++) {
        bool keep;
        ET_TRY(keeps(t, e->config.metrics, et_metric_class(e->metric[i])->info.name, &keep));
        struct et_metric *m = e->metric[i];
        e->metric[i] = NULL;
        if (keep)
            e->metric[kept++] = m;
        else
            et_metric_free(&m);
    }
    e->n_metrics = kept;
    if (kept == 0)
        return ET_FAIL(t->state.cx, ET_EINVAL, "no metric of evaluator '%s' matches",
                       e->config.label);
    return ET_OK;
}

et_status
eti_evaluators_init(struct et_trainer *t)
{
    if (t->config.n_evaluators > ETI_MAX_EVALUATORS)
        return ET_FAIL(t->state.cx, ET_EINVAL, "more than %d evaluators", ETI_MAX_EVALUATORS);
    for (int i = 0; i < t->config.n_evaluators; i++) {
        struct eti_evaluator *e = &t->evaluator[t->n_evaluators++];
        *e = (struct eti_evaluator){.config = t->config.evaluators[i], .last_batch = -1};
        if (!e->config.label)
            e->config.label = "eval";
        if (!et_time_is_set(e->config.interval))
            e->config.interval = t->config.eval_interval;
        if (!et_time_is_set(e->config.interval))
            e->config.interval = ET_EPOCHS(1);
        ET_TRY(select_metrics(t, e));
    }
    return ET_OK;
}

void
eti_evaluators_free(struct et_trainer *t)
{
    for (int i = 0; i < t->n_evaluators; i++)
        for (int k = 0; k < t->evaluator[i].n_metrics; k++)
            et_metric_free(&t->evaluator[i].metric[k]);
    t->n_evaluators = 0;
}

/* The interval in a unit that is counted: a dur becomes that part of max_duration, in
 * batches where that is in epochs. */
static et_status
settle(struct et_trainer *t, struct et_time *interval)
{
    struct et_state *s = &t->state;
    if (interval->unit != ET_TIME_DURATION)
        return ET_OK;
    double whole = s->max_duration.value;
    interval->unit = s->max_duration.unit;
    if (interval->unit == ET_TIME_EPOCH) {
        if (s->train_len < 1)
            return ET_FAIL(s->cx, ET_EINVAL, "an eval_interval in dur needs the loader's length");
        whole *= (double)s->train_len;
        interval->unit = ET_TIME_BATCH;
    }
    interval->value = ceil(interval->value * whole);
    return ET_OK;
}

static et_status
is_due(struct et_trainer *t, const struct eti_evaluator *e, enum et_event event, bool *due)
{
    struct et_state *s = &t->state;
    struct et_time interval = e->config.interval, now, then;
    *due = false;
    if (interval.value <= 0)
        return ET_OK;
    if (event == ET_EVENT_FIT_END) {
        *due = e->last_batch != s->timestamp.batch;
        return ET_OK;
    }
    ET_TRY(settle(t, &interval));
    bool by_epoch = interval.unit == ET_TIME_EPOCH;
    if (by_epoch != (event == ET_EVENT_EPOCH_END))
        return ET_OK;
    ET_TRY(et_timestamp_get(s->cx, &s->timestamp, interval.unit, &now));
    ET_TRY(et_timestamp_get(s->cx, &t->before, interval.unit, &then));
    *due = floor(now.value / interval.value) > floor(then.value / interval.value);
    return ET_OK;
}

static et_status
eval_batch(struct et_trainer *t, struct eti_evaluator *e, const struct et_batch *b)
{
    struct et_state *s = &t->state;
    const struct et_trainer_steps *own = t->config.steps;
    et_graph_reset(s->graph);
    s->batch = s->full = (struct et_samples){
        .x = b->x_tensor,
        .target = b->target_tensor,
        .n = b->n_samples,
    };
    ET_TRY(eti_run(t, ET_EVENT_EVAL_BATCH_START));
    ET_TRY(eti_run(t, ET_EVENT_EVAL_BEFORE_FORWARD));
    struct et_forward f = {.g = s->graph, .rng = t->rng};
    bool was = et_autocast(s->graph, true);
    s->outputs = own && own->eval_forward ? own->eval_forward(own->data, s)
                                          : et_model_forward(s->model, &f, s->batch.x);
    et_autocast(s->graph, was);
    ET_TRY(eti_run(t, ET_EVENT_EVAL_AFTER_FORWARD));
    for (int i = 0; i < e->n_metrics; i++)
        et_metric_update(s->graph, e->metric[i], s->outputs, s->batch.target);
    ET_TRY(et_eval(s->graph, NULL, 0));
    et_graph_last_plan(s->graph, &t->eval_plan);
    et_graph_reset(s->graph);
    s->outputs = NULL;
    et_timestamp_next_batch(&s->eval_timestamp, b->n_samples, b->n_tokens, 0);
    return eti_run(t, ET_EVENT_EVAL_BATCH_END);
}

static et_status
log_values(struct et_trainer *t, struct eti_evaluator *e)
{
    struct et_state *s = &t->state;
    for (int i = 0; i < e->n_metrics; i++) {
        struct et_metric_value v;
        int at = 0;
        snprintf(v.name, sizeof v.name, "metrics/%s/%s", e->config.label,
                 et_metric_class(e->metric[i])->info.name);
        ET_TRY(et_metric_value(e->metric[i], &v.value));
        while (at < s->n_eval_metrics && strcmp(t->eval_value[at].name, v.name) != 0)
            at++;
        if (at == s->n_eval_metrics)
            s->n_eval_metrics++;
        t->eval_value[at] = v;
        et_log_metric(s->log, v.name, v.value);
    }
    return ET_OK;
}

static et_status
evaluate(struct et_trainer *t, struct eti_evaluator *e)
{
    struct et_state *s = &t->state;
    struct et_loader_info info;
    const char *label = s->dataloader_label;
    int64_t length = s->dataloader_len;
    double start = eti_now();
    et_loader_get_info(e->config.loader, &info);
    s->dataloader_label = e->config.label;
    s->dataloader_len = info.batches_per_epoch;
    s->eval_timestamp = (struct et_timestamp){0};
    ET_TRY(eti_run(t, ET_EVENT_EVAL_START));
    for (int i = 0; i < e->n_metrics; i++)
        ET_TRY(et_metric_reset(e->metric[i]));
    ET_TRY(et_loader_seek(s->cx, e->config.loader, 0, 0));
    while (!eti_interrupted(t)) {
        const struct et_batch *b;
        ET_TRY(et_loader_next(s->cx, e->config.loader, &b));
        if (!b)
            break;
        et_status status = eval_batch(t, e, b);
        et_loader_release(e->config.loader, b);
        s->batch = s->full = (struct et_samples){0};
        ET_TRY(status);
        if (t->config.dry)
            break;
    }
    s->eval_timestamp.total_wct = eti_now() - start;
    bool whole = t->outcome != ET_OUTCOME_STOPPED; /* one broken off has no values */
    if (whole)
        ET_TRY(log_values(t, e));
    ET_TRY(eti_run(t, ET_EVENT_EVAL_END));
    if (whole) {
        et_log_emit(s->log, ET_RECORD_EVAL, &s->timestamp, e->config.label);
        e->last_batch = s->timestamp.batch;
    }
    s->dataloader_label = label;
    s->dataloader_len = length;
    t->clock += eti_now() - start;
    return ET_OK;
}

static et_status
evaluate_some(struct et_trainer *t, const bool *which)
{
    bool any = false;
    for (int i = 0; i < t->n_evaluators; i++)
        any |= which[i];
    if (!any)
        return ET_OK;
    ET_TRY(eti_run(t, ET_EVENT_EVAL_BEFORE_ALL));
    for (int i = 0; i < t->n_evaluators && t->outcome != ET_OUTCOME_STOPPED; i++)
        if (which[i])
            ET_TRY(evaluate(t, &t->evaluator[i]));
    ET_TRY(eti_run(t, ET_EVENT_EVAL_AFTER_ALL));
    if (!t->config.target || t->state.target_reached || t->outcome == ET_OUTCOME_STOPPED)
        return ET_OK;
    ET_TRY(eti_target_check(t, &t->state.target_reached));
    if (t->state.target_reached)
        et_state_stop(&t->state, "the target was reached");
    return ET_OK;
}

et_status
eti_evaluate_due(struct et_trainer *t, enum et_event event)
{
    bool which[ETI_MAX_EVALUATORS] = {false};
    if (t->outcome == ET_OUTCOME_STOPPED) /* who interrupts does not wait for this */
        return ET_OK;
    for (int i = 0; i < t->n_evaluators; i++)
        ET_TRY(is_due(t, &t->evaluator[i], event, &which[i]));
    return evaluate_some(t, which);
}

et_status
et_trainer_eval(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    bool which[ETI_MAX_EVALUATORS];
    if (t->n_evaluators == 0)
        return ET_FAIL(s->cx, ET_EINVAL, "there is nothing to evaluate on: eval_data is missing");
    for (int i = 0; i < t->n_evaluators; i++)
        which[i] = true;
    if (!s->dataloader_label) /* a trainer that has not been fitted */
        s->dataloader_label = t->evaluator[0].config.label;
    ET_TRY(eti_run(t, ET_EVENT_EVAL_STANDALONE_START));
    ET_TRY(evaluate_some(t, which));
    return eti_run(t, ET_EVENT_EVAL_STANDALONE_END);
}
