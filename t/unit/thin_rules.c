/* SPDX-License-Identifier: Apache-2.0 */
/* Thinning a log, rule by rule: which records are merged, which are kept apart, and
 * when records are written. */
#include <stdio.h>
#include <string.h>

#include "core/loggers/thin.h"
#include "t/data/fixture.h"
#include "t/tap.h"

/* ---- which records are merged ---- */

enum { FAST = 1900, MANY = 5 * FAST };

/* What is written. */
struct lines {
    int n, with_span;
    char order[64];      /* first letters of the kinds */
    int64_t of, longest; /* records that are stood for: in all, and at most by one */
    char last[96];
};

static void
note_line(void *data, const struct et_record *r)
{
    struct lines *l = data;
    if ((size_t)l->n + 1 < sizeof l->order)
        l->order[l->n] = et_record_name(r->kind)[0];
    l->n++;
    l->with_span += r->span != NULL;
    l->of += r->of ? r->of : 1;
    l->longest = r->of > l->longest ? r->of : l->longest;
    snprintf(l->last, sizeof l->last, "%s/%.40s/%d/%d", et_record_name(r->kind),
             r->text ? r->text : "", r->rank, (int)r->of);
}

static struct et_record
number_of(enum et_record_kind kind, const char *text, double t, int64_t ba)
{
    static struct et_log_entry entry = {"a", 0};
    entry.value = (double)ba;
    return (struct et_record){
        .kind = kind, .t = t, .ba = ba, .text = text, .entry = &entry, .n = 1};
}

/* Records of each kind for five seconds, 1,900 a second. */
static void
test_kinds(struct et_ctx *cx)
{
    static const struct {
        enum et_record_kind kind;
        const char *text;
        int rank;
        bool is_thinned, has_spans;
    } rows[] = {
        {ET_RECORD_BATCH, NULL, 0, true, true},
        {ET_RECORD_METRIC, NULL, 0, true, true},
        {ET_RECORD_MEMORY, NULL, 0, true, true},
        {ET_RECORD_THROUGHPUT, NULL, 0, true, true},
        {ET_RECORD_METRIC, NULL, 3, true, true},
        {ET_RECORD_EPOCH, NULL, 0, true, true},
        {ET_RECORD_EVAL, "eval", 0, true, true},
        {ET_RECORD_RUN, "running", 0, true, false},
        {ET_RECORD_RUN, "evaluating", 0, true, false},
        {ET_RECORD_RUN, "running", 1, false, false},
        {ET_RECORD_RUN, "paused", 0, false, false},
        {ET_RECORD_RUN, NULL, 0, false, false},
        {ET_RECORD_CHECKPOINT, NULL, 0, false, false},
        {ET_RECORD_LOG, "said", 0, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lines l = {0};
        struct eti_thin t;
        eti_thin_init(&t, cx, ET_TIME_UNSET, note_line, &l);
        for (int k = 1; k <= MANY; k++) {
            struct et_record r =
                number_of(rows[i].kind, rows[i].text, 1.7e9 + (double)k / FAST, k);
            r.rank = rows[i].rank;
            eti_thin_put(&t, &r);
        }
        eti_thin_flush(&t);
        eti_thin_release(&t);
        ok((l.n < MANY / 4) == rows[i].is_thinned &&
               (l.with_span > 0) == rows[i].has_spans,
           "%s '%s' of rank %d: %s (%d of %d, %d with spans)",
           et_record_name(rows[i].kind), rows[i].text ? rows[i].text : "", rows[i].rank,
           rows[i].is_thinned ? "records are merged" : "each is kept", l.n, MANY,
           l.with_span);
        if (rows[i].has_spans)
            is_int(l.of, MANY, "merged records count all that they stand for");
    }
}

/* Records that alternate between two ranks, two evaluators or two states. */
static void
test_apart(struct et_ctx *cx)
{
    static const struct {
        const char *what;
        enum et_record_kind kind;
        const char *text[2];
        int rank[2];
        bool is_one;
    } rows[] = {
        {"ranks", ET_RECORD_METRIC, {NULL, NULL}, {0, 1}, false},
        {"evaluators", ET_RECORD_EVAL, {"first", "second"}, {0, 0}, false},
        {"an evaluator and one without a name",
         ET_RECORD_EVAL,
         {"a", NULL},
         {0},
         false},
        {"states", ET_RECORD_RUN, {"running", "evaluating"}, {0, 0}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lines l = {0};
        struct eti_thin t;
        eti_thin_init(&t, cx, ET_TIME_UNSET, note_line, &l);
        for (int k = 0; k < 2 * ETI_THIN_RATE * ETI_THIN_SECONDS; k++) {
            struct et_record r = number_of(rows[i].kind, rows[i].text[k % 2], 5, k);
            r.rank = rows[i].rank[k % 2];
            eti_thin_put(&t, &r); /* until no more records may be kept whole */
        }
        eti_thin_flush(&t);
        l = (struct lines){0};
        for (int k = 0; k < 8; k++) {
            struct et_record r =
                number_of(rows[i].kind, rows[i].text[k % 2], 5.25, 10000 + k);
            r.rank = rows[i].rank[k % 2];
            eti_thin_put(&t, &r);
        }
        eti_thin_flush(&t);
        is_int(l.n, rows[i].is_one ? 1 : 2, "two %s that alternate leave %s",
               rows[i].what, rows[i].is_one ? "one record" : "a record for each");
        if (rows[i].is_one)
            is_str(l.last, "run/evaluating/0/0",
                   "the record of two states is the last one, with its own time");
        else
            is_int(l.longest, 4, "a merged record stands for four records");
        eti_thin_release(&t);
    }
}

/* Evaluators with names of every length, and more evaluators than there are slots: none
 * is taken for another. */
static void
test_evaluators(struct et_ctx *cx)
{
    enum { NAMES = 80 };
    struct lines l = {0};
    struct eti_thin t;
    char name[NAMES + 1];
    eti_thin_init(&t, cx, ET_TIME_UNSET, note_line, &l);
    for (int k = 0; k < 2 * ETI_THIN_RATE * ETI_THIN_SECONDS; k++) {
        const struct et_record r = number_of(ET_RECORD_EVAL, "used up", 5, k);
        eti_thin_put(&t, &r);
    }
    for (int n = 60; n <= 68; n += 1) {
        eti_thin_flush(&t);
        l = (struct lines){0};
        memset(name, 'x', (size_t)n);
        name[n] = '\0';
        for (int k = 0; k < 4; k++) {
            name[n - 1] = (char)('a' + k % 2);
            const struct et_record r = number_of(ET_RECORD_EVAL, name, 5.25, k);
            eti_thin_put(&t, &r);
        }
        eti_thin_flush(&t);
        ok(l.of == 4 && l.n == (n < 64 ? 2 : 4),
           "two evaluators with names of %d bytes that differ in the last byte leave "
           "%d records",
           n, l.n);
    }
    l = (struct lines){0};
    for (int k = 0; k < 4 * ETI_THIN_SLOTS; k++) {
        snprintf(name, sizeof name, "eval%d", k % (2 * ETI_THIN_SLOTS));
        const struct et_record r = number_of(ET_RECORD_EVAL, name, 5.5, k);
        eti_thin_put(&t, &r);
    }
    eti_thin_flush(&t);
    is_int(l.n, 3 * ETI_THIN_SLOTS,
           "of 32 evaluators 16 have one merged record for two");
    is_int(l.of, 4 * ETI_THIN_SLOTS, "all records of 32 evaluators are counted");
    eti_thin_release(&t);
}

/* ---- when records are written ---- */

/* Puts N batches, PER of them a second, from FROM on; returns the time of the last. */
static double
go_on(struct eti_thin *t, double from, int per, int n)
{
    static int64_t ba;
    for (int i = 1; i <= n; i++) {
        const struct et_record r =
            number_of(ET_RECORD_BATCH, NULL, from + (double)i / per, ++ba);
        eti_thin_put(t, &r);
    }
    return from + (double)n / per;
}

static void
test_paces(struct et_ctx *cx)
{
    struct lines l = {0};
    struct eti_thin t;
    eti_thin_init(&t, cx, ET_TIME_UNSET, note_line, &l);
    double now = go_on(&t, 1.7e9, FAST, 20 * FAST);
    now = go_on(&t, now, 10, 20);
    l = (struct lines){0};
    now = go_on(&t, now, 10, 100);
    is_int(l.n, 100, "each batch is kept again when a run has become slower");
    now += 3600;
    l = (struct lines){0};
    (void)go_on(&t, now, FAST, 3 * FAST);
    ok(l.n >= 1000 && l.n < 1300,
       "a run that rests for an hour may keep no more batches than at its beginning: "
       "%d",
       l.n);
    eti_thin_release(&t);
}

/* A log that is full, by a number of bytes that the test sets. */
static void
test_budget(struct et_ctx *cx)
{
    struct lines l = {0};
    struct eti_thin t;
    double now = 1.7e9;
    eti_thin_init(&t, cx, ET_TIME_UNSET, note_line, &l);
    t.begun = now;
    t.bytes = (int64_t)(0.95 * ETI_THIN_ADVANCE);
    now = go_on(&t, now, 1, 10);
    is_int(l.n, 10, "a log that is nearly full keeps each batch of a slow run");
    t.bytes = (int64_t)(1.01 * ETI_THIN_ADVANCE);
    l = (struct lines){0};
    now = go_on(&t, now, 1, 200);
    ok(l.n >= 3 && l.n <= 4, "a log that is full keeps a record a minute: %d", l.n);
    t.bytes = (int64_t)(0.95 * ETI_THIN_ADVANCE);
    l = (struct lines){0};
    now = go_on(&t, now, 10, 50);
    ok(l.n <= 6, "a log that has little room again keeps a record a second: %d of 50",
       l.n);
    t.bytes = (int64_t)(0.8 * ETI_THIN_ADVANCE);
    now = go_on(&t, now, 10, 1);
    l = (struct lines){0};
    (void)go_on(&t, now, 10, 50);
    is_int(l.n, 50, "a log that has more room again keeps each batch");
    eti_thin_release(&t);
}

/* Waiting batches are written before the end of an epoch or an evaluation, and before a
 * batch that is kept. */
static void
test_before(struct et_ctx *cx)
{
    static const struct {
        enum et_record_kind kind;
        const char *order;
    } rows[] = {
        {ET_RECORD_EPOCH, "be"}, {ET_RECORD_EVAL, "be"}, {ET_RECORD_BATCH, "bb"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lines l = {0};
        struct eti_thin t;
        eti_thin_init(&t, cx, ET_TIME_UNSET, note_line, &l);
        double now = go_on(&t, 1.7e9, FAST, 2 * FAST);
        eti_thin_flush(&t);
        l = (struct lines){0};
        (void)go_on(&t, now, FAST, 1); /* this batch waits */
        const double later = rows[i].kind == ET_RECORD_BATCH ? 0.9 : 0.1;
        t.class[0].left = rows[i].kind == ET_RECORD_BATCH ? 5 : t.class[0].left;
        const struct et_record r =
            number_of(rows[i].kind, rows[i].kind == ET_RECORD_EVAL ? "eval" : NULL,
                      now + later, 1);
        eti_thin_put(&t, &r);
        is_str(l.order, rows[i].order,
               "a batch that waits is written before a record of kind %s that is kept",
               et_record_name(rows[i].kind));
        eti_thin_release(&t);
    }
}

/* The clock of the log's writer: a record that waits for a number of batches waits for
 * no time. */
static void
test_clock(struct et_ctx *cx)
{
    struct lines l = {0};
    struct eti_thin t;
    eti_thin_init(&t, cx, ET_BATCHES(10), note_line, &l);
    (void)go_on(&t, 10, 1, 3);
    ok(!eti_thin_due(&t, 1000),
       "a record that waits for ten batches is never due by time");
    is_int(l.n, 0, "a record that waits for ten batches is not written after three");
    (void)go_on(&t, 13, 1, 7);
    is_int(l.n, 1, "a record that waits for ten batches is written after ten");
    is_int(l.longest, 10, "a record of ten batches stands for ten");
    (void)go_on(&t, 20, 1, 1);
    eti_thin_flush(&t);
    ok(l.n == 2 && l.with_span == 1 && strcmp(l.last, "batch//0/0") == 0,
       "a single waiting batch is written as it is: %s", l.last);
    eti_thin_release(&t);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_kinds(cx);
    test_apart(cx);
    test_evaluators(cx);
    test_paces(cx);
    test_budget(cx);
    test_before(cx);
    test_clock(cx);
    et_ctx_free(&cx);
    return done();
}
