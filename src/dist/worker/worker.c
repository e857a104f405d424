/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c: see worker.h. */
#include "config.h"

#include "dist/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>
#include <zmq.h>

#include "core/base/seams.h"
#include "dist/run/machine.h"
#include "dist/wire/auth.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "dist/wire/router.h"

enum {
    PEERS = ETD_CLIENTS,
    PIPE = 64,           /* messages on their way to a viewer */
    AT_ONCE = 256,       /* messages taken in before hubs are looked at again */
    OF_KEY = 16,         /* places that those with one key may take, */
    VIEWERS = PEERS - 8, /* that viewers may: the others are for who steers */
    CROWD = 2048,    /* descriptors that may be open, but no more than half of all */
    BYTES = 1 << 30, /* of memory that connections may take */
};
static const double LOOK = 1; /* seconds between looks at the local socket */

struct peer {
    struct etd_session *session; /* NULL: free */
    struct worker *w;
    struct etd_route to;    /* its socket: local or remote */
    char key[ETD_KEY_TEXT]; /* remote */
    bool is_operator;
    double heard;
    struct etd_bucket messages; /* that it may send */
};

struct worker {
    struct et_ctx *cx;
    struct etd_host host;
    struct etd_endpoint endpoint;
    struct etd_keys keys;
    struct etd_auth auth;
    void *local, *remote; /* ROUTERs; remote NULL: none, or closed */
    char address[ETD_ADDRESS];
    struct peer peer[PEERS];
    char nowhere[ETD_STRING]; /* why it has none on this machine, as was said; "" */
    double stood_at; /* when it was looked whether its local socket is still there */
    bool blocked;
    double swept;    /* when the places of those that are gone were looked for */
    bool is_between; /* REMOTE was closed, and another is wanted */
    int crowd;       /* descriptors that may be open */
    int64_t bytes;   /* of memory that may be taken */
    double weighed;  /* when the memory was looked at */
    char why_closed[ETD_STRING]; /* why there is no REMOTE, as was said; "" */
};

/* ---- sending ---- */

static bool
send_to(struct worker *w, const struct etd_route *to, const void *bytes, size_t n)
{
    bool sent = n > 0 && etd_route_send_bytes(to, bytes, n);
    w->blocked = w->blocked || (n > 0 && !sent && zmq_errno() == EAGAIN);
    return sent;
}

static bool
send_peer(void *data, const void *bytes, size_t n)
{
    struct peer *p = data;
    bool sent = send_to(p->w, &p->to, bytes, n);
    p->messages.tokens += sent * ETD_EARNED;
    /* Of one that is gone nothing is kept: it counts as sent. */
    return sent || zmq_errno() == EHOSTUNREACH;
}

static void
send_end(struct worker *w, const struct etd_route *to, enum etd_kind kind,
         const char *code, const char *text)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = {.kind = kind};
    size_t n = etd_reason_write(bytes, sizeof bytes, &head, code, text);
    (void)send_to(w, to, bytes, n);
}

/* ---- viewers ---- */

static void
forget(struct peer *p)
{
    etd_session_free(&p->session);
}

/* Its key is not let in any more, or has another role. */
static void
cut(struct peer *p)
{
    etd_session_bye(p->session, "KEY", "the key is not let in any more");
    forget(p);
}

static struct peer *
find_peer(struct worker *w, const struct etd_route *from)
{
    for (struct peer *p = w->peer; p < w->peer + PEERS; p++)
        if (p->session && etd_route_is(&p->to, from))
            return p;
    return NULL;
}

/* Why one more with KEY ("" for this machine's user) has no place; NULL: it has. */
static const char *
why_no_place(const struct worker *w, const char *key, bool is_operator)
{
    int all = 0, viewers = 0, same = 0;
    for (const struct peer *p = w->peer; p < w->peer + PEERS; p++) {
        all += p->session != NULL;
        viewers += p->session && !p->is_operator;
        same += p->session && key[0] && strcmp(p->key, key) == 0;
    }
    if (all == PEERS)
        return "64 viewers are here already";
    if (same >= OF_KEY)
        return "16 with this key are here already";
    return !is_operator && viewers >= VIEWERS ? "56 viewers are here already" : NULL;
}

static et_status
add_peer(struct worker *w, const struct etd_route *from, const char *key,
         bool is_operator, struct peer **out)
{
    double now = eti_monotonic(w->cx);
    char who[ETD_WORD];
    *out = NULL;
    if (why_no_place(w, key, is_operator))
        return ET_OK;
    for (struct peer *p = w->peer; p < w->peer + PEERS && !*out; p++)
        if (!p->session)
            *out = p;
    struct peer *p = *out;
    *p = (struct peer){.w = w,
                       .to = *from,
                       .is_operator = is_operator,
                       .messages = {ETD_MESSAGES, now},
                       .heard = now};
    snprintf(p->key, sizeof p->key, "%s", key);
    if (key[0])
        etd_key_fingerprint(key, who);
    else
        snprintf(who, sizeof who, "worker");
    et_status status =
        etd_session_new(&w->host, who, is_operator, send_peer, p, &p->session);
    *out = status == ET_OK ? p : NULL;
    return status;
}

/* Those whose connection is gone are forgotten, as the hub does. */
static void
sweep(struct worker *w)
{
    char bytes[256];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_PING};
    double now = eti_monotonic(w->cx);
    if (now - w->swept < ETD_SWEEP)
        return;
    w->swept = now;
    etd_begin(&o, bytes, sizeof bytes, &head, 0);
    size_t n = etd_end(&o);
    for (struct peer *p = w->peer; p < w->peer + PEERS; p++)
        if (p->session && !send_to(w, &p->to, bytes, n) && zmq_errno() == EHOSTUNREACH)
            forget(p);
}

static bool
is_hello(const void *bytes, size_t n)
{
    struct etd_frame f;
    struct etd_fault fault;
    return etd_read(bytes, n, &f, &fault) == ET_OK && f.head.kind == ETD_HELLO;
}

/* Takes a message of a viewer whose key is valid now. */
static et_status
on_message(struct worker *w, const struct etd_route *from, zmq_msg_t *body,
           const char *key, bool is_operator)
{
    size_t n = zmq_msg_size(body);
    const void *bytes = zmq_msg_data(body);
    double now = eti_monotonic(w->cx);
    struct peer *p = find_peer(w, from);
    /* The other side chooses its routing id: one with another key is somebody else, who
     * has taken that of a connection that is gone. */
    if (p && strcmp(p->key, key) != 0) {
        forget(p);
        p = NULL;
    } else if (p && p->is_operator != is_operator) {
        cut(p);
        return ET_OK;
    }
    if (!p && !is_hello(bytes, n)) {
        send_end(w, from, ETD_BYE, "UNKNOWN", "say HELLO first");
        return ET_OK;
    }
    if (!p)
        ET_TRY(add_peer(w, from, key, is_operator, &p));
    if (!p) {
        sweep(w);
        ET_TRY(add_peer(w, from, key, is_operator, &p));
    }
    if (!p) {
        const char *why = why_no_place(w, key, is_operator);
        send_end(w, from, ETD_REFUSE, "FULL", why ? why : "no place is left");
        return ET_OK;
    }
    p->heard = now;
    if (!etd_bucket_take(&p->messages, ETD_MESSAGES, now)) {
        etd_session_bye(p->session, "RATE", "more than 200 messages a second");
        forget(p);
        return ET_OK;
    }
    return etd_session_message(p->session, bytes, n);
}

static et_status
receive_one(struct worker *w, void *socket, bool *got)
{
    struct etd_route from;
    zmq_msg_t body;
    bool right;
    et_status status = ET_OK;
    *got = etd_route_receive(socket, &from, &body, &right);
    if (!*got)
        return ET_OK;
    const char *key =
        right && socket == w->remote ? zmq_msg_gets(&body, "User-Id") : "";
    const struct etd_authorized *a =
        right && socket == w->remote && key ? etd_auth_find(&w->auth, key) : NULL;
    if (right && socket == w->local)
        status = on_message(w, &from, &body, "", true);
    else if (a)
        status = on_message(w, &from, &body, key, a->is_operator);
    zmq_msg_close(&body);
    return status;
}

static et_status
receive(struct worker *w, void *socket)
{
    bool got = socket != NULL;
    for (int i = 0; got && i < AT_ONCE; i++)
        ET_TRY(receive_one(w, socket, &got));
    return ET_OK;
}

/* Those whose key has been taken away, or has another role now, are cut. */
static void
look_after(struct worker *w, struct peer *p)
{
    const struct etd_authorized *a = p->key[0] ? etd_auth_find(&w->auth, p->key) : NULL;
    if (p->key[0] && (!a || a->is_operator != p->is_operator))
        cut(p);
    else if (eti_monotonic(w->cx) - p->heard >= ETD_DISCONNECTED) {
        etd_session_bye(p->session, "SILENT", "nothing was heard for 10 s");
        forget(p);
    }
}

/* ---- the loop ---- */

static void
close_remote(struct worker *w)
{
    for (struct peer *p = w->peer; p < w->peer + PEERS; p++)
        if (p->session && p->to.socket == w->remote)
            forget(p);
    if (w->remote)
        zmq_close(w->remote);
    w->remote = NULL;
}

/* Opens a new socket at the same address, once the system has released the old one. */
static et_status
open_remote_again(struct worker *w)
{
    char same[ETD_ADDRESS];
    void *router = etd_endpoint_router(w->host.zmq, PIPE, PIPE, ETD_CHUNK_BYTES, false);
    if (!router)
        return ET_FAIL(w->cx, ET_EIO, "no socket: %s", zmq_strerror(zmq_errno()));
    et_status status = etd_auth_listen(&w->auth, router, &w->keys, w->address, same);
    if (status == ET_OK)
        w->remote = router;
    else
        zmq_close(router);
    return status;
}

/* The least descriptor that is free: about as many are open. */
static int
count_descriptors(void)
{
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return errno == EMFILE ? INT_MAX : 0;
    close(fd);
    return fd;
}

/* zmq bounds what one connection may hold, but neither messages of many parts nor the
 * number of connections. If all of them together hold too much, all are closed; honest
 * viewers connect again by themselves. */
static void
look_at_crowd(struct worker *w)
{
    double now = eti_monotonic(w->cx);
    int64_t bytes = 0;
    if (!w->remote)
        return;
    int open = count_descriptors();
    if (now - w->weighed >= LOOK) {
        w->weighed = now;
        bytes = etd_machine_resident();
    }
    if (open <= w->crowd && bytes <= w->bytes)
        return;
    close_remote(w);
    w->is_between = true;
    if (open > w->crowd)
        et_report(
            w->cx, ET_LOG_WARN,
            "all connections to %s were closed: there were so many that more than "
            "%d descriptors were open",
            w->address, w->crowd);
    else
        et_report(w->cx, ET_LOG_WARN,
                  "all connections to %s were closed: %.1f GB of memory were taken",
                  w->address, (double)bytes / 1e9);
}

/* After look_at_crowd. */
static void
come_back(struct worker *w)
{
    if (!w->is_between)
        return;
    if (open_remote_again(w) == ET_OK) {
        w->is_between = false;
        w->why_closed[0] = '\0';
#ifdef __GLIBC__
        (void)malloc_trim(0);
#endif
        /* Memory that the allocator has not returned to the system is no reason to
         * close them again. */
        int64_t left = 2 * etd_machine_resident();
        w->bytes = left > BYTES ? left : BYTES;
        return;
    }
    const char *why = et_error_get(w->cx)->message;
    if (eti_monotonic(w->cx) - w->weighed >= LOOK && strcmp(w->why_closed, why) != 0) {
        et_report(w->cx, ET_LOG_WARN, "nothing listens at %s: %s", w->address, why);
        snprintf(w->why_closed, sizeof w->why_closed, "%.*s", ETD_STRING - 1, why);
    }
    et_error_clear(w->cx);
}

/* Its folder may have been removed: a new socket, where that can be. */
static void
look_at_place(struct worker *w)
{
    struct etd_endpoint new;
    double now = eti_monotonic(w->cx);
    if (now - w->stood_at < LOOK)
        return;
    w->stood_at = now;
    if (etd_endpoint_stands(&w->endpoint))
        return;
    etd_endpoint_release(&w->endpoint);
    et_status status = etd_endpoint_claim(w->cx, ETD_WORKER_SOCKET, NULL, &new);
    if (status == ET_OK)
        status = etd_endpoint_bind(&new, &etd_endpoint_zmq, w->local);
    if (status == ET_OK) {
        w->endpoint = new;
        w->nowhere[0] = '\0';
        et_report(w->cx, ET_LOG_WARN,
                  "the local socket was removed; another is at %s now", new.path);
        return;
    }
    etd_endpoint_release(&new);
    if (strcmp(w->nowhere, et_error_get(w->cx)->message) != 0)
        et_report(w->cx, ET_LOG_WARN, "nobody on this machine can ask the worker: %s",
                  et_error_get(w->cx)->message);
    snprintf(w->nowhere, sizeof w->nowhere, "%.*s", ETD_STRING - 1,
             et_error_get(w->cx)->message);
    et_error_clear(w->cx);
}

static et_status
turn(struct worker *w)
{
    zmq_pollitem_t item[3 + 2 * PEERS + ETD_STARTING];
    bool is_busy = false, is_reading = false;
    int n = 0;
    eti_reach(w->cx, "worker.turn");
    for (const struct etd_start *t = w->host.starts.start;
         t < w->host.starts.start + ETD_STARTING; t++)
        if (t->used)
            item[n++] = (zmq_pollitem_t){.fd = t->child.fd, .events = ZMQ_POLLIN};
    item[n++] = (zmq_pollitem_t){.socket = w->local, .events = ZMQ_POLLIN};
    if (w->remote) {
        item[n++] = (zmq_pollitem_t){.socket = w->remote, .events = ZMQ_POLLIN};
        item[n++] = (zmq_pollitem_t){.socket = w->auth.socket, .events = ZMQ_POLLIN};
    }
    for (struct peer *p = w->peer; p < w->peer + PEERS; p++) {
        int hub = p->session ? etd_session_hub_fd(p->session) : -1;
        int child = p->session ? etd_session_child_fd(p->session) : -1;
        is_busy = is_busy || (p->session && etd_session_is_busy(p->session));
        is_reading = is_reading || (p->session && etd_session_is_reading(p->session));
        if (hub >= 0 && !w->blocked)
            item[n++] = (zmq_pollitem_t){.fd = hub, .events = ZMQ_POLLIN};
        if (child >= 0)
            item[n++] = (zmq_pollitem_t){.fd = child, .events = ZMQ_POLLIN};
    }
    if (zmq_poll(item, n,
                 is_busy                       ? 0
                 : is_reading                  ? ETD_READING_MS
                 : w->blocked || w->is_between ? 20
                                               : 250) < 0 &&
        zmq_errno() != EINTR)
        return ET_FAIL(w->cx, ET_EIO, "the worker cannot wait: %s",
                       zmq_strerror(zmq_errno()));
    if (w->remote && !etd_auth_step(&w->auth)) {
        et_report(w->cx, ET_LOG_ERROR,
                  "keys cannot be checked any more: nothing listens at %s", w->address);
        close_remote(w);
    }
    w->blocked = false;
    ET_TRY(receive(w, w->local));
    ET_TRY(receive(w, w->remote));
    look_at_crowd(w);
    come_back(w);
    look_at_place(w);
    etd_starts_step(&w->host.starts);
    for (struct peer *p = w->peer; p < w->peer + PEERS; p++)
        if (p->session && !etd_session_step(p->session))
            forget(p);
    for (struct peer *p = w->peer; p < w->peer + PEERS; p++)
        if (p->session)
            look_after(w, p);
    return ET_OK;
}

/* ---- beginning and end ---- */

/* zmq numbers connections that bring no routing id, from rand() on, and asserts that no
 * other has taken the number: nobody is to know it beforehand. */
static void
seed_numbers(void)
{
    unsigned seed;
    if (getrandom(&seed, sizeof seed, 0) == sizeof seed)
        srand(seed);
}

static et_status
listen_there(struct worker *w, const struct etd_serve *o)
{
    if (o->listen) {
        ET_TRY(etd_auth_check(w->cx, o->listen));
        ET_TRY(etd_keys_read(w->cx, o->key, &w->keys));
        ET_TRY(etd_auth_open(w->cx, w->host.zmq, o->authorized, &w->auth));
        w->remote =
            etd_endpoint_router(w->host.zmq, PIPE, PIPE, ETD_CHUNK_BYTES, false);
    }
    w->local = etd_endpoint_router(w->host.zmq, PIPE, PIPE, ETD_CHUNK_BYTES, true);
    if (!w->local || (o->listen && !w->remote))
        return ET_FAIL(w->cx, ET_EIO, "no socket for the worker: %s",
                       zmq_strerror(zmq_errno()));
    ET_TRY(etd_endpoint_claim(w->cx, ETD_WORKER_SOCKET, NULL, &w->endpoint));
    ET_TRY(etd_endpoint_bind(&w->endpoint, &etd_endpoint_zmq, w->local));
    if (o->listen)
        ET_TRY(etd_auth_bind(&w->auth, w->remote, &w->keys, o->listen, w->address));
    return ET_OK;
}

static void
end(struct worker *w)
{
    for (struct peer *p = w->peer; p < w->peer + PEERS; p++) {
        if (p->session)
            etd_session_bye(p->session, "GONE", "the worker ends");
        forget(p);
    }
    int linger = 500;
    void *const sockets[] = {w->local, w->remote};
    for (int i = 0; i < 2; i++) {
        if (!sockets[i])
            continue;
        (void)zmq_setsockopt(sockets[i], ZMQ_LINGER, &linger, sizeof linger);
        zmq_close(sockets[i]);
    }
    etd_auth_close(&w->auth);
    if (w->host.zmq)
        zmq_ctx_term(w->host.zmq);
    etd_endpoint_release(&w->endpoint);
    et_free(w->cx, w);
}

et_status
etd_worker_serve(struct et_ctx *cx, const struct etd_serve *o)
{
    void *block;
    char fingerprint[ETD_FINGERPRINT] = "";
    ET_TRY(et_alloc(cx, sizeof(struct worker), &block));
    struct worker *w = block;
    w->cx = cx;
    w->endpoint.lock = -1;
    w->host = (struct etd_host){
        .cx = cx, .starts = {.cx = cx, .program = o->program, .folder = o->folder}};
    seed_numbers();
    w->host.zmq = zmq_ctx_new();
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    int descriptors = etd_endpoint_descriptors();
    w->crowd = descriptors / 2 < CROWD ? descriptors / 2 : CROWD;
    w->bytes = BYTES;
    et_status status =
        w->host.zmq ? listen_there(w, o) : ET_FAIL(cx, ET_EIO, "no context of zmq");
    if (status == ET_OK && o->ready)
        o->ready(o->data, o->listen ? w->address : NULL,
                 o->listen ? etd_key_fingerprint(w->keys.public_key, fingerprint) : "");
    while (status == ET_OK && !*o->stop)
        status = turn(w);
    end(w);
    return status;
}
