/* SPDX-License-Identifier: Apache-2.0 */
/* sketch_file.c: the file of a recipe that is being written. It is never written over
 * unread: what another program wrote meanwhile is asked about first. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/compose/sketch_impl.h"

/* The file at PATH with its time; *OUT ends with a zero, the caller frees it. */
static et_status
read_file(struct et_ctx *cx, const char *path, char **out, size_t *n,
          struct timespec *stamp)
{
    const struct eti_file_calls *calls = &eti_ctx_seams(cx)->file;
    char target[PATH_MAX];
    struct stat st;
    void *block = NULL;
    int fd;
    *out = NULL;
    if (!realpath(path, target)) /* a link may lead to it */
        snprintf(target, sizeof target, "%s", path);
    ET_TRY(eti_open_at(cx, AT_FDCWD, target, O_RDONLY | O_NONBLOCK, 0, &fd));
    et_status status = ET_OK;
    if (calls->stat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        status = ET_FAIL(cx, ET_EIO, "%s is no file", path);
    else if ((size_t)st.st_size > eti_yaml_limits.bytes)
        status = ET_FAIL(cx, ET_EIO, "%s has %lld bytes, a recipe at most %zu", path,
                         (long long)st.st_size, eti_yaml_limits.bytes);
    *n = status == ET_OK ? (size_t)st.st_size : 0;
    if (status == ET_OK)
        status = et_alloc(cx, *n + 1, &block);
    if (status == ET_OK && *n > 0)
        status = eti_read_all(cx, fd, path, block, *n, 0);
    eti_close(cx, fd);
    if (status != ET_OK) {
        et_free(cx, block);
        return status;
    }
    if (memchr(block, '\0', *n)) {
        et_free(cx, block);
        return ET_FAIL(cx, ET_EIO, "%s is no text: it has a zero byte", path);
    }
    *out = block;
    *stamp = st.st_mtim;
    return ET_OK;
}

static et_status
remember(struct eti_sketch *d, const struct timespec *stamp)
{
    char *saved;
    ET_TRY(eti_copy_bytes(d->cx, d->text, d->n, &saved));
    et_free(d->cx, d->saved);
    d->saved = saved;
    d->n_saved = d->n;
    d->stamp = *stamp;
    return ET_OK;
}

et_status
eti_sketch_open(struct eti_sketch *d, const char *path)
{
    char *text, *name = NULL, *copy = NULL;
    size_t n;
    struct timespec stamp;
    ET_TRY(read_file(d->cx, path, &text, &n, &stamp));
    et_status status = eti_copy_bytes(d->cx, path, strlen(path), &name);
    if (status == ET_OK)
        status = eti_copy_bytes(d->cx, path, strlen(path), &copy);
    if (status != ET_OK) {
        et_free(d->cx, text);
        et_free(d->cx, name);
        return status;
    }
    ET_TRY(eti_sketch_take(d, text, name, copy));
    return remember(d, &stamp);
}

bool
eti_sketch_is_stale(const struct eti_sketch *d)
{
    char *text;
    size_t n;
    struct timespec stamp;
    if (!d->path || !d->saved)
        return false;
    if (read_file(d->cx, d->path, &text, &n, &stamp) != ET_OK) {
        et_error_clear(d->cx);
        return access(d->path, F_OK) == 0; /* gone: there is nothing to lose */
    }
    bool is_same = n == d->n_saved && memcmp(text, d->saved, n) == 0;
    et_free(d->cx, text);
    return !is_same;
}

/* Writes beside TARGET, and puts that in its place. */
static et_status
replace_file(struct et_ctx *cx, const char *target, const char *text, size_t n)
{
    char beside[PATH_MAX + 32];
    struct stat st;
    int fd;
    snprintf(beside, sizeof beside, "%s.%ld.tmp", target, (long)getpid());
    bool is_there = access(target, F_OK) == 0 && lstat(target, &st) == 0;
    ET_TRY(eti_open_at(cx, AT_FDCWD, beside, O_WRONLY | O_CREAT | O_TRUNC, 0666, &fd));
    et_status status = ET_OK;
    if (is_there && fchmod(fd, st.st_mode & 07777) != 0)
        status = ET_FAIL(cx, ET_EIO, "cannot write %s: %s", beside, strerror(errno));
    if (status == ET_OK)
        status = eti_write_all(cx, fd, beside, text, n);
    if (status == ET_OK)
        status = eti_sync(cx, fd, beside);
    eti_close(cx, fd);
    if (status == ET_OK)
        status = eti_rename_at(cx, AT_FDCWD, beside, AT_FDCWD, target);
    if (status != ET_OK) {
        (void)eti_ctx_seams(cx)->file.unlink(AT_FDCWD, beside, 0);
        return status;
    }
    return eti_sync_parent(cx, target);
}

et_status
eti_sketch_save(struct eti_sketch *d, const char *path, bool over)
{
    char target[PATH_MAX], *again;
    struct timespec stamp = {0};
    size_t n;
    bool is_other = path && (!d->path || strcmp(path, d->path) != 0);
    const char *to = path ? path : d->path;
    if (!to)
        return ET_FAIL(d->cx, ET_EINVAL, "it has no file yet: save it under a name");
    if (!over && is_other && access(to, F_OK) == 0)
        return ET_FAIL(d->cx, ET_ECANCELED, "%s is there already", to);
    if (!over && !is_other && eti_sketch_is_stale(d))
        return ET_FAIL(d->cx, ET_ECANCELED, "%s was changed by another program", to);
    if (!realpath(to, target))
        snprintf(target, sizeof target, "%s", to);
    ET_TRY(replace_file(d->cx, target, d->text, d->n));
    if (is_other) {
        char *name, *copy;
        ET_TRY(eti_copy_bytes(d->cx, to, strlen(to), &name));
        et_status status = eti_copy_bytes(d->cx, to, strlen(to), &copy);
        if (status != ET_OK) {
            et_free(d->cx, name);
            return status;
        }
        et_free(d->cx, d->name);
        et_free(d->cx, d->path);
        d->name = name;
        d->path = copy;
        ET_TRY(eti_sketch_read(d)); /* paths may lead elsewhere from there */
    }
    ET_TRY(read_file(d->cx, d->path, &again, &n, &stamp));
    et_free(d->cx, again);
    return remember(d, &stamp);
}
