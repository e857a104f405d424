/* SPDX-License-Identifier: Apache-2.0 */
/* timm.h: what the schedules of timm share: a warmup before or over them, and cycles.
 *
 * t < t_warmup: alpha_i + (1 - alpha_i) t / t_warmup. After it the schedule is where it
 * would be without the warmup, or, with warmup_prefix, where it was t_warmup earlier.
 *
 * A cyclic schedule is a curve from 1 to 0 over a cycle. Cycle i (from 0) lasts
 * t_initial cycle_mul^i; with p = cycle_decay^i the multiplier in it is
 * alpha_f + (p - alpha_f) curve(x), x the fraction of the cycle; alpha_f after
 * cycle_limit cycles.
 *
 * Source: timm, timm/scheduler/. Differs: alpha_i and alpha_f are fractions of the
 * optimizer's rate (there warmup_lr_init and lr_min are rates); times have units, and
 * step_every takes the place of t_in_epochs; every warmup ends at the optimizer's rate
 * (there tanh's ends on its curve); noise is drawn with our generator; steps of
 * plateau need a metric and are not a function of the time, so it is not here. */
#ifndef ETI_TIMM_H
#define ETI_TIMM_H

#include "core/sched/sched.h"

#define ETI_TIMM "timm, timm/scheduler/"

struct eti_timm_warmup {
    struct eti_ramp_options ramp;
    bool warmup_prefix;
};

struct eti_timm_cycles {
    struct et_time t_initial;
    double cycle_mul;
    double cycle_decay;
    int64_t cycle_limit;
    double alpha_f;
};

/* From range[0] on, and before range[1] where there is one, the multiplier is
 * multiplied by 1 + n with n ~ N(0, std^2), drawn again until |n| < pct: another n for
 * each t, the same whenever it is asked for. */
struct eti_timm_noise {
    struct et_times range;
    double pct, std;
    int64_t seed;
};
ET_NODISCARD et_status eti_timm_add_noise(const struct eti_sched_now *s,
                                          const struct eti_timm_noise *o, double *out);

/* The check of all of them. */
ET_NODISCARD et_status eti_timm_check(struct et_ctx *cx,
                                      const struct eti_timm_warmup *w,
                                      const struct eti_timm_noise *noise,
                                      const struct et_run_length *length);

/* T resolved (SPAN), and NOW: how far the schedule is, in the same unit. RAMP: the
 * multiplier in the warmup, where WARMING is set; 1 after it. */
struct eti_timm_at {
    double now;
    double span;
    double ramp;
    bool warming;
};
ET_NODISCARD et_status eti_timm_at(const struct eti_sched_now *s,
                                   const struct eti_timm_warmup *o, struct et_time t,
                                   struct eti_timm_at *out);

/* The multiplier of a cyclic schedule; CURVE is given OPTIONS and x in [0, 1). */
ET_NODISCARD et_status eti_timm_cycle(const struct eti_sched_now *s,
                                      const struct eti_timm_warmup *w,
                                      const struct eti_timm_cycles *c,
                                      double (*curve)(const void *options, double x),
                                      const void *options, double *out);

/* The rows of FIELD, a struct eti_timm_warmup in S; PREFIX: default of
 * warmup_prefix. */
#define ETI_OPTION_TIMM_WARMUP(S, field, prefix)                                       \
    ETI_OPTION_RAMP(S, field.ramp, "0ep"),                                             \
    {                                                                                  \
        .name = "warmup_prefix", .type = ET_OPT_BOOL,                                  \
        .offset = offsetof(S, field.warmup_prefix), .def = prefix,                     \
        .help = "begin the schedule after the warmup, not under it",                   \
    }

#define ETI_OPTION_TIMM_FLOAT(S, field, title, defaults, text)                         \
    {                                                                                  \
        .name = title, .type = ET_OPT_FLOAT, .offset = offsetof(S, field),             \
        .def = defaults, .min = 0, .max = HUGE_VAL, .help = text,                      \
    }

/* The rows of FIELD, a struct eti_timm_noise in S. The bounds keep drawing short. */
#define ETI_OPTION_TIMM_NOISE(S, field)                                                \
    {                                                                                  \
        .name = "noise_range_t",                                                       \
        .type = ET_OPT_TIMES,                                                          \
        .offset = offsetof(S, field.range),                                            \
        .units = ET_SCHEDULE_UNITS,                                                    \
        .help = "noise on the rate: when it begins, and perhaps when it ends",         \
    },                                                                                 \
        {                                                                              \
            .name = "noise_pct",                                                       \
            .type = ET_OPT_FLOAT,                                                      \
            .offset = offsetof(S, field.pct),                                          \
            .def = "0.67",                                                             \
            .min = 0.01,                                                               \
            .max = 1,                                                                  \
            .help = "the most that noise adds or takes, as a part of the rate",        \
        },                                                                             \
        {                                                                              \
            .name = "noise_std",                                                       \
            .type = ET_OPT_FLOAT,                                                      \
            .offset = offsetof(S, field.std),                                          \
            .def = "1.0",                                                              \
            .min = 0,                                                                  \
            .max = 10,                                                                 \
            .help = "standard deviation of the noise, before it is cut",               \
        },                                                                             \
    {                                                                                  \
        .name = "noise_seed", .type = ET_OPT_INT, .offset = offsetof(S, field.seed),   \
        .def = "42", .min = 0, .max = 4294967295.0,                                    \
        .help = "another seed, other noise",                                           \
    }

/* The rows of FIELD, a struct eti_timm_cycles in S. */
#define ETI_OPTION_TIMM_CYCLES(S, field)                                               \
    {                                                                                  \
        .name = "t_initial",                                                           \
        .type = ET_OPT_TIME,                                                           \
        .offset = offsetof(S, field.t_initial),                                        \
        .def = "1dur",                                                                 \
        .units = ET_SCHEDULE_UNITS,                                                    \
        .help = "length of the first cycle",                                           \
    },                                                                                 \
        ETI_OPTION_TIMM_FLOAT(S, field.alpha_f, "alpha_f", "0.0",                      \
                              "multiplier at the end of each cycle"),                  \
        {                                                                              \
            .name = "cycle_mul",                                                       \
            .type = ET_OPT_FLOAT,                                                      \
            .offset = offsetof(S, field.cycle_mul),                                    \
            .def = "1.0",                                                              \
            .min = 0,                                                                  \
            .max = HUGE_VAL,                                                           \
            .flags = ET_OPT_MIN_OPEN,                                                  \
            .help = "length of each cycle over that of the one before",                \
        },                                                                             \
        ETI_OPTION_TIMM_FLOAT(                                                         \
            S, field.cycle_decay, "cycle_decay", "1.0",                                \
            "first multiplier of each cycle over that of the one before"),             \
    {                                                                                  \
        .name = "cycle_limit", .type = ET_OPT_INT,                                     \
        .offset = offsetof(S, field.cycle_limit), .def = "1", .min = 1, .max = 1000,   \
        .help = "number of cycles; the rate is alpha_f after them",                    \
    }

/* k_decay, a field of S: the curve runs over x^k_decay (arXiv 2004.05909). */
#define ETI_OPTION_TIMM_K_DECAY(S)                                                     \
    {                                                                                  \
        .name = "k_decay", .type = ET_OPT_FLOAT, .offset = offsetof(S, k_decay),       \
        .def = "1.0", .min = 0, .max = HUGE_VAL, .flags = ET_OPT_MIN_OPEN,             \
        .help = "exponent of the time: above 1 the rate stays high for longer",        \
    }

#endif
