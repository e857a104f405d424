/* SPDX-License-Identifier: Apache-2.0 */
/* linear.c: alpha_i + min(1, t / t_max) (alpha_f - alpha_i). */
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
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
    double x;
    ET_TRY(eti_sched_fraction(&s, o->t_max, &x));
    *out = o->alpha_i + x * (o->alpha_f - o->alpha_i);
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_OPTION_FLOAT(struct options, alpha_i, "1.0", "multiplier at the start",
                     .also = "start_factor"),
    ETI_OPTION_FLOAT(struct options, alpha_f, "0.0", "multiplier at t_max",
                     .also = "end_factor"),
    ETI_OPTION_TIME(struct options, t_max, "1dur", "when the schedule is complete",
                    .also = "total_iters"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_linear = {
    .info =
        {
            .name = "linear",
            .class_name = "LinearScheduler",
            .summary = "a straight line from alpha_i to alpha_f",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alias = "linear_decay",
    .alpha = alpha,
};
