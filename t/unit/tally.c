/* SPDX-License-Identifier: Apache-2.0 */
/* What a log of events counts for its summaries, before any is written: statistics of
 * numbers, parts, levels, and parts that become wider. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/journal/events.h"
#include "etude/ctx.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- statistics ---- */

/* "N BAD SUM, last BA@T=VALUE, min ..., max ..." */
static const char *
text_of(const struct et_series_stats *s)
{
    static char text[256];
    const struct et_series_point *p[] = {&s->last, &s->min, &s->max};
    size_t n =
        (size_t)snprintf(text, sizeof text, "%d %d %g", (int)s->n, (int)s->bad, s->sum);
    for (int i = 0; i < 3; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d@%g=%g", i ? " " : ", ",
                              (int)p[i]->ba, p[i]->t, p[i]->value);
    return text;
}

/* Adds to S number VALUE of batch BA, as of SPAN if it stands for several. */
static void
add(struct et_series_stats *s, int64_t ba, double value, const struct et_log_span *span)
{
    const struct et_log_entry entry[2] = {{"other", 77}, {"loss", value}};
    struct et_log_span spans[2] = {{9, 9, 9, 9, 9}};
    if (span)
        spans[1] = *span;
    const struct et_record r = {.t = 10 * (double)ba,
                                .ba = ba,
                                .entry = entry,
                                .n = 2,
                                .span = span ? spans : NULL};
    eti_stats_add(s, &r, 1);
}

static void
test_stats(void)
{
    struct et_series_stats s = {0};
    add(&s, 1, 5, NULL);
    add(&s, 2, 3, NULL);
    add(&s, 3, 3, NULL);
    add(&s, 4, 8, NULL);
    add(&s, 5, 8, NULL);
    is_str(text_of(&s), "5 0 27, 5@50=8 2@20=3 4@40=8",
           "of equal values the first is the least, and the greatest");
    add(&s, 6, INFINITY, NULL);
    is_str(text_of(&s), "5 1 27, 6@60=inf 2@20=3 4@40=8",
           "one that is not finite is the last, and in no sum");
    add(&s, 7, 4, &(struct et_log_span){3, 2, 1, 9, 14});
    is_str(text_of(&s), "8 3 41, 7@70=4 7@70=1 7@70=9",
           "a record that stands for several has what these had");
    add(&s, 8, NAN, &(struct et_log_span){0, 2, 0, 0, 0});
    ok(s.n == 8 && s.bad == 5 && s.sum == 41 && isnan(s.last.value) && s.last.ba == 8 &&
           s.min.ba == 7,
       "also where none of them was finite");
}

static void
test_merge(void)
{
    struct et_series_stats a = {0}, b = {0}, none = {0}, bad = {0}, s;
    add(&a, 1, 2, NULL);
    add(&a, 2, 7, NULL);
    add(&b, 3, 7, NULL);
    add(&b, 4, 2, NULL);
    add(&bad, 9, INFINITY, NULL);
    s = a;
    eti_stats_merge(&s, &b, true);
    is_str(text_of(&s), "4 0 18, 4@40=2 1@10=2 2@20=7",
           "what is newer has the last, and no value that was there before");
    s = b;
    eti_stats_merge(&s, &a, false);
    is_str(text_of(&s), "4 0 18, 4@40=2 1@10=2 2@20=7", "whichever way they come");
    eti_stats_merge(&s, &none, true);
    is_str(text_of(&s), "4 0 18, 4@40=2 1@10=2 2@20=7", "nothing changes nothing");
    eti_stats_merge(&s, &bad, true);
    is_str(text_of(&s), "4 1 18, 9@90=inf 1@10=2 2@20=7", "what is bad may be last");
    s = bad;
    eti_stats_merge(&s, &a, false);
    is_str(text_of(&s), "2 1 9, 9@90=inf 1@10=2 2@20=7", "and stays so");
    s = none;
    eti_stats_merge(&s, &a, false);
    is_str(text_of(&s), "2 0 9, 2@20=7 1@10=2 2@20=7", "but the first is the last");
}

static void
test_parts(void)
{
    static const struct {
        struct eti_events_part a, b, want;
    } rows[] = {
        {{.at = 5, .n = 2, .low = 10, .high = 20, .resume = -1},
         {.at = 9, .n = 3, .low = 8, .high = 15, .resume = 8},
         {5, 5, 8, 20, 8}},
        {{.at = 5, .n = 2, .low = 10, .high = 20, .resume = 7},
         {.at = 9, .n = 3, .low = 18, .high = 25, .resume = 9},
         {5, 5, 10, 25, 7}},
        {{.at = 5, .n = 2, .low = 10, .high = 20, .resume = 7},
         {.at = 9, .n = 3, .low = 18, .high = 25, .resume = 0},
         {5, 5, 10, 25, 0}},
        {{.at = 5, .n = 1, .low = INT64_MAX, .high = -1, .resume = 4},
         {.at = 9, .n = 1, .low = 6, .high = 6, .resume = -1},
         {5, 2, 6, 6, 4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct eti_events_part p = rows[i].a;
        eti_events_part_merge(&p, &rows[i].b);
        ok(memcmp(&p, &rows[i].want, sizeof p) == 0,
           "two parts have the bounds of both, and the earliest resume: %d", (int)i);
    }
}

/* ---- the tally ---- */

/* Adds a record of KIND at batch BA with the number NAME; NULL: without one. */
static void
count(struct eti_tally *t, enum et_record_kind kind, int64_t ba, const char *name,
      double value, int64_t at)
{
    struct et_log_entry entry = {.value = value};
    snprintf(entry.name, sizeof entry.name, "%s", name ? name : "");
    const struct et_record r = {.kind = kind,
                                .t = (double)ba,
                                .ba = ba,
                                .sp = 1000 + ba,
                                .entry = &entry,
                                .n = name != NULL};
    eti_tally_add(t, &r, at);
}

static bool
is_part(const struct eti_events_part *p, int64_t at, int64_t n, int64_t low,
        int64_t high, int64_t resume)
{
    bool same = p->at == at && p->n == n && p->low == low && p->high == high &&
                p->resume == resume;
    if (!same)
        diag("%d %d %d %d %d", (int)p->at, (int)p->n, (int)p->low, (int)p->high,
             (int)p->resume);
    return same;
}

/* Which records have series, and which of them widen a part. */
static void
test_records(void)
{
    static const struct {
        enum et_record_kind kind;
        bool has;
    } kinds[] = {
        {ET_RECORD_BATCH, true},    {ET_RECORD_EPOCH, true},
        {ET_RECORD_EVAL, true},     {ET_RECORD_RESUME, true},
        {ET_RECORD_METRIC, true},   {ET_RECORD_RUN, false},
        {ET_RECORD_HEALTH, false},  {ET_RECORD_ALGORITHM, false},
        {ET_RECORD_COMMAND, false},
    };
    struct eti_tally t;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct et_record r = {.kind = kinds[i].kind};
        ok(eti_is_series(&r) == kinds[i].has, "numbers of kind %s are %s",
           et_record_name(kinds[i].kind), kinds[i].has ? "series" : "none");
        r.rank = 1;
        ok(!eti_is_series(&r), "and those of other ranks are none");
    }
    if (eti_tally_init(&t, cx) != ET_OK)
        bail("no memory");
    const struct eti_events_part *p = &t.block[0].part[0];
    count(&t, ET_RECORD_LOG, 900, NULL, 0, 100);
    count(&t, ET_RECORD_HEALTH, 800, "temperature", 70, 200);
    ok(is_part(p, 100, 2, INT64_MAX, -1, -1) && eti_tally_parts(&t, 0) == 1,
       "records without numbers, or with others, have no batches");
    count(&t, ET_RECORD_BATCH, 5, "loss", 3, 300);
    count(&t, ET_RECORD_BATCH, 4, "loss", 6, 400);
    count(&t, ET_RECORD_RESUME, 2, NULL, 0, 500);
    ok(is_part(p, 100, 5, 4, 5, 2),
       "others widen the part, and a resume is its batch's");
    const struct et_record many = {.kind = ET_RECORD_BATCH,
                                   .ba = 30,
                                   .entry = &(struct et_log_entry){"loss", 1},
                                   .n = 1,
                                   .of = 10,
                                   .from = 3,
                                   .span = &(struct et_log_span){10, 0, 1, 2, 15}};
    eti_tally_add(&t, &many, 600);
    ok(is_part(p, 100, 6, 3, 30, 2),
       "one that stands for several begins with the first");
    ok(t.block[0].from == 100 && t.block[0].kinds[ET_RECORD_BATCH] == 3 &&
           t.block[0].kinds[ET_RECORD_HEALTH] == 1 &&
           t.block[0].kinds[ET_RECORD_LOG] == 1 &&
           t.block[0].kinds[ET_RECORD_RESUME] == 1,
       "all are counted by their kinds");
    is_str(text_of(eti_tally_cell(&t, 0, 0, 0)), "12 0 24, 30@0=1 30@0=1 4@4=6",
           "a series has its statistics");
    eti_tally_free(&t);
    char name[120];
    memset(name, 'n', sizeof name);
    struct eti_series_names names = {0};
    ok(eti_series_index(cx, &names, name, 96) == 0 &&
           eti_series_index(cx, &names, name, 95) == 0 &&
           eti_series_index(cx, &names, name, 94) == 1 && names.n == 2 &&
           strlen(names.name[0]) == 95,
       "names have 95 bytes at most");
    eti_series_names_free(cx, &names);
}

/* Two series in all parts: value BA in each record, and -BA in every other. */
static void
fill(struct eti_tally *t, int64_t first, int64_t n)
{
    for (int64_t ba = first; ba < first + n; ba++)
        count(t, ET_RECORD_BATCH, ba, ba % 2 ? "odd" : "even", (double)ba, 1000 + ba);
}

static void
test_widen(void)
{
    struct eti_tally t;
    if (eti_tally_init(&t, cx) != ET_OK)
        bail("no memory");
    fill(&t, 0, ETI_PARTS * ETI_PART_RECORDS);
    is_int(t.block[0].n, ETI_PARTS, "a level is full");
    eti_tally_widen(&t);
    ok(t.block[0].n == ETI_PARTS / 2 && t.block[0].size == 2 * ETI_PART_RECORDS &&
           eti_tally_parts(&t, 0) == ETI_PARTS / 2,
       "half as many parts are twice as large");
    int wrong = 0;
    for (int i = 0; i < ETI_PARTS; i++) {
        const int64_t low = 256 * i, high = low + 255;
        const struct et_series_stats *even = eti_tally_cell(&t, 0, i, 0),
                                     *odd = eti_tally_cell(&t, 0, i, 1);
        if (i < ETI_PARTS / 2)
            wrong += !is_part(&t.block[0].part[i], 1000 + low, 256, low, high, -1) ||
                     even->n != 128 || even->min.ba != low ||
                     even->max.ba != high - 1 || odd->n != 128 ||
                     odd->min.ba != low + 1 || odd->last.ba != high;
        else
            wrong += !is_part(&t.block[0].part[i], 0, 0, INT64_MAX, -1, -1) ||
                     even->n != 0 || odd->n != 0;
    }
    is_int(wrong, 0, "each has what the two had, and there is none behind them");
    fill(&t, 2048, 2 * ETI_PART_RECORDS);
    ok(t.block[0].n == ETI_PARTS / 2 + 1 &&
           is_part(&t.block[0].part[ETI_PARTS / 2], 3048, 256, 2048, 2303, -1),
       "and the next one becomes as large");
    eti_tally_free(&t);
}

/* Levels that are closed twice: one part for each time. */
static void
test_levels(void)
{
    struct eti_tally t;
    if (eti_tally_init(&t, cx) != ET_OK)
        bail("no memory");
    fill(&t, 10, 130);
    count(&t, ET_RECORD_EVAL, 139, "accuracy", 0.5, 7000);
    eti_tally_close(&t, 0, 8000);
    fill(&t, 140, 3);
    count(&t, ET_RECORD_RESUME, 120, NULL, 0, 9000);
    eti_tally_close(&t, 0, 9500);
    const struct eti_block *up = &t.block[1];
    ok(up->n == 2 && up->from == 1010 &&
           is_part(&up->part[0], 8000, 131, 10, 139, -1) &&
           is_part(&up->part[1], 9500, 4, 140, 142, 120),
       "a summary becomes a part of the next level, at its own place");
    ok(up->kinds[ET_RECORD_BATCH] == 133 && up->kinds[ET_RECORD_EVAL] == 1 &&
           up->kinds[ET_RECORD_RESUME] == 1,
       "with its kinds");
    ok(t.last[0] == 9500 && t.last[1] == 0, "and the level knows its last");
    ok(t.block[0].n == 0 && t.block[0].from == 0 && t.block[0].kinds[0] == 0 &&
           eti_tally_parts(&t, 0) == 0,
       "which begins anew");
    is_str(text_of(eti_tally_cell(&t, 1, 0, 0)),
           "65 0 4810, 138@138=138 10@10=10 138@138=138", "so do its series");
    is_str(text_of(eti_tally_cell(&t, 1, 1, 1)),
           "1 0 141, 141@141=141 141@141=141 "
           "141@141=141",
           "each in its part");
    is_int(eti_tally_cell(&t, 0, 0, 0)->n, 0, "and nothing is counted twice");
    eti_tally_close(&t, 1, 9900);
    ok(t.last[0] == 9500 && t.last[1] == 9900 && t.block[2].n == 1 &&
           t.block[2].from == 1010 &&
           is_part(&t.block[2].part[0], 9900, 135, 10, 142, 120),
       "as it goes on with the level above");
    eti_tally_free(&t);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_stats();
    test_merge();
    test_parts();
    test_records();
    test_widen();
    test_levels();
    et_ctx_free(&cx);
    return done();
}
