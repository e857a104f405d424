/* SPDX-License-Identifier: Apache-2.0 */
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
    PATH_BYTES = 4096,
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
            .stat = fstat,
            .next = readdir,
        },
    .monotonic = system_monotonic,
    .wall = system_wall,
};

/* ---- whole operations ---- */

/* SAID is its name in messages. */
static et_status
open_as(struct et_ctx *cx, int dir, const char *name, const char *said, int flags,
        mode_t mode, int *fd)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    const char *verb = (flags & O_ACCMODE) == O_RDONLY ? "read" : "write";
    do
        *fd = f->open(dir, name, flags | O_CLOEXEC, mode);
    while (*fd < 0 && errno == EINTR);
    if (*fd >= 0)
        return ET_OK;
    return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot %s %s: %s", verb,
                   said, strerror(errno));
}

et_status
eti_open_at(struct et_ctx *cx, int dir, const char *name, int flags, mode_t mode,
            int *fd)
{
    return open_as(cx, dir, name, name, flags | O_NOFOLLOW, mode, fd);
}

et_status
eti_open_folder(struct et_ctx *cx, const char *path, int *fd)
{
    return open_as(cx, AT_FDCWD, path, path, O_RDONLY | O_DIRECTORY, 0, fd);
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
eti_open_parent(struct et_ctx *cx, const char *path, int *fd)
{
    char parent[PATH_BYTES];
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n >= sizeof parent)
        return ET_FAIL(cx, ET_EINVAL, "a path of %zu bytes is too long", n);
    snprintf(parent, sizeof parent, "%.*s", n ? (int)n : 1, n ? path : ".");
    return eti_open_folder(cx, parent, fd);
}

et_status
eti_sync_parent(struct et_ctx *cx, const char *path)
{
    int fd;
    ET_TRY(eti_open_parent(cx, path, &fd));
    et_status status = eti_sync(cx, fd, path);
    eti_close(cx, fd);
    return status;
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

et_status
eti_make_folder_at(struct et_ctx *cx, int dir, const char *name, bool *made)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    int failed;
    do
        failed = f->make_folder(dir, name, 0700);
    while (failed && errno == EINTR);
    *made = !failed;
    return failed && errno != EEXIST
               ? ET_FAIL(cx, ET_EIO, "cannot make %s: %s", name, strerror(errno))
               : ET_OK;
}

et_status
eti_unlink_at(struct et_ctx *cx, int dir, const char *name, int flags)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    int failed;
    do
        failed = f->unlink(dir, name, flags);
    while (failed && errno == EINTR);
    return failed ? ET_FAIL(cx, ET_EIO, "cannot remove %s: %s", name, strerror(errno))
                  : ET_OK;
}

static et_status
walk_names(struct et_ctx *cx, DIR *d, const char *path,
           et_status (*fn)(void *data, const char *name), void *data)
{
    const struct eti_file_calls *f = &eti_ctx_seams(cx)->file;
    for (;;) {
        errno = 0;
        const struct dirent *e = f->next(d);
        if (!e && errno == EINTR)
            continue;
        if (!e)
            return errno ? ET_FAIL(cx, ET_EIO, "cannot read %s: %s", path,
                                   strerror(errno))
                         : ET_OK;
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ET_TRY(fn(data, e->d_name));
    }
}

et_status
eti_for_each_name(struct et_ctx *cx, int dir, const char *path,
                  et_status (*fn)(void *data, const char *name), void *data)
{
    int fd; /* its own: closedir closes it, and it begins at the first name */
    ET_TRY(open_as(cx, dir, ".", path, O_RDONLY | O_DIRECTORY, 0, &fd));
    DIR *d = fdopendir(fd);
    if (!d) {
        et_status status =
            ET_FAIL(cx, ET_EIO, "cannot read %s: %s", path, strerror(errno));
        eti_close(cx, fd);
        return status;
    }
    et_status status = walk_names(cx, d, path, fn, data);
    closedir(d);
    return status;
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
    char temporary[NAME_BYTES];
    int fd;
    if (snprintf(temporary, sizeof temporary, ".%s.tmp", name) >= (int)sizeof temporary)
        return ET_FAIL(cx, ET_EINVAL, "the name %s is too long", name);
    ET_TRY(eti_open_at(cx, dir, temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600, &fd));
    et_status status = fill_and_sync(cx, fd, name, bytes, n);
    if (status == ET_OK)
        status = eti_rename_at(cx, dir, temporary, dir, name);
    if (status != ET_OK) /* the error that stands is the first */
        (void)!eti_unlink_at(cx, dir, temporary, 0);
    else
        status = eti_sync(cx, dir, name);
    return status;
}
