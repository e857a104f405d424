/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c: loading what the user allowed, and nothing else. See etude/plugin.h.
 *
 * The file is opened once and copied into memory that is then sealed: the digest is
 * taken of that copy, the version is read from it, and it is what the linker maps.
 * Whatever happens to the file meanwhile changes nothing. Invariant: before dlopen,
 * which runs the library's constructors, every check that can be made without it has
 * been. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/layouts.h"
#include "core/base/need.h"
#include "core/plugin/develop.h"
#include "core/plugin/elf.h"
#include "core/plugin/fields.h"
#include "core/recipe/recipe.h"
#include "etude/plugin.h"

enum {
    MOST_BYTES = 1 << 30,
    DIGEST_TEXT = 2 * crypto_hash_sha256_BYTES + 1,
    DEVELOPED_TEXT = 13,
    NAME_BYTES = 32
};

struct loaded {
    char *path;
    void *library;
    const struct et_plugin *plugin; /* NULL, or OWN */
    struct et_plugin own; /* its et_plugin; lists that this does not have are empty */
    uintptr_t begin, end; /* of what is mapped */
    int copy;             /* the sealed memory */
    char name[64];
    char developed[DEVELOPED_TEXT]; /* of its digest; "": it is the one allowed */
};

struct et_plugins {
    struct et_registry registry; /* first: registries are told apart by their address */
    struct et_ctx *cx;
    struct loaded *v;
    int n;
    const struct et_pass **passes; /* of all */
    int n_passes;
};

/* One library on its way. */
struct opening {
    struct et_ctx *cx;
    const struct et_plugin_entry *entry;
    const struct et_place *place;
    struct et_diagnostics *errors;
    int fd, copy; /* the file; the sealed memory */
    size_t size;
    const void *bytes; /* of the copy */
    struct et_plugin head;
    size_t class_size[ET_KIND_COUNT]; /* of its classes, by their kind */
    char developed[DEVELOPED_TEXT];   /* as of struct loaded */
};

static void refuse(const struct opening *o, int code, const char *hint, const char *fmt,
                   ...) ET_PRINTF(4, 5);
static void
refuse(const struct opening *o, int code, const char *hint, const char *fmt, ...)
{
    char what[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    et_diagnostics_add(o->errors, code, o->place, "plugins", hint, "%s%s%s",
                       o->entry ? o->entry->path : "", o->entry ? ": " : "", what);
}

/* ---- the file ---- */

static bool
open_file(struct opening *o)
{
    struct stat st;
    o->fd = open(o->entry->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (o->fd < 0 || fstat(o->fd, &st) != 0)
        refuse(o, ET_E_PLUGIN_MISSING, NULL, "%s", strerror(errno));
    else if (!S_ISREG(st.st_mode))
        refuse(o, ET_E_PLUGIN_BAD, NULL, "not a regular file");
    else if (st.st_uid != 0 && st.st_uid != geteuid())
        refuse(o, ET_E_PLUGIN_DENIED, NULL, "owner is uid %ld, must be you or root",
               (long)st.st_uid);
    else if (st.st_mode & (S_IWGRP | S_IWOTH))
        refuse(o, ET_E_PLUGIN_DENIED, "chmod go-w",
               "mode %04o, must not be group/other writable", st.st_mode & 07777);
    else if (st.st_size <= 0 || st.st_size > MOST_BYTES)
        refuse(o, ET_E_PLUGIN_BAD, NULL, "%lld bytes is no library",
               (long long)st.st_size);
    else
        return true;
    return false;
}

/* Copies what the file holds now to COPY, seals it, and maps it to read. */
static bool
copy_file(struct opening *o)
{
    static const unsigned seals =
        F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    char buffer[1 << 16];
    ssize_t got = -1;
    o->copy = memfd_create("etude-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    while (o->copy >= 0 && (got = read(o->fd, buffer, sizeof buffer)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || write(o->copy, buffer, (size_t)got) != got)
            break;
        o->size += (size_t)got;
        if (o->size > MOST_BYTES)
            break;
    }
    if (o->copy >= 0 && got == 0 && o->size > 0 &&
        fcntl(o->copy, F_ADD_SEALS, seals) == 0) {
        void *map = mmap(NULL, o->size, PROT_READ, MAP_PRIVATE, o->copy, 0);
        o->bytes = map == MAP_FAILED ? NULL : map;
    }
    if (!o->bytes)
        refuse(o, ET_E_PLUGIN_BAD, NULL, "cannot be copied: %s", strerror(errno));
    return o->bytes != NULL;
}

static void
warn_of(struct et_ctx *cx, const char *name, const char *path, const char *developed)
{
    et_report(cx, ET_LOG_WARN,
              "plugin %s is under development: %s is loaded as it is (SHA-256 %s...)",
              name, path, developed);
}

static bool
check_digest(struct opening *o)
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    char text[DIGEST_TEXT], hint[256];
    if (sodium_init() < 0 || crypto_hash_sha256(digest, o->bytes, o->size) != 0) {
        refuse(o, ET_E_PLUGIN_BAD, NULL, "no digest could be taken");
        return false;
    }
    sodium_bin2hex(text, sizeof text, digest, sizeof digest);
    if (o->entry->develop) {
        snprintf(o->developed, sizeof o->developed, "%.12s", text);
        warn_of(o->cx, o->entry->name, o->entry->path, o->developed);
        return true;
    }
    if (strcmp(text, o->entry->sha256) == 0)
        return true;
    snprintf(hint, sizeof hint,
             "if you trust it: etude config set plugins.%s.sha256 '\"%s\"'",
             o->entry->name, text);
    refuse(o, ET_E_PLUGIN_DENIED, hint,
           "is not in plugins: of config.yaml (SHA-256 %.12s...)", text);
    return false;
}

/* ---- version and sizes, before anything runs ---- */

static const char again[] = "build it again with the headers of this etude";

/* What the class of a component of each kind is called. */
static const char *const class_names[ET_KIND_COUNT] = {
    [ET_KIND_MODEL] = "et_model_class",
    [ET_KIND_DATASET] = "et_dataset_class",
    [ET_KIND_TRANSFORM] = "et_transform_class",
    [ET_KIND_OPTIMIZER] = "et_optimizer_class",
    [ET_KIND_SCHEDULER] = "et_scheduler_class",
    [ET_KIND_ALGORITHM] = "et_algorithm_class",
    [ET_KIND_CALLBACK] = "et_callback_class",
    [ET_KIND_LOGGER] = "et_callback_class",
    [ET_KIND_METRIC] = "et_metric_class",
    [ET_KIND_LOSS] = "et_loss_class",
    [ET_KIND_LAYER] = "et_module_class",
};

/* The table of how its structs are declared, against this library's. */
static bool
check_layouts(struct opening *o)
{
    size_t offset, size;
    char why[160];
    size_t n = 0;
    if (!eti_elf_find(o->bytes, o->size, "et_plugin_layouts", &offset, &size))
        n = size / sizeof(struct et_layout);
    struct et_layout *layouts = n ? malloc(n * sizeof *layouts) : NULL;
    if (!layouts) {
        refuse(o, ET_E_PLUGIN_BAD, "a plugin ends with ET_PLUGIN(...)",
               "exports no et_plugin_layouts");
        return false;
    }
    memcpy(layouts, (const char *)o->bytes + offset, n * sizeof *layouts);
    bool fit = eti_layouts_known(layouts, n, why, sizeof why);
    for (int kind = 0; kind < ET_KIND_COUNT; kind++)
        if (class_names[kind])
            o->class_size[kind] = eti_layouts_size(layouts, n, class_names[kind]);
    free(layouts);
    if (!fit)
        refuse(o, ET_E_PLUGIN_ABI, again, "%s", why);
    return fit;
}

static bool
check_abi(struct opening *o)
{
    size_t offset, size;
    const char *why = eti_elf_find(o->bytes, o->size, "et_plugin", &offset, &size);
    if (why || size < 2 * sizeof(uint32_t)) {
        refuse(o, ET_E_PLUGIN_BAD, "a plugin ends with ET_PLUGIN(...)", "%s",
               why ? why : "et_plugin is too small");
        return false;
    }
    memcpy(&o->head, (const char *)o->bytes + offset,
           size < sizeof o->head ? size : sizeof o->head);
    if (o->head.abi != ET_PLUGIN_ABI) {
        refuse(o, ET_E_PLUGIN_ABI, again, "built for plugin ABI %u, this is %d",
               o->head.abi, ET_PLUGIN_ABI);
        return false;
    }
    if (o->head.size != size) {
        refuse(o, ET_E_PLUGIN_BAD, again, "et_plugin says %u bytes and has %zu",
               o->head.size, size);
        return false;
    }
    return check_layouts(o);
}

/* ---- what it holds ---- */

/* Component I of a list of classes, each of which begins with its info. */
static const struct et_component *
item(const void *list, int i)
{
    const struct et_component *const *v = list;
    for (int k = 0; v && v[k]; k++)
        if (k == i)
            return v[k];
    return NULL;
}

static const struct et_component *
component(const struct et_plugin *p, enum et_kind kind, int i)
{
    const void *const lists[ET_KIND_COUNT] = {
        [ET_KIND_MODEL] = p->models,         [ET_KIND_DATASET] = p->datasets,
        [ET_KIND_TRANSFORM] = p->transforms, [ET_KIND_OPTIMIZER] = p->optimizers,
        [ET_KIND_SCHEDULER] = p->schedulers, [ET_KIND_ALGORITHM] = p->algorithms,
        [ET_KIND_CALLBACK] = p->callbacks,   [ET_KIND_LOGGER] = p->loggers,
        [ET_KIND_METRIC] = p->metrics,       [ET_KIND_LOSS] = p->losses,
        [ET_KIND_LAYER] = p->layers,
    };
    return item(lists[kind], i);
}

static int
count(const struct et_plugin *p, enum et_kind kind)
{
    int n = 0;
    while (component(p, kind, n))
        n++;
    return n;
}

static const struct et_component *
get(const struct et_registry *self, enum et_kind kind, int i)
{
    const struct et_plugins *all = (const struct et_plugins *)self;
    const struct et_registry *core = et_registry_core();
    const struct et_component *c = core->get(core, kind, i);
    if (c)
        return c;
    for (int n = 0; core->get(core, kind, n); n++)
        i--;
    for (int k = 0; k < all->n; k++) {
        int n = count(all->v[k].plugin, kind);
        if (i < n)
            return component(all->v[k].plugin, kind, i);
        i -= n;
    }
    return NULL;
}

/* Other names: the core's, for a plugin's components have none. */
static const struct et_component *
find(const struct et_registry *self, enum et_kind kind, const char *name)
{
    (void)self;
    return et_registry_find(NULL, kind, name);
}

/* Metrics are called as their values are: Accuracy. */
static bool
is_name(const char *name, bool capitals)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (const char *c = name; *c; c++) {
        const char *at = strchr(letters, *c);
        if (!at || (!capitals && *c >= 'A' && *c <= 'Z'))
            return false;
    }
    return *name != '\0';
}

/* What is wrong with component I of KIND of the plugin P, into WHY; false: nothing.
 * Names are ones that recipes can write and nobody has yet. */
static bool
find_fault(const struct opening *o, const struct et_plugins *all,
           const struct et_plugin *p, enum et_kind kind, int i, char *why, size_t size)
{
    const struct et_component *c = component(p, kind, i);
    const char *name = c->name ? c->name : "", *fault = NULL;
    if (!is_name(name, kind == ET_KIND_METRIC))
        fault = kind == ET_KIND_METRIC ? " is no name: letters, 0-9 and _"
                                       : " is no name: a-z, 0-9 and _";
    else if (et_registry_find(&all->registry, kind, name))
        fault = " is a name that is taken";
    for (int k = 0; k < i && !fault; k++)
        if (strcmp(component(p, kind, k)->name, name) == 0)
            fault = " is there twice";
    if (!fault && c->class_size != o->class_size[kind])
        fault = " does not say the size of its class";
    if (!fault && !c->class_name)
        fault = ": the field .info.class_name is missing";
    if (!fault && !c->summary)
        fault = ": the field .info.summary is missing";
    if (fault)
        snprintf(why, size, "%s", fault);
    return fault || eti_class_lacks(kind, c, why, size);
}

static bool
check_components(const struct opening *o, const struct et_plugins *all,
                 const struct et_plugin *p)
{
    char why[160];
    for (int k = 0; k < ET_KIND_COUNT; k++) {
        const enum et_kind kind = (enum et_kind)k;
        const struct et_component *c;
        for (int i = 0; (c = component(p, kind, i)) != NULL; i++) {
            if (!find_fault(o, all, p, kind, i, why, sizeof why))
                continue;
            refuse(o, ET_E_PLUGIN_BAD,
                   c->class_size == o->class_size[kind]
                       ? NULL
                       : "its .info begins with ET_CLASS(...): see plugin.h",
                   "%s '%s'%s", et_kind_word(kind), c->name ? c->name : "", why);
            return false;
        }
    }
    return true;
}

static int
count_passes(const struct et_plugin *p)
{
    int n = 0;
    while (p->passes && p->passes[n])
        n++;
    return n;
}

/* Is a pass called NAME, before the I-th of P? */
static bool
has_pass(const struct et_plugins *all, const struct et_plugin *p, int i,
         const char *name)
{
    for (int k = 0; k < i; k++)
        if (strcmp(p->passes[k]->name, name) == 0)
            return true;
    for (int k = 0; k < all->n; k++)
        for (int j = 0; j < count_passes(all->v[k].plugin); j++)
            if (strcmp(all->v[k].plugin->passes[j]->name, name) == 0)
                return true;
    return false;
}

/* Where one comes is known when all are there, and said where a trainer is made. */
static bool
check_passes(const struct opening *o, const struct et_plugins *all,
             const struct et_plugin *p)
{
    for (int i = 0; i < count_passes(p); i++) {
        const struct et_pass *pass = p->passes[i];
        const char *name = pass->name ? pass->name : "", *why = NULL;
        if (!is_name(name, false))
            why = "is no name: a-z, 0-9 and _";
        else if (has_pass(all, p, i, name))
            why = "is a name that is taken";
        else if (!pass->run || !pass->summary)
            why = "lacks a function or summary";
        if (why) {
            refuse(o, ET_E_PLUGIN_BAD, NULL, "pass '%s' %s", name, why);
            return false;
        }
    }
    return true;
}

/* ---- loading ---- */

static const char *
name_copy(int copy, char buf[NAME_BYTES])
{
    snprintf(buf, NAME_BYTES, "/proc/self/fd/%d", copy);
    return buf;
}

/* Takes over FOUND, the plugin's own object of O->HEAD.SIZE bytes. */
static bool
take_lists(const struct opening *o, struct loaded *l, const void *found)
{
    const unsigned char *bytes = found;
    size_t n = o->head.size < sizeof l->own ? o->head.size : sizeof l->own;
    memset(&l->own, 0, sizeof l->own);
    memcpy(&l->own, found, n);
    for (size_t i = n; i < o->head.size; i++)
        if (bytes[i]) {
            refuse(o, ET_E_PLUGIN_ABI, again,
                   "et_plugin has lists that this etude does not know");
            return false;
        }
    l->plugin = &l->own;
    return true;
}

/* The linker takes equal names for one library: the copy stays open, and its name
 * taken, as long as the library may be mapped. */
static void
map_library(struct opening *o, struct et_plugins *all)
{
    char path[NAME_BYTES];
    struct loaded *l = &all->v[all->n];
    name_copy(o->copy, path);
    const void *found = NULL;
    l->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (l->library)
        found = dlsym(l->library, "et_plugin");
    if (!found) {
        const char *why = dlerror();
        size_t n = strlen(path);
        why = why ? why : "cannot be loaded";
        refuse(o, ET_E_PLUGIN_BAD, NULL, "%s",
               strncmp(why, path, n) == 0 && why[n] == ':' ? why + n + 2 : why);
    }
    if (found && take_lists(o, l, found) && check_components(o, all, l->plugin) &&
        check_passes(o, all, l->plugin)) {
        eti_elf_range(found, &l->begin, &l->end);
        l->copy = o->copy;
        snprintf(l->name, sizeof l->name, "%s", o->entry->name);
        memcpy(l->developed, o->developed, sizeof l->developed);
        o->copy = -1;
        all->n++;
        return;
    }
    if (l->library)
        dlclose(l->library);
    l->library = NULL;
    l->plugin = NULL;
}

static et_status
load_one(struct opening *o, struct et_plugins *all)
{
    size_t n = strlen(o->entry->path) + 1;
    void *block;
    o->fd = o->copy = -1;
    if (open_file(o) && copy_file(o) && check_digest(o) && check_abi(o))
        map_library(o, all);
    if (o->bytes)
        munmap((void *)(uintptr_t)o->bytes, o->size);
    if (o->copy >= 0)
        close(o->copy);
    if (o->fd >= 0)
        close(o->fd);
    if (all->n == 0 || all->v[all->n - 1].path || !all->v[all->n - 1].plugin)
        return ET_OK;
    ET_TRY(et_alloc(o->cx, n, &block));
    all->v[all->n - 1].path = memcpy(block, o->entry->path, n);
    return ET_OK;
}

/* NULL, with a word about it, for one that is not allowed. */
static const struct et_plugin_entry *
find_entry(const struct opening *o, const struct et_plugin_entry *allowed,
           int n_allowed, const char *name)
{
    const char *names[64], *near;
    int n = 0;
    for (int i = 0; i < n_allowed; i++) {
        if (strcmp(allowed[i].name, name) == 0)
            return &allowed[i];
        if (n < 64)
            names[n++] = allowed[i].name;
    }
    near = et_nearest(name, names, n);
    if (near)
        refuse(o, ET_E_PLUGIN_DENIED, NULL,
               "'%s' is not in plugins: of config.yaml (did you mean '%s'?)", name,
               near);
    else
        refuse(o, ET_E_PLUGIN_DENIED,
               "etude config set plugins.NAME '{path: /..., sha256: ...}' allows one",
               "'%s' is not in plugins: of config.yaml", name);
    return NULL;
}

/* One list of all passes. */
static et_status
list_passes(struct et_plugins *all)
{
    void *block;
    int n = 0;
    for (int i = 0; i < all->n; i++)
        n += count_passes(all->v[i].plugin);
    ET_TRY(et_alloc(all->cx, ((size_t)n + 1) * sizeof *all->passes, &block));
    all->passes = block;
    for (int i = 0; i < all->n; i++)
        for (int k = 0; k < count_passes(all->v[i].plugin); k++)
            all->passes[all->n_passes++] = all->v[i].plugin->passes[k];
    return ET_OK;
}

et_status
et_plugins_load(struct et_ctx *cx, const struct et_plugin_entry *allowed, int n_allowed,
                const char *const *names, const struct et_place *places, int n,
                struct et_diagnostics *errors, struct et_plugins **out)
{
    ETI_NEED(cx, cx, errors, out);
    if (n_allowed > 0)
        ETI_NEED(cx, allowed);
    if (n > 0)
        ETI_NEED(cx, names);
    struct et_plugins *all;
    void *block;
    int before = errors->total;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof *all, &block));
    all = block;
    all->cx = cx;
    all->registry = (struct et_registry){.get = get, .find = find};
    et_status status = et_alloc(cx, ((size_t)n + 1) * sizeof *all->v, &block);
    if (status == ET_OK)
        all->v = block;
    for (int i = 0; i < n && status == ET_OK; i++) {
        struct opening o = {
            .cx = cx, .errors = errors, .place = places ? &places[i] : NULL};
        bool is_again = false;
        for (int k = 0; k < i; k++)
            is_again |= strcmp(names[k], names[i]) == 0;
        o.entry = is_again ? NULL : find_entry(&o, allowed, n_allowed, names[i]);
        if (o.entry)
            status = load_one(&o, all);
    }
    if (status == ET_OK && errors->total > before)
        status = ET_FAIL(cx, ET_EINVAL, "%s", errors->v[0].message);
    if (status == ET_OK)
        status = list_passes(all);
    if (status != ET_OK)
        et_plugins_free(&all);
    *out = all;
    return status;
}

/* A library may refuse to leave; then its name stays taken. */
static void
unmap(struct et_ctx *cx, struct loaded *l)
{
    char path[NAME_BYTES];
    dlclose(l->library);
    void *still = dlopen(name_copy(l->copy, path), RTLD_NOW | RTLD_NOLOAD);
    if (still)
        dlclose(still);
    else
        close(l->copy);
    et_free(cx, l->path);
}

void
et_plugins_free(struct et_plugins **plugins)
{
    if (!plugins)
        return;
    struct et_plugins *all = *plugins;
    *plugins = NULL;
    if (!all)
        return;
    for (int i = all->n - 1; i >= 0; i--)
        unmap(all->cx, &all->v[i]);
    et_free(all->cx, all->passes);
    et_free(all->cx, all->v);
    et_free(all->cx, all);
}

const struct et_registry *
et_plugins_registry(const struct et_plugins *plugins)
{
    return plugins ? &plugins->registry : NULL;
}

const struct et_pass *const *
et_registry_passes(const struct et_registry *registry, int *n)
{
    bool has = registry && registry->get == get;
    const struct et_plugins *all = has ? (const struct et_plugins *)registry : NULL;
    if (n)
        *n = all ? all->n_passes : 0;
    return all ? all->passes : NULL;
}

const char *
et_plugins_owner(const struct et_plugins *plugins, const void *address)
{
    uintptr_t at = (uintptr_t)address;
    for (int i = 0; plugins && i < plugins->n; i++)
        if (at >= plugins->v[i].begin && at < plugins->v[i].end)
            return plugins->v[i].path;
    return NULL;
}

static bool
has_component(const struct et_plugin *p, const struct et_component *wanted)
{
    const struct et_component *c;
    for (int kind = 0; kind < ET_KIND_COUNT; kind++)
        for (int i = 0; (c = component(p, (enum et_kind)kind, i)) != NULL; i++)
            if (c == wanted)
                return true;
    return false;
}

void
eti_plugins_warn(const struct et_plugins *plugins, const struct et_component *component)
{
    for (int i = 0; plugins && i < plugins->n; i++) {
        const struct loaded *l = &plugins->v[i];
        if (*l->developed && (!component || has_component(l->plugin, component)))
            warn_of(plugins->cx, l->name, l->path, l->developed);
    }
}
