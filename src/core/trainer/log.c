/* SPDX-License-Identifier: Apache-2.0 */
/* log.c: the record under way, and handing it on. See logger.h.
 *
 * Names are found through a hash table of twice the entries' room, open addressed,
 * whose slots count only for the record they were filled in: beginning the next one
 * empties all of them at once. Both arrays double when full and keep that size, so that
 * a warm step allocates nothing, also where monitors log thousands of names. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/need.h"
#include "core/base/seams.h"
#include "core/trainer/log.h"
#include "etude/ctx.h"

enum { FIRST_ROOM = 128 }; /* a power of two: the usual callbacks log some 30 */

struct slot {
    uint64_t record; /* log->record: in use */
    int entry;
};

/* The numbers of a record. */
struct eti_book {
    struct et_ctx *cx;
    uint64_t record; /* from 1: the one under way */
    int n, room;
    struct et_log_entry *entry; /* [room] */
    struct slot *slot;          /* [2 * room] */
};

struct et_log {
    struct et_ctx *cx;
    struct et_sink *sink;
    int64_t seq;
    struct eti_book *book;              /* of the record under way */
    struct eti_logged_picture *picture; /* [ETI_PICTURES]; NULL: there was none yet */
    int n_pictures;
    struct eti_passage *passage; /* [ETI_PASSAGES]; NULL likewise */
    int n_passages;
};

const char *
et_record_name(enum et_record_kind kind)
{
    static const char *const names[] = {
#define ROW(code, number, text) [number] = text,
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
find(const struct eti_book *b, const char *name)
{
    uint64_t mask = 2 * (uint64_t)b->room - 1, at = hash(name) & mask;
    while (b->slot[at].record == b->record &&
           strncmp(b->entry[b->slot[at].entry].name, name, ET_METRIC_NAME - 1) != 0)
        at = (at + 1) & mask;
    return &b->slot[at];
}

static et_status
make_room(struct eti_book *b, int room)
{
    void *entry, *slot;
    ET_TRY(et_alloc(b->cx, (size_t)room * sizeof *b->entry, &entry));
    et_status status = et_alloc(b->cx, 2 * (size_t)room * sizeof *b->slot, &slot);
    if (status != ET_OK) {
        et_free(b->cx, entry);
        return status;
    }
    if (b->n)
        memcpy(entry, b->entry, (size_t)b->n * sizeof *b->entry);
    et_free(b->cx, b->entry);
    et_free(b->cx, b->slot);
    b->entry = entry;
    b->slot = slot;
    b->room = room;
    for (int i = 0; i < b->n; i++)
        *find(b, b->entry[i].name) = (struct slot){b->record, i};
    return ET_OK;
}

void
eti_book_free(struct eti_book **book)
{
    struct eti_book *b = *book;
    *book = NULL;
    if (!b)
        return;
    et_free(b->cx, b->entry);
    et_free(b->cx, b->slot);
    et_free(b->cx, b);
}

et_status
eti_book_new(struct et_ctx *cx, struct eti_book **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct eti_book *b = block;
    b->cx = cx;
    b->record = 1;
    et_status status = make_room(b, FIRST_ROOM);
    if (status != ET_OK)
        eti_book_free(&b);
    *out = b;
    return status;
}

void
eti_book_clear(struct eti_book *b)
{
    b->n = 0;
    b->record++;
}

void
eti_log_swap(struct et_log *log, struct eti_book **book)
{
    struct eti_book *own = log->book;
    log->book = *book;
    *book = own;
}

et_status
et_log_new(struct et_ctx *cx, struct et_sink *sink, struct et_log **out)
{
    ETI_NEED(cx, cx, out);
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_log *log = block;
    log->cx = cx;
    log->sink = sink;
    et_status status = eti_book_new(cx, &log->book);
    if (status != ET_OK)
        et_log_free(&log);
    *out = log;
    return status;
}

void
et_log_free(struct et_log **log)
{
    if (!log)
        return;
    struct et_log *l = *log;
    *log = NULL;
    if (!l)
        return;
    eti_book_free(&l->book);
    et_free(l->cx, l->picture);
    et_free(l->cx, l->passage);
    et_free(l->cx, l);
}

void
et_log_metric(struct et_log *log, const char *name, double value)
{
    if (!log || !name)
        return;
    struct eti_book *b = log->book;
    struct slot *slot = find(b, name);
    if (slot->record == b->record) {
        b->entry[slot->entry].value = value;
        return;
    }
    if (b->n == b->room) {
        if (make_room(b, 2 * b->room) != ET_OK) {
            et_report(log->cx, ET_LOG_WARN, "%s: %s is left out of the record",
                      et_error_get(log->cx)->message, name);
            et_error_clear(log->cx);
            return;
        }
        slot = find(b, name);
    }
    *slot = (struct slot){b->record, b->n};
    struct et_log_entry *e = &b->entry[b->n++];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->value = value;
}

const struct et_log_entry *
et_log_entries(const struct et_log *log, int *n)
{
    if (!log || !n)
        return NULL;
    *n = log->book->n;
    return log->book->entry;
}

bool
et_log_find(const struct et_log *log, const char *name, double *out)
{
    if (!log || !name)
        return false;
    const struct eti_book *b = log->book;
    const struct slot *slot = find(b, name);
    if (slot->record != b->record)
        return false;
    *out = b->entry[slot->entry].value;
    return true;
}

void
et_log_record(struct et_log *log, struct et_record *r, const struct et_timestamp *ts)
{
    if (!log || !r)
        return;
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
    if (!log)
        return;
    struct et_record r = {
        .kind = kind,
        .text = text,
        .entry = log->book->entry,
        .n = log->book->n,
    };
    et_log_record(log, &r, ts);
    eti_book_clear(log->book);
    log->n_pictures = log->n_passages = 0;
}

void
eti_log_picture(struct et_log *log, const char *tag, const char *path, int64_t width,
                int64_t height)
{
    void *block;
    if (!log->picture) {
        if (et_alloc(log->cx, ETI_PICTURES * sizeof *log->picture, &block) != ET_OK) {
            et_error_clear(log->cx); /* it is a file all the same */
            return;
        }
        log->picture = block;
    }
    if (log->n_pictures == ETI_PICTURES)
        return;
    struct eti_logged_picture *p = &log->picture[log->n_pictures++];
    *p = (struct eti_logged_picture){.width = width, .height = height};
    snprintf(p->tag, sizeof p->tag, "%s", tag);
    snprintf(p->path, sizeof p->path, "%s", path);
}

void
eti_log_passage(struct et_log *log, const char *tag, const char *text)
{
    void *block;
    if (!log->passage) {
        if (et_alloc(log->cx, ETI_PASSAGES * sizeof *log->passage, &block) != ET_OK) {
            et_error_clear(log->cx); /* the log has a line of it all the same */
            return;
        }
        log->passage = block;
    }
    if (log->n_passages == ETI_PASSAGES)
        return;
    struct eti_passage *p = &log->passage[log->n_passages++];
    snprintf(p->tag, sizeof p->tag, "%s", tag);
    snprintf(p->text, sizeof p->text, "%s", text);
}

const struct eti_passage *
eti_log_passages(const struct et_log *log, int *n)
{
    *n = log->n_passages;
    return log->passage;
}

const struct eti_logged_picture *
eti_log_pictures(const struct et_log *log, int *n)
{
    *n = log->n_pictures;
    return log->picture;
}

void
et_log_text(struct et_log *log, enum et_log_level level, const struct et_timestamp *ts,
            const char *fmt, ...)
{
    if (!log || !fmt)
        return;
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
    et_log_record(log, &r, ts);
}
