/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a device that is out of memory or cannot clear it; functions that a device
 * lacks; the list of a context's devices; and the folders in which modules are looked
 * for. */
#include "core/base/checks.h"
#include "core/graph/graph_impl.h"
#include "etude/etude.h"
#include "t/data/fixture.h"
#include "t/tap.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct et_ctx *cx;
static struct et_device *dev;

static et_status
make_leaf(int64_t n, struct et_tensor **out)
{
    return et_tensor_new(cx, dev, ET_F32, 1, &n, ET_ROW_MAJOR, "row", out);
}

/* Memory may be used up to the limit, and no byte more. */
static void
test_limit(void)
{
    struct et_device_memory memory;
    struct et_tensor *t, *more;
    char want[160];
    et_device_get_memory(dev, &memory);
    const size_t limit = memory.current_bytes + 4 * 16;
    et_device_set_limit(dev, limit);
    ok(make_leaf(17, &t) == ET_ENOMEM && !t,
       "an array one number larger than the limit is refused");
    snprintf(want, sizeof want, "out of ref memory: 68 bytes needed, %zu of %zu in use",
             memory.current_bytes, limit);
    is_str(et_error_get(cx)->message, want,
           "a refusal for the limit says how much is needed, in use and allowed");
    et_error_clear(cx);
    ok(make_leaf(16, &t) == ET_OK, "an array as large as the limit is made");
    ok(make_leaf(1, &more) == ET_ENOMEM, "no array is made once the limit is reached");
    et_error_clear(cx);
    et_tensor_free(&t);
    ok(make_leaf(16, &t) == ET_OK, "an array is made again after memory is freed");
    et_tensor_free(&t);
    et_device_set_limit(dev, 0);
}

/* A device that is out of memory, or cannot clear what it has given. */
static struct et_device_table broken;

static et_status
no_memory(struct et_device_handle *h, size_t bytes, void **out)
{
    (void)h, (void)bytes, (void)out;
    return ET_ENOMEM;
}

static et_status
no_fill(struct et_device_handle *h, void *at, int byte, size_t bytes,
        struct et_stream *stream)
{
    (void)h, (void)at, (void)byte, (void)bytes, (void)stream;
    return ET_EDEVICE;
}

static et_status
tell_free(struct et_device_handle *h, size_t *bytes)
{
    (void)h;
    *bytes = 77;
    return ET_OK;
}

static void
test_broken(void)
{
    const struct et_device_table *table = dev->table;
    struct et_device_memory before, after;
    struct et_tensor *t;
    char want[160];
    et_device_get_memory(dev, &before);
    broken = *table;
    broken.alloc = no_memory;
    broken.memory_free = tell_free;
    dev->table = &broken;
    ok(make_leaf(5, &t) == ET_ENOMEM && !t,
       "an array is not made on a device without memory");
    dev->table = table;
    snprintf(want, sizeof want,
             "out of ref memory: 20 bytes asked for, %zu in use by this run, 77 free",
             before.current_bytes);
    is_str(et_error_get(cx)->message, want,
           "the error of a device without memory says what was asked for, in use and "
           "free");
    et_error_clear(cx);
    et_device_get_memory(dev, &after);
    ok(after.current_bytes == before.current_bytes && after.allocs == before.allocs &&
           after.peak_bytes == before.peak_bytes,
       "memory that a device did not give is not counted");
    broken = *table;
    broken.fill = no_fill;
    dev->table = &broken;
    ok(make_leaf(5, &t) == ET_EDEVICE && !t,
       "an array is not made on a device that cannot clear memory");
    dev->table = table;
    ok(strstr(et_error_get(cx)->message, "clearing memory failed on ref") != NULL,
       "the error of a device that cannot clear memory says so: %s",
       et_error_get(cx)->message);
    et_error_clear(cx);
    et_device_get_memory(dev, &after);
    is_int((int64_t)(after.current_bytes - before.current_bytes), 0,
           "memory that cannot be cleared is freed");
}

/* Facts that a device does not report are zeros, whatever lay there before. */
static void
test_told(void)
{
    struct et_device_info info[2];
    struct et_device_sensors sensors;
    memset(&info[0], 0, sizeof info[0]);
    memset(&info[1], 0xa5, sizeof info[1]);
    for (int i = 0; i < 2; i++)
        et_device_get_info(dev, &info[i]);
    ok(memcmp(&info[0], &info[1], sizeof info[0]) == 0,
       "a device reports the same facts each time");
    is_int(et_device_get_sensors(dev, &sensors), ET_ENOTSUP,
           "asking a device without sensors for them is an error");
    is_str(et_error_get(cx)->message, "the device 'ref' has no sensors",
           "the error of a device without sensors names it");
    et_error_clear(cx);
}

static int
count_devices(const struct et_device *without)
{
    int n = 0;
    for (const struct et_device *d = eti_ctx_devices(cx); d; d = d->next)
        n += d == without ? 100 : 1;
    return n;
}

/* The devices of a context are closed in any order, and the list keeps the open ones.
 */
static void
test_order(void)
{
    static const int orders[][3] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}};
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        struct et_device *three[3], *fourth;
        bool good = true;
        for (int i = 0; i < 3; i++)
            need(cx, et_device_open(cx, "ref", 0, 1, &three[i]));
        for (int i = 0; i < 3; i++) {
            const struct et_device *gone = three[orders[k][i]];
            et_device_close(&three[orders[k][i]]);
            good = good && count_devices(gone) == 1 + 2 - i;
        }
        ok(good && count_devices(NULL) == 1,
           "the list of devices is right when device %d of three is closed first",
           orders[k][0] + 1);
        ok(et_device_open(cx, "no such", 0, 1, &fourth) != ET_OK && !fourth &&
               count_devices(NULL) == 1,
           "a device that fails to open is not in the list");
        et_error_clear(cx);
    }
}

/* ---- where modules are looked for ---- */

/* Puts a file that is no library where the module of the device "toy" would lie. */
static void
put_toy(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.3000s/libetude-toy.so", folder);
    FILE *f = fopen(path, "w");
    if (!f || fputs("no library", f) < 0 || fclose(f) != 0)
        bail("cannot make %s", path);
}

/* The folder whose toy is tried, from the error that refuses it. */
static const char *
tried(const char *const *folders, int n)
{
    struct et_device *toy;
    const char *found = "none";
    et_status status = et_device_open(cx, "toy", 0, 1, &toy);
    for (int i = 0; i < n && status == ET_ENOTSUP; i++)
        if (strstr(et_error_get(cx)->message, folders[i]))
            found = folders[i];
    et_error_clear(cx);
    return found;
}

/* Modules are looked for in the folders that the program names, in their order, then in
 * the environment's. */
static void
test_modules(void)
{
    enum { FOLDERS = 3 };
    char folder[FOLDERS][1024], both[2100];
    const char *all[FOLDERS];
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(folder[i], sizeof folder[i], "%.900s/%c", scratch_folder(), 'a' + i);
        if (mkdir(folder[i], 0755) != 0)
            bail("cannot make %s", folder[i]);
        all[i] = folder[i];
    }
    unsetenv("ETUDE_MODULE_PATH");
    is_str(tried(all, FOLDERS), "none", "a device without a module is not found");
    put_toy(folder[2]);
    setenv("ETUDE_MODULE_PATH", folder[2], 1);
    is_str(tried(all, FOLDERS), all[2],
           "a module is looked for in the environment's folder");
    put_toy(folder[1]);
    snprintf(both, sizeof both, "%s:%s", folder[0], folder[1]);
    need(cx, et_ctx_set_module_path(cx, both));
    is_str(tried(all, FOLDERS), all[1],
           "a module is looked for in the program's second folder before the "
           "environment's");
    put_toy(folder[0]);
    is_str(tried(all, FOLDERS), all[0],
           "a module is looked for in the program's first folder before the second");
    unsetenv("ETUDE_MODULE_PATH");
    need(cx, et_ctx_set_module_path(cx, NULL));
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK)
        bail("no reference device");
    test_limit();
    test_broken();
    test_told();
    test_order();
    test_modules();
    et_device_close(&dev);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "no memory is left allocated");
    et_ctx_free(&cx);
    return done();
}
