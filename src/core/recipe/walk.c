/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c: every value of a recipe in the order of its tables; and the two texts made
 * so: the resolved recipe and the list of origins. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/need.h"
#include "core/recipe/recipe.h"
#include "core/sched/placeholder.h"

struct walker {
    struct et_ctx *cx;
    eti_line_fn *fn;
    void *data;
    const struct et_option *top;
    et_status status;
};

/* Where the walk is: what the lines below have in common. */
struct spot {
    const char *path;
    int depth;
    const struct et_value *map;      /* what was written here; NULL = nothing */
    bool is_item;                    /* the next line is the first of a list's item */
    const struct et_option *row;     /* of the next line */
    const struct et_component *part; /* named by it; NULL: it names none */
};

static void walk_row(struct walker *w, const struct et_option *row, const void *options,
                     struct spot *s);
static void walk_table(struct walker *w, const struct et_option *table,
                       const void *options, struct spot *s);

static void
emit(struct walker *w, const struct spot *s, const char *key, const char *value,
     const struct et_value *at, bool chosen)
{
    char path[ETI_PATH_BYTES];
    struct eti_line line = {
        .path = eti_path_join(path, s->path, key),
        .key = key,
        .depth = s->depth,
        .is_item = s->is_item,
        .value = value,
        .at = at,
        .chosen = chosen,
        .top = w->top,
        .row = s->row,
        .part = s->part,
    };
    w->fn(w->data, &line);
}

/* The options of PART, then the keys that may stand beside them. A key that is both is
 * its own: labelled_text has a label, as evaluators do. */
static void
walk_options(struct walker *w, const struct et_option *row, const struct et_part *part,
             struct spot *s)
{
    const struct et_option *own = part->component->options;
    walk_table(w, own, part->options, s);
    for (const struct et_option *o = row->sub; o && o->name; o++)
        if (w->status == ET_OK && !eti_option_find(own, o->name))
            walk_row(w, o, part->extra, s);
}

static void
walk_part(struct walker *w, const struct et_option *row, const struct et_part *part,
          struct spot *s)
{
    const struct et_value *name = eti_value_get(s->map, "name");
    struct eti_text t = {.cx = w->cx};
    s->row = row;
    s->part = part->component;
    eti_text_add_scalar(&t, part->component->name);
    if (t.status == ET_OK)
        emit(w, s, "name", t.text, name ? name : s->map, false);
    else
        w->status = t.status;
    et_free(w->cx, t.text);
    s->part = NULL;
    s->depth += s->is_item;
    s->is_item = false;
    walk_options(w, row, part, s);
}

/* `NAME:` and the options below it, `NAME: {}` or `NAME: false`. */
static void
walk_named(struct walker *w, const struct et_option *row, const struct et_part *part,
           struct spot *s)
{
    const char *name = part->component->name;
    const struct et_option *own = part->component->options;
    bool is_empty = !(own && own->name) && !(row->sub && row->sub->name);
    s->row = row;
    s->part = part->component;
    emit(w, s, name, part->off ? "false" : is_empty ? "{}" : NULL, part->value, false);
    if (part->off || is_empty)
        return;
    char path[ETI_PATH_BYTES];
    struct spot below = {
        .path = eti_path_join(path, s->path, name),
        .depth = s->depth + 1 + s->is_item,
        .map = part->value,
    };
    walk_options(w, row, part, &below);
}

static bool
has_twice(const struct et_parts *parts)
{
    for (int i = 0; i < parts->n; i++)
        for (int j = 0; j < i; j++)
            if (parts->v[i].component == parts->v[j].component)
                return true;
    return false;
}

static void
walk_parts(struct walker *w, const struct et_option *row, const struct et_parts *parts,
           const struct spot *s)
{
    bool is_map = row->flags & ET_OPT_BY_NAME && !has_twice(parts);
    for (int i = 0; i < parts->n; i++) {
        const struct et_part *part = &parts->v[i];
        char number[16], path[ETI_PATH_BYTES];
        snprintf(number, sizeof number, "%d", i);
        struct spot item = {
            .path = is_map ? s->path : eti_path_join(path, s->path, number),
            .depth = s->depth,
            .map = part->value,
            .is_item = !is_map,
        };
        if (row->flags & ET_OPT_BY_NAME)
            walk_named(w, row, part, &item);
        else
            walk_part(w, row, part, &item);
    }
}

/* True if ROW's value takes more than a line. */
static bool
is_block(struct walker *w, const struct et_option *row, const void *field)
{
    bool is_brief = false;
    if (row->type == ET_OPT_TABLE && row->flags & ET_OPT_BRIEF)
        w->status = eti_table_is_brief(w->cx, row, field, &is_brief);
    if (row->type == ET_OPT_TABLE)
        return !is_brief && !(row->flags & ET_OPT_FALSE && *(const bool *)field);
    if (row->type == ET_OPT_PART)
        return ((const struct et_part *)field)->component != NULL;
    return row->type == ET_OPT_PARTS && ((const struct et_parts *)field)->n > 0;
}

static void
walk_block(struct walker *w, const struct et_option *row, const void *field,
           struct spot *s)
{
    if (row->type == ET_OPT_TABLE)
        walk_table(w, row->sub, field, s);
    else if (row->type == ET_OPT_PART)
        walk_part(w, row, field, s);
    else
        walk_parts(w, row, field, s);
}

/* Has TEXT been put where the recipe left the choice open: unset, or auto? */
static bool
is_chosen(const struct et_option *row, const char *text)
{
    bool is_plain =
        row->type == ET_OPT_INT || row->type == ET_OPT_ENUM || row->type == ET_OPT_TEXT;
    bool is_open = !row->def || strcmp(row->def, "auto") == 0;
    return is_plain && is_open && strcmp(text, row->def ? row->def : "null") != 0;
}

/* Is AT, what was written for ROW, a formula of how long the run is, or a list with
 * one? */
static bool
is_formula(const struct et_option *row, const struct et_value *at)
{
    bool formula = false;
    if (!at || (row->type != ET_OPT_TIME && row->type != ET_OPT_FLOAT &&
                row->type != ET_OPT_TIMES && row->type != ET_OPT_FLOATS))
        return false;
    for (const struct et_value *v = at->first; v; v = v->next)
        formula |= eti_is_formula(v->text);
    return formula || eti_is_formula(at->text);
}

static void
walk_row(struct walker *w, const struct et_option *row, const void *options,
         struct spot *s)
{
    const struct et_value *at = eti_value_get(s->map, row->name);
    const void *field = eti_option_field(row, options);
    struct eti_text t = {.cx = w->cx};
    s->row = row;
    if (is_block(w, row, field)) {
        char path[ETI_PATH_BYTES];
        emit(w, s, row->name, NULL, at, false);
        struct spot below = {
            .path = eti_path_join(path, s->path, row->name),
            .depth = s->depth + 1,
            .map = at,
        };
        walk_block(w, row, field, &below);
        return;
    }
    if (is_formula(row, at))
        eti_text_add_value(&t,
                           at); /* as it was written: it may come to another value */
    else
        eti_text_add_option(&t, row, options);
    if (t.status == ET_OK)
        emit(w, s, row->name, t.text, at, !at && is_chosen(row, t.text));
    else
        w->status = t.status;
    et_free(w->cx, t.text);
}

static void
walk_table(struct walker *w, const struct et_option *table, const void *options,
           struct spot *s)
{
    for (; table && table->name && w->status == ET_OK; table++) {
        if (s->depth == 0)
            w->top = table;
        walk_row(w, table, options, s);
    }
}

et_status
eti_recipe_walk(struct et_ctx *cx, const struct et_recipe *recipe, eti_line_fn *fn,
                void *data)
{
    struct walker w = {
        .cx = cx,
        .fn = fn,
        .data = data,
    };
    struct spot s = {
        .path = "",
        .map = ((const struct eti_recipe *)recipe)->root,
    };
    walk_table(&w, et_recipe_table, recipe, &s);
    return w.status;
}

/* ---- texts ---- */

const char *
eti_origin_text(const struct et_value *at, char *buf, size_t size)
{
    static const char *const words[] = {
#define WORDS(code, its_words) its_words,
        ETI_ORIGIN_MAP(WORDS)
#undef WORDS
    };
    char name[128];
    if (!at || at->source->origin == ETI_ORIGIN_DEFAULT) {
        snprintf(buf, size, "default");
        return buf;
    }
    const struct eti_source *source = at->source;
    et_visible(name, sizeof name, source->name, strlen(source->name));
    bool is_file = source->origin <= ETI_ORIGIN_RECIPE;
    if (is_file)
        snprintf(buf, size, "%s%s:%d:%d",
                 source->origin == ETI_ORIGIN_INCLUDE ? "include " : "", name, at->line,
                 at->column);
    else
        snprintf(buf, size, "%s %s", words[source->origin], name);
    return buf;
}

static const char *
origin_of(const struct eti_line *line, char *buf, size_t size)
{
    return line->chosen ? "chosen" : eti_origin_text(line->at, buf, size);
}

/* Comments begin in this column where there is room. */
enum { COMMENT_COLUMN = 40 };

static void
add_yaml_line(void *data, const struct eti_line *line)
{
    struct eti_text *t = data;
    size_t before = t->used;
    char origin[192];
    eti_text_add(t, "%*s%s", 2 * line->depth, "", line->is_item ? "- " : "");
    eti_text_add_scalar(t, line->key);
    eti_text_add(t, ":%s%s", line->value ? " " : "", line->value ? line->value : "");
    size_t width = t->used - before;
    if (line->value)
        eti_text_add(t, "%*s  # %s",
                     width < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - width) : 0, "",
                     origin_of(line, origin, sizeof origin));
    eti_text_add(t, "\n");
}

static void
add_origin_line(void *data, const struct eti_line *line)
{
    char origin[192];
    if (line->value)
        eti_text_add(data, "%s = %s  (%s)\n", line->path, line->value,
                     origin_of(line, origin, sizeof origin));
}

static et_status
write(struct et_ctx *cx, const struct et_recipe *recipe, eti_line_fn *fn, char **out)
{
    struct eti_text t = {.cx = cx};
    *out = NULL;
    et_status status = eti_recipe_walk(cx, recipe, fn, &t);
    if (status == ET_OK)
        status = t.status;
    if (status == ET_OK)
        *out = t.text;
    else
        et_free(cx, t.text);
    return status;
}

et_status
et_recipe_resolved(struct et_ctx *cx, const struct et_recipe *recipe, char **out)
{
    ETI_NEED(cx, cx, recipe, out);
    return write(cx, recipe, add_yaml_line, out);
}

et_status
et_recipe_origins(struct et_ctx *cx, const struct et_recipe *recipe, char **out)
{
    ETI_NEED(cx, cx, recipe, out);
    return write(cx, recipe, add_origin_line, out);
}
