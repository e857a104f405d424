/* monitor_panels.c: numbers, where a step goes, events, algorithms. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/facts.h"
#include "tui/format.h"
#include "tui/monitor.h"

enum { LINES = 64, LABEL = 12 };

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

/* Samples a second: what a callback measured, else what batches took. */
static double
samples_per_second(const struct etd_model *m)
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

/* A title, and a line that parts the panel from what is on its left. */
static void
put_border(const struct tui_pane *p, const char *title, bool focus)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    const struct tui_pane head = tui_pane_part(p, 0, 1, 1, p->w);
    tui_title(&head, 0, title, focus);
    tui_put_ch(p, 0, 0, g->tee, TUI_DIM, 0);
    for (int y = 1; y < p->h; y++)
        tui_put_ch(p, y, 0, g->down, TUI_DIM, 0);
}

/* ---- where a step goes ---- */

/* The parts that are known, in ms; what no part explains is not shown. */
static int
gather_parts(const struct etd_model *m, double *ms, const struct tui_step_part **part)
{
    int n = 0;
    for (const struct tui_step_part *q = tui_step_parts; q->number && n < LINES; q++) {
        double v = tui_part_median(m, q->number);
        if (isnan(v) || v < 0.0005)
            continue;
        ms[n] = v;
        part[n++] = q;
    }
    return n;
}

/* "DFFFFFFFFBBB": letters, as many of W as their part is. */
static void
put_letters(const struct tui_pane *p, int y, int x, int w, const double *ms,
            const struct tui_step_part *const *part, int n)
{
    static const enum tui_role roles[] = {TUI_S1, TUI_S2, TUI_S3, TUI_S4, TUI_S6};
    double all = 0, at = 0;
    int column = 0;
    for (int i = 0; i < n; i++)
        all += ms[i];
    for (int i = 0; i < n && all > 0; i++) {
        at += ms[i];
        int end = (int)lround(at / all * w);
        tui_fill(p, y, x + column, end - column, (unsigned char)part[i]->letter,
                 part[i]->letter == 'W' ? TUI_WARN : roles[i % 5]);
        column = end > column ? end : column;
    }
}

static void
put_legend(const struct tui_pane *p, int y, const struct tui_step_part *const *part,
           int n)
{
    int x = 2;
    for (int i = 0; i < n; i++) {
        char text[24];
        snprintf(text, sizeof text, "%c %s ", part[i]->letter, part[i]->brief);
        if (x + tui_width(text) > p->w)
            return;
        x += tui_put(p, y, x, TUI_DIM, text);
    }
}

void
tui_monitor_step(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    double ms[LINES], mean, p99, all = 0, mfu;
    const struct tui_step_part *part[LINES];
    char title[96], text[TUI_NUMBER];
    int n = gather_parts(v->model, ms, part), y = 1;
    bool bordered = p->w <= 40;
    tui_batch_ms(v->model, &mean, &p99);
    snprintf(title, sizeof title, "where the step goes (%s%s)", tui_ms(mean, text),
             bordered ? "" : ", medians");
    if (bordered)
        put_border(p, title, focus);
    else
        tui_title(p, 0, title, focus);
    for (int i = 0; i < n; i++)
        all += ms[i];
    const int name = bordered ? 16 : 18, bar = name + 11;
    for (int i = 0; i < n && y < p->h; i++, y++) {
        snprintf(text, sizeof text, "%.1f ms", ms[i]);
        tui_put(p, y, 2, TUI_TEXT, part[i]->name);
        tui_put_end(p, y, name + 10, TUI_TEXT, text);
        int w = p->w - bar - 2, full = all > 0 ? (int)lround(ms[i] / all * w) : 0;
        tui_fill(p, y, bar, full > 0 ? full : 1,
                 v->app->config.glyphs->is_ascii ? '#' : 0x2588,
                 part[i]->letter == 'W' ? TUI_WARN : TUI_BAR);
    }
    if (n == 0 && p->h > 1)
        tui_put(p, y++, 2, TUI_DIM, tui_monitor_empty(v, "ranks have not said it yet"));
    mfu = last_of(v->model, "throughput/device/mfu");
    if (!bordered && y < p->h && !isnan(mfu))
        tui_putf(p, p->h - 1, 2, TUI_TEXT, "MFU %.1f%%   tokens/s %s", mfu * 100,
                 tui_value(last_of(v->model, "throughput/tokens_per_sec"), text));
}

/* ---- numbers ---- */

static void
put_samples(const struct tui_view *v, const struct tui_pane *p, int y)
{
    char a[TUI_NUMBER], b[TUI_NUMBER];
    const int ranks = v->model->n_ranks;
    double rate = samples_per_second(v->model);
    int x = LABEL + 2;
    tui_put(p, y, 2, TUI_TEXT, "samples/s");
    x += tui_put(p, y, x, TUI_TEXT, tui_value(rate, a));
    if (ranks > 1 && !isnan(rate))
        tui_putf(p, y, x + 2, TUI_DIM, "(%s/%s)", tui_count((int64_t)(rate / ranks), b),
                 tui_run_has_gpu(v->model) ? "gpu" : "rank");
}

static void
put_mfu(const struct tui_view *v, const struct tui_pane *p, int y)
{
    char a[TUI_NUMBER];
    double mfu = last_of(v->model, "throughput/device/mfu");
    double flops = last_of(v->model, "throughput/device/flops_per_sec");
    tui_put(p, y, 2, TUI_TEXT, "MFU");
    if (isnan(mfu)) {
        tui_put_end(p, y, 20, TUI_TEXT, "-");
        return;
    }
    snprintf(a, sizeof a, "%.1f%%", mfu * 100);
    tui_put_end(p, y, 20, TUI_TEXT, a);
    if (mfu > 0 && !isnan(flops))
        tui_putf(p, y, 22, TUI_DIM, "of %.0f TF", flops / mfu / 1e12);
}

static void
put_waiting(const struct tui_view *v, const struct tui_pane *p, int y)
{
    double mean, p99;
    char a[TUI_NUMBER];
    if (v->m->slowest < 0)
        return;
    const struct tui_rank *r = &v->m->rank[v->m->slowest];
    double lost = r->own_ms - v->m->median_ms;
    tui_batch_ms(v->model, &mean, &p99);
    tui_putf(p, y, 2, TUI_WARN, "waiting for rank %d   %s %.0f%%", r->number,
             tui_ms(lost, a), 100 * lost / (mean > 0 ? mean : r->own_ms));
}

void
tui_monitor_numbers(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    const struct etd_model *m = v->model;
    double ms[LINES], mean, p99;
    const struct tui_step_part *part[LINES];
    char a[TUI_NUMBER], b[TUI_NUMBER];
    int n = gather_parts(m, ms, part);
    put_border(p, "throughput", focus);
    put_samples(v, p, 1);
    tui_put(p, 2, 2, TUI_TEXT, "tokens/s");
    tui_put_end(p, 2, 20, TUI_TEXT,
                tui_value(last_of(m, "throughput/tokens_per_sec"), a));
    put_mfu(v, p, 3);
    tui_batch_ms(m, &mean, &p99);
    tui_put(p, 4, 2, TUI_TEXT, "step");
    tui_put_end(p, 4, 20, TUI_TEXT, tui_ms(mean, a));
    tui_putf(p, 4, 22, TUI_DIM, "p99 %s", tui_ms(p99, b));
    put_legend(p, 5, part, n);
    put_letters(p, 6, 2, p->w - 4, ms, part, n);
    const struct etd_series *lr = etd_model_series_like(m, "lr-");
    const struct etd_series *norm = etd_model_series(m, "l2_norm/grad/global");
    int x = 2 + tui_putf(p, 7, 2, TUI_TEXT, "lr %s", lr ? tui_value(lr->last, a) : "-");
    if (norm)
        tui_putf(p, 7, x + 3, TUI_TEXT, "grad_norm %.3g", norm->last);
    put_waiting(v, p, 8);
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
    tui_put(p, y, x, event_role(e), word_of(e));
    x += wide ? 7 : 6;
    if (v->model->n_ranks > 1 && e->rank > 0)
        x += tui_putf(p, y, x, TUI_DIM, "rank %d  ", e->rank);
    tui_put(p, y, x, event_role(e), tui_level_text((int)e->level, e->text));
    if (selected)
        tui_put_ch(p, y, 0, p->grid->glyphs->selected, TUI_FOCUS, 0);
}

void
tui_monitor_events(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    struct tui_monitor *m = v->m;
    int shown[ETD_EVENTS], n = 0;
    char title[TUI_FIELD + 64];
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

static const struct etd_part *
said_of(const struct etd_model *m, const char *name)
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
    int x = 24 + tui_putf(p, y, 24, role, "applied %s of %s",
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
            put_algorithm(p, (int)i + 1, name, said_of(v->model, name));
    }
    if (n == 0 && p->h > 1)
        tui_put(p, 1, 2, TUI_DIM, "none");
}
