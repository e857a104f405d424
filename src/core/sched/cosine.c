/* SPDX-License-Identifier: Apache-2.0 */
/* cosine.c: alpha_f + (1 - alpha_f) (1 + cos(pi min(1, t / t_max))) / 2. */
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
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
    *out = eti_sched_cosine(x, o->alpha_f);
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_OPTION_TIME(struct options, t_max, "1dur", "when the schedule is complete",
                    .also = "T_max"),
    ETI_OPTION_FLOAT(struct options, alpha_f, "0.0", "multiplier at t_max",
                     .also = "~eta_min"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_cosine = {
    .info =
        {
            .name = "cosine",
            .class_name = "CosineAnnealingScheduler",
            .summary = "half a cosine from 1 to alpha_f",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alias = "cosine_decay",
    .alpha = alpha,
};
