/* SPDX-License-Identifier: Apache-2.0 */
/* hub_send.c: how the hub sends: nothing waits for a viewer.
 *
 * What its connection does not take is tried again: the stream stays in the ring, and
 * answers wait in a short list of its own, in front of more of the stream. */
#include "config.h"

#include <string.h>

#include "core/base/seams.h"
#include "dist/hub/hub_parts.h"

struct etd_peer *
etd_hub_find(struct etd_hub *h, const struct etd_route *from)
{
    for (struct etd_peer *p = h->peer; p < h->peer + ETD_PEERS; p++)
        if (p->used && etd_route_is(&p->to, from))
            return p;
    return NULL;
}

void
etd_hub_forget(struct etd_hub *h, struct etd_peer *p)
{
    etd_stream_forget(h, p);
    while (p->n_outbox > 0)
        zmq_msg_close(&p->outbox[--p->n_outbox]);
    p->outbox_bytes = 0;
    etd_hist_free(&p->hist);
    p->used = false;
}

static bool
send_or_forget(struct etd_hub *h, const struct etd_route *to, zmq_msg_t *message)
{
    struct etd_peer *p = etd_hub_find(h, to);
    if (etd_route_send(to, message)) {
        if (p)
            p->said = eti_monotonic(h->cx);
        return true;
    }
    int why = zmq_errno();
    h->blocked = h->blocked || why == EAGAIN;
    if (p && why == EHOSTUNREACH)
        etd_hub_forget(h, p);
    return false;
}

bool
etd_hub_flush(struct etd_hub *h, struct etd_peer *p)
{
    int done = 0;
    while (p->used && done < p->n_outbox) {
        size_t n = zmq_msg_size(&p->outbox[done]);
        if (!send_or_forget(h, &p->to, &p->outbox[done]))
            break;
        p->outbox_bytes -= n;
        zmq_msg_close(&p->outbox[done++]);
    }
    if (!p->used)
        return false;
    p->n_outbox -= done;
    for (int i = 0; done > 0 && i < p->n_outbox; i++) {
        zmq_msg_init(&p->outbox[i]);
        (void)zmq_msg_move(&p->outbox[i], &p->outbox[i + done]);
        zmq_msg_close(&p->outbox[i + done]);
    }
    return p->n_outbox == 0;
}

/* Queues MESSAGE if there is room; otherwise P takes no answers, and is dropped. */
static bool
keep_waiting(struct etd_hub *h, struct etd_peer *p, zmq_msg_t *message)
{
    size_t n = zmq_msg_size(message);
    if (p->n_outbox == ETD_OUTBOX || p->outbox_bytes + n > ETD_OUTBOX_BYTES) {
        etd_hub_forget(h, p);
        return false;
    }
    zmq_msg_init(&p->outbox[p->n_outbox]);
    if (zmq_msg_move(&p->outbox[p->n_outbox], message) != 0)
        return false;
    p->n_outbox++;
    p->outbox_bytes += n;
    return true;
}

bool
etd_hub_send(struct etd_hub *h, const struct etd_route *to, const void *bytes, size_t n)
{
    zmq_msg_t message;
    struct etd_peer *p = etd_hub_find(h, to);
    if (n == 0 || zmq_msg_init_size(&message, n) != 0)
        return false;
    memcpy(zmq_msg_data(&message), bytes, n);
    bool sent = (!p || p->n_outbox == 0) && send_or_forget(h, to, &message);
    if (!sent && p && p->used)
        sent = keep_waiting(h, p, &message);
    zmq_msg_close(&message);
    return sent;
}

bool
etd_hub_send_message(struct etd_hub *h, struct etd_peer *p, zmq_msg_t *message)
{
    zmq_msg_t copy;
    zmq_msg_init(&copy);
    bool sent = zmq_msg_copy(&copy, message) == 0 && send_or_forget(h, &p->to, &copy);
    zmq_msg_close(&copy);
    return sent && p->used;
}

void
etd_hub_send_end(struct etd_hub *h, const struct etd_route *to, enum etd_kind kind,
                 const char *code, const char *text)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = etd_hub_head(h, kind);
    size_t n = etd_reason_write(bytes, sizeof bytes, &head, code, text);
    (void)etd_hub_send(h, to, bytes, n);
}

void
etd_hub_drop(struct etd_hub *h, struct etd_peer *p, const char *code, const char *text)
{
    etd_hub_send_end(h, &p->to, ETD_BYE, code, text);
    etd_hub_forget(h, p);
}
