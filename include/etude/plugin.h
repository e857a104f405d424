/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h: components from a shared library.
 *
 * A plugin is a library whose only tie to Etude is these headers. It exports one
 * object:
 *
 *     static const struct et_algorithm_class mine = {
 *         .info = {ET_CLASS(algorithm), .name = "mine", ...}, ...
 *     };
 *     static const struct et_algorithm_class *const algorithms[] = {&mine, NULL};
 *     ET_PLUGIN(.algorithms = algorithms)
 *
 *     cc -shared -fPIC $(pkg-config --cflags etude) -o hello.so hello.c
 *
 * What it calls (et_add, et_alloc ...) it finds in the program that loads it, which
 * exports the functions of these headers; it need not be linked with anything of Etude.
 * examples/plugin.c is one, with an optimizer and a callback; plugin_layer.c beside it
 * has a layer, plugin_model.c a model, plugin_schedule.c a schedule, plugin_data.c a
 * data set, a loss and a metric, and plugin_adafactor.c an optimizer with states of
 * shapes of their own.
 *
 * The user allows a library by name, absolute path and SHA-256 in config.yaml ("etude
 * config set plugins.hello '{path: /home/me/hello.so, sha256: 12ab...}'"); a recipe
 * names it ("plugins: [hello]") and then its components. One that is not allowed, that
 * others than its owner could write, or whose bytes are not those that were allowed, is
 * never mapped; of one that is, the version and the layouts are read from the file
 * before its first instruction runs. While you work on one, "develop: true" in the
 * place of the digest allows whatever its bytes are; runs that a worker starts refuse
 * it. A plugin that runs has the rights of the program: trust it as you would trust
 * Etude.
 *
 * In C++ the macro cannot be used (it names fields); such a plugin fills in the
 * struct. */
#ifndef ETUDE_PLUGIN_H
#define ETUDE_PLUGIN_H

#include "etude/abi.h"
#include "etude/algorithm.h"
#include "etude/callback.h"
#include "etude/data.h"
#include "etude/metric.h"
#include "etude/model.h"
#include "etude/optim.h"
#include "etude/recipe.h"
#include "etude/sched.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ET_PLUGIN_ABI = 4 }; /* goes up with changes that no struct shows */

/* The object called et_plugin. Beside it a plugin exports et_plugin_layouts: how the
 * structs were declared that it was compiled with (abi.h). Lists end with NULL; a NULL
 * list is empty. Names must be new: the core's cannot be replaced. */
struct et_plugin {
    uint32_t abi;  /* ET_PLUGIN_ABI: first, in all versions */
    uint32_t size; /* of this struct, which grows at its end: lists that a plugin's does
                      not have are empty */
    const struct et_model_class *const *models;
    const struct et_dataset_class *const *datasets;
    const struct et_transform_class *const *transforms;
    const struct et_optimizer_class *const *optimizers;
    const struct et_scheduler_class *const *schedulers;
    const struct et_algorithm_class *const *algorithms;
    const struct et_callback_class *const *callbacks;
    const struct et_callback_class *const *loggers;
    const struct et_metric_class *const *metrics;
    const struct et_loss_class *const *losses;
    const struct et_module_class *const *layers; /* modules that `layers:` may have */
    const struct et_pass *const *passes; /* they order the algorithms of a recipe that
                                            names the plugin (state.h) */
};

/* Both objects must be there. In C++, write 'extern "C"' before this one, and fill in
 * et_plugin by hand. */
#define ET_PLUGIN_LAYOUTS                                                              \
    __attribute__((visibility("default")))                                             \
    const struct et_layout et_plugin_layouts[] = {ET_LAYOUTS(ET_LAYOUT_ROW)};

#define ET_PLUGIN(...)                                                                 \
    extern const struct et_layout et_plugin_layouts[];                                 \
    ET_PLUGIN_LAYOUTS                                                                  \
    extern const struct et_plugin et_plugin;                                           \
    __attribute__((visibility("default"))) const struct et_plugin et_plugin = {        \
        .abi = ET_PLUGIN_ABI,                                                          \
        .size = sizeof(struct et_plugin),                                              \
        __VA_ARGS__,                                                                   \
    };

/* ---- for programs that load plugins ---- */

/* A library that the user allows. */
struct et_plugin_entry {
    const char *name;   /* by which recipes call it */
    const char *path;   /* absolute */
    const char *sha256; /* of its bytes: 64 digits, lower case */
    bool develop; /* whatever its bytes are: SHA256 is not read, and a warning says
                           which they were */
};

struct et_plugins;

/* Loads those of NAMES [N], each at a place of PLACES (NULL: none), that ALLOWED has.
 * What is wrong with any goes to ERRORS (E4001 to E4004) with status EINVAL, and *OUT
 * is NULL. */
ET_NODISCARD et_status et_plugins_load(struct et_ctx *cx,
                                       const struct et_plugin_entry *allowed,
                                       int n_allowed, const char *const *names,
                                       const struct et_place *places, int n,
                                       struct et_diagnostics *errors,
                                       struct et_plugins **out);
/* Unmaps them: nothing of theirs may be in use. */
void et_plugins_free(struct et_plugins **plugins);
/* The core's components and the plugins'; borrowed from PLUGINS. */
const struct et_registry *et_plugins_registry(const struct et_plugins *plugins);
/* The passes of the plugins that REGISTRY has, *N of them; borrowed from the plugins.
 * The core's registry, and NULL, have none. */
const struct et_pass *const *et_registry_passes(const struct et_registry *registry,
                                                int *n);
/* The path of the plugin whose code or data ADDRESS is; NULL: none's. May be called
 * from a signal handler. */
const char *et_plugins_owner(const struct et_plugins *plugins, const void *address);

#ifdef __cplusplus
}
#endif
#endif
