/* SPDX-License-Identifier: Apache-2.0 */
/* edit.c: see edit.h.
 *
 * The bytes to replace come from the places the reader noted. How a text may be written
 * is the writer's choice, so the result is read again: it must mean what the old text
 * meant, with that one value changed, or there is no result. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/recipe/edit_impl.h"

static et_status
read_tree(struct eti_editor *e, const char *text, size_t n, enum eti_origin origin,
          struct et_value **out)
{
    struct eti_source *source = eti_arena_alloc(&e->arena, sizeof *source);
    const char *name = origin == ETI_ORIGIN_COMMAND_LINE ? "value" : e->name;
    if (!source)
        return ET_ENOMEM;
    *source = (struct eti_source){.origin = origin, .name = name};
    int before = e->errors->total;
    ET_TRY(
        eti_yaml_parse(&e->arena, text, n, source, &eti_yaml_limits, e->errors, out));
    return *out && e->errors->total == before
               ? ET_OK
               : ET_FAIL(e->cx, ET_EINVAL, "%s is not YAML",
                         origin == ETI_ORIGIN_COMMAND_LINE ? "the value" : name);
}

/* ---- finding the place ---- */

/* (A recipe may have an option by another name.) */
static struct et_value *
child_of(const struct eti_editor *e, struct et_value *v, const char *key)
{
    struct et_value *child =
        e->what->is_recipe ? eti_path_child(v, key) : eti_value_get(v, key);
    if (child || !e->what->is_recipe || v->type != ET_VALUE_MAP)
        return child;
    for (child = v->first; child && !eti_is_other_name(child->key, key);)
        child = child->next;
    return child;
}

/* May V get entries: is it a mapping, or as good as one? */
static bool
can_open(const struct eti_editor *e, const struct et_value *v)
{
    if (v->type == ET_VALUE_MAP || v->type == ET_VALUE_NULL)
        return true;
    return e->what->is_recipe && (v->type == ET_VALUE_STRING ||
                                  v->type == ET_VALUE_BOOL || v->type == ET_VALUE_LIST);
}

/* The entry of PARENT that CHILD is, or is in: a list's item {ema: {...}}. */
static struct et_value *
entry_of(struct et_value *parent, struct et_value *child)
{
    for (struct et_value *c = parent->first; c; c = c->next)
        if (c == child || (!c->key && c->first == child && c->n == 1))
            return c;
    return child;
}

/* What is to be made of PATH, of which nothing is there below V: "scheduler.0.t_max",
 * an option of the default's, comes to be "scheduler.t_max". One component is its own
 * item 0. NULL: no memory. */
static const char *
without_first_items(struct eti_editor *e, const struct et_value *v, const char *path)
{
    if (!e->what->is_recipe)
        return path;
    char *rest = eti_arena_text(&e->arena, path, strlen(path));
    char *key = rest;
    if (rest && (v->type == ET_VALUE_LIST || v == e->root))
        key = strchr(rest, '.');
    for (; key; key = strchr(key + 1, '.')) {
        char *at = *key == '.' ? key + 1 : key;
        while (strncmp(at, "0.", 2) == 0)
            memmove(at, at + 2, strlen(at + 2) + 1);
    }
    return rest;
}

static et_status
find(struct eti_editor *e, struct eti_spot *s)
{
    struct et_value *v = e->root;
    const char *path = e->what->path;
    *s = (struct eti_spot){.parent = v};
    for (;;) {
        char key[ETI_PATH_BYTES], quote[64];
        eti_edit_key(path, key);
        if (!can_open(e, v)) {
            struct et_place at = eti_value_place(v);
            et_diagnostics_add(e->errors, ET_E_VALUE, &at, NULL, NULL,
                               "'%s' cannot be set in %s", key,
                               eti_value_quote(v, quote, sizeof quote));
            return ET_FAIL(e->cx, ET_EINVAL, "'%s' cannot be set in %s", key, quote);
        }
        bool is_new =
            e->what->is_item && v->type == ET_VALUE_LIST && !path[strlen(key)];
        struct et_value *child = is_new ? NULL : child_of(e, v, key);
        if (child != v) /* one component is its own item 0 */
            s->parent = v;
        if (!child) {
            s->rest = without_first_items(e, v, path);
            return s->rest ? ET_OK : ET_ENOMEM;
        }
        if (!path[strlen(key)]) {
            s->child = child;
            s->entry = entry_of(s->parent, child);
            return ET_OK;
        }
        v = child;
        path += strlen(key) + 1;
    }
}

/* ---- the same on the tree ---- */

static void
put_at(struct et_value *parent, int index, struct et_value *child)
{
    struct et_value **at = &parent->first;
    while (*at && index-- > 0)
        at = &(*at)->next;
    child->next = *at;
    *at = child;
    parent->n++;
}

static void
empty_is_null(const struct eti_editor *e, struct et_value *v)
{
    if (v->n == 0 && !eti_edit_is_flow(e, v)) {
        v->type = ET_VALUE_NULL;
        v->text = "";
    }
}

/* What is left of the path below PARENT, with the value at its end. */
static et_status
grow(struct eti_editor *e, struct et_value *parent, const char *path)
{
    char key[ETI_PATH_BYTES];
    eti_edit_key(path, key);
    bool is_item = parent->type == ET_VALUE_LIST;
    bool is_last = !path[strlen(key)];
    if (!is_item)
        ET_TRY(eti_path_open(&e->arena, parent));
    int index = is_last ? eti_edit_index(e, parent->n) : parent->n;
    struct et_value *child =
        eti_value_new(&e->arena, ET_VALUE_NULL, parent->source, "");
    char *copy = eti_arena_text(&e->arena, key, strlen(key));
    if (!child || !copy)
        return ET_ENOMEM;
    if (is_last)
        eti_value_become(child, e->value);
    if (is_item && is_last && eti_edit_is_empty(e)) {
        child->type = ET_VALUE_STRING;
        child->text = copy;
    } else if (is_item) {
        struct et_value *item =
            eti_value_new(&e->arena, ET_VALUE_MAP, parent->source, NULL);
        if (!item)
            return ET_ENOMEM;
        eti_value_append(item, copy, child);
        put_at(parent, index, item);
        return is_last ? ET_OK : grow(e, child, path + strlen(key) + 1);
    }
    put_at(parent, index, child);
    child->key = is_item ? NULL : copy;
    return is_last ? ET_OK : grow(e, child, path + strlen(key) + 1);
}

/* Does TEXT mean what the tree, in which the value is set by now, says? */
static et_status
check(struct eti_editor *e, const char *text)
{
    struct et_diagnostics errors = {0}, *those = e->errors;
    struct eti_text want = {.cx = e->cx}, got = {.cx = e->cx};
    struct et_value *root;
    e->errors = &errors;
    et_status status = read_tree(e, text, strlen(text), ETI_ORIGIN_RECIPE, &root);
    e->errors = those;
    if (status == ET_OK) {
        eti_text_add_value(&want, e->root);
        eti_text_add_value(&got, root);
        status = want.status != ET_OK ? want.status : got.status;
    }
    bool is_same = status == ET_OK && strcmp(want.text, got.text) == 0;
    et_free(e->cx, want.text);
    et_free(e->cx, got.text);
    if (status == ET_ENOMEM || is_same)
        return status;
    et_error_clear(e->cx);
    return eti_edit_unsupported(e);
}

/* ---- an edit ---- */

static et_status
nothing_there(const struct eti_editor *e)
{
    return ET_FAIL(e->cx, ET_ENOENT, "%s is not set", e->what->path);
}

static et_status
set(struct eti_editor *e, const struct eti_spot *s)
{
    if (s->child) {
        eti_edit_replace(e, s->child, NULL);
        eti_value_become(s->child, e->value);
        return ET_OK;
    }
    eti_edit_insert(e, s);
    return grow(e, s->parent, s->rest);
}

static et_status
cut(struct eti_editor *e, const struct eti_spot *s)
{
    if (!s->child || s->entry == s->parent)
        return nothing_there(e);
    ET_TRY(eti_edit_cut(e, s));
    eti_value_remove(s->parent, s->entry);
    empty_is_null(e, s->parent);
    return ET_OK;
}

static et_status
move(struct eti_editor *e, const struct eti_spot *s)
{
    if (!s->child || s->entry == s->parent)
        return nothing_there(e);
    int i = eti_edit_index_of(s->parent, s->entry),
        j = eti_edit_index(e, s->parent->n - 1);
    if (i == j) {
        e->from = e->to = 0;
        eti_text_add(&e->now, "%s", "");
        return ET_OK;
    }
    eti_edit_move(e, s, i, j);
    eti_value_remove(s->parent, s->entry);
    put_at(s->parent, j, s->entry);
    return ET_OK;
}

static et_status
apply(struct eti_editor *e)
{
    struct eti_spot s;
    ET_TRY(find(e, &s));
    switch (e->what->kind) {
    case ETI_EDIT_REMOVE:
        return cut(e, &s);
    case ETI_EDIT_MOVE:
        return move(e, &s);
    case ETI_EDIT_INSERT:
        if (s.child)
            return ET_FAIL(e->cx, ET_EINVAL, "%s is set already", e->what->path);
        break;
    case ETI_EDIT_SET:
        break;
    }
    return set(e, &s);
}

et_status
eti_yaml_edit(struct et_ctx *cx, const char *text, size_t n, const char *name,
              const struct eti_edit *edit, struct et_diagnostics *errors, char **out,
              struct eti_change *change)
{
    struct eti_editor e = {
        .cx = cx,
        .what = edit,
        .errors = errors,
        .text = text,
        .name = name,
        .n = n,
        .now = {.cx = cx},
    };
    struct eti_text result = {.cx = cx};
    const char *value = edit->value ? edit->value : "";
    *out = NULL;
    eti_arena_init(&e.arena, cx, 16 << 10);
    et_status status = read_tree(&e, text, n, ETI_ORIGIN_RECIPE, &e.root);
    if (status == ET_OK)
        status = read_tree(&e, value, strlen(value), ETI_ORIGIN_COMMAND_LINE, &e.value);
    if (status == ET_OK)
        status = apply(&e);
    if (status == ET_OK)
        status = e.now.status;
    if (status == ET_OK) {
        eti_text_add(&result, "%.*s%s%.*s", (int)e.from, text,
                     e.now.text ? e.now.text : "", (int)(n - e.to), text + e.to);
        status = result.status;
    }
    if (status == ET_OK)
        status = check(&e, result.text);
    if (status == ET_OK) {
        *out = result.text;
        if (change)
            *change = (struct eti_change){e.from, e.to - e.from, e.now.used};
    } else {
        et_free(cx, result.text);
    }
    et_free(cx, e.now.text);
    eti_arena_release(&e.arena);
    return status;
}

et_status
eti_yaml_set(struct et_ctx *cx, const char *text, size_t n, const char *name,
             const char *path, const char *value, struct et_diagnostics *errors,
             char **out)
{
    const struct eti_edit edit = {
        .kind = ETI_EDIT_SET,
        .path = path,
        .value = value,
    };
    return eti_yaml_edit(cx, text, n, name, &edit, errors, out, NULL);
}
