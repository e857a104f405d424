/* SPDX-License-Identifier: Apache-2.0 */
/* A run that has ended, as a worker tells it: to viewers of this version and of earlier
 * ones, whole, in pieces, and no more of the machine than that. */
#include "config.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/seams.h"
#include "dist/hub/follow.h"
#include "dist/wire/piece.h"
#include "dist/worker/replay.h"
#include "t/dist/heard.h"
#include "t/dist/house.h"
#include "t/tap.h"

enum { RECORDS = 900 };
static struct house h;

/* ---- a viewer ---- */

static void
ping(struct etd_session *s, int64_t credit, bool digest)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_PING};
    etd_begin(&o, bytes, sizeof bytes, &head, 2);
    etd_put_int(&o, "credit", credit);
    etd_put_bool(&o, "digest", digest);
    heard_tell(s, bytes, etd_end(&o));
}

static void
ask_file(struct etd_session *s, const char *word, int64_t rank, int64_t at)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_FILE};
    etd_begin(&o, bytes, sizeof bytes, &head, 3);
    etd_put_text(&o, "file", word);
    etd_put_int(&o, "rank", rank);
    etd_put_int(&o, "at", at);
    heard_tell(s, bytes, etd_end(&o));
}

/* Record FROM, and all after it, were missed. */
static void
ask_again(struct etd_session *s, int64_t from)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_NACK};
    etd_begin(&o, bytes, sizeof bytes, &head, 1);
    etd_put_int(&o, "from", from);
    heard_tell(s, bytes, etd_end(&o));
}

/* The model that the snapshot among what was said makes: its digest is the announced
 * one. */
static bool
is_whole(int64_t records)
{
    unsigned char want[ETD_DIGEST], got[ETD_DIGEST];
    struct etd_frame begin = heard_last(ETD_SNAP_BEGIN);
    struct etd_model *m;
    int64_t bytes = etd_get_int(&begin.body, "bytes", 0);
    int64_t facts = etd_get_int(&begin.body, "facts", 0);
    char *all = malloc((size_t)(bytes + facts));
    int64_t n = 0;
    if (!etd_get_id(&begin.body, "digest", want, sizeof want))
        return false;
    for (int i = 0; i < heard_n; i++) {
        struct etd_frame f = heard_frame(i);
        struct etd_value data;
        if (f.head.kind != ETD_SNAP_CHUNK)
            continue;
        if (etd_get_int(&f.body, "at", -1) != n || !etd_find(&f.body, "data", &data))
            bail("a chunk is not the next one");
        memcpy(all + n, data.bytes, data.n);
        n += (int64_t)data.n;
    }
    bool same = n == bytes + facts && etd_model_new(h.cx, &m) == ET_OK;
    if (same) {
        same = etd_model_load(m, all + facts, (size_t)bytes) == ET_OK &&
               etd_model_digest(m, got) == ET_OK &&
               memcmp(want, got, sizeof got) == 0 && m->seq == records;
        etd_model_free(&m);
    }
    free(all);
    return same;
}

/* ---- what is promised ---- */

static void
test_whole(void)
{
    char text[64];
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, -1, 256);
    ok(heard_drive(s), "a run that has ended is told, and the conversation stays");
    struct etd_frame f = heard_frame(0);
    is_int((int)f.head.kind, ETD_WELCOME, "first comes WELCOME");
    is_str(etd_get_text(&f.body, "name", text, sizeof text), h.name, "with its name,");
    ok(etd_get_bool(&f.body, "ended", false), "that it has ended,");
    ok(etd_get_bool(&f.body, "files", false), "that there are files,");
    is_str(etd_get_text(&f.body, "role", text, sizeof text), "viewer",
           "and what the key may do");
    ok(is_whole(h.log.seq), "then a snapshot of all of its records");
    is_int(heard_count(ETD_BYE), 0, "nobody says BYE");
    ping(s, 10, true);
    unsigned char digest[ETD_DIGEST];
    f = heard_last(ETD_PONG);
    ok(etd_get_id(&f.body, "digest", digest, sizeof digest), "a PING gets the digest");
    etd_session_free(&s);
    heard_forget();
}

/* All that WELCOME says, to viewers and operators who have different parts of it. */
static void
test_welcome(void)
{
    static const struct {
        bool is_operator, goes_on;
        int64_t after, head;
    } row[] = {
        {false, false, -1, 0},
        {true, false, -1, 0},
        {false, true, 0, 0},
        {true, true, 7, 7},
    };
    char path[256], text[64], want[512], got[512];
    unsigned char id[ETD_RUN_ID];
    snprintf(path, sizeof path, "%s/run.json", h.directory);
    json_t *facts = json_load_file(path, 0, NULL);
    if (!etd_run_id(json_string_value(json_object_get(facts, "id")), id))
        bail("the run has no id");
    json_decref(facts);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_session *s = heard_open(row[i].is_operator);
        heard_hello(s, 1, h.name, row[i].after, 1);
        struct etd_frame f = heard_frame(0);
        const struct etd_map *m = &f.body;
        int n = snprintf(got, sizeof got, "name %s", etd_get_text(m, "name", text, 64));
        n += snprintf(got + n, sizeof got - (size_t)n, ", role %s",
                      etd_get_text(m, "role", text, 64));
        snprintf(got + n, sizeof got - (size_t)n,
                 ", minor %d, beat_ms %d, head %d, goes_on %d, clients %d, ended %d, "
                 "files %d",
                 (int)etd_get_int(m, "minor", -1), (int)etd_get_int(m, "beat_ms", -1),
                 (int)etd_get_int(m, "head", -1), etd_get_bool(m, "goes_on", false),
                 (int)etd_get_int(m, "clients", -1), etd_get_bool(m, "ended", false),
                 etd_get_bool(m, "files", false));
        snprintf(want, sizeof want,
                 "name %s, role %s, minor %d, beat_ms 1000, head %d, goes_on %d, "
                 "clients 64, ended 1, files 1",
                 h.name, row[i].is_operator ? "operator" : "viewer", ETD_MINOR,
                 (int)row[i].head, row[i].goes_on);
        is_str(got, want, "WELCOME, to who has all records up to %d",
               (int)row[i].after);
        ok(memcmp(f.head.run, id, sizeof id) == 0, "and says of which run it is");
        (void)heard_drive(s);
        if (row[i].after < 0) {
            f = heard_last(ETD_SNAP_BEGIN);
            ok(etd_get_int(&f.body, "s", -1) == h.log.seq && f.head.incarnation == 1,
               "the snapshot says of which start it is, and behind which record");
        }
        ping(s, 0, true);
        f = heard_last(ETD_PONG);
        ok(etd_get_int(&f.body, "at", -1) == (row[i].after < 0 ? h.log.seq : -1),
           "a digest is one of the snapshot's record, or none");
        ping(s, 0, false);
        f = heard_last(ETD_PONG);
        ok(f.body.n == 0, "and who does not ask for it is told none");
        etd_session_free(&s);
        heard_forget();
    }
}

static int
count_records(void)
{
    int n = 0;
    for (int i = 0; i < heard_n; i++)
        n += (int)heard_frame(i).head.kind < ET_RECORD_COUNT;
    return n;
}

/* Records cost a viewer's credit, as pieces of a snapshot do. */
static void
test_credit_of_records(void)
{
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, 0, 5);
    (void)heard_drive(s);
    is_int(count_records(), 5, "a viewer with room for five records is sent five");
    ping(s, 3, false);
    (void)heard_drive(s);
    is_int(count_records(), 8, "with room for three more, three more");
    ping(s, -2, false);
    ping(s, 2, false);
    (void)heard_drive(s);
    is_int(count_records(), 10, "nobody can give less than none,");
    ping(s, 2, false);
    ping(s, 3, false);
    (void)heard_drive(s);
    is_int(count_records(), 15, "and what is given twice adds up");
    etd_session_free(&s);
    heard_forget();
    s = heard_open(false);
    heard_hello(s, 1, h.name, 0, 0);
    (void)heard_drive(s);
    is_int(count_records(), ETD_CREDIT, "who says nothing of room is sent %d records",
           ETD_CREDIT);
    etd_session_free(&s);
    heard_forget();
}

static void
test_credit(void)
{
    struct etd_session *s = heard_open(true);
    heard_hello(s, 1, h.name, -1, 1);
    ok(heard_drive(s), "a viewer with room for one message");
    is_int(heard_count(ETD_SNAP_CHUNK), 1, "is sent one piece of the snapshot");
    int before = heard_n;
    heard_full = true;
    ping(s, 1000, false);
    ok(heard_drive(s) && heard_n == before,
       "one whose connection is full is sent nothing");
    heard_full = false;
    while (etd_session_is_busy(s) || heard_count(ETD_SNAP_END) == 0)
        if (!etd_session_step(s))
            break;
    ok(is_whole(h.log.seq), "and gets the rest, once there is room");
    etd_session_free(&s);
    heard_forget();
}

/* Numbers as large as they can be. */
static void
test_large(void)
{
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, 0, INT64_MAX);
    ping(s, INT64_MAX, false);
    ping(s, 1, false);
    ok(heard_drive(s), "a viewer that gives all the credit there is, and more");
    ok(heard_count((enum etd_kind)ET_RECORD_BATCH) > 0, "is sent records");
    etd_session_free(&s);
    heard_forget();
    s = heard_open(false);
    heard_hello(s, 1, h.name, INT64_MAX, 256);
    ok(heard_drive(s) && heard_count((enum etd_kind)ET_RECORD_BATCH) == 0 &&
           heard_count(ETD_FACTS) == 1,
       "one that has more records than there are is told the facts alone");
    etd_session_free(&s);
    heard_forget();
}

static void
test_earlier(void)
{
    char code[32];
    struct etd_session *s = heard_open(false);
    heard_hello(s, 0, h.name, -1, 256);
    ok(!heard_drive(s), "with a viewer of minor version 0 the conversation ends");
    ok(is_whole(h.log.seq), "after the same snapshot,");
    struct etd_frame f = heard_last(ETD_BYE);
    is_str(etd_get_text(&f.body, "code", code, sizeof code), "END",
           "as that of a run whose hub ends");
    etd_session_free(&s);
    heard_forget();
}

/* Applies to M, which has all up to some record, those that were said. False: they are
 * not the next, in order, each whole. */
static bool
go_on(struct etd_model *m)
{
    struct etd_join join;
    struct et_record r;
    bool right = true, whole = true;
    etd_join_init(&join, h.cx);
    for (int i = 0; i < heard_n && right; i++) {
        struct etd_frame f = heard_frame(i);
        if ((int)f.head.kind >= ET_RECORD_COUNT)
            continue;
        right = f.head.hseq == m->seq + 1 &&
                etd_join_add(&join, &f, &r, &whole) == ET_OK &&
                (!whole || etd_model_apply(m, &r) == ET_OK);
    }
    etd_join_release(&join);
    return right && whole;
}

/* Are the records that were said those after AFTER, in order, to the last? Who had all
 * before them knows then what the log says. */
static bool
are_those_after(int64_t after)
{
    unsigned char want[ETD_DIGEST], got[ETD_DIGEST];
    struct etd_follow *log;
    struct etd_model *m;
    char *bytes;
    size_t n;
    int64_t left;
    if (etd_follow_open(h.cx, h.directory, &log) != ET_OK ||
        etd_model_new(h.cx, &m) != ET_OK ||
        (after > 0 && etd_follow_read(log, 60, after, &left) != ET_OK) ||
        etd_model_save(etd_follow_model(log), &bytes, &n) != ET_OK ||
        etd_model_load(m, bytes, n) != ET_OK ||
        etd_follow_read(log, 60, 0, &left) != ET_OK ||
        etd_model_digest(etd_follow_model(log), want) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    bool same = m->seq == after && go_on(m) && m->seq == h.log.seq &&
                etd_model_digest(m, got) == ET_OK && memcmp(want, got, sizeof got) == 0;
    et_free(h.cx, bytes);
    etd_model_free(&m);
    etd_follow_close(&log);
    return same;
}

static void
test_after(void)
{
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, h.log.seq - 40, 4096);
    ok(heard_drive(s), "a viewer that has seen most of it");
    is_int(heard_count(ETD_SNAP_BEGIN), 0, "gets no snapshot");
    ok(are_those_after(h.log.seq - 40), "but the records that it lacks, in order");
    is_int(heard_count(ETD_FACTS), 1, "and how the run ended");
    etd_session_free(&s);
    heard_forget();
}

/* A viewer with all the records up to AFTER (-1: with none) has missed one. */
static void
test_missed_by(int64_t after, const char *who)
{
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, after, 4096);
    ok(heard_drive(s), "%s", who);
    heard_forget();
    ask_again(s, h.log.seq - 20);
    ok(heard_drive(s) && are_those_after(h.log.seq - 21),
       "that asks for a record that it missed is sent that one, and all after it");
    heard_forget();
    ask_again(s, h.log.seq);
    ok(heard_drive(s) && are_those_after(h.log.seq - 1),
       "the last, where it is the last");
    heard_forget();
    ask_again(s, 1);
    ok(heard_drive(s) && are_those_after(0), "and all, where it is the first");
    heard_forget();
    ask_again(s, 0);
    ok(heard_drive(s) && heard_n == 0,
       "there is no record 0, and nothing is sent for it");
    etd_session_free(&s);
}

static void
test_missed(void)
{
    int64_t begun = h.log.seq - 40;
    struct etd_session *s = heard_open(false);
    test_missed_by(begun, "a viewer that was sent the last records");
    test_missed_by(-1, "one that was sent a snapshot");
    heard_hello(s, 1, h.name, begun, 2);
    (void)heard_drive(s);
    heard_forget();
    ask_again(s, begun + 1);
    ping(s, 4096, false);
    ok(heard_drive(s) && are_those_after(begun),
       "one that is in the middle of them begins again where it says");
    etd_session_free(&s);
    heard_forget();
}

static void
test_files(void)
{
    struct etd_piece p;
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, -1, 256);
    (void)heard_drive(s);
    ask_file(s, "log", 0, 0);
    struct etd_frame f = heard_last(ETD_FILE);
    ok(etd_piece_read(&f, &p) && p.n == 6 && memcmp(p.bytes, "a\nbc\nd", 6) == 0,
       "the log of a rank is sent");
    ask_file(s, "log", 0, 6);
    f = heard_last(ETD_FILE);
    ok(etd_piece_read(&f, &p) && p.n == 0 && p.size == 6, "and nothing behind its end");
    ask_file(s, "log", 7, 0);
    f = heard_last(ETD_FILE);
    ok(etd_piece_read(&f, &p) && p.is_missing, "a rank that there is not has no log");
    ask_file(s, "log", 1, 0);
    f = heard_last(ETD_FILE);
    ok(etd_piece_read(&f, &p) && p.is_missing && p.n == 0, "a link is not followed");
    ask_file(s, "log", 2, 0);
    f = heard_last(ETD_FILE);
    ok(etd_piece_read(&f, &p) && p.is_missing, "a FIFO is not waited for");
    static const char *const others[] = {"../../secret", "lock", "", "logs/rank0.txt"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ask_file(s, others[i], 0, 0);
        f = heard_last(ETD_FILE);
        ok(etd_get_bool(&f.body, "missing", false), "'%s' is no word of the list",
           others[i]);
    }
    ask_file(s, "run", 0, 0);
    f = heard_last(ETD_FILE);
    ok(etd_piece_read(&f, &p) && p.n > 0 && p.bytes[0] == '{', "run.json is");
    ask_file(s, "events", 0, 1LL << 60);
    f = heard_last(ETD_FILE);
    ok(etd_piece_read(&f, &p) && p.n == 0,
       "nor is there anything past an end far away");
    heard_forget();
    heard_full = true;
    ask_file(s, "log", 0, 2);
    ask_file(s, "log", 0, 6);
    heard_full = false;
    ok(heard_drive(s) && heard_count(ETD_FILE) == 2,
       "pieces that the connection did not take come when there is room");
    f = heard_frame(0);
    ok(etd_piece_read(&f, &p) && p.at == 2 && p.n == 4, "in their order");
    heard_full = true;
    for (int i = 0; i < 100; i++)
        ask_file(s, "events", 0, 0);
    ok(!heard_drive(s), "one that asks on and takes nothing is left");
    heard_full = false;
    etd_session_free(&s);
    heard_forget();
}

/* The pieces of the log of rank 0 that were said since message I are those from byte
 * AT on, one after the other. */
static bool
are_in_order(int i, int64_t at)
{
    struct etd_piece p;
    bool in_order = true;
    for (; i < heard_n; i++, at++) {
        struct etd_frame f = heard_frame(i);
        in_order = in_order && etd_piece_read(&f, &p) && p.at == at;
    }
    return in_order;
}

/* ---- answers that wait for a connection that is full ---- */

enum { WAITING = 32, WAITING_BYTES = 1 << 20 }; /* as many as may, and no more bytes */

static struct etd_session *
open_slow(void)
{
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, -1, 256);
    (void)heard_drive(s);
    heard_forget();
    heard_full = true;
    return s;
}

static void
close_slow(struct etd_session *s)
{
    heard_full = false;
    etd_session_free(&s);
    heard_forget();
}

static void
test_most_waiting(void)
{
    char code[32];
    struct etd_session *s = open_slow();
    for (int at = 0; at < WAITING; at++)
        ask_file(s, "log", 0, at);
    heard_full = false;
    heard_room = 10;
    ok(heard_drive(s) && heard_n == 10 && are_in_order(0, 0),
       "of 32 answers that wait for a viewer it takes ten, the first ones");
    ask_file(s, "log", 0, WAITING);
    heard_room = WAITING + 1;
    ok(heard_drive(s) && heard_n == WAITING + 1 && are_in_order(0, 0),
       "and the others when it has room again, and then the next");
    heard_forget();
    heard_room = HEARD_MOST;
    heard_full = true;
    for (int at = 0; at < WAITING; at++)
        ask_file(s, "log", 0, at);
    heard_full = false;
    ask_file(s, "log", 0, WAITING);
    struct etd_frame f = heard_frame(0);
    is_str(etd_get_text(&f.body, "code", code, sizeof code), "LAGGED",
           "where 32 wait one more is too much, and the viewer is left");
    ok(!heard_drive(s) && heard_n == 1, "with nothing of what waited");
    close_slow(s);
}

/* What was taken does not wait any more, and does not count. */
static void
test_slow(void)
{
    int64_t bytes = 0;
    struct etd_session *s = open_slow();
    for (int i = 0; i < 100; i++, heard_forget()) {
        heard_full = true;
        for (int k = 0; k < 10; k++)
            ask_file(s, "events", 0, 0);
        heard_full = false;
        if (!heard_drive(s) || heard_count(ETD_FILE) != 10)
            break;
        for (int k = 0; k < heard_n; k++)
            bytes += (int64_t)heard[k].n;
    }
    ok(bytes > 4 * WAITING_BYTES,
       "a viewer that is slow now and then goes on: %lld bytes have waited for it",
       (long long)bytes);
    ask_file(s, "events", 0, 0);
    int64_t each = (int64_t)heard[0].n, n = 0;
    heard_full = true;
    do
        ask_file(s, "events", 0, 0);
    while (etd_session_step(s) && ++n < WAITING);
    ok(n * each <= WAITING_BYTES && (n + 1) * each > WAITING_BYTES,
       "one for which more than a MiB would wait is left: %lld pieces do",
       (long long)n);
    close_slow(s);
}

/* Whole runs in memory are few, however many viewers there are. */
static void
test_models(void)
{
    enum { ROOM = ETD_REPLAY_MODELS };
    char text[ETD_TEXT_ROOM];
    struct eti_seams seams = eti_system;
    struct etd_session *s[ROOM], *more;
    struct etd_frame f;
    for (int i = 0; i < ROOM; i++) {
        if (i == ETD_REPLAY_OF_VIEWERS) {
            more = heard_open(false);
            heard_hello(more, 1, h.name, -1, 256);
            f = heard_last(ETD_REFUSE);
            is_str(etd_get_text(&f.body, "code", text, sizeof text), "FULL",
                   "viewers leave room for two operators");
            etd_session_free(&more);
        }
        s[i] = heard_open(i >= ETD_REPLAY_OF_VIEWERS);
        heard_hello(s[i], 1, h.name, -1, 1); /* it takes one piece, and waits */
        if (!heard_drive(s[i]))
            bail("viewer %d was not served", i);
    }
    is_int(heard_host.models, ROOM, "all of them take a run slowly");
    heard_forget();
    more = heard_open(true);
    heard_hello(more, 1, h.name, -1, 256);
    f = heard_last(ETD_REFUSE);
    is_str(etd_get_text(&f.body, "code", text, sizeof text), "FULL",
           "leave no room for one more, which is refused");
    ok(strstr(etd_get_text(&f.body, "text", text, sizeof text), "try again") != NULL,
       "and told that it may come back: %s", text);
    ok(!heard_drive(more), "and that is the end of it");
    etd_session_free(&more);
    more = heard_open(false);
    heard_hello(more, 1, h.name, h.log.seq - 5, 256);
    ok(heard_drive(more) && heard_count(ETD_FACTS) == 1,
       "one that has the run already needs none");
    etd_session_free(&more);
    ping(s[0], 1000, false);
    ok(heard_drive(s[0]) && heard_count(ETD_SNAP_END) == 1 &&
           heard_host.models == ROOM - 1,
       "whoever has all of it makes room,");
    heard_forget();
    ping(s[0], 1, true);
    f = heard_last(ETD_PONG);
    is_int((int)etd_get_int(&f.body, "at", -1), (int)h.log.seq, "and is still served");
    house_stop_clock();
    seams.monotonic = house_clock;
    eti_ctx_set_seams(h.cx, &seams);
    house_pass(11);
    ok(!heard_drive(s[1]), "one that takes nothing for 10 s is left");
    f = heard_last(ETD_BYE);
    is_str(etd_get_text(&f.body, "code", text, sizeof text), "LAGGED", "and told why");
    is_int(heard_host.models, ROOM - 2, "that makes room, too");
    house_start_clock();
    eti_ctx_set_seams(h.cx, &eti_system);
    for (int i = 0; i < ROOM; i++)
        etd_session_free(&s[i]);
    is_int(heard_host.models, 0, "in the end all of it is free");
    heard_forget();
}

/* A viewer that takes its snapshot piece by piece, and slowly. */
static void
test_steady(void)
{
    char code[32];
    struct eti_seams seams = eti_system;
    struct etd_session *s = heard_open(false);
    house_stop_clock();
    seams.monotonic = house_clock;
    eti_ctx_set_seams(h.cx, &seams);
    heard_room = 2;
    heard_hello(s, 1, h.name, -1, 1);
    ok(heard_drive(s) && heard_count(ETD_SNAP_BEGIN) == 1 &&
           heard_count(ETD_SNAP_CHUNK) == 0,
       "a viewer is told that a snapshot begins");
    house_pass(9.75);
    heard_room = HEARD_MOST;
    ok(heard_drive(s) && heard_count(ETD_SNAP_CHUNK) == 1,
       "and takes a piece of it 9.75 s later");
    house_pass(9.75);
    ok(heard_drive(s), "it has as long for the next");
    house_pass(0.25);
    ok(!heard_drive(s), "after 10 s it is left");
    struct etd_frame f = heard_last(ETD_BYE);
    is_str(etd_get_text(&f.body, "code", code, sizeof code), "LAGGED", "and told why");
    is_int(heard_count(ETD_SNAP_END), 0, "(there was more of it)");
    etd_session_free(&s);
    heard_forget();
    s = heard_open(false);
    heard_hello(s, 1, h.name, -1, 256);
    ok(heard_drive(s) && heard_count(ETD_SNAP_END) == 1, "who has taken all of it");
    house_pass(60);
    ok(heard_drive(s) && heard_count(ETD_BYE) == 0, "may be silent");
    etd_session_free(&s);
    house_start_clock();
    eti_ctx_set_seams(h.cx, &eti_system);
    heard_forget();
}

/* ---- history ---- */

static pthread_t server;          /* the thread that serves viewers */
static atomic_int read_by_server; /* of logs of events, how often */
static atomic_int read_beside;
static atomic_bool is_held; /* whoever else reads one waits */

static ssize_t
watched_read(int fd, void *buf, size_t n, off_t at)
{
    const struct timespec pause = {0, 1000000};
    char link[64], path[256] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "events.log")) {
        bool own = pthread_equal(pthread_self(), server);
        atomic_fetch_add(own ? &read_by_server : &read_beside, 1);
        while (!own && atomic_load(&is_held))
            nanosleep(&pause, NULL);
    }
    return eti_system.file.read(fd, buf, n, at);
}

static void
ask_history(struct etd_session *s, int64_t id)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_HIST};
    etd_begin(&o, bytes, sizeof bytes, &head, 5);
    etd_put_int(&o, "id", id);
    etd_put_text(&o, "series", "loss/train/total");
    etd_put_int(&o, "from", 11);
    etd_put_int(&o, "to", 20);
    etd_put_int(&o, "most", 100);
    heard_tell(s, bytes, etd_end(&o));
}

/* Steps A and B until N answers have come, or for a minute. */
static bool
wait_answers(struct etd_session *a, struct etd_session *b, int n)
{
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < 60000 && heard_count(ETD_HIST) < n; i++) {
        (void)etd_session_step(a);
        (void)etd_session_step(b);
        nanosleep(&pause, NULL);
    }
    return heard_count(ETD_HIST) == n;
}

/* A log that is to be read from end to end takes nobody's turn. */
static void
test_history(void)
{
    struct eti_seams seams = eti_system;
    int64_t ba[16];
    struct etd_session *a = heard_open(false), *b = heard_open(false);
    heard_hello(a, 1, h.name, -1, 256);
    heard_hello(b, 1, h.name, -1, 256);
    ok(heard_drive(a) && heard_drive(b), "two viewers of a run that has ended");
    heard_forget();
    server = pthread_self();
    seams.file.read = watched_read;
    eti_ctx_set_seams(h.cx, &seams);
    atomic_store(&is_held, true);
    ask_history(a, 7);
    ask_history(a, 8);
    ask_history(b, 9);
    for (int i = 0; i < 100; i++)
        (void)(etd_session_step(a) && etd_session_step(b));
    ping(b, 1, false);
    ok(heard_count(ETD_PONG) == 1 && heard_count(ETD_HIST) == 0,
       "one is answered while history is read for another");
    is_int(atomic_load(&read_by_server), 0, "which whoever serves them does not do");
    is_int(heard_host.readers, 1, "and one log is read at a time");
    ok(etd_session_is_reading(a) && !etd_session_is_busy(a),
       "nobody is kept busy by it");
    atomic_store(&is_held, false);
    ok(wait_answers(a, b, 3), "then all are answered");
    ok(atomic_load(&read_beside) > 0, "by who has read the log");
    struct etd_frame f = heard_last(ETD_HIST);
    ok(etd_get_ints(&f.body, "ba", ba, 16) == 10 && ba[0] == 11 && ba[9] == 20,
       "value by value");
    ok(!etd_session_is_reading(a) && !etd_session_is_reading(b) &&
           heard_host.readers == 0,
       "and nothing is read any more");
    heard_full = true;
    ask_history(a, 10);
    for (int i = 0; i < 100; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        (void)etd_session_step(a);
    }
    heard_full = false;
    ok(wait_answers(a, b, 4), "an answer waits for a connection that is full");
    ask_history(b, 11);
    etd_session_free(&a);
    (void)etd_session_step(b);
    etd_session_free(&b);
    is_int(heard_host.readers, 0, "a conversation that ends ends what is read for it");
    eti_ctx_set_seams(h.cx, &eti_system);
    heard_forget();
}

/* run.json says that it is in STATE, of a process that is gone. */
static void
write_state(const char *state)
{
    char path[256];
    snprintf(path, sizeof path, "%s/run.json", h.directory);
    json_t *facts = json_load_file(path, 0, NULL);
    if (json_object_set_new(facts, "state", json_string(state)) != 0 ||
        json_object_set_new(facts, "exit_code", json_integer(0)) != 0 ||
        json_object_set_new(facts, "pid", json_integer(0)) != 0 ||
        json_dump_file(facts, path, JSON_INDENT(1)) != 0)
        bail("cannot write %s", path);
    json_decref(facts);
}

/* Records of more numbers than a frame has, one after the other. */
static void
tell_wide(void)
{
    static const int numbers[] = {ETD_KEYS - 1, ETD_KEYS, ETD_KEYS + 1, 2 * ETD_KEYS,
                                  2 * ETD_KEYS + 1};
    static struct et_log_entry entry[3 * ETD_KEYS];
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        const int n = numbers[k];
        for (int i = 0; i < n; i++) {
            snprintf(entry[i].name, sizeof entry[i].name, "wide/%d", i);
            entry[i].value = 1000 * n + i;
        }
        const struct et_record r = {
            .kind = ET_RECORD_BATCH, .ba = ++h.ba, .entry = entry, .n = n};
        eti_events_write(&h.log, &r);
    }
    house_tell(&h, 20);
}

static void
is_refused(const char *name, const char *what)
{
    char code[32];
    struct etd_session *s = heard_open(true);
    heard_hello(s, 1, name, -1, 16);
    struct etd_frame f = heard_last(ETD_REFUSE);
    is_str(etd_get_text(&f.body, "code", code, sizeof code), "NO_RUN", "%s", what);
    ok(!heard_drive(s), "and that is the end");
    etd_session_free(&s);
    heard_forget();
}

static void
test_refused(void)
{
    is_refused("no-such-run", "a run that is not known is refused");
    is_refused("one", "so is one by the name of its directory,");
    is_refused(h.directory, "and by its path");
    struct etd_session *s = heard_open(true);
    ask_file(s, "run", 0, 0);
    is_int(heard_count(ETD_FILE), 0, "nobody gets files without HELLO");
    etd_session_free(&s);
    heard_forget();
}

/* A run whose process was killed left a run.json that says it goes on. */
static void
test_killed(void)
{
    static const char says[] = "\"state\":\"crashed\"";
    write_state("running");
    for (int i = 0; i < 2; i++) {
        struct etd_session *s = heard_open(false);
        heard_hello(s, 1, h.name, i ? h.log.seq - 3 : -1, 4096);
        ok(heard_drive(s), "a run that was killed is told as one that has ended");
        bool said = false;
        for (int k = 0; k < heard_n; k++) {
            struct etd_frame f = heard_frame(k);
            struct etd_value v;
            if (f.head.kind == (i ? ETD_FACTS : ETD_SNAP_CHUNK) &&
                etd_find(&f.body, i ? "facts" : "data", &v))
                said = said || memmem(v.bytes, v.n, says, strlen(says));
        }
        ok(said, "and what is said of it with the %s is that",
           i ? "last records" : "snapshot");
        etd_session_free(&s);
        heard_forget();
    }
    write_state("finished");
}

/* A log whose last record is not all there, as of a machine that lost its power. */
static void
test_torn(void)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/events.log", h.directory);
    for (int i = 1; i < 4; i += 2) {
        if (stat(path, &st) != 0 || truncate(path, st.st_size - i) != 0)
            bail("cannot cut %s", path);
        struct etd_session *s = heard_open(false);
        heard_hello(s, 1, h.name, -1, 256);
        ok(heard_drive(s), "a log without its last %d bytes is told", i);
        ok(is_whole(h.log.seq - 1), "up to the record before");
        etd_session_free(&s);
        heard_forget();
    }
}

/* A log that has been written into. */
static void
test_damaged(void)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/events.log", h.directory);
    FILE *f = stat(path, &st) == 0 ? fopen(path, "r+") : NULL;
    if (!f || fseek(f, st.st_size / 2, SEEK_SET) != 0 ||
        fwrite("\0\0\0\0", 4, 1, f) != 1 || fclose(f) != 0)
        bail("cannot write into %s", path);
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, -1, 256);
    ok(heard_drive(s), "a damaged log is told");
    struct etd_frame begin = heard_last(ETD_SNAP_BEGIN);
    int64_t told = etd_get_int(&begin.body, "s", 0);
    ok(told > 0 && told < h.log.seq && is_whole(told), "up to where it can be read");
    etd_session_free(&s);
    heard_forget();
}

int
main(void)
{
    char path[256];
    house_begin(&h);
    if (chdir(h.folder) != 0)
        bail("no folder");
    house_tell(&h, RECORDS);
    tell_wide();
    write_state("finished");
    snprintf(path, sizeof path, "%s/logs", h.directory);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/logs/rank0.txt", h.directory);
    FILE *f = fopen(path, "w");
    if (!f || fputs("a\nbc\nd", f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
    snprintf(path, sizeof path, "%s/logs/rank1.txt", h.directory);
    if (symlink("/etc/passwd", path) != 0)
        bail("no link");
    snprintf(path, sizeof path, "%s/logs/rank2.txt", h.directory);
    if (mkfifo(path, 0600) != 0)
        bail("no FIFO");
    heard_host = (struct etd_host){.cx = h.cx, .starts = {.cx = h.cx}};
    test_whole();
    test_welcome();
    test_credit();
    test_credit_of_records();
    test_large();
    test_earlier();
    test_after();
    test_missed();
    test_files();
    test_most_waiting();
    test_slow();
    test_models();
    test_steady();
    test_history();
    test_refused();
    test_killed();
    test_torn();
    test_damaged();
    house_end(&h);
    return done();
}
