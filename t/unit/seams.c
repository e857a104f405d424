/* SPDX-License-Identifier: Apache-2.0 */
/* Whole operations on files, over calls that are interrupted, give less than was asked
 * for, or fail: what they leave, and what they say. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct eti_seams seams;

/* ---- calls that are interrupted, or give one byte at a time ---- */

static int interrupted; /* calls until the next that is not */
static size_t most;     /* bytes that one call takes or gives */
static int rename_error;

static bool
is_interrupted(void)
{
    bool now = interrupted++ % 3 != 2;
    if (now)
        errno = EINTR;
    return now;
}

#define ONCE_IN_THREE(type, name, failed, parameters, ...)                             \
    static type own_##name parameters                                                  \
    {                                                                                  \
        return is_interrupted() ? failed : eti_system.file.name(__VA_ARGS__);          \
    }
ONCE_IN_THREE(int, open, -1, (int dir, const char *path, int flags, mode_t mode), dir,
              path, flags, mode)
ONCE_IN_THREE(int, sync, -1, (int fd), fd)
ONCE_IN_THREE(int, unlink, -1, (int dir, const char *path, int flags), dir, path, flags)
ONCE_IN_THREE(int, make_folder, -1, (int dir, const char *path, mode_t mode), dir, path,
              mode)
ONCE_IN_THREE(struct dirent *, next, NULL, (DIR * d), d)
ONCE_IN_THREE(ssize_t, read, -1, (int fd, void *buf, size_t n, off_t at), fd, buf,
              n < most ? n : most, at)
ONCE_IN_THREE(ssize_t, write, -1, (int fd, const void *buf, size_t n), fd, buf,
              n < most ? n : most)

static int
own_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    if (is_interrupted())
        return -1;
    if (rename_error) {
        errno = rename_error;
        return -1;
    }
    return eti_system.file.rename(from_dir, from, to_dir, to);
}

static int
open_scratch(void)
{
    int dir = open(scratch_folder(), O_RDONLY | O_DIRECTORY);
    if (dir < 0)
        bail("no folder");
    return dir;
}

static et_status
count_name(void *data, const char *name)
{
    (void)name;
    ++*(int *)data;
    return ET_OK;
}

static const char text[] = "twenty-six letters are here";

static void
test_interrupted(void)
{
    int dir = open_scratch(), fd, names = 0;
    char got[sizeof text] = "";
    bool made = false;
    most = 1;
    ok(eti_make_folder_at(cx, dir, "in", &made) == ET_OK && made, "a folder is made");
    ok(eti_make_folder_at(cx, dir, "in", &made) == ET_OK && !made,
       "or is there already, which is said");
    if (eti_open_at(cx, dir, "in/a", O_RDWR | O_CREAT, 0600, &fd) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    ok(eti_write_all(cx, fd, "a", text, sizeof text) == ET_OK &&
           eti_sync(cx, fd, "a") == ET_OK,
       "all is written, one byte at a time");
    ok(eti_read_all(cx, fd, "a", got, sizeof got, 0) == ET_OK && strcmp(got, text) == 0,
       "and read");
    ok(eti_read_all(cx, fd, "a", got, 7, 11) == ET_OK && memcmp(got, text + 11, 7) == 0,
       "from any place");
    is_int(eti_read_all(cx, fd, "a", got, 8, (int64_t)sizeof text - 3), ET_EFORMAT,
           "not beyond its end");
    char want[64];
    snprintf(want, sizeof want, "a ends after %d bytes", (int)sizeof text);
    is_str(et_error_get(cx)->message, want, "which is told as it is in the file");
    et_error_clear(cx);
    eti_close(cx, fd);
    ok(eti_rename_at(cx, dir, "in/a", dir, "in/b") == ET_OK, "a file is renamed");
    ok(eti_for_each_name(cx, dir, "in", count_name, &names) == ET_OK && names == 1,
       "names are listed: %d", names);
    ok(eti_unlink_at(cx, dir, "in/b", 0) == ET_OK &&
           eti_unlink_at(cx, dir, "in", AT_REMOVEDIR) == ET_OK,
       "and all is removed");
    close(dir);
}

/* ---- replacing ---- */

static const char *
content(int dir, const char *name)
{
    static char got[64];
    int fd = openat(dir, name, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, got, sizeof got - 1);
    if (fd >= 0)
        close(fd);
    got[n > 0 ? n : 0] = '\0';
    return fd < 0 ? "(none)" : got;
}

static void
test_replaced(void)
{
    int dir = open_scratch();
    char name[256];
    most = 5;
    ok(eti_replace_at(cx, dir, "r", "first text", 10) == ET_OK, "a file is written");
    ok(eti_replace_at(cx, dir, "r", "new", 3) == ET_OK,
       "and replaced by a shorter one");
    is_str(content(dir, "r"), "new", "which is what it holds");
    rename_error = EACCES;
    is_int(eti_replace_at(cx, dir, "r", "third", 5), ET_EIO, "where that fails");
    et_error_clear(cx);
    rename_error = 0;
    is_str(content(dir, "r"), "new", "the old one stays");
    is_str(content(dir, ".r.tmp"), "(none)", "and nothing else");
    memset(name, 'n', sizeof name);
    name[251] = '\0';
    is_int(eti_replace_at(cx, dir, name, "x", 1), ET_EINVAL,
           "a name has room for what is written before and behind it");
    et_error_clear(cx);
    name[250] = '\0';
    is_int(eti_replace_at(cx, dir, name, "x", 1), ET_OK, "and no more");
    unlinkat(dir, name, 0);
    unlinkat(dir, "r", 0);
    close(dir);
}

/* ---- opening ---- */

/* Is the folder that PATH lies in the one called WANT? */
static bool
lies_in(const char *path, const char *want)
{
    struct stat a, b;
    int fd;
    if (eti_open_parent(cx, path, &fd) != ET_OK)
        return false;
    bool same = fstat(fd, &a) == 0 && stat(want, &b) == 0 && a.st_ino == b.st_ino;
    eti_close(cx, fd);
    return same;
}

static void
test_opening(void)
{
    int dir = open_scratch(), fd;
    char path[600], folder[600];
    bool made;
    if (eti_make_folder_at(cx, dir, "f", &made) != ET_OK)
        bail("no folder");
    snprintf(folder, sizeof folder, "%s/f", scratch_folder());
    static const char *const below[] = {"f/x", "f/x/", "f/x//"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch_folder(), below[i]);
        ok(lies_in(path, folder), "%s lies in f", below[i]);
    }
    ok(lies_in("x", ".") && lies_in("/x", "/") && lies_in("x/", "."),
       "a name alone lies here, one behind / in the root");
    is_int(eti_open_at(cx, dir, "none", O_RDONLY, 0, &fd), ET_ENOENT,
           "what is not there has a status of its own");
    is_str(et_error_get(cx)->message, "cannot read none: No such file or directory",
           "and is named");
    et_error_clear(cx);
    is_int(eti_open_at(cx, dir, "f", O_WRONLY, 0, &fd), ET_EIO,
           "a folder is not written");
    is_str(et_error_get(cx)->message, "cannot write f: Is a directory", "as is said");
    et_error_clear(cx);
    if (symlinkat("f", dir, "l") != 0)
        bail("no link");
    is_int(eti_open_at(cx, dir, "l", O_RDONLY | O_DIRECTORY, 0, &fd), ET_EIO,
           "a link is not followed");
    et_error_clear(cx);
    unlinkat(dir, "l", 0);
    unlinkat(dir, "f", AT_REMOVEDIR);
    close(dir);
}

int
main(void)
{
    cx = need_ctx();
    seams = eti_system;
    seams.file.open = own_open;
    seams.file.sync = own_sync;
    seams.file.unlink = own_unlink;
    seams.file.make_folder = own_make_folder;
    seams.file.next = own_next;
    seams.file.read = own_read;
    seams.file.write = own_write;
    seams.file.rename = own_rename;
    eti_ctx_set_seams(cx, &seams);
    test_interrupted();
    test_replaced();
    test_opening();
    et_ctx_free(&cx);
    return done();
}
