/* SPDX-License-Identifier: Apache-2.0 */
/* warmup_stable_decay.c: warmup, the full rate, and a fast decay at the end.
 *
 * With T = t_max, W = t_warmup, D = t_decay, r = min(1, (t - T + D) / D):
 *   t < W:      alpha_i + (1 - alpha_i) t / W
 *   t < T - D:  1
 *   then:       sqrt:     alpha_f + (1 - alpha_f) (1 - sqrt(r))
 *               inverse:  1 / (r / alpha_f + 1 - r)
 *
 * With num_checkpoints n there is such a decay before each of T / 2^(n-1) ... T/2, T,
 * after which the rate is full again; it is that part of the time since the one before
 * which D is of T. A checkpoint there is of a model as good as a whole run to it.
 *
 * Inverse: Wen et al. 2024, arXiv 2410.05192, section 4, and several checkpoints there
 * (WSD-S); sqrt: Haegele et al. 2024, arXiv 2405.18392. Differs from
 * pytorch-accelerated: the last checkpoint is the end whatever their number (there the
 * first is at T / 4); a warmup is as long as it says also where a decay begins within
 * it (both factors then hold); a run that goes on from weights has t_warmup: 0ba. */
#include "core/sched/sched.h"

enum decay { SQRT, INVERSE };
static const char *const decays[] = {"sqrt", "inverse", NULL};

struct options {
    struct et_scheduler_options common;
    struct eti_ramp_options ramp;
    struct et_time t_decay;
    struct et_time t_max;
    double alpha_f;
    int decay; /* enum decay */
    int64_t num_checkpoints;
};

/* How far the decay under way is at NOW of WHOLE, in [0, 1]: 0 where there is none.
 * SPAN is t_decay; all are in one unit. */
static double
decayed(double now, double whole, double span, int64_t checkpoints)
{
    double from = 0, to = whole;
    for (int64_t i = checkpoints - 1; i > 0 && now < whole; i--) {
        to = floor(ldexp(whole, (int)-i));
        if (now < to)
            break;
        from = to;
        to = whole;
    }
    double length = floor(span * (to - from) / whole), start = to - length;
    return now > start ? fmin(1, (now - start) / length) : 0;
}

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double now, warmup, ramp, span;
    struct et_time max, decay, rest;
    ET_TRY(eti_sched_resolve(&s, o->t_max, &now, &max));
    ET_TRY(eti_sched_period(&s, o->t_decay, "t_decay", &now, &span));
    ET_TRY(et_time_resolve(cx, o->t_decay, length, &decay));
    ET_TRY(et_time_sub(cx, max, decay, &rest)); /* one unit, or an error */
    ET_TRY(eti_sched_ramp(&s, &o->ramp, max, &now, &warmup, &ramp));
    double r = decayed(now, max.value, span, o->num_checkpoints);
    if (o->decay == INVERSE)
        *out = ramp / (r / o->alpha_f + 1 - r);
    else
        *out = ramp * (o->alpha_f + (1 - o->alpha_f) * (1 - sqrt(r)));
    return ET_OK;
}

static et_status
check(struct et_ctx *cx, const void *options, const struct et_run_length *length)
{
    const struct options *o = options;
    if (o->decay == INVERSE && o->alpha_f == 0)
        return ET_FAIL(cx, ET_EINVAL,
                       "an inverse decay never reaches an alpha_f of 0: 0.01 is usual");
    return eti_sched_ramp_check(cx, &o->ramp, o->t_max, length);
}

static const struct et_option table[] = {
    ETI_OPTION_RAMP(struct options, ramp, "0.01dur"),
    ETI_OPTION_TIME(struct options, t_decay, "0.1dur", "length of the decay"),
    ETI_OPTION_TIME(struct options, t_max, "1dur", "when the schedule is complete"),
    ETI_OPTION_FACTOR(struct options, alpha_f, "1e-6", "multiplier at t_max"),
    {
        .name = "decay",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, decay),
        .def = "sqrt",
        .choices = decays,
        .help = "shape of the decay; inverse falls faster at first",
    },
    {
        .name = "num_checkpoints",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_checkpoints),
        .def = "1",
        .min = 1,
        .max = 16,
        .help = "decays: 3 are before a quarter, half and the whole of t_max",
    },
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_warmup_stable_decay = {
    .info =
        {
            .name = "warmup_stable_decay",
            .class_name = "WarmupStableDecayScheduler",
            .summary = "linear warmup, the full rate, a fast decay to alpha_f",
            .source = ETI_PYTORCH_ACCELERATED "wsd_scheduler.py",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alias = "wsd",
    .alpha = alpha,
    .check = check,
};
