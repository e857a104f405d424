/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c: see curve.h. Schedules are pure functions of a timestamp: those of the run's
 * updates are made from their numbers alone. */
#include "config.h"

#include <math.h>

#include "core/assemble/assemble.h"
#include "core/assemble/curve.h"
#include "core/assemble/formulas.h"
#include "core/data/stand_in.h"

/* What is known of the run. */
struct shape {
    const struct et_scheduler *schedule;
    int n_schedules;
    struct et_run_length length;
    struct et_time iteration_length;
    double lr;
    int64_t batch_size, epoch_samples; /* 0 = not known */
    int64_t sample_tokens;
};

static struct et_timestamp
timestamp_of(const struct shape *s, int64_t batch)
{
    struct et_timestamp ts = {.batch = batch, .batch_in_epoch = batch};
    int64_t per_epoch = s->length.dataloader_len;
    if (per_epoch > 0) {
        ts.epoch = batch / per_epoch;
        ts.batch_in_epoch = batch % per_epoch;
    }
    ts.sample_in_epoch = ts.batch_in_epoch * s->batch_size;
    ts.token_in_epoch = ts.sample_in_epoch * s->sample_tokens;
    ts.sample = ts.epoch * s->epoch_samples + ts.sample_in_epoch;
    ts.token = ts.sample * s->sample_tokens;
    if (s->iteration_length.unit == ET_TIME_EPOCH)
        ts.iteration = ts.epoch / (int64_t)s->iteration_length.value;
    else if (s->iteration_length.unit == ET_TIME_TOKEN)
        ts.iteration = ts.token / (int64_t)s->iteration_length.value;
    return ts;
}

/* Updates until AMOUNT things are done, of which an epoch has PER_EPOCH and a batch
 * PER_BATCH. */
static double
batches_for(const struct shape *s, double amount, double per_epoch, double per_batch)
{
    double epochs = floor(amount / per_epoch);
    return epochs * (double)s->length.dataloader_len +
           ceil((amount - epochs * per_epoch) / per_batch);
}

/* Updates of a run of DURATION; NaN where that cannot be said. */
static double
count_batches(const struct shape *s, struct et_time duration)
{
    double samples = (double)s->epoch_samples, batch = (double)s->batch_size;
    double tokens = (double)s->sample_tokens;
    if (duration.unit == ET_TIME_ITERATION && et_time_is_set(s->iteration_length))
        duration = (struct et_time){duration.value * s->iteration_length.value,
                                    s->iteration_length.unit};
    if (duration.unit == ET_TIME_BATCH)
        return duration.value;
    if (s->length.dataloader_len <= 0)
        return NAN;
    switch (duration.unit) {
    case ET_TIME_EPOCH:
        return duration.value * (double)s->length.dataloader_len;
    case ET_TIME_SAMPLE:
        return batches_for(s, duration.value, samples, batch);
    case ET_TIME_TOKEN:
        return tokens > 0
                   ? batches_for(s, duration.value, samples * tokens, batch * tokens)
                   : NAN;
    default:
        return NAN;
    }
}

static et_status
trace(struct et_ctx *cx, const struct shape *s, struct eti_curve *out)
{
    char text[ET_TIME_TEXT_BYTES];
    double batches = count_batches(s, s->length.max_duration);
    if (!(batches >= 1 && batches <= 0x1p53))
        return ET_FAIL(cx, ET_EINVAL,
                       "how many batches %s are is not known before the run",
                       et_time_text(s->length.max_duration, text, sizeof text));
    ET_TRY(et_schedule_check(cx, s->schedule, s->n_schedules, &s->length));
    out->batches = (int64_t)batches;
    out->per_epoch = s->length.dataloader_len;
    int n = batches < ETI_CURVE_POINTS ? (int)batches : ETI_CURVE_POINTS;
    void *block;
    ET_TRY(et_alloc(cx, (size_t)n * sizeof *out->batch, &block));
    out->batch = block;
    ET_TRY(et_alloc(cx, (size_t)n * sizeof *out->rate, &block));
    out->rate = block;
    for (out->n = 0; out->n < n; out->n++) {
        int64_t batch = n == 1 ? 0 : (int64_t)((batches - 1) * out->n / (n - 1));
        struct et_timestamp ts = timestamp_of(s, batch);
        double alpha;
        ET_TRY(et_schedule_alpha(cx, s->schedule, s->n_schedules, &ts, &s->length,
                                 &alpha));
        out->batch[out->n] = batch;
        out->rate[out->n] = s->lr * alpha;
    }
    return ET_OK;
}

/* Does the run's course need to know how long an epoch is? */
static bool
needs_data(struct et_ctx *cx, const struct shape *s, bool by_epoch)
{
    bool needs =
        by_epoch || isnan(count_batches(s, s->length.max_duration)) ||
        et_schedule_check(cx, s->schedule, s->n_schedules, &s->length) != ET_OK;
    et_error_clear(cx);
    return needs;
}

/* Lengths are known when the headers are read: no sample is, and no thread runs. */
static et_status
measure_data(struct et_ctx *cx, const struct et_part *part, struct shape *s)
{
    struct et_data_options *common = part->options;
    struct et_dataset *set;
    struct et_loader *loader = NULL;
    struct et_loader_info info;
    int64_t workers = common->workers;
    common->workers = 0;
    et_status status =
        eti_headers_open(cx, ETI_CLASS(dataset, part->component), common, &set);
    if (status == ET_OK)
        status =
            et_loader_new(cx, set, &(struct et_loader_config){.train = true}, &loader);
    if (status == ET_OK) {
        et_loader_get_info(loader, &info);
        s->length.dataloader_len = info.batches_per_epoch;
        s->batch_size = info.batch_size;
        s->epoch_samples = info.samples_per_epoch;
        s->sample_tokens = info.field[ET_FIELD_X].kind == ET_FIELD_TOKENS
                               ? info.desc[ET_FIELD_X].shape[1]
                               : 0;
    }
    et_loader_free(&loader);
    et_dataset_close(&set);
    common->workers = workers;
    return status;
}

static et_status
settle_formulas(struct et_ctx *cx, const struct et_recipe *recipe)
{
    struct eti_placeholders p;
    if (!eti_has_formulas(recipe))
        return ET_OK;
    ET_TRY(eti_placeholders_measure(cx, recipe, &p));
    return eti_formulas_settle(cx, recipe, &p, true, NULL, NULL);
}

et_status
eti_curve_of_recipe(struct et_ctx *cx, const struct et_recipe *recipe,
                    struct eti_curve *out)
{
    struct et_scheduler schedule[ETI_MAX_SCHEDULERS];
    const struct et_optimizer_options *optimizer = recipe->optimizer.options;
    struct shape s = {
        .schedule = schedule,
        .iteration_length = recipe->iteration_length,
        .lr = optimizer->lr,
        .length = {.dataloader_len = -1,
                   .scale_schedule_ratio = recipe->scale_schedule_ratio},
    };
    bool any_by_epoch = eti_has_formulas(recipe);
    *out = (struct eti_curve){.cx = cx, .by_epoch = recipe->scheduler.n > 0};
    for (int i = 0; i < recipe->scheduler.n && s.n_schedules < ETI_MAX_SCHEDULERS;
         i++) {
        const struct et_part *part = &recipe->scheduler.v[i];
        const struct et_scheduler_options *o = part->options;
        any_by_epoch = any_by_epoch || o->step_every == ET_STEP_EPOCH;
        out->by_epoch = out->by_epoch && o->step_every == ET_STEP_EPOCH;
        schedule[s.n_schedules++] = (struct et_scheduler){
            .type = ETI_CLASS(scheduler, part->component),
            .options = o,
        };
    }
    ET_TRY(et_time_scale_duration(cx, recipe->max_duration,
                                  recipe->scale_schedule_ratio,
                                  &s.length.max_duration));
    if (needs_data(cx, &s, any_by_epoch) && recipe->train_data.component)
        ET_TRY(measure_data(cx, &recipe->train_data, &s));
    ET_TRY(settle_formulas(cx, recipe));
    return trace(cx, &s, out);
}

et_status
eti_curve_of_schedule(struct et_ctx *cx, const struct et_scheduler *schedule,
                      int64_t epochs, int64_t per_epoch, struct eti_curve *out)
{
    const struct shape s = {
        .schedule = schedule,
        .n_schedules = 1,
        .lr = 1,
        .iteration_length = ET_TIME_UNSET,
        .batch_size = 1,
        .epoch_samples = per_epoch,
        .length =
            {
                .max_duration = ET_EPOCHS((double)epochs),
                .dataloader_len = per_epoch,
                .scale_schedule_ratio = 1,
            },
    };
    const struct et_scheduler_options *o = schedule->options;
    *out = (struct eti_curve){.cx = cx, .by_epoch = o->step_every == ET_STEP_EPOCH};
    return trace(cx, &s, out);
}

void
eti_curve_release(struct eti_curve *curve)
{
    et_free(curve->cx, curve->batch);
    et_free(curve->cx, curve->rate);
    *curve = (struct eti_curve){0};
}
