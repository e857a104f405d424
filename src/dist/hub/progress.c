/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: how far a run is, and when it will have ended, as its batches have gone.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "dist/hub/model.h"

enum { SKIPPED = 10 }; /* batches at the start that tell nothing of the others */

static const struct etd_tick *
tick(const struct etd_model *m, int i)
{
    return &m->tick[(m->first_tick + i) % ETD_TICKS];
}

/* The number that would be at K if the N of X were sorted; they are moved about (C. A.
 * R. Hoare, Algorithm 65, 1961). */
static double
select_number(double *x, int n, int k)
{
    for (int low = 0, high = n - 1; low < high;) {
        double middle = x[(low + high) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (x[i] < middle)
                i++;
            while (x[j] > middle)
                j--;
            if (i > j)
                break;
            double one = x[i];
            x[i++] = x[j];
            x[j--] = one;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return x[k];
}

/* Seconds of a batch: the median, which an evaluation or a pause between two of them
 * does not move. NaN while there are too few. */
static double
batch_seconds(const struct etd_model *m)
{
    double s[ETD_TICKS];
    int n = 0;
    for (int i = 1; i < m->n_ticks; i++) {
        int64_t batches = tick(m, i)->ba - tick(m, i - 1)->ba;
        if (tick(m, i)->ba > SKIPPED && batches > 0)
            s[n++] = (tick(m, i)->t - tick(m, i - 1)->t) / (double)batches;
    }
    if (n < 2)
        return NAN;
    return select_number(s, n, n / 2);
}

static double
seconds_left(const struct etd_model *m)
{
    double batches = etd_model_length(m, "run/batches");
    double each = batch_seconds(m);
    double end = etd_model_length(m, "run/seconds");
    if (!isnan(end))
        return fmax(0, end - m->train_s);
    if (isnan(batches) || isnan(each) || m->ba == 0)
        return NAN;
    double left = fmax(0, batches - (double)m->ba);
    double evaluations = (double)m->n_evaluated / (double)m->ba * left;
    double evaluation = m->n_evaluated ? m->eval_s / (double)m->n_evaluated : 0;
    return left * each + evaluations * evaluation;
}

void
etd_model_progress(struct etd_model *m, const struct et_record *r)
{
    const int n = sizeof m->finish / sizeof *m->finish;
    if (m->n_ticks > 0) {
        const struct etd_tick *before = tick(m, m->n_ticks - 1);
        double since = fmax(before->t, m->state_since);
        if (r->t > since && strcmp(m->state, "running") == 0)
            m->train_s += r->t - since;
    }
    if (m->n_ticks == ETD_TICKS)
        m->first_tick = (m->first_tick + 1) % ETD_TICKS;
    else
        m->n_ticks++;
    m->tick[(m->first_tick + m->n_ticks - 1) % ETD_TICKS] =
        (struct etd_tick){r->t, r->ba, r->sp};
    if (r->ba % (ETD_TICKS / 16) != 0)
        return;
    memmove(m->finish, m->finish + 1, sizeof m->finish - sizeof *m->finish);
    m->finish[n - 1] = r->t + seconds_left(m);
}

double
etd_model_left(const struct etd_model *m, bool *settled)
{
    const int n = sizeof m->finish / sizeof *m->finish;
    double left = seconds_left(m);
    *settled = !isnan(left);
    for (int i = 0; i < n; i++)
        *settled = *settled && fabs(m->finish[i] - (m->t + left)) <= 0.1 * left + 1;
    return left;
}

double
etd_model_done(const struct etd_model *m)
{
    static const char *const names[] = {"run/batches", "run/epochs", "run/samples",
                                        "run/seconds"};
    const double at[] = {(double)m->ba, (double)m->ep, (double)m->sp, m->train_s};
    for (int i = 0; i < 4; i++) {
        double all = etd_model_length(m, names[i]);
        if (all > 0)
            return fmin(1, at[i] / all);
    }
    return NAN;
}
