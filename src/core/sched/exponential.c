/* SPDX-License-Identifier: Apache-2.0 */
/* exponential.c: gamma^(t / decay_period). */
#include "core/sched/sched.h"

#include <math.h>

struct options {
    struct et_scheduler_options common;
    double gamma;
    struct et_time decay_period;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double now, period;
    ET_TRY(eti_sched_period(&s, o->decay_period, "decay_period", &now, &period));
    *out = pow(o->gamma, now / period);
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_OPTION_FACTOR(struct options, gamma, NULL, "factor per decay_period"),
    ETI_OPTION_TIME(struct options, decay_period, "1ep",
                    "time in which the rate falls by gamma"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_exponential = {
    .info =
        {
            .name = "exponential",
            .class_name = "ExponentialScheduler",
            .summary = "a factor gamma per decay_period, continuously",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
};
