/* SPDX-License-Identifier: Apache-2.0 */
/* bar.c: progress as one line of a terminal:
 *
 *     train  Epoch   6:  12%|===                      | 75/625 [00:08<01:05, 8.40ba/s,
 *         loss/train=0.8123]  total 38% ETA 12m56s                      (on one line)
 *
 * A run in epochs counts batches of the epoch, another one its own unit of the run.
 * What stays (evaluations, warnings) is written above. Source: spec/trainer.md 10.2. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

#include "core/loggers/progress.h"
#include "etude/diagnostic.h"

enum { CELLS = 25, LEAST_CELLS = 5, COLUMNS = 132 };

/* What a line may hold, and what a narrow terminal goes without, step by step: first
 * cells, down to LEAST_CELLS, then the next row of this table. */
enum { CLOCKS = 1, RATE = 2, TOTAL = 4, ETA = 8 };
static const int contents[] = {
    CLOCKS | RATE | TOTAL | ETA, RATE | TOTAL | ETA, RATE | ETA, ETA, 0,
};
enum { N_CONTENTS = sizeof contents / sizeof *contents };

/* What a bar is of. */
struct gauge {
    const char *label, *unit;
    double n, total; /* done, in all; total 0 = not known */
    double seconds;  /* that the N took */
    int64_t epoch;
    const char *loss;   /* NULL: none is shown, nor what follows */
    double whole, left; /* of the run: fraction done, seconds to go; NaN = not known */
};

static struct gauge
train_gauge(const struct et_state *s)
{
    const struct et_timestamp *ts = &s->timestamp;
    enum et_time_unit unit = s->max_duration.unit;
    struct et_time n;
    if (unit != ET_TIME_EPOCH && et_time_is_set(s->max_duration) &&
        et_timestamp_get(NULL, ts, unit, &n) == ET_OK)
        return (struct gauge){.label = "train",
                              .unit = et_time_unit_suffix(unit),
                              .n = floor(n.value),
                              .total = s->max_duration.value,
                              .seconds = ts->total_wct,
                              .epoch = ts->epoch};
    return (struct gauge){.label = "train",
                          .unit = "ba",
                          .n = (double)ts->batch_in_epoch,
                          .total = s->train_len > 0 ? (double)s->train_len : 0,
                          .seconds = ts->epoch_wct,
                          .epoch = ts->epoch};
}

static const char *
clock_text(double seconds, char *buf, size_t n)
{
    if (!(seconds >= 0 && seconds < 1e15)) {
        snprintf(buf, n, "?");
        return buf;
    }
    long long whole = (long long)seconds, hours = whole / 3600;
    if (hours)
        snprintf(buf, n, "%lld:%02lld:%02lld", hours, whole / 60 % 60, whole % 60);
    else
        snprintf(buf, n, "%02lld:%02lld", whole / 60, whole % 60);
    return buf;
}

/* "train  Epoch   6:  12%|===   | 75/625 [00:08<01:05, 8.40ba/s, loss/train=0.8123]
 * total 38% ETA 12m56s" with WHAT of it. Returns its columns. */
static int
format(char *line, size_t size, const struct gauge *g, int what, int cells)
{
    static const char full[] = "=========================";
    char percent[8] = "  ?%", total[24] = "?", spent[32], left[32];
    char clocks[80] = "", rate_text[48] = "", whole[24] = "", eta[48] = "";
    double fraction = g->total > 0 ? fmin(g->n / g->total, 1) : 0;
    double rate = g->seconds > 0 ? g->n / g->seconds : 0;
    int done = (int)(fraction * cells);
    if (g->total > 0) {
        snprintf(percent, sizeof percent, "%3.0f%%", floor(100 * fraction));
        snprintf(total, sizeof total, "%.0f", g->total);
    }
    double remaining = g->total > 0 && rate > 0 ? (g->total - g->n) / rate : NAN;
    if (what & CLOCKS)
        snprintf(clocks, sizeof clocks, "%s<%s, ",
                 clock_text(g->seconds, spent, sizeof spent),
                 clock_text(remaining, left, sizeof left));
    if (what & RATE)
        snprintf(rate_text, sizeof rate_text, "%.2f%s/s", rate, g->unit);
    if (g->loss && what & TOTAL)
        snprintf(whole, sizeof whole, " total %.0f%%",
                 isnan(g->whole) ? 0 : floor(100 * g->whole));
    if (g->loss && what & ETA)
        snprintf(eta, sizeof eta, " ETA %s",
                 eti_duration_text(g->left, left, sizeof left));
    return snprintf(
        line, size, "%-7sEpoch %3" PRId64 ": %s|%.*s%*s| %.0f/%s [%s%s%s%s%s]%s%s%s",
        g->label, g->epoch, percent, done, full, cells - done, "", g->n, total, clocks,
        rate_text, *rate_text && g->loss ? ", " : "", g->loss ? "loss/train=" : "",
        g->loss ? g->loss : "", *whole || *eta ? " " : "", whole, eta);
}

static void
wipe(struct eti_progress *p)
{
    if (p->drawn)
        et_print(p->config.out, "\r%*s\r", p->drawn, "");
    p->drawn = 0;
}

/* Columns that a line may fill: the last one stays free, or terminals wrap. They are
 * asked for each time, because people resize windows; and of the terminal as it was
 * before a logger captured the stream. */
static int
room(const struct eti_progress *p)
{
    struct winsize size;
    int columns = p->config.columns;
    if (columns <= 0 && ioctl(p->terminal, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    return (columns > 1 ? columns : COLUMNS) - 1;
}

/* Draws over what is there. */
static void
draw(struct eti_progress *p, const struct gauge *g)
{
    char line[512];
    int most = room(p), length = most + 1;
    for (int i = 0; i < N_CONTENTS && length > most; i++) {
        length = format(line, sizeof line, g, contents[i], CELLS);
        int cells = CELLS - (length - most);
        if (length > most && (cells >= LEAST_CELLS || i == N_CONTENTS - 1))
            length = format(line, sizeof line, g, contents[i],
                            cells > LEAST_CELLS ? cells : LEAST_CELLS);
    }
    if (length > most)
        length = most;
    if (p->drawn > most)
        p->drawn = most;
    et_print(p->config.out, "\r%.*s%*s", length, line,
             p->drawn > length ? p->drawn - length : 0, "");
    p->drawn = length;
}

static void
draw_training(struct eti_progress *p, const struct et_state *s, struct gauge *g)
{
    char loss[32];
    g->loss = eti_value_text(s->loss_value, loss, sizeof loss);
    g->whole = eti_fraction(s);
    g->left = p->left;
    draw(p, g);
}

static void
show_batch(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    struct gauge g = train_gauge(s);
    (void)log;
    draw_training(p, s, &g);
}

/* What is drawn stays; the next goes below. */
static void
leave(struct eti_progress *p)
{
    if (p->drawn)
        fputc('\n', p->config.out);
    p->drawn = 0;
}

/* An epoch's bar is full and stays; that of another run goes on. The timestamp is in
 * the next epoch already. */
static void
show_epoch(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    double n = (double)s->train_len;
    struct gauge g = {
        .label = "train",
        .unit = "ba",
        .n = n,
        .total = n,
        .seconds = p->epoch_seconds,
        .epoch = s->timestamp.epoch - 1,
    };
    (void)log;
    if (s->max_duration.unit != ET_TIME_EPOCH || n <= 0)
        return;
    draw_training(p, s, &g);
    leave(p);
}

static void
show_eval_batch(struct eti_progress *p, const struct et_state *s,
                const struct et_log *log)
{
    char label[ET_METRIC_NAME];
    const struct gauge g = {
        .label = et_visible(label, sizeof label, s->dataloader_label,
                            strlen(s->dataloader_label)),
        .unit = "ba",
        .n = (double)s->eval_timestamp.batch,
        .total = s->dataloader_len > 0 ? (double)s->dataloader_len : 0,
        .seconds = p->eval_seconds,
        .epoch = s->timestamp.epoch,
    };
    (void)log;
    draw(p, &g);
}

static void
show_eval(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    FILE *f = p->config.out;
    char text[32];
    char label[ET_METRIC_NAME];
    wipe(p);
    et_print(f, "%-7sEpoch %3" PRId64 ":",
             et_visible(label, sizeof label, s->dataloader_label,
                        strlen(s->dataloader_label)),
             s->timestamp.epoch);
    eti_put_metrics(f, log);
    et_print(f, " time=%s\n",
             eti_duration_text(s->eval_timestamp.total_wct, text, sizeof text));
}

/* The last bar stays. */
static void
show_fit_end(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    if (s->timestamp.batch_in_epoch > 0 || s->max_duration.unit != ET_TIME_EPOCH)
        show_batch(p, s, log);
    leave(p);
}

static void
show_text(struct eti_progress *p, enum et_log_level level, const char *line)
{
    wipe(p);
    et_print(p->config.out, "%s: ", et_log_level_name(level));
    eti_put_text(p->config.out, line);
    fputc('\n', p->config.out);
}

/* How a run ended is the caller's to say, below the last bar. */
static void
show_notice(struct eti_progress *p, const struct et_run_notice *notice)
{
    if (notice->at_end)
        return;
    et_print(p->config.out, "%-7s%s in ", "run", notice->name);
    eti_put_text(p->config.out, notice->directory);
    fputc('\n', p->config.out);
}

const struct eti_style eti_style_bar = {
    .seconds = 0.1,
    .batch = show_batch,
    .eval_batch = show_eval_batch,
    .epoch = show_epoch,
    .eval = show_eval,
    .fit_end = show_fit_end,
    .notice = show_notice,
    .text = show_text,
    .clear = wipe,
    .close = leave,
};
