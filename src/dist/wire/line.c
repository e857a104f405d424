/* line.c: see line.h. A local or TCP line is a DEALER of its own, which never connects
 * a second time: who uses it tries again with another. An ssh line is a child's pipes,
 * with each message behind its length (u32, little endian). */
#include "config.h"

#include "dist/wire/line.h"

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

struct etd_line {
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
watch(struct etd_line *line, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(line->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return ET_OK;
    return ET_FAIL(line->cx, ET_EIO, "cannot watch a line: %s", strerror(errno));
}

/* ---- zmq ---- */

static et_status
zmq_failed(struct etd_line *line, const char *target)
{
    return ETD_FAIL(line->cx, ET_EIO, UNREACHABLE, "cannot connect to %s: %s", target,
                    zmq_strerror(zmq_errno()));
}

static bool
set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

/* What happens to the connection arrives at a socket of its own. Its name is drawn, so
 * that no other line of this process has had it: zmq gives a name free some time after
 * its socket was closed, and an address is given out again at once. */
static bool
open_monitor(struct etd_line *line)
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
    line->monitor = zmq_socket(line->zmq, ZMQ_PAIR);
    return line->monitor && set_int(line->monitor, ZMQ_LINGER, 0) &&
           zmq_socket_monitor(line->socket, name, events) == 0 &&
           zmq_connect(line->monitor, name) == 0;
}

static bool
set_curve(struct etd_line *line, const struct etd_line_options *o)
{
    return zmq_setsockopt(line->socket, ZMQ_CURVE_SERVERKEY, o->server, ETD_KEY_TEXT) ==
               0 &&
           zmq_setsockopt(line->socket, ZMQ_CURVE_PUBLICKEY, o->keys->public_key,
                          ETD_KEY_TEXT) == 0 &&
           zmq_setsockopt(line->socket, ZMQ_CURVE_SECRETKEY, o->keys->secret,
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
open_zmq(struct etd_line *line, const struct etd_line_options *o, const char *address)
{
    bool is_tcp = strncmp(address, "tcp://", 6) == 0;
    if (is_tcp && (!o->keys || !o->server))
        return ETD_FAIL(line->cx, ET_EINVAL, KEYS, "no key is known for %s", address);
    line->zmq = o->zmq;
    if (!line->zmq)
        line->zmq = line->own_zmq = zmq_ctx_new();
    line->socket = line->zmq ? zmq_socket(line->zmq, ZMQ_DEALER) : NULL;
    if (!line->socket || !set_int(line->socket, ZMQ_LINGER, 0) ||
        !set_int(line->socket, ZMQ_RECONNECT_IVL, NEVER_MS) ||
        !set_int(line->socket, ZMQ_IMMEDIATE, 0) ||
        !set_int(line->socket, ZMQ_SNDHWM, WAITING) ||
        !set_int(line->socket, ZMQ_RCVHWM, WAITING) ||
        !set_int(line->socket, ZMQ_HANDSHAKE_IVL, (int)(1000 * ETD_HANDSHAKE)) ||
        !set_int(line->socket, ZMQ_CONNECT_TIMEOUT, (int)(1000 * ETD_HANDSHAKE)) ||
        zmq_setsockopt(line->socket, ZMQ_MAXMSGSIZE, &(int64_t){ETD_CHUNK_BYTES},
                       sizeof(int64_t)) != 0 ||
        (is_tcp && !set_curve(line, o)) || !open_monitor(line) ||
        zmq_connect(line->socket, address) != 0)
        return zmq_failed(line, address);
    ET_TRY(watch(line, socket_fd(line->socket)));
    return watch(line, socket_fd(line->monitor));
}

/* What has happened to the connection since it was asked last. */
static void
look_at_monitor(struct etd_line *line)
{
    unsigned char event[6];
    char address[256];
    while (zmq_recv(line->monitor, event, sizeof event, ZMQ_DONTWAIT) >= 2) {
        int what = event[0] | event[1] << 8;
        (void)zmq_recv(line->monitor, address, sizeof address, ZMQ_DONTWAIT);
        line->denied = line->denied || what == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ||
                       what == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;
        line->broken = line->broken || what == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
        line->gone = true;
    }
}

const char *
etd_line_why_gone(const struct etd_line *line)
{
    return line->broken ? "the other side breaks off the handshake: is its key still "
                          "the one known here?"
                        : NULL;
}

static enum etd_got
receive_zmq(struct etd_line *line, const char **bytes, size_t *n)
{
    if (line->has_message)
        zmq_msg_close(&line->message);
    line->has_message = false;
    for (;;) {
        zmq_msg_init(&line->message);
        int got = zmq_msg_recv(&line->message, line->socket, ZMQ_DONTWAIT);
        if (got < 0)
            break;
        if (!zmq_msg_more(&line->message)) {
            line->has_message = true;
            *bytes = zmq_msg_data(&line->message);
            *n = (size_t)got;
            return ETD_GOT_MESSAGE;
        }
        zmq_msg_close(&line->message); /* nobody of ours sends parts */
    }
    zmq_msg_close(&line->message);
    look_at_monitor(line);
    return line->denied ? ETD_GOT_DENIED : line->gone ? ETD_GOT_GONE : ETD_GOT_NOTHING;
}

/* ---- ssh ---- */

static bool
spawn(struct etd_line *line, const char *host)
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
    int failed = posix_spawnp(&line->child, "ssh", &actions, NULL,
                              (char *const *)(void *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    line->out = to[1];
    line->in = from[0];
    line->child = failed ? 0 : line->child;
    errno = failed;
    return !failed && fcntl(line->in, F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(line->out, F_SETFL, O_NONBLOCK) == 0;
}

static et_status
open_ssh(struct etd_line *line, const char *host)
{
    void *block;
    if (!etd_ssh_is_host(host))
        return ETD_FAIL(line->cx, ET_EINVAL, ADDRESS, "ssh://%s names no host", host);
    ET_TRY(et_alloc(line->cx, PIPE_ROOM, &block));
    line->read.bytes = block;
    ET_TRY(et_alloc(line->cx, PIPE_ROOM, &block));
    line->write.bytes = block;
    if (!spawn(line, host))
        return ETD_FAIL(line->cx, ET_EIO, UNREACHABLE, "cannot run ssh: %s",
                        strerror(errno));
    return watch(line, line->in);
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
flush(struct etd_line *line)
{
    struct buffer *b = &line->write;
    while (b->from < b->to) {
        ssize_t n = send(line->out, b->bytes + b->from, b->to - b->from, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            line->gone = line->gone || (errno != EAGAIN && errno != EWOULDBLOCK);
            return;
        }
        b->from += (size_t)n;
    }
}

static bool
send_ssh(struct etd_line *line, const void *bytes, size_t n)
{
    struct buffer *b = &line->write;
    flush(line);
    move_down(b);
    if (PIPE_ROOM - b->to < PREFIX + n)
        return false;
    for (int i = 0; i < PREFIX; i++)
        b->bytes[b->to++] = (char)(n >> 8 * i);
    memcpy(b->bytes + b->to, bytes, n);
    b->to += n;
    flush(line);
    return true;
}

static enum etd_got
receive_ssh(struct etd_line *line, const char **bytes, size_t *n)
{
    struct buffer *b = &line->read;
    flush(line);
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
        ssize_t got = read(line->in, b->bytes + b->to, PIPE_ROOM - b->to);
        if (got > 0) {
            b->to += (size_t)got;
            continue;
        }
        if (got < 0 && errno == EINTR)
            continue;
        bool waits = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        return waits && !line->gone ? ETD_GOT_NOTHING : ETD_GOT_GONE;
    }
}

/* ---- either ---- */

et_status
etd_line_open(struct et_ctx *cx, const struct etd_line_options *o,
              struct etd_line **out)
{
    char address[ETD_SOCKET_PATH + 8];
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_line *line = block;
    *line = (struct etd_line){.cx = cx, .in = -1, .out = -1};
    line->epoll = epoll_create1(EPOLL_CLOEXEC);
    et_status status;
    if (line->epoll < 0) {
        status = ET_FAIL(cx, ET_EIO, "no descriptor for a line: %s", strerror(errno));
    } else if (strncmp(o->target, "ssh://", 6) == 0) {
        status = open_ssh(line, o->target + 6);
    } else if (strncmp(o->target, "tcp://", 6) == 0) {
        status = open_zmq(line, o, o->target);
    } else if ((size_t)snprintf(address, sizeof address, "ipc://%s", o->target) >=
               sizeof address) {
        status =
            ETD_FAIL(cx, ET_EINVAL, ADDRESS, "%s is too long for a socket", o->target);
    } else {
        status = etd_endpoint_is_ours(cx, o->target);
        if (status == ET_OK)
            status = open_zmq(line, o, address);
    }
    if (status != ET_OK) {
        etd_line_close(&line);
        return status;
    }
    *out = line;
    return ET_OK;
}

void
etd_line_close(struct etd_line **out)
{
    struct etd_line *line = *out;
    *out = NULL;
    if (!line)
        return;
    if (line->has_message)
        zmq_msg_close(&line->message);
    /* First of all nothing is told any more: zmq's thread, which everybody in its
     * context shares, waits for ever where it tells a monitor that is closed. */
    if (line->monitor && line->socket)
        (void)zmq_socket_monitor(line->socket, NULL, 0);
    if (line->monitor)
        zmq_close(line->monitor);
    if (line->socket)
        zmq_close(line->socket);
    if (line->own_zmq)
        zmq_ctx_term(line->own_zmq);
    if (line->in >= 0)
        close(line->in);
    if (line->out >= 0)
        close(line->out);
    if (line->child > 0) {
        kill(line->child, SIGTERM);
        waitpid(line->child, NULL, 0);
    }
    et_free(line->cx, line->read.bytes);
    et_free(line->cx, line->write.bytes);
    if (line->epoll >= 0)
        close(line->epoll);
    et_free(line->cx, line);
}

void
etd_line_finish(struct etd_line *line)
{
    if (line->socket)
        (void)set_int(line->socket, ZMQ_LINGER, 100);
}

int
etd_line_fd(const struct etd_line *line)
{
    return line->epoll;
}

bool
etd_line_send(struct etd_line *line, const void *bytes, size_t n)
{
    if (n > ETD_CHUNK_BYTES)
        return false;
    if (line->child > 0)
        return send_ssh(line, bytes, n);
    return zmq_send(line->socket, bytes, n, ZMQ_DONTWAIT) >= 0;
}

enum etd_got
etd_line_receive(struct etd_line *line, const char **bytes, size_t *n)
{
    return line->child > 0 ? receive_ssh(line, bytes, n) : receive_zmq(line, bytes, n);
}
