/* SPDX-License-Identifier: Apache-2.0 */
/* load.c: the files of a recipe: includes beneath its folder, merged in order; values
 * from the environment, where the user allows it. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/recipe/recipe.h"

struct eti_source *
eti_source_new(struct eti_loader *l, enum eti_origin origin, const char *name)
{
    struct eti_source *s = eti_arena_alloc(l->arena, sizeof *s);
    if (!s || !(s->name = eti_arena_text(l->arena, name, strlen(name))))
        return NULL;
    s->origin = origin;
    s->order = l->orders++;
    return s;
}

/* ---- bytes ---- */

et_status
eti_load_bytes(struct eti_loader *l, int fd, char **text, size_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return ET_EIO;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : ESPIPE; /* a pipe, a device */
        return ET_EIO;
    }
    /* One byte too many tells a file that is too large; its size is said, not read. */
    size_t most = eti_yaml_limits.bytes + 1;
    *size = 0;
    *text = eti_arena_alloc(l->arena, most);
    if (!*text)
        return ET_ENOMEM;
    ssize_t got = 1;
    while (*size < most && (got = read(fd, *text + *size, most - *size)) != 0) {
        if (got < 0 && errno != EINTR)
            return ET_EIO;
        *size += got > 0 ? (size_t)got : 0;
    }
    if (*size == most && (size_t)st.st_size > most)
        *size = (size_t)st.st_size;
    return ET_OK;
}

const char *
eti_read_reason(int code)
{
    switch (code) {
    case ELOOP:
        return "it is a link";
    case ESPIPE:
        return "not a regular file";
    default:
        return strerror(code);
    }
}

/* Opens NAME (relative, no "..") beneath the folder FD, following no link. */
static int
open_beneath(int fd, const char *name)
{
    int at = dup(fd);
    while (at >= 0) {
        const char *slash = strchr(name, '/');
        size_t n = slash ? (size_t)(slash - name) : strlen(name);
        char part[NAME_MAX + 1];
        if (n > NAME_MAX) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        snprintf(part, sizeof part, "%.*s", (int)n, n ? name : ".");
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
        int next = openat(at, n ? part : ".", slash ? flags | O_DIRECTORY : flags);
        int code = errno;
        close(at);
        errno = code;
        at = next;
        if (!slash)
            break;
        name = slash + 1;
    }
    return at;
}

/* ---- values from the environment ---- */

static const char *
find_variable(const struct eti_loader *l, const char *name, size_t n)
{
    for (const char *const *v = l->env->variables; v && *v; v++)
        if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
            return *v + n + 1;
    return NULL;
}

static bool
is_allowed(const struct eti_loader *l, const char *name, size_t n)
{
    for (const char *const *a = l->env->allowed; a && *a; a++)
        if (strncmp(*a, name, n) == 0 && !(*a)[n])
            return true;
    return false;
}

/* Values count as if they stood in the text: a short text may name a long one often. */
static bool
has_room(struct eti_loader *l, const struct et_place *at, const char *value)
{
    size_t most = eti_yaml_limits.bytes, before = l->from_env;
    l->from_env += strlen(value);
    if (before <= most && l->from_env > most)
        et_diagnostics_add(l->errors, ET_E_LIMIT, at, NULL, NULL,
                           "with the values of variables it has more than %zu KiB",
                           most >> 10);
    return l->from_env <= most;
}

/* The text that stands for "${...}" at S, whose closing brace is at END; NULL:
 * refused. */
static const char *
look_up(struct eti_loader *l, const struct et_value *v, const char *s, const char *end)
{
    struct et_place at = eti_value_place(v);
    const char *name = s + strlen("${env:");
    if (strncmp(s, "${env:", strlen("${env:")) != 0) {
        et_diagnostics_add(l->errors, ET_E_ENVIRONMENT, &at, NULL,
                           "write the value, or an include", "%.*s is not known here",
                           (int)(end + 1 - s), s);
        return NULL;
    }
    size_t n = (size_t)(end - name);
    if (!is_allowed(l, name, n)) {
        et_diagnostics_add(l->errors, ET_E_ENVIRONMENT, &at, NULL,
                           "only your own config.yaml can allow it",
                           "environment variable %.*s is not allowed in recipes",
                           (int)n, name);
        return NULL;
    }
    const char *value = find_variable(l, name, n);
    if (!value)
        et_diagnostics_add(l->errors, ET_E_ENVIRONMENT, &at, NULL, NULL,
                           "environment variable %.*s is not set", (int)n, name);
    return value && has_room(l, &at, value) ? value : NULL;
}

static et_status
expand_scalar(struct eti_loader *l, struct et_value *v)
{
    struct eti_text t = {.cx = l->cx};
    const char *s = v->text, *from;
    bool refused = false;
    while ((from = strstr(s, "${")) != NULL && strchr(from, '}')) {
        const char *end = strchr(from, '}');
        const char *value = look_up(l, v, from, end);
        refused = refused || !value;
        eti_text_add(&t, "%.*s%s", (int)(from - s), s, value ? value : "");
        s = end + 1;
    }
    if (s == v->text)
        return ET_OK;
    eti_text_add(&t, "%s", s);
    v->text = t.status == ET_OK ? eti_arena_text(l->arena, t.text, t.used) : NULL;
    et_free(l->cx, t.text);
    if (!v->text)
        return ET_ENOMEM;
    if (refused) /* which is said: it is as if nothing stood there */
        v->type = ET_VALUE_NULL;
    else if (!v->is_quoted)
        eti_value_resolve_plain(v);
    return ET_OK;
}

/* A well-known key is its beginning, then letters, digits and MORE, and is long. Names
 * of files and runs that begin so go on otherwise: hf_bert_base.safetensors. */
static bool
is_secret_value(const char *text)
{
    static const struct {
        const char *start, *more;
    } keys[] = {
        {"ghp_", ""},     {"gho_", ""},   {"github_pat_", "_"},
        {"glpat-", "-_"}, {"xoxb-", "-"}, {"xoxp-", "-"},
        {"AKIA", ""},     {"sk-", "-_"},  {"hf_", ""},
    };
    enum { LEAST = 20 };
    if (strstr(text, "-----BEGIN ") && strstr(text, "PRIVATE KEY"))
        return true;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *c = text + strlen(keys[i].start);
        if (strncmp(text, keys[i].start, strlen(keys[i].start)) != 0 ||
            strlen(text) < LEAST)
            continue;
        while (isalnum((unsigned char)*c) || (*c && strchr(keys[i].more, *c)))
            c++;
        if (!*c)
            return true;
    }
    return false;
}

static et_status
expand(struct eti_loader *l, struct et_value *v)
{
    if (v->type == ET_VALUE_STRING && strstr(v->text, "${"))
        ET_TRY(expand_scalar(l, v));
    for (struct et_value *c = v->first; c; c = c->next)
        ET_TRY(expand(l, c));
    return ET_OK;
}

void
eti_refuse_secrets(struct eti_loader *l, const struct et_value *v, const char *path)
{
    if (v->type == ET_VALUE_STRING && is_secret_value(v->text)) {
        struct et_place at = eti_value_place(v);
        et_diagnostics_add(
            l->errors, ET_E_SECRET, &at, v->key ? v->key : path, NULL,
            "the value looks like a secret; recipes are copied and shown");
    }
    for (const struct et_value *c = v->first; c; c = c->next)
        eti_refuse_secrets(l, c, path);
}

/* ---- one form ---- */

/* The name that a list item of `algorithms` has as `ema` or `{ema: {...}}`; NULL where
 * it is another form, `{name: ema, ...}`. */
static const char *
item_name(const struct et_value *item)
{
    if (item->type == ET_VALUE_STRING)
        return item->text;
    const char *key =
        item->type == ET_VALUE_MAP && item->n == 1 ? item->first->key : NULL;
    return key && strcmp(key, "name") != 0 ? key : NULL;
}

/* Turns the list form of algorithms, callbacks, loggers into the mapping, so that paths
 * and merges see one form. A name that is there twice keeps the list a list. */
static et_status
map_list(struct eti_loader *l, struct et_value *list)
{
    for (const struct et_value *a = list->first; a; a = a->next) {
        const char *name = item_name(a);
        if (!name)
            return ET_OK;
        for (const struct et_value *b = list->first; b != a; b = b->next)
            if (strcmp(item_name(b), name) == 0)
                return ET_OK;
    }
    struct et_value *item = list->first;
    list->type = ET_VALUE_MAP;
    list->first = NULL;
    list->n = 0;
    for (struct et_value *next; item; item = next) {
        next = item->next;
        struct et_value *options = item->first;
        if (item->type == ET_VALUE_STRING) {
            options = eti_value_new(l->arena, ET_VALUE_NULL, item->source, "");
            if (!options)
                return ET_ENOMEM;
            options->line = options->key_line = item->line;
            options->column = options->key_column = item->column;
        }
        eti_value_append(list, item_name(item), options);
    }
    return ET_OK;
}

static et_status
unify(struct eti_loader *l, struct et_value *root)
{
    for (const struct et_option *row = et_recipe_table; row->name; row++) {
        struct et_value *v = eti_value_get(root, row->name);
        if (v && v->type == ET_VALUE_LIST && row->flags & ET_OPT_BY_NAME)
            ET_TRY(map_list(l, v));
    }
    return ET_OK;
}

/* ---- merging ---- */

static bool
same_component(const struct et_value *a, const struct et_value *b)
{
    const struct et_value *x = eti_value_get(a, "name"), *y = eti_value_get(b, "name");
    return !x || !y || !x->text || !y->text || strcmp(x->text, y->text) == 0;
}

void
eti_value_merge(struct et_value *below, struct et_value *above)
{
    for (struct et_value *c = above->first, *next; c; c = next) {
        next = c->next;
        struct et_value *old = eti_value_get(below, c->key);
        if (!old)
            eti_value_append(below, c->key, c);
        else if (old->type == ET_VALUE_MAP && c->type == ET_VALUE_MAP &&
                 same_component(old, c))
            eti_value_merge(old, c);
        else
            eti_value_replace(below, old, c);
    }
    below->source = above->source;
    below->line = above->line;
    below->column = above->column;
}

et_status
eti_gather_file(struct eti_loader *l, const char *name, const char *text, size_t size)
{
    struct eti_recipe_files *g = l->gather;
    for (int i = 1; i < g->n; i++)
        if (strcmp(g->file[i].name, name) == 0)
            return ET_OK; /* included twice */
    g->file[g->n] = (struct eti_recipe_file){
        .name = eti_arena_text(l->arena, name, strlen(name)),
        .text = text,
        .size = size,
    };
    return g->file[g->n++].name ? ET_OK : ET_ENOMEM;
}

/* Reads the include file V names, relative to BELOW (the including file's folder
 * beneath the recipe's: "" or "parts/"). */
static et_status
include_file(struct eti_loader *l, const struct et_value *v, int depth,
             const char *below, struct et_value **out)
{
    struct et_place at = eti_value_place(v);
    char name[PATH_MAX];
    *out = NULL;
    if (v->type != ET_VALUE_STRING) {
        char quote[128];
        et_diagnostics_add(l->errors, ET_E_VALUE, &at, "include", NULL,
                           "expected path, got %s",
                           eti_value_quote(v, quote, sizeof quote));
        return ET_OK;
    }
    int n = snprintf(name, sizeof name, "%s%s", below, v->text);
    bool leaves = v->text[0] == '/' || strcmp(v->text, "..") == 0 ||
                  strncmp(v->text, "../", 3) == 0 || strstr(v->text, "/../") ||
                  (n >= 3 && strcmp(name + n - 3, "/..") == 0);
    const char *why = n >= (int)sizeof name            ? "is too long"
                      : leaves                         ? "leaves the recipe's folder"
                      : l->folder < 0                  ? "needs a recipe in a folder"
                      : depth >= ETI_MAX_INCLUDE_DEPTH ? "is nested deeper than 4"
                      : l->gather && strstr(v->text, "${")
                          ? "has another name elsewhere"
                      : ++l->files > ETI_MAX_FILES ? "is one file too many (64)"
                                                   : NULL;
    if (why) {
        et_diagnostics_add(l->errors, ET_E_PATH, &at, NULL, NULL, "include '%s' %s",
                           v->text, why);
        return ET_OK;
    }
    int fd = open_beneath(l->folder, name);
    char *text = NULL;
    size_t size = 0;
    et_status status = fd < 0 ? ET_EIO : eti_load_bytes(l, fd, &text, &size);
    if (status == ET_EIO) {
        et_diagnostics_add(l->errors, ET_E_READ, &at, NULL, NULL, "cannot read %s: %s",
                           name, eti_read_reason(errno));
        status = ET_OK;
    } else if (status == ET_OK) {
        const char *slash = strrchr(name, '/');
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - name) : 0,
                 name);
        if (l->gather)
            status = eti_gather_file(l, name, text, size);
        if (status == ET_OK)
            status = eti_load_text(l, text, size, name, depth + 1, folder, out);
    }
    if (fd >= 0)
        close(fd);
    return status;
}

/* Takes `include` out of ROOT and puts ROOT over what it names. */
static et_status
apply_includes(struct eti_loader *l, struct et_value **root, int depth,
               const char *below)
{
    struct et_value *list = eti_value_get(*root, "include");
    if (!list)
        return ET_OK;
    eti_value_remove(*root, list);
    struct et_value *base =
        eti_value_new(l->arena, ET_VALUE_MAP, (*root)->source, NULL);
    if (!base)
        return ET_ENOMEM;
    bool is_list = list->type == ET_VALUE_LIST;
    struct et_value *v = is_list                       ? list->first
                         : list->type == ET_VALUE_NULL ? NULL
                                                       : list;
    for (; v; v = is_list ? v->next : NULL) {
        struct et_value *part;
        ET_TRY(include_file(l, v, depth, below, &part));
        if (part)
            eti_value_merge(base, part);
    }
    eti_value_merge(base, *root);
    *root = base;
    return ET_OK;
}

et_status
eti_load_text(struct eti_loader *l, const char *text, size_t size, const char *name,
              int depth, const char *below, struct et_value **out)
{
    struct et_value *root;
    *out = NULL;
    const struct eti_source *source =
        eti_source_new(l, depth ? ETI_ORIGIN_INCLUDE : ETI_ORIGIN_RECIPE, name);
    if (!source)
        return ET_ENOMEM;
    ET_TRY(eti_yaml_parse(l->arena, text, size, source, &eti_yaml_limits, l->errors,
                          &root));
    if (!root)
        return ET_OK;
    if (root->type == ET_VALUE_NULL) {
        root->type = ET_VALUE_MAP;
        root->text = NULL;
    }
    if (root->type != ET_VALUE_MAP) {
        char quote[128];
        struct et_place at = eti_value_place(root);
        et_diagnostics_add(l->errors, ET_E_VALUE, &at, NULL, NULL,
                           "a recipe is a mapping of keys, not %s",
                           eti_value_quote(root, quote, sizeof quote));
        return ET_OK;
    }
    if (!l->gather)
        ET_TRY(expand(l, root));
    eti_refuse_secrets(l, root, NULL);
    ET_TRY(unify(l, root));
    ET_TRY(apply_includes(l, &root, depth, below));
    *out = root;
    return ET_OK;
}
