/* SPDX-License-Identifier: Apache-2.0 */
/* from.c: `model: {from: FOLDER}`: a Hugging Face folder says which model it is, what
 * its options are, and where its weights lie.
 *
 * It is put into the tree before that is read, below what the recipe says itself. So
 * the rest of the program sees a model like any other, and the resolved recipe has it
 * in full. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/models/hub_config.h"
#include "core/models/weight_folder.h"
#include "core/recipe/recipe.h"

struct origin {
    struct eti_loader *l;
    const struct et_value *from; /* the folder, as the recipe has it */
    const struct eti_source *source;
    char path[ETI_PATH_MAX];
};

/* A plain text at FROM's place. */
static struct et_value *
new_text(const struct origin *o, const char *text)
{
    char *copy = eti_arena_text(o->l->arena, text, strlen(text));
    struct et_value *v =
        copy ? eti_value_new(o->l->arena, ET_VALUE_STRING, o->source, copy) : NULL;
    if (v) {
        v->line = v->key_line = o->from->line;
        v->column = v->key_column = o->from->column;
    }
    return v;
}

/* Puts KEY with TEXT into MAPPING, where the recipe has none. */
static et_status
put(const struct origin *o, struct et_value *mapping, const char *key, const char *text)
{
    if (eti_value_get(mapping, key))
        return ET_OK;
    struct et_value *v = new_text(o, text);
    char *name = eti_arena_text(o->l->arena, key, strlen(key));
    if (!v || !name)
        return ET_ENOMEM;
    if (strcmp(key, "path") == 0 || strcmp(key, "name") == 0)
        v->is_quoted = true;
    else
        eti_value_resolve_plain(v);
    eti_value_append(mapping, name, v);
    return ET_OK;
}

/* The weights are the folder's, unless the recipe has others. */
static et_status
put_weights(const struct origin *o, struct et_value *model)
{
    struct et_value *weights = eti_value_get(model, "weights");
    if (weights && weights->type == ET_VALUE_NULL) {
        eti_value_remove(model, weights);
        weights = NULL;
    }
    if (!weights) {
        weights = eti_value_new(o->l->arena, ET_VALUE_MAP, o->source, NULL);
        if (!weights)
            return ET_ENOMEM;
        weights->line = weights->key_line = o->from->line;
        weights->column = weights->key_column = o->from->column;
        eti_value_append(model, "weights", weights);
    }
    return weights->type == ET_VALUE_MAP ? put(o, weights, "path", o->path) : ET_OK;
}

static et_status
put_all(const struct origin *o, const struct eti_hub_config *config,
        struct et_value *model)
{
    ET_TRY(put(o, model, "name", config->model));
    for (int i = 0; i < config->n; i++)
        ET_TRY(put(o, model, config->setting[i].name, config->setting[i].text));
    return put_weights(o, model);
}

/* Why the config cannot be taken, at the recipe's line. */
static et_status
report(const struct origin *o, et_status status)
{
    struct et_place at = eti_value_place(o->from);
    const struct et_error *e = et_error_get(o->l->cx);
    if (status == ET_ENOMEM)
        return status;
    et_diagnostics_add(o->l->errors,
                       status == ET_ENOENT || status == ET_EIO ? ET_E_READ : ET_E_VALUE,
                       &at, "model.from", NULL, "%s", e->message);
    et_error_clear(o->l->cx);
    return ET_OK;
}

et_status
eti_model_from(struct eti_loader *l, struct et_value *root, const char *folder)
{
    struct et_value *model = eti_value_get(root, "model");
    struct et_value *from = eti_value_get(model, "from");
    struct origin o = {.l = l, .from = from};
    struct eti_hub_config config;
    char name[ETI_PATH_MAX + 16];
    if (!from)
        return ET_OK;
    eti_value_remove(model, from);
    if (from->type != ET_VALUE_STRING) {
        char quote[128];
        struct et_place at = eti_value_place(from);
        et_diagnostics_add(l->errors, ET_E_VALUE, &at, "model.from", NULL,
                           "expected a folder of Hugging Face's, got %s",
                           eti_value_quote(from, quote, sizeof quote));
        return ET_OK;
    }
    const char *text = from->text;
    bool is_joined = folder && *folder && *text != '/';
    while (is_joined && strncmp(text, "./", 2) == 0)
        text += 2;
    int n = snprintf(o.path, sizeof o.path, "%s%s%s", is_joined ? folder : "",
                     is_joined ? "/" : "", text);
    et_status status = n < (int)sizeof o.path
                           ? eti_hub_config_read(l->cx, o.path, &config)
                           : ET_FAIL(l->cx, ET_EINVAL, "the path is too long");
    if (status != ET_OK)
        return report(&o, status);
    snprintf(name, sizeof name, "%s/" ETI_FOLDER_CONFIG, o.path);
    o.source = eti_source_new(l, ETI_ORIGIN_INCLUDE, name);
    return o.source ? put_all(&o, &config, model) : ET_ENOMEM;
}
