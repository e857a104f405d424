/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_libs.c: the module of NVIDIA GPUs is loaded, and CUDA's libraries for it.
 *
 * The module is linked to them by name. The loader looks where configure found them
 * (the module's own path) and where the system has its libraries. What it does not find
 * is looked for in the places below and loaded by its full path; whoever asks for its
 * name then gets it. The same goes for what these libraries open by name themselves:
 * cuDNN opens NVRTC, and NVRTC its built-in functions, and neither knows of the
 * module's path. */
#include "config.h"

#include "core/graph/gpu_libs.h"

#include <dlfcn.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the libraries ---- */

#define TEXT(x)     #x
#define EXPANDED(x) TEXT(x)
#define CUDA_MAJOR  EXPANDED(ET_CUDA_MAJOR)
#if ET_CUDA_MAJOR < 13
#define PYPI_SUFFIX "-cu" CUDA_MAJOR
#else
#define PYPI_SUFFIX ""
#endif

static const struct part {
    /* A file that it opens by name and that lies beside it (a pattern of glob(7));
     * NULL: none. Other parts of cuDNN find each other. */
    const char *needs;
    const char *name; /* what others call it */
    const char *apt;  /* the package in NVIDIA's repositories for Debian and Ubuntu, */
    bool minor;       /* and whether its name ends in CUDA's minor version */
    const char *pypi, *conda;
} parts[] = {
    {
        .name = "libcudart.so." CUDA_MAJOR,
        .apt = "cuda-cudart-" CUDA_MAJOR,
        .minor = true,
        .pypi = "nvidia-cuda-runtime" PYPI_SUFFIX,
        .conda = "cuda-cudart",
    },
    {
        .name = "libcublasLt.so." CUDA_MAJOR,
        .apt = "libcublas-" CUDA_MAJOR,
        .minor = true,
        .pypi = "nvidia-cublas" PYPI_SUFFIX,
        .conda = "libcublas",
    },
    {
        .needs = "libnvrtc-builtins.so." CUDA_MAJOR "*",
        .name = "libnvrtc.so." CUDA_MAJOR,
        .apt = "cuda-nvrtc-" CUDA_MAJOR,
        .minor = true,
        .pypi = "nvidia-cuda-nvrtc" PYPI_SUFFIX,
        .conda = "cuda-nvrtc",
    },
    {
        .needs = "libcudnn_graph.so.9",
        .name = "libcudnn.so.9",
        .apt = "libcudnn9-cuda-" CUDA_MAJOR,
        .pypi = "nvidia-cudnn-cu" CUDA_MAJOR,
        .conda = "cudnn",
    },
};
enum { N_PARTS = sizeof parts / sizeof parts[0], RUNTIME = 0, RTC = 2 };

static const struct part *
part_called(const char *name, size_t length)
{
    for (size_t i = 0; i < N_PARTS; i++)
        if (strlen(parts[i].name) == length &&
            strncmp(parts[i].name, name, length) == 0)
            return &parts[i];
    return NULL;
}

struct attempt {
    const struct part *part;
    char error[256]; /* of the first file that was there and could not be loaded */
};

/* Returns how many files match NAME in FOLDER and could be loaded. They stay. */
static int
load_files(struct attempt *a, const char *folder, const char *name)
{
    char pattern[PATH_MAX];
    glob_t g;
    int n = snprintf(pattern, sizeof pattern, "%s/%s", folder, name), loaded = 0;
    if (n < 0 || (size_t)n >= sizeof pattern || glob(pattern, 0, NULL, &g) != 0)
        return 0;
    for (size_t i = 0; i < g.gl_pathc; i++)
        if (dlopen(g.gl_pathv[i], RTLD_LAZY | RTLD_LOCAL))
            loaded++;
        else if (!a->error[0])
            snprintf(a->error, sizeof a->error, "%s", dlerror());
    globfree(&g);
    return loaded;
}

static bool
load_part(void *data, const char *folder)
{
    struct attempt *a = data;
    if (a->part->needs)
        (void)load_files(a, folder, a->part->needs);
    return load_files(a, folder, a->part->name) > 0;
}

/* ---- places ---- */

/* Below each root: patterns of glob(7). */
static const char *const of_toolkits[] = {
    "lib64",
    "lib",
    "targets/*-linux/lib",
    NULL,
};
static const char *const of_pythons[] = {
    "lib/python3*/site-packages/nvidia/*/lib",
    "local/lib/python3*/dist-packages/nvidia/*/lib",
    "lib/python3*/dist-packages/nvidia/*/lib",
    "lib/python3/dist-packages/nvidia/*/lib",
    NULL,
};

static const struct place {
    enum { SYSTEM, VARIABLE, HOME, PYTHON } kind;
    const char *root; /* a path, a variable's name or what is below the home folder */
    const char *const *below;
} places[] = {
    {VARIABLE, "CUDA_HOME", of_toolkits},
    {VARIABLE, "CUDA_PATH", of_toolkits},
    {SYSTEM, "/usr/local/cuda", of_toolkits},
    {SYSTEM, "/usr/local/cuda-*", of_toolkits},
    {VARIABLE, "VIRTUAL_ENV", of_pythons},
    {PYTHON, NULL, of_pythons},
    {HOME, ".local", of_pythons},
    {SYSTEM, "/usr/local", of_pythons},
    {SYSTEM, "/usr", of_pythons},
    {VARIABLE, "CONDA_PREFIX", of_toolkits},
    {VARIABLE, "CONDA_PREFIX", of_pythons},
};

/* The folder beside that of the first python3 on PATH: a virtual environment has its
 * own, and so has what conda and pyenv install. */
static int
print_python(char *out, size_t size)
{
    const char *path = getenv("PATH");
    char program[PATH_MAX];
    for (; path && *path; path += strspn(path, ":")) {
        size_t n = strcspn(path, ":");
        int len = snprintf(program, sizeof program, "%.*s/python3", (int)n, path);
        path += n;
        if (len > 0 && (size_t)len < sizeof program && access(program, X_OK) == 0)
            return snprintf(out, size, "%s", dirname(dirname(program)));
    }
    return 0;
}

/* Where P is on this machine; false: nowhere. */
static bool
find_root(const struct place *p, const char *root, char out[PATH_MAX])
{
    const char *value = p->kind == VARIABLE ? getenv(p->root)
                        : p->kind == HOME   ? getenv("HOME")
                                            : root;
    int n = 0;
    if (p->kind == PYTHON)
        n = print_python(out, PATH_MAX);
    else if (value && p->kind == VARIABLE)
        n = snprintf(out, PATH_MAX, "%s", value);
    else if (value && p->kind == HOME)
        n = snprintf(out, PATH_MAX, "%s/%s", value, p->root);
    else if (value)
        n = snprintf(out, PATH_MAX, "%s%s", root, p->root);
    return n > 0 && n < PATH_MAX;
}

/* Calls USE with the folders there are, until it returns true; was there such? */
static bool
try_folders(const char *root, bool (*use)(void *data, const char *folder), void *data)
{
    char top[PATH_MAX], pattern[PATH_MAX];
    bool done = false;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !done; i++) {
        if (!find_root(&places[i], root, top))
            continue;
        for (const char *const *below = places[i].below; *below && !done; below++) {
            glob_t g;
            int n = snprintf(pattern, sizeof pattern, "%s/%s", top, *below);
            if (n < 0 || n >= PATH_MAX || glob(pattern, 0, NULL, &g) != 0)
                continue;
            for (size_t k = 0; k < g.gl_pathc && !done; k++)
                done = use(data, g.gl_pathv[k]);
            globfree(&g);
        }
    }
    return done;
}

/* ---- loading ---- */

et_status
eti_gpu_libs_use_given(char *why, size_t why_size)
{
    const char *given = getenv("ETUDE_CUDA_LIBS");
    char folder[PATH_MAX];
    struct attempt a = {0};
    int loaded = 0;
    if (!given || !*given)
        return ET_OK;
    for (const char *at = given; *at; at += strspn(at, ":")) {
        size_t n = strcspn(at, ":");
        snprintf(folder, sizeof folder, "%.*s", (int)n, at);
        at += n;
        for (size_t i = 0; i < N_PARTS; i++) {
            a.part = &parts[i];
            loaded += load_part(&a, folder);
        }
    }
    if (a.error[0])
        snprintf(why, why_size, "ETUDE_CUDA_LIBS: %s", a.error);
    else if (loaded == 0)
        snprintf(why, why_size,
                 "ETUDE_CUDA_LIBS: no library of CUDA " CUDA_MAJOR
                 " or cuDNN 9 is in %s",
                 given);
    return a.error[0] || loaded == 0 ? ET_ENOTSUP : ET_OK;
}

static void
explain(const struct attempt *a, char *why, size_t why_size)
{
    const struct part *p = a->part;
    char minor[16] = "";
    if (a->error[0]) {
        snprintf(why, why_size, "%s; ETUDE_CUDA_LIBS may name other folders", a->error);
        return;
    }
    if (p->minor)
        snprintf(minor, sizeof minor, "-%d", ET_CUDA_VERSION % 1000 / 10);
    snprintf(
        why, why_size,
        "%s is missing (Debian/Ubuntu from NVIDIA: %s%s; PyPI: %s; conda: %s); if it "
        "is there, name its folder in ETUDE_CUDA_LIBS",
        p->name, p->apt, minor, p->pypi, p->conda);
}

/* Where NAME, which is loaded, was found; NULL: it is not. */
static const char *
path_of(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    struct link_map *map = NULL;
    if (!library)
        return NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        map = NULL;
    dlclose(library); /* whoever loaded it keeps it */
    return map ? map->l_name : NULL;
}

/* It takes 6 ms. Beside CUDA's runtime it is of the same version. */
void
eti_gpu_libs_use_rtc(const char *root)
{
    struct attempt a = {.part = &parts[RTC]};
    char folder[PATH_MAX];
    const char *runtime = path_of(parts[RUNTIME].name);
    int n = runtime ? snprintf(folder, sizeof folder, "%s", runtime) : 0;
    if (path_of(parts[RTC].name) ||
        (n > 0 && (size_t)n < sizeof folder && load_part(&a, dirname(folder))) ||
        dlopen(parts[RTC].name, RTLD_LAZY | RTLD_LOCAL))
        return;
    (void)try_folders(root, load_part, &a);
}

et_status
eti_gpu_libs_load(const char *root, const char *module, void **out, char *why,
                  size_t why_size)
{
    const struct part *last = NULL;
    for (;;) {
        *out = dlopen(module, RTLD_NOW | RTLD_LOCAL);
        if (*out)
            break;
        /* "libcudnn.so.9: cannot open shared object file: ..." */
        const char *error = dlerror();
        struct attempt a = {.part = part_called(error, strcspn(error, ":"))};
        if (!a.part || a.part == last) {
            snprintf(why, why_size, "%s; ETUDE_CUDA_LIBS may name other folders",
                     error);
            return ET_ENOTSUP;
        }
        last = a.part;
        if (!try_folders(root, load_part, &a)) {
            explain(&a, why, why_size);
            return ET_ENOTSUP;
        }
    }
    eti_gpu_libs_use_rtc(root);
    return ET_OK;
}

void
eti_gpu_libs_each(void (*each)(void *data, const char *name, const char *path),
                  void *data)
{
    for (size_t i = 0; i < N_PARTS; i++) {
        const char *path = path_of(parts[i].name);
        if (path)
            each(data, parts[i].name, path);
    }
}
