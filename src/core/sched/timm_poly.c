/* SPDX-License-Identifier: Apache-2.0 */
/* timm_poly.c: cycles of a power.
 *
 * curve(x) = (1 - x^k_decay)^power. k_decay: Zhang and Li 2020, arXiv 2004.05909.
 * Cycles, warmup and what differs: timm.h. */
#include "core/sched/timm.h"

struct options {
    struct et_scheduler_options common;
    struct eti_timm_warmup warmup;
    struct eti_timm_noise noise;
    struct eti_timm_cycles cycles;
    double power;
    double k_decay;
};

static double
curve(const void *options, double x)
{
    const struct options *o = options;
    return eti_sched_polynomial(pow(x, o->k_decay), o->power, 0);
}

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    ET_TRY(eti_timm_cycle(&s, &o->warmup, &o->cycles, curve, o, out));
    return eti_timm_add_noise(&s, &o->noise, out);
}

static et_status
check(struct et_ctx *cx, const void *options, const struct et_run_length *length)
{
    const struct options *o = options;
    return eti_timm_check(cx, &o->warmup, &o->noise, length);
}

static const struct et_option table[] = {
    ETI_OPTION_TIMM_CYCLES(struct options, cycles),
    ETI_OPTION_FACTOR(struct options, power, "0.5", "exponent"),
    ETI_OPTION_TIMM_K_DECAY(struct options),
    ETI_OPTION_TIMM_WARMUP(struct options, warmup, "false"),
    ETI_OPTION_TIMM_NOISE(struct options, noise),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_timm_poly = {
    .info =
        {
            .name = "timm_poly",
            .class_name = "TimmPolyScheduler",
            .summary = "powers of what is left, in cycles that may lengthen and sink, "
                       "with warmup",
            .source = ETI_TIMM "poly_lr.py",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
    .check = check,
};
