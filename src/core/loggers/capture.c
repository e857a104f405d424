/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c: see capture.h. The descriptor becomes the end of a pipe; a thread reads
 * the other end, writes all of it to where the descriptor led, and splits lines.
 *
 * No deadlock: the thread waits for nothing but the terminal or file behind the
 * descriptor, which writers would wait for too, and for LINE. At the end it is told by
 * an eventfd, not by the end of the pipe, which a child may hold open for long. */
#include "config.h"

#include "core/loggers/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/thread.h"

static void
pass_line(struct eti_capture *c)
{
    c->line(c->data, c->text, c->used);
    c->used = 0;
}

static void
split(struct eti_capture *c, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            pass_line(c);
        } else if (bytes[i] != '\r') {
            if (c->returned)
                c->used = 0;
            c->text[c->used++] = bytes[i];
        }
        c->returned = bytes[i] == '\r';
        if (c->used == sizeof c->text)
            pass_line(c);
    }
}

/* Passes it on to where it would have gone. If nobody reads there any more it is lost,
 * as it would have been. */
static void
forward(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t wrote = write(fd, bytes, n);
        if (wrote < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (wrote < 0 && errno != EINTR) {
            return;
        }
        bytes += wrote > 0 ? wrote : 0;
        n -= wrote > 0 ? (size_t)wrote : 0;
    }
}

/* Reads what is there. False: nothing is there, or no writer is left. */
static bool
pump(struct eti_capture *c)
{
    char bytes[4096];
    ssize_t n = read(c->from, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    forward(c->original, bytes, (size_t)n);
    split(c, bytes, (size_t)n);
    return true;
}

static void *
follow(void *argument)
{
    struct eti_capture *c = argument;
    struct pollfd wait[] = {
        {.fd = c->from, .events = POLLIN},
        {.fd = c->stop, .events = POLLIN},
    };
    while (!(wait[1].revents & POLLIN)) {
        if (poll(wait, 2, -1) > 0 && (wait[0].revents & POLLIN))
            (void)pump(c);
    }
    while (pump(c)) /* the pipe does not block */
        ;
    if (c->used > 0)
        pass_line(c);
    return NULL;
}

static void
close_all(struct eti_capture *c)
{
    const int fd[] = {c->original, c->from, c->stop};
    for (int i = 0; i < 3; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    c->fd = -1;
}

et_status
eti_capture_begin(struct et_ctx *cx, int fd,
                  void (*line)(void *data, const char *text, size_t n), void *data,
                  struct eti_capture *c)
{
    int ends[2] = {-1, -1};
    *c = (struct eti_capture){.fd = fd, .line = line, .data = data, .stop = -1};
    fflush(NULL); /* what was said before is not of this */
    c->original = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int bad = c->original < 0 || pipe2(ends, O_CLOEXEC) != 0;
    c->from = ends[0];
    bad = bad || fcntl(c->from, F_SETFL, O_NONBLOCK) != 0;
    bad = bad || (c->stop = eventfd(0, EFD_CLOEXEC)) < 0 || dup2(ends[1], fd) < 0;
    int why = bad ? errno : eti_thread_begin(&c->thread, follow, c);
    if (why && !bad)
        (void)dup2(c->original, fd);
    if (ends[1] >= 0)
        close(ends[1]);
    if (why == 0)
        return ET_OK;
    close_all(c);
    return ET_FAIL(cx, ET_EIO, "cannot capture descriptor %d: %s", fd, strerror(why));
}

void
eti_capture_end(struct eti_capture *c)
{
    if (c->fd < 0)
        return;
    fflush(NULL);
    (void)dup2(c->original, c->fd);
    (void)eventfd_write(c->stop, 1);
    pthread_join(c->thread, NULL);
    close_all(c);
}
