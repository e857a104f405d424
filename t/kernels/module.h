/* module.h: the CPU module, loaded from the build directory, for tests. */
#ifndef T_KERNELS_MODULE_H
#define T_KERNELS_MODULE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "etude/device.h"

/* NULL when it was not built. It stays loaded until the process ends. */
static inline const struct et_device_table *
open_module(void)
{
    const char *dir = getenv("ET_BUILDDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/.libs/libetude-cpu.so", dir ? dir : ".");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return NULL;
    const struct et_device_table *(*module)(void);
    *(void **)&module = dlsym(library, "et_device_module");
    return module ? module() : NULL;
}

#endif
