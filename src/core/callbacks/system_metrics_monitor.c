/* SPDX-License-Identifier: Apache-2.0 */
/* system_metrics_monitor.c: the machine's processors, memory, disk, network and GPU.
 *
 *     cpu_percentage            busy time of all processors since the sample before
 *     cpu_load_{1,5,15}         processes that ran or wanted to, over so many minutes
 *     cpu_memory_*, disk_memory_*, network_*    bytes and counts, by psutil's names;
 *                               the disk is that of the run directory, or of /
 *     {min,max}_<name>_rank_<r>    the rank where it is least, or most; <name> is
 *         gpu_percentage        share of time in which kernels ran
 *         memory_percentage     share of time in which memory was read or written
 *         gpu_temperature_C, gpu_power_usage_W
 *     <name>_rank_<r>           of each rank, with log_all_data
 *
 * Source: spec/trainer.md 9.3, SystemMetricsMonitor. Differs: a sample at most every
 * `interval`, as reading /proc takes 0.1 ms and says nothing new between; the load
 * averages; gpu_memory_used in bytes, gpu_clock_MHz, gpu_memory_clock_MHz and
 * gpu_slowed (1: a lack of power, 2: heat, 4: the GPU protects itself; added), which
 * say why a GPU is slow. Linux only: what /proc does not have is not logged, nor what
 * the GPU has no sensor for. */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/callbacks/callbacks.h"
#include "core/callbacks/proc.h"

struct options {
    double interval;
    bool log_all_data;
};

static const struct et_option option_table[] = {
    {
        .name = "interval",
        .type = ET_OPT_SECONDS,
        .offset = offsetof(struct options, interval),
        .def = "1s",
        .help = "at least this long between samples; 0s = one at every batch",
    },
    {
        .name = "log_all_data",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, log_all_data),
        .def = "false",
        .help = "the GPU of every rank, not of those with the least and the most",
    },
    {.name = NULL},
};

enum { STAT, MEMORY, LOAD, NETWORK, FILES };
static const char *const paths[FILES] = {
    [STAT] = "/proc/stat",
    [MEMORY] = "/proc/meminfo",
    [LOAD] = "/proc/loadavg",
    [NETWORK] = "/proc/net/dev",
};

struct monitor {
    bool opened;
    bool no_sensors; /* the GPU has no sensors, or they have failed */
    int fd[FILES];   /* -1: the machine has no such file */
    double last;     /* when the last sample was taken, in monotonic seconds */
    double busy, total;
    char text[32768]; /* of one file: beyond any /proc/net/dev with 200 interfaces */
};

/* The file's text, from its start; "" where it cannot be read. */
static const char *
read_text(struct monitor *m, int file)
{
    ssize_t n = 0;
    if (m->fd[file] >= 0)
        n = pread(m->fd[file], m->text, sizeof m->text - 1, 0);
    m->text[n > 0 ? n : 0] = '\0';
    return m->text;
}

static void
log_cpu(struct monitor *m, struct et_log *log)
{
    static const char *const names[] = {"cpu_load_1", "cpu_load_5", "cpu_load_15"};
    double busy, total, load[3];
    if (eti_proc_cpu(read_text(m, STAT), &busy, &total)) {
        et_log_metric(log, "cpu_percentage",
                      100 * eti_proc_part(busy - m->busy, total - m->total));
        m->busy = busy;
        m->total = total;
    }
    if (eti_proc_load(read_text(m, LOAD), load))
        for (int i = 0; i < 3; i++)
            et_log_metric(log, names[i], load[i]);
}

static void
log_memory(struct monitor *m, struct et_log *log)
{
    static const struct {
        const char *name, *key;
    } rows[] = {
        {"cpu_memory_total", "MemTotal"},    {"cpu_memory_available", "MemAvailable"},
        {"cpu_memory_free", "MemFree"},      {"cpu_memory_active", "Active"},
        {"cpu_memory_inactive", "Inactive"}, {"cpu_memory_buffers", "Buffers"},
        {"cpu_memory_cached", "Cached"},     {"cpu_memory_shared", "Shmem"},
        {"cpu_memory_slab", "Slab"},
    };
    const char *text = read_text(m, MEMORY);
    double total = eti_proc_memory(text, "MemTotal");
    if (total == 0)
        return;
    double used = total - eti_proc_memory(text, "MemAvailable");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        et_log_metric(log, rows[i].name, eti_proc_memory(text, rows[i].key));
    et_log_metric(log, "cpu_memory_used", used);
    et_log_metric(log, "cpu_memory_percent", 100 * used / total);
}

static void
log_disk(const char *directory, struct et_log *log)
{
    struct statvfs v;
    if (statvfs(directory ? directory : "/", &v) != 0)
        return;
    double block = (double)v.f_frsize, used = block * (double)(v.f_blocks - v.f_bfree);
    double left = block * (double)v.f_bavail; /* for us: root keeps some back */
    et_log_metric(log, "disk_memory_total", block * (double)v.f_blocks);
    et_log_metric(log, "disk_memory_used", used);
    et_log_metric(log, "disk_memory_free", left);
    if (used + left > 0)
        et_log_metric(log, "disk_memory_percent", 100 * used / (used + left));
}

static void
log_network(struct monitor *m, struct et_log *log)
{
    static const char *const names[ETI_NET_COUNTERS] = {
        [ETI_NET_BYTES_RECV] = "network_bytes_recv",
        [ETI_NET_PACKETS_RECV] = "network_packets_recv",
        [ETI_NET_ERRIN] = "network_errin",
        [ETI_NET_DROPIN] = "network_dropin",
        [ETI_NET_BYTES_SENT] = "network_bytes_sent",
        [ETI_NET_PACKETS_SENT] = "network_packets_sent",
        [ETI_NET_ERROUT] = "network_errout",
        [ETI_NET_DROPOUT] = "network_dropout",
    };
    double count[ETI_NET_COUNTERS];
    const char *text = read_text(m, NETWORK);
    if (!*text)
        return;
    eti_proc_network(text, true, count);
    for (int i = 0; i < ETI_NET_COUNTERS; i++)
        et_log_metric(log, names[i], count[i]);
}

/* A run is one rank, number 0: it has the least and the most of everything. */
static void
log_gpu_metric(const struct options *o, struct et_log *log, const char *name,
               double value)
{
    static const char *const prefixes[] = {"min_", "max_"};
    char full[64];
    if (isnan(value))
        return;
    for (int i = 0; i < (o->log_all_data ? 1 : 2); i++) {
        snprintf(full, sizeof full, "%s%s_rank_0", o->log_all_data ? "" : prefixes[i],
                 name);
        et_log_metric(log, full, value);
    }
}

/* Sensors that fail are missed once; a GPU that is lost shows soon enough. */
static void
log_gpu(struct monitor *m, const struct options *o, const struct et_state *state,
        struct et_log *log)
{
    struct et_device_sensors s;
    if (m->no_sensors)
        return;
    et_status status = et_device_get_sensors(state->dev, &s);
    if (status != ET_OK) {
        m->no_sensors = true;
        struct et_device_info info;
        et_device_get_info(state->dev, &info);
        if (!info.host_memory)
            et_report(state->cx, ET_LOG_WARN, "the GPU's sensors are not logged: %s",
                      et_error_get(state->cx)->message);
        et_error_clear(state->cx);
        return;
    }
    const struct {
        const char *name;
        double value;
    } rows[] = {
        {"gpu_percentage", s.busy},
        {"memory_percentage", s.memory_busy},
        {"gpu_temperature_C", s.temperature},
        {"gpu_power_usage_W", s.power},
        {"gpu_memory_used", s.memory_used},
        {"gpu_clock_MHz", s.clock},
        {"gpu_memory_clock_MHz", s.memory_clock},
        {"gpu_slowed", s.slowed},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        log_gpu_metric(o, log, rows[i].name, rows[i].value);
}

static void
open_files(struct monitor *m)
{
    for (int i = 0; i < FILES; i++)
        m->fd[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
    m->opened = true;
    m->last = -INFINITY;
    (void)eti_proc_cpu(read_text(m, STAT), &m->busy, &m->total);
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct monitor *m = self->state;
    if (event == ET_EVENT_INIT) {
        if (!m->opened)
            open_files(m);
        return ET_OK;
    }
    double now = eti_monotonic(self->cx);
    if (!m->opened || now - m->last < o->interval)
        return ET_OK;
    m->last = now;
    log_cpu(m, log);
    log_memory(m, log);
    log_disk(self->run_directory, log);
    log_network(m, log);
    log_gpu(m, o, state, log);
    return ET_OK;
}

static void
close_files(struct et_callback *self)
{
    struct monitor *m = self->state;
    for (int i = 0; i < FILES && m->opened; i++)
        if (m->fd[i] >= 0)
            close(m->fd[i]);
    m->opened = false;
}

const struct et_callback_class et_callback_system_metrics_monitor = {
    .info =
        {
            .name = "system_metrics_monitor",
            .class_name = "SystemMetricsMonitor",
            .summary = "processors, memory, disk, network and GPU of the machine",
            .source = "MosaicML Composer, SystemMetricsMonitor",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct monitor),
    .events = ET_ON(INIT) | ET_ON(BATCH_START) | ET_ON(EVAL_BATCH_START) |
              ET_ON(PREDICT_BATCH_START),
    .run = run,
    .close = close_files,
};
