/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c: see machine.h. The files are those of proc(5), and of the kernel's power
 * capping framework: Documentation/power/powercap/powercap.rst. */
#include "config.h"

#include "dist/run/machine.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/callbacks/proc.h"
#include "core/trainer/state.h"

static const double GPU_SECONDS = 1;
enum {
    TEXT = 32768, /* beyond any /proc/net/dev with 200 interfaces */
    PACKAGES = 16 /* processors of a machine, at most */
};

/* ---- files ---- */

/* The text of PATH in BUF [TEXT]; "" where it cannot be read. */
static const char *
read_text(const char *path, char *buf)
{
    size_t n = 0;
    FILE *f = fopen(path, "re");
    if (f) {
        n = fread(buf, 1, TEXT - 1, f);
        fclose(f);
    }
    buf[n] = '\0';
    return buf;
}

/* The number behind KEY in lines of "key: number"; NaN. */
static double
number_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtod(at + strlen(key), NULL) : NAN;
}

/* ---- counters ---- */

static double
cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

double
etd_machine_queued(int tid)
{
    char path[64], buf[TEXT];
    unsigned long long ran, queued; /* ns: Documentation/scheduler/sched-stats */
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
    return sscanf(read_text(path, buf), "%llu %llu", &ran, &queued) == 2
               ? 1e-9 * (double)queued
               : NAN;
}

static double
resident_bytes(char *buf)
{
    long all, pages;
    if (sscanf(read_text("/proc/self/statm", buf), "%ld %ld", &all, &pages) != 2)
        return NAN;
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

int64_t
etd_machine_resident(void)
{
    char buf[TEXT];
    double bytes = resident_bytes(buf);
    return isnan(bytes) ? 0 : (int64_t)bytes;
}

/* Bytes from and to other machines. */
static double
net_bytes(char *buf)
{
    double n[ETI_NET_COUNTERS];
    const char *text = read_text("/proc/net/dev", buf);
    if (!*text)
        return NAN;
    eti_proc_network(text, false, n);
    return n[ETI_NET_BYTES_RECV] + n[ETI_NET_BYTES_SENT];
}

/* Joules of all processors. A counter begins again at 0 some minutes to hours after it
 * did; whoever takes differences leaves out what is negative. NaN: none is there, or
 * not for us. */
static double
joules(char *buf)
{
    const char *given = getenv("ETUDE_POWERCAP");
    double sum = NAN;
    for (int i = 0; i < PACKAGES; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/intel-rapl:%d/energy_uj",
                 given && *given ? given : "/sys/class/powercap", i);
        if (!*read_text(path, buf))
            break;
        sum = (i ? sum : 0) + 1e-6 * strtod(buf, NULL);
    }
    return sum;
}

/* ---- what is said ---- */

struct list {
    struct et_log_entry *entry;
    int n;
};

/* VALUE is left out where it is not known. */
static void
put(struct list *l, const char *name, double value)
{
    if (isnan(value))
        return;
    struct et_log_entry *e = &l->entry[l->n++];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->value = value;
}

/* How fast a counter grew, times SCALE; it is moved on to NOW. */
static double
rate(double *before, double now, double seconds, double scale)
{
    double grew = now - *before;
    *before = now;
    return grew >= 0 && seconds > 0 ? grew / seconds * scale : NAN;
}

static void
put_host(struct etd_machine *m, double past, char *buf, struct list *l)
{
    double busy, jiffies;
    if (eti_proc_cpu(read_text("/proc/stat", buf), &busy, &jiffies)) {
        if (jiffies > m->jiffies && past > 0)
            put(l, "host_cpu", eti_proc_part(busy - m->busy, jiffies - m->jiffies));
        m->busy = busy;
        m->jiffies = jiffies;
    }
    const char *text = read_text("/proc/meminfo", buf);
    double total = eti_proc_memory(text, "MemTotal");
    if (total > 0) {
        put(l, "ram_gb", (total - eti_proc_memory(text, "MemAvailable")) / 1e9);
        put(l, "ram_total_gb", total / 1e9);
    }
    put(l, "host_power_w", rate(&m->joules, joules(buf), past, 1));
}

int
etd_machine_read(struct etd_machine *m, double now, struct et_log_entry *entry)
{
    static const char *const gpu[ETD_GPU_NUMBERS] = {
        "gpu_util", "mem_gb", "mem_total_gb", "temp_c", "power_w", "sm_mhz",
    };
    char buf[TEXT];
    struct list l = {.entry = entry};
    double past = now - m->at;
    m->at = now;
    put(&l, "cpu_util", rate(&m->cpu, cpu_seconds(), past, 1.0 / m->cores));
    put(&l, "cpu_s", m->cpu);
    put(&l, "rss_gb", resident_bytes(buf) / 1e9);
    const char *io = read_text("/proc/self/io", buf);
    put(&l, "read_mb_s", rate(&m->read, number_of(io, "\nread_bytes:"), past, 1e-6));
    put(&l, "write_mb_s",
        rate(&m->written, number_of(io, "\nwrite_bytes:"), past, 1e-6));
    put(&l, "net_mb_s", rate(&m->net, net_bytes(buf), past, 1e-6));
    if (m->is_first)
        put_host(m, past, buf, &l);
    for (int i = 0; i < ETD_GPU_NUMBERS; i++)
        put(&l, gpu[i], atomic_load_explicit(&m->gpu[i], memory_order_relaxed));
    return l.n;
}

void
etd_machine_start(struct etd_machine *m, bool is_first, double now)
{
    struct et_log_entry unused[ETD_MACHINE_NUMBERS];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *m = (struct etd_machine){.is_first = is_first, .at = now, .gpu_at = now};
    m->cores = cores > 0 ? (int)cores : 1;
    for (int i = 0; i < ETD_GPU_NUMBERS; i++)
        atomic_init(&m->gpu[i], NAN);
    (void)etd_machine_read(m, now, unused); /* where the counters stand */
}

void
etd_machine_ask_gpu(struct etd_machine *m, const struct et_state *state, double now)
{
    struct et_device_sensors s;
    struct et_device_info info;
    if (m->no_gpu || now < m->gpu_at)
        return;
    m->gpu_at = now + GPU_SECONDS;
    et_device_get_info(state->dev, &info);
    if (info.host_memory || et_device_get_sensors(state->dev, &s) != ET_OK) {
        if (!info.host_memory)
            et_error_clear(state->cx);
        m->no_gpu = true;
        s = (struct et_device_sensors){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    }
    const double said[ETD_GPU_NUMBERS] = {
        s.busy / 100,
        s.memory_used / 1e9,
        !m->no_gpu && info.memory_bytes ? (double)info.memory_bytes / 1e9 : NAN,
        s.temperature,
        s.power,
        s.clock,
    };
    for (int i = 0; i < ETD_GPU_NUMBERS; i++)
        atomic_store_explicit(&m->gpu[i], said[i], memory_order_relaxed);
}
