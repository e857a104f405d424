/* SPDX-License-Identifier: Apache-2.0 */
/* store.c: see store.h. */
#include "config.h"

#include "t/unit/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/library/facts.h"
#include "t/tap.h"

static const int64_t FIRST = 1000000000; /* seconds since 1970: hour 0 */

void
store_date(const char *path, int number)
{
    int64_t t1 = number > 0 ? FIRST + 3600 * (int64_t)number + 60 : time(NULL) + 3600;
    const struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = t1}};
    if (utimensat(AT_FDCWD, path, t, 0) != 0)
        bail("%s cannot be given a time", path);
}

void
store_run(const char *name, int number, const char *state)
{
    char directory[200], path[220], boot[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!f || !fgets(boot, sizeof boot, f))
        bail("this machine has no boot id");
    fclose(f);
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(directory, sizeof directory, "runs/%s", name);
    snprintf(path, sizeof path, "%s/run.json", directory);
    (void)mkdir("runs", 0700);
    (void)mkdir(directory, 0700);
    f = fopen(path, "w");
    if (!f)
        bail("%s cannot be written", path);
    fprintf(f,
            "{\"name\": \"%s\", \"recipe\": \"%s\", \"state\": \"%s\", \"started\": "
            "%" PRId64 ", \"pid\": %d, \"pid_started\": %" PRId64
            ", \"boot_id\": \"%s\"}\n",
            name, number % 2 ? "odd" : "even", state, FIRST + 3600 * (int64_t)number,
            getpid(), eti_process_started(getpid()), boot);
    fclose(f);
    store_date(path, number);
    store_date(directory, number);
}

void
store_runs(int from, int to)
{
    char name[32];
    for (int i = from; i < to; i++) {
        snprintf(name, sizeof name, "n%04d", i);
        store_run(name, i, "finished");
    }
    store_date("runs", to);
}

void
store_remove(const char *path)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf './%s'", path);
    if (system(command) != 0)
        bail("cannot remove %s", path);
}
