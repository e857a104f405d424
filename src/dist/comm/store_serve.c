/* SPDX-License-Identifier: Apache-2.0 */
/* store_serve.c: rank 0's table of names, served by a thread. See store.h.
 *
 * One poll loop; each connection has one message under way in either direction, and
 * says nothing more until it is answered. Before its hello a connection has a few
 * seconds and a few bytes, so strangers can neither fill the table nor stop the
 * loop. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/thread.h"
#include "dist/comm/store_impl.h"

enum {
    STRANGERS = 16,   /* connections without a hello, at most */
    HELLO_MS = 5000,  /* for it */
    KEYS = 64 * 1024, /* names in the table, at most */
    NOT_WAITING = -1, /* client.waits_for */
};

struct entry {
    char key[ETD_STORE_KEY];
    void *value;
    size_t n;
};

struct client {
    int fd;
    int rank;         /* -1: it has not said hello */
    bool watches;     /* a second one of that rank */
    int64_t deadline; /* for the hello */
    bool bye;
    bool waits; /* for an answer to OP */
    enum etd_store_op op;
    char key[ETD_STORE_KEY]; /* of a get that waits */
    struct etd_store_head head;
    size_t got; /* bytes of head and what follows */
    char *body; /* key and value */
};

struct etd_server {
    struct etd_store_config config;
    int listener, wake[2]; /* what is written there is the last: 'p' is patient */
    pthread_t thread;
    struct client *client; /* [room] */
    int n, room;
    struct entry *entry;
    int n_entries, room_entries;
    struct etd_report *report; /* [world] */
    int64_t first_report;      /* ms; 0: nobody has */
};

/* ---- connections ---- */

static void
drop(struct etd_server *s, int i)
{
    struct client *c = &s->client[i];
    /* A rank that reported and then ended is not the cause. */
    if (c->rank >= 0 && !c->watches && s->report[c->rank].fate == ETD_FATE_SILENT)
        s->report[c->rank].fate = ETD_FATE_GONE;
    close(c->fd);
    free(c->body);
    s->client[i] = s->client[--s->n];
}

static void
admit(struct etd_server *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (s->n == s->room) {
        close(fd);
        return;
    }
    s->client[s->n++] = (struct client){
        .fd = fd,
        .rank = -1,
        .deadline = etd_store_clock() + HELLO_MS,
    };
}

/* Answers are small and rarer than the socket's buffer is full: one that does not go
 * out at once is a connection that is broken, or a stranger's. */
static bool
answer(struct client *c, const void *value, size_t n)
{
    struct etd_store_head h = {.op = ETD_STORE_ANSWER, .value_bytes = (uint32_t)n};
    c->waits = false;
    return send(c->fd, &h, sizeof h, MSG_NOSIGNAL) == (ssize_t)sizeof h &&
           (n == 0 || send(c->fd, value, n, MSG_NOSIGNAL) == (ssize_t)n);
}

/* ---- the table ---- */

static struct entry *
find(struct etd_server *s, const char *key)
{
    for (int i = 0; i < s->n_entries; i++)
        if (strcmp(s->entry[i].key, key) == 0)
            return &s->entry[i];
    return NULL;
}

static bool
set(struct etd_server *s, const char *key, const void *value, size_t n)
{
    struct entry *e = find(s, key);
    void *copy = malloc(n + 1);
    if (!copy)
        return false;
    memcpy(copy, value, n);
    if (!e && s->n_entries == s->room_entries) {
        int room = s->room_entries ? 2 * s->room_entries : 64;
        struct entry *more =
            room <= KEYS ? realloc(s->entry, (size_t)room * sizeof *more) : NULL;
        if (!more) {
            free(copy);
            return false;
        }
        s->entry = more;
        s->room_entries = room;
    }
    if (!e) {
        e = &s->entry[s->n_entries++];
        *e = (struct entry){0};
        snprintf(e->key, sizeof e->key, "%s", key);
    }
    free(e->value);
    e->value = copy;
    e->n = n;
    return true;
}

/* ---- messages ---- */

/* Compares in constant time: how long it takes does not tell how much was right. */
static bool
same_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint8_t differ = 0;
    for (size_t i = 0; i < n; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}

/* False: a stranger, who is told nothing. */
static bool
greet(struct etd_server *s, struct client *c, const void *value, size_t n)
{
    struct etd_store_hello h;
    char refusal[160] = "";
    if (n != sizeof h)
        return false;
    memcpy(&h, value, sizeof h);
    if (memcmp(h.magic, ETD_STORE_MAGIC, sizeof h.magic) != 0 ||
        !same_bytes(h.secret, s->config.secret, sizeof h.secret))
        return false;
    if (h.version != ETD_STORE_VERSION)
        snprintf(refusal, sizeof refusal, "it is of another version of etude");
    else if (h.world != s->config.world || h.rank < 0 || h.rank >= h.world)
        snprintf(refusal, sizeof refusal, "it is one of %d ranks, and this run has %d",
                 h.world, s->config.world);
    else if (!h.watches && s->report[h.rank].fate != ETD_FATE_ABSENT)
        snprintf(refusal, sizeof refusal, "there is a rank %d already", h.rank);
    if (!refusal[0]) {
        c->rank = h.rank;
        c->watches = h.watches != 0;
        if (!c->watches)
            s->report[h.rank].fate = ETD_FATE_SILENT;
    }
    return answer(c, refusal, strlen(refusal));
}

/* A whole message of C. False: the connection has had it. */
static bool
handle(struct etd_server *s, struct client *c)
{
    size_t key_bytes = c->head.key_bytes, n = c->head.value_bytes;
    const char *value = c->body + key_bytes;
    memcpy(c->key, c->body, key_bytes);
    c->key[key_bytes] = '\0';
    c->got = 0;
    c->op = (enum etd_store_op)c->head.op;
    if ((c->rank < 0) != (c->op == ETD_STORE_HELLO) ||
        (c->watches && c->op != ETD_STORE_WATCH))
        return false;
    switch (c->op) {
    case ETD_STORE_HELLO:
        return greet(s, c, value, n);
    case ETD_STORE_SET:
        return set(s, c->key, value, n) && answer(c, NULL, 0);
    case ETD_STORE_REPORT:
        if (n != sizeof s->report->seq)
            return false;
        memcpy(&s->report[c->rank].seq, value, n);
        s->report[c->rank].fate = ETD_FATE_REPORTED;
        if (!s->first_report)
            s->first_report = etd_store_clock();
        break;
    case ETD_STORE_BYE:
        s->report[c->rank].fate = ETD_FATE_LEFT;
        break;
    case ETD_STORE_GET:
    case ETD_STORE_WATCH:
        break;
    default:
        return false;
    }
    c->waits = true;
    return true;
}

/* Reads what there is. False: the connection has had it. */
static bool
listen_to(struct etd_server *s, struct client *c)
{
    for (;;) {
        /* Now, as the message before may have been the hello. */
        size_t most = c->rank < 0 ? sizeof(struct etd_store_hello) : ETD_STORE_VALUE;
        size_t whole = sizeof c->head;
        if (c->got >= sizeof c->head)
            whole += c->head.key_bytes + c->head.value_bytes;
        char *at = c->got < sizeof c->head ? (char *)&c->head + c->got
                                           : c->body + (c->got - sizeof c->head);
        ssize_t n = whole > c->got ? recv(c->fd, at, whole - c->got, 0) : 0;
        if (whole > c->got && n == 0)
            return false;
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        c->got += (size_t)n;
        if (c->got == sizeof c->head && whole == sizeof c->head) {
            if (c->waits || c->head.key_bytes >= ETD_STORE_KEY ||
                c->head.value_bytes > most)
                return false;
            free(c->body);
            c->body = malloc(c->head.key_bytes + c->head.value_bytes + 1);
            if (!c->body)
                return false;
            whole += c->head.key_bytes + c->head.value_bytes;
        }
        if (c->got >= sizeof c->head && c->got == whole && !handle(s, c))
            return false;
    }
}

/* ---- those who wait ---- */

static bool
all_known(const struct etd_server *s)
{
    for (int i = 0; i < s->config.world; i++)
        if (s->report[i].fate == ETD_FATE_SILENT)
            return false;
    return true;
}

/* Has RANK a connection? A rank that has reported may already have closed it. */
static bool
is_there(const struct etd_server *s, int rank)
{
    for (int i = 0; i < s->n; i++)
        if (s->client[i].rank == rank && !s->client[i].watches)
            return true;
    return false;
}

static bool
all_left(const struct etd_server *s)
{
    for (int i = 0; i < s->config.world; i++)
        if (s->report[i].fate == ETD_FATE_SILENT ||
            (s->report[i].fate == ETD_FATE_REPORTED && is_there(s, i)))
            return false;
    return true;
}

static bool
any_gone(const struct etd_server *s)
{
    for (int i = 0; i < s->config.world; i++)
        if (s->report[i].fate == ETD_FATE_GONE ||
            (s->report[i].fate == ETD_FATE_REPORTED && !is_there(s, i)))
            return true;
    return false;
}

/* False: the connection has had it. */
static bool
try_to_answer(struct etd_server *s, struct client *c)
{
    struct entry *e;
    switch (c->op) {
    case ETD_STORE_GET:
        e = find(s, c->key);
        return !e || answer(c, e->value, e->n);
    case ETD_STORE_REPORT:
        if (!all_known(s) && etd_store_clock() < s->first_report + ETD_STORE_PATIENCE)
            return true;
        return answer(c, s->report, (size_t)s->config.world * sizeof *s->report);
    case ETD_STORE_WATCH:
        return !any_gone(s) || answer(c, NULL, 0);
    default:
        return !all_left(s) || answer(c, NULL, 0);
    }
}

static void
answer_all(struct etd_server *s)
{
    for (int i = s->n - 1; i >= 0; i--) {
        struct client *c = &s->client[i];
        bool late = c->rank < 0 && etd_store_clock() > c->deadline;
        if (late || (c->waits && !try_to_answer(s, c)))
            drop(s, i);
    }
}

/* ---- the thread ---- */

static void *
serve(void *data)
{
    struct etd_server *s = data;
    struct pollfd *p = calloc((size_t)s->room + 2, sizeof *p);
    int64_t end = INT64_MAX; /* when it is asked to stop, and still answers */
    while (p && etd_store_clock() < end && (end == INT64_MAX || !all_known(s))) {
        int n = s->n;
        p[0] = (struct pollfd){.fd = s->wake[0], .events = POLLIN};
        p[1] = (struct pollfd){.fd = s->listener, .events = POLLIN};
        for (int i = 0; i < n; i++)
            p[2 + i] = (struct pollfd){.fd = s->client[i].fd, .events = POLLIN};
        if (poll(p, (nfds_t)n + 2, 100) < 0 && errno != EINTR)
            break;
        if (p[0].revents) {
            char how = 0;
            if (read(s->wake[0], &how, 1) != 1 || how != 'p')
                break;
            end = ETD_STORE_PATIENCE +
                  (s->first_report ? s->first_report : etd_store_clock());
        }
        for (int i = n - 1; i >= 0; i--) /* drop moves the last, which has been seen */
            if (p[2 + i].revents && !listen_to(s, &s->client[i]))
                drop(s, i);
        if (p[1].revents)
            admit(s);
        answer_all(s);
    }
    free(p);
    return NULL;
}

static et_status
make(struct etd_server *s)
{
    const struct etd_store_config *c = &s->config;
    s->room = 2 * c->world + STRANGERS;
    s->client = calloc((size_t)s->room, sizeof *s->client);
    s->report = calloc((size_t)c->world, sizeof *s->report);
    for (int i = 0; s->report && i < c->world; i++)
        s->report[i].fate = ETD_FATE_ABSENT;
    return s->client && s->report && pipe2(s->wake, O_CLOEXEC) == 0 ? ET_OK : ET_ENOMEM;
}

static void
release(struct etd_server *s)
{
    while (s->n > 0)
        drop(s, s->n - 1);
    for (int i = 0; i < s->n_entries; i++)
        free(s->entry[i].value);
    if (s->listener >= 0)
        close(s->listener);
    for (int i = 0; i < 2; i++)
        if (s->wake[i] >= 0)
            close(s->wake[i]);
    free(s->entry);
    free(s->client);
    free(s->report);
    free(s);
}

et_status
etd_server_start(const struct etd_store_config *config, struct etd_server **out,
                 char *why, size_t size)
{
    struct etd_server *s = calloc(1, sizeof *s);
    int error = 0;
    *out = NULL;
    if (!s) {
        snprintf(why, size, "out of memory: the ranks' store");
        return ET_ENOMEM;
    }
    s->config = *config;
    s->wake[0] = s->wake[1] = -1;
    s->listener = config->listener;
    if (s->listener < 0)
        s->listener = etd_store_socket(config->host, config->port, true, &error);
    if (s->listener < 0) {
        snprintf(why, size, "rank 0 cannot have %s:%d (MASTER_ADDR, MASTER_PORT): %s",
                 config->host, config->port, strerror(error));
        release(s);
        return ET_ENOTSUP;
    }
    (void)fcntl(s->listener, F_SETFL, O_NONBLOCK);
    et_status status = make(s);
    if (status == ET_OK && eti_thread_begin(&s->thread, serve, s) != 0)
        status = ET_ENOMEM;
    if (status != ET_OK) {
        snprintf(why, size, "rank 0 cannot serve %d ranks: out of memory or threads",
                 config->world);
        release(s);
        return status;
    }
    *out = s;
    return ET_OK;
}

void
etd_server_stop(struct etd_server **server, bool patient)
{
    struct etd_server *s = *server;
    *server = NULL;
    if (!s)
        return;
    ssize_t told = write(s->wake[1], patient ? "p" : "", 1);
    (void)told;
    pthread_join(s->thread, NULL);
    release(s);
}
