/* folders.c: see folders.h. */
#include "config.h"

#include "core/base/folders.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
