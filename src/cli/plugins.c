/* SPDX-License-Identifier: Apache-2.0 */
/* plugins.c: what config.yaml allows, loaded where a recipe names it. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/checks.h"
#include "core/plugin/develop.h"
#include "core/recipe/recipe.h"
#include "etude/plugin.h"

/* The plugins of one recipe: its components are in use while it is. */
struct cli_plugins {
    struct cli_plugins *next;
    struct et_plugins *set;
    char **name; /* as the recipe has them, in its order; owned */
    int n;
};

static void
free_node(struct cli_plugins *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->name[i]);
    free(p->name);
    free(p);
}

static struct cli_plugins *
new_node(const char *const *names, int n)
{
    struct cli_plugins *p = calloc(1, sizeof *p);
    if (p && !(p->name = calloc((size_t)n + 1, sizeof *p->name))) {
        free(p);
        return NULL;
    }
    for (; p && p->n < n; p->n++)
        if (!(p->name[p->n] = strdup(names[p->n]))) {
            free_node(p);
            return NULL;
        }
    return p;
}

/* The set that was loaded for the same names; NULL: none. A run that goes on reads two
 * recipes, which must have the same components, and a library runs its constructors
 * whenever it is loaded. */
static struct cli_plugins *
find_loaded(struct cli *c, const char *const *names, int n)
{
    for (struct cli_plugins *p = c->plugins; p; p = p->next) {
        int same = 0;
        while (p->n == n && same < n && strcmp(p->name[same], names[same]) == 0)
            same++;
        if (p->n == n && same == n)
            return p;
    }
    return NULL;
}

/* A worker's runs are asked for by others: none of them shows who changed a library. */
static bool
refuse_developed(const struct cli *c, const char *const *names,
                 const struct et_place *places, int n, struct et_diagnostics *errors)
{
    int before = errors->total;
    if (!getenv("ETUDE_SERVED"))
        return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; c->config && k < c->config->n_plugins; k++)
            if (c->config->plugin[k].develop &&
                strcmp(c->config->plugin[k].name, names[i]) == 0)
                et_diagnostics_add(errors, ET_E_PLUGIN_DENIED,
                                   places ? &places[i] : NULL, "plugins",
                                   "give it its sha256 in config.yaml",
                                   "%s: a worker loads no plugin that is under "
                                   "development",
                                   c->config->plugin[k].path);
    return errors->total > before;
}

static et_status
load(struct cli *c, const char *const *names, const struct et_place *places, int n,
     struct et_diagnostics *errors)
{
    const struct eti_config *config = c->config;
    int n_allowed = config ? config->n_plugins : 0;
    struct cli_plugins *node = find_loaded(c, names, n);
    if (node) {
        c->registry = et_plugins_registry(node->set);
        return ET_OK;
    }
    if (refuse_developed(c, names, places, n, errors))
        return ET_FAIL(c->cx, ET_EINVAL, "%s", errors->v[0].message);
    node = new_node(names, n);
    struct et_plugin_entry *allowed = calloc((size_t)n_allowed + 1, sizeof *allowed);
    et_status status = node && allowed ? ET_OK : ET_ENOMEM;
    for (int i = 0; i < n_allowed && allowed; i++)
        allowed[i] = (struct et_plugin_entry){
            .name = config->plugin[i].name,
            .path = config->plugin[i].path,
            .sha256 = config->plugin[i].sha256,
            .develop = config->plugin[i].develop,
        };
    cli_guard_begin(c);
    cli_guard_loading(names, n); /* libraries may run code as they are loaded */
    if (status == ET_OK)
        status = et_plugins_load(c->cx, allowed, n_allowed, names, places, n, errors,
                                 &node->set);
    cli_guard_loading(NULL, 0);
    free(allowed);
    if (status != ET_OK) {
        if (node)
            free_node(node);
        return status;
    }
    node->next = c->plugins;
    c->plugins = node;
    c->registry = et_plugins_registry(node->set);
    return ET_OK;
}

et_status
cli_load_plugins(void *data, const char *const *names, const struct et_place *places,
                 int n, struct et_diagnostics *errors, const struct et_registry **out)
{
    struct cli *c = data;
    ET_TRY(load(c, names, places, n, errors));
    *out = c->registry;
    return ET_OK;
}

/* Who is asked for all says of which it warns. */
static et_status
load_quietly(struct cli *c, const char *const *names, int n,
             struct et_diagnostics *errors)
{
    eti_ctx_mute(c->cx, true);
    et_status status = load(c, names, NULL, n, errors);
    eti_ctx_mute(c->cx, false);
    return status;
}

/* Loads all at once. If that fails, adds one plugin at each try, and leaves out those
 * that fail. */
static void
load_all(struct cli *c)
{
    int n = c->config ? c->config->n_plugins : 0, good = 0;
    const char **names = calloc((size_t)n + 1, sizeof *names);
    struct et_diagnostics all = {0};
    for (int i = 0; i < n && names; i++)
        names[i] = c->config->plugin[i].name;
    if (!names || n == 0 || load_quietly(c, names, n, &all) == ET_OK) {
        free(names);
        return;
    }
    et_error_clear(c->cx);
    for (int i = 0; i < n; i++) {
        struct et_diagnostics errors = {0};
        names[good] = c->config->plugin[i].name;
        if (load_quietly(c, names, good + 1, &errors) == ET_OK)
            good++;
        else
            et_report(c->cx, ET_LOG_WARN, "plugin %s: %s", names[good],
                      errors.n ? errors.v[0].message : et_error_get(c->cx)->message);
        et_error_clear(c->cx);
    }
    free(names);
}

const struct et_registry *
cli_all_components(struct cli *c)
{
    if (!c->registry) {
        load_all(c);
        eti_plugins_warn(c->plugins ? c->plugins->set : NULL, NULL);
    }
    return c->registry ? c->registry : et_registry_core();
}

const struct et_component *
cli_find_component(struct cli *c, enum et_kind kind, const char *name)
{
    const struct et_component *found = et_registry_find(NULL, kind, name);
    if (found)
        return found;
    if (!c->registry)
        load_all(c);
    found = et_registry_find(c->registry, kind, name);
    if (found && c->plugins)
        eti_plugins_warn(c->plugins->set, found);
    return found;
}

const char *
cli_plugin_at(const struct cli *c, const void *address)
{
    const char *path = NULL;
    for (const struct cli_plugins *p = c->plugins; p && !path; p = p->next)
        path = et_plugins_owner(p->set, address);
    return path;
}

void
cli_free_plugins(struct cli *c)
{
    cli_guard_end();
    c->registry = NULL;
    while (c->plugins) {
        struct cli_plugins *p = c->plugins;
        c->plugins = p->next;
        et_plugins_free(&p->set);
        free_node(p);
    }
}
