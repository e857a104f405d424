/* SPDX-License-Identifier: Apache-2.0 */
/* constant_with_warmup.c: alpha min(1, t / t_warmup). */
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
    struct eti_warmup_options warmup;
    double alpha;
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
    *out = ramp * o->alpha;
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
    ETI_OPTION_FLOAT(struct options, alpha, "1.0", "the multiplier after the warmup"),
    ETI_OPTION_TIME(
        struct options, t_max, "1dur",
        "how long the schedule is meant for; not before the end of the run"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_constant_with_warmup = {
    .info =
        {
            .name = "constant_with_warmup",
            .class_name = "ConstantWithWarmupScheduler",
            .summary = "linear warmup to one multiplier",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
    .check = check,
};
