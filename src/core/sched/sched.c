/* SPDX-License-Identifier: Apache-2.0 */
/* sched.c: the registry of schedulers, their product, and what they share. */
#include "core/sched/sched.h"

#include <math.h>
#include <string.h>

#include "core/base/need.h"
#include "core/base/sized.h"
#include "etude/ctx.h"

static const struct et_scheduler_class *const classes[] = {
#define ET_SCHEDULER(name) &et_scheduler_##name,
#include "core/sched/schedulers.def"
#undef ET_SCHEDULER
};
enum { CLASSES = sizeof classes / sizeof *classes };

const char *const et_step_every_names[] = {"batch", "epoch", NULL};

const struct et_scheduler_class *
et_scheduler_find(const char *name)
{
    if (!name)
        return NULL;
    for (int i = 0; i < CLASSES; i++)
        if (strcmp(name, classes[i]->info.name) == 0 ||
            (classes[i]->alias && strcmp(name, classes[i]->alias) == 0))
            return classes[i];
    return NULL;
}

const struct et_scheduler_class *const *
et_scheduler_list(int *n)
{
    if (!n)
        return NULL;
    *n = CLASSES;
    return classes;
}

/* Where the epoch under way began. */
static struct et_timestamp
epoch_start(const struct et_timestamp *ts)
{
    struct et_timestamp start = *ts;
    start.batch -= ts->batch_in_epoch;
    start.sample -= ts->sample_in_epoch;
    start.token -= ts->token_in_epoch;
    start.total_wct -= ts->epoch_wct;
    start.batch_in_epoch = start.sample_in_epoch = start.token_in_epoch = 0;
    return start;
}

et_status
et_schedule_alpha(struct et_ctx *cx, const struct et_scheduler *list, int n,
                  const struct et_timestamp *ts, const struct et_run_length *length,
                  double *out)
{
    ETI_NEED(cx, cx, out);
    if (n > 0)
        ETI_NEED(cx, list, ts, length);
    const struct et_timestamp epoch = epoch_start(ts);
    double product = 1;
    for (int i = 0; i < n; i++) {
        const struct et_scheduler_options *o = list[i].options;
        const bool by_epoch = o->step_every == ET_STEP_EPOCH;
        double alpha;
        ET_TRY(list[i].type->alpha(cx, o, by_epoch ? &epoch : ts, length, &alpha));
        product *= alpha;
    }
    *out = product;
    return ET_OK;
}

et_status
et_schedule_check(struct et_ctx *cx, const struct et_scheduler *list, int n,
                  const struct et_run_length *length)
{
    ETI_NEED(cx, cx);
    if (n > 0)
        ETI_NEED(cx, list, length);
    const struct et_timestamp start = {0};
    double alpha;
    for (int i = 0; i < n; i++)
        if (ETI_HOOK(list[i].type, check))
            ET_TRY(list[i].type->check(cx, list[i].options, length));
    return et_schedule_alpha(cx, list, n, &start, length, &alpha);
}

/* ---- times ---- */

et_status
eti_sched_resolve(const struct eti_sched_now *s, struct et_time t, double *now,
                  struct et_time *span)
{
    struct et_time counter;
    ET_TRY(et_time_resolve(s->cx, t, s->length, span));
    ET_TRY(et_timestamp_get(s->cx, s->ts, span->unit, &counter));
    *now = counter.value;
    return ET_OK;
}

et_status
eti_sched_period(const struct eti_sched_now *s, struct et_time t, const char *name,
                 double *now, double *span)
{
    char text[ET_TIME_TEXT_BYTES];
    struct et_time whole;
    ET_TRY(eti_sched_resolve(s, t, now, &whole));
    if (whole.value <= 0)
        return ET_FAIL(
            s->cx, ET_EINVAL, "%s %s is 0%s in this run: it must be at least 1", name,
            et_time_text(t, text, sizeof text), et_time_unit_suffix(whole.unit));
    *span = whole.value;
    return ET_OK;
}

et_status
eti_sched_fraction(const struct eti_sched_now *s, struct et_time t, double *out)
{
    double now;
    struct et_time span;
    ET_TRY(eti_sched_resolve(s, t, &now, &span));
    *out = now < span.value ? now / span.value : 1;
    return ET_OK;
}

et_status
eti_sched_steps(const struct eti_sched_now *s, const struct et_times *milestones,
                double gamma, double *out)
{
    int reached = 0;
    for (int i = 0; i < milestones->n; i++) {
        double now;
        struct et_time at;
        ET_TRY(eti_sched_resolve(s, milestones->v[i], &now, &at));
        reached += now >= at.value;
    }
    *out = pow(gamma, reached);
    return ET_OK;
}

/* ---- curves ---- */

double
eti_sched_cosine(double x, double alpha_f)
{
    return alpha_f + (1 - alpha_f) * (1 + cos(M_PI * x)) / 2;
}

double
eti_sched_polynomial(double x, double power, double alpha_f)
{
    return alpha_f + (1 - alpha_f) * pow(1 - x, power);
}

/* ---- warmup ---- */

et_status
eti_sched_warmup_span(const struct eti_sched_now *s, const struct eti_warmup_options *o,
                      double *now, struct et_time *span)
{
    struct et_run_length length = *s->length;
    if (!o->scale_warmup)
        length.scale_schedule_ratio = 1;
    struct eti_sched_now unscaled = {s->cx, s->ts, &length};
    return eti_sched_resolve(&unscaled, o->t_warmup, now, span);
}

et_status
eti_sched_warmup(const struct eti_sched_now *s, const struct eti_warmup_options *o,
                 struct et_time t_max, double *ramp, double *tau)
{
    double now;
    struct et_time warmup, max, rest;
    ET_TRY(eti_sched_warmup_span(s, o, &now, &warmup));
    ET_TRY(eti_sched_resolve(s, t_max, &now, &max));
    ET_TRY(et_time_sub(s->cx, max, warmup, &rest)); /* one unit, or an error */
    *ramp = now < warmup.value ? now / warmup.value : 1;
    *tau = 0;
    if (rest.value > 0)
        *tau = fmin(1, fmax(0, now - warmup.value) / rest.value);
    return ET_OK;
}

/* A schedule that knows its end may not end before the run does. */
static et_status
check_end(struct et_ctx *cx, struct et_time t_max, const struct et_run_length *length)
{
    char a[ET_TIME_TEXT_BYTES], b[ET_TIME_TEXT_BYTES];
    struct et_time max, run;
    if (!et_time_is_set(t_max) || !et_time_is_set(length->max_duration))
        return ET_OK;
    ET_TRY(et_time_resolve(cx, t_max, length, &max));
    ET_TRY(et_time_resolve(cx, (struct et_time){1, ET_TIME_DURATION}, length, &run));
    if (max.unit == run.unit && max.value < run.value)
        return ET_FAIL(
            cx, ET_EINVAL,
            "t_max %s ends before max_duration %s: after a warmup the schedule "
            "must last as long as the run, as 1dur does",
            et_time_text(t_max, a, sizeof a),
            et_time_text(length->max_duration, b, sizeof b));
    return ET_OK;
}

et_status
eti_sched_warmup_check(struct et_ctx *cx, const struct eti_warmup_options *o,
                       struct et_time t_max, const struct et_run_length *length)
{
    const struct et_timestamp start = {0};
    const struct eti_sched_now s = {cx, &start, length};
    char a[ET_TIME_TEXT_BYTES];
    double now;
    struct et_time warmup;
    ET_TRY(eti_sched_warmup_span(&s, o, &now, &warmup));
    if (warmup.value == 0)
        et_report(
            cx, ET_LOG_WARN, "t_warmup %s is 0%s in this run: there will be no warmup",
            et_time_text(o->t_warmup, a, sizeof a), et_time_unit_suffix(warmup.unit));
    return check_end(cx, t_max, length);
}

et_status
eti_sched_ramp(const struct eti_sched_now *s, const struct eti_ramp_options *o,
               struct et_time whole, double *now, double *warmup, double *ramp)
{
    struct et_time counter, span, rest;
    ET_TRY(et_timestamp_get(s->cx, s->ts, whole.unit, &counter));
    *now = counter.value;
    *warmup = 0;
    *ramp = 1;
    if (o->warmup.t_warmup.value == 0)
        return ET_OK;
    ET_TRY(eti_sched_warmup_span(s, &o->warmup, now, &span));
    ET_TRY(et_time_sub(s->cx, whole, span, &rest)); /* one unit, or an error */
    *warmup = span.value;
    if (*now < *warmup)
        *ramp = o->alpha_i + (1 - o->alpha_i) * *now / *warmup;
    return ET_OK;
}

et_status
eti_sched_ramp_check(struct et_ctx *cx, const struct eti_ramp_options *o,
                     struct et_time t_max, const struct et_run_length *length)
{
    if (o->warmup.t_warmup.value == 0)
        return check_end(cx, t_max, length);
    return eti_sched_warmup_check(cx, &o->warmup, t_max, length);
}
