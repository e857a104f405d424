/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver's answers mean. */
#include "config.h"

#include "core/graph/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
    is_int(eti_driver_explain(804, nodes, why, sizeof why), ET_ENOTSUP,
           "another reason is told with that set, too");
    ok(strstr(why, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE") != NULL, "%s", why);
    is_int(eti_driver_explain(7, nodes, why, sizeof why), ET_ENOTSUP,
           "an answer that is in no table");
    ok(strstr(why, "cuInit answers 7") != NULL, "is told as it is: %s", why);
    is_int(eti_driver_explain(999, nodes, why, sizeof why), ET_ENOTSUP,
           "an unknown error: there is something that cannot be used");
    ok(strstr(why, "CUDA_ERROR_UNKNOWN") != NULL, "%s", why);
}

/* Drivers that answer what they are told to (t/gpusim/driver.c). */
static void
test_drivers(void)
{
    static const struct {
        int version, init, count_says, count;
        et_status want;
        const char *says, *what;
    } rows[] = {
        {0, 0, 0, 1, ET_OK, "", "a driver of this version with a GPU"},
        {+30, 0, 0, 2, ET_OK, "", "one of a later minor version with two"},
        {-(ET_CUDA_VERSION % 1000), 0, 0, 1, ET_OK, "",
         "one of the first minor version: all of a major one will do"},
        {+1000, 0, 0, 1, ET_OK, "", "one of a later major version"},
        {-1000, 0, 0, 1, ET_ENOTSUP, "update the driver", "one of the major before"},
        {0, 0, 0, 0, ET_ENOENT, "sees no GPU", "one without a GPU"},
        {0, 100, 0, 1, ET_ENOENT, "CUDA_ERROR_NO_DEVICE", "one that does not start"},
        {0, 0, 802, 1, ET_ENOTSUP, "CUDA_ERROR_SYSTEM_NOT_READY",
         "one that starts and cannot count"},
        {0, 804, 999, 0, ET_ENOTSUP, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
         "one that fails twice: the first reason is told"},
    };
    char path[PATH_MAX], why[256], answers[64];
    const char *build = getenv("ET_BUILDDIR");
    snprintf(path, sizeof path, "%.3000s/t/unit/fakes/libcuda.so.1",
             build ? build : ".");
    /* Whoever asks for its name is given this one now. */
    if (!dlopen(path, RTLD_LAZY | RTLD_LOCAL))
        bail("%s", dlerror());
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        why[0] = '\0';
        snprintf(answers, sizeof answers, "%d %d %d %d",
                 ET_CUDA_VERSION + rows[i].version, rows[i].init, rows[i].count_says,
                 rows[i].count);
        setenv("FAKE_DRIVER", answers, 1);
        is_int(eti_driver_probe(why, sizeof why), rows[i].want, "%s", rows[i].what);
        ok(strstr(why, rows[i].says) != NULL, "it is told: %s", why);
    }
}

static void
touch(const char *folder, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.3000s/%.200s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fclose(f) != 0 || chmod(path, mode) != 0)
        bail("cannot make %s", path);
}

/* Behind a driver that has a GPU the libraries that were given are asked for. */
static void
test_given_libraries(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_device *dev = NULL;
    char answers[64];
    snprintf(answers, sizeof answers, "%d 0 0 1", ET_CUDA_VERSION);
    setenv("FAKE_DRIVER", answers, 1);
    setenv("ETUDE_MODULE_PATH", scratch_folder(), 1);
    setenv("ETUDE_CUDA_LIBS", scratch_folder(), 1);
    touch(scratch_folder(), "libetude-cuda.so", 0644);
    ok(et_device_open(cx, "cuda", 0, 1, &dev) != ET_OK,
       "a folder without CUDA's libraries that is given for them");
    ok(strstr(et_error_get(cx)->message, "ETUDE_CUDA_LIBS: no library") != NULL,
       "is told: %s", et_error_get(cx)->message);
    et_error_clear(cx);
    unsetenv("ETUDE_MODULE_PATH");
    unsetenv("ETUDE_CUDA_LIBS");
    et_ctx_free(&cx);
}

/* Another user's eyes: root may read everything. 0: we are told that NAME may not be
 * used. */
static int
as_nobody(const char *nodes, const char *name)
{
    char why[256];
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && setuid(65534) != 0)
            _exit(3);
        et_status status = eti_driver_explain(100, nodes, why, sizeof why);
        _exit(status == ET_ENOTSUP && strstr(why, "no permission") && strstr(why, name)
                  ? 0
                  : 1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : 9;
}

int
main(void)
{
    char nodes[PATH_MAX];
    snprintf(nodes, sizeof nodes, "%s/nodes", scratch_folder());
    if (chmod(scratch_folder(), 0755) != 0 || mkdir(nodes, 0755) != 0)
        bail("cannot make %s", nodes);
    test_answers(nodes);
    static const struct {
        const char *name;
        mode_t mode;
        const char *what;
    } files[] = {
        {"nvidiactl", 0600, "a GPU that belongs to others is told apart from none"},
        {"nvidiactl", 0644, "so is one that we may read and not write"},
        {"nvidia-uvm", 0622, "one that we may write and not read"},
        {"nvidia0", 0600, "and one of which another file is ours"},
    };
    enum { N_FILES = sizeof files / sizeof files[0] };
    for (int i = 0; i < N_FILES && getuid() == 0; i++) {
        touch(nodes, files[i].name, files[i].mode);
        is_int(as_nobody(nodes, files[i].name), 0, "%s", files[i].what);
        touch(nodes, files[i].name, 0666);
    }
    if (getuid() == 0)
        is_int(as_nobody(nodes, ""), 1,
               "files that we may read and write are no reason");
    else
        skip(N_FILES + 1, "only root can make files that we may not read");
    test_drivers();
    test_given_libraries();
    return done();
}
