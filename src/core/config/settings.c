/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c: see settings.h. Files are read, checked and merged as recipes are. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config/settings.h"
#include "core/recipe/recipe.h"

/* ---- the table ---- */

const char *const eti_color_names[] = {"auto", "always", "never", NULL};
const char *const eti_show_names[] = {"auto", "tui",  "bar", "plain",
                                      "json", "none", NULL};
static const char *const plot_names[] = {"auto", "braille", "block", "ascii", NULL};
static const char *const motion_names[] = {"on", "off", NULL};
static const char *const layer_names[] = {"system", "user", "project"};

const char *
eti_layer_name(enum eti_layer layer)
{
    return layer_names[layer];
}

static const struct et_option ui_table[] = {
    {
        .name = "plot",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct eti_config_ui, plot),
        .def = "auto",
        .choices = plot_names,
        .help = "what charts are drawn with; auto = braille where the locale is UTF-8",
    },
    {
        .name = "mouse",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct eti_config_ui, mouse),
        .def = "true",
        .help = "the workbench listens to the mouse",
    },
    {
        .name = "motion",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct eti_config_ui, motion),
        .def = "on",
        .choices = motion_names,
        .help =
            "off: nothing on a screen moves by itself, as the mark of a bar of unknown "
            "length does; numbers and curves still change",
    },
    {
        .name = "theme",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct eti_config_ui, theme),
        .def = "auto",
        .help = "colours of the workbench: auto (by the terminal's background), dark, "
                "light, contrast, mocha, gruvbox, or themes/NAME.yaml beside the "
                "configuration",
    },
    {0},
};

static const char *const price_of_names[] = {"rank", "machine", "run", NULL};

static const struct et_option price_table[] = {
    {
        .name = "hour",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct eti_config_price, hour),
        .max = -1,
        .flags = ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN,
        .help =
            "of one hour; compare --pareto cost multiplies it with the clock's time",
    },
    {
        .name = "of",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct eti_config_price, of),
        .def = "rank",
        .choices = price_of_names,
        .help = "what one pays for by the hour: each rank (a GPU), machine, or the run",
    },
    {
        .name = "currency",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct eti_config_price, currency),
        .def = "USD",
        .help = "what stands behind a cost",
    },
    {0},
};

const struct et_option eti_config_table[] = {
    {
        .name = "color",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct eti_settings, color),
        .def = "auto",
        .choices = eti_color_names,
        .help = "where neither --color nor the environment says",
    },
    {
        .name = "progress",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct eti_settings, progress),
        .def = "auto",
        .choices = eti_show_names,
        .help = "how a run is shown where --progress does not say",
    },
    {
        .name = "ui",
        .type = ET_OPT_TABLE,
        .offset = offsetof(struct eti_settings, ui),
        .sub = ui_table,
        .sub_size = sizeof(struct eti_config_ui),
        .help = "how things look",
    },
    {
        .name = "price",
        .type = ET_OPT_TABLE,
        .offset = offsetof(struct eti_settings, price),
        .sub = price_table,
        .sub_size = sizeof(struct eti_config_price),
        .help = "what computing costs",
    },
    {
        .name = "env",
        .type = ET_OPT_TEXTS,
        .offset = offsetof(struct eti_settings, env),
        .flags = ETI_OPT_TRUST,
        .help = "environment variables that recipes may read as ${env:NAME}",
    },
    {
        .name = "plugins",
        .type = ET_OPT_NODE,
        .offset = offsetof(struct eti_settings, plugins),
        .flags = ETI_OPT_TRUST | ET_OPT_OPTIONAL,
        .help = "libraries that recipes may name: NAME: {path: /..., sha256: ...}, or "
                "develop: true for one that changes",
    },
    {0},
};

/* ---- plugins: the allow-list ---- */

static const struct et_option plugin_table[] = {
    {
        .name = "path",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct eti_config_plugin, path),
        .flags = ET_OPT_REQUIRED,
        .help = "of the library, absolute",
    },
    {
        .name = "sha256",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct eti_config_plugin, sha256),
        .flags = ET_OPT_OPTIONAL,
        .help = "of its bytes, 64 hexadecimal digits: sha256sum prints it",
    },
    {
        .name = "develop",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct eti_config_plugin, develop),
        .def = "false",
        .help = "whatever its bytes are, while you work on it; not on a worker",
    },
    {0},
};

/* A configuration and the trees it was filled from. */
struct loaded {
    struct eti_config config; /* first: what the caller sees */
    struct et_ctx *cx;
    struct eti_arena arena;
    struct et_value *root;
};

struct reading {
    struct loaded *c;
    struct et_diagnostics *errors;
    struct eti_loader loader;
};

static void
complain(struct reading *r, const struct et_value *v, const char *path,
         const char *hint, const char *what)
{
    struct et_place at = eti_value_place(v);
    et_diagnostics_add(r->errors, ET_E_VALUE, &at, path, hint, "%s", what);
}

static void
check_plugin(struct reading *r, const struct et_value *v, struct eti_config_plugin *p,
             const char *path)
{
    if (p->path && p->path[0] != '/')
        complain(r, eti_value_get(v, "path"), path, NULL, "the path must begin with /");
    if (!p->sha256) {
        if (!p->develop && p->path)
            complain(r, v, path, "sha256sum FILE prints it; develop: true does without",
                     "sha256 is missing");
        return;
    }
    size_t digits = strspn(p->sha256, "0123456789abcdefABCDEF");
    if (digits != 64 || p->sha256[64])
        complain(r, eti_value_get(v, "sha256"), path, "sha256sum FILE prints it",
                 "sha256 must be 64 hexadecimal digits");
    for (char *s = p->sha256; *s; s++)
        *s = (char)tolower((unsigned char)*s);
}

static et_status
fill_plugins(struct reading *r, const struct eti_fill *fill)
{
    struct eti_config *c = &r->c->config;
    const struct et_value *list = c->set.plugins;
    void *block;
    if (!list || list->type == ET_VALUE_NULL)
        return ET_OK;
    if (list->type != ET_VALUE_MAP) {
        complain(r, list, "plugins", NULL,
                 "expected a mapping from names to {path, sha256}");
        return ET_OK;
    }
    ET_TRY(et_alloc(r->c->cx, ((size_t)list->n + 1) * sizeof *c->plugin, &block));
    c->plugin = block;
    for (const struct et_value *v = list->first; v; v = v->next) {
        char path[ETI_PATH_BYTES];
        struct eti_config_plugin *p = &c->plugin[c->n_plugins++];
        p->name = v->key;
        p->value = v;
        eti_path_join(path, "plugins", v->key);
        if (v->type != ET_VALUE_MAP) {
            complain(r, v, path, NULL, "expected a mapping {path, sha256}");
            continue;
        }
        ET_TRY(eti_options_from_value(fill, plugin_table, p, v, path));
        check_plugin(r, v, p, path);
    }
    return ET_OK;
}

/* ---- reading ---- */

/* Why this file may not give rights; NULL: it may. ST NULL: its bytes are checked
 * alone. */
static const char *
distrust(enum eti_layer layer, const struct stat *st)
{
    if (layer == ETI_LAYER_PROJECT)
        return "a project's configuration cannot allow this: only your own can";
    if (!st)
        return NULL;
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "this file belongs to another user and cannot allow this";
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return "this file must not be group/other writable to allow this";
    return NULL;
}

static et_status
read_text(struct reading *r, const char *text, size_t size, const char *name,
          enum eti_layer layer, const struct stat *st, struct et_value **out)
{
    const struct eti_source *source =
        eti_source_new(&r->loader, ETI_ORIGIN_RECIPE, name);
    *out = NULL;
    if (!source)
        return ET_ENOMEM;
    ET_TRY(eti_yaml_parse(&r->c->arena, text, size, source, &eti_yaml_limits, r->errors,
                          out));
    if (*out && (*out)->type == ET_VALUE_NULL)
        *out = NULL;
    if (*out && (*out)->type != ET_VALUE_MAP) {
        complain(r, *out, NULL, NULL, "a configuration is a mapping of keys");
        *out = NULL;
    }
    const char *why = distrust(layer, st);
    for (const struct et_option *row = eti_config_table; why && *out && row->name;
         row++) {
        const struct et_value *v = eti_value_get(*out, row->name);
        if (!v || !(row->flags & ETI_OPT_TRUST))
            continue;
        struct et_place at = eti_value_key_place(v);
        et_diagnostics_add(r->errors, ET_E_TRUST, &at, row->name, NULL, "%s", why);
    }
    return ET_OK;
}

static et_status
read_file(struct reading *r, const char *path, enum eti_layer layer,
          struct et_value **out)
{
    struct stat st;
    char *text = NULL;
    size_t size = 0;
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return ET_OK;
    et_status status = fd < 0 || fstat(fd, &st) != 0
                           ? ET_EIO
                           : eti_load_bytes(&r->loader, fd, &text, &size);
    if (status == ET_EIO) {
        const char *why = eti_read_reason(errno);
        et_diagnostics_add(r->errors, ET_E_READ, NULL, NULL, NULL, "cannot read %s: %s",
                           path, why);
        status = ET_FAIL(r->c->cx, ET_EIO, "cannot read %s: %s", path, why);
    } else if (status == ET_OK) {
        status = read_text(r, text, size, path, layer, &st, out);
    }
    if (fd >= 0)
        close(fd);
    return status;
}

/* ---- from the tree ---- */

static et_status
fill(struct reading *r)
{
    const struct eti_fill how = {.cx = r->c->cx, .errors = r->errors};
    ET_TRY(eti_options_from_value(&how, eti_config_table, &r->c->config.set, r->c->root,
                                  ""));
    return fill_plugins(r, &how);
}

static et_status
begin(struct et_ctx *cx, struct reading *r, struct et_diagnostics *errors)
{
    static const struct et_recipe_env no_env;
    void *block;
    *r = (struct reading){.errors = errors};
    ET_TRY(et_alloc(cx, sizeof *r->c, &block));
    r->c = block;
    r->c->cx = cx;
    eti_arena_init(&r->c->arena, cx, 4096);
    r->loader = (struct eti_loader){
        .cx = cx,
        .arena = &r->c->arena,
        .env = &no_env,
        .errors = errors,
        .folder = -1,
    };
    const struct eti_source *none =
        eti_source_new(&r->loader, ETI_ORIGIN_DEFAULT, "config.yaml");
    r->c->root = none ? eti_value_new(&r->c->arena, ET_VALUE_MAP, none, NULL) : NULL;
    return r->c->root ? ET_OK : ET_ENOMEM;
}

/* The first error becomes the context's. */
static et_status
conclude(struct reading *r, et_status status, struct eti_config **out)
{
    struct eti_config *config = r->c ? &r->c->config : NULL;
    if (status == ET_OK && r->errors->total)
        status = ET_FAIL(r->c->cx, ET_EINVAL, "%s", r->errors->v[0].message);
    if (status == ET_OK && out)
        *out = config;
    else
        eti_config_free(&config);
    return status;
}

et_status
eti_config_load(struct et_ctx *cx, const char *const *path, struct eti_config **out,
                struct et_diagnostics *errors)
{
    struct reading r;
    *out = NULL;
    et_status status = begin(cx, &r, errors);
    for (int layer = 0; layer < ETI_LAYERS && status == ET_OK; layer++) {
        struct et_value *root = NULL;
        if (path[layer])
            status = read_file(&r, path[layer], (enum eti_layer)layer, &root);
        if (status == ET_OK && root)
            eti_value_merge(r.c->root, root);
    }
    if (status == ET_OK)
        status = fill(&r);
    return conclude(&r, status, out);
}

et_status
eti_config_check(struct et_ctx *cx, const char *text, size_t size, const char *name,
                 enum eti_layer layer, struct et_diagnostics *errors)
{
    struct reading r;
    struct et_value *root = NULL;
    et_status status = begin(cx, &r, errors);
    if (status == ET_OK)
        status = read_text(&r, text, size, name, layer, NULL, &root);
    if (status == ET_OK && root)
        eti_value_merge(r.c->root, root);
    if (status == ET_OK)
        status = fill(&r);
    return conclude(&r, status, NULL);
}

void
eti_config_free(struct eti_config **config)
{
    struct loaded *c = (struct loaded *)*config;
    *config = NULL;
    if (!c)
        return;
    for (int i = 0; i < c->config.n_plugins; i++)
        et_options_release(plugin_table, &c->config.plugin[i]);
    et_free(c->cx, c->config.plugin);
    et_options_release(eti_config_table, &c->config.set);
    eti_arena_release(&c->arena);
    et_free(c->cx, c);
}

/* ---- asking ---- */

/* The row at PATH and the struct it describes; NULL: no setting has that path. */
static const struct et_option *
find_row(const struct eti_config *config, const char *path, const void **options)
{
    const struct et_option *table = eti_config_table, *row;
    *options = &config->set;
    for (;;) {
        size_t n = strcspn(path, ".");
        for (row = table; row->name; row++)
            if (strlen(row->name) == n && strncmp(row->name, path, n) == 0)
                break;
        if (!row->name || !path[n])
            return row->name ? row : NULL;
        if (row->type != ET_OPT_TABLE)
            return NULL;
        *options = (const char *)*options + row->offset;
        table = row->sub;
        path += n + 1;
    }
}

/* Where PATH was written; NULL: a default. */
static const struct et_value *
find_value(const struct et_value *v, const char *path)
{
    char key[ETI_PATH_BYTES];
    while (v && *path) {
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        v = eti_value_get(v, key);
        path += n + (path[n] == '.');
    }
    return v;
}

et_status
eti_config_get(const struct eti_config *config, const char *path, char **text,
               char *origin, size_t size)
{
    const struct loaded *c = (const struct loaded *)config;
    const void *options;
    const struct et_option *row = find_row(config, path, &options);
    const struct et_value *v = find_value(c->root, path);
    *text = NULL;
    eti_origin_text(v, origin, size);
    if (row)
        return et_option_text(c->cx, row, options, text);
    if (!v)
        return ET_OK;
    struct eti_text t = {.cx = c->cx}; /* within the allow-list */
    eti_text_add_value(&t, v);
    *text = t.text;
    return t.status;
}

static void
each(const struct et_option *table, const char *above,
     void (*fn)(void *data, const char *path, const struct et_option *row), void *data)
{
    char path[ETI_PATH_BYTES];
    for (const struct et_option *row = table; row->name; row++) {
        eti_path_join(path, above, row->name);
        if (row->type == ET_OPT_TABLE)
            each(row->sub, path, fn, data);
        else
            fn(data, path, row);
    }
}

void
eti_config_each(const struct eti_config *config,
                void (*fn)(void *data, const char *path, const struct et_option *row),
                void *data)
{
    (void)config;
    each(eti_config_table, "", fn, data);
}
