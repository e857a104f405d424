/* log.c: the record under way, and handing it on. See logger.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "etude/ctx.h"
#include "etude/logger.h"

enum { MAX_ENTRIES = 512 };

struct et_log {
    struct et_ctx *cx;
    struct et_sink *sink;
    int64_t seq;
    int n;
    struct et_log_entry entry[MAX_ENTRIES];
};

const char *
et_record_name(enum et_record_kind kind)
{
    static const char *const names[] = {
#define ROW(code, text) text,
        ET_RECORD_MAP(ROW)
#undef ROW
    };
    return names[kind];
}

et_status
et_log_new(struct et_ctx *cx, struct et_sink *sink, struct et_log **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    *out = block;
    (*out)->cx = cx;
    (*out)->sink = sink;
    return ET_OK;
}

void
et_log_free(struct et_log **log)
{
    struct et_log *l = *log;
    *log = NULL;
    if (l)
        et_free(l->cx, l);
}

void
et_log_metric(struct et_log *log, const char *name, double value)
{
    struct et_log_entry *e = log->entry;
    int i = 0;
    while (i < log->n && strncmp(e[i].name, name, ET_METRIC_NAME - 1) != 0)
        i++;
    if (i == MAX_ENTRIES) {
        et_report(log->cx, ET_LOG_WARN, "more than %d metrics in one record; %s is left out",
                  MAX_ENTRIES, name);
        return;
    }
    if (i == log->n)
        snprintf(e[log->n++].name, ET_METRIC_NAME, "%s", name);
    e[i].value = value;
}

const struct et_log_entry *
et_log_entries(const struct et_log *log, int *n)
{
    *n = log->n;
    return log->entry;
}

bool
et_log_find(const struct et_log *log, const char *name, double *out)
{
    for (int i = 0; i < log->n; i++)
        if (strcmp(log->entry[i].name, name) == 0) {
            *out = log->entry[i].value;
            return true;
        }
    return false;
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
hand_on(struct et_log *log, struct et_record *r, const struct et_timestamp *ts)
{
    if (!log->sink)
        return;
    r->t = now();
    r->seq = ++log->seq;
    if (ts) {
        r->ep = ts->epoch;
        r->ba = ts->batch;
        r->sp = ts->sample;
    }
    log->sink->write(log->sink, r);
}

void
et_log_emit(struct et_log *log, enum et_record_kind kind, const struct et_timestamp *ts,
            const char *text)
{
    struct et_record r = {
        .kind = kind,
        .text = text,
        .entry = log->entry,
        .n = log->n,
    };
    hand_on(log, &r, ts);
    log->n = 0;
}

void
et_log_text(struct et_log *log, enum et_log_level level, const struct et_timestamp *ts,
            const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    et_report(log->cx, level, "%s", text);
    struct et_record r = {
        .kind = ET_RECORD_LOG,
        .level = level,
        .text = text,
    };
    hand_on(log, &r, ts);
}
