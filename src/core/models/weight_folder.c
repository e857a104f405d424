/* SPDX-License-Identifier: Apache-2.0 */
/* weight_folder.c: see weight_folder.h.
 *
 * The index is {"metadata": {..}, "weight_map": {"tensor's name": "file's name", ..}}
 * (Hugging Face, transformers, save_pretrained). It and the files must agree: each
 * tensor lies in the file that it is said to lie in, and in no other. */
#include "core/models/weight_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SHARDS = 1024, JSON_BYTES = 16 << 20 };

et_status
eti_folder_json(struct et_ctx *cx, const char *folder, const char *name, json_t **out)
{
    char path[ETI_PATH_MAX];
    struct eti_bytes text;
    json_error_t error;
    *out = NULL;
    ET_TRY(eti_file_path(cx, path, folder, name));
    ET_TRY(eti_file_load(cx, path, JSON_BYTES, &text));
    json_t *root = json_loadb((const char *)text.data, (size_t)text.n,
                              JSON_REJECT_DUPLICATES, &error);
    et_free(cx, text.data);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return ET_FAIL(cx, ET_ENOMEM, "%s: no memory for its values", path);
    if (!root)
        return ET_FAIL(cx, ET_EFORMAT, "%s:%d: %s", path, error.line, error.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return ET_FAIL(cx, ET_EFORMAT, "%s is not a JSON object", path);
    }
    *out = root;
    return ET_OK;
}

static bool
has_file(struct et_ctx *cx, const char *folder, const char *name)
{
    char path[ETI_PATH_MAX];
    bool has =
        eti_file_path(cx, path, folder, name) == ET_OK && access(path, F_OK) == 0;
    et_error_clear(cx);
    return has;
}

/* What a folder may hold, the first that is there counts: one file, or an index. */
static const char *const names[][2] = {
    {ETI_FOLDER_WEIGHTS, NULL},
    {NULL, "model.safetensors.index.json"},
    {"pytorch_model.bin", NULL},
    {NULL, "pytorch_model.bin.index.json"},
};
enum { NAMES = sizeof names / sizeof *names };

/* The place in the list, or -1. */
static int
find_names(struct et_ctx *cx, const char *folder)
{
    for (int i = 0; i < NAMES; i++)
        if (has_file(cx, folder, names[i][0] ? names[i][0] : names[i][1]))
            return i;
    return -1;
}

bool
eti_weight_folder_is(struct et_ctx *cx, const char *path)
{
    return find_names(cx, path) >= 0;
}

/* ---- the files ---- */

struct index {
    struct et_ctx *cx;
    const char *folder;
    const char *name;               /* of the index; NULL: the folder has one file */
    const json_t *map;              /* its weight_map, or NULL */
    const char *shards[MAX_SHARDS]; /* names of files, borrowed */
    int n;
};

/* A file of the folder itself, and none that is hidden. */
static bool
is_plain_name(const char *name)
{
    return name && *name && *name != '.' && !strchr(name, '/');
}

static et_status
list_shards(struct index *x)
{
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)x->map, tensor, value)
    {
        const char *name = json_string_value(value);
        int i = 0;
        if (!is_plain_name(name))
            return ET_FAIL(x->cx, ET_EFORMAT,
                           "%s/%s: '%.64s' is in no file of the folder", x->folder,
                           x->name, tensor);
        while (i < x->n && strcmp(x->shards[i], name) != 0)
            i++;
        if (i == MAX_SHARDS)
            return ET_FAIL(x->cx, ET_EFORMAT, "%s/%s names more than %d files",
                           x->folder, x->name, MAX_SHARDS);
        if (i == x->n)
            x->shards[x->n++] = name;
    }
    if (x->n == 0)
        return ET_FAIL(x->cx, ET_EFORMAT, "%s/%s names no tensor", x->folder, x->name);
    return ET_OK;
}

static et_status
open_shards(const struct index *x, struct eti_weight_file *out)
{
    void *block;
    ET_TRY(et_alloc(x->cx, (size_t)x->n * sizeof *out->shard, &block));
    out->shard = block;
    for (int i = 0; i < x->n; i++) {
        char path[ETI_PATH_MAX];
        ET_TRY(eti_file_path(x->cx, path, x->folder, x->shards[i]));
        ET_TRY(eti_weight_file_open_one(x->cx, path, &out->shard[i]));
        out->n_shards++;
        out->file.size += out->shard[i].file.size;
    }
    return ET_OK;
}

/* T, of file I, must be there by the index. */
static et_status
check_place(const struct index *x, int i, const struct eti_st_tensor *t)
{
    const char *name =
        x->map ? json_string_value(json_object_get(x->map, t->name)) : x->shards[i];
    if (name && strcmp(name, x->shards[i]) == 0)
        return ET_OK;
    return ET_FAIL(x->cx, ET_EFORMAT, "%s/%s: '%s' is not in this file by %s",
                   x->folder, x->shards[i], t->name, x->name);
}

static et_status
list_tensors(const struct index *x, struct eti_weight_file *out)
{
    int64_t n = 0;
    void *block;
    for (int i = 0; i < out->n_shards; i++)
        n += out->shard[i].header.n;
    ET_TRY(et_alloc(x->cx, ((size_t)n + 1) * sizeof *out->header.v, &block));
    out->header = (struct eti_st_header){.cx = x->cx, .v = block};
    for (int i = 0; i < out->n_shards; i++)
        for (int64_t k = 0; k < out->shard[i].header.n; k++) {
            struct eti_st_tensor t = out->shard[i].header.v[k];
            ET_TRY(check_place(x, i, &t));
            t.shard = i;
            out->header.v[out->header.n++] = t;
        }
    if (x->map && (size_t)n != json_object_size(x->map))
        return ET_FAIL(x->cx, ET_EFORMAT,
                       "%s: its files have %" PRId64 " tensors, %s names %zu",
                       x->folder, n, x->name, json_object_size(x->map));
    return ET_OK;
}

et_status
eti_weight_folder_open(struct et_ctx *cx, const char *path, struct eti_weight_file *out)
{
    struct index x = {.cx = cx, .folder = path};
    json_t *root = NULL;
    et_status status = ET_OK;
    int i = find_names(cx, path);
    if (i < 0)
        return ET_FAIL(cx, ET_EFORMAT, "%s holds no %s, no %s and no %s", path,
                       names[0][0], names[1][1], names[2][0]);
    x.name = names[i][1];
    if (!x.name)
        x.shards[x.n++] = names[i][0];
    else
        status = eti_folder_json(cx, path, x.name, &root);
    if (status == ET_OK && root) {
        x.map = json_object_get(root, "weight_map");
        status = list_shards(&x);
    }
    if (status == ET_OK)
        status = open_shards(&x, out);
    if (status == ET_OK)
        status = list_tensors(&x, out);
    json_decref(root);
    return status;
}
