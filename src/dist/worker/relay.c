/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c: the other side of an ssh:// target: a session on two pipes. See worker.h. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "dist/worker/worker.h"

enum { PREFIX = 4 }; /* bytes of a message's length */

struct pipe {
    int out;
    bool broken;
};

/* Waits for the pipe: nobody else is served here. */
static bool
send_pipe(void *data, const void *bytes, size_t n)
{
    struct pipe *p = data;
    char prefix[PREFIX];
    const char *part[] = {prefix, bytes};
    const size_t length[] = {PREFIX, n};
    for (int i = 0; i < PREFIX; i++)
        prefix[i] = (char)(n >> 8 * i);
    for (int i = 0; i < 2 && !p->broken; i++)
        for (size_t done = 0; done < length[i] && !p->broken;) {
            ssize_t w = write(p->out, part[i] + done, length[i] - done);
            p->broken = w < 0 && errno != EINTR;
            done += w > 0 ? (size_t)w : 0;
        }
    return true;
}

struct input {
    char bytes[PREFIX + ETD_CHUNK_BYTES];
    size_t n;
};

/* Reads once, and hands on the messages that are whole. *OVER: there will be none. */
static et_status
receive_pipe(int fd, struct input *in, struct etd_session *s, bool *over)
{
    ssize_t got = read(fd, in->bytes + in->n, sizeof in->bytes - in->n);
    if (got < 0 && errno == EINTR)
        return ET_OK;
    *over = got <= 0;
    in->n += got > 0 ? (size_t)got : 0;
    while (in->n >= PREFIX) {
        const unsigned char *p = (const unsigned char *)in->bytes;
        size_t n = p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
        if (n > ETD_CHUNK_BYTES) {
            *over = true;
            return ET_OK;
        }
        if (in->n < PREFIX + n)
            return ET_OK;
        ET_TRY(etd_session_message(s, in->bytes + PREFIX, n));
        in->n -= PREFIX + n;
        memmove(in->bytes, in->bytes + PREFIX + n, in->n);
    }
    return ET_OK;
}

et_status
etd_worker_relay(struct et_ctx *cx, const char *program, const char *folder, int in,
                 int out)
{
    struct etd_host host = {.cx = cx,
                            .starts = {.cx = cx, .program = program, .folder = folder}};
    struct pipe pipe = {.out = out};
    struct etd_session *s = NULL;
    void *block;
    bool over = false;
    ET_TRY(et_alloc(cx, sizeof(struct input), &block));
    host.zmq = zmq_ctx_new();
    et_status status = host.zmq
                           ? etd_session_new(&host, "ssh", true, send_pipe, &pipe, &s)
                           : ET_FAIL(cx, ET_EIO, "no context of zmq");
    while (status == ET_OK && !over && !pipe.broken) {
        struct pollfd p[] = {{.fd = in, .events = POLLIN},
                             {.fd = etd_session_hub_fd(s), .events = POLLIN},
                             {.fd = etd_session_child_fd(s), .events = POLLIN}};
        int wait = etd_session_is_busy(s)         ? 0
                   : etd_session_is_reading(s)    ? ETD_READING_MS
                   : etd_starts_any(&host.starts) ? 20
                                                  : 250;
        if (poll(p, 3, wait) < 0 && errno != EINTR)
            break;
        if (p[0].revents)
            status = receive_pipe(in, block, s, &over);
        etd_starts_step(&host.starts);
        if (status == ET_OK && !etd_session_step(s))
            over = true;
    }
    /* What was begun is written down, for whoever asks again. */
    const struct timespec pause = {0, 20000000};
    while (etd_starts_any(&host.starts)) {
        etd_starts_step(&host.starts);
        nanosleep(&pause, NULL);
    }
    etd_session_free(&s);
    if (host.zmq)
        zmq_ctx_term(host.zmq);
    et_free(cx, block);
    return status;
}
