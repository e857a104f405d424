/* SPDX-License-Identifier: Apache-2.0 */
/* timm_tanh.c: cycles of a hyperbolic tangent.
 *
 * curve(x) = (1 - tanh(lb (1 - x) + ub x)) / 2. Hsueh et al. 2018, arXiv 1806.01593.
 * Cycles, warmup and what differs: timm.h. */
#include "core/sched/timm.h"

struct options {
    struct et_scheduler_options common;
    struct eti_timm_warmup warmup;
    struct eti_timm_noise noise;
    struct eti_timm_cycles cycles;
    double lb;
    double ub;
};

static double
curve(const void *options, double x)
{
    const struct options *o = options;
    return (1 - tanh(o->lb * (1 - x) + o->ub * x)) / 2;
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
    if (o->lb >= o->ub)
        return ET_FAIL(cx, ET_EINVAL, "lb %g must be below ub %g", o->lb, o->ub);
    return eti_timm_check(cx, &o->warmup, &o->noise, length);
}

static const struct et_option table[] = {
    ETI_OPTION_TIMM_CYCLES(struct options, cycles),
    ETI_OPTION_FLOAT(struct options, lb, "-7.0", "argument at the start of a cycle"),
    ETI_OPTION_FLOAT(struct options, ub, "3.0", "argument at the end of a cycle"),
    ETI_OPTION_TIMM_WARMUP(struct options, warmup, "false"),
    ETI_OPTION_TIMM_NOISE(struct options, noise),
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_timm_tanh = {
    .info =
        {
            .name = "timm_tanh",
            .class_name = "TimmTanhScheduler",
            .summary =
                "hyperbolic tangents in cycles that may lengthen and sink, with warmup",
            .source = ETI_TIMM "tanh_lr.py",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
    .check = check,
};
