/* SPDX-License-Identifier: Apache-2.0 */
/* router.c: see router.h. */
#include "config.h"

#include "dist/wire/router.h"

#include <string.h>

bool
etd_route_is(const struct etd_route *a, const struct etd_route *b)
{
    return a->socket == b->socket && a->name_bytes == b->name_bytes &&
           memcmp(a->name, b->name, a->name_bytes) == 0;
}

bool
etd_route_receive(void *socket, struct etd_route *from, zmq_msg_t *body, bool *right)
{
    zmq_msg_t name;
    zmq_msg_init(&name);
    if (zmq_msg_recv(&name, socket, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close(&name);
        return false;
    }
    size_t n = zmq_msg_size(&name);
    zmq_msg_init(body);
    *right = zmq_msg_more(&name) && zmq_msg_recv(body, socket, 0) >= 0 &&
             !zmq_msg_more(body) && n < sizeof from->name;
    while (!*right && zmq_msg_more(body) &&
           zmq_msg_recv(body, socket, ZMQ_DONTWAIT) >= 0)
        ;
    from->socket = socket;
    from->name_bytes = *right ? n : 0;
    memcpy(from->name, zmq_msg_data(&name), from->name_bytes);
    zmq_msg_close(&name);
    return true;
}

/* The first of two parts: zmq takes both or none. */
static bool
send_name(const struct etd_route *to)
{
    const int flags = ZMQ_SNDMORE | ZMQ_DONTWAIT;
    return zmq_send(to->socket, to->name, to->name_bytes, flags) >= 0;
}

bool
etd_route_send(const struct etd_route *to, zmq_msg_t *message)
{
    return send_name(to) && zmq_msg_send(message, to->socket, ZMQ_DONTWAIT) >= 0;
}

bool
etd_route_send_bytes(const struct etd_route *to, const void *bytes, size_t n)
{
    return send_name(to) && zmq_send(to->socket, bytes, n, ZMQ_DONTWAIT) >= 0;
}

bool
etd_bucket_take(struct etd_bucket *b, double rate, double now)
{
    double refilled = b->tokens + rate * (now - b->filled);
    b->filled = now;
    if (b->tokens < rate)
        b->tokens = refilled < rate ? refilled : rate;
    if (b->tokens < 1)
        return false;
    b->tokens -= 1;
    return true;
}

size_t
etd_reason_write(char *bytes, size_t room, const struct etd_head *head,
                 const char *code, const char *text)
{
    struct etd_out o;
    etd_begin(&o, bytes, room, head, 2);
    etd_put_text(&o, "code", code);
    etd_put_text(&o, "text", text);
    return etd_end(&o);
}
