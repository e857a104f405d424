/* SPDX-License-Identifier: Apache-2.0 */
/* multistep.c: gamma^(number of milestones m with t >= m). */
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
    struct et_times milestones;
    double gamma;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    ET_TRY(eti_sched_steps(&s, &o->milestones, o->gamma, out));
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_OPTION_MILESTONES(struct options),
    ETI_OPTION_FACTOR(struct options, gamma, "0.1", "factor of each step"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_multistep = {
    .info =
        {
            .name = "multistep",
            .class_name = "MultiStepScheduler",
            .summary = "a factor gamma at each milestone",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
};
