/* SPDX-License-Identifier: Apache-2.0 */
/* sched.h: what the schedulers share: resolving times, warmup, curves, option rows. */
#ifndef ETI_SCHED_H
#define ETI_SCHED_H

#include <math.h>

#include "etude/sched.h"

#define ET_SCHEDULER(name) extern const struct et_scheduler_class et_scheduler_##name;
#include "core/sched/schedulers.def"
#undef ET_SCHEDULER

#define ETI_COMPOSER            "MosaicML Composer, composer/optim/scheduler.py"
#define ETI_PYTORCH_ACCELERATED "pytorch-accelerated, pytorch_accelerated/schedulers/"

/* Where a schedule is. */
struct eti_sched_now {
    struct et_ctx *cx;
    const struct et_timestamp *ts;
    const struct et_run_length *length;
};

/* T resolved (SPAN) and the counter of its unit (NOW), in that unit. */
ET_NODISCARD et_status eti_sched_resolve(const struct eti_sched_now *s,
                                         struct et_time t, double *now,
                                         struct et_time *span);
/* The same for a T that something is divided by: EINVAL when it resolves to 0. */
ET_NODISCARD et_status eti_sched_period(const struct eti_sched_now *s, struct et_time t,
                                        const char *name, double *now, double *span);
/* min(1, now / T); 1 for a T of 0. */
ET_NODISCARD et_status eti_sched_fraction(const struct eti_sched_now *s,
                                          struct et_time t, double *out);
/* gamma^(milestones reached). */
ET_NODISCARD et_status eti_sched_steps(const struct eti_sched_now *s,
                                       const struct et_times *milestones, double gamma,
                                       double *out);

/* The curves, of a fraction X in [0, 1]: 1 at 0, ALPHA_F at 1. */
double eti_sched_cosine(double x, double alpha_f);
double eti_sched_polynomial(double x, double power, double alpha_f);

struct eti_warmup_options {
    struct et_time t_warmup;
    bool scale_warmup;
};

/* T_WARMUP resolved; the ratio counts only with scale_warmup. NOW as above. */
ET_NODISCARD et_status eti_sched_warmup_span(const struct eti_sched_now *s,
                                             const struct eti_warmup_options *o,
                                             double *now, struct et_time *span);
/* RAMP: min(1, now / t_warmup), which is below 1 in the warmup and 1 after it. TAU:
 * fraction of what lies between t_warmup and T_MAX, in [0, 1]; 0 when that is nothing.
 * EINVAL when the two resolve to different units. */
ET_NODISCARD et_status eti_sched_warmup(const struct eti_sched_now *s,
                                        const struct eti_warmup_options *o,
                                        struct et_time t_max, double *ramp,
                                        double *tau);
/* The check of the schedulers with warmup and t_max: t_max may not end before the run.
 * T_MAX may be unset. Warns of a warmup of nothing. */
ET_NODISCARD et_status eti_sched_warmup_check(struct et_ctx *cx,
                                              const struct eti_warmup_options *o,
                                              struct et_time t_max,
                                              const struct et_run_length *length);

/* A warmup that starts at alpha_i instead of 0, and that need not be there: t_warmup
 * may be 0, in any unit. */
struct eti_ramp_options {
    struct eti_warmup_options warmup;
    double alpha_i;
};

/* WHOLE is a resolved time; NOW is the counter in its unit and WARMUP the length of the
 * warmup in it. RAMP: alpha_i + (1 - alpha_i) now / warmup in the warmup, 1 after it.
 * EINVAL when the warmup resolves to another unit. */
ET_NODISCARD et_status eti_sched_ramp(const struct eti_sched_now *s,
                                      const struct eti_ramp_options *o,
                                      struct et_time whole, double *now, double *warmup,
                                      double *ramp);
/* eti_sched_warmup_check where there is a warmup, and t_max's part of it in any
 * case. */
ET_NODISCARD et_status eti_sched_ramp_check(struct et_ctx *cx,
                                            const struct eti_ramp_options *o,
                                            struct et_time t_max,
                                            const struct et_run_length *length);

/* ---- option rows; S is the options struct, whose field has the option's name ---- */

#define ETI_OPTION_TIME(S, field, defaults, text, ...)                                 \
    {                                                                                  \
        .name = #field, .type = ET_OPT_TIME, .offset = offsetof(S, field),             \
        .def = defaults, .units = ET_SCHEDULE_UNITS,                                   \
        .flags = (defaults) ? 0 : ET_OPT_REQUIRED, .help = text, __VA_ARGS__           \
    }
#define ETI_OPTION_FLOAT(S, field, defaults, text, ...)                                \
    {                                                                                  \
        .name = #field, .type = ET_OPT_FLOAT, .offset = offsetof(S, field),            \
        .def = defaults, .flags = (defaults) ? 0 : ET_OPT_REQUIRED, .help = text,      \
        __VA_ARGS__                                                                    \
    }
#define ETI_OPTION_FACTOR(S, field, defaults, text, ...)                               \
    {                                                                                  \
        .name = #field, .type = ET_OPT_FLOAT, .offset = offsetof(S, field),            \
        .def = defaults, .min = 0, .max = HUGE_VAL,                                    \
        .flags = (defaults) ? 0 : ET_OPT_REQUIRED, .help = text, __VA_ARGS__           \
    }
#define ETI_OPTION_MILESTONES(S)                                                       \
    {                                                                                  \
        .name = "milestones", .type = ET_OPT_TIMES, .offset = offsetof(S, milestones), \
        .units = ET_SCHEDULE_UNITS, .flags = ET_OPT_REQUIRED,                          \
        .help = "times at which the rate is multiplied by gamma",                      \
    }
#define ETI_OPTION_WARMUP(S)                                                           \
    {                                                                                  \
        .name = "t_warmup",                                                            \
        .type = ET_OPT_TIME,                                                           \
        .offset = offsetof(S, warmup.t_warmup),                                        \
        .units = ET_SCHEDULE_UNITS,                                                    \
        .flags = ET_OPT_REQUIRED,                                                      \
        .help = "length of the linear warmup from 0",                                  \
    },                                                                                 \
    {                                                                                  \
        .name = "scale_warmup", .type = ET_OPT_BOOL,                                   \
        .offset = offsetof(S, warmup.scale_warmup), .def = "false",                    \
        .help = "scale_schedule_ratio shortens the warmup too",                        \
    }
/* FIELD is the struct eti_ramp_options in S, DEFAULTS that of t_warmup. */
#define ETI_OPTION_RAMP(S, field, defaults)                                            \
    {                                                                                  \
        .name = "t_warmup",                                                            \
        .type = ET_OPT_TIME,                                                           \
        .offset = offsetof(S, field.warmup.t_warmup),                                  \
        .def = defaults,                                                               \
        .units = ET_SCHEDULE_UNITS,                                                    \
        .help = "length of the linear warmup from alpha_i",                            \
    },                                                                                 \
        {                                                                              \
            .name = "scale_warmup",                                                    \
            .type = ET_OPT_BOOL,                                                       \
            .offset = offsetof(S, field.warmup.scale_warmup),                          \
            .def = "false",                                                            \
            .help = "scale_schedule_ratio shortens the warmup too",                    \
        },                                                                             \
    {                                                                                  \
        .name = "alpha_i", .type = ET_OPT_FLOAT, .offset = offsetof(S, field.alpha_i), \
        .def = "0.0", .min = 0, .max = HUGE_VAL,                                       \
        .help = "multiplier at the start of the warmup",                               \
    }
/* The last rows of every table. */
#define ETI_OPTION_END(S)                                                              \
    ET_SCHEDULER_OPTIONS(S),                                                           \
    {                                                                                  \
        .name = NULL,                                                                  \
    }

#endif
