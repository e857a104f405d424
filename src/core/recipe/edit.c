/* edit.c: see edit.h.
 *
 * The bytes to replace come from the places the reader noted. How a text may be written
 * is the writer's choice, so the result is read again: it must mean what the old text
 * meant, with that one value changed, or there is no result. */
#include "config.h"

#include "core/recipe/edit.h"

#include <stdio.h>
#include <string.h>

#include "core/recipe/options.h"

/* What is edited, and the replacement: bytes FROM to TO become the text. */
struct edit {
    struct et_ctx *cx;
    struct eti_arena arena;
    struct et_diagnostics *errors;
    const char *text;
    size_t n;
    struct et_value *root, *value;
    size_t from, to;
    struct eti_text now;
};

static et_status
read_tree(struct edit *e, const char *text, size_t n, const char *name,
          enum eti_origin origin, struct et_value **out)
{
    struct eti_source *source = eti_arena_alloc(&e->arena, sizeof *source);
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

/* ---- where ---- */

/* The bytes between FROM and the end of its line. */
static size_t
rest_of_line(const struct edit *e, size_t from)
{
    const char *end = memchr(e->text + from, '\n', e->n - from);
    return end ? (size_t)(end - e->text) - from : e->n - from;
}

static bool
is_flow(const struct edit *e, const struct et_value *v)
{
    return v->start < e->n && (e->text[v->start] == '{' || e->text[v->start] == '[');
}

/* One past the last byte of V: a mapping or list in block style ends with its last
 * value, before the comments that follow it. */
static size_t
end_of(const struct edit *e, const struct et_value *v)
{
    const struct et_value *last = v->first;
    if (!last || is_flow(e, v))
        return v->end;
    while (last->next)
        last = last->next;
    return end_of(e, last);
}

/* "a.b" -> "a: {b: VALUE}", as far as PATH goes. */
static void
add_entry(struct edit *e, const char *path)
{
    const char *dot = strchr(path, '.');
    char key[ETI_PATH_BYTES];
    snprintf(key, sizeof key, "%.*s", dot ? (int)(dot - path) : (int)strlen(path),
             path);
    eti_text_add_scalar(&e->now, key);
    eti_text_add(&e->now, ": ");
    if (dot) {
        eti_text_add(&e->now, "{");
        add_entry(e, dot + 1);
        eti_text_add(&e->now, "}");
    } else {
        eti_text_add_value(&e->now, e->value);
    }
}

/* Bytes of white space before the keys of block mapping V. */
static int
indent_of(const struct et_value *v)
{
    return v->first && v->first->key_column > 0 ? v->first->key_column - 1 : 0;
}

/* A new entry, behind all others of V. */
static void
insert(struct edit *e, const struct et_value *v, const char *path)
{
    if (v->type == ET_VALUE_MAP && is_flow(e, v)) {
        e->from = e->to = v->end - 1; /* the bracket */
        eti_text_add(&e->now, v->n ? ", " : "");
        add_entry(e, path);
        return;
    }
    bool is_empty = v->type != ET_VALUE_MAP;
    size_t end = is_empty ? e->n : end_of(e, v);
    bool at_line_start = end == 0 || e->text[end - 1] == '\n';
    if (!at_line_start)
        end += rest_of_line(e, end);
    e->from = e->to = end;
    eti_text_add(&e->now, "%s%*s", at_line_start ? "" : "\n",
                 is_empty ? 0 : indent_of(v), "");
    add_entry(e, path);
    if (at_line_start)
        eti_text_add(&e->now, "\n");
}

/* V itself; PATH is what is left of the path below it, NULL where it is the place. */
static void
replace(struct edit *e, const struct et_value *v, const char *path)
{
    bool is_written = v->end > v->start;
    e->from = v->start;
    e->to = end_of(e, v);
    if (!is_written) { /* "key:" and nothing: behind the colon */
        const char *colon = memchr(e->text + v->start, ':', e->n - v->start);
        e->from = e->to = colon ? (size_t)(colon - e->text) + 1 : e->n;
        eti_text_add(&e->now, " ");
    }
    if (path) {
        eti_text_add(&e->now, "{");
        add_entry(e, path);
        eti_text_add(&e->now, "}");
    } else {
        eti_text_add_value(&e->now, e->value);
    }
}

/* ---- the same on the tree ---- */

static et_status
set_in_tree(struct edit *e, struct et_value *v, const char *path)
{
    size_t n = strcspn(path, ".");
    char *key = eti_arena_text(&e->arena, path, n);
    if (!key)
        return ET_ENOMEM;
    if (v->type == ET_VALUE_NULL) {
        const struct et_value none = {.type = ET_VALUE_MAP};
        eti_value_become(v, &none);
    }
    struct et_value *child = eti_value_get(v, key);
    if (!child) {
        child = eti_value_new(&e->arena, ET_VALUE_NULL, v->source, "");
        if (!child)
            return ET_ENOMEM;
        eti_value_append(v, key, child);
    }
    if (path[n])
        return set_in_tree(e, child, path + n + 1);
    eti_value_become(child, e->value);
    return ET_OK;
}

/* ---- finding the place ---- */

static et_status
find(struct edit *e, const char *path)
{
    const struct et_value *v = e->root;
    for (;;) {
        size_t n = strcspn(path, ".");
        char key[ETI_PATH_BYTES], quote[64];
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        if (v->type != ET_VALUE_MAP && !(v == e->root && v->type == ET_VALUE_NULL)) {
            struct et_place at = eti_value_place(v);
            et_diagnostics_add(e->errors, ET_E_VALUE, &at, NULL, NULL,
                               "'%s' cannot be set in %s", key,
                               eti_value_quote(v, quote, sizeof quote));
            return ET_FAIL(e->cx, ET_EINVAL, "'%s' cannot be set in %s", key, quote);
        }
        const struct et_value *child = eti_value_get(v, key);
        if (!child) {
            insert(e, v, path);
            return ET_OK;
        }
        bool is_last = !path[n];
        if (is_last || child->type == ET_VALUE_NULL) {
            replace(e, child, is_last ? NULL : path + n + 1);
            return ET_OK;
        }
        v = child;
        path += n + 1;
    }
}

/* Does TEXT mean what the tree, in which the value is set by now, says? */
static et_status
check(struct edit *e, const char *text, const char *name)
{
    struct et_diagnostics errors = {0}, *those = e->errors;
    struct eti_text want = {.cx = e->cx}, got = {.cx = e->cx};
    struct et_value *root;
    e->errors = &errors;
    et_status status = read_tree(e, text, strlen(text), name, ETI_ORIGIN_RECIPE, &root);
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
    return ET_FAIL(e->cx, ET_ENOTSUP,
                   "%s is written in a way that only an editor can change", name);
}

et_status
eti_yaml_set(struct et_ctx *cx, const char *text, size_t n, const char *name,
             const char *path, const char *value, struct et_diagnostics *errors,
             char **out)
{
    struct edit e = {
        .cx = cx,
        .errors = errors,
        .text = text,
        .n = n,
        .now = {.cx = cx},
    };
    struct eti_text result = {.cx = cx};
    *out = NULL;
    eti_arena_init(&e.arena, cx, 16 << 10);
    et_status status = read_tree(&e, text, n, name, ETI_ORIGIN_RECIPE, &e.root);
    if (status == ET_OK)
        status = read_tree(&e, value, strlen(value), "value", ETI_ORIGIN_COMMAND_LINE,
                           &e.value);
    if (status == ET_OK)
        status = find(&e, path);
    if (status == ET_OK)
        status = set_in_tree(&e, e.root, path);
    if (status == ET_OK && (status = e.now.status) == ET_OK) {
        eti_text_add(&result, "%.*s%s%.*s", (int)e.from, text, e.now.text,
                     (int)(n - e.to), text + e.to);
        status = result.status;
    }
    if (status == ET_OK)
        status = check(&e, result.text, name);
    if (status == ET_OK)
        *out = result.text;
    else
        et_free(cx, result.text);
    et_free(cx, e.now.text);
    eti_arena_release(&e.arena);
    return status;
}
