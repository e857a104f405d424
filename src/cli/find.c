/* SPDX-License-Identifier: Apache-2.0 */
/* find.c: where installed files are: recipes, the user's first, then this build's, then
 * the system's; and the terminal's entry. A prefix may have been moved.
 *
 * A program run from its build tree uses what is there and in its source tree. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/installed.h"

/* Is the program in its build tree, with or without libtool's .libs? Which is EXE
 * then. */
static bool
in_build_tree(char exe[PATH_MAX])
{
    char path[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", exe, PATH_MAX - 1);
    exe[n > 0 ? n : 0] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(exe, '/');
        if (!slash)
            return false;
        *slash = '\0';
        snprintf(path, sizeof path, "%s/config.status", exe);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

/* The folder NAME of what is installed, wherever the prefix is now. */
static const char *
installed(const char *name, char *buf, size_t size)
{
    char now[PATH_MAX], was[PATH_MAX];
    snprintf(was, sizeof was, "%s/%s", ET_PKGDATADIR, name);
    eti_installed(was, now);
    snprintf(buf, size, "%s", now);
    return buf;
}

const char *
cli_recipe_folder(int i, char *buf, size_t size)
{
    char user[PATH_MAX], build[PATH_MAX];
    if (i == 0) {
        snprintf(buf, size, "%s/recipes", cli_user_folder(user, sizeof user));
        return buf;
    }
    if (i == 1) {
        if (!in_build_tree(build))
            return installed("recipes", buf, size);
        snprintf(buf, size, "%s/recipes", ET_SOURCE_DIR);
        return buf;
    }
    const char *dirs = getenv("XDG_DATA_DIRS");
    if (!dirs || !*dirs)
        dirs = "/usr/local/share:/usr/share";
    for (i -= 2; i > 0 && dirs; i--) {
        dirs = strchr(dirs, ':');
        dirs = dirs ? dirs + 1 : NULL;
    }
    if (!dirs)
        return NULL;
    snprintf(buf, size, "%.*s/etude/recipes", (int)strcspn(dirs, ":"), dirs);
    return buf;
}

const char *
cli_terminfo_folder(char *buf, size_t size)
{
    char build[PATH_MAX];
    if (!in_build_tree(build))
        return installed("terminfo", buf, size);
    snprintf(buf, size, "%s/terminfo", build);
    return buf;
}

/* Is FOLDER the same as OF, or one in it? */
static bool
is_at_or_in(const char *of, const char *folder)
{
    size_t n = strlen(of);
    return strncmp(of, folder, n) == 0 &&
           (folder[n] == '\0' || (folder[n] == '/' && !strchr(folder + n + 1, '/')));
}

bool
cli_recipe_is_installed(const char *path)
{
    char folder[PATH_MAX], at[PATH_MAX], of[PATH_MAX], real[PATH_MAX];
    if (!realpath(path, real)) {
        /* a file that is not there yet: its folder */
        const char *slash = strrchr(path, '/');
        snprintf(of, sizeof of, "%.*s", slash ? (int)(slash - path) : 1,
                 slash ? path : ".");
        if (!realpath(slash == path ? "/" : of, real))
            return false;
    } else {
        *strrchr(real, '/') = '\0';
    }
    for (int i = 1; cli_recipe_folder(i, folder, sizeof folder); i++)
        if (realpath(folder, at) && is_at_or_in(at, real))
            return true;
    return false;
}

/* Is NAME that of a file, or a folder's and a file's? Neither may lead elsewhere. */
static bool
is_plain_name(const char *name)
{
    const char *slash = strchr(name, '/');
    return *name && *name != '/' && *name != '.' &&
           !(slash && (slash[1] == '\0' || slash[1] == '.' || strchr(slash + 1, '/')));
}

bool
cli_recipe_find(const char *name, char *buf, size_t size)
{
    char folder[PATH_MAX];
    if (!is_plain_name(name))
        return false;
    for (int i = 0; cli_recipe_folder(i, folder, sizeof folder); i++) {
        snprintf(buf, size, "%s/%s.yaml", folder, name);
        if (access(buf, R_OK) == 0)
            return true;
    }
    return false;
}
