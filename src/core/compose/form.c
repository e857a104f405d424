/* SPDX-License-Identifier: Apache-2.0 */
/* form.c: see form.h. The rows are those of eti_recipe_walk. */
#include "config.h"

#include "core/compose/form.h"

#include <stdio.h>
#include <string.h>

enum { MOST_DEPTH = 8 };

struct builder {
    struct eti_form *form;
    int section[MOST_DEPTH]; /* the open one of each depth */
};

static const char *
keep(struct eti_form *f, const char *text)
{
    const char *copy = eti_arena_text(&f->arena, text, strlen(text));
    if (!copy)
        f->status = ET_ENOMEM;
    return copy ? copy : "";
}

static struct eti_form_row *
new_row(struct eti_form *f)
{
    if (f->n == f->size && f->status == ET_OK) {
        int size = f->size ? 2 * f->size : 64;
        struct eti_form_row *now =
            eti_arena_alloc(&f->arena, sizeof *now * (size_t)size);
        if (now && f->n > 0)
            memcpy(now, f->row, sizeof *now * (size_t)f->n);
        if (!now)
            f->status = ET_ENOMEM;
        f->row = now ? now : f->row;
        f->size = now ? size : f->size;
    }
    return f->status == ET_OK ? &f->row[f->n++] : NULL;
}

/* A value as the recipe writes it: 5.0e-4 stays what it is, and so do paths, which are
 * relative to the recipe. */
static const char *
as_written(struct eti_form *f, const struct et_option *row, const struct et_value *at,
           const char *value)
{
    bool is_scalar = at && at->text && at->type != ET_VALUE_MAP &&
                     at->type != ET_VALUE_LIST && at->type != ET_VALUE_NULL;
    bool is_path = row && row->type == ET_OPT_PATH;
    return keep(f, is_scalar && (at->type != ET_VALUE_STRING || is_path) ? at->text
                                                                         : value);
}

static bool
is_written(const struct et_value *at)
{
    return at && at->source->origin != ETI_ORIGIN_DEFAULT;
}

static void
add_line(void *data, const struct eti_line *line)
{
    struct builder *b = data;
    struct eti_form *f = b->form;
    if (line->top->flags & ET_OPT_BY_NAME && line->top->kind == ET_KIND_ALGORITHM)
        return;
    struct eti_form_row *r = new_row(f);
    if (!r)
        return;
    int depth = line->depth < MOST_DEPTH ? line->depth : MOST_DEPTH - 1;
    *r = (struct eti_form_row){
        .path = keep(f, line->path),
        .label = keep(f, line->key),
        .value = line->value ? as_written(f, line->row, line->at, line->value) : "",
        .row = line->row,
        .part = line->part,
        .depth = depth,
        .parent = depth > 0 ? b->section[depth - 1] : -1,
        .is_section = !line->value,
        .is_set = is_written(line->at) || line->chosen,
    };
    if (is_written(line->at) && line->at->source->origin == ETI_ORIGIN_RECIPE) {
        r->line = line->at->line;
        r->column = line->at->column;
    }
    for (int i = depth; i < MOST_DEPTH; i++)
        b->section[i] = f->n - 1;
}

/* Are the items of ROW parameter groups? All of these have the same name. */
static bool
lists_groups(const struct eti_form_row *r)
{
    return r->row && r->row->type == ET_OPT_PARTS && r->row->kind == ET_KIND_GROUP;
}

/* What a section that is shut says: names (of parameter groups the patterns), else what
 * is set in it. */
static void
sum_up(struct eti_form *f, int section)
{
    struct eti_text t = {.cx = f->arena.cx};
    bool has_names = false, is_groups = lists_groups(&f->row[section]);
    for (int i = section + 1; i < f->n && f->row[i].depth > f->row[section].depth;
         i++) {
        const struct eti_form_row *r = &f->row[i];
        bool is_own = r->parent == section;
        bool is_name = is_groups ? strcmp(r->label, "match") == 0
                                 : r->part && (is_own || strcmp(r->label, "name") == 0);
        bool is_off = strcmp(r->value, "false") == 0;
        if (is_name && !is_off)
            eti_text_add(&t, "%s%s", t.used ? ", " : "",
                         is_groups || strcmp(r->label, "name") == 0 ? r->value
                                                                    : r->label);
        has_names = has_names || is_name;
        for (int depth = r->depth; !is_groups && lists_groups(r) && i + 1 < f->n &&
                                   f->row[i + 1].depth > depth;)
            i++; /* another section says which they are */
    }
    for (int i = section + 1; i < f->n && !has_names && f->row[i].parent >= section;
         i++) {
        const struct eti_form_row *r = &f->row[i];
        if (r->parent == section && r->is_set && !r->is_section)
            eti_text_add(&t, "%s%s %s", t.used ? ", " : "", r->label, r->value);
    }
    if (t.status != ET_OK)
        f->status = t.status;
    f->row[section].value = keep(f, t.text ? t.text : "");
    et_free(f->arena.cx, t.text);
}

et_status
eti_form_of_recipe(struct et_ctx *cx, const struct et_recipe *recipe,
                   struct eti_form *out)
{
    struct builder b = {.form = out};
    *out = (struct eti_form){0};
    eti_arena_init(&out->arena, cx, 16 << 10);
    ET_TRY(eti_recipe_walk(cx, recipe, add_line, &b));
    for (int i = 0; i < out->n; i++)
        if (out->row[i].is_section)
            sum_up(out, i);
    return out->status;
}

et_status
eti_form_of_algorithm(struct et_ctx *cx, const struct et_recipe *recipe,
                      const struct et_component *c, struct eti_form *out)
{
    const struct et_part *part = NULL;
    *out = (struct eti_form){0};
    eti_arena_init(&out->arena, cx, 4 << 10);
    for (int i = 0; recipe && i < recipe->algorithms.n; i++)
        if (recipe->algorithms.v[i].component == c && !recipe->algorithms.v[i].off)
            part = &recipe->algorithms.v[i];
    for (const struct et_option *o = c->options; o && o->name; o++) {
        char path[ETI_PATH_BYTES], below[ETI_PATH_BYTES], *text = NULL;
        eti_path_join(below, eti_path_join(path, "algorithms", c->name), o->name);
        if (part)
            ET_TRY(et_option_text(cx, o, part->options, &text));
        struct eti_form_row *r = new_row(out);
        const struct et_value *at = part ? eti_value_get(part->value, o->name) : NULL;
        if (r)
            *r = (struct eti_form_row){
                .path = keep(out, below),
                .label = o->name,
                .value = text     ? as_written(out, o, at, text)
                         : o->def ? o->def
                                  : "null",
                .row = o,
                .parent = -1,
                .is_set = at != NULL,
                .line = at ? at->line : 0,
                .column = at ? at->column : 0,
            };
        et_free(cx, text);
    }
    return out->status;
}

void
eti_form_release(struct eti_form *form)
{
    if (form->arena.cx)
        eti_arena_release(&form->arena);
    *form = (struct eti_form){0};
}

/* ---- one value ---- */

static et_status
try_name(struct et_ctx *cx, const struct et_registry *registry, enum et_kind kind,
         const char *name)
{
    enum { MOST = 256 };
    const char *names[MOST];
    int n = 0;
    const struct et_component *c;
    const struct et_registry *r = registry ? registry : et_registry_core();
    if (et_registry_find(r, kind, name))
        return ET_OK;
    while (n < MOST && (c = r->get(r, kind, n)) != NULL)
        names[n++] = c->name;
    const char *near = et_nearest(name, names, n);
    return ET_FAIL(cx, ET_EINVAL, "no %s is called '%s'%s%s%s", et_kind_word(kind),
                   name, near ? ", did you mean '" : "", near ? near : "",
                   near ? "'?" : "");
}

et_status
eti_form_try(struct et_ctx *cx, const struct et_registry *registry,
             const struct eti_form_row *row, const char *value)
{
    enum { FIELD = 256 }; /* bytes of the largest field */
    struct et_option one[2] = {*row->row};
    void *scratch;
    if (row->part)
        return try_name(cx, registry, row->row->kind, value);
    size_t bytes = one[0].sub_size > FIELD ? one[0].sub_size : FIELD;
    one[0].offset = 0;
    ET_TRY(et_alloc(cx, bytes, &scratch));
    et_status status = et_options_init(cx, one, scratch);
    if (status == ET_OK)
        status = et_options_set(cx, one, scratch, one[0].name, value);
    et_options_release(one, scratch);
    et_free(cx, scratch);
    return status;
}
