/* SPDX-License-Identifier: Apache-2.0 */
/* What viewers cost the run that they look at: row R18 of RELIABILITY.md section 10.
 *
 *     bench/dist/viewers [ETUDE [PAIRS [SECONDS]]]    default ./etude 12 3, in $TMPDIR
 *
 * A run of one rank, alone and with 64 viewers: 55 that follow it, 8 that ask for all
 * and never read, and one that means harm (the largest messages, garbage, requests
 * without end). Windows of SECONDS with and without them take turns; the rank has a
 * processor for itself, its supervisor, hub and viewers another. Of each pair the ratio
 * of
 *
 *     step time        by the records' own times: budget, 1.01 in the median
 *     quick steps      what the quickest tenth takes at most: where others use the
 *                      machine, those are the steps that they left alone
 *     processor time   of the rank's process, a step
 *     instructions     likewise, where the processor counts them
 *
 * A spread (quartiles) above 5 % says that the machine was not idle: again, then. The
 * rank has the highest priority that is allowed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/program.h"
#include "core/library/facts.h"
#include "dist/hub/client.h"
#include "dist/hub/follow.h"
#include "etude/rng.h"

enum {
    GOOD = 55,
    STUCK = 8,
    PAIRS = 60,
    THREADS = 256,
    STEPS = 1 << 16,
    WORK = 0,
    RELAY = 1
};

static const char recipe[] =
    "max_duration: 100000000ba\n"
    "seed: 17\n"
    "model: {name: resnet8}\n"
    "train_data: {name: synthetic_images, num_samples: 1280000, num_unique: 256,\n"
    "             channels: 1, resolution: 28, batch_size: 8, workers: 0}\n"
    "optimizer: {name: sgd, lr: 0.01}\n"
    "checkpoint: {interval: 1000000ba}\n";

static struct et_ctx *cx;
static char folder[200], directory[256], endpoint[256];
static pid_t front, rank_pid, hub_pid;

static void
give_up(const char *what)
{
    fprintf(stderr, "viewers: %s\n", what);
    if (front > 0)
        kill(front, SIGTERM);
    exit(1);
}

static void
rest(double seconds)
{
    const struct timespec pause = {(time_t)seconds,
                                   (long)(1e9 * (seconds - floor(seconds)))};
    nanosleep(&pause, NULL);
}

/* ---- processors ---- */

static void
pin(pid_t thread, int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(thread, sizeof set, &set) != 0)
        give_up("two processors are wanted, numbers 0 and 1");
}

/* Above all others, where that is allowed: who else uses the machine then moves to the
 * other processor, as far as there is room, and does so in all windows alike. */
static void
prefer(pid_t thread, bool yes)
{
    (void)setpriority(PRIO_PROCESS, (id_t)thread, yes ? -20 : 0);
}

/* The threads of PID. */
static int
threads_of(pid_t pid, pid_t out[THREADS])
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && n < THREADS && (e = readdir(d));)
        if (e->d_name[0] != '.')
            out[n++] = (pid_t)strtol(e->d_name, NULL, 10);
    if (d)
        closedir(d);
    return n;
}

static void
pin_all(pid_t pid, int processor)
{
    pid_t thread[THREADS];
    int n = threads_of(pid, thread);
    for (int i = 0; i < n; i++) {
        pin(thread[i], processor);
        prefer(thread[i], processor == WORK);
    }
}

/* ---- what the rank uses ---- */

struct use {
    double t, seconds; /* of the last record; of processors */
    int64_t ba;
    double instructions; /* NaN: not counted here */
    double quick;        /* of a window */
};

/* Of each step that was read of since: seconds. */
static double step[STEPS];
static int n_steps;

static int counter[THREADS], n_counters;

static void
open_counters(void)
{
    pid_t thread[THREADS];
    int n = threads_of(rank_pid, thread);
    struct perf_event_attr what = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof what,
        .config = PERF_COUNT_HW_INSTRUCTIONS,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    for (int i = 0; i < n; i++) {
        int fd = (int)syscall(SYS_perf_event_open, &what, thread[i], -1, -1, 0);
        if (fd >= 0)
            counter[n_counters++] = fd;
    }
}

static double
count_instructions(void)
{
    double sum = n_counters ? 0 : NAN;
    for (int i = 0; i < n_counters; i++) {
        uint64_t n = 0;
        if (read(counter[i], &n, sizeof n) == sizeof n)
            sum += (double)n;
    }
    return sum;
}

/* Of all its threads, from the scheduler, which counts in ns. */
static double
processor_seconds(void)
{
    pid_t thread[THREADS];
    double sum = 0;
    int n = threads_of(rank_pid, thread);
    for (int i = 0; i < n; i++) {
        char path[96];
        unsigned long long ns = 0;
        snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)rank_pid,
                 (int)thread[i]);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%llu", &ns) == 1)
            sum += 1e-9 * (double)ns;
        if (f)
            fclose(f);
    }
    return sum;
}

static void
note_batch(void *data, const struct et_record *r)
{
    struct use *last = data;
    if (r->kind != ET_RECORD_BATCH || r->rank != 0)
        return;
    if (last->ba > 0 && n_steps < STEPS)
        step[n_steps++] = r->t - last->t;
    last->t = r->t;
    last->ba = r->ba;
}

/* Read up to the newest record; what has been used goes with it. */
static struct use
look(struct etd_follow *f)
{
    struct use now = {.instructions = count_instructions(),
                      .seconds = processor_seconds()};
    int64_t left;
    etd_follow_watch(f, note_batch, &now);
    while (now.ba == 0) {
        must(cx, etd_follow_read(f, 10, 0, &left));
        rest(0.01);
    }
    etd_follow_watch(f, NULL, NULL);
    return now;
}

/* Of a step, over SECONDS. */
static struct use
measure(struct etd_follow *f, double seconds)
{
    struct use a = look(f);
    n_steps = 0;
    rest(seconds);
    struct use b = look(f);
    double steps = (double)(b.ba - a.ba);
    if (steps < 1 || n_steps < 1)
        give_up("the run stands still");
    qsort(step, (size_t)n_steps, sizeof *step, by_size);
    return (struct use){
        .t = (b.t - a.t) / steps,
        .seconds = (b.seconds - a.seconds) / steps,
        .instructions = (b.instructions - a.instructions) / steps,
        .quick = part(step, n_steps, 0.1),
    };
}

/* ---- viewers, in a process of their own ---- */

static void
send_raw(struct etd_channel *line, enum etd_kind kind, int64_t credit)
{
    char bytes[512];
    struct etd_out o;
    const struct etd_head head = {.kind = kind};
    etd_begin(&o, bytes, sizeof bytes, &head, 1);
    etd_put_int(&o, "credit", credit);
    (void)etd_channel_send(line, bytes, etd_end(&o));
}

static struct etd_channel *
open_raw(void)
{
    struct etd_channel *line;
    must(cx, etd_channel_open(cx, &(struct etd_channel_options){.target = endpoint},
                              &line));
    return line;
}

static void
annoy(struct etd_channel **line, struct et_rng *rng)
{
    static char big[ETD_INBOUND_BYTES];
    static const enum etd_kind kinds[] = {ETD_HELLO, ETD_HIST, ETD_NACK};
    const char *bytes;
    size_t n;
    for (int i = 0; i < 50; i++) {
        uint32_t what = (uint32_t)et_rng_below(rng, 4);
        if (what == 3) {
            memset(big, (int)et_rng_below(rng, 256), sizeof big);
            (void)etd_channel_send(*line, big, sizeof big);
        } else {
            send_raw(*line, kinds[what], 1 << 20);
        }
    }
    enum etd_got got = ETD_GOT_MESSAGE;
    for (int i = 0; i < 20 && got == ETD_GOT_MESSAGE; i++)
        got = etd_channel_receive(*line, &bytes, &n);
    if (got == ETD_GOT_GONE) {
        etd_channel_close(line);
        *line = open_raw();
    }
}

/* Says through READY when all who follow have the run, and goes on until it is
 * killed. */
static void
be_viewers(int ready)
{
    struct etd_client *c[GOOD];
    struct etd_channel *hostile;
    struct et_rng rng = et_rng_at(18, ET_RNG_SELECT, 0);
    bool said = false;
    for (int i = 0; i < STUCK; i++) /* grants much, and never reads */
        send_raw(open_raw(), ETD_HELLO, 1 << 16);
    hostile = open_raw();
    for (int i = 0; i < GOOD; i++)
        must(cx, etd_client_open(
                     cx, &(struct etd_client_options){.channel = {.target = endpoint}},
                     &c[i]));
    for (;;) {
        struct pollfd p[GOOD];
        int live = 0;
        for (int i = 0; i < GOOD; i++)
            p[i] = (struct pollfd){.fd = etd_client_fd(c[i]), .events = POLLIN};
        (void)poll(p, GOOD, 20);
        for (int i = 0; i < GOOD; i++) {
            must(cx, etd_client_step(c[i]));
            live += etd_client_status(c[i])->link == ETD_LINK_LIVE;
        }
        annoy(&hostile, &rng);
        if (live == GOOD && !said)
            said = write(ready, "", 1) == 1;
    }
}

static pid_t
start_viewers(void)
{
    int ready[2];
    char byte;
    if (pipe(ready) != 0)
        give_up("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        pin(0, RELAY);
        close(ready[0]);
        be_viewers(ready[1]);
    }
    close(ready[1]);
    if (pid < 0 || read(ready[0], &byte, 1) != 1)
        give_up("the viewers were not let in");
    close(ready[0]);
    return pid;
}

/* ---- the run ---- */

static pid_t
number_in(const json_t *facts, const char *key)
{
    return (pid_t)json_integer_value(json_object_get(facts, key));
}

static bool
is_hub(pid_t pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f)
        fclose(f);
    return memmem(line, n, ETD_HUB_COMMAND, strlen(ETD_HUB_COMMAND)) != NULL;
}

/* Finds rank and hub among the supervisor's children. */
static void
find_children(pid_t supervisor)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)supervisor,
             (int)supervisor);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f))
        line[0] = '\0';
    if (f)
        fclose(f);
    for (char *at = line, *end;; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            return;
        *(is_hub(pid) ? &hub_pid : &rank_pid) = pid;
    }
}

static void
start_run(const char *program)
{
    char path[256];
    struct stat st;
    pid_t supervisor = 0;
    snprintf(path, sizeof path, "%s/r.yaml", folder);
    FILE *f = fopen(path, "w");
    if (!f || fputs(recipe, f) < 0 || fclose(f) != 0)
        give_up("no recipe");
    front = fork();
    if (front == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(127);
        pin(0, WORK);
        prefer(0, true);
        setenv("OMP_NUM_THREADS", "1", 1);
        execl(program, program, "train", path, "--run_directory", directory,
              "--run_name", "crowd", "--progress", "none", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 1000 && (!hub_pid || !rank_pid || stat(endpoint, &st) != 0);
         i++) {
        json_t *facts;
        rest(0.02);
        if (eti_facts_read_state(cx, directory, &facts) != ET_OK) {
            et_error_clear(cx);
            continue;
        }
        supervisor = number_in(facts, "pid");
        json_decref(facts);
        find_children(supervisor);
    }
    if (!hub_pid || !rank_pid)
        give_up("the run does not begin");
    pin_all(supervisor, RELAY);
    pin_all(hub_pid, RELAY);
}

/* ---- the answer ---- */

static void
say(const char *what, double scale, const char *unit, const struct use *a,
    const struct use *b, size_t field, int n)
{
    double ratio[PAIRS], alone[PAIRS];
    for (int i = 0; i < n; i++) {
        memcpy(&alone[i], (const char *)&a[i] + field, sizeof alone[i]);
        memcpy(&ratio[i], (const char *)&b[i] + field, sizeof ratio[i]);
        ratio[i] /= alone[i];
    }
    qsort(ratio, (size_t)n, sizeof *ratio, by_size);
    qsort(alone, (size_t)n, sizeof *alone, by_size);
    printf("%-15s %10.3f %s a step alone (quartiles %+.1f .. %+.1f %%); with viewers x "
           "%.4f (%.4f .. %.4f)\n",
           what, scale * part(alone, n, 0.5), unit,
           100 * (part(alone, n, 0.25) / part(alone, n, 0.5) - 1),
           100 * (part(alone, n, 0.75) / part(alone, n, 0.5) - 1), part(ratio, n, 0.5),
           part(ratio, n, 0.25), part(ratio, n, 0.75));
}

static double
hub_memory(void)
{
    char path[64], line[256];
    double kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)hub_pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lf kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb / 1024;
}

int
main(int argc, char **argv)
{
    static struct use alone[PAIRS], watched[PAIRS];
    const char *program = argc > 1 ? argv[1] : "./etude", *tmp = getenv("TMPDIR");
    int pairs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 12;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 3;
    char command[256];
    struct etd_follow *f;
    int status;
    if (pairs < 1 || pairs > PAIRS || !(seconds > 0)) {
        fprintf(stderr, "usage: viewers [ETUDE [PAIRS [SECONDS]]]\n");
        return 64;
    }
    snprintf(folder, sizeof folder, "%s/etude-viewers.XXXXXX", tmp ? tmp : "/tmp");
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder))
        return 1;
    snprintf(directory, sizeof directory, "%s/run", folder);
    snprintf(endpoint, sizeof endpoint, "%s/etude/crowd.sock", folder);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    setenv("XDG_STATE_HOME", folder, 1);
    setenv("ETUDE_CONFIG_DIR", folder, 1);
    start_run(program);
    pin(0, RELAY);
    open_counters();
    must(cx, etd_follow_open(cx, directory, &f));
    (void)measure(f, seconds);
    for (int i = 0; i < 2 * pairs; i++) {
        bool with = (i % 2) != (i / 2 % 2); /* so that neither is always first */
        pid_t crowd = with ? start_viewers() : 0;
        *(with ? &watched[i / 2] : &alone[i / 2]) = measure(f, seconds);
        if (crowd) {
            kill(crowd, SIGKILL);
            waitpid(crowd, &status, 0);
            rest(0.5); /* the hub sees that they are gone */
        }
    }
    printf(
        "%d pairs of %g s; %d viewers, %d that never read, 1 hostile; hub %.1f MiB at "
        "most\n",
        pairs, seconds, GOOD, STUCK, hub_memory());
    say("step time", 1e3, "ms", alone, watched, offsetof(struct use, t), pairs);
    say("quick steps", 1e3, "ms", alone, watched, offsetof(struct use, quick), pairs);
    say("processor time", 1e3, "ms", alone, watched, offsetof(struct use, seconds),
        pairs);
    if (n_counters)
        say("instructions", 1e-6, "M", alone, watched,
            offsetof(struct use, instructions), pairs);
    else
        printf("instructions    are not counted on this machine\n");
    etd_follow_close(&f);
    kill(front, SIGTERM);
    waitpid(front, &status, 0);
    et_ctx_free(&cx);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? 0 : 1;
}
