/* SPDX-License-Identifier: Apache-2.0 */
/* nvrtc.cc: NVRTC with the host's compiler, and libraries that are loaded from memory.
 *
 * A program's text is CUDA C++ that asks for no header; the simulator's own comes
 * first. It becomes a shared object, linked with this library, where threadIdx and the
 * rest are. Products and sums stay apart, as with --fmad=false. */
#include "nvrtc.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

struct gpusim_program {
    std::string source, code, log;
};

struct gpusim_library {
    int fd; /* the file in memory, which the loader's names lead to */
    void *handle;
};

static bool
read_all(const std::string &path, std::string *all)
{
    char part[65536];
    size_t n;
    FILE *f = fopen(path.c_str(), "rb");
    all->clear();
    while (f && (n = fread(part, 1, sizeof part, f)) > 0)
        all->append(part, n);
    return f && fclose(f) == 0;
}

/* Of this library itself. */
static std::string
own_path(void)
{
    Dl_info info;
    return dladdr((void *)nvrtcCompileProgram, &info) ? info.dli_fname : "";
}

static bool
write_all(const std::string &path, const std::string &text)
{
    FILE *f = fopen(path.c_str(), "wb");
    bool whole = f && fwrite(text.data(), 1, text.size(), f) == text.size();
    return (!f || fclose(f) == 0) && whole;
}

/* In DIR, which is the program's own. */
static nvrtcResult
compile_in(const std::string &dir, gpusim_program *p)
{
    std::string text = dir + "/program.cc", code = dir + "/program.so";
    std::string log = dir + "/log";
    if (!write_all(text, "#include \"cuda_runtime.h\"\n" + p->source))
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    std::string command = GPUSIM_CXX
                          " -std=c++17 -O1 -w -fPIC -shared -ffp-contract=off"
                          " -DETK_SIM -I'" GPUSIM_INCLUDE "' -o " +
                          code + " " + text + " '" + own_path() + "' >" + log + " 2>&1";
    int status = system(command.c_str());
    read_all(log, &p->log);
    bool made = status == 0 && read_all(code, &p->code);
    for (const std::string &path : {text, code, log})
        unlink(path.c_str());
    return made ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

nvrtcResult
nvrtcCompileProgram(nvrtcProgram program, int, const char *const *)
{
    const char *top = getenv("TMPDIR");
    std::string dir = std::string(top ? top : "/tmp") + "/gpusim-XXXXXX";
    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!mkdtemp(&dir[0]))
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    nvrtcResult result = compile_in(dir, program);
    rmdir(dir.c_str());
    return result;
}

nvrtcResult
nvrtcGetNumSupportedArchs(int *n)
{
    *n = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult
nvrtcGetSupportedArchs(int *archs)
{
    archs[0] = 90;
    return NVRTC_SUCCESS;
}

nvrtcResult
nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *,
                   int n_headers, const char *const *, const char *const *)
{
    if (!program || !source || n_headers != 0)
        return NVRTC_ERROR_INVALID_INPUT;
    *program = new gpusim_program;
    (*program)->source = source;
    return NVRTC_SUCCESS;
}

nvrtcResult
nvrtcDestroyProgram(nvrtcProgram *program)
{
    if (!program || !*program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    delete *program;
    *program = NULL;
    return NVRTC_SUCCESS;
}

/* Texts end in a zero byte, which counts. */
static nvrtcResult
give(const std::string &from, bool is_text, size_t *size, char *to)
{
    if (size)
        *size = from.size() + is_text;
    if (to)
        memcpy(to, from.c_str(), from.size() + is_text);
    return NVRTC_SUCCESS;
}

nvrtcResult
nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    return give(program->code, false, size, NULL);
}

nvrtcResult
nvrtcGetCUBIN(nvrtcProgram program, char *code)
{
    return give(program->code, false, NULL, code);
}

nvrtcResult
nvrtcGetPTXSize(nvrtcProgram program, size_t *size)
{
    return give(program->code, false, size, NULL);
}

nvrtcResult
nvrtcGetPTX(nvrtcProgram program, char *code)
{
    return give(program->code, false, NULL, code);
}

nvrtcResult
nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    return give(program->log, true, size, NULL);
}

nvrtcResult
nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    return give(program->log, true, NULL, log);
}

/* ---- libraries ---- */

/* A shared object ends with its table of sections. */
static size_t
size_of(const void *code)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)code;
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0
               ? head->e_shoff + (size_t)head->e_shnum * head->e_shentsize
               : 0;
}

cudaError_t
cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *,
                    void **, unsigned, enum cudaLibraryOption *, void **, unsigned)
{
    return gpusim_call(__func__, [&] {
        size_t size = size_of(code);
        if (size == 0)
            return cudaErrorInvalidKernelImage;
        int fd = memfd_create("gpusim", MFD_CLOEXEC);
        if (fd < 0 || write(fd, code, size) != (ssize_t)size) {
            if (fd >= 0)
                close(fd);
            return cudaErrorMemoryAllocation;
        }
        std::string path = "/proc/self/fd/" + std::to_string(fd);
        void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            close(fd);
            return cudaErrorInvalidKernelImage;
        }
        *library = new gpusim_library{fd, handle};
        return cudaSuccess;
    });
}

cudaError_t
cudaLibraryUnload(cudaLibrary_t library)
{
    return gpusim_call(__func__, [&] {
        if (!library)
            return cudaErrorInvalidResourceHandle;
        dlclose(library->handle);
        close(library->fd);
        delete library;
        return cudaSuccess;
    });
}

cudaError_t
cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    return gpusim_call(__func__, [&] {
        *kernel = (cudaKernel_t)dlsym(library->handle, name);
        return *kernel ? cudaSuccess : cudaErrorSymbolNotFound;
    });
}
