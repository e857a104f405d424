/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c: see layers.h. */
#include "config.h"

#include "core/compose/layers.h"

#include <stdio.h>
#include <string.h>

#include "core/compose/sketch_impl.h"
#include "core/recipe/edit.h"
#include "core/recipe/network.h"

/* ---- lines ---- */

struct listing {
    struct et_ctx *cx;
    struct eti_layer_line *out;
    int n, room;
};

/* V in flow style, without the braces of a mapping. */
static void
put_options(struct listing *l, const struct et_value *v, char *buf, size_t size)
{
    struct eti_text t = {.cx = l->cx};
    *buf = '\0';
    if (!v || v->type == ET_VALUE_NULL)
        return;
    eti_text_add_value(&t, v);
    size_t n = t.status == ET_OK ? t.used : 0;
    bool has_braces = n > 1 && v->type == ET_VALUE_MAP;
    if (n > 0)
        snprintf(buf, size, "%.*s", (int)(has_braces ? n - 2 : n), t.text + has_braces);
    et_free(l->cx, t.text);
}

static void list_items(struct listing *l, const struct et_value *list, const char *path,
                       const char *module, int depth);

/* The lists that stand in the line before, at PATH. */
static void
list_inner(struct listing *l, const struct et_value *says, const char *path,
           const char *module, int depth)
{
    char below[ETI_PATH_BYTES], inside[192];
    const bool repeats = strcmp(says->key, "repeat") == 0;
    if (says->type == ET_VALUE_LIST) {
        snprintf(inside, sizeof inside, "%s%s", module, *module ? ".residual" : "");
        list_items(l, says, path, inside, depth);
        return;
    }
    for (const struct et_value *c = says->first; c; c = c->next) {
        if (c->type != ET_VALUE_LIST)
            continue;
        const char *way = repeats                         ? ".0"
                          : strcmp(c->key, "layers") == 0 ? ".residual"
                                                          : ".shortcut";
        snprintf(inside, sizeof inside, "%s%s", module, *module ? way : "");
        list_items(l, c, eti_path_join(below, path, c->key), inside, depth);
    }
}

static void
list_item(struct listing *l, const struct et_value *item, const char *list,
          const char *module, struct eti_layer_line line)
{
    const struct et_value *says = eti_network_says(item),
                          *as = eti_value_get(item, "as"),
                          *from = eti_value_get(item, "from");
    const bool is_map = says && says != item;
    char number[16], below[ETI_PATH_BYTES];
    if (l->n == l->room)
        return;
    struct eti_layer_line *out = &l->out[l->n++];
    *out = line;
    snprintf(number, sizeof number, "%d", line.at);
    eti_path_join(out->path, list, number);
    snprintf(out->list, sizeof out->list, "%s", list);
    if (*module)
        snprintf(out->module, sizeof out->module, "%.100s%s%s",
                 strcmp(module, ".") == 0 ? "" : module,
                 strcmp(module, ".") == 0 ? "" : ".", number);
    snprintf(out->name, sizeof out->name, "%.63s",
             is_map               ? says->key
             : says && says->text ? says->text
             : from               ? "from"
                                  : "?");
    snprintf(out->as, sizeof out->as, "%.39s", as && as->text ? as->text : "");
    out->is_text = says == item;
    const struct eti_network_word *word =
        is_map ? eti_network_word_find(says->key) : NULL;
    out->has_layers = word && word->keys[0];
    if (out->has_layers) {
        const struct et_value *times = eti_value_get(says, "times");
        if (times && times->text)
            snprintf(out->options, sizeof out->options, "times: %.20s", times->text);
        list_inner(l, says, eti_path_join(below, out->path, says->key), out->module,
                   line.depth + 1);
    } else {
        put_options(l,
                    is_map ? says
                    : says ? NULL
                           : from,
                    out->options, sizeof out->options);
    }
}

static void
list_items(struct listing *l, const struct et_value *list, const char *path,
           const char *module, int depth)
{
    int i = 0;
    for (const struct et_value *item = list->first; item; item = item->next, i++)
        list_item(l, item, path, module,
                  (struct eti_layer_line){.at = i, .n = list->n, .depth = depth});
}

/* The list of layers of D's model, with the blocks beside it; NULL: it has none. */
static const struct et_value *
find_list(const struct eti_sketch *d, const struct et_value **blocks)
{
    const struct et_part *model = d->recipe ? &d->recipe->model : NULL;
    const struct et_value *list = NULL;
    *blocks = NULL;
    for (const struct et_option *o =
             model && model->component ? model->component->options : NULL;
         o && o->name; o++) {
        const char *field = (const char *)model->options + o->offset;
        if (o->flags & ET_OPT_ITEMS && o->kind == ET_KIND_LAYER)
            list = *(const struct et_value *const *)(const void *)field;
        else if (o->type == ET_OPT_NODE && strcmp(o->name, "blocks") == 0)
            *blocks = *(const struct et_value *const *)(const void *)field;
    }
    return list && list->type == ET_VALUE_LIST ? list : NULL;
}

int
eti_layer_lines(const struct eti_sketch *d, struct eti_layer_line *out, int n)
{
    struct listing l = {.cx = d->cx, .out = out, .room = n};
    const struct et_value *blocks, *list = find_list(d, &blocks);
    if (!list)
        return 0;
    list_items(&l, list, "model.layers", ".", 0);
    for (const struct et_value *c = blocks ? blocks->first : NULL; c && l.n < n;
         c = c->next) {
        char path[ETI_PATH_BYTES];
        struct eti_layer_line *name = &l.out[l.n++];
        *name = (struct eti_layer_line){0};
        snprintf(name->name, sizeof name->name, "%.63s", c->key);
        if (c->type == ET_VALUE_LIST)
            list_items(&l, c, eti_path_join(path, "model.blocks", c->key), "", 1);
    }
    return l.n;
}

/* ---- changes ---- */

static et_status
apply(struct eti_sketch *d, const struct eti_edit *edit, const char *what)
{
    char *now;
    ET_TRY(eti_sketch_edited(d, d->text, edit, &now, NULL));
    return eti_sketch_commit(d, &now, what);
}

et_status
eti_sketch_insert_layer(struct eti_sketch *d, const char *list, int at,
                        const char *name, const char *options)
{
    char path[ETI_PATH_BYTES], what[128];
    const struct eti_edit edit = {
        .kind = ETI_EDIT_INSERT,
        .path = eti_path_join(path, list, name),
        .value = options,
        .index = at,
        .is_recipe = true,
        .is_item = true,
    };
    snprintf(what, sizeof what, "%.60s %.50s", list, name);
    return apply(d, &edit, what);
}

et_status
eti_sketch_set_layer(struct eti_sketch *d, const struct eti_layer_line *line,
                     const char *options)
{
    char path[ETI_PATH_BYTES], text[512];
    if (!line->is_text)
        return eti_sketch_set(d, eti_path_join(path, line->path, line->name), options);
    snprintf(text, sizeof text, "{%s: %s}", line->name, options);
    return eti_sketch_set(d, line->path, text);
}

et_status
eti_sketch_move_layer(struct eti_sketch *d, const struct eti_layer_line *line, int by)
{
    char what[128];
    const int at = line->at + by;
    if (at < 0 || at >= line->n)
        return ET_FAIL(d->cx, ET_ENOENT, "%s is the %s of its list already", line->name,
                       by < 0 ? "first" : "last");
    const struct eti_edit edit = {
        .kind = ETI_EDIT_MOVE, .path = line->path, .index = at, .is_recipe = true};
    snprintf(what, sizeof what, "%.60s moved %s", line->name, by < 0 ? "up" : "down");
    return apply(d, &edit, what);
}

et_status
eti_sketch_remove_layer(struct eti_sketch *d, const struct eti_layer_line *line)
{
    char what[128];
    const struct eti_edit edit = {
        .kind = ETI_EDIT_REMOVE, .path = line->path, .is_recipe = true};
    if (line->n < 2)
        return ET_FAIL(d->cx, ET_EINVAL, "a list has one layer at least");
    snprintf(what, sizeof what, "%.60s taken out", line->name);
    return apply(d, &edit, what);
}

/* ---- options ---- */

et_status
eti_layer_try(struct et_ctx *cx, const struct et_component *c, const char *options)
{
    struct et_diagnostics errors = {0};
    const struct eti_fill fill = {.cx = cx, .errors = &errors, .is_brief = true};
    struct et_value *v;
    ET_TRY(eti_value_read(cx, *options ? options : "{}", &errors, &v));
    const struct et_place at = {0};
    et_status status =
        v ? eti_check_component(&fill, ET_KIND_LAYER, c->name, &at, v, "") : ET_OK;
    if (v)
        eti_value_free(v);
    if (status == ET_OK && errors.total)
        status = ET_FAIL(cx, ET_EINVAL, "%s%s%s", errors.v[0].path,
                         *errors.v[0].path ? ": " : "", errors.v[0].message);
    return status;
}
