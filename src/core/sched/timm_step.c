/* SPDX-License-Identifier: Apache-2.0 */
/* timm_step.c: decay_rate^floor(t / decay_t), with warmup.
 * Warmup and what differs: timm.h. */
#include "core/sched/timm.h"

struct options {
    struct et_scheduler_options common;
    struct eti_timm_warmup warmup;
    struct eti_timm_noise noise;
    struct et_time decay_t;
    double decay_rate;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    struct eti_timm_at at;
    double now, span;
    ET_TRY(eti_sched_period(&s, o->decay_t, "decay_t", &now, &span));
    ET_TRY(eti_timm_at(&s, &o->warmup, o->decay_t, &at));
    *out = at.warming ? at.ramp : pow(o->decay_rate, floor(at.now / span));
    return eti_timm_add_noise(&s, &o->noise, out);
}

static et_status
check(struct et_ctx *cx, const void *options, const struct et_run_length *length)
{
    const struct options *o = options;
    return eti_timm_check(cx, &o->warmup, &o->noise, length);
}

static const struct et_option table[] = {
    ETI_OPTION_TIME(struct options, decay_t, NULL, "time between steps"),
    ETI_OPTION_FACTOR(struct options, decay_rate, "1.0", "factor of each step"),
    ETI_OPTION_TIMM_WARMUP(struct options, warmup, "true"),
    ETI_OPTION_TIMM_NOISE(struct options, noise),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_timm_step = {
    .info =
        {
            .name = "timm_step",
            .class_name = "TimmStepScheduler",
            .summary = "a factor decay_rate every decay_t, with warmup",
            .source = ETI_TIMM "step_lr.py",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
    .check = check,
};
