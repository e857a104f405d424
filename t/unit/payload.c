/* SPDX-License-Identifier: Apache-2.0 */
/* The payload of a record, read byte by byte: all that the format allows is read as it
 * is meant, and nothing that is cut off, longer than it is or larger than its bytes. */
#include "config.h"

#include <math.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/journal/events_read.h"
#include "t/tap.h"

static struct et_events e;
static msgpack_sbuffer bytes;
static msgpack_packer k;

static void
text(const char *s)
{
    msgpack_pack_str_with_body(&k, s, strlen(s));
}

/* What stands before a body of N keys. */
static void
begin(const char *kind, size_t n)
{
    msgpack_sbuffer_clear(&bytes);
    msgpack_packer_init(&k, &bytes, msgpack_sbuffer_write);
    msgpack_pack_array(&k, 7);
    text(kind);
    msgpack_pack_uint64(&k, 70000);
    msgpack_pack_double(&k, 1.5);
    msgpack_pack_fix_int8(&k, 3); /* as other writers may put it */
    msgpack_pack_fix_int32(&k, 400);
    msgpack_pack_fix_uint64(&k, UINT64_C(1) << 40);
    msgpack_pack_map(&k, n);
}

static bool
read_bytes(const char *at, size_t n, struct eti_payload *p)
{
    bool sound;
    char *copy = malloc(n ? n : 1); /* its end is where a sanitizer sees a byte more */
    if (!copy)
        bail("out of memory");
    if (n)
        memcpy(copy, at, n);
    if (eti_payload_read(&e, copy, n, p, &sound) != ET_OK)
        bail("%s", et_error_get(e.cx)->message);
    free(copy);
    return sound;
}

static void
number(const char *name, double value)
{
    text(name);
    msgpack_pack_double(&k, value);
}

static bool
has(const struct eti_payload *p, int i, const char *name, double value)
{
    return i < p->r.n && strcmp(p->r.entry[i].name, name) == 0 &&
           p->r.entry[i].value == value;
}

/* Something that no reader knows: lists and maps within each other, binary, nil. */
static void
unknown(void)
{
    msgpack_pack_array(&k, 3);
    msgpack_pack_map(&k, 1);
    msgpack_pack_nil(&k);
    for (int i = 0; i < 12; i++)
        msgpack_pack_array(&k, 1);
    msgpack_pack_true(&k);
    msgpack_pack_bin_with_body(&k, "\xcb\xcb", 2);
    msgpack_pack_str_with_body(&k, "x", 1);
}

static void
all_keys(void)
{
    begin("log", 7);
    text("f");
    msgpack_pack_map(&k, 1);
    number("fact", 9);
    text("later");
    unknown();
    text("m");
    msgpack_pack_map(&k, 5);
    number("a", 1);
    unknown(); /* no name */
    unknown();
    text("b");
    msgpack_pack_float(&k, 0.5f);
    text("c");
    unknown(); /* no number */
    number("", -INFINITY);
    text("m"); /* a second one does not count */
    msgpack_pack_map(&k, 1);
    number("again", 2);
    text("text");
    text("what \"happened\"");
    text("level");
    text("error");
    text("rank");
    msgpack_pack_uint16(&k, 300);
}

static void
test_all(void)
{
    struct eti_payload p;
    all_keys();
    ok(read_bytes(bytes.data, bytes.size, &p), "a record with every key is read");
    ok(p.r.kind == ET_RECORD_LOG && p.r.seq == 70000 && p.r.t == 1.5 && p.r.ep == 3 &&
           p.r.ba == 400 && p.r.sp == INT64_C(1) << 40,
       "so is what stands before, whatever width its numbers have");
    ok(p.is_series && p.r.n == 3 && has(&p, 0, "a", 1) && has(&p, 1, "b", 0.5) &&
           has(&p, 2, "", -INFINITY),
       "series go before facts; what is no name or number is left out (%d numbers)",
       p.r.n);
    is_str(p.r.text, "what \"happened\"", "the text is read");
    ok(p.r.level == ET_LOG_ERROR && p.r.rank == 300, "so are level and rank");
    int wrong = 0;
    for (size_t n = 0; n < bytes.size; n++)
        wrong += read_bytes(bytes.data, n, &p);
    is_int(wrong, 0, "cut off at any byte it is damaged");
    msgpack_pack_nil(&k);
    ok(!read_bytes(bytes.data, bytes.size, &p), "so it is with a byte more");
    all_keys();
    bytes.data[0]++; /* a list of eight */
    ok(!read_bytes(bytes.data, bytes.size, &p), "or with an element that is missing,");
    msgpack_pack_nil(&k);
    ok(read_bytes(bytes.data, bytes.size, &p) && p.r.n == 3,
       "but not with one that a later version adds");
}

/* This version does not know a level of a later one. */
static void
test_levels(void)
{
    static const struct {
        const char *word;
        enum et_log_level level;
    } row[] = {{"debug", ET_LOG_DEBUG}, {"info", ET_LOG_INFO},   {"warn", ET_LOG_WARN},
               {"error", ET_LOG_ERROR}, {"fatal", ET_LOG_DEBUG}, {"", ET_LOG_DEBUG},
               {"err", ET_LOG_DEBUG},   {"errors", ET_LOG_DEBUG}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_payload p;
        begin("log", 2);
        text("level");
        text(row[i].word);
        text("text");
        text("x");
        ok(read_bytes(bytes.data, bytes.size, &p) && p.r.level == row[i].level,
           "a line of the level '%s' is read, as of %s", row[i].word,
           et_log_level_name(row[i].level));
    }
}

static void
test_names(void)
{
    struct eti_payload p;
    char name[120] = {0};
    begin("batch", 1);
    text("m");
    msgpack_pack_map(&k, 2);
    number("loss", 1);
    number("loss/train", 2);
    ok(read_bytes(bytes.data, bytes.size, &p), "a record of two numbers is read");
    begin("no such kind", 1);
    text("m");
    msgpack_pack_map(&k, 3);
    number("loss/train", 3);
    number("loss", 4);
    memset(name, 'x', sizeof name - 1);
    number(name, 5);
    name[ET_METRIC_NAME - 1] = '\0';
    ok(read_bytes(bytes.data, bytes.size, &p) && p.r.kind == ET_RECORD_COUNT,
       "then one of a kind that is not known");
    ok(p.r.n == 3 && has(&p, 0, "loss/train", 3) && has(&p, 1, "loss", 4) &&
           has(&p, 2, name, 5),
       "its names are its own, cut to 95 bytes");
    begin("batch", 0);
    ok(read_bytes(bytes.data, bytes.size, &p) && p.r.n == 0 && !p.r.entry && !p.r.text,
       "a record without a body has no numbers and no text");
}

static void
test_lies(void)
{
    static const char *const counts[] = {
        "\xdf\xff\xff\xff\xff", /* a map of 2^32 - 1 keys */
        "\xdd\x7f\xff\xff\xff", /* a list */
        "\xdb\xff\xff\xff\xff", /* a text */
        "\xc6\xff\xff\xff\xff", /* bytes */
        "\xc1\xc0\xc0\xc0\xc0", /* no type at all */
    };
    struct eti_payload p;
    int wrong = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int key = 0; key < 3; key++) {
            begin("batch", 1);
            text(key == 0 ? "m" : key == 1 ? "text" : "new");
            msgpack_sbuffer_write(&bytes, counts[i], 5);
            wrong += read_bytes(bytes.data, bytes.size, &p);
        }
    is_int(wrong, 0, "counts that the bytes cannot hold are damage");
    ok(e.room < 1000, "and no room is made for them");
    begin("batch", 0);
    bytes.data[7] = '\xd2'; /* what was an unsigned number of four bytes, */
    bytes.data[8] = '\xff'; /* and is now below 0 */
    ok(!read_bytes(bytes.data, bytes.size, &p), "a number below 0 counts nothing");
}

/* The record names more numbers after something was said of fewer. */
static void
test_spans(void)
{
    enum { MANY = 500 };
    struct eti_payload p;
    char name[16];
    begin("batch", 4);
    text("of");
    msgpack_pack_int64(&k, 3);
    text("f");
    msgpack_pack_map(&k, 1);
    number("fact", 9);
    text("min");
    msgpack_pack_map(&k, 1);
    number("fact", 8);
    text("m");
    msgpack_pack_map(&k, MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "loss/%d", i);
        number(name, i);
    }
    ok(read_bytes(bytes.data, bytes.size, &p) && p.is_series && p.r.n == MANY,
       "series take the place of facts, though a least value was given of those");
    int wrong = 0;
    for (int i = 0; i < p.r.n; i++)
        wrong += !p.r.span || p.r.span[i].n != 3 || p.r.span[i].min != i ||
                 p.r.span[i].max != i;
    is_int(wrong, 0, "and each of the %d series has a span of its own", MANY);
    ok(e.spans >= MANY, "which has room");
}

/* What no writer writes: a least value above the greatest, and more records than there
 * can be. */
static void
test_hostile(void)
{
    struct eti_payload p;
    struct et_series_stats all = {0}, more;
    begin("batch", 4);
    text("of");
    msgpack_pack_int64(&k, INT64_MAX);
    for (int i = 0; i < 3; i++) {
        text(((const char *[]){"m", "min", "max"})[i]);
        msgpack_pack_map(&k, 1);
        number("loss", ((const double[]){5, 9, 1})[i]);
    }
    if (!read_bytes(bytes.data, bytes.size, &p) || p.r.n != 1 || !p.r.span)
        bail("the record is not read");
    ok(p.r.span[0].min == 5 && p.r.span[0].max == 5,
       "a least value above the greatest is none: the last value counts");
    eti_stats_add(&all, &p.r, 0);
    ok(all.min.value <= all.max.value && all.n > 0, "and charts have it in order");
    all.n = INT64_MAX - 5;
    all.bad = INT64_MAX;
    more = all;
    eti_stats_merge(&all, &more, true);
    ok(all.n == INT64_MAX && all.bad == INT64_MAX,
       "counts that are too large to add stay the largest there are");
    eti_stats_merge(&all, &more, false);
    eti_stats_add(&all, &p.r, 0);
    ok(all.n == INT64_MAX && all.bad == INT64_MAX, "whatever comes after");
}

/* What is said of numbers may come in another order than they do. */
static void
test_about(void)
{
    static const struct {
        const char *key, *name;
        double value;
        int64_t count; /* instead, where VALUE is 0 */
    } row[] = {{"min", "c", 1, 0},   {"min", "a", 2, 0},  {"min", "b", 15, 0},
               {"max", "b", 40, 0},  {"max", "a", 50, 0}, {"max", "c", 35, 0},
               {"mean", "b", 25, 0}, {"mean", "c", 7, 0}, {"mean", "a", 20, 0},
               {"bad", "c", 0, 2},   {"bad", "b", 0, 1},  {"bad", "other", 0, 3}};
    struct eti_payload p;
    begin("batch", 7);
    text("m");
    msgpack_pack_map(&k, 3);
    number("a", 10);
    number("b", 20);
    number("c", 30);
    text("of");
    msgpack_pack_int64(&k, 5);
    text("from");
    msgpack_pack_int64(&k, 396);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (i == 0 || strcmp(row[i].key, row[i - 1].key) != 0) {
            text(row[i].key);
            msgpack_pack_map(&k, 3);
        }
        if (row[i].count)
            text(row[i].name), msgpack_pack_int64(&k, row[i].count);
        else
            number(row[i].name, row[i].value);
    }
    if (!read_bytes(bytes.data, bytes.size, &p) || p.r.n != 3 || !p.r.span)
        bail("the record is not read");
    ok(p.r.of == 5 && p.r.from == 396, "a record stands for five batches from 396 on");
    const struct et_log_span *v = p.r.span;
    ok(v[0].min == 2 && v[0].max == 50 && v[0].sum == 5 * 20 && v[0].bad == 0 &&
           v[0].n == 5,
       "a number has what is said of it, though others are told of first,");
    ok(v[1].min == 15 && v[1].max == 40 && v[1].sum == 4 * 25 && v[1].bad == 1 &&
           v[1].n == 4,
       "so has the next,");
    ok(v[2].min == 1 && v[2].max == 35 && v[2].sum == 3 * 7 && v[2].bad == 2 &&
           v[2].n == 3,
       "and the last; what is said of none is passed over");
}

/* For how many a record stands, and from where on. */
static void
test_of(void)
{
    static const struct {
        int64_t of, from, is_of, is_from;
    } row[] = {{0, 5, 0, 0}, {1, 400, 1, 400}, {3, 401, 3, 400}, {3, 0, 3, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_payload p;
        begin("batch", 3);
        text("m");
        msgpack_pack_map(&k, 1);
        number("a", 10);
        text("of");
        msgpack_pack_int64(&k, row[i].of);
        text("from");
        msgpack_pack_int64(&k, row[i].from);
        ok(read_bytes(bytes.data, bytes.size, &p) && p.r.of == row[i].is_of &&
               p.r.from == row[i].is_from && !p.r.span == !row[i].is_of,
           "a record of batch 400 for %d, from %d on, stands for %d from %d on",
           (int)row[i].of, (int)row[i].from, (int)row[i].is_of, (int)row[i].is_from);
    }
}

/* Of a key that comes again the first counts, and of "m" and "f" the former. */
static void
test_again(void)
{
    struct eti_payload p;
    begin("log", 8);
    text("m");
    msgpack_pack_map(&k, 1);
    number("series", 1);
    text("f");
    msgpack_pack_map(&k, 2);
    number("fact", 2);
    number("more", 3);
    for (int i = 0; i < 3; i++) {
        text("text");
        text(((const char *[]){"first", "second", "third"})[i]);
        text("rank");
        msgpack_pack_int64(&k, i == 0 ? INT64_C(1) << 31 : i);
    }
    ok(read_bytes(bytes.data, bytes.size, &p) && p.is_series && p.r.n == 1 &&
           has(&p, 0, "series", 1),
       "facts behind series are passed over");
    is_str(p.r.text, "first", "of a text that comes three times the first counts");
    is_int(p.r.rank, 0, "a rank that no rank has is none");
}

/* Counts and lengths in their widest forms. */
static void
test_wide(void)
{
    struct eti_payload p;
    for (int over = 0; over < 2; over++) {
        msgpack_sbuffer_clear(&bytes);
        msgpack_packer_init(&k, &bytes, msgpack_sbuffer_write);
        msgpack_sbuffer_write(&bytes, "\xdd\0\0\0\7", 5);
        text("batch");
        msgpack_pack_fix_uint64(&k, (uint64_t)INT64_MAX + (unsigned)over);
        msgpack_pack_double(&k, 1.5);
        for (int i = 0; i < 3; i++)
            msgpack_pack_int64(&k, i);
        msgpack_sbuffer_write(&bytes, "\xdf\0\0\0\1", 5);
        text("m");
        msgpack_sbuffer_write(&bytes, "\xdf\0\0\0\2", 5);
        number("a", 1);
        number("b", 2);
        is_int(read_bytes(bytes.data, bytes.size, &p), !over,
               "a number %s the largest is %s", over ? "beyond" : "that is",
               over ? "none" : "read");
        ok(over || (p.r.seq == INT64_MAX && p.r.n == 2 && has(&p, 1, "b", 2)),
           "behind a list and in a map whose lengths have four bytes");
    }
}

/* What is known of a series after a record for several, a value, and none. */
static void
test_stats(void)
{
    static const struct et_log_span span = {2, 3, 1, 9, 11};
    struct et_series_stats all = {0};
    struct et_log_entry entry = {.name = "a", .value = NAN};
    struct et_record r = {.ba = 7, .t = 70, .entry = &entry, .span = &span, .n = 1};
    eti_stats_add(&all, &r, 0);
    ok(all.n == 2 && all.bad == 3 && all.sum == 11 && all.min.value == 1 &&
           all.min.ba == 7 && all.min.t == 70 && all.max.value == 9 &&
           all.max.ba == 7 && all.max.t == 70,
       "of five values two are finite, which have a sum, a least and a greatest");
    ok(all.last.ba == 7 && isnan(all.last.value), "the last is none");
    r = (struct et_record){.ba = 8, .t = 80, .entry = &entry, .n = 1};
    entry.value = 5;
    eti_stats_add(&all, &r, 0);
    ok(all.n == 3 && all.bad == 3 && all.sum == 16 && all.min.ba == 7 &&
           all.max.ba == 7 && all.last.ba == 8 && all.last.t == 80 &&
           all.last.value == 5,
       "one in between is the last, and changes neither");
    r.ba = 9;
    entry.value = -INFINITY;
    eti_stats_add(&all, &r, 0);
    ok(all.n == 3 && all.bad == 4 && all.sum == 16 && all.min.value == 1 &&
           all.last.ba == 9 && all.last.value == -INFINITY,
       "one that is not finite is counted, and is the last");
}

int
main(void)
{
    if (et_ctx_new(&e.cx) != ET_OK)
        return 1;
    msgpack_sbuffer_init(&bytes);
    test_all();
    test_levels();
    test_names();
    test_lies();
    test_spans();
    test_hostile();
    test_about();
    test_of();
    test_again();
    test_wide();
    test_stats();
    msgpack_sbuffer_destroy(&bytes);
    et_free(e.cx, e.entry);
    et_free(e.cx, e.span);
    et_free(e.cx, e.length);
    et_free(e.cx, e.text);
    et_ctx_free(&e.cx);
    return done();
}
