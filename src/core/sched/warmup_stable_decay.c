/* warmup_stable_decay.c: warmup, the full rate, and a fast decay at the end.
 *
 * With T = t_max, W = t_warmup, D = t_decay, r = min(1, (t - T + D) / D):
 *   t < W:      alpha_i + (1 - alpha_i) t / W
 *   t < T - D:  1
 *   then:       sqrt:     alpha_f + (1 - alpha_f) (1 - sqrt(r))
 *               inverse:  1 / (r / alpha_f + 1 - r)
 *
 * Inverse: Wen et al. 2024, arXiv 2410.05192, section 4; sqrt: Haegele et al. 2024,
 * arXiv 2405.18392. Differs from pytorch-accelerated: one decay, at the end of the
 * schedule; a warmup is as long as it says also where the decay begins within it (both
 * factors then hold). */
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
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double now, warmup, ramp, span, r = 0;
    struct et_time max, decay, start;
    ET_TRY(eti_sched_resolve(&s, o->t_max, &now, &max));
    ET_TRY(eti_sched_period(&s, o->t_decay, "t_decay", &now, &span));
    ET_TRY(et_time_resolve(cx, o->t_decay, length, &decay));
    ET_TRY(et_time_sub(cx, max, decay, &start)); /* one unit, or an error */
    ET_TRY(eti_sched_ramp(&s, &o->ramp, max, &now, &warmup, &ramp));
    if (now > start.value)
        r = fmin(1, (now - start.value) / span);
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
