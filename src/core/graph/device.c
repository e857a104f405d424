/* SPDX-License-Identifier: Apache-2.0 */
/* device.c: opening device modules; storages and what they cost. */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/need.h"
#include "core/graph/driver.h"
#include "core/graph/gpu_libs.h"
#include "core/graph/module.h"
#include "core/graph/shadow.h"
#include "core/graph/spin.h"
#include "core/graph/staging.h"
#include "kernels/ref/ref.h"

/* The module of NVIDIA GPUs is loaded only where there is one: it brings 700 MB. */
static et_status
load_cuda(const char *path, void **library, char *why, size_t why_size)
{
    if (access(path, F_OK) != 0) {
        snprintf(why, why_size, "no CUDA module in this etude: no file %.300s", path);
        return ET_ENOENT;
    }
    ET_TRY(eti_driver_probe(why, why_size));
    ET_TRY(eti_gpu_libs_use_given(why, why_size));
    return eti_gpu_libs_load("", path, library, why, why_size);
}

static et_status
load_module(const struct et_ctx *cx, const char *name, void **library, char *why,
            size_t why_size)
{
    char path[PATH_MAX];
    eti_module_find(cx, name, path);
    if (strcmp(name, "cuda") == 0)
        return load_cuda(path, library, why, why_size);
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*library)
        return ET_OK;
    snprintf(why, why_size, "%s", dlerror());
    return access(path, F_OK) == 0 ? ET_ENOTSUP : ET_ENOENT;
}

static et_status
find_table(const struct et_ctx *cx, const char *name,
           const struct et_device_table **out, void **library, char *why,
           size_t why_size)
{
    if (strcmp(name, "ref") == 0) {
        *out = etk_ref_device();
        return ET_OK;
    }
    eti_spin_set(cx); /* OpenMP reads it once, when its library is loaded */
    ET_TRY(load_module(cx, name, library, why, why_size));
    const struct et_device_table *(*module)(void);
    *(void **)&module = dlsym(*library, "et_device_module");
    if (!module) {
        snprintf(why, why_size, "libetude-%s.so exports no et_device_module", name);
        return ET_ENOTSUP;
    }
    const struct et_device_table *table = module();
    if (table->abi == ET_DEVICE_ABI && table->size == sizeof *table) {
        *out = table;
        return ET_OK;
    }
    snprintf(why, why_size,
             "libetude-%s.so has device ABI %u (%u bytes), this is %u (%zu)", name,
             table->abi, table->size, ET_DEVICE_ABI, sizeof *table);
    return ET_ENOTSUP;
}

et_status
et_device_open(struct et_ctx *cx, const char *name, int index, int threads,
               struct et_device **out)
{
    ETI_NEED(cx, cx, name, out);
    *out = NULL;
    void *block;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_device *dev = block;
    dev->cx = cx;
    dev->next = eti_ctx_devices(cx);
    eti_ctx_set_devices(cx, dev, 1);
    char why[512] = "";
    et_status status =
        find_table(cx, name, &dev->table, &dev->library, why, sizeof why);
    if (status == ET_OK)
        status = dev->table->open(index, threads, &dev->handle, why, sizeof why);
    if (status != ET_OK) {
        ET_FAIL(cx, status, "no device '%s': %s", name, why);
        et_device_close(&dev);
        return status;
    }
    *out = dev;
    return ET_OK;
}

/* With checks on: says no where D is still in use. */
static bool
may_close(struct et_device *d)
{
    int graphs = 0;
    if (!eti_ctx_checks(d->cx))
        return true;
    for (const struct et_graph *g = d->graphs; g; g = g->next)
        graphs++;
    if (graphs == 0 && d->storages == 0)
        return true;
    eti_ctx_refuse(d->cx,
                   "et_device_close: %d graphs and %lld storages of tensors on the "
                   "device '%s' are not freed",
                   graphs, (long long)d->storages, d->table->name);
    return false;
}

static void
unlink_device(struct et_device *d)
{
    struct et_device *first = eti_ctx_devices(d->cx), *at = first;
    if (first == d)
        first = d->next;
    else
        while (at->next != d)
            at = at->next;
    if (at != d)
        at->next = d->next;
    eti_ctx_set_devices(d->cx, first, -1);
}

void
et_device_close(struct et_device **dev)
{
    if (!dev)
        return;
    struct et_device *d = *dev;
    if (!d || !may_close(d))
        return;
    *dev = NULL;
    unlink_device(d);
    eti_release_freed(d);
    if (d->handle) {
        eti_staging_free(d);
        if (d->uploads)
            d->table->stream_free(d->uploads);
        d->table->close(d->handle);
    }
    /* The library stays mapped: OpenMP's threads outlive the device. */
    et_free(d->cx, d);
}

void
et_device_get_info(const struct et_device *dev, struct et_device_info *out)
{
    if (!dev || !out)
        return;
    memset(out, 0, sizeof *out);
    dev->table->info(dev->handle, out);
}

et_status
et_device_set(struct et_device *dev, enum et_device_option option, int value)
{
    ETI_NEED(dev ? dev->cx : NULL, dev);
    const struct et_device_table *t = dev->table;
    if (t->set)
        return eti_device_check(dev, t->set(dev->handle, option, value), "an option");
    if (!value || option == ET_DEVICE_DETERMINISTIC)
        return ET_OK;
    return ET_FAIL(dev->cx, ET_ENOTSUP, "the device '%s' has no %s", t->name,
                   option == ET_DEVICE_TF32 ? "TF32" : "such option");
}

const char *
et_device_name(const struct et_device *dev)
{
    if (!dev)
        return NULL;
    return dev->table->name;
}

void
et_device_get_memory(const struct et_device *dev, struct et_device_memory *out)
{
    if (!dev || !out)
        return;
    *out = dev->memory;
    out->has_pool =
        dev->table->pool && dev->table->pool(dev->handle, &out->pool) == ET_OK;
}

et_status
et_device_get_sensors(struct et_device *dev, struct et_device_sensors *out)
{
    ETI_NEED(dev ? dev->cx : NULL, dev);
    const struct et_device_table *t = dev->table;
    if (t->sensors)
        return eti_device_check(dev, t->sensors(dev->handle, out), "reading sensors");
    return ET_FAIL(dev->cx, ET_ENOTSUP, "the device '%s' has no sensors", t->name);
}

void
et_device_set_limit(struct et_device *dev, size_t bytes)
{
    if (!dev)
        return;
    dev->limit = bytes;
}

static et_status
fail_alloc(struct et_ctx *cx, struct et_device *dev, et_status status, size_t bytes)
{
    const struct et_device_table *t = dev->table;
    char left[64] = "";
    size_t free_bytes;
    if (status != ET_ENOMEM)
        return eti_device_check(dev, status, "allocating memory");
    if (t->memory_free && t->memory_free(dev->handle, &free_bytes) == ET_OK)
        snprintf(left, sizeof left, ", %zu free", free_bytes);
    return ET_FAIL(cx, ET_ENOMEM,
                   "out of %s memory: %zu bytes asked for, %zu in use by this run%s",
                   t->name, bytes, dev->memory.current_bytes, left);
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
        return fail_alloc(cx, dev, status, bytes);
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

/* What a storage is here: memory of the device's, or another's. */
struct storage {
    struct et_storage is;
    void (*release)(void *owner); /* NULL: the device's */
    void *owner;
};

et_status
et_storage_wrap(struct et_ctx *cx, struct et_device *dev, void *data, size_t bytes,
                void (*release)(void *owner), void *owner, struct et_storage **out)
{
    ETI_NEED(cx, cx, dev, out);
    struct et_device_info info;
    void *block;
    *out = NULL;
    et_device_get_info(dev, &info);
    if (!info.host_memory)
        return ET_FAIL(cx, ET_ENOTSUP, "%s does not compute in the host's memory",
                       et_device_name(dev));
    if (!data || !release)
        return ET_FAIL(cx, ET_EINVAL, "no %s", data ? "release" : "memory");
    ET_TRY(et_alloc(cx, sizeof(struct storage), &block));
    struct storage *s = block;
    *s = (struct storage){
        .is = {.dev = dev, .data = data, .bytes = bytes, .refs = 1},
        .release = release,
        .owner = owner,
    };
    dev->storages++;
    *out = &s->is;
    return ET_OK;
}

et_status
et_storage_new(struct et_ctx *cx, struct et_device *dev, size_t bytes,
               struct et_storage **out)
{
    ETI_NEED(cx, cx, dev, out);
    *out = NULL;
    void *block, *data;
    ET_TRY(et_alloc(cx, sizeof(struct storage), &block));
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
    dev->storages++;
    return ET_OK;
}

struct et_storage *
et_storage_ref(struct et_storage *s)
{
    if (!s)
        return NULL;
    s->refs++;
    return s;
}

void
et_storage_unref(struct et_storage *s)
{
    if (!s || --s->refs > 0)
        return;
    struct et_device *dev = s->dev;
    const struct storage *own = (const struct storage *)s;
    dev->storages--;
    eti_shadow_free(s);
    if (own->release)
        own->release(own->owner);
    else
        eti_device_free(dev, s->data, s->bytes);
    et_free(dev->cx, s);
}
