/* SPDX-License-Identifier: Apache-2.0 */
/* write.c: one checkpoint onto the disk, and old ones off it. See store.h. */
#include "config.h"

#include "core/checkpoint/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <xxhash.h>

#include "core/checkpoint/names.h"
#include "core/data/file.h"
#include "core/models/safetensors.h"

et_status
eti_draw(struct et_ctx *cx, uint64_t *out)
{
    if (getrandom(out, sizeof *out, 0) == (ssize_t)sizeof *out)
        return ET_OK;
    return ET_FAIL(cx, ET_EIO, "cannot draw a number: %s", strerror(errno));
}

static void
put_hash(XXH128_hash_t hash, char out[ETI_DIGEST_TEXT])
{
    snprintf(out, ETI_DIGEST_TEXT, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
             (uint64_t)hash.low64);
}

void
eti_hash_text(const void *bytes, size_t n, char out[ETI_DIGEST_TEXT])
{
    put_hash(XXH3_128bits(bytes, n), out);
}

void
eti_hash_finish(const struct XXH3_state_s *state, char out[ETI_DIGEST_TEXT])
{
    put_hash(XXH3_128bits_digest(state), out);
}

enum eti_shard
eti_archive_item_shard(const struct eti_archive_item *item, const char **name)
{
    static const char model[] = "model/";
    *name = item->path;
    if (strncmp(item->path, model, strlen(model)) != 0)
        return item->is_number ? ETI_SHARD_STATE : ETI_SHARD_OPTIM;
    *name += strlen(model);
    return ETI_SHARD_MODEL;
}

enum { BEGIN_BYTES = 8 << 20 }; /* written, and the disk is asked to begin */

/* A file of the checkpoint being written. */
struct shard {
    struct et_ctx *cx;
    enum eti_shard kind;
    int fd;
    char name[64];
    XXH3_state_t *hash; /* of all written so far */
    int64_t bytes;
    size_t waiting;  /* written since the disk was asked to begin */
    json_t *tensors; /* {name: digest} */
    void *rows;      /* room for one tensor's elements in row-major order */
    size_t room;
};

/* What is being written. */
struct writing {
    struct et_ctx *cx;
    const struct et_archive *a;
    struct eti_manifest *m;
    int dir;      /* checkpoints/ */
    int folder;   /* .tmp-... in it */
    int manifest; /* the file MANIFEST there; -1: not open */
    char temporary[ETI_ASIDE_NAME];
    struct shard shard[ETI_SHARD_COUNT];
    int64_t bytes;
};

/* ---- a file ---- */

/* The disk may as well begin: fsync then waits for less. A wish, and no part of what is
 * promised: it goes past the seams. */
static void
begin_writeback(struct shard *s, size_t n)
{
    s->waiting += n;
    if (s->waiting < BEGIN_BYTES)
        return;
    (void)sync_file_range(s->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    s->waiting = 0;
}

static et_status
append(struct shard *s, const void *bytes, size_t n)
{
    const char *at = bytes;
    XXH3_128bits_update(s->hash, bytes, n);
    for (size_t left = n; left > 0;) {
        size_t part = left < BEGIN_BYTES ? left : BEGIN_BYTES;
        ET_TRY(eti_write_all(s->cx, s->fd, s->name, at, part));
        begin_writeback(s, part);
        at += part;
        left -= part;
    }
    s->bytes += (int64_t)n;
    return ET_OK;
}

/* Item's elements in row-major order, *OUT borrowed until the next call. */
static et_status
rows_of(struct shard *s, const struct eti_archive_item *item, const void **out)
{
    size_t bytes = et_desc_bytes(&item->desc);
    *out = item->data;
    if (eti_archive_item_is_rows(item))
        return ET_OK;
    if (s->room < bytes) {
        et_free(s->cx, s->rows);
        s->room = 0;
        ET_TRY(et_alloc(s->cx, bytes, &s->rows));
        s->room = bytes;
    }
    eti_archive_item_rows(item, s->rows);
    *out = s->rows;
    return ET_OK;
}

static et_status
append_item(struct shard *s, const struct eti_archive_item *item)
{
    char digest[ETI_DIGEST_TEXT];
    const char *name;
    const void *rows;
    size_t bytes = et_desc_bytes(&item->desc);
    if (eti_archive_item_shard(item, &name) != s->kind)
        return ET_OK;
    if (!item->is_number && !eti_archive_item_is_finite(item))
        return ET_FAIL(s->cx, ET_EINVAL, "'%s' is not finite: this state is not saved",
                       item->path);
    ET_TRY(rows_of(s, item, &rows));
    eti_hash_text(rows, bytes, digest);
    if (json_object_set_new(s->tensors, name, json_string(digest)) != 0)
        return ET_FAIL(s->cx, ET_EINTERNAL, "'%s' cannot be a name in MANIFEST", name);
    return append(s, rows, bytes);
}

static et_status
append_header(struct shard *s, const struct et_archive *a)
{
    void *block;
    uint8_t *header;
    int64_t n = 0, at = 0, bytes;
    ET_TRY(et_alloc(s->cx, ((size_t)a->n + 1) * sizeof(struct eti_st_tensor), &block));
    struct eti_st_tensor *v = block;
    for (int64_t i = 0; i < a->n; i++) {
        const struct et_desc *d = &a->item[i].desc;
        const char *name;
        if (eti_archive_item_shard(&a->item[i], &name) != s->kind)
            continue;
        v[n] = (struct eti_st_tensor){.name = name, .dtype = d->dtype, .ndim = d->ndim};
        memcpy(v[n].shape, d->shape, (size_t)d->ndim * sizeof *d->shape);
        v[n].begin = at;
        v[n].end = at += (int64_t)et_desc_bytes(d);
        n++;
    }
    et_status status = eti_st_print(s->cx, v, n, &header, &bytes);
    et_free(s->cx, block);
    if (status != ET_OK)
        return status;
    status = append(s, header, (size_t)bytes);
    et_free(s->cx, header);
    return status;
}

static et_status
fill_shard(struct shard *s, const struct et_archive *a)
{
    ET_TRY(append_header(s, a));
    for (int64_t i = 0; i < a->n; i++)
        ET_TRY(append_item(s, &a->item[i]));
    return ET_OK;
}

static et_status
write_shard(struct writing *w, enum eti_shard kind)
{
    struct shard *s = &w->shard[kind];
    s->cx = w->cx;
    s->kind = kind;
    eti_shard_name(kind, 0, s->name, sizeof s->name);
    s->hash = XXH3_createState();
    s->tensors = json_object();
    if (!s->hash || !s->tensors)
        return ET_FAIL(w->cx, ET_ENOMEM, "out of memory: %s", s->name);
    XXH3_128bits_reset(s->hash);
    ET_TRY(eti_open_at(w->cx, w->folder, s->name, O_WRONLY | O_CREAT | O_EXCL, 0600,
                       &s->fd));
    ET_TRY(fill_shard(s, w->a));
    struct eti_manifest_file *f = &w->m->file[w->m->n_files++];
    *f = (struct eti_manifest_file){
        .name = s->name,
        .bytes = s->bytes,
        .tensors = s->tensors,
    };
    eti_hash_finish(s->hash, f->digest);
    w->bytes += s->bytes;
    return ET_OK;
}

static void
release_shards(struct writing *w)
{
    for (int i = 0; i < ETI_SHARD_COUNT; i++) {
        XXH3_freeState(w->shard[i].hash);
        json_decref(w->shard[i].tensors);
        et_free(w->cx, w->shard[i].rows);
    }
}

/* ---- the folder ---- */

static et_status
write_manifest(struct writing *w)
{
    char *text;
    size_t n;
    ET_TRY(eti_manifest_print(w->cx, w->m, &text, &n));
    et_status status = eti_open_at(w->cx, w->folder, "MANIFEST",
                                   O_WRONLY | O_CREAT | O_EXCL, 0600, &w->manifest);
    if (status == ET_OK)
        status = eti_write_all(w->cx, w->manifest, "MANIFEST", text, n);
    et_free(w->cx, text);
    w->bytes += (int64_t)n;
    return status;
}

/* All files are written before the first is waited for: they reach the disk together,
 * and its journal is written once. */
static et_status
sync_files(struct writing *w)
{
    for (int kind = 0; kind < ETI_SHARD_COUNT; kind++)
        if (w->shard[kind].fd >= 0)
            ET_TRY(eti_sync(w->cx, w->shard[kind].fd, w->shard[kind].name));
    return eti_sync(w->cx, w->manifest, "MANIFEST");
}

/* Everything but the rename. */
static et_status
fill_folder(struct writing *w)
{
    bool has[ETI_SHARD_COUNT] = {[ETI_SHARD_MODEL] = true};
    const char *name;
    for (int64_t i = 0; i < w->a->n; i++)
        has[eti_archive_item_shard(&w->a->item[i], &name)] = true;
    w->m->n_files = 0;
    for (int kind = 0; kind < ETI_SHARD_COUNT; kind++)
        if (has[kind])
            ET_TRY(write_shard(w, (enum eti_shard)kind));
    ET_TRY(write_manifest(w));
    ET_TRY(sync_files(w));
    return eti_sync(w->cx, w->folder, w->temporary);
}

/* One of that step may be there, of a run that was taken back to before it: kept, under
 * a name that nobody loads from. */
static et_status
make_way(struct writing *w, const char *final)
{
    char aside[ETI_ASIDE_NAME];
    int there;
    et_status status =
        eti_open_at(w->cx, w->dir, final, O_RDONLY | O_DIRECTORY, 0, &there);
    if (status == ET_ENOENT) {
        et_error_clear(w->cx);
        return ET_OK;
    }
    ET_TRY(status);
    eti_close(w->cx, there);
    ET_TRY(eti_store_name_aside(w->cx, "old", w->m->step, aside));
    return eti_rename_at(w->cx, w->dir, final, w->dir, aside);
}

static void
close_files(struct writing *w)
{
    for (int kind = 0; kind < ETI_SHARD_COUNT; kind++)
        eti_close(w->cx, w->shard[kind].fd);
    eti_close(w->cx, w->manifest);
}

static et_status
write_folder(struct writing *w)
{
    char final[ETI_STEP_NAME];
    bool made;
    ET_TRY(eti_make_folder_at(w->cx, w->dir, w->temporary, &made));
    if (!made) /* a number that nobody can foresee, twice */
        return ET_FAIL(w->cx, ET_EIO, "%s is there already", w->temporary);
    eti_step_name(w->m->step, final);
    et_status status =
        eti_open_at(w->cx, w->dir, w->temporary, O_RDONLY | O_DIRECTORY, 0, &w->folder);
    if (status == ET_OK) {
        status = fill_folder(w);
        close_files(w);
        eti_close(w->cx, w->folder);
    }
    if (status == ET_OK)
        status = make_way(w, final);
    if (status == ET_OK)
        status = eti_rename_at(w->cx, w->dir, w->temporary, w->dir, final);
    return status;
}

/* Why there is no room, for the error that stands. */
static void
hint_space(struct writing *w)
{
    struct statvfs fs;
    char need[32], have[32];
    int64_t bytes = 0;
    for (int64_t i = 0; i < w->a->n; i++)
        bytes += (int64_t)et_desc_bytes(&w->a->item[i].desc);
    if (fstatvfs(w->dir, &fs) == 0)
        et_hint(w->cx, "a checkpoint needs %s, %s are free",
                eti_size_text(bytes, need, sizeof need),
                eti_size_text((int64_t)(fs.f_bavail * fs.f_frsize), have, sizeof have));
}

/* Renamed, so that its name promises nothing, then removed. */
static et_status
remove_one(struct writing *w, const char *name, int64_t step)
{
    char to[ETI_ASIDE_NAME];
    ET_TRY(eti_store_name_aside(w->cx, "del", step, to));
    ET_TRY(eti_rename_at(w->cx, w->dir, name, w->dir, to));
    return eti_store_remove(w->cx, w->dir, to);
}

/* Is NAME one that stays? A damaged one is not; one that could not be read may be. */
static bool
stays(struct writing *w, const char *directory, const char *name)
{
    struct eti_manifest m;
    et_status status = eti_store_read_manifest(w->cx, directory, name, &m);
    bool yes = status == ET_OK ? m.stays : status != ET_EFORMAT && status != ET_ENOENT;
    eti_manifest_release(&m);
    et_error_clear(w->cx);
    return yes;
}

/* Of those up to the one just committed, what is older than the KEEP newest, and does
 * not stay, is removed. Later ones are of a run that was taken back, or damaged: they
 * count for nothing. A failure is no failure of the save. */
static void
remove_old(struct writing *w, const char *directory, int64_t keep)
{
    int64_t *steps, n, first = 0;
    if (keep < 0)
        return;
    et_status status = eti_store_list(w->cx, directory, &steps, &n);
    if (status != ET_OK)
        n = 0;
    while (first < n && steps[first] > w->m->step)
        first++;
    for (int64_t i = first + (keep > 1 ? keep : 1); i < n && status == ET_OK; i++) {
        char name[ETI_STEP_NAME];
        eti_step_name(steps[i], name);
        if (!stays(w, directory, name))
            status = remove_one(w, name, steps[i]);
    }
    et_free(w->cx, steps);
    if (status != ET_OK)
        et_report(w->cx, ET_LOG_WARN, "an old checkpoint stays: %s",
                  et_error_get(w->cx)->message);
    et_error_clear(w->cx);
}

static et_status
open_folder(struct writing *w, const char *directory)
{
    bool made;
    ET_TRY(eti_make_folder_at(w->cx, AT_FDCWD, directory, &made));
    if (made)
        ET_TRY(eti_sync_parent(w->cx, directory));
    return eti_open_folder(w->cx, directory, &w->dir);
}

et_status
eti_store_write(struct et_ctx *cx, const char *directory, const struct et_archive *a,
                struct eti_manifest *m, int64_t keep, int64_t *bytes)
{
    struct writing w = {.cx = cx, .a = a, .m = m, .manifest = -1};
    for (int kind = 0; kind < ETI_SHARD_COUNT; kind++)
        w.shard[kind].fd = -1;
    *bytes = 0;
    ET_TRY(open_folder(&w, directory));
    et_status status = eti_store_name_aside(cx, "tmp", m->step, w.temporary);
    if (status == ET_OK) {
        status = write_folder(&w);
        if (status != ET_OK) {
            hint_space(&w);
            et_status left = eti_store_remove(cx, w.dir, w.temporary);
            if (left != ET_OK) /* the error that stands is the first */
                et_report(cx, ET_LOG_WARN, "%s stays: the next start removes it",
                          w.temporary);
        }
    }
    if (status == ET_OK)
        status = eti_sync(cx, w.dir, directory);
    if (status == ET_OK)
        remove_old(&w, directory, keep);
    release_shards(&w);
    m->n_files = 0;
    eti_close(cx, w.dir);
    *bytes = w.bytes;
    return status;
}
