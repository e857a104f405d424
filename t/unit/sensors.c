/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's sensors and pool, on the simulated GPU with a management library of the
 * tests' (t/gpusim/nvml.c), and what the monitors make of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum {
    BUSY,
    MEMORY_BUSY,
    MEMORY_USED,
    TEMPERATURE,
    POWER,
    CLOCK,
    MEMORY_CLOCK,
    SLOWED,
    ALL
};

/* What the tests' library answers, and the call it answers that to. */
static const struct {
    const char *what, *call;
    double value;
} sensors[ALL] = {
    [BUSY] = {"busy", "utilization", 87},
    [MEMORY_BUSY] = {"memory_busy", "utilization", 41},
    [MEMORY_USED] = {"memory_used", "memory", 12345e6},
    [TEMPERATURE] = {"temperature", "temperature", 64},
    [POWER] = {"power", "power", 612.345},
    [CLOCK] = {"clock", "clock", 1755},
    [MEMORY_CLOCK] = {"memory_clock", "clock", 2619},
    [SLOWED] = {"slowed", "throttle", 0},
};

static void
library(const char *name)
{
    char path[4096];
    const char *dir = getenv("ET_BUILDDIR");
    snprintf(path, sizeof path, "%s/.libs/%s", dir ? dir : ".", name);
    setenv("ETUDE_NVML", path, 1);
    unsetenv("FAKE_NVML");
    unsetenv("FAKE_REASONS");
}

static struct et_device *
gpu(struct et_ctx *cx)
{
    struct et_device *dev;
    need(cx, et_device_open(cx, "gpusim", 0, 1, &dev));
    return dev;
}

static et_status
read_sensors(struct et_ctx *cx, double v[ALL])
{
    struct et_device *dev = gpu(cx);
    struct et_device_sensors s;
    et_status status = et_device_get_sensors(dev, &s);
    const double all[ALL] = {s.busy,  s.memory_busy, s.memory_used,  s.temperature,
                             s.power, s.clock,       s.memory_clock, s.slowed};
    memcpy(v, all, sizeof all);
    et_device_close(&dev);
    return status;
}

/* Those of CALL are missing, the others as ever. */
static void
are_all_but(const double v[ALL], const char *call, const char *also, const char *when)
{
    for (int i = 0; i < ALL; i++)
        if (strcmp(sensors[i].call, call) == 0 || strcmp(sensors[i].call, also) == 0)
            ok(isnan(v[i]), "%s: %s is not known", when, sensors[i].what);
        else
            is_near(v[i], sensors[i].value, 1e-12, "%s", sensors[i].what);
}

static void
test_readings(struct et_ctx *cx)
{
    static const char *const calls[] = {"utilization", "memory", "temperature",
                                        "power",       "clock",  "throttle"};
    double v[ALL];
    library("libfakenvml.so");
    need(cx, read_sensors(cx, v));
    are_all_but(v, "", "", "everything answers");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char fails[32];
        snprintf(fails, sizeof fails, "%s=3", calls[i]); /* NOT_SUPPORTED */
        setenv("FAKE_NVML", fails, 1);
        need(cx, read_sensors(cx, v));
        are_all_but(v, calls[i], "", "not supported");
    }
    library("libfakenvml-old.so");
    need(cx, read_sensors(cx, v));
    are_all_but(v, "power", "throttle", "a driver without these functions");
}

static void
test_reasons(struct et_ctx *cx)
{
    static const struct {
        const char *bits;
        int slowed;
    } rows[] = {
        {"0", 0},
        {"1", 0}, /* idle */
        {"2", 0}, /* as it was set */
        {"4", ET_SLOWED_POWER},
        {"8", ET_SLOWED_HARDWARE},
        {"20", ET_SLOWED_HEAT},
        {"40", ET_SLOWED_HEAT},
        {"80", ET_SLOWED_POWER},
        {"6c", ET_SLOWED_POWER | ET_SLOWED_HEAT | ET_SLOWED_HARDWARE},
    };
    double v[ALL];
    library("libfakenvml.so");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("FAKE_REASONS", rows[i].bits, 1);
        need(cx, read_sensors(cx, v));
        is_int((int64_t)v[SLOWED], rows[i].slowed, "reasons 0x%s", rows[i].bits);
    }
}

static void
test_refusals(struct et_ctx *cx)
{
    double v[ALL];
    library("libfakenvml.so");
    setenv("FAKE_NVML", "init=9", 1);
    is_int(read_sensors(cx, v), ET_ENOTSUP, "no driver behind the library");
    const char *why = take_error(cx);
    ok(strstr(why, "NVML_ERROR_DRIVER_NOT_LOADED") != NULL, "%s", why);
    setenv("FAKE_NVML", "find=18", 1);
    is_int(read_sensors(cx, v), ET_ENOTSUP, "a library of another version");
    why = take_error(cx);
    ok(strstr(why, "restart the machine") != NULL, "%s", why);
    library("nowhere.so");
    is_int(read_sensors(cx, v), ET_ENOTSUP, "no library");
    why = take_error(cx);
    ok(strstr(why, "nowhere.so") != NULL, "%s", why);
    unsetenv("ETUDE_NVML");
    is_int(read_sensors(cx, v), ET_ENOTSUP, "none that was named");
    why = take_error(cx);
    ok(strstr(why, "a simulated GPU has no sensors") != NULL, "%s", why);
    ok(isnan(v[BUSY]) && isnan(v[SLOWED]), "and nothing is known");
}

static void
test_lost(struct et_ctx *cx)
{
    struct et_device_sensors s;
    struct et_storage *storage;
    library("libfakenvml.so");
    struct et_device *dev = gpu(cx);
    need(cx, et_device_get_sensors(dev, &s));
    setenv("FAKE_NVML", "power=15", 1);
    is_int(et_device_get_sensors(dev, &s), ET_EDEVICE, "a GPU that is lost");
    const char *why = take_error(cx);
    ok(strstr(why, "NVML_ERROR_GPU_IS_LOST") != NULL, "%s", why);
    unsetenv("FAKE_NVML");
    is_int(et_device_get_sensors(dev, &s), ET_EDEVICE, "stays lost");
    (void)take_error(cx);
    is_int(et_storage_new(cx, dev, 256, &storage), ET_EDEVICE, "for everything");
    why = take_error(cx);
    ok(strstr(why, "NVML_ERROR_GPU_IS_LOST") != NULL, "%s", why);
    et_device_close(&dev);
}

/* ---- monitors ---- */

static double
logged(const struct et_state *s, const char *name)
{
    double value;
    return et_log_find(s->log, name, &value) ? value : NAN;
}

static struct et_callback *
monitor(struct et_ctx *cx, const char *name, const char *option, const char *value)
{
    const struct et_callback_class *c = et_callback_find(name);
    struct et_callback *out;
    void *options = NULL;
    const char *const set[] = {option, value, "interval", "0s", NULL};
    if (option)
        need(cx, et_options_new(cx, &c->info, set, &options));
    need(cx, et_callback_new(cx, c, options, NULL, &out));
    et_options_free(&c->info, &options);
    return out;
}

static void
drop(struct et_callback **c)
{
    if ((*c)->type->close)
        (*c)->type->close(*c);
    et_callback_free(c);
}

static void
fire(struct et_callback *c, enum et_event event, const struct et_state *s)
{
    et_log_emit(s->log, ET_RECORD_METRIC, &s->timestamp, NULL);
    need(s->cx, c->type->run(c, event, s, s->log));
}

static int warnings;

static void
count_warnings(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    (void)text;
    warnings += level == ET_LOG_WARN;
}

static void
test_system_metrics(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        const char *name;
        int sensor;
    } rows[] = {
        {"gpu_percentage", BUSY},
        {"memory_percentage", MEMORY_BUSY},
        {"gpu_temperature_C", TEMPERATURE},
        {"gpu_power_usage_W", POWER},
        {"gpu_memory_used", MEMORY_USED},
        {"gpu_clock_MHz", CLOCK},
        {"gpu_memory_clock_MHz", MEMORY_CLOCK},
        {"gpu_slowed", SLOWED},
    };
    char name[64];
    library("libfakenvml.so");
    struct et_callback *extremes = monitor(cx, "system_metrics_monitor", "log_all_data",
                                           "false"),
                       *all = monitor(cx, "system_metrics_monitor", "log_all_data",
                                      "true");
    fire(extremes, ET_EVENT_INIT, &s);
    fire(all, ET_EVENT_INIT, &s);
    fire(extremes, ET_EVENT_BATCH_START, &s);
    ok(isnan(logged(&s, "min_gpu_percentage_rank_0")),
       "no numbers of a device without");
    s.dev = gpu(cx);
    drop(&extremes);
    extremes = monitor(cx, "system_metrics_monitor", "log_all_data", "false");
    fire(extremes, ET_EVENT_INIT, &s);
    fire(extremes, ET_EVENT_BATCH_START, &s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(name, sizeof name, "min_%s_rank_0", rows[i].name);
        is_near(logged(&s, name), sensors[rows[i].sensor].value, 1e-12, "%s", name);
        snprintf(name, sizeof name, "max_%s_rank_0", rows[i].name);
        is_near(logged(&s, name), sensors[rows[i].sensor].value, 1e-12, "%s", name);
    }
    fire(all, ET_EVENT_EVAL_BATCH_START, &s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(name, sizeof name, "%s_rank_0", rows[i].name);
        is_near(logged(&s, name), sensors[rows[i].sensor].value, 1e-12, "%s", name);
    }
    ok(isnan(logged(&s, "min_gpu_percentage_rank_0")), "log_all_data: no extremes");
    setenv("FAKE_NVML", "power=3", 1);
    fire(all, ET_EVENT_BATCH_START, &s);
    ok(isnan(logged(&s, "gpu_power_usage_W_rank_0")) &&
           logged(&s, "gpu_percentage_rank_0") == 87,
       "what is not known is not logged");
    setenv("FAKE_NVML", "power=15", 1);
    et_ctx_set_log(cx, ET_LOG_WARN, count_warnings, NULL);
    fire(all, ET_EVENT_BATCH_START, &s);
    fire(all, ET_EVENT_BATCH_START, &s);
    is_int(warnings, 1, "a GPU that is lost: one warning");
    ok(isnan(logged(&s, "gpu_percentage_rank_0")) && logged(&s, "cpu_load_1") >= 0,
       "the machine's numbers go on");
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    drop(&extremes);
    drop(&all);
    et_device_close(&s.dev);
}

static void
test_memory(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = monitor(cx, "memory_monitor", NULL, NULL);
    struct et_storage *storage;
    fire(c, ET_EVENT_BATCH_END, &s);
    ok(isnan(logged(&s, "memory/alloc_retries")), "a processor has no pool");
    s.dev = gpu(cx);
    need(cx, et_storage_new(cx, s.dev, 1000000, &storage));
    fire(c, ET_EVENT_BATCH_END, &s);
    double allocated = logged(&s, "memory/current_allocated_mem"),
           active = logged(&s, "memory/current_active_mem"),
           inactive = logged(&s, "memory/current_inactive_mem"),
           reserved = logged(&s, "memory/current_reserved_mem");
    is_near(allocated, 1e-3, 1e-12, "what was asked for");
    ok(active >= allocated && active < 1.1e-3, "%g GB of it is active", active);
    /* Five digits of each. */
    is_near(active + inactive, reserved, 1e-4,
            "active and inactive are what is reserved");
    is_near(logged(&s, "memory/peak_reserved_mem"), reserved, 1e-12, "the most so far");
    is_near(logged(&s, "memory/peak_inactive_mem"), inactive, 1e-12, "and of the rest");
    is_near(logged(&s, "memory/alloc_retries"), 0, 0, "all fitted at once");
    et_storage_unref(storage);
    fire(c, ET_EVENT_BATCH_END, &s);
    is_near(logged(&s, "memory/peak_active_mem"), active, 1e-12, "the peak stays");
    /* More than the simulated card has: the pool is emptied, and that does not help. */
    is_int(et_storage_new(cx, s.dev, (size_t)1 << 40, &storage), ET_ENOMEM,
           "more than there is");
    const char *why = take_error(cx);
    ok(strstr(why, "1099511627776 bytes asked for, 0 in use by this run, ") &&
           strstr(why, " free"),
       "%s", why);
    fire(c, ET_EVENT_BATCH_END, &s);
    is_near(logged(&s, "memory/alloc_retries"), 1, 0, "was tried twice");
    is_near(logged(&s, "memory/current_reserved_mem"), 0, 0, "with the pool emptied");
    drop(&c);
    et_device_close(&s.dev);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    struct et_device *dev;
    struct run r;
    if (et_device_open(cx, "gpusim", 0, 1, &dev) != ET_OK)
        skip_all(take_error(cx));
    et_device_close(&dev);
    test_readings(cx);
    test_reasons(cx);
    test_refusals(cx);
    test_lost(cx);
    run_open(&r, cx, &(struct run_setup){0});
    test_system_metrics(cx, *r.state);
    test_memory(cx, *r.state);
    run_close(&r);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
