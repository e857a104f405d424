/* SPDX-License-Identifier: Apache-2.0 */
/* What is written into a log of events is read: records of every kind with every field,
 * each of which has a value of its own; the points of series of every length; each kind
 * alone, and the newest; and what stands at and behind what is torn or damaged. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/journal/events_read.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { NUMBERS = 7, LONGEST = 300 };
static const unsigned char id[16] = "records";
static const char *const texts[] = {"", "a line", "eval", "failed"};

static struct et_events *
open_log(struct et_ctx *cx)
{
    struct et_events *e;
    need(cx, et_events_open(cx, "events.log", &e));
    return e;
}

static void
begin_log(struct et_ctx *cx, struct eti_events_writer *w)
{
    remove("events.log");
    need(cx, eti_events_begin(cx, ".", id, w));
}

/* ---- records ---- */

static struct written {
    struct et_record r;
    struct et_log_entry entry[NUMBERS];
    struct et_log_span span[NUMBERS];
} written[LONGEST];

/* Number I of record K. Of those that stand for several, each is said of another way:
 * of up to 5 values that are finite, and 2 that are not. */
static void
fill_number(struct written *w, int k, int i)
{
    const double x = 1000 * k + 10 * i;
    snprintf(w->entry[i].name, sizeof w->entry->name, "%s/%d", i % 2 ? "a" : "of/b",
             (i * 5 + k) % NUMBERS);
    w->entry[i].value = x;
    w->span[i] = (struct et_log_span){
        .n = 2 + (k + i) % 4, .bad = (k + i) % 3, .min = x - 1 - i, .max = x + 2 + i};
    w->span[i].sum =
        (double)w->span[i].n * (x + 0.25); /* it has a mean that is exact */
}

static void
fill_record(int k)
{
    struct written *w = &written[k];
    w->r = (struct et_record){
        .kind = (enum et_record_kind)(k % ET_RECORD_COUNT),
        .t = 1e9 + k,
        .seq = k + 1,
        .ep = 3 + k / 50,
        .ba = 100 + k,
        .sp = 6400 + 64 * k,
        .text = k % 3 ? texts[k % 4] : NULL,
        .rank = k % 5 == 1 ? k : 0,
        .entry = w->entry,
        .n = (k * 3) % (NUMBERS + 1),
    };
    if (w->r.kind == ET_RECORD_LOG)
        w->r.level = (enum et_log_level)(k / ET_RECORD_COUNT % 4);
    for (int i = 0; i < w->r.n; i++)
        fill_number(w, k, i);
    if (w->r.n > 0 && eti_is_series(&w->r) && k % 2) {
        w->r.of = 7 + k % 6; /* at least as many as have values */
        w->r.from = w->r.ba - 50;
        w->r.span = w->span;
    }
}

static bool
has_numbers(const struct et_record *got, const struct et_record *want)
{
    if (got->n != want->n)
        return false;
    for (int i = 0; i < want->n; i++)
        if (strcmp(got->entry[i].name, want->entry[i].name) != 0 ||
            got->entry[i].value != want->entry[i].value)
            return false;
    return true;
}

static bool
has_spans(const struct et_record *got, const struct et_record *want)
{
    if (!want->span)
        return got->of == 0 && !got->span;
    for (int i = 0; i < want->n; i++) {
        const struct et_log_span *a = got->span ? &got->span[i] : NULL;
        const struct et_log_span *b = &want->span[i];
        if (!a || a->n != b->n || a->bad != b->bad || a->min != b->min ||
            a->max != b->max || a->sum != b->sum)
            return false;
    }
    return got->of == want->of && got->from == want->from;
}

static bool
has_texts(const struct et_record *got, const struct et_record *want)
{
    return !got->text == !want->text &&
           (!got->text || strcmp(got->text, want->text) == 0);
}

static void
test_records(struct et_ctx *cx)
{
    struct eti_events_writer w;
    struct et_record got;
    int places = 0, texts_and_levels = 0, numbers = 0, spans = 0, spanned = 0, n = 0;
    bool more;
    begin_log(cx, &w);
    for (int k = 0; k < LONGEST; k++) {
        fill_record(k);
        eti_events_write(&w, &written[k].r);
        spanned += written[k].r.span != NULL;
    }
    eti_events_end(&w);
    struct et_events *e = open_log(cx);
    for (; n < LONGEST; n++) {
        const struct et_record *want = &written[n].r;
        need(cx, et_events_next(e, &got, &more));
        if (!more)
            break;
        places += got.kind == want->kind && got.seq == want->seq && got.t == want->t &&
                  got.ep == want->ep && got.ba == want->ba && got.sp == want->sp &&
                  got.rank == want->rank;
        texts_and_levels += has_texts(&got, want) && got.level == want->level;
        numbers += has_numbers(&got, want);
        spans += has_spans(&got, want);
    }
    et_events_close(&e);
    is_int(n, LONGEST, "all records of a log are read");
    is_int(places, n, "each is of its kind, and where it was");
    is_int(texts_and_levels, n, "with its text and its level");
    is_int(numbers, n, "with its numbers in their order");
    is_int(spans, n, "and with what was said of each of them");
    ok(spanned > 20, "which %d of them had", spanned);
}

/* ---- points ---- */

/* N batches whose values are the same (0), go up and down in pairs (1), or differ. */
static void
write_series(struct et_ctx *cx, int n, int shape)
{
    struct eti_events_writer w;
    begin_log(cx, &w);
    for (int ba = 1; ba <= n; ba++) {
        struct et_log_entry entry = {.name = "x"};
        entry.value = shape == 0 ? 5 : shape == 1 ? ba / 2 % 2 : ba * 37 % 101;
        eti_events_write(&w, &(struct et_record){.kind = ET_RECORD_BATCH,
                                                 .t = 1e9 + ba,
                                                 .ba = ba,
                                                 .entry = &entry,
                                                 .n = 1});
    }
    eti_events_end(&w);
}

/* No place comes twice, and each is behind the one before. */
static bool
goes_on(const struct et_series_point *p, int n)
{
    for (int i = 1; i < n; i++)
        if (p[i].ba <= p[i - 1].ba)
            return false;
    return true;
}

/* Every batch from 1 to N, once. */
static bool
is_whole(const struct et_series_point *p, int got, int n)
{
    for (int i = 0; i < got; i++)
        if (p[i].ba != i + 1)
            return false;
    return got == n;
}

/* The number of points that is asked for behind MOST: few, and around N. */
static int
near(int most, int n)
{
    return most < 5 || most >= n - 2 ? most + 1 : n - 2;
}

static void
test_points(struct et_ctx *cx)
{
    static const int lengths[] = {2, 3, 7, 31, 32, 33, 64, 100, 257, LONGEST};
    static struct et_series_point p[LONGEST + 1];
    int wrong = 0, few = 0, twice = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int shape = 0; shape < 3; shape++) {
            const int n = lengths[i];
            write_series(cx, n, shape);
            struct et_events *e = open_log(cx);
            for (int most = 2; most <= n + 1; most = near(most, n)) {
                int got;
                need(cx, et_events_fetch(e, "x", 0, INT64_MAX, most, p, &got));
                few += got > most || got < 1;
                twice += !goes_on(p, got);
                if (most < n || is_whole(p, got, n))
                    continue;
                wrong++;
                diag("%d points of %d batches of shape %d: %d", most, n, shape, got);
            }
            et_events_close(&e);
        }
    is_int(wrong, 0, "as many points as there are values are all of them");
    is_int(few, 0, "and never more than was asked for");
    is_int(twice, 0, "each is a place of its own");
}

/* Batches FROM to TO, of which every EACHth has an evaluation behind it. */
static void
write_batches(struct eti_events_writer *w, int64_t from, int64_t to, int each)
{
    for (int64_t ba = from; ba <= to; ba++) {
        const struct et_log_entry loss = {"loss", (double)ba}, score = {"score", 1};
        struct et_record r = {
            .kind = ET_RECORD_BATCH, .t = 1e9, .ba = ba, .entry = &loss, .n = 1};
        eti_events_write(w, &r);
        if (each == 0 || ba % each != 0)
            continue;
        r.kind = ET_RECORD_EVAL;
        r.entry = &score;
        eti_events_write(w, &r);
    }
}

/* A series that ends early has no points later, and its summaries say so. */
static void
test_absent(struct et_ctx *cx)
{
    static struct et_series_point p[100];
    struct eti_events_writer w;
    const struct et_series *list;
    int n;
    begin_log(cx, &w);
    write_batches(&w, 1, 100, 10);
    write_batches(&w, 101, 40000, 0);
    eti_events_end(&w);
    struct et_events *e = open_log(cx);
    need(cx, et_events_series(e, &list, &n));
    const uint64_t before = et_events_bytes_read(e);
    need(cx, et_events_fetch(e, "score", 5000, 39000, 100, p, &n));
    is_int(n, 0, "where a series has no values it has no points");
    ok(et_events_bytes_read(e) - before < (uint64_t)et_events_bytes(e) / 8,
       "and records are not read for that: %llu of %lld bytes",
       (unsigned long long)(et_events_bytes_read(e) - before),
       (long long)et_events_bytes(e));
    need(cx, et_events_fetch(e, "score", 95, 39000, 100, p, &n));
    ok(n == 1 && p[0].ba == 100, "its last value is there");
    need(cx, et_events_fetch(e, "no such series", 0, 39000, 100, p, &n));
    is_int(n, 0, "a series that is not there has none at all");
    et_events_close(&e);
}

/* ---- some records alone ---- */

/* Records of the KINDS, and the sum of their batches, as the log gives them. */
static int
count_kinds(struct et_events *e, uint64_t kinds, int64_t *sum)
{
    struct et_record r;
    bool got = true;
    int n = 0;
    for (*sum = 0; got;) {
        need(e->cx, et_events_next(e, &r, &got));
        if (!got || !(kinds >> r.kind & 1))
            continue;
        n++;
        *sum += r.ba;
    }
    return n;
}

/* Pairs of kinds of which the log gives others alone than among all. */
static int
wrong_kinds(struct et_ctx *cx, int step)
{
    int wrong = 0;
    for (int a = 0; a < ET_RECORD_COUNT; a++)
        for (int b = a; b < ET_RECORD_COUNT; b += step) {
            const uint64_t kinds = UINT64_C(1) << a | UINT64_C(1) << b;
            int64_t want_sum, sum;
            struct et_events *all = open_log(cx), *some = open_log(cx);
            need(cx, et_events_only(some, kinds));
            const int want = count_kinds(all, kinds, &want_sum);
            const int n = count_kinds(some, UINT64_MAX, &sum);
            wrong += n != want || sum != want_sum;
            et_events_close(&all);
            et_events_close(&some);
        }
    return wrong;
}

static void
flip(int64_t at)
{
    FILE *f = fopen("events.log", "r+b");
    if (!f || fseek(f, (long)at, SEEK_SET) != 0)
        bail("cannot damage the log");
    const int byte = fgetc(f);
    fseek(f, -1, SEEK_CUR);
    fputc(byte ^ 1, f);
    fclose(f);
}

/* Each kind of record, then batches, three times: some summaries, the two resumes. */
static void
test_kinds(struct et_ctx *cx)
{
    struct eti_events_writer w;
    int64_t summary[3];
    begin_log(cx, &w);
    for (int part = 0; part < 3; part++) {
        for (int kind = 0; kind < ET_RECORD_COUNT; kind++)
            eti_events_write(&w, &(struct et_record){.kind = (enum et_record_kind)kind,
                                                     .ba = 3000 * part,
                                                     .text = "x"});
        write_batches(&w, 3000 * part + 1, 3000 * part + 3000, 1000);
        summary[part] = w.tally.last[0];
    }
    eti_events_end(&w);
    is_int(wrong_kinds(cx, 1), 0, "any two kinds of records are found, and no others");
    flip(summary[1] + 40);
    is_int(wrong_kinds(cx, 7), 0, "also where a summary is damaged");
}

/* Records that are the newest of a log: two parts before its newest summary, of 128
 * records each, and all behind it. */
static void
test_newest(struct et_ctx *cx)
{
    enum { PART = ETI_PART_RECORDS, FULL = ETI_PARTS * PART };
    static const struct {
        int batches, later; /* behind a resume, where there is one */
        int newest;
    } row[] = {
        {0, 0, 0},
        {100, 0, 100},
        {FULL - 1, 0, FULL - 1},
        {FULL, 0, 2 * PART},
        {FULL + 1, 0, 2 * PART + 1},
        {3 * FULL - 1, 0, 2 * PART + FULL - 1},
        {16 * FULL, 0, 2 * PART},
        {16 * FULL + 7, 0, 2 * PART + 7},
        {FULL + PART - 1, 10, PART - 1 + 1 + 10},
        {FULL + 2 * PART, 10, 2 * PART + 1 + 10},
        {FULL + 2 * PART + 1, 10, PART + 1 + 1 + 10},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_events_writer w;
        struct et_record r = {0};
        bool got = true;
        int n = 0;
        begin_log(cx, &w);
        write_batches(&w, 1, row[i].batches, 0);
        if (row[i].later)
            eti_events_write(&w, &(struct et_record){.kind = ET_RECORD_RESUME,
                                                     .ba = row[i].batches});
        write_batches(&w, row[i].batches + 1, row[i].batches + row[i].later, 0);
        const int64_t last = w.seq;
        eti_events_end(&w);
        struct et_events *e = open_log(cx);
        need(cx, eti_events_newest(e));
        while (et_events_next(e, &r, &got) == ET_OK && got)
            n++;
        ok(n == row[i].newest && (n == 0 || r.seq == last),
           "of %d batches, and %d after a resume, %d records are the newest (%d)",
           row[i].batches, row[i].later, row[i].newest, n);
        et_events_close(&e);
    }
}

/* ---- what is torn, damaged or replaced ---- */

enum { FEW = 20 };

/* Writes FEW batches; where the record of each begins, and the last ends. */
static void
write_few(struct et_ctx *cx, int64_t at[FEW + 1])
{
    struct eti_events_writer w;
    begin_log(cx, &w);
    for (int i = 0; i < FEW; i++) {
        at[i] = eti_events_size(&w);
        write_batches(&w, i + 1, i + 1, 0);
    }
    at[FEW] = eti_events_size(&w);
    eti_events_end(&w);
}

static size_t
read_log(char *bytes, size_t room)
{
    FILE *f = fopen("events.log", "rb");
    size_t n = f ? fread(bytes, 1, room, f) : 0;
    if (f)
        fclose(f);
    return n;
}

/* In the place where it is: those who read it go on in the same file. */
static void
put_log(const char *bytes, size_t n, const char *how)
{
    FILE *f = fopen("events.log", how);
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0 ||
        truncate("events.log", (off_t)n) != 0)
        bail("cannot write the log");
}

/* Who goes on anywhere goes on at a record that is whole. */
static void
test_damaged(struct et_ctx *cx)
{
    int64_t at[FEW + 1];
    int wrong = 0, places = 0;
    char message[64];
    write_few(cx, at);
    for (int i = 0; i < FEW; i++) {
        struct et_record r = {0};
        bool found, got = false;
        flip(at[i + 1] - 1); /* the last byte of its number */
        struct et_events *e = open_log(cx);
        need(cx, eti_events_seek(e, at[i], &found));
        if (found)
            need(cx, et_events_next(e, &r, &got));
        wrong += i < FEW - 1 ? !got || r.seq != i + 2 : got;
        et_events_close(&e);
        e = open_log(cx);
        for (got = true; got && et_events_next(e, &r, &got) == ET_OK;)
            ;
        snprintf(message, sizeof message, "record %d, at byte %lld, is damaged", i + 1,
                 (long long)at[i]);
        places += i < FEW - 1 ? strstr(et_error_get(cx)->message, message) != NULL
                              : et_error_get(cx)->status == ET_OK;
        et_error_clear(cx);
        et_events_close(&e);
        flip(at[i + 1] - 1);
    }
    is_int(wrong, 0, "a record of a wrong checksum is not gone on with");
    is_int(places, FEW, "and is named by its number and byte, unless it is the last");
}

/* The last record is torn at any byte while it is read, and then written anew. */
static void
test_torn(struct et_ctx *cx)
{
    static char whole[1 << 14], other[1 << 14];
    int64_t at[FEW + 1];
    int wrong = 0;
    write_few(cx, at);
    const size_t n = read_log(whole, sizeof whole);
    memcpy(other, whole, n);
    memset(other + at[FEW - 1], 0, (size_t)(at[FEW] - at[FEW - 1]));
    for (int64_t cut = at[FEW - 1]; cut < at[FEW]; cut++) {
        struct et_record r;
        bool got = true;
        int before = 0, after = 0;
        put_log(cut % 2 ? other : whole, (size_t)cut, "wb");
        struct et_events *e = open_log(cx);
        while (et_events_next(e, &r, &got) == ET_OK && got)
            before++;
        wrong += before != FEW - 1 || et_events_torn_bytes(e) != cut - at[FEW - 1];
        put_log(whole, n, "r+b");
        need(cx, et_events_again(e));
        for (got = true; et_events_next(e, &r, &got) == ET_OK && got;)
            after += r.seq == FEW && r.ba == FEW && r.entry[0].value == FEW;
        wrong += after != 1 || et_events_torn_bytes(e) != 0;
        et_events_close(&e);
    }
    is_int(wrong, 0, "a record that is torn is not there, and is when it is whole");
    struct et_record r;
    bool got = true;
    int after = 0;
    put_log(whole, (size_t)at[FEW - 1], "wb");
    flip(at[FEW - 1] - 1);
    struct et_events *e = open_log(cx);
    while (et_events_next(e, &r, &got) == ET_OK && got)
        ;
    is_int(et_events_torn_bytes(e), at[FEW - 1] - at[FEW - 2],
           "so is one whose bytes are there, and wrong");
    put_log(whole, n, "r+b");
    need(cx, et_events_again(e));
    for (got = true; et_events_next(e, &r, &got) == ET_OK && got;)
        after++;
    is_int(after, 2, "and it comes when they are right");
    et_events_close(&e);
}

/* A number and the name behind it that look like a frame with a batch, but for its
 * checksum, to somebody who goes on in the middle of their record. */
static void
test_looks_like_one(struct et_ctx *cx)
{
    static const char batch[] = "\x97\xa5"
                                "batch\x63\xcb"
                                "AAAAAAAA\x01\x01\x01\x80";
    static const unsigned char head[] = {0x40, sizeof batch - 1, 0, 0, 0, 1, 2, 3};
    struct et_log_entry entry[2] = {{"x", 0}, {"", 1}};
    struct et_record r = {
        .kind = ET_RECORD_BATCH, .t = 1e9, .ba = 1, .entry = entry, .n = 2};
    struct eti_events_writer w;
    uint64_t bits = 0;
    bool found, got = false;
    int wrong = 0;
    for (size_t i = 0; i < sizeof head; i++)
        bits = bits << 8 | head[i];
    memcpy(&entry[0].value, &bits, sizeof bits);
    snprintf(entry[1].name, sizeof entry[1].name, "%s", batch);
    begin_log(cx, &w);
    const int64_t at = eti_events_size(&w);
    eti_events_write(&w, &r);
    const int64_t end = eti_events_size(&w);
    write_batches(&w, 2, 3, 0);
    eti_events_end(&w);
    struct et_events *e = open_log(cx);
    for (int64_t from = at + 1; from <= end; from++) {
        need(cx, eti_events_seek(e, from, &found));
        need(cx, et_events_next(e, &r, &got));
        wrong += !found || !got || r.seq != 2;
    }
    is_int(wrong, 0, "what looks like a record within one is none");
    et_events_close(&e);
}

/* A file in the place of a log that was removed is read on where it may be the same
 * log, made again: with its header, and no shorter. */
static void
test_replaced(struct et_ctx *cx)
{
    static char whole[1 << 14];
    int64_t at[FEW + 1];
    write_few(cx, at);
    const size_t n = read_log(whole, sizeof whole);
    for (int more = -2; more <= 2; more++)
        for (int other = 0; other < 2; other++) {
            struct et_record r;
            bool got = true;
            put_log(whole, n, "wb");
            struct et_events *e = open_log(cx);
            need(cx, et_events_next(e, &r, &got));
            remove("events.log");
            whole[20] ^= (char)other; /* of its run's id */
            put_log(whole, n + (size_t)more, "wb");
            whole[20] ^= (char)other;
            const bool taken = more >= 0 && !other;
            ok(et_events_again(e) == ET_OK &&
                   et_events_bytes(e) == (int64_t)n + (taken ? more : 0),
               "a file of %+d bytes, of %s run, is %s", more, other ? "another" : "the",
               taken ? "the log" : "left alone");
            et_events_close(&e);
        }
}

int
main(void)
{
    char directory[] = "records-XXXXXX";
    struct et_ctx *cx = need_ctx();
    if (!mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    test_records(cx);
    test_points(cx);
    test_absent(cx);
    test_kinds(cx);
    test_newest(cx);
    test_damaged(cx);
    test_torn(cx);
    test_looks_like_one(cx);
    test_replaced(cx);
    remove("events.log");
    ok(chdir("..") == 0 && rmdir(directory) == 0, "every file is accounted for");
    et_ctx_free(&cx);
    return done();
}
