/* store.c: the names in checkpoints/: listing, moving and removing. See store.h. */
#include "core/checkpoint/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/checkpoint/names.h"

enum { STEP_DIGITS = 12 };

const char *
eti_step_name(int64_t step, char buf[ETI_STEP_NAME])
{
    snprintf(buf, ETI_STEP_NAME, "step-%0*" PRId64, STEP_DIGITS, step);
    return buf;
}

int64_t
eti_step_parse(const char *name)
{
    const char *digits = name + strlen("step-");
    if (strncmp(name, "step-", strlen("step-")) != 0 ||
        strspn(digits, "0123456789") != STEP_DIGITS || strlen(digits) != STEP_DIGITS)
        return -1;
    return strtoll(digits, NULL, 10);
}

et_status
eti_store_name_aside(struct et_ctx *cx, const char *prefix, int64_t step,
                     char out[ETI_ASIDE_NAME])
{
    uint64_t nonce;
    ET_TRY(eti_draw(cx, &nonce));
    snprintf(out, ETI_ASIDE_NAME, ".%s-%0*" PRId64 "-%016" PRIx64, prefix, STEP_DIGITS,
             step, nonce);
    return ET_OK;
}

/* ---- walking a folder ---- */

/* Calls FN with each name in the folder open at DIR. EIO. */
static et_status
for_each_name(struct et_ctx *cx, int dir, const char *path,
              et_status (*fn)(void *data, const char *name), void *data)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        et_status status =
            ET_FAIL(cx, ET_EIO, "cannot read %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    et_status status = ET_OK;
    for (struct dirent *e; status == ET_OK && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            status = fn(data, e->d_name);
    closedir(d);
    return status;
}

struct listing {
    struct et_ctx *cx;
    int64_t *step, n, room;
};

static et_status
add_step(void *data, const char *name)
{
    struct listing *l = data;
    int64_t step = eti_step_parse(name);
    if (step < 0)
        return ET_OK;
    if (l->n == l->room) {
        int64_t room = l->room ? 2 * l->room : 16;
        void *block;
        ET_TRY(et_alloc(l->cx, (size_t)room * sizeof *l->step, &block));
        if (l->n)
            memcpy(block, l->step, (size_t)l->n * sizeof *l->step);
        et_free(l->cx, l->step);
        l->step = block;
        l->room = room;
    }
    l->step[l->n++] = step;
    return ET_OK;
}

static int
newest_first(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a < b) - (a > b);
}

et_status
eti_store_list(struct et_ctx *cx, const char *directory, int64_t **steps, int64_t *n)
{
    struct listing l = {.cx = cx};
    int dir;
    *steps = NULL;
    *n = 0;
    et_status status = eti_store_open(cx, directory, &dir);
    if (status == ET_ENOENT) {
        et_error_clear(cx);
        return ET_OK;
    }
    ET_TRY(status);
    status = for_each_name(cx, dir, directory, add_step, &l);
    close(dir);
    if (status != ET_OK) {
        et_free(cx, l.step);
        return status;
    }
    if (l.n)
        qsort(l.step, (size_t)l.n, sizeof *l.step, newest_first);
    *steps = l.step;
    *n = l.n;
    return ET_OK;
}

et_status
eti_store_open(struct et_ctx *cx, const char *directory, int *dir)
{
    return eti_open_at(cx, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0, dir);
}

/* ---- moving and removing ---- */

struct removal {
    struct et_ctx *cx;
    int dir;
};

static et_status
remove_file(void *data, const char *name)
{
    const struct removal *r = data;
    if (eti_ctx_seams(r->cx)->file.unlink(r->dir, name, 0) == 0)
        return ET_OK;
    return ET_FAIL(r->cx, ET_EIO, "cannot remove %s: %s", name, strerror(errno));
}

et_status
eti_store_remove(struct et_ctx *cx, int dir, const char *name)
{
    struct removal r = {.cx = cx};
    ET_TRY(eti_open_at(cx, dir, name, O_RDONLY | O_DIRECTORY, 0, &r.dir));
    et_status status = for_each_name(cx, r.dir, name, remove_file, &r);
    eti_close(cx, r.dir);
    if (status == ET_OK && eti_ctx_seams(cx)->file.unlink(dir, name, AT_REMOVEDIR) != 0)
        status = ET_FAIL(cx, ET_EIO, "cannot remove %s: %s", name, strerror(errno));
    return status;
}

et_status
eti_store_set_aside(struct et_ctx *cx, const char *directory, int64_t step,
                    const char *prefix)
{
    char from[ETI_STEP_NAME], to[ETI_ASIDE_NAME];
    int dir;
    ET_TRY(eti_store_name_aside(cx, prefix, step, to));
    ET_TRY(eti_store_open(cx, directory, &dir));
    et_status status = eti_rename_at(cx, dir, eti_step_name(step, from), dir, to);
    if (status == ET_OK)
        status = eti_sync(cx, dir, directory);
    eti_close(cx, dir);
    return status;
}

struct cleaning {
    struct removal r;
    int n;
};

static et_status
remove_left(void *data, const char *name)
{
    struct cleaning *c = data;
    if (strncmp(name, ".tmp-", 5) != 0 && strncmp(name, ".del-", 5) != 0)
        return ET_OK;
    ET_TRY(eti_store_remove(c->r.cx, c->r.dir, name));
    c->n++;
    return ET_OK;
}

et_status
eti_store_clean(struct et_ctx *cx, const char *directory, int *n)
{
    struct cleaning c = {.r.cx = cx};
    *n = 0;
    et_status status = eti_store_open(cx, directory, &c.r.dir);
    if (status == ET_ENOENT) {
        et_error_clear(cx);
        return ET_OK;
    }
    ET_TRY(status);
    status = for_each_name(cx, c.r.dir, directory, remove_left, &c);
    eti_close(cx, c.r.dir);
    *n = c.n;
    return status;
}
