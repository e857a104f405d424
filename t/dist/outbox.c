/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for a viewer that takes none (hub_send.c): they wait in their order, as many
 * as there is room for; one more, and it is no viewer any more. Hub and viewer are
 * sockets of this test, which hold a message each, and no thread carries them. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/hub/hub_parts.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { MOST = 64, MOST_BYTES = 128 << 10, LONG = 40 << 10, PATIENCE = 60000 /* ms */ };

static char name[] = "viewer 0"; /* another each time */
static struct etd_hub h;
static struct etd_peer *peer;
static void *viewer;
static int sent, heard; /* answers, which are numbered */

static void
set(void *socket, int option, int value)
{
    if (zmq_setsockopt(socket, option, &value, sizeof value) != 0)
        bail("%s", zmq_strerror(zmq_errno()));
}

/* A viewer that has said HELLO. */
static void
come(void)
{
    char hello[16];
    name[sizeof name - 2]++;
    viewer = zmq_socket(h.zmq, ZMQ_DEALER);
    if (!viewer || zmq_setsockopt(viewer, ZMQ_ROUTING_ID, name, sizeof name) != 0)
        bail("no viewer");
    set(viewer, ZMQ_RCVHWM, 1);
    set(viewer, ZMQ_RCVTIMEO, PATIENCE);
    set(viewer, ZMQ_LINGER, 0);
    if (zmq_connect(viewer, "inproc://hub") != 0 ||
        zmq_send(viewer, "hello", 5, 0) != 5 ||
        zmq_recv(h.router, hello, sizeof hello, 0) != sizeof name ||
        zmq_recv(h.router, hello, sizeof hello, 0) != 5)
        bail("the viewer is not heard: %s", zmq_strerror(zmq_errno()));
    peer = &h.peer[3];
    *peer = (struct etd_peer){.used = true};
    peer->to = (struct etd_route){.socket = h.router, .name_bytes = sizeof name};
    memcpy(peer->to.name, name, sizeof name);
    sent = heard = 0;
}

static void
go(void)
{
    zmq_close(viewer);
    etd_hub_forget(&h, peer);
}

/* The next answer, of N bytes. False: it is not sent, and does not wait. */
static bool
answer(size_t n)
{
    static char bytes[LONG];
    const struct etd_route to = peer->to; /* it may be forgotten */
    snprintf(bytes, sizeof bytes, "%d", sent++);
    return etd_hub_send(&h, &to, bytes, n);
}

/* Until its connection takes no more: one waits. */
static void
fill(void)
{
    while (peer->used && peer->n_outbox == 0 && sent < 1000)
        if (!answer(8))
            break;
    if (peer->n_outbox != 1)
        bail("a connection takes what it is sent without end");
}

/* The router learns what the viewer has taken: as when the hub's loop waits for it. */
static void
look(void)
{
    int events;
    size_t n = sizeof events;
    if (zmq_getsockopt(h.router, ZMQ_EVENTS, &events, &n) != 0)
        bail("%s", zmq_strerror(zmq_errno()));
}

/* The viewer takes all that is on the way or waits: were those the answers, in their
 * order? */
static bool
drain(void)
{
    char text[LONG], want[16];
    bool right = true;
    while (heard < sent && right) {
        look();
        (void)etd_hub_flush(&h, peer);
        right = zmq_recv(viewer, text, sizeof text, ZMQ_DONTWAIT) >= 8;
        snprintf(want, sizeof want, "%d", heard++);
        right = right && strcmp(text, want) == 0;
    }
    return right && peer->used && peer->n_outbox == 0;
}

static void
test_count(void)
{
    come();
    h.blocked = false;
    fill();
    ok(h.blocked, "a connection that takes no more is tried again soon");
    bool kept = true;
    while (peer->n_outbox < MOST && kept)
        kept = answer(8) && peer->used;
    ok(kept, "64 answers wait for a viewer that takes none");
    ok(drain(), "it is sent each of them once, in their order");
    fill();
    if (zmq_recv(viewer, (char[8]){0}, 8, 0) != 8)
        bail("nothing is on the way");
    heard++;
    look();
    ok(answer(8) && peer->n_outbox == 2, "where one waits, no other is sent before it");
    ok(drain(), "so that they stay in order");
    fill();
    while (peer->n_outbox < MOST && answer(8))
        ;
    ok(!answer(8) && !peer->used, "with the 65th it is no viewer any more");
    is_int(peer->n_outbox, 0, "and nothing waits for it");
    go();
}

static void
test_bytes(void)
{
    come();
    fill();
    ok(answer(LONG) && answer(LONG) && answer(LONG) &&
           answer(MOST_BYTES - 3 * LONG - 8) && peer->used,
       "128 KiB of answers wait");
    ok(!answer(8) && !peer->used, "with any more it is no viewer");
    go();
}

static void
test_again(void)
{
    bool kept = true;
    come();
    for (int i = 0; i < 10 && kept; i++) {
        fill();
        kept = answer(LONG) && answer(LONG) && drain();
    }
    ok(kept, "a viewer that is slow again and again has as much room each time");
    is_int((int64_t)peer->outbox_bytes, 0, "all of it, when nothing waits");
    go();
}

/* Its end of the connection is taken down by a thread of zmq. */
static void
test_gone(void)
{
    double end = eti_system.monotonic() + 1e-3 * PATIENCE;
    come();
    fill();
    zmq_close(viewer);
    while (peer->used && eti_system.monotonic() < end) {
        h.blocked = false;
        usleep(200);
        look();
        (void)etd_hub_flush(&h, peer);
    }
    ok(!peer->used && peer->n_outbox == 0 && !h.blocked,
       "one that is gone is forgotten, with what waits for it");
}

int
main(void)
{
    h.cx = need_ctx();
    h.zmq = zmq_ctx_new();
    h.router = h.zmq ? zmq_socket(h.zmq, ZMQ_ROUTER) : NULL;
    if (!h.router)
        bail("no router");
    set(h.router, ZMQ_ROUTER_MANDATORY, 1);
    set(h.router, ZMQ_SNDHWM, 1);
    set(h.router, ZMQ_RCVTIMEO, PATIENCE);
    set(h.router, ZMQ_LINGER, 0);
    if (zmq_bind(h.router, "inproc://hub") != 0)
        bail("%s", zmq_strerror(zmq_errno()));
    test_count();
    test_bytes();
    test_again();
    test_gone();
    zmq_close(h.router);
    zmq_ctx_term(h.zmq);
    et_ctx_free(&h.cx);
    return done();
}
