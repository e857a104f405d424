/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_panels.c: numbers, where a step goes, events, algorithms. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/facts.h"
#include "tui/format.h"
#include "tui/monitor.h"

enum { LINES = 62, LABEL = 10 };

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void
tui_batch_ms(const struct etd_model *m, double *mean, double *p99)
{
    double ms[ETD_TICKS], sum = 0;
    int n = 0, kept = 0;
    for (int i = 1; i < m->n_ticks; i++) {
        const struct etd_tick *a = &m->tick[(m->first_tick + i - 1) % ETD_TICKS];
        const struct etd_tick *b = &m->tick[(m->first_tick + i) % ETD_TICKS];
        if (b->ba > a->ba)
            ms[n++] = (b->t - a->t) * 1000 / (double)(b->ba - a->ba);
    }
    *mean = *p99 = NAN;
    if (n == 0)
        return;
    qsort(ms, (size_t)n, sizeof *ms, by_size);
    for (int i = 0; i < n; i++)
        if (ms[i] <= 5 * ms[n / 2]) { /* an evaluation lay between the others */
            sum += ms[i];
            kept++;
        }
    *mean = kept ? sum / kept : NAN;
    *p99 = kept ? ms[(kept * 99 - 1) / 100] : NAN;
}

double
tui_samples_per_second(const struct etd_model *m)
{
    double mean, p99;
    const struct etd_series *s = etd_model_series(m, "throughput/samples_per_sec");
    if (s)
        return s->last;
    tui_batch_ms(m, &mean, &p99);
    if (isnan(mean)) /* fewer than two */
        return NAN;
    const struct etd_tick *a = &m->tick[m->first_tick % ETD_TICKS];
    const struct etd_tick *b = &m->tick[(m->first_tick + m->n_ticks - 1) % ETD_TICKS];
    if (b->ba <= a->ba)
        return NAN;
    return (double)(b->sp - a->sp) / (double)(b->ba - a->ba) * 1000 / mean;
}

static double
last_of(const struct etd_model *m, const char *name)
{
    const struct etd_series *s = etd_model_series(m, name);
    return s ? s->last : NAN;
}

void
tui_monitor_spark(const struct tui_view *v, const struct tui_pane *p, int y, int x,
                  int w)
{
    enum { BATCHES = 8 }; /* of the newest, behind each value of a run that says none */
    const struct etd_model *m = v->model;
    const struct etd_series *s = etd_model_series(m, "throughput/samples_per_sec");
    double value[ETD_TICKS];
    int n = 0;
    if (s)
        for (int i = s->n_bins > w ? s->n_bins - w : 0; i < s->n_bins; i++)
            value[n++] = s->bin[i].last;
    for (int i = BATCHES; !s && i < m->n_ticks; i += BATCHES) {
        const struct etd_tick *a = &m->tick[(m->first_tick + i - BATCHES) % ETD_TICKS];
        const struct etd_tick *b = &m->tick[(m->first_tick + i) % ETD_TICKS];
        value[n++] = b->t > a->t ? (double)(b->sp - a->sp) / (b->t - a->t) : NAN;
    }
    tui_sparkline(p, y, x, w, value, n, tui_metric_look("throughput/").role);
}

/* A title, and a line that parts the panel from what is on its left. */
static void
put_border(const struct tui_pane *p, const char *title, bool focus)
{
    const struct tui_pane head = tui_pane_part(p, 0, 1, 1, p->w);
    tui_title(&head, 0, title, focus);
    tui_border(p, 0, 0, p->h);
}

/* ---- where the step goes ---- */

/* The parts that are known, in ms. What no part explains of a step of STEP ms is the
 * last of them, so that they sum to it; where they are more than that, their sum is the
 * step. *ALL: the step. */
static int
gather_parts(const struct etd_model *m, double step, double *ms,
             const struct etd_step_part **part, double *all)
{
    static const struct etd_step_part other = {NULL, false, "other"};
    int n = 0;
    *all = 0;
    for (const struct etd_step_part *q = etd_step_parts; q->number && n < LINES; q++) {
        double v = etd_step_median(m, q->number);
        if (isnan(v) || v < 0.0005)
            continue;
        ms[n] = v;
        part[n++] = q;
        *all += v;
    }
    if (n > 0 && step - *all > 0.005 * step) {
        ms[n] = step - *all;
        part[n++] = &other;
        *all = step;
    }
    return n;
}

double
tui_step_ms(const struct etd_model *m)
{
    double ms[LINES + 1], mean, p99, all;
    const struct etd_step_part *part[LINES + 1];
    tui_batch_ms(m, &mean, &p99);
    return gather_parts(m, mean, ms, part, &all) > 0 ? all : mean;
}

void
tui_monitor_step(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    double ms[LINES + 1], share[LINES + 1], mean, p99, all;
    int percent[LINES + 1];
    const struct etd_step_part *part[LINES + 1];
    char title[96], text[TUI_NUMBER];
    const bool bordered = p->w <= 40;
    tui_batch_ms(v->model, &mean, &p99);
    const int n = gather_parts(v->model, mean, ms, part, &all);
    snprintf(title, sizeof title, "where the step goes%s%s", n > 0 ? ", " : "",
             n > 0 ? tui_ms(all, text) : "");
    if (bordered)
        put_border(p, title, focus);
    else
        tui_title(p, 0, title, focus);
    for (int i = 0; i < n; i++)
        share[i] = ms[i] / all;
    tui_percents(share, n, percent);
    const int name = bordered ? 15 : 19, bar = name + 10;
    for (int i = 0; i < n && i + 1 < p->h; i++) {
        tui_put(p, i + 1, 2, TUI_TEXT, part[i]->name);
        tui_put_end(p, i + 1, name + 9, TUI_TEXT, tui_ms(ms[i], text));
        tui_share(p, i + 1, bar, p->w - bar - 1, share[i], percent[i],
                  part[i]->is_waiting);
    }
    if (n == 0 && p->h > 1)
        tui_put(p, 1, 2, TUI_DIM,
                tui_monitor_empty(v, v->is_over ? "it ended before any rank said it"
                                                : "ranks have not said it yet"));
}

/* ---- numbers ---- */

/* One line of them: LABEL, VALUE at the end of its column, NOTE dim behind it. */
static void
put_number_line(const struct tui_pane *p, int *y, const char *label, const char *value,
                const char *note)
{
    if (*y >= p->h)
        return;
    tui_put(p, *y, 2, TUI_DIM, label);
    tui_put_end(p, *y, LABEL + 9, TUI_TEXT, value);
    tui_put_cut(p, *y, LABEL + 11, p->w - 1, TUI_DIM, note);
    ++*y;
}

static void
put_speed(const struct tui_view *v, const struct tui_pane *p, int *y)
{
    char value[TUI_NUMBER], note[64] = "", each[TUI_NUMBER];
    const struct etd_model *m = v->model;
    double rate = tui_samples_per_second(m);
    const bool has_ranks = m->n_ranks > 1 && !isnan(rate);
    if (has_ranks)
        snprintf(note, sizeof note, "%s a %s", tui_rate(rate / m->n_ranks, each),
                 tui_run_has_gpu(m) ? "GPU" : "rank");
    put_number_line(p, y, "samples/s", tui_rate(rate, value), note);
    if (!has_ranks && *y <= p->h && p->w >= LABEL + 22)
        tui_monitor_spark(v, p, *y - 1, LABEL + 11, 10);
    double tokens = last_of(m, "throughput/tokens_per_sec");
    if (!isnan(tokens))
        put_number_line(p, y, "tokens/s", tui_rate(tokens, value), "");
}

/* The most that any rank has, of what its device or machine has. */
static void
put_memory(const struct tui_view *v, const struct tui_pane *p, int *y)
{
    char value[TUI_NUMBER], note[64] = "", all_text[TUI_NUMBER];
    const bool has_gpu = tui_run_has_gpu(v->model);
    double used = NAN, all = NAN;
    for (int i = 0; i < v->model->n_ranks; i++) {
        const struct etd_part *r = &v->model->rank[i];
        used = fmax(used, etd_part_get(r, has_gpu ? "mem_gb" : "rss_gb"));
        all = fmax(all, etd_part_get(r, has_gpu ? "mem_total_gb" : "ram_total_gb"));
    }
    if (isnan(used))
        return;
    if (!isnan(all))
        snprintf(note, sizeof note, "of %s%s", tui_bytes(all * 1e9, all_text),
                 used > 0.85 * all ? " !" : "");
    put_number_line(p, y, "memory", tui_bytes(used * 1e9, value), note);
}

static void
put_waiting(const struct tui_view *v, const struct tui_pane *p, int y)
{
    char a[TUI_NUMBER];
    if (v->m->slowest < 0 || y >= p->h || v->is_over)
        return;
    const struct tui_rank *r = &v->m->rank[v->m->slowest];
    double lost = r->own_ms - v->m->median_ms, step = tui_step_ms(v->model);
    tui_putf(p, y, 2, TUI_WARN, "! waits for rank %d %s %.0f%%", r->number,
             tui_ms(lost, a), 100 * lost / (step > 0 ? step : r->own_ms));
}

void
tui_monitor_numbers(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    const struct etd_model *m = v->model;
    double mean, p99, mfu = last_of(m, "throughput/device/mfu");
    double flops = last_of(m, "throughput/device/flops_per_sec");
    char a[TUI_NUMBER], b[TUI_NUMBER], note[64] = "";
    int y = 1;
    put_border(p, v->is_over ? "at the end" : "now", focus);
    tui_batch_ms(m, &mean, &p99);
    /* The mean of the batches that p99 is of. (The parts of a step that ranks report
     * may be of other batches, and of more.) */
    const double step = isnan(mean) ? tui_step_ms(m) : mean;
    if (p99 >= step) /* it is not where a few of many took very long */
        snprintf(note, sizeof note, "p99 %s", tui_ms(p99, b));
    put_number_line(p, &y, "step", tui_ms(step, a), note);
    put_speed(v, p, &y);
    const struct etd_series *lr = etd_model_series_like(m, "lr-");
    const struct etd_series *norm = etd_model_series(m, "l2_norm/grad/global");
    put_number_line(p, &y, "lr", lr ? tui_value(lr->last, a) : "-", "");
    if (norm)
        put_number_line(p, &y, "grad", tui_value(norm->last, a), "norm");
    put_memory(v, p, &y);
    note[0] = '\0';
    if (mfu > 0 && !isnan(flops))
        snprintf(note, sizeof note, "of %.0f TF", flops / mfu / 1e12);
    snprintf(a, sizeof a, "%.1f%%", mfu * 100);
    if (!isnan(mfu))
        put_number_line(p, &y, "MFU", a, note);
    put_waiting(v, p, y);
}

/* ---- events ---- */

static const char *
word_of(const struct etd_event *e)
{
    switch (e->kind) {
    case ET_RECORD_LOG:
        return et_log_level_name(e->level);
    case ET_RECORD_CHECKPOINT:
        return "ckpt";
    case ET_RECORD_ANNOTATION:
        return "note";
    case ET_RECORD_RUN:
        return "state";
    case ET_RECORD_COMMAND:
        return "cmd";
    default:
        return et_record_name(e->kind);
    }
}

static bool
has_word(void *data, const char *word)
{
    const struct etd_event *e = data;
    return strcasestr(e->text, word) || strcasestr(word_of(e), word);
}

static const char *
value(void *data, const char *key)
{
    static char text[TUI_NUMBER]; /* the filter asks for one value at a time */
    const struct etd_event *e = data;
    if (strcmp(key, "text") == 0)
        return e->text;
    if (strcmp(key, "kind") == 0)
        return et_record_name(e->kind);
    if (strcmp(key, "level") == 0)
        return et_log_level_name(e->level);
    if (strcmp(key, "rank") == 0)
        snprintf(text, sizeof text, "%d", e->rank);
    else if (strcmp(key, "ba") == 0)
        snprintf(text, sizeof text, "%" PRId64, e->ba);
    else
        return NULL;
    return text;
}

bool
tui_event_passes(const struct tui_monitor *m, const struct etd_event *e)
{
    static const char *const usual[] = {"running", "evaluating", "checkpointing"};
    const struct eti_subject subject = {(void *)e, has_word, value};
    if (m->sieve.filter)
        return tui_sieve_passes(&m->sieve, &subject);
    if (e->kind == ET_RECORD_CHECKPOINT && strncmp(e->text, "begun", 5) == 0)
        return false; /* that it was saved, or not, comes next */
    for (size_t i = 0; e->kind == ET_RECORD_RUN && i < 3; i++)
        if (strcmp(e->text, usual[i]) == 0)
            return false; /* evaluations and checkpoints say it themselves */
    return true;
}

static enum tui_role
event_role(const struct etd_event *e)
{
    bool by_people = e->kind == ET_RECORD_ANNOTATION || e->kind == ET_RECORD_COMMAND;
    return e->level < ET_LOG_WARN && by_people ? TUI_TITLE
                                               : tui_level_role((int)e->level);
}

static void
put_event(const struct tui_view *v, const struct tui_pane *p, int y,
          const struct etd_event *e, bool selected)
{
    char clock[TUI_NUMBER];
    bool wide = p->w >= 120;
    int x = 1 + tui_put(p, y, 1, TUI_DIM, tui_clock(e->t, wide ? 5 : 2, clock)) + 1;
    const int word = tui_put(p, y, x, event_role(e), word_of(e)) + 1;
    x += wide ? 7 : word > 6 ? word : 6; /* "resume" is the longest */
    if (v->model->n_ranks > 1 && e->rank > 0)
        x += tui_putf(p, y, x, TUI_DIM, "rank %d  ", e->rank);
    char text[sizeof e->text];
    const char *said = tui_level_text((int)e->level, e->text);
    tui_put_cut(p, y, x, p->w, event_role(e),
                e->kind == ET_RECORD_EVAL ? tui_without_zeros(said, text, sizeof text)
                                          : said);
    if (selected)
        tui_select(p, y, true);
}

void
tui_monitor_events(const struct tui_view *v, const struct tui_pane *whole, bool focus)
{
    struct tui_monitor *m = v->m;
    int shown[ETD_EVENTS], n = 0;
    char title[TUI_FIELD + 64];
    const bool bordered = whole->x > 0; /* ranks are on its left */
    const struct tui_pane in = tui_pane_part(whole, 0, bordered, whole->h, whole->w);
    const struct tui_pane *p = &in;
    for (int i = v->model->n_events - 1; i >= 0; i--)
        if (tui_event_passes(m, etd_model_event(v->model, i)))
            shown[n++] = i;
    if (*m->sieve.text)
        snprintf(title, sizeof title, "events / %s", m->sieve.text);
    else
        snprintf(title, sizeof title, "%s",
                 p->w >= 120 ? "events (all ranks)     / filter   l jump to log"
                             : "events");
    tui_title(p, 0, title, focus);
    if (bordered) {
        tui_border(whole, 0, 0, whole->h);
    }
    tui_list_show(&m->events, n, p->h - 1);
    for (int y = 0; y < p->h - 1 && m->events.top + y < n; y++)
        put_event(v, p, y + 1, etd_model_event(v->model, shown[m->events.top + y]),
                  focus && m->events.top + y == m->events.at);
    if (n == 0 && p->h > 1)
        tui_put(p, 1, 1, TUI_DIM,
                tui_monitor_empty(v, *m->sieve.text
                                         ? "no event passes the filter; esc clears it"
                                         : "nothing has happened yet"));
}

/* ---- algorithms ---- */

const struct etd_part *
tui_algorithm_said(const struct etd_model *m, const char *name)
{
    for (int i = 0; i < m->n_algorithms; i++)
        if (strcmp(m->algorithm[i].name, name) == 0)
            return &m->algorithm[i];
    return NULL;
}

static void
put_algorithm(const struct tui_pane *p, int y, const char *name,
              const struct etd_part *said)
{
    char a[TUI_NUMBER], b[TUI_NUMBER];
    if (!said) {
        tui_put(p, y, 2, TUI_TEXT, name);
        tui_put(p, y, 24, TUI_DIM, "on");
        return;
    }
    double applied = etd_part_get(said, "applied"), ms = etd_part_get(said, "ms");
    enum tui_role role = applied > 0 ? TUI_TEXT : TUI_DIM; /* it has never acted */
    tui_put(p, y, 2, role, name);
    bool off = etd_part_get(said, "off") > 0;
    int x = 24 + tui_putf(p, y, 24, role, "%sapplied %s of %s", off ? "off, " : "",
                          tui_count((int64_t)applied, a),
                          tui_count((int64_t)etd_part_get(said, "fired"), b));
    if (!isnan(ms))
        tui_putf(p, y, x + 3, TUI_DIM, "%s/step", tui_ms(ms, a));
}

void
tui_monitor_algorithms(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    const json_t *names = json_object_get(v->facts, "algorithms");
    size_t n = json_array_size(names);
    tui_title(p, 0, "algorithms now", focus);
    for (size_t i = 0; i < n && (int)i + 1 < p->h; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if ((int)i + 2 == p->h && i + 1 < n)
            tui_putf(p, p->h - 1, 2, TUI_DIM, "and %zu more", n - i);
        else if (name)
            put_algorithm(p, (int)i + 1, name, tui_algorithm_said(v->model, name));
    }
    if (n == 0 && p->h > 1)
        tui_put(p, 1, 2, TUI_DIM, "none");
}
