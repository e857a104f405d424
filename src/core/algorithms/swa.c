/* SPDX-License-Identifier: Apache-2.0 */
/* swa.c: trains on from the average of the weights of the end of a run.
 *
 *     average += (weights - average) / (count + 1), every update_interval from
 *     swa_start on; at swa_end it becomes the weights, and training goes on
 *
 * Izmailov et al. 2018, arXiv 1803.05407; spec/algorithms.md 2.26. Buffers (running
 * statistics) are those of the last sample, not averaged. Differs: swa_lr is honoured,
 * and schedules rest while the rate goes there (D20); the average lies on the
 * device. */
#include "config.h"

#include <math.h>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/swa.h"
#include "core/trainer/average.h"

struct swa_options {
    struct et_time swa_start, swa_end, update_interval;
    bool schedule_swa_lr;
    int anneal_strategy;
    int64_t anneal_steps;
    double swa_lr; /* NaN: the rate there is */
};

struct swa {
    struct eti_average average;
    struct et_tensor *share; /* f32 [1]: what a sample counts in the average */
    bool started, completed;
    int64_t count;   /* samples in the average */
    int64_t matches; /* update events since it began */
    double factor;   /* of the schedules, when it began */
};

double
eti_swa_rate(double initial, double swa_lr, bool cosine, int64_t steps, int64_t done)
{
    const double pi = 3.14159265358979323846;
    double t = done < steps ? (double)done / (double)steps : 1;
    double a = cosine ? (1 - cos(pi * t)) / 2 : t;
    return a * swa_lr + (1 - a) * initial;
}

/* ---- what is done ---- */

/* The clock in the unit of swa_start. */
static et_status
now_of(const struct swa_options *o, const struct et_state *s, double *out)
{
    if (o->swa_start.unit == ET_TIME_DURATION)
        return et_state_elapsed(s, out);
    *out = (double)s->timestamp.epoch;
    return ET_OK;
}

/* The average begins as the weights, which are its first sample. */
static et_status
begin(struct swa *own, struct et_state *s)
{
    own->started = true;
    own->factor = s->lr_factor;
    own->count = 1;
    return eti_average_copy(&own->average, s);
}

static et_status
sample(struct swa *own, struct et_state *s)
{
    if (!own->started)
        return begin(own, s);
    float share = (float)(1 / (double)(own->count + 1));
    ET_TRY(et_tensor_write(s->cx, own->share, &share, sizeof share));
    own->count++;
    return eti_average_mean(&own->average, s, own->share);
}

/* The average becomes the weights. */
static et_status
complete(struct swa *own, struct et_state *s)
{
    double elapsed;
    ET_TRY(eti_average_adopt(&own->average, s));
    own->completed = true;
    ET_TRY(et_state_elapsed(s, &elapsed));
    if (elapsed >= 1)
        et_report(s->cx, ET_LOG_WARN,
                  "swa: the average became the weights at the end of the run: running "
                  "statistics have not followed it; an earlier swa_end lets them");
    return ET_OK;
}

static et_status
update(struct et_algorithm *self, struct et_state *s)
{
    const struct swa_options *o = self->options;
    struct swa *own = self->state;
    double now;
    if (own->matches % (int64_t)o->update_interval.value == 0)
        ET_TRY(sample(own, s));
    own->matches++;
    ET_TRY(now_of(o, s, &now));
    return now >= o->swa_end.value ? complete(own, s) : ET_OK;
}

static bool
is_update(const struct swa_options *o, enum et_event event)
{
    return event == (o->update_interval.unit == ET_TIME_EPOCH ? ET_EVENT_EPOCH_END
                                                              : ET_EVENT_BATCH_END);
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct swa_options *o = self->options;
    const struct swa *own = self->state;
    double now;
    if (event == ET_EVENT_INIT)
        return true;
    if (own->completed)
        return false;
    if (event == ET_EVENT_AFTER_TRAIN_BATCH)
        return own->started && o->schedule_swa_lr;
    return is_update(o, event) && now_of(o, s, &now) == ET_OK &&
           now >= o->swa_start.value;
}

static et_status
prepare(struct et_algorithm *self, struct et_state *s)
{
    const struct swa_options *o = self->options;
    struct swa *own = self->state;
    const int64_t one = 1;
    if (o->schedule_swa_lr && s->params->n_groups > 1)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "swa: schedule_swa_lr is for one learning rate; the optimizer "
                       "has %d groups",
                       s->params->n_groups);
    ET_TRY(et_tensor_new(s->cx, s->dev, ET_F32, 1, &one, ET_ROW_MAJOR, "swa",
                         &own->share));
    return eti_average_copy(&own->average, s);
}

/* The rate of the update under way: a step towards swa_lr for each sample. */
static void
anneal(struct et_algorithm *self, struct et_state *s)
{
    const struct swa_options *o = self->options;
    const struct swa *own = self->state;
    double full = et_optimizer_group(s->optimizer, 0)->initial_lr;
    double initial = full * own->factor, to = isnan(o->swa_lr) ? initial : o->swa_lr;
    double rate = eti_swa_rate(initial, to, o->anneal_strategy >= ETI_SWA_COS,
                               o->anneal_steps, own->count);
    if (full > 0)
        et_optimizer_set_alpha(s->optimizer, rate / full);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)log;
    if (event == ET_EVENT_INIT)
        return prepare(self, s);
    if (event != ET_EVENT_AFTER_TRAIN_BATCH)
        return update(self, s);
    anneal(self, s);
    return ET_OK;
}

static et_status
archive(struct et_algorithm *self, struct et_state *s, struct et_archive *a)
{
    struct swa *own = self->state;
    (void)s;
    ET_TRY(et_archive_flag(a, "started", &own->started));
    ET_TRY(et_archive_flag(a, "completed", &own->completed));
    ET_TRY(et_archive_counts(a, "count", &own->count, 1, 0, ET_COUNT_MAX));
    ET_TRY(et_archive_counts(a, "matches", &own->matches, 1, 0, ET_COUNT_MAX));
    ET_TRY(et_archive_f64(a, "factor", &own->factor, 1));
    return eti_average_archive(&own->average, a);
}

static void
close_swa(struct et_algorithm *self)
{
    struct swa *own = self->state;
    et_tensor_free(&own->share);
    eti_average_release(&own->average, self->cx);
}

/* ---- options ---- */

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct swa_options *o = options;
    if (o->swa_start.unit != o->swa_end.unit)
        return ET_FAIL(cx, ET_EINVAL,
                       "swa: swa_start is in %s but swa_end in %s; they need one unit",
                       et_time_unit_suffix(o->swa_start.unit),
                       et_time_unit_suffix(o->swa_end.unit));
    if (o->swa_end.value <= o->swa_start.value)
        return ET_FAIL(cx, ET_EINVAL, "swa: swa_end comes after swa_start");
    if (o->swa_start.unit != ET_TIME_DURATION)
        return ET_OK;
    if (o->swa_end.value > 1)
        return ET_FAIL(cx, ET_EINVAL, "swa: swa_end is at most 1dur, not %gdur",
                       o->swa_end.value);
    if (o->swa_end.value == 1)
        et_report(cx, ET_LOG_WARN,
                  "swa: with swa_end 1dur nothing is trained with the average, and "
                  "running statistics do not follow it");
    return ET_OK;
}

static const char *const strategies[] = {"linear", "lin", "cos", "cosine", NULL};

#define TIME(field, defaults, in, more, words)                                         \
    {                                                                                  \
        .name = #field, .type = ET_OPT_TIME,                                           \
        .offset = offsetof(struct swa_options, field), .def = defaults, .max = -1,     \
        .units = in, .flags = more, .help = words,                                     \
    }
enum {
    DUR_OR_EP = 1 << ET_TIME_DURATION | 1 << ET_TIME_EPOCH,
    BA_OR_EP = 1 << ET_TIME_BATCH | 1 << ET_TIME_EPOCH,
};

static const struct et_option table[] = {
    TIME(swa_start, "0.7dur", DUR_OR_EP, 0, "when averaging begins"),
    TIME(swa_end, "0.97dur", DUR_OR_EP, ET_OPT_MIN_OPEN,
         "when the average becomes the weights"),
    TIME(update_interval, "1ep", BA_OR_EP, ET_OPT_MIN_OPEN,
         "time between samples of the weights"),
    ETI_BOOL(swa_options, schedule_swa_lr, "false",
             "take the learning rate to swa_lr meanwhile"),
    ETI_ENUM(swa_options, anneal_strategy, "linear", strategies, 0,
             "how the rate goes there"),
    ETI_ROW(INT, swa_options, anneal_steps, "10", 1, -1, 0,
            "samples after which it is there"),
    ETI_ROW(FLOAT, swa_options, swa_lr, NULL, 0, -1, ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN,
            "the rate at the end; unset: the one there is when averaging begins"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_swa = {
    .info =
        {
            .name = "swa",
            .class_name = "SWA",
            .summary = "train on from the average of the weights of the end",
            .source = "Izmailov et al. 2018, arXiv 1803.05407",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct swa_options),
        },
    .state_size = sizeof(struct swa),
    .events =
        ET_ON(INIT) | ET_ON(AFTER_TRAIN_BATCH) | ET_ON(BATCH_END) | ET_ON(EPOCH_END),
    .flags = ET_ALG_INIT_LAST | ET_ALG_PREPARES,
    .check = check,
    .match = match,
    .apply = apply,
    .archive = archive,
    .close = close_swa,
};
