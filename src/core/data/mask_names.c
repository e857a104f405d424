/* SPDX-License-Identifier: Apache-2.0 */
/* mask_names.c: see mask_names.h. ADE20K's archive has objectInfo150.txt: a line of
 * heads and one for each class, whose last column is its names with commas between. */
#include "core/data/mask_names.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/data/file.h"

static bool
is_table(const struct eti_strings *lines)
{
    return lines->n > 0 && strchr(eti_string(lines, 0), '\t') &&
           strncmp(eti_string(lines, 0), "Idx", 3) == 0;
}

/* The last column of LINE. */
static const char *
last_column(const char *line)
{
    const char *tab = strrchr(line, '\t');
    line = tab ? tab + 1 : line;
    return line + strspn(line, " ");
}

static et_status
read_names(struct et_ctx *cx, const char *path, int64_t n, struct eti_strings *out)
{
    struct eti_strings lines = {0};
    et_status status = eti_strings_of_lines(cx, path, &lines);
    const int64_t first = status == ET_OK && is_table(&lines);
    if (status == ET_OK && lines.n - first != n)
        status =
            ET_FAIL(cx, ET_EFORMAT, "%s: %" PRId64 " names, for %" PRId64 " classes",
                    path, lines.n - first, n);
    for (int64_t i = first; status == ET_OK && i < lines.n; i++)
        status = eti_strings_add(cx, out,
                                 first ? last_column(eti_string(&lines, i))
                                       : eti_string(&lines, i));
    eti_strings_free(cx, &lines);
    return status;
}

et_status
eti_mask_names(struct et_ctx *cx, const struct eti_mask_name_options *o,
               const char *const *fallback, const char *table, int64_t n,
               struct eti_strings *out)
{
    if (o->classes.n > 0 && o->classes.n != n)
        return ET_FAIL(cx, ET_EINVAL,
                       "segmentation: classes has %d names, for %" PRId64 " classes",
                       o->classes.n, n);
    if (o->classes.n > 0 && o->class_file)
        return ET_FAIL(cx, ET_EINVAL,
                       "segmentation: classes and class_file both name the classes");
    for (int i = 0; i < o->classes.n; i++)
        ET_TRY(eti_strings_add(cx, out, o->classes.v[i]));
    if (o->classes.n > 0)
        return ET_OK;
    if (o->class_file)
        return read_names(cx, o->class_file, n, out);
    if (table && access(table, F_OK) == 0)
        return read_names(cx, table, n, out);
    for (int64_t i = 0; fallback && i < n; i++)
        ET_TRY(eti_strings_add(cx, out, fallback[i]));
    return ET_OK;
}
