/* SPDX-License-Identifier: Apache-2.0 */
/* early_stopper.c: ends a run whose metric no longer improves.
 *
 *     best, t <- value, now     the first time, and whenever value is better than best
 *                               and |value - best| > |min_delta|
 *     stop when                 now - t > patience, in the patience's unit
 *
 * so that a patience of 1ep ends the run at the second epoch without improvement.
 * Source: spec/trainer.md 9.4. Differs: any number is an improvement on a NaN. */
#include "config.h"

#include <math.h>

#include "core/callbacks/callbacks.h"

struct options {
    struct eti_watch watch; /* first */
    double min_delta;
    struct et_time patience;
};

static const struct et_option option_table[] = {
    ETI_WATCH_OPTIONS(struct options),
    {
        .name = "min_delta",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, min_delta),
        .def = "0",
        .help = "a value that is better by no more than this is no improvement",
    },
    {
        .name = "patience",
        .type = ET_OPT_TIME,
        .offset = offsetof(struct options, patience),
        .def = "1ep",
        .units = 1u << ET_TIME_EPOCH | 1u << ET_TIME_BATCH,
        .help = "how long to go on without improvement; in batches, a train metric is "
                "judged at each of them",
    },
    {.name = NULL},
};

struct stopper {
    bool any; /* there is a best value */
    double best;
    struct et_timestamp at; /* when it came */
};

static et_status
check(struct et_ctx *cx, const void *options)
{
    return eti_watch_check(cx, options);
}

static bool
is_improvement(const struct options *o, const struct stopper *st, double value)
{
    if (!st->any || (isnan(st->best) && !isnan(value)))
        return true;
    return eti_watch_is_better(&o->watch, value, st->best) &&
           fabs(value - st->best) > fabs(o->min_delta);
}

static et_status
judge(struct et_callback *self, const struct et_state *state, struct et_log *log)
{
    const struct options *o = self->options;
    struct stopper *st = self->state;
    struct et_time now, then;
    double value;
    ET_TRY(eti_watch_read(self->cx, &o->watch, state, &value));
    if (is_improvement(o, st, value))
        *st = (struct stopper){true, value, state->timestamp};
    ET_TRY(et_timestamp_get(self->cx, &state->timestamp, o->patience.unit, &now));
    ET_TRY(et_timestamp_get(self->cx, &st->at, o->patience.unit, &then));
    if (now.value - then.value <= o->patience.value)
        return ET_OK;
    et_log_text(log, ET_LOG_INFO, &state->timestamp,
                "early_stopper: %s of %s has not improved on %g since %s %.0f",
                o->watch.monitor, o->watch.dataloader_label, st->best,
                et_time_unit_name(o->patience.unit), then.value);
    self->stop = "the watched metric no longer improved";
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    const struct options *o = self->options;
    const struct stopper *st = self->state;
    if (event == ET_EVENT_FIT_END && !st->any)
        eti_watch_warn(&o->watch, self->type->info.name, state, log);
    if (event == ET_EVENT_FIT_END || !eti_watch_is_active(&o->watch, state) ||
        (event == ET_EVENT_BATCH_END && o->patience.unit != ET_TIME_BATCH))
        return ET_OK;
    return judge(self, state, log);
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct stopper *st = self->state;
    ET_TRY(et_archive_flag(a, "any", &st->any));
    ET_TRY(et_archive_f64(a, "best", &st->best, 1));
    return et_archive_timestamp(a, "at", &st->at);
}

/* It may end the run only where patience is counted in batches. */
static bool
trails(const struct et_callback *self, const struct et_state *state)
{
    const struct options *o = self->options;
    (void)state;
    return o->patience.unit != ET_TIME_BATCH;
}

const struct et_callback_class et_callback_early_stopper = {
    .info =
        {
            .name = "early_stopper",
            .class_name = "EarlyStopper",
            .summary = "ends the run when a metric no longer improves",
            .source = "MosaicML Composer, EarlyStopper",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct stopper),
    .acts = true,
    .events = ET_ON(BATCH_END) | ET_ON(EPOCH_END) | ET_ON(EVAL_END) | ET_ON(FIT_END),
    .check = check,
    .run = run,
    .trails = trails,
    .archive = archive,
};
