/* SPDX-License-Identifier: Apache-2.0 */
/* shards_folder.c: see shards_folder.h. */
#include "core/text/shards_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/data/file.h"
#include "core/text/files.h"

/* ---- beginning ---- */

static et_status
count_one(void *data, const char *name)
{
    (void)name;
    ++*(int *)data;
    return ET_OK;
}

/* What is at PATH may be an empty folder, or nothing. */
static et_status
check_free(struct et_ctx *cx, const char *path)
{
    struct stat st;
    int fd, n = 0;
    if (stat(path, &st) != 0)
        return errno == ENOENT
                   ? ET_OK
                   : ET_FAIL(cx, ET_EIO, "cannot write %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return ET_FAIL(cx, ET_EINVAL, "%s is there, and no folder", path);
    ET_TRY(eti_open_folder(cx, path, &fd));
    et_status s = eti_for_each_name(cx, fd, path, count_one, &n);
    eti_close(cx, fd);
    if (s == ET_OK && n > 0)
        s = ET_FAIL(cx, ET_EINVAL, "%s has files in it; name a new folder", path);
    return s;
}

static et_status
make(struct et_ctx *cx, struct eti_new_folder *f)
{
    bool made = false;
    for (int i = 0; i < 1000 && !made; i++) {
        snprintf(f->temporary, sizeof f->temporary, ".%s.%d-%d", f->name, (int)getpid(),
                 i);
        ET_TRY(eti_make_folder_at(cx, f->parent, f->temporary, &made));
    }
    if (!made)
        return ET_FAIL(cx, ET_EIO, "cannot make a folder beside %s", f->path);
    return eti_open_at(cx, f->parent, f->temporary, O_RDONLY | O_DIRECTORY, 0, &f->dir);
}

et_status
eti_new_folder_begin(struct et_ctx *cx, const char *path, struct eti_new_folder *f)
{
    size_t n = strlen(path), begin;
    *f = (struct eti_new_folder){.parent = -1, .dir = -1, .path = path};
    while (n > 1 && path[n - 1] == '/')
        n--;
    for (begin = n; begin > 0 && path[begin - 1] != '/';)
        begin--;
    if (n == begin || n - begin >= sizeof f->name || path[begin] == '.')
        return ET_FAIL(cx, ET_EINVAL, "'%s' is no name of a new folder", path);
    snprintf(f->name, sizeof f->name, "%.*s", (int)(n - begin), path + begin);
    ET_TRY(check_free(cx, path));
    ET_TRY(eti_open_parent(cx, path, &f->parent));
    return make(cx, f);
}

et_status
eti_new_folder_file(struct et_ctx *cx, struct eti_new_folder *f, const char *name,
                    int *fd)
{
    return eti_open_at(cx, f->dir, name, O_WRONLY | O_CREAT | O_EXCL, 0666, fd);
}

/* ---- the tokenizer ---- */

static et_status
copy_file(struct et_ctx *cx, struct eti_new_folder *f, const char *from, const char *to)
{
    struct eti_bytes b;
    int fd;
    ET_TRY(eti_file_load(cx, from, ETI_FILE_MAX, &b));
    et_status s = eti_new_folder_file(cx, f, to, &fd);
    if (s == ET_OK) {
        s = eti_write_all(cx, fd, to, b.data, (size_t)b.n);
        if (s == ET_OK)
            s = eti_sync(cx, fd, to);
        eti_close(cx, fd);
    }
    et_free(cx, b.data);
    return s;
}

et_status
eti_new_folder_tokenizer(struct et_ctx *cx, struct eti_new_folder *f,
                         const struct et_tokenizer *t, const char **name)
{
    struct eti_tokenizer_files files;
    ET_TRY(eti_tokenizer_files(cx, t, &files));
    *name = files.name;
    for (int i = 0; i < files.n; i++)
        ET_TRY(copy_file(cx, f, files.v[i].from, files.v[i].to));
    return ET_OK;
}

/* ---- the end ---- */

et_status
eti_new_folder_commit(struct et_ctx *cx, struct eti_new_folder *f)
{
    ET_TRY(eti_sync(cx, f->dir, f->path));
    ET_TRY(eti_rename_at(cx, f->parent, f->temporary, f->parent, f->name));
    f->temporary[0] = 0;
    return eti_sync(cx, f->parent, f->path);
}

struct removing {
    struct et_ctx *cx;
    int dir;
};

static et_status
remove_one(void *data, const char *name)
{
    const struct removing *r = data;
    return eti_unlink_at(r->cx, r->dir, name, 0);
}

void
eti_new_folder_end(struct et_ctx *cx, struct eti_new_folder *f)
{
    struct removing r = {.cx = cx, .dir = f->dir};
    if (f->dir >= 0 && f->temporary[0]) {
        (void)!eti_for_each_name(cx, f->dir, f->path, remove_one, &r);
        (void)!eti_unlink_at(cx, f->parent, f->temporary, AT_REMOVEDIR);
    }
    if (f->dir >= 0)
        eti_close(cx, f->dir);
    if (f->parent >= 0)
        eti_close(cx, f->parent);
    f->dir = f->parent = -1;
}
