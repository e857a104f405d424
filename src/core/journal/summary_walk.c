/* SPDX-License-Identifier: Apache-2.0 */
/* summary_walk.c: reading a log of events by its summaries, the newest first.
 *
 * The newest summary of each level stands in the one that is found from the end, and in
 * each the one before it. What is behind the newest, and what is before one that cannot
 * be read, is read as it is: records never need a summary. */
#include "config.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/base/need.h"
#include "core/journal/events_read.h"
#include "core/loggers/spans.h"

/* The summary at AT, of that LEVEL and within [LOWER, AT); false unless all records of
 * it can be read. */
static bool
read_whole(struct et_events *e, int64_t at, int level, int64_t lower,
           struct eti_summary *s)
{
    struct eti_summary piece;
    const msgpack_object *series;
    if (!eti_summary_read(e, at, s, &series) || !s->done || s->level != level ||
        s->from < lower)
        return false;
    for (int64_t more = s->more; more > 0; more = piece.more)
        if (!eti_summary_read(e, more, &piece, &series) || piece.n != s->n ||
            piece.level != level)
            return false;
    return true;
}

/* The summaries of LEVEL from the one at AT back to byte LOWER; what is from UPPER on
 * has been seen. Reads records from where one cannot be read. */
static et_status
walk_chain(struct eti_summary_walk *w, int level, int64_t at, int64_t lower,
           int64_t *upper)
{
    struct eti_summary s;
    while (at > lower) {
        if (at > *upper || !read_whole(w->e, at, level, lower, &s)) {
            struct eti_range lost = {lower, *upper};
            *upper = lower;
            return lost.end > lost.at ? w->records(w, lost, false) : ET_OK;
        }
        ET_TRY(w->summary(w, &s));
        *upper = s.from;
        at = s.last[level - 1];
    }
    return ET_OK;
}

et_status
eti_summary_walk(struct eti_summary_walk *w)
{
    struct eti_summary s;
    int64_t head[ETI_LEVELS] = {0}, upper = ETI_EVENTS_HEADER;
    if (eti_summary_find_last(w->e, w->e->size, &s, &upper)) {
        memcpy(head, s.last, sizeof s.last);
        head[s.level - 1] = s.at;
    }
    ET_TRY(w->records(w, (struct eti_range){upper, w->e->size}, false));
    for (int level = 1; level <= ETI_LEVELS; level++) {
        int64_t lower = ETI_EVENTS_HEADER;
        for (int up = level; up < ETI_LEVELS; up++)
            lower = head[up] > lower ? head[up] : lower;
        ET_TRY(walk_chain(w, level, head[level - 1], lower, &upper));
    }
    if (upper <= ETI_EVENTS_HEADER)
        return ET_OK;
    return w->records(w, (struct eti_range){ETI_EVENTS_HEADER, upper}, false);
}

et_status
eti_summary_walk_part(struct eti_summary_walk *w, const struct eti_summary *s, int i)
{
    struct eti_range range = {s->part[i].at, s->end};
    struct eti_summary child;
    if (s->level == 1) {
        if (i + 1 < s->n)
            range.end = s->part[i + 1].at;
        return w->records(w, range, true);
    }
    range = (struct eti_range){i > 0 ? s->part[i - 1].at : s->from, s->part[i].at};
    if (!read_whole(w->e, range.end, s->level - 1, range.at, &child))
        return w->records(w, range, false);
    return w->summary(w, &child);
}

/* ---- some kinds alone ---- */

struct stretches {
    uint64_t kinds;
    struct eti_range *range; /* newest first */
    int n;
    int64_t room;
};

static et_status
add_range(struct eti_summary_walk *w, struct eti_range range, bool alone)
{
    struct stretches *s = w->data;
    (void)alone;
    if (s->n > 0 && s->range[s->n - 1].at == range.end) {
        s->range[s->n - 1].at = range.at;
        return ET_OK;
    }
    ET_TRY(eti_grow(w->e->cx, &s->range, &s->room, s->n + 1, sizeof *s->range));
    s->range[s->n++] = range;
    return ET_OK;
}

static et_status
add_summary(struct eti_summary_walk *w, const struct eti_summary *s)
{
    const struct stretches *wanted = w->data;
    int64_t records = 0;
    for (int kind = 0; kind < ET_RECORD_COUNT; kind++)
        if (wanted->kinds >> kind & 1)
            records = eti_count_add(records, s->kinds[kind]);
    if (records == 0)
        return ET_OK;
    if (s->level == 1)
        return add_range(w, (struct eti_range){s->from, s->end}, true);
    for (int i = s->n - 1; i >= 0; i--)
        ET_TRY(eti_summary_walk_part(w, s, i));
    return ET_OK;
}

et_status
et_events_only(struct et_events *e, uint64_t kinds)
{
    ETI_NEED(e ? e->cx : NULL, e);
    struct stretches s = {.kinds = kinds};
    struct eti_summary_walk w = {
        .e = e,
        .data = &s,
        .summary = add_summary,
        .records = add_range,
    };
    et_status status = eti_summary_walk(&w);
    if (status != ET_OK) {
        et_free(e->cx, s.range);
        return status;
    }
    for (int i = 0, k = s.n - 1; i < k; i++, k--) {
        struct eti_range r = s.range[i];
        s.range[i] = s.range[k];
        s.range[k] = r;
    }
    et_free(e->cx, e->range);
    e->range = s.range;
    e->n_ranges = s.n;
    e->next_range = 0;
    e->kinds = kinds;
    e->cursor = (struct eti_cursor){.at = ETI_EVENTS_HEADER, .end = ETI_EVENTS_HEADER};
    return ET_OK;
}

/* ---- the newest alone ---- */

et_status
eti_events_newest(struct et_events *e)
{
    enum { PARTS = 2 }; /* of the newest summary, that are read as well */
    struct eti_summary s;
    int64_t at = ETI_EVENTS_HEADER, behind;
    void *block;
    bool found = eti_summary_find_last(e, e->size, &s, &behind);
    if (found && s.level > 1)
        found = read_whole(e, s.last[0], 1, ETI_EVENTS_HEADER, &s);
    if (found && s.n > 0)
        at = s.part[s.n > PARTS ? s.n - PARTS : 0].at;
    ET_TRY(et_alloc(e->cx, sizeof *e->range, &block));
    et_free(e->cx, e->range);
    e->range = block;
    e->range[0] = (struct eti_range){at, e->size};
    e->n_ranges = 1;
    e->next_range = 0;
    e->kinds = UINT64_MAX;
    e->cursor = (struct eti_cursor){.at = ETI_EVENTS_HEADER, .end = ETI_EVENTS_HEADER};
    return ET_OK;
}

/* ---- going on where a writer ended ---- */

struct recount {
    struct eti_tally *tally;
    int64_t at[ETI_LEVELS][ETI_PARTS]; /* summaries that are parts of none yet, newest
                                          first */
    int n[ETI_LEVELS];
    int ranges;
};

static et_status
note_summary(struct eti_summary_walk *w, const struct eti_summary *s)
{
    struct recount *r = w->data;
    int level = s->level - 1;
    if (s->level == ETI_LEVELS)
        return ET_OK;
    if (r->n[level] == ETI_PARTS)
        r->tally->off = true;
    else
        r->at[level][r->n[level]++] = s->at;
    return ET_OK;
}

/* The first is the tail; others should have been summarised. */
static et_status
note_records(struct eti_summary_walk *w, struct eti_range range, bool alone)
{
    struct recount *r = w->data;
    (void)range;
    (void)alone;
    r->tally->off = r->tally->off || r->ranges++ > 0;
    return ET_OK;
}

static void
restore_part(struct et_events *e, struct eti_tally *t, int64_t at)
{
    struct eti_summary s, piece;
    const msgpack_object *series;
    if (!eti_summary_read(e, at, &s, &series)) {
        t->off = true;
        return;
    }
    struct eti_block *up = &t->block[s.level];
    struct eti_events_part *p = &up->part[up->n];
    p->at = at;
    if (up->from == 0)
        up->from = s.from;
    for (int i = 0; i < s.n; i++)
        eti_events_part_merge(p, &s.part[i]);
    for (int kind = 0; kind < ET_RECORD_COUNT; kind++)
        up->kinds[kind] = eti_count_add(up->kinds[kind], s.kinds[kind]);
    for (piece = s; at > 0 && !t->off; at = piece.more) {
        t->off = !eti_summary_read(e, at, &piece, &series);
        for (uint32_t k = 0; !t->off && k < series->via.map.size; k++) {
            const msgpack_object_kv *kv = &series->via.map.ptr[k];
            struct et_series_stats cell;
            int index =
                kv->key.type == MSGPACK_OBJECT_STR
                    ? eti_tally_series(t, kv->key.via.str.ptr, kv->key.via.str.size)
                    : -1;
            for (uint32_t i = 0; index >= 0 && kv->val.type == MSGPACK_OBJECT_ARRAY &&
                                 i < kv->val.via.array.size;
                 i++)
                if (eti_summary_cell(&kv->val.via.array.ptr[i], &cell))
                    eti_stats_merge(eti_tally_cell(t, s.level, up->n, index), &cell,
                                    true);
        }
    }
    up->n++;
}

static et_status
recount(struct et_events *e, struct eti_tally *t, struct et_record *last, int64_t *end)
{
    struct recount r = {.tally = t};
    struct eti_summary_walk w = {
        .e = e,
        .data = &r,
        .summary = note_summary,
        .records = note_records,
    };
    struct eti_summary s;
    int64_t next = 0;
    bool got = true;
    ET_TRY(eti_summary_walk(&w));
    for (int level = 0; level < ETI_LEVELS && !t->off; level++)
        for (int i = r.n[level] - 1; i >= 0; i--)
            restore_part(e, t, r.at[level][i]);
    if (eti_summary_find_last(e, e->size, &s, &next)) {
        memcpy(t->last, s.last, sizeof t->last);
        t->last[s.level - 1] = s.at;
        e->cursor = (struct eti_cursor){.at = s.at, .end = e->size, .seq = -1};
    }
    while (got) {
        struct et_record r_next;
        ET_TRY(et_events_next(e, &r_next, &got));
        if (!got)
            break;
        *last = r_next;
        eti_tally_add(t, &r_next, e->cursor.begun);
        if (t->block[0].n == ETI_PARTS)
            eti_tally_widen(t);
    }
    last->seq = e->cursor.seq;
    *end = e->cursor.at;
    return ET_OK;
}

et_status
eti_events_recount(struct et_ctx *cx, const char *directory, struct eti_tally *t,
                   struct et_record *last, int64_t *end)
{
    char path[4096];
    struct et_events *e;
    *last = (struct et_record){0};
    snprintf(path, sizeof path, "%s/events.log", directory);
    ET_TRY(et_events_open(cx, path, &e));
    et_status status = ET_OK;
    if (e->major == ETI_EVENTS_MAJOR)
        status = recount(e, t, last, end);
    else
        status = ET_FAIL(cx, ET_EFORMAT, "%s has format %u; only %d can be added to",
                         path, e->major, ETI_EVENTS_MAJOR);
    et_events_close(&e);
    last->entry = NULL; /* they were the reader's */
    last->span = NULL;
    last->of = 0;
    last->text = NULL;
    last->n = 0;
    return status;
}
