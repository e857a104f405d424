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

#include "core/loggers/progress.h"

enum { CELLS = 25, LEAST_CELLS = 5, COLUMNS = 132 };

/* What a bar is of. */
struct gauge {
    const char *label, *unit;
    double n, total; /* done, in all; total 0 = not known */
    double seconds;  /* that the N took */
};

static struct gauge
train_gauge(const struct et_state *s)
{
    const struct et_timestamp *ts = &s->timestamp;
    enum et_time_unit unit = s->max_duration.unit;
    struct et_time n;
    if (unit != ET_TIME_EPOCH && et_time_is_set(s->max_duration) &&
        et_timestamp_get(NULL, ts, unit, &n) == ET_OK)
        return (struct gauge){"train", et_time_unit_suffix(unit), floor(n.value),
                              s->max_duration.value, ts->total_wct};
    return (struct gauge){"train", "ba", (double)ts->batch_in_epoch,
                          s->train_len > 0 ? (double)s->train_len : 0, ts->epoch_wct};
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

/* "Epoch   6:  12%|===   | 75/625 [00:08<01:05, 8.40ba/s" and TAIL. */
static void
format(char *line, size_t size, const struct gauge *g, int64_t epoch, int cells,
       const char *tail)
{
    static const char full[] = "=========================";
    char percent[8] = "  ?%", total[24] = "?", spent[48], left[48];
    double fraction = g->total > 0 ? fmin(g->n / g->total, 1) : 0;
    double rate = g->seconds > 0 ? g->n / g->seconds : 0;
    int done = (int)(fraction * cells);
    if (g->total > 0) {
        snprintf(percent, sizeof percent, "%3.0f%%", floor(100 * fraction));
        snprintf(total, sizeof total, "%.0f", g->total);
    }
    double remaining = g->total > 0 && rate > 0 ? (g->total - g->n) / rate : NAN;
    snprintf(line, size,
             "%-7sEpoch %3" PRId64 ": %s|%.*s%*s| %.0f/%s [%s<%s, %.2f%s/s%s", g->label,
             epoch, percent, done, full, cells - done, "", g->n, total,
             clock_text(g->seconds, spent, sizeof spent),
             clock_text(remaining, left, sizeof left), rate, g->unit, tail);
}

static void
wipe(struct eti_progress *p)
{
    if (p->drawn)
        fprintf(p->config.out, "\r%*s\r", p->drawn, "");
    p->drawn = 0;
}

/* Draws over what is there; narrow terminals get fewer cells, then less text. */
static void
draw(struct eti_progress *p, const struct gauge *g, int64_t epoch, const char *tail)
{
    char line[512];
    int room = (p->config.columns > 1 ? p->config.columns : COLUMNS) - 1;
    format(line, sizeof line, g, epoch, CELLS, tail);
    int over = (int)strlen(line) - room;
    if (over > 0)
        format(line, sizeof line, g, epoch,
               CELLS - over > LEAST_CELLS ? CELLS - over : LEAST_CELLS, tail);
    if (room < (int)sizeof line)
        line[room] = '\0';
    int length = (int)strlen(line), rest = p->drawn > length ? p->drawn - length : 0;
    fprintf(p->config.out, "\r%s%*s", line, rest, "");
    p->drawn = length;
}

static void
show_batch(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    char tail[128], loss[32], left[32];
    struct gauge g = train_gauge(s);
    double fraction = eti_fraction(s);
    (void)log;
    snprintf(tail, sizeof tail, ", loss/train=%s]  total %.0f%% ETA %s",
             eti_value_text(s->loss_value, loss, sizeof loss),
             isnan(fraction) ? 0 : floor(100 * fraction),
             eti_duration_text(p->left, left, sizeof left));
    draw(p, &g, s->timestamp.epoch, tail);
}

static void
show_eval_batch(struct eti_progress *p, const struct et_state *s,
                const struct et_log *log)
{
    struct gauge g = {s->dataloader_label, "ba", (double)s->eval_timestamp.batch,
                      s->dataloader_len > 0 ? (double)s->dataloader_len : 0,
                      p->eval_seconds};
    (void)log;
    draw(p, &g, s->timestamp.epoch, "]");
}

static void
show_eval(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    FILE *f = p->config.out;
    char text[32];
    wipe(p);
    fprintf(f, "%-7sEpoch %3" PRId64 ":", s->dataloader_label, s->timestamp.epoch);
    eti_put_metrics(f, log);
    fprintf(f, " time=%s\n",
            eti_duration_text(s->eval_timestamp.total_wct, text, sizeof text));
}

/* The last bar stays. */
static void
show_end(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    if (s->timestamp.batch_in_epoch > 0)
        show_batch(p, s, log);
    if (p->drawn)
        fputc('\n', p->config.out);
    p->drawn = 0;
}

static void
show_text(struct eti_progress *p, enum et_log_level level, const char *line)
{
    if (level < ET_LOG_WARN)
        return;
    wipe(p);
    fprintf(p->config.out, "%s: ", et_log_level_name(level));
    eti_put_text(p->config.out, line);
    fputc('\n', p->config.out);
}

static void
leave(struct eti_progress *p)
{
    if (p->drawn)
        fputc('\n', p->config.out);
    p->drawn = 0;
    fflush(p->config.out);
}

const struct eti_style eti_style_bar = {
    .seconds = 0.1,
    .batch = show_batch,
    .eval_batch = show_eval_batch,
    .eval = show_eval,
    .end = show_end,
    .text = show_text,
    .close = leave,
};
