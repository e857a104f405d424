/* SPDX-License-Identifier: Apache-2.0 */
/* userfile.c: see userfile.h. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/folders.h"
#include "tui/userfile.h"

enum { FILE_MAX = 64 << 10 };

et_status
tui_user_text(struct et_ctx *cx, struct eti_arena *arena, const char *text, size_t n,
              const char *path, struct et_diagnostics *errors, struct et_value **out)
{
    *out = NULL;
    struct eti_source *source = eti_arena_alloc(arena, sizeof *source);
    if (!source)
        return ET_ENOMEM;
    *source = (struct eti_source){.origin = ETI_ORIGIN_RECIPE, .name = path};
    ET_TRY(eti_yaml_parse(arena, text, n, source, &eti_yaml_limits, errors, out));
    if (*out && (*out)->type == ET_VALUE_NULL)
        *out = NULL;
    if (*out && (*out)->type != ET_VALUE_MAP) {
        struct et_place at = eti_value_place(*out);
        et_diagnostics_add(errors, ET_E_VALUE, &at, NULL, NULL,
                           "expected a mapping of names");
        *out = NULL;
    }
    if (errors->total)
        return ET_FAIL(cx, ET_EINVAL, "%s: %s", path, errors->v[0].message);
    return ET_OK;
}

et_status
tui_user_file(struct et_ctx *cx, struct eti_arena *arena, const char *path,
              struct et_diagnostics *errors, struct et_value **out)
{
    *out = NULL;
    FILE *f = eti_open_regular(path);
    if (!f && (errno == ENOENT || errno == ENOTDIR))
        return ET_OK;
    char *text = eti_arena_alloc(arena, FILE_MAX + 1);
    if (f && text) {
        size_t n = fread(text, 1, FILE_MAX + 1, f);
        bool failed = ferror(f) != 0;
        fclose(f);
        if (!failed && n <= FILE_MAX)
            return tui_user_text(cx, arena, text, n, path, errors, out);
        errno = failed ? EIO : EFBIG;
    } else if (f) {
        fclose(f);
        return ET_ENOMEM;
    }
    et_diagnostics_add(errors, ET_E_READ, NULL, NULL, NULL, "cannot read %s: %s", path,
                       strerror(errno));
    return ET_FAIL(cx, ET_EIO, "cannot read %s: %s", path, strerror(errno));
}

const char *
tui_user_stamp(const char *folder, const char *name, char buf[TUI_STAMP])
{
    char path[PATH_MAX + 64];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    buf[0] = '\0';
    if (*folder && stat(path, &s) == 0)
        snprintf(buf, TUI_STAMP, "%llu %lld %lld.%ld", (unsigned long long)s.st_ino,
                 (long long)s.st_size, (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    return buf;
}
