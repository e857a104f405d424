/* SPDX-License-Identifier: Apache-2.0 */
/* one_cycle.c: up from 1 / div_factor to 1, and down to much less.
 *
 * With T = t_max, P = t_peak, lo = 1 / div_factor, end = lo / final_div_factor:
 *   t < P:  from lo to 1;  then until T: from 1 to end
 *   three_phase: from 1 to lo until 2 P, and only then to end
 *
 * each from a to b as b + (a - b) (1 + cos(pi x)) / 2 or, linear, a + (b - a) x, where
 * x is the fraction of the phase; end after T.
 *
 * Smith and Topin 2017, arXiv 1708.07120; torch.optim.lr_scheduler.OneCycleLR. Differs:
 * the optimizer's lr is the peak (max_lr); times take the place of total_steps and
 * pct_start, and the phases end at P, 2 P and T (there after one update less: there, N
 * total_steps are t_peak = N pct_start - 1 and t_max = N - 1 here); momentum stays. */
#include "core/sched/sched.h"

enum anneal { COSINE, LINEAR };
static const char *const anneals[] = {"cos", "linear", NULL};

struct options {
    struct et_scheduler_options common;
    struct et_time t_peak;
    struct et_time t_max;
    double div_factor;
    double final_div_factor;
    int anneal; /* enum anneal */
    bool three_phase;
};

static double
between(const struct options *o, double a, double b, double x)
{
    if (o->anneal == LINEAR)
        return a + (b - a) * x;
    return b + (a - b) * (1 + cos(M_PI * x)) / 2;
}

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    const double lo = 1 / o->div_factor, end = lo / o->final_div_factor;
    double now, top = 1;
    struct et_time max, peak, rest;
    ET_TRY(eti_sched_resolve(&s, o->t_peak, &now, &peak));
    ET_TRY(eti_sched_resolve(&s, o->t_max, &now, &max));
    ET_TRY(et_time_sub(cx, max, peak, &rest)); /* one unit, or an error */
    double from = peak.value;
    if (now < from) {
        *out = between(o, lo, 1, now / from);
        return ET_OK;
    }
    if (o->three_phase) {
        if (now < 2 * from) {
            *out = between(o, 1, lo, (now - from) / from);
            return ET_OK;
        }
        from *= 2;
        top = lo;
    }
    *out =
        now < max.value ? between(o, top, end, (now - from) / (max.value - from)) : end;
    return ET_OK;
}

static et_status
check(struct et_ctx *cx, const void *options, const struct et_run_length *length)
{
    const struct options *o = options;
    char a[ET_TIME_TEXT_BYTES], b[ET_TIME_TEXT_BYTES];
    struct et_time max, peak, rest;
    ET_TRY(et_time_resolve(cx, o->t_max, length, &max));
    ET_TRY(et_time_resolve(cx, o->t_peak, length, &peak));
    peak.value *= o->three_phase ? 2 : 1;
    ET_TRY(et_time_sub(cx, max, peak, &rest));
    if (rest.value < 0)
        return ET_FAIL(
            cx, ET_EINVAL, "t_peak %s leaves no time to come down by t_max %s%s",
            et_time_text(o->t_peak, a, sizeof a), et_time_text(o->t_max, b, sizeof b),
            o->three_phase ? ": three_phase needs it twice" : "");
    return ET_OK;
}

#define DIVISOR(field, defaults, text)                                                 \
    {                                                                                  \
        .name = #field, .type = ET_OPT_FLOAT,                                          \
        .offset = offsetof(struct options, field), .def = defaults, .min = 0,          \
        .max = HUGE_VAL, .flags = ET_OPT_MIN_OPEN, .help = text,                       \
    }

static const struct et_option table[] = {
    ETI_OPTION_TIME(struct options, t_peak, "0.3dur",
                    "when the rate is the optimizer's", .also = "~pct_start"),
    ETI_OPTION_TIME(struct options, t_max, "1dur", "when the schedule is complete",
                    .also = "~total_steps"),
    DIVISOR(div_factor, "25.0", "the optimizer's rate over that at the start"),
    DIVISOR(final_div_factor, "1e4", "the rate at the start over that at t_max"),
    {
        .name = "anneal_strategy",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, anneal),
        .def = "cos",
        .choices = anneals,
        .help = "shape of each phase",
    },
    {
        .name = "three_phase",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, three_phase),
        .def = "false",
        .help = "come down as one went up, and only then to the end",
    },
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_one_cycle = {
    .info =
        {
            .name = "one_cycle",
            .class_name = "OneCycleScheduler",
            .summary = "up to the optimizer's rate, and down to almost nothing",
            .source = "Smith and Topin 2017, arXiv 1708.07120; PyTorch's OneCycleLR",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
    .check = check,
};
