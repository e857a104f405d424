/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_bars.c: how far the run, its epoch and its evaluation are. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/library/facts.h"
#include "etude/time.h"
#include "tui/format.h"
#include "tui/monitor.h"

enum { WIDE = 180, BAR_X = 6, PERCENT = 6 };

/* ---- total and epoch ---- */

/* Where things stand behind a bar that begins at BAR_X. */
struct columns {
    int bar, first, second, third, end;
};

static struct columns
columns_of(int w)
{
    struct columns c = {.end = w - 1};
    c.bar = w >= WIDE ? w - 54 : w >= 100 ? w - 48 : w >= 60 ? w - 32 : w - 12;
    c.first = BAR_X + c.bar + PERCENT;
    if (w >= 100) {
        c.second = c.first + 10;
        c.third = c.second + 19;
    } else if (w >= 60) {
        c.second = c.first + 9;
    }
    return c;
}

static void
put_bar(const struct tui_view *v, const struct tui_pane *p, int y, const char *name,
        double done, int width)
{
    char percent[8];
    const int gap = p->grid->glyphs->is_ascii; /* its ends are cells with a sign */
    tui_put(p, y, 1, TUI_DIM, name);
    tui_bar(p, y, BAR_X + gap, width - 2 * gap, done, tui_app_phase(v->app));
    if (isnan(done))
        return;
    snprintf(percent, sizeof percent, "%3d%%", (int)(fmin(done, 1) * 100 + 1e-9));
    tui_put(p, y, BAR_X + width, TUI_TEXT, percent);
}

/* How long the run is to be in the unit it was given in. */
static const struct {
    const char *number, *unit;
} lengths[] = {
    {"run/epochs", "ep"}, {"run/samples", "sp"}, {"run/tokens", "tok"},
    {"run/seconds", "s"}, {"run/batches", "ba"},
};

/* Finished epochs, those of the one under way as a part of it where that is known. */
static double
epochs_done(const struct etd_model *m)
{
    double all = etd_model_length(m, "run/epoch_batches");
    double in = (double)(m->ba - m->epoch_ba);
    return (double)m->ep + (all > 0 && in > 0 ? fmin(0.999, in / all) : 0);
}

const char *
tui_length_text(const struct etd_model *m, char buf[64], bool *by_batches)
{
    char a[TUI_NUMBER], b[TUI_NUMBER];
    *by_batches = false;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        double all = etd_model_length(m, lengths[i].number);
        if (isnan(all))
            continue;
        double ep = epochs_done(m);
        double at[] = {ep, (double)m->sp, NAN, m->train_s, (double)m->ba};
        *by_batches = i == 4;
        if (i == 0) /* never rounded up: 0.99 of an epoch is no epoch */
            snprintf(buf, 64, "%.1f/%.6gep", floor(ep * 10 + 1e-6) / 10, all);
        else if (i == 4)
            snprintf(buf, 64, "%s/%sba", tui_count(m->ba, a),
                     tui_count((int64_t)all, b));
        else
            snprintf(buf, 64, "%s/%s%s", tui_scaled(at[i], a), tui_scaled(all, b),
                     lengths[i].unit);
        return buf;
    }
    *by_batches = true;
    snprintf(buf, 64, "%sba", tui_count(m->ba, a));
    return buf;
}

static void
put_total(const struct tui_view *v, const struct tui_pane *p, int y,
          const struct columns *c)
{
    const struct etd_model *m = v->model;
    char text[64], a[TUI_NUMBER], b[TUI_NUMBER];
    double batches = etd_model_length(m, "run/batches");
    bool by_batches;
    put_bar(v, p, y, "total", etd_model_done(m), c->bar);
    if (c->first >= p->w)
        return;
    int end = c->first +
              tui_put(p, y, c->first, TUI_TEXT, tui_length_text(m, text, &by_batches));
    if (by_batches || !c->second)
        return;
    if (c->third && !isnan(batches))
        snprintf(text, sizeof text, "%s/%sba", tui_count(m->ba, a),
                 tui_count((int64_t)batches, b));
    else
        snprintf(text, sizeof text, "%sba", tui_count(m->ba, a));
    if (c->second > end)
        end = c->second + tui_put(p, y, c->second, TUI_TEXT, text);
    if (c->third) {
        snprintf(text, sizeof text, "%s %s", tui_scaled((double)m->sp, a),
                 p->w >= WIDE ? "samples" : "sp");
        tui_put_right(p, y, end + 1, c->end, TUI_DIM, text);
    }
}

static void
put_epoch(const struct tui_view *v, const struct tui_pane *p, int y, int bar)
{
    const struct etd_model *m = v->model;
    char a[TUI_NUMBER], b[TUI_NUMBER];
    double all = etd_model_length(m, "run/epoch_batches");
    int64_t in = m->ba - m->epoch_ba;
    if (all > 0 && v->is_over && in == 0 && m->ba > 0)
        in = (int64_t)all; /* the last one is done, and no other begins */
    put_bar(v, p, y, "epoch", all > 0 ? (double)in / all : v->is_over ? 0 : NAN, bar);
    if (all > 0)
        tui_putf(p, y, BAR_X + bar + PERCENT, TUI_TEXT, "%s/%sba", tui_count(in, a),
                 tui_count((int64_t)all, b));
    else
        tui_putf(p, y, BAR_X + bar + PERCENT, TUI_TEXT, "%sba", tui_count(in, a));
}

/* ---- evaluation ---- */

const char *
tui_next_evaluation(const struct tui_view *v, char buf[64])
{
    char text[ETI_FACT_TEXT], count[TUI_NUMBER];
    const struct etd_model *m = v->model;
    struct et_time every;
    const char *given = eti_facts_get(v->facts, "eval_interval", text);
    buf[0] = '\0';
    if (!given || !*given)
        given = "1ep";
    if (et_time_parse(NULL, given, &every) != ET_OK || !(every.value >= 1))
        return buf;
    double at = every.unit == ET_TIME_EPOCH ? (double)m->ep : (double)m->ba;
    double per = etd_model_length(m, "run/epoch_batches"), mean, p99;
    at = (floor(at / every.value) + 1) * every.value;
    double batches = every.unit == ET_TIME_EPOCH ? at * per : at;
    if (every.unit != ET_TIME_EPOCH && every.unit != ET_TIME_BATCH)
        return buf;
    int n = snprintf(buf, 64, every.unit == ET_TIME_EPOCH ? "at %sep" : "at %sba",
                     tui_count((int64_t)at, count));
    tui_batch_ms(m, &mean, &p99);
    double left = (batches - (double)m->ba) * mean / 1000;
    if (left > 0 && strcmp(tui_run_state(v), "paused") != 0)
        snprintf(buf + n, (size_t)(64 - n), ", in %s", tui_duration(left, count));
    return buf;
}

const struct etd_series *
tui_evaluated(const struct etd_model *m, const char *label, int which)
{
    size_t n = label ? strlen(label) : 0;
    const struct etd_series *first = NULL;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < m->n_series; i++) {
            const struct etd_series *s = &m->series[i];
            const char *last = strrchr(s->name, '/');
            if (strncmp(s->name, "metrics/", 8) != 0 ||
                strncmp(s->name, "metrics/train/", 14) == 0 || s->n == 0 ||
                (label &&
                 (strncmp(s->name + 8, label, n) != 0 || s->name[8 + n] != '/')))
                continue;
            bool main = last && strstr(last, "Accuracy");
            if (main == (pass == 0) && which-- == 0)
                first = s;
        }
    return first;
}

const char *
tui_main_evaluator(const struct etd_model *m)
{
    const struct etd_series *s = tui_evaluated(m, NULL, 0);
    for (int i = 0; i < m->n_evals && s; i++) {
        size_t n = strlen(m->eval[i].label);
        if (strncmp(s->name + 8, m->eval[i].label, n) == 0 && s->name[8 + n] == '/')
            return m->eval[i].label;
    }
    return NULL;
}

/* "last ep6: accuracy .7212  ce 1.1022", of the evaluator LABEL, NULL: of any. Returns
 * where it ends, X where there is nothing. */
static int
put_last(const struct tui_view *v, const struct tui_pane *p, int y, int x,
         const char *said, const char *evaluator)
{
    char label[ET_METRIC_NAME], a[TUI_NUMBER], place[TUI_NUMBER];
    double per = etd_model_length(v->model, "run/epoch_batches");
    const struct etd_series *s = tui_evaluated(v->model, evaluator, 0);
    if (!s)
        return x;
    x += tui_putf(p, y, x, TUI_DIM, "%s %s:", said,
                  tui_place_text(s->last_ba, per, place));
    for (int i = 0; i < 2 && (s = tui_evaluated(v->model, evaluator, i)); i++) {
        char text[ET_METRIC_NAME + TUI_NUMBER + 4];
        int n = snprintf(text, sizeof text, "%s%s %s", i ? "  " : " ",
                         tui_metric_label(s->name, label), tui_value(s->last, a));
        if (x + n >= p->w)
            break;
        x += tui_put(p, y, x, TUI_TEXT, text);
    }
    return x;
}

/* The evaluator that runs: they do so one after the other, in their order. */
static const struct etd_eval *
running_evaluator(const struct tui_view *v)
{
    const struct etd_model *m = v->model;
    const struct etd_eval *running = NULL;
    for (int i = 0; i < m->n_evals && !v->is_over; i++)
        if (m->eval[i].running)
            running = &m->eval[i];
    return running;
}

static void
put_running(const struct tui_view *v, const struct tui_pane *p, int y,
            const struct columns *c, const struct etd_eval *running)
{
    char a[TUI_NUMBER], b[TUI_NUMBER];
    double all = running->batches > 0 ? running->batches : NAN;
    put_bar(v, p, y, "eval", running->batch / all, c->bar);
    if (c->first >= p->w)
        return;
    int x =
        c->first + tui_putf(p, y, c->first, TUI_TEXT, isnan(all) ? "%s%sba" : "%s/%sba",
                            isnan(all) ? "" : tui_count((int64_t)running->batch, a),
                            tui_count((int64_t)(isnan(all) ? running->batch : all), b));
    if (strcmp(running->label, "eval") != 0) /* that stands before the bar */
        tui_put_right(p, y, x + 1, c->end, TUI_DIM, running->label);
}

/* From column X on: when the next one is, what the last one was, and the best. */
static void
put_evaluation(const struct tui_view *v, const struct tui_pane *p, int y, int x)
{
    char text[96], label[ET_METRIC_NAME], a[TUI_NUMBER], place[TUI_NUMBER];
    const struct etd_model *m = v->model;
    const struct etd_series *s = tui_evaluated(m, NULL, 0);
    double per = etd_model_length(m, "run/epoch_batches");
    if (v->is_over && !s)
        return;
    tui_put(p, y, x, TUI_DIM, "eval");
    x += 6;
    if (!v->is_over) {
        tui_next_evaluation(v, text);
        char next[112];
        snprintf(next, sizeof next, "next %s", text);
        char *in = strstr(next, ", in ");
        if (x + tui_width(next) > p->w && in)
            *in = '\0'; /* when it is, without how long that takes */
        x += 3 + tui_put(p, y, x, TUI_TEXT, *text ? next : s ? "" : "none yet");
    }
    if (!s || isnan(s->best))
        return;
    tui_metric_label(s->name, label);
    snprintf(text, sizeof text, "best %.24s %s at %s", label, tui_value(s->best, a),
             tui_place_text(s->best_ba, per, place));
    const int end = p->w - 1 - tui_width(text);
    if (end - x >= 44)
        put_last(v, p, y, x, "last", tui_main_evaluator(m));
    tui_put_right(p, y, x, p->w - 1, TUI_TEXT, text);
}

/* Those that do not run, and what each came to last: all on one line. */
static void
put_idle(const struct tui_view *v, const struct tui_pane *p, int y)
{
    enum { LEAST = 40 }; /* columns of one */
    const struct etd_model *m = v->model;
    const struct etd_eval *running = running_evaluator(v);
    const char *shown = running ? running->label : tui_main_evaluator(m);
    int x = BAR_X + 1;
    tui_put(p, y, 1, TUI_DIM, "idle");
    for (int i = 0, left = m->n_evals - 1; i < m->n_evals; i++) {
        const char *label = m->eval[i].label;
        if (shown && strcmp(label, shown) == 0)
            continue;
        if (x + LEAST > p->w - 1 && left > 1) {
            tui_putf(p, y, x, TUI_DIM, "and %d more", left);
            return;
        }
        int end = put_last(v, p, y, x, label, label);
        x = end > x ? end + 4
                    : x + 4 + tui_putf(p, y, x, TUI_DIM, "%s: not yet", label);
        left--;
    }
}

int
tui_monitor_n_bars(const struct etd_model *model, int rows, int cols)
{
    switch (tui_size_of(rows, cols)) {
    case TUI_TINY:
        return 1;
    case TUI_FULL:
        return 3 + (model && model->n_evals > 1);
    default:
        return 2;
    }
}

/* Epoch and evaluation share a line, but for the largest screens; one that runs has it
 * for itself. Of a run that has ended only the evaluations are left. */
void
tui_monitor_bars(const struct tui_view *v, const struct tui_pane *p)
{
    const struct columns c = columns_of(p->w);
    const struct etd_eval *running = running_evaluator(v);
    const bool is_full = p->h > 2;
    put_total(v, p, 0, &c);
    if (p->h < 2)
        return;
    if (is_full || (!running && !v->is_over))
        put_epoch(v, p, 1, is_full ? c.bar : c.bar * 2 / 5);
    const int y = is_full ? 2 : 1;
    if (running)
        put_running(v, p, y, &c, running);
    else
        put_evaluation(
            v, p, y, is_full || v->is_over ? 1 : BAR_X + c.bar * 2 / 5 + PERCENT + 15);
    if (p->h > 3)
        put_idle(v, p, 3);
}
