/* module.h: a device module, loaded from the build directory, for tests. */
#ifndef T_KERNELS_MODULE_H
#define T_KERNELS_MODULE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "etude/device.h"

/* NULL when libetude-NAME.so was not built. It stays loaded until the process ends. */
static inline const struct et_device_table *
open_module_of(const char *name)
{
    const char *dir = getenv("ET_BUILDDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/.libs/libetude-%s.so", dir ? dir : ".", name);
    /* As the engine's loader does: OpenMP reads it when it is loaded, and with its own
     * default a busy neighbour costs a factor of ten (ENGINE.md section 1). */
    setenv("GOMP_SPINCOUNT", "10000", 0);
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

#endif
