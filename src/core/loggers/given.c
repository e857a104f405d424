/* SPDX-License-Identifier: Apache-2.0 */
/* given.c: see given.h. */
#include "config.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/base/folders.h"
#include "core/library/facts.h"
#include "core/loggers/given.h"

enum { KEY_BYTES = 512, FILE_PATH = PATH_MAX + 64 };

/* FNV-1a of TEXT, begun with SEED. */
static uint64_t
digest(const char *text, uint64_t seed)
{
    uint64_t h = UINT64_C(14695981039346656037) ^ seed;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h;
}

void
eti_given_read(const char *directory, struct eti_given *out)
{
    char path[FILE_PATH];
    json_error_t error;
    snprintf(path, sizeof path, "%s/run.json", directory);
    json_t *facts = eti_facts_load(path, 0, &error);
    const char *id = json_string_value(json_object_get(facts, "id"));
    const char *name = json_string_value(json_object_get(facts, "name"));
    const char *recipe = json_string_value(json_object_get(facts, "recipe"));
    if (id && strlen(id) == 32)
        snprintf(out->id, sizeof out->id, "%s", id);
    else
        snprintf(out->id, sizeof out->id, "%016" PRIx64 "%016" PRIx64,
                 digest(directory, 0), digest(directory, 1));
    const char *slash = recipe ? strrchr(recipe, '/') : NULL;
    recipe = slash ? slash + 1 : recipe && *recipe ? recipe : "run";
    snprintf(out->recipe, sizeof out->recipe, "%.*s", (int)strcspn(recipe, "."),
             recipe);
    slash = strrchr(directory, '/');
    snprintf(out->name, sizeof out->name, "%.127s",
             name && *name ? name
             : slash       ? slash + 1
                           : directory);
    json_decref(facts);
}

static void
walk(const char *path, const struct et_value *v, eti_given_fn *fn, void *data)
{
    char key[KEY_BYTES];
    int i = 0;
    for (const struct et_value *child = v->first; child; child = child->next, i++) {
        const char *dot = *path ? "." : "";
        if (child->key)
            snprintf(key, sizeof key, "%s%s%s", path, dot, child->key);
        else
            snprintf(key, sizeof key, "%s%s%d", path, dot, i);
        if (child->type == ET_VALUE_MAP || child->type == ET_VALUE_LIST)
            walk(key, child, fn, data);
        else
            fn(data, key, child);
    }
}

void
eti_given_walk(const struct et_value *root, eti_given_fn *fn, void *data)
{
    walk("", root, fn, data);
}

et_status
eti_given_recipe(struct et_ctx *cx, const char *directory, eti_given_fn *fn, void *data)
{
    static const struct eti_source source = {.name = "recipe.resolved.yaml"};
    struct et_diagnostics errors = {0};
    struct eti_arena arena;
    struct et_value *root = NULL;
    char path[FILE_PATH];
    void *text;
    ET_TRY(et_alloc(cx, eti_yaml_limits.bytes, &text));
    snprintf(path, sizeof path, "%s/%s", directory, source.name);
    FILE *f = eti_open_regular(path);
    const size_t n = f ? fread(text, 1, eti_yaml_limits.bytes, f) : 0;
    if (f)
        fclose(f);
    eti_arena_init(&arena, cx, 64 << 10);
    et_status status =
        eti_yaml_parse(&arena, text, n, &source, &eti_yaml_limits, &errors, &root);
    if (root)
        eti_given_walk(root, fn, data);
    eti_arena_release(&arena);
    et_free(cx, text);
    return status;
}
