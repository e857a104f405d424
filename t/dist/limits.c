/* SPDX-License-Identifier: Apache-2.0 */
/* What the hub keeps of RELIABILITY.md section 5: the table at the end has a row for
 * each limit. What is at the limit is served, what is one beyond it is not. Numbers are
 * those of the document, not those of the sources; the clock is the test's (talk.h). */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "t/dist/talk.h"
#include "t/tap.h"

enum { MIB = 1 << 20, WIDE = 64 /* numbers of a record: all that fit into a frame */ };

static struct house h;
static struct talk watch;

/* Is T served? If not, *T->code says why. */
static bool
is_served(struct talk *t)
{
    return talk_ping(t, 0) == ETD_PONG;
}

static bool
goes_on(const struct talk *t)
{
    return t->f.head.kind == ETD_WELCOME && etd_get_bool(&t->f.body, "goes_on", false);
}

/* A viewer that has all records so far, with CREDIT for more. */
static struct talk
join(int64_t credit)
{
    struct talk t = talk_open(&h);
    if (talk_hello(&t, h.log.seq, credit, NULL) != ETD_WELCOME || !goes_on(&t))
        bail("a viewer is not served: %s", t.code);
    return t;
}

/* Does a viewer that has all up to record AFTER go on with the next one? */
static bool
is_kept(int64_t after)
{
    struct talk t = talk_open(&h);
    bool kept = talk_hello(&t, after, 1, NULL) == ETD_WELCOME && goes_on(&t);
    while (kept && t.records == 0 && !talk_is_over(talk_hear(&t)))
        ;
    if (kept && (t.seq != after + 1 || etd_get_int(&t.f.body, "part", 0) != 0))
        ok(false, "behind record %d it goes on inside record %d", (int)after,
           (int)t.seq);
    talk_close(&t);
    return kept;
}

/* Bytes of the frame of a record with WIDE numbers: from here on each has as many. */
static int64_t
wide_bytes(void)
{
    while (h.log.seq < 256) /* whose number takes as many bytes as those to come */
        talk_tell(&watch, 1, 0);
    int64_t before = watch.bytes;
    talk_tell(&watch, 1, WIDE);
    return watch.bytes - before;
}

/* ---- 5.7 credit ---- */

static void
test_credit(void)
{
    struct talk v = talk_open(&h);
    if (talk_hello(&v, h.log.seq, -1, NULL) != ETD_WELCOME)
        bail("no WELCOME");
    talk_tell(&watch, 300, 0);
    while (v.records < 256 && is_served(&v))
        ;
    ok(is_served(&v) && is_served(&v), "300 records are told");
    is_int(v.records, 256, "a viewer that names no credit is sent 256 of them");
    ok(talk_ping(&v, 3) == ETD_PONG && is_served(&v) && is_served(&v),
       "it gives credit for three more");
    is_int(v.records, 259, "and is sent three");
    talk_close(&v);
}

/* However much credit a viewer gives, 65,536 messages are all that it is sent for. */
static void
test_most_credit(void)
{
    enum { MOST = 65536, PARTS = 16 };
    struct talk v = join(1 << 30);
    for (int i = 0; i < 3; i++)
        if (talk_ping(&v, MOST) != ETD_PONG)
            bail("a viewer that gives credit is left: %s", v.code);
    for (int i = 0; i <= PARTS; i++) {
        talk_tell(&watch, i < PARTS ? MOST / PARTS : 10, 0);
        while (v.seq < h.log.seq && v.records < MOST && !talk_is_over(talk_hear(&v)))
            ;
    }
    ok(is_served(&v) && is_served(&v), "a viewer gives credit again and again");
    is_int(v.records, MOST, "and is sent 65,536 messages, and no more");
    ok(talk_ping(&v, 4) == ETD_PONG && is_served(&v) && is_served(&v),
       "it gives credit for four more");
    is_int(v.records, MOST + 4, "and is sent four");
    talk_close(&v);
}

static void
test_snapshot_credit(void)
{
    struct talk v = talk_open(&h);
    house_tell(&h, 3000); /* of which a snapshot has several parts */
    talk_tell(&watch, 1, 0);
    talk_pass(&watch, 2); /* the last snapshot is old */
    ok(talk_hello(&v, -1, 0, NULL) == ETD_WELCOME && is_served(&v) && is_served(&v),
       "a viewer comes without credit");
    is_int(v.chunks, 0, "it is sent no part of a snapshot");
    ok(talk_ping(&v, 2) == ETD_PONG && is_served(&v) && is_served(&v),
       "it gives credit for two parts");
    is_int(v.chunks, 2, "and is sent two");
    is_int(talk_ping(&v, 1) == ETD_PONG && is_served(&v) ? v.chunks : -1, 3,
           "and a third for one more");
    int64_t records = v.records;
    ok(talk_ping(&v, 1000) == ETD_PONG || v.f.head.kind == ETD_SNAP_END,
       "with enough credit it is sent the rest");
    talk_tell(&watch, 5, 0);
    while (v.records < records + 5 && is_served(&v))
        ;
    is_int(v.records - records, 5, "and the records behind it");
    talk_close(&v);
}

/* Where the snapshot stands that a viewer gets which comes now: it then has every
 * record behind it. */
static int64_t
begin_anew(void)
{
    struct talk v = talk_open(&h);
    if (talk_hello(&v, -1, 65536, NULL) != ETD_WELCOME ||
        talk_until(&v, ETD_SNAP_BEGIN) != ETD_SNAP_BEGIN)
        bail("a viewer gets no snapshot: %s", v.code);
    int64_t at = v.seq, snapshots = 1;
    while (v.seq < h.log.seq || !v.whole || v.f.head.kind == ETD_SNAP_BEGIN) {
        enum etd_kind heard = talk_hear(&v);
        if (talk_is_over(heard) || (snapshots += heard == ETD_SNAP_BEGIN) > 1)
            break;
        if (heard == ETD_SNAP_END && v.seq == h.log.seq)
            break;
    }
    is_int(snapshots, 1, "a viewer begins with one snapshot");
    is_int(v.seq, h.log.seq, "and has the records behind it");
    talk_close(&v);
    return at;
}

/* Viewers that come within a second get the same snapshot, while the records behind it
 * can be sent. */
static void
test_snapshot_shared(void)
{
    int64_t size = wide_bytes(), first;
    talk_pass(&watch, 2); /* the last snapshot is old */
    first = begin_anew();
    is_int(first, h.log.seq, "a snapshot has all records");
    talk_tell(&watch, 5, 0);
    talk_pass(&watch, 0.75);
    is_int(begin_anew(), first, "who comes less than a second later gets the same");
    talk_pass(&watch, 0.25);
    is_int(begin_anew(), h.log.seq, "and a second later another");
    talk_tell(&watch, (int)(8 * MIB / size) + 10, WIDE);
    ok(begin_anew() > h.log.seq - 8 * MIB / size,
       "so where the records behind it cannot be sent any more");
}

/* ---- 5.7 lag ---- */

static void
test_eight_mib(void)
{
    int64_t size = wide_bytes(), n = (8 * MIB + size - 1) / size;
    struct talk v = join(0);
    talk_tell(&watch, (int)n - 1, WIDE);
    bool served = true;
    for (int i = 0; i < 4; i++) {
        talk_pass(&watch, 5);
        served = served && is_served(&v);
    }
    ok(served, "a viewer may be less than 8 MiB behind for 20 s");
    talk_tell(&watch, 1, WIDE);
    talk_settle(&h);
    talk_pass(&watch, 9.75);
    ok(is_served(&v), "and 8 MiB for less than 10 s");
    talk_pass(&watch, 0.25);
    ok(!is_served(&v), "after 10 s it is left");
    is_str(v.code, "LAGGED", "and told why");
    talk_close(&v);
}

/* Twice behind for 6 s, and not between. */
static void
test_eight_mib_twice(void)
{
    enum { CREDIT = 1000 };
    int64_t size = wide_bytes(), n = (8 * MIB + size - 1) / size;
    struct talk v = join(0);
    talk_tell(&watch, (int)n, WIDE);
    talk_settle(&h);
    talk_pass(&watch, 6);
    ok(talk_ping(&v, CREDIT) == ETD_PONG,
       "a viewer that is 8 MiB behind for 6 s gives credit");
    talk_tell(&watch, CREDIT, 0);
    while (v.records + v.chunks < CREDIT && !talk_is_over(talk_hear(&v)))
        ;
    is_int(v.records + v.chunks, CREDIT, "and is told of what it missed");
    talk_tell(&watch, (int)n, WIDE);
    talk_settle(&h);
    talk_pass(&watch, 6);
    ok(is_served(&v), "it may be as far behind for 6 s again");
    talk_close(&v);
}

static void
test_32_mib(void)
{
    int64_t size = wide_bytes(), n = (32 * MIB + size - 1) / size;
    struct talk v = join(0);
    talk_tell(&watch, (int)n - 1, WIDE);
    talk_settle(&h);
    ok(is_served(&v), "a viewer may be less than 32 MiB behind for a moment");
    talk_tell(&watch, 1, WIDE);
    talk_settle(&h);
    ok(!is_served(&v), "with 32 MiB it is left at once");
    is_str(v.code, "LAGGED", "and told why");
    talk_close(&v);
}

/* Who has all that there is is not behind, however much went through the hub. */
static void
test_at_the_end(void)
{
    int64_t size = wide_bytes();
    talk_tell(&watch, (int)(33 * MIB / size), WIDE);
    struct talk v = talk_open(&h);
    talk_pass(&watch, 2); /* the last snapshot is old */
    ok(talk_hello(&v, -1, 65536, NULL) == ETD_WELCOME &&
           talk_until(&v, ETD_SNAP_END) == ETD_SNAP_END && v.seq == h.log.seq,
       "a viewer comes after 32 MiB, and has all");
    bool served = true;
    for (int i = 0; i < 4; i++) {
        talk_pass(&watch, 4);
        served = served && is_served(&v);
    }
    ok(served, "it is served while nothing more is said");
    talk_close(&v);
}

static void
test_stuck_snapshot(void)
{
    struct talk v = talk_open(&h);
    ok(talk_hello(&v, -1, 1, NULL) == ETD_WELCOME, "a viewer comes");
    talk_pass(&watch, 9.75);
    ok(is_served(&v) && v.chunks == 1,
       "it may take no part of its snapshot for 9.75 s");
    ok(talk_ping(&v, 1) == ETD_PONG, "it takes one");
    talk_pass(&watch, 9.75);
    ok(is_served(&v) && v.chunks == 2, "and has as long for the next");
    talk_pass(&watch, 0.25);
    ok(!is_served(&v), "after 10 s it is left");
    is_str(v.code, "LAGGED", "and told why");
    talk_close(&v);
}

/* A model whose snapshots have some 40 messages, of 60 KiB as a hub counts them. */
static void
fill_model(void)
{
    enum { BATCHES = 2000, SERIES = 40 };
    static struct et_log_entry entry[SERIES];
    struct et_record r = {
        .kind = ET_RECORD_BATCH, .t = 2e9, .entry = entry, .n = SERIES};
    for (int k = 0; k < SERIES; k++)
        snprintf(entry[k].name, sizeof entry->name, "m/%d", k);
    for (int i = 0; i < BATCHES; i++) {
        r.ba = ++h.ba;
        for (int k = 0; k < SERIES; k++)
            entry[k].value = i + k;
        eti_events_write(&h.log, &r);
    }
    talk_tell(&watch, 1, 0);
}

/* A viewer that had a snapshot, and then falls out of what is sent again, gets another
 * from its first part on. */
static void
test_second_snapshot(void)
{
    enum { CREDIT = 1000 };
    int64_t size = wide_bytes(), n = (8 * MIB + size - 1) / size;
    struct talk v = talk_open(&h);
    if (talk_hello(&v, -1, CREDIT, NULL) != ETD_WELCOME)
        bail("a viewer is not served: %s", v.code);
    ok(talk_until(&v, ETD_SNAP_END) == ETD_SNAP_END && v.chunks > 0,
       "a viewer begins with a snapshot");
    int64_t before = v.chunks;
    talk_tell(&watch, (int)n + CREDIT, WIDE);
    talk_settle(&h);
    (void)talk_ping(&v, 65536);
    talk_tell(&watch, 1, 0);
    while (v.seq < h.log.seq && !talk_is_over(talk_hear(&v)))
        ;
    is_int(v.seq, h.log.seq, "it falls behind, gives credit, and has all again");
    ok(v.chunks > before, "with another snapshot (%d parts, %d before)", (int)v.chunks,
       (int)before);
    talk_close(&v);
}

/* More than the 24 MiB of snapshots that a hub holds at once, to viewers of whom each
 * is a second later than the last. */
static void
test_snapshot_room(void)
{
    enum { CHUNK = 60 << 10, ROOM = 24 * MIB };
    int64_t sent = 0;
    bool all = true;
    fill_model();
    while (all && sent <= ROOM + ROOM / 4) {
        struct talk v = talk_open(&h);
        if (talk_hello(&v, -1, 65536, NULL) != ETD_WELCOME)
            bail("a viewer is not served: %s", v.code);
        for (int i = 0; i < 50 && v.chunks == 0; i++)
            if (!is_served(&v))
                bail("a viewer is left: %s", v.code);
        all = v.chunks > 0;
        sent += v.chunks * CHUNK;
        talk_close(&v);
        talk_pass(&watch, 1.25);
    }
    ok(all, "viewer after viewer gets a snapshot, of %lld MiB in all",
       (long long)(sent / MIB));
}

/* ---- 5.6 the ring ---- */

static void
test_ring_bytes(void)
{
    int64_t size = wide_bytes(), n = 8 * MIB / size, before = watch.bytes;
    talk_tell(&watch, (int)n + 10, WIDE);
    is_int(watch.bytes - before, (n + 10) * size, "more than 8 MiB are told");
    ok(is_kept(h.log.seq - n), "the last 8 MiB can be sent again");
    ok(!is_kept(h.log.seq - n - 1), "and no record more");
}

static void
test_ring_messages(void)
{
    talk_tell(&watch, 1, WIDE + 1);
    int64_t seq = h.log.seq;
    talk_tell(&watch, 65534, 0);
    ok(is_kept(seq - 1), "the last 65,536 messages can be sent again");
    talk_tell(&watch, 1, 0);
    ok(!is_kept(seq - 1),
       "no viewer goes on with the second message of a record of two");
    ok(is_kept(seq), "but with the first of the next");
}

static void
ask_again(struct talk *t, int64_t from)
{
    struct etd_out o = talk_say(ETD_NACK, 2);
    etd_put_int(&o, "from", from);
    etd_put_int(&o, "to", h.log.seq);
    talk_send(t, &o);
}

static void
test_gap(void)
{
    struct talk v = join(100);
    talk_tell(&watch, 20, 0);
    while (v.seq < h.log.seq && !talk_is_over(talk_hear(&v)))
        ;
    ask_again(&v, h.log.seq - 4);
    ok(talk_until(&v, (enum etd_kind)ET_RECORD_LOG) == (enum etd_kind)ET_RECORD_LOG &&
           v.seq == h.log.seq - 4,
       "records that did not arrive are sent again, from the first of them");
    while (v.seq < h.log.seq && !talk_is_over(talk_hear(&v)))
        ;
    is_int(v.records, 25, "each once");
    ask_again(&v, 1);
    is_int((int)talk_until(&v, ETD_SNAP_BEGIN), ETD_SNAP_BEGIN,
           "in place of what is not kept comes a snapshot");
    talk_close(&v);
}

/* ---- 5.8 silence ---- */

static void
test_silence(void)
{
    struct talk v = join(0);
    talk_pass(&watch, 9.75);
    ok(is_served(&v), "a viewer may say nothing for less than 10 s");
    talk_pass(&watch, 9.75);
    ok(is_served(&v), "again and again");
    talk_pass(&watch, 10);
    ok(!is_served(&v), "after 10 s it is left");
    is_str(v.code, "SILENT", "and told why");
    talk_close(&v);
}

/* ---- 5.9 ---- */

enum { PLACES = 64 };

static bool
is_let_in(void)
{
    struct talk v = talk_open(&h);
    bool in = talk_hello(&v, -2, -1, NULL) == ETD_WELCOME;
    if (!in)
        is_str(v.code, "FULL", "a viewer is refused for want of a place");
    if (in) {
        struct etd_out o = talk_say(ETD_BYE, 0);
        talk_send(&v, &o);
        etd_channel_finish(v.line);
    }
    talk_close(&v);
    return in;
}

/* With WATCH, 64. */
static void
fill_places(struct talk *v)
{
    int in = 0;
    for (int i = 0; i < PLACES - 1; i++) {
        v[i] = talk_open(&h);
        in += talk_hello(&v[i], -2, -1, NULL) == ETD_WELCOME;
    }
    is_int(in, PLACES - 1, "64 viewers are let in");
}

static void
test_mute_places(void)
{
    struct talk v[PLACES - 1];
    fill_places(v);
    ok(!is_let_in(), "the 65th is not");
    talk_pass(&watch, 9.75);
    ok(!is_let_in(), "nor while the others say nothing for less than 10 s");
    talk_pass(&watch, 0.25);
    ok(is_let_in(), "those who say nothing for 10 s lose their places");
    for (int i = 0; i < PLACES - 1; i++)
        talk_close(&v[i]);
}

/* Their connections are gone: the hub learns of it from zmq's thread, some time. */
static void
test_dead_places(void)
{
    struct talk v[PLACES - 1];
    fill_places(v);
    for (int i = 0; i < PLACES - 1; i++)
        talk_close(&v[i]);
    bool in = false;
    for (int i = 0; i < 90 && !in; i++) {
        struct talk one = talk_open(&h);
        talk_pass(&watch, 0.1);
        in = talk_hello(&one, -2, -1, NULL) == ETD_WELCOME;
        talk_close(&one);
    }
    ok(in, "viewers that were killed lose their places at once");
}

static void
test_rate(void)
{
    struct talk v[2];
    for (int i = 0; i < 2; i++)
        v[i] = join(0);
    talk_test_rate(&v[0], &v[1]);
    for (int i = 0; i < 2; i++)
        talk_close(&v[i]);
}

/* A frame of N bytes, of a kind that may have as many and means nothing to a hub. */
static void
send_frame(struct talk *t, size_t n)
{
    static char data[128 << 10];
    struct etd_out o = talk_say(ETD_SNAP_CHUNK, 1);
    etd_put_bin(&o, "data", data, n - 100);
    size_t head = etd_end(&o) - (n - 100);
    o = talk_say(ETD_SNAP_CHUNK, 1);
    etd_put_bin(&o, "data", data, n - head);
    is_int((int64_t)etd_end(&o), (int64_t)n, "somebody sends a message of %zu bytes",
           n);
    talk_send(t, &o);
}

static void
test_inbound(void)
{
    struct talk v = join(0);
    send_frame(&v, 65536);
    ok(is_served(&v), "which is taken in");
    send_frame(&v, 65537);
    ok(!is_served(&v) && v.gone, "which ends the connection");
    talk_close(&v);
}

static void
test_malformed(void)
{
    struct talk v = join(0);
    talk_send_bytes(&v, "\x9a\x01", 2);
    ok(!is_served(&v), "who sends what is no frame is left");
    is_str(v.code, "MALFORMED", "and told why");
    talk_close(&v);
}

/* ---- 5.9 numbers ---- */

/* Tests of frames (wire.c) and of many viewers (hub.c) take them from the sources. */
static void
test_numbers(void)
{
    static const struct {
        const char *what;
        int64_t is, must;
    } row[] = {
        {"bytes of a message of the stream", ETD_STREAM_BYTES, 65536},
        {"bytes of a message of control", ETD_CONTROL_BYTES, 4096},
        {"bytes of a part of a snapshot", ETD_CHUNK_BYTES, 262144},
        {"bytes of a snapshot", ETD_SNAPSHOT_BYTES, 16777216},
        {"bytes that a hub takes in", ETD_INBOUND_BYTES, 65536},
        {"viewers", ETD_CLIENTS, 64},
        {"lists and maps in each other", ETD_DEPTH, 8},
        {"keys of a map", ETD_KEYS, 64},
        {"bytes of a text", ETD_STRING, 1024},
        {"elements of a list", ETD_ARRAY, 4096},
        {"points of a series, least and greatest", 2 * ETD_BINS, 4096},
        {"messages of a viewer's credit", ETD_CREDIT, 256},
        {"bytes that name a run", ETD_RUN_ID, 16},
        {"bytes that name a command", ETD_CMD_ID, 16},
        {"ms of a command", ETD_TTL_MS, 60000},
        {"seconds of a lease", ETD_LEASE_S, 30},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        is_int(row[i].is, row[i].must, "there are %lld %s", (long long)row[i].must,
               row[i].what);
}

/* A message of KIND and N bytes. */
static et_status
read_sized(const char *kind, size_t n)
{
    static unsigned char bytes[(256 << 10) + 1];
    static const char run[] = "\xc4\x10"
                              "0123456789abcdef",
                      rest[] = "\0\0\0\0\0\x81\xa1x\xc6";
    unsigned char *p = bytes;
    size_t length = strlen(kind);
    memcpy(p, "\x9a\x01\x01", 3), p += 3;
    *p++ = (unsigned char)(0xa0 + length);
    memcpy(p, kind, length), p += length;
    memcpy(p, run, sizeof run - 1), p += sizeof run - 1;
    memcpy(p, rest, sizeof rest - 1), p += sizeof rest - 1;
    size_t left = n - (size_t)(p + 4 - bytes);
    for (int shift = 24; shift >= 0; shift -= 8)
        *p++ = (unsigned char)(left >> shift);
    struct etd_frame f;
    struct etd_fault fault;
    return etd_read(bytes, n, &f, &fault);
}

static void
test_sizes(void)
{
    static const struct {
        size_t most;
        const char *kinds;
    } row[] = {
        {4096, "HELLO WELCOME REFUSE SNAP_BEGIN SNAP_END NACK PING PONG CMD RECEIVED "
               "APPLIED REJECTED EXPIRED BYE"},
        {65536, "HIST RUNS FACTS MACHINE batch eval log LATER"},
        {262144, "SNAP_CHUNK START LOAD FILE"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char kinds[256], *rest = NULL;
        snprintf(kinds, sizeof kinds, "%s", row[i].kinds);
        for (char *kind = strtok_r(kinds, " ", &rest); kind;
             kind = strtok_r(NULL, " ", &rest)) {
            ok(read_sized(kind, row[i].most) == ET_OK &&
                   read_sized(kind, row[i].most + 1) == ET_EFORMAT,
               "%s is read with %zu bytes, and not with one more", kind, row[i].most);
        }
    }
}

/* Who goes while what it asked of history is being read: nobody else waits for that. */
static void
test_questions_of_the_gone(void)
{
    enum { QUESTIONS = 20, TIMES = 3 };
    struct etd_out o;
    for (int i = 0; i < TIMES; i++) {
        struct talk v = join(0);
        for (int k = 0; k < QUESTIONS; k++) {
            o = talk_say(ETD_HIST, 1);
            etd_put_text(&o, "series", "loss/train/total");
            talk_send(&v, &o);
        }
        if (!is_served(&v)) /* all were taken in, and the first is being read */
            bail("a viewer is left: %s", v.code);
        talk_settle(&h);
        o = talk_say(ETD_BYE, 0);
        talk_send(&v, &o);
        etd_channel_finish(v.line);
        talk_close(&v);
        talk_settle(&h);
    }
    struct talk other = join(0);
    o = talk_say(ETD_HIST, 2);
    etd_put_int(&o, "id", 7);
    etd_put_text(&o, "series", "loss/train/total");
    talk_send(&other, &o);
    ok(talk_until(&other, ETD_HIST) == ETD_HIST &&
           etd_get_int(&other.f.body, "id", -1) == 7,
       "a viewer's question is answered after others went with theirs");
    talk_close(&other);
}

/* ---- 5.10 versions ---- */

static void
test_major(void)
{
    struct talk v = talk_open(&h);
    struct etd_out o = talk_say(ETD_HELLO, 0);
    o.bytes[1] = ETD_MAJOR + 1;
    talk_send(&v, &o);
    is_int((int)talk_hear(&v), ETD_REFUSE,
           "who speaks another major version is refused");
    is_str(v.code, "VERSION", "and told why");
    talk_close(&v);
}

static void
test_unknown(void)
{
    struct talk v = join(0);
    struct etd_out o = talk_say(ETD_PING, 2);
    etd_put_int(&o, "later", 1);
    etd_put_map(&o, "latest", 0);
    memcpy(memmem(o.bytes, o.used, "PING", 4), "LATE", 4);
    talk_send(&v, &o);
    ok(is_served(&v), "a kind and keys of a later minor version are skipped");
    talk_close(&v);
}

static void
test_strangers(void)
{
    struct talk v = talk_open(&h);
    struct etd_out o = talk_say(ETD_PING, 0);
    talk_send(&v, &o);
    is_int((int)talk_hear(&v), ETD_BYE, "who has not said HELLO is sent away");
    is_str(v.code, "UNKNOWN", "and told why");
    talk_close(&v);
}

/* N messages of somebody who has said no HELLO; none is answered. */
static void
say_bye(struct talk *v, int n)
{
    for (int i = 1; i <= n; i++) {
        struct etd_out o = talk_say(ETD_BYE, 0);
        talk_send(v, &o);
        if (i % 100 == 0)
            talk_settle(&h);
    }
}

/* 1,000 at one moment, and as many of the 500 of half a second later that a HELLO is
 * among them. */
static void
test_many_strangers(void)
{
    talk_pass(&watch, 1);
    struct talk v = talk_open(&h);
    say_bye(&v, 1000);
    talk_pass(&watch, 0.5);
    say_bye(&v, 450);
    ok(talk_hello(&v, h.log.seq, 0, NULL) == ETD_WELCOME && goes_on(&v),
       "1,000 messages of strangers a second are looked at");
    talk_close(&v);
}

static const struct talk_limit limits[] = {
    {"5.7", "256 messages, unless a viewer grants others", test_credit},
    {"5.7", "65,536 messages of credit", test_most_credit},
    {"5.7", "credit for the parts of a snapshot", test_snapshot_credit},
    {"5.7", "1 s for which a snapshot is shared", test_snapshot_shared},
    {"5.7", "a second snapshot", test_second_snapshot},
    {"5.7", "8 MiB for 10 s", test_eight_mib},
    {"5.7", "8 MiB, twice for less", test_eight_mib_twice},
    {"5.7", "32 MiB at once", test_32_mib},
    {"5.7", "nothing that is missing", test_at_the_end},
    {"5.7", "10 s for a part of a snapshot", test_stuck_snapshot},
    {"5.6", "8 MiB that are sent again", test_ring_bytes},
    {"5.6", "65,536 messages that are sent again", test_ring_messages},
    {"5.6", "a gap", test_gap},
    {"5.8", "10 s of silence", test_silence},
    {"5.9", "64 clients, mute ones", test_mute_places},
    {"5.2", "64 clients, dead ones", test_dead_places},
    {"5.9", "200 messages a second", test_rate},
    {"5.9", "64 KiB inbound", test_inbound},
    {"5.9", "frames that are none", test_malformed},
    {"5.9", "numbers of messages and what is in them", test_numbers},
    {"5.9", "sizes by kind", test_sizes},
    {"5.9", "questions of who has gone", test_questions_of_the_gone},
    {"5.10", "another major version", test_major},
    {"5.10", "a later minor version", test_unknown},
    {"5.5", "HELLO first", test_strangers},
    {"5.9", "1,000 messages of strangers a second", test_many_strangers},
    {"5.7", "24 MiB of snapshots at once", test_snapshot_room},
};

int
main(void)
{
    talk_begin(&h, &watch);
    return talk_run(&h, &watch, 0, limits, sizeof limits / sizeof *limits);
}
