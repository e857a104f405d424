/* SPDX-License-Identifier: Apache-2.0 */
/* ema.c: an exponential moving average of the weights, to evaluate and save with.
 *
 *     shadow = s shadow + (1 - s) weights
 *     s = smoothing, or 2^(-update_interval / half_life)
 *
 * Spec/algorithms.md 2.8. Once started, a batch's average is taken in the update's own
 * pass over the weights (the class's update) and BATCH_END finds it done. From the
 * start on, the shadow begins as the weights of that moment. EVAL_START and checkpoints
 * exchange shadow and weights; EVAL_END and the next batch change them back. Differs:
 * training weights are back before every update (D8); smoothing alone updates every
 * batch (D7). */
#include "config.h"

#include <math.h>

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"
#include "core/ops/ops.h"
#include "core/trainer/average.h"

struct ema_options {
    struct et_time half_life, ema_start, update_interval;
    double smoothing; /* NaN: from half_life */
};

struct ema {
    struct eti_average average;
    bool started;
    bool done; /* with the update of the batch that is ending */
};

struct et_tensor *
et_compute_ema(struct et_graph *g, struct et_tensor *shadow, struct et_tensor *value,
               double smoothing)
{
    ETI_NEED_IN(g, g);
    if (!shadow || !value)
        return ETI_MISSING(g, shadow, value);
    return et_add(g, shadow, et_mul_scalar(g, et_sub(g, value, shadow), 1 - smoothing));
}

double
et_ema_smoothing(double half_life, double update_interval)
{
    return exp2(-update_interval / half_life);
}

static struct et_time
interval_of(const struct ema_options *o)
{
    if (et_time_is_set(o->update_interval))
        return o->update_interval;
    return et_time_is_set(o->half_life) ? (struct et_time){1, o->half_life.unit}
                                        : ET_BATCHES(1);
}

static double
smoothing_of(const struct ema_options *o)
{
    if (!isnan(o->smoothing))
        return o->smoothing;
    return et_ema_smoothing(o->half_life.value, interval_of(o).value);
}

/* ---- what is done ---- */

/* At BATCH_START the batch may be a value of the graph already. */
static et_status
use_average(struct et_state *s, struct ema *own, bool yes, enum et_event event)
{
    struct et_tensor *want[] = {s->batch.x, s->batch.target};
    return eti_average_use(&own->average, s, yes, want,
                           event == ET_EVENT_BATCH_START ? 2 : 0);
}

static et_status
has_started(const struct ema_options *o, const struct et_state *s, bool *yes)
{
    if (o->ema_start.unit == ET_TIME_DURATION) {
        double elapsed;
        ET_TRY(et_state_elapsed(s, &elapsed));
        *yes = elapsed >= o->ema_start.value;
        return ET_OK;
    }
    int order;
    ET_TRY(et_timestamp_compare(s->cx, &s->timestamp, o->ema_start, &order));
    *yes = order >= 0;
    return ET_OK;
}

static et_status
update(struct et_algorithm *self, struct et_state *s, enum et_event event)
{
    const struct ema_options *o = self->options;
    struct ema *own = self->state;
    struct et_time interval = interval_of(o), now;
    ET_TRY(use_average(s, own, false, event));
    if (own->done) {
        own->done = false;
        return ET_OK;
    }
    if (!own->started) {
        ET_TRY(has_started(o, s, &own->started));
        if (!own->started)
            return ET_OK;
        ET_TRY(eti_average_copy(&own->average, s));
    }
    ET_TRY(et_timestamp_get(s->cx, &s->timestamp, interval.unit, &now));
    if (fmod(now.value, interval.value) != 0)
        return ET_OK;
    return eti_average_add(&own->average, s, smoothing_of(o));
}

/* The batch whose end decides is the one being computed. */
static et_status
update_with_step(struct et_algorithm *self, struct et_state *s)
{
    const struct ema_options *o = self->options;
    struct ema *own = self->state;
    struct et_time interval = interval_of(o);
    own->done = false;
    if (!own->started || own->average.active || interval.unit != ET_TIME_BATCH ||
        fmod((double)s->timestamp.batch + 1, interval.value) != 0)
        return ET_OK;
    return eti_average_append(&own->average, s, smoothing_of(o), &own->done);
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct ema *own = self->state;
    bool by_epoch = interval_of(self->options).unit == ET_TIME_EPOCH;
    switch (event) {
    case ET_EVENT_INIT:
        return true;
    case ET_EVENT_BATCH_END:
        return !by_epoch;
    case ET_EVENT_EPOCH_END:
        return by_epoch;
    case ET_EVENT_BATCH_CHECKPOINT:
    case ET_EVENT_EPOCH_CHECKPOINT:
        return own->started && s->checkpoint_due;
    default:
        return own->started;
    }
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    struct ema *own = self->state;
    (void)log;
    switch (event) {
    case ET_EVENT_INIT:
        return eti_average_copy(&own->average, s);
    case ET_EVENT_BATCH_END:
    case ET_EVENT_EPOCH_END:
        return update(self, s, event);
    case ET_EVENT_BATCH_START:
    case ET_EVENT_EVAL_END:
        return use_average(s, own, false, event);
    default: /* EVAL_START, *_CHECKPOINT */
        return use_average(s, own, true, event);
    }
}

/* A checkpoint leaves the average in place until the next batch begins. */
static et_status
settle(struct et_algorithm *self, struct et_state *s)
{
    struct ema *own = self->state;
    return eti_average_use(&own->average, s, false, NULL, 0);
}

static et_status
archive(struct et_algorithm *self, struct et_state *s, struct et_archive *a)
{
    struct ema *own = self->state;
    (void)s;
    ET_TRY(et_archive_flag(a, "started", &own->started));
    return eti_average_archive(&own->average, a);
}

static void
close_ema(struct et_algorithm *self)
{
    struct ema *own = self->state;
    eti_average_release(&own->average, self->cx);
}

/* ---- options ---- */

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct ema_options *o = options;
    bool by_life = et_time_is_set(o->half_life);
    if (by_life == !isnan(o->smoothing))
        return ET_FAIL(cx, ET_EINVAL,
                       by_life ? "ema takes half_life or smoothing, not both: with "
                                 "smoothing set half_life to null"
                               : "ema needs half_life or smoothing");
    struct et_time interval = interval_of(o);
    if (by_life && interval.unit != o->half_life.unit)
        return ET_FAIL(
            cx, ET_EINVAL,
            "ema: update_interval is in %s but half_life in %s; they need one unit",
            et_time_unit_suffix(interval.unit), et_time_unit_suffix(o->half_life.unit));
    return ET_OK;
}

enum { EP_OR_BA = 1 << ET_TIME_EPOCH | 1 << ET_TIME_BATCH };

#define TIME(field, defaults, in, more, words)                                         \
    {                                                                                  \
        .name = #field, .type = ET_OPT_TIME,                                           \
        .offset = offsetof(struct ema_options, field), .def = defaults, .max = -1,     \
        .units = in, .flags = more, .help = words,                                     \
    }

static const struct et_option table[] = {
    TIME(half_life, "1000ba", EP_OR_BA, ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN,
         "after how long a weight counts half"),
    ETI_ROW(FLOAT, ema_options, smoothing, NULL, 0, 1,
            ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN | ET_OPT_MAX_OPEN,
            "what an update keeps of the average, instead of half_life",
            .also = "decay"),
    TIME(ema_start, "0.0dur", EP_OR_BA | 1 << ET_TIME_DURATION, 0,
         "when averaging begins"),
    TIME(update_interval, NULL, EP_OR_BA, ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN,
         "time between updates; unset: 1 in the unit of half_life"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_ema = {
    .info =
        {
            .name = "ema",
            .class_name = "EMA",
            .summary = "evaluate and save with a moving average of the weights",
            .source = "Polyak and Juditsky 1992; MosaicML Composer",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct ema_options),
        },
    .state_size = sizeof(struct ema),
    .events = ET_ON(INIT) | ET_ON(BATCH_START) | ET_ON(BATCH_END) | ET_ON(EPOCH_END) |
              ET_ON(EVAL_START) | ET_ON(EVAL_END) | ET_ON(BATCH_CHECKPOINT) |
              ET_ON(EPOCH_CHECKPOINT),
    .flags = ET_ALG_INIT_LAST | ET_ALG_PREPARES,
    .check = check,
    .match = match,
    .apply = apply,
    .update = update_with_step,
    .settle = settle,
    .archive = archive,
    .close = close_ema,
};
