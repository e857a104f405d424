/* SPDX-License-Identifier: Apache-2.0 */
/* thin.c: see thin.h.
 *
 * Time is that of the records: the same records always give the same file. */
#include "config.h"

#include "core/loggers/thin.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"

/* Seconds that one record stands for, and at most, where the budget is used up. */
static const double LENGTH = 1, LONGEST = 60;

void
eti_thin_init(struct eti_thin *t, struct et_ctx *cx, struct et_time interval,
              void (*out)(void *data, const struct et_record *r), void *data)
{
    bool asked = interval.value > 0 &&
                 (interval.unit == ET_TIME_BATCH || interval.unit == ET_TIME_SECOND);
    *t = (struct eti_thin){
        .cx = cx, .interval = {0, ET_TIME_UNIT_COUNT}, .out = out, .data = data};
    if (asked)
        t->interval = interval;
    for (int i = 0; i < ETI_THIN_CLASSES; i++)
        t->class[i].left = ETI_THIN_RATE * ETI_THIN_SECONDS;
}

void
eti_thin_release(struct eti_thin *t)
{
    for (struct eti_thin_slot *s = t->slot; s < t->slot + ETI_THIN_SLOTS; s++) {
        et_free(t->cx, s->entry);
        et_free(t->cx, s->span);
        *s = (struct eti_thin_slot){0};
    }
}

/* ---- what may become one ---- */

enum { NO_CLASS = -1, BATCHES, EPOCHS, EVALUATIONS, STATES };

/* A state between which and another a run changes with every evaluation. */
static bool
is_passing(const struct et_record *r)
{
    return r->rank == 0 && r->text &&
           (strcmp(r->text, "running") == 0 || strcmp(r->text, "evaluating") == 0);
}

static int
class_of(const struct et_record *r)
{
    switch (r->kind) {
    case ET_RECORD_BATCH:
    case ET_RECORD_METRIC:
    case ET_RECORD_MEMORY:
    case ET_RECORD_THROUGHPUT:
        return BATCHES;
    case ET_RECORD_EPOCH:
        return EPOCHS;
    case ET_RECORD_EVAL:
        return EVALUATIONS;
    case ET_RECORD_RUN:
        return is_passing(r) ? STATES : NO_CLASS;
    default:
        return NO_CLASS;
    }
}

/* Must it stand behind all that was before it? What comes by the clock, or as a line of
 * text, need not. */
static bool
is_ordered(const struct et_record *r)
{
    return r->kind != ET_RECORD_HEALTH && r->kind != ET_RECORD_ALGORITHM &&
           (r->kind != ET_RECORD_LOG || r->level >= ET_LOG_WARN);
}

static bool
is_same(const struct eti_thin_slot *s, const struct et_record *r)
{
    bool alike = s->r.kind == r->kind && s->r.rank == r->rank;
    if (!alike || r->kind == ET_RECORD_RUN)
        return alike; /* of states the last counts */
    return r->text ? s->r.text && strcmp(s->text, r->text) == 0 : !s->r.text;
}

/* The slot of R, or one that is free; NULL: all are taken by others. */
static struct eti_thin_slot *
find_slot(struct eti_thin *t, const struct et_record *r)
{
    struct eti_thin_slot *unused = NULL;
    if (r->text && strlen(r->text) >= sizeof t->slot[0].text)
        return NULL;
    for (struct eti_thin_slot *s = t->slot; s < t->slot + ETI_THIN_SLOTS; s++) {
        if (s->r.of > 0 && is_same(s, r))
            return s;
        if (s->r.of == 0 && !unused)
            unused = s;
    }
    return unused;
}

/* ---- adding up ---- */

static void
add_value(struct et_log_span *s, double value)
{
    if (!isfinite(value)) {
        s->bad++;
        return;
    }
    s->min = s->n == 0 || value < s->min ? value : s->min;
    s->max = s->n == 0 || value > s->max ? value : s->max;
    s->sum += value;
    s->n++;
}

/* The place of NAME, which is likely GUESS; -1: memory is out. */
static int
place_of(struct eti_thin *t, struct eti_thin_slot *s, const char *name, int guess)
{
    int64_t room = s->room, spans = s->room;
    if (guess < s->n && strcmp(s->entry[guess].name, name) == 0)
        return guess;
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->entry[i].name, name) == 0)
            return i;
    if (s->n == s->room) {
        if (eti_grow(t->cx, &s->entry, &room, s->n + 1, sizeof *s->entry) != ET_OK ||
            eti_grow(t->cx, &s->span, &spans, room, sizeof *s->span) != ET_OK) {
            et_error_clear(t->cx);
            return -1;
        }
        s->room = (int)room;
    }
    snprintf(s->entry[s->n].name, sizeof s->entry[s->n].name, "%s", name);
    s->span[s->n] = (struct et_log_span){0};
    return s->n++;
}

/* False where memory is out: nothing of R has been taken. */
static bool
add(struct eti_thin *t, struct eti_thin_slot *s, const struct et_record *r)
{
    int64_t from = s->r.of > 0 ? s->r.from : r->ba, of = s->r.of;
    if (of == 0) {
        s->n = 0;
        s->since = r->t;
    }
    for (int i = 0; i < r->n; i++)
        if (place_of(t, s, r->entry[i].name, i) < 0)
            return false;
    for (int i = 0; i < r->n; i++) {
        int at = place_of(t, s, r->entry[i].name, i);
        s->entry[at].value = r->entry[i].value;
        if (r->span)
            s->span[at] = r->span[i]; /* (nobody thins what is thinned) */
        else
            add_value(&s->span[at], r->entry[i].value);
    }
    s->r = *r;
    s->r.from = from;
    s->r.of = of + 1;
    s->r.entry = NULL;
    s->r.span = NULL;
    s->r.n = 0;
    if (r->text) {
        snprintf(s->text, sizeof s->text, "%s", r->text);
        s->r.text = s->text;
    }
    return true;
}

static void
close_slot(struct eti_thin *t, struct eti_thin_slot *s)
{
    struct et_record r = s->r;
    s->r.of = 0;
    r.entry = s->entry;
    r.n = s->n;
    /* A state has facts of its moment, the newest. */
    if (r.of > 1 && r.kind != ET_RECORD_RUN)
        r.span = s->span;
    else
        r.of = r.from = 0;
    t->out(t->data, &r);
}

/* ---- when ---- */

static double
budget(const struct eti_thin *t, double now)
{
    return ETI_THIN_ADVANCE + ETI_THIN_GROWTH * fmax(0, now - t->begun) -
           (double)t->bytes;
}

/* Once it is used up, not before an eighth of the advance is there again. */
static bool
has_budget(struct eti_thin *t, double now)
{
    double left = budget(t, now);
    if (left < 0)
        t->poor = true;
    else if (left > ETI_THIN_ADVANCE / 8)
        t->poor = false;
    return !t->poor;
}

/* Is there room for one more record of CLASS at T? Each counts, whatever becomes of it:
 * only a run that has become slower, on the whole, is kept batch by batch again. */
static bool
is_slow(struct eti_thin *t, int class, double now)
{
    double *left = &t->class[class].left, most = ETI_THIN_RATE * ETI_THIN_SECONDS;
    double passed = now - t->class[class].t;
    t->class[class].t = now;
    if (passed > 0)
        *left = fmin(most, *left + ETI_THIN_RATE * passed);
    *left = fmax(-ETI_THIN_RATE, *left - 1);
    return *left >= 0;
}

/* Is R to be kept by itself? */
static bool
is_kept(struct eti_thin *t, int class, const struct et_record *r)
{
    bool asked = et_time_is_set(t->interval);
    bool slow = is_slow(t, class, r->t), rich = has_budget(t, r->t);
    if (asked && t->interval.unit == ET_TIME_BATCH && t->interval.value <= 1)
        return true;
    if (asked && class == BATCHES)
        return false;
    return slow && rich;
}

static bool
is_due(const struct eti_thin *t, const struct eti_thin_slot *s, double now)
{
    double waited = now - s->since;
    bool asked = et_time_is_set(t->interval) && class_of(&s->r) == BATCHES;
    if (waited < 0) /* the clock was set back */
        return true;
    if (asked && t->interval.unit == ET_TIME_BATCH)
        return s->r.of >= (int64_t)t->interval.value;
    if (asked)
        return waited >= t->interval.value;
    return waited >= LENGTH && (waited >= LONGEST || budget(t, now) >= 0);
}

/* ---- records ---- */

void
eti_thin_flush(struct eti_thin *t)
{
    for (struct eti_thin_slot *s = t->slot; s < t->slot + ETI_THIN_SLOTS; s++)
        if (s->r.of > 0)
            close_slot(t, s);
}

bool
eti_thin_due(struct eti_thin *t, double now)
{
    bool waits = false;
    for (struct eti_thin_slot *s = t->slot; s < t->slot + ETI_THIN_SLOTS; s++) {
        bool by_count = et_time_is_set(t->interval) &&
                        t->interval.unit == ET_TIME_BATCH && class_of(&s->r) == BATCHES;
        if (s->r.of > 0 && !by_count && is_due(t, s, now))
            close_slot(t, s);
        waits = waits || (s->r.of > 0 && !by_count);
    }
    return waits;
}

void
eti_thin_put(struct eti_thin *t, const struct et_record *r)
{
    int class = class_of(r);
    if (t->begun == 0)
        t->begun = r->t;
    if (class == NO_CLASS) {
        if (is_ordered(r))
            eti_thin_flush(t);
        t->out(t->data, r);
        return;
    }
    bool kept = is_kept(t, class, r);
    struct eti_thin_slot *s = find_slot(t, r);
    if (s && s->r.of > 0 && is_due(t, s, r->t))
        close_slot(t, s);
    if (kept && (class == EPOCHS || class == EVALUATIONS) && !t->poor)
        eti_thin_flush(t); /* an evaluation stands behind the batches before it */
    else if (kept && s && s->r.of > 0)
        close_slot(t, s);
    if (kept || !s || !add(t, s, r)) {
        t->out(t->data, r);
        return;
    }
    if (is_due(t, s, r->t))
        close_slot(t, s);
}
