/* place.c: see place.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "dist/place.h"

enum { DEFAULT_TIMEOUT = 300 }; /* seconds: RELIABILITY.md section 4 */

/* The number in variable NAME, OTHERWISE where there is none. */
static et_status
read_number(struct et_ctx *cx, const char *name, long least, long most, long otherwise,
            int *out)
{
    const char *text = getenv(name);
    char *end;
    *out = (int)otherwise;
    if (!text || !text[0])
        return ET_OK;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || value < least || value > most)
        return ET_FAIL(cx, ET_EINVAL,
                       "%s is '%s' in the environment: a number from %ld "
                       "to %ld is expected",
                       name, text, least, most);
    *out = (int)value;
    return ET_OK;
}

static int
digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static et_status
read_secret(struct et_ctx *cx, struct etd_place *p)
{
    const char *text = getenv("ETUDE_RANK_SECRET");
    if (!text || !text[0])
        return ET_OK;
    bool good = strlen(text) == 2 * sizeof p->secret;
    for (size_t i = 0; i < sizeof p->secret && good; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        good = high >= 0 && low >= 0;
        p->secret[i] = (uint8_t)(high << 4 | low);
    }
    return good ? ET_OK
                : ET_FAIL(cx, ET_EINVAL,
                          "ETUDE_RANK_SECRET is not %zu hexadecimal digits",
                          2 * sizeof p->secret);
}

/* A descriptor may have become something else since it was named. */
static et_status
read_listener(struct et_ctx *cx, struct etd_place *p)
{
    int on = 0;
    socklen_t n = sizeof on;
    ET_TRY(read_number(cx, "ETUDE_RANK_LISTENER", 0, INT_MAX, -1, &p->listener));
    if (p->rank != 0)
        p->listener = -1;
    if (p->listener >= 0 &&
        (getsockopt(p->listener, SOL_SOCKET, SO_ACCEPTCONN, &on, &n) != 0 || !on))
        return ET_FAIL(cx, ET_EINVAL,
                       "ETUDE_RANK_LISTENER is %d in the environment, and that is no "
                       "socket that listens",
                       p->listener);
    return ET_OK;
}

/* Only this machine's: what ranks send each other is neither hidden nor sealed. */
static bool
is_loopback(const char *host)
{
    struct in_addr a;
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           (inet_pton(AF_INET, host, &a) == 1 && ntohl(a.s_addr) >> 24 == 127);
}

static et_status
check(struct et_ctx *cx, const struct etd_place *p)
{
    if (p->rank >= p->world)
        return ET_FAIL(cx, ET_EINVAL,
                       "RANK is %d and WORLD_SIZE %d: ranks count from 0", p->rank,
                       p->world);
    if (p->local_rank >= p->local_world)
        return ET_FAIL(cx, ET_EINVAL,
                       "LOCAL_RANK is %d and LOCAL_WORLD_SIZE %d: ranks count from 0",
                       p->local_rank, p->local_world);
    if (p->local_world != p->world)
        return ET_FAIL(
            cx, ET_ENOTSUP,
            "%d of %d ranks are on this machine: a run's ranks are all on one",
            p->local_world, p->world);
    if (p->world > 1 && !is_loopback(p->host))
        return ET_FAIL(
            cx, ET_ENOTSUP,
            "MASTER_ADDR is %s: the ranks of a run are all on one machine, and "
            "meet at 127.0.0.1",
            p->host);
    if (p->world > 1 && p->port == 0)
        return ET_FAIL(cx, ET_EINVAL, "MASTER_PORT is not set, and there are %d ranks",
                       p->world);
    return ET_OK;
}

et_status
etd_place_read(struct et_ctx *cx, struct etd_place *p)
{
    const char *host = getenv("MASTER_ADDR");
    int timeout;
    *p = (struct etd_place){.world = 1, .local_world = 1, .listener = -1};
    ET_TRY(read_number(cx, "ETUDE_RANK_TIMEOUT", 1, INT_MAX / 1000, DEFAULT_TIMEOUT,
                       &timeout));
    p->timeout_ms = 1000 * timeout;
    p->is_rank = getenv("RANK") && getenv("LOCAL_RANK");
    if (!p->is_rank)
        return ET_OK;
    ET_TRY(read_number(cx, "RANK", 0, ETD_STORE_RANKS - 1, 0, &p->rank));
    ET_TRY(read_number(cx, "WORLD_SIZE", 1, ETD_STORE_RANKS, 1, &p->world));
    ET_TRY(read_number(cx, "LOCAL_RANK", 0, ETD_STORE_RANKS - 1, 0, &p->local_rank));
    ET_TRY(read_number(cx, "LOCAL_WORLD_SIZE", 1, ETD_STORE_RANKS, p->world,
                       &p->local_world));
    ET_TRY(read_number(cx, "MASTER_PORT", 1, 65535, 0, &p->port));
    ET_TRY(read_secret(cx, p));
    ET_TRY(read_listener(cx, p));
    snprintf(p->host, sizeof p->host, "%s", host && host[0] ? host : "127.0.0.1");
    return check(cx, p);
}

bool
etd_comm_possible(void)
{
#ifdef ET_GLOO
    return true;
#else
    return false;
#endif
}

#ifdef ET_GLOO

static et_status
open_gloo(const struct etd_place *p, void **self, char *why, size_t size)
{
    struct etd_store_config config = {
        .host = p->host,
        .port = p->port,
        .listener = p->listener,
        .rank = p->rank,
        .world = p->world,
        .timeout_ms = p->timeout_ms,
    };
    struct etd_store *store;
    memcpy(config.secret, p->secret, sizeof config.secret);
    ET_TRY(etd_store_open(&config, &store, why, size));
    et_status status = etd_gloo_new(p, store, self, why, size);
    if (status != ET_OK)
        etd_store_close(&store, 0);
    return status;
}

et_status
etd_comm_open(struct et_ctx *cx, const struct etd_place *place, struct et_comm **out)
{
    char why[512] = "";
    void *self;
    *out = NULL;
    if (place->world == 1)
        return ET_OK;
    et_status status = open_gloo(place, &self, why, sizeof why);
    if (status != ET_OK)
        return ET_FAIL(cx, status, "%s", why);
    status = et_comm_new(cx, &etd_gloo, self, place->rank, place->world, out);
    if (status != ET_OK)
        etd_gloo.close(self, true);
    return status;
}

#else

et_status
etd_comm_open(struct et_ctx *cx, const struct etd_place *place, struct et_comm **out)
{
    *out = NULL;
    if (place->world == 1)
        return ET_OK;
    return ET_FAIL(cx, ET_ENOTSUP,
                   "%d ranks: this program was built without Gloo, and trains with one",
                   place->world);
}

#endif
