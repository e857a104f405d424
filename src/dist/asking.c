/* asking.c: the asker's end: see asking.h. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/asking.h"

static et_status
reach(struct et_ctx *cx, const char *directory, int *fd)
{
    struct sockaddr_un to;
    int folder;
    if (!etd_asking_address(directory, &folder, &to))
        return ET_FAIL(cx, ET_ENOENT, "cannot open %s: %s", directory, strerror(errno));
    *fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int error =
        *fd < 0 || connect(*fd, (struct sockaddr *)&to, sizeof to) != 0 ? errno : 0;
    close(folder);
    if (!error)
        return ET_OK;
    if (*fd >= 0)
        close(*fd);
    return ET_FAIL(cx, ET_ENOENT, "no supervisor answers in %s: %s", directory,
                   strerror(error));
}

/* One packet there, one back: *N bytes into BUF. */
static et_status
exchange(struct et_ctx *cx, const char *directory, const void *bytes, size_t n,
         double seconds, char *buf, size_t size, size_t *got)
{
    int fd = -1;
    ET_TRY(reach(cx, directory, &fd));
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t back = -1;
    if (send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n &&
        poll(&p, 1, (int)(1e3 * seconds)) > 0)
        back = recv(fd, buf, size, 0);
    close(fd);
    if (back <= 0)
        return ET_FAIL(cx, ET_EPEER, "the run's supervisor gave no answer in %.0f s",
                       seconds);
    *got = (size_t)back;
    return ET_OK;
}

et_status
etd_note(struct et_ctx *cx, const char *directory, const char *text, double seconds,
         int64_t *step)
{
    char bytes[ETD_CONTROL_BYTES];
    size_t got = 0;
    int n = snprintf(bytes, sizeof bytes, "%s%s", ETD_ASKING_NOTE, text);
    if (n < 0 || (size_t)n >= sizeof bytes)
        return ET_FAIL(cx, ET_EINVAL, "a note has at most 1 KiB");
    ET_TRY(exchange(cx, directory, bytes, (size_t)n, seconds, bytes, sizeof bytes - 1,
                    &got));
    bytes[got] = '\0';
    *step = strtoll(bytes + strcspn(bytes, " "), NULL, 10);
    return ET_OK;
}
