/* SPDX-License-Identifier: Apache-2.0 */
/* module.h: a device module, loaded from the build directory, for tests. */
#ifndef T_KERNELS_MODULE_H
#define T_KERNELS_MODULE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "etude/ctx.h"
#include "etude/device.h"
#include "etude/tensor.h"
#include "t/tap.h"

/* NULL when libetude-NAME.so was not built. It stays loaded until the process ends. */
static inline const struct et_device_table *
open_module_of(const char *name)
{
    const char *dir = getenv("ET_BUILDDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/.libs/libetude-%s.so", dir ? dir : ".", name);
    /* About what the engine's loader finds (core/graph/spin.c). OpenMP reads it when it
     * is loaded; with its own default a busy neighbour costs a factor of ten. */
    setenv("GOMP_SPINCOUNT", "1000", 0);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return NULL;
    const struct et_device_table *(*module)(void);
    *(void **)&module = dlsym(library, "et_device_module");
    return module ? module() : NULL;
}

static inline const struct et_device_table *
open_module(void)
{
    return open_module_of("cpu");
}

/* The module of the device NAME, which a user asked for; else all is skipped. The
 * engine knows where CUDA's libraries are, and says why a device is not there. */
static inline const struct et_device_table *
open_asked(const char *name)
{
    struct et_ctx *cx;
    struct et_device *dev;
    /* What is fastest is not asked here, and nothing kept in the user's cache. */
    setenv("ETUDE_TUNE", "0", 0);
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    if (et_device_open(cx, name, 0, 0, &dev) != ET_OK)
        skip_all(et_error_get(cx)->message);
    et_device_close(&dev);
    et_ctx_free(&cx);
    const struct et_device_table *table = open_module_of(name);
    if (!table)
        skip_all("the device's module was not built");
    return table;
}

#endif
