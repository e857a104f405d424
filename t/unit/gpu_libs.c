/* SPDX-License-Identifier: Apache-2.0 */
/* Where the module of NVIDIA GPUs gets CUDA's libraries from: folders laid out as
 * NVIDIA's installers, NVIDIA's packages for Debian, PyPI's packages and conda lay them
 * out, with libraries that have the right names and nothing in them (t/unit/fake.c).
 *
 * Each case is this program again, started by the loader itself, which then forgets
 * what else this machine has: `gpu_libs load ROOT MODULE`. */
#include "config.h"

#include "core/graph/gpu_libs.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/data/fixture.h"
#include "t/tap.h"

#define TEXT(x)     #x
#define EXPANDED(x) TEXT(x)
#define MAJOR       EXPANDED(ET_CUDA_MAJOR)
#define CUDART      "libcudart.so." MAJOR
#define BLASLT      "libcublasLt.so." MAJOR
#define NVRTC       "libnvrtc.so." MAJOR
#define BUILTINS    "libnvrtc-builtins.so." MAJOR ".0"
#define DNN         "libcudnn.so.9"
#define DNN_GRAPH   "libcudnn_graph.so.9"

/* ---- the child ---- */

static void
print(void *data, const char *name, const char *path)
{
    (void)data;
    printf("%.*s %s\n", (int)strcspn(name, "."), name, path);
}

/* Is there none of the libraries where this loader looks? */
static bool
is_bare(void)
{
    static const char *const names[] = {CUDART, BLASLT, NVRTC, DNN};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (dlopen(names[i], RTLD_LAZY))
            return false;
    return true;
}

/* Prints where each library was found, or why the module cannot be loaded. */
static int
load(const char *root, const char *module)
{
    char why[512] = "";
    void *library;
    if (!getenv("LD_LIBRARY_PATH") && !is_bare()) {
        printf("the loader itself finds some of them\n");
        return 1;
    }
    et_status status = eti_gpu_libs_use_given(why, sizeof why);
    if (status == ET_OK)
        status = eti_gpu_libs_load(root, module, &library, why, sizeof why);
    if (status != ET_OK) {
        printf("%s: %s\n", status == ET_ENOTSUP ? "no" : et_status_name(status), why);
        return 0;
    }
    eti_gpu_libs_each(print, NULL);
    if (dlopen(BUILTINS, RTLD_LAZY | RTLD_NOLOAD))
        printf("built-in functions are there\n");
    return 0;
}

/* ---- the parent ---- */

static const char *root, *fakes;
static char module[PATH_MAX], loader[PATH_MAX], self[PATH_MAX];

/* A file NAME in FOLDER, which is below the root, that is the fake library OF. */
static void
put_as(const char *folder, const char *name, const char *of)
{
    char path[PATH_MAX], target[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.1000s/%.1000s/%.200s", root, folder, name);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    snprintf(target, sizeof target, "%.2000s/%.200s", fakes, of);
    if (n >= PATH_MAX || (symlink(target, path) != 0 && access(path, R_OK) != 0))
        bail("cannot make %s", path);
}

static void
put(const char *folder, const char *name)
{
    put_as(folder, name, name);
}

static void
put_toolkit(const char *folder)
{
    static const char *const names[] = {CUDART, BLASLT, NVRTC, BUILTINS};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        put(folder, names[i]);
}

static void
put_cudnn(const char *folder)
{
    put(folder, DNN);
    put(folder, DNN_GRAPH);
}

/* What a child says with ENVIRONMENT ("NAME=value" with blanks between them, @ for the
 * root); @ instead of the root. */
static const char *
ask(const char *environment)
{
    static char said[4096];
    char command[3 * PATH_MAX], text[PATH_MAX] = "", line[1024];
    int n = 0;
    for (const char *c = environment; *c; c++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%.*s", *c == '@' ? 999 : 1,
                      *c == '@' ? root : c);
    snprintf(
        command, sizeof command,
        "timeout 20 env -u CUDA_HOME -u CUDA_PATH -u VIRTUAL_ENV -u CONDA_PREFIX -u "
        "LD_LIBRARY_PATH "
        "HOME=/nonexistent PATH=/nonexistent %.2000s '%.900s' --inhibit-cache "
        "'%.900s' load "
        "'%.900s' '%.900s' 2>&1",
        text, loader, self, root, module);
    FILE *f = popen(command, "r");
    if (!f)
        bail("cannot run %s", command);
    said[0] = '\0';
    n = 0;
    while (fgets(line, sizeof line, f)) {
        char *at = strstr(line, root);
        n += at ? snprintf(said + n, sizeof said - (size_t)n, "%.*s@%s",
                           (int)(at - line), line, at + strlen(root))
                : snprintf(said + n, sizeof said - (size_t)n, "%s", line);
        if ((size_t)n >= sizeof said)
            bail("too much: %s", said);
    }
    (void)pclose(f);
    return said;
}

/* All of them, those of the toolkit from FOLDER and cuDNN from another. */
static const char *
all_from(const char *folder, const char *dnn)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "libcudart @/%s/" CUDART "\nlibcublasLt @/%s/" BLASLT
             "\nlibnvrtc @/%s/" NVRTC "\nlibcudnn @/%s/" DNN
             "\nbuilt-in functions are there\n",
             folder, folder, folder, dnn);
    return text;
}

static void
starts_with(const char *got, const char *want, const char *name)
{
    if (!ok(strncmp(got, want, strlen(want)) == 0, "%s", name))
        diag("got '%s', want '%s...'", got, want);
}

#define SITE "lib/python3.11/site-packages/nvidia"

static void
test_places(void)
{
    starts_with(ask(""), "no: libcublasLt.so." MAJOR " is missing (",
                "nothing: one library is named");

    put_toolkit("usr/local/cuda/lib64");
    starts_with(ask(""),
                "no: libcudnn.so.9 is missing (Debian/Ubuntu from NVIDIA: "
                "libcudnn9-cuda-" MAJOR "; PyPI: nvidia-cudnn-cu" MAJOR
                "; conda: cudnn)",
                "a toolkit without cuDNN: the packages that have it are named");

    put_cudnn("multiarch");
    is_str(ask("LD_LIBRARY_PATH=@/multiarch"),
           all_from("usr/local/cuda/lib64", "multiarch"),
           "NVIDIA's packages: cuDNN is the system's, the rest a toolkit's");
    put_cudnn("venv/" SITE "/cudnn/lib");
    is_str(ask("VIRTUAL_ENV=@/venv"),
           all_from("usr/local/cuda/lib64", "venv/" SITE "/cudnn/lib"),
           "cuDNN from PyPI beside a toolkit");
    put_toolkit("conda/lib");
    put_cudnn("conda/lib");
    is_str(ask("CONDA_PREFIX=@/conda"), all_from("usr/local/cuda/lib64", "conda/lib"),
           "what the toolkit lacks comes from conda");
    put_toolkit("home/targets/x86_64-linux/lib");
    put_cudnn("home/targets/x86_64-linux/lib");
    is_str(ask("CUDA_HOME=@/home"),
           all_from("home/targets/x86_64-linux/lib", "home/targets/x86_64-linux/lib"),
           "CUDA_HOME comes before the usual place");
    put_cudnn("usr/local/cuda/lib64");
    is_str(ask("VIRTUAL_ENV=@/venv"),
           all_from("usr/local/cuda/lib64", "usr/local/cuda/lib64"),
           "cuDNN in the toolkit's own folder");
}

/* One library after the other is put where they are looked for: each time the next one
 * that is missing is named, with the packages that have it. */
static void
test_missing(void)
{
    const char *const suffix = ET_CUDA_MAJOR < 13 ? "-cu" MAJOR : "";
    const struct {
        const char *name, *apt, *pypi, *suffix, *conda;
        bool minor; /* Debian's name ends in CUDA's minor version */
    } rows[] = {
        {BLASLT, "libcublas-" MAJOR, "nvidia-cublas", suffix, "libcublas", true},
        {DNN, "libcudnn9-cuda-" MAJOR, "nvidia-cudnn-cu" MAJOR, "", "cudnn", false},
        {CUDART, "cuda-cudart-" MAJOR, "nvidia-cuda-runtime", suffix, "cuda-cudart",
         true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[512], minor[16] = "";
        if (rows[i].minor)
            snprintf(minor, sizeof minor, "-%d", ET_CUDA_VERSION % 1000 / 10);
        snprintf(want, sizeof want,
                 "no: %s is missing (Debian/Ubuntu from NVIDIA: %s%s; PyPI: %s%s; "
                 "conda: %s); if it is there, name its folder in ETUDE_CUDA_LIBS\n",
                 rows[i].name, rows[i].apt, minor, rows[i].pypi, rows[i].suffix,
                 rows[i].conda);
        is_str(ask("CUDA_HOME=@/piece"), want, "%s is missing", rows[i].name);
        put("piece/lib64", rows[i].name);
    }
}

static void
test_without_toolkit(void)
{
    char path[PATH_MAX], moved[PATH_MAX];
    snprintf(path, sizeof path, "%.2000s/usr/local/cuda", root);
    snprintf(moved, sizeof moved, "%.2000s/usr/local/cuda-9.9", root);
    if (rename(path, moved) != 0)
        bail("cannot rename %s", path);
    is_str(ask(""), all_from("usr/local/cuda-9.9/lib64", "usr/local/cuda-9.9/lib64"),
           "a toolkit in a folder with its version");
    snprintf(path, sizeof path, "%.2000s/gone", root);
    if (rename(moved, path) != 0)
        bail("cannot rename %s", moved);

    put_toolkit("venv/" SITE "/cu" MAJOR "/lib");
    is_str(ask("VIRTUAL_ENV=@/venv"),
           all_from("venv/" SITE "/cu" MAJOR "/lib", "venv/" SITE "/cudnn/lib"),
           "all of it from PyPI");
    is_str(ask("CONDA_PREFIX=@/conda"), all_from("conda/lib", "conda/lib"),
           "all of it from conda");
    put("old/" SITE "/cuda_runtime/lib", CUDART);
    put("old/" SITE "/cublas/lib", BLASLT);
    put("old/" SITE "/cuda_nvrtc/lib", NVRTC);
    put("old/" SITE "/cuda_nvrtc/lib", BUILTINS);
    put_cudnn("old/" SITE "/cudnn/lib");
    is_str(ask("VIRTUAL_ENV=@/old"),
           "libcudart @/old/" SITE "/cuda_runtime/lib/" CUDART
           "\nlibcublasLt @/old/" SITE "/cublas/lib/" BLASLT "\nlibnvrtc @/old/" SITE
           "/cuda_nvrtc/lib/" NVRTC "\nlibcudnn @/old/" SITE "/cudnn/lib/" DNN
           "\nbuilt-in functions are there\n",
           "each of them in a folder of its own, as PyPI has CUDA 12");
    put("plain/lib64", CUDART);
    put("plain/lib64", BLASLT);
    put_cudnn("plain/lib64");
    is_str(ask("CUDA_PATH=@/plain"),
           "libcudart @/plain/lib64/" CUDART "\nlibcublasLt @/plain/lib64/" BLASLT
           "\nlibcudnn @/plain/lib64/" DNN "\n",
           "NVRTC may be missing");
}

/* Beside the python3 that comes first on PATH, whatever stands before it there. */
static void
test_python(void)
{
    char path[PATH_MAX];
    put_toolkit("own/" SITE "/cu" MAJOR "/lib");
    put_cudnn("own/" SITE "/cudnn/lib");
    put("own/bin", "libnccl.so.2");
    put("late/bin", "libnccl.so.2");
    put("before/bin", "libnccl.so.2");
    static const char *const folders[] = {"own", "late"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%.2000s/%s/bin/python3", root, folders[i]);
        FILE *f = fopen(path, "w");
        if (!f || fclose(f) != 0 || chmod(path, 0755) != 0)
            bail("cannot write %s", path);
    }
    is_str(ask("PATH=@/before/bin::@/own/bin:@/late/bin"),
           all_from("own/" SITE "/cu" MAJOR "/lib", "own/" SITE "/cudnn/lib"),
           "PyPI's packages of the first python3 on PATH");
    starts_with(ask("PATH=@/late/bin:@/own/bin"), "no: ", "and of no later one");
}

/* A file of the right name that is another library: it is loaded, and does not help. */
static void
test_other_contents(void)
{
    put("odd/lib64", CUDART);
    put_as("odd/lib64", BLASLT, "libnccl.so.2");
    put_cudnn("odd/lib64");
    starts_with(
        ask("CUDA_PATH=@/odd"), "no: libcublasLt.so." MAJOR ": cannot open",
        "a library that is still missing when it was loaded is not tried again");
}

static void
test_given(void)
{
    char path[PATH_MAX];
    put("wheels/nccl/lib", "libnccl.so.2");
    put_toolkit("wheels/toolkit/lib");
    put_cudnn("wheels/cudnn/lib");
    is_str(
        ask("VIRTUAL_ENV=@/venv ETUDE_CUDA_LIBS=@/wheels/nccl/lib:@/wheels/cudnn/lib:"
            "@/wheels/none:@/wheels/toolkit/lib"),
        all_from("wheels/toolkit/lib", "wheels/cudnn/lib"),
        "ETUDE_CUDA_LIBS comes first, and folders without CUDA are passed over");
    is_str(ask("VIRTUAL_ENV=@/venv ETUDE_CUDA_LIBS=@/wheels/cudnn/lib"),
           all_from("venv/" SITE "/cu" MAJOR "/lib", "wheels/cudnn/lib"),
           "what it does not name is found elsewhere");
    starts_with(
        ask("VIRTUAL_ENV=@/venv ETUDE_CUDA_LIBS=@/wheels/nccl/lib:@/wheels/none"),
        "no: ETUDE_CUDA_LIBS: no library of CUDA " MAJOR
        " or cuDNN 9 is in @/wheels/nccl/lib:",
        "a mistake is told where none of its folders has any");

    snprintf(path, sizeof path, "%.2000s/usr/local/cuda-9.9/lib64", root);
    put("usr/local/cuda-9.9/lib64", "nothing");
    strncat(path, "/" DNN, sizeof path - strlen(path) - 1);
    FILE *f = fopen(path, "w");
    if (!f || fputs("no library", f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
    is_str(ask("VIRTUAL_ENV=@/venv"),
           all_from("venv/" SITE "/cu" MAJOR "/lib", "venv/" SITE "/cudnn/lib"),
           "a file that cannot be loaded is passed over where there is another");
    starts_with(ask("ETUDE_CUDA_LIBS=@/wheels/toolkit/lib"),
                "no: @/usr/local/cuda-9.9/lib64/" DNN ": ",
                "and named where there is not");
}

int
main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "load") == 0)
        return load(argv[2], argv[3]);
    const char *build = getenv("ET_BUILDDIR");
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.2000s/t/unit/fakes", build ? build : ".");
    fakes = realpath(folder, NULL);
    if (!fakes)
        bail("no %s", folder);
    snprintf(module, sizeof module, "%.2000s/module.so", fakes);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    root = scratch_folder();
    Dl_info ld = {0};
    if (!dladdr(dlsym(RTLD_DEFAULT, "__tls_get_addr"), &ld) || !ld.dli_fname)
        skip_all("the loader cannot be found");
    snprintf(loader, sizeof loader, "%s", ld.dli_fname);
    unsetenv("ETUDE_CUDA_LIBS");
    if (strncmp(ask(""), "no: ", strlen("no: ")) != 0) {
        diag("%s", ask(""));
        skip_all("this machine's own libraries cannot be hidden");
    }
    test_missing();
    test_places();
    test_without_toolkit();
    test_python();
    test_other_contents();
    test_given();
    return done();
}
