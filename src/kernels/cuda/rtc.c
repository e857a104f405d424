/* SPDX-License-Identifier: Apache-2.0 */
/* rtc.c: compiling at run time, once per process and once per machine. */
#include "kernels/cuda/rtc.h"

#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cache.h"
#include "kernels/cuda/program.h"

/* ---- NVRTC ---- */

/* Its functions that are used. */
#define RTC_MAP(X)                                                                     \
    X(nvrtcGetNumSupportedArchs)                                                       \
    X(nvrtcGetSupportedArchs)                                                          \
    X(nvrtcCreateProgram)                                                              \
    X(nvrtcDestroyProgram)                                                             \
    X(nvrtcCompileProgram)                                                             \
    X(nvrtcGetCUBINSize)                                                               \
    X(nvrtcGetCUBIN)                                                                   \
    X(nvrtcGetPTXSize)                                                                 \
    X(nvrtcGetPTX)                                                                     \
    X(nvrtcGetProgramLogSize)                                                          \
    X(nvrtcGetProgramLog)

struct nvrtc {
#define RTC_MEMBER(name) __typeof__(&name) name;
    RTC_MAP(RTC_MEMBER)
    bool there;
};

/* The module does not link NVRTC: 100 MB that a second run on a machine never needs,
 * and without which everything works. Once loaded it stays. */
static struct nvrtc
open_nvrtc(void)
{
    struct nvrtc n = {.there = true};
#ifdef ETK_SIM
#define RTC_TAKE(symbol) n.symbol = symbol;
#else
#define RTC_TAKE(symbol)                                                               \
    *(void **)&n.symbol = dlsym(library, #symbol);                                     \
    n.there = n.there && n.symbol != NULL;
    char name[32];
    snprintf(name, sizeof name, "libnvrtc.so.%d", CUDART_VERSION / 1000);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return (struct nvrtc){.there = false};
#endif
    RTC_MAP(RTC_TAKE)
    return n;
}

/* The newest architecture that NVRTC knows and a GPU of ARCH runs; 0: none. */
static int
architecture_for(const struct nvrtc *n, int arch)
{
    int count = 0, best = 0;
    if (n->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0)
        return 0;
    int *list = calloc((size_t)count, sizeof *list);
    if (list && n->nvrtcGetSupportedArchs(list) == NVRTC_SUCCESS)
        for (int i = 0; i < count; i++)
            if (list[i] <= arch && list[i] > best)
                best = list[i];
    free(list);
    return best;
}

static void
read_log(const struct nvrtc *n, nvrtcProgram program, char *report, size_t report_size)
{
    size_t size = 0;
    char *log = NULL;
    if (n->nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 0)
        log = calloc(1, size + 1);
    if (log && n->nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS)
        snprintf(report, report_size, "%s", log);
    free(log);
}

/* Machine code, or PTX for a GPU that is newer than NVRTC. */
static nvrtcResult
read_code(const struct nvrtc *n, nvrtcProgram program, bool machine, void **code,
          size_t *size)
{
    nvrtcResult result = machine ? n->nvrtcGetCUBINSize(program, size)
                                 : n->nvrtcGetPTXSize(program, size);
    if (result != NVRTC_SUCCESS)
        return result;
    *code = calloc(1, *size + 1);
    if (!*code)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    return machine ? n->nvrtcGetCUBIN(program, *code) : n->nvrtcGetPTX(program, *code);
}

et_status
etk_rtc_compile(const char *source, int arch, void **code, size_t *size, char *report,
                size_t report_size)
{
    nvrtcProgram program = NULL;
    char target[48];
    *code = NULL;
    *size = 0;
    report[0] = 0;
    const struct nvrtc nvrtc = open_nvrtc(), *n = &nvrtc;
    int known = n->there ? architecture_for(n, arch) : 0;
    if (known == 0) {
        snprintf(report, report_size, "NVRTC %s",
                 n->there ? "does not know this GPU" : "is not installed");
        return ET_ENOTSUP;
    }
    snprintf(target, sizeof target, "--gpu-architecture=%s_%d",
             known == arch ? "sm" : "compute", known);
    /* -v: what the assembler says of registers and spills. */
    const char *option[] = {target, "--std=c++17", "--fmad=false",
                            "--ptxas-options=-v"};
    nvrtcResult result = n->nvrtcCreateProgram(&program, source,
                                               ETK_PROGRAM_KERNEL ".cu", 0, NULL, NULL);
    if (result == NVRTC_SUCCESS) {
        result = n->nvrtcCompileProgram(program, 4, option);
        read_log(n, program, report, report_size);
    }
    if (result == NVRTC_SUCCESS)
        result = read_code(n, program, known == arch, code, size);
    if (program)
        (void)n->nvrtcDestroyProgram(&program);
    if (result != NVRTC_SUCCESS) {
        free(*code);
        *code = NULL;
    }
    return etk_classify(ETK_RTC, (int)result);
}

/* ---- what a device has loaded ---- */

struct loaded {
    struct loaded *next;
    cudaLibrary_t library;
    const void *kernel;
    char source[];
};

struct etk_rtc {
    bool off, missing; /* missing: NVRTC, as the first text that was not kept showed */
    struct loaded *first;
};

/* Under d->lock. */
static et_status
open_rtc(struct et_device_handle *d)
{
    if (d->rtc)
        return ET_OK;
    d->rtc = calloc(1, sizeof *d->rtc);
    if (!d->rtc)
        return ET_ENOMEM;
    const char *wanted = getenv("ETUDE_RTC");
#ifdef ETK_SIM
    d->rtc->off = !wanted || wanted[0] != '1';
#else
    d->rtc->off = wanted && wanted[0] == '0';
#endif
    return ET_OK;
}

bool
etk_rtc_is_on(struct et_device_handle *d)
{
    pthread_mutex_lock(&d->lock);
    bool on = open_rtc(d) == ET_OK && !d->rtc->off && !d->rtc->missing;
    pthread_mutex_unlock(&d->lock);
    return on;
}

/* From disk, or compiled and kept there. */
static et_status
obtain(struct et_device_handle *d, const char *source, void **code, size_t *size)
{
    int arch = 10 * d->gpu.major + d->gpu.minor;
    size_t room = strlen(source) + 96;
    char *key = malloc(room), report[160];
    if (!key)
        return ET_ENOMEM;
    snprintf(key, room, "NVRTC of CUDA %d, sm_%d, no fmad\n%s", CUDART_VERSION, arch,
             source);
    et_status status = ET_OK;
    if (!etk_cache_read("rtc", key, code, size)) {
        status = etk_rtc_compile(source, arch, code, size, report, sizeof report);
        if (status == ET_OK) {
            etk_cache_write("rtc", key, *code, *size);
        } else {
            pthread_mutex_lock(&d->lock);
            d->rtc->missing |= status == ET_ENOTSUP;
            snprintf(d->why, sizeof d->why, "a kernel was not compiled: %s", report);
            pthread_mutex_unlock(&d->lock);
        }
    }
    free(key);
    return status;
}

static et_status
load(struct et_device_handle *d, const void *code, const char *name, struct loaded *l)
{
    cudaKernel_t kernel;
    ETK_TRY_CUDA(d,
                 cudaLibraryLoadData(&l->library, code, NULL, NULL, 0, NULL, NULL, 0));
    cudaError_t found = cudaLibraryGetKernel(&kernel, l->library, name);
    if (found != cudaSuccess) {
        (void)cudaLibraryUnload(l->library);
        return etk_fail(d, ETK_CUDA, (int)found, "cudaLibraryGetKernel");
    }
    l->kernel = (const void *)kernel;
    return ET_OK;
}

static const void *
find(struct et_device_handle *d, const char *source)
{
    const void *kernel = NULL;
    pthread_mutex_lock(&d->lock);
    for (const struct loaded *l = d->rtc->first; l && !kernel; l = l->next)
        if (strcmp(l->source, source) == 0)
            kernel = l->kernel;
    pthread_mutex_unlock(&d->lock);
    return kernel;
}

et_status
etk_rtc_get(struct et_device_handle *d, const char *source, const char *name,
            const void **kernel)
{
    void *code = NULL;
    size_t size, length = strlen(source) + 1;
    if (!etk_rtc_is_on(d))
        return ET_ENOTSUP;
    *kernel = find(d, source);
    if (*kernel)
        return ET_OK;
    struct loaded *l = calloc(1, sizeof *l + length);
    if (!l)
        return ET_ENOMEM;
    memcpy(l->source, source, length);
    et_status status = obtain(d, source, &code, &size);
    if (status == ET_OK)
        status = load(d, code, name, l);
    free(code);
    if (status != ET_OK) {
        free(l);
        return status;
    }
    /* Two threads that compiled the same both keep it: rare, and harmless. */
    pthread_mutex_lock(&d->lock);
    l->next = d->rtc->first;
    d->rtc->first = l;
    pthread_mutex_unlock(&d->lock);
    *kernel = l->kernel;
    return ET_OK;
}

void
etk_rtc_close(struct et_device_handle *d)
{
    if (!d->rtc)
        return;
    while (d->rtc->first) {
        struct loaded *l = d->rtc->first;
        d->rtc->first = l->next;
        (void)cudaLibraryUnload(l->library);
        free(l);
    }
    free(d->rtc);
    d->rtc = NULL;
}
