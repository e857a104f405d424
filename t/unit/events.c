/* SPDX-License-Identifier: Apache-2.0 */
/* A log of events at several resolutions: what its summaries say is what its records
 * say, whatever was cut off, damaged, repeated or written by an older version. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/journal/events.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { SERIES = 3, MOST = 40000 };
static const char *const names[SERIES] = {"loss/train/total", "lr", "metrics/eval/A"};

/* What is in the log, as one list a series; a resume takes from its end. */
static struct truth {
    struct et_series_point p[MOST];
    int n;
} truth[SERIES];

static const unsigned char id[ETI_EVENTS_ID] = "0123456789abcde";

static double
value_of(int series, int64_t ba)
{
    uint64_t x = (uint64_t)(ba * SERIES + series + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return series == 0 && ba % 997 == 5 ? NAN : (double)(x >> 40) / (1 << 20) - 7;
}

static void
forget(void)
{
    for (int s = 0; s < SERIES; s++)
        truth[s].n = 0;
}

static void
keep(int series, int64_t ba, double t, double value)
{
    truth[series].p[truth[series].n++] = (struct et_series_point){ba, t, value};
}

/* The batch BA: a number each, one now and then, and an evaluation each 1,000. */
static void
write_batch(struct eti_events_writer *w, int64_t ba)
{
    struct et_log_entry entry[2];
    struct et_record r = {.kind = ET_RECORD_BATCH, .t = 1e9 + (double)ba, .ba = ba};
    for (int s = 0; s < 2; s++)
        if (s == 0 || ba % 7 == 0) {
            snprintf(entry[r.n].name, sizeof entry->name, "%s", names[s]);
            entry[r.n++].value = value_of(s, ba);
            keep(s, ba, r.t, value_of(s, ba));
        }
    r.entry = entry;
    eti_events_write(w, &r);
    if (ba % 1000 != 0)
        return;
    r.kind = ET_RECORD_EVAL;
    r.n = 1;
    r.text = "eval";
    snprintf(entry[0].name, sizeof entry->name, "%s", names[2]);
    entry[0].value = value_of(2, ba);
    keep(2, ba, r.t, entry[0].value);
    eti_events_write(w, &r);
}

static void
write_batches(struct eti_events_writer *w, int64_t from, int64_t to)
{
    for (int64_t ba = from; ba <= to; ba++)
        write_batch(w, ba);
}

/* A run goes on after batch BA. */
static void
write_resume(struct eti_events_writer *w, int64_t ba)
{
    eti_events_write(w, &(struct et_record){.kind = ET_RECORD_RESUME, .ba = ba});
    for (int s = 0; s < SERIES; s++)
        while (truth[s].n > 0 && truth[s].p[truth[s].n - 1].ba > ba)
            truth[s].n--;
}

static struct et_events *
open_log(struct et_ctx *cx)
{
    struct et_events *e;
    need(cx, et_events_open(cx, "events.log", &e));
    return e;
}

/* ---- the answers against the truth ---- */

static bool
same(const struct et_series_point *a, const struct et_series_point *b)
{
    return a->ba == b->ba && a->t == b->t &&
           (a->value == b->value || (isnan(a->value) && isnan(b->value)));
}

static bool
right_stats(const struct et_series *s, const struct truth *all)
{
    struct et_series_stats want = {0};
    for (int i = 0; i < all->n; i++)
        eti_stats_add(&want,
                      &(struct et_record){
                          .ba = all->p[i].ba,
                          .t = all->p[i].t,
                          .entry = &(struct et_log_entry){.value = all->p[i].value},
                          .n = 1,
                      },
                      0);
    const struct et_series_stats *got = &s->all;
    /* The order of a sum: 1e-12 is 4,500 epsilons. */
    return got->n == want.n && got->bad == want.bad &&
           fabs(got->sum - want.sum) <= 1e-12 * fabs(want.sum) * (double)want.n &&
           same(&got->last, &want.last) && same(&got->min, &want.min) &&
           same(&got->max, &want.max);
}

/* Every point is a value of the run in [FROM, TO], in order, no more than MOST, the
 * extremes among them; and all of them where there are no more. */
static bool
right_points(struct et_events *e, int series, int64_t from, int64_t to, int most)
{
    static struct et_series_point got[MOST];
    const struct truth *all = &truth[series];
    const struct et_series_point *min = NULL, *max = NULL;
    int n, at = 0, finite = 0, extremes = 0;
    if (et_events_fetch(e, names[series], from, to, most, got, &n) != ET_OK || n > most)
        return false;
    for (int i = 0; i < all->n; i++) {
        const struct et_series_point *p = &all->p[i];
        if (p->ba < from || p->ba > to || isnan(p->value))
            continue;
        finite++;
        min = !min || p->value < min->value ? p : min;
        max = !max || p->value > max->value ? p : max;
        at += at < n && same(&got[at], p);
    }
    for (int i = 0; i < n; i++)
        extremes +=
            (min && got[i].value == min->value) + (max && got[i].value == max->value);
    bool enough = finite > most ? n >= most / 8 : n == finite;
    if (at != n || (finite > 0 && extremes < 2) || !enough)
        diag("%s [%lld, %lld] of %d: %d points, %d in the log, %d of %d values",
             names[series], (long long)from, (long long)to, most, n, at, n, finite);
    return at == n && (finite == 0 || extremes >= 2) && enough;
}

static int
count_wrong(struct et_ctx *cx, bool thoroughly)
{
    static const int sizes[] = {4096, 2, 7, 100, 1000, MOST};
    struct et_events *e = open_log(cx);
    const struct et_series *list;
    int n, wrong = 0, seen = 0;
    need(cx, et_events_series(e, &list, &n));
    for (int i = 0; i < n; i++)
        for (int s = 0; s < SERIES; s++)
            if (strcmp(list[i].name, names[s]) == 0) {
                seen++;
                wrong += !right_stats(&list[i], &truth[s]);
            }
    int64_t last = truth[0].n ? truth[0].p[truth[0].n - 1].ba : 0;
    for (int s = 0; s < SERIES; s++) {
        seen += truth[s].n == 0;
        wrong += !right_points(e, s, 0, INT64_MAX, 4096);
        for (size_t k = 0; thoroughly && k < sizeof sizes / sizeof *sizes; k++)
            wrong += !right_points(e, s, 0, last, sizes[k]) +
                     !right_points(e, s, last / 3, last / 3 + 200, sizes[k]) +
                     !right_points(e, s, last / 2, last - 5, sizes[k]) +
                     !right_points(e, s, last + 1, last + 50, sizes[k]);
    }
    et_events_close(&e);
    return wrong + (seen < SERIES);
}

static uint64_t
bytes_to_open(struct et_ctx *cx)
{
    struct et_events *e = open_log(cx);
    const struct et_series *list;
    int n;
    need(cx, et_events_series(e, &list, &n));
    uint64_t bytes = et_events_bytes_read(e);
    et_events_close(&e);
    return bytes;
}

static int64_t
size_of_log(void)
{
    struct stat st;
    if (stat("events.log", &st) != 0)
        bail("no events.log");
    return st.st_size;
}

/* ---- tests ---- */

static void
test_sizes(struct et_ctx *cx)
{
    static const int64_t sizes[] = {0, 1, 127, 128, 129, 2047, 2048, 2049, 5000, 38000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct eti_events_writer w;
        forget();
        need(cx, eti_events_begin(cx, ".", id, &w));
        write_batches(&w, 1, sizes[i]);
        eti_events_end(&w);
        is_int(count_wrong(cx, true), 0, "%lld batches: summaries say what records do",
               (long long)sizes[i]);
        if (sizes[i] != 38000)
            remove("events.log");
    }
    uint64_t bytes = bytes_to_open(cx);
    ok(bytes < (uint64_t)size_of_log() / 8, "%llu of %lld bytes open it",
       (unsigned long long)bytes, (long long)size_of_log());
}

/* The log of test_sizes, as the versions before summaries wrote it. */
static void
test_old(struct et_ctx *cx)
{
    struct eti_events_writer w;
    forget();
    remove("events.log");
    need(cx, eti_events_begin(cx, ".", id, &w));
    w.tally.off = true;
    write_batches(&w, 1, 9000);
    eti_events_end(&w);
    FILE *f = fopen("events.log", "r+b");
    fseek(f, 8, SEEK_SET);
    fputc(1, f);
    fclose(f);
    is_int(count_wrong(cx, true), 0, "a log without summaries gives the same answers");
    int64_t cut;
    is_int(eti_events_continue(cx, ".", &cut, &w), ET_EFORMAT,
           "an old format is not added to");
    et_error_clear(cx);
}

/* Memory for points does not grow with a log that has no summaries. */
static void
test_long(void)
{
    enum { LONG = 200000, POINTS = 64 };
    struct et_ctx *cx; /* of its own: what is used is counted from here on */
    struct eti_events_writer w;
    struct et_events *e;
    struct et_alloc_stats used;
    struct et_log_entry entry = {.name = "loss"};
    struct et_record r = {.kind = ET_RECORD_BATCH, .entry = &entry, .n = 1};
    struct et_series_point p[POINTS];
    double least = INFINITY, most = -INFINITY;
    int n = 0;
    bool in_order = true;
    remove("events.log");
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    need(cx, eti_events_begin(cx, ".", id, &w));
    w.tally.off = true;
    for (r.ba = 1; r.ba <= LONG; r.ba++) {
        entry.value = r.ba == 77777 ? 2e9 : r.ba == 150001 ? -2e9 : (double)(r.ba % 97);
        eti_events_write(&w, &r);
    }
    eti_events_end(&w);
    need(cx, et_events_open(cx, "events.log", &e));
    need(cx, et_events_fetch(e, "loss", 0, INT64_MAX, POINTS, p, &n));
    et_events_close(&e);
    for (int i = 0; i < n; i++) {
        least = fmin(least, p[i].value);
        most = fmax(most, p[i].value);
        in_order = in_order && (i == 0 || p[i - 1].ba <= p[i].ba);
    }
    ok(n > POINTS / 2 && in_order, "%d points of %d records, in order", n, LONG);
    ok(least == -2e9 && most == 2e9, "the least and the greatest are among them");
    et_alloc_get_stats(cx, &used);
    ok(used.peak < 16 << 20, "which took %zu bytes", used.peak);
    et_ctx_free(&cx);
}

/* Each value is that of its batch, so where the greatest of a stretch is not followed
 * by the least of the next, one was lost. */
static void
test_gapless(struct et_ctx *cx)
{
    enum { LONG = 40001, POINTS = 50000 };
    static struct et_series_point p[POINTS];
    struct eti_events_writer w;
    struct et_events *e;
    struct et_log_entry entry = {.name = "loss"};
    struct et_record r = {.kind = ET_RECORD_BATCH, .entry = &entry, .n = 1};
    int n = 0, gaps = 0;
    remove("events.log");
    need(cx, eti_events_begin(cx, ".", id, &w));
    w.tally.off = true;
    for (r.ba = 1; r.ba <= LONG; r.ba++) {
        entry.value = (double)r.ba;
        eti_events_write(&w, &r);
    }
    eti_events_end(&w);
    need(cx, et_events_open(cx, "events.log", &e));
    need(cx, et_events_fetch(e, "loss", 0, INT64_MAX, POINTS, p, &n));
    et_events_close(&e);
    for (int i = 0; i < n; i++)
        gaps += p[i].value != i + 1;
    is_int(n, LONG, "of a log without summaries two values are one piece at most");
    is_int(gaps, 0, "and none is lost");
}

/* Of values of one batch that which was told first is drawn first, be it the least or
 * the greatest. */
static void
test_one_batch(struct et_ctx *cx)
{
    static const double values[2][3] = {{5, 3, 4}, {3, 5, 4}};
    for (int way = 0; way < 2; way++) {
        struct et_series_point p[2];
        struct eti_events_writer w;
        struct et_events *e;
        int n = 0;
        remove("events.log");
        need(cx, eti_events_begin(cx, ".", id, &w));
        for (int i = 0; i < 3; i++) {
            const struct et_log_entry entry = {"loss", values[way][i]};
            const struct et_record r = {
                .kind = ET_RECORD_BATCH, .t = 1 + i, .ba = 7, .entry = &entry, .n = 1};
            eti_events_write(&w, &r);
        }
        eti_events_end(&w);
        need(cx, et_events_open(cx, "events.log", &e));
        need(cx, et_events_fetch(e, "loss", 0, INT64_MAX, 2, p, &n));
        et_events_close(&e);
        ok(n == 2 && p[0].value == values[way][0] && p[0].t == 1 &&
               p[1].value == values[way][1] && p[1].t == 2,
           "of three values of a batch %g comes first, then %g", values[way][0],
           values[way][1]);
    }
}

/* A loss that is NaN from the first batch on, over more than a summary. */
static void
test_all_bad(struct et_ctx *cx)
{
    enum { LONG = 9000 };
    const struct et_log_entry entry = {"loss", NAN};
    const struct et_series *list;
    struct eti_events_writer w;
    struct et_events *e;
    int n;
    remove("events.log");
    need(cx, eti_events_begin(cx, ".", id, &w));
    for (int i = 0; i < LONG; i++) {
        const struct et_record r = {
            .kind = ET_RECORD_BATCH, .t = 1 + i, .ba = i, .entry = &entry, .n = 1};
        eti_events_write(&w, &r);
    }
    eti_events_end(&w);
    need(cx, et_events_open(cx, "events.log", &e));
    need(cx, et_events_series(e, &list, &n));
    ok(n == 1 && list[0].all.n == 0 && list[0].all.bad == LONG,
       "a log knows how many values of a series were no numbers, if all of them");
    et_events_close(&e);
}

/* A crash left space behind the last record, or somebody made it. */
static void
test_tail(struct et_ctx *cx)
{
    struct eti_events_writer w;
    const struct et_series *list;
    int n;
    forget();
    remove("events.log");
    need(cx, eti_events_begin(cx, ".", id, &w));
    write_batches(&w, 1, 9000);
    eti_events_end(&w);
    if (truncate("events.log", INT64_C(4) << 30) != 0) {
        skip(2, "no room for a file with a hole");
        return;
    }
    struct et_events *e = open_log(cx);
    need(cx, et_events_series(e, &list, &n));
    ok(n == SERIES && list[0].all.n + list[0].all.bad == 9000,
       "a log with 4 GiB of nothing behind it says what it has");
    ok(et_events_bytes_read(e) < 256 << 20, "and is not read from end to end");
    et_events_close(&e);
}

/* Each format that a header may name. */
static void
test_formats(struct et_ctx *cx)
{
    struct eti_events_writer w;
    for (int major = 0; major <= ETI_EVENTS_MAJOR + 1; major++) {
        struct et_events *e;
        const unsigned char bytes[2] = {(unsigned char)major, 0};
        const bool is_known = major >= 1 && major <= ETI_EVENTS_MAJOR;
        remove("events.log");
        need(cx, eti_events_begin(cx, ".", id, &w));
        eti_events_end(&w);
        int fd = open("events.log", O_WRONLY);
        if (pwrite(fd, bytes, sizeof bytes, 8) != (ssize_t)sizeof bytes)
            bail("no header");
        close(fd);
        et_status status = et_events_open(cx, "events.log", &e);
        ok(status == (is_known ? ET_OK : ET_EFORMAT), "a log of format %d is %s", major,
           is_known ? "read" : "refused");
        if (status == ET_OK)
            et_events_close(&e);
        else
            ok(strstr(et_error_get(cx)->message, "has format ") != NULL,
               "with its number: %s", et_error_get(cx)->message);
        et_error_clear(cx);
    }
    remove("events.log");
}

/* Somebody cleans up in the run's directory. */
static void
test_removed(struct et_ctx *cx)
{
    struct eti_events_writer w;
    struct et_events *e;
    struct et_record r;
    struct stat st;
    int before = 0, after = 0;
    bool got = true;
    forget();
    remove("events.log");
    need(cx, eti_events_begin(cx, ".", id, &w));
    write_batches(&w, 1, 3000);
    eti_events_flush(&w);
    need(cx, et_events_open(cx, "events.log", &e));
    while (et_events_next(e, &r, &got) == ET_OK && got)
        before++;
    remove("events.log");
    write_batches(&w, 3001, 4000);
    is_int(eti_events_restore(&w, "."), ET_OK, "a log that was removed is made again");
    write_batches(&w, 4001, 6000);
    eti_events_flush(&w);
    is_int(count_wrong(cx, true), 0, "with all that was in it, and what comes behind");
    for (got = et_events_again(e) == ET_OK; got;)
        if (et_events_next(e, &r, &got) == ET_OK)
            after += got;
    is_int(before + after, w.seq, "who had read it goes on in the other");
    et_events_close(&e);
    is_int(eti_events_restore(&w, "."), ET_EIO, "one that is there is not made again");
    et_error_clear(cx);
    remove("events.log");
    is_int(eti_events_restore(&w, "no-such"), ET_ENOENT,
           "nor one whose folder is gone");
    et_error_clear(cx);
    write_batches(&w, 6001, 6100);
    eti_events_flush(&w);
    ok(!w.failed && stat("events.log", &st) != 0, "and all is as it was");
    is_int(eti_events_restore(&w, "."), ET_OK, "until it can be");
    is_int(count_wrong(cx, true), 0, "without a loss");
    eti_events_end(&w);
}

static void
copy_log(const char *from, const char *to, int64_t bytes)
{
    char block[1 << 16];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    while (bytes > 0) {
        size_t n = fread(
            block, 1, bytes < (int64_t)sizeof block ? (size_t)bytes : sizeof block, in);
        if (n == 0)
            break;
        fwrite(block, 1, n, out);
        bytes -= (int64_t)n;
    }
    fclose(in);
    fclose(out);
}

/* The truth of what events.log still holds, by its records alone. */
static void
learn(struct et_ctx *cx)
{
    struct et_events *e = open_log(cx);
    struct et_record r;
    bool got;
    forget();
    while (et_events_next(e, &r, &got) == ET_OK && got) {
        for (int i = 0; i < r.n; i++)
            for (int s = 0; s < SERIES; s++)
                if (strcmp(r.entry[i].name, names[s]) == 0)
                    keep(s, r.ba, r.t, r.entry[i].value);
    }
    et_events_close(&e);
}

/* Bytes at which summaries begin. */
static int
find_summaries(int64_t *at, int most)
{
    int n = 0;
    int64_t size = size_of_log();
    char *text = malloc((size_t)size);
    FILE *f = fopen("events.log", "rb");
    if (!text || fread(text, 1, (size_t)size, f) != (size_t)size)
        bail("cannot read the log");
    fclose(f);
    for (char *p = text;
         n < most && (p = memmem(p, (size_t)(text + size - p), ETI_SUMMARY_BEGIN,
                                 strlen(ETI_SUMMARY_BEGIN)));
         p++)
        at[n++] = p - text;
    free(text);
    return n;
}

static int
count_records(struct et_ctx *cx)
{
    struct et_events *e = open_log(cx);
    struct et_record r;
    bool got;
    int n = 0;
    while (et_events_next(e, &r, &got) == ET_OK && got)
        n++;
    et_events_close(&e);
    return n;
}

static void
test_torn(struct et_ctx *cx)
{
    struct eti_events_writer w;
    remove("events.log");
    forget();
    need(cx, eti_events_begin(cx, ".", id, &w));
    write_batches(&w, 1, 8200);
    eti_events_end(&w);
    int64_t size = size_of_log(), cut, places[64];
    int wrong = 0, wrong_later = 0, cuts = 0, few = 0;
    rename("events.log", "whole.log");
    for (int64_t at = size; at > ETI_EVENTS_HEADER; at -= size / 97 + 13, cuts++) {
        copy_log("whole.log", "events.log", at);
        learn(cx);
        wrong += count_wrong(cx, false);
        int64_t ba = truth[0].n ? truth[0].p[truth[0].n - 1].ba : 0;
        need(cx, eti_events_continue(cx, ".", &cut, &w));
        int64_t back = ba > 100 ? ba - 100 : 0;
        write_resume(&w, back);
        write_batches(&w, back + 1, ba + 3000);
        eti_events_end(&w);
        wrong_later += count_wrong(cx, false);
        few += find_summaries(places, 64) < count_records(cx) / 2048;
    }
    is_int(wrong, 0, "a log cut at %d places gives what is left of it", cuts);
    is_int(wrong_later, 0, "and what is added when the run goes on");
    is_int(few, 0, "and its summaries go on");
    rename("whole.log", "events.log");
}

static void
flip(int64_t at)
{
    FILE *f = fopen("events.log", "r+b");
    fseek(f, at, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(byte ^ 4, f);
    fclose(f);
}

static void
test_damage(struct et_ctx *cx)
{
    struct eti_events_writer w;
    int64_t at[64];
    remove("events.log");
    forget();
    need(cx, eti_events_begin(cx, ".", id, &w));
    write_batches(&w, 1, 36000); /* 17 of level 1, one of level 2 */
    eti_events_end(&w);
    int n = find_summaries(at, 64), wrong = 0;
    is_int(n, 18, "36,036 records have 17 + 1 summaries");
    for (int i = 0; i < n; i++) {
        flip(at[i] + 40);
        wrong += count_wrong(cx, false);
        flip(at[i] + 40);
    }
    is_int(wrong, 0, "with any one damaged the answers are the same");
    for (int i = 0; i < n; i++)
        flip(at[i] + 40);
    is_int(count_wrong(cx, false), 0, "and with all of them");
    struct et_events *e = open_log(cx);
    struct et_record r;
    bool got = true;
    int64_t records = 0;
    et_status status;
    while ((status = et_events_next(e, &r, &got)) == ET_OK && got)
        records++;
    is_int(status, ET_OK, "damaged summaries are no damage to the records");
    is_int(records, 36036, "which are all there");
    et_events_close(&e);
    for (int i = 0; i < n; i++)
        flip(at[i] + 40);
    flip(at[3] - 200); /* a record */
    e = open_log(cx);
    while ((status = et_events_next(e, &r, &got)) == ET_OK && got)
        ;
    is_int(status, ET_EFORMAT, "a damaged record is");
    et_error_clear(cx);
    et_events_close(&e);
    const struct et_series *loss;
    static struct et_series_point p[MOST];
    e = open_log(cx);
    need(cx, et_events_series_find(e, names[0], &loss));
    ok(right_stats(loss, &truth[0]), "though summaries still know its numbers");
    need(cx, et_events_fetch(e, names[0], 0, INT64_MAX, MOST, p, &n));
    ok(n > 36000 - 36 - 2048 && n < 36000 - 36, "and a chart is less fine there: %d",
       n);
    et_events_close(&e);
    flip(at[3] - 200);
}

static void
test_resumes(struct et_ctx *cx)
{
    static const int64_t ends[] = {3000, 2500, 10000, 9999, 12000, 30000};
    static const int64_t backs[] = {2000, 100, 9000, 9000, 11990, 29000};
    struct eti_events_writer w;
    int64_t from = 1, cut;
    remove("events.log");
    forget();
    need(cx, eti_events_begin(cx, ".", id, &w));
    for (int i = 0; i < 6; i++) {
        write_batches(&w, from, ends[i]);
        if (i % 2) {
            eti_events_end(&w);
            need(cx, eti_events_continue(cx, ".", &cut, &w));
        }
        write_resume(&w, backs[i]);
        from = backs[i] + 1;
    }
    write_batches(&w, from, 29500);
    struct eti_events_writer second;
    is_int(eti_events_continue(cx, ".", &cut, &second), ET_ECANCELED,
           "a log that is being written has no second writer");
    et_error_clear(cx);
    struct et_record note;
    is_int(eti_events_annotate(cx, ".", "too early", &cut, &note), ET_ECANCELED,
           "nor can a note be added");
    et_error_clear(cx);
    eti_events_end(&w);
    is_int(count_wrong(cx, true), 0, "what a resumed run did again counts once");
}

static void
test_note(struct et_ctx *cx)
{
    struct et_record note, r;
    int64_t cut;
    bool got;
    need(cx, eti_events_annotate(cx, ".", "lr was \033[2J high", &cut, &note));
    is_int(note.ba, 29500, "a note is at the last batch");
    struct et_events *e = open_log(cx);
    need(cx, et_events_only(e, UINT64_C(1) << ET_RECORD_ANNOTATION));
    need(cx, et_events_next(e, &r, &got));
    ok(got && r.ba == 29500, "and in the log");
    is_str(got ? r.text : "", "lr was \\x1b[2J high",
           "with what is no text made visible");
    et_events_close(&e);
}

static void
test_kinds(struct et_ctx *cx)
{
    struct et_events *e = open_log(cx);
    struct et_record r;
    bool got;
    int resumes = 0;
    need(cx, et_events_only(e, UINT64_C(1) << ET_RECORD_RESUME));
    while (et_events_next(e, &r, &got) == ET_OK && got)
        resumes += r.kind == ET_RECORD_RESUME ? 1 : 100;
    is_int(resumes, 6, "records of one kind are found");
    ok(et_events_bytes_read(e) < (uint64_t)size_of_log() / 2,
       "and stretches without are not read: %llu of %lld bytes",
       (unsigned long long)et_events_bytes_read(e), (long long)size_of_log());
    et_events_close(&e);
}

/* A note of before the log was gone on with, and a summary of summaries over both. */
static void
test_kinds_go_on(struct et_ctx *cx)
{
    struct eti_events_writer w;
    struct et_record r;
    int64_t cut;
    bool got;
    remove("events.log");
    forget();
    need(cx, eti_events_begin(cx, ".", id, &w));
    eti_events_write(&w, &(struct et_record){.kind = ET_RECORD_ANNOTATION,
                                             .text = "once, in the beginning"});
    write_batches(&w, 1, 3000);
    eti_events_end(&w);
    need(cx, eti_events_continue(cx, ".", &cut, &w));
    write_batches(&w, 3001, 36000);
    eti_events_end(&w);
    struct et_events *e = open_log(cx);
    need(cx, et_events_only(e, UINT64_C(1) << ET_RECORD_ANNOTATION));
    need(cx, et_events_next(e, &r, &got));
    is_str(got ? r.text : "", "once, in the beginning",
           "a record of a kind is found, whoever wrote it how long ago");
    et_events_close(&e);
}

/* More series than fit into a record, or a summary. */
static void
test_wide(struct et_ctx *cx)
{
    enum { WIDE = 3000 };
    static struct et_log_entry entry[WIDE];
    struct eti_events_writer w;
    remove("events.log");
    need(cx, eti_events_begin(cx, ".", id, &w));
    for (int i = 0; i < WIDE; i++)
        snprintf(entry[i].name, sizeof entry[i].name,
                 "l2_norm/moment/a_rather_long_name_of_a_module.layer%d.weight", i);
    for (int64_t ba = 1; ba <= 800; ba++) {
        for (int i = 0; i < WIDE; i++)
            entry[i].value = (double)(ba * i % 1013);
        const struct et_record r = {
            .kind = ET_RECORD_BATCH, .ba = ba, .entry = entry, .n = WIDE};
        eti_events_write(&w, &r);
    }
    eti_events_end(&w);
    struct et_events *e = open_log(cx);
    const struct et_series *list;
    int n, wrong = 0;
    need(cx, et_events_series(e, &list, &n));
    is_int(n, WIDE, "3,000 series are kept");
    for (int i = 0; i < n; i++)
        wrong += list[i].all.n != 800;
    is_int(wrong, 0, "with each of their values");
    struct et_series_point p[4096];
    need(cx, et_events_fetch(e, entry[WIDE - 1].name, 0, 800, 4096, p, &n));
    for (int i = 0; i < n; i++)
        wrong += p[i].value != (double)(p[i].ba * (WIDE - 1) % 1013);
    is_int(n - wrong, 800, "and are drawn");
    et_events_close(&e);
    remove("events.log");
}

static void
test_million(struct et_ctx *cx)
{
    struct eti_events_writer w;
    struct et_log_entry entry = {"loss/train/total", 0};
    need(cx, eti_events_begin(cx, ".", id, &w));
    for (int64_t ba = 1; ba <= 1000000; ba++) {
        entry.value = (double)(ba % 1000);
        const struct et_record r = {
            .kind = ET_RECORD_BATCH, .t = 1e9, .ba = ba, .entry = &entry, .n = 1};
        eti_events_write(&w, &r);
    }
    eti_events_end(&w);
    struct et_events *e = open_log(cx);
    const struct et_series *list;
    static struct et_series_point p[4096];
    int n;
    need(cx, et_events_series(e, &list, &n));
    is_int(n == 1 ? list[0].all.n : -1, 1000000, "a million records are summed up");
    uint64_t opened = et_events_bytes_read(e);
    ok(opened < (uint64_t)size_of_log() / 50,
       "of which less than 2%% is read: %llu bytes of %lld", (unsigned long long)opened,
       (long long)size_of_log());
    need(cx, et_events_fetch(e, "loss/train/total", 0, INT64_MAX, 4096, p, &n));
    ok(n > 2048 && n <= 4096, "a chart has %d points", n);
    ok(et_events_bytes_read(e) - opened < (uint64_t)size_of_log() / 4,
       "for which %llu bytes are read",
       (unsigned long long)(et_events_bytes_read(e) - opened));
    et_events_close(&e);
    remove("events.log");
}

static void
test_full_disk(struct et_ctx *cx)
{
    struct eti_events_writer w;
    int64_t lost;
    remove("events.log");
    forget();
    need(cx, eti_events_begin(cx, ".", id, &w));
    write_batches(&w, 1, 3000);
    eti_events_flush(&w);
    int fd = w.fd;
    w.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    write_batches(&w, 3001, 12000);
    eti_events_flush(&w);
    lost = w.lost;
    close(w.fd);
    w.fd = fd;
    write_batches(&w, 12001, 16000);
    eti_events_end(&w);
    ok(lost > 0, "a full disk costs records: %lld", (long long)lost);
    learn(cx);
    ok(truth[0].n + 3 * lost > 1 && truth[0].p[truth[0].n - 1].ba == 16000,
       "but what is written before and after reads as a log");
    is_int(count_wrong(cx, false), 0, "with right summaries");
}

static size_t disk_room; /* bytes until the disk is full */

static ssize_t
write_to_disk(int fd, const void *buf, size_t n)
{
    const size_t some = n < disk_room ? n : disk_room;
    if (n > 0 && some == 0) {
        errno = ENOSPC;
        return -1;
    }
    disk_room -= some;
    return write(fd, buf, some);
}

/* The disk is full in the middle of a record, and has room again before the buffer
 * is. */
static void
test_nearly_full_disk(struct et_ctx *cx)
{
    struct eti_seams seams = *eti_ctx_seams(cx);
    const struct eti_seams *old = eti_ctx_seams(cx);
    struct eti_events_writer w;
    seams.file.write = write_to_disk;
    for (size_t room = 1000; room < 1100; room += 9) {
        remove("events.log");
        forget();
        disk_room = SIZE_MAX;
        eti_ctx_set_seams(cx, &seams);
        need(cx, eti_events_begin(cx, ".", id, &w));
        disk_room = room;
        write_batches(&w, 1, 100);
        eti_events_flush(&w);
        const bool waits = w.used > 0 && disk_room == 0;
        disk_room = SIZE_MAX;
        write_batches(&w, 101, 200);
        eti_events_end(&w);
        eti_ctx_set_seams(cx, old);
        const int wrong = waits && w.lost == 0 ? count_wrong(cx, true) : -1;
        is_int(wrong, 0,
               "a disk that is full after %zu bytes for a while costs nothing", room);
    }
}

/* Facts, and what ranks other than 0 say, are read back and are values of no series. */
static void
test_facts(struct et_ctx *cx)
{
    static const struct et_log_entry number[] = {{"own_ms", 4.5}, {"run/epochs", 3}};
    const struct et_record record[] = {
        {.kind = ET_RECORD_BATCH, .ba = 1, .entry = number, .n = 1},
        {.kind = ET_RECORD_HEALTH, .ba = 2, .rank = 7, .entry = number, .n = 2},
        {.kind = ET_RECORD_METRIC, .ba = 3, .rank = 1, .entry = number, .n = 2},
        {.kind = ET_RECORD_RUN, .ba = 4, .text = "running", .entry = number, .n = 2},
    };
    struct eti_events_writer w;
    struct et_record r;
    const struct et_series *list;
    bool got;
    int n, same = 0;
    remove("events.log");
    need(cx, eti_events_begin(cx, ".", id, &w));
    for (int i = 0; i < 4; i++)
        eti_events_write(&w, &record[i]);
    eti_events_end(&w);
    struct et_events *e = open_log(cx);
    for (int i = 0; i < 4; i++) {
        need(cx, et_events_next(e, &r, &got));
        same += got && r.kind == record[i].kind && r.rank == record[i].rank &&
                r.n == record[i].n && r.entry[r.n - 1].value == number[r.n - 1].value;
    }
    is_int(same, 4, "facts are read back with the rank whose they are");
    need(cx, et_events_series(e, &list, &n));
    ok(n == 1 && list[0].all.n == 1, "and are values of no series");
    et_events_close(&e);
}

/* The number of the first record that begins at AT or later. */
static int64_t
first_after(const int64_t *begin, int64_t n, int64_t at)
{
    for (int64_t i = 1; i <= n; i++)
        if (begin[i] >= at)
            return i;
    return 0;
}

/* The numbers of those records that are read from byte AT of the log on; 0: none
 * are. */
static int64_t
first_from(struct et_ctx *cx, struct et_events *e, int64_t at, int64_t *last)
{
    struct et_record r;
    bool found, got;
    int64_t first = 0;
    need(cx, eti_events_seek(e, at, &found));
    for (*last = 0, got = found; got;) {
        need(cx, et_events_next(e, &r, &got));
        first = got && first == 0 ? r.seq : first;
        *last = got ? r.seq : *last;
    }
    return first;
}

/* A log of which the beginning is not at hand is read from its next whole record on. */
static void
test_seek(struct et_ctx *cx)
{
    struct eti_events_writer w;
    struct et_record r;
    bool got;
    int64_t begin[301] = {0}, last; /* where the record of each number begins */
    int wrong = 0;
    remove("events.log");
    forget();
    need(cx, eti_events_begin(cx, ".", id, &w));
    write_batches(&w, 1, 120);
    eti_events_end(&w);
    struct et_events *e = open_log(cx);
    const int64_t size = et_events_bytes(e);
    do {
        int64_t at = size - et_events_torn_bytes(e);
        need(cx, et_events_next(e, &r, &got));
        if (got && r.seq <= 300)
            begin[r.seq] = at;
    } while (got);
    const int64_t n = r.seq;
    for (int64_t at = 0; at <= size; at++) {
        int64_t first = first_from(cx, e, at, &last);
        wrong += first != first_after(begin, n, at) || (first > 0 && last != n);
    }
    et_events_close(&e);
    is_int(n, 120, "a log of 120 records");
    is_int(wrong, 0, "is read from the next record on wherever in it one begins");

    FILE *f = fopen("events.log", "r+b"); /* as of one whose middle was never fetched */
    static const char zeros[1000];
    fseek(f, begin[60] + 5, SEEK_SET);
    fwrite(zeros, 1, sizeof zeros, f);
    fclose(f);
    e = open_log(cx);
    const int64_t hole = begin[60] + 5, behind = hole + (int64_t)sizeof zeros;
    is_int(first_from(cx, e, hole, &last), first_after(begin, n, behind),
           "also behind a hole");
    is_int(last, n, "up to its end");
    et_events_close(&e);
    remove("events.log");
}

static int reads_left; /* until the one that fails; 0: none does */

static ssize_t
read_or_fail(int fd, void *buf, size_t n, off_t at)
{
    if (reads_left > 0 && --reads_left == 0) {
        errno = EIO;
        return -1;
    }
    return eti_system.file.read(fd, buf, n, at);
}

/* A disk that cannot be read is no end of the log: what is read is all of it, or there
 * is an error. */
static void
test_unreadable(struct et_ctx *cx)
{
    struct eti_seams bad = *eti_ctx_seams(cx);
    const struct eti_seams *old = eti_ctx_seams(cx);
    struct eti_events_writer w;
    struct et_record r;
    int errors = 0, short_reads = 0, all = 0, k;
    bool hit = true;
    remove("events.log");
    forget();
    need(cx, eti_events_begin(cx, ".", id, &w));
    write_batches(&w, 1, 9000);
    eti_events_end(&w);
    bad.file.read = read_or_fail;
    eti_ctx_set_seams(cx, &bad);
    for (k = 0; hit; k++) { /* none fails the first time, nor the last */
        struct et_events *e = NULL;
        bool got = true;
        int n = 0;
        reads_left = k;
        et_status status = et_events_open(cx, "events.log", &e);
        while (status == ET_OK && got) {
            status = et_events_next(e, &r, &got);
            n += status == ET_OK && got;
        }
        hit = reads_left == 0;
        errors += status != ET_OK;
        all = k == 0 ? n : all;
        short_reads += status == ET_OK && n != all;
        if (e)
            et_events_close(&e);
        et_error_clear(cx);
    }
    reads_left = 0;
    eti_ctx_set_seams(cx, old);
    ok(all > 9000 && errors > 3 && errors == k - 2,
       "of %d reads one fails: there is an error each time", k - 2);
    is_int(short_reads, 0, "and never are records missing without one");
    remove("events.log");
}

int
main(void)
{
    char directory[] = "events-XXXXXX";
    struct et_alloc_stats stats;
    struct et_ctx *cx = need_ctx();
    if (!mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    test_sizes(cx);
    test_old(cx);
    test_long();
    test_gapless(cx);
    test_one_batch(cx);
    test_all_bad(cx);
    test_tail(cx);
    test_removed(cx);
    test_formats(cx);
    test_torn(cx);
    test_damage(cx);
    test_resumes(cx);
    test_note(cx);
    test_kinds(cx);
    test_kinds_go_on(cx);
    test_facts(cx);
    test_seek(cx);
    test_unreadable(cx);
    test_full_disk(cx);
    test_nearly_full_disk(cx);
    remove("events.log");
    test_wide(cx);
    test_million(cx);
    ok(chdir("..") == 0 && rmdir(directory) == 0, "every file is accounted for");
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
