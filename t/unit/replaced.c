/* SPDX-License-Identifier: Apache-2.0 */
/* What whole operations on files ask of the system (core/base/seams.h): in which
 * order, so that a machine that stops leaves the old file or the new; and what they
 * make of its errors. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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

int
main(void)
{
    int dir, n = 0;
    cx = need_ctx();
    seams = eti_system;
    seams.file.write = note_write;
    seams.file.sync = note_sync;
    seams.file.rename = note_rename;
    eti_ctx_set_seams(cx, &seams);
    need(cx, eti_open_folder(cx, scratch_folder(), &dir));
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
    eti_close(cx, dir);
    et_ctx_free(&cx);
    return done();
}
