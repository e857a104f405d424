/* SPDX-License-Identifier: Apache-2.0 */
/* network_names.c: names that a network gives to values, and who reads these. */
#include "config.h"

#include <string.h>

#include "core/recipe/network_impl.h"

void
eti_network_unknown(const struct eti_network_reading *r, const struct et_place *at,
                    const char *path, const char *what, const char *name,
                    const char *const *names, int n)
{
    const char *near = et_nearest(name, names, n);
    et_diagnostics_add(
        r->fill->errors, ET_E_UNKNOWN, at, path, NULL, "unknown %s '%s'%s%s%s", what,
        name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* ---- values by their names ---- */

static const struct et_value *
find_later(const struct eti_network_scope *s, const char *name)
{
    for (; s; s = s->outer)
        for (const struct et_value *item = s->list->first; item; item = item->next) {
            const struct et_value *as = eti_value_get(item, "as");
            if (as && as->type == ET_VALUE_STRING && strcmp(as->text, name) == 0)
                return as;
        }
    return NULL;
}

/* The values called NAME: another is told that was to be one of them. */
static void
mark_used(const struct eti_network_scope *s, const char *name)
{
    for (; s; s = s->outer)
        for (int i = 0; i < s->net->n; i++) {
            struct eti_network_item *item = &s->net->item[i];
            item->is_used = item->is_used || (item->as && strcmp(item->as, name) == 0);
        }
}

/* No item before has the name of REF: it comes later, or is near to another, or is a
 * field of the samples, which only the data can say. */
static void
look_elsewhere(const struct eti_network_reading *r, const struct eti_network_scope *s,
               struct eti_network_ref *ref, const char *path)
{
    const struct eti_network_scope *inner = s;
    const char *names[ETI_NETWORK_NAMES];
    struct et_place at = eti_value_place(ref->at);
    const struct et_value *later = find_later(s, ref->name);
    int n = 0;
    if (later) {
        et_diagnostics_add(r->fill->errors, ET_E_CONFLICT, &at, path,
                           "put this behind it: a layer reads what came before",
                           "'%s' has its name later, in line %d", ref->name,
                           later->line);
        return;
    }
    for (; s; s = s->outer)
        for (int i = 0; i < s->net->n && n < ETI_NETWORK_NAMES; i++)
            if (s->net->item[i].as)
                names[n++] = s->net->item[i].as;
    const char *near = et_nearest(ref->name, names, n);
    if (!near)
        return;
    eti_network_unknown(r, &at, path, "name", ref->name, names, n);
    mark_used(inner, near);
}

static void
resolve(const struct eti_network_reading *r, const struct eti_network_scope *s,
        struct eti_network_ref *ref, const char *path)
{
    int up = 0;
    for (const struct eti_network_scope *at = s; at; at = at->outer, up++)
        for (int i = at->net->n - 1; i >= 0; i--) {
            struct eti_network_item *item = &at->net->item[i];
            if (!item->as || strcmp(item->as, ref->name) != 0)
                continue;
            item->is_used = true;
            ref->up = up;
            ref->item = i;
            return;
        }
    ref->item = -1;
    look_elsewhere(r, s, ref, path);
}

/* A name, or a list of names. */
et_status
eti_network_read_refs(const struct eti_network_reading *r,
                      const struct eti_network_scope *s, const struct et_value *v,
                      const char *path, struct eti_network_refs *out)
{
    const struct et_value *name = v->type == ET_VALUE_LIST ? v->first : v;
    const int n = v->type == ET_VALUE_LIST ? v->n : 1;
    if (n < 1 || n > ETI_NETWORK_JOINED) {
        eti_bad_value(r->fill, v, path, NULL, "name, or list of 1 to 16 names");
        return ET_OK;
    }
    out->v = eti_arena_alloc(r->arena, sizeof *out->v * (size_t)n);
    if (!out->v)
        return ET_ENOMEM;
    for (int i = 0; i < n; i++, name = name->next) {
        if (name->type != ET_VALUE_STRING) {
            eti_bad_value(r->fill, name, path, NULL, "name of a value");
            continue;
        }
        struct eti_network_ref *ref = &out->v[out->n++];
        *ref = (struct eti_network_ref){.name = name->text, .at = name};
        resolve(r, s, ref, path);
    }
    return ET_OK;
}

bool
eti_network_is_name(const char *text)
{
    return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")];
}

void
eti_network_read_as(const struct eti_network_reading *r,
                    const struct eti_network_scope *s, const struct et_value *v,
                    const char *path, struct eti_network_item *out)
{
    struct et_place at = eti_value_place(v);
    if (v->type != ET_VALUE_STRING || !eti_network_is_name(v->text)) {
        eti_bad_value(r->fill, v, path, NULL, "name of letters, digits, _ and -");
        return;
    }
    for (int i = 0; i < s->net->n; i++)
        if (s->net->item[i].as && strcmp(s->net->item[i].as, v->text) == 0) {
            et_diagnostics_add(r->fill->errors, ET_E_DUPLICATE, &at, path, NULL,
                               "'%s' is the name of another value already, in line %d",
                               v->text, s->net->item[i].as_at->line);
            return;
        }
    out->as = v->text;
    out->as_at = v;
}

void
eti_network_tell_unused(const struct eti_network_reading *r,
                        const struct eti_network *net, const char *path)
{
    for (int i = 0; i < net->n; i++) {
        const struct eti_network_item *item = &net->item[i];
        if (!item->as || item->is_used)
            continue;
        struct et_place at = eti_value_place(item->as_at);
        et_diagnostics_add(r->fill->errors, ET_E_CONFLICT, &at, path,
                           "leave as: out, or read it with from, add, mul or concat",
                           "nothing reads '%s'", item->as);
    }
}
