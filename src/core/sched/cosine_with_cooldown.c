/* SPDX-License-Identifier: Apache-2.0 */
/* cosine_with_cooldown.c: warmup, half a cosine, and a while at its end.
 *
 * With T = t_max, W = t_warmup, C = t_cooldown:
 *   t < W:      alpha_i + (1 - alpha_i) t / W
 *   t < T - C:  alpha_f + (1 - alpha_f) (1 + cos(pi x^k_decay)) / 2,
 *               x = (t - W) / (T - C - W)
 *   then:       alpha_f
 *
 * k_decay: Zhang and Li 2020, arXiv 2004.05909. Differs from pytorch-accelerated: the
 * rates are fractions of the optimizer's (there lr_min = 1e-6 and its like are rates);
 * the warmup ends at the optimizer's rate wherever it starts; the cosine lasts until
 * T - C (there it is cut W earlier, and the rate jumps). */
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
    struct eti_ramp_options ramp;
    struct et_time t_cooldown;
    struct et_time t_max;
    double alpha_f;
    double k_decay;
};

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double now, warmup, ramp, x = 0;
    struct et_time max, cooldown, end;
    ET_TRY(eti_sched_resolve(&s, o->t_max, &now, &max));
    end = max;
    if (o->t_cooldown.value > 0) {
        ET_TRY(et_time_resolve(cx, o->t_cooldown, length, &cooldown));
        ET_TRY(et_time_sub(cx, max, cooldown, &end)); /* one unit, or an error */
    }
    ET_TRY(eti_sched_ramp(&s, &o->ramp, max, &now, &warmup, &ramp));
    if (now >= warmup)
        x = now < end.value ? (now - warmup) / (end.value - warmup) : 1;
    *out = ramp * eti_sched_cosine(pow(x, o->k_decay), o->alpha_f);
    return ET_OK;
}

static et_status
check(struct et_ctx *cx, const void *options, const struct et_run_length *length)
{
    const struct options *o = options;
    return eti_sched_ramp_check(cx, &o->ramp, o->t_max, length);
}

static const struct et_option table[] = {
    ETI_OPTION_RAMP(struct options, ramp, "0ep"),
    ETI_OPTION_TIME(struct options, t_cooldown, "0ep",
                    "how long before t_max the rate is alpha_f already"),
    ETI_OPTION_TIME(struct options, t_max, "1dur", "when the schedule is complete"),
    ETI_OPTION_FACTOR(struct options, alpha_f, "0.0", "multiplier in the cooldown"),
    {
        .name = "k_decay",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, k_decay),
        .def = "1.0",
        .min = 0,
        .max = HUGE_VAL,
        .flags = ET_OPT_MIN_OPEN,
        .help = "exponent of the time: above 1 the rate stays high for longer",
    },
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_cosine_with_cooldown = {
    .info =
        {
            .name = "cosine_with_cooldown",
            .class_name = "CosineWithCooldownScheduler",
            .summary =
                "linear warmup, half a cosine to alpha_f, and a while at alpha_f",
            .source = ETI_PYTORCH_ACCELERATED "cosine_scheduler.py",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
    .check = check,
};
