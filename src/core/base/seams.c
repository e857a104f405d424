/* seams.c: see seams.h. */
#include "core/base/seams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME_BYTES = 256,
    WRITE_MOST = 8 << 20, /* a call: so that no signal waits for a gigabyte */
};

static int
system_open(int dir, const char *path, int flags, mode_t mode)
{
    return openat(dir, path, flags, mode);
}

static double
seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double
system_monotonic(void)
{
    return seconds(CLOCK_MONOTONIC);
}

static double
system_wall(void)
{
    return seconds(CLOCK_REALTIME);
}

const struct eti_seams eti_system = {
    .file =
        {
            .open = system_open,
            .read = pread,
            .write = write,
            .sync = fsync,
            .close = close,
            .rename = renameat,
            .unlink = unlinkat,
            .make_folder = mkdirat,
        },
    .monotonic = system_monotonic,
    .wall = system_wall,
};

/* ---- whole operations ---- */

et_status
eti_open_at(struct et_ctx *cx, int dir, const char *name, int flags, mode_t mode,
            int *fd)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    const char *verb = (flags & O_ACCMODE) == O_RDONLY ? "read" : "write";
    do
        *fd = f->open(dir, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
    while (*fd < 0 && errno == EINTR);
    if (*fd >= 0)
        return ET_OK;
    return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot %s %s: %s", verb,
                   name, strerror(errno));
}

/* Linux closes the file whatever close answers. */
void
eti_close(struct et_ctx *cx, int fd)
{
    if (fd >= 0)
        (void)eti_ctx_seams(cx)->file.close(fd);
}

et_status
eti_write_all(struct et_ctx *cx, int fd, const char *name, const void *bytes, size_t n)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    for (size_t done = 0; done < n;) {
        size_t left = n - done < WRITE_MOST ? n - done : WRITE_MOST;
        ssize_t put = f->write(fd, (const char *)bytes + done, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return ET_FAIL(cx, ET_EIO, "cannot write %s: %s", name,
                           put < 0 ? strerror(errno) : "nothing was taken");
        done += (size_t)put;
    }
    return ET_OK;
}

et_status
eti_read_all(struct et_ctx *cx, int fd, const char *name, void *bytes, size_t n,
             int64_t at)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    for (size_t done = 0; done < n;) {
        size_t left = n - done < WRITE_MOST ? n - done : WRITE_MOST;
        ssize_t got = f->read(fd, (char *)bytes + done, left, at + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ET_FAIL(cx, ET_EIO, "cannot read %s: %s", name, strerror(errno));
        if (got == 0)
            return ET_FAIL(cx, ET_EFORMAT, "%s ends after %lld bytes", name,
                           (long long)(at + (int64_t)done));
        done += (size_t)got;
    }
    return ET_OK;
}

et_status
eti_sync(struct et_ctx *cx, int fd, const char *name)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    int failed;
    do
        failed = f->sync(fd);
    while (failed && errno == EINTR);
    return failed ? ET_FAIL(cx, ET_EIO, "cannot write %s: %s", name, strerror(errno))
                  : ET_OK;
}

et_status
eti_rename_at(struct et_ctx *cx, int from_dir, const char *from, int to_dir,
              const char *to)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    int failed;
    do
        failed = f->rename(from_dir, from, to_dir, to);
    while (failed && errno == EINTR);
    return failed ? ET_FAIL(cx, ET_EIO, "cannot rename %s to %s: %s", from, to,
                            strerror(errno))
                  : ET_OK;
}

static et_status
fill_and_sync(struct et_ctx *cx, int fd, const char *name, const void *bytes, size_t n)
{
    et_status status = eti_write_all(cx, fd, name, bytes, n);
    if (status == ET_OK)
        status = eti_sync(cx, fd, name);
    eti_close(cx, fd);
    return status;
}

et_status
eti_replace_at(struct et_ctx *cx, int dir, const char *name, const void *bytes,
               size_t n)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    char temporary[NAME_BYTES];
    int fd;
    if (snprintf(temporary, sizeof temporary, ".%s.tmp", name) >= (int)sizeof temporary)
        return ET_FAIL(cx, ET_EINVAL, "the name %s is too long", name);
    ET_TRY(eti_open_at(cx, dir, temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600, &fd));
    et_status status = fill_and_sync(cx, fd, name, bytes, n);
    if (status == ET_OK)
        status = eti_rename_at(cx, dir, temporary, dir, name);
    if (status != ET_OK)
        (void)f->unlink(dir, temporary, 0);
    else
        status = eti_sync(cx, dir, name);
    return status;
}
