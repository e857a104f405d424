/* SPDX-License-Identifier: Apache-2.0 */
/* channel.h: a way to a hub or a worker: messages there and back. Nothing here waits.
 */
#ifndef ETD_CHANNEL_H
#define ETD_CHANNEL_H

#include <stdint.h>

#include "etude/ctx.h"

enum {
    ETD_KEY_TEXT = 41, /* a key of CURVE in Z85, zero included */
    ETD_HOST = 256,    /* bytes of a host's name, zero included */
};

/* A pair of keys of CURVE. */
struct etd_keys {
    char public_key[ETD_KEY_TEXT], secret[ETD_KEY_TEXT];
};

struct etd_channel_options {
    /* "/path/of/a.sock", "tcp://HOST:PORT" or "ssh://[USER@]HOST" */
    const char *target;
    const struct etd_keys *keys; /* tcp: our own, */
    const char *server;          /* and the public one of who answers; both copied */
    void *zmq;                   /* a context of zmq, borrowed; NULL: its own */
};

struct etd_channel;
/* Sets out; whether anybody is there shows later. EINVAL for a target that is none
 * (5003), ENOENT where no socket is there, ECANCELED where it is another user's (5001),
 * EIO. */
ET_NODISCARD et_status etd_channel_open(struct et_ctx *cx,
                                        const struct etd_channel_options *o,
                                        struct etd_channel **out);
void etd_channel_close(struct etd_channel **channel);
/* Before closing: what was sent is given a tenth of a second to leave. */
void etd_channel_finish(struct etd_channel *channel);
/* Can be read when etd_channel_receive has something to say. */
int etd_channel_fd(const struct etd_channel *channel);
/* False: not now; and a message of more than 256 KiB never. */
bool etd_channel_send(struct etd_channel *channel, const void *bytes, size_t n);

enum etd_got {
    ETD_GOT_NOTHING, /* yet */
    ETD_GOT_MESSAGE,
    ETD_GOT_GONE,   /* nobody is there any more, and this channel is of no use */
    ETD_GOT_DENIED, /* our key is refused, or the other side's is another */
};
/* The next message, borrowed until the next call. Call it until it says NOTHING, also
 * after sending. */
enum etd_got etd_channel_receive(struct etd_channel *channel, const char **bytes,
                                 size_t *n);
/* After GONE, what is known of the reason; NULL: nothing. Whoever has another key than
 * we think cannot say so: it breaks off. So does one that ends just then. */
const char *etd_channel_why_gone(const struct etd_channel *channel);

#endif
