/* SPDX-License-Identifier: Apache-2.0 */
/* hub_tokens.c: the tokenizer of a model in a Hugging Face folder. See hub_config.h. */
#include <string.h>

#include "core/base/seams.h"
#include "core/models/hub_config.h"
#include "core/models/weight_file.h"
#include "core/models/weight_folder.h"
#include "core/text/files.h"
#include "core/text/role_ids.h"
#include "core/text/write_pieces.h"

/* ---- which tokens begin and end texts, by config.json ---- */

static int
add_ids(json_t *config, const struct et_tokenizer *t)
{
    struct et_tokenizer_info info;
    int failed = 0;
    if (t)
        et_tokenizer_get_info(t, &info);
    for (const struct eti_role_id *r = eti_role_ids; r->key; r++) {
        const int32_t id = t ? info.role[r->role] : -1;
        failed |= json_object_set_new(config, r->key,
                                      id >= 0 ? json_integer(id) : json_null());
    }
    return failed;
}

static et_status
write_ids(struct et_ctx *cx, const struct et_tokenizer *t, json_t *config,
          const char *folder, const char *name)
{
    if (!config || add_ids(config, t) != 0)
        return ET_FAIL(cx, ET_ENOMEM, "no memory for %s", name);
    return eti_hub_write_json(cx, config, folder, name);
}

static et_status
write_generation(struct et_ctx *cx, const struct et_tokenizer *t, const char *folder)
{
    json_t *generation = json_pack("{s:b}", "_from_model_config", 1);
    et_status status = write_ids(cx, t, generation, folder, "generation_config.json");
    json_decref(generation);
    return status;
}

/* ---- the tokenizer's files ---- */

static et_status
copy_file(struct et_ctx *cx, const char *from, const char *folder, const char *name)
{
    char path[ETI_PATH_MAX];
    struct eti_bytes b;
    struct eti_draft d;
    ET_TRY(eti_file_path(cx, path, folder, name));
    ET_TRY(eti_file_load(cx, from, ETI_FILE_MAX, &b));
    et_status status = eti_draft_open(cx, path, &d);
    if (status == ET_OK) {
        status = eti_write_all(cx, d.fd, d.temporary, b.data, (size_t)b.n);
        status = eti_draft_close(&d, status);
    }
    et_free(cx, b.data);
    return status;
}

/* Writes MADE, which it takes, as the file NAME of FOLDER. */
static et_status
write_made(struct et_ctx *cx, json_t *made, const char *folder, const char *name)
{
    et_status status = eti_hub_write_json(cx, made, folder, name);
    json_decref(made);
    return status;
}

/* How long a text may be, by the model's CONFIG. */
static int64_t
longest(const json_t *config)
{
    const json_t *n = json_object_get(config, "n_positions");
    n = n ? n : json_object_get(config, "max_position_embeddings");
    return json_integer_value(n);
}

/* transformers 4 reads a tokenizer.model by a class for each kind alone. */
static et_status
write_pieces(struct et_ctx *cx, const struct et_tokenizer *t, const char *folder)
{
    json_t *made;
    ET_TRY(eti_pieces_json(cx, t, &made));
    return write_made(cx, made, folder, "tokenizer.json");
}

static et_status
write_tokenizer(struct et_ctx *cx, const struct et_tokenizer *t, const json_t *config,
                const char *folder)
{
    static const char own[] = "tokenizer_config.json";
    const bool pairs = json_object_get(config, "type_vocab_size") != NULL;
    struct eti_tokenizer_files files;
    ET_TRY(eti_tokenizer_files(cx, t, &files));
    const bool bytes = strcmp(files.name, "bytes") == 0;
    for (int i = 0; i < files.n; i++)
        ET_TRY(copy_file(cx, files.v[i].from, folder, files.v[i].to));
    if (bytes)
        ET_TRY(write_made(cx, eti_tokenizer_bytes_json(t), folder, "tokenizer.json"));
    if (eti_tokenizer_has_file(&files, own))
        return ET_OK;
    if (strcmp(files.name, "tokenizer.model") == 0)
        ET_TRY(write_pieces(cx, t, folder));
    return write_made(cx,
                      eti_tokenizer_config_json(t, files.name, longest(config), pairs),
                      folder, own);
}

et_status
eti_hub_add_tokens(struct et_ctx *cx, const struct et_model *m,
                   const struct et_tokenizer *t, const char *folder)
{
    const bool writes = m->task == ET_TASK_LANGUAGE && !m->type->wants_masked;
    json_t *config;
    if ((!t && !writes) || (!m->type->reads_tokens && m->task != ET_TASK_LANGUAGE))
        return ET_OK;
    ET_TRY(eti_folder_json(cx, folder, ETI_FOLDER_CONFIG, &config));
    et_status status = write_ids(cx, t, config, folder, ETI_FOLDER_CONFIG);
    if (status == ET_OK && t)
        status = write_tokenizer(cx, t, config, folder);
    json_decref(config);
    return status == ET_OK && writes ? write_generation(cx, t, folder) : status;
}
