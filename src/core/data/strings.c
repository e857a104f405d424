/* SPDX-License-Identifier: Apache-2.0 */
/* strings.c: lists of names: what is in a folder, the lines of a file. See
 * picture_list.h. */
#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/seams.h"
#include "core/data/file.h"
#include "core/data/picture_list.h"

enum { LIST_MOST = 1 << 30 }; /* bytes of a file of lines */

et_status
eti_strings_add(struct et_ctx *cx, struct eti_strings *names, const char *name)
{
    int64_t n = (int64_t)strlen(name) + 1;
    ET_TRY(eti_grow(cx, &names->text, &names->text_room, names->text_n + n, 1));
    ET_TRY(eti_grow(cx, &names->at, &names->room, names->n + 1, sizeof *names->at));
    memcpy(names->text + names->text_n, name, (size_t)n);
    names->at[names->n++] = names->text_n;
    names->text_n += n;
    return ET_OK;
}

const char *
eti_string(const struct eti_strings *names, int64_t i)
{
    return names->text + names->at[i];
}

static int
by_bytes(const void *a, const void *b, void *text)
{
    const int64_t *x = a, *y = b;
    const char *of = text;
    return strcmp(of + *x, of + *y);
}

void
eti_strings_sort(struct eti_strings *names)
{
    if (names->n > 1)
        qsort_r(names->at, (size_t)names->n, sizeof *names->at, by_bytes, names->text);
}

int64_t
eti_strings_find(const struct eti_strings *names, const char *name)
{
    int64_t low = 0, high = names->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = strcmp(name, eti_string(names, middle));
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

void
eti_strings_free(struct et_ctx *cx, struct eti_strings *names)
{
    et_free(cx, names->text);
    et_free(cx, names->at);
    *names = (struct eti_strings){0};
}

struct adding {
    struct et_ctx *cx;
    struct eti_strings *names;
};

static et_status
add_visible(void *data, const char *name)
{
    const struct adding *a = data;
    return name[0] == '.' ? ET_OK : eti_strings_add(a->cx, a->names, name);
}

et_status
eti_strings_of_folder(struct et_ctx *cx, const char *path, struct eti_strings *out)
{
    struct adding a = {cx, out};
    int fd;
    ET_TRY(eti_open_folder(cx, path, &fd));
    et_status status = eti_for_each_name(cx, fd, path, add_visible, &a);
    eti_close(cx, fd);
    eti_strings_sort(out);
    return status;
}

/* The line at TEXT, cut off and without blanks around it; *NEXT is behind it. */
static char *
take_line(char *text, char *end, char **next)
{
    char *stop = memchr(text, '\n', (size_t)(end - text));
    stop = stop ? stop : end;
    *next = stop < end ? stop + 1 : end;
    while (stop > text && isspace((unsigned char)stop[-1]))
        stop--;
    *stop = 0;
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

et_status
eti_strings_of_lines(struct et_ctx *cx, const char *path, struct eti_strings *out)
{
    struct eti_bytes bytes;
    char *text;
    et_status status = ET_OK;
    ET_TRY(eti_file_load(cx, path, LIST_MOST, &bytes));
    size_t n = (size_t)bytes.n;
    status = et_alloc(cx, n + 1, (void **)&text);
    if (status == ET_OK)
        memcpy(text, bytes.data, n);
    et_free(cx, bytes.data);
    ET_TRY(status);
    if (memchr(text, 0, n))
        status =
            ET_FAIL(cx, ET_EFORMAT, "%s: a zero byte, and so no list of names", path);
    for (char *at = text, *end = text + n; status == ET_OK && at < end;) {
        const char *line = take_line(at, end, &at);
        if (line[0] && line[0] != '#')
            status = eti_strings_add(cx, out, line);
    }
    et_free(cx, text);
    return status;
}

bool
eti_is_folder(struct et_ctx *cx, const char *path)
{
    int fd = eti_ctx_seams(cx)->file.open(AT_FDCWD, path,
                                          O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd >= 0)
        eti_close(cx, fd);
    return fd >= 0;
}
