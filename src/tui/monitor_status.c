/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_status.c: the lines above all panels: the run, its state, and the numbers
 * that one comes for. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/seams.h"
#include "core/library/facts.h"
#include "etude/time.h"
#include "tui/format.h"
#include "tui/monitor.h"

enum { WIDE = 180, NARROW = 60, DAY = 86400 /* seconds */ };

const char *
tui_run_state(const struct tui_view *v)
{
    const char *said = json_string_value(json_object_get(v->facts, "state"));
    if (v->is_over && said && !v->app->config.is_past)
        return said;
    return *v->model->state ? v->model->state : said ? said : "starting";
}

bool
tui_run_is_paused(const struct tui_view *v)
{
    return !v->is_over && strcmp(tui_run_state(v), "paused") == 0;
}

double
tui_run_seconds(const struct tui_view *v)
{
    double ended = json_number_value(json_object_get(v->facts, "ended"));
    double started = json_number_value(json_object_get(v->facts, "started"));
    const bool has_facts = v->is_over && !v->app->config.is_dump && ended > 0;
    double from =
        has_facts && started > 0 && started < v->model->from ? started : v->model->from;
    double end = has_facts ? ended : v->is_over ? v->model->t : v->now;
    double rested = json_number_value(json_object_get(v->facts, "rested"));
    return fmax(0, end - from - (v->app->config.is_dump ? 0 : rested));
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

/* The state as a chip, and how long the run has taken. Returns where it ends. */
static int
put_state(const struct tui_view *v, const struct tui_pane *p, int x)
{
    char took[TUI_NUMBER];
    x += tui_put_chip(p, 0, x, tui_run_state(v)) + 1;
    if (!(v->model->from > 0))
        return x; /* no record has come yet */
    double seconds = tui_run_seconds(v);
    if (v->is_over)
        return x + tui_putf(p, 0, x, TUI_TEXT, "after %s", tui_span(seconds, took));
    return x + tui_put(p, 0, x, TUI_TEXT, tui_elapsed(seconds, took));
}

/* What the right end says of the way to the run. */
static enum tui_role
link_text(const struct tui_view *v, char *buf, size_t size)
{
    const struct tui_source *s = v->app->source;
    char live[8], a[TUI_NUMBER];
    double since = tui_now(v->app) - s->heard;
    live[tui_utf8(v->app->config.glyphs->live, live)] = '\0';
    if (s->is_refused) {
        snprintf(buf, size, "x refused");
        return TUI_BAD;
    }
    if (*s->problem) {
        snprintf(buf, size, "x damaged");
        return TUI_BAD;
    }
    if (v->app->is_frozen) {
        snprintf(buf, size, "frozen %s", tui_clock(v->model->t, 2, a));
        return TUI_WARN;
    }
    /* The state at the record's time, not now: whether the run had ended or was live
     * then. */
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
        snprintf(buf, size, "! no link since %s, retry in %.0fs, R now",
                 tui_clock(v->model->t, 2, a), fmax(0, s->retry - tui_now(v->app)));
        return TUI_BAD;
    case TUI_LINK_ENDED: { /* the state says that it has */
        double ended = json_number_value(json_object_get(v->facts, "ended"));
        snprintf(buf, size, "%s %s", tui_ending_is_shown(v) ? "at" : "ended",
                 tui_clock(ended > 0 && !v->app->config.is_dump ? ended : v->model->t,
                           0, a));
        return TUI_DIM;
    }
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
    tui_bar(p, 0, x, 12, (double)done / (double)all, tui_app_phase(v->app));
    tui_put(p, 0, x - 8, TUI_DIM, "history");
    return true;
}

/* The text of a checkpoint's mark behind WORD ("begun "); NULL: it begins with
 * another. */
static const char *
said(const struct etd_mark *k, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(k->text, word, n) == 0 ? k->text + n : NULL;
}

bool
tui_saved(const struct etd_model *m, struct tui_saved *out)
{
    *out = (struct tui_saved){0};
    for (int i = m->n_marks - 1; i >= 0; i--) {
        const struct etd_mark *k = etd_model_mark(m, i);
        if (k->kind != ET_RECORD_CHECKPOINT)
            continue;
        const char *begun = said(k, "begun "), *saved = said(k, "saved ");
        if (out->name && begun && strcmp(begun, out->name) == 0) {
            out->ba = k->ba; /* what was trained while it was written is not in it */
            break;
        }
        if (!out->name && !begun && !said(k, "failed "))
            *out = (struct tui_saved){saved ? saved : k->text, k->ba, k->t};
    }
    return out->name != NULL;
}

/* The newest checkpoint: "ckpt ep6 24s ago"; "": nothing was saved yet. */
static const char *
checkpoint_text(const struct tui_view *v, char buf[64])
{
    char age[TUI_NUMBER], place[TUI_NUMBER];
    struct tui_saved k;
    buf[0] = '\0';
    if (!tui_saved(v->model, &k))
        return buf;
    if (strncmp(k.name, "ep", 2) == 0 && strchr(k.name, '-')) /* "ep6-ba3750" */
        snprintf(place, sizeof place, "%.*s", (int)strcspn(k.name, "-"), k.name);
    else
        tui_place_text(k.ba, etd_model_length(v->model, "run/epoch_batches"), place);
    if (v->is_over)
        snprintf(buf, 64, "ckpt %s", place);
    else
        snprintf(buf, 64, "ckpt %s %s ago", place,
                 tui_duration(fmax(0, v->now - k.t), age));
    return buf;
}

const char *
tui_place_text(int64_t ba, double per, char buf[TUI_NUMBER])
{
    char count[TUI_NUMBER];
    if (per > 0)
        snprintf(buf, TUI_NUMBER, "ep%.4g", round(100 * (double)ba / per) / 100);
    else
        snprintf(buf, TUI_NUMBER, "%.16sba", tui_count(ba, count));
    return buf;
}

/* What the run is, in the order of how soon one asks for it. */
enum { WORDS = 6 };
static void
describe(const struct tui_view *v, char word[WORDS][64])
{
    char text[ETI_FACT_TEXT];
    const int ranks = v->model->n_ranks > 1 ? v->model->n_ranks : 1;
    double batch = etd_model_length(v->model, "run/batch_size");
    double accum = etd_model_length(v->model, "run/grad_accum");
    const int k = accum > 1 ? (int)accum : 1;
    const char *precision = fact(v, "precision", text);
    memset(word, 0, WORDS * 64);
    snprintf(word[0], 64, "%d rank%s", ranks, ranks == 1 ? "" : "s");
    snprintf(word[1], 64, "%.40s",
             strncmp(precision, "amp_", 4) == 0 ? precision + 4 : precision);
    const char *seed = fact(v, "seed", text);
    if (*seed)
        snprintf(word[2], 64, "seed %.40s", seed);
    if (batch > 0 && ranks * k > 1)
        snprintf(word[3], 64, "batch %.0f = %.0f x %d%s", batch, batch / ranks / k,
                 ranks, k > 1 ? " x" : "");
    else if (batch > 0)
        snprintf(word[3], 64, "batch %.0f", batch);
    if (batch > 0 && k > 1)
        snprintf(word[3] + strlen(word[3]), 64 - strlen(word[3]), " %d", k);
    checkpoint_text(v, word[4]);
    size_t n = json_array_size(json_object_get(v->facts, "algorithms"));
    if (n > 0)
        snprintf(word[5], 64, "%zu algorithm%s", n, n == 1 ? "" : "s");
}

/* Of a terminal with little room: the state, how far it is, and how long it will be. */
static void
put_brief(const struct tui_view *v, const struct tui_pane *p)
{
    char percent[8] = "", eta[64];
    double done = etd_model_done(v->model);
    int x = put_state(v, p, 0) + 2;
    if (!isnan(done))
        snprintf(percent, sizeof percent, "%d%%", (int)(fmin(done, 1) * 100 + 1e-9));
    x += tui_put(p, 0, x, TUI_TEXT, percent) + 2;
    tui_put_right(p, 0, x, p->w - 1, TUI_TEXT, tui_eta_text(v, false, eta));
}

void
tui_monitor_status(const struct tui_view *v, const struct tui_pane *p)
{
    char text[ETI_FACT_TEXT], word[WORDS][64];
    const int gap = p->w >= 100 ? 3 : 2;
    if (tui_size_of(p->grid->rows, p->grid->cols) == TUI_TINY) {
        put_brief(v, p);
        return;
    }
    const char *name = recipe_name(v, text);
    int x = 1 + tui_put_cut(p, 0, 1, 1 + p->w * 2 / 5, TUI_TEXT, name) + gap;
    x = put_state(v, p, x) + gap;
    enum tui_role role = link_text(v, text, sizeof text);
    const int end = p->w - 1 - tui_width(text) - 1;
    describe(v, word);
    for (int i = 0; i < WORDS; i++) {
        int w = tui_width(word[i]);
        if (w == 0 || x + w > end)
            continue;
        x += tui_put(p, 0, x, TUI_DIM, word[i]) + gap;
    }
    if (!put_history(v, p))
        tui_put_right(p, 0, 0, p->w - 1, role, text);
}

/* ---- the numbers that one comes for ---- */

const char *
tui_eta_text(const struct tui_view *v, bool has_clock, char buf[64])
{
    char left_text[TUI_NUMBER], clock[TUI_NUMBER];
    bool settled;
    double left = etd_model_left(v->model, &settled);
    buf[0] = '\0';
    if (v->is_over)
        return buf;
    if (tui_run_is_paused(v)) {
        snprintf(buf, 64, "paused %s",
                 tui_duration(fmax(0, v->now - v->model->state_since), left_text));
        return buf;
    }
    if (isnan(left)) {
        snprintf(buf, 64, "ETA not known yet");
        return buf;
    }
    left = fmax(0, left - fmax(0, v->now - v->model->t));
    tui_duration(left, left_text);
    if (has_clock)
        snprintf(buf, 64, "ETA %s%s (%s)", settled ? "" : "~", left_text,
                 left < DAY ? tui_clock(v->now + left, 0, clock)
                            : tui_day(v->now + left, clock));
    else
        snprintf(buf, 64, "ETA %s%s", settled ? "" : "~", left_text);
    return buf;
}

/* "loss .4382", or as VALUE_FIRST ".4382 loss". Returns where it ends. */
static int
put_pair(const struct tui_pane *p, int x, const char *label, const char *value,
         enum tui_role role, bool value_first)
{
    if (value_first) {
        enum { VALUE = 7 }; /* columns: the label does not move as digits come and go */
        tui_put_end(p, 0, x + VALUE, role, value);
        return x + VALUE + 1 + tui_put(p, 0, x + VALUE + 1, TUI_DIM, label);
    }
    x += tui_put(p, 0, x, TUI_DIM, label) + 1;
    return x + tui_put(p, 0, x, role, value);
}

static void
put_loss(const struct tui_view *v, const struct tui_pane *p, int x, bool wide)
{
    char label[ET_METRIC_NAME], value[TUI_NUMBER];
    const struct etd_series *s = tui_loss_of(v->model);
    if (s)
        put_pair(p, x, wide ? tui_metric_label(s->name, label) : "loss",
                 tui_value(s->last, value), TUI_STRONG, wide);
}

/* The best value of the evaluation's metric, and when it was. */
static void
put_best(const struct tui_view *v, const struct tui_pane *p, int x, int end, bool wide)
{
    char when[64], label[ET_METRIC_NAME], value[TUI_NUMBER], place[TUI_NUMBER];
    double per = etd_model_length(v->model, "run/epoch_batches");
    const struct etd_series *s = tui_evaluated(v->model, NULL, 0);
    if (!s || isnan(s->best))
        return;
    tui_metric_label(s->name, label);
    if (strlen(label) > 12)
        snprintf(label, sizeof label, "%s", "best");
    x = put_pair(p, x, label, tui_value(s->best, value), TUI_BEST, wide);
    snprintf(when, sizeof when, wide ? ", best (%s)" : " best, %s",
             tui_place_text(s->best_ba, per, place));
    if (x + tui_width(when) > end)
        snprintf(when, sizeof when, "%s", " best");
    if (x + tui_width(when) <= end)
        tui_put(p, 0, x, TUI_DIM, when);
}

/* Samples or batches a second, and how they went. */
static void
put_speed(const struct tui_view *v, const struct tui_pane *p, int x, int spark)
{
    char value[TUI_NUMBER];
    double rate = tui_samples_per_second(v->model);
    if (isnan(rate) || v->is_over)
        return;
    x = put_pair(p, x, "samples/s", tui_rate(rate, value), TUI_STRONG, true);
    if (spark > 0)
        tui_monitor_spark(v, p, 0, x + 1, spark);
}

void
tui_monitor_hero(const struct tui_view *v, const struct tui_pane *p)
{
    char eta[64];
    /* Where each begins, by the width: none moves while the numbers change. */
    static const struct {
        int from, at[4], spark;
    } places[] = {
        {WIDE, {1, 39, 87, 138}, 12}, {120, {0, 22, 54, 91}, 10},
        {80, {1, 14, 38, 58}, 0},     {NARROW, {1, 13, 34, 99}, 0},
        {0, {0, 12, 99, 99}, 0},
    };
    size_t i = 0;
    while (p->w < places[i].from)
        i++;
    const int *at = places[i].at;
    const bool wide = places[i].from >= 120;
    put_loss(v, p, at[0], wide);
    put_best(v, p, at[1], at[2] < p->w ? at[2] : p->w, wide);
    if (at[2] < p->w)
        put_speed(v, p, at[2], places[i].spark);
    const char *text = tui_eta_text(v, true, eta);
    if (at[3] < p->w && *text)
        tui_put(p, 0, at[3], tui_run_is_paused(v) ? TUI_WARN : TUI_TEXT, text);
}
