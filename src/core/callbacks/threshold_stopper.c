/* SPDX-License-Identifier: Apache-2.0 */
/* threshold_stopper.c: ends a run whose metric is better than a number.
 *
 * Judged after each evaluation, and after each epoch for a train metric; with
 * stop_on_batch after each batch too. Source: spec/trainer.md 9.4. */
#include "config.h"

#include <math.h>

#include "core/callbacks/callbacks.h"

struct options {
    struct eti_watch watch; /* first */
    double threshold;
    bool stop_on_batch;
};

static const struct et_option option_table[] = {
    ETI_WATCH_OPTIONS(struct options),
    {
        .name = "threshold",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, threshold),
        .flags = ET_OPT_REQUIRED,
        .help = "a value better than this ends the run",
    },
    {
        .name = "stop_on_batch",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, stop_on_batch),
        .def = "false",
        .help = "judge a train metric after each batch, not only after each epoch",
    },
    {.name = NULL},
};

struct stopper {
    bool any; /* a value was judged */
};

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct options *o = options;
    ET_TRY(eti_watch_check(cx, &o->watch));
    if (isnan(o->threshold))
        return ET_FAIL(cx, ET_EINVAL, "threshold_stopper needs a threshold");
    return ET_OK;
}

static et_status
judge(struct et_callback *self, const struct et_state *state, struct et_log *log)
{
    const struct options *o = self->options;
    struct stopper *st = self->state;
    double value;
    ET_TRY(eti_watch_read(self->cx, &o->watch, state, &value));
    st->any = true;
    if (!eti_watch_is_better(&o->watch, value, o->threshold))
        return ET_OK;
    et_log_text(log, ET_LOG_INFO, &state->timestamp,
                "threshold_stopper: %s of %s is %g, better than %g", o->watch.monitor,
                o->watch.dataloader_label, value, o->threshold);
    self->stop = "the watched metric passed its threshold";
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
        (event == ET_EVENT_BATCH_END && !o->stop_on_batch))
        return ET_OK;
    return judge(self, state, log);
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct stopper *st = self->state;
    return et_archive_flag(a, "any", &st->any);
}

/* It may end the run at a batch only where it was asked to. */
static bool
trails(const struct et_callback *self, const struct et_state *state)
{
    const struct options *o = self->options;
    (void)state;
    return !o->stop_on_batch;
}

const struct et_callback_class et_callback_threshold_stopper = {
    .info =
        {
            .name = "threshold_stopper",
            .class_name = "ThresholdStopper",
            .summary = "ends the run when a metric is better than a number",
            .source = "MosaicML Composer, ThresholdStopper",
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
