/* SPDX-License-Identifier: Apache-2.0 */
/* system_metrics_monitor: what it reads from /proc, and what it makes of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/callbacks/proc.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

static void
test_text(void)
{
    static const char stat[] =
        "cpu  100 20 30 400 50 6 7 8 90 0\ncpu0 1 2 3 4 5 6 7 8\n";
    static const char memory[] = "MemTotal:       16000 kB\nMemFree:  100 kB\n"
                                 "MemAvailable:   4000 kB\nInactive(anon): 5 kB\n"
                                 "Inactive:   7 kB\n";
    static const char network[] =
        "Inter-|   Receive                |  Transmit\n"
        " face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n"
        "    lo:1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0\n"
        "  eth0: 5000 50 1 2 3 4 5 6 7000 70 8 9 10 11 12 13\n";
    double busy, total, load[3], n[ETI_NET_COUNTERS];
    ok(eti_proc_cpu(stat, &busy, &total) && total == 621 && busy == 171,
       "busy is all but idle and waiting; guests are not counted twice");
    ok(eti_proc_cpu("cpu  1 2 3 4\n", &busy, &total) && total == 10 && busy == 6,
       "an old kernel's four columns do");
    ok(!eti_proc_cpu("intr 5\n", &busy, &total) && !eti_proc_cpu("", &busy, &total),
       "other text is none");
    ok(eti_proc_part(3, 4) == 0.75 && eti_proc_part(5, 4) == 1 &&
           eti_proc_part(-1, 4) == 0 && eti_proc_part(0, 0) == 0,
       "a part is none of less than nothing or more than all, whatever was counted");
    ok(eti_proc_memory(memory, "MemAvailable") == 4096000, "kB are 1024 bytes");
    ok(eti_proc_memory(memory, "Inactive") == 7168, "a key is a whole word");
    ok(eti_proc_memory(memory, "Slab") == 0 && eti_proc_memory("", "Slab") == 0,
       "what is not there is 0");
    ok(eti_proc_load("0.25 1.50 2.75 3/400 5\n", load) && load[0] == .25 &&
           load[1] == 1.5 && load[2] == 2.75,
       "three load averages");
    ok(!eti_proc_load("0.25 x", load), "or none");
    eti_proc_network(network, true, n);
    ok(n[ETI_NET_BYTES_RECV] == 6000 && n[ETI_NET_PACKETS_RECV] == 60 &&
           n[ETI_NET_ERRIN] == 1 && n[ETI_NET_DROPIN] == 2,
       "what all interfaces received");
    ok(n[ETI_NET_BYTES_SENT] == 8000 && n[ETI_NET_PACKETS_SENT] == 80 &&
           n[ETI_NET_ERROUT] == 8 && n[ETI_NET_DROPOUT] == 9,
       "and what they sent");
    eti_proc_network(network, false, n);
    ok(n[ETI_NET_BYTES_RECV] == 5000 && n[ETI_NET_BYTES_SENT] == 7000 &&
           n[ETI_NET_PACKETS_RECV] == 50 && n[ETI_NET_DROPOUT] == 9,
       "without the loopback's part, where other machines are meant");
    eti_proc_network("  lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                     " lo1:20 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n",
                     false, n);
    ok(n[ETI_NET_BYTES_RECV] == 20 && n[ETI_NET_BYTES_SENT] == 5,
       "an interface whose name begins as the loopback's is another");
}

static double
logged(const struct et_state *s, const char *name)
{
    double value;
    return et_log_find(s->log, name, &value) ? value : NAN;
}

/* ---- a machine whose numbers all differ ---- */

/* Texts that stand for the files of /proc whose paths end so. */
static const struct {
    const char *path, *text;
} told[] = {
    {"/proc/stat", "cpu  100 0 0 300 0 0 0 0 0 0\n"},
    {"/proc/loadavg", "0.25 1.50 2.75 3/400 5\n"},
    {"/proc/meminfo", "MemTotal: 160 kB\nMemFree: 2 kB\nMemAvailable: 40 kB\n"
                      "Buffers: 4 kB\nCached: 5 kB\nActive: 6 kB\nInactive: 7 kB\n"
                      "Shmem: 8 kB\nSlab: 9 kB\n"},
    {"/net/dev", "a | b\n c | d\n    lo: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n"
                 "  eth0: 100 200 300 400 0 0 0 0 500 600 700 800 0 0 0 0\n"},
};
static bool tells;
static const char *stat_told; /* in place of told[0].text */

/* This function replaces the C library's, for the monitor too. */
ssize_t
pread(int fd, void *buf, size_t size, off_t offset)
{
    char link[32], path[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; tells && i < sizeof told / sizeof *told; i++)
        if (strlen(path) >= strlen(told[i].path) &&
            strcmp(path + strlen(path) - strlen(told[i].path), told[i].path) == 0)
            return snprintf(buf, size, "%s",
                            i == 0 && stat_told ? stat_told : told[i].text);
    n = 0;
    if (lseek(fd, offset, SEEK_SET) == offset)
        n = read(fd, buf, size);
    return n;
}

static void
test_numbers(struct et_ctx *cx, struct et_state *s)
{
    static const struct {
        const char *name;
        double want;
    } rows[] = {
        {"cpu_load_1", .25},
        {"cpu_load_5", 1.5},
        {"cpu_load_15", 2.75},
        {"cpu_memory_total", 160 * 1024},
        {"cpu_memory_free", 2 * 1024},
        {"cpu_memory_available", 40 * 1024},
        {"cpu_memory_buffers", 4 * 1024},
        {"cpu_memory_cached", 5 * 1024},
        {"cpu_memory_active", 6 * 1024},
        {"cpu_memory_inactive", 7 * 1024},
        {"cpu_memory_shared", 8 * 1024},
        {"cpu_memory_slab", 9 * 1024},
        {"cpu_memory_used", 120 * 1024},
        {"cpu_memory_percent", 75},
        {"network_bytes_recv", 101},
        {"network_packets_recv", 202},
        {"network_errin", 303},
        {"network_dropin", 404},
        {"network_bytes_sent", 505},
        {"network_packets_sent", 606},
        {"network_errout", 707},
        {"network_dropout", 808},
    };
    const struct et_callback_class *c = et_callback_find("system_metrics_monitor");
    struct own_clock *time = own_clock(cx);
    struct et_callback *m;
    tells = true;
    need(cx, et_callback_new(cx, c, NULL, NULL, &m));
    need(cx, c->run(m, ET_EVENT_INIT, s, s->log));
    stat_told = "cpu  130 0 0 310 0 0 0 0 0 0\n";
    need(cx, c->run(m, ET_EVENT_BATCH_START, s, s->log));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_near(logged(s, rows[i].name), rows[i].want, 1e-9,
                "system_metrics_monitor logs %s", rows[i].name);
    is_near(logged(s, "cpu_percentage"), 75, 1e-9,
            "cpu_percentage is 75 for 30 busy ticks of 40");
    time->now += 1;
    stat_told = "cpu  140 0 0 340 0 0 0 0 0 0\n";
    need(cx, c->run(m, ET_EVENT_BATCH_START, s, s->log));
    is_near(logged(s, "cpu_percentage"), 25, 1e-9,
            "cpu_percentage is 25 for 10 busy ticks of 40");
    time->now += .5;
    stat_told = "cpu  180 0 0 340 0 0 0 0 0 0\n";
    need(cx, c->run(m, ET_EVENT_BATCH_START, s, s->log));
    is_near(logged(s, "cpu_percentage"), 25, 1e-9,
            "cpu_percentage is not read again within half a second");
    tells = false;
    c->close(m);
    et_callback_free(&m);
    et_log_emit(s->log, ET_RECORD_METRIC, NULL, NULL);
}

/* Keeps a processor busy for a tenth of a second of its time: ten of the ticks that the
 * system counts. */
static void
work(void)
{
    const clock_t end = clock() + CLOCKS_PER_SEC / 10;
    while (clock() < end)
        ;
}

static void
test_machine(struct et_ctx *cx, struct et_state *s)
{
    const struct et_callback_class *c = et_callback_find("system_metrics_monitor");
    struct own_clock *time = own_clock(cx);
    struct et_callback *m;
    double kilobytes = 0;
    struct statvfs disk;
    need(cx, et_callback_new(cx, c, NULL, NULL, &m));
    need(cx, c->run(m, ET_EVENT_INIT, s, s->log));
    work();
    need(cx, c->run(m, ET_EVENT_BATCH_START, s, s->log));
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f || fscanf(f, "MemTotal: %lf kB", &kilobytes) != 1 ||
        statvfs("/", &disk) != 0)
        bail("the system says nothing of itself");
    fclose(f);
    double cpu = logged(s, "cpu_percentage");
    ok(cpu > 0 && cpu <= 100, "cpu_percentage is %g", cpu);
    is_near(logged(s, "cpu_memory_total"), 1024 * kilobytes, 1e-12,
            "cpu_memory_total is the first line of meminfo");
    is_near(logged(s, "disk_memory_total"),
            (double)disk.f_blocks * (double)disk.f_frsize, 1e-12,
            "disk_memory_total is what statvfs says");
    double used = logged(s, "cpu_memory_used"),
           left = logged(s, "cpu_memory_available");
    is_near(used + left, logged(s, "cpu_memory_total"), 1e-12,
            "memory is used or available");
    ok(logged(s, "cpu_load_1") >= 0 && logged(s, "network_bytes_recv") >= 0,
       "load and network are there");
    et_log_emit(s->log, ET_RECORD_METRIC, NULL, NULL);
    time->now += 0.99;
    need(cx, c->run(m, ET_EVENT_EVAL_BATCH_START, s, s->log));
    ok(isnan(logged(s, "cpu_percentage")), "a second has not passed: no second sample");
    time->now += 0.01;
    need(cx, c->run(m, ET_EVENT_EVAL_BATCH_START, s, s->log));
    ok(logged(s, "cpu_percentage") >= 0, "then there is one");
    c->close(m);
    et_callback_free(&m);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    struct run r;
    run_open(&r, cx, &(struct run_setup){0});
    test_text();
    test_numbers(cx, r.state);
    test_machine(cx, r.state);
    run_close(&r);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
