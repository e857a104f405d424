/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c: when to evaluate, and doing it. Source: spec/trainer.md 1.6 and 7.6.
 *
 * An interval in any unit fires when its counter crosses a multiple; at the end of fit
 * whatever has not been evaluated at this batch is, unless its interval is 0.
 * Evaluation does not count in the training clock. An interrupt ends it after the batch
 * under way: EVAL_END is still fired (ema gives the weights back there), with nothing
 * logged. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/comm.h"
#include "core/base/need.h"
#include "core/trainer/ranks.h"
#include "core/trainer/trainer_impl.h"
#include "core/trainer/view.h"

/* The event at which the counter of UNIT has just moved. */
static enum et_event
counted_at(enum et_time_unit unit)
{
    return unit == ET_TIME_EPOCH       ? ET_EVENT_EPOCH_END
           : unit == ET_TIME_ITERATION ? ET_EVENT_ITERATION_END
                                       : ET_EVENT_BATCH_END;
}

static et_status
is_due(struct et_trainer *t, const struct eti_evaluator *e, enum et_event event,
       bool *due)
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
    ET_TRY(eti_settle_interval(s, &interval));
    if (event != counted_at(interval.unit))
        return ET_OK;
    ET_TRY(et_timestamp_get(s->cx, &s->timestamp, interval.unit, &now));
    ET_TRY(et_timestamp_get(s->cx, &t->common.before, interval.unit, &then));
    *due = floor(now.value / interval.value) > floor(then.value / interval.value);
    return ET_OK;
}

static et_status
eval_piece(struct et_trainer *t, struct eti_evaluator *e, int64_t first, int64_t n)
{
    struct et_state *s = &t->state;
    s->batch = eti_rows(s->graph, &s->full, first, n);
    ET_TRY(eti_run(t, ET_EVENT_EVAL_BEFORE_FORWARD));
    s->outputs = eti_step_eval_forward(t);
    ET_TRY(eti_run(t, ET_EVENT_EVAL_AFTER_FORWARD));
    for (int i = 0; i < e->n_metrics; i++)
        et_metric_update(s->graph, e->metric[i], s->outputs, &s->batch);
    ET_TRY(et_eval(s->graph, NULL, 0));
    et_graph_last_plan(s->graph, &t->measured.eval);
    return ET_OK;
}

/* A piece that did not fit has changed nothing, and is cut smaller; those before it
 * count. Like grad_accum, the number of pieces is the smallest that fits, as the
 * planner has it, and never falls. Each rank has its own: pieces exchange nothing. */
static et_status
eval_pieces(struct et_trainer *t, struct eti_evaluator *e)
{
    struct et_state *s = &t->state;
    int64_t n = s->full.n, first = 0;
    if (t->evaluation.split > 1)
        ET_TRY(eti_keep_batch(t));
    while (first < n) {
        int64_t rows = (n + t->evaluation.split - 1) / t->evaluation.split;
        rows = rows < n - first ? rows : n - first;
        et_status status = eval_piece(t, e, first, rows);
        if (status == ET_OK) {
            first += rows;
            continue;
        }
        if (status != ET_ENOMEM || !t->pieces.is_auto || rows <= 1)
            return status;
        t->evaluation.split = eti_more_pieces(t, t->evaluation.split, n, true);
        et_report(s->cx, ET_LOG_WARN, "%s; evaluating batches in %lld pieces",
                  et_error_get(s->cx)->message, (long long)t->evaluation.split);
        et_error_clear(s->cx);
        et_graph_abandon(s->graph);
        ET_TRY(eti_keep_batch(t));
    }
    return ET_OK;
}

static et_status
eval_batch(struct et_trainer *t, struct eti_evaluator *e, const struct et_batch *b)
{
    struct et_state *s = &t->state;
    eti_show_batch(t, b);
    ET_TRY(eti_run(t, ET_EVENT_EVAL_BATCH_START));
    s->full = s->batch;
    s->full.n = s->full.x ? s->full.x->desc.shape[0] : 0;
    if (!b->spare)
        ET_TRY(eval_pieces(t, e));
    eti_show_batch(t, b);
    s->outputs = NULL;
    et_timestamp_next_batch(&s->eval_timestamp, b->all_samples, b->all_tokens, 0);
    return eti_run(t, ET_EVENT_EVAL_BATCH_END);
}

static et_status
log_values(struct et_trainer *t, struct eti_evaluator *e)
{
    struct et_state *s = &t->state;
    for (int i = 0; i < e->n_metrics; i++) {
        struct et_metric_value v = {0}; /* all bytes: they are saved */
        int at = 0;
        snprintf(v.name, sizeof v.name, "metrics/%s/%s", e->config.label,
                 et_metric_class(e->metric[i])->info.name);
        ET_TRY(eti_ranks_metric(t, e->metric[i], &v.value));
        while (at < s->n_eval_metrics &&
               strcmp(t->evaluation.value[at].name, v.name) != 0)
            at++;
        if (at == ETI_MAX_METRICS * ETI_MAX_EVALUATORS)
            return ET_FAIL(s->cx, ET_EINVAL,
                           "evaluations have left %d metrics: no room for %s", at,
                           v.name);
        if (at == s->n_eval_metrics)
            s->n_eval_metrics++;
        t->evaluation.value[at] = v;
        et_log_metric(s->log, v.name, v.value);
    }
    return ET_OK;
}

static et_status
show_values(struct et_state *s)
{
    for (int i = 0; i < s->n_callbacks; i++)
        if (s->callbacks[i]->type->evaluated)
            ET_TRY(s->callbacks[i]->type->evaluated(s->callbacks[i], s, s->log));
    return ET_OK;
}

static et_status
evaluate_shown(struct et_trainer *t, struct eti_evaluator *e)
{
    struct et_state *s = &t->state;
    double start = eti_monotonic(s->cx);
    s->eval_timestamp = (struct et_timestamp){0};
    s->eval_enough = false;
    ET_TRY(eti_run(t, ET_EVENT_EVAL_START));
    ET_TRY(eti_ranks_share_buffers(t));
    for (int i = 0; i < e->n_metrics; i++)
        ET_TRY(et_metric_reset(e->metric[i]));
    ET_TRY(et_loader_seek(s->cx, e->config.loader, 0, 0));
    for (;;) {
        const struct et_batch *b;
        ET_TRY(eti_listen_for_stop(t));
        if (eti_interrupted(t))
            break;
        ET_TRY(et_loader_next(s->cx, e->config.loader, &b));
        if (!b)
            break;
        et_status status = eval_batch(t, e, b);
        et_loader_release(e->config.loader, b);
        s->batch = s->full = (struct et_samples){0};
        ET_TRY(status);
        if (t->config.dry || s->eval_enough)
            break;
    }
    s->eval_timestamp.total_wct = eti_monotonic(s->cx) - start;
    bool whole =
        t->common.outcome != ET_OUTCOME_STOPPED; /* one broken off has no values */
    if (whole)
        ET_TRY(log_values(t, e));
    if (whole && !t->config.dry)
        ET_TRY(show_values(s));
    ET_TRY(eti_run(t, ET_EVENT_EVAL_END));
    if (whole) {
        et_log_emit(s->log, ET_RECORD_EVAL, &s->timestamp, e->config.label);
        e->last_batch = s->timestamp.batch;
    }
    eti_clock_skip(t, eti_monotonic(s->cx) - start);
    return ET_OK;
}

/* The state shows E's loader meanwhile, and no longer: its label may be a caller's. */
static et_status
evaluate(struct et_trainer *t, struct eti_evaluator *e)
{
    struct et_state *s = &t->state;
    struct et_loader_info info;
    const char *label = s->dataloader_label;
    int64_t length = s->dataloader_len;
    et_loader_get_info(e->config.loader, &info);
    s->dataloader_label = e->config.label;
    s->dataloader_len = info.batches_per_epoch;
    et_status status = evaluate_shown(t, e);
    s->dataloader_label = label;
    s->dataloader_len = length;
    return status;
}

et_status
et_state_evaluate(const struct et_state *state, const char *prefix)
{
    ETI_NEED(state ? state->cx : NULL, state);
    /* The trainer's own, which hooks are shown as constant. */
    struct et_trainer *t = (struct et_trainer *)(uintptr_t)state;
    char label[ET_METRIC_NAME];
    for (int i = 0; i < t->evaluation.n && t->common.outcome != ET_OUTCOME_STOPPED;
         i++) {
        struct eti_evaluator e = t->evaluation.v[i];
        snprintf(label, sizeof label, "%s%s", prefix, e.config.label);
        e.config.label = label;
        ET_TRY(evaluate(t, &e));
    }
    return ET_OK;
}

static bool
any_of(const struct et_trainer *t, const bool *which)
{
    bool any = false;
    for (int i = 0; i < t->evaluation.n; i++)
        any |= which[i];
    return any;
}

static et_status
evaluate_some(struct et_trainer *t, const bool *which)
{
    if (!any_of(t, which))
        return ET_OK;
    ET_TRY(eti_run(t, ET_EVENT_EVAL_BEFORE_ALL));
    for (int i = 0; i < t->evaluation.n && t->common.outcome != ET_OUTCOME_STOPPED; i++)
        if (which[i])
            ET_TRY(evaluate(t, &t->evaluation.v[i]));
    ET_TRY(eti_run(t, ET_EVENT_EVAL_AFTER_ALL));
    if (!t->config.target || t->state.target_reached ||
        t->common.outcome == ET_OUTCOME_STOPPED)
        return ET_OK;
    ET_TRY(eti_target_check(t, &t->state.target_reached));
    if (t->state.target_reached)
        et_state_stop(&t->state, "the target was reached");
    return ET_OK;
}

/* Who interrupts does not wait for evaluations: the run that goes on from the
 * checkpoint makes up for them. (At FIT_END it does so by itself.) */
et_status
eti_evaluate_due(struct et_trainer *t, enum et_event event)
{
    bool which[ETI_MAX_EVALUATORS] = {false};
    for (int i = 0; i < t->evaluation.n; i++)
        ET_TRY(is_due(t, &t->evaluation.v[i], event, &which[i]));
    t->evaluation.pending = 0;
    if (t->common.outcome != ET_OUTCOME_STOPPED)
        ET_TRY(evaluate_some(t, which));
    if (t->common.outcome == ET_OUTCOME_STOPPED && event != ET_EVENT_FIT_END &&
        any_of(t, which))
        t->evaluation.pending = (int)event;
    return ET_OK;
}

et_status
eti_evaluate_pending(struct et_trainer *t)
{
    bool which[ETI_MAX_EVALUATORS] = {false};
    enum et_event event = (enum et_event)t->evaluation.pending;
    if (event == 0)
        return ET_OK;
    for (int i = 0; i < t->evaluation.n; i++) {
        ET_TRY(is_due(t, &t->evaluation.v[i], event, &which[i]));
        which[i] =
            which[i] && t->evaluation.v[i].last_batch != t->state.timestamp.batch;
    }
    t->evaluation.pending = 0;
    return evaluate_some(t, which);
}

/* The evaluators from FIRST on, outside of fit. */
static et_status
evaluate_alone(struct et_trainer *t, int first)
{
    struct et_state *s = &t->state;
    const char *label = s->dataloader_label;
    bool which[ETI_MAX_EVALUATORS] = {false};
    for (int i = first; i < t->evaluation.n; i++)
        which[i] = true;
    if (!label) /* a trainer that has not been fitted */
        s->dataloader_label = t->evaluation.v[first].config.label;
    et_status status = eti_run(t, ET_EVENT_EVAL_STANDALONE_START);
    if (status == ET_OK)
        status = evaluate_some(t, which);
    if (status == ET_OK)
        status = eti_run(t, ET_EVENT_EVAL_STANDALONE_END);
    s->dataloader_label = label;
    return status;
}

et_status
et_trainer_eval(struct et_trainer *t)
{
    ETI_NEED(t ? t->state.cx : NULL, t);
    struct et_state *s = &t->state;
    if (t->evaluation.n == 0)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "there is nothing to evaluate on: eval_data is missing");
    eti_comm_begin(t->common.comm);
    et_status status = evaluate_alone(t, 0);
    eti_comm_fail(t->common.comm, status);
    return status;
}

et_status
et_trainer_eval_on(struct et_trainer *t, const struct et_evaluator *evaluators, int n)
{
    ETI_NEED(t ? t->state.cx : NULL, t);
    if (n > 0)
        ETI_NEED(t ? t->state.cx : NULL, evaluators);
    int first = t->evaluation.n;
    if (n < 1)
        return ET_FAIL(t->state.cx, ET_EINVAL, "there is nothing to evaluate on");
    eti_comm_begin(t->common.comm);
    et_status status = eti_evaluators_add(t, evaluators, n);
    if (status == ET_OK)
        status = evaluate_alone(t, first);
    eti_comm_fail(t->common.comm, status);
    eti_evaluators_drop(t, first);
    return status;
}
