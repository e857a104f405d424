/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c: files that can be made again. See cache.h. */
#include "config.h"

#include "core/data/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/folders.h"
#include "core/data/file.h"

bool
eti_cache_folder(char out[ETI_PATH_MAX])
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (base && base[0] == '/')
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

et_status
eti_cache_open(struct et_ctx *cx, const char *name, int64_t size, eti_cache_make *make,
               void *data, int *out)
{
    char dir[ETI_PATH_MAX], path[ETI_PATH_MAX], temporary[ETI_PATH_MAX];
    *out = -1;
    if (!eti_cache_folder(dir))
        return ET_FAIL(cx, ET_EIO, "no folder for a cache: set XDG_CACHE_HOME");
    ET_TRY(eti_file_path(cx, path, dir, name));
    ET_TRY(eti_file_path(cx, temporary, dir, ".tmp-XXXXXX"));
    *out = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (*out >= 0 && fstat(*out, &st) == 0 && (size < 0 || st.st_size == size))
        return ET_OK;
    if (*out >= 0)
        close(*out);
    *out = -1;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return ET_FAIL(cx, ET_EIO, "cannot write %s: %s", temporary, strerror(errno));
    et_status s = make(cx, fd, data);
    if (s == ET_OK && (fsync(fd) != 0 || rename(temporary, path) != 0))
        s = ET_FAIL(cx, ET_EIO, "cannot write %s: %s", path, strerror(errno));
    if (s == ET_OK) {
        *out = fd;
        return ET_OK;
    }
    unlink(temporary);
    close(fd);
    return s;
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
