/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of fast runs: they are bounded, and a chart of them shows what one of every
 * batch would. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/journal/events_read.h"
#include "core/loggers/loggers.h"
#include "core/loggers/thin.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { NUMBERS = 32 };
static const unsigned char id[ETI_EVENTS_ID] = {1, 2, 3};

/* ---- a run that trains at a steady pace ---- */

static double
value_at(int64_t ba, int i)
{
    /* Peaks at odd places, such as a chart must not lose. */
    return ba % 1009 == 17 ? 100 + i : sin((double)ba * 0.01 * (i + 1));
}

/* Batch BA, at second T, with names as long as those of runs. */
static void
put_batch(struct eti_thin *thin, double t, int64_t ba)
{
    static struct et_log_entry entry[NUMBERS];
    if (!entry[0].name[0])
        for (int i = 0; i < NUMBERS; i++)
            snprintf(entry[i].name, sizeof entry[i].name,
                     "throughput/device/number_%02d", i);
    for (int i = 0; i < NUMBERS; i++)
        entry[i].value = value_at(ba, i);
    const struct et_record r = {
        .kind = ET_RECORD_BATCH,
        .t = t,
        .ba = ba,
        .sp = 8 * ba,
        .entry = entry,
        .n = NUMBERS,
    };
    eti_thin_put(thin, &r);
}

/* ---- bytes ---- */

static int64_t written;

/* A disk of any size, of which nobody reads. */
static ssize_t
count_bytes(int fd, const void *bytes, size_t n)
{
    (void)fd;
    (void)bytes;
    written += (int64_t)n;
    return (ssize_t)n;
}

struct log {
    struct eti_events_writer w;
    struct eti_thin thin;
};

static void
put_event(void *data, const struct et_record *r)
{
    struct log *log = data;
    eti_events_write(&log->w, r);
    log->thin.bytes = eti_events_size(&log->w);
}

/* Bytes of events.log after SECONDS of PER batches a second, and an evaluation after
 * each EPOCH of them. */
static int64_t
bytes_after(struct et_ctx *cx, double seconds, int per, int epoch)
{
    struct eti_seams counting = eti_system;
    struct log log;
    counting.file.write = count_bytes;
    unlink("events.log");
    written = 0;
    eti_ctx_set_seams(cx, &counting);
    need(cx, eti_events_begin(cx, ".", id, &log.w));
    eti_thin_init(&log.thin, cx, ET_TIME_UNSET, put_event, &log);
    for (int64_t ba = 1; ba <= (int64_t)(seconds * per); ba++) {
        double t = 1.7e9 + (double)ba / per;
        put_batch(&log.thin, t, ba);
        if (epoch && ba % epoch == 0) {
            struct et_log_entry e = {"metrics/eval/Accuracy", value_at(ba, 1)};
            struct et_record r = {.kind = ET_RECORD_RUN, .t = t, .ba = ba};
            r.text = "evaluating";
            eti_thin_put(&log.thin, &r);
            eti_thin_put(&log.thin, &(struct et_record){.kind = ET_RECORD_EVAL,
                                                        .t = t,
                                                        .ba = ba,
                                                        .text = "eval",
                                                        .entry = &e,
                                                        .n = 1});
            r.text = "running";
            eti_thin_put(&log.thin, &r);
        }
    }
    eti_thin_flush(&log.thin);
    eti_thin_release(&log.thin);
    eti_events_end(&log.w);
    eti_ctx_set_seams(cx, &eti_system);
    unlink("events.log");
    return written;
}

static void
test_bytes(struct et_ctx *cx)
{
    const double day = 86400;
    int64_t first = bytes_after(cx, 60, 1900, 0), fast = bytes_after(cx, 660, 1900, 0);
    fast -= first; /* without the first thousand batches */
    ok(fast < 500e6 / 144, "ten minutes of 1,900 batches a second: %.1f MB of 3.5",
       (double)fast * 1e-6);
    fast = bytes_after(cx, 600, 1900, 3);
    ok(fast < 30e6, "with an evaluation after every third: %.1f MB",
       (double)fast * 1e-6);
    fast = bytes_after(cx, day, 51, 0);
    ok(fast < 500e6, "a day of 51 a second: %.0f MB", (double)fast * 1e-6);
    fast = bytes_after(cx, day, 40, 20);
    ok(fast < 500e6, "a day of 40 a second, with evaluations: %.0f MB",
       (double)fast * 1e-6);
}

/* ---- records ---- */

struct tape {
    int n;
    int64_t of, most; /* batches that stand there; in one record */
    int64_t before;   /* how many of them, when a record without numbers came */
    double sum, least, greatest, last;
    char order[256]; /* kinds, by first letters */
};

static void
note(void *data, const struct et_record *r)
{
    struct tape *tape = data;
    size_t n = strlen(tape->order);
    if (n + 1 < sizeof tape->order)
        tape->order[n] = et_record_name(r->kind)[0];
    tape->n++;
    if (r->n == 0) {
        tape->before = tape->of;
        return;
    }
    const struct et_log_span one = {1, 0, r->entry[0].value, r->entry[0].value,
                                    r->entry[0].value};
    const struct et_log_span *s = r->span ? &r->span[0] : &one;
    tape->of += s->n;
    tape->most = s->n > tape->most ? s->n : tape->most;
    tape->sum += s->sum;
    tape->least = fmin(tape->least, s->min);
    tape->greatest = fmax(tape->greatest, s->max);
    tape->last = r->entry[0].value;
}

static struct tape
thin(struct et_ctx *cx, struct et_time interval, int per, int64_t batches)
{
    struct tape tape = {.least = HUGE_VAL, .greatest = -HUGE_VAL};
    struct eti_thin t;
    eti_thin_init(&t, cx, interval, note, &tape);
    for (int64_t ba = 1; ba <= batches; ba++)
        put_batch(&t, 1.7e9 + (double)ba / per, ba);
    eti_thin_flush(&t);
    eti_thin_release(&t);
    return tape;
}

/* What says when something happened stands behind all batches before it. */
static void
test_place(struct et_ctx *cx)
{
    enum { BATCHES = 5003 };
    static const struct {
        enum et_record_kind kind;
        enum et_log_level level;
        bool is_behind;
    } row[] = {
        {ET_RECORD_RESUME, ET_LOG_INFO, true},
        {ET_RECORD_COMMAND, ET_LOG_INFO, true},
        {ET_RECORD_ANNOTATION, ET_LOG_INFO, true},
        {ET_RECORD_LOG, ET_LOG_ERROR, true},
        {ET_RECORD_LOG, ET_LOG_WARN, true},
        {ET_RECORD_LOG, ET_LOG_INFO, false},
        {ET_RECORD_HEALTH, ET_LOG_INFO, false},
        {ET_RECORD_ALGORITHM, ET_LOG_INFO, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct tape tape = {.before = -1};
        struct eti_thin t;
        eti_thin_init(&t, cx, ET_TIME_UNSET, note, &tape);
        for (int64_t ba = 1; ba <= BATCHES; ba++)
            put_batch(&t, 1.7e9 + (double)ba / 1900, ba);
        const struct et_record r = {.kind = row[i].kind,
                                    .level = row[i].level,
                                    .t = 1.7e9 + BATCHES / 1900.0,
                                    .ba = BATCHES,
                                    .text = "said"};
        eti_thin_put(&t, &r);
        ok(tape.before >= 0 && (tape.before == BATCHES) == row[i].is_behind,
           "%s of level %d stands behind %s batches before it",
           et_record_name(row[i].kind), (int)row[i].level,
           row[i].is_behind ? "all" : "only some of the") ||
            (diag("behind %lld of %d", (long long)tape.before, BATCHES), 0);
        eti_thin_flush(&t);
        eti_thin_release(&t);
    }
}

static void
test_pace(struct et_ctx *cx)
{
    struct tape t = thin(cx, ET_TIME_UNSET, 49, 10000);
    is_int(t.n, 10000, "of 49 batches a second each has a record");
    t = thin(cx, ET_TIME_UNSET, 1900, 1000);
    is_int(t.n, 1000, "so have the first of a fast run");
    t = thin(cx, ET_TIME_UNSET, 1900, 190000);
    ok(t.n > 1090 && t.n < 1150, "and then each second has: %d in 100 s", t.n);
    is_int(t.of, 190000, "for all of its batches");
    double sum = 0, least = HUGE_VAL, greatest = -HUGE_VAL;
    for (int64_t ba = 1; ba <= 190000; ba++) {
        sum += value_at(ba, 0);
        least = fmin(least, value_at(ba, 0));
        greatest = fmax(greatest, value_at(ba, 0));
    }
    ok(fabs(t.sum - sum) < 1e-6 * fabs(sum), "with their mean");
    ok(t.least == least && t.greatest == greatest, "their least and greatest value");
    ok(t.last == value_at(190000, 0), "and the last");
    t = thin(cx, ET_BATCHES(1), 1900, 5000);
    is_int(t.n, 5000, "1ba keeps every batch");
    t = thin(cx, ET_BATCHES(10), 20, 1005);
    is_int(t.n, 101, "10ba is one record for ten, and one for what is left over");
    t = thin(cx, (struct et_time){5, ET_TIME_SECOND}, 20, 1000);
    ok(t.n == 10 && t.most >= 100, "5sec one for five seconds: %d", t.n);
}

static void
test_order(struct et_ctx *cx)
{
    struct tape tape = {0};
    struct eti_thin t;
    eti_thin_init(&t, cx, ET_BATCHES(100), note, &tape);
    put_batch(&t, 1, 1);
    eti_thin_put(&t, &(struct et_record){.kind = ET_RECORD_HEALTH, .t = 1});
    put_batch(&t, 1, 2);
    eti_thin_put(&t,
                 &(struct et_record){.kind = ET_RECORD_CHECKPOINT, .t = 1, .ba = 2});
    put_batch(&t, 1, 3);
    eti_thin_put(&t, &(struct et_record){.kind = ET_RECORD_EVAL, .t = 1, .ba = 3});
    put_batch(&t, 1, 4);
    eti_thin_put(
        &t, &(struct et_record){.kind = ET_RECORD_RUN, .t = 1, .text = "finished"});
    is_str(tape.order, "hbcbebr",
           "what waits stands before checkpoints, evaluations and ends");
    ok(!eti_thin_due(&t, 1e9), "nothing is left");
    eti_thin_release(&t);

    memset(&tape, 0, sizeof tape);
    eti_thin_init(&t, cx, (struct et_time){2, ET_TIME_SECOND}, note, &tape);
    put_batch(&t, 10, 1);
    ok(eti_thin_due(&t, 11) && tape.n == 0, "a batch waits for its time");
    ok(!eti_thin_due(&t, 12) && tape.n == 1, "and no longer, where no other comes");
    eti_thin_release(&t);
}

/* ---- what readers see ---- */

/* A log of 60,000 batches in 30 s, each with its own record or thinned. */
static void
write_log(struct et_ctx *cx, struct et_time interval)
{
    struct log log;
    unlink("events.log");
    need(cx, eti_events_begin(cx, ".", id, &log.w));
    eti_thin_init(&log.thin, cx, interval, put_event, &log);
    eti_events_say_thinned(&log.w, interval);
    for (int64_t ba = 1; ba <= 60000; ba++)
        put_batch(&log.thin, 1.7e9 + (double)ba / 2000, ba);
    eti_thin_flush(&log.thin);
    eti_thin_release(&log.thin);
    eti_events_end(&log.w);
}

/* The least and greatest value of COLUMNS stretches of the batches of a chart. */
static void
draw(struct et_ctx *cx, int columns, double *low, double *high, struct et_series *all)
{
    static struct et_series_point p[4096];
    const struct et_series *s;
    struct et_events *e;
    int n;
    need(cx, et_events_open(cx, "events.log", &e));
    need(cx, et_events_series_find(e, "throughput/device/number_03", &s));
    *all = *s;
    need(cx, et_events_fetch(e, s->name, 0, INT64_MAX, 4096, p, &n));
    for (int i = 0; i < columns; i++) {
        low[i] = HUGE_VAL;
        high[i] = -HUGE_VAL;
    }
    for (int i = 0; i < n; i++) {
        int at = (int)((p[i].ba - 1) * columns / 60000);
        low[at] = fmin(low[at], p[i].value);
        high[at] = fmax(high[at], p[i].value);
    }
    et_events_close(&e);
}

static void
test_chart(struct et_ctx *cx)
{
    enum { COLUMNS = 10 }; /* of three seconds each: a record is of one */
    double low[2][COLUMNS], high[2][COLUMNS];
    struct et_series all[2];
    struct stat st[2];
    struct et_record r;
    struct et_events *e;
    bool got = true;
    char header[16];
    write_log(cx, ET_BATCHES(1));
    stat("events.log", &st[0]);
    draw(cx, COLUMNS, low[0], high[0], &all[0]);
    write_log(cx, ET_TIME_UNSET);
    stat("events.log", &st[1]);
    draw(cx, COLUMNS, low[1], high[1], &all[1]);
    ok(st[1].st_size * 20 < st[0].st_size, "a log of %.1f MB becomes one of %.1f",
       1e-6 * (double)st[0].st_size, 1e-6 * (double)st[1].st_size);
    int bad = 0;
    for (int i = 0; i < COLUMNS; i++)
        bad += fabs(low[0][i] - low[1][i]) > 1e-3 || high[0][i] != high[1][i];
    is_int(bad, 0, "its chart has the same least and greatest value everywhere");
    is_int(all[1].all.n, all[0].all.n, "as many values are counted");
    ok(fabs(all[1].all.sum - all[0].all.sum) < 1e-6 * fabs(all[0].all.sum),
       "with the same mean");
    ok(all[1].all.max.value == all[0].all.max.value &&
           all[1].all.last.ba == all[0].all.last.ba,
       "the greatest and the last are the same");
    need(cx, et_events_open(cx, "events.log", &e));
    int64_t of = 0, next = 1;
    bool gaps = false;
    while (et_events_next(e, &r, &got) == ET_OK && got) {
        gaps = gaps || (r.of > 0 ? r.from : r.ba) != next;
        next = r.ba + 1;
        of += r.of > 0 ? r.of : 1;
    }
    ok(of == 60000 && !gaps, "each record says which batches it stands for");
    et_events_close(&e);
    FILE *f = fopen("events.log", "r");
    ok(f && fread(header, 1, 16, f) == 16 &&
           !memcmp(header + 12, "\xff\xff\xff\xff", 4),
       "and the header that they are thinned");
    if (f)
        fclose(f);
    unlink("events.log");
}

/* Numbers that some batches lack, or that are not finite, through a file and as
 * JSON. */
static void
test_odd(struct et_ctx *cx)
{
    static const char *const want =
        "{\"t\":5.000,\"ev\":\"batch\",\"ep\":0,\"ba\":4,\"sp\":0,\"of\":4,\"from\":1,"
        "\"m\":{\"same\":7,\"loss\":null,\"rare\":3},"
        "\"min\":{\"loss\":1},\"max\":{\"loss\":3},\"mean\":{\"loss\":2},"
        "\"n\":{\"rare\":1},\"bad\":{\"loss\":1}}\n";
    struct log log;
    struct et_events *e;
    struct et_record r;
    bool got;
    char line[1024] = "";
    need(cx, eti_events_begin(cx, ".", id, &log.w));
    eti_thin_init(&log.thin, cx, ET_BATCHES(4), put_event, &log);
    for (int i = 1; i <= 4; i++) {
        struct et_log_entry entry[] = {
            {"same", 7}, {"loss", i == 4 ? NAN : i}, {"rare", 3}};
        eti_thin_put(&log.thin, &(struct et_record){.kind = ET_RECORD_BATCH,
                                                    .t = 1 + i,
                                                    .ba = i,
                                                    .entry = entry,
                                                    .n = i == 2 ? 3 : 2});
    }
    eti_thin_release(&log.thin);
    eti_events_end(&log.w);
    need(cx, et_events_open(cx, "events.log", &e));
    need(cx, et_events_next(e, &r, &got));
    FILE *f = fmemopen(line, sizeof line, "w");
    eti_jsonl_put(f, &r);
    fclose(f);
    is_str(line, want, "what differs is said, and of how many");
    ok(got && r.n == 3 && r.span[1].n == 3 && r.span[1].bad == 1 &&
           r.span[1].sum == 6 && r.span[0].n == 4 && r.span[0].sum == 28 &&
           r.span[2].n == 1,
       "a reader has all of it");
    et_events_close(&e);
    unlink("events.log");
}

static void
count_records(void *data, const struct et_record *r)
{
    int *n = data;
    (void)r;
    ++*n;
}

/* What waits to be thinned does not wait for a time that is an hour off. */
static void
test_clock_back(struct et_ctx *cx)
{
    struct eti_thin thin;
    int64_t ba = 0;
    int n = 0;
    eti_thin_init(&thin, cx, ((struct et_time){10, ET_TIME_SECOND}), count_records, &n);
    for (int i = 0; i < 9; i++)
        put_batch(&thin, 1.7e9 + i, ++ba);
    const int before = n;
    put_batch(&thin, 1.7e9 - 3600, ++ba);
    is_int(n, before + 1, "what waits is written when the clock is set back");
    for (int i = 1; i <= 30; i++)
        put_batch(&thin, 1.7e9 - 3600 + i, ++ba);
    is_int(n, before + 4, "and records go on by the new time, one each 10 s");
    eti_thin_release(&thin);
}

int
main(void)
{
    struct et_alloc_stats stats;
    struct et_ctx *cx = need_ctx();
    if (chdir(scratch_folder()) != 0)
        bail("no directory for files");
    test_place(cx);
    test_pace(cx);
    test_order(cx);
    test_odd(cx);
    test_clock_back(cx);
    test_chart(cx);
    test_bytes(cx);
    if (chdir("/") != 0)
        bail("no way back");
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
