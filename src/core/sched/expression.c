/* SPDX-License-Identifier: Apache-2.0 */
/* expression.c: any formula of how far the run is.
 *
 *     scheduler: {name: expression, alpha: "0.95 ^ ep"}
 *
 * Variables: ep, ba, sp, tok, finished epochs, batches, samples and tokens; dur, the
 * fraction of the run that is done, where it is known how long it will be. What a
 * formula may be: formula.h.
 *
 * torch.optim.lr_scheduler.LambdaLR. Differs: a formula takes the place of a function,
 * so that a recipe has it in it. */
#include "core/sched/formula.h"
#include "core/sched/sched.h"

struct options {
    struct et_scheduler_options common;
    char *alpha;
};

/* Batches are the unit in which a length in epochs is known. */
static double
fraction(const struct eti_sched_now *s)
{
    double out = NAN;
    const struct et_time *max = &s->length->max_duration;
    bool known = et_time_is_set(*max) && max->unit != ET_TIME_SECOND &&
                 (max->unit != ET_TIME_EPOCH || s->length->dataloader_len > 0);
    if (!known ||
        eti_sched_fraction(s, (struct et_time){1, ET_TIME_DURATION}, &out) != ET_OK)
        return NAN;
    return out;
}

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct options *o = options;
    const struct eti_sched_now s = {cx, ts, length};
    const struct eti_variable v[] = {
        {"ep", (double)ts->epoch},  {"ba", (double)ts->batch},
        {"sp", (double)ts->sample}, {"tok", (double)ts->token},
        {"dur", fraction(&s)},
    };
    struct et_error why = {0};
    if (eti_formula(o->alpha, v, sizeof v / sizeof v[0], out, &why) != ET_OK)
        return ET_FAIL(cx, ET_EINVAL, "expression: %s", why.message);
    if (isfinite(*out) && *out >= 0)
        return ET_OK;
    return ET_FAIL(
        cx, ET_EINVAL,
        "expression: '%s' is %g after %lld batches, and a rate is multiplied "
        "by a number of at least 0%s",
        o->alpha, *out, (long long)ts->batch,
        isnan(v[4].value) ? "; dur is not known in this run" : "");
}

static const struct et_option table[] = {
    {
        .name = "alpha",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, alpha),
        .flags = ET_OPT_REQUIRED,
        .help = "formula of ep, ba, sp, tok and dur, such as 0.95 ^ ep",
        .also = "lr_lambda",
    },
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_expression = {
    .info =
        {
            .name = "expression",
            .class_name = "ExpressionScheduler",
            .summary = "any formula of epochs, batches, samples and tokens",
            .source = "PyTorch's LambdaLR",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alias = "lambda",
    .alpha = alpha,
};
