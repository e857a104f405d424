/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c: see folder.h.
 *
 * run.json and report.json are replaced as a whole: written beside, synced, renamed. On
 * a full disk run.json is written over itself: a run that ends there is not one that
 * crashed. */
#include "config.h"

#include "core/library/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "core/base/seams.h"

enum { DISK_BLOCK = 4096 };

et_status
eti_write_whole(struct et_ctx *cx, const char *directory, const char *name,
                const char *bytes, size_t n)
{
    int dir;
    et_status status = eti_open_folder(cx, directory, &dir);
    if (status == ET_OK) {
        status = eti_replace_at(cx, dir, name, bytes, n);
        eti_close(cx, dir);
    }
    return status == ET_ENOENT ? ET_EIO : status;
}

et_status
eti_write_json(struct et_ctx *cx, const char *directory, const char *name, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text)
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: %s", name);
    size_t n = strlen(text);
    text[n] = '\n'; /* in the place of its zero */
    et_status status = eti_write_whole(cx, directory, name, text, n + 1);
    free(text);
    return status;
}

et_status
eti_make_directory(struct et_ctx *cx, const char *path, mode_t mode)
{
    struct stat st;
    if (eti_ctx_seams(cx)->file.make_folder(AT_FDCWD, path, mode) == 0)
        return ET_OK;
    int error = errno;
    bool is_there = error == EEXIST && stat(path, &st) == 0;
    if (is_there && S_ISDIR(st.st_mode))
        return ET_OK;
    return ET_FAIL(cx, ET_EIO, "cannot make %s: %s", path,
                   is_there ? "it is no folder" : strerror(error));
}

et_status
eti_make_parents(struct et_ctx *cx, const char *path)
{
    char part[PATH_MAX];
    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        ET_TRY(eti_make_directory(cx, part, 0777));
    }
    return ET_OK;
}

static bool
is_disk_full(const char *directory)
{
    struct statvfs v;
    return statvfs(directory, &v) == 0 &&
           (uint64_t)v.f_bavail * v.f_frsize < DISK_BLOCK;
}

/* run.json on a full disk: TEXT over the old text, in the blocks that it has. Blanks
 * end it where it is the shorter one: a reader never meets a piece of both. */
static et_status
overwrite_facts(struct et_ctx *cx, const char *directory, const char *text, size_t n)
{
    struct stat st;
    void *block;
    int dir, fd;
    ET_TRY(eti_open_folder(cx, directory, &dir));
    et_status status = eti_open_at(cx, dir, "run.json", O_WRONLY, 0, &fd);
    eti_close(cx, dir);
    ET_TRY(status);
    bool known = fstat(fd, &st) == 0;
    size_t size = known && (size_t)st.st_size > n ? (size_t)st.st_size : n;
    if (!known || size > (size_t)st.st_blocks * 512)
        status = ET_FAIL(cx, ET_EIO, "no room for the %zu bytes of run.json", n);
    if (status == ET_OK)
        status = et_alloc(cx, size, &block);
    if (status == ET_OK) {
        memset(block, ' ', size);
        memcpy(block, text, n);
        status = eti_write_all(cx, fd, "run.json", block, size);
        if (status == ET_OK)
            status = eti_sync(cx, fd, "run.json");
        et_free(cx, block);
    }
    eti_close(cx, fd);
    return status;
}

et_status
eti_save_facts(struct et_ctx *cx, const char *directory, json_t *facts)
{
    et_status status = eti_write_json(cx, directory, "run.json", json_incref(facts));
    if (status != ET_EIO || !is_disk_full(directory))
        return status;
    char *text = json_dumps(facts, JSON_INDENT(2));
    if (text)
        status = overwrite_facts(cx, directory, text, strlen(text));
    free(text);
    return status;
}
