/* SPDX-License-Identifier: Apache-2.0 */
/* installed.c: see installed.h. */
#include "config.h"

#include "core/base/installed.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file that holds this code, as the linker was told; "": the program. */
static const char *
own_name(void)
{
    static const char here;
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return "";
    return map->l_name;
}

bool
eti_own_folder(char folder[PATH_MAX], bool *is_program)
{
    const char *name = own_name();
    *is_program = !*name;
    if (!realpath(*name ? name : "/proc/self/exe", folder))
        return false;
    *strrchr(folder, '/') = '\0';
    return true;
}

/* PATH without PREFIX and the slashes after it; NULL: it is not below it. */
static const char *
below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    while (n > 0 && prefix[n - 1] == '/')
        n--;
    if (strncmp(path, prefix, n) != 0 || path[n] != '/')
        return NULL;
    return path + n + strspn(path + n, "/");
}

/* The prefix as it is now, if FOLDER is the successor of INSTALLED; cut off FOLDER. */
static bool
cut_prefix(char *folder, const char *installed)
{
    const char *rest = below(installed, ET_PREFIX);
    size_t n = strlen(folder), k = rest ? strlen(rest) : 0;
    if (k == 0 || k >= n || folder[n - k - 1] != '/' ||
        strcmp(folder + n - k, rest) != 0)
        return false;
    folder[n - k - 1] = '\0';
    return true;
}

void
eti_installed(const char *path, char now[PATH_MAX])
{
    char folder[PATH_MAX];
    bool is_program;
    const char *rest = below(path, ET_PREFIX);
    if (rest && eti_own_folder(folder, &is_program) &&
        cut_prefix(folder, is_program ? ET_BINDIR : ET_LIBDIR)) {
        int n = snprintf(now, PATH_MAX, "%s/%s", folder, rest);
        if (n > 0 && n < PATH_MAX && access(now, F_OK) == 0)
            return;
    }
    snprintf(now, PATH_MAX, "%s", path);
}
