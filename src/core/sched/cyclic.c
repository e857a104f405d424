/* SPDX-License-Identifier: Apache-2.0 */
/* cyclic.c: up to the optimizer's rate and down again, over and over.
 *
 * With U = t_up, D = t_down, n = floor(t / (U + D)) cycles that are done and
 * x = t - n (U + D) of the next:
 *   h = x / U  up to U;  then (U + D - x) / D
 *   alpha = alpha_i + (1 - alpha_i) h g
 *   g = 1; triangular2: 2^-n; exp_range: gamma^t
 *
 * Smith 2017, arXiv 1506.01186; torch.optim.lr_scheduler.CyclicLR. Differs: the
 * optimizer's lr is max_lr, and alpha_i of it base_lr; momentum stays. */
#include "core/sched/sched.h"

enum mode { TRIANGULAR, TRIANGULAR2, EXP_RANGE };
static const char *const modes[] = {"triangular", "triangular2", "exp_range", NULL};

struct options {
    struct et_scheduler_options common;
    struct et_time t_up, t_down; /* t_down may be unset: as t_up */
    double alpha_i, gamma;
    int mode; /* enum mode */
};

/* UP and DOWN in one unit, and NOW in it. */
static et_status
resolve(const struct eti_sched_now *s, const struct options *o, double *now, double *up,
        double *down)
{
    struct et_time whole, rest, both;
    ET_TRY(eti_sched_period(s, o->t_up, "t_up", now, up));
    *down = *up;
    if (!et_time_is_set(o->t_down))
        return ET_OK;
    ET_TRY(eti_sched_resolve(s, o->t_up, now, &whole));
    ET_TRY(eti_sched_period(s, o->t_down, "t_down", now, down));
    ET_TRY(eti_sched_resolve(s, o->t_down, now, &rest));
    return et_time_sub(s->cx, whole, rest, &both); /* one unit, or an error */
}

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    double now, up, down;
    ET_TRY(resolve(&s, o, &now, &up, &down));
    double n = floor(now / (up + down)), x = now - n * (up + down);
    double height = x <= up ? x / up : (up + down - x) / down;
    if (o->mode == TRIANGULAR2)
        height *= exp2(-n);
    else if (o->mode == EXP_RANGE)
        height *= pow(o->gamma, now);
    *out = o->alpha_i + (1 - o->alpha_i) * height;
    return ET_OK;
}

static const struct et_option table[] = {
    ETI_OPTION_TIME(struct options, t_up, NULL, "from alpha_i to the optimizer's rate",
                    .also = "~step_size_up"),
    {
        .name = "t_down",
        .type = ET_OPT_TIME,
        .offset = offsetof(struct options, t_down),
        .units = ET_SCHEDULE_UNITS,
        .flags = ET_OPT_OPTIONAL,
        .help = "and back; unset: as t_up",
        .also = "~step_size_down",
    },
    ETI_OPTION_FACTOR(struct options, alpha_i, "0.1",
                      "the lowest rate, in optimizer's rates", .also = "~base_lr"),
    {
        .name = "mode",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, mode),
        .def = "triangular",
        .choices = modes,
        .help = "peaks stay, are halved by each cycle, or fall by gamma",
    },
    {
        .name = "gamma",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, gamma),
        .def = "1.0",
        .min = 0,
        .max = 1,
        .flags = ET_OPT_MIN_OPEN,
        .help = "exp_range: by which a peak falls for each batch, or sample, or token",
    },
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_cyclic = {
    .info =
        {
            .name = "cyclic",
            .class_name = "CyclicScheduler",
            .summary = "up to the optimizer's rate and down, over and over",
            .source = "Smith 2017, arXiv 1506.01186; PyTorch's CyclicLR",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
};
