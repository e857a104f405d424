/* SPDX-License-Identifier: Apache-2.0 */
/* sketch_algorithms.c: algorithms on, off, and elsewhere in the order. What is turned
 * off is remembered with its lines and its place, as long as the sketch lives. */
#include "config.h"

#include "core/compose/sketch_impl.h"

#include <stdio.h>
#include <string.h>

#include "core/recipe/edit.h"

/* An algorithm that was turned off. */
struct eti_taken {
    char *name;
    char *lines;  /* of its entry, as they stood */
    char *left;   /* comments that stayed in their place; "" = none */
    size_t at;    /* where they stood, or it did */
    char *value;  /* in flow style */
    char *before; /* the algorithm in front of it; NULL: it was the first */
};

static et_status
copy_text(struct et_ctx *cx, const char *text, char **out)
{
    return eti_copy_bytes(cx, text, strlen(text), out);
}

static void
free_taken(struct et_ctx *cx, struct eti_taken *t)
{
    et_free(cx, t->name);
    et_free(cx, t->lines);
    et_free(cx, t->left);
    et_free(cx, t->value);
    et_free(cx, t->before);
}

void
eti_sketch_forget_taken(struct eti_sketch *d)
{
    for (int i = 0; i < d->n_taken; i++)
        free_taken(d->cx, &d->taken[i]);
    d->n_taken = 0;
}

void
eti_sketch_shift_taken(struct eti_sketch *d, size_t at, size_t n_old, size_t n_now)
{
    for (int i = 0; i < d->n_taken; i++)
        if (d->taken[i].at >= at + n_old)
            d->taken[i].at = d->taken[i].at - n_old + n_now;
}

static const struct et_part *
find_part(const struct et_recipe *recipe, const char *name)
{
    for (int i = 0; recipe && i < recipe->algorithms.n; i++) {
        const struct et_part *part = &recipe->algorithms.v[i];
        if (part->component && strcmp(part->component->name, name) == 0)
            return part;
    }
    return NULL;
}

bool
eti_sketch_is_on(const struct eti_sketch *d, const char *name)
{
    const struct et_part *part = find_part(d->recipe ? d->recipe : d->last, name);
    return part && !part->off;
}

/* The algorithms of TEXT itself, in order: the place of NAME, and who stands before
 * it. -1: it is not there. */
static int
find_in_text(struct eti_sketch *d, const char *text, const char *name,
             char before[ETI_PATH_BYTES], struct eti_text *value, int *n)
{
    static const struct eti_source source = {.origin = ETI_ORIGIN_RECIPE};
    struct et_diagnostics errors = {0};
    struct eti_arena arena;
    struct et_value *root = NULL;
    int i = 0, found = -1;
    eti_arena_init(&arena, d->cx, 16 << 10);
    if (eti_yaml_parse(&arena, text, strlen(text), &source, &eti_yaml_limits, &errors,
                       &root) != ET_OK)
        et_error_clear(d->cx);
    struct et_value *all = eti_value_get(root, "algorithms");
    const struct et_value *it = all ? eti_path_child(all, name) : NULL;
    before[0] = '\0';
    for (const struct et_value *c = all ? all->first : NULL; c; c = c->next, i++) {
        if (c == it || (it && !c->key && c->first == it)) {
            found = i;
            if (value)
                eti_text_add_value(value, it->type == ET_VALUE_STRING ? c : it);
        } else if (found < 0) {
            const char *key = c->key                       ? c->key
                              : c->type == ET_VALUE_STRING ? c->text
                              : c->first && c->first->key  ? c->first->key
                                                           : "";
            snprintf(before, ETI_PATH_BYTES, "%s", key);
        }
    }
    *n = i;
    eti_arena_release(&arena);
    return found;
}

static struct eti_taken *
find_taken(struct eti_sketch *d, const char *name)
{
    for (int i = 0; i < d->n_taken; i++)
        if (strcmp(d->taken[i].name, name) == 0)
            return &d->taken[i];
    return NULL;
}

/* Keeps what the entry NAME was, in the place of what was kept of it before. */
static et_status
take(struct eti_sketch *d, const char *name, const char *now,
     const struct eti_change *change)
{
    char before[ETI_PATH_BYTES];
    struct eti_text value = {.cx = d->cx};
    struct eti_taken t = {0};
    int n;
    ET_TRY(eti_sketch_room(d->cx, &d->taken, d->n_taken, &d->size_taken,
                           sizeof *d->taken));
    find_in_text(d, d->text, name, before, &value, &n);
    et_status status = value.status;
    t.value = value.text;
    if (status == ET_OK)
        status = copy_text(d->cx, name, &t.name);
    if (status == ET_OK)
        status = eti_copy_bytes(d->cx, d->text + change->at, change->removed, &t.lines);
    if (status == ET_OK)
        status = eti_copy_bytes(d->cx, now + change->at, change->added, &t.left);
    if (status == ET_OK && before[0])
        status = copy_text(d->cx, before, &t.before);
    t.at = change->at;
    struct eti_taken *old = find_taken(d, name);
    struct eti_taken go = status != ET_OK ? t : old ? *old : (struct eti_taken){0};
    if (status == ET_OK)
        *(old ? old : &d->taken[d->n_taken++]) = t;
    free_taken(d->cx, &go);
    return status;
}

static et_status
turn_off(struct eti_sketch *d, const char *name, char **out)
{
    char path[ETI_PATH_BYTES];
    struct eti_change change;
    struct eti_edit edit = {
        .kind = ETI_EDIT_REMOVE,
        .path = eti_path_join(path, "algorithms", name),
        .is_recipe = true,
    };
    et_status status = eti_sketch_edited(d, d->text, &edit, out, &change);
    if (status == ET_OK) {
        status = take(d, name, *out, &change);
        if (status != ET_OK) {
            et_free(d->cx, *out);
            *out = NULL;
        }
        return status;
    }
    if (status != ET_ENOENT)
        return status;
    et_error_clear(d->cx); /* a file that the recipe includes has it */
    edit.kind = ETI_EDIT_SET;
    edit.value = "false";
    return eti_sketch_edited(d, d->text, &edit, out, NULL);
}

/* The lines where they stood, in the place of the comments that had stayed: right, if
 * taking them out again would give this text, and the same one stands before them. */
static et_status
put_back(struct eti_sketch *d, const struct eti_taken *t, const struct eti_edit *edit,
         char **out)
{
    size_t n_left = strlen(t->left);
    struct eti_text now = {.cx = d->cx};
    struct eti_edit back = *edit;
    char *again = NULL, before[ETI_PATH_BYTES];
    int n;
    *out = NULL;
    if (t->at + n_left > d->n || memcmp(d->text + t->at, t->left, n_left) != 0)
        return ET_OK;
    eti_text_add(&now, "%.*s%s%s", (int)t->at, d->text, t->lines,
                 d->text + t->at + n_left);
    ET_TRY(now.status);
    back.kind = ETI_EDIT_REMOVE;
    et_status status = eti_sketch_edited(d, now.text, &back, &again, NULL);
    bool is_right = status == ET_OK && strcmp(again, d->text) == 0 &&
                    find_in_text(d, now.text, t->name, before, NULL, &n) >= 0 &&
                    strcmp(before, t->before ? t->before : "") == 0;
    if (is_right)
        *out = now.text;
    else
        et_free(d->cx, now.text);
    et_free(d->cx, again);
    et_error_clear(d->cx);
    return status == ET_ENOMEM ? status : ET_OK;
}

static et_status
turn_on(struct eti_sketch *d, const char *name, char **out)
{
    char path[ETI_PATH_BYTES], before[ETI_PATH_BYTES];
    int n;
    const struct eti_taken *t = find_taken(d, name);
    struct eti_edit edit = {
        .kind = ETI_EDIT_INSERT,
        .path = eti_path_join(path, "algorithms", name),
        .index = -1,
        .is_recipe = true,
    };
    if (find_in_text(d, d->text, name, before, NULL, &n) >= 0) { /* `ema: false` */
        edit.kind = ETI_EDIT_SET;
        edit.value = "{}";
        return eti_sketch_edited(d, d->text, &edit, out, NULL);
    }
    if (!t)
        return eti_sketch_edited(d, d->text, &edit, out, NULL);
    if (t->before) {
        int i = find_in_text(d, d->text, t->before, before, NULL, &n);
        edit.index = i < 0 ? -1 : i + 1;
    } else {
        edit.index = 0;
    }
    edit.value = t->value;
    ET_TRY(put_back(d, t, &edit, out));
    if (*out)
        return ET_OK;
    if (!*t->left) {
        edit.lines = t->lines;
        et_status status = eti_sketch_edited(d, d->text, &edit, out, NULL);
        if (status != ET_ENOTSUP)
            return status;
        et_error_clear(d->cx); /* it stands elsewhere now */
        edit.lines = NULL;
    }
    return eti_sketch_edited(d, d->text, &edit, out, NULL);
}

et_status
eti_sketch_toggle(struct eti_sketch *d, const char *name)
{
    char *now, what[128];
    bool is_on = eti_sketch_is_on(d, name);
    ET_TRY(is_on ? turn_off(d, name, &now) : turn_on(d, name, &now));
    snprintf(what, sizeof what, "%.60s %s", name, is_on ? "off" : "on");
    return eti_sketch_commit(d, &now, what);
}

et_status
eti_sketch_move(struct eti_sketch *d, const char *name, int by)
{
    char path[ETI_PATH_BYTES], before[ETI_PATH_BYTES], what[128];
    int n, i = find_in_text(d, d->text, name, before, NULL, &n);
    if (i < 0)
        return ET_FAIL(d->cx, ET_ENOENT, "%s is not in the recipe", name);
    if (i + by < 0 || i + by >= n)
        return ET_FAIL(d->cx, ET_ENOENT, "%s is the %s already", name,
                       by < 0 ? "first" : "last");
    const struct eti_edit edit = {
        .kind = ETI_EDIT_MOVE,
        .path = eti_path_join(path, "algorithms", name),
        .index = i + by,
        .is_recipe = true,
    };
    snprintf(what, sizeof what, "%.60s moved %s", name, by < 0 ? "up" : "down");
    char *now;
    ET_TRY(eti_sketch_edited(d, d->text, &edit, &now, NULL));
    return eti_sketch_commit(d, &now, what);
}
