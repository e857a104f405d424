/* SPDX-License-Identifier: Apache-2.0 */
/* What whole operations on files ask of the system (core/base/seams.h): in which
 * order, so that a machine that stops leaves the old file or the new; and what they
 * make of its errors. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct eti_seams seams;
static char asked[256]; /* "write sync rename sync-folder ..." */
static int names_left;  /* of a folder, before it cannot be read */

static void
note(const char *what)
{
    strncat(asked, what, sizeof asked - strlen(asked) - 1);
    strncat(asked, " ", sizeof asked - strlen(asked) - 1);
}

static ssize_t
note_write(int fd, const void *buf, size_t n)
{
    note("write");
    return eti_system.file.write(fd, buf, n);
}

static int
note_sync(int fd)
{
    struct stat st;
    bool is_folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    note(is_folder ? "sync-folder" : "sync");
    return eti_system.file.sync(fd);
}

static int
note_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    note("rename");
    return eti_system.file.rename(from_dir, from, to_dir, to);
}

static struct dirent *
break_off(DIR *d)
{
    if (names_left-- > 0)
        return eti_system.file.next(d);
    errno = EIO;
    return NULL;
}

static et_status
count(void *data, const char *name)
{
    (void)name;
    ++*(int *)data;
    return ET_OK;
}

/* Has the file NAME in DIR the bytes WANT and mode 0600, and no temporary file beside
 * it? */
static bool
is_file(int dir, const char *name, const char *want)
{
    char bytes[64], beside[64];
    struct stat st;
    int fd = openat(dir, name, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, bytes, sizeof bytes) : -1;
    bool is_own = fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0600;
    snprintf(beside, sizeof beside, ".%s.tmp", name);
    if (fd >= 0)
        close(fd);
    return is_own && n == (ssize_t)strlen(want) &&
           memcmp(bytes, want, strlen(want)) == 0 &&
           faccessat(dir, beside, F_OK, 0) != 0;
}

static void
test_files(int dir)
{
    char bytes[8] = "", name[256];
    bool first, second;
    int fd;
    need(cx, eti_replace_at(cx, dir, "f", "abcdef", 6));
    ok(is_file(dir, "f", "abcdef"), "a written file is readable by its owner alone");
    need(cx, eti_open_at(cx, dir, "f", O_RDONLY, 0, &fd));
    need(cx, eti_read_all(cx, fd, "f", bytes, 3, 2));
    is_str(bytes, "cde", "a file is read from the offset that was asked for");
    is_int(eti_read_all(cx, fd, "f", bytes, 4, 3), ET_EFORMAT,
           "reading beyond a file's end is refused");
    is_str(take_error(cx), "f ends after 6 bytes",
           "the error of reading beyond a file's end says where it ends");
    eti_close(cx, fd);
    need(cx, eti_replace_at(cx, dir, "f", "xy", 2));
    ok(is_file(dir, "f", "xy"), "a replaced file keeps nothing of its old contents");

    need(cx, eti_make_folder_at(cx, dir, "sub", &first));
    need(cx, eti_make_folder_at(cx, dir, "sub", &second));
    ok(first && !second, "a folder is made once");
    is_int(eti_replace_at(cx, dir, "sub", "z", 1), ET_EIO,
           "a folder is not replaced by a file");
    et_error_clear(cx);
    ok(faccessat(dir, ".sub.tmp", F_OK, 0) != 0,
       "a refused replacement leaves no temporary file");
    is_int(eti_make_folder_at(cx, dir, "f/sub", &first), ET_EIO,
           "a folder in a file is refused");
    ok(!first, "a refused folder is not reported as made");
    et_error_clear(cx);

    memset(name, 'n', sizeof name);
    name[250] = '\0';
    is_int(eti_replace_at(cx, dir, name, "z", 1), ET_OK,
           "a file's name may have 250 bytes");
    is_int(eti_unlink_at(cx, dir, name, 0), ET_OK,
           "a file with a name of 250 bytes can be removed");
    name[250] = 'n';
    name[251] = '\0';
    is_int(eti_replace_at(cx, dir, name, "z", 1), ET_EINVAL,
           "a file's name of 251 bytes is refused");
    et_error_clear(cx);

    need(cx, eti_rename_at(cx, dir, "f", dir, "g"));
    ok(is_file(dir, "g", "xy") && faccessat(dir, "f", F_OK, 0) != 0,
       "a renamed file has its contents under the new name");
    is_int(eti_open_at(cx, dir, "f", O_RDONLY, 0, &fd), ET_ENOENT,
           "a renamed file is missing under the old name");
    et_error_clear(cx);
    if (symlinkat("g", dir, "link") != 0)
        bail("no link");
    is_int(eti_open_at(cx, dir, "link", O_RDONLY, 0, &fd), ET_EIO,
           "a symbolic link is not followed");
    et_error_clear(cx);
    need(cx, eti_unlink_at(cx, dir, "link", 0));
    is_int(eti_unlink_at(cx, dir, "link", 0), ET_EIO,
           "removing a missing file is an error");
    et_error_clear(cx);
    need(cx, eti_unlink_at(cx, dir, "sub", AT_REMOVEDIR));
    need(cx, eti_unlink_at(cx, dir, "g", 0));
}

static void
test_parents(const char *folder)
{
    static const char *const row[][2] = {
        {"x", "."},  {"/x", "/"},   {"a/b", "a"},       {"a/b/", "a"},
        {"a/", "."}, {"a//b", "a"}, {"/usr/x", "/usr"},
    };
    if (chdir(folder) != 0 || mkdir("a", 0700) != 0)
        bail("no folder");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct stat got, want;
        int fd;
        need(cx, eti_open_parent(cx, row[i][0], &fd));
        ok(fstat(fd, &got) == 0 && stat(row[i][1], &want) == 0 &&
               got.st_ino == want.st_ino && got.st_dev == want.st_dev,
           "the parent of '%s' is '%s'", row[i][0], row[i][1]);
        eti_close(cx, fd);
    }
    rmdir("a");
}

int
main(void)
{
    const char *folder = scratch_folder();
    int dir, n = 0;
    cx = need_ctx();
    seams = eti_system;
    seams.file.write = note_write;
    seams.file.sync = note_sync;
    seams.file.rename = note_rename;
    eti_ctx_set_seams(cx, &seams);
    need(cx, eti_open_folder(cx, folder, &dir));
    need(cx, eti_replace_at(cx, dir, "file", "new", 3));
    is_str(asked, "write sync rename sync-folder ",
           "a file that is replaced is down on the disk before it has its name, and "
           "then the name is");
    need(cx, eti_replace_at(cx, dir, "other", "new", 3));
    need(cx, eti_for_each_name(cx, dir, "folder", count, &n));
    is_int(n, 2, "a folder's names are those of its files");
    seams.file.next = break_off;
    names_left = 1;
    is_int(eti_for_each_name(cx, dir, "folder", count, &n), ET_EIO,
           "one that cannot be read to its end is not taken for a whole one");
    is_str(take_error(cx), "cannot read folder: Input/output error", "and says why");
    eti_ctx_set_seams(cx, &eti_system);
    test_files(dir);
    test_parents(folder);
    eti_close(cx, dir);
    et_ctx_free(&cx);
    return done();
}
