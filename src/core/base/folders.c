/* SPDX-License-Identifier: Apache-2.0 */
/* folders.c: see folders.h. */
#include "config.h"

#include "core/base/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"

enum { LOCK_TRIES = 1000 /* of 10 ms */ };

bool
eti_make_user_folders(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    const char *home = getenv("HOME"), *from = path + 1;
    size_t n = home ? strlen(home) : 0;
    while (n > 1 && home[n - 1] == '/')
        n--;
    if (n > 1 && strncmp(path, home, n) == 0 && path[n] == '/')
        from = path + n + 1;
    for (const char *p = strchr(from, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        if (mkdir(part, mode) != 0 && errno != EEXIST)
            return false;
    }
    return true;
}

FILE *
eti_open_regular(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    FILE *f = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (!f)
        close(fd);
    if (!f)
        errno = EINVAL;
    return f;
}

et_status
eti_lock_parent(struct et_ctx *cx, const char *path, int *dir)
{
    const struct timespec pause = {0, 10000000};
    ET_TRY(eti_open_parent(cx, path, dir));
    for (int i = 0; flock(*dir, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EINTR && errno != EWOULDBLOCK)
            break; /* a file system without locks */
        if (i == LOCK_TRIES) {
            eti_close(cx, *dir);
            return ET_FAIL(cx, ET_ECANCELED, "%s: another process is changing it",
                           path);
        }
        nanosleep(&pause, NULL);
    }
    return ET_OK;
}
