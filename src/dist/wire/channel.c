/* SPDX-License-Identifier: Apache-2.0 */
/* channel.c: see channel.h. A local or TCP channel is a DEALER of its own, which never
 * connects a second time: who uses it tries again with another. An ssh channel is a
 * child's pipes, with each message behind its length (u32, little endian). */
#include "config.h"

#include "dist/wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "dist/wire/ssh.h"
#include "dist/wire/wire.h"

extern char **environ;

enum {
    PREFIX = 4,
    PIPE_ROOM = 2 * (PREFIX + ETD_CHUNK_BYTES), /* for two of the longest messages */
    /* Until zmq would connect again by itself. (Were it told not to, it would drop what
     * has arrived and was not read when the other side ends.) */
    NEVER_MS = 24 * 3600 * 1000,
    WAITING = 1024, /* messages that a socket may hold, each way */
};

/* Bytes on their way, in order. */
struct buffer {
    char *bytes; /* [PIPE_ROOM] */
    size_t from, to;
};

struct etd_channel {
    struct et_ctx *cx;
    int epoll;
    /* zmq */
    void *zmq, *own_zmq; /* the context; NULL unless it is ours to end */
    void *socket, *monitor;
    zmq_msg_t message;                      /* the last one */
    bool has_message, gone, denied, broken; /* BROKEN: in the handshake */
    /* ssh */
    pid_t child; /* 0: none */
    int in, out; /* -1 */
    struct buffer read, write;
};

static et_status
watch(struct etd_channel *channel, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(channel->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return ET_OK;
    return ET_FAIL(channel->cx, ET_EIO, "cannot watch a line: %s", strerror(errno));
}

/* ---- zmq ---- */

static et_status
zmq_failed(struct etd_channel *channel, const char *target)
{
    return ETD_FAIL(channel->cx, ET_EIO, UNREACHABLE, "cannot connect to %s: %s",
                    target, zmq_strerror(zmq_errno()));
}

static bool
set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

/* What happens to the connection arrives at a socket of its own. Its name is drawn, so
 * that no other channel of this process has had it: zmq gives a name free some time
 * after its socket was closed, and an address is given out again at once. */
static bool
open_monitor(struct etd_channel *channel)
{
    uint64_t drawn[2];
    char name[64];
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
        return false;
    snprintf(name, sizeof name, "inproc://line-%016" PRIx64 "%016" PRIx64, drawn[0],
             drawn[1]);
    int events = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_CONNECT_RETRIED |
                 ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
    channel->monitor = zmq_socket(channel->zmq, ZMQ_PAIR);
    return channel->monitor && set_int(channel->monitor, ZMQ_LINGER, 0) &&
           zmq_socket_monitor(channel->socket, name, events) == 0 &&
           zmq_connect(channel->monitor, name) == 0;
}

static bool
set_curve(struct etd_channel *channel, const struct etd_channel_options *o)
{
    return zmq_setsockopt(channel->socket, ZMQ_CURVE_SERVERKEY, o->server,
                          ETD_KEY_TEXT) == 0 &&
           zmq_setsockopt(channel->socket, ZMQ_CURVE_PUBLICKEY, o->keys->public_key,
                          ETD_KEY_TEXT) == 0 &&
           zmq_setsockopt(channel->socket, ZMQ_CURVE_SECRETKEY, o->keys->secret,
                          ETD_KEY_TEXT) == 0;
}

static int
socket_fd(void *socket)
{
    int fd = -1;
    size_t n = sizeof fd;
    return zmq_getsockopt(socket, ZMQ_FD, &fd, &n) == 0 ? fd : -1;
}

static et_status
open_zmq(struct etd_channel *channel, const struct etd_channel_options *o,
         const char *address)
{
    bool is_tcp = strncmp(address, "tcp://", 6) == 0;
    if (is_tcp && (!o->keys || !o->server))
        return ETD_FAIL(channel->cx, ET_EINVAL, KEYS, "no key is known for %s",
                        address);
    channel->zmq = o->zmq;
    if (!channel->zmq)
        channel->zmq = channel->own_zmq = zmq_ctx_new();
    channel->socket = channel->zmq ? zmq_socket(channel->zmq, ZMQ_DEALER) : NULL;
    if (!channel->socket || !set_int(channel->socket, ZMQ_LINGER, 0) ||
        !set_int(channel->socket, ZMQ_RECONNECT_IVL, NEVER_MS) ||
        !set_int(channel->socket, ZMQ_IMMEDIATE, 0) ||
        !set_int(channel->socket, ZMQ_SNDHWM, WAITING) ||
        !set_int(channel->socket, ZMQ_RCVHWM, WAITING) ||
        !set_int(channel->socket, ZMQ_HANDSHAKE_IVL, (int)(1000 * ETD_HANDSHAKE)) ||
        !set_int(channel->socket, ZMQ_CONNECT_TIMEOUT, (int)(1000 * ETD_HANDSHAKE)) ||
        zmq_setsockopt(channel->socket, ZMQ_MAXMSGSIZE, &(int64_t){ETD_CHUNK_BYTES},
                       sizeof(int64_t)) != 0 ||
        (is_tcp && !set_curve(channel, o)) || !open_monitor(channel) ||
        zmq_connect(channel->socket, address) != 0)
        return zmq_failed(channel, address);
    ET_TRY(watch(channel, socket_fd(channel->socket)));
    return watch(channel, socket_fd(channel->monitor));
}

/* What has happened to the connection since it was asked last. */
static void
look_at_monitor(struct etd_channel *channel)
{
    unsigned char event[6];
    char address[256];
    while (zmq_recv(channel->monitor, event, sizeof event, ZMQ_DONTWAIT) >= 2) {
        int what = event[0] | event[1] << 8;
        (void)zmq_recv(channel->monitor, address, sizeof address, ZMQ_DONTWAIT);
        channel->denied = channel->denied || what == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ||
                          what == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;
        channel->broken =
            channel->broken || what == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
        channel->gone = true;
    }
}

const char *
etd_channel_why_gone(const struct etd_channel *channel)
{
    return channel->broken
               ? "the other side breaks off the handshake: is its key still "
                 "the one known here?"
               : NULL;
}

static enum etd_got
receive_zmq(struct etd_channel *channel, const char **bytes, size_t *n)
{
    if (channel->has_message)
        zmq_msg_close(&channel->message);
    channel->has_message = false;
    for (;;) {
        zmq_msg_init(&channel->message);
        int got = zmq_msg_recv(&channel->message, channel->socket, ZMQ_DONTWAIT);
        if (got < 0)
            break;
        if (!zmq_msg_more(&channel->message)) {
            channel->has_message = true;
            *bytes = zmq_msg_data(&channel->message);
            *n = (size_t)got;
            return ETD_GOT_MESSAGE;
        }
        zmq_msg_close(&channel->message); /* nobody of ours sends parts */
    }
    zmq_msg_close(&channel->message);
    look_at_monitor(channel);
    return channel->denied ? ETD_GOT_DENIED
           : channel->gone ? ETD_GOT_GONE
                           : ETD_GOT_NOTHING;
}

/* ---- ssh ---- */

static bool
spawn(struct etd_channel *channel, const char *host)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    const char *argv[] = {"ssh", "-T", "--", host, "etude", ETD_RELAY_COMMAND, NULL};
    /* (A socket: writing to a pipe of a child that is gone is a signal.) */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to) != 0)
        return false;
    if (pipe2(from, O_CLOEXEC) != 0) {
        close(to[0]);
        close(to[1]);
        return false;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    int failed = posix_spawnp(&channel->child, "ssh", &actions, NULL,
                              (char *const *)(void *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    channel->out = to[1];
    channel->in = from[0];
    channel->child = failed ? 0 : channel->child;
    errno = failed;
    return !failed && fcntl(channel->in, F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(channel->out, F_SETFL, O_NONBLOCK) == 0;
}

static et_status
open_ssh(struct etd_channel *channel, const char *host)
{
    void *block;
    if (!etd_ssh_is_host(host))
        return ETD_FAIL(channel->cx, ET_EINVAL, ADDRESS, "ssh://%s names no host",
                        host);
    ET_TRY(et_alloc(channel->cx, PIPE_ROOM, &block));
    channel->read.bytes = block;
    ET_TRY(et_alloc(channel->cx, PIPE_ROOM, &block));
    channel->write.bytes = block;
    if (!spawn(channel, host))
        return ETD_FAIL(channel->cx, ET_EIO, UNREACHABLE, "cannot run ssh: %s",
                        strerror(errno));
    return watch(channel, channel->in);
}

static void
move_down(struct buffer *b)
{
    memmove(b->bytes, b->bytes + b->from, b->to - b->from);
    b->to -= b->from;
    b->from = 0;
}

/* Writes what the pipe takes; the rest waits. */
static void
flush(struct etd_channel *channel)
{
    struct buffer *b = &channel->write;
    while (b->from < b->to) {
        ssize_t n =
            send(channel->out, b->bytes + b->from, b->to - b->from, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            channel->gone = channel->gone || (errno != EAGAIN && errno != EWOULDBLOCK);
            return;
        }
        b->from += (size_t)n;
    }
}

static bool
send_ssh(struct etd_channel *channel, const void *bytes, size_t n)
{
    struct buffer *b = &channel->write;
    flush(channel);
    move_down(b);
    if (PIPE_ROOM - b->to < PREFIX + n)
        return false;
    for (int i = 0; i < PREFIX; i++)
        b->bytes[b->to++] = (char)(n >> 8 * i);
    memcpy(b->bytes + b->to, bytes, n);
    b->to += n;
    flush(channel);
    return true;
}

static enum etd_got
receive_ssh(struct etd_channel *channel, const char **bytes, size_t *n)
{
    struct buffer *b = &channel->read;
    flush(channel);
    for (;;) {
        const unsigned char *p = (const unsigned char *)b->bytes + b->from;
        if (b->to - b->from >= PREFIX) {
            *n = p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
            if (*n > ETD_CHUNK_BYTES)
                return ETD_GOT_GONE;
            if (b->to - b->from >= PREFIX + *n) {
                *bytes = b->bytes + b->from + PREFIX;
                b->from += PREFIX + *n;
                return ETD_GOT_MESSAGE;
            }
        }
        move_down(b);
        ssize_t got = read(channel->in, b->bytes + b->to, PIPE_ROOM - b->to);
        if (got > 0) {
            b->to += (size_t)got;
            continue;
        }
        if (got < 0 && errno == EINTR)
            continue;
        bool waits = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        return waits && !channel->gone ? ETD_GOT_NOTHING : ETD_GOT_GONE;
    }
}

/* ---- either ---- */

et_status
etd_channel_open(struct et_ctx *cx, const struct etd_channel_options *o,
                 struct etd_channel **out)
{
    char address[ETD_SOCKET_PATH + 8];
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_channel *channel = block;
    *channel = (struct etd_channel){.cx = cx, .in = -1, .out = -1};
    channel->epoll = epoll_create1(EPOLL_CLOEXEC);
    et_status status;
    if (channel->epoll < 0) {
        status = ET_FAIL(cx, ET_EIO, "no descriptor for a line: %s", strerror(errno));
    } else if (strncmp(o->target, "ssh://", 6) == 0) {
        status = open_ssh(channel, o->target + 6);
    } else if (strncmp(o->target, "tcp://", 6) == 0) {
        status = open_zmq(channel, o, o->target);
    } else if ((size_t)snprintf(address, sizeof address, "ipc://%s", o->target) >=
               sizeof address) {
        status =
            ETD_FAIL(cx, ET_EINVAL, ADDRESS, "%s is too long for a socket", o->target);
    } else {
        status = etd_endpoint_is_ours(cx, o->target);
        if (status == ET_OK)
            status = open_zmq(channel, o, address);
    }
    if (status != ET_OK) {
        etd_channel_close(&channel);
        return status;
    }
    *out = channel;
    return ET_OK;
}

void
etd_channel_close(struct etd_channel **out)
{
    struct etd_channel *channel = *out;
    *out = NULL;
    if (!channel)
        return;
    if (channel->has_message)
        zmq_msg_close(&channel->message);
    /* First of all nothing is told any more: zmq's thread, which everybody in its
     * context shares, waits for ever where it tells a monitor that is closed. */
    if (channel->monitor && channel->socket)
        (void)zmq_socket_monitor(channel->socket, NULL, 0);
    if (channel->monitor)
        zmq_close(channel->monitor);
    if (channel->socket)
        zmq_close(channel->socket);
    if (channel->own_zmq)
        zmq_ctx_term(channel->own_zmq);
    if (channel->in >= 0)
        close(channel->in);
    if (channel->out >= 0)
        close(channel->out);
    if (channel->child > 0) {
        kill(channel->child, SIGTERM);
        waitpid(channel->child, NULL, 0);
    }
    et_free(channel->cx, channel->read.bytes);
    et_free(channel->cx, channel->write.bytes);
    if (channel->epoll >= 0)
        close(channel->epoll);
    et_free(channel->cx, channel);
}

void
etd_channel_finish(struct etd_channel *channel)
{
    if (channel->socket)
        (void)set_int(channel->socket, ZMQ_LINGER, 100);
}

int
etd_channel_fd(const struct etd_channel *channel)
{
    return channel->epoll;
}

bool
etd_channel_send(struct etd_channel *channel, const void *bytes, size_t n)
{
    if (n > ETD_CHUNK_BYTES)
        return false;
    if (channel->child > 0)
        return send_ssh(channel, bytes, n);
    return zmq_send(channel->socket, bytes, n, ZMQ_DONTWAIT) >= 0;
}

enum etd_got
etd_channel_receive(struct etd_channel *channel, const char **bytes, size_t *n)
{
    return channel->child > 0 ? receive_ssh(channel, bytes, n)
                              : receive_zmq(channel, bytes, n);
}
