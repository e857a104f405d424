/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about history: which points, of how many that are asked for, how many
 * questions wait, and that conversations take turns at reading. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "dist/hub/hist.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { BATCHES = 5000, POINTS = 2048, ROOM = 1 << 17, PATIENCE_MS = 30000 };

static struct et_ctx *cx;
static int readers;

/* The value of a batch is its number, and its time is three seconds for each. */
static void
write_log(void)
{
    static const unsigned char id[ETI_EVENTS_ID] = "history";
    struct eti_events_writer w;
    need(cx, eti_events_begin(cx, ".", id, &w));
    for (int64_t ba = 1; ba <= BATCHES; ba++) {
        const struct et_log_entry entry = {"loss", (double)ba};
        const struct et_record r = {.kind = ET_RECORD_BATCH,
                                    .t = 1e9 + 3.0 * (double)ba,
                                    .ba = ba,
                                    .entry = &entry,
                                    .n = 1};
        eti_events_write(&w, &r);
    }
    eti_events_end(&w);
}

/* Asks H; what is NULL or below 0 is left out. */
static void
ask(struct etd_hist *h, int64_t id, const char *series, int64_t from, int64_t to,
    const int64_t *most)
{
    char bytes[1024];
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    const struct etd_head head = {.kind = ETD_HIST};
    etd_begin(&o, bytes, sizeof bytes, &head, 2 + (from >= 0) + (to >= 0) + !!most);
    etd_put_int(&o, "id", id);
    etd_put_text(&o, "series", series);
    if (from >= 0)
        etd_put_int(&o, "from", from);
    if (to >= 0)
        etd_put_int(&o, "to", to);
    if (most)
        etd_put_int(&o, "most", *most);
    if (etd_read(bytes, etd_end(&o), &f, &fault) != ET_OK)
        bail("a question is no frame: %s", fault.why);
    etd_hist_ask(h, &f);
}

/* H's next answer: its points' batches into BA, and its id. How many; -1: they are not
 * of the log. */
static int
answer(struct etd_hist *h, int64_t *ba, int64_t *id)
{
    static char bytes[ROOM];
    static double v[POINTS + 1], t[POINTS + 1];
    struct etd_frame f;
    struct etd_fault fault;
    const struct etd_head head = {.kind = ETD_HIST};
    size_t n = 0;
    for (int ms = 0; (n = etd_hist_answer(h, &head, bytes, sizeof bytes)) == 0; ms++)
        if (usleep(1000), ms == PATIENCE_MS)
            bail("no answer comes");
    etd_hist_sent(h);
    if (etd_read(bytes, n, &f, &fault) != ET_OK)
        bail("an answer is no frame: %s", fault.why);
    *id = etd_get_int(&f.body, "id", -1);
    const int points = etd_get_ints(&f.body, "ba", ba, POINTS + 1);
    if (etd_get_doubles(&f.body, "v", v, POINTS + 1) != points ||
        etd_get_doubles(&f.body, "t", t, POINTS + 1) != points)
        return -1;
    for (int i = 0; i < points; i++)
        if (v[i] != (double)ba[i] || t[i] != 1e9 + 3 * v[i] ||
            (i > 0 && ba[i] <= ba[i - 1]))
            return -1;
    return points;
}

static void
test_most(void)
{
    static const int64_t most[] = {INT64_MIN, -1,   0,    1,    2,         3,
                                   2047,      2048, 2049, 5000, INT64_MAX, 0};
    enum { N = sizeof most / sizeof *most };
    static int64_t ba[POINTS + 1];
    struct etd_hist *h;
    need(cx, etd_hist_new(cx, ".", &readers, &h));
    for (int i = 0; i < N; i++) {
        int64_t id, limit = i == N - 1 ? 512 : most[i];
        limit = limit < 2 ? 2 : limit > POINTS ? POINTS : limit;
        ask(h, i, "loss", -1, -1, i == N - 1 ? NULL : &most[i]);
        const int n = answer(h, ba, &id);
        ok(n >= 2 && n <= limit && n >= limit / 4 && id == i,
           "who asks for %lld points is told of %d at most (%d)", (long long)most[i],
           (int)limit, n);
        ok(n < 1 ||
               (ba[0] <= 1 + 2 * BATCHES / n && ba[n - 1] >= BATCHES - 2 * BATCHES / n),
           "from the beginning to the end");
    }
    etd_hist_free(&h);
}

static void
test_range(void)
{
    static const struct {
        const char *series;
        int64_t from, to;
        int n;
    } row[] = {
        {"loss", 11, 20, 10}, {"loss", 4999, -1, 2}, {"loss", -1, 3, 3},
        {"loss", 20, 11, 0},  {"loss", 6000, -1, 0}, {"los", 11, 20, 0},
        {"loss ", 11, 20, 0}, {"", 11, 20, 0},
    };
    static int64_t ba[POINTS + 1];
    const int64_t most = 100;
    struct etd_hist *h;
    need(cx, etd_hist_new(cx, ".", &readers, &h));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int64_t id;
        ask(h, 7, row[i].series, row[i].from, row[i].to, &most);
        const int n = answer(h, ba, &id);
        ok(n == row[i].n && (n <= 0 || row[i].from < 0 || ba[0] == row[i].from) &&
               (n <= 0 || row[i].to < 0 || ba[n - 1] == row[i].to),
           "'%s' from %lld to %lld has %d points", row[i].series,
           (long long)row[i].from, (long long)row[i].to, row[i].n);
    }
    etd_hist_free(&h);
}

/* Where the log cannot be read an answer has no points: not those of the one before. */
static void
test_gone(void)
{
    static int64_t ba[POINTS + 1];
    const int64_t most = 100;
    int64_t id;
    struct etd_hist *h;
    need(cx, etd_hist_new(cx, ".", &readers, &h));
    for (int i = 0; i < 3; i++) {
        if (i > 0 &&
            rename(i == 1 ? "events.log" : "away", i == 1 ? "away" : "events.log"))
            bail("the log cannot be moved");
        ask(h, i, "loss", 11, 20, &most);
        is_int(answer(h, ba, &id), i == 1 ? 0 : 10, "%s",
               i == 0   ? "there are ten points"
               : i == 1 ? "without the log there are none"
                        : "and when it is back there are ten again");
    }
    etd_hist_free(&h);
}

/* Twenty questions wait; one more is left out, and the next is asked when one of them
 * is answered. */
static void
test_waiting(void)
{
    static int64_t ba[POINTS + 1];
    const int64_t most = 2;
    struct etd_hist *h;
    int64_t id;
    int in_order = 0;
    need(cx, etd_hist_new(cx, ".", &readers, &h));
    ok(!etd_hist_is_asked(h) && !etd_hist_is_asked(NULL), "nothing is asked");
    for (int i = 0; i < 22; i++)
        ask(h, i, "loss", -1, 10, &most);
    for (int i = 0; i < 5; i++)
        in_order += answer(h, ba, &id) == 2 && id == i;
    ask(h, 100, "loss", -1, 10, &most);
    for (int i = 5; i < 20; i++)
        in_order += answer(h, ba, &id) == 2 && id == i;
    is_int(in_order, 20, "twenty questions are answered, in their order");
    ok(etd_hist_is_asked(h) && answer(h, ba, &id) == 2 && id == 100,
       "those beyond them are not, and one that comes later is");
    ok(!etd_hist_is_asked(h), "then nothing is asked any more");
    etd_hist_free(&h);
}

/* One conversation reads at a time. */
static void
test_turns(void)
{
    static char bytes[ROOM];
    static int64_t ba[POINTS + 1];
    const struct etd_head head = {.kind = ETD_HIST};
    const int64_t most = 2;
    struct etd_hist *h;
    int64_t id;
    readers = 1;
    need(cx, etd_hist_new(cx, ".", &readers, &h));
    ask(h, 1, "loss", -1, -1, &most);
    int answers = 0;
    for (int i = 0; i < 20; i++, usleep(1000))
        answers += etd_hist_answer(h, &head, bytes, sizeof bytes) > 0;
    is_int(answers, 0, "while another conversation reads, this one waits");
    readers = 0;
    ok(answer(h, ba, &id) == 2 && id == 1, "and reads when that has ended");
    is_int(readers, 0, "then nobody does");
    ask(h, 2, "loss", -1, -1, &most);
    (void)etd_hist_answer(h, &head, bytes, sizeof bytes);
    etd_hist_free(&h);
    is_int(readers, 0, "nor after one that goes while it reads");
}

int
main(void)
{
    cx = need_ctx();
    if (chdir(scratch_folder()) != 0)
        bail("no folder");
    write_log();
    test_most();
    test_range();
    test_gone();
    test_waiting();
    test_turns();
    et_ctx_free(&cx);
    return done();
}
