/* SPDX-License-Identifier: Apache-2.0 */
/* store.c: the names in checkpoints/: listing, moving and removing. See store.h. */
#include "core/checkpoint/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
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

/* ---- listing ---- */

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
    ET_TRY(eti_grow(l->cx, &l->step, &l->room, l->n + 1, sizeof *l->step));
    l->step[l->n++] = step;
    return ET_OK;
}

static int
newest_first(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a < b) - (a > b);
}

/* Calls FN for each name in DIRECTORY; none where there is no folder. */
static et_status
each_in(struct et_ctx *cx, const char *directory,
        et_status (*fn)(void *data, const char *name), void *data)
{
    int dir;
    et_status status = eti_open_folder(cx, directory, &dir);
    if (status == ET_ENOENT) {
        et_error_clear(cx);
        return ET_OK;
    }
    ET_TRY(status);
    status = eti_for_each_name(cx, dir, directory, fn, data);
    eti_close(cx, dir);
    return status;
}

et_status
eti_store_list(struct et_ctx *cx, const char *directory, int64_t **steps, int64_t *n)
{
    struct listing l = {.cx = cx};
    *steps = NULL;
    *n = 0;
    et_status status = each_in(cx, directory, add_step, &l);
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

static bool
has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static et_status
count_one(void *data, const char *name)
{
    *(int *)data += has_prefix(name, ".tmp-");
    return ET_OK;
}

et_status
eti_store_count_unfinished(struct et_ctx *cx, const char *directory, int *n)
{
    *n = 0;
    return each_in(cx, directory, count_one, n);
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
    return eti_unlink_at(r->cx, r->dir, name, 0);
}

et_status
eti_store_remove(struct et_ctx *cx, int dir, const char *name)
{
    struct removal r = {.cx = cx};
    ET_TRY(eti_open_at(cx, dir, name, O_RDONLY | O_DIRECTORY, 0, &r.dir));
    et_status status = eti_for_each_name(cx, r.dir, name, remove_file, &r);
    eti_close(cx, r.dir);
    return status == ET_OK ? eti_unlink_at(cx, dir, name, AT_REMOVEDIR) : status;
}

et_status
eti_store_set_aside(struct et_ctx *cx, const char *directory, int64_t step,
                    const char *prefix)
{
    char from[ETI_STEP_NAME], to[ETI_ASIDE_NAME];
    int dir;
    ET_TRY(eti_store_name_aside(cx, prefix, step, to));
    ET_TRY(eti_open_folder(cx, directory, &dir));
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
    if (!has_prefix(name, ".tmp-") && !has_prefix(name, ".del-"))
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
    et_status status = eti_open_folder(cx, directory, &c.r.dir);
    if (status == ET_ENOENT) {
        et_error_clear(cx);
        return ET_OK;
    }
    ET_TRY(status);
    status = eti_for_each_name(cx, c.r.dir, directory, remove_left, &c);
    eti_close(cx, c.r.dir);
    *n = c.n;
    return status;
}

/* ---- the link to the newest ---- */

static et_status
link_at(struct et_ctx *cx, int dir, const char *name, const char *target)
{
    static const char beside[] = ".link";
    struct stat st;
    bool is_there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && !S_ISLNK(st.st_mode))
        return ET_FAIL(cx, ET_EIO, "checkpoint.latest: '%s' is there, and no link",
                       name);
    if (eti_unlink_at(cx, dir, beside, 0) != ET_OK) /* of a process that died here */
        et_error_clear(cx);
    if (symlinkat(target, dir, beside) != 0)
        return ET_FAIL(cx, ET_EIO, "cannot make the link '%s': %s", name,
                       strerror(errno));
    return eti_rename_at(cx, dir, beside, dir, name);
}

et_status
eti_store_link(struct et_ctx *cx, const char *directory, const char *name, int64_t step)
{
    char target[ETI_STEP_NAME];
    int dir;
    ET_TRY(eti_open_folder(cx, directory, &dir));
    et_status status = link_at(cx, dir, name, eti_step_name(step, target));
    eti_close(cx, dir);
    return status;
}
