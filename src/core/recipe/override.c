/* SPDX-License-Identifier: Apache-2.0 */
/* override.c: single values set upon a tree: `a.b.0.c=VALUE`, `--unset`, `--alg`.
 *
 * A path that meets a component's name alone (`optimizer: adamw`) makes it a mapping;
 * one that meets nothing makes mappings. A list of one component is as that component
 * where the path goes on with an option of it. Whether the key exists is the tables'
 * business. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/recipe/recipe.h"

enum { MAX_VARIABLES = 256 };

struct setter {
    struct eti_loader *l;
    const struct eti_source *source;
};

static void complain(const struct setter *s, const char *hint, const char *fmt, ...)
    ET_PRINTF(3, 4);

static void
complain(const struct setter *s, const char *hint, const char *fmt, ...)
{
    struct et_place at = {.order = s->source->order};
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    et_diagnostics_add(s->l->errors, ET_E_OVERRIDE, &at, NULL, hint, "%s", message);
}

/* VALUE as YAML; *OUT is NULL where it is not (reported, with KEY). */
static et_status
read_value(const struct setter *s, const char *key, const char *value,
           struct et_value **out)
{
    struct et_diagnostics errors = {0};
    ET_TRY(eti_yaml_parse(s->l->arena, value, strlen(value), s->source,
                          &eti_yaml_limits, &errors, out));
    if (errors.total) {
        complain(s, NULL, "%s: %s", key, errors.v[0].message);
        *out = NULL;
    } else {
        eti_refuse_secrets(s->l, *out, key);
    }
    return ET_OK;
}

/* The key of a single value in the mapping that it stands for, which is under KEY: that
 * of the first row of a brief table; "name", where it names a component. */
static const char *
single_key(const char *key)
{
    const struct et_registry *all = et_registry_core();
    const struct et_component *c;
    for (int kind = 0; key && kind < ET_KIND_COUNT; kind++)
        for (int i = 0; (c = all->get(all, (enum et_kind)kind, i)); i++) {
            const struct et_option *row = eti_option_find(c->options, key);
            if (row && row->type == ET_OPT_TABLE && row->flags & ET_OPT_BRIEF)
                return row->sub->name;
        }
    return "name";
}

et_status
eti_path_open(struct eti_arena *arena, struct et_value *v)
{
    if (v->type == ET_VALUE_STRING) {
        struct et_value *name = eti_value_copy(arena, v, NULL);
        if (!name)
            return ET_ENOMEM;
        v->type = ET_VALUE_MAP;
        v->n = 0;
        eti_value_append(v, single_key(v->key), name);
    } else if (v->type == ET_VALUE_NULL || v->type == ET_VALUE_BOOL) {
        v->type = ET_VALUE_MAP;
        v->n = 0;
    }
    return ET_OK;
}

static bool
is_index(const char *key)
{
    return *key && strlen(key) < 6 && !key[strspn(key, "0123456789")];
}

static bool
is_single(const struct et_value *item, const char *key)
{
    return item->type == ET_VALUE_MAP && item->n == 1 &&
           strcmp(item->first->key, key) == 0;
}

/* The item of a list that is component KEY: `ema`, `{ema: {...}}`, `{name: ema,
 * ...}`. */
static struct et_value *
find_named(const struct et_value *list, const char *key)
{
    for (struct et_value *v = list->first; v; v = v->next) {
        const struct et_value *name =
            v->type == ET_VALUE_STRING ? v : eti_value_get(v, "name");
        if (is_single(v, key) || (name && name->text && strcmp(name->text, key) == 0))
            return v;
    }
    return NULL;
}

/* An item of a list by index, or the options of one by its name. */
static struct et_value *
find_item(const struct et_value *list, const char *key)
{
    if (is_index(key))
        return eti_value_at(list, (int)strtol(key, NULL, 10));
    struct et_value *item = find_named(list, key);
    return item && is_single(item, key) ? item->first : item;
}

/* One component where a list of them may stand: item 0 is itself. */
static bool
is_item_zero(const struct et_value *v, const char *key)
{
    bool is_one = v->type == ET_VALUE_STRING || eti_value_get(v, "name");
    return is_one && strcmp(key, "0") == 0;
}

/* Has a component called NAME the option KEY? Not where KEY is one of its kind. */
static bool
is_option_of(const struct et_registry *all, const char *name, const char *key)
{
    for (int kind = 0; kind < ET_KIND_COUNT; kind++) {
        const struct et_component *c = et_registry_find(all, (enum et_kind)kind, name);
        if (c && eti_option_find(c->options, key) &&
            !et_registry_find(all, (enum et_kind)kind, key))
            return true;
    }
    return false;
}

/* What a path that goes on with KEY goes on in: V, or the only component in it. */
static struct et_value *
only_item(struct et_value *v, const char *key)
{
    struct et_value *item = v->type == ET_VALUE_LIST && v->n == 1 ? v->first : NULL;
    if (!item || is_index(key) || find_named(v, key))
        return v;
    const struct et_value *name =
        item->type == ET_VALUE_STRING ? item : eti_value_get(item, "name");
    return name && name->text && is_option_of(et_registry_core(), name->text, key)
               ? item
               : v;
}

struct et_value *
eti_path_child(struct et_value *v, const char *key)
{
    if (is_item_zero(v, key))
        return v;
    return v->type == ET_VALUE_LIST ? find_item(v, key) : eti_value_get(v, key);
}

/* The next part of *PATH, cut off at its dot. */
static const char *
next_key(char **path)
{
    char *key = *path, *dot = strchr(key, '.');
    *path = dot ? dot + 1 : NULL;
    if (dot)
        *dot = '\0';
    return key;
}

/* Makes V the options of component KEY in LIST. */
static et_status
put_named(const struct setter *s, struct et_value *list, const char *key,
          struct et_value *v)
{
    struct et_value *item = find_named(list, key);
    struct et_value *now = eti_value_new(s->l->arena, ET_VALUE_MAP, s->source, NULL);
    if (!now)
        return ET_ENOMEM;
    eti_value_append(now, key, v);
    if (item)
        eti_value_replace(list, item, now);
    else
        eti_value_append(list, NULL, now);
    return ET_OK;
}

/* Puts V into PARENT as KEY, over what is there. */
static et_status
put(const struct setter *s, struct et_value *parent, const char *key,
    struct et_value *v, const char *whole)
{
    if (parent->type == ET_VALUE_LIST && !is_index(key))
        return put_named(s, parent, key, v);
    struct et_value *old = eti_path_child(parent, key);
    if (old == parent)
        eti_value_become(parent, v);
    else if (old)
        eti_value_replace(parent, old, v);
    else if (parent->type == ET_VALUE_MAP)
        eti_value_append(parent, key, v);
    else if (strtol(key, NULL, 10) == parent->n)
        eti_value_append(parent, NULL, v);
    else
        complain(s, NULL, "%s: the list ends at %d, there is no %s", whole,
                 parent->n - 1, key);
    return ET_OK;
}

/* Sets WHOLE, a path, to V. */
static et_status
set_path(const struct setter *s, struct et_value *root, const char *whole,
         struct et_value *v)
{
    char *path = eti_arena_text(s->l->arena, whole, strlen(whole));
    if (!path)
        return ET_ENOMEM;
    struct et_value *at = root;
    if (strcmp(whole, "include") == 0) {
        complain(s, NULL, "include: only a recipe's file can include others");
        return ET_OK;
    }
    for (;;) {
        const char *key = next_key(&path);
        if (!*key) {
            complain(s, NULL, "%s: a path is keys with single dots between", whole);
            return ET_OK;
        }
        struct et_value *item = only_item(at, key);
        if (item != at) {
            ET_TRY(eti_path_open(s->l->arena, item));
            at = item;
        }
        if (!path)
            return put(s, at, key, v, whole);
        struct et_value *child = eti_path_child(at, key);
        if (!child) {
            child = eti_value_new(s->l->arena, ET_VALUE_MAP, s->source, NULL);
            if (!child)
                return ET_ENOMEM;
            ET_TRY(put(s, at, key, child, whole));
            if (!eti_path_child(at, key))
                return ET_OK;
        }
        ET_TRY(eti_path_open(s->l->arena, child));
        if (child->type != ET_VALUE_MAP && child->type != ET_VALUE_LIST) {
            complain(s, NULL, "%s: %s is no mapping or list", whole, key);
            return ET_OK;
        }
        at = child;
    }
}

static et_status
set_assignment(const struct setter *s, struct et_value *root, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        complain(s, "write optimizer.lr=0.1", "'%s' is not KEY=VALUE", text);
        return ET_OK;
    }
    char *key = eti_arena_text(s->l->arena, text, (size_t)(equals - text));
    struct et_value *v;
    if (!key)
        return ET_ENOMEM;
    ET_TRY(read_value(s, key, equals + 1, &v));
    return v ? set_path(s, root, key, v) : ET_OK;
}

static et_status
unset(const struct setter *s, struct et_value *root, const char *whole)
{
    char *path = eti_arena_text(s->l->arena, whole, strlen(whole));
    if (!path)
        return ET_ENOMEM;
    struct et_value *parent = NULL, *at = root;
    while (path && at) {
        const char *key = next_key(&path);
        at = only_item(at, key);
        bool is_named = !path && at->type == ET_VALUE_LIST && !is_index(key);
        parent = at;
        at = is_named ? find_named(parent, key) : eti_path_child(parent, key);
    }
    if (at && at != parent)
        eti_value_remove(parent, at);
    else
        complain(s, NULL, "%s is not set, nothing to unset", whole);
    return ET_OK;
}

/* ---- --alg NAME(KEY=VALUE, ...) ---- */

/* The end of the argument at S: the next comma or ')' outside brackets and quotes. */
static char *
argument_end(char *s)
{
    int depth = 0;
    char quote = 0;
    for (; *s; s++) {
        if (quote)
            quote = *s == quote ? 0 : quote;
        else if (*s == '"' || *s == '\'')
            quote = *s;
        else if (strchr("[{(", *s))
            depth++;
        else if (depth && strchr("]})", *s))
            depth--;
        else if (!depth && (*s == ',' || *s == ')'))
            break;
    }
    return s;
}

static et_status
set_arguments(const struct setter *s, struct et_value *root, const char *name,
              char *args, const char *text)
{
    bool is_last = false;
    while (!is_last) {
        char *end = argument_end(args);
        is_last = *end == ')';
        if (!*end || (is_last && end[1])) {
            complain(s, NULL, "'%s' is not NAME or NAME(KEY=VALUE, ...)", text);
            return ET_OK;
        }
        *end = '\0';
        while (isspace((unsigned char)*args))
            args++;
        if (*args) {
            struct eti_text path = {.cx = s->l->cx};
            eti_text_add(&path, "algorithms.%s.%s", name, args);
            et_status status = path.status;
            if (status == ET_OK)
                status = set_assignment(s, root, path.text);
            et_free(s->l->cx, path.text);
            ET_TRY(status);
        }
        args = end + 1;
    }
    return ET_OK;
}

/* Adds algorithm TEXT, or changes the options of the one that is there. */
static et_status
set_algorithm(const struct setter *s, struct et_value *root, const char *text, bool on)
{
    char *name = eti_arena_text(s->l->arena, text, strlen(text));
    if (!name)
        return ET_ENOMEM;
    char *args = on ? strchr(name, '(') : NULL;
    if (args)
        *args++ = '\0';
    if (!*name || name[strcspn(name, ".=( ")]) {
        complain(s, NULL, "'%s' is not the name of an algorithm", text);
        return ET_OK;
    }
    struct eti_text path = {.cx = s->l->cx};
    eti_text_add(&path, "algorithms.%s", name);
    struct et_value *list = eti_value_get(root, "algorithms");
    const struct et_value *there = list ? eti_path_child(list, name) : NULL;
    bool is_on = there && !(there->type == ET_VALUE_BOOL && !there->b);
    et_status status = path.status;
    if (status == ET_OK && !(on && is_on)) {
        struct et_value *v =
            eti_value_new(s->l->arena, on ? ET_VALUE_MAP : ET_VALUE_BOOL, s->source,
                          on ? NULL : "false");
        status = v ? set_path(s, root, path.text, v) : ET_ENOMEM;
    }
    et_free(s->l->cx, path.text);
    ET_TRY(status);
    return args ? set_arguments(s, root, name, args, text) : ET_OK;
}

/* ---- all of them ---- */

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ETUDE_SET_optimizer__lr=2.0, in the order of their names: a mapping before its
 * keys. */
static et_status
apply_variables(struct eti_loader *l, struct et_value *root)
{
    static const char prefix[] = "ETUDE_SET_";
    const char *found[MAX_VARIABLES];
    int n = 0;
    for (const char *const *v = l->env->variables; v && *v && n < MAX_VARIABLES; v++)
        if (strncmp(*v, prefix, sizeof prefix - 1) == 0)
            found[n++] = *v;
    qsort(found, (size_t)n, sizeof found[0], compare_texts);
    for (int i = 0; i < n; i++) {
        const char *text = found[i] + sizeof prefix - 1;
        char *assignment = eti_arena_text(l->arena, text, strlen(text));
        size_t key = strcspn(found[i], "=");
        char *name = eti_arena_text(l->arena, found[i], key);
        struct setter s = {
            .l = l,
            .source = name ? eti_source_new(l, ETI_ORIGIN_ENVIRONMENT, name) : NULL,
        };
        if (!assignment || !s.source)
            return ET_ENOMEM;
        char *to = assignment;
        for (const char *from = text; *from; to++) {
            bool is_dot = from < found[i] + key && strncmp(from, "__", 2) == 0;
            *to = is_dot ? '.' : *from;
            from += is_dot ? 2 : 1;
        }
        *to = '\0';
        ET_TRY(set_assignment(&s, root, assignment));
    }
    return ET_OK;
}

et_status
eti_apply_overrides(struct eti_loader *l, struct et_value *root,
                    const struct et_override *overrides, int n)
{
    ET_TRY(apply_variables(l, root));
    for (int i = 0; i < n; i++) {
        const struct et_override *o = &overrides[i];
        struct setter s = {
            .l = l,
            .source = eti_source_new(l, ETI_ORIGIN_COMMAND_LINE, o->text),
        };
        if (!s.source)
            return ET_ENOMEM;
        et_status status = ET_OK;
        switch (o->kind) {
        case ET_OVERRIDE_SET:
            status = set_assignment(&s, root, o->text);
            break;
        case ET_OVERRIDE_UNSET:
            status = unset(&s, root, o->text);
            break;
        case ET_OVERRIDE_ALG:
        case ET_OVERRIDE_NO_ALG:
            status = set_algorithm(&s, root, o->text, o->kind == ET_OVERRIDE_ALG);
            break;
        }
        ET_TRY(status);
    }
    return ET_OK;
}
