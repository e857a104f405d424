/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c: what a rank says of its process and its machine. The GPU's part is in
 * t/cli/gpu.t, on the simulated one. */
#include "config.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/callbacks/proc.h"
#include "dist/run/machine.h"
#include "t/tap.h"

static char folder[] = "/tmp/etude-machine.XXXXXX";

/* The counter of processor I, in millionths of a joule; "" takes it away. */
static void
counter(int i, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/intel-rapl:%d", folder, i);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/intel-rapl:%d/energy_uj", folder, i);
    unlink(path);
    if (!*text)
        return;
    FILE *f = fopen(path, "w");
    if (f && fputs(text, f) >= 0)
        fclose(f);
    else
        bail("%s cannot be written", path);
}

/* What is said at NOW; NaN: nothing of the kind. */
static double
said(struct etd_machine *m, double now, const char *name)
{
    struct et_log_entry entry[ETD_MACHINE_NUMBERS];
    int n = etd_machine_read(m, now, entry);
    for (int i = 0; i < n; i++)
        if (strcmp(entry[i].name, name) == 0)
            return entry[i].value;
    return NAN;
}

static void
test_power(void)
{
    struct etd_machine m;
    counter(0, "7000000\n");
    counter(1, "1000000\n");
    etd_machine_start(&m, true, 100);
    counter(0, "187000000\n");
    counter(1, "61000000\n");
    is_near(said(&m, 102, "host_power_w"), 120, 1e-9,
            "240 joules of two processors in 2 s are 120 W");
    counter(1, "5\n");
    ok(isnan(said(&m, 103, "host_power_w")), "a counter that began again says nothing");
    counter(1, "20000005\n");
    is_near(said(&m, 104, "host_power_w"), 20, 1e-9, "and counts from there");
    etd_machine_start(&m, false, 100);
    ok(isnan(said(&m, 101, "host_power_w")) && isnan(said(&m, 102, "ram_total_gb")),
       "of the machine its first rank speaks alone");
    counter(0, "");
    etd_machine_start(&m, true, 100);
    ok(isnan(said(&m, 101, "host_power_w")),
       "processors that do not say it are left out");
}

static void
test_process(void)
{
    struct etd_machine m;
    etd_machine_start(&m, true, 100);
    double rss = said(&m, 101, "rss_gb"), ram = said(&m, 102, "ram_gb");
    double total = said(&m, 103, "ram_total_gb");
    ok(rss > 0 && ram > 0 && ram < total, "memory of the process and of the machine");
    double cpu = said(&m, 104, "cpu_util");
    ok(cpu >= 0 && cpu <= 1, "the processors' time is a part of all of it");
    double before = said(&m, 105, "cpu_s"), until = before + 0.05;
    while (said(&m, 106, "cpu_s") < until)
        continue;
    ok(before > 0 && m.cpu >= until, "and is said in seconds, which add up");
    ok(isnan(said(&m, 107, "gpu_util")) && isnan(said(&m, 108, "power_w")),
       "without a GPU nothing is said of one");
}

/* Rates are what each counter has grown by since the last look, a second: two seconds
 * here. */
static void
test_rates(void)
{
    struct etd_machine m;
    struct et_log_entry entry[ETD_MACHINE_NUMBERS];
    etd_machine_start(&m, false, 100);
    m.read -= 3e6;
    m.written -= 7e6;
    m.net -= 11e6;
    m.cpu -= 0.5;
    const struct {
        const char *name;
        const double *counter;
        double before, scale;
    } row[] = {
        {"cpu_util", &m.cpu, m.cpu, 1.0 / (double)sysconf(_SC_NPROCESSORS_ONLN)},
        {"read_mb_s", &m.read, m.read, 1e-6},
        {"write_mb_s", &m.written, m.written, 1e-6},
        {"net_mb_s", &m.net, m.net, 1e-6},
    };
    const int n = etd_machine_read(&m, 102, entry);
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        const double grew = *row[k].counter - row[k].before;
        if (isnan(grew)) {
            skip(1, "this system does not report it");
            continue;
        }
        double got = NAN;
        for (int i = 0; i < n; i++)
            if (strcmp(entry[i].name, row[k].name) == 0)
                got = entry[i].value;
        is_near(got, grew / 2 * row[k].scale, 1e-9,
                "%s is what its counter grew by in a second", row[k].name);
    }
}

/* Two processes that compute, on one processor. */
static void
test_queue(void)
{
    cpu_set_t one, all;
    double before = etd_machine_queued(gettid());
    if (isnan(before) || sched_getaffinity(0, sizeof all, &all) != 0) {
        skip(1, "this system does not say");
        return;
    }
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one); /* which the child inherits */
    pid_t self = getpid(), child = fork();
    while (child == 0 && getppid() == self)
        ;
    if (child == 0)
        _exit(0);
    for (clock_t end = clock() + CLOCKS_PER_SEC / 5; clock() < end;)
        ;
    double queued = etd_machine_queued(gettid()) - before;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    sched_setaffinity(0, sizeof all, &all);
    ok(queued > 0.01, "a thread that shares its processor stands %.2f s behind another",
       queued);
    ok(isnan(etd_machine_queued(0)), "of a thread that is none nothing is known");
}

/* Busy and all jiffies of the machine, as they stand now. */
static void
read_stat(double *busy, double *jiffies)
{
    char text[32768];
    FILE *f = fopen("/proc/stat", "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    if (!eti_proc_cpu(text, busy, jiffies))
        bail("no /proc/stat");
}

/* A share is of the time since the last look: each look moves both counters on to what
 * the system says at that moment. */
static void
test_counters(void)
{
    struct et_log_entry entry[ETD_MACHINE_NUMBERS];
    struct etd_machine m;
    double busy[2], jiffies[2], first;
    etd_machine_start(&m, true, 1);
    read_stat(&busy[0], &jiffies[0]);
    first = jiffies[0];
    do /* the system's clock ticks */
        read_stat(&busy[0], &jiffies[0]);
    while (busy[0] < m.busy + 1 || jiffies[0] < first + 1);
    (void)etd_machine_read(&m, 2, entry);
    read_stat(&busy[1], &jiffies[1]);
    ok(m.busy >= busy[0] && m.busy <= busy[1],
       "how long processors were busy is counted from the last look on");
    ok(m.jiffies >= jiffies[0] && m.jiffies <= jiffies[1], "and so is all time");
}

/* The text of PATH, "" where it cannot be read. */
static const char *
text_of(const char *path)
{
    static char text[32768];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    return text;
}

static double
cpu_now(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static double
net_now(void)
{
    double n[ETI_NET_COUNTERS];
    eti_proc_network(text_of("/proc/net/dev"), false, n);
    return n[ETI_NET_BYTES_RECV] + n[ETI_NET_BYTES_SENT];
}

/* Seconds that this thread has waited for a processor; NaN. */
static double
queued_now(void)
{
    unsigned long long ran, queued;
    return sscanf(text_of("/proc/thread-self/schedstat"), "%llu %llu", &ran, &queued) ==
                   2
               ? 1e-9 * (double)queued
               : NAN;
}

/* What is said of the process lies between what the system says before and after. */
static void
test_system(void)
{
    struct etd_machine m;
    double cpu = cpu_now(), net = net_now(), queued = queued_now();
    etd_machine_start(&m, true, 100);
    double said_queued = etd_machine_queued(gettid());
    ok(m.cpu >= cpu && m.cpu <= cpu_now(),
       "the processors' time is of user and system");
    ok(m.net >= net && m.net <= net_now(),
       "bytes of the network are those of both ways");
    if (isnan(queued))
        skip(1, "this system does not say");
    else
        ok(said_queued >= queued && said_queued <= queued_now(),
           "a thread has stood in the queue for %g s", said_queued);
    double total = said(&m, 101, "ram_total_gb"), ram = said(&m, 102, "ram_gb");
    double rss = said(&m, 103, "rss_gb");
    const char *status = text_of("/proc/self/status"), *at = strstr(status, "VmRSS:");
    double resident = at ? 1024 * strtod(at + strlen("VmRSS:"), NULL) : NAN;
    double bytes = (double)etd_machine_resident();
    ok(bytes > resident / 2 && bytes < 2 * resident && rss > 0.5e-9 * resident &&
           rss < 2e-9 * resident,
       "a process holds about %g bytes of memory", resident);
    const char *text = text_of("/proc/meminfo");
    double all = eti_proc_memory(text, "MemTotal") / 1e9;
    double free_now = eti_proc_memory(text, "MemAvailable") / 1e9;
    is_near(total, all, 1e-9, "the machine has %g GB", all);
    is_near(ram, all - free_now, all / 10, "of which some %g are taken",
            all - free_now);
}

static void
clean(void)
{
    char path[128];
    for (int i = 0; i < 2; i++) {
        counter(i, "");
        snprintf(path, sizeof path, "%s/intel-rapl:%d", folder, i);
        rmdir(path);
    }
    rmdir(folder);
}

int
main(void)
{
    if (!mkdtemp(folder))
        bail("no folder");
    setenv("ETUDE_POWERCAP", folder, 1);
    test_power();
    test_process();
    test_rates();
    test_queue();
    test_counters();
    test_system();
    clean();
    return done();
}
