/* SPDX-License-Identifier: Apache-2.0 */
/* series.c: see series.h. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "tui/series.h"

static const char TOKENS[] = "time/token"; /* the series that counts them */

/* ---- the axis ---- */

enum tui_axis
tui_axis_usual(const struct etd_model *m)
{
    return etd_model_length(m, "run/epochs") >= 2 &&
                   etd_model_length(m, "run/epoch_batches") > 0
               ? TUI_BY_EPOCH
               : TUI_BY_STEP;
}

enum tui_axis
tui_axis_next(enum tui_axis axis, const struct etd_model *m)
{
    axis = (axis + 1) % TUI_AXES;
    return axis == TUI_BY_TOKENS && !etd_model_series(m, TOKENS) ? TUI_BY_STEP : axis;
}

void
tui_axis_name(struct tui_plot *plot, enum tui_axis axis)
{
    static const enum tui_quantity counts[TUI_AXES] = {
        [TUI_BY_STEP] = TUI_OF_COUNTS,   [TUI_BY_EPOCH] = TUI_OF_NUMBERS,
        [TUI_BY_TIME] = TUI_OF_SECONDS,  [TUI_BY_SAMPLES] = TUI_OF_COUNTS,
        [TUI_BY_TOKENS] = TUI_OF_COUNTS,
    };
    static const char *const units[TUI_AXES] = {"ba", "ep", NULL, "sp", "tok"};
    plot->x_of = counts[axis];
    plot->unit = units[axis];
}

/* Tokens of all batches up to the BIN; 0 before the first that says. */
static double
tokens_at(const struct etd_model *m, int64_t bin)
{
    const struct etd_series *s = etd_model_series(m, TOKENS);
    int low = 0, high = s ? s->n_bins : 0; /* the first entry behind it */
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->bin[middle].bin <= bin)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? s->bin[low - 1].min : 0;
}

double
tui_axis_place(const struct tui_across *across, int64_t bin)
{
    const struct etd_model *m = across->model;
    double ba = (double)(bin * m->width) + (double)(m->width - 1) / 2;
    double per = etd_model_length(m, "run/epoch_batches");
    const struct etd_axis *a = &m->axis[bin < ETD_BINS ? bin : ETD_BINS - 1];
    switch (across->axis) {
    case TUI_BY_EPOCH:
        return per > 0 ? ba / per : (double)a->ep;
    case TUI_BY_TIME:
        return isnan(a->t) ? NAN : a->t - m->from;
    case TUI_BY_SAMPLES:
        return (double)a->sp;
    case TUI_BY_TOKENS:
        return tokens_at(m, bin);
    default:
        return ba;
    }
}

double
tui_axis_end(const struct tui_across *a)
{
    const struct etd_model *m = a->model;
    bool settled;
    double ba = (double)m->ba, batches = etd_model_length(m, "run/batches");
    double per = etd_model_length(m, "run/epoch_batches");
    double left = etd_model_left(m, &settled);
    double all = batches > ba && !a->is_over ? batches : ba; /* no more will come */
    switch (a->axis) {
    case TUI_BY_EPOCH:
        return per > 0 ? all / per : (double)m->ep + 1;
    case TUI_BY_TIME:
        return m->t - m->from + (a->is_over || !settled ? 0 : left);
    case TUI_BY_SAMPLES:
        return ba > 0 ? (double)m->sp * all / ba : 1;
    case TUI_BY_TOKENS: {
        double length = etd_model_length(m, "run/tokens");
        double done = tokens_at(m, INT64_MAX);
        return length > done && !a->is_over ? length : ba > 0 ? done * all / ba : 1;
    }
    default:
        return all;
    }
}

double
tui_axis_done(const struct tui_across *a)
{
    const struct etd_model *m = a->model;
    double per = etd_model_length(m, "run/epoch_batches");
    switch (a->axis) {
    case TUI_BY_EPOCH:
        return per > 0 ? (double)m->ba / per : (double)m->ep + 1;
    case TUI_BY_TIME:
        return m->t - m->from;
    case TUI_BY_SAMPLES:
        return (double)m->sp;
    case TUI_BY_TOKENS:
        return tokens_at(m, INT64_MAX);
    default:
        return (double)m->ba;
    }
}

/* ---- points ---- */

bool
tui_series_is_dense(const struct etd_series *s)
{
    return s->n_bins > 64 && strncmp(s->name, "lr-", 3) != 0 &&
           strncmp(s->name, "memory/", 7) != 0;
}

static const double weights[] = {0, 0.6, 0.9, 0.97, 0.99};

double
tui_series_weight(const struct etd_series *s, int smooth)
{
    return tui_series_is_dense(s) ? weights[smooth] : 0;
}

const char *
tui_smooth_name(int smooth)
{
    static const char *const names[] = {"", "ema .6", "ema .9", "ema .97", "ema .99"};
    return names[smooth];
}

enum tui_plot_kind
tui_series_kind(const struct etd_series *s, double weight)
{
    return tui_series_is_dense(s) ? (weight > 0 ? TUI_PLOT_LAST : TUI_PLOT_SPAN)
           : strncmp(s->name, "metrics/", 8) == 0 ? TUI_PLOT_POINTS
                                                  : TUI_PLOT_LAST;
}

/* Is what lies between bins A and B missing? Bins without a value have no entry; far
 * more of them than between most are a gap. */
static bool
is_gap(const struct etd_series *s, const struct etd_bin *a, const struct etd_bin *b)
{
    double usual = (double)(s->bin[s->n_bins - 1].bin - s->bin[0].bin) / s->n_bins;
    return tui_series_is_dense(s) && b->bin - a->bin > 2 + 8 * usual;
}

int
tui_series_points(const struct tui_across *a, const struct etd_series *s,
                  const struct tui_metric_look *look, struct tui_point *out)
{
    int n = 0;
    for (int i = 0; i < s->n_bins && n < ETD_BINS; i++) {
        const struct etd_bin *b = &s->bin[i];
        double x = tui_axis_place(a, b->bin);
        if (isnan(x) || (n > 0 && x < out[n - 1].x))
            continue;
        out[n++] = (struct tui_point){
            .x = x,
            .min = b->n > 0 ? b->min * look->per : NAN,
            .max = b->n > 0 ? b->max * look->per : NAN,
            .last = b->last * look->per,
            .is_apart = i > 0 && is_gap(s, &s->bin[i - 1], b),
        };
    }
    return n;
}

const struct etd_bin *
tui_series_at(const struct tui_across *a, const struct etd_series *s, double x)
{
    const struct etd_bin *best = NULL;
    double least = INFINITY;
    for (int i = 0; i < s->n_bins; i++) {
        double far = fabs(tui_axis_place(a, s->bin[i].bin) - x);
        if (s->bin[i].n > 0 && far < least) {
            least = far;
            best = &s->bin[i];
        }
    }
    return best;
}
