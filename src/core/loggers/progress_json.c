/* SPDX-License-Identifier: Apache-2.0 */
/* progress_json.c: progress as JSON lines for programs:
 *
 *     {"t":1763647402.114,"level":"info","ev":"batch","ep":6,"ba":3825,
 *      "m":{"loss/train/total":0.8123},"eta_s":776}                     (on one line)
 *
 * ev is a kind of record: batch, epoch, eval (with its "label"), log (with "text"), and
 * run, twice: when it begins and, with "exit_code" and the last evaluation's metrics,
 * when it has ended. eta_s is missing while it is not known. Numbers as in
 * metrics.jsonl. */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "core/loggers/progress.h"

static void
begin(const struct eti_progress *p, enum et_log_level level, enum et_record_kind kind)
{
    et_print(p->config.out, "{\"t\":%.3f,\"level\":\"%s\",\"ev\":\"%s\"",
             eti_wall(p->cx), et_log_level_name(level), et_record_name(kind));
}

static void
put_record(struct eti_progress *p, const struct et_state *s, const struct et_log *log,
           enum et_record_kind kind)
{
    FILE *f = p->config.out;
    int n;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    begin(p, ET_LOG_INFO, kind);
    fprintf(f, ",\"ep\":%" PRId64 ",\"ba\":%" PRId64, s->timestamp.epoch,
            s->timestamp.batch);
    if (kind == ET_RECORD_EVAL) {
        fputs(",\"label\":", f);
        eti_json_string(f, s->dataloader_label);
    }
    fputs(",\"m\":", f);
    eti_json_metrics(f, entry, n);
    if (kind == ET_RECORD_BATCH && !isnan(p->left))
        fprintf(f, ",\"eta_s\":%.0f", p->left);
    fputs("}\n", f);
}

static void
put_batch(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    put_record(p, s, log, ET_RECORD_BATCH);
}

static void
put_epoch(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    put_record(p, s, log, ET_RECORD_EPOCH);
}

static void
put_eval(struct eti_progress *p, const struct et_state *s, const struct et_log *log)
{
    put_record(p, s, log, ET_RECORD_EVAL);
}

static void
put_notice(struct eti_progress *p, const struct et_run_notice *notice)
{
    const struct et_state *s = notice->at_end;
    FILE *f = p->config.out;
    begin(p, ET_LOG_INFO, ET_RECORD_RUN);
    fputs(",\"name\":", f);
    eti_json_string(f, notice->name);
    fputs(",\"directory\":", f);
    eti_json_string(f, notice->directory);
    fputs(",\"state\":", f);
    eti_json_string(f, notice->state);
    if (s) {
        fprintf(f, ",\"exit_code\":%d,\"ep\":%" PRId64 ",\"ba\":%" PRId64 ",\"m\":{",
                notice->exit_code, s->timestamp.epoch, s->timestamp.batch);
        for (int i = 0; i < s->n_eval_metrics; i++) {
            if (i > 0)
                fputc(',', f);
            eti_json_string(f, s->eval_metrics[i].name);
            fputc(':', f);
            eti_json_number(f, s->eval_metrics[i].value);
        }
        fputc('}', f);
    }
    fputs("}\n", f);
}

static void
put_line(struct eti_progress *p, enum et_log_level level, const char *line)
{
    FILE *f = p->config.out;
    begin(p, level, ET_RECORD_LOG);
    fputs(",\"text\":", f);
    eti_json_string(f, line);
    fputs("}\n", f);
}

const struct eti_style eti_style_json = {
    .batch = put_batch,
    .epoch = put_epoch,
    .eval = put_eval,
    .notice = put_notice,
    .text = put_line,
};
