/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.c: opening what holds tensors. See tensors.h. */
#include "core/checkpoint/tensors.h"

#include "core/models/weight_folder.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "etude/diagnostic.h"

static et_status
copy_path(struct eti_tensors *s, const char *folder, const char *name)
{
    int n = snprintf(s->path, sizeof s->path, "%s%s%s", folder, name ? "/" : "",
                     name ? name : "");
    return n < (int)sizeof s->path
               ? ET_OK
               : ET_FAIL(s->cx, ET_EINVAL, "path longer than %d bytes",
                         ETI_PATH_MAX - 1);
}

/* ---- tensors of the files that are open ---- */

static int
by_name(const void *x, const void *y)
{
    const struct eti_tensor *a = x, *b = y;
    return strcmp(a->t->name, b->t->name);
}

static et_status
list_tensors(struct eti_tensors *s)
{
    void *block;
    size_t n = 0;
    for (int i = 0; i < s->n_files; i++)
        n += (size_t)s->file[i].header.n;
    ET_TRY(et_alloc(s->cx, (n + 1) * sizeof *s->v, &block));
    s->v = block;
    for (int i = 0; i < s->n_files; i++) {
        const struct eti_weight_file *f = &s->file[i];
        const json_t *digests = s->is_checkpoint ? s->manifest.file[i].tensors : NULL;
        for (int64_t k = 0; k < f->header.n; k++) {
            const struct eti_st_tensor *t = &f->header.v[k];
            const json_t *digest = json_object_get(digests, t->name);
            s->v[s->n++] = (struct eti_tensor){f, t, json_string_value(digest)};
            if (digests && !digest)
                return ET_FAIL(s->cx, ET_EFORMAT, "%s: '%s' is not in MANIFEST",
                               f->file.path, t->name);
        }
    }
    if (s->n > 0)
        qsort(s->v, (size_t)s->n, sizeof *s->v, by_name);
    return ET_OK;
}

const struct eti_tensor *
eti_tensors_find(const struct eti_tensors *s, const char *name)
{
    const struct eti_st_tensor t = {.name = name};
    const struct eti_tensor key = {.t = &t};
    return s->n ? bsearch(&key, s->v, (size_t)s->n, sizeof key, by_name) : NULL;
}

/* ---- a checkpoint ---- */

/* Opens its I-th file, of the size and with as many tensors as MANIFEST says. */
static et_status
open_part(struct eti_tensors *s, int i)
{
    const struct eti_manifest_file *m = &s->manifest.file[i];
    struct eti_weight_file *f = &s->file[i];
    char path[ETI_PATH_MAX];
    ET_TRY(eti_file_path(s->cx, path, s->path, m->name));
    ET_TRY(eti_weight_file_open(s->cx, path, f));
    s->n_files++;
    if (f->file.size != m->bytes)
        return ET_FAIL(s->cx, ET_EFORMAT,
                       "%s: %" PRId64 " bytes, MANIFEST says %" PRId64, path,
                       f->file.size, m->bytes);
    if ((size_t)f->header.n != json_object_size(m->tensors))
        return ET_FAIL(s->cx, ET_EFORMAT, "%s: not the tensors of MANIFEST", path);
    return ET_OK;
}

static et_status
open_checkpoint(struct eti_tensors *s, const char *directory, const char *name,
                enum eti_tensors_part part)
{
    char model[64];
    s->is_checkpoint = true;
    ET_TRY(copy_path(s, directory, name));
    ET_TRY(eti_store_read_manifest(s->cx, directory, name, &s->manifest));
    eti_shard_name(ETI_SHARD_MODEL, 0, model, sizeof model);
    if (s->manifest.n_files < 1 || strcmp(s->manifest.file[0].name, model) != 0)
        return ET_FAIL(s->cx, ET_EFORMAT, "%s: MANIFEST does not begin with %s",
                       s->path, model);
    int n = part == ETI_TENSORS_ALL ? s->manifest.n_files : 1;
    for (int i = 0; i < n; i++)
        ET_TRY(open_part(s, i));
    return ET_OK;
}

/* The newest in DIRECTORY. *FOUND: there is one. */
static et_status
open_newest(struct eti_tensors *s, const char *directory, enum eti_tensors_part part,
            bool *found)
{
    char name[ETI_STEP_NAME];
    int64_t *steps, n;
    ET_TRY(eti_store_list(s->cx, directory, &steps, &n));
    *found = n > 0;
    et_status status = ET_OK;
    if (n > 0)
        status = open_checkpoint(s, directory, eti_step_name(steps[0], name), part);
    et_free(s->cx, steps);
    return status;
}

/* PATH is a folder: a checkpoint, or what holds checkpoints. */
static et_status
open_folder(struct eti_tensors *s, const char *path, enum eti_tensors_part part)
{
    char folder[ETI_PATH_MAX];
    bool found;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n >= sizeof folder - strlen("/checkpoints"))
        return ET_FAIL(s->cx, ET_EINVAL, "path longer than %d bytes", ETI_PATH_MAX - 1);
    snprintf(folder, sizeof folder, "%.*s", (int)n, path);
    char *slash = strrchr(folder, '/');
    const char *name = slash ? slash + 1 : folder;
    if (eti_step_parse(name) >= 0) {
        if (slash)
            *slash = '\0';
        return open_checkpoint(s, !slash ? "." : *folder ? folder : "/", name, part);
    }
    ET_TRY(open_newest(s, folder, part, &found));
    if (!found) {
        snprintf(folder + n, sizeof folder - n, "/checkpoints");
        ET_TRY(open_newest(s, folder, part, &found));
    }
    if (!found)
        return ET_FAIL(s->cx, ET_ENOENT, "%s: there is no checkpoint", path);
    return ET_OK;
}

/* ---- anything ---- */

static et_status
open_any(struct eti_tensors *s, const char *path, enum eti_tensors_part part)
{
    struct stat st;
    bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (is_folder && !eti_weight_folder_is(s->cx, path))
        return open_folder(s, path, part);
    ET_TRY(copy_path(s, path, NULL));
    ET_TRY(eti_weight_file_open(s->cx, path, &s->file[0]));
    s->n_files = 1;
    return ET_OK;
}

et_status
eti_tensors_open(struct et_ctx *cx, const char *path, enum eti_tensors_part part,
                 struct eti_tensors *out)
{
    *out = (struct eti_tensors){.cx = cx};
    et_status status = open_any(out, path, part);
    if (status == ET_OK)
        status = list_tensors(out);
    if (status == ET_ENOTSUP)
        et_error_set_code(cx, ET_E_CHECKPOINT_FORMAT);
    else if (status == ET_EFORMAT && out->is_checkpoint)
        et_error_set_code(cx, ET_E_CHECKPOINT);
    if (status != ET_OK)
        eti_tensors_release(out);
    return status;
}

void
eti_tensors_release(struct eti_tensors *s)
{
    if (!s->cx)
        return;
    for (int i = 0; i < s->n_files; i++)
        eti_weight_file_close(&s->file[i]);
    et_free(s->cx, s->v);
    eti_manifest_release(&s->manifest);
    *s = (struct eti_tensors){0};
}
