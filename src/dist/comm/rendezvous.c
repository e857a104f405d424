/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.c: see rendezvous.h. The file has "PORT SECRET" and is put in its place
 * whole. */
#include "config.h"

#include "dist/comm/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/seams.h"

enum { PAUSE_MS = 50, TEXT = 16 + 2 * ETD_STORE_SECRET };

/* Of JOB: its name may have any characters, and any length. */
static et_status
path_of(struct et_ctx *cx, const char *job, char *out, size_t size)
{
    char folder[PATH_MAX];
    etd_endpoint_folder(folder, sizeof folder);
    ET_TRY(etd_endpoint_make_folder(cx, folder));
    uint64_t name = XXH3_64bits(job, strlen(job));
    if ((size_t)snprintf(out, size, "%s/ranks-%016" PRIx64, folder, name) < size)
        return ET_OK;
    return ET_FAIL(cx, ET_EIO, "%s: the folder's name is too long", folder);
}

/* The file at PATH, if somebody holds it; -1. */
static int
open_held(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == getuid() &&
        flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return fd;
    close(fd);
    return -1;
}

static et_status
leave_word(struct et_ctx *cx, struct etd_rendezvous *m)
{
    char new[ETD_SOCKET_PATH + 16], text[TEXT + 2];
    int n = snprintf(text, sizeof text, "%d ", m->port);
    for (int i = 0; i < ETD_STORE_SECRET; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%02x", m->secret[i]);
    text[n++] = '\n';
    snprintf(new, sizeof new, "%s.%ld", m->path, (long)getpid());
    m->lock = open(new, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (m->lock >= 0 && flock(m->lock, LOCK_EX | LOCK_NB) == 0 &&
        eti_write_all(cx, m->lock, new, text, (size_t)n) == ET_OK &&
        rename(new, m->path) == 0)
        return ET_OK;
    et_error_clear(cx);
    et_status status = ET_FAIL(cx, ET_EIO, "cannot write %s: %s", new, strerror(errno));
    (void)unlink(new);
    m->path[0] = '\0';
    return status;
}

et_status
etd_rendezvous_begin(struct et_ctx *cx, const char *job, const char *host,
                     const uint8_t *secret, struct etd_rendezvous *out)
{
    static const uint8_t none[ETD_STORE_SECRET];
    *out = (struct etd_rendezvous){.listener = -1, .lock = -1};
    ET_TRY(path_of(cx, job, out->path, sizeof out->path));
    int other = open_held(out->path);
    if (other >= 0) {
        close(other);
        out->path[0] = '\0'; /* it is not ours to remove */
        return ET_FAIL(cx, ET_EIO, "another rank 0 of %s waits for its ranks", job);
    }
    memcpy(out->secret, secret, sizeof out->secret);
    bool drawn = memcmp(secret, none, sizeof none) != 0 ||
                 getrandom(out->secret, sizeof out->secret, 0) == sizeof out->secret;
    out->listener = drawn ? etd_store_listen(host, &out->port) : -1;
    et_status status = out->listener >= 0
                           ? leave_word(cx, out)
                           : ET_FAIL(cx, ET_EIO, "no port is free at %s", host);
    if (status != ET_OK)
        etd_rendezvous_end(out);
    return status;
}

static bool
read_word(int fd, struct etd_rendezvous *out)
{
    char text[TEXT + 2], *at;
    ssize_t n = read(fd, text, sizeof text - 1);
    if (n <= 0 || text[n - 1] != '\n')
        return false;
    text[n - 1] = '\0';
    out->port = (int)strtol(text, &at, 10);
    if (*at++ != ' ' || strlen(at) != 2 * ETD_STORE_SECRET || out->port < 1)
        return false;
    for (int i = 0; i < ETD_STORE_SECRET; i++, at += 2) {
        const char digits[3] = {at[0], at[1], '\0'};
        out->secret[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return true;
}

et_status
etd_rendezvous_find(struct et_ctx *cx, const char *job, int timeout_ms,
                    struct etd_rendezvous *out)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    *out = (struct etd_rendezvous){.listener = -1, .lock = -1};
    char path[ETD_SOCKET_PATH];
    ET_TRY(path_of(cx, job, path, sizeof path));
    /* Pauses are counted, not seconds: rank 0 cannot begin while the machine is
     * suspended. */
    for (int waited = 0; waited <= timeout_ms; waited += PAUSE_MS) {
        int fd = open_held(path);
        bool found = fd >= 0 && read_word(fd, out);
        if (fd >= 0)
            close(fd);
        if (found)
            return ET_OK;
        nanosleep(&pause, NULL);
    }
    return ET_FAIL(
        cx, ET_EPEER,
        "rank 0 of %s has left no word at %s in %d s: did it start, with the "
        "same XDG_RUNTIME_DIR?",
        job, path, timeout_ms / 1000);
}

void
etd_rendezvous_end(struct etd_rendezvous *m)
{
    if (m->path[0])
        (void)unlink(m->path);
    if (m->lock >= 0)
        close(m->lock);
    if (m->listener >= 0)
        close(m->listener);
    *m = (struct etd_rendezvous){.listener = -1, .lock = -1};
}
