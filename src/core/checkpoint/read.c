/* SPDX-License-Identifier: Apache-2.0 */
/* read.c: one checkpoint into memory, verified. See store.h.
 *
 * Every byte is read once and only what was read is used: a file that is changed after
 * its digest was taken changes nothing. */
#include "core/checkpoint/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/memory.h"
#include "core/checkpoint/names.h"
#include "core/models/safetensors.h"

/* Opens the regular file NAME in DIR; *BYTES is its size. */
static et_status
open_regular(struct et_ctx *cx, int dir, const char *name, int *fd, int64_t *bytes)
{
    struct stat st;
    ET_TRY(eti_open_at(cx, dir, name, O_RDONLY | O_NONBLOCK, 0, fd));
    int failed;
    do
        failed = eti_ctx_seams(cx)->file.stat(*fd, &st);
    while (failed && errno == EINTR);
    if (failed) {
        et_status status =
            ET_FAIL(cx, ET_EIO, "cannot read %s: %s", name, strerror(errno));
        eti_close(cx, *fd);
        return status;
    }
    if (S_ISREG(st.st_mode)) {
        *bytes = st.st_size;
        return ET_OK;
    }
    eti_close(cx, *fd);
    return ET_FAIL(cx, ET_EFORMAT, "%s: not a regular file", name);
}

static et_status
read_manifest(struct et_ctx *cx, int folder, const char *name, struct eti_manifest *out)
{
    void *text;
    int64_t bytes;
    int fd;
    et_status status = open_regular(cx, folder, "MANIFEST", &fd, &bytes);
    if (status == ET_ENOENT) {
        et_error_clear(cx);
        return ET_FAIL(cx, ET_EFORMAT, "%s: there is no MANIFEST", name);
    }
    ET_TRY(status);
    if (bytes > ETI_MANIFEST_MAX)
        status = ET_FAIL(cx, ET_EFORMAT, "%s: MANIFEST of %" PRId64 " bytes exceeds %d",
                         name, bytes, ETI_MANIFEST_MAX);
    else
        status = et_alloc(cx, (size_t)bytes + 1, &text);
    if (status == ET_OK) {
        status = eti_read_all(cx, fd, "MANIFEST", text, (size_t)bytes, 0);
        if (status == ET_OK)
            status = eti_manifest_parse(cx, name, text, (size_t)bytes, out);
        et_free(cx, text);
    }
    eti_close(cx, fd);
    return status;
}

/* ---- a file ---- */

static et_status
mismatch(struct eti_checkpoint *c, const struct eti_manifest_file *f, const char *what)
{
    return ET_FAIL(c->cx, ET_EFORMAT, "%s: %.*s: %s", c->name,
                   (int)strcspn(f->name, "."), f->name, what);
}

et_status
eti_checkpoint_check_file(struct eti_checkpoint *c, const struct eti_manifest_file *f,
                          const void *bytes, int64_t n)
{
    char digest[ETI_DIGEST_TEXT];
    eti_hash_text(bytes, (size_t)n, digest);
    return n == f->bytes && strcmp(digest, f->digest) == 0
               ? ET_OK
               : mismatch(c, f, "digest mismatch");
}

static et_status
load_file(struct eti_checkpoint *c, int folder, const struct eti_manifest_file *f,
          void **out)
{
    char what[96];
    int64_t bytes;
    int fd;
    et_status status = open_regular(c->cx, folder, f->name, &fd, &bytes);
    if (status == ET_ENOENT) {
        et_error_clear(c->cx);
        return mismatch(c, f, "the file is missing");
    }
    ET_TRY(status);
    if (bytes != f->bytes) {
        snprintf(what, sizeof what, "%" PRId64 " bytes, MANIFEST says %" PRId64, bytes,
                 f->bytes);
        status = mismatch(c, f, what);
    } else {
        status = eti_alloc_dirty(c->cx, (size_t)bytes + 1, out);
    }
    if (status == ET_OK)
        status = eti_read_all(c->cx, fd, f->name, *out, (size_t)bytes, 0);
    eti_close(c->cx, fd);
    return status == ET_OK ? eti_checkpoint_check_file(c, f, *out, bytes) : status;
}

/* The name under which a tensor of a file is in the archive. */
static et_status
add_tensor(struct eti_checkpoint *c, const struct eti_manifest_file *f,
           const struct eti_st_tensor *t, void *data)
{
    char path[ETI_ARCHIVE_PATH], digest[ETI_DIGEST_TEXT], model[64];
    struct et_desc desc;
    const char *says = json_string_value(json_object_get(f->tensors, t->name));
    bool is_model =
        strcmp(f->name, eti_shard_name(ETI_SHARD_MODEL, 0, model, sizeof model)) == 0;
    eti_hash_text(data, (size_t)(t->end - t->begin), digest);
    if (!says || strcmp(says, digest) != 0)
        return mismatch(c, f, "a tensor is not the one in MANIFEST");
    if (t->ndim > ET_MAX_DIMS ||
        snprintf(path, sizeof path, "%s%s", is_model ? "model/" : "", t->name) >=
            (int)sizeof path)
        return mismatch(c, f, "a tensor that no run has");
    et_desc_init(&desc, t->dtype, t->ndim, t->shape, ET_ROW_MAJOR);
    return eti_archive_add(&c->archive, path, &desc, data);
}

static et_status
add_tensors(struct eti_checkpoint *c, const struct eti_manifest_file *f, uint8_t *bytes)
{
    struct eti_st_header h = {0};
    int64_t n;
    if (f->bytes < ETI_ST_PREFIX)
        return mismatch(c, f, "too short for safetensors");
    ET_TRY(eti_st_header_bytes(c->cx, f->name, bytes, f->bytes, &eti_st_limits, &n));
    uint8_t *data = bytes + ETI_ST_PREFIX + n;
    et_status status = eti_st_parse(c->cx, f->name, (char *)bytes + ETI_ST_PREFIX, n,
                                    f->bytes - ETI_ST_PREFIX - n, &eti_st_limits, &h);
    if (status == ET_OK && (size_t)h.n != json_object_size(f->tensors))
        status = mismatch(c, f, "not the tensors of MANIFEST");
    for (int64_t i = 0; i < h.n && status == ET_OK; i++)
        status = add_tensor(c, f, &h.v[i], data + h.v[i].begin);
    if (h.cx)
        eti_st_release(&h);
    return status;
}

static et_status
read_all(struct eti_checkpoint *c, int folder)
{
    struct eti_manifest *m = &c->manifest;
    ET_TRY(read_manifest(c->cx, folder, c->name, m));
    c->archive.left_out = m->left_out;
    if (m->step != eti_step_parse(c->name))
        return ET_FAIL(c->cx, ET_EFORMAT, "%s: MANIFEST is of step %" PRId64, c->name,
                       m->step);
    for (int i = 0; i < m->n_files; i++) {
        ET_TRY(load_file(c, folder, &m->file[i], &c->buffer[i]));
        et_status status = add_tensors(c, &m->file[i], c->buffer[i]);
        if (status != ET_OK) /* the digest was right: memory may be short in jansson */
            return status == ET_EFORMAT ? ET_EINVAL : status;
    }
    return eti_archive_sort(&c->archive);
}

static et_status
open_step(struct et_ctx *cx, const char *directory, const char *name, int *folder)
{
    int dir;
    ET_TRY(eti_open_folder(cx, directory, &dir));
    et_status status = eti_open_at(cx, dir, name, O_RDONLY | O_DIRECTORY, 0, folder);
    eti_close(cx, dir);
    return status;
}

et_status
eti_store_read(struct et_ctx *cx, const char *directory, const char *name,
               struct eti_checkpoint *out)
{
    int folder;
    *out = (struct eti_checkpoint){.cx = cx};
    snprintf(out->name, sizeof out->name, "%s", name);
    out->archive.cx = cx;
    out->archive.mode = ET_ARCHIVE_CHECK;
    out->archive.source = out->name;
    ET_TRY(open_step(cx, directory, name, &folder));
    et_status status = read_all(out, folder);
    eti_close(cx, folder);
    return status;
}

et_status
eti_store_read_manifest(struct et_ctx *cx, const char *directory, const char *name,
                        struct eti_manifest *out)
{
    int folder;
    *out = (struct eti_manifest){0};
    ET_TRY(open_step(cx, directory, name, &folder));
    et_status status = read_manifest(cx, folder, name, out);
    eti_close(cx, folder);
    return status;
}

void
eti_checkpoint_release(struct eti_checkpoint *c)
{
    eti_archive_release(&c->archive);
    eti_manifest_release(&c->manifest);
    for (int i = 0; i < ETI_MANIFEST_FILES; i++)
        et_free(c->cx, c->buffer[i]);
    memset(c->buffer, 0, sizeof c->buffer);
}
