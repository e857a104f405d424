/* SPDX-License-Identifier: Apache-2.0 */
/* cosine_warm_restarts.c: cosines one after another.
 *
 * The first cycle lasts t_0, each next one trunc(t_mult x the last); within a cycle the
 * curve is that of "cosine" with alpha_f. Loshchilov and Hutter 2017, arXiv
 * 1608.03983. */
#include "core/sched/sched.h"

#include <math.h>

struct options {
    struct et_scheduler_options common;
    struct et_time t_0;
    double t_mult;
    double alpha_f;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double now, cycle;
    ET_TRY(eti_sched_period(&s, o->t_0, "t_0", &now, &cycle));
    if (o->t_mult == 1)
        now = fmod(now, cycle);
    while (now >= cycle) {
        now -= cycle;
        cycle = trunc(o->t_mult * cycle);
        if (cycle <= 0)
            return ET_FAIL(cx, ET_EINVAL, "t_mult %g shortens the cycles to nothing",
                           o->t_mult);
    }
    *out = eti_sched_cosine(now / cycle, o->alpha_f);
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_OPTION_TIME(struct options, t_0, NULL, "length of the first cycle",
                    .also = "T_0"),
    ETI_OPTION_FACTOR(struct options, t_mult, "1.0",
                      "length of each cycle over that of the one before",
                      .also = "T_mult"),
    ETI_OPTION_FLOAT(struct options, alpha_f, "0.0", "multiplier at t_max",
                     .also = "~eta_min"),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_cosine_warm_restarts = {
    .info =
        {
            .name = "cosine_warm_restarts",
            .class_name = "CosineAnnealingWarmRestartsScheduler",
            .summary = "cosines from 1 to alpha_f, again and again",
            .source = ETI_COMPOSER,
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alias = "cosine_warmrestart",
    .alpha = alpha,
};
