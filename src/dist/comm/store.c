/* SPDX-License-Identifier: Apache-2.0 */
/* store.c: a connection to rank 0's table of names. See store.h; store_serve.c
 * serves. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/thread.h"
#include "dist/comm/store_impl.h"

struct etd_store {
    struct etd_store_config config;
    struct etd_server *server; /* rank 0 */
    int fd;                    /* -1: it failed */
    int watch;                 /* -1: nobody watches */
    pthread_t watcher;
    void (*lost)(void *data);
    void *data;
    atomic_bool closing;
};

int64_t
etd_store_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- bytes ---- */

/* Waits for EVENTS until DEADLINE; else errno says why not. */
static bool
wait_for(int fd, short events, int64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        int64_t left = deadline - etd_store_clock();
        int n = poll(&p, 1, left <= 0 ? 0 : left < INT_MAX ? (int)left : -1);
        if (n > 0)
            return true;
        if (n == 0)
            errno = ETIMEDOUT;
        if (errno != EINTR)
            return false;
    }
}

static bool
send_all(int fd, const void *bytes, size_t n, int64_t deadline)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent > 0) {
            at += sent;
            n -= (size_t)sent;
        } else if (errno != EINTR && errno != EAGAIN) {
            return false;
        } else if (!wait_for(fd, POLLOUT, deadline)) {
            return false;
        }
    }
    return true;
}

static bool
receive_all(int fd, void *bytes, size_t n, int64_t deadline)
{
    char *at = bytes;
    while (n > 0) {
        if (!wait_for(fd, POLLIN, deadline))
            return false;
        ssize_t got = recv(fd, at, n, 0);
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        } else if (got == 0) {
            errno = ECONNRESET;
            return false;
        } else if (errno != EINTR && errno != EAGAIN) {
            return false;
        }
    }
    return true;
}

/* Sends a request on the connection *FD and reads the answer. Closes it on failure: a
 * late answer would be taken for that of another request. */
static bool
ask_on(int *fd, enum etd_store_op op, const char *key, const void *value, size_t n,
       void *answer, size_t *answer_n, int64_t deadline)
{
    struct etd_store_head h = {
        .op = op,
        .key_bytes = (uint32_t)strlen(key),
        .value_bytes = (uint32_t)n,
    };
    bool good = *fd >= 0 && send_all(*fd, &h, sizeof h, deadline) &&
                send_all(*fd, key, h.key_bytes, deadline) &&
                send_all(*fd, value, n, deadline) &&
                receive_all(*fd, &h, sizeof h, deadline) && h.op == ETD_STORE_ANSWER &&
                h.key_bytes == 0 && h.value_bytes <= *answer_n &&
                receive_all(*fd, answer, h.value_bytes, deadline);
    if (!good && *fd >= 0) {
        int error = errno;
        close(*fd);
        *fd = -1;
        errno = error;
    }
    *answer_n = good ? h.value_bytes : 0;
    return good;
}

/* Asks and is answered; *N is the room at ANSWER, and what came. */
static bool
ask(struct etd_store *s, enum etd_store_op op, const char *key, const void *value,
    size_t n, void *answer, size_t *answer_n, int timeout_ms)
{
    return ask_on(&s->fd, op, key, value, n, answer, answer_n,
                  etd_store_clock() + timeout_ms);
}

/* ---- beginning ---- */

int
etd_store_socket(const char *host, int number, bool listens, int *error)
{
    const struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0),
    };
    struct addrinfo *list;
    char port[16];
    const int on = 1;
    int fd = -1;
    snprintf(port, sizeof port, "%d", number);
    *error = EADDRNOTAVAIL;
    if (getaddrinfo(host, port, &hints, &list) != 0)
        return -1;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd < 0)
            continue;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (listens)
            (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (listens ? bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 128) == 0
                    : connect(fd, a->ai_addr, a->ai_addrlen) == 0)
            break;
        *error = errno;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(list);
    return fd;
}

int
etd_store_listen(const char *host, int *port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    socklen_t n = sizeof at;
    int error, fd = etd_store_socket(host, 0, true, &error);
    if (fd < 0)
        return -1;
    if (getsockname(fd, &at.any, &n) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
    return fd;
}

static et_status
say_hello(struct etd_store *s, int *fd, bool watches, char *why, size_t size)
{
    const struct etd_store_config *c = &s->config;
    struct etd_store_hello hello = {
        .version = ETD_STORE_VERSION,
        .rank = c->rank,
        .world = c->world,
        .watches = watches,
    };
    char refusal[160];
    size_t n = sizeof refusal - 1;
    memcpy(hello.magic, ETD_STORE_MAGIC, sizeof hello.magic);
    memcpy(hello.secret, c->secret, sizeof hello.secret);
    if (!ask_on(fd, ETD_STORE_HELLO, "", &hello, sizeof hello, refusal, &n,
                etd_store_clock() + c->timeout_ms)) {
        snprintf(
            why, size,
            "%s:%d answered rank %d and is no rank 0 of this run: another program, "
            "or another secret",
            c->host, c->port, c->rank);
        return ET_EPEER;
    }
    refusal[n] = '\0';
    if (n > 0)
        snprintf(why, size, "rank 0 refused rank %d: %s", c->rank, refusal);
    return n > 0 ? ET_EPEER : ET_OK;
}

/* Rank 0 may come later. */
static et_status
find_rank_0(struct etd_store *s, int *fd, bool watches, char *why, size_t size)
{
    const struct etd_store_config *c = &s->config;
    int64_t deadline = etd_store_clock() + c->timeout_ms;
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    int error = 0;
    while ((*fd = etd_store_socket(c->host, c->port, false, &error)) < 0) {
        if (etd_store_clock() >= deadline) {
            snprintf(why, size, "rank %d found no rank 0 at %s:%d in %.1f s: %s",
                     c->rank, c->host, c->port, c->timeout_ms / 1e3, strerror(error));
            return ET_EPEER;
        }
        nanosleep(&pause, NULL);
    }
    return say_hello(s, fd, watches, why, size);
}

et_status
etd_store_open(const struct etd_store_config *config, struct etd_store **out, char *why,
               size_t size)
{
    struct etd_store *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s) {
        snprintf(why, size, "out of memory: the ranks' store");
        return ET_ENOMEM;
    }
    s->config = *config;
    s->fd = s->watch = -1;
    et_status status = ET_OK;
    if (config->rank == 0)
        status = etd_server_start(config, &s->server, why, size);
    if (status == ET_OK)
        status = find_rank_0(s, &s->fd, false, why, size);
    if (status != ET_OK)
        etd_store_close(&s, 0);
    *out = s;
    return status;
}

void
etd_store_close(struct etd_store **store, int linger_ms)
{
    struct etd_store *s = *store;
    size_t n = 0;
    *store = NULL;
    if (!s)
        return;
    atomic_store(&s->closing, true);
    if (s->fd >= 0 && linger_ms > 0)
        (void)ask(s, ETD_STORE_BYE, "", NULL, 0, NULL, &n, linger_ms);
    if (s->fd >= 0)
        close(s->fd);
    if (s->lost) {
        shutdown(s->watch, SHUT_RDWR);
        pthread_join(s->watcher, NULL);
        close(s->watch);
    }
    etd_server_stop(&s->server, linger_ms == 0);
    free(s);
}

/* ---- the table ---- */

static et_status
no_answer(const struct etd_store *s, char *why, size_t size)
{
    snprintf(why, size, "rank 0 at %s:%d does not answer rank %d: %s", s->config.host,
             s->config.port, s->config.rank, strerror(errno));
    return ET_EPEER;
}

et_status
etd_store_set(struct etd_store *s, const char *key, const void *value, size_t n,
              char *why, size_t size)
{
    size_t none = 0;
    if (strlen(key) >= ETD_STORE_KEY || n > ETD_STORE_VALUE) {
        snprintf(why, size, "a key of %zu bytes, a value of %zu: too long", strlen(key),
                 n);
        return ET_EINVAL;
    }
    return ask(s, ETD_STORE_SET, key, value, n, NULL, &none, s->config.timeout_ms)
               ? ET_OK
               : no_answer(s, why, size);
}

et_status
etd_store_get(struct etd_store *s, const char *key, void *value, size_t *n, char *why,
              size_t size)
{
    *n = ETD_STORE_VALUE;
    if (ask(s, ETD_STORE_GET, key, NULL, 0, value, n, s->config.timeout_ms))
        return ET_OK;
    snprintf(why, size, "rank %d waited for %s of another rank: %s", s->config.rank,
             key, strerror(errno));
    return ET_EPEER;
}

void
etd_store_report(struct etd_store *s, uint64_t seq, struct etd_report *out)
{
    size_t n = (size_t)s->config.world * sizeof *out, want = n;
    memset(out, 0, n);
    if (ask(s, ETD_STORE_REPORT, "", &seq, sizeof seq, out, &n,
            2 * ETD_STORE_PATIENCE) &&
        n == want)
        return;
    memset(out, 0, want);
    out[0].fate = ETD_FATE_GONE;
    out[s->config.rank].fate = ETD_FATE_REPORTED;
}

/* ---- watching ---- */

static void *
watch(void *data)
{
    struct etd_store *s = data;
    struct etd_store_head h = {.op = ETD_STORE_WATCH};
    /* The socket is the closer's: here it is only asked. */
    if (send_all(s->watch, &h, sizeof h, etd_store_clock() + s->config.timeout_ms))
        (void)receive_all(s->watch, &h, sizeof h, INT64_MAX);
    if (!atomic_load(&s->closing))
        s->lost(s->data);
    return NULL;
}

et_status
etd_store_watch(struct etd_store *s, void (*lost)(void *data), void *data, char *why,
                size_t size)
{
    ET_TRY(find_rank_0(s, &s->watch, true, why, size));
    s->lost = lost;
    s->data = data;
    int error = eti_thread_begin(&s->watcher, watch, s);
    if (error == 0)
        return ET_OK;
    s->lost = NULL;
    close(s->watch);
    s->watch = -1;
    snprintf(why, size, "no thread to watch the ranks: %s", strerror(error));
    return ET_ENOMEM;
}
