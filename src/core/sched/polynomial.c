/* SPDX-License-Identifier: Apache-2.0 */
/* polynomial.c: alpha_f + (1 - alpha_f) (1 - min(1, t / t_max))^power. */
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
    double power;
    struct et_time t_max;
    double alpha_f;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double x;
    ET_TRY(eti_sched_fraction(&s, o->t_max, &x));
    *out = eti_sched_polynomial(x, o->power, o->alpha_f);
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_OPTION_FACTOR(struct options, power, NULL, "exponent"),
    ETI_OPTION_TIME(struct options, t_max, "1dur", "when the schedule is complete",
                    .also = "total_iters"),
    ETI_OPTION_FLOAT(struct options, alpha_f, "0.0", "multiplier at t_max"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_polynomial = {
    .info =
        {
            .name = "polynomial",
            .class_name = "PolynomialScheduler",
            .summary = "a power of what is left, from 1 to alpha_f",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
};
