/* SPDX-License-Identifier: Apache-2.0 */
/* The record under way: names, values, room for thousands of them. */
#include <stdio.h>
#include <string.h>

#include "etude/logger.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { MANY = 3000 };

struct sink {
    struct et_sink sink; /* first */
    int n;
    double last;
};

static void
take(struct et_sink *sink, const struct et_record *r)
{
    struct sink *s = (struct sink *)sink;
    s->n = r->n;
    s->last = r->n ? r->entry[r->n - 1].value : -1;
}

static const char *
name_of(int i)
{
    static char name[ET_METRIC_NAME];
    snprintf(name, sizeof name, "l2_norm/grad/layer%d.weight", i);
    return name;
}

/* A record of MANY names, each with its number plus BASE. */
static void
fill(struct et_log *log, double base)
{
    for (int i = 0; i < MANY; i++)
        et_log_metric(log, name_of(i), base + i);
}

static void
test_many(struct et_ctx *cx, struct et_log *log, struct sink *sink)
{
    struct et_alloc_stats before, after;
    double value = -1;
    int n, wrong = 0;
    fill(log, 0);
    const struct et_log_entry *e = et_log_entries(log, &n);
    is_int(n, MANY, "a record takes %d metrics", MANY);
    for (int i = 0; i < MANY; i++)
        wrong += !et_log_find(log, name_of(i), &value) || value != i || e[i].value != i;
    is_int(wrong, 0, "each is found under its name, and they lie in the order logged");
    et_log_metric(log, name_of(7), 0.5);
    (void)et_log_entries(log, &n);
    ok(et_log_find(log, name_of(7), &value) && value == 0.5 && n == MANY,
       "a second value of a name replaces the first");
    ok(!et_log_find(log, "l2_norm/grad/layer", &value), "a part of a name is no name");
    et_log_emit(log, ET_RECORD_BATCH, NULL, NULL);
    ok(sink->n == MANY && sink->last == MANY - 1, "the sink gets all of them");
    (void)et_log_entries(log, &n);
    ok(n == 0 && !et_log_find(log, name_of(7), &value), "the next record is empty");
    et_alloc_get_stats(cx, &before);
    for (int round = 1; round < 4; round++) {
        fill(log, round);
        et_log_emit(log, ET_RECORD_BATCH, NULL, NULL);
    }
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)(after.allocs - before.allocs), 0,
           "records as long as one before allocate nothing");
    ok(sink->n == MANY && sink->last == 3 + MANY - 1, "and are as complete");
}

static void
test_long_names(struct et_log *log)
{
    char name[ET_METRIC_NAME + 8];
    double value = 0;
    int n;
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    et_log_metric(log, name, 1);
    const struct et_log_entry *e = et_log_entries(log, &n);
    is_int((int64_t)strlen(e[0].name), ET_METRIC_NAME - 1, "a long name is cut");
    ok(et_log_find(log, name, &value) && value == 1, "and found by the whole of it");
    et_log_metric(log, name, 2);
    name[ET_METRIC_NAME - 1] = '\0';
    ok(et_log_find(log, name, &value) && value == 2, "or by what is left of it");
    name[ET_METRIC_NAME - 1] = 'y';
    et_log_metric(log, name, 3);
    (void)et_log_entries(log, &n);
    ok(n == 1 && et_log_find(log, name, &value) && value == 3,
       "two that are cut to the same are one");
    et_log_emit(log, ET_RECORD_BATCH, NULL, NULL);
}

static void
test_no_memory(struct et_ctx *cx)
{
    double value;
    int n;
    struct et_log *small;
    need(cx, et_log_new(cx, NULL, &small));
    et_alloc_fail_at(cx, 1);
    fill(small, 0);
    et_alloc_fail_at(cx, 0);
    (void)et_log_entries(small, &n);
    ok(n == MANY - 1, "where there is no memory for one more, that one is left out");
    ok(et_log_find(small, name_of(0), &value) && value == 0, "and the others stay");
    et_log_free(&small);
}

/* Each of the blocks of a log in turn is one too many. */
static void
test_not_made(struct et_ctx *cx)
{
    struct et_alloc_stats before, after;
    et_status status = ET_ENOMEM;
    int wrong = 0, k = 0;
    et_alloc_get_stats(cx, &before);
    while (status == ET_ENOMEM && k < 100) {
        char byte;
        struct et_log *log = (void *)&byte;
        et_alloc_fail_at(cx, ++k);
        status = et_log_new(cx, NULL, &log);
        et_alloc_fail_at(cx, 0);
        et_error_clear(cx);
        wrong += (log != NULL) != (status == ET_OK);
        if (status == ET_OK)
            et_log_free(&log);
        et_alloc_get_stats(cx, &after);
        wrong += after.live != before.live;
    }
    ok(status == ET_OK && k > 2, "with memory for all of it there is a log");
    is_int(wrong, 0, "with less there is none, and nothing of it stays");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct sink sink = {.sink = {.write = take}};
    struct et_alloc_stats stats;
    struct et_log *log;
    need(cx, et_log_new(cx, &sink.sink, &log));
    test_many(cx, log, &sink);
    test_long_names(log);
    test_no_memory(cx);
    test_not_made(cx);
    et_log_free(&log);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
