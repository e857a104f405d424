/* SPDX-License-Identifier: Apache-2.0 */
/* module.c: see module.h. */
#include "config.h"

#include "core/graph/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/installed.h"
#include "core/base/memory.h"

/* Is the module of NAME in one of FOLDERS, which have colons between them? */
static bool
find_among(const char *folders, const char *name, char path[PATH_MAX])
{
    for (const char *p = folders; p && *p; p += strspn(p, ":")) {
        int n = (int)strcspn(p, ":");
        snprintf(path, PATH_MAX, "%.*s/libetude-%s.so", n, p, name);
        if (access(path, F_OK) == 0)
            return true;
        p += n;
    }
    return false;
}

/* The folder that was configured, at FOLDER or above it, has what was built. */
static bool
find_in_build_tree(char folder[PATH_MAX], const char *name, char path[PATH_MAX])
{
    for (int up = 0; up < 4 && *folder; up++) {
        if ((size_t)snprintf(path, PATH_MAX, "%s/config.status", folder) < PATH_MAX &&
            access(path, F_OK) == 0) {
            strncat(folder, "/.libs", PATH_MAX - strlen(folder) - 1);
            return find_among(folder, name, path);
        }
        *strrchr(folder, '/') = '\0';
    }
    return false;
}

void
eti_module_find(const struct et_ctx *cx, const char *name, char path[PATH_MAX])
{
    char folder[PATH_MAX];
    bool is_program;
    if (find_among(eti_ctx_module_path(cx), name, path) ||
        find_among(getenv("ETUDE_MODULE_PATH"), name, path))
        return;
    if (eti_own_folder(folder, &is_program) && find_in_build_tree(folder, name, path))
        return;
    eti_installed(ET_PKGLIBDIR, folder);
    if (!find_among(folder, name, path) && !find_among(ET_PKGLIBDIR, name, path))
        (void)find_among(folder, name, path); /* the one that a message names */
}
