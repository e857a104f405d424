/* driver.c: is there a GPU to talk to, and where are CUDA's libraries?
 *
 * Loading the module maps 700 MB of libraries and takes 65 ms; asking for the driver
 * takes 0.1 ms where there is none (ENGINE.md section 2). So the driver is asked first.
 * Of it three functions are called, whose declarations here are those of cuda.h: core
 * knows no header of CUDA's.
 *
 * The module is linked to CUDA's libraries by name. Where neither its own path nor the
 * loader's has them, they may lie in Python's packages; what is loaded by full path is
 * found again by its name. */
#include "config.h"

#include "core/graph/driver.h"

#include <dlfcn.h>
#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the driver ---- */

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

/* A driver that has been asked stays loaded: it has threads, and the module needs it.
 */
et_status
eti_driver_probe(char *why, size_t why_size)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver)
        return ask(driver, why, why_size);
    snprintf(why, why_size, "there is no NVIDIA driver: %s", dlerror());
    return ET_ENOENT;
}

/* ---- CUDA's libraries ---- */

#define TEXT(x)     #x
#define EXPANDED(x) TEXT(x)
#define CUDA_MAJOR  EXPANDED(ET_CUDA_MAJOR)

/* What the module is linked to, and what NVRTC opens by name; what others need comes
 * first. Parts of cuDNN are found by cuDNN, beside itself. */
static const char *const libraries[] = {
    "libcudart.so." CUDA_MAJOR,
    "libcublasLt.so." CUDA_MAJOR,
    "libnvrtc-builtins.so." CUDA_MAJOR "*",
    "libnvrtc.so." CUDA_MAJOR,
    "libcudnn_graph.so.9",
    "libcudnn.so.9",
};

int
eti_driver_find_libraries(const char *folder,
                          void (*path)(void *data, const char *path), void *data)
{
    char pattern[PATH_MAX];
    int found = 0;
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        glob_t g;
        int n = snprintf(pattern, sizeof pattern, "%s/%s", folder, libraries[i]);
        if (n < 0 || (size_t)n >= sizeof pattern || glob(pattern, 0, NULL, &g) != 0)
            continue;
        for (size_t k = 0; k < g.gl_pathc; k++)
            path(data, g.gl_pathv[k]);
        found += (int)g.gl_pathc;
        globfree(&g);
    }
    return found;
}

struct loading {
    int loaded;
    char *why; /* of the first that could not be; NULL: nobody asks */
    size_t why_size;
};

static void
load_library(void *data, const char *path)
{
    struct loading *l = data;
    if (dlopen(path, RTLD_LAZY | RTLD_LOCAL))
        l->loaded++;
    else if (l->why && !l->why[0])
        snprintf(l->why, l->why_size, "ETUDE_CUDA_LIBS: %s", dlerror());
}

/* Folders with colons between them, as in PATH. */
et_status
eti_driver_use_given(char *why, size_t why_size)
{
    const char *at = getenv("ETUDE_CUDA_LIBS");
    char folder[PATH_MAX];
    struct loading l = {.why = why, .why_size = why_size};
    why[0] = '\0';
    if (!at || !*at)
        return ET_OK;
    for (int found; *at; at += strspn(at, ":")) {
        size_t n = strcspn(at, ":");
        snprintf(folder, sizeof folder, "%.*s", (int)n, at);
        found = eti_driver_find_libraries(folder, load_library, &l);
        if (found == 0 && !why[0])
            snprintf(why, why_size,
                     "ETUDE_CUDA_LIBS: no library of CUDA " CUDA_MAJOR
                     " or cuDNN 9 is in %s",
                     folder);
        at += n;
    }
    return why[0] ? ET_ENOTSUP : ET_OK;
}

/* The folder beside that of the first python3 on PATH: a virtual environment has its
 * own, and so has what conda and pyenv install. */
static bool
find_python(char out[PATH_MAX])
{
    const char *path = getenv("PATH");
    char program[PATH_MAX];
    for (; path && *path; path += strspn(path, ":")) {
        size_t n = strcspn(path, ":");
        int len = snprintf(program, sizeof program, "%.*s/python3", (int)n, path);
        path += n;
        if (len < 0 || (size_t)len >= sizeof program || access(program, X_OK) != 0)
            continue;
        snprintf(out, PATH_MAX, "%s", dirname(dirname(program)));
        return true;
    }
    return false;
}

int
eti_driver_use_pythons(void)
{
    static const char *const below[] = {
        "lib/python3*/site-packages/nvidia/*/lib",
        "local/lib/python3*/dist-packages/nvidia/*/lib",
        "lib/python3*/dist-packages/nvidia/*/lib",
        "lib/python3/dist-packages/nvidia/*/lib",
    };
    char python[PATH_MAX], home[PATH_MAX], folder[PATH_MAX];
    const char *const roots[] = {
        getenv("VIRTUAL_ENV"),
        getenv("CONDA_PREFIX"),
        find_python(python) ? python : NULL,
        getenv("HOME") && snprintf(home, sizeof home, "%s/.local", getenv("HOME")) > 0
            ? home
            : NULL,
        "/usr/local",
        "/usr",
    };
    struct loading l = {0};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0] && l.loaded == 0; i++)
        for (size_t k = 0; roots[i] && k < sizeof below / sizeof below[0]; k++) {
            int n = snprintf(folder, sizeof folder, "%s/%s", roots[i], below[k]);
            if (n > 0 && (size_t)n < sizeof folder)
                (void)eti_driver_find_libraries(folder, load_library, &l);
        }
    return l.loaded;
}
