/* SPDX-License-Identifier: Apache-2.0 */
/* hub.c: see hub.h. One loop: the log, the viewers, the supervisor; and a thread that
 * reads history while it is asked for (hist.h).
 *
 * A ROUTER with ZMQ_ROUTER_MANDATORY, and nothing sent to it waits: a connection that
 * is full, or gone, says so (PUB would drop messages in silence). */
#include "config.h"

#include "dist/hub/hub.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/journal/events.h"
#include "core/library/facts.h"
#include "dist/hub/hub_parts.h"
#include "dist/wire/errors.h"

enum {
    AT_ONCE = 256,         /* messages taken in before the log is looked at again */
    FAR_BEHIND = 32 << 20, /* bytes: BYE{LAGGED} at once */
    PREPARE = 50,          /* slices of the log that are read before it listens */
    LAST = 50,             /* and at its end, at most */
    READING = 5,           /* ms until it is looked whether history was read */
};
static const double STRANGERS = 1000; /* a second of others that are looked at */
static const double QUESTIONS = 20;   /* a second about history */
static const double BEHIND = 10; /* seconds out of the ring, or without taking a part of
                                    a snapshot: BYE{LAGGED} */
static const double SLICE = 0.02; /* seconds of reading the log between viewers */
static const double LOOK = 0.5;   /* seconds between looks at run.json */

struct etd_head
etd_hub_head(const struct etd_hub *h, enum etd_kind kind)
{
    struct etd_head head = {
        .kind = kind,
        .incarnation = etd_follow_model(h->follow)->incarnation,
        .t_mono_ns = (int64_t)(1e9 * eti_monotonic(h->cx)),
    };
    memcpy(head.run, h->run, sizeof head.run);
    return head;
}

/* ---- the conversation ---- */

/* Adds two keys if somebody has taken the run. */
static void
put_lease(struct etd_out *o, const struct etd_peer *p, const char *lease)
{
    if (!lease[0])
        return;
    etd_put_text(o, "lease", lease);
    etd_put_bool(o, "mine", strcmp(lease, p->who) == 0);
}

static void
send_welcome(struct etd_hub *h, struct etd_peer *p, bool goes_on)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    const struct etd_head head = etd_hub_head(h, ETD_WELCOME);
    const char *lease = etd_control_lease(h);
    etd_begin(&o, bytes, sizeof bytes, &head, 7 + 2 * !!lease[0]);
    etd_put_int(&o, "minor", ETD_MINOR);
    etd_put_text(&o, "name", h->name);
    etd_put_text(&o, "role", "operator"); /* the owner's uid: the filter saw to it */
    etd_put_int(&o, "beat_ms", (int64_t)(1000 * ETD_BEAT));
    etd_put_int(&o, "head", etd_follow_model(h->follow)->seq);
    etd_put_bool(&o, "goes_on", goes_on);
    etd_put_int(&o, "clients", ETD_CLIENTS);
    put_lease(&o, p, lease);
    (void)etd_hub_send(h, &p->to, bytes, etd_end(&o));
}

static struct etd_peer *
add_peer(struct etd_hub *h, const struct etd_route *from)
{
    double now = eti_monotonic(h->cx);
    for (struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++) {
        if (p->used)
            continue;
        *p = (struct etd_peer){
            .used = true,
            .to = *from,
            .heard = now,
            .said = now,
            .messages = {ETD_MESSAGES, now},
            .questions = {QUESTIONS, now},
        };
        return p;
    }
    return NULL;
}

/* Forgets viewers whose connection is gone, which shows only when something is sent to
 * them. Viewers that were killed would hold their places for 10 s otherwise. */
static void
sweep(struct etd_hub *h)
{
    char bytes[256];
    struct etd_out o;
    const struct etd_head head = etd_hub_head(h, ETD_PING);
    double now = eti_monotonic(h->cx);
    if (now - h->swept < ETD_SWEEP)
        return;
    h->swept = now;
    etd_begin(&o, bytes, sizeof bytes, &head, 0);
    size_t n = etd_end(&o);
    for (struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++)
        if (p->used)
            (void)etd_hub_send(h, &p->to, bytes, n);
}

static void
on_hello(struct etd_hub *h, struct etd_peer *p, const struct etd_route *from,
         const struct etd_frame *f)
{
    char as[ETD_WORD];
    if (p) { /* a viewer that says HELLO twice has lost count of what it was sent */
        etd_hub_drop(h, p, "UNKNOWN",
                     "HELLO begins a conversation, and this has begun");
        return;
    }
    p = add_peer(h, from);
    if (!p) {
        sweep(h);
        p = add_peer(h, from);
    }
    if (!p) {
        etd_hub_send_end(h, from, ETD_REFUSE, "FULL", "64 viewers are here already");
        return;
    }
    etd_get_text(&f->body, "as", as, sizeof as);
    /* It becomes a word of the run's events. */
    for (char *at = as; *at; at++)
        if (*at <= ' ' || *at > '~')
            *at = '_';
    int length = snprintf(p->who, sizeof p->who, "uid:%ld", (long)getuid());
    if (as[0])
        snprintf(p->who + length, sizeof p->who - (size_t)length, "/%.*s",
                 ETD_WORD - 32, as);
    p->streams = etd_get_bool(&f->body, "stream", true);
    p->facts_version = 0;
    int64_t credit = etd_get_int(&f->body, "credit", ETD_CREDIT);
    p->credit = credit < 0                      ? 0
                : credit < ETD_BACKLOG_MESSAGES ? credit
                                                : ETD_BACKLOG_MESSAGES;
    static const unsigned char any[ETD_RUN_ID];
    int64_t after = etd_get_int(&f->body, "after", -1);
    bool same = memcmp(f->head.run, h->run, ETD_RUN_ID) == 0 ||
                (after == 0 && memcmp(f->head.run, any, ETD_RUN_ID) == 0);
    bool goes_on = p->streams && etd_stream_begin(h, p, same ? after : -1);
    send_welcome(h, p, goes_on);
}

static void
on_ping(struct etd_hub *h, struct etd_peer *p, const struct etd_frame *f)
{
    char bytes[ETD_CONTROL_BYTES];
    unsigned char digest[ETD_DIGEST];
    struct etd_out o;
    const struct etd_head head = etd_hub_head(h, ETD_PONG);
    int64_t credit = etd_get_int(&f->body, "credit", 0);
    const char *lease = etd_control_lease(h);
    if (credit > 0 && credit <= ETD_BACKLOG_MESSAGES)
        p->credit += credit;
    if (p->credit > ETD_BACKLOG_MESSAGES)
        p->credit = ETD_BACKLOG_MESSAGES;
    etd_stream_pump(h, p);
    if (!p->used)
        return;
    /* A digest is of use only to a viewer that has been sent everything. */
    bool wants = etd_get_bool(&f->body, "digest", false) && p->streams && !p->snap &&
                 !p->wants_snap && p->next == h->ring.to && etd_hub_digest(h, digest);
    etd_begin(&o, bytes, sizeof bytes, &head, 1 + wants + 2 * !!lease[0]);
    etd_put_int(&o, "at", etd_follow_model(h->follow)->seq);
    if (wants)
        etd_put_bin(&o, "digest", digest, sizeof digest);
    put_lease(&o, p, lease);
    (void)etd_hub_send(h, &p->to, bytes, etd_end(&o));
}

static void
on_hist(struct etd_hub *h, struct etd_peer *p, const struct etd_frame *f)
{
    if (!etd_bucket_take(&p->questions, QUESTIONS, eti_monotonic(h->cx)))
        return;
    if (!p->hist && etd_hist_new(h->cx, h->directory, &h->readers, &p->hist) != ET_OK)
        et_error_clear(h->cx);
    if (p->hist)
        etd_hist_ask(p->hist, f);
}

static void
answer_hist(struct etd_hub *h, struct etd_peer *p)
{
    const struct etd_head head = etd_hub_head(h, ETD_HIST);
    if (p->n_outbox > 0) /* it takes nothing now: nothing more is read for it */
        return;
    size_t n = etd_hist_answer(p->hist, &head, h->bytes, sizeof h->bytes);
    if (n == 0)
        return;
    etd_hist_sent(p->hist);
    (void)etd_hub_send(h, &p->to, h->bytes, n);
}

static void
on_frame(struct etd_hub *h, struct etd_peer *p, const struct etd_frame *f)
{
    switch (f->head.kind) {
    case ETD_PING:
        on_ping(h, p, f);
        break;
    case ETD_NACK:
        etd_stream_rewind(h, p, etd_get_int(&f->body, "from", 0));
        break;
    case ETD_HIST:
        on_hist(h, p, f);
        break;
    case ETD_CMD:
        etd_control_command(h, p, f);
        break;
    case ETD_BYE:
        etd_hub_forget(h, p);
        break;
    default: /* of a later version, or not for us */
        break;
    }
}

static void
on_message(struct etd_hub *h, const struct etd_route *from, const void *bytes, size_t n)
{
    struct etd_frame f;
    struct etd_fault fault = {.why = "longer than what a hub takes in"};
    char text[ETD_TEXT];
    double now = eti_monotonic(h->cx);
    struct etd_peer *p = etd_hub_find(h, from);
    if (p) {
        p->heard = now;
        if (!etd_bucket_take(&p->messages, ETD_MESSAGES, now)) {
            etd_hub_drop(h, p, "RATE", "more than 200 messages a second");
            return;
        }
    } else if (!etd_bucket_take(&h->strangers, STRANGERS, now)) {
        return;
    }
    et_status status =
        n <= ETD_INBOUND_BYTES ? etd_read(bytes, n, &f, &fault) : ET_EFORMAT;
    if (status == ET_OK && f.head.kind == ETD_HELLO) {
        on_hello(h, p, from, &f);
    } else if (status == ET_OK && p) {
        on_frame(h, p, &f);
    } else if (status == ET_OK) {
        if (f.head.kind != ETD_BYE)
            etd_hub_send_end(h, from, ETD_BYE, "UNKNOWN", "say HELLO first");
    } else if (status == ET_ENOTSUP) {
        snprintf(text, sizeof text, "hub speaks protocol %d, this is %d", ETD_MAJOR,
                 f.head.major);
        etd_hub_send_end(h, from, ETD_REFUSE, "VERSION", text);
        if (p)
            etd_hub_forget(h, p);
    } else {
        h->n_malformed++;
        snprintf(text, sizeof text, "malformed at byte %zu: %s", fault.at, fault.why);
        if (p)
            etd_hub_drop(h, p, "MALFORMED", text);
        else
            etd_hub_send_end(h, from, ETD_BYE, "MALFORMED", text);
    }
}

/* What has other parts than a frame is dropped. */
static bool
receive_one(struct etd_hub *h)
{
    struct etd_route from;
    zmq_msg_t body;
    bool right;
    if (!etd_route_receive(h->router, &from, &body, &right))
        return false;
    if (right)
        on_message(h, &from, zmq_msg_data(&body), zmq_msg_size(&body));
    zmq_msg_close(&body);
    return true;
}

/* ---- the supervisor ---- */

static void
receive_supervisor(struct etd_hub *h)
{
    char bytes[ETD_CONTROL_BYTES];
    for (;;) {
        struct etd_frame f;
        struct etd_fault fault;
        ssize_t n = recv(h->supervisor, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n <= 0) {
            h->ended = true;
            return;
        }
        if (etd_read(bytes, (size_t)n, &f, &fault) != ET_OK)
            continue;
        if (f.head.kind == ETD_BYE)
            h->ended = true;
        else
            etd_control_answer(h, &f);
    }
}

/* ---- the loop ---- */

static void
look_after(struct etd_hub *h, struct etd_peer *p, double now)
{
    int64_t behind = etd_stream_behind(h, p);
    if (now - p->heard >= ETD_DISCONNECTED) {
        etd_hub_drop(h, p, "SILENT", "nothing was heard for 10 s");
        return;
    }
    bool is_out = behind >= ETD_BACKLOG_BYTES;
    if (!is_out)
        p->behind_since = 0;
    else if (p->behind_since == 0)
        p->behind_since = now;
    bool stuck = p->snap && now - p->moved >= BEHIND;
    if (behind >= FAR_BEHIND || stuck || (is_out && now - p->behind_since >= BEHIND))
        etd_hub_drop(h, p, "LAGGED", "records came faster than they were taken");
}

/* The log that stands there now: one that was removed is made again. */
static bool
watch_again(const struct etd_hub *h)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/events.log", h->directory);
    return inotify_add_watch(h->inotify, path, IN_MODIFY) >= 0;
}

/* Reads run.json if it is another one now. AT_ONCE: the run ends, this is the last
 * time. */
static void
look_at_facts(struct etd_hub *h, bool at_once)
{
    char path[PATH_MAX + 16];
    struct stat st;
    json_t *facts;
    double now = eti_monotonic(h->cx);
    if (now - h->facts_at < LOOK && !at_once)
        return;
    h->facts_at = now;
    if (h->inotify >= 0)
        (void)watch_again(h);
    snprintf(path, sizeof path, "%s/run.json", h->directory);
    if (stat(path, &st) != 0)
        return;
    const int64_t stamp[3] = {(int64_t)st.st_ino, st.st_size,
                              st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec};
    if (memcmp(stamp, h->facts_stamp, sizeof stamp) == 0)
        return;
    if (eti_facts_read_state(h->cx, h->directory, &facts) != ET_OK) {
        et_error_clear(h->cx); /* it is being written: the next look finds it */
        return;
    }
    memcpy(h->facts_stamp, stamp, sizeof stamp);
    free(h->facts);
    h->facts = json_dumps(facts, JSON_COMPACT);
    h->facts_version++;
    json_decref(facts);
}

/* Tells viewers of facts that are newer than their snapshots, or may be. */
static void
tell_facts(struct etd_hub *h)
{
    const struct etd_head head = etd_hub_head(h, ETD_FACTS);
    for (struct etd_peer *p = h->peer; h->facts && p < h->peer + ETD_PEERS; p++) {
        struct etd_out o;
        bool waits = p->snap || p->wants_snap; /* for what may be older */
        if (waits || !p->used || !p->streams || p->facts_version == h->facts_version) {
            p->facts_version = waits ? 0 : p->facts_version;
            continue;
        }
        p->facts_version = h->facts_version;
        etd_begin(&o, h->bytes, sizeof h->bytes, &head, 1);
        etd_put_bin(&o, "facts", h->facts, strlen(h->facts));
        (void)etd_hub_send(h, &p->to, h->bytes, etd_end(&o));
    }
}

static et_status
follow_log(struct etd_hub *h)
{
    char event[sizeof(struct inotify_event) + NAME_MAX + 1];
    if (h->inotify >= 0)
        while (read(h->inotify, event, sizeof event) > 0)
            ;
    et_status status = etd_follow_read(h->follow, SLICE, 0, &h->left);
    if (status == ET_ENOMEM)
        return status;
    if (status != ET_OK) /* damage: what is before it is served */
        et_error_clear(h->cx);
    return ET_OK;
}

/* Reads SLICES slices of the log. They are counted, not timed: a second in which the
 * machine was suspended reads nothing. */
static et_status
follow_slices(struct etd_hub *h, int slices)
{
    int64_t before = -1;
    for (int i = 0; i < slices && h->left != before && h->left != 0; i++) {
        before = h->left;
        ET_TRY(follow_log(h));
    }
    return ET_OK;
}

static et_status
turn(struct etd_hub *h)
{
    zmq_pollitem_t item[] = {
        {.socket = h->router, .events = ZMQ_POLLIN},
        {.fd = h->supervisor, .events = ZMQ_POLLIN},
        {.fd = h->inotify, .events = ZMQ_POLLIN},
    };
    int64_t before = etd_follow_model(h->follow)->seq;
    eti_reach(h->cx, "hub.turn");
    ET_TRY(follow_log(h));
    bool reads_on = h->left > 0 && etd_follow_model(h->follow)->seq != before;
    h->blocked = false;
    for (struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++)
        if (p->used)
            etd_stream_pump(h, p);
    int n = h->inotify >= 0 ? 3 : 2;
    bool is_asked = false;
    for (const struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++)
        is_asked = is_asked || (p->used && etd_hist_is_asked(p->hist));
    long wait = reads_on                       ? 0
                : is_asked                     ? READING
                : h->blocked || h->inotify < 0 ? 20
                                               : 250;
    if (zmq_poll(item, n, wait) < 0 && zmq_errno() != EINTR)
        return ET_FAIL(h->cx, ET_EIO, "the hub cannot wait: %s",
                       zmq_strerror(zmq_errno()));
    for (int i = 0; i < AT_ONCE && receive_one(h); i++)
        ;
    receive_supervisor(h);
    ET_TRY(etd_hub_listen_again(h));
    look_at_facts(h, false);
    tell_facts(h);
    double now = eti_monotonic(h->cx);
    for (struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++)
        if (p->used)
            look_after(h, p, now);
    for (struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++)
        if (p->used && etd_hist_is_asked(p->hist))
            answer_hist(h, p);
    return ET_OK;
}

/* ---- beginning and end ---- */

static et_status
learn_run(struct etd_hub *h)
{
    json_t *facts;
    ET_TRY(eti_facts_read_state(h->cx, h->directory, &facts));
    const char *name = json_string_value(json_object_get(facts, "name"));
    const char *id = json_string_value(json_object_get(facts, "id"));
    snprintf(h->name, sizeof h->name, "%s", name ? name : "");
    bool right = etd_run_id(id, h->run);
    if (right)
        memcpy(h->id, id, ETD_HEX_ID);
    json_decref(facts);
    if (!right)
        return ET_FAIL(h->cx, ET_EFORMAT, "%s/run.json has no id", h->directory);
    return et_run_name_check(h->cx, h->name);
}

static void
watch_log(struct etd_hub *h)
{
    h->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (h->inotify >= 0 && !watch_again(h)) {
        close(h->inotify);
        h->inotify = -1;
    }
}

static et_status
serve(struct etd_hub *h)
{
    int64_t done;
    ET_TRY(learn_run(h));
    ET_TRY(etd_follow_open(h->cx, h->directory, &h->follow));
    ET_TRY(etd_backlog_init(h));
    etd_follow_watch(h->follow, etd_backlog_add, h);
    watch_log(h);
    etd_follow_progress(h->follow, &done, &h->left);
    /* Viewers of a hub that died go on by number where this one knows as much. */
    ET_TRY(follow_slices(h, PREPARE));
    ET_TRY(etd_control_open(h));
    ET_TRY(etd_hub_listen(h));
    etd_control_resume(h);
    while (!h->ended)
        ET_TRY(turn(h));
    /* The last records and facts, and that it was the end. */
    ET_TRY(follow_log(h));
    ET_TRY(follow_slices(h, LAST));
    look_at_facts(h, true);
    for (struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++)
        if (p->used)
            etd_stream_pump(h, p);
    tell_facts(h);
    for (struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++)
        if (p->used)
            etd_hub_drop(h, p, "END", "the run's processes end");
    return ET_OK;
}

static void
end(struct etd_hub *h)
{
    int linger = 1000; /* ms for the last words */
    if (h->router) {
        (void)zmq_setsockopt(h->router, ZMQ_LINGER, &linger, sizeof linger);
        zmq_close(h->router);
    }
    for (struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++)
        etd_hub_forget(h, p);
    etd_stream_end(h);
    etd_backlog_release(h);
    etd_endpoint_release(&h->endpoint); /* before anybody is waited for */
    etd_control_close(h);
    if (h->zmq)
        zmq_ctx_term(h->zmq);
    (void)shutdown(h->supervisor, SHUT_RDWR); /* it waits for no more than this */
    etd_follow_close(&h->follow);
    if (h->inotify >= 0)
        close(h->inotify);
    free(h->facts);
    et_free(h->cx, h);
}

et_status
etd_hub_run(struct et_ctx *cx, const char *directory, int supervisor)
{
    void *block;
    ET_TRY(et_alloc(cx, sizeof(struct etd_hub), &block));
    struct etd_hub *h = block;
    h->cx = cx;
    h->supervisor = supervisor;
    h->inotify = -1;
    h->control.fd = -1;
    h->endpoint.lock = -1;
    h->strangers = (struct etd_bucket){STRANGERS, eti_monotonic(cx)};
    snprintf(h->directory, sizeof h->directory, "%s", directory);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    et_status status = serve(h);
    end(h);
    return status;
}
