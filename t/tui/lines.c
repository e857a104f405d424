/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c: what ranks wrote and what happened meanwhile is one stream of lines, in
 * order of time, each once. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "tui/lines.h"

enum { ROOM = 4096 }; /* events that are kept until they are taken */

/* The log of RANK: TEXT, which may grow. */
static FILE *
add_file(struct et_ctx *cx, struct tui_lines *l, int rank, const char *text)
{
    FILE *f = tmpfile();
    if (!f || fputs(text, f) < 0)
        bail("no file");
    rewind(f);
    need(cx, tui_lines_add(l, rank, f));
    return f;
}

/* The end of epoch EP, the event of number SEQ, T seconds after 1970. */
static void
put_epoch(struct tui_lines *l, int64_t seq, double t, int64_t ep)
{
    const struct et_record r = {
        .kind = ET_RECORD_EPOCH, .seq = seq, .t = t, .ep = ep, .ba = 10 * ep};
    tui_lines_epoch(l, &r);
}

/* All lines that can be had until T, their texts with a bar behind each. */
static const char *
lines(struct tui_lines *l, double t)
{
    static char text[1024];
    struct tui_log_line line;
    size_t n = 0;
    text[0] = '\0';
    while (tui_lines_next(l, t, &line) && n < sizeof text)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s|", line.text);
    return text;
}

static void
test_events(struct et_ctx *cx)
{
    struct tui_lines l = {.cx = cx};
    put_epoch(&l, 7, 3, 3);
    put_epoch(&l, 5, 1, 1);
    put_epoch(&l, 6, 2, 2);
    put_epoch(&l, 5, 1, 1);
    put_epoch(&l, 7, 3, 3);
    is_str(
        lines(&l, INFINITY), "ep 1  10ba|ep 2  20ba|ep 3  30ba|",
        "events come in the order of their numbers, those that were given twice once");
    put_epoch(&l, 6, 2, 2);
    put_epoch(&l, 7, 3, 3);
    put_epoch(&l, 8, 4, 4);
    const struct et_record others[] = {
        {.kind = ET_RECORD_EPOCH, .seq = 9, .t = 5, .ep = 4, .rank = 1},
        {.kind = ET_RECORD_BATCH, .seq = 10, .t = 5, .ep = 4},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        tui_lines_epoch(&l, &others[i]);
    is_str(
        lines(&l, INFINITY), "ep 4  40ba|",
        "what stands before a line that was taken is not given any more, nor the end "
        "of an epoch in another rank");
    tui_lines_release(&l);
}

/* A line that a rank printed has the time of the one before it in its file. */
static void
test_times(struct et_ctx *cx)
{
    setenv("TZ", "XYZ-5", 1); /* a log's times are of no zone */
    struct tui_lines l = {.cx = cx};
    const double times[] = {NAN, 7, 7, 8, 9, 10, 10, 12, 12};
    struct tui_log_line line = {0};
    int wrong = 0;
    add_file(cx, &l, 3,
             "before any time\n"
             "1970-01-01T00:00:07Z info seven\n"
             "printed\n"
             "1970-01-01T00:00:08Z eight without a level\n"
             "1970-01-01T00:00:09Z debug nine\n"
             "1970-01-01T00:00:10Z error ten\n"
             "1970-01-01T00:00:11 error no zone\n"
             "1970-01-01T00:00:12Z errors twelve\n"
             "printed\n");
    const char *const texts[] = {"before any time",
                                 "seven",
                                 "printed",
                                 "1970-01-01T00:00:08Z eight without a level",
                                 "nine",
                                 "ten",
                                 "1970-01-01T00:00:11 error no zone",
                                 "1970-01-01T00:00:12Z errors twelve",
                                 "printed"};
    const int levels[] = {-1,           ET_LOG_INFO, -1, -1, ET_LOG_DEBUG,
                          ET_LOG_ERROR, -1,          -1, -1};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const bool got = tui_lines_next(&l, INFINITY, &line);
        wrong += !got || strcmp(line.text, texts[i]) != 0 || line.level != levels[i] ||
                 line.rank != 3 ||
                 !(line.t == times[i] || (isnan(line.t) && isnan(times[i])));
    }
    is_int(wrong, 0,
           "lines have their time, or that of the line before; and their level");
    ok(!tui_lines_next(&l, INFINITY, &line), "and that is all of them");
    tui_lines_release(&l);
}

/* What a run's model has already: all of it, with and without what ranks logged. */
static void
test_model(struct et_ctx *cx)
{
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    static const char *const texts[] = {"one", "two", "three", "four"};
    for (int i = 0; i < 4; i++)
        need(cx,
             etd_model_apply(m, &(struct et_record){.kind = i % 2 ? ET_RECORD_ANNOTATION
                                                                  : ET_RECORD_LOG,
                                                    .level = ET_LOG_WARN,
                                                    .seq = i + 1,
                                                    .t = 5 + i,
                                                    .text = texts[i]}));
    for (int logs = 0; logs < 2; logs++) {
        struct tui_lines l = {.cx = cx};
        tui_lines_model(&l, m, logs);
        is_str(lines(&l, INFINITY), logs ? "one|two|three|four|" : "two|four|",
               "all events of a model become lines%s",
               logs ? ", and what was logged" : "");
        tui_lines_release(&l);
    }
    etd_model_free(&m);
}

/* Each kind of record has its word, in place of a level; what another file tells of is
 * no line. */
static void
test_words(struct et_ctx *cx)
{
    static const struct {
        enum et_record_kind kind;
        const char *text;
        const char *alone, *with_logs; /* "-": it is no line */
    } rows[] = {
        {ET_RECORD_RUN, "queued", "state", "state"},
        {ET_RECORD_RUN, "starting", "state", "state"},
        {ET_RECORD_RUN, "running", "-", "-"},
        {ET_RECORD_RUN, "evaluating", "-", "-"},
        {ET_RECORD_RUN, "checkpointing", "-", "-"},
        {ET_RECORD_RUN, "paused", "state", "state"},
        {ET_RECORD_RUN, "stopping", "state", "state"},
        {ET_RECORD_RUN, "finished", "-", "state"},
        {ET_RECORD_EVAL, "of 0.5", "eval", "eval"},
        {ET_RECORD_CHECKPOINT, "begun ep1-ba2", "-", "-"},
        {ET_RECORD_CHECKPOINT, "saved ep1-ba2", "-", "-"},
        {ET_RECORD_CHECKPOINT, "failed ep1-ba2", "ckpt", "-"},
        {ET_RECORD_COMMAND, "pause", "cmd", "cmd"},
        {ET_RECORD_RESUME, "from 0.5", "resume", "resume"},
        {ET_RECORD_ANNOTATION, "0.5 is mine", "note", "note"},
        {ET_RECORD_LOG, "said 0.5", "-", ""},
    };
    enum { N = sizeof rows / sizeof *rows };
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    struct tui_lines l[2] = {{.cx = cx}, {.cx = cx}};
    for (int i = 0; i < N; i++) {
        const struct et_record r = {.kind = rows[i].kind,
                                    .level = ET_LOG_WARN,
                                    .seq = i + 1,
                                    .t = 5 + i,
                                    .rank = rows[i].kind == ET_RECORD_RUN ? 0 : 3,
                                    .text = rows[i].text};
        need(cx, etd_model_apply(m, &r));
        for (int logs = 0; logs < 2; logs++) {
            struct tui_log_line line = {0};
            const char *want = logs ? rows[i].with_logs : rows[i].alone;
            tui_lines_record(&l[logs], m, &r, logs);
            tui_lines_record(
                &l[logs], m,
                &(struct et_record){.kind = ET_RECORD_BATCH, .seq = i + 100}, logs);
            const bool got = tui_lines_next(&l[logs], INFINITY, &line);
            is_str(got ? line.word ? line.word : "" : "-", want, "%s%s", rows[i].text,
                   logs ? ", with logs" : "");
            if (!got)
                continue;
            is_str(line.text,
                   rows[i].kind == ET_RECORD_EVAL ? "of .5  ep 0" : rows[i].text,
                   "with its text");
            ok(line.rank == r.rank && line.t == 5 + i &&
                   line.level == (r.kind == ET_RECORD_LOG ? ET_LOG_WARN : ET_LOG_INFO),
               "its rank, its level and its time");
            ok(!tui_lines_next(&l[logs], INFINITY, &line), "once");
        }
    }
    tui_lines_release(&l[0]);
    tui_lines_release(&l[1]);
    etd_model_free(&m);
}

/* One more than there is room for. */
static void
test_many(struct et_ctx *cx)
{
    struct tui_lines l = {.cx = cx};
    struct tui_log_line line = {0};
    int n = 0, wrong = 0;
    for (int64_t i = 1; i <= ROOM + 1; i++)
        put_epoch(&l, 10 + i, (double)i, i);
    put_epoch(&l, 5, 0, 99);
    while (tui_lines_next(&l, INFINITY, &line))
        wrong += line.t != (double)(++n + 1);
    ok(n == ROOM && wrong == 0,
       "of more events than there is room for the newest stay");
    tui_lines_release(&l);
}

static void
test_files(struct et_ctx *cx)
{
    struct tui_lines l = {.cx = cx};
    FILE *f = add_file(cx, &l, 0,
                       "1970-01-01T00:00:01Z info one\n"
                       "behind it\n"
                       "1970-01-01T00:00:04Z warn four\n"
                       "1970-01-01T00:00:09Z info ni");
    add_file(cx, &l, 1,
             "1970-01-01T00:00:01Z info also one\n"
             "1970-01-01T00:00:03Z error three\n");
    put_epoch(&l, 1, 4.5, 4);
    put_epoch(&l, 2, 5, 5);
    is_str(lines(&l, 3), "one|behind it|also one|three|ep 4  40ba|",
           "lines of ranks come in order of time, one without a time behind its own");
    is_str(lines(&l, INFINITY), "four|ep 5  50ba|",
           "an event comes before the lines of its second, half a line not at all");
    long at = ftell(f);
    fseek(f, 0, SEEK_END);
    fputs("ne\n", f);
    fflush(f);
    fseek(f, at, SEEK_SET);
    struct tui_log_line line = {0};
    ok(tui_lines_next(&l, INFINITY, &line) && strcmp(line.text, "nine") == 0 &&
           line.t == 9 && line.level == ET_LOG_INFO && line.rank == 0,
       "and whole once the rest is there");
    ok(tui_lines_has(&l, 1) && !tui_lines_has(&l, 2),
       "it is known whose logs there are");
    static const char ten[] = "1970-01-01T00:00:10Z info ten\n";
    FILE *third = add_file(cx, &l, 7, ten);
    ok(tui_lines_has(&l, 0) && tui_lines_has(&l, 1) && tui_lines_has(&l, 7) &&
           !tui_lines_has(&l, 2) && !tui_lines_has(&l, 3),
       "also of one more");
    is_str(lines(&l, INFINITY), "ten|", "whose lines come");
    static const char more[] = "1970-01-01T00:00:11Z info eleven\n";
    /* (Nothing is done with THIRD itself: it stays at its end.) */
    if (pwrite(fileno(third), more, sizeof more - 1, sizeof ten - 1) < 0)
        bail("a log cannot be written");
    is_str(lines(&l, INFINITY), "eleven|", "and those that are written later");
    tui_lines_release(&l);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    test_events(cx);
    test_model(cx);
    test_words(cx);
    test_many(cx);
    test_files(cx);
    test_times(cx);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
