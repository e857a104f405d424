/* SPDX-License-Identifier: Apache-2.0 */
/* talk.c: see talk.h. */
#include "config.h"

#include "t/dist/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "t/tap.h"

enum {
    CREDIT = 1 << 16, /* that WATCH has, at most; */
    OFTEN = 100,      /* it gives some after so many messages, which wakes the hub */
    PATIENCE = 120,   /* seconds of the system's clock: then it will never come */
};

struct talk_desk *desk;
static struct etd_head whom; /* the run, and its start, of the last WELCOME */
static char said[ETD_CHUNK_BYTES + 1024];

/* ---- the hub's seams ---- */

static double
desk_clock(void)
{
    return atomic_load(&desk->now);
}

static double
desk_wall(void)
{
    return 1.7e9 + desk_clock();
}

/* Of the hub alone. */
static double
hub_clock(void)
{
    atomic_store(&desk->dumpable, prctl(PR_GET_DUMPABLE));
    return desk_clock();
}

static void
hub_reach(const char *point)
{
    atomic_fetch_add(&desk->turns, strcmp(point, "hub.turn") == 0 ||
                                       strcmp(point, "worker.turn") == 0);
}

static int
hub_sync(int fd)
{
    if (atomic_load(&desk->sync_fails)) {
        errno = EIO;
        return -1;
    }
    atomic_fetch_add(&desk->syncs, 1);
    return eti_system.file.sync(fd);
}

static void
start(struct house *h, struct talk *watch)
{
    int code = -1;
    if (!house_start(h, &code))
        bail("no hub (%d)", code);
    *watch = talk_open(h);
    if (talk_hello(watch, 0, CREDIT, "watch") != ETD_WELCOME)
        bail("the hub does not serve");
}

void
talk_begin(struct house *h, struct talk *watch)
{
    static struct eti_seams hub_seams, own_seams;
    desk = mmap(NULL, sizeof *desk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (desk == MAP_FAILED)
        bail("no memory to share");
    atomic_store(&desk->now, 1000);
    atomic_store(&desk->dumpable, -1);
    own_seams = eti_system;
    own_seams.monotonic = desk_clock;
    own_seams.wall = desk_wall;
    hub_seams = own_seams;
    hub_seams.monotonic = hub_clock;
    hub_seams.reach = hub_reach;
    hub_seams.file.sync = hub_sync;
    house_begin(h);
    h->seams = &hub_seams;
    eti_ctx_set_seams(h->cx, &own_seams);
    house_tell(h, 10);
    start(h, watch);
}

void
talk_restart(struct house *h, struct talk *watch)
{
    talk_close(watch);
    house_kill(h);
    start(h, watch);
}

int
talk_run(struct house *h, struct talk *watch, double pause,
         const struct talk_limit *limit, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        diag("%s %s", limit[i].section, limit[i].limit);
        talk_pass(watch, pause);
        limit[i].test();
    }
    talk_close(watch);
    house_end(h);
    return done();
}

/* ---- saying ---- */

struct talk
talk_open(struct house *h)
{
    struct talk t = {.house = h};
    const struct etd_channel_options o = {.target = h->socket};
    if (etd_channel_open(h->cx, &o, &t.line) != ET_OK)
        bail("%s", et_error_get(h->cx)->message);
    return t;
}

void
talk_close(struct talk *t)
{
    etd_channel_close(&t->line);
}

struct etd_out
talk_say(enum etd_kind kind, int n_keys)
{
    struct etd_out o;
    struct etd_head head = whom;
    head.kind = kind;
    etd_begin(&o, said, sizeof said, &head, n_keys);
    return o;
}

struct etd_head
talk_head(void)
{
    return whom;
}

void
talk_send_bytes(struct talk *t, const void *bytes, size_t n)
{
    if (n == 0 || !etd_channel_send(t->line, bytes, n))
        bail("%zu bytes cannot be sent", n);
}

void
talk_send(struct talk *t, struct etd_out *o)
{
    talk_send_bytes(t, o->bytes, etd_end(o));
}

enum etd_kind
talk_hello(struct talk *t, int64_t after, int64_t credit, const char *as)
{
    struct etd_out o =
        talk_say(ETD_HELLO, 1 + (after >= 0) + (credit >= 0) + (as != NULL));
    etd_put_bool(&o, "stream", after >= -1);
    if (after >= 0)
        etd_put_int(&o, "after", after);
    if (credit >= 0)
        etd_put_int(&o, "credit", credit);
    if (as)
        etd_put_text(&o, "as", as);
    talk_send(t, &o);
    return talk_until(t, ETD_WELCOME);
}

static void
send_ping(struct talk *t, int64_t credit)
{
    struct etd_out o = talk_say(ETD_PING, credit > 0);
    if (credit > 0)
        etd_put_int(&o, "credit", credit);
    talk_send(t, &o);
}

enum etd_kind
talk_ping(struct talk *t, int64_t credit)
{
    send_ping(t, credit);
    return talk_until(t, ETD_PONG);
}

/* ---- hearing ---- */

static void
count(struct talk *t)
{
    bool is_record = (int)t->f.head.kind < ET_RECORD_COUNT;
    t->records += is_record;
    t->bytes += is_record ? (int64_t)t->n : 0;
    t->seq = is_record ? t->f.head.hseq : t->seq;
    t->whole = is_record ? !etd_get_bool(&t->f.body, "more", false) : t->whole;
    t->chunks += t->f.head.kind == ETD_SNAP_CHUNK;
    if (t->f.head.kind == ETD_SNAP_BEGIN) {
        t->seq = etd_get_int(&t->f.body, "s", -1);
        t->whole = true;
    }
    if (t->f.head.kind == ETD_WELCOME)
        whom = t->f.head;
    if (t->f.head.kind == ETD_REFUSE || t->f.head.kind == ETD_BYE)
        etd_get_text(&t->f.body, "code", t->code, sizeof t->code);
}

enum etd_kind
talk_hear(struct talk *t)
{
    const char *bytes;
    struct etd_fault fault;
    double end = eti_system.monotonic() + PATIENCE;
    while (!t->gone && eti_system.monotonic() < end) {
        struct pollfd p = {.fd = etd_channel_fd(t->line), .events = POLLIN};
        enum etd_got got = etd_channel_receive(t->line, &bytes, &t->n);
        if (got == ETD_GOT_NOTHING) {
            (void)poll(&p, 1, 100);
        } else if (got != ETD_GOT_MESSAGE) {
            t->gone = true;
        } else if (etd_read(bytes, t->n, &t->f, &fault) != ET_OK) {
            bail("the hub says what is no frame: %s", fault.why);
        } else {
            count(t);
            return t->f.head.kind;
        }
    }
    if (!t->gone)
        bail("the hub says nothing more");
    return ETD_KIND_COUNT;
}

bool
talk_is_over(enum etd_kind heard)
{
    return heard == ETD_REFUSE || heard == ETD_BYE || heard == ETD_KIND_COUNT;
}

enum etd_kind
talk_until(struct talk *t, enum etd_kind kind)
{
    for (;;) {
        enum etd_kind heard = talk_hear(t);
        if (heard == kind || talk_is_over(heard))
            return heard;
    }
}

/* ---- the one who watches ---- */

/* WATCH hears records up to the log's last. */
static void
catch_up(struct talk *watch)
{
    while (watch->seq < watch->house->log.seq || !watch->whole) {
        int64_t before = watch->records;
        if (talk_is_over(talk_hear(watch)))
            bail("the hub has left who watches: %s", watch->code);
        watch->spent += watch->records - before;
        if (watch->spent < OFTEN)
            continue;
        send_ping(watch, watch->spent);
        watch->spent = 0;
    }
}

void
talk_tell(struct talk *watch, int n, int numbers)
{
    enum { MOST = 4096, PART = 2 << 20, BYTES = 106 };
    static struct et_log_entry entry[MOST];
    struct house *h = watch->house;
    const struct et_record r = {
        .kind = ET_RECORD_LOG, .t = 1e9, .text = "", .entry = entry, .n = numbers};
    for (int i = 0; i < numbers && i < MOST; i++)
        snprintf(entry[i].name, sizeof entry->name, "%0*d", ET_METRIC_NAME - 1, i);
    for (int i = 0; i < n; i++) {
        eti_events_write(&h->log, &r);
        if (i % (PART / (BYTES * (numbers + 1))) == 0) {
            eti_events_flush(&h->log);
            catch_up(watch);
        }
    }
    eti_events_flush(&h->log);
    catch_up(watch);
}

/* A turn of the hub's loop begins after this, and ends. What is no frame wakes it. */
void
talk_settle(const struct house *h)
{
    int turns = atomic_load(&desk->turns);
    double end = eti_system.monotonic() + PATIENCE;
    while (atomic_load(&desk->turns) < turns + 2) {
        if (eti_system.monotonic() > end)
            bail("the hub's loop stands still");
        (void)!send(h->supervisor, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        usleep(200);
    }
}

void
talk_pass(struct talk *watch, double seconds)
{
    while (seconds > 0) {
        double step = seconds < 2.5 ? seconds : 2.5;
        atomic_store(&desk->now, atomic_load(&desk->now) + step);
        if (talk_ping(watch, 0) != ETD_PONG)
            bail("the hub has left who watches: %s", watch->code);
        talk_settle(watch->house);
        seconds -= step;
    }
}

/* ---- how much they may say ---- */

/* N messages at one moment, of which the last is a PING and the others mean nothing.
 * Are they taken in? */
static bool
say_many(struct talk *t, int n)
{
    for (int i = 1; i < n; i++) {
        struct etd_out o = talk_say(ETD_PING, 0);
        memcpy(memmem(o.bytes, o.used, "PING", 4), "LATE", 4);
        talk_send(t, &o);
    }
    return talk_ping(t, 0) == ETD_PONG;
}

static void
test_burst(struct talk *t, double pause, int n)
{
    ok(say_many(t, 200), "200 messages of a viewer at one moment are taken in");
    atomic_store(&desk->now, atomic_load(&desk->now) + pause);
    ok(say_many(t, n), "%g s later %d more", pause, n);
    is_int((int)talk_ping(t, 0), ETD_BYE, "with one beyond them it is left");
    is_str(t->code, "RATE", "and told why");
}

void
talk_test_rate(struct talk *a, struct talk *b)
{
    test_burst(a, 0.5, 100);
    test_burst(b, 5, 200);
}
