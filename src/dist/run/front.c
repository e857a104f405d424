/* SPDX-License-Identifier: Apache-2.0 */
/* front.c: starting the supervisor, and hearing from it: launch.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/comm/store.h"
#include "dist/run/supervisor.h"

enum { READ_BYTES = 64 << 10, HEAD_BYTES = 9, SECRET_BYTES = 32 };

struct etd_front {
    struct et_ctx *cx;
    pid_t supervisor;
    int fd;    /* its socket */
    int alive; /* at its end when supervisor and ranks are all gone */
    struct etd_bytes in;
    size_t used; /* of it: the packet that was given last */
    bool ended, closed;
    bool gone; /* ALIVE is at its end */
};

/* ---- starting ---- */

void
etd_draw_secret(void)
{
    unsigned char byte[SECRET_BYTES];
    char text[2 * SECRET_BYTES + 1];
    if (getenv("ETUDE_RANK_SECRET") || getrandom(byte, sizeof byte, 0) != sizeof byte)
        return;
    for (int i = 0; i < SECRET_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", byte[i]);
    setenv("ETUDE_RANK_SECRET", text, 1);
}

static et_status
be_supervisor(struct et_ctx *cx, const struct etd_launch *l, const int *pair,
              const int *alive, struct etd_rank **rank, int *code)
{
    struct etd_launch own = *l;
    close(pair[0]);
    close(alive[0]); /* the other end stays open, here and in the ranks */
    own.listener = -1;
    if (own.nproc > 1)
        etd_draw_secret();
    if (own.nproc > 1 && own.port == 0)
        own.listener = etd_store_listen(own.host, &own.port);
    return etd_supervise(cx, &own, pair[1], rank, code);
}

static const int passed[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
enum { PASSED = sizeof passed / sizeof *passed };

/* Holds back the signals that the front passes on, so that none is lost or ends the
 * front alone before it catches them. */
static void
hold_signals(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < PASSED; i++)
        sigaddset(&set, passed[i]);
    sigprocmask(how, &set, NULL);
}

void
etd_front_catch(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < PASSED; i++)
        sigaction(passed[i], &action, NULL);
    hold_signals(SIG_UNBLOCK);
}

/* Waits until the supervisor has dropped the signals that the terminal sent to both:
 * one that the front passes on earlier would be dropped with them. */
static void
wait_for_supervisor(int fd)
{
    char ready;
    while (recv(fd, &ready, 1, 0) < 0 && errno == EINTR)
        ;
}

et_status
etd_launch(struct et_ctx *cx, const struct etd_launch *l, struct etd_front **front,
           struct etd_rank **rank, int *code)
{
    int pair[2], alive[2];
    void *block;
    *front = NULL;
    *rank = NULL;
    ET_TRY(et_alloc(cx, sizeof **front, &block));
    struct etd_front *f = block;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 ||
        pipe2(alive, O_CLOEXEC) != 0) {
        et_free(cx, f);
        return ET_FAIL(cx, ET_EIO, "no pipe to a supervisor: %s", strerror(errno));
    }
    fflush(NULL);
    hold_signals(SIG_BLOCK);
    pid_t pid = fork();
    if (pid == 0) {
        et_free(cx, f);
        return be_supervisor(cx, l, pair, alive, rank, code);
    }
    int error = errno;
    close(pair[1]);
    close(alive[1]);
    *f = (struct etd_front){
        .cx = cx,
        .supervisor = pid,
        .fd = pair[0],
        .alive = alive[0],
    };
    *front = f;
    if (pid > 0) {
        wait_for_supervisor(f->fd);
        return ET_OK;
    }
    hold_signals(SIG_UNBLOCK);
    etd_front_free(front);
    return ET_FAIL(cx, ET_EIO, "cannot start a supervisor: %s", strerror(error));
}

void
etd_front_free(struct etd_front **front)
{
    struct etd_front *f = *front;
    *front = NULL;
    if (!f)
        return;
    close(f->fd);
    close(f->alive);
    etd_bytes_free(&f->in);
    /* Its descriptors are closed, so it ends soon. Waiting for that means that nobody
     * finds a rest of it after this process has ended. */
    if (f->supervisor > 0)
        (void)waitpid(f->supervisor, NULL, f->gone ? 0 : WNOHANG);
    et_free(f->cx, f);
}

/* Counts tenths of seconds instead of reading a clock: while the machine was suspended,
 * the others had no time either. */
void
etd_front_wait(struct etd_front *f, double seconds)
{
    struct pollfd p = {.fd = f->alive, .events = POLLIN};
    for (int tenth = (int)(10 * seconds); tenth > 0 && !f->gone; tenth--)
        f->gone = poll(&p, 1, 100) > 0;
}

int
etd_front_fd(const struct etd_front *f)
{
    return f->fd;
}

void
etd_front_signal(const struct etd_front *f, int number)
{
    /* Our own child, not waited for yet: the id is nobody else's. */
    if (f->supervisor > 0)
        kill(f->supervisor, number);
}

/* ---- hearing ---- */

static void
copy_text(const json_t *json, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(json, key));
    snprintf(out, size, "%s", text ? text : "");
}

static void
read_state(struct etd_front *f, const struct etd_packet *p, struct etd_news *out)
{
    json_t *json = json_loadb(p->body, p->n, 0, NULL);
    if (json_object_get(json, "directory")) {
        out->kind = ETD_NEWS_OPENED;
        copy_text(json, "directory", out->directory, sizeof out->directory);
        copy_text(json, "name", out->name, sizeof out->name);
        out->seq = json_integer_value(json_object_get(json, "seq"));
    } else if (json) {
        struct etd_end *end = &out->end;
        out->kind = ETD_NEWS_END;
        f->ended = true;
        copy_text(json, "state", end->state, sizeof end->state);
        copy_text(json, "why", end->why, sizeof end->why);
        copy_text(json, "hint", end->hint, sizeof end->hint);
        end->exit = (int)json_integer_value(json_object_get(json, "exit"));
        end->rank = (int)json_integer_value(json_object_get(json, "rank"));
        end->began = json_is_true(json_object_get(json, "began"));
        end->said = json_is_true(json_object_get(json, "said"));
    }
    json_decref(json);
}

static void
read_packet(struct etd_front *f, const struct etd_packet *p, struct etd_news *out)
{
    out->text = p->body;
    out->n = p->n;
    switch (p->kind) {
    case ETD_PACKET_OUT:
        out->kind = ETD_NEWS_OUT;
        break;
    case ETD_PACKET_ERR:
        out->kind = ETD_NEWS_ERR;
        break;
    case ETD_PACKET_STATE:
        read_state(f, p, out);
        break;
    case ETD_PACKET_LINE:
    case ETD_PACKET_PRINT:
        if (p->n < HEAD_BYTES)
            break;
        memcpy(&out->seq, p->body, sizeof out->seq);
        out->kind = p->kind == ETD_PACKET_LINE ? ETD_NEWS_LINE : ETD_NEWS_RAW;
        out->stream = (unsigned char)p->body[sizeof out->seq];
        out->level = (enum et_log_level)out->stream;
        out->text += HEAD_BYTES;
        out->n -= HEAD_BYTES;
        break;
    default:
        break;
    }
}

/* Waits for bytes; false: the supervisor's end is closed. */
static bool
receive(struct etd_front *f, double seconds)
{
    char buf[READ_BYTES];
    struct pollfd p[2] = {{.fd = f->closed ? -1 : f->fd, .events = POLLIN},
                          {.fd = f->closed ? f->alive : -1, .events = POLLIN}};
    if (poll(p, 2, (int)(1e3 * seconds)) <= 0)
        return true;
    if (f->closed) {
        f->gone = true;
        return false;
    }
    ssize_t n = recv(f->fd, buf, sizeof buf, MSG_DONTWAIT);
    if (n > 0)
        etd_bytes_add(&f->in, buf, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        f->closed = true;
    return true;
}

void
etd_front_next(struct etd_front *f, double seconds, struct etd_news *out)
{
    struct etd_packet p;
    *out = (struct etd_news){.kind = ETD_NEWS_NONE};
    etd_bytes_drop(&f->in, f->used);
    f->used = 0;
    int got = etd_packet_next(f->in.at, f->in.n, &p, &f->used);
    if (got == 0) {
        bool goes_on = receive(f, seconds);
        got = etd_packet_next(f->in.at, f->in.n, &p, &f->used);
        if (got == 0 && !goes_on)
            out->kind = ETD_NEWS_LOST;
    }
    if (got == 1)
        read_packet(f, &p, out);
    else
        f->used = 0;
}
