/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c: the user's own folder, in which runs and workers listen, and ranks find
 * each other: see endpoint.h. */
#include "config.h"

#include "dist/wire/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dist/wire/errors.h"

enum { OTHERS = S_IRWXG | S_IRWXO };

const char *
etd_endpoint_common_folder(char *buf, size_t size)
{
    snprintf(buf, size, "/tmp/etude-%ld", (long)getuid());
    return buf;
}

const char *
etd_endpoint_folder(char *buf, size_t size)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    struct stat st;
    bool has_base = base && base[0] == '/' && stat(base, &st) == 0 &&
                    S_ISDIR(st.st_mode) && st.st_uid == getuid();
    if (!has_base)
        return etd_endpoint_common_folder(buf, size);
    snprintf(buf, size, "%s/etude", base);
    return buf;
}

et_status
etd_endpoint_look(struct et_ctx *cx, const char *path)
{
    struct stat st;
    et_status status = ET_OK;
    if (lstat(path, &st) != 0)
        return ETD_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, TAKEN,
                        "cannot look at %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        status = ETD_FAIL(cx, ET_EIO, UNSAFE, "%s is no folder: nothing listens there",
                          path);
    else if (st.st_uid != getuid())
        status =
            ETD_FAIL(cx, ET_EIO, UNSAFE, "%s belongs to uid %ld: nothing listens there",
                     path, (long)st.st_uid);
    else if (st.st_mode & OTHERS)
        status = ETD_FAIL(cx, ET_EIO, UNSAFE,
                          "%s has mode %04o: others can enter; it must be 0700", path,
                          (unsigned)st.st_mode & 07777);
    if (status != ET_OK && st.st_uid == getuid() && S_ISDIR(st.st_mode))
        et_hint(cx, "chmod 700 %s", path);
    else if (status != ET_OK)
        et_hint(cx,
                "set XDG_RUNTIME_DIR to a folder of yours, or remove what is there");
    return status;
}

et_status
etd_endpoint_make_folder(struct et_ctx *cx, const char *path)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return etd_endpoint_look(cx, path);
    et_status status =
        ETD_FAIL(cx, ET_EIO, TAKEN, "cannot make %s: %s", path, strerror(errno));
    et_hint(cx, "set XDG_RUNTIME_DIR to a folder of yours");
    return status;
}
