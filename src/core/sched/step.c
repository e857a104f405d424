/* SPDX-License-Identifier: Apache-2.0 */
/* step.c: gamma^trunc(t / step_size). */
#include "core/sched/sched.h"

#include <math.h>

struct options {
    struct et_scheduler_options common;
    struct et_time step_size;
    double gamma;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double now, step_size;
    ET_TRY(eti_sched_period(&s, o->step_size, "step_size", &now, &step_size));
    *out = pow(o->gamma, trunc(now / step_size));
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_OPTION_TIME(struct options, step_size, NULL, "time between steps"),
    ETI_OPTION_FACTOR(struct options, gamma, "0.1", "factor of each step"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_step = {
    .info =
        {
            .name = "step",
            .class_name = "StepScheduler",
            .summary = "a factor gamma every step_size",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
};
