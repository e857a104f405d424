/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of whole conversations; see replay.h and script.h. A host's side of one
 * (session.h) and a viewer's (client.h), with the test in the place of the run's hub:
 *
 *     viewer KIND ...    the viewer says that to the host; without a conversation HELLO
 *                        begins one, as at a worker
 *     hub KIND ...       the hub says that to all who have spoken to it
 *     watch              a viewer of this program connects to the hub
 *     step               whatever has come is taken in
 *     operator           the next conversation is an operator's
 *     full, room         the viewer takes nothing; takes everything again
 *     gone, back         the hub's socket goes; there is another
 *
 * Whatever is said, in whatever order: no crash, nothing said behind REFUSE and BYE,
 * nothing left allocated. It finds most where freed memory is given out again at once,
 * as in builds without sanitizers. */
#include "config.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "core/library/facts.h"
#include "dist/hub/client.h"
#include "dist/worker/session.h"
#include "t/dist/house.h"
#include "t/fuzz/replay.h"
#include "t/fuzz/script.h"
#include "t/tap.h"

enum { PEERS = 8, NAME = 256, WAIT_MS = 2 };

static struct house h;
static void *zmq, *router;
static struct etd_host host;
static unsigned char run[ETD_RUN_ID];
static int64_t welcomes, passed;

struct talk {
    struct et_ctx *cx;
    struct etd_session *session; /* NULL: none has begun, or the last one is over */
    struct etd_client *client;   /* NULL: nobody watches */
    bool operator_, full, ended; /* ENDED: it was told that it is over */
    struct {
        char name[NAME];
        int n;
    } peer[PEERS];
    int n_peers;
};

static void
need(bool holds)
{
    if (!holds)
        abort();
}

/* ---- the hub ---- */

static void
open_router(void)
{
    char address[160];
    int zero = 0;
    snprintf(address, sizeof address, "ipc://%s", h.socket);
    router = zmq_socket(zmq, ZMQ_ROUTER);
    need(router && zmq_setsockopt(router, ZMQ_LINGER, &zero, sizeof zero) == 0);
    if (zmq_bind(router, address) != 0)
        bail("cannot bind %s: %s", address, zmq_strerror(zmq_errno()));
}

static void
close_router(void)
{
    if (router)
        zmq_close(router);
    router = NULL;
    (void)unlink(h.socket);
}

/* Remembers who has spoken. */
static void
hear(struct talk *t)
{
    char name[NAME], body[ETD_CHUNK_BYTES];
    int n;
    while (router && (n = zmq_recv(router, name, sizeof name, ZMQ_DONTWAIT)) >= 0) {
        int more = 0;
        size_t size = sizeof more;
        passed++;
        (void)zmq_recv(router, body, sizeof body, 0);
        need(zmq_getsockopt(router, ZMQ_RCVMORE, &more, &size) == 0 && !more);
        bool known = n > NAME;
        for (int i = 0; i < t->n_peers && !known; i++)
            known = t->peer[i].n == n && memcmp(t->peer[i].name, name, (size_t)n) == 0;
        if (known)
            continue;
        int at = t->n_peers < PEERS ? t->n_peers++ : PEERS - 1;
        memcpy(t->peer[at].name, name, (size_t)n);
        t->peer[at].n = n;
    }
}

static void
say(struct talk *t, const struct script_line *l)
{
    for (int i = 0; router && i < t->n_peers; i++)
        if (zmq_send(router, t->peer[i].name, (size_t)t->peer[i].n,
                     ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0)
            (void)zmq_send(router, l->bytes, l->n, ZMQ_DONTWAIT);
}

/* ---- the host's side ---- */

static bool
take(void *data, const void *bytes, size_t n)
{
    struct talk *t = data;
    struct etd_frame f;
    struct etd_fault fault;
    need(!t->ended); /* nothing comes behind the end */
    if (t->full)
        return false;
    need(n > 0 && etd_read(bytes, n, &f, &fault) == ET_OK);
    welcomes += f.head.kind == ETD_WELCOME;
    /* (What the hub says has the run's id in its head, what the host says has none.) */
    static const unsigned char none[ETD_RUN_ID];
    t->ended = (f.head.kind == ETD_BYE || f.head.kind == ETD_REFUSE) &&
               memcmp(f.head.run, none, sizeof none) == 0;
    return true;
}

static void
forget(struct talk *t)
{
    etd_session_free(&t->session);
    t->ended = false;
}

static void
viewer_says(struct talk *t, const struct script_line *l)
{
    struct etd_frame f;
    struct etd_fault fault;
    if (!t->session &&
        (etd_read(l->bytes, l->n, &f, &fault) != ET_OK || f.head.kind != ETD_HELLO))
        return;
    if (!t->session)
        need(etd_session_new(&host, t->operator_ ? "operator" : "viewer", t->operator_,
                             take, t, &t->session) == ET_OK);
    need(etd_session_message(t->session, l->bytes, l->n) == ET_OK);
}

/* ---- both ---- */

static void
step(struct talk *t)
{
    zmq_pollitem_t item[3] = {0};
    int n = 0, hub = t->session ? etd_session_hub_fd(t->session) : -1;
    int client = t->client ? etd_client_fd(t->client) : -1;
    if (router)
        item[n++] = (zmq_pollitem_t){.socket = router, .events = ZMQ_POLLIN};
    if (hub >= 0)
        item[n++] = (zmq_pollitem_t){.fd = hub, .events = ZMQ_POLLIN};
    if (client >= 0)
        item[n++] = (zmq_pollitem_t){.fd = client, .events = ZMQ_POLLIN};
    (void)zmq_poll(item, n, WAIT_MS);
    hear(t);
    etd_starts_step(&host.starts);
    if (t->session && !etd_session_step(t->session)) {
        need(etd_session_hub_fd(t->session) < 0);
        t->ended = true; /* what comes now is not answered */
        need(etd_session_message(t->session, "", 0) == ET_OK &&
             !etd_session_step(t->session));
        forget(t);
    }
    if (t->client)
        need(etd_client_step(t->client) == ET_OK);
}

static void
watch(struct talk *t)
{
    const struct etd_client_options o = {.channel = {.target = h.socket, .zmq = zmq},
                                         .once = true};
    etd_client_close(&t->client);
    if (etd_client_open(t->cx, &o, &t->client) != ET_OK)
        et_error_clear(t->cx);
}

static void
play(void *data, const struct script_line *l)
{
    struct talk *t = data;
    if (strcmp(l->who, "viewer") == 0 && l->n > 0)
        viewer_says(t, l);
    else if (strcmp(l->who, "hub") == 0 && l->n > 0)
        say(t, l);
    else if (strcmp(l->who, "watch") == 0)
        watch(t);
    else if (strcmp(l->who, "step") == 0)
        step(t);
    else if (strcmp(l->who, "operator") == 0)
        t->operator_ = true;
    else if (strcmp(l->who, "full") == 0 || strcmp(l->who, "room") == 0)
        t->full = l->who[0] == 'f';
    else if (strcmp(l->who, "gone") == 0)
        close_router();
    else if (strcmp(l->who, "back") == 0 && !router)
        open_router();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct talk t = {0};
    struct et_alloc_stats stats;
    need(et_ctx_new(&t.cx) == ET_OK);
    host.cx = host.starts.cx = t.cx;
    if (!router)
        open_router();
    script_play(data, size, run, play, &t);
    t.full = false;
    for (int i = 0; i < 4; i++)
        step(&t);
    forget(&t);
    etd_client_close(&t.client);
    while (etd_starts_any(&host.starts))
        etd_starts_step(&host.starts);
    et_error_clear(t.cx);
    et_alloc_get_stats(t.cx, &stats);
    need(stats.live == 0);
    et_ctx_free(&t.cx);
    return 0;
}

#ifndef ET_FUZZER
/* An input that ends the program leaves nothing behind but its own end. */
static void
on_abort(int signal)
{
    (void)signal;
    static const char said[] = "# a conversation broke a promise\n";
    (void)!write(STDOUT_FILENO, said, sizeof said - 1);
    _exit(1);
}

int
main(void)
{
    char path[160];
    json_t *facts;
    house_begin(&h);
    house_tell(&h, 50);
    if (eti_facts_read_state(h.cx, h.directory, &facts) != ET_OK ||
        !etd_run_id(json_string_value(json_object_get(facts, "id")), run))
        bail("the run has no id");
    json_decref(facts);
    snprintf(path, sizeof path, "%s/etude", h.folder);
    if (mkdir(path, 0700) != 0 && access(path, X_OK) != 0)
        bail("no folder %s", path);
    (void)signal(SIGABRT, on_abort);
    zmq = zmq_ctx_new();
    host = (struct etd_host){
        .zmq = zmq,
        .starts = {.program = "/bin/false", .folder = path},
    };
    fuzz_replay("talk-seeds", "\n =0123456789@");
    close_router();
    ok(welcomes > 0 && passed > 0, "some begin, and reach the hub (%lld, %lld)",
       (long long)welcomes, (long long)passed);
    zmq_ctx_term(zmq);
    house_end(&h);
    return done();
}
#endif
