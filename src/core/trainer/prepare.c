/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c: how long the run is, and what a call of fit changes before it begins.
 *
 * Source: spec/trainer.md 7.2. Differs: where the trainer was left mid-epoch, the next
 * call goes on with the epoch's next batch, and all schedules see the new length. */
#include "config.h"

#include <stdio.h>

#include "core/data/loader_impl.h"
#include "core/trainer/loop.h"
#include "core/trainer/trainer_impl.h"

static void
measure_data(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_loader_info info;
    if (!t->config.train)
        return;
    et_loader_get_info(t->config.train, &info);
    s->train_len = t->length.dataloader_len = info.batches_per_epoch;
    s->train_samples = info.samples_per_epoch;
    s->train_set = t->config.train->data;
    s->batch_size = info.batch_size;
    s->max_seq_len = info.field[ET_FIELD_X].kind == ET_FIELD_TOKENS
                         ? info.desc[ET_FIELD_X].shape[1]
                         : 0;
}

/* Says before the first batch what is wrong with the schedules. */
static et_status
check_schedules(struct et_trainer *t)
{
    ET_TRY(et_schedule_check(t->state.cx, t->config.schedulers, t->config.n_schedulers,
                             &t->length));
    return eti_groups_check_schedules(t);
}

et_status
eti_run_length(struct et_ctx *cx, const struct et_trainer_config *config,
               struct et_run_length *out)
{
    const double ratio = config->scale_schedule_ratio;
    struct et_loader_info info = {.batches_per_epoch = -1};
    if (config->train)
        et_loader_get_info(config->train, &info);
    *out = (struct et_run_length){
        .max_duration = ET_TIME_UNSET,
        .dataloader_len = info.batches_per_epoch,
        .scale_schedule_ratio = ratio > 0 ? ratio : 1,
    };
    if (!eti_is_given(config->max_duration))
        return ET_OK;
    return et_time_scale_duration(cx, config->max_duration, out->scale_schedule_ratio,
                                  &out->max_duration);
}

et_status
eti_set_length(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    ET_TRY(eti_run_length(s->cx, &t->config, &t->length));
    s->max_duration = t->length.max_duration;
    measure_data(t);
    if (!eti_is_given(t->config.max_duration))
        return ET_OK;
    return t->config.train ? check_schedules(t) : ET_OK; /* else only to evaluate */
}

/* ---- what a call of fit may change ---- */

static et_status
take_data(struct et_trainer *t, const struct et_fit_options *o)
{
    struct et_state *s = &t->state;
    if (o->train)
        t->config.train = o->train;
    if (!t->config.train)
        return ET_FAIL(s->cx, ET_EINVAL, "fit needs train_data");
    measure_data(t);
    if (o->n_evaluators == 0)
        return ET_OK;
    eti_evaluators_drop(t, 0);
    s->n_eval_metrics = 0;
    ET_TRY(eti_evaluators_add(t, o->evaluators, o->n_evaluators));
    return eti_target_init(t);
}

/* Ranks whose batches have fewer rows may cut them into fewer pieces. */
static et_status
check_sync(const struct et_trainer *t)
{
    if (!t->config.sync_batch_norm || !t->common.comm ||
        (t->pieces.accum == 1 && t->config.microbatch_size == 0))
        return ET_OK;
    et_status status = ET_FAIL(
        t->state.cx, ET_ENOTSUP,
        "sync_batch_norm: ranks exchange statistics within a step, and may cut their "
        "batches into microbatches of other numbers");
    et_hint(t->state.cx, "take grad_accum 1 without microbatch_size, or group_norm");
    return status;
}

static et_status
take_split(struct et_trainer *t, const struct et_fit_options *o)
{
    if (o->grad_accum && o->microbatch_size)
        return ET_FAIL(t->state.cx, ET_EINVAL,
                       "grad_accum %lld and microbatch_size %lld exclude each other",
                       (long long)o->grad_accum, (long long)o->microbatch_size);
    if (!o->grad_accum && !o->microbatch_size)
        return check_sync(t);
    t->pieces.is_auto = false;
    t->config.microbatch_size = o->microbatch_size;
    t->pieces.accum = t->state.grad_accum = o->grad_accum ? o->grad_accum : 1;
    return check_sync(t);
}

/* Also where it is the one that it was: the loss scale begins anew. */
static et_status
take_precision(struct et_trainer *t, const struct et_fit_options *o)
{
    if (o->precision == ET_PRECISION_AUTO)
        return ET_OK;
    ET_TRY(eti_take_precision(t, o->precision));
    struct eti_part *scaler = eti_part_of(t, ETI_PART_SCALER);
    return scaler->type->init(scaler);
}

static void
reset_time(struct et_trainer *t)
{
    t->state.timestamp = t->common.before = (struct et_timestamp){0};
    t->common.held = (struct et_timestamp){0};
    for (int i = 0; i < t->evaluation.n; i++)
        t->evaluation.v[i].last_batch = -1;
}

static et_status
check_iteration(struct et_trainer *t)
{
    struct et_time length = t->config.iteration_length;
    char text[ET_TIME_TEXT_BYTES];
    if (!eti_is_given(t->config.iteration_length) || length.unit == ET_TIME_EPOCH ||
        (length.unit == ET_TIME_TOKEN && t->state.max_seq_len > 0))
        return ET_OK;
    return ET_FAIL(
        t->state.cx, ET_EINVAL,
        "iteration_length %s: it counts epochs or, for data of tokens, tokens",
        et_time_text(length, text, sizeof text));
}

/* Where the clock decides when a run ends, no two runs are the same. */
static et_status
check_clock(struct et_trainer *t)
{
    char text[ET_TIME_TEXT_BYTES];
    if (!t->config.deterministic || t->state.max_duration.unit != ET_TIME_SECOND)
        return ET_OK;
    return ET_FAIL(t->state.cx, ET_EINVAL,
                   "max_duration %s: a deterministic run is not measured by the clock",
                   et_time_text(t->state.max_duration, text, sizeof text));
}

static et_status
take_length(struct et_trainer *t, const struct et_fit_options *o)
{
    struct et_state *s = &t->state;
    double ratio = o->scale_schedule_ratio;
    bool longer = et_time_is_set(o->duration) && o->duration.value > 0;
    if (ratio != 0 && ratio != 1 && o->n_schedulers == 0)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "scale_schedule_ratio %g scales schedules, and none is given",
                       ratio);
    if (o->reset_time)
        reset_time(t);
    if (longer) {
        struct et_time done;
        ET_TRY(et_timestamp_get(s->cx, &s->timestamp, o->duration.unit, &done));
        s->max_duration =
            (struct et_time){done.value + o->duration.value, o->duration.unit};
    }
    if (!et_time_is_set(s->max_duration))
        return ET_FAIL(s->cx, ET_EINVAL, "fit needs max_duration");
    if (o->n_schedulers > 0) {
        t->config.schedulers = o->schedulers;
        t->config.n_schedulers = o->n_schedulers;
        t->length.scale_schedule_ratio = ratio > 0 ? ratio : 1;
        ET_TRY(et_time_scale_duration(
            s->cx, s->max_duration, t->length.scale_schedule_ratio, &s->max_duration));
    }
    t->length.max_duration = s->max_duration;
    return longer || o->train || o->n_schedulers > 0 ? check_schedules(t) : ET_OK;
}

et_status
eti_prepare_fit(struct et_trainer *t, const struct et_fit_options *o)
{
    struct et_state *s = &t->state;
    bool over;
    ET_TRY(take_data(t, o));
    ET_TRY(take_split(t, o));
    ET_TRY(take_precision(t, o));
    ET_TRY(take_length(t, o));
    ET_TRY(check_iteration(t));
    ET_TRY(eti_check_times(t));
    ET_TRY(check_clock(t));
    s->stop = false;
    eti_interrupt_forget(t);
    s->target_reached = t->common.resumed && s->target_reached;
    s->stop_reason = NULL;
    if (!t->common.resumed)
        s->stopped_by[0] = '\0';
    t->common.outcome = ET_OUTCOME_FINISHED;
    ET_TRY(eti_is_over(s, &over));
    if (over && !t->common.resumed) {
        char text[ET_TIME_TEXT_BYTES];
        return ET_FAIL(s->cx, ET_EINVAL,
                       "max_duration %s has passed already: no training would occur",
                       et_time_text(s->max_duration, text, sizeof text));
    }
    s->dataloader_label = "train";
    s->dataloader_len = s->train_len;
    return et_loader_seek(s->cx, t->config.train, s->timestamp.epoch,
                          s->timestamp.batch_in_epoch);
}
