/* remaining.c: how long a run will still take.
 *
 *     rate = (seconds now - seconds then) / (fraction now - fraction then)
 *     left = rate * (1 - fraction) + sum over evaluators of mean length * times to come
 *
 * where evaluations seen n times up to fraction f of the run come 1/f * n times in all.
 * Source: spec/trainer.md 9.3, RuntimeEstimator. */
#include "config.h"

#include <math.h>
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
        r->eval[r->n_eval++].label = s->dataloader_label;
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
