/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c: the training loop, event by event (event.h holds the same in words). */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/comm.h"
#include "core/base/need.h"
#include "core/base/sized.h"
#include "core/trainer/engine.h"
#include "core/trainer/loop.h"
#include "core/trainer/ranks.h"
#include "core/trainer/readback.h"
#include "core/trainer/trainer_impl.h"
#include "core/trainer/view.h"

static void
log_times(struct et_state *s)
{
    const struct et_timestamp *ts = &s->timestamp;
    et_log_metric(s->log, "time/epoch", (double)ts->epoch);
    et_log_metric(s->log, "time/batch", (double)ts->batch);
    et_log_metric(s->log, "time/sample", (double)ts->sample);
    et_log_metric(s->log, "time/batch_in_epoch", (double)ts->batch_in_epoch);
    et_log_metric(s->log, "time/sample_in_epoch", (double)ts->sample_in_epoch);
    if (ts->token > 0) {
        et_log_metric(s->log, "time/token", (double)ts->token);
        et_log_metric(s->log, "time/token_in_epoch", (double)ts->token_in_epoch);
    }
}

/* Whoever asked it to stop before its last batches' numbers were there does not hide
 * that. */
static void
set_diverged(struct et_trainer *t, const char *why)
{
    t->common.outcome = ET_OUTCOME_DIVERGED;
    t->state.interrupted = false;
    t->state.stop_reason = why;
}

/* The steps that were not finite changed nothing; too many in a row end the run. */
bool
eti_judge(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    int64_t grace = t->config.nonfinite_grace > 0 ? t->config.nonfinite_grace : 1;
    char why[256];
    if (t->common.nonfinite_batches == 0)
        return false;
    et_log_text(s->log, ET_LOG_WARN, &s->timestamp,
                "batch %lld: loss %g, gradient not finite; the update was skipped "
                "(%lld in a row)",
                (long long)s->timestamp.batch,
                isnan(s->loss_value) ? NAN : s->loss_value, /* whatever its sign */
                (long long)t->common.nonfinite_batches);
    if (t->config.nonfinite_action == ET_NONFINITE_SKIP ||
        t->common.nonfinite_batches < grace)
        return false;
    if (t->config.nonfinite_action == ET_NONFINITE_ROLLBACK) {
        if (eti_readback_discard(t) == ET_OK && eti_roll_back(t, why, sizeof why)) {
            t->common.nonfinite_batches = 0;
            return true;
        }
        et_log_text(s->log, ET_LOG_ERROR, &s->timestamp, "batch %lld: no way back: %s",
                    (long long)s->timestamp.batch, why);
    }
    s->stop = true;
    set_diverged(t, "the loss or gradient was not finite");
    return false;
}

/* How a run came out that has come to its end. One that was too short for the grace, or
 * was to skip what is not finite, has not finished where all of it was skipped. */
static void
judge_end(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    if (t->common.outcome != ET_OUTCOME_FINISHED || s->target_reached ||
        !eti_learned_nothing(&t->common, s))
        return;
    set_diverged(t, "the loss or gradient of every batch was not finite");
}

/* Schedules go on without a batch whose update was skipped, where they are to. */
static void
hold_schedule(struct et_trainer *t, int64_t samples, int64_t tokens)
{
    if (t->config.hold_schedule && t->common.skipped)
        et_timestamp_next_batch(&t->common.held, samples, tokens, 0);
}

static et_status
finish_batch(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    int ahead = eti_readback_ahead(t);
    t->common.before = s->timestamp;
    et_timestamp_next_batch(&s->timestamp, t->shown->all_samples, t->shown->all_tokens,
                            eti_clock_batch(t));
    hold_schedule(t, t->shown->all_samples, t->shown->all_tokens);
    ET_TRY(eti_ranks_compare(t));
    log_times(s);
    if (ahead > 0) {
        ET_TRY(eti_step_at(t, ET_EVENT_BATCH_END));
        ET_TRY(eti_engine_act(s, ET_EVENT_BATCH_END));
        bool waits = eti_engine_waits(s, ET_EVENT_BATCH_END);
        eti_readback_park(t);
        ET_TRY(eti_readback_deliver(t, waits ? 0 : ahead));
    } else {
        (void)eti_judge(t);
        ET_TRY(eti_run(t, ET_EVENT_BATCH_END));
        et_log_emit(s->log, ET_RECORD_BATCH, &s->timestamp, NULL);
    }
    ET_TRY(eti_control_poll(t));
    (void)eti_interrupted(t);
    ET_TRY(eti_evaluate_due(t, ET_EVENT_BATCH_END));
    return eti_checkpoint(t, ET_EVENT_BATCH_CHECKPOINT);
}

/* Gives the batch that is held back to the loader. */
static void
release_batch(struct et_trainer *t)
{
    const struct et_batch *b = t->shown;
    t->shown = NULL;
    if (b)
        et_loader_release(t->config.train, b);
    t->state.batch = t->state.full = (struct et_samples){0};
}

/* B to all who act before it is trained on. */
static et_status
show_batch(struct et_trainer *t, const struct et_batch *b)
{
    struct et_state *s = &t->state;
    struct et_graph_stats stats;
    et_comm_set_mark(t->common.comm, s->timestamp.batch, 0, 0);
    et_graph_get_stats(s->graph, &stats);
    t->epoch.flops = stats.flops;
    eti_show_batch(t, b);
    s->first_sample = b->first;
    t->step.spare = b->spare;
    eti_groups_begin(t);
    ET_TRY(eti_run(t, ET_EVENT_AFTER_DATALOADER));
    ET_TRY(eti_run(t, ET_EVENT_BATCH_START));
    s->full = s->batch;
    s->full.n = s->full.x ? s->full.x->desc.shape[0] : 0;
    return ET_OK;
}

/* The next batch is t->shown; NULL at the end of the loader's epoch. */
static et_status
read_batch(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const struct et_batch *b;
    ET_TRY(eti_added_follow(t));
    ET_TRY(eti_run(t, ET_EVENT_BEFORE_DATALOADER));
    et_status read = et_loader_next(s->cx, t->config.train, &b);
    if (read != ET_OK) {
        eti_rescue(t);
        return read;
    }
    t->shown = b;
    return b ? show_batch(t, b) : ET_OK;
}

/* ---- iterations: some epochs or tokens, where a length is set ---- */

static bool
counts_tokens(const struct et_trainer *t)
{
    return t->config.iteration_length.unit == ET_TIME_TOKEN;
}

static bool
has_iterations(const struct et_trainer *t)
{
    return et_time_is_set(t->config.iteration_length) &&
           t->config.iteration_length.value > 0;
}

static bool
iteration_begins(const struct et_trainer *t)
{
    const struct et_timestamp *ts = &t->state.timestamp;
    return has_iterations(t) &&
           (counts_tokens(t) ? ts->token_in_iteration == 0
                             : ts->epoch_in_iteration == 0 && ts->batch_in_epoch == 0);
}

static et_status
end_iteration(struct et_trainer *t)
{
    struct et_timestamp *ts = &t->state.timestamp;
    int64_t done = counts_tokens(t) ? ts->token_in_iteration : ts->epoch_in_iteration;
    if (!has_iterations(t) || (double)done < t->config.iteration_length.value)
        return ET_OK;
    et_timestamp_next_iteration(ts);
    ET_TRY(eti_run(t, ET_EVENT_ITERATION_END));
    ET_TRY(eti_evaluate_due(t, ET_EVENT_ITERATION_END));
    return eti_checkpoint(t, ET_EVENT_ITERATION_CHECKPOINT);
}

/* ---- epochs ---- */

static et_status
end_epoch(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    t->common.before = s->timestamp;
    et_timestamp_next_epoch(&s->timestamp);
    et_timestamp_next_epoch(&t->common.held);
    ET_TRY(eti_run(t, ET_EVENT_EPOCH_END));
    et_log_emit(s->log, ET_RECORD_EPOCH, &s->timestamp, NULL);
    ET_TRY(eti_evaluate_due(t, ET_EVENT_EPOCH_END));
    ET_TRY(eti_checkpoint(t, ET_EVENT_EPOCH_CHECKPOINT));
    return end_iteration(t);
}

/* The step that is called is the one that stands next in an epoch (trainer.h). */
static et_status
check_stage(struct et_trainer *t, const char *step, enum eti_epoch_stage stage)
{
    static const char *const next[] = {
        [ETI_OUTSIDE] = "no epoch is under way",
        [ETI_BETWEEN] = "et_trainer_next_batch comes next",
        [ETI_HELD] = "et_trainer_train_batch comes next",
        [ETI_TRAINED] = "et_trainer_end_batch comes next",
    };
    if (t->epoch.stage == stage)
        return ET_OK;
    return ET_FAIL(t->state.cx, ET_EINVAL, "%s: %s", step, next[t->epoch.stage]);
}

et_status
et_trainer_next_batch(struct et_trainer *t, bool *got)
{
    ETI_NEED(t ? t->state.cx : NULL, t, got);
    struct et_state *s = &t->state;
    struct eti_epoch *e = &t->epoch;
    *got = false;
    ET_TRY(check_stage(t, "et_trainer_next_batch", ETI_BETWEEN));
    if (e->read_all || e->over)
        return ET_OK;
    ET_TRY(eti_control_hold(t));
    ET_TRY(eti_is_over(s, &e->over));
    if (e->over)
        return ET_OK;
    if (iteration_begins(t))
        ET_TRY(eti_run(t, ET_EVENT_ITERATION_START));
    if (s->timestamp.batch_in_epoch == 0)
        ET_TRY(eti_run(t, ET_EVENT_EPOCH_START));
    ET_TRY(read_batch(t));
    *got = t->shown != NULL;
    e->read_all = !*got;
    e->stage = *got ? ETI_HELD : ETI_BETWEEN;
    return ET_OK;
}

et_status
et_trainer_train_batch(struct et_trainer *t)
{
    ETI_NEED(t ? t->state.cx : NULL, t);
    struct et_state *s = &t->state;
    struct et_graph_stats stats;
    ET_TRY(check_stage(t, "et_trainer_train_batch", ETI_HELD));
    ET_TRY(eti_step_scheduler(t));
    ET_TRY(eti_train_batch(t));
    et_graph_get_stats(s->graph, &stats);
    s->batch_flops = stats.flops - t->epoch.flops;
    eti_show_batch(t, t->shown);
    s->outputs = s->loss = s->grad = NULL;
    t->epoch.stage = ETI_TRAINED;
    return ET_OK;
}

et_status
et_trainer_end_batch(struct et_trainer *t)
{
    ETI_NEED(t ? t->state.cx : NULL, t);
    struct et_state *s = &t->state;
    ET_TRY(check_stage(t, "et_trainer_end_batch", ETI_TRAINED));
    ET_TRY(finish_batch(t));
    release_batch(t);
    t->epoch.stage = ETI_BETWEEN;
    if (counts_tokens(t) && s->timestamp.batch_in_epoch != s->train_len)
        ET_TRY(end_iteration(t));
    return eti_is_over(s, &t->epoch.over);
}

et_status
et_trainer_run_epoch(void *data, struct et_trainer *t)
{
    ETI_NEED(t ? t->state.cx : NULL, t);
    bool got;
    (void)data;
    for (;;) {
        ET_TRY(et_trainer_next_batch(t, &got));
        if (!got)
            return ET_OK;
        ET_TRY(et_trainer_train_batch(t));
        ET_TRY(et_trainer_end_batch(t));
    }
}

/* The user's epoch, or the default one, and what belongs to its end. */
static et_status
one_epoch(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct eti_epoch *e = &t->epoch;
    et_epoch_fn *run = t->config.epoch ? t->config.epoch : et_trainer_run_epoch;
    *e = (struct eti_epoch){.stage = ETI_BETWEEN};
    et_status status = run(t->config.epoch_data, t);
    if (status == ET_OK)
        status = check_stage(t, "the epoch has returned", ETI_BETWEEN);
    if (status != ET_OK)
        release_batch(t);
    e->stage = ETI_OUTSIDE;
    ET_TRY(status);
    if (e->over && s->timestamp.batch_in_epoch != s->train_len)
        return ET_OK;
    bool early = !e->over && !e->read_all;
    if (early && s->timestamp.batch_in_epoch == 0)
        return ET_FAIL(s->cx, ET_EINVAL, "the epoch has trained on no batch");
    ET_TRY(end_epoch(t));
    return early ? et_loader_seek(s->cx, t->config.train, s->timestamp.epoch, 0)
                 : ET_OK;
}

et_status
et_trainer_fit(struct et_trainer *t, struct et_time duration)
{
    ETI_NEED(t ? t->state.cx : NULL, t);
    const struct et_fit_options options = {.duration = duration};
    return et_trainer_fit_with(t, &options);
}

/* Had a callback ended the run when the checkpoint was saved? Only a run that is
 * resumed asks: another recipe may load the same checkpoint to train on. */
static bool
had_stopped(const struct et_trainer *t)
{
    const struct et_state *s = &t->state;
    for (int i = 0; i < s->n_callbacks && t->config.load && t->config.load->recipe; i++)
        if (strcmp(s->callbacks[i]->type->info.name, s->stopped_by) == 0)
            return true;
    return false;
}

/* A checkpoint is of the moment after *_CHECKPOINT: does what came after it there. */
static et_status
go_on(struct et_trainer *t, bool *over)
{
    struct et_state *s = &t->state;
    bool resumed = t->common.resumed;
    *over = false;
    if (!resumed)
        return ET_OK;
    t->common.resumed = false;
    if (s->target_reached && t->config.target)
        ET_TRY(eti_target_check(t, &s->target_reached)); /* it may be another one now */
    if (s->target_reached && t->config.target)
        et_state_stop(s, "the target was reached");
    if (had_stopped(t))
        et_state_stop(s, s->stopped_why);
    ET_TRY(eti_evaluate_pending(t));
    ET_TRY(eti_is_over(s, over));
    if (*over && s->timestamp.batch_in_epoch == s->train_len)
        return end_epoch(t);
    bool mid_epoch = s->timestamp.batch_in_epoch > 0;
    if (!mid_epoch || (counts_tokens(t) && s->timestamp.batch_in_epoch != s->train_len))
        return end_iteration(t);
    return ET_OK;
}

static et_status
fit(struct et_trainer *t, const struct et_fit_options *options)
{
    struct et_state *s = &t->state;
    bool over;
    ET_TRY(eti_prepare_fit(t, options));
    eti_clock_start(t);
    eti_control_expect(t);
    ET_TRY(eti_control_poll(t));
    ET_TRY(eti_added_follow(t));
    ET_TRY(eti_run(t, ET_EVENT_FIT_START));
    ET_TRY(go_on(t, &over));
    while (!over) {
        ET_TRY(one_epoch(t));
        ET_TRY(eti_is_over(s, &over));
    }
    ET_TRY(eti_readback_deliver(t, 0));
    judge_end(t);
    ET_TRY(eti_run(t, ET_EVENT_FIT_END));
    if (t->common.outcome != ET_OUTCOME_DIVERGED)
        ET_TRY(eti_evaluate_due(t, ET_EVENT_FIT_END));
    if (t->common.outcome == ET_OUTCOME_FINISHED && t->config.target)
        t->common.outcome =
            s->target_reached ? ET_OUTCOME_TARGET_REACHED : ET_OUTCOME_TARGET_MISSED;
    eti_finish_saving(t);
    return ET_OK;
}

et_status
et_trainer_fit_with_sized(struct et_trainer *t, size_t size,
                          const struct et_fit_options *options)
{
    ETI_NEED(t ? t->state.cx : NULL, t);
    struct et_fit_options own;
    eti_comm_begin(t->common.comm);
    et_status status = eti_sized(t->state.cx, "struct et_fit_options", options, size,
                                 &own, sizeof own);
    if (status == ET_OK)
        status = fit(t, &own);
    eti_comm_fail(t->common.comm, status); /* whatever it was: nobody waits for us */
    if (status != ET_OK)
        eti_keep_saved(t);
    return status;
}
