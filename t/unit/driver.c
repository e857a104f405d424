/* What the driver's answers mean, and where CUDA's libraries are looked for. */
#include "config.h"

#include "core/graph/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "t/data/fixture.h"
#include "t/tap.h"

static void
test_answers(const char *nodes)
{
    char why[256];
    unsetenv("CUDA_VISIBLE_DEVICES");
    is_int(eti_driver_explain(100, nodes, why, sizeof why), ET_ENOENT,
           "no device: there is nothing");
    ok(strstr(why, "sees no GPU") != NULL, "%s", why);
    setenv("CUDA_VISIBLE_DEVICES", "3", 1);
    is_int(eti_driver_explain(100, nodes, why, sizeof why), ET_ENOENT,
           "no device that may be seen: neither");
    ok(strstr(why, "CUDA_VISIBLE_DEVICES='3'") != NULL, "%s", why);
    is_int(eti_driver_explain(999, nodes, why, sizeof why), ET_ENOTSUP,
           "an unknown error: there is something that cannot be used");
    ok(strstr(why, "CUDA_ERROR_UNKNOWN") != NULL, "%s", why);
}

static void
touch(const char *folder, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fclose(f) != 0 || chmod(path, mode) != 0)
        bail("cannot make %s", path);
}

/* Another user's eyes: root may read everything. */
static int
as_nobody(const char *nodes)
{
    char why[256];
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && setuid(65534) != 0)
            _exit(3);
        et_status status = eti_driver_explain(100, nodes, why, sizeof why);
        _exit(status == ET_ENOTSUP && strstr(why, "no permission") &&
                      strstr(why, "nvidiactl")
                  ? 0
                  : 1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : 9;
}

struct list {
    char text[1024];
};

static void
note(void *data, const char *path)
{
    struct list *l = data;
    size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%s ", strrchr(path, '/') + 1);
}

static void
test_libraries(const char *folder)
{
    static const char *const there[] = {"libcudnn.so.9",   "libcudart.so.13",
                                        "libnvrtc.so.13",  "libnvrtc-builtins.so.13.0",
                                        "libcudart.so.11", "libcudnn_graph.so.9"};
    struct list l = {""};
    if (ET_CUDA_MAJOR != 13) {
        skip(2, "this is another CUDA than the names of the test");
        return;
    }
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        touch(folder, there[i], 0600);
    is_int(eti_driver_find_libraries(folder, note, &l), 5,
           "libraries of this CUDA are found, and none of another");
    is_str(l.text,
           "libcudart.so.13 libnvrtc-builtins.so.13.0 libnvrtc.so.13 "
           "libcudnn_graph.so.9 libcudnn.so.9 ",
           "those first that others need");
}

/* A library that can be loaded, where pip would put CUDA's. */
static void
test_python(const char *folder)
{
    char path[PATH_MAX], below[PATH_MAX];
    Dl_info some;
    if (!dladdr((void *)crc32, &some) || !some.dli_fname)
        bail("zlib is not a library");
    int n = snprintf(below, sizeof below, "%s", folder);
    static const char *const parts[] = {"lib",    "python3.11", "site-packages",
                                        "nvidia", "cu13",       "lib"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        n += snprintf(below + n, sizeof below - (size_t)n, "/%s", parts[i]);
        if (mkdir(below, 0700) != 0)
            bail("cannot make %s", below);
    }
    snprintf(path, sizeof path, "%.3000s/libcudart.so.%d", below, ET_CUDA_MAJOR);
    if (symlink(some.dli_fname, path) != 0)
        bail("cannot make %s", path);
    setenv("VIRTUAL_ENV", folder, 1);
    is_int(eti_driver_use_pythons(), 1, "a library among Python's packages is loaded");
    void *again = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    ok(again != NULL, "and is there when it is asked for");
    if (again)
        dlclose(again);
}

int
main(void)
{
    char nodes[PATH_MAX], libraries[PATH_MAX], python[PATH_MAX];
    snprintf(nodes, sizeof nodes, "%s/nodes", scratch_folder());
    snprintf(libraries, sizeof libraries, "%s/libraries", scratch_folder());
    snprintf(python, sizeof python, "%s/python", scratch_folder());
    if (chmod(scratch_folder(), 0755) != 0 || mkdir(nodes, 0755) != 0 ||
        mkdir(libraries, 0700) != 0 || mkdir(python, 0700) != 0)
        bail("cannot make %s", nodes);
    test_answers(nodes);
    touch(nodes, "nvidiactl", 0600);
    int code = as_nobody(nodes);
    if (getuid() != 0)
        skip(1, "only root can make files that we may not read");
    else
        is_int(code, 0, "a GPU that belongs to others is told apart from none");
    test_libraries(libraries);
    test_python(python);
    return done();
}
