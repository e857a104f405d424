/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c: progress as lines for pipes and logs, each one like this:
 *
 *     2025-11-20T14:03:22Z info train ep=6 ba=75/625 total=38% loss/train=0.8123
 *         lr=0.1834 samples/s=17210 mem=61.0G eta=12m56s
 *         (all of it in one line)
 *
 * ep counts finished epochs, ba the batches of the epoch under way. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "core/loggers/progress.h"

static void
begin(const struct eti_progress *p, enum et_log_level level)
{
    char stamp[32];
    time_t now = (time_t)eti_wall(p->cx);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    et_print(p->config.out, "%s %s ", stamp, et_log_level_name(level));
}

static void
put_total(FILE *f, const struct et_state *s)
{
    double fraction = eti_fraction(s);
    if (!isnan(fraction))
        fprintf(f, " total=%.0f%%", floor(100 * fraction));
}

static void
put_value(FILE *f, const char *label, double value)
{
    char text[32];
    et_print(f, " %s=%s", label, eti_value_text(value, text, sizeof text));
}

/* The rate of the first parameter group, if it is logged. */
static void
put_rate(FILE *f, const struct et_log *log)
{
    int n;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    for (int i = 0; i < n; i++)
        if (strncmp(entry[i].name, "lr-", 3) == 0) {
            put_value(f, "lr", entry[i].value);
            return;
        }
}

static void
put_speed(FILE *f, const struct et_state *s, const struct et_log *log)
{
    const struct et_timestamp *ts = &s->timestamp;
    double rate = ts->epoch_wct > 0 ? (double)ts->sample_in_epoch / ts->epoch_wct : NAN;
    (void)et_log_find(log, "throughput/samples_per_sec", &rate);
    if (!isnan(rate))
        fprintf(f, " samples/s=%.*f", rate < 10 ? 2 : 0, rate);
}

static void
put_memory(FILE *f, const struct et_log *log)
{
    double gb;
    if (!et_log_find(log, "memory/peak_allocated_mem", &gb))
        return;
    if (gb >= 1)
        fprintf(f, " mem=%.1fG", gb);
    else
        fprintf(f, " mem=%.0fM", 1e3 * gb);
}

static void
put_batch(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    FILE *f = p->config.out;
    char left[32];
    begin(p, ET_LOG_INFO);
    fprintf(f, "train ep=%" PRId64 " ba=%" PRId64, s->timestamp.epoch,
            s->timestamp.batch_in_epoch);
    if (s->train_len > 0)
        fprintf(f, "/%" PRId64, s->train_len);
    put_total(f, s);
    put_value(f, "loss/train", s->loss_value);
    put_rate(f, log);
    put_speed(f, s, log);
    put_memory(f, log);
    et_print(f, " eta=%s\n", eti_duration_text(p->left, left, sizeof left));
}

static void
put_totals(struct eti_progress *p, const struct et_state *s, const char *what,
           double seconds)
{
    FILE *f = p->config.out;
    char text[32];
    begin(p, ET_LOG_INFO);
    et_print(f, "%s ep=%" PRId64 " ba=%" PRId64, what, s->timestamp.epoch,
             s->timestamp.batch);
    put_total(f, s);
    if (p->has_trained)
        put_value(f, "loss/train", s->loss_value);
    et_print(f, " time=%s\n", eti_duration_text(seconds, text, sizeof text));
}

static void
put_epoch(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    (void)log;
    put_totals(p, s, "epoch", p->epoch_seconds);
}

static void
put_notice(struct eti_progress *p, const struct et_run_notice *notice)
{
    FILE *f = p->config.out;
    char what[128];
    if (notice->at_end) {
        snprintf(what, sizeof what, "end %s %s", notice->name, notice->state);
        put_totals(p, notice->at_end, what, notice->at_end->timestamp.total_wct);
        return;
    }
    begin(p, ET_LOG_INFO);
    et_print(f, "start %s in ", notice->name);
    eti_put_text(f, notice->directory);
    fputc('\n', f);
}

static void
put_eval(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    FILE *f = p->config.out;
    char text[32];
    begin(p, ET_LOG_INFO);
    eti_put_text(f, s->dataloader_label);
    fprintf(f, " ep=%" PRId64 " ba=%" PRId64, s->timestamp.epoch, s->timestamp.batch);
    eti_put_metrics(f, log);
    et_print(f, " time=%s\n",
             eti_duration_text(s->eval_timestamp.total_wct, text, sizeof text));
}

static void
put_line(struct eti_progress *p, enum et_log_level level, const char *line)
{
    begin(p, level);
    eti_put_text(p->config.out, line);
    fputc('\n', p->config.out);
}

const struct eti_style eti_style_plain = {
    .seconds = 30,
    .batch = put_batch,
    .epoch = put_epoch,
    .eval = put_eval,
    .notice = put_notice,
    .text = put_line,
};
