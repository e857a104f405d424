/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver's answers mean. */
#include "config.h"

#include "core/graph/driver.h"

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
    is_int(eti_driver_explain(999, nodes, why, sizeof why), ET_ENOTSUP,
           "an unknown error: there is something that cannot be used");
    ok(strstr(why, "CUDA_ERROR_UNKNOWN") != NULL, "%s", why);
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

int
main(void)
{
    char nodes[PATH_MAX];
    snprintf(nodes, sizeof nodes, "%s/nodes", scratch_folder());
    if (chmod(scratch_folder(), 0755) != 0 || mkdir(nodes, 0755) != 0)
        bail("cannot make %s", nodes);
    test_answers(nodes);
    touch(nodes, "nvidiactl", 0600);
    int code = as_nobody(nodes);
    if (getuid() != 0)
        skip(1, "only root can make files that we may not read");
    else
        is_int(code, 0, "a GPU that belongs to others is told apart from none");
    return done();
}
