/* SPDX-License-Identifier: Apache-2.0 */
/* auth.c: see auth.h. zmq asks at a socket of a well-known name (ZAP, RFC 27) whether a
 * key may connect. Without anybody there it would let all in. */
#include "config.h"

#include "dist/wire/auth.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zmq.h>

#include "core/base/seams.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"

enum { PARTS = 16, PART = 256 };
static const double LOOK = 1;  /* seconds between looks at the file */
static const double KNOCK = 5; /* that the stranger is given */

/* ---- the list ---- */

static void
take_stamp(const char *path, int64_t stamp[4])
{
    struct stat st;
    memset(stamp, 0, 4 * sizeof *stamp);
    if (stat(path, &st) != 0)
        return;
    stamp[0] = (int64_t)st.st_ino;
    stamp[1] = st.st_size;
    stamp[2] = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
    stamp[3] = st.st_ctim.tv_sec * 1000000000LL + st.st_ctim.tv_nsec;
}

static int
count_valid(const struct etd_auth *d)
{
    int n = 0;
    for (int i = 0; i < d->list.n; i++)
        n += etd_auth_find(d, d->list.key[i].key) != NULL;
    return n;
}

static void
look_again(struct etd_auth *d)
{
    int64_t stamp[4];
    double now = eti_monotonic(d->cx);
    if (now - d->looked < LOOK)
        return;
    d->looked = now;
    take_stamp(d->path, stamp);
    if (memcmp(stamp, d->stamp, sizeof stamp) == 0)
        return;
    memcpy(d->stamp, stamp, sizeof stamp);
    if (etd_authorized_read(d->cx, d->path, &d->list) == ET_OK)
        return;
    const char *why = et_error_get(d->cx)->message;
    if (d->list.n > 0 || strcmp(d->why, why) != 0)
        et_report(d->cx, ET_LOG_WARN, "%s; nobody is let in", why);
    snprintf(d->why, sizeof d->why, "%.*s", (int)sizeof d->why - 1, why);
    et_error_clear(d->cx);
    d->list.n = 0;
    d->stamp[0] = -1; /* the same file may be readable at the next look */
}

const struct etd_authorized *
etd_auth_find(const struct etd_auth *d, const char *key)
{
    return etd_authorized_find(&d->list, key, eti_wall(d->cx));
}

/* ---- answering ---- */

struct part {
    char bytes[PART];
    int n; /* of the whole part, which may be longer */
};

/* The parts of a question: how many; -1: none waits; -2: the socket is broken. */
static int
receive_parts(void *socket, struct part part[PARTS])
{
    int n = 0, more = 1;
    while (more) {
        struct part *p = &part[n < PARTS ? n : PARTS - 1];
        size_t size = sizeof more;
        p->n = zmq_recv(socket, p->bytes, sizeof p->bytes, n ? 0 : ZMQ_DONTWAIT);
        if (p->n < 0)
            return zmq_errno() == EAGAIN || zmq_errno() == EINTR ? -1 : -2;
        n++;
        if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0)
            return -2;
    }
    return n;
}

static bool
is(const struct part *p, const char *text)
{
    return p->n == (int)strlen(text) && memcmp(p->bytes, text, strlen(text)) == 0;
}

/* [version, request, domain, address, identity, mechanism, key] of who wants in. */
static bool
answer(struct etd_auth *d, const struct part part[PARTS], int n)
{
    char key[ETD_KEY_TEXT] = "";
    bool whole =
        n == 7 && is(&part[0], "1.0") && is(&part[5], "CURVE") && part[6].n == 32;
    if (whole)
        zmq_z85_encode(key, (const uint8_t *)part[6].bytes, 32);
    bool right = whole && etd_auth_find(d, key) != NULL;
    d->admitted += right;
    d->refused += !right;
    if (!right)
        memcpy(d->last_refused, key, sizeof key);
    const char *code = right ? "200" : "400", *text = right ? "OK" : "no such key";
    int request = n > 1 && part[1].n <= PART ? part[1].n : 0;
    return zmq_send(d->socket, "1.0", 3, ZMQ_SNDMORE) >= 0 &&
           zmq_send(d->socket, part[1].bytes, (size_t)request, ZMQ_SNDMORE) >= 0 &&
           zmq_send(d->socket, code, 3, ZMQ_SNDMORE) >= 0 &&
           zmq_send(d->socket, text, strlen(text), ZMQ_SNDMORE) >= 0 &&
           zmq_send(d->socket, key, right ? strlen(key) : 0, ZMQ_SNDMORE) >= 0 &&
           zmq_send(d->socket, "", 0, 0) >= 0;
}

bool
etd_auth_step(struct etd_auth *d)
{
    struct part part[PARTS];
    int n;
    if (!d->socket)
        return false;
    look_again(d);
    while ((n = receive_parts(d->socket, part)) >= 0)
        if (!answer(d, part, n))
            return false;
    return n == -1;
}

et_status
etd_auth_open(struct et_ctx *cx, void *zmq, const char *path, struct etd_auth *out)
{
    int zero = 0;
    *out = (struct etd_auth){.cx = cx, .zmq = zmq, .looked = eti_monotonic(cx)};
    snprintf(out->path, sizeof out->path, "%s", path);
    take_stamp(path, out->stamp);
    ET_TRY(etd_authorized_read(cx, path, &out->list));
    if (count_valid(out) == 0)
        return ETD_FAIL(cx, ET_EINVAL, KEYS,
                        "%s lets nobody in: it has no key that is valid today", path);
    out->socket = zmq_socket(zmq, ZMQ_REP);
    if (out->socket &&
        zmq_setsockopt(out->socket, ZMQ_LINGER, &zero, sizeof zero) == 0 &&
        zmq_bind(out->socket, "inproc://zeromq.zap.01") == 0)
        return ET_OK;
    int why = zmq_errno();
    etd_auth_close(out);
    return ETD_FAIL(cx, ET_EIO, UNSAFE, "keys cannot be checked: %s",
                    zmq_strerror(why));
}

void
etd_auth_close(struct etd_auth *d)
{
    if (d->socket)
        zmq_close(d->socket);
    d->socket = NULL;
}

/* ---- listening ---- */

/* A client with a fresh key: true, it was turned away, and it was seen. */
static bool
is_stranger_refused(struct etd_auth *d, const struct etd_keys *server,
                    const char *address)
{
    struct etd_keys stranger;
    struct etd_channel *line;
    const char *bytes;
    size_t n;
    enum etd_got got = ETD_GOT_NOTHING;
    int64_t before = d->refused;
    const struct etd_channel_options o = {
        .target = address, .keys = &stranger, .server = server->public_key};
    if (etd_keys_draw(d->cx, &stranger) != ET_OK ||
        etd_channel_open(d->cx, &o, &line) != ET_OK) {
        et_error_clear(d->cx);
        return false;
    }
    double end = eti_monotonic(d->cx) + KNOCK;
    while (got == ETD_GOT_NOTHING && eti_monotonic(d->cx) < end) {
        zmq_pollitem_t item[] = {{.socket = d->socket, .events = ZMQ_POLLIN},
                                 {.fd = etd_channel_fd(line), .events = ZMQ_POLLIN}};
        (void)zmq_poll(item, 2, 100);
        if (!etd_auth_step(d))
            break;
        got = etd_channel_receive(line, &bytes, &n);
    }
    etd_channel_close(&line);
    return got == ETD_GOT_DENIED && d->refused > before &&
           strcmp(d->last_refused, stranger.public_key) == 0;
}

et_status
etd_auth_check(struct et_ctx *cx, const char *address)
{
    if (strncmp(address, "tcp://", 6) != 0 || strchr(address, '*'))
        return ETD_FAIL(cx, ET_EINVAL, UNSAFE,
                        "%s: an address to listen at is tcp://ADDRESS:PORT, with the "
                        "address written out (0.0.0.0 for all)",
                        address);
    return etd_address_check_port(cx, address, 0);
}

et_status
etd_auth_listen(struct etd_auth *d, void *router, const struct etd_keys *keys,
                const char *address, char *bound)
{
    int one = 1;
    size_t n = ETD_ADDRESS;
    if (zmq_setsockopt(router, ZMQ_CURVE_SERVER, &one, sizeof one) != 0 ||
        zmq_setsockopt(router, ZMQ_CURVE_SECRETKEY, keys->secret, ETD_KEY_TEXT) != 0 ||
        zmq_setsockopt(router, ZMQ_ZAP_DOMAIN, "etude", 5) != 0)
        return ETD_FAIL(d->cx, ET_EIO, UNSAFE, "no CURVE: %s",
                        zmq_strerror(zmq_errno()));
    if (zmq_bind(router, address) != 0 ||
        zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, bound, &n) != 0)
        return ETD_FAIL(d->cx, ET_EIO, TAKEN, "cannot listen at %s: %s", address,
                        zmq_strerror(zmq_errno()));
    return ET_OK;
}

et_status
etd_auth_bind(struct etd_auth *d, void *router, const struct etd_keys *keys,
              const char *address, char *bound)
{
    char knock[ETD_ADDRESS];
    ET_TRY(etd_auth_check(d->cx, address));
    ET_TRY(etd_auth_listen(d, router, keys, address, bound));
    /* All addresses are no address to connect to. */
    const char *port = strrchr(bound, ':');
    bool all = strncmp(bound, "tcp://0.0.0.0:", 14) == 0;
    snprintf(knock, sizeof knock, all ? "tcp://127.0.0.1%s" : "%s", all ? port : bound);
    if (is_stranger_refused(d, keys, knock))
        return ET_OK;
    (void)zmq_unbind(router, bound);
    return ETD_FAIL(d->cx, ET_EIO, UNSAFE,
                    "a stranger's key was not turned away at %s: nothing listens there",
                    bound);
}
