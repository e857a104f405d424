/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c: what a log of events says about itself, counted while it is written.
 *
 * Each level has a table of cells, [part][series]; a level that is full becomes one
 * part of the next, so a record is counted once and moved up once in 2,048. */
#include "config.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "core/journal/events.h"
#include "core/loggers/spans.h"

enum { FIRST_ROOM = 16 };

/* ---- names ---- */

static int *
find_slot(const struct eti_series_names *names, const char *name, size_t n)
{
    size_t mask = 2 * (size_t)names->room - 1;
    for (size_t i = XXH3_64bits(name, n) & mask;; i = (i + 1) & mask) {
        int *slot = &names->slot[i];
        if (*slot == 0 || (memcmp(names->name[*slot - 1], name, n) == 0 &&
                           names->name[*slot - 1][n] == '\0'))
            return slot;
    }
}

static bool
grow_names(struct et_ctx *cx, struct eti_series_names *names)
{
    struct eti_series_names more = {.room = names->room ? 2 * names->room : FIRST_ROOM};
    void *name, *slot;
    if (et_alloc(cx, (size_t)more.room * sizeof *more.name, &name) != ET_OK)
        return false;
    if (et_alloc(cx, 2 * (size_t)more.room * sizeof *more.slot, &slot) != ET_OK) {
        et_free(cx, name);
        return false;
    }
    more.name = name;
    more.slot = slot;
    if (names->n)
        memcpy(more.name, names->name, (size_t)names->n * sizeof *more.name);
    for (; more.n < names->n; more.n++)
        *find_slot(&more, more.name[more.n], strlen(more.name[more.n])) = more.n + 1;
    eti_series_names_free(cx, names);
    *names = more;
    return true;
}

int
eti_series_index(struct et_ctx *cx, struct eti_series_names *names, const char *name,
                 size_t n)
{
    int guess = names->next;
    if (n >= ET_METRIC_NAME)
        n = ET_METRIC_NAME - 1;
    if (guess >= names->n || memcmp(names->name[guess], name, n) != 0 ||
        names->name[guess][n] != '\0') {
        int *slot = names->room ? find_slot(names, name, n) : NULL;
        if (!slot || *slot == 0) {
            if (names->n == names->room && !grow_names(cx, names))
                return -1;
            slot = find_slot(names, name, n);
            memcpy(names->name[names->n], name, n);
            *slot = ++names->n;
        }
        guess = *slot - 1;
    }
    names->next = guess + 1;
    return guess;
}

void
eti_series_names_free(struct et_ctx *cx, struct eti_series_names *names)
{
    et_free(cx, names->name);
    et_free(cx, names->slot);
    *names = (struct eti_series_names){0};
}

/* ---- statistics ---- */

void
eti_stats_add(struct et_series_stats *s, const struct et_record *r, int i)
{
    const struct et_series_point p = {r->ba, r->t, r->entry[i].value};
    bool is_bad = !isfinite(p.value);
    const struct et_log_span one = {.n = !is_bad,
                                    .bad = is_bad,
                                    .min = p.value,
                                    .max = p.value,
                                    .sum = is_bad ? 0 : p.value};
    const struct et_log_span *v = r->span ? &r->span[i] : &one;
    s->last = p;
    s->bad = eti_count_add(s->bad, v->bad);
    if (v->n == 0)
        return;
    if (s->n == 0 || v->min < s->min.value)
        s->min = (struct et_series_point){p.ba, p.t, v->min};
    if (s->n == 0 || v->max > s->max.value)
        s->max = (struct et_series_point){p.ba, p.t, v->max};
    s->n = eti_count_add(s->n, v->n);
    s->sum += v->sum;
}

void
eti_stats_merge(struct et_series_stats *s, const struct et_series_stats *other,
                bool newer)
{
    if (other->n == 0 && other->bad == 0)
        return;
    if (newer || (s->n == 0 && s->bad == 0))
        s->last = other->last;
    if (other->n > 0) {
        /* Of equals the first in the run, whichever way they come. */
        if (s->n == 0 || other->min.value < s->min.value ||
            (!newer && other->min.value == s->min.value))
            s->min = other->min;
        if (s->n == 0 || other->max.value > s->max.value ||
            (!newer && other->max.value == s->max.value))
            s->max = other->max;
    }
    s->n = eti_count_add(s->n, other->n);
    s->bad = eti_count_add(s->bad, other->bad);
    s->sum += other->sum;
}

const struct eti_events_part eti_events_part_empty = {
    .low = INT64_MAX, .high = -1, .resume = -1};

void
eti_events_part_merge(struct eti_events_part *p, const struct eti_events_part *other)
{
    p->n = eti_count_add(p->n, other->n);
    if (other->low < p->low)
        p->low = other->low;
    if (other->high > p->high)
        p->high = other->high;
    if (other->resume >= 0 && (p->resume < 0 || other->resume < p->resume))
        p->resume = other->resume;
}

/* ---- the tally ---- */

static void
begin_block(struct eti_block *b)
{
    *b = (struct eti_block){.size = ETI_PART_RECORDS};
    for (int i = 0; i < ETI_PARTS; i++)
        b->part[i] = eti_events_part_empty;
}

static bool
grow_cells(struct eti_tally *t, int room)
{
    void *block;
    size_t rows = ETI_LEVELS * ETI_PARTS;
    if (et_alloc(t->cx, rows * (size_t)room * sizeof *t->cell, &block) != ET_OK)
        return false;
    struct et_series_stats *cell = block;
    for (size_t i = 0; i < rows && t->cell; i++)
        memcpy(cell + i * (size_t)room, t->cell + i * (size_t)t->room,
               (size_t)t->room * sizeof *cell);
    et_free(t->cx, t->cell);
    t->cell = cell;
    t->room = room;
    return true;
}

et_status
eti_tally_init(struct eti_tally *t, struct et_ctx *cx)
{
    *t = (struct eti_tally){.cx = cx};
    for (int level = 0; level < ETI_LEVELS; level++)
        begin_block(&t->block[level]);
    if (grow_names(cx, &t->names) && grow_cells(t, t->names.room))
        return ET_OK;
    eti_tally_free(t);
    return et_error_get(cx)->status;
}

void
eti_tally_free(struct eti_tally *t)
{
    if (!t->cx)
        return;
    eti_series_names_free(t->cx, &t->names);
    et_free(t->cx, t->cell);
    *t = (struct eti_tally){.off = true};
}

struct et_series_stats *
eti_tally_cell(const struct eti_tally *t, int level, int part, int series)
{
    return &t->cell[(size_t)(level * ETI_PARTS + part) * (size_t)t->room +
                    (size_t)series];
}

int
eti_tally_series(struct eti_tally *t, const char *name, size_t n)
{
    int i = eti_series_index(t->cx, &t->names, name, n);
    if (i < 0 || (i >= t->room && !grow_cells(t, t->names.room))) {
        et_error_clear(t->cx); /* summaries are all that is lost */
        t->off = true;
        return -1;
    }
    return i;
}

bool
eti_is_series(const struct et_record *r)
{
    return r->rank == 0 && r->kind != ET_RECORD_RUN && r->kind != ET_RECORD_HEALTH &&
           r->kind != ET_RECORD_ALGORITHM && r->kind != ET_RECORD_COMMAND;
}

void
eti_tally_add(struct eti_tally *t, const struct et_record *r, int64_t at)
{
    struct eti_block *b = &t->block[0];
    struct eti_events_part *p = &b->part[b->n];
    if (t->off)
        return;
    if (b->from == 0)
        b->from = at;
    if (p->n == 0)
        p->at = at;
    if (r->kind < ET_RECORD_COUNT) /* else of a later version */
        b->kinds[r->kind]++;
    p->n++;
    if (r->kind == ET_RECORD_RESUME)
        p->resume = r->ba;
    if (!eti_is_series(r))
        return;
    int64_t low = r->of > 0 ? r->from : r->ba;
    if (r->n > 0 && low < p->low)
        p->low = low;
    if (r->n > 0 && r->ba > p->high)
        p->high = r->ba;
    t->names.next = 0;
    for (int i = 0; i < r->n; i++) {
        const char *name = r->entry[i].name;
        int series = eti_tally_series(t, name, strlen(name));
        if (series < 0)
            return;
        eti_stats_add(eti_tally_cell(t, 0, b->n, series), r, i);
    }
    b->n += p->n >= b->size;
}

int
eti_tally_parts(const struct eti_tally *t, int level)
{
    const struct eti_block *b = &t->block[level];
    return b->n + (b->n < ETI_PARTS && b->part[b->n].n > 0);
}

void
eti_tally_close(struct eti_tally *t, int level, int64_t at)
{
    struct eti_block *b = &t->block[level];
    int n = eti_tally_parts(t, level);
    t->last[level] = at;
    if (level + 1 < ETI_LEVELS) {
        struct eti_block *up = &t->block[level + 1];
        struct eti_events_part *p = &up->part[up->n];
        p->at = at;
        if (up->from == 0)
            up->from = b->from;
        for (int i = 0; i < n; i++)
            eti_events_part_merge(p, &b->part[i]);
        for (int i = 0; i < n; i++)
            for (int s = 0; s < t->names.n; s++)
                eti_stats_merge(eti_tally_cell(t, level + 1, up->n, s),
                                eti_tally_cell(t, level, i, s), true);
        for (int kind = 0; kind < ET_RECORD_COUNT; kind++)
            up->kinds[kind] = eti_count_add(up->kinds[kind], b->kinds[kind]);
        up->n++;
    }
    begin_block(b);
    memset(eti_tally_cell(t, level, 0, 0), 0,
           ETI_PARTS * (size_t)t->room * sizeof *t->cell);
}

void
eti_tally_widen(struct eti_tally *t)
{
    struct eti_block *b = &t->block[0];
    size_t row = (size_t)t->room * sizeof *t->cell;
    for (int i = 0; i < ETI_PARTS; i += 2) {
        eti_events_part_merge(&b->part[i], &b->part[i + 1]);
        b->part[i / 2] = b->part[i];
        for (int s = 0; s < t->names.n; s++)
            eti_stats_merge(eti_tally_cell(t, 0, i, s), eti_tally_cell(t, 0, i + 1, s),
                            true);
        if (i > 0)
            memcpy(eti_tally_cell(t, 0, i / 2, 0), eti_tally_cell(t, 0, i, 0), row);
    }
    b->n = ETI_PARTS / 2;
    b->size *= 2;
    for (int i = b->n; i < ETI_PARTS; i++)
        b->part[i] = eti_events_part_empty;
    memset(eti_tally_cell(t, 0, b->n, 0), 0, ETI_PARTS / 2 * row);
}
