/* SPDX-License-Identifier: Apache-2.0 */
/* series.c: the series of a log of events: what there are, and points of one to draw.
 *
 * Both walk from the newest record to the oldest. Where a resume begins, what is older
 * and has a ba above its own was done again: the walk goes on with that as its
 * bound. */
#include "config.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/base/need.h"
#include "core/journal/events_read.h"
#include "core/loggers/spans.h"

enum {
    /* Records that a fetch reads one by one for each point, where summaries have too
     * few: 65,536 for 4,096 points, some 0.1 s. */
    RECORDS_PER_POINT = 16,
    /* Records one by one of a stretch without summaries: then two become one piece. */
    MOST_SINGLE = 32 << 10,
};

/* Values next to each other in the run. */
struct piece {
    struct et_series_stats stats;
    struct eti_range range; /* where its records are; {0}: in summaries only */
    bool is_record;         /* it is one record: nothing finer is known */
    int64_t records;        /* there */
};

struct take {
    struct et_events *e;
    int64_t from, to; /* ba; TO sinks at resumes */
    /* One series: its pieces, newest first. */
    const char *name; /* NULL: all of them are counted, in E */
    size_t length;    /* of NAME */
    struct piece *piece;
    int n;
    int64_t room;
    int first;     /* piece of the stretch that is being read: these are oldest first */
    int64_t limit; /* values of a piece that may be less */
    /* All series: what the stretch of records that is being read has of each. */
    struct et_series_stats *stretch;
    int n_stretch;
};

/* ---- one series ---- */

static et_status
add_piece(struct take *t, const struct piece *p)
{
    ET_TRY(eti_grow(t->e->cx, &t->piece, &t->room, t->n + 1, sizeof *t->piece));
    t->piece[t->n++] = *p;
    return ET_OK;
}

/* One record, the newest of the stretch. A log without summaries has as many as it has
 * records: of those two at a time become one, so that memory does not grow with it. */
static et_status
add_single(struct take *t, const struct piece *p)
{
    if (t->n - t->first >= MOST_SINGLE) {
        int n = t->first;
        for (int i = t->first; i + 1 < t->n; i += 2) {
            struct piece both = t->piece[i];
            eti_stats_merge(&both.stats, &t->piece[i + 1].stats, true);
            t->piece[n++] = both;
        }
        t->n = n;
    }
    return add_piece(t, p);
}

static bool
is_wanted(const struct take *t, const msgpack_object *key)
{
    return key->type == MSGPACK_OBJECT_STR && key->via.str.size == t->length &&
           memcmp(key->via.str.ptr, t->name, t->length) == 0;
}

static void
reverse(struct take *t, int from)
{
    for (int i = from, k = t->n - 1; i < k; i++, k--) {
        struct piece p = t->piece[i];
        t->piece[i] = t->piece[k];
        t->piece[k] = p;
    }
}

/* ---- all series ---- */

/* Room for one more. */
static et_status
grow_series(struct take *t, int n)
{
    struct et_events *e = t->e;
    void *series, *stretch;
    ET_TRY(et_alloc(e->cx, (size_t)n * sizeof *e->series, &series));
    et_status status = et_alloc(e->cx, (size_t)n * sizeof *t->stretch, &stretch);
    if (status != ET_OK) {
        et_free(e->cx, series);
        return status;
    }
    if (t->n_stretch) {
        memcpy(series, e->series, (size_t)t->n_stretch * sizeof *e->series);
        memcpy(stretch, t->stretch, (size_t)t->n_stretch * sizeof *t->stretch);
    }
    et_free(e->cx, e->series);
    et_free(e->cx, t->stretch);
    e->series = series;
    t->stretch = stretch;
    t->n_stretch = n;
    return ET_OK;
}

static et_status
find_series(struct take *t, const char *name, size_t n, int *out)
{
    struct et_events *e = t->e;
    int i = eti_series_index(e->cx, &e->names, name, n);
    if (i < 0)
        return et_error_get(e->cx)->status;
    if (i >= t->n_stretch)
        ET_TRY(grow_series(t, e->names.room));
    memcpy(e->series[i].name, e->names.name[i], sizeof e->series[i].name);
    *out = i;
    return ET_OK;
}

static void
widen(struct et_events *e, int64_t low, int64_t high)
{
    if (low < e->low)
        e->low = low;
    if (high > e->high)
        e->high = high;
}

/* ---- summaries ---- */

/* The parts of S whose bits are set in MASK, of all series. */
static et_status
count_parts(struct take *t, const struct eti_summary *s, unsigned mask)
{
    struct eti_summary piece = *s;
    const msgpack_object *series;
    for (int i = 0; i < s->n; i++)
        if (mask >> i & 1)
            widen(t->e, s->part[i].low, s->part[i].high);
    for (int64_t at = mask ? s->at : 0; at > 0; at = piece.more) {
        if (!eti_summary_read(t->e, at, &piece, &series) || piece.n != s->n)
            return ET_FAIL(t->e->cx, ET_EFORMAT, "the summary at byte %lld is damaged",
                           (long long)at);
        for (uint32_t k = 0; k < series->via.map.size; k++) {
            const msgpack_object_kv *kv = &series->via.map.ptr[k];
            struct et_series_stats cell;
            int index;
            if (kv->key.type != MSGPACK_OBJECT_STR ||
                kv->val.type != MSGPACK_OBJECT_ARRAY ||
                kv->val.via.array.size != (uint32_t)s->n)
                continue;
            ET_TRY(find_series(t, kv->key.via.str.ptr, kv->key.via.str.size, &index));
            for (int i = s->n - 1; i >= 0; i--)
                if (mask >> i & 1 && eti_summary_cell(&kv->val.via.array.ptr[i], &cell))
                    eti_stats_merge(&t->e->series[index].all, &cell, false);
        }
    }
    return ET_OK;
}

/* The cells of one series; parts without it have none. */
static et_status
find_cells(struct take *t, const struct eti_summary *s,
           struct et_series_stats cell[ETI_PARTS])
{
    struct eti_summary piece = *s;
    const msgpack_object *series;
    memset(cell, 0, ETI_PARTS * sizeof *cell);
    for (int64_t at = s->at; at > 0; at = piece.more) {
        if (!eti_summary_read(t->e, at, &piece, &series))
            return ET_FAIL(t->e->cx, ET_EFORMAT, "the summary at byte %lld is damaged",
                           (long long)at);
        for (uint32_t k = 0; k < series->via.map.size; k++) {
            const msgpack_object_kv *kv = &series->via.map.ptr[k];
            if (!is_wanted(t, &kv->key) || kv->val.type != MSGPACK_OBJECT_ARRAY)
                continue;
            for (uint32_t i = 0; i < kv->val.via.array.size && i < ETI_PARTS; i++)
                if (!eti_summary_cell(&kv->val.via.array.ptr[i], &cell[i]))
                    cell[i] = (struct et_series_stats){0};
            return ET_OK;
        }
    }
    return ET_OK;
}

static et_status
take_cell(struct take *t, const struct eti_summary *s, int i,
          const struct et_series_stats *cell)
{
    struct piece p = {.stats = *cell};
    if (cell->n == 0)
        return ET_OK;
    if (s->level == 1) {
        p.range.at = s->part[i].at;
        p.range.end = i + 1 < s->n ? s->part[i + 1].at : s->end;
        p.records = s->part[i].n;
    }
    return add_piece(t, &p);
}

static et_status
take_summary(struct eti_summary_walk *w, const struct eti_summary *s)
{
    struct take *t = w->data;
    struct et_series_stats cell[ETI_PARTS];
    unsigned mask = 0; /* parts that are to be counted */
    if (t->name)
        ET_TRY(find_cells(t, s, cell));
    for (int i = s->n - 1; i >= 0; i--) {
        const struct eti_events_part *p = &s->part[i];
        bool opens = s->level > 1 && p->resume >= 0;
        bool apart = p->low > p->high || p->high < t->from || p->low > t->to;
        bool within = p->low >= t->from && p->high <= t->to;
        bool coarse = s->level > 1 && t->name && cell[i].n > t->limit;
        bool empty = t->name && cell[i].n == 0;
        if (!opens && !apart && !empty && within && !coarse) {
            mask |= 1u << i;
            if (t->name)
                ET_TRY(take_cell(t, s, i, &cell[i]));
        } else if (opens || !(apart || empty)) {
            if (!t->name)
                ET_TRY(count_parts(t, s, mask));
            mask = 0;
            ET_TRY(eti_summary_walk_part(w, s, i));
        }
        if (p->resume >= 0 && p->resume < t->to)
            t->to = p->resume;
    }
    return t->name ? ET_OK : count_parts(t, s, mask);
}

/* ---- records ---- */

static et_status
take_record(struct take *t, const struct et_record *r)
{
    if (!t->name)
        widen(t->e, r->ba, r->ba);
    t->e->names.next = 0;
    for (int i = 0; i < r->n; i++) {
        const char *name = r->entry[i].name;
        struct piece p = {.is_record = true};
        int index;
        if (!t->name) {
            ET_TRY(find_series(t, name, strlen(name), &index));
            eti_stats_add(&t->stretch[index], r, i);
        } else if (strcmp(name, t->name) == 0) {
            eti_stats_add(&p.stats, r, i);
            if (p.stats.n > 0)
                ET_TRY(add_single(t, &p));
        }
    }
    return ET_OK;
}

static void
end_stretch(struct take *t, int first_piece)
{
    if (t->name)
        reverse(t, first_piece);
    for (int i = 0; i < t->n_stretch; i++) {
        eti_stats_merge(&t->e->series[i].all, &t->stretch[i], false);
        t->stretch[i] = (struct et_series_stats){0};
    }
}

/* Those of RANGE. *RESUME: the ba of one that they begin with, else -1. */
static et_status
take_stretch(struct take *t, struct eti_range range, int64_t *resume)
{
    struct eti_cursor c = {.at = range.at, .end = range.end, .seq = -1};
    struct eti_payload p;
    bool got;
    t->first = t->n;
    *resume = -1;
    for (;;) {
        ET_TRY(eti_events_read(t->e, &c, &p, &got));
        if (!got)
            break;
        if (p.r.kind == ET_RECORD_RESUME && c.begun == range.at)
            *resume = p.r.ba;
        if (p.is_series && p.r.ba >= t->from && p.r.ba <= t->to)
            ET_TRY(take_record(t, &p.r));
    }
    end_stretch(t, t->first);
    return ET_OK;
}

/* The last resume in RANGE, but for its first record: its byte, or 0. */
static et_status
find_resume(struct et_events *e, struct eti_range range, int64_t *at)
{
    struct eti_cursor c = {.at = range.at, .end = range.end, .seq = -1};
    struct eti_payload p;
    bool got;
    for (*at = 0;;) {
        ET_TRY(eti_events_read(e, &c, &p, &got));
        if (!got)
            return ET_OK;
        if (p.r.kind == ET_RECORD_RESUME && c.begun != range.at)
            *at = c.begun;
    }
}

static et_status
take_records(struct eti_summary_walk *w, struct eti_range range, bool alone)
{
    struct take *t = w->data;
    int64_t resume, split = 0;
    do {
        if (!alone)
            ET_TRY(find_resume(t->e, range, &split));
        struct eti_range part = {split ? split : range.at, range.end};
        ET_TRY(take_stretch(t, part, &resume));
        if (resume >= 0 && resume < t->to)
            t->to = resume;
        range.end = split;
    } while (split);
    return ET_OK;
}

static et_status
take_all(struct take *t)
{
    struct eti_summary_walk w = {
        .e = t->e,
        .data = t,
        .summary = take_summary,
        .records = take_records,
    };
    return eti_summary_walk(&w);
}

/* ---- what there is ---- */

et_status
et_events_series(struct et_events *e, const struct et_series **list, int *n)
{
    ETI_NEED(e ? e->cx : NULL, e, list, n);
    struct take t = {.e = e, .to = INT64_MAX};
    et_status status = ET_OK;
    if (!e->counted) {
        eti_series_names_free(e->cx, &e->names);
        e->low = INT64_MAX;
        e->high = -1;
        status = take_all(&t);
        et_free(e->cx, t.stretch);
        e->counted = status == ET_OK;
    }
    *list = e->series;
    *n = status == ET_OK ? e->names.n : 0;
    return status;
}

et_status
et_events_series_find(struct et_events *e, const char *name,
                      const struct et_series **out)
{
    ETI_NEED(e ? e->cx : NULL, e, name, out);
    const struct et_series *list;
    int n;
    *out = NULL;
    ET_TRY(et_events_series(e, &list, &n));
    for (int i = 0; i < n && !*out; i++)
        if (strcmp(list[i].name, name) == 0)
            *out = &list[i];
    return *out ? ET_OK : ET_FAIL(e->cx, ET_ENOENT, "no series is called '%s'", name);
}

/* ---- points ---- */

/* Values that a piece may stand for so that there are some MOST of them. */
static int64_t
find_limit(const struct et_events *e, const struct et_series *s, const struct take *t,
           int most)
{
    int64_t low = t->from > e->low ? t->from : e->low;
    int64_t high = t->to < e->high ? t->to : e->high;
    double share =
        high < low ? 0 : ((double)(high - low) + 1) / ((double)(e->high - e->low) + 1);
    double limit = 2 * share * (double)s->all.n / most;
    return limit > 2 ? limit < 9e18 ? (int64_t)limit : INT64_MAX : 2;
}

/* Reads the records of the pieces that are not all there, if these are few and better
 * to have. */
static et_status
refine(struct take *t, int most)
{
    int64_t records = 0, values = 0, resume;
    for (int i = 0; i < t->n; i++) {
        const struct piece *p = &t->piece[i];
        values = eti_count_add(values, p->stats.n);
        if (p->stats.n > 2 && !p->is_record)
            records = eti_count_add(records, p->range.at ? p->records : INT32_MAX);
    }
    if (records == 0 || records > (int64_t)RECORDS_PER_POINT * most ||
        (values > most && t->n >= most / 4))
        return ET_OK;
    struct take finer = *t;
    et_status status = ET_OK;
    finer.from = 0;
    finer.to = INT64_MAX;
    finer.piece = NULL;
    finer.n = finer.room = 0;
    for (int i = 0; i < t->n && status == ET_OK; i++) {
        const struct piece *p = &t->piece[i];
        int n = finer.n;
        if (p->stats.n > 2 && !p->is_record)
            status = take_stretch(&finer, p->range, &resume);
        if (status == ET_EFORMAT) { /* the summary is all there is */
            et_error_clear(t->e->cx);
            finer.n = n;
            status = ET_OK;
        }
        if (finer.n == n && status == ET_OK)
            status = add_piece(&finer, p);
    }
    et_free(t->e->cx, t->piece);
    *t = finer;
    return status;
}

static bool
is_before(const struct et_series_point *a, const struct et_series_point *b)
{
    return a->ba < b->ba || (a->ba == b->ba && a->t <= b->t);
}

static int
put_points(const struct et_series_stats *s, struct et_series_point *out)
{
    bool min_first = is_before(&s->min, &s->max);
    if (s->n == 0)
        return 0;
    out[0] = min_first ? s->min : s->max;
    if (s->n == 1 || memcmp(&s->min, &s->max, sizeof s->min) == 0)
        return 1;
    out[1] = min_first ? s->max : s->min;
    return 2;
}

static bool
all_there(const struct take *t, int most)
{
    int64_t values = 0;
    bool fine = true;
    for (int i = 0; i < t->n; i++) {
        const struct et_series_stats *s = &t->piece[i].stats;
        values = eti_count_add(values, s->n);
        fine = fine && (s->n <= 1 || (s->n == 2 && s->min.value != s->max.value));
    }
    return fine && values <= most;
}

et_status
et_events_fetch(struct et_events *e, const char *name, int64_t from, int64_t to,
                int most, struct et_series_point *out, int *n)
{
    ETI_NEED(e ? e->cx : NULL, e, n);
    const struct et_series *list, *series = NULL;
    int n_series;
    *n = 0;
    if (most < 2)
        return ET_FAIL(e->cx, ET_EINVAL, "a fetch of %d points; there are 2 or more",
                       most);
    ET_TRY(et_events_series(e, &list, &n_series));
    for (int i = 0; i < n_series && !series; i++)
        if (strcmp(list[i].name, name) == 0)
            series = &list[i];
    if (!series)
        return ET_OK;
    struct take t = {
        .e = e,
        .from = from,
        .to = to,
        .name = name,
        .length = strlen(name),
    };
    t.limit = find_limit(e, series, &t, most);
    et_status status = take_all(&t);
    if (status == ET_OK)
        status = refine(&t, most);
    if (status == ET_OK) {
        int groups = all_there(&t, most) || t.n < most / 2 ? t.n : most / 2;
        reverse(&t, 0);
        for (int g = 0; g < groups; g++) {
            struct et_series_stats all = {0};
            int last = (int)((int64_t)t.n * (g + 1) / groups);
            for (int i = (int)((int64_t)t.n * g / groups); i < last; i++)
                eti_stats_merge(&all, &t.piece[i].stats, true);
            *n += put_points(&all, out + *n);
        }
    }
    et_free(e->cx, t.piece);
    return status;
}
