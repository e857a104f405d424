/* SPDX-License-Identifier: Apache-2.0 */
/* linear_with_warmup.c: warmup, then a line.
 *
 * alpha_i min(1, t / t_warmup), then alpha_i + tau (alpha_f - alpha_i); tau is the
 * fraction of what lies between t_warmup and t_max. */
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
    struct eti_warmup_options warmup;
    double alpha_i;
    double alpha_f;
    struct et_time t_max;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double ramp, tau;
    ET_TRY(eti_sched_warmup(&s, &o->warmup, o->t_max, &ramp, &tau));
    *out = ramp * (o->alpha_i + tau * (o->alpha_f - o->alpha_i));
    return ET_OK;
}

static et_status
check(struct et_ctx *cx, const void *options, const struct et_run_length *length)
{
    const struct options *o = options;
    return eti_sched_warmup_check(cx, &o->warmup, o->t_max, length);
}

static const struct et_option table[] = {
    ETI_OPTION_WARMUP(struct options),
    ETI_OPTION_FLOAT(struct options, alpha_i, "1.0",
                     "multiplier at the end of the warmup"),
    ETI_OPTION_FLOAT(struct options, alpha_f, "0.0", "multiplier at t_max"),
    ETI_OPTION_TIME(struct options, t_max, "1dur", "when the schedule is complete"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_linear_with_warmup = {
    .info =
        {
            .name = "linear_with_warmup",
            .class_name = "LinearWithWarmupScheduler",
            .summary = "linear warmup, then a straight line to alpha_f",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alias = "linear_decay_with_warmup",
    .alpha = alpha,
    .check = check,
};
