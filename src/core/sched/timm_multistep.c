/* SPDX-License-Identifier: Apache-2.0 */
/* timm_multistep.c: decay_rate^(number of decay_t <= t), with warmup.
 *
 * Differs from timm, where each acts at decay_t - 1. Warmup, and what else differs:
 * timm.h. */
#include "core/sched/timm.h"

struct options {
    struct et_scheduler_options common;
    struct eti_timm_warmup warmup;
    struct eti_timm_noise noise;
    struct et_times decay_t;
    double decay_rate;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    struct eti_timm_at at;
    int reached = 0;
    for (int i = 0; i < o->decay_t.n; i++) {
        ET_TRY(eti_timm_at(&s, &o->warmup, o->decay_t.v[i], &at));
        if (at.warming) {
            *out = at.ramp;
            return eti_timm_add_noise(&s, &o->noise, out);
        }
        reached += at.now >= at.span;
    }
    *out = pow(o->decay_rate, reached);
    return eti_timm_add_noise(&s, &o->noise, out);
}

static et_status
check(struct et_ctx *cx, const void *options, const struct et_run_length *length)
{
    const struct options *o = options;
    if (o->decay_t.n == 0)
        return ET_FAIL(cx, ET_EINVAL,
                       "decay_t is empty: where should the rate change?");
    return eti_timm_check(cx, &o->warmup, &o->noise, length);
}

static const struct et_option table[] = {
    {
        .name = "decay_t",
        .type = ET_OPT_TIMES,
        .offset = offsetof(struct options, decay_t),
        .units = ET_SCHEDULE_UNITS,
        .flags = ET_OPT_REQUIRED,
        .help = "times at which the rate is multiplied by decay_rate",
    },
    ETI_OPTION_FACTOR(struct options, decay_rate, "1.0", "factor of each step"),
    ETI_OPTION_TIMM_WARMUP(struct options, warmup, "true"),
    ETI_OPTION_TIMM_NOISE(struct options, noise),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_timm_multistep = {
    .info =
        {
            .name = "timm_multistep",
            .class_name = "TimmMultiStepScheduler",
            .summary = "a factor decay_rate at each decay_t, with warmup",
            .source = ETI_TIMM "multistep_lr.py",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
    .check = check,
};
