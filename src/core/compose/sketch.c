/* SPDX-License-Identifier: Apache-2.0 */
/* sketch.c: see sketch.h: the text and its meaning, undo, and what can be done to it.
 *
 * A step of undo is a stretch of bytes and what took its place. Steps behind AT_STEP
 * have been undone. */
#include "config.h"

#include "core/compose/sketch_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assemble/assemble.h"
#include "core/recipe/edit.h"

enum { MOST_STEPS = 1000 };

struct eti_undo_step {
    size_t at;
    char *old, *now; /* bytes, and a zero */
    size_t n_old, n_now;
    char what[128];
};

/* ---- texts ---- */

et_status
eti_copy_bytes(struct et_ctx *cx, const char *bytes, size_t n, char **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, n + 1, &block));
    if (n > 0)
        memcpy(block, bytes, n);
    *out = block;
    return ET_OK;
}

static et_status
copy_text(struct et_ctx *cx, const char *text, char **out)
{
    return eti_copy_bytes(cx, text, strlen(text), out);
}

et_status
eti_sketch_room(struct et_ctx *cx, void *list, int n, int *room, size_t size)
{
    void **items = list, *block;
    if (n < *room)
        return ET_OK;
    int now = *room ? 2 * *room : 16;
    ET_TRY(et_alloc(cx, size * (size_t)now, &block));
    if (n > 0)
        memcpy(block, *items, size * (size_t)n);
    et_free(cx, *items);
    *items = block;
    *room = now;
    return ET_OK;
}

/* ---- what the text means ---- */

/* What the tables cannot say of one algorithm. */
static void
check_algorithms(struct eti_sketch *d, const struct et_recipe *recipe)
{
    for (int i = 0; i < recipe->algorithms.n; i++) {
        const struct et_part *part = &recipe->algorithms.v[i];
        if (part->off || !part->component || !part->value)
            continue;
        const struct et_algorithm_class *c = ETI_CLASS(algorithm, part->component);
        if (!c->check || c->check(d->cx, part->options) == ET_OK)
            continue;
        struct et_place at = eti_value_place(part->value);
        char path[ETI_PATH_BYTES];
        et_diagnostics_add(&d->errors, ET_E_CONFLICT, &at,
                           eti_path_join(path, "algorithms", part->component->name),
                           NULL, "%s", et_error_get(d->cx)->message);
        et_error_clear(d->cx);
    }
}

static void
check(struct eti_sketch *d, const struct et_recipe *recipe)
{
    int64_t ranks = recipe->launch.nproc;
    bool has_ranks = ranks != ET_INT_UNSET && ranks > 0;
    check_algorithms(d, recipe);
    if (d->errors.total == 0 &&
        et_recipe_check_train(d->cx, recipe, has_ranks ? ranks : 1, &d->errors) !=
            ET_OK)
        et_error_clear(d->cx);
    if (d->errors.total == 0 &&
        eti_recipe_check_available(d->cx, recipe, &d->errors) != ET_OK)
        et_error_clear(d->cx);
}

et_status
eti_sketch_read(struct eti_sketch *d)
{
    struct et_recipe *recipe;
    bool was_valid = eti_sketch_is_valid(d);
    d->changes++;
    memset(&d->errors, 0, sizeof d->errors);
    et_status status =
        eti_recipe_sketch(d->cx, d->text, d->n, d->name, eti_sketch_place(d), NULL, 0,
                          d->env, &recipe, &d->errors);
    et_error_clear(d->cx);
    if (status == ET_ENOMEM)
        return ET_FAIL(d->cx, status, "no memory to read %s", d->name);
    if (was_valid) {
        et_recipe_free(&d->last);
        d->last = d->recipe;
        d->recipe = NULL;
    }
    et_recipe_free(&d->recipe);
    d->recipe = recipe;
    if (recipe)
        check(d, recipe);
    if (eti_sketch_is_valid(d))
        et_recipe_free(&d->last);
    return ET_OK;
}

bool
eti_sketch_is_valid(const struct eti_sketch *d)
{
    return d->recipe && d->errors.total == 0;
}

const struct et_recipe *
eti_sketch_shown(const struct eti_sketch *d)
{
    return eti_sketch_is_valid(d) || !d->last ? d->recipe : d->last;
}

bool
eti_sketch_is_changed(const struct eti_sketch *d)
{
    if (!d->saved)
        return d->n > 0;
    return d->n != d->n_saved || memcmp(d->text, d->saved, d->n) != 0;
}

/* ---- undo ---- */

static void
free_step(struct et_ctx *cx, struct eti_undo_step *s)
{
    et_free(cx, s->old);
    et_free(cx, s->now);
}

static void
forget(struct eti_sketch *d)
{
    for (int i = 0; i < d->n_steps; i++)
        free_step(d->cx, &d->step[i]);
    eti_sketch_forget_taken(d);
    d->n_steps = d->at_step = 0;
}

/* The stretch in which the text and NOW differ. */
static et_status
make_step(struct eti_sketch *d, const char *now, size_t n, struct eti_undo_step *out)
{
    size_t same = 0, tail = 0, least = n < d->n ? n : d->n;
    while (same < least && d->text[same] == now[same])
        same++;
    while (tail < least - same && d->text[d->n - 1 - tail] == now[n - 1 - tail])
        tail++;
    *out = (struct eti_undo_step){
        .at = same,
        .n_old = d->n - same - tail,
        .n_now = n - same - tail,
    };
    ET_TRY(eti_copy_bytes(d->cx, d->text + same, out->n_old, &out->old));
    return eti_copy_bytes(d->cx, now + same, out->n_now, &out->now);
}

static void
push(struct eti_sketch *d, const struct eti_undo_step *step)
{
    while (d->n_steps > d->at_step) /* what was undone is gone */
        free_step(d->cx, &d->step[--d->n_steps]);
    if (d->n_steps == MOST_STEPS) {
        free_step(d->cx, &d->step[0]);
        memmove(d->step, d->step + 1, sizeof *d->step * (MOST_STEPS - 1));
        d->n_steps--;
    }
    d->step[d->n_steps++] = *step;
    d->at_step = d->n_steps;
}

/* NOW (taken) becomes the text. */
static et_status
put_text(struct eti_sketch *d, char *now)
{
    et_free(d->cx, d->text);
    d->text = now;
    d->n = strlen(now);
    return eti_sketch_read(d);
}

et_status
eti_sketch_commit(struct eti_sketch *d, char **now, const char *what)
{
    struct eti_undo_step step = {0};
    et_status status =
        eti_sketch_room(d->cx, &d->step, d->n_steps, &d->size_steps, sizeof *d->step);
    if (status == ET_OK)
        status = make_step(d, *now, strlen(*now), &step);
    if (status != ET_OK) {
        free_step(d->cx, &step);
        et_free(d->cx, *now);
        *now = NULL;
        return status;
    }
    snprintf(step.what, sizeof step.what, "%s", what);
    eti_sketch_shift_taken(d, step.at, step.n_old, step.n_now);
    if (step.n_old + step.n_now > 0)
        push(d, &step);
    else
        free_step(d->cx, &step);
    char *text = *now;
    *now = NULL;
    return put_text(d, text);
}

/* GO, N_GO bytes at STEP's place, give way to COME. */
static et_status
exchange(struct eti_sketch *d, const struct eti_undo_step *step, size_t n_go,
         const char *come, size_t n_come)
{
    void *block;
    ET_TRY(et_alloc(d->cx, d->n - n_go + n_come + 1, &block));
    char *now = block;
    memcpy(now, d->text, step->at);
    memcpy(now + step->at, come, n_come);
    memcpy(now + step->at + n_come, d->text + step->at + n_go, d->n - step->at - n_go);
    eti_sketch_shift_taken(d, step->at, n_go, n_come);
    return put_text(d, now);
}

et_status
eti_sketch_undo(struct eti_sketch *d, const char **what)
{
    *what = NULL;
    if (d->at_step == 0)
        return ET_OK;
    const struct eti_undo_step *s = &d->step[d->at_step - 1];
    ET_TRY(exchange(d, s, s->n_now, s->old, s->n_old));
    d->at_step--;
    *what = s->what;
    return ET_OK;
}

et_status
eti_sketch_redo(struct eti_sketch *d, const char **what)
{
    *what = NULL;
    if (d->at_step == d->n_steps)
        return ET_OK;
    const struct eti_undo_step *s = &d->step[d->at_step];
    ET_TRY(exchange(d, s, s->n_old, s->now, s->n_now));
    d->at_step++;
    *what = s->what;
    return ET_OK;
}

/* ---- changes ---- */

et_status
eti_sketch_edited(struct eti_sketch *d, const char *text, const struct eti_edit *edit,
                  char **out, struct eti_change *change)
{
    struct et_diagnostics errors = {0};
    return eti_yaml_edit(d->cx, text, strlen(text), d->name, edit, &errors, out,
                         change);
}

static et_status
apply(struct eti_sketch *d, const struct eti_edit *edit, const char *what)
{
    char *now;
    ET_TRY(eti_sketch_edited(d, d->text, edit, &now, NULL));
    return eti_sketch_commit(d, &now, what);
}

et_status
eti_sketch_set(struct eti_sketch *d, const char *path, const char *value)
{
    char what[128];
    const struct eti_edit edit = {
        .kind = ETI_EDIT_SET,
        .path = path,
        .value = value,
        .is_recipe = true,
    };
    snprintf(what, sizeof what, "%.60s %.60s", path, value);
    return apply(d, &edit, what);
}

et_status
eti_sketch_default(struct eti_sketch *d, const char *path)
{
    char what[128];
    const struct eti_edit edit = {
        .kind = ETI_EDIT_REMOVE,
        .path = path,
        .is_recipe = true,
    };
    snprintf(what, sizeof what, "%.100s: default", path);
    return apply(d, &edit, what);
}

et_status
eti_sketch_put_line(struct eti_sketch *d, int line, const char *text)
{
    char what[32];
    struct eti_text now = {.cx = d->cx};
    const char *at = d->text;
    for (int i = 1; i < line && at; i++) {
        at = strchr(at, '\n');
        at += at != NULL;
    }
    if (!at)
        return ET_FAIL(d->cx, ET_ENOENT, "there is no line %d", line);
    eti_text_add(&now, "%.*s%s%s", (int)(at - d->text), d->text, text,
                 at + strcspn(at, "\n"));
    ET_TRY(now.status);
    snprintf(what, sizeof what, "line %d", line);
    return eti_sketch_commit(d, &now.text, what);
}

/* ---- another component ---- */

struct options_of {
    struct eti_sketch *d;
    const char *path;
    enum et_kind kind;
    const struct et_component *component;
    const struct et_option *extra; /* keys that stand beside a component's own */
    char gone[32][ETI_PATH_BYTES]; /* keys to take away */
    int n;
};

/* The value at PATH of TEXT, read into ARENA; NULL: TEXT has no such path. */
static et_status
read_at(struct eti_arena *arena, const char *text, const char *path,
        struct et_value **out)
{
    static const struct eti_source source = {.origin = ETI_ORIGIN_RECIPE};
    struct et_diagnostics errors = {0};
    char keys[ETI_PATH_BYTES];
    ET_TRY(eti_yaml_parse(arena, text, strlen(text), &source, &eti_yaml_limits, &errors,
                          out));
    snprintf(keys, sizeof keys, "%s", path);
    char *rest = keys;
    for (char *key; *out && (key = strtok_r(rest, ".", &rest)) != NULL;)
        *out = eti_path_child(*out, key);
    return ET_OK;
}

/* Where the comment of the N bytes of LINE begins; N: it has none. */
static size_t
comment_at(const char *line, size_t n)
{
    char quote = '\0';
    for (size_t i = 0; i < n; i++) {
        bool begins = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
        if (quote)
            quote = line[i] == quote ? '\0' : quote;
        else if (line[i] == '#' && begins)
            return i;
        else if ((line[i] == '"' || line[i] == '\'') &&
                 strchr(" \t:,[{-", i ? line[i - 1] : ' '))
            quote = line[i];
    }
    return n;
}

/* Takes the comments behind what stands in lines FIRST to LAST of TEXT away, in place:
 * they are about what goes. Lines of comment alone stay. */
static void
drop_comments(char *text, int first, int last)
{
    char *at = text;
    for (int line = 1; line <= last; line++) {
        size_t n = strcspn(at, "\n"), end = comment_at(at, n);
        bool has_more = at[n] == '\n';
        while (end > 0 && end < n && (at[end - 1] == ' ' || at[end - 1] == '\t'))
            end--;
        if (line >= first && end > 0 && end < n) {
            memmove(at + end, at + n, strlen(at + n) + 1);
            n = end;
        }
        if (!has_more)
            return;
        at += n + 1;
    }
}

static int
last_line(const struct et_value *v)
{
    int last = v->line > v->key_line ? v->line : v->key_line;
    bool has_parts = v->type == ET_VALUE_MAP || v->type == ET_VALUE_LIST;
    for (const struct et_value *c = has_parts ? v->first : NULL; c; c = c->next)
        if (last_line(c) > last)
            last = last_line(c);
    return last;
}

/* The same of the entry at PATH. */
static et_status
drop_comments_of(struct et_ctx *cx, char *text, const char *path)
{
    struct eti_arena arena;
    struct et_value *v = NULL;
    eti_arena_init(&arena, cx, 16 << 10);
    et_status status = read_at(&arena, text, path, &v);
    if (status == ET_OK && v)
        drop_comments(text, v->key_line > 0 ? v->key_line : v->line, last_line(v));
    eti_arena_release(&arena);
    return status;
}

/* The keys in the text below PATH that COMPONENT lacks; and where the data of another
 * dataset are. */
static et_status
find_foreign(struct options_of *o, const char *text)
{
    struct eti_arena arena;
    struct et_value *v = NULL;
    eti_arena_init(&arena, o->d->cx, 16 << 10);
    et_status status = read_at(&arena, text, o->path, &v);
    bool is_map = v && v->type == ET_VALUE_MAP;
    for (const struct et_value *c = is_map ? v->first : NULL; c && o->n < 32;
         c = c->next)
        if (strcmp(c->key, "name") != 0 &&
            ((o->kind == ET_KIND_DATASET && strcmp(c->key, "path") == 0) ||
             (!eti_option_find(o->component->options, c->key) &&
              !eti_option_find(o->extra, c->key))))
            eti_path_join(o->gone[o->n++], o->path, c->key);
    eti_arena_release(&arena);
    return status;
}

/* Is a name alone at PATH: `optimizer: adamw`? */
static et_status
is_name_alone(struct eti_sketch *d, const char *path, bool *out)
{
    struct eti_arena arena;
    struct et_value *v = NULL;
    eti_arena_init(&arena, d->cx, 16 << 10);
    et_status status = read_at(&arena, d->text, path, &v);
    *out = v && v->type == ET_VALUE_STRING;
    eti_arena_release(&arena);
    return status;
}

static et_status
remove_foreign(struct options_of *o, char **text)
{
    ET_TRY(find_foreign(o, *text));
    for (int i = 0; i < o->n; i++) {
        char *now;
        const struct eti_edit edit = {
            .kind = ETI_EDIT_REMOVE,
            .path = o->gone[i],
            .is_recipe = true,
        };
        ET_TRY(drop_comments_of(o->d->cx, *text, o->gone[i]));
        ET_TRY(eti_sketch_edited(o->d, *text, &edit, &now, NULL));
        et_free(o->d->cx, *text);
        *text = now;
    }
    return ET_OK;
}

et_status
eti_sketch_choose(struct eti_sketch *d, const char *path, enum et_kind kind,
                  const char *name)
{
    char place[ETI_PATH_BYTES], top[ETI_PATH_BYTES], what[128], *now;
    snprintf(top, sizeof top, "%.*s", (int)strcspn(path, "."), path);
    const struct et_option *row = eti_option_find(et_recipe_table, top);
    struct options_of o = {
        .d = d,
        .path = path,
        .kind = kind,
        .component = et_registry_find(d->env ? d->env->registry : NULL, kind, name),
        .extra = row ? row->sub : NULL,
    };
    bool is_alone;
    ET_TRY(is_name_alone(d, path, &is_alone));
    const struct eti_edit edit = {
        .kind = ETI_EDIT_SET,
        .path = is_alone ? path : eti_path_join(place, path, "name"),
        .value = name,
        .is_recipe = true,
    };
    ET_TRY(eti_sketch_edited(d, d->text, &edit, &now, NULL));
    et_status status = drop_comments_of(d->cx, now, edit.path);
    if (status == ET_OK && o.component)
        status = remove_foreign(&o, &now);
    if (status != ET_OK) {
        et_free(d->cx, now);
        return status;
    }
    snprintf(what, sizeof what, "%.60s %.60s", path, name);
    return eti_sketch_commit(d, &now, what);
}

/* ---- life ---- */

et_status
eti_sketch_take(struct eti_sketch *d, char *text, char *name, char *path)
{
    forget(d);
    et_recipe_free(&d->recipe);
    et_recipe_free(&d->last);
    et_free(d->cx, d->saved);
    et_free(d->cx, d->name);
    et_free(d->cx, d->path);
    et_free(d->cx, d->place);
    d->place = NULL;
    d->saved = NULL;
    d->n_saved = 0;
    d->name = name;
    d->path = path;
    return put_text(d, text);
}

et_status
eti_sketch_begin(struct eti_sketch *d, const char *text, size_t n, const char *name)
{
    char *copy, *called = NULL;
    ET_TRY(eti_copy_bytes(d->cx, text, n, &copy));
    et_status status = copy_text(d->cx, name, &called);
    if (status == ET_OK)
        return eti_sketch_take(d, copy, called, NULL);
    et_free(d->cx, copy);
    return status;
}

const char *
eti_sketch_place(const struct eti_sketch *d)
{
    return d->path ? d->path : d->place;
}

et_status
eti_sketch_put_place(struct eti_sketch *d, const char *place)
{
    char *copy;
    ET_TRY(copy_text(d->cx, place, &copy));
    et_free(d->cx, d->place);
    d->place = copy;
    return eti_sketch_read(d);
}

et_status
eti_sketch_new(struct et_ctx *cx, const struct et_recipe_env *env,
               struct eti_sketch **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct eti_sketch *d = block;
    d->cx = cx;
    d->env = env;
    et_status status = eti_sketch_begin(d, "", 0, "new recipe");
    if (status == ET_OK)
        *out = d;
    else
        eti_sketch_free(&d);
    return status;
}

void
eti_sketch_free(struct eti_sketch **draft)
{
    struct eti_sketch *d = *draft;
    *draft = NULL;
    if (!d)
        return;
    forget(d);
    et_recipe_free(&d->recipe);
    et_recipe_free(&d->last);
    et_free(d->cx, d->step);
    et_free(d->cx, d->taken);
    et_free(d->cx, d->saved);
    et_free(d->cx, d->text);
    et_free(d->cx, d->name);
    et_free(d->cx, d->path);
    et_free(d->cx, d->place);
    et_free(d->cx, d);
}
