/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c: is there a GPU to talk to?
 *
 * Loading the module maps 700 MB of libraries and takes 65 ms; asking for the driver
 * takes 0.1 ms where there is none (ENGINE.md section 2). So the driver is asked first.
 * Of it three functions are called, whose declarations here are those of cuda.h: core
 * knows no header of CUDA's. */
#include "config.h"

#include "core/graph/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ENOENT: nothing is there; ENOTSUP: it is there, and cannot be used. */
static const struct {
    int code; /* CUresult of cuda.h, which never changes */
    et_status status;
    const char *name, *why;
} answers[] = {
    {34, ET_ENOENT, "CUDA_ERROR_STUB_LIBRARY", "libcuda.so.1 is a stub and no driver"},
    {46, ET_ENOTSUP, "CUDA_ERROR_DEVICE_UNAVAILABLE", "another process holds the GPU"},
    {100, ET_ENOENT, "CUDA_ERROR_NO_DEVICE", "the driver sees no GPU"},
    {304, ET_ENOTSUP, "CUDA_ERROR_OPERATING_SYSTEM",
     "the system refused the driver something"},
    {800, ET_ENOTSUP, "CUDA_ERROR_NOT_PERMITTED",
     "the driver was not permitted something"},
    {802, ET_ENOTSUP, "CUDA_ERROR_SYSTEM_NOT_READY",
     "the NVIDIA fabric manager is not up"},
    {803, ET_ENOTSUP, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "the driver and its library are of two versions: restart the machine"},
    {804, ET_ENOTSUP, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "the GPU does not go with this compatibility library of CUDA"},
    {999, ET_ENOTSUP, "CUDA_ERROR_UNKNOWN",
     "the driver does not know why; nvidia-smi may"},
};

/* A file of the GPU's that is there and that we may not use. */
static bool
is_forbidden(const char *nodes, const char *name, char path[PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%s/%s", nodes, name);
    return n > 0 && n < PATH_MAX && access(path, F_OK) == 0 &&
           access(path, R_OK | W_OK) != 0;
}

et_status
eti_driver_explain(int code, const char *nodes, char *why, size_t why_size)
{
    char path[PATH_MAX];
    const char *hidden = getenv("CUDA_VISIBLE_DEVICES");
    if (is_forbidden(nodes, "nvidiactl", path) ||
        is_forbidden(nodes, "nvidia-uvm", path) ||
        is_forbidden(nodes, "nvidia0", path)) {
        snprintf(why, why_size, "no permission to read and write %s", path);
        return ET_ENOTSUP;
    }
    if (code == 100 && hidden) {
        snprintf(why, why_size, "the driver sees no GPU with CUDA_VISIBLE_DEVICES='%s'",
                 hidden);
        return ET_ENOENT;
    }
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (answers[i].code == code) {
            snprintf(why, why_size, "%s (%s)", answers[i].why, answers[i].name);
            return answers[i].status;
        }
    snprintf(why, why_size, "the driver does not start: cuInit answers %d", code);
    return ET_ENOTSUP;
}

/* ET_CUDA_VERSION counts as the driver does: 13000 = 13.0. */
static et_status
ask(void *driver, char *why, size_t why_size)
{
    int (*version)(int *), (*init)(unsigned), (*count)(int *);
    int has = 0, n = 0;
    *(void **)&version = dlsym(driver, "cuDriverGetVersion");
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&count = dlsym(driver, "cuDeviceGetCount");
    if (!version || !init || !count) {
        snprintf(why, why_size, "libcuda.so.1 is not NVIDIA's driver");
        return ET_ENOENT;
    }
    if (version(&has) == 0 && has / 1000 < ET_CUDA_VERSION / 1000) {
        snprintf(why, why_size,
                 "the NVIDIA driver is for CUDA %d.%d, and this program for %d.%d: "
                 "update the driver",
                 has / 1000, has % 1000 / 10, ET_CUDA_VERSION / 1000,
                 ET_CUDA_VERSION % 1000 / 10);
        return ET_ENOTSUP;
    }
    int code = init(0);
    if (code == 0)
        code = count(&n);
    if (code == 0 && n > 0)
        return ET_OK;
    return eti_driver_explain(code ? code : 100, "/dev", why, why_size);
}

/* A driver that has been asked stays loaded: it has threads, and the module needs
 * it. */
et_status
eti_driver_probe(char *why, size_t why_size)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver)
        return ask(driver, why, why_size);
    snprintf(why, why_size, "there is no NVIDIA driver: %s", dlerror());
    return ET_ENOENT;
}
