/* SPDX-License-Identifier: Apache-2.0 */
/* constant.c: alpha while t < t_max, then 1. */
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
    double alpha;
    struct et_time t_max;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double now;
    struct et_time t_max;
    ET_TRY(eti_sched_resolve(&s, o->t_max, &now, &t_max));
    *out = now < t_max.value ? o->alpha : 1;
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_OPTION_FLOAT(struct options, alpha, "1.0", "the multiplier", .also = "factor"),
    ETI_OPTION_TIME(struct options, t_max, "1dur", "when the schedule is complete",
                    .also = "total_iters"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_constant = {
    .info =
        {
            .name = "constant",
            .class_name = "ConstantScheduler",
            .summary = "one multiplier until t_max, 1 after it",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
};
