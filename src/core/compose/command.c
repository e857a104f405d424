/* SPDX-License-Identifier: Apache-2.0 */
/* command.c: see command.h.
 *
 * The overrides come from comparing the two trees as they are written; whether they say
 * what the text says is then tried: the file with them must give the same recipe. */
#include "config.h"

#include "core/compose/command.h"

#include <stdio.h>
#include <string.h>

struct differ {
    struct eti_command *out;
    struct eti_sketch *d;
    struct et_override override[ETI_COMMAND_ARGUMENTS];
    int n;
    et_status status;
};

/* ---- arguments ---- */

/* "--alg" and the like stand in front of TEXT, which is taken. */
static void
add(struct differ *x, enum et_override_kind kind, struct eti_text *t)
{
    static const char *const flags[] = {
        [ET_OVERRIDE_UNSET] = "--unset",
        [ET_OVERRIDE_ALG] = "--alg",
        [ET_OVERRIDE_NO_ALG] = "--no-alg",
    };
    struct eti_command *c = x->out;
    struct eti_text flag = {.cx = c->cx};
    if (x->status == ET_OK)
        x->status = t->status;
    if (x->status == ET_OK && c->n + 2 > ETI_COMMAND_ARGUMENTS)
        x->status = ET_FAIL(c->cx, ET_ENOTSUP,
                            "so many differences are not for a command line: save it");
    if (x->status == ET_OK && kind != ET_OVERRIDE_SET) {
        eti_text_add(&flag, "%s", flags[kind]);
        x->status = flag.status;
        c->argument[c->n++] = flag.text;
    }
    if (x->status != ET_OK) {
        et_free(c->cx, t->text);
        return;
    }
    c->argument[c->n++] = t->text;
    x->override[x->n++] = (struct et_override){kind, t->text};
}

static void
add_set(struct differ *x, const char *path, const struct et_value *v)
{
    struct eti_text t = {.cx = x->out->cx};
    eti_text_add(&t, "%s=", path);
    eti_text_add_value(&t, v);
    add(x, ET_OVERRIDE_SET, &t);
}

static void
add_flag(struct differ *x, enum et_override_kind kind, const char *text)
{
    struct eti_text t = {.cx = x->out->cx};
    eti_text_add(&t, "%s", text);
    add(x, kind, &t);
}

/* ---- differences ---- */

static bool
is_same(struct differ *x, const struct et_value *a, const struct et_value *b)
{
    struct eti_text s = {.cx = x->out->cx}, t = {.cx = x->out->cx};
    eti_text_add_value(&s, a);
    eti_text_add_value(&t, b);
    if (s.status != ET_OK || t.status != ET_OK)
        x->status = ET_ENOMEM;
    bool same = x->status == ET_OK && strcmp(s.text, t.text) == 0;
    et_free(x->out->cx, s.text);
    et_free(x->out->cx, t.text);
    return same;
}

static bool
same_name(const struct et_value *a, const struct et_value *b)
{
    const struct et_value *m = eti_value_get(a, "name"), *n = eti_value_get(b, "name");
    return (!m && !n) ||
           (m && n && m->text && n->text && strcmp(m->text, n->text) == 0);
}

static void compare(struct differ *x, const struct et_value *old,
                    const struct et_value *now, const char *path);

/* A value that the file lacks: its leaves, or itself where it has none. */
static void
add_new(struct differ *x, const char *path, const struct et_value *v)
{
    char below[ETI_PATH_BYTES];
    bool is_map = v->type == ET_VALUE_MAP && v->n > 0;
    if (!is_map)
        add_set(x, path, v);
    for (const struct et_value *c = is_map ? v->first : NULL; c; c = c->next)
        add_new(x, eti_path_join(below, path, c->key), c);
}

static void
compare_value(struct differ *x, const struct et_value *old, const struct et_value *now,
              const char *path)
{
    bool are_maps = old->type == ET_VALUE_MAP && now->type == ET_VALUE_MAP;
    if (is_same(x, old, now))
        return;
    if (are_maps && same_name(old, now))
        compare(x, old, now, path);
    else
        add_set(x, path, now);
}

static void
compare(struct differ *x, const struct et_value *old, const struct et_value *now,
        const char *path)
{
    char below[ETI_PATH_BYTES];
    for (const struct et_value *c = now->first; c; c = c->next) {
        const struct et_value *was = eti_value_get(old, c->key);
        eti_path_join(below, path, c->key);
        if (was)
            compare_value(x, was, c, below);
        else
            add_new(x, below, c);
    }
    for (const struct et_value *c = old->first; c; c = c->next)
        if (!eti_value_get(now, c->key))
            add_flag(x, ET_OVERRIDE_UNSET, eti_path_join(below, path, c->key));
}

/* ---- algorithms: their order counts ---- */

static bool
is_off(const struct et_value *v)
{
    return v->type == ET_VALUE_BOOL && !v->b;
}

static void
add_algorithm(struct differ *x, const struct et_value *v)
{
    char path[ETI_PATH_BYTES];
    eti_path_join(path, "algorithms", v->key);
    if (is_off(v)) {
        add_flag(x, ET_OVERRIDE_NO_ALG, v->key);
    } else if (v->type == ET_VALUE_MAP && v->n > 0) {
        add_new(x, path, v);
    } else {
        add_flag(x, ET_OVERRIDE_ALG, v->key);
    }
}

/* Of both lists the beginning that has the same names in the same order, but for those
 * that have gone; what comes behind it is named anew. */
static void
compare_algorithms(struct differ *x, const struct et_value *old,
                   const struct et_value *now)
{
    const struct et_value *a = old ? old->first : NULL, *b = now ? now->first : NULL;
    char path[ETI_PATH_BYTES];
    while (a) {
        bool stays = eti_value_get(now, a->key) != NULL;
        if (stays && (!b || strcmp(a->key, b->key) != 0))
            break;
        if (stays) {
            compare_value(x, a, b, eti_path_join(path, "algorithms", a->key));
            b = b->next;
        } else if (!is_off(a)) {
            add_flag(x, ET_OVERRIDE_NO_ALG, a->key);
        }
        a = a->next;
    }
    for (; a; a = a->next)
        if (eti_value_get(now, a->key))
            add_flag(x, ET_OVERRIDE_UNSET, eti_path_join(path, "algorithms", a->key));
        else if (!is_off(a))
            add_flag(x, ET_OVERRIDE_NO_ALG, a->key);
    for (; b; b = b->next)
        add_algorithm(x, b);
}

/* ---- the trial ---- */

static void
add_line(void *data, const struct eti_line *line)
{
    struct eti_text *t = data;
    /* An algorithm that is named but off is the same as none. */
    bool is_off = line->part && line->value && strcmp(line->value, "false") == 0;
    bool is_empty = line->row->type == ET_OPT_PARTS && !line->part; /* a list of none */
    if (line->value && !is_off && !is_empty)
        eti_text_add(t, "%s = %s\n", line->path, line->value);
    else if (line->part && !is_off)
        eti_text_add(t, "%s\n", line->path);
}

/* Does the file with the overrides mean what the text means? */
static et_status
try_overrides(struct differ *x)
{
    struct et_diagnostics errors = {0};
    struct eti_sketch *d = x->d;
    struct et_recipe *recipe;
    struct eti_text a = {.cx = d->cx}, b = {.cx = d->cx};
    ET_TRY(eti_recipe_sketch(d->cx, d->saved, d->n_saved, d->name, eti_sketch_place(d),
                             x->override, x->n, d->env, &recipe, &errors));
    et_status status = ET_OK;
    bool is_same = recipe && errors.total == 0;
    if (is_same)
        status = eti_recipe_walk(d->cx, recipe, add_line, &a);
    if (is_same && status == ET_OK)
        status = eti_recipe_walk(d->cx, d->recipe, add_line, &b);
    if (status == ET_OK)
        status = a.status != ET_OK ? a.status : b.status;
    if (status == ET_OK && !(is_same && strcmp(a.text, b.text) == 0))
        status = ET_FAIL(d->cx, ET_ENOTSUP,
                         "overrides cannot say what has changed: save it first");
    et_free(d->cx, a.text);
    et_free(d->cx, b.text);
    et_recipe_free(&recipe);
    return status;
}

/* ---- the command ---- */

/* The trees of both texts, with their algorithms' list as a mapping where it is one. */
static et_status
find_overrides(struct differ *x)
{
    static const struct eti_source source = {.origin = ETI_ORIGIN_RECIPE};
    struct et_diagnostics errors = {0};
    struct eti_sketch *d = x->d;
    struct eti_arena arena;
    struct et_value *old, *now = NULL;
    eti_arena_init(&arena, d->cx, 16 << 10);
    et_status status = eti_yaml_parse(&arena, d->saved, d->n_saved, &source,
                                      &eti_yaml_limits, &errors, &old);
    if (status == ET_OK)
        status = eti_yaml_parse(&arena, d->text, d->n, &source, &eti_yaml_limits,
                                &errors, &now);
    bool are_maps =
        old && now && old->type == ET_VALUE_MAP && now->type == ET_VALUE_MAP;
    if (status == ET_OK && !are_maps)
        status = ET_FAIL(d->cx, ET_ENOTSUP, "the file has faults: save it first");
    if (status == ET_OK) {
        struct et_value *a = eti_value_get(old, "algorithms");
        struct et_value *b = eti_value_get(now, "algorithms");
        bool in_order = (!a || a->type == ET_VALUE_MAP || a->type == ET_VALUE_NULL) &&
                        (!b || b->type == ET_VALUE_MAP || b->type == ET_VALUE_NULL);
        if (in_order && a)
            eti_value_remove(old, a);
        if (in_order && b)
            eti_value_remove(now, b);
        compare(x, old, now, "");
        if (in_order)
            compare_algorithms(x, a, b);
        status = x->status;
    }
    eti_arena_release(&arena);
    return status;
}

et_status
eti_command_new(struct eti_sketch *d, struct eti_command *out)
{
    struct differ x = {.out = out, .d = d};
    struct eti_text path = {.cx = d->cx};
    *out = (struct eti_command){.cx = d->cx};
    if (!eti_sketch_is_valid(d))
        return ET_FAIL(d->cx, ET_EINVAL, "the recipe has faults: %s",
                       d->errors.n ? d->errors.v[0].message : "it is empty");
    if (!d->path || !d->saved)
        return ET_FAIL(d->cx, ET_EINVAL, "it has no file yet: w saves it");
    eti_text_add(&path, "%s", d->path);
    ET_TRY(path.status);
    out->argument[out->n++] = path.text;
    if (!eti_sketch_is_changed(d))
        return ET_OK;
    ET_TRY(find_overrides(&x));
    return try_overrides(&x);
}

void
eti_command_release(struct eti_command *command)
{
    for (int i = 0; i < command->n; i++)
        et_free(command->cx, command->argument[i]);
    command->n = 0;
}

et_status
eti_command_text(const struct eti_command *command, const char *verb, char **out)
{
    struct eti_text t = {.cx = command->cx};
    eti_text_add(&t, "etude %s", verb);
    for (int i = 0; i < command->n; i++) {
        const char *a = command->argument[i];
        static const char plain[] =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
            "0123456789_-+=.,/:@%^";
        if (*a && !a[strspn(a, plain)]) {
            eti_text_add(&t, " %s", a);
            continue;
        }
        eti_text_add(&t, " '");
        for (; *a; a++)
            if (*a == '\'')
                eti_text_add(&t, "'\\''");
            else
                eti_text_add(&t, "%c", *a);
        eti_text_add(&t, "'");
    }
    *out = t.text;
    if (t.status != ET_OK) {
        et_free(command->cx, t.text);
        *out = NULL;
    }
    return t.status;
}
