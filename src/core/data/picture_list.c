/* SPDX-License-Identifier: Apache-2.0 */
/* picture_list.c: data sets whose samples are files of pictures. See picture_list.h. */
#include "core/data/picture_list.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "core/base/memory.h"
#include "core/base/seams.h"
#include "core/data/file.h"

enum { PICTURE_FILE_MOST = 1 << 30 };

const char *const eti_channel_names[] = {"grey", "rgb", NULL};

et_status
eti_picture_list_add(struct et_ctx *cx, struct eti_picture_list *l, const char *path,
                     int32_t label)
{
    int64_t n = l->files.n;
    ET_TRY(eti_grow(cx, &l->label, &l->label_room, n + 1, sizeof *l->label));
    l->label[n] = label;
    return eti_strings_add(cx, &l->files, path);
}

et_status
eti_picture_list_end(struct et_ctx *cx, struct et_dataset *self, int C)
{
    struct eti_picture_list *l = self->state;
    size_t n = (size_t)l->classes.n;
    if (l->files.n == 0)
        return ET_FAIL(cx, ET_EFORMAT, "%s: no pictures to %s with in %s",
                       self->type->info.name,
                       self->common->split == ET_SPLIT_TEST ? "evaluate" : "train",
                       self->common->path);
    et_facts_images(&self->facts, l->files.n, C, -1, -1, l->classes.n);
    if (n == 0)
        return ET_OK;
    ET_TRY(et_alloc(cx, n * sizeof *l->class_names, (void **)&l->class_names));
    for (size_t i = 0; i < n; i++)
        l->class_names[i] = eti_string(&l->classes, (int64_t)i);
    self->facts.class_names = l->class_names;
    return ET_OK;
}

bool
eti_is_of_split(const char *name, double fraction, int split)
{
    double at = (double)(XXH3_64bits(name, strlen(name)) >> 11) * 0x1p-53;
    return (at < fraction) == (split == ET_SPLIT_TEST);
}

/* ---- samples ---- */

/* N bytes of FD to OUT; FALSE: errno, or 0 where it ended before. */
static bool
read_all(const struct eti_file_calls *f, int fd, char *out, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = f->read(fd, out + at, n - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got == 0 ? 0 : errno;
            return false;
        }
        at += (size_t)got;
    }
    return true;
}

/* The open file FD as field I of S. Whatever is wrong with it is wrong with this sample
 * alone. */
static et_status
take_file(const struct eti_file_calls *f, int fd, const char *path, int i,
          struct et_sample *s, struct et_error *why)
{
    struct stat st;
    if (f->stat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return eti_why(why, ET_EFORMAT, "%s: not a regular file", path);
    if (st.st_size > PICTURE_FILE_MOST)
        return eti_why(why, ET_EFORMAT, "%s: more than 1 GiB, and so no picture", path);
    size_t n = (size_t)st.st_size;
    char *room = et_sample_room(s, i, n);
    if (!room)
        return eti_why(why, ET_ENOMEM, "no memory for the %zu bytes of %s", n, path);
    if (!read_all(f, fd, room, n))
        return eti_why(why, ET_EFORMAT, "cannot read %s: %s", path,
                       errno ? strerror(errno) : "it became shorter");
    s->v[i].data = room;
    s->v[i].shape[0] = (int64_t)n;
    s->v[i].file = path;
    return ET_OK;
}

static et_status
read_file(const struct et_dataset *self, const char *path, int i, struct et_sample *s,
          struct et_error *why)
{
    const struct eti_file_calls *f = &eti_ctx_seams(self->cx)->file;
    /* Not blocking, so that opening a fifo returns. */
    int fd = f->open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return eti_why(why, ET_EFORMAT, "cannot read %s: %s", path, strerror(errno));
    et_status status = take_file(f, fd, path, i, s, why);
    (void)f->close(fd);
    return status;
}

et_status
eti_picture_list_sample(const struct et_dataset *self, int64_t at,
                        struct et_sample *out, struct et_error *why)
{
    const struct eti_picture_list *l = self->state;
    ET_TRY(read_file(self, eti_string(&l->files, at), ET_FIELD_X, out, why));
    if (l->masks.n == 0) {
        et_sample_number(out, ET_FIELD_TARGET, l->label[at]);
        return ET_OK;
    }
    out->v[ET_FIELD_TARGET].classes = l->map;
    return read_file(self, eti_string(&l->masks, at), ET_FIELD_TARGET, out, why);
}

void
eti_picture_list_close(struct et_dataset *self)
{
    struct eti_picture_list *l = self->state;
    eti_strings_free(self->cx, &l->files);
    eti_strings_free(self->cx, &l->masks);
    eti_strings_free(self->cx, &l->classes);
    et_free(self->cx, l->label);
    et_free(self->cx, l->class_names);
}
