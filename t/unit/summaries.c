/* SPDX-License-Identifier: Apache-2.0 */
/* A summary of events.log, read number by number; and summaries that are refused, as
 * one of their numbers is below or above its limits. */
#include "config.h"

#include <endian.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/journal/events_read.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { PLACE = 1032 }; /* the byte of the file at which the summary begins */

/* The contents of a summary. */
struct said {
    int64_t at, level, from, end, more, last[ETI_LEVELS], first, second, n_parts,
        kinds_are_a_map, series_are_a_map, has_done, done;
};
static const struct said good = {
    .at = PLACE,
    .level = 2,
    .from = 100,
    .end = 900,
    .more = 77,
    .last = {11, 12, 13, 14, 15, 16},
    .first = 100,
    .second = 899,
    .n_parts = 2,
    .kinds_are_a_map = 1,
    .series_are_a_map = 1,
    .has_done = 1,
    .done = 1,
};

static struct et_ctx *cx;
static msgpack_packer k;

static void
text(const char *s)
{
    msgpack_pack_str_with_body(&k, s, strlen(s));
}

static void
put(const char *key, int64_t value)
{
    text(key);
    msgpack_pack_int64(&k, value);
}

static void
put_list(const int64_t *v, size_t n)
{
    msgpack_pack_array(&k, n);
    for (size_t i = 0; i < n; i++)
        msgpack_pack_int64(&k, v[i]);
}

static void
put_point(int64_t ba, double t, double value)
{
    msgpack_pack_array(&k, 3);
    msgpack_pack_int64(&k, ba);
    msgpack_pack_double(&k, t);
    msgpack_pack_double(&k, value);
}

static void
put_body(const struct said *s)
{
    msgpack_pack_map(&k, (size_t)(9 + s->has_done));
    put("at", s->at);
    put("level", s->level);
    put("from", s->from);
    put("end", s->end);
    put("more", s->more);
    text("last");
    put_list(s->last, ETI_LEVELS);
    text("parts");
    msgpack_pack_array(&k, (size_t)s->n_parts);
    for (int64_t i = 0; i < s->n_parts; i++)
        put_list((int64_t[]){i == 0 ? s->first : s->second + i - 1, 5, 6, 7, -1}, 5);
    text("kinds");
    if (s->kinds_are_a_map) {
        msgpack_pack_map(&k, 2);
        put("batch", 31);
        put("eval", 32);
    } else {
        msgpack_pack_nil(&k);
    }
    text("s");
    if (s->series_are_a_map) {
        msgpack_pack_map(&k, 1);
        text("loss");
        msgpack_pack_array(&k, 1);
        msgpack_pack_array(&k, 6);
        msgpack_pack_int64(&k, 21);
        msgpack_pack_int64(&k, 22);
        msgpack_pack_double(&k, 2.5);
        put_point(1, 1.5, 10.5);
        put_point(2, 3.5, 20.5);
        put_point(4, 5.5, 30.5);
    } else {
        msgpack_pack_nil(&k);
    }
    if (s->has_done) {
        text("done");
        if (s->done)
            msgpack_pack_true(&k);
        else
            msgpack_pack_false(&k);
    }
}

/* A log with that summary and nothing else. */
static struct et_events *
open_log(const struct said *s)
{
    struct et_events *e;
    msgpack_sbuffer bytes;
    char path[700], file[PLACE] = ETI_EVENTS_MAGIC;
    const uint16_t version[] = {htole16(ETI_EVENTS_MAJOR), htole16(ETI_EVENTS_MINOR)};
    memcpy(file + strlen(ETI_EVENTS_MAGIC), version, sizeof version);
    msgpack_sbuffer_init(&bytes);
    msgpack_packer_init(&k, &bytes, msgpack_sbuffer_write);
    msgpack_pack_array(&k, 7);
    text("summary");
    msgpack_pack_int64(&k, 3);
    msgpack_pack_double(&k, 1e9);
    for (int i = 0; i < 3; i++)
        msgpack_pack_int64(&k, i);
    put_body(s);
    const uint32_t frame[] = {
        htole32((uint32_t)bytes.size),
        htole32((uint32_t)crc32(0, (const Bytef *)bytes.data, (uInt)bytes.size))};
    snprintf(path, sizeof path, "%s/summary.log", scratch_folder());
    FILE *f = fopen(path, "we");
    if (!f || fwrite(file, sizeof file, 1, f) != 1 ||
        fwrite(frame, sizeof frame, 1, f) != 1 ||
        fwrite(bytes.data, bytes.size, 1, f) != 1 || fclose(f) != 0)
        bail("cannot write %s", path);
    msgpack_sbuffer_destroy(&bytes);
    need(cx, et_events_open(cx, path, &e));
    return e;
}

static bool
is_point(const struct et_series_point *p, int64_t ba, double t, double value)
{
    return p->ba == ba && p->t == t && p->value == value;
}

static void
test_numbers(void)
{
    struct et_events *e = open_log(&good);
    struct eti_summary s;
    struct et_series_stats cell;
    const msgpack_object *series;
    ok(eti_summary_read(e, PLACE, &s, &series), "a summary is read");
    ok(s.at == PLACE && s.level == 2 && s.from == 100 && s.end == 900 && s.more == 77 &&
           s.done && s.n == 2,
       "a summary has its place, level, range and end");
    ok(memcmp(s.last, good.last, sizeof s.last) == 0,
       "a summary has the places of the summaries before it");
    const struct eti_events_part *p = s.part;
    ok(p[0].at == 100 && p[0].n == 5 && p[0].low == 6 && p[0].high == 7 &&
           p[0].resume == -1 && p[1].at == 899,
       "a summary has its parts");
    ok(s.kinds[ET_RECORD_BATCH] == 31 && s.kinds[ET_RECORD_EVAL] == 32 &&
           s.kinds[ET_RECORD_LOG] == 0,
       "a summary has the number of records of each kind");
    ok(series->via.map.size == 1 &&
           eti_summary_cell(&series->via.map.ptr[0].val.via.array.ptr[0], &cell),
       "a summary has a cell for its series");
    ok(cell.n == 21 && cell.bad == 22 && cell.sum == 2.5,
       "a series' cell has its counts and its sum");
    ok(is_point(&cell.last, 1, 1.5, 10.5) && is_point(&cell.min, 2, 3.5, 20.5) &&
           is_point(&cell.max, 4, 5.5, 30.5),
       "a series' cell has the last, the least and the greatest value");
    ok(!eti_summary_read(e, PLACE - 1, &s, &series),
       "no summary is read one byte before its beginning");
    et_events_close(&e);
}

#define AT(field) offsetof(struct said, field)

static void
test_limits(void)
{
    static const struct {
        const char *what;
        size_t at;
        int64_t value;
        bool fine;
    } rows[] = {
        {"its own place", AT(at), PLACE - 1, false},
        {"its own place", AT(at), PLACE + 1, false},
        {"its level", AT(level), 0, false},
        {"its level", AT(level), 1, true},
        {"its level", AT(level), ETI_LEVELS, true},
        {"its level", AT(level), ETI_LEVELS + 1, false},
        {"its beginning", AT(from), ETI_EVENTS_HEADER - 1, false},
        {"its beginning", AT(from), ETI_EVENTS_HEADER, true},
        {"its beginning", AT(from), 101, false}, /* behind its first part */
        {"its end", AT(end), 899, false},        /* where its last part begins */
        {"its end", AT(end), PLACE, true},
        {"its end", AT(end), PLACE + 1, false},
        {"the place of further parts", AT(more), 0, true},
        {"the place of further parts", AT(more), PLACE - 1, true},
        {"the place of further parts", AT(more), PLACE, false},
        {"the place of the first summary before it", AT(last[0]), 0, true},
        {"the place of the first summary before it", AT(last[0]), -1, false},
        {"the place of the first summary before it", AT(last[0]), PLACE - 1, true},
        {"the place of the first summary before it", AT(last[0]), PLACE, false},
        {"the place of the last summary before it", AT(last[ETI_LEVELS - 1]), -1,
         false},
        {"the place of the last summary before it", AT(last[ETI_LEVELS - 1]), PLACE,
         false},
        {"its first part", AT(first), 99, false},
        {"its second part", AT(second), 100, false},
        {"its second part", AT(second), 101, true},
        {"its second part", AT(second), 900, false},
        {"the number of its parts", AT(n_parts), 0, false},
        {"the number of its parts", AT(n_parts), 1, true},
        {"the sign that its kinds are a map", AT(kinds_are_a_map), 0, false},
        {"the sign that its series are a map", AT(series_are_a_map), 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct said s = good;
        struct eti_summary got;
        const msgpack_object *series;
        memcpy((char *)&s + rows[i].at, &rows[i].value, sizeof rows[i].value);
        struct et_events *e = open_log(&s);
        ok(eti_summary_read(e, PLACE, &got, &series) == rows[i].fine,
           "in a summary %s may %sbe %lld", rows[i].what, rows[i].fine ? "" : "not ",
           (long long)rows[i].value);
        et_events_close(&e);
    }
}

/* A summary with as many parts as fit, and with one more; and a summary of which more
 * follows, which is not done whether it says so or leaves it out. */
static void
test_counts(void)
{
    struct said s = good;
    struct eti_summary got;
    const msgpack_object *series;
    s.second = 200;
    for (int more = 0; more < 2; more++) {
        s.n_parts = ETI_PARTS + more;
        struct et_events *e = open_log(&s);
        ok(eti_summary_read(e, PLACE, &got, &series) == !more,
           "a summary of %d parts is %s", ETI_PARTS + more, more ? "refused" : "read");
        et_events_close(&e);
    }
    s = good;
    s.done = 0;
    for (int has = 0; has < 2; has++) {
        s.has_done = has;
        struct et_events *e = open_log(&s);
        ok(eti_summary_read(e, PLACE, &got, &series) && !got.done,
           "a summary that %s is a piece of a larger one",
           has ? "says that it is not done" : "does not say whether it is done");
        et_events_close(&e);
    }
}

int
main(void)
{
    cx = need_ctx();
    test_numbers();
    test_limits();
    test_counts();
    et_ctx_free(&cx);
    return done();
}
