/* SPDX-License-Identifier: Apache-2.0 */
/* hub.c: models from a Hugging Face folder, and models in the forms of hubs. See
 * model.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/need.h"
#include "core/base/seams.h"
#include "core/models/hub_config.h"
#include "core/models/weight_folder.h"
#include "core/models/weights_save.h"

const char *const et_model_forms[] = {"hf", "torchvision", "timm", "etude", NULL};

/* ---- from a folder ---- */

/* The data's number where they have one, else the config's. */
static void
prefer(int64_t *config, int64_t data)
{
    if (data > 0)
        *config = data;
}

static et_status
new_options(struct et_ctx *cx, const struct et_model_class *type,
            const struct eti_hub_config *config, const struct et_model_facts *data,
            void **out)
{
    ET_TRY(et_options_new(cx, &type->info, NULL, out));
    et_status status = ET_OK;
    for (int i = 0; i < config->n && status == ET_OK; i++)
        status = et_options_set(cx, type->info.options, *out, config->setting[i].name,
                                config->setting[i].text);
    struct et_model_options *common = *out;
    if (data && data->num_classes > 0 && type->task != ET_TASK_LANGUAGE)
        common->num_classes = data->num_classes;
    if (status != ET_OK)
        et_options_free(&type->info, out);
    return status;
}

et_status
et_model_from_folder(struct et_ctx *cx, const char *folder,
                     const struct et_model_facts *facts, struct et_model **out)
{
    struct eti_hub_config config;
    void *options;
    ETI_NEED(cx, out);
    *out = NULL;
    ETI_NEED(cx, cx, folder);
    ET_TRY(eti_hub_config_read(cx, folder, &config));
    const struct et_model_class *type = et_model_class_find(config.model);
    if (facts) {
        prefer(&config.facts.channels, facts->channels);
        prefer(&config.facts.height, facts->height);
        prefer(&config.facts.width, facts->width);
        prefer(&config.facts.seq_len, facts->seq_len);
    }
    ET_TRY(new_options(cx, type, &config, facts, &options));
    et_status status = et_model_new(cx, type, options, &config.facts, out);
    et_options_free(&type->info, &options);
    if (status == ET_OK)
        status = et_model_load_weights(cx, *out, folder);
    if (status != ET_OK)
        et_model_free(out);
    return status;
}

/* ---- to a form ---- */

/* Is leaf I of B in its place in A? */
static bool
same_leaf(const struct et_leaves *a, const struct et_leaves *b, int i)
{
    const struct et_leaf *has = i < a->n ? &a->v[i] : NULL;
    const struct et_leaf *want = i < b->n ? &b->v[i] : NULL;
    return has && want && strcmp(has->name, want->name) == 0 &&
           et_desc_same_shape(&has->param->desc, &want->param->desc);
}

/* A network that an algorithm has taken apart is no longer the library's. */
static et_status
check_unchanged(struct et_ctx *cx, const struct et_model *m, const char *form)
{
    struct et_model *fresh;
    struct et_leaves has = {0}, want = {0};
    ET_TRY(et_model_new(cx, m->type, m->options, &m->facts, &fresh));
    et_status status = et_module_leaves(cx, m->root, ET_PARAM | ET_BUFFER, &has);
    if (status == ET_OK)
        status = et_module_leaves(cx, fresh->root, ET_PARAM | ET_BUFFER, &want);
    for (int i = 0; status == ET_OK && (i < has.n || i < want.n); i++)
        if (!same_leaf(&has, &want, i))
            status = ET_FAIL(
                cx, ET_ENOTSUP,
                "an algorithm has changed this %s, at '%s': as %s it would "
                "be another network",
                m->type->info.name, i < has.n ? has.v[i].name : want.v[i].name, form);
    if (want.cx)
        et_leaves_release(&want);
    if (has.cx)
        et_leaves_release(&has);
    et_model_free(&fresh);
    return status;
}

et_status
eti_hub_write_json(struct et_ctx *cx, const json_t *json, const char *folder,
                   const char *name)
{
    char path[ETI_PATH_MAX];
    struct eti_draft d;
    ET_TRY(eti_file_path(cx, path, folder, name));
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    if (!text)
        return ET_FAIL(cx, ET_ENOMEM, "no memory for %s", path);
    et_status status = eti_draft_open(cx, path, &d);
    if (status == ET_OK) {
        status = eti_write_all(cx, d.fd, d.temporary, text, strlen(text));
        status = eti_draft_close(&d, status);
    }
    free(text);
    return status;
}

static et_status
export_folder(struct et_ctx *cx, const struct et_model *m,
              const struct eti_weight_map *map, uint32_t seed, const char *path)
{
    char weights[ETI_PATH_MAX];
    json_t *config;
    bool made;
    ET_TRY(eti_file_path(cx, weights, path, ETI_FOLDER_WEIGHTS));
    ET_TRY(eti_hub_config_make(m, &config));
    et_status status = eti_make_folder_at(cx, AT_FDCWD, path, &made);
    if (status == ET_OK)
        status = eti_model_save_as(cx, m, map, seed, NULL, 0, weights);
    if (status == ET_OK)
        status = eti_hub_write_json(cx, config, path, ETI_FOLDER_CONFIG);
    json_decref(config);
    return status;
}

static et_status
no_form(struct et_ctx *cx, const char *form, const char *model)
{
    char has[64] = "";
    for (const char *const *f = et_model_forms; *f; f++)
        if (strcmp(*f, "etude") == 0 || eti_weight_map_find(*f, model))
            snprintf(has + strlen(has), sizeof has - strlen(has), " %s", *f);
    et_status status = ET_FAIL(cx, ET_ENOTSUP, "%s has no form '%s'", model, form);
    et_hint(cx, "its forms:%s", has);
    return status;
}

et_status
et_model_export(struct et_ctx *cx, const struct et_model *m, const char *form,
                uint32_t seed, const char *path)
{
    ETI_NEED(cx, cx, m, form, path);
    const char *name = m->type->info.name;
    bool known = false;
    for (const char *const *f = et_model_forms; *f; f++)
        known |= strcmp(*f, form) == 0;
    if (!known)
        return ET_FAIL(cx, ET_EINVAL, "there is no form '%s' of weights", form);
    if (strcmp(form, "etude") == 0)
        return et_model_save_weights(cx, m, seed, path);
    const struct eti_weight_map *map = eti_weight_map_find(form, name);
    if (!map)
        return no_form(cx, form, name);
    ET_TRY(check_unchanged(cx, m, form));
    return strcmp(form, "hf") == 0 ? export_folder(cx, m, map, seed, path)
                                   : eti_model_save_as(cx, m, map, seed, NULL, 0, path);
}
