/* monitor_bars.c: the line about the run, and its bars. */
#include "config.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/seams.h"
#include "core/run/facts.h"
#include "etude/time.h"
#include "tui/format.h"
#include "tui/monitor.h"

enum { WIDE = 180, BAR_X = 7 };

const char *
tui_run_state(const struct tui_view *v)
{
    const char *said = json_string_value(json_object_get(v->facts, "state"));
    if (v->is_over && said && !v->app->config.is_dump)
        return said;
    return *v->model->state ? v->model->state : said ? said : "starting";
}

const char *
tui_monitor_empty(const struct tui_view *v, const char *why)
{
    const struct tui_source *s = v->app->source;
    if (tui_source_is_loading(s) && !v->app->config.is_dump)
        return "the history is being read";
    return s->link == TUI_LINK_CONNECTING ? "nobody has answered yet" : why;
}

/* ---- the line about the run ---- */

static const char *
fact(const struct tui_view *v, const char *key, char buf[ETI_FACT_TEXT])
{
    const char *text = eti_facts_get(v->facts, key, buf);
    return text ? text : "";
}

/* The recipe's file without folder and ending. */
static const char *
recipe_name(const struct tui_view *v, char buf[ETI_FACT_TEXT])
{
    char text[ETI_FACT_TEXT];
    const char *path = fact(v, "recipe", text), *slash = strrchr(path, '/');
    snprintf(buf, ETI_FACT_TEXT, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(buf, '.');
    if (dot && dot != buf && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0))
        *dot = '\0';
    const char *model = *buf ? "" : fact(v, "model", text);
    if (!*buf)
        snprintf(buf, ETI_FACT_TEXT, "%s", *model ? model : "run");
    return buf;
}

static enum tui_role
state_role(const char *state)
{
    static const char *const good[] = {"running", "evaluating", "checkpointing",
                                       "finished", "reached-target"};
    static const char *const bad[] = {"failed", "diverged", "oom",
                                      "hung",   "crashed",  "killed"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (strcmp(state, good[i]) == 0)
            return TUI_GOOD;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (strcmp(state, bad[i]) == 0)
            return TUI_BAD;
    return TUI_WARN;
}

static int
put_state(const struct tui_view *v, const struct tui_pane *p, int x)
{
    char text[32], elapsed[TUI_NUMBER];
    const char *state = tui_run_state(v);
    size_t i = 0;
    for (; state[i] && i < sizeof text - 1; i++)
        text[i] = (char)toupper((unsigned char)state[i]);
    text[i] = '\0';
    double ended = json_number_value(json_object_get(v->facts, "ended"));
    double end = v->is_over
                     ? (ended > 0 && !v->app->config.is_dump ? ended : v->model->t)
                     : v->now;
    x += tui_put(p, 0, x, state_role(state), text) + 1;
    return x + tui_put(p, 0, x, TUI_TEXT, tui_elapsed(end - v->model->from, elapsed));
}

/* What the right end says of the way to the run. */
static enum tui_role
link_text(const struct tui_view *v, char *buf, size_t size)
{
    const struct tui_source *s = v->app->source;
    char live[8], a[TUI_NUMBER];
    double since = tui_now(v->app) - s->heard;
    live[tui_utf8(v->app->config.glyphs->live, live)] = '\0';
    if (*s->problem) {
        snprintf(buf, size, "x damaged");
        return TUI_BAD;
    }
    if (v->app->is_frozen) {
        snprintf(buf, size, "frozen (space goes on)");
        return TUI_WARN;
    }
    /* Of a record's moment, not of this one: it had ended by then, or it was live. */
    const enum tui_link link = !v->app->config.is_dump ? s->link
                               : v->is_over            ? TUI_LINK_ENDED
                                                       : TUI_LINK_LIVE;
    switch (link) {
    case TUI_LINK_CONNECTING:
        snprintf(buf, size, "connecting, %.0fs", since);
        return TUI_WARN;
    case TUI_LINK_STALE:
        snprintf(buf, size, "stale %.0fs%s%s", since, s->why ? ": " : "",
                 s->why ? s->why : "");
        return TUI_STALE;
    case TUI_LINK_LOST:
        snprintf(buf, size, "disconnected, retry %.0fs (R now)",
                 fmax(0, s->retry - tui_now(v->app)));
        return TUI_BAD;
    case TUI_LINK_ENDED:
        snprintf(buf, size, "ended");
        return TUI_DIM;
    default:
        if (!isnan(s->rtt_ms) && v->app->grid.cols >= WIDE)
            snprintf(buf, size, "%s live  rtt %s", live, tui_ms(s->rtt_ms, a));
        else
            snprintf(buf, size, "%s live", live);
        return TUI_GOOD;
    }
}

/* "history [====>     ] 41% of 1.2 MB": while it comes in. */
static bool
put_history(const struct tui_view *v, const struct tui_pane *p)
{
    int64_t done, all;
    char size[TUI_NUMBER], text[64];
    v->app->source->class->progress(v->app->source, &done, &all);
    if (!tui_source_is_loading(v->app->source) || v->app->is_frozen ||
        v->app->config.is_dump)
        return false;
    snprintf(text, sizeof text, "%3.0f%% of %s", 100.0 * (double)done / (double)all,
             tui_bytes((double)all, size));
    int x = tui_put_end(p, 0, p->w - 1, TUI_TEXT, text) - 13;
    tui_bar(p, 0, x, 12, (double)done / (double)all, v->app->phase);
    tui_put(p, 0, x - 8, TUI_DIM, "history");
    return true;
}

/* Epochs in BA batches, PER each, to two places. */
static double
epochs(int64_t ba, double per)
{
    return round(100 * (double)ba / per) / 100;
}

/* The newest checkpoint: "ckpt ep6 24s ago". */
static int
put_checkpoint(const struct tui_view *v, const struct tui_pane *p, int x)
{
    char age[TUI_NUMBER], place[TUI_NUMBER];
    double per = etd_model_length(v->model, "run/epoch_batches");
    for (int i = v->model->n_marks - 1; i >= 0; i--) {
        const struct etd_mark *k = etd_model_mark(v->model, i);
        if (k->kind != ET_RECORD_CHECKPOINT || strncmp(k->text, "begun", 5) == 0 ||
            strncmp(k->text, "failed", 6) == 0)
            continue;
        if (per > 0)
            snprintf(place, sizeof place, "ep%.4g", epochs(k->ba, per));
        else
            snprintf(place, sizeof place, "%" PRId64 "ba", k->ba);
        return x + tui_putf(p, 0, x, TUI_TEXT, "ckpt %s %s ago   ", place,
                            tui_duration(fmax(0, v->now - k->t), age));
    }
    return x;
}

static const char *
precision(const struct tui_view *v, char buf[ETI_FACT_TEXT])
{
    const char *text = fact(v, "precision", buf);
    return strncmp(text, "amp_", 4) == 0 ? text + 4 : text;
}

static int
put_wide(const struct tui_view *v, const struct tui_pane *p, int x, int ranks)
{
    char text[ETI_FACT_TEXT];
    double batch = etd_model_length(v->model, "run/batch_size");
    double accum = etd_model_length(v->model, "run/grad_accum");
    x += tui_putf(p, 0, x, TUI_TEXT, "%d rank%s on 1 node   %s   seed ", ranks,
                  ranks == 1 ? "" : "s", precision(v, text));
    x += tui_putf(p, 0, x, TUI_TEXT, "%s   ", fact(v, "seed", text));
    if (batch > 0) {
        int k = accum > 1 ? (int)accum : 1;
        x += tui_putf(p, 0, x, TUI_TEXT, "global batch %.0f (%.0f x %d x %d)   ", batch,
                      batch / ranks / k, ranks, k);
    }
    x = put_state(v, p, x) + 3;
    x = put_checkpoint(v, p, x);
    size_t n = json_array_size(json_object_get(v->facts, "algorithms"));
    return x + tui_putf(p, 0, x, TUI_TEXT, "algorithms %zu", n);
}

void
tui_monitor_status(const struct tui_view *v, const struct tui_pane *p)
{
    char text[ETI_FACT_TEXT];
    int ranks = v->model->n_ranks > 1 ? v->model->n_ranks : 1;
    bool wide = p->w >= WIDE;
    int x = 1 + tui_put(p, 0, 1, TUI_TEXT, recipe_name(v, text)) + (wide ? 3 : 2);
    if (wide) {
        put_wide(v, p, x, ranks);
    } else {
        if (p->w >= 60)
            x += tui_putf(p, 0, x, TUI_TEXT, "%d rank%s  ", ranks,
                          ranks == 1 ? "" : "s");
        if (p->w >= 80)
            x += tui_putf(p, 0, x, TUI_TEXT, "1 node  %s  ", precision(v, text));
        put_state(v, p, x);
    }
    if (put_history(v, p))
        return;
    enum tui_role role = link_text(v, text, sizeof text);
    int end = p->w - 1, start = end - tui_width(text);
    tui_fill(p, 0, start - 2, 2, ' ', TUI_TEXT);
    tui_put(p, 0, start, role, text);
}

/* ---- bars ---- */

/* Where things stand behind a bar. */
struct columns {
    int bar, percent, first, second, third, end;
};

static struct columns
columns_of(int w)
{
    struct columns c = {.end = w - 1};
    if (w >= WIDE) {
        c.bar = w - 78;
        c.percent = BAR_X + c.bar + 1;
        c.first = c.percent + 7;
        c.second = c.percent + 19;
        c.third = c.percent + 37;
    } else {
        c.bar = w >= 60 ? w - 44 : w > 30 ? w - 28 : w - BAR_X - 1;
        c.percent = BAR_X + c.bar;
        c.first = c.percent + 6;
    }
    return c;
}

static void
put_bar(const struct tui_view *v, const struct tui_pane *p, int y, const char *name,
        double done, const struct columns *c)
{
    char percent[8];
    tui_put(p, y, 1, TUI_DIM, name);
    tui_bar(p, y, BAR_X, c->bar, done, v->app->phase);
    if (isnan(done))
        return;
    snprintf(percent, sizeof percent, "%3d%%", (int)(fmin(done, 1) * 100 + 1e-9));
    tui_put(p, y, c->percent, TUI_TEXT, percent);
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

/* "6.1/16ep", in at most ROOM columns where that can be. */
static const char *
length_text(const struct etd_model *m, int room, char buf[64])
{
    char a[TUI_NUMBER], b[TUI_NUMBER];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        double all = etd_model_length(m, lengths[i].number);
        if (isnan(all))
            continue;
        double ep = epochs_done(m);
        double at[] = {ep, (double)m->sp, NAN, m->train_s, (double)m->ba};
        if (i == 0) /* never rounded up: 0.99 of an epoch is no epoch */
            snprintf(buf, 64, "%.1f/%.6gep", floor(ep * 10 + 1e-6) / 10, all);
        else if (i != 4 || snprintf(buf, 64, "%s/%sba", tui_count(m->ba, a),
                                    tui_count((int64_t)all, b)) > room)
            snprintf(buf, 64, "%s/%s%s", tui_scaled(at[i], a), tui_scaled(all, b),
                     lengths[i].unit);
        return buf;
    }
    snprintf(buf, 64, "%sba", tui_count(m->ba, a));
    return buf;
}

/* "ETA 12m56s (14:16)": "~" until it has settled; without the clock where it would
 * begin before column FROM. */
static void
put_eta(const struct tui_view *v, const struct tui_pane *p, int y, int from, int end)
{
    char text[64], left_text[TUI_NUMBER], clock[TUI_NUMBER];
    bool settled;
    double left = etd_model_left(v->model, &settled);
    const char *state = tui_run_state(v);
    if (v->is_over || strcmp(state, "paused") == 0 || isnan(left)) {
        snprintf(text, sizeof text, "%s",
                 v->is_over || strcmp(state, "paused") == 0 ? state
                                                            : "ETA not known yet");
    } else {
        left = fmax(0, left - fmax(0, v->now - v->model->t));
        snprintf(text, sizeof text, "ETA %s%s (%s)", settled ? "" : "~",
                 tui_duration(left, left_text), tui_clock(v->now + left, 0, clock));
    }
    if (end - tui_width(text) < from && strchr(text, '('))
        *strrchr(text, ' ') = '\0';
    tui_put_end(p, y, end, TUI_TEXT, text);
}

static void
put_total(const struct tui_view *v, const struct tui_pane *p, int y,
          const struct columns *c)
{
    const struct etd_model *m = v->model;
    char text[64], a[TUI_NUMBER], b[TUI_NUMBER];
    double done = etd_model_done(m), batches = etd_model_length(m, "run/batches");
    put_bar(v, p, y, "total", done, c);
    if (c->first >= p->w)
        return;
    int room = c->second ? c->second - c->first - 1 : 12;
    int from = c->first + tui_put(p, y, c->first, TUI_TEXT, length_text(m, room, text));
    if (c->second) {
        if (!isnan(etd_model_length(m, "run/epochs")) && !isnan(batches))
            tui_putf(p, y, c->second, TUI_TEXT, "%s/%sba", tui_count(m->ba, a),
                     tui_count((int64_t)batches, b));
        tui_putf(p, y, c->third, TUI_TEXT, "%s samples", tui_scaled((double)m->sp, a));
    }
    if (p->w >= 60)
        put_eta(v, p, y, from + 1, c->end);
}

static void
put_epoch(const struct tui_view *v, const struct tui_pane *p, int y,
          const struct columns *c)
{
    const struct etd_model *m = v->model;
    char a[TUI_NUMBER], b[TUI_NUMBER];
    double all = etd_model_length(m, "run/epoch_batches"), mean, p99;
    int64_t in = m->ba - m->epoch_ba;
    if (all > 0 && v->is_over && in == 0 && m->ba > 0)
        in = (int64_t)all; /* the last one is done, and no other begins */
    put_bar(v, p, y, "epoch", all > 0 ? (double)in / all : v->is_over ? 0 : NAN, c);
    if (c->first >= p->w)
        return;
    if (all > 0)
        tui_putf(p, y, c->first, TUI_TEXT, "%s/%sba", tui_count(in, a),
                 tui_count((int64_t)all, b));
    else
        tui_putf(p, y, c->first, TUI_TEXT, "%sba", tui_count(in, a));
    tui_batch_ms(m, &mean, &p99);
    if (all > 0 && !isnan(mean) && !v->is_over && p->w >= 60) {
        char text[TUI_NUMBER + 8];
        snprintf(text, sizeof text, "%s left",
                 tui_duration(fmax(0, all - (double)in) * mean / 1000, a));
        tui_put_end(p, y, c->end, TUI_TEXT, text);
    }
}

/* ---- evaluation ---- */

/* When the next one is: "7ep", from eval_interval; "" where it cannot be told. */
static const char *
next_evaluation(const struct tui_view *v, char buf[64])
{
    char text[ETI_FACT_TEXT], count[TUI_NUMBER];
    struct et_time every;
    const char *given = fact(v, "eval_interval", text);
    buf[0] = '\0';
    if (!*given)
        given = "1ep";
    if (et_time_parse(NULL, given, &every) != ET_OK || !(every.value >= 1))
        return buf;
    if (every.unit == ET_TIME_EPOCH)
        snprintf(buf, 64, "next at %.0fep",
                 (floor((double)v->model->ep / every.value) + 1) * every.value);
    else if (every.unit == ET_TIME_BATCH)
        snprintf(buf, 64, "next at %sba",
                 tui_count((int64_t)((floor((double)v->model->ba / every.value) + 1) *
                                     every.value),
                           count));
    return buf;
}

/* The metrics of the evaluator LABEL (NULL: of any), the main one first: Accuracy,
 * else the first there is. */
static const struct etd_series *
evaluated(const struct etd_model *m, const char *label, int which)
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

/* The evaluator whose metric is the run's: that of the first of them all. NULL: none
 * has said anything yet. */
static const char *
main_evaluator(const struct etd_model *m)
{
    const struct etd_series *s = evaluated(m, NULL, 0);
    for (int i = 0; i < m->n_evals && s; i++) {
        size_t n = strlen(m->eval[i].label);
        if (strncmp(s->name + 8, m->eval[i].label, n) == 0 && s->name[8 + n] == '/')
            return m->eval[i].label;
    }
    return NULL;
}

static void
put_best(const struct tui_view *v, const struct tui_pane *p, int y,
         const struct columns *c)
{
    char text[160], label[ET_METRIC_NAME], a[TUI_NUMBER];
    const struct etd_series *s = evaluated(v->model, NULL, 0);
    double per = etd_model_length(v->model, "run/epoch_batches");
    if (!s || isnan(s->best))
        return;
    tui_metric_label(s->name, label);
    if (c->second)
        snprintf(text, sizeof text, "best %s", tui_value(s->best, a));
    else if (per > 0)
        snprintf(text, sizeof text, "best %.*s %s ep%.4g",
                 strcmp(label, "accuracy") == 0 ? 3 : 20, label, tui_value(s->best, a),
                 epochs(s->best_ba, per));
    else
        snprintf(text, sizeof text, "best %.20s %s", label, tui_value(s->best, a));
    tui_put_end(p, y, c->end, TUI_TEXT, text);
}

/* "last ep6: accuracy .7212  ce 1.1022", of the evaluator LABEL, NULL: of any. */
static int
put_last(const struct tui_view *v, const struct tui_pane *p, int y, int x,
         const char *said, const char *evaluator)
{
    char label[ET_METRIC_NAME], a[TUI_NUMBER];
    double per = etd_model_length(v->model, "run/epoch_batches");
    const struct etd_series *s = evaluated(v->model, evaluator, 0);
    if (!s)
        return 0;
    int begin = x;
    x += per > 0
             ? tui_putf(p, y, x, TUI_TEXT, "%s ep%.4g:", said, epochs(s->last_ba, per))
             : tui_putf(p, y, x, TUI_TEXT, "%s:", said);
    for (int i = 0; i < 2 && (s = evaluated(v->model, evaluator, i)); i++)
        x += tui_putf(p, y, x, TUI_TEXT, "%s%s %s", i ? "  " : " ",
                      tui_metric_label(s->name, label), tui_value(s->last, a));
    return x - begin;
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
    put_bar(v, p, y, "eval", running->batch / all, c);
    if (c->first >= p->w)
        return;
    if (isnan(all))
        tui_putf(p, y, c->first, TUI_TEXT, "%sba",
                 tui_count((int64_t)running->batch, a));
    else
        tui_putf(p, y, c->first, TUI_TEXT, "%s/%sba",
                 tui_count((int64_t)running->batch, a), tui_count((int64_t)all, b));
    tui_put_end(p, y, c->end, TUI_TEXT, running->label);
}

static void
put_evaluation(const struct tui_view *v, const struct tui_pane *p, int y,
               const struct columns *c)
{
    char text[64];
    const struct etd_eval *running = running_evaluator(v);
    if (running) {
        put_running(v, p, y, c, running);
        return;
    }
    put_bar(v, p, y, "eval", 0, c);
    tui_fill(p, y, c->percent, 4, ' ', TUI_TEXT);
    if (c->first >= p->w)
        return;
    next_evaluation(v, text);
    tui_put(p, y, c->percent + 1, TUI_TEXT,
            v->is_over                    ? ""
            : v->model->ba == 0 && !*text ? "none yet"
                                          : text);
    if (c->second)
        put_last(v, p, y, c->first + 8, "last", main_evaluator(v->model));
    if (p->w >= 60)
        put_best(v, p, y, c);
}

/* Those that do not run, and what each came to last: all on one line. */
static void
put_idle(const struct tui_view *v, const struct tui_pane *p, int y,
         const struct columns *c)
{
    enum { LEAST = 40 }; /* columns of one */
    const struct etd_model *m = v->model;
    const struct etd_eval *running = running_evaluator(v);
    const char *shown = running ? running->label : main_evaluator(m);
    int x = BAR_X;
    tui_put(p, y, 1, TUI_DIM, "idle");
    for (int i = 0, left = m->n_evals - 1; i < m->n_evals; i++) {
        const char *label = m->eval[i].label;
        if (shown && strcmp(label, shown) == 0)
            continue;
        if (x + LEAST > c->end && left > 1) {
            tui_putf(p, y, x, TUI_DIM, "and %d more", left);
            return;
        }
        int w = put_last(v, p, y, x, label, label);
        x += (w ? w : tui_putf(p, y, x, TUI_TEXT, "%s: not yet", label)) + 4;
        left--;
    }
}

int
tui_monitor_n_bars(const struct etd_model *model, int rows, int cols)
{
    return 3 + (model && model->n_evals > 1 && tui_size_of(rows, cols) == TUI_FULL);
}

void
tui_monitor_bars(const struct tui_view *v, const struct tui_pane *p)
{
    static void (*const bar[])(const struct tui_view *, const struct tui_pane *, int,
                               const struct columns *) = {
        put_total,
        put_epoch,
        put_evaluation,
        put_idle,
    };
    const struct columns c = columns_of(p->w);
    for (int y = 0; y < 4 && y < p->h; y++)
        bar[y](v, p, y, &c);
}
