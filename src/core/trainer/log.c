/* log.c: the record under way, and handing it on. See logger.h.
 *
 * Names are found through a hash table of twice the entries' room, open addressed,
 * whose slots count only for the record they were filled in: beginning the next one
 * empties all of them at once. Both arrays double when full and keep that size, so that
 * a warm step allocates nothing, also where monitors log thousands of names. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/seams.h"
#include "etude/ctx.h"
#include "etude/logger.h"

enum { FIRST_ROOM = 128 }; /* a power of two: the usual callbacks log some 30 */

struct slot {
    uint64_t record; /* log->record: in use */
    int entry;
};

struct et_log {
    struct et_ctx *cx;
    struct et_sink *sink;
    int64_t seq;
    uint64_t record; /* from 1: the one under way */
    int n, room;
    struct et_log_entry *entry; /* [room] */
    struct slot *slot;          /* [2 * room] */
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

/* FNV-1a of what fits in an entry. */
static uint64_t
hash(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (int i = 0; i < ET_METRIC_NAME - 1 && name[i]; i++)
        h = (h ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return h;
}

/* The slot of NAME, or the free one that it would take. */
static struct slot *
find(const struct et_log *log, const char *name)
{
    uint64_t mask = 2 * (uint64_t)log->room - 1, at = hash(name) & mask;
    while (log->slot[at].record == log->record &&
           strncmp(log->entry[log->slot[at].entry].name, name, ET_METRIC_NAME - 1) != 0)
        at = (at + 1) & mask;
    return &log->slot[at];
}

static et_status
make_room(struct et_log *log, int room)
{
    void *entry, *slot;
    ET_TRY(et_alloc(log->cx, (size_t)room * sizeof *log->entry, &entry));
    et_status status = et_alloc(log->cx, 2 * (size_t)room * sizeof *log->slot, &slot);
    if (status != ET_OK) {
        et_free(log->cx, entry);
        return status;
    }
    if (log->n)
        memcpy(entry, log->entry, (size_t)log->n * sizeof *log->entry);
    et_free(log->cx, log->entry);
    et_free(log->cx, log->slot);
    log->entry = entry;
    log->slot = slot;
    log->room = room;
    for (int i = 0; i < log->n; i++)
        *find(log, log->entry[i].name) = (struct slot){log->record, i};
    return ET_OK;
}

et_status
et_log_new(struct et_ctx *cx, struct et_sink *sink, struct et_log **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_log *log = block;
    log->cx = cx;
    log->sink = sink;
    log->record = 1;
    et_status status = make_room(log, FIRST_ROOM);
    if (status != ET_OK)
        et_log_free(&log);
    *out = log;
    return status;
}

void
et_log_free(struct et_log **log)
{
    struct et_log *l = *log;
    *log = NULL;
    if (!l)
        return;
    et_free(l->cx, l->entry);
    et_free(l->cx, l->slot);
    et_free(l->cx, l);
}

void
et_log_metric(struct et_log *log, const char *name, double value)
{
    struct slot *slot = find(log, name);
    if (slot->record == log->record) {
        log->entry[slot->entry].value = value;
        return;
    }
    if (log->n == log->room) {
        if (make_room(log, 2 * log->room) != ET_OK) {
            et_report(log->cx, ET_LOG_WARN, "%s: %s is left out of the record",
                      et_error_get(log->cx)->message, name);
            et_error_clear(log->cx);
            return;
        }
        slot = find(log, name);
    }
    *slot = (struct slot){log->record, log->n};
    struct et_log_entry *e = &log->entry[log->n++];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->value = value;
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
    const struct slot *slot = find(log, name);
    if (slot->record != log->record)
        return false;
    *out = log->entry[slot->entry].value;
    return true;
}

static void
hand_on(struct et_log *log, struct et_record *r, const struct et_timestamp *ts)
{
    if (!log->sink)
        return;
    r->t = eti_wall(log->cx);
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
    log->record++;
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
