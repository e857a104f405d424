/* SPDX-License-Identifier: Apache-2.0 */
/* picture_list.c: data sets whose samples are files of pictures. See picture_list.h. */
#include "core/data/picture_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "core/base/memory.h"
#include "core/base/seams.h"
#include "core/data/file.h"
#include "core/data/picture_cache.h"

enum { PICTURE_FILE_MOST = 1 << 30, NAME_MOST = 1024 };

const char *const eti_channel_names[] = {"grey", "rgb", NULL};

et_status
eti_picture_list_add_at(struct et_ctx *cx, struct eti_picture_list *l,
                        const struct eti_picture_at *picture,
                        const struct eti_picture_at *mask)
{
    int64_t n = l->n;
    ET_TRY(eti_grow(cx, &l->picture, &l->room, n + 1, sizeof *l->picture));
    if (mask) {
        ET_TRY(eti_grow(cx, &l->mask, &l->mask_room, n + 1, sizeof *l->mask));
        l->mask[n] = *mask;
    }
    l->picture[n] = *picture;
    l->n++;
    return ET_OK;
}

et_status
eti_picture_list_add(struct et_ctx *cx, struct eti_picture_list *l, const char *path,
                     int32_t label)
{
    const struct eti_picture_at at = {.file = (int32_t)l->files.n, .bytes = -1};
    ET_TRY(eti_grow(cx, &l->label, &l->label_room, l->n + 1, sizeof *l->label));
    l->label[l->n] = label;
    ET_TRY(eti_strings_add(cx, &l->files, path));
    return eti_picture_list_add_at(cx, l, &at, NULL);
}

/* What a sample has beside its picture. */
static void
set_target(const struct eti_picture_list *l, int64_t num_classes, struct et_field *f)
{
    if (l->mask)
        *f = (struct et_field){
            .name = "target",
            .kind = ET_FIELD_MASK,
            .dtype = ET_U8,
            .ndim = 2,
            .shape = {-1, -1},
            .below = num_classes,
        };
    else if (l->values)
        *f = (struct et_field){
            .name = "target",
            .kind = ET_FIELD_VALUES,
            .dtype = ET_F32,
            .ndim = l->n_values > 1,
            .shape = {l->n_values > 1 ? l->n_values : 0},
        };
}

static et_status
name_classes(struct et_ctx *cx, struct et_dataset *self)
{
    struct eti_picture_list *l = self->state;
    size_t n = (size_t)l->classes.n;
    if (n == 0)
        return ET_OK;
    ET_TRY(et_alloc(cx, n * sizeof *l->class_names, (void **)&l->class_names));
    for (size_t i = 0; i < n; i++)
        l->class_names[i] = eti_string(&l->classes, (int64_t)i);
    self->facts.class_names = l->class_names;
    return ET_OK;
}

et_status
eti_picture_list_end(struct et_ctx *cx, struct et_dataset *self, int C,
                     int64_t num_classes, const struct eti_cache_options *cache)
{
    struct eti_picture_list *l = self->state;
    if (l->n == 0)
        return ET_FAIL(cx, ET_EFORMAT, "%s: no pictures to %s with in %s",
                       self->type->info.name,
                       self->common->split == ET_SPLIT_TEST ? "evaluate" : "train",
                       self->common->path);
    et_facts_images(&self->facts, l->n, C, -1, -1,
                    l->classes.n ? l->classes.n : l->n_classes);
    set_target(l, num_classes, &self->facts.field[ET_FIELD_TARGET]);
    ET_TRY(name_classes(cx, self));
    if (!cache || !cache->folder)
        return ET_OK;
    return eti_picture_cache_open(cx, self, cache, &l->cache);
}

bool
eti_is_of_split(const char *name, double fraction, int split)
{
    double at = (double)(XXH3_64bits(name, strlen(name)) >> 11) * 0x1p-53;
    return (at < fraction) == (split == ET_SPLIT_TEST);
}

/* ---- samples ---- */

/* N bytes of FD from FIRST on to OUT; false: errno, or 0 where it ended before. */
static bool
read_all(const struct eti_file_calls *f, int fd, char *out, size_t n, int64_t first)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = f->read(fd, out + at, n - at, (off_t)first + (off_t)at);
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

/* What a picture is called: its file, or the shard and its name there. */
static const char *
name_of(const struct eti_picture_list *l, int64_t at, const char *path, bool whole,
        char out[NAME_MOST])
{
    if (whole)
        return path;
    if (l->names.n)
        snprintf(out, NAME_MOST, "%.700s: %.300s", path, eti_string(&l->names, at));
    else
        snprintf(out, NAME_MOST, "%.1000s", path);
    return out;
}

/* What lies at P of the open file FD as field I of S; its name is behind it. Whatever
 * is wrong with it is wrong with this sample alone. */
static et_status
take_file(const struct eti_file_calls *f, int fd, const struct eti_picture_at *p,
          const char *name, int i, struct et_sample *s, struct et_error *why)
{
    struct stat st;
    bool whole = p->bytes < 0;
    size_t n = whole ? 0 : (size_t)p->bytes, length = strlen(name) + 1;
    if (f->stat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return eti_why(why, ET_EFORMAT, "%s: not a regular file", name);
    if (whole && st.st_size > PICTURE_FILE_MOST)
        return eti_why(why, ET_EFORMAT, "%s: more than 1 GiB, and so no picture", name);
    n = whole ? (size_t)st.st_size : n;
    char *room = et_sample_room(s, i, n + length);
    if (!room)
        return eti_why(why, ET_ENOMEM, "no memory for the %zu bytes of %s", n, name);
    if (!read_all(f, fd, room, n, p->offset))
        return eti_why(why, ET_EFORMAT, "cannot read %s: %s", name,
                       errno ? strerror(errno) : "it became shorter");
    memcpy(room + n, name, length);
    s->v[i].data = room;
    s->v[i].shape[0] = (int64_t)n;
    s->v[i].file = room + n;
    return ET_OK;
}

static et_status
read_file(const struct et_dataset *self, int64_t at, const struct eti_picture_at *p,
          int i, struct et_sample *s, struct et_error *why)
{
    const struct eti_picture_list *l = self->state;
    const struct eti_file_calls *f = &eti_ctx_seams(self->cx)->file;
    const char *path = eti_string(&l->files, p->file);
    char room[NAME_MOST];
    const char *name = name_of(l, at, path, p->bytes < 0, room);
    /* Not blocking, so that opening a fifo returns. */
    int fd = f->open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return eti_why(why, ET_EFORMAT, "cannot read %s: %s", path, strerror(errno));
    et_status status = take_file(f, fd, p, name, i, s, why);
    (void)f->close(fd);
    return status;
}

void
eti_picture_list_target(const struct eti_picture_list *l, int64_t at,
                        struct et_sample *out)
{
    if (l->values)
        out->v[ET_FIELD_TARGET].data = l->values + at * l->n_values;
    else
        et_sample_number(out, ET_FIELD_TARGET, l->label[at]);
}

et_status
eti_picture_list_read(const struct et_dataset *self, int64_t at, struct et_sample *out,
                      struct et_error *why)
{
    const struct eti_picture_list *l = self->state;
    ET_TRY(read_file(self, at, &l->picture[at], ET_FIELD_X, out, why));
    if (!l->mask) {
        eti_picture_list_target(l, at, out);
        return ET_OK;
    }
    out->v[ET_FIELD_TARGET].classes = l->map;
    return read_file(self, at, &l->mask[at], ET_FIELD_TARGET, out, why);
}

et_status
eti_picture_list_sample(const struct et_dataset *self, int64_t at,
                        struct et_sample *out, struct et_error *why)
{
    const struct eti_picture_list *l = self->state;
    bool found = false;
    if (l->cache)
        ET_TRY(eti_picture_cache_sample(l, at, out, &found, why));
    return found ? ET_OK : eti_picture_list_read(self, at, out, why);
}

void
eti_picture_list_close(struct et_dataset *self)
{
    struct eti_picture_list *l = self->state;
    eti_strings_free(self->cx, &l->files);
    eti_strings_free(self->cx, &l->names);
    eti_strings_free(self->cx, &l->classes);
    et_free(self->cx, l->picture);
    et_free(self->cx, l->mask);
    et_free(self->cx, l->label);
    et_free(self->cx, l->values);
    et_free(self->cx, l->class_names);
    eti_picture_cache_close(self->cx, &l->cache);
}
