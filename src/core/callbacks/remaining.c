/* SPDX-License-Identifier: Apache-2.0 */
/* remaining.c: how long a run will still take.
 *
 *     rate = (seconds now - seconds then) / (fraction now - fraction then)
 *     left = rate * (1 - fraction) + sum over evaluators of mean length * times to come
 *
 * where evaluations seen n times up to fraction f of the run come 1/f * n times in all.
 * Source: spec/trainer.md 9.3, RuntimeEstimator. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/callbacks/callbacks.h"

double
eti_fraction(const struct et_state *s)
{
    struct et_time now, max = s->max_duration;
    if (!et_time_is_set(max) || max.value <= 0)
        return NAN;
    if (max.unit == ET_TIME_EPOCH && s->train_len > 0) {
        const struct et_timestamp *ts = &s->timestamp;
        double epochs =
            (double)ts->epoch + (double)ts->batch_in_epoch / (double)s->train_len;
        return fmin(epochs / max.value, 1);
    }
    if (et_timestamp_get(NULL, &s->timestamp, max.unit, &now) != ET_OK)
        return NAN;
    return fmin(now.value / max.value, 1);
}

void
eti_remaining_eval_end(struct eti_remaining *r, const struct et_state *s)
{
    double fraction = eti_fraction(s);
    int i = 0;
    while (i < r->n_eval && strcmp(r->eval[i].label, s->dataloader_label) != 0)
        i++;
    if (i == ETI_MAX_LABELS || !(fraction > 0))
        return;
    if (i == r->n_eval)
        snprintf(r->eval[r->n_eval++].label, sizeof r->eval[i].label, "%s",
                 s->dataloader_label);
    r->eval[i].n++;
    r->eval[i].seconds += s->eval_timestamp.total_wct;
    r->eval[i].fraction = fraction;
}

double
eti_remaining_batch_end(struct eti_remaining *r, const struct et_state *s)
{
    double fraction = eti_fraction(s), wct = s->timestamp.total_wct;
    if (isnan(fraction))
        return NAN;
    if (!r->started) {
        if (--r->skip > 0)
            return NAN;
        r->started = true;
        r->wct = wct;
        r->fraction = fraction;
        return NAN;
    }
    if (!(fraction > r->fraction))
        return NAN;
    double left = (wct - r->wct) / (fraction - r->fraction) * (1 - fraction);
    for (int i = 0; i < r->n_eval; i++) {
        const struct eti_evaluations *e = &r->eval[i];
        double in_all = (double)e->n / e->fraction;
        left += e->seconds / (double)e->n * fmax(in_all - (double)e->n, 0);
    }
    return left;
}

/* What was read replaces the evaluators' times; it is not trusted. */
static et_status
take_evaluations(struct eti_remaining *r, struct et_ctx *cx,
                 const struct eti_evaluations *v, int64_t n)
{
    if (n > ETI_MAX_LABELS)
        return ET_FAIL(cx, ET_EFORMAT, "runtime_estimator: times of %lld evaluators",
                       (long long)n);
    if (n)
        memcpy(r->eval, v, (size_t)n * sizeof *v);
    r->n_eval = (int)n;
    for (int i = 0; i < r->n_eval; i++)
        r->eval[i].label[ET_METRIC_NAME - 1] = '\0';
    return ET_OK;
}

et_status
eti_remaining_archive(struct eti_remaining *r, struct et_ctx *cx, struct et_archive *a)
{
    bool saving = et_archive_mode(a) == ET_ARCHIVE_SAVE;
    void *block = saving ? r->eval : NULL;
    int64_t n = saving ? r->n_eval : 0;
    ET_TRY(et_archive_i64(a, "skip", &r->skip, 1));
    ET_TRY(et_archive_flag(a, "started", &r->started));
    ET_TRY(et_archive_f64(a, "wct", &r->wct, 1));
    ET_TRY(et_archive_f64(a, "fraction", &r->fraction, 1));
    ET_TRY(et_archive_list(a, "evaluations", &block, &n, sizeof *r->eval));
    if (et_archive_mode(a) != ET_ARCHIVE_LOAD)
        return ET_OK;
    et_status status = take_evaluations(r, cx, block, n);
    et_free(cx, block);
    return status;
}
