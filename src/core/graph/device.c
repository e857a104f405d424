/* device.c: finding and opening device modules; storages and what they cost. */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/graph/staging.h"
#include "kernels/ref/ref.h"

enum { PATH_SIZE = 4096 };

/* With its default spin count libgomp loses 10x beside a busy neighbour; 10,000 turns
 * keep an idle machine's speed (ENGINE.md section 1). Read once, when the library
 * loads. */
static const char spin_count[] = "10000";

/* Where the module of NAME may be: beside a program that runs in its build tree, else
 * where it was installed. */
static void *
load_module(const char *name, char *why, size_t why_size)
{
    char exe[PATH_SIZE], path[PATH_SIZE + 64];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    for (int up = 0; up < 4; up++) {
        char *slash = strrchr(exe, '/');
        if (!slash)
            break;
        *slash = '\0';
        snprintf(path, sizeof path, "%s/config.status", exe);
        if (access(path, F_OK) != 0)
            continue;
        snprintf(path, sizeof path, "%s/.libs/libetude-%s.so", exe, name);
        if (access(path, F_OK) != 0)
            break;
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            snprintf(why, why_size, "%s", dlerror());
        return library;
    }
    snprintf(path, sizeof path, "%s/libetude-%s.so", ET_PKGLIBDIR, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        snprintf(why, why_size, "%s", dlerror());
    return library;
}

static const struct et_device_table *
find_table(const char *name, void **library, char *why, size_t why_size)
{
    if (strcmp(name, "ref") == 0)
        return etk_ref_device();
    setenv("GOMP_SPINCOUNT", spin_count, 0);
    *library = load_module(name, why, why_size);
    if (!*library)
        return NULL;
    const struct et_device_table *(*module)(void);
    *(void **)&module = dlsym(*library, "et_device_module");
    if (!module) {
        snprintf(why, why_size, "libetude-%s.so exports no et_device_module", name);
        return NULL;
    }
    const struct et_device_table *table = module();
    if (table->abi == ET_DEVICE_ABI && table->size == sizeof *table)
        return table;
    snprintf(why, why_size,
             "libetude-%s.so has device ABI %u (%u bytes), this is %u (%zu)", name,
             table->abi, table->size, ET_DEVICE_ABI, sizeof *table);
    return NULL;
}

et_status
et_device_open(struct et_ctx *cx, const char *name, int index, int threads,
               struct et_device **out)
{
    *out = NULL;
    void *block;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_device *dev = block;
    dev->cx = cx;
    char why[512] = "";
    dev->table = find_table(name, &dev->library, why, sizeof why);
    et_status status = ET_ENOTSUP;
    if (dev->table)
        status = dev->table->open(index, threads, &dev->handle, why, sizeof why);
    if (status != ET_OK) {
        ET_FAIL(cx, status, "no device '%s': %s", name, why);
        et_device_close(&dev);
        return status;
    }
    *out = dev;
    return ET_OK;
}

void
et_device_close(struct et_device **dev)
{
    struct et_device *d = *dev;
    *dev = NULL;
    if (!d)
        return;
    if (d->handle) {
        eti_staging_free(d);
        d->table->close(d->handle);
    }
    /* The library stays mapped: OpenMP's threads outlive the device. */
    et_free(d->cx, d);
}

void
et_device_get_info(const struct et_device *dev, struct et_device_info *out)
{
    memset(out, 0, sizeof *out);
    dev->table->info(dev->handle, out);
}

const char *
et_device_name(const struct et_device *dev)
{
    return dev->table->name;
}

void
et_device_get_memory(const struct et_device *dev, struct et_device_memory *out)
{
    *out = dev->memory;
}

void
et_device_set_limit(struct et_device *dev, size_t bytes)
{
    dev->limit = bytes;
}

et_status
eti_device_alloc(struct et_ctx *cx, struct et_device *dev, size_t bytes, void **out)
{
    *out = NULL;
    if (dev->limit && dev->memory.current_bytes + bytes > dev->limit)
        return ET_FAIL(cx, ET_ENOMEM,
                       "out of %s memory: %zu bytes needed, %zu of %zu in use",
                       dev->table->name, bytes, dev->memory.current_bytes, dev->limit);
    et_status status = dev->table->alloc(dev->handle, bytes ? bytes : 1, out);
    if (status != ET_OK)
        return ET_FAIL(cx, status, "out of %s memory: %zu bytes asked for, %zu in use",
                       dev->table->name, bytes, dev->memory.current_bytes);
    dev->memory.allocs++;
    dev->memory.current_bytes += bytes;
    if (dev->memory.current_bytes > dev->memory.peak_bytes)
        dev->memory.peak_bytes = dev->memory.current_bytes;
    return ET_OK;
}

void
eti_device_free(struct et_device *dev, void *block, size_t bytes)
{
    if (!block)
        return;
    dev->table->free(dev->handle, block, bytes ? bytes : 1);
    dev->memory.current_bytes -= bytes;
}

et_status
eti_device_check(struct et_device *dev, et_status status, const char *what)
{
    const char *why = dev->table->why ? dev->table->why(dev->handle) : "";
    if (status == ET_OK)
        return ET_OK;
    return ET_FAIL(dev->cx, status, "%s failed on %s: %s", what, dev->table->name,
                   why[0] ? why : et_status_name(status));
}

/* Memory for a leaf; graphs give up their caches rather than that it fails. */
static et_status
alloc_storage(struct et_ctx *cx, struct et_device *dev, size_t bytes, void **out)
{
    et_status status = eti_device_alloc(cx, dev, bytes, out);
    if (status != ET_ENOMEM || !dev->graphs)
        return status;
    for (struct et_graph *g = dev->graphs; g; g = g->next)
        eti_drop_caches(g, NULL);
    et_error_clear(cx);
    return eti_device_alloc(cx, dev, bytes, out);
}

et_status
et_storage_new(struct et_ctx *cx, struct et_device *dev, size_t bytes,
               struct et_storage **out)
{
    *out = NULL;
    void *block, *data;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    et_status status = alloc_storage(cx, dev, bytes, &data);
    if (status != ET_OK) {
        et_free(cx, block);
        return status;
    }
    status = dev->table->fill(dev->handle, data, 0, bytes, NULL);
    if (status != ET_OK) {
        eti_device_free(dev, data, bytes);
        et_free(cx, block);
        return eti_device_check(dev, status, "clearing memory");
    }
    *out = block;
    **out = (struct et_storage){.dev = dev, .data = data, .bytes = bytes, .refs = 1};
    return ET_OK;
}

struct et_storage *
et_storage_ref(struct et_storage *s)
{
    s->refs++;
    return s;
}

void
et_storage_unref(struct et_storage *s)
{
    if (!s || --s->refs > 0)
        return;
    struct et_device *dev = s->dev;
    eti_device_free(dev, s->data, s->bytes);
    et_free(dev->cx, s);
}
