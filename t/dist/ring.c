/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between the training thread and the one that sends: order, what overflows,
 * two threads at it; the packets of the pipe behind it; and the sender itself. */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/run/ring.h"
#include "dist/run/sender.h"
#include "dist/wire/packet.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { MANY = 200000, NUMBERS = 70 };

static struct et_record
batch(int64_t ba, const struct et_log_entry *entry, int n)
{
    return (struct et_record){
        .kind = ET_RECORD_BATCH, .t = 1.5, .seq = ba, .ba = ba, .entry = entry, .n = n};
}

static struct et_record
state(int64_t ba, const char *text)
{
    return (struct et_record){.kind = ET_RECORD_RUN, .ba = ba, .text = text};
}

static void
name_numbers(struct et_log_entry *entry, int n, double value)
{
    for (int i = 0; i < n; i++) {
        snprintf(entry[i].name, sizeof entry[i].name, "l2_norm/grad/layer.%d", i);
        entry[i].value = value + i;
    }
}

/* ---- one thread ---- */

static void
test_order(struct et_ctx *cx)
{
    struct et_log_entry entry[NUMBERS];
    struct etd_ring *ring;
    struct et_record r;
    bool same = true;
    char order[64] = "";
    need(cx, etd_ring_new(cx, &ring));
    name_numbers(entry, NUMBERS, 7);
    for (int i = 0; i < 6; i++) {
        r = i % 2 ? state(i, "running") : batch(i, entry, i == 4 ? NUMBERS : 2);
        ok(etd_ring_put(ring, &r), "record %d is put", i);
    }
    for (int i = 0; etd_ring_take(ring, &r); i++) {
        snprintf(order + strlen(order), sizeof order - strlen(order), "%s%lld ",
                 et_record_name(r.kind), (long long)r.ba);
        for (int k = 0; k < r.n; k++)
            same &= r.entry[k].value == 7 + k &&
                    strcmp(r.entry[k].name, entry[k].name) == 0;
        if (r.ba == 4)
            is_int(r.n, NUMBERS, "more numbers than a slot has come back together");
        if (r.ba == 3)
            is_str(r.text, "running", "a text comes back");
    }
    is_str(order, "batch0 run1 batch2 run3 batch4 run5 ",
           "what is put comes out in its order, whichever ring it took");
    ok(same, "with its names and values");
    etd_ring_free(&ring);
}

/* The head of a record, more of them than there are slots: nothing of the record that
 * was in its slot before stays. */
static void
test_heads(struct et_ctx *cx)
{
    struct et_log_entry entry = {.name = "loss/train/total", .value = 1};
    struct etd_ring *ring;
    struct et_record r;
    int wrong = 0;
    need(cx, etd_ring_new(cx, &ring));
    for (int i = 0; i < 3 * ETD_RING_SLOTS; i++) {
        const struct et_record told = {.kind = i % 3 ? ET_RECORD_BATCH : ET_RECORD_RUN,
                                       .t = 0.5 + i,
                                       .seq = 1 + i,
                                       .ep = 2 + i,
                                       .ba = 3 + i,
                                       .sp = i % 5 ? 4 + i : 0,
                                       .rank = i % 7,
                                       .level = (enum et_log_level)(i % 4),
                                       .entry = &entry,
                                       .n = 1};
        wrong += !etd_ring_put(ring, &told) || !etd_ring_take(ring, &r) ||
                 r.kind != told.kind || r.t != told.t || r.seq != told.seq ||
                 r.ep != told.ep || r.ba != told.ba || r.sp != told.sp ||
                 r.rank != told.rank || r.level != told.level;
    }
    is_int(wrong, 0, "each record has its own time, place, rank and level");
    etd_ring_free(&ring);
}

/* Each kind of record with a text of its own, between two batches; with one number, and
 * with more than a slot has. */
static void
test_texts(struct et_ctx *cx)
{
    struct et_log_entry entry[NUMBERS];
    struct etd_ring *ring;
    struct et_record r;
    char lost[256] = "", text[16];
    need(cx, etd_ring_new(cx, &ring));
    name_numbers(entry, NUMBERS, 3);
    for (int i = 0; i < 2 * ET_RECORD_COUNT; i++) {
        const struct et_record told = {.kind = (enum et_record_kind)(i / 2),
                                       .text = text,
                                       .entry = entry,
                                       .n = i % 2 ? NUMBERS : 1};
        snprintf(text, sizeof text, "text %d", i);
        r = batch(i, entry, 1);
        etd_ring_put(ring, &r);
        etd_ring_put(ring, &told);
        const bool came = etd_ring_take(ring, &r) && etd_ring_take(ring, &r) &&
                          r.kind == told.kind && r.text && strcmp(r.text, text) == 0 &&
                          r.n == told.n && r.entry[told.n - 1].value == 3 + told.n - 1;
        if (!came)
            snprintf(lost + strlen(lost), sizeof lost - strlen(lost), " %s of %d",
                     et_record_name(told.kind), told.n);
    }
    is_str(lost, "", "a text comes back with records of every kind");
    etd_ring_free(&ring);
}

static void
test_overflow(struct et_ctx *cx)
{
    struct et_log_entry entry[2];
    struct etd_ring *ring;
    struct et_record r;
    int put = 0, taken = 0, critical = 0;
    need(cx, etd_ring_new(cx, &ring));
    name_numbers(entry, 2, 0);
    for (int i = 0; i < ETD_RING_SLOTS + 1000; i++) {
        r = batch(i, entry, 2);
        put += etd_ring_put(ring, &r);
    }
    is_int(put, 4096, "a full ring takes no more batches");
    is_int((int64_t)etd_ring_dropped(ring), 1000, "the others are counted, exactly");
    for (int i = 0; i < ETD_RING_CRITICAL; i++) {
        r = state(i, "evaluating");
        critical += etd_ring_put(ring, &r);
    }
    is_int(critical, 256, "but states still find room");
    r = state(0, "one more");
    ok(!etd_ring_put(ring, &r) && etd_ring_dropped(ring) == 1001,
       "as many as there is room for");
    bool in_order = true;
    while (etd_ring_take(ring, &r)) {
        in_order &= taken >= ETD_RING_SLOTS || r.ba == taken;
        taken++;
    }
    is_int(taken, ETD_RING_SLOTS + ETD_RING_CRITICAL, "all that was put comes out");
    ok(in_order, "the oldest first: it is the new ones that are left out");
    r = batch(1, entry, 2);
    ok(etd_ring_put(ring, &r) && etd_ring_take(ring, &r), "then there is room again");
    etd_ring_free(&ring);
}

/* Kinds whose records are many have the larger ring, all others that of what is told
 * once; and a record takes one slot for each 32 of its numbers. */
static void
test_rooms(struct et_ctx *cx)
{
    static const char many[] = " batch metric memory throughput health algorithm ";
    static const struct {
        int n, slots;
    } row[] = {{0, 1}, {1, 1}, {32, 1}, {33, 2}, {64, 2}, {65, 3}, {96, 3}, {97, 4}};
    struct et_log_entry entry[97];
    struct etd_ring *ring;
    struct et_record r, got;
    char name[64];
    need(cx, etd_ring_new(cx, &ring));
    name_numbers(entry, 97, 0);
    for (int kind = 0; kind < ET_RECORD_COUNT; kind++) {
        int put = 0, taken = 0;
        r = (struct et_record){.kind = (enum et_record_kind)kind};
        snprintf(name, sizeof name, " %s ", et_record_name(r.kind));
        while (etd_ring_put(ring, &r))
            put++;
        while (etd_ring_take(ring, &got))
            taken += got.kind == r.kind;
        is_int(put, strstr(many, name) ? ETD_RING_SLOTS : ETD_RING_CRITICAL,
               "so many records of the kind%sfind room", name);
        is_int(taken, put, "and come out");
    }
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int put = 0, numbers = 0;
        r = batch(1, entry, row[i].n);
        while (etd_ring_put(ring, &r))
            put++;
        while (etd_ring_take(ring, &got))
            numbers += got.n;
        is_int(put, ETD_RING_SLOTS / row[i].slots, "a record of %d numbers takes %d",
               row[i].n, row[i].slots);
        is_int(numbers, put * row[i].n, "and has all of them");
    }
    etd_ring_free(&ring);
}

static void
test_names(struct et_ctx *cx)
{
    struct et_log_entry entry;
    struct etd_ring *ring;
    struct et_record r;
    need(cx, etd_ring_new(cx, &ring));
    int numbers = 0;
    for (int i = 0; i < ETD_RING_NAMES + 50; i++) {
        snprintf(entry.name, sizeof entry.name, "name/%d", i);
        r = batch(i, &entry, 1);
        if (etd_ring_put(ring, &r) && etd_ring_take(ring, &r))
            numbers += r.n;
    }
    is_int(numbers, ETD_RING_NAMES, "names are kept as long as there is room");
    is_int((int64_t)etd_ring_nameless(ring), 50, "numbers beyond them are counted");
    etd_ring_free(&ring);
}

/* Texts around the length that is kept, one behind the other. */
static void
test_lengths(struct et_ctx *cx)
{
    static char text[2 * ETD_RING_TEXT];
    struct etd_ring *ring;
    struct et_record r;
    int wrong = 0;
    need(cx, etd_ring_new(cx, &ring));
    for (int n = ETD_RING_TEXT - 3; n < ETD_RING_TEXT + 3; n++) {
        const size_t kept = n < ETD_RING_TEXT ? (size_t)n : ETD_RING_TEXT - 1;
        memset(text, 'a' + n % 26, sizeof text);
        text[n] = '\0';
        r = state(n, text);
        const bool came = etd_ring_put(ring, &r) && etd_ring_take(ring, &r) && r.text;
        wrong += !came || strnlen(r.text, ETD_RING_TEXT) != kept ||
                 memcmp(r.text, text, kept) != 0;
    }
    is_int(wrong, 0, "a text is cut where its room ends, with its zero");
    etd_ring_free(&ring);
}

static void
fill_name(char *name, int length)
{
    memset(name, 'x', (size_t)length);
    name[length] = '\0';
}

/* Names that differ from the first, which is the ring's guess for each new one, in one
 * byte, at each place, or in their length by one: how many there are. */
static int
like_names(struct et_log_entry *entry, int length)
{
    int n = 0;
    for (int at = -1; at < length; at++, n++) {
        fill_name(entry[n].name, length);
        if (at >= 0)
            entry[n].name[at] = 'y';
    }
    if (length > 1)
        fill_name(entry[n++].name, length - 1);
    if (length < ET_METRIC_NAME - 1)
        fill_name(entry[n++].name, length + 1);
    return n;
}

static void
test_like_names(struct et_ctx *cx)
{
    static struct et_log_entry entry[ET_METRIC_NAME + 2];
    struct etd_ring *ring;
    struct et_record r;
    int wrong = 0;
    for (int length = 1; length < ET_METRIC_NAME; length++) {
        need(cx, etd_ring_new(cx, &ring));
        const int n = like_names(entry, length);
        r = batch(1, entry, n);
        if (!etd_ring_put(ring, &r) || !etd_ring_take(ring, &r) || r.n != n)
            bail("a record of %d names does not come back", n);
        for (int i = 0; i < n; i++)
            wrong += strcmp(r.entry[i].name, entry[i].name) != 0;
        etd_ring_free(&ring);
    }
    is_int(wrong, 0,
           "names that differ in one byte, or in their length, are different");
}

/* A number whose name is one too many, between two whose names are known. */
static void
test_nameless(struct et_ctx *cx)
{
    struct et_log_entry entry[3] = {{"name/0", 1}, {"one too many", 2}, {"name/9", 3}};
    struct etd_ring *ring;
    struct et_record r;
    need(cx, etd_ring_new(cx, &ring));
    for (int i = 0; i < ETD_RING_NAMES; i++) {
        struct et_log_entry one;
        snprintf(one.name, sizeof one.name, "name/%d", i);
        r = batch(i, &one, 1);
        if (!etd_ring_put(ring, &r) || !etd_ring_take(ring, &r))
            bail("a record does not come back");
    }
    r = batch(1, entry, 3);
    ok(etd_ring_put(ring, &r) && etd_ring_take(ring, &r) && r.n == 2 &&
           strcmp(r.entry[0].name, "name/0") == 0 && r.entry[0].value == 1 &&
           strcmp(r.entry[1].name, "name/9") == 0 && r.entry[1].value == 3,
       "the numbers before and behind one without a name are kept");
    is_int((int64_t)etd_ring_nameless(ring), 1, "and it alone is counted");
    etd_ring_free(&ring);
}

/* ---- two threads ---- */

struct crossing {
    struct etd_ring *ring;
    int put;
    atomic_bool over;
};

static void *
put_many(void *data)
{
    struct crossing *c = data;
    struct et_log_entry entry[3];
    name_numbers(entry, 3, 0);
    for (int i = 0; i < MANY; i++) {
        struct et_record r =
            i % 100 == 99 ? state(c->put, "running") : batch(c->put, entry, 3);
        c->put += etd_ring_put(c->ring, &r);
        if (i % 1000 == 0)
            sched_yield();
    }
    atomic_store(&c->over, true);
    return NULL;
}

static void
test_threads(struct et_ctx *cx)
{
    struct crossing c = {0};
    struct et_record r;
    pthread_t thread;
    int64_t next = 0;
    bool in_order = true;
    need(cx, etd_ring_new(cx, &c.ring));
    if (pthread_create(&thread, NULL, put_many, &c) != 0)
        bail("no thread");
    while (!atomic_load(&c.over))
        if (etd_ring_take(c.ring, &r))
            in_order &= r.ba == next++;
        else
            sched_yield();
    pthread_join(thread, NULL);
    while (etd_ring_take(c.ring, &r))
        in_order &= r.ba == next++;
    is_int(next, c.put, "while another thread puts, each record is taken once");
    ok(in_order, "and in its order");
    is_int(next + (int64_t)etd_ring_dropped(c.ring), MANY,
           "taken and left out are all there were");
    etd_ring_free(&c.ring);
}

/* ---- packets ---- */

static void
test_packets(void)
{
    struct et_log_entry entry[NUMBERS], back[NUMBERS];
    struct etd_bytes b = {0};
    struct etd_packet f;
    struct et_record r, got;
    size_t used;
    name_numbers(entry, NUMBERS, 3);
    r = batch(12, entry, NUMBERS);
    r.text = "train";
    etd_packet_add_record(&b, &r);
    etd_packet_add_line(&b, ET_LOG_WARN, "be careful");
    ok(etd_packet_next(b.at, b.n, &f, &used) == 1 && f.kind == ETD_PACKET_RECORD &&
           etd_packet_record(&f, back, NUMBERS, &got) && got.n == NUMBERS &&
           got.ba == 12 && strcmp(got.text, "train") == 0 &&
           memcmp(&back[69].value, &entry[69].value, 8) == 0,
       "a record is read as it was written");
    ok(!etd_packet_record(&f, back, NUMBERS - 1, &got), "not into too little room");
    int wrong = 0;
    for (size_t n = 0; n < f.n; n++) {
        struct etd_packet cut = {.kind = f.kind, .body = f.body, .n = n};
        wrong += etd_packet_record(&cut, back, NUMBERS, &got);
    }
    is_int(wrong, 0, "a record that is cut off anywhere is none");
    etd_bytes_drop(&b, used);
    ok(etd_packet_next(b.at, b.n, &f, &used) == 1 && f.kind == ETD_PACKET_LINE &&
           f.body[0] == ET_LOG_WARN && f.n == 1 + strlen("be careful"),
       "and so is the line behind it");
    is_int(etd_packet_next(b.at, b.n - 1, &f, &used), 0, "half a packet is waited for");
    is_int(etd_packet_next("\377\377\377\377\001", 5, &f, &used), -1,
           "a length that is none is refused");
    etd_bytes_free(&b);
}

/* ---- signals ---- */

static atomic_int interrupts;

static void
interrupt(int number)
{
    (void)number;
    atomic_fetch_add(&interrupts, 1);
}

/* What comes out of a pipe that nobody reads until the writer has been interrupted. */
struct late_reader {
    int fd;
    size_t n;
    char bytes[1 << 17];
};

static void *
read_late(void *data)
{
    struct late_reader *l = data;
    for (int i = 0; i < 10000 && atomic_load(&interrupts) < 5; i++)
        usleep(1000);
    for (ssize_t got; (got = read(l->fd, l->bytes + l->n, sizeof l->bytes - l->n)) > 0;)
        l->n += (size_t)got;
    return NULL;
}

/* A signal while a packet waits for room in the pipe does not cut it off. */
static void
test_interrupted(struct et_ctx *cx)
{
    enum { LONG = 60000 };
    static struct late_reader late;
    static char body[LONG];
    const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    struct sigaction act = {.sa_handler = interrupt}, before; /* calls do not go on */
    struct etd_sender *s;
    struct etd_packet f;
    sigset_t alarm, mask;
    pthread_t thread;
    size_t used;
    int pipes[2];
    if (pipe(pipes) != 0 || fcntl(pipes[1], F_SETPIPE_SZ, 4096) < 0)
        bail("no pipe");
    memset(body, 'x', sizeof body);
    late.fd = pipes[0];
    need(cx, etd_sender_start(cx, pipes[1], 0, &s));
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, &mask);
    if (pthread_create(&thread, NULL, read_late, &late) != 0)
        bail("no thread");
    sigaction(SIGALRM, &act, &before);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    etd_sender_put(s, ETD_PACKET_OUT, body, sizeof body);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    etd_sender_stop(&s);
    close(pipes[1]);
    pthread_join(thread, NULL);
    close(pipes[0]);
    ok(etd_packet_next(late.bytes, late.n, &f, &used) == 1 && f.n == LONG &&
           memcmp(f.body, body, LONG) == 0,
       "a packet is whole, whatever signals came while it was written (%d)",
       atomic_load(&interrupts));
}

/* A packet of the longest kind, and one a byte longer, which is left out whole, without
 * what stands before and behind it. */
static void
test_longest(void)
{
    static char body[ETD_PACKET_MAX];
    struct etd_bytes b = {0};
    struct etd_packet f;
    size_t used;
    memset(body, 'x', sizeof body);
    etd_packet_add_line(&b, ET_LOG_INFO, "before");
    size_t before = b.n;
    etd_packet_add(&b, ETD_PACKET_LINE, body, ETD_PACKET_MAX - ETD_PACKET_HEAD + 1);
    is_int((int64_t)b.n, (int64_t)before, "a packet that is too long is left out");
    etd_packet_add(&b, ETD_PACKET_LINE, body, ETD_PACKET_MAX - ETD_PACKET_HEAD);
    is_int((int64_t)(b.n - before), ETD_PACKET_MAX, "the longest is not");
    etd_packet_add_line(&b, ET_LOG_INFO, "behind");
    ok(etd_packet_next(b.at, b.n, &f, &used) == 1 && f.n == 1 + strlen("before"),
       "what stands before it can be read,");
    etd_bytes_drop(&b, used);
    ok(etd_packet_next(b.at, b.n, &f, &used) == 1 && used == ETD_PACKET_MAX &&
           f.n == ETD_PACKET_MAX - ETD_PACKET_HEAD,
       "so can it,");
    etd_bytes_drop(&b, used);
    ok(etd_packet_next(b.at, b.n, &f, &used) == 1 && used == b.n &&
           memcmp(f.body + 1, "behind", 6) == 0,
       "and what stands behind it");
    etd_bytes_free(&b);
}

/* ---- the sender ---- */

static void
test_sender(struct et_ctx *cx)
{
    struct et_log_entry entry[3], back[NUMBERS];
    struct etd_sender *s;
    struct et_record r;
    struct etd_packet f;
    int pipes[2], records = 0, others = 0;
    char said[64] = "";
    size_t used, n = 0;
    static char bytes[1 << 20];
    if (pipe(pipes) != 0)
        bail("no pipe");
    need(cx, etd_sender_start(cx, pipes[1], 3, &s));
    name_numbers(entry, 3, 0);
    for (int i = 0; i < 200; i++) {
        r = batch(i, entry, 3);
        etd_sender_sink(s)->write(etd_sender_sink(s), &r);
    }
    etd_sender_line(s, ET_LOG_WARN, "look");
    etd_sender_put(s, ETD_PACKET_OUT, "done", 4);
    etd_sender_stop(&s);
    close(pipes[1]);
    for (ssize_t got; (got = read(pipes[0], bytes + n, sizeof bytes - n)) > 0;)
        n += (size_t)got;
    close(pipes[0]);
    for (size_t at = 0; etd_packet_next(bytes + at, n - at, &f, &used) == 1; at += used)
        if (f.kind == ETD_PACKET_RECORD)
            records += etd_packet_record(&f, back, NUMBERS, &r) && r.rank == 3 &&
                       r.ba == records;
        else
            snprintf(said + strlen(said), sizeof said - strlen(said), "%d:%.*s ",
                     records, (int)f.n - (f.kind == ETD_PACKET_LINE),
                     f.body + (f.kind == ETD_PACKET_LINE)),
                others++;
    is_int(records, 200, "the sender writes every record to its pipe, with its rank");
    is_str(said, "200:look 200:done ", "lines and packets behind those before them");
    is_int(others, 2, "and nothing else");
}

/* ---- when it writes ---- */

static _Atomic double sender_now = 1000;
static atomic_int looks; /* at that clock: at least one each time that it wakes */

static double
sender_clock(void)
{
    atomic_fetch_add(&looks, 1);
    return atomic_load(&sender_now);
}

/* Takes what is in the pipe when the sender has looked some times more. How many bytes
 * that are. */
static int64_t
take_written(int fd)
{
    static char bytes[1 << 18];
    int n = 0, before = atomic_load(&looks);
    double end = eti_system.monotonic() + 120;
    while (atomic_load(&looks) < before + 10)
        if (usleep(1000), eti_system.monotonic() > end)
            bail("the sender's thread stands still");
    return ioctl(fd, FIONREAD, &n) == 0 && n > 0 ? read(fd, bytes, sizeof bytes) : n;
}

static void
put_one(struct etd_sender *s, const struct et_log_entry *entry)
{
    const struct et_record r = batch(1, entry, NUMBERS);
    etd_sender_sink(s)->write(etd_sender_sink(s), &r);
}

static void
test_flush(void)
{
    struct et_log_entry entry[NUMBERS];
    struct eti_seams seams = eti_system;
    struct et_ctx *cx = need_ctx();
    struct etd_sender *s;
    struct etd_bytes one = {0};
    int pipes[2];
    seams.monotonic = sender_clock;
    eti_ctx_set_seams(cx, &seams);
    name_numbers(entry, NUMBERS, 0);
    struct et_record r = batch(1, entry, NUMBERS);
    etd_packet_add_record(&one, &r);
    const int64_t size = (int64_t)one.n;
    if (pipe(pipes) != 0 || fcntl(pipes[1], F_SETPIPE_SZ, 1 << 18) < 0)
        bail("no pipe");
    need(cx, etd_sender_start(cx, pipes[1], 0, &s));
    put_one(s, entry);
    is_int(take_written(pipes[0]), size, "the sender writes the first record");
    put_one(s, entry);
    is_int(take_written(pipes[0]), 0, "it keeps the next");
    atomic_store(&sender_now, 1000 + 3.0 / 64);
    is_int(take_written(pipes[0]), 0, "for less than a twentieth of a second");
    atomic_store(&sender_now, 1000 + 4.0 / 64);
    is_int(take_written(pipes[0]), size, "and then writes it");
    const int64_t n = 65536 / size;
    for (int i = 0; i < n; i++)
        put_one(s, entry);
    is_int(take_written(pipes[0]), 0, "it keeps %d bytes", (int)(n * size));
    put_one(s, entry);
    is_int(take_written(pipes[0]), (n + 1) * size,
           "and writes them, without waiting, when they are more than 64 KiB");
    etd_sender_stop(&s);
    close(pipes[0]);
    close(pipes[1]);
    etd_bytes_free(&one);
    et_ctx_free(&cx);
}

/* A pipe that nobody empties holds the sender, never the one who puts. */
static void
test_stuck(struct et_ctx *cx)
{
    struct et_log_entry entry[3];
    struct etd_sender *s;
    int pipes[2], held = 0;
    if (pipe(pipes) != 0)
        bail("no pipe");
    need(cx, etd_sender_start(cx, pipes[1], 0, &s));
    name_numbers(entry, 3, 0);
    for (int i = 0; i < MANY; i++) {
        struct et_record r = batch(i, entry, 3);
        etd_sender_sink(s)->write(etd_sender_sink(s), &r);
    }
    /* Who waited for the pipe would still do so: it is full, and nobody reads it. */
    int room = fcntl(pipes[1], F_GETPIPE_SZ);
    for (double end = eti_monotonic(cx) + 120; held < room && eti_monotonic(cx) < end;
         usleep(1000))
        (void)ioctl(pipes[0], FIONREAD, &held);
    ok(room > 0 && held == room, "200,000 records do not wait for a stuck pipe (%d)",
       held);
    close(pipes[0]); /* its reader dies */
    etd_sender_stop(&s);
    ok(true, "and its end is noticed");
    close(pipes[1]);
}

/* All of the file FD: *N bytes, for the caller to free. */
static char *
read_file(int fd, size_t *n)
{
    off_t end = lseek(fd, 0, SEEK_END);
    char *all = malloc((size_t)end + 1);
    if (!all || pread(fd, all, (size_t)end, 0) != end)
        bail("cannot read what was sent");
    *n = (size_t)end;
    return all;
}

/* How often TEXT stands in the file FD. */
static int
count_text(int fd, const char *text)
{
    size_t n;
    char *all = read_file(fd, &n), *end = all + n;
    int found = 0;
    for (char *p = all; (p = memmem(p, (size_t)(end - p), text, strlen(text))) != NULL;
         p++)
        found++;
    free(all);
    return found;
}

/* How many records there was no room for, as the last packet in the file FD says; -1:
 * it does not. */
static int64_t
last_dropped(int fd)
{
    struct et_log_entry entry[NUMBERS];
    struct et_record r = {0};
    struct etd_packet f;
    size_t n, used;
    char *all = read_file(fd, &n);
    bool is_record = false;
    for (size_t at = 0; etd_packet_next(all + at, n - at, &f, &used) == 1; at += used)
        is_record = etd_packet_record(&f, entry, NUMBERS, &r);
    free(all);
    return is_record && r.kind == ET_RECORD_HEALTH && r.n == 1 &&
                   strcmp(entry[0].name, "dropped") == 0
               ? (int64_t)entry[0].value
               : -1;
}

/* In place of the pipe. */
static int
open_file(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s/sent", scratch_folder());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        bail("no file");
    return fd;
}

/* So many seconds go by, and then the sender has time. */
static void
pass(double seconds)
{
    const int before = atomic_load(&looks);
    double end = eti_system.monotonic() + 120;
    atomic_store(&sender_now, atomic_load(&sender_now) + seconds);
    while (atomic_load(&looks) < before + 10)
        if (usleep(1000), eti_system.monotonic() > end)
            bail("the sender's thread stands still");
}

/* What FD has of health: "NAME=VALUE of RANK at TIME", a line for each record. */
static const char *
read_health(int fd)
{
    static char text[1024];
    struct et_log_entry entry[NUMBERS];
    struct et_record r;
    struct etd_packet f;
    size_t n, used;
    char *all = read_file(fd, &n);
    text[0] = '\0';
    for (size_t at = 0; etd_packet_next(all + at, n - at, &f, &used) == 1; at += used)
        if (etd_packet_record(&f, entry, NUMBERS, &r) && r.kind == ET_RECORD_HEALTH)
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     "%s=%g of %d at %g\n", entry[r.n - 1].name, entry[r.n - 1].value,
                     r.rank, r.t);
    free(all);
    return text;
}

static double
sender_wall(void)
{
    return 500 + sender_clock();
}

/* What a rank says of itself: how often it was asked; every fourth time nothing. */
static bool
say_health(void *data, struct et_record *r, struct et_log_entry *entry, int room)
{
    int *asked = data;
    if (++*asked % 4 == 0)
        return false;
    snprintf(entry->name, sizeof entry->name, "room/%d", room);
    entry->value = *asked;
    r->entry = entry;
    r->n = 1;
    return true;
}

/* A rank is asked for its health each second, for the first time after one. */
static void
test_health(void)
{
    struct eti_seams seams = eti_system;
    struct et_ctx *cx = need_ctx();
    struct etd_sender *s;
    int fd = open_file(), asked = 0;
    seams.monotonic = sender_clock;
    seams.wall = sender_wall;
    eti_ctx_set_seams(cx, &seams);
    atomic_store(&sender_now, 2000);
    need(cx, etd_sender_start(cx, fd, 5, &s));
    pass(10); /* nobody asks yet */
    etd_sender_watch(s, say_health, &asked);
    pass(0);
    pass(0.875);
    pass(0.125);
    pass(0.875);
    for (int i = 0; i < 4; i++)
        pass(1);
    etd_sender_stop(&s);
    is_str(read_health(fd),
           "room/32=1 of 5 at 2511\n"
           "room/32=2 of 5 at 2512.88\n"
           "room/32=3 of 5 at 2513.88\n"
           "room/32=5 of 5 at 2515.88\n",
           "a rank says how it is once a second, with its rank and the time");
    close(fd);
    et_ctx_free(&cx);
}

/* Records that there is no room for are told of when their number has changed. */
static void
test_dropped(void)
{
    struct et_log_entry entry[3];
    struct eti_seams seams = eti_system;
    struct et_ctx *cx = need_ctx();
    struct etd_sender *s;
    int fd = open_file(), told = 0;
    seams.monotonic = sender_clock;
    eti_ctx_set_seams(cx, &seams);
    name_numbers(entry, 3, 0);
    need(cx, etd_sender_start(cx, fd, 3, &s));
    etd_sender_watch(s, NULL, NULL);
    for (int times = 0; told == 0 && times < 1000; times++) {
        for (int i = 0; i < 3 * ETD_RING_SLOTS; i++) {
            const struct et_record r = batch(i, entry, 3);
            etd_sender_sink(s)->write(etd_sender_sink(s), &r);
        }
        pass(1);
        pass(1);
        told = count_text(fd, "dropped");
    }
    is_int(told, 1, "how many records were left out is told");
    for (int i = 0; i < 4; i++)
        pass(1);
    etd_sender_stop(&s);
    is_int(count_text(fd, "dropped"), 1, "and not again while it is the same");
    ok(strncmp(read_health(fd), "dropped=", 8) == 0 &&
           strstr(read_health(fd), " of 3 at "),
       "with the rank that left them out");
    close(fd);
    et_ctx_free(&cx);
}

/* What the training thread sends itself is written when the call returns, behind all
 * records before it. (The clock stands still: nothing else is written.) */
static void
test_put(void)
{
    struct eti_seams seams = eti_system;
    struct et_ctx *cx = need_ctx();
    struct etd_sender *s;
    struct etd_packet f;
    char kinds[64] = "";
    size_t n, used;
    int fd = open_file();
    const struct et_record r = state(1, "running");
    seams.monotonic = sender_clock;
    eti_ctx_set_seams(cx, &seams);
    need(cx, etd_sender_start(cx, fd, 0, &s));
    pass(1);
    etd_sender_put(s, ETD_PACKET_OPEN, "a", 1); /* from now on nothing is due */
    etd_sender_sink(s)->write(etd_sender_sink(s), &r);
    etd_sender_put(s, ETD_PACKET_END, "bc", 2);
    char *all = read_file(fd, &n);
    for (size_t at = 0; etd_packet_next(all + at, n - at, &f, &used) == 1; at += used)
        snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), " %s",
                 f.kind == ETD_PACKET_OPEN     ? "open"
                 : f.kind == ETD_PACKET_RECORD ? "record"
                 : f.kind == ETD_PACKET_END    ? "end"
                                               : "?");
    is_str(kinds, " open record end", "a packet is written at once, in its order");
    free(all);
    etd_sender_stop(&s);
    close(fd);
    et_ctx_free(&cx);
}

/* Ranks that end as soon as they have begun. (The thread of most will not have run by
 * then.) */
static void
test_last(struct et_ctx *cx)
{
    enum { RANKS = 50 };
    const struct et_record r = state(1, "over so soon");
    struct etd_sender *s;
    int fd = open_file();
    for (int i = 0; i < RANKS; i++) {
        need(cx, etd_sender_start(cx, fd, 0, &s));
        etd_sender_sink(s)->write(etd_sender_sink(s), &r);
        etd_sender_line(s, ET_LOG_ERROR, "and this is why");
        etd_sender_stop(&s);
    }
    is_int(count_text(fd, r.text), RANKS, "the last record of a rank is sent");
    is_int(count_text(fd, "and this is why"), RANKS, "and its last line");
    close(fd);
}

/* More of what is told once than there is room for, and commands among it. */
static void
test_commands(struct et_ctx *cx)
{
    enum { COMMANDS = 50 };
    struct etd_sender *s;
    int fd = open_file();
    need(cx, etd_sender_start(cx, fd, 0, &s));
    struct et_sink *sink = etd_sender_sink(s);
    const struct et_record command = {.kind = ET_RECORD_COMMAND,
                                      .text = "uid:7 algo mixup on -> joined"};
    for (int i = 0; i < COMMANDS; i++) {
        for (int k = 0; k < 2 * ETD_RING_CRITICAL; k++) {
            const struct et_record r = state(k, "evaluating");
            sink->write(sink, &r);
        }
        sink->write(sink, &command);
    }
    etd_sender_stop(&s);
    is_int(count_text(fd, command.text), COMMANDS,
           "a command is sent, also where there is no room for states");
    is_int(count_text(fd, "evaluating") + last_dropped(fd),
           COMMANDS * 2 * ETD_RING_CRITICAL,
           "how many those are is the last thing that is sent");
    close(fd);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    (void)signal(SIGPIPE, SIG_IGN);
    test_order(cx);
    test_heads(cx);
    test_texts(cx);
    test_overflow(cx);
    test_rooms(cx);
    test_names(cx);
    test_lengths(cx);
    test_like_names(cx);
    test_nameless(cx);
    test_threads(cx);
    test_packets();
    test_longest();
    test_sender(cx);
    test_interrupted(cx);
    test_flush();
    test_stuck(cx);
    test_dropped();
    test_health();
    test_put();
    test_last(cx);
    test_commands(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
