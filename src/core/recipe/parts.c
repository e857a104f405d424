/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c: components from values: a name, its table's options, lists of them. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/recipe/network.h"
#include "core/recipe/options.h"

enum { MAX_NAMES = 128 };

/* `name` stands beside the options of a component; it has been read when they are. */
static const struct et_option name_table[] = {
    {
        .name = "name",
        .type = ET_OPT_COUNT,
    },
    {0},
};

const char *
et_kind_word(enum et_kind kind)
{
    static const char *const words[] = {
#define WORD(code, number, word) [number] = word,
        ET_KIND_MAP(WORD)
#undef WORD
    };
    return words[kind];
}

static const struct et_component *
component_at(const struct et_registry *registry, enum et_kind kind, int i)
{
    return registry->get(registry, kind, i);
}

const struct et_component *
et_registry_find(const struct et_registry *registry, enum et_kind kind,
                 const char *name)
{
    if (!name)
        return NULL;
    if (!registry)
        registry = et_registry_core();
    const struct et_component *c =
        registry->find ? registry->find(registry, kind, name) : NULL;
    if (c)
        return c;
    for (int i = 0; (c = component_at(registry, kind, i)) != NULL; i++)
        if (strcmp(c->name, name) == 0)
            break;
    return c;
}

static void
unknown_name(const struct eti_fill *fill, enum et_kind kind, const struct et_place *at,
             const char *path, const char *name)
{
    const struct et_registry *r = fill->registry ? fill->registry : et_registry_core();
    const struct et_component *c;
    const char *names[MAX_NAMES];
    char known[256] = "known: ";
    size_t used = strlen(known);
    int n = 0;
    for (; n < MAX_NAMES && (c = component_at(r, kind, n)) != NULL; n++) {
        names[n] = c->name;
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                     n ? ", " : "", c->name);
    }
    const char *near = et_nearest(name, names, n);
    if (eti_looks_secret(name))
        et_diagnostics_add(fill->errors, ET_E_SECRET, at, path, NULL,
                           "'%s' looks like a secret; recipes are copied and shown",
                           name);
    else if (near)
        et_diagnostics_add(fill->errors, ET_E_UNKNOWN, at, path, NULL,
                           "unknown %s '%s' (did you mean '%s'?)", et_kind_word(kind),
                           name, near);
    else
        et_diagnostics_add(fill->errors, ET_E_UNKNOWN, at, path,
                           n == 0                ? "this build has none"
                           : used < sizeof known ? known
                                                 : NULL,
                           "unknown %s '%s'", et_kind_word(kind), name);
}

/* Makes PART an instance of NAME with the options of V (not a mapping: the defaults). A
 * name that is not known leaves the part without a component; a table's own default is
 * then left out, and what it requires is not asked for. */
static et_status
make_part(const struct eti_fill *fill, const struct et_option *row,
          struct et_part *part, const char *name, const struct et_place *name_place,
          const struct et_value *v, const char *path)
{
    bool is_given = v->source->origin != ETI_ORIGIN_DEFAULT;
    const struct et_component *c = et_registry_find(fill->registry, row->kind, name);
    if (!c) {
        if (is_given)
            unknown_name(fill, row->kind, name_place, path, name);
        return ET_OK;
    }
    part->component = c;
    part->value = fill->is_brief ? NULL : v;
    if (c->options_size)
        ET_TRY(eti_own(fill->cx, c->options_size, &part->options));
    if (row->sub)
        ET_TRY(eti_own(fill->cx, row->sub_size, &part->extra));
    ET_TRY(eti_options_from_value(fill, c->options, part->options, NULL, path));
    ET_TRY(eti_options_from_value(fill, row->sub, part->extra, NULL, path));
    if (row->prepare && part->options)
        row->prepare(part->options);
    struct eti_target targets[] = {
        {.table = c->options, .options = part->options},
        {.table = row->sub, .options = part->extra},
        {.table = name_table},
    };
    bool is_checked = is_given && !part->off;
    struct eti_fill own = *fill;
    own.takes_formulas = row->kind == ET_KIND_SCHEDULER && part->value;
    return is_checked ? eti_fill_mapping(&own, targets, 3, v, path) : ET_OK;
}

/* What a part of ROW without a name is: the row's default, or what there is only one
 * of. NULL: it needs a name. */
static const char *
name_of_nameless(const struct eti_fill *fill, const struct et_option *row)
{
    const struct et_registry *r = fill->registry ? fill->registry : et_registry_core();
    if (row->def && row->def[0] != '[') /* a list is no item's name */
        return row->def;
    const struct et_component *only = component_at(r, row->kind, 0);
    return only && !component_at(r, row->kind, 1) ? only->name : NULL;
}

/* The one key of V by which ROW's kind has a component: `{adamw: {lr: 0.1}}` is how
 * items of lists are written, but not a part alone. */
static const struct et_value *
find_named(const struct eti_fill *fill, const struct et_option *row,
           const struct et_value *v)
{
    const struct et_value *found = NULL;
    for (const struct et_value *c = v->type == ET_VALUE_MAP ? v->first : NULL; c;
         c = c->next) {
        if ((c->type != ET_VALUE_MAP && c->type != ET_VALUE_NULL) ||
            !et_registry_find(fill->registry, row->kind, c->key))
            continue;
        if (found)
            return NULL;
        found = c;
    }
    return found;
}

/* `adamw` or `{name: adamw, ...}`. */
et_status
eti_fill_part(const struct eti_fill *fill, const struct et_option *row,
              struct et_part *part, const struct et_value *v, const char *path)
{
    const struct et_value *name =
        v->type == ET_VALUE_MAP ? eti_value_get(v, "name") : v;
    if (name && name->type != ET_VALUE_STRING) {
        eti_bad_value(fill, name, path, NULL, "name or mapping with name");
        return ET_OK;
    }
    const char *nameless = name_of_nameless(fill, row);
    const struct et_value *named = name ? NULL : find_named(fill, row, v);
    if (named) {
        struct et_place at = eti_value_key_place(named);
        char hint[ETI_PATH_BYTES];
        snprintf(hint, sizeof hint, "write {name: %s, ...}, its options beside it",
                 named->key);
        et_diagnostics_add(fill->errors, ET_E_UNKNOWN, &at, path, hint,
                           "unknown key '%s'", named->key);
        eti_part_release(row, part); /* as where the name is not known */
        *part = (struct et_part){0};
        return ET_OK;
    }
    if (!name && !nameless) {
        struct et_place at = eti_value_place(v);
        et_diagnostics_add(fill->errors, ET_E_MISSING, &at, path, NULL,
                           "key 'name' is missing");
        return ET_OK;
    }
    struct et_part now = {0};
    struct et_place at = eti_value_place(name ? name : v);
    et_status status =
        make_part(fill, row, &now, name ? name->text : nameless, &at, v, path);
    eti_part_release(row, part);
    *part = now;
    return status;
}

/* One item of a BY_NAME mapping or list: NAME, and V its options, true or false. */
static et_status
fill_named(const struct eti_fill *fill, const struct et_option *row,
           struct et_part *part, const char *name, const struct et_place *at,
           const struct et_value *v, const char *path)
{
    bool fits =
        v->type == ET_VALUE_MAP || v->type == ET_VALUE_NULL || v->type == ET_VALUE_BOOL;
    bool is_known = et_registry_find(fill->registry, row->kind, name) != NULL;
    if (!fits && is_known) {
        eti_bad_value(fill, v, path, NULL, "mapping of options, or false");
        return ET_OK;
    }
    part->off = v->type == ET_VALUE_BOOL && !v->b;
    return make_part(fill, row, part, name, at, v, path);
}

/* One item of a BY_NAME list: `ema`, `{ema: {...}}`, `{name: ema, ...}`. */
static et_status
fill_item(const struct eti_fill *fill, const struct et_option *row,
          struct et_part *part, const struct et_value *v, const char *path)
{
    bool is_single =
        v->type == ET_VALUE_MAP && v->n == 1 && strcmp(v->first->key, "name") != 0;
    if (!is_single)
        return eti_fill_part(fill, row, part, v, path);
    struct et_place at = eti_value_key_place(v->first);
    char below[ETI_PATH_BYTES];
    return fill_named(fill, row, part, v->first->key, &at, v->first,
                      eti_path_join(below, path, v->first->key));
}

/* ---- components that are only looked at ---- */

et_status
eti_check_component(const struct eti_fill *fill, enum et_kind kind, const char *name,
                    const struct et_place *at, const struct et_value *options,
                    const char *path)
{
    const struct et_option plain = {.kind = kind};
    struct et_part part = {0};
    et_status status = make_part(fill, &plain, &part, name, at, options, path);
    eti_part_release(&plain, &part);
    return status;
}

static et_status
check_item(const struct eti_fill *fill, const struct et_option *row,
           const struct et_value *item, const char *path)
{
    const bool has_options = item->type == ET_VALUE_MAP && item->n == 1;
    const struct et_value *options = has_options ? item->first : item;
    char below[ETI_PATH_BYTES];
    if (!has_options && item->type != ET_VALUE_STRING) {
        eti_bad_value(fill, item, path, NULL, "name, or one name with its options");
        return ET_OK;
    }
    const char *name = has_options ? options->key : item->text;
    struct et_place at =
        has_options ? eti_value_key_place(options) : eti_value_place(item);
    eti_path_join(below, path, name);
    if (has_options && options->type != ET_VALUE_MAP &&
        options->type != ET_VALUE_NULL) {
        eti_bad_value(fill, options, below, NULL, "mapping of options");
        return ET_OK;
    }
    return eti_check_component(fill, row->kind, name, &at, options, below);
}

/* Layers may have ways around them, and blocks beside their list. */
static et_status
check_layers(const struct eti_fill *fill, const struct et_value *v, const char *path)
{
    struct eti_network network;
    struct eti_arena arena;
    eti_arena_init(&arena, fill->cx, 4 << 10);
    et_status status =
        eti_network_read(fill, &arena, v, eti_value_get(fill->beside, "blocks"),
                         !fill->beside, path, &network);
    eti_arena_release(&arena);
    return status;
}

et_status
eti_check_items(const struct eti_fill *fill, const struct et_option *row,
                const struct et_value *v, const char *path)
{
    char text[48], at[ETI_PATH_BYTES];
    int i = 0;
    if (row->kind == ET_KIND_LAYER)
        return check_layers(fill, v, path);
    if (v->type != ET_VALUE_LIST || v->n == 0) {
        snprintf(text, sizeof text, "list of %ss", et_kind_word(row->kind));
        eti_bad_value(fill, v, path, NULL, text);
        return ET_OK;
    }
    for (const struct et_value *item = v->first; item; item = item->next) {
        snprintf(text, sizeof text, "%d", i++);
        ET_TRY(check_item(fill, row, item, eti_path_join(at, path, text)));
    }
    return ET_OK;
}

/* ---- lists ---- */

static bool
has_part(const struct et_parts *parts, const char *name)
{
    for (int i = 0; i < parts->n; i++)
        if (parts->v[i].component && strcmp(parts->v[i].component->name, name) == 0)
            return true;
    return false;
}

/* Appends the parts V names; those it names wrongly have no component. */
static et_status
fill_all(const struct eti_fill *fill, const struct et_option *row,
         struct et_parts *parts, const struct et_value *v, const char *path)
{
    bool by_name = row->flags & ET_OPT_BY_NAME;
    bool is_single = !by_name && v->type != ET_VALUE_LIST;
    int i = 0;
    for (const struct et_value *c = is_single ? v : v->first; c; c = c->next, i++) {
        struct et_part *part = &parts->v[parts->n++];
        char number[16], at[ETI_PATH_BYTES];
        snprintf(number, sizeof number, "%d", i);
        struct et_place place = eti_value_key_place(c);
        if (is_single)
            return eti_fill_part(fill, row, part, c, path);
        if (by_name && v->type == ET_VALUE_MAP)
            ET_TRY(fill_named(fill, row, part, c->key, &place, c,
                              eti_path_join(at, path, c->key)));
        else if (by_name)
            ET_TRY(fill_item(fill, row, part, c, eti_path_join(at, path, number)));
        else
            ET_TRY(eti_fill_part(fill, row, part, c, eti_path_join(at, path, number)));
    }
    return ET_OK;
}

/* The parts to keep: defaults (where the row keeps them) that the user does not name,
 * then the user's, but for those without a component, which are reported. */
static void
join(const struct et_option *row, struct et_parts *old, const struct et_parts *given,
     struct et_parts *now)
{
    for (int i = 0; i < old->n; i++)
        if (row->flags & ET_OPT_KEEP && !has_part(given, old->v[i].component->name)) {
            now->v[now->n++] = old->v[i];
            old->v[i] = (struct et_part){0};
        }
    for (int i = 0; i < given->n; i++)
        if (given->v[i].component)
            now->v[now->n++] = given->v[i];
}

et_status
eti_fill_parts(const struct eti_fill *fill, const struct et_option *row,
               struct et_parts *parts, const struct et_value *v, const char *path)
{
    bool by_name = row->flags & ET_OPT_BY_NAME;
    if (by_name && v->type != ET_VALUE_MAP && v->type != ET_VALUE_LIST) {
        eti_bad_value(fill, v, path, NULL, "mapping from names to options");
        return ET_OK;
    }
    struct et_parts given = {0}, now = {0};
    ET_TRY(eti_own(fill->cx, sizeof *given.v * (size_t)(v->n + 1), &given.v));
    et_status status =
        eti_own(fill->cx, sizeof *now.v * (size_t)(v->n + 1 + parts->n), &now.v);
    if (status == ET_OK)
        status = fill_all(fill, row, &given, v, path);
    if (status != ET_OK) {
        eti_disown(now.v);
        eti_option_release(row, &given);
        return status;
    }
    join(row, parts, &given, &now);
    eti_disown(given.v);
    eti_option_release(row, parts);
    *parts = now;
    return ET_OK;
}
