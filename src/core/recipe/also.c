/* SPDX-License-Identifier: Apache-2.0 */
/* also.c: other names of options: those of PyTorch and others, where ours differ.
 *
 * A key with such a name is renamed in the tree, before anything is read from it, so
 * that all who come later (origins, the recipe as it is written down, a resumed run)
 * know our name alone. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/recipe/options.h"

/* The next of the names at *NAMES, N bytes of it, with its mark in *MARK; NULL behind
 * the last. */
static const char *
next_name(const char **names, size_t *n, char *mark)
{
    const char *s = *names ? *names + strspn(*names, " ") : "";
    if (!*s)
        return NULL;
    *mark = *s == '!' || *s == '~' ? *s : '\0';
    s += *mark != '\0';
    *n = strcspn(s, " ");
    *names = s + *n;
    return s;
}

bool
eti_option_has_name(const struct et_option *row, const char *name, char *mark)
{
    const char *names = row->also, *s;
    size_t n;
    while ((s = next_name(&names, &n, mark)))
        if (strlen(name) == n && memcmp(s, name, n) == 0)
            return true;
    return false;
}

const struct et_option *
eti_option_also(const struct et_option *table, const char *name, char *mark)
{
    for (; table && table->name; table++)
        if (eti_option_has_name(table, name, mark))
            return table;
    return NULL;
}

bool
eti_is_other_name(const char *key, const char *name)
{
    const struct et_registry *all = et_registry_core();
    const struct et_component *c;
    char mark;
    for (int kind = 0; kind < ET_KIND_COUNT; kind++)
        for (int i = 0; (c = all->get(all, (enum et_kind)kind, i)); i++) {
            const struct et_option *row = eti_option_find(c->options, name);
            if (row && eti_option_has_name(row, key, &mark) && !mark)
                return true;
        }
    return false;
}

const char *
et_option_other_names(const struct et_option *row, char *buf, size_t size)
{
    if (!row || !buf)
        return NULL;
    const char *names = row->also, *s;
    size_t n, used = 0;
    char mark;
    buf[0] = '\0';
    while ((s = next_name(&names, &n, &mark)))
        if (mark != '~' && used < size)
            used +=
                (size_t)snprintf(buf + used, size - used, "%s%.*s%s", used ? ", " : "",
                                 (int)n, s, mark == '!' ? ", its opposite" : "");
    return buf;
}

void
eti_names_add(struct eti_names *names, const struct et_option *table)
{
    for (; table && table->name; table++) {
        const char *also = table->also, *s = table->name;
        size_t n = strlen(s);
        for (char mark = '\0'; s; s = next_name(&also, &n, &mark)) {
            if (mark == '~' || names->n == ETI_NAMES ||
                names->used + n >= sizeof names->text)
                continue;
            char *copy = names->text + names->used;
            snprintf(copy, n + 1, "%s", s);
            names->v[names->n++] = copy;
            names->used += n + 1;
        }
    }
}

/* ---- keys of a tree ---- */

/* The tree is the loader's, as its arena is; what fills options sees it as const. */
static struct et_value *
own(const struct et_value *v)
{
    return (struct et_value *)v;
}

/* Gives V, the value of another name of ROW, the name of ROW; MARK: '!' is its
 * opposite. What is no yes or no stays, to be refused. */
static void
rename_key(struct et_value *v, const struct et_option *row, char mark)
{
    v->key = row->name;
    if (mark == '!' && v->type == ET_VALUE_BOOL) {
        v->b = !v->b;
        v->text = v->b ? "true" : "false";
    }
}

/* The row of the N TARGETS that KEY is another name of. */
static const struct et_option *
find_also(const struct eti_target *targets, int n, const char *key, char *mark)
{
    const struct et_option *row = NULL;
    for (int i = 0; i < n && !row; i++)
        if (eti_option_find(targets[i].table, key))
            return NULL;
    for (int i = 0; i < n && !row; i++)
        row = eti_option_also(targets[i].table, key, mark);
    return row;
}

/* Another value than V in MAPPING whose key is a name of ROW; NULL: only V's is. */
static struct et_value *
find_twin(const struct et_value *mapping, const struct et_option *row,
          const struct et_value *v)
{
    char mark;
    for (struct et_value *c = mapping->first; c; c = c->next)
        if (c != v && (strcmp(c->key, row->name) == 0 ||
                       (eti_option_has_name(row, c->key, &mark) && mark != '~')))
            return c;
    return NULL;
}

/* Where the key of V is, for a message: "4:9", and whose text that is unless it is that
 * of LIKE. */
static const char *
place_text(const struct et_value *v, const struct et_value *like, char *buf,
           size_t size)
{
    struct et_place at = eti_value_key_place(v);
    bool is_near = v->source == like->source;
    const char *file = !is_near && at.file ? at.file : "";
    snprintf(buf, size, "%s%s%d:%d", file, *file ? ":" : "", at.line, at.column);
    return buf;
}

static void
refuse_twin(const struct eti_fill *fill, const struct et_value *v,
            const struct et_value *twin, const struct et_option *row, const char *path)
{
    char place[256];
    struct et_place at = eti_value_key_place(v);
    et_diagnostics_add(fill->errors, ET_E_DUPLICATE, &at, path, NULL,
                       "'%s' is another name of '%s', which '%s' sets at %s", v->key,
                       row->name, twin->key, place_text(twin, v, place, sizeof place));
}

void
eti_rename_keys(const struct eti_fill *fill, const struct eti_target *targets, int n,
                const struct et_value *mapping, const char *path)
{
    struct et_value *next;
    for (struct et_value *v = mapping->type == ET_VALUE_MAP ? mapping->first : NULL; v;
         v = next) {
        char mark;
        const struct et_option *row = find_also(targets, n, v->key, &mark);
        next = v->next;
        if (!row || mark == '~')
            continue;
        struct et_value *twin = find_twin(mapping, row, v);
        if (twin && twin->source == v->source) {
            refuse_twin(fill, v, twin, row, path);
        } else if (twin && twin->source->order > v->source->order) {
            eti_value_remove(own(mapping), v);
        } else {
            if (twin) {
                next = twin == next ? twin->next : next;
                eti_value_remove(own(mapping), twin);
            }
            rename_key(v, row, mark);
        }
    }
}

const struct et_option *
eti_rename_key(const struct et_option *table, struct et_value *v)
{
    char mark;
    const struct et_option *row = eti_option_find(table, v->key);
    if (row)
        return row;
    row = eti_option_also(table, v->key, &mark);
    if (!row || mark == '~')
        return NULL;
    rename_key(v, row, mark);
    return row;
}
