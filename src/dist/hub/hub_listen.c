/* SPDX-License-Identifier: Apache-2.0 */
/* hub_listen.c: where the hub listens, and how it keeps that place as long as the run
 * lasts. The folder may be removed meanwhile: XDG_RUNTIME_DIR goes when the user logs
 * out, and is there again, empty, at the next login. A socket does not tell that its
 * file has gone, and inotify cannot watch a folder that is missing, so the hub looks
 * once a second. Connections outlive the file: viewers that are there stay. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "core/base/seams.h"
#include "dist/hub/hub_parts.h"
#include "dist/wire/errors.h"

enum {
    PIPE = 128,      /* messages on their way to a viewer that zmq may hold */
    MOST_PLACES = 16 /* sockets that are left open; then another hub begins anew */
};
static const double LOOK = 1; /* seconds */

/* The supervisor is told where it listens; "" nowhere, and WHY. */
static void
say_place(struct etd_hub *h, const char *path, const char *why)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    const struct etd_head head = etd_hub_head(h, ETD_HELLO);
    etd_begin(&o, bytes, sizeof bytes, &head, 2);
    etd_put_text(&o, "endpoint", path);
    etd_put_text(&o, "why", why);
    (void)send(h->supervisor, bytes, etd_end(&o), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Listens at a free place. Otherwise tells why not, once for each reason. */
static void
take_place(struct etd_hub *h)
{
    struct etd_endpoint new;
    et_status status = etd_endpoint_claim(h->cx, h->name, h->id, &new);
    if (status == ET_OK)
        status = etd_endpoint_bind(&new, &etd_endpoint_zmq, h->router);
    if (status == ET_OK) {
        h->endpoint = new;
        h->places++;
        say_place(h, new.path, h->nowhere);
        h->nowhere[0] = '\0';
        return;
    }
    etd_endpoint_release(&new);
    const struct et_error *e = et_error_get(h->cx);
    char why[ETD_TEXT];
    snprintf(why, sizeof why, "%.*s", ETD_TEXT - 1, e->message);
    et_error_clear(h->cx);
    if (strcmp(why, h->nowhere) != 0)
        say_place(h, "", why);
    memcpy(h->nowhere, why, sizeof why);
}

et_status
etd_hub_listen(struct etd_hub *h)
{
    (void)etd_endpoint_descriptors();
    h->zmq = zmq_ctx_new();
    h->router = etd_endpoint_router(h->zmq, PIPE, 2 * PIPE, ETD_INBOUND_BYTES, true);
    if (!h->router)
        return ET_FAIL(h->cx, ET_EIO, "no socket for the hub: %s",
                       zmq_strerror(zmq_errno()));
    h->stood_at = eti_monotonic(h->cx);
    take_place(h);
    return ET_OK;
}

et_status
etd_hub_listen_again(struct etd_hub *h)
{
    double now = eti_monotonic(h->cx);
    if (now - h->stood_at < LOOK)
        return ET_OK;
    h->stood_at = now;
    if (!h->nowhere[0] && etd_endpoint_stands(&h->endpoint))
        return ET_OK;
    if (h->places >= MOST_PLACES)
        return ET_FAIL(h->cx, ET_EIO, "the hub has lost its socket %d times",
                       MOST_PLACES);
    if (!h->nowhere[0])
        snprintf(h->nowhere, sizeof h->nowhere, "%s is gone", h->endpoint.path);
    etd_endpoint_release(&h->endpoint); /* its lock's file is gone, too */
    take_place(h);
    return ET_OK;
}
