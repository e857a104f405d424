/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c: files that can be made again. See cache.h. */
#include "config.h"

#include "core/data/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/folders.h"
#include "core/data/file.h"

bool
eti_cache_folder(char out[ETI_PATH_MAX])
{
    const char *own = getenv("ETUDE_CACHE_DIR"), *base = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int n;
    if (own && own[0])
        n = snprintf(out, ETI_PATH_MAX, "%s", own);
    else if (base && base[0] == '/')
        n = snprintf(out, ETI_PATH_MAX, "%s/etude", base);
    else if (home && home[0] == '/')
        n = snprintf(out, ETI_PATH_MAX, "%s/.cache/etude", home);
    else
        return false;
    if (n >= ETI_PATH_MAX)
        return false;
    return eti_make_user_folders(out, 0777) &&
           (mkdir(out, 0777) == 0 || errno == EEXIST);
}

/* What is asked of the file PATH. */
struct wanted {
    const char *dir, *path;
    eti_cache_fits *fits; /* NULL: SIZE says it */
    int64_t size;         /* -1: any */
    eti_cache_make *make;
    void *data;
};

/* -1: it is not there, or does not fit. */
static int
open_fitting(const struct wanted *w)
{
    struct stat st;
    int fd = open(w->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && (w->size < 0 || st.st_size == w->size) &&
        (!w->fits || w->fits(fd, w->data)))
        return fd;
    close(fd);
    return -1;
}

static et_status
make_file(struct et_ctx *cx, const struct wanted *w, int *out)
{
    char temporary[ETI_PATH_MAX];
    ET_TRY(eti_file_path(cx, temporary, w->dir, ".tmp-XXXXXX"));
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return ET_FAIL(cx, ET_EIO, "cannot write %s: %s", temporary, strerror(errno));
    et_status s = w->make(cx, fd, w->data);
    if (s == ET_OK && (fsync(fd) != 0 || rename(temporary, w->path) != 0))
        s = ET_FAIL(cx, ET_EIO, "cannot write %s: %s", w->path, strerror(errno));
    if (s == ET_OK) {
        *out = fd;
        return ET_OK;
    }
    unlink(temporary);
    close(fd);
    return s;
}

et_status
eti_cache_open(struct et_ctx *cx, const char *name, int64_t size, eti_cache_make *make,
               void *data, int *out)
{
    char dir[ETI_PATH_MAX], path[ETI_PATH_MAX];
    struct wanted w = {.dir = dir, .path = path, .size = size, .make = make};
    w.data = data;
    *out = -1;
    if (!eti_cache_folder(dir))
        return ET_FAIL(cx, ET_EIO, "no folder for a cache: set XDG_CACHE_HOME");
    ET_TRY(eti_file_path(cx, path, dir, name));
    *out = open_fitting(&w);
    return *out >= 0 ? ET_OK : make_file(cx, &w, out);
}

/* Locks the folder until *FD is closed, however long another process has it. */
static et_status
lock_folder(struct et_ctx *cx, const char *folder, int *fd)
{
    bool made = eti_make_user_folders(folder, 0777) &&
                (mkdir(folder, 0777) == 0 || errno == EEXIST);
    *fd = made ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    while (*fd >= 0 && flock(*fd, LOCK_EX) != 0)
        if (errno != EINTR) {
            close(*fd);
            *fd = -1;
        }
    return *fd >= 0 ? ET_OK
                    : ET_FAIL(cx, ET_EIO, "cannot use the folder %s for a cache: %s",
                              folder, strerror(errno));
}

et_status
eti_cache_open_in(struct et_ctx *cx, const char *folder, const char *name,
                  eti_cache_fits *fits, eti_cache_make *make, void *data, int *out)
{
    char path[ETI_PATH_MAX];
    int lock;
    const struct wanted w = {folder, path, fits, -1, make, data};
    ET_TRY(eti_file_path(cx, path, folder, name));
    *out = open_fitting(&w);
    if (*out >= 0)
        return ET_OK;
    ET_TRY(lock_folder(cx, folder, &lock));
    *out = open_fitting(&w); /* another process may have made it meanwhile */
    et_status s = *out >= 0 ? ET_OK : make_file(cx, &w, out);
    close(lock);
    return s;
}

bool
eti_cache_has(const char *folder, const char *name, eti_cache_fits *fits, void *data)
{
    char path[ETI_PATH_MAX];
    const struct wanted w = {folder, path, fits, -1, NULL, data};
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    int fd = open_fitting(&w);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

et_status
eti_temporary_open(struct et_ctx *cx, eti_cache_make *make, void *data, int *out)
{
    const char *dir = getenv("TMPDIR");
    char path[ETI_PATH_MAX];
    ET_TRY(eti_file_path(cx, path, dir && dir[0] ? dir : "/tmp", "etude-XXXXXX"));
    *out = mkostemp(path, O_CLOEXEC);
    if (*out < 0)
        return ET_FAIL(cx, ET_EIO, "cannot write %s: %s", path, strerror(errno));
    unlink(path);
    et_status s = make(cx, *out, data);
    if (s != ET_OK) {
        close(*out);
        *out = -1;
    }
    return s;
}
