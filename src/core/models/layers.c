/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c: a network spelled out in the recipe, one layer an item:
 *
 *     layers:
 *       - conv2d: {out: 16, kernel: 3, padding: 1}
 *       - batch_norm
 *       - relu
 *
 * Each layer adapts to what comes before it; parameters are named by position,
 * "0.weight". */
#include "core/models/stack.h"
#include "core/recipe/options.h"

#include <stdio.h>
#include <string.h>

struct layers_options {
    struct et_model_options common;
    const struct et_value *layers;
};

bool
eti_is_layer(const struct et_module_class *c)
{
    return c != &et_sequential_class && (c->info.options || !c->info.options_size);
}

/* Says with which ITEM of the list it was that building failed so. */
static et_status
at_item(struct et_ctx *cx, const struct et_value *item, et_status status)
{
    const struct et_error said = *et_error_get(cx);
    const bool has_key = item->type == ET_VALUE_MAP && item->first;
    const struct et_place at =
        has_key ? eti_value_key_place(item->first) : eti_value_place(item);
    if (status == ET_OK || status == ET_ENOMEM || !item->source->name)
        return status;
    et_error_clear(cx);
    (void)ET_FAIL(cx, status, "%s:%d:%d: %s", at.file, at.line, at.column,
                  said.message);
    if (*said.hint)
        et_hint(cx, "%s", said.hint);
    return status;
}

/* Fills the options of TYPE from MAPPING (another value: none given) and appends it. */
static et_status
add_configured(struct eti_stack *s, const struct et_module_class *type,
               const struct et_value *mapping, void *options)
{
    static const struct et_option none[] = {{0}};
    const struct et_option *table = type->info.options ? type->info.options : none;
    struct et_diagnostics errors = {0};
    struct eti_fill fill = {.cx = s->cx, .errors = &errors};
    char path[ETI_PATH_BYTES], text[1024];
    eti_path_join(path, "model.layers", type->info.name);
    et_status status = eti_options_from_value(&fill, table, options, mapping, path);
    if (status == ET_OK && errors.n)
        status = ET_FAIL(s->cx, ET_EINVAL, "%s",
                         et_diagnostic_text(&errors.v[0], text, sizeof text));
    if (status == ET_OK)
        status = eti_stack_add(s, NULL, type, type->info.options_size ? options : NULL);
    et_options_release(table, options);
    return status;
}

/* Gives each layer in the list at FIELD, and its options, our names: a recipe is kept
 * as it is built. What is wrong is said when it is. (The tree is the loader's.) */
static void
name_layers(void *field)
{
    const struct et_value *list = *(const struct et_value **)field;
    for (struct et_value *item = list && list->type == ET_VALUE_LIST ? list->first
                                                                     : NULL;
         item; item = item->next) {
        bool has_options = item->type == ET_VALUE_MAP && item->n == 1;
        const char **name = has_options                     ? &item->first->key
                            : item->type == ET_VALUE_STRING ? &item->text
                                                            : NULL;
        const struct et_component *type =
            name ? et_registry_find(NULL, ET_KIND_LAYER, *name) : NULL;
        if (!type)
            continue;
        *name = type->name;
        struct et_diagnostics later = {0};
        const struct eti_fill fill = {.errors = &later};
        const struct eti_target target = {.table = type->options};
        if (has_options)
            eti_rename_keys(&fill, &target, 1, item->first, "");
    }
}

/* One item: a name, or a mapping of one name to its options. What is wrong with it has
 * been said when the recipe was read (ET_OPT_ITEMS). */
static et_status
add_item(struct eti_stack *s, const struct et_registry *r, const struct et_value *item)
{
    const bool has_options = item->type == ET_VALUE_MAP && item->n == 1;
    const struct et_value *mapping = has_options ? item->first : item;
    const char *name = has_options ? mapping->key : item->text;
    void *options;
    const struct et_module_class *type = /* its info is first */
        name ? (const void *)et_registry_find(r, ET_KIND_LAYER, name) : NULL;
    if (!type)
        return ET_FAIL(s->cx, ET_EINVAL, "there is no layer %s", name ? name : "{}");
    ET_TRY(et_alloc(s->cx, type->info.options_size + 1, &options));
    et_status status = add_configured(s, type, mapping, options);
    et_free(s->cx, options);
    return status;
}

static et_status
layers_build(struct et_ctx *cx, struct et_model *m, const void *options,
             const struct et_model_facts *facts)
{
    const struct et_value *list = ((const struct layers_options *)options)->layers,
                          *last = NULL;
    struct eti_stack s;
    if (!list || list->type != ET_VALUE_LIST || list->n < 1)
        return ET_FAIL(cx, ET_EINVAL, "model.layers is a list of layers");
    ET_TRY(eti_stack_begin(cx, facts, &m->root, &s));
    for (const struct et_value *item = list->first; item; item = item->next) {
        ET_TRY(
            at_item(cx, item,
                    add_item(&s, facts->registry ? facts->registry : et_registry_core(),
                             item)));
        last = item;
    }
    if (s.shape[1] == 0 && s.shape[0] == facts->num_classes)
        return ET_OK;
    et_status status =
        ET_FAIL(cx, ET_EINVAL,
                "the last layer gives %s of %lld, but %lld classes are to be told "
                "apart",
                s.shape[1] > 0 ? "images" : "a vector", (long long)s.shape[0],
                (long long)facts->num_classes);
    et_hint(cx,
            s.shape[1] > 0 ? "end with flatten and linear: {out: %lld}"
                           : "end with linear: {out: %lld}",
            (long long)facts->num_classes);
    return at_item(cx, last, status);
}

const struct et_model_class et_layers_model = {
    .info =
        {
            .name = "layers",
            .class_name = "Layers",
            .summary = "a network spelled out as a list of layers",
            .source = "Etude",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ET_MODEL_OPTIONS(layers_options),
                    {
                        .name = "layers",
                        .type = ET_OPT_NODE,
                        .offset = offsetof(struct layers_options, layers),
                        .flags = ET_OPT_REQUIRED | ET_OPT_ITEMS,
                        .help = "layers in order: a name, or a name with its options",
                        .kind = ET_KIND_LAYER,
                        .prepare = name_layers,
                    },
                    {0},
                },
            .options_size = sizeof(struct layers_options),
        },
    .task = ET_TASK_CLASSIFICATION,
    .build = layers_build,
};
