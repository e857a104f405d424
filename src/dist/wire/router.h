/* SPDX-License-Identifier: Apache-2.0 */
/* router.h: what the hub and the worker have in common as they serve viewers: a ROUTER
 * of zmq, whose peers are known by their routing ids, and how often each may send.
 * Nothing here waits. */
#ifndef ETD_ROUTER_H
#define ETD_ROUTER_H

#include <zmq.h>

#include "dist/wire/wire.h"

enum { ETD_PEER_NAME = 256 }; /* bytes of a routing id, and one for its length */

#define ETD_MESSAGES 200.0      /* a second that a viewer may send, */
#define ETD_EARNED   (1.0 / 32) /* and more for each message that it is sent */
#define ETD_SWEEP    0.05       /* seconds between looks at who is gone, at least */

/* A peer: the one with this routing id at SOCKET. */
struct etd_route {
    void *socket;
    unsigned char name[ETD_PEER_NAME];
    size_t name_bytes; /* 0: nobody */
};
bool etd_route_is(const struct etd_route *a, const struct etd_route *b);
/* Takes the next message off SOCKET: from whom, and BODY, to be closed. False: there is
 * none. *RIGHT is false for one that is not a routing id and one frame: all of it is
 * taken off. */
bool etd_route_receive(void *socket, struct etd_route *from, zmq_msg_t *body,
                       bool *right);
/* zmq takes MESSAGE, and then it is empty. False, with zmq_errno: EAGAIN where the
 * connection is full, EHOSTUNREACH where it is gone. */
bool etd_route_send(const struct etd_route *to, zmq_msg_t *message);
bool etd_route_send_bytes(const struct etd_route *to, const void *bytes, size_t n);

/* A token bucket: RATE come each second, and no more than that are kept. (Those that
 * were earned otherwise are.) */
struct etd_bucket {
    double tokens, filled; /* filled: when they were counted */
};
/* Takes one, if there is one. */
bool etd_bucket_take(struct etd_bucket *b, double rate, double now);

/* A REFUSE or BYE in BYTES; what it returns is as etd_end's. */
size_t etd_reason_write(char *bytes, size_t room, const struct etd_head *head,
                        const char *code, const char *text);

#endif
