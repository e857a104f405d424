/* SPDX-License-Identifier: Apache-2.0 */
/* multistep_with_warmup.c: min(1, t / t_warmup), then gamma^(milestones reached). */
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
    struct eti_warmup_options warmup;
    struct et_times milestones;
    double gamma;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double now;
    struct et_time warmup;
    ET_TRY(eti_sched_warmup_span(&s, &o->warmup, &now, &warmup));
    if (now < warmup.value)
        *out = now / warmup.value;
    else
        ET_TRY(eti_sched_steps(&s, &o->milestones, o->gamma, out));
    return ET_OK;
}

static et_status
check(struct et_ctx *cx, const void *options, const struct et_run_length *length)
{
    const struct options *o = options;
    return eti_sched_warmup_check(cx, &o->warmup,
                                  (struct et_time){0, ET_TIME_UNIT_COUNT}, length);
}

static const struct et_option table[] = {
    ETI_OPTION_WARMUP(struct options),
    ETI_OPTION_MILESTONES(struct options),
    ETI_OPTION_FACTOR(struct options, gamma, "0.1", "factor of each step"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_multistep_with_warmup = {
    .info =
        {
            .name = "multistep_with_warmup",
            .class_name = "MultiStepWithWarmupScheduler",
            .summary = "linear warmup, then a factor gamma at each milestone",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
    .check = check,
};
